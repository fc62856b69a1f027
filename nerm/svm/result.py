"""What the algorithms of `nerm.svm` return: a hypothesis, its multipliers, and the gap that certifies it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.errors import InvalidInputError
from nerm.kernels import Kernel, Linear, Precomputed
from nerm.signs import sign
from nerm.validation import Matrix, as_matrix


@dataclass(frozen=True, eq=False)
class NeutralSVM:
    """A fitted neutral SVM: f(x) = (1 / lambda) sum_i a_i k(x_i, x) + b, kept on the points with a_i != 0.

    ``primal``, ``dual`` and ``gap`` are in the sum form, computed by `nerm.svm` from the hypothesis and from
    multipliers that are exactly feasible, never taken from a solver. ``intercept_interval`` holds all
    intercepts that are optimal for these scores; ``intercept`` is its midpoint where the algorithm is free
    to choose. ``weights`` is w where a primal algorithm found it; it then defines the hypothesis.
    ``nu_plus`` and ``nu_minus`` are nan in the published variant. alpha, beta_plus, beta_minus, a and scores
    are (n,), support holds the indices i with a_i != 0.

    At the optimum of the exact dual nu^+ + nu^- = eta, and the scores are those of the kernel expansion:

    >>> import numpy as np
    >>> from nerm.svm import smo
    >>> X, y, v = np.array([[1.0], [2.0], [-1.0], [-2.0]]), [1, 1, -1, -1], [1, -1, 1, -1]
    >>> model = smo(X, y, v, lam=2.0, eta=1.0, kernel="linear")
    >>> round(model.primal, 6), round(model.dual, 6), round(model.nu_plus + model.nu_minus, 6)
    (5.25, 5.25, 1.0)
    >>> np.allclose(X @ X.T @ model.a / model.lam + model.intercept, model.scores)
    True
    >>> model.predict([[0.1], [-0.1]])
    array([ 1., -1.])
    """

    alpha: np.ndarray
    beta_plus: np.ndarray
    beta_minus: np.ndarray
    nu_plus: float
    nu_minus: float
    a: np.ndarray
    intercept: float
    intercept_interval: tuple[float, float]
    scores: np.ndarray
    lam: float
    eta: float
    variant: str
    kernel: Kernel
    support: np.ndarray
    support_vectors: Matrix | None
    n_features: int
    primal: float
    dual: float
    converged: bool
    status: str
    iterations: int = 0
    outer_iterations: int = 0
    history: tuple[dict[str, float], ...] = field(default=(), repr=False)
    weights: np.ndarray | None = field(default=None, repr=False)

    @property
    def gap(self) -> float:
        """Return primal - dual, an upper bound on the distance of ``primal`` from the optimum."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """Return `gap / |primal|`."""
        return self.gap / max(abs(self.primal), float(np.finfo(float).tiny))

    @property
    def theta(self) -> float:
        """Return nu^+ / eta, the weight of C^+ in the maximum (0.5 when eta is 0)."""
        return self.nu_plus / self.eta if self.eta > 0 else 0.5

    @property
    def dual_coef(self) -> np.ndarray:
        """Return the kernel coefficients c = a / lambda of the support points."""
        return self.a[self.support] / self.lam

    @property
    def coef(self) -> np.ndarray:
        """Return w, for the linear kernel: the primal algorithm's own, or X'a / lambda."""
        if self.weights is not None:
            return self.weights
        if not isinstance(self.kernel, Linear) or self.support_vectors is None:
            raise InvalidInputError(
                "'coef' must belong to a linear kernel",
                f"{self.kernel!r}",
                "Use dual_coef and support instead",
            )
        return np.asarray(self.support_vectors.T @ self.dual_coef).ravel()

    def decision_function(self, X_new: Any) -> np.ndarray:
        """Return f, (m,), at new rows (m, d); for a precomputed kernel (m, n), k(x_new, x_i) over training points."""
        X_new = as_matrix(X_new)
        if X_new.shape[1] != self.n_features:
            raise InvalidInputError(
                f"'X' must have {self.n_features} columns, as the training data",
                f"{X_new.shape[1]}",
                "Pass the same features in the same order",
            )
        if self.weights is not None:
            return np.asarray(X_new @ self.weights).ravel() + self.intercept
        if isinstance(self.kernel, Precomputed):
            columns = X_new[:, self.support]
            columns = columns.toarray() if sp.issparse(columns) else columns
            return columns @ self.dual_coef + self.intercept
        if len(self.support) == 0:
            return np.full(X_new.shape[0], self.intercept)
        return self.kernel(X_new, self.support_vectors) @ self.dual_coef + self.intercept

    def predict(self, X_new: Any) -> np.ndarray:
        """Return +1 where f > 0 and -1 elsewhere, (m,)."""
        return sign(self.decision_function(X_new))
