"""Limits on measured neutrality: the solution that is asked for, instead of a weight (the work behind `neutralize`)."""

from nerm.neutralize.neutralizing import Asking, best_surrogate, neutralize
from nerm.neutralize.result import Neutralized

__all__ = ["Asking", "Neutralized", "best_surrogate", "neutralize"]
