"""The prejudice remover of Kamishima, Akaho, Asoh and Sakuma (ECML PKDD 2012)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, rel_entr

from nerm.baselines.base import GroupClassifier, lbfgs, with_ones
from nerm.typing import Bools, Floats, Matrix
from nerm.validation import as_nonnegative, as_positive


@dataclass(eq=False, repr=False)
class PrejudiceRemover(GroupClassifier):
    """Logistic regression per group, with a penalty on the mutual information of prediction and group.

    Let p_i = sigma(w_s . (x_i, 1)) for a row of group s, y in {0, 1}, c_s the size of group s, q_s the mean
    of p in group s, and r the mean of p over all rows. The objective is::

        L = -sum_i log P(y_i | x_i, s_i) + eta sum_s c_s KL(Bern(q_s) || Bern(r)) + (lam/2) sum_s ||w_s||^2

    The intercept is the last entry of w_s and is regularized too. The gradient in w_s is
    ``sum_{i in s} (x_i, 1) [(p_i - y_i) + eta a_s p_i (1 - p_i)] + lam w_s`` with
    ``a_s = log(q_s / r) - log((1 - q_s) / (1 - r))``; the derivatives through r cancel. (The widely
    used implementation has a different gradient for eta > 0; the tests compare this one with finite
    differences.)

    For eta > 0 the objective is not convex: the fit is a local minimum.

    Parameters
    ----------
    eta, lam : float
        The weights of the penalty and of the regularizer (sum form).
    tol : float
        Tolerance on the largest entry of the gradient of L / n, at which L-BFGS stops.
    max_iter : int
        Maximal number of L-BFGS steps.
    warm_start : bool
        Whether to start from the previous fit, on the same columns, instead of from zero.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (2, d) and (2,)
        One row (entry) per group in ``groups_``.
    objective_ : float
        The final value of L.
    mutual_information_ : float
        The mutual information of prediction and group, in nats: (1/n) sum_s c_s KL(Bern(q_s) || Bern(r)).
    n_iter_, gradient_norm_, converged_ : int, float, bool
        Number of steps, the largest entry of the gradient of L / n, and whether it is within tol.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2)); y = X.sum(axis=1) > 0; s = X[:, 0] + 0.5 * rng.normal(size=40) > 0
    >>> plain, removed = (PrejudiceRemover(eta=eta).fit(X, y, viewpoint=s) for eta in (0.0, 10.0))
    >>> bool(removed.mutual_information_ < plain.mutual_information_ / 10)
    True
    >>> scores = [removed.decision_function(X[:1], viewpoint=[group])[0] for group in (True, False)]
    >>> bool(scores[0] == scores[1])
    False
    """

    eta: float = 1.0
    lam: float = 1.0
    tol: float = 1e-6
    max_iter: int = 5000
    warm_start: bool = False

    sees_group: ClassVar[bool] = True

    def _fit(self, X: Any, y: Any, viewpoint: Any) -> None:
        """Minimise L by L-BFGS."""
        eta, lam = as_nonnegative(self.eta, "eta"), as_nonnegative(self.lam, "lam")
        tol = as_positive(self.tol, "tol")
        warm = self.warm_start and hasattr(self, "coef_")
        if warm:
            self._check_columns(X)
        matrix, positive, favoured = self._prepare(X, y, viewpoint)
        n, d = matrix.shape
        start = np.column_stack([self.coef_, self.intercept_]) if warm else np.zeros((2, d + 1))
        problem = Prejudice(matrix, positive, favoured, eta, lam)
        found = lbfgs(problem.value_and_gradient, start.ravel(), n, tol, int(self.max_iter), 30)
        weights = found.x.reshape(2, d + 1)
        self.coef_: Floats = weights[:, :d].copy()
        self.intercept_: Floats = weights[:, d].copy()
        self.objective_ = float(found.fun * n)
        self.mutual_information_ = problem.divergence(problem.scores(found.x))[0] / n
        self.n_iter_ = int(found.nit)
        self.gradient_norm_ = float(np.abs(found.jac).max())
        reached = f"the largest entry of the gradient is {self.gradient_norm_:.2g} after {self.n_iter_} steps"
        self._conclude(self.gradient_norm_ <= tol, f"{reached}, tol is {tol:.2g}")

    def _scores(self, rows: Matrix, favoured: Bools) -> Floats:
        """Return the log-odds of the desired outcome, (n,)."""
        scores = rows @ self.coef_.T + self.intercept_
        return np.where(favoured, scores[:, 1], scores[:, 0])


class Prejudice:
    """The objective L on given rows: its value, gradient and divergence."""

    def __init__(self, X: Matrix, positive: Bools, favoured: Bools, eta: float, lam: float) -> None:
        groups = [np.flatnonzero(favoured == bool(s)) for s in (0, 1)]
        extended = with_ones(X)
        self.X = [extended[rows] for rows in groups]
        self.y = [positive[rows].astype(float) for rows in groups]
        self.sizes = np.array([len(rows) for rows in groups], dtype=float)
        self.eta, self.lam = eta, lam

    def value_and_gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return L and its gradient; weights and gradient are flat arrays of length 2 (d + 1)."""
        W, scores = weights.reshape(2, -1), self.scores(weights)
        divergence, slope = self.divergence(scores)
        value = self.eta * divergence + 0.5 * self.lam * float(W.ravel() @ W.ravel())
        gradient = self.lam * W
        for s, z in enumerate(scores):
            p = expit(z)
            value += float(np.logaddexp(0.0, np.where(self.y[s] > 0, -z, z)).sum())
            gradient[s] += self.X[s].T @ (p - self.y[s] + self.eta * slope[s] * p * expit(-z))
        return value, gradient.ravel()

    def scores(self, weights: Floats) -> list[Floats]:
        """Return the scores of the rows of each group."""
        return [X @ w for X, w in zip(self.X, weights.reshape(2, -1), strict=True)]

    def divergence(self, scores: list[Floats]) -> tuple[float, Floats]:
        """Return sum_s c_s KL(Bern(q_s) || Bern(r)), and its derivative with respect to each c_s q_s, (2,).

        c_s is the size of group s, q_s the mean probability in it, r the mean probability of all rows.
        """
        # Compute 1 - q as a mean too: near q = 1 the subtraction would lose all digits.
        q = np.array([[expit(-z).mean(), expit(z).mean()] for z in scores])
        r = self.sizes @ q / self.sizes.sum()
        divergence = float(self.sizes @ rel_entr(q, r).sum(axis=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(q > 0, np.log(q / r), 0.0)
        return divergence, logs[:, 1] - logs[:, 0]
