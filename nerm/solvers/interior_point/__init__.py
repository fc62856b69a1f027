"""The fast engine: blocks in, a hypothesis with multipliers out."""

from nerm.solvers.interior_point.driver import Engine
from nerm.solvers.interior_point.tuning import Tuning

__all__ = ["Engine", "Tuning"]
