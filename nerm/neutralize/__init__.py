"""Solutions within a limit on measured neutrality: the weight of neutrality is searched."""

from nerm.neutralize.neutralizing import best_surrogate, neutralize
from nerm.neutralize.target import Neutralized, Target

__all__ = ["Neutralized", "Target", "best_surrogate", "neutralize"]
