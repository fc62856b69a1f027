"""Prove statements from certified solves: the trade-off curve, changed rows, derivatives of a solution."""

from nerm.proofs.changes import ChangeBound
from nerm.proofs.frontier import Frontier, Placement
from nerm.proofs.sensitivity import Sensitivity

__all__ = ["ChangeBound", "Frontier", "Placement", "Sensitivity"]
