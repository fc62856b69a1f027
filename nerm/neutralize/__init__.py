"""Find solutions within a limit on measured neutrality by a search over the weight eta of neutrality."""

from nerm.neutralize.neutralizing import best_surrogate, neutralize
from nerm.neutralize.target import Neutralized, Target

__all__ = ["Neutralized", "Target", "best_surrogate", "neutralize"]
