"""The paper's experiments, `convergence` and `tradeoff` (figures 1 and 2), `levels` (2 again), and `compare_solvers`.

Parallel, resumable, repeatable. Each returns a tidy table; `nerm.plots` draws it (`nerm.experiments.compare`
its own). From the command line: ``nerm reproduce --help`` and ``nerm solvers --compare``.
"""

from nerm.experiments.compare import compare_solvers as compare_solvers
from nerm.experiments.convergence import convergence as convergence
from nerm.experiments.convergence import slopes as slopes
from nerm.experiments.level_methods import LEVEL_METHODS as LEVEL_METHODS
from nerm.experiments.levels import level_means as level_means
from nerm.experiments.levels import levels as levels
from nerm.experiments.methods import METHODS as METHODS
from nerm.experiments.methods import Fit as Fit
from nerm.experiments.methods import Fold as Fold
from nerm.experiments.methods import Method as Method
from nerm.experiments.methods import from_estimator as from_estimator
from nerm.experiments.methods import from_objective as from_objective
from nerm.experiments.methods import sweep as sweep
from nerm.experiments.records import read as read
from nerm.experiments.tradeoff import front as front
from nerm.experiments.tradeoff import non_dominated as non_dominated
from nerm.experiments.tradeoff import tradeoff as tradeoff
from nerm.public import public_names

__all__ = ["LEVEL_METHODS", "METHODS", *public_names(globals())]
