"""A world whose truth is known: a distribution on finitely many points, and an oracle for the neutral SVM."""

import cvxpy as cp
import numpy as np


class World:
    """A distribution on finitely many (x, y, v), and the neutral SVM on counts of its points."""

    def __init__(self, points=40, seed=0, unit=True):
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(points, 3))
        if unit:
            self.X /= np.maximum(1.0, np.linalg.norm(self.X, axis=1, keepdims=True))
        shared = self.X[:, 0]
        self.y = np.where(shared + 0.5 * rng.normal(size=points) > 0, 1.0, -1.0)
        self.v = np.where(shared + 0.5 * rng.normal(size=points) > -0.2, 1.0, -1.0)
        self.p = rng.dirichlet(np.ones(points))
        self.R = float(np.linalg.norm(self.X, axis=1).max())
        self._build()

    def _build(self):
        m, d = self.X.shape
        self.w, self.b, f = cp.Variable(d), cp.Variable(), cp.Variable(m)
        self.q, self.mu, self.eta = (
            cp.Parameter(m, nonneg=True),
            cp.Parameter(nonneg=True),
            cp.Parameter(nonneg=True),
        )
        up, down = self.q @ cp.pos(1 - cp.multiply(self.v, f)), self.q @ cp.pos(1 + cp.multiply(self.v, f))
        t = cp.Variable()  # eta t with t >= both sides: a product of parameters would not be DPP
        risk = self.q @ cp.pos(1 - cp.multiply(self.y, f))
        objective = risk + self.mu / 2 * cp.sum_squares(self.w) + self.eta * t
        constraints = [f == self.X @ self.w + self.b, up <= t, down <= t]
        self.problem = cp.Problem(cp.Minimize(objective), constraints)

    def solve(self, q, lam_over_n, eta):
        self.q.value, self.mu.value, self.eta.value = q, lam_over_n, eta
        self.problem.solve(solver=cp.CLARABEL)
        assert self.problem.status == "optimal"
        return self.w.value, float(self.b.value)

    def sample(self, rng, n):
        return rng.choice(len(self.p), size=n, p=self.p)

    def neutrality(self, f, q):
        """C_psi for the hinge under the point probabilities q."""
        return max(sum(q * np.maximum(0, 1 - self.v * f)), sum(q * np.maximum(0, 1 + self.v * f)))
