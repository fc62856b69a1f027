"""The result of a method: a hypothesis, dual multipliers, and the two values that bound the optimum."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from nerm.svm.data import EPS, Floats, NeutralSVM


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

    def entry(self, iterations: int) -> dict[str, float]:
        """Return the entry of a history."""
        return {"iterations": iterations, **self._asdict(), "gap": self.gap}


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
        Steps (iterations) and values (primal, dual, gap, in mean form) so far, now and then.

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
        rows = X if self.data.kernel is None else self.data.kernel(X, self.data.X)
        return np.asarray(rows @ self.coef) + self.intercept

    def predict(self, X: Any) -> Floats:
        """Return +1 where f > 0, else -1."""
        return np.where(self.decision_function(X) > 0, 1.0, -1.0)


def result_of(
    data: NeutralSVM,
    z: Floats,
    nu_plus: float,
    tol: float,
    claim: str = "",
    hypothesis: tuple[Floats, float] | None = None,
) -> Result:
    """Build the result of a hypothesis and of multipliers z = t gamma, which are made feasible first.

    Without a hypothesis it is the one of the multipliers, w = X'a / lambda with its best intercept.
    """
    boxes = data.boxes(nu_plus)
    z = boxes.feasible(z, data.scores(hypothesis[0] if hypothesis else data.coef(z)))
    coef, b = hypothesis or (data.coef(z), data.best_intercept(data.scores(data.coef(z))))
    bounds = Bounds(data.primal(coef, b) / len(data.y), data.dual(boxes, z) / len(data.y))
    # where an upper bound is 0, the share is that of the subgradient at the scores
    share = (data.targets * (data.scores(coef) + b) < 1).astype(float)
    theta = nu_plus / data.eta if data.eta > 0 else 0.5
    most = boxes.low + boxes.high
    if not data.exact:
        most[1], theta = data.eta * data.u * data.v, np.nan
        share[1] = 0.0
    share[: len(z)] = np.divide(z, most, out=share[: len(z)], where=most != 0)
    if not data.exact:
        share[1:] = (1 + share[1]) / 2, (1 - share[1]) / 2
    status = "optimal" if bounds.relative_gap <= tol else "inaccurate"
    return Result(data, coef, b, Multipliers(share[0], share[1], share[2], theta), bounds, status, claim)
