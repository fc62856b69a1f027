"""The fast engine: arrays in, a certified optimum out. It knows no other part of nerm."""

from nerm.engine.driver import solve
from nerm.engine.margins import EXPONENTIAL, HINGE, LOGISTIC, QuadraticConjugate, SmoothMargin
from nerm.engine.model import EngineResult, LinearModel, LossTerm, NeutralityTerm
from nerm.engine.path import solve_path

__all__ = [
    "EXPONENTIAL",
    "HINGE",
    "LOGISTIC",
    "EngineResult",
    "LinearModel",
    "LossTerm",
    "NeutralityTerm",
    "QuadraticConjugate",
    "SmoothMargin",
    "solve",
    "solve_path",
]
