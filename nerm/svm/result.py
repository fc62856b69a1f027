"""The result of a method: a hypothesis, dual multipliers, and the two values that bound the optimum."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from nerm.svm.data import EPS, Floats, NeutralSVM, precomputed, require


class Multipliers(NamedTuple):
    """The dual variables, divided by their upper bounds.

    The paper's multipliers are s_i alpha_i, theta eta u_i beta_plus_i and (1 - theta) eta u_i beta_minus_i.
    In the published variant theta is nan, and they are eta u_i beta_plus_i and eta u_i beta_minus_i.
    """

    alpha: Floats
    beta_plus: Floats
    beta_minus: Floats
    theta: float


class Bounds(NamedTuple):
    """Objective and dual value of a result, in mean form: the optimum lies between them."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """The duality gap."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The duality gap divided by the objective."""
        return self.gap / max(abs(self.primal), EPS)


@dataclass(frozen=True, eq=False)
class Result:
    """What a method of `nerm.svm` found.

    Attributes
    ----------
    coef, intercept : array and float
        w of a linear model, or c with f(x) = sum_i c_i k(x_i, x) + b; and b.
    multipliers, certificate : Multipliers and Bounds
        Feasible dual variables, and the values of P and of the dual.
    status, claim : str
        "optimal" where the relative gap is within the tolerance, else "inaccurate"; and the method's words.
    iterations, outer_iterations : int
        Steps taken, and how many values of nu^+ were tried.
    history : tuple of dict
        The entries that a callback is given.

    Examples
    --------
    >>> from nerm.svm import smo
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> result = smo(X, y, v, lam=2.0, eta=1.0, kernel="linear")
    >>> result.status, round(4 * result.certificate.primal, 4), result.coef.round(3)
    ('optimal', 5.25, array([0.5]))

    """

    data: NeutralSVM = field(repr=False)
    coef: Floats
    intercept: float
    multipliers: Multipliers
    certificate: Bounds
    status: str
    claim: str
    iterations: int = 0
    outer_iterations: int = 0
    history: tuple[dict[str, float], ...] = field(default=(), repr=False)

    def training_scores(self) -> Floats:
        """Return f on the training rows, (n,)."""
        return self.data.scores(self.coef) + self.intercept

    def decision_function(self, X: Any) -> Floats:
        """Return f on new rows, (m,); for a precomputed kernel X has their values with the training rows."""
        columns = self.data.X.shape[1]
        must = f"'X' must have the {columns} features seen in training"
        require(np.shape(X)[1:] == (columns,), must, f"shape {np.shape(X)}", "Pass the same columns")
        kernel = self.data.kernel
        rows = X if kernel in (None, precomputed) else kernel(X, self.data.X)
        return np.asarray(rows @ self.coef) + self.intercept

    def predict(self, X: Any) -> Floats:
        """Return +1 where f > 0, else -1."""
        return np.where(self.decision_function(X) > 0, 1.0, -1.0)


def result_of(
    data: NeutralSVM,
    gamma: Floats,
    nu_plus: float,
    tol: float,
    claim: str,
    hypothesis: tuple[Floats, float] | None = None,
    **details: Any,
) -> Result:
    """Build the result of a hypothesis and of multipliers gamma, which are made feasible first.

    Without a hypothesis it is the one of the multipliers, w = X'a / lambda with its best intercept.
    """
    boxes = data.boxes(nu_plus)
    near = hypothesis[0] if hypothesis else data.coef(boxes.a(gamma))
    gamma = data.feasible(boxes, gamma, data.scores(near))
    coef = near if hypothesis else data.coef(boxes.a(gamma))
    b = hypothesis[1] if hypothesis else data.best_intercept(data.scores(coef))
    bounds = Bounds(data.primal(coef, b) / len(data.y), data.dual(boxes, gamma) / len(data.y))
    # where an upper bound is 0, the share is that of the subgradient at the scores
    share = (boxes.target * (data.scores(coef) + b) < 1).astype(float)
    share = np.divide(gamma, boxes.high, out=share, where=boxes.high > 0)
    if data.exact:
        theta = nu_plus / data.eta if data.eta > 0 else 0.5
        multipliers = Multipliers(share[0], share[1], share[2], theta)
    else:
        multipliers = Multipliers(share[0], (1 + share[1]) / 2, (1 - share[1]) / 2, theta=np.nan)
    status = "optimal" if bounds.relative_gap <= tol else "inaccurate"
    return Result(data, coef, b, multipliers, bounds, status, claim, **details)
