"""Bounds from certified solves: trade-off curves, changes of rows, and derivatives of a solution."""

from nerm.proofs.changes import ChangeBound, LeaveOneOut
from nerm.proofs.frontier import Frontier, Placement
from nerm.proofs.sensitivity import Sensitivity

__all__ = ["ChangeBound", "Frontier", "LeaveOneOut", "Placement", "Sensitivity"]
