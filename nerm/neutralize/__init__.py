"""Limits on measured neutrality: the solution that is asked for, instead of a weight (the work behind `neutralize`)."""

from nerm.neutralize.neutralizing import Neutralized, neutralize

__all__ = ["Neutralized", "neutralize"]
