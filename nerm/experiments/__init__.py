"""The paper's experiments: `convergence` (figure 1), `tradeoff` and `levels` (figure 2), `compare_solvers`.

They run in parallel, resume after an interruption, and return the same table every time, apart from run
times. `nerm.plots` draws the tables; the table of `compare_solvers` is drawn by
`nerm.experiments.compare.figure`. On the command line they are ``nerm reproduce`` and
``nerm solvers --compare``.
"""

from nerm.experiments.compare import compare_solvers
from nerm.experiments.convergence import convergence, slopes
from nerm.experiments.gradient import Tuned, tune
from nerm.experiments.levels import LEVEL_METHODS, acs, level_means, levels
from nerm.experiments.methods import METHODS, Fit, Fold, Method, from_estimator, from_objective
from nerm.experiments.running import read
from nerm.experiments.tradeoff import cross_validate, front, non_dominated, sweep, tradeoff

__all__ = [
    "LEVEL_METHODS", "METHODS", "Fit", "Fold", "Method", "Tuned", "acs", "compare_solvers", "convergence",
    "cross_validate", "from_estimator", "from_objective", "front", "level_means", "levels", "non_dominated",
    "read", "slopes", "sweep", "tradeoff", "tune",
]  # fmt: skip
