"""Wide and sparse data: an augmented Lagrangian whose Newton systems are solved by products with rows alone."""

from nerm.wide.method import CONSTANTS, AugmentedLagrangian, Constants, Iterate
from nerm.wide.newton_cg import RowProducts
from nerm.wide.smoothing import Blocks

__all__ = ["CONSTANTS", "AugmentedLagrangian", "Blocks", "Constants", "Iterate", "RowProducts"]
