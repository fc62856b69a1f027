"""The fast engine: blocks in, a hypothesis with multipliers out."""

from nerm.engine.driver import Engine
from nerm.engine.tuning import Tuning

__all__ = ["Engine", "Tuning"]
