"""The interior-point method: blocks in, a hypothesis with dual variables out."""

from nerm.solvers.interior_point.engine import Engine
from nerm.solvers.interior_point.predictor_corrector import Tuning

__all__ = ["Engine", "Tuning"]
