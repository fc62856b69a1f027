"""The paper's two experiments, `convergence` (figure 1) and `tradeoff` (figure 2), and `compare_solvers`.

Parallel, resumable, repeatable. Each returns a tidy table; `nerm.plots` draws it (`nerm.experiments.compare` its own).
From the command line: ``nerm reproduce --help`` and ``nerm solvers --compare``.
"""

from nerm.experiments.compare import compare_solvers
from nerm.experiments.convergence import convergence, slopes
from nerm.experiments.fronts import front, non_dominated
from nerm.experiments.methods import METHODS, Fit, Fold, Method, from_estimator, from_objective, sweep
from nerm.experiments.records import read
from nerm.experiments.tradeoff import tradeoff

__all__ = [
    "METHODS",
    "Fit",
    "Fold",
    "Method",
    "compare_solvers",
    "convergence",
    "from_estimator",
    "from_objective",
    "front",
    "non_dominated",
    "read",
    "slopes",
    "sweep",
    "tradeoff",
]
