"""An augmented Lagrangian whose Newton systems know only rows at kinks: for wide and sparse data, and for kernels."""

from nerm.wide.coarse import from_few_rows
from nerm.wide.giving_up import GaveUpError
from nerm.wide.kernel_products import KernelProducts
from nerm.wide.method import CONSTANTS, AugmentedLagrangian, Constants, Iterate
from nerm.wide.newton_cg import RowProducts
from nerm.wide.smoothing import Blocks

__all__ = [
    "CONSTANTS", "AugmentedLagrangian", "Blocks", "Constants", "GaveUpError", "Iterate", "KernelProducts",
    "RowProducts", "from_few_rows",
]  # fmt: skip
