"""An augmented Lagrangian whose Newton systems know only rows at kinks: for wide and sparse data, and for kernels."""

from nerm.solvers.newton_alm.coarse import from_few_rows
from nerm.solvers.newton_alm.giving_up import GaveUpError
from nerm.solvers.newton_alm.kernel_products import KernelProducts
from nerm.solvers.newton_alm.method import CONSTANTS, AugmentedLagrangian, Constants, Iterate
from nerm.solvers.newton_alm.newton_cg import RowProducts
from nerm.solvers.newton_alm.smoothing import Blocks

__all__ = [
    "CONSTANTS", "AugmentedLagrangian", "Blocks", "Constants", "GaveUpError", "Iterate", "KernelProducts",
    "RowProducts", "from_few_rows",
]  # fmt: skip
