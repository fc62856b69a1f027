"""Limits on measured neutrality: the solution that is asked for, instead of a weight (the work behind `neutralize`)."""

from nerm.neutralize.neutralizing import Asking, neutralize
from nerm.neutralize.result import Neutralized

__all__ = ["Asking", "Neutralized", "neutralize"]
