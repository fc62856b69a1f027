"""Find solutions within a limit on measured neutrality: rankings by certified solves, exact thresholds."""

from nerm.neutralize.neutralizing import neutralize
from nerm.neutralize.target import Neutralized, Target

__all__ = ["Neutralized", "Target", "neutralize"]
