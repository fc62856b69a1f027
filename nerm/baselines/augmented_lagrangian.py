"""An augmented Lagrangian with Newton steps, for a smooth objective under a handful of smooth constraints.

Chosen by measurement over SLSQP and over the same outer loop with L-BFGS inside; the figures are in
``docs/baselines.md``.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.special import expit

from nerm.baselines.neutral_likelihood import NeutralLikelihood
from nerm.typing import Floats


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
            print(f"eta-LR: {steps} steps, objective {problem.objective(w) * problem.n:.8g}, residual {violation:.2g}")
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


def _solve(problem: NeutralLikelihood, bend: Floats, rho: float, jacobian: Floats, gradient: Floats) -> Floats:
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
