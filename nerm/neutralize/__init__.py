"""Find solutions within a limit on measured neutrality.

A certified solve for some neutrality weight ranks the rows by their scores. Then the best threshold of the
scores within the limit is found exactly.
"""

from nerm.neutralize.neutralizing import neutralize
from nerm.neutralize.target import Neutralized, Target

__all__ = ["Neutralized", "Target", "neutralize"]
