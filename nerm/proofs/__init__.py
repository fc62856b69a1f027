"""Prove statements from certified solves: the trade-off curve, changed rows, derivatives of a solution."""

from nerm.proofs.frontier import Frontier, Placement

__all__ = ["Frontier", "Placement"]
