"""The eta-neutral likelihood, and an augmented Lagrangian with Newton steps that minimises it.

The method was chosen by measurement over SLSQP and over the same outer loop with L-BFGS inside; the figures
are in ``docs/baselines.md``.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
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


@dataclass(frozen=True)
class Minimum:
    """Where the method stopped, and how well the conditions of a minimum hold there."""

    weights: Floats
    multipliers: Floats
    violation: float  #: largest constraint violation
    gradient_norm: float  #: largest entry of the Lagrangian's gradient
    steps: int
    converged: bool


def minimise(
    problem: NeutralLikelihood, start: Floats, tol: float, feasible: float, max_steps: int, verbose: bool
) -> Minimum:
    """Minimise F subject to c <= 0 (or = 0).

    The augmented Lagrangian is ``F + sum_k (m_k^2 - mu_k^2) / 2 rho`` with ``m = max(0, mu + rho c)`` (no
    max for an equality). Each round minimises it to ``tol`` and sets mu = m; rho grows when a round does not
    shrink the violation to a quarter. At the end of a round grad F + sum_k mu_k grad c_k is the inner
    gradient, so what remains to check is c itself and complementarity, both of which show in ``max(c, -mu /
    rho)``.
    """
    w, rho, steps = start, 0.0, 0
    mu = np.zeros(len(problem.offset))
    w, mu, norm, steps = _newton(problem, w, mu, rho, tol, max_steps)  # unconstrained, to start from
    shortfall, rho = np.inf, 10.0
    while True:
        c = problem.constraints(w)
        residual = np.abs(c) if problem.equality else np.abs(np.maximum(c, -mu / rho))
        violation = float(residual.max())
        if verbose:
            print(
                f"eta-LR: {steps} steps, objective {problem.objective(w) * problem.n:.8g}, residual {violation:.2g}"
            )
        if (violation <= feasible and norm <= tol) or steps >= max_steps:
            break
        if violation > 0.25 * shortfall:
            rho *= 10.0
        shortfall = violation
        w, mu, norm, used = _newton(problem, w, mu, rho, tol, max_steps - steps)
        steps += used
    broken = float(np.abs(c).max() if problem.equality else np.maximum(c, 0.0).max())
    return Minimum(w, mu, broken, norm, steps, bool(violation <= feasible and norm <= tol))


def _newton(
    problem: NeutralLikelihood, w: Floats, mu: Floats, rho: float, tol: float, max_steps: int
) -> tuple[Floats, Floats, float, int]:
    """Minimise the augmented Lagrangian; return weights, new multipliers, gradient norm and the number of steps."""

    def pushed(p: Floats) -> Floats:
        m = mu + rho * (problem.A @ p + problem.offset)
        return m if problem.equality else np.maximum(m, 0.0)

    def value(w: Floats, z: Floats) -> float:
        penalty = float((pushed(expit(z)) ** 2 - mu**2).sum() / (2 * rho)) if rho > 0 else 0.0
        return problem.objective_at(w, z) + penalty

    z = problem.X @ w
    current, steps = value(w, z), 0
    while True:
        p, slope = expit(z), expit(z) * expit(-z)
        m = pushed(p) if rho > 0 else np.zeros_like(mu)
        pull = m @ problem.A
        gradient = problem.gradient(w, z, pull)
        norm = float(np.abs(gradient).max())
        if norm <= tol or steps >= max_steps:
            return w, m, norm, steps
        bend = slope / problem.n + pull * slope * (1 - 2 * p)
        direction = -_solve(problem, bend, rho, problem.jacobian(z, m != 0), gradient)
        descent, step = float(gradient @ direction), 1.0
        along = problem.X @ direction
        while True:
            trial = value(w + step * direction, z + step * along)
            # Near the optimum the decrease drowns in rounding: accept a step that is level to the last
            # digits.
            if trial <= current + 1e-4 * step * descent + 1e-15 * abs(current):
                break
            step *= 0.5
            if step < 1e-12:
                return w, m, norm, steps
        w, z, current = w + step * direction, z + step * along, trial
        steps += 1


def _solve(
    problem: NeutralLikelihood, bend: Floats, rho: float, jacobian: Floats, gradient: Floats
) -> Floats:
    """Solve the Newton system; where the exact Hessian is not positive definite, drop its negative curvature."""
    for curvature in (bend, np.maximum(bend, 0.0)):
        hessian = problem.weighted_gram(curvature) + rho * (jacobian.T @ jacobian)
        hessian[np.diag_indices_from(hessian)] += problem.ridge
        # A whisper of ridge: one-hot columns that sum to the intercept make it singular at lam = 0.
        hessian[np.diag_indices_from(hessian)] += 1e-12 * max(1.0, np.trace(hessian) / len(hessian))
        try:
            return scipy.linalg.cho_solve(scipy.linalg.cho_factor(hessian), gradient)
        except scipy.linalg.LinAlgError:
            continue
    return gradient
