"""The defaults of the classifiers and of the command line, in one place.

A weight lambda has two forms. In *mean* form (`nerm.Objective`, `nerm.NERMClassifier`, the command line) it
weighs the regularizer against the mean loss; in *sum* form (`nerm.NeutralSVC`, the paper's section 6.1, C = 1
/ lambda) against the sum of the losses. On n rows of weight 1, lambda in sum form is n times lambda in mean
form; eta is the same number in both.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Defaults:
    """What a parameter is when nobody names it.

    Attributes
    ----------
    lam
        Weight of the regularizer in mean form.
    lam_sum
        Weight of the regularizer in sum form.
    eta
        Weight of neutrality.
    loss, surrogate, regularizer
        Names of phi, psi and Omega.
    kernel, gamma, degree, coef0
        The kernel and its parameters.
    weights
        What the neutrality term counts: "uniform" is the paper's.
    solver, tol
        Who solves, and the relative duality gap to certify.
    delta
        Probability with which a bound may fail.
    measure, prefer, keep
        What a limit is about, what surrogates are compared by, and the share of positive rates that must be
        left.
    limit, class_weight
        How large the measure may be, and what the classes count.

    Examples
    --------
    >>> DEFAULTS.lam, DEFAULTS.eta, DEFAULTS.weights
    (0.01, 0.0, 'uniform')
    >>> COMMAND_LINE.limit, COMMAND_LINE.measure, COMMAND_LINE.weights
    (0.02, 'calders_verwer_score', 'balanced')

    """

    lam: float = 0.01
    lam_sum: float = 1.0
    eta: float = 0.0
    loss: str = "hinge"
    surrogate: str = "hinge"
    regularizer: str = "squared-l2"
    kernel: str = "linear"
    gamma: str = "scale"
    degree: int = 3
    coef0: float = 0.0
    weights: str = "uniform"
    solver: str = "auto"
    tol: float = 1e-6
    delta: float = 0.05
    measure: str = "calders_verwer_score"
    prefer: str = "accuracy"
    keep: float = 0.5
    limit: float | None = None
    class_weight: str | None = None


DEFAULTS = Defaults()

#: The command limits the difference in positive rates, which is defined for groups of any size. A rare class
#: counts more (`class_weight`), because a neutral model tends to predict the common one only.
COMMAND_LINE = replace(
    DEFAULTS,
    lam=0.001,
    surrogate="auto",
    weights="balanced",
    limit=0.02,
    class_weight="root",
)

#: The limits, or the weights, of a trade-off.
LIMITS = (0.1, 0.05, 0.02, 0.01)
ETAS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 5.0, 10.0)
