"""The defaults that the classifiers and the command line share, in one place.

The weight lambda of the regularizer has two forms. In *mean* form (`nerm.Objective`, `nerm.NERMClassifier`,
the command line) the regularizer is added to the mean of the losses. In *sum* form (`nerm.NeutralSVC`,
section 6.1 of the paper, C = 1 / lambda) it is added to the sum of the losses. On n rows of weight 1, lambda
in sum form is n times lambda in mean form; eta is the same number in both.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Defaults:
    """The default values of parameters.

    Attributes
    ----------
    lam
        Weight of the regularizer in mean form.
    loss, surrogate, regularizer
        Names of phi, psi and Omega.
    kernel
        Name of the kernel.
    weights
        Neutrality weights, by name (`nerm.weights`); "uniform" is the definition of the paper.
    solver
        Name of the solver.
    tol
        Relative duality gap to certify.
    delta
        Probability with which a bound may fail.
    measure
        Measure of neutrality to which a limit applies.
    keep
        The positive rate of every group must be at least this fraction of its rate without a limit.
    limit
        Largest absolute value of the measure that is allowed; None for no limit.
    class_weight
        Weights of the classes in the risk.

    Examples
    --------
    >>> DEFAULTS.lam, DEFAULTS.weights
    (0.01, 'uniform')
    >>> COMMAND_LINE.limit, COMMAND_LINE.measure, COMMAND_LINE.weights
    (0.02, 'calders_verwer_score', 'balanced')

    """

    lam: float = 0.01
    loss: str = "hinge"
    surrogate: str = "hinge"
    regularizer: str = "squared-l2"
    kernel: str = "linear"
    weights: str = "uniform"
    solver: str = "auto"
    tol: float = 1e-6
    delta: float = 0.05
    measure: str = "calders_verwer_score"
    keep: float = 0.5
    limit: float | None = None
    class_weight: str | None = None


DEFAULTS = Defaults()

#: The command line limits the difference in positive rates, which is comparable for groups of any size. Rare
#: classes get larger weights (`class_weight`), because neutral models tend to predict only the common class.
COMMAND_LINE = replace(
    DEFAULTS, lam=0.001, surrogate="auto", weights="balanced", limit=0.02, class_weight="root"
)

#: The limits of a trade-off; and its weights eta, if no limits are used.
LIMITS = (0.1, 0.05, 0.02, 0.01)
ETAS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 5.0, 10.0)
