"""The eta-neutral likelihood: values, gradients and Hessians of objective and constraints, nothing else."""

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from nerm.typing import Bools, Floats, Matrix


class NeutralLikelihood:
    """``F(w) = (1/n) NLL + (lam/2n) ||w||^2`` and ``c_k(w) = A_k . p(w) + offset_k``, p_i = sigma(x_i . w).

    Every constraint is linear in the probabilities: with a_v the averaging weights of group v (1/c_v on its
    rows, or P(v|x_i) normalised), ``q_v(1) - (1 + eta) r(1) = (a_v - (1 + eta)/n) . p`` and
    ``q_v(0) - (1 + eta) r(0) = -(a_v - (1 + eta)/n) . p - eta``. At eta = 0 the single row is ``a_1 - a_0``,
    an equality.

    The last column of X is the intercept's; it is not regularised.
    """

    def __init__(self, X: Matrix, positive: Bools, belonging: Floats, eta: float, lam: float) -> None:
        self.X, self.n, self.eta = X, X.shape[0], eta
        self.y = positive.astype(float)
        self.ridge = np.full(X.shape[1], lam / self.n)
        self.ridge[-1] = 0.0
        self.averages = np.stack([(1.0 - belonging) / (1.0 - belonging).sum(), belonging / belonging.sum()])
        self.equality = eta == 0
        if self.equality:
            self.A, self.offset = (self.averages[1] - self.averages[0])[None, :], np.zeros(1)
        else:
            rows = self.averages - (1.0 + eta) / self.n
            self.A = np.concatenate([-rows, rows])
            self.offset = np.array([-eta, -eta, 0.0, 0.0])
        self._repeats = np.diff(X.indptr) if sp.issparse(X) else None

    def objective(self, w: Floats) -> float:
        """Return F(w)."""
        return self.objective_at(w, self.X @ w)

    def objective_at(self, w: Floats, scores: Floats) -> float:
        """Return F(w) when X w is known."""
        losses = np.logaddexp(0.0, np.where(self.y > 0, -scores, scores))
        return float(losses.mean() + 0.5 * (self.ridge @ w**2))

    def gradient(self, w: Floats, scores: Floats, pull: Floats) -> Floats:
        """Return the gradient of F + m . c when X w and m A = pull are known."""
        slope = expit(scores) * expit(-scores)
        return self.X.T @ ((expit(scores) - self.y) / self.n + pull * slope) + self.ridge * w

    def constraints(self, w: Floats) -> Floats:
        """Return c(w): to be <= 0, or = 0 at eta = 0."""
        return self.A @ expit(self.X @ w) + self.offset

    def jacobian(self, scores: Floats, chosen: Bools) -> Floats:
        """Return the gradients of the chosen constraints, one a row, when X w is known."""
        return (self.X.T @ (self.A[chosen] * (expit(scores) * expit(-scores))).T).T

    def weighted_gram(self, weights: Floats) -> Floats:
        """Return X' diag(weights) X, dense."""
        if self._repeats is None:
            return self.X.T @ (weights[:, None] * self.X)
        scaled = self.X.copy()
        scaled.data = scaled.data * np.repeat(weights, self._repeats)
        return (self.X.T @ scaled).toarray()

    def published_constraints(self, p: Floats) -> Floats:
        """Return q_v(y) - (1 + eta) r(y): rows y = 0, 1; columns v = 0, 1."""
        q, r = self.averages @ p, p.mean()
        return np.stack([(1 - q) - (1 + self.eta) * (1 - r), q - (1 + self.eta) * r])
