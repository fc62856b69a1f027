"""The subgradient method on the primal (paper, section 6.1), corrected, with a certificate.

The intercept is not regularised, so a step in it has no natural length. It is minimised out exactly instead::

    F(w) = min over b of P(w, b)      is lambda-strongly convex,      lambda w - X'a  in  dF(w)

where a comes from multipliers at the best b chosen, where hinges bend or C^+ = C^-, such that sum_i a_i =
0. With the step 2 / (lambda (k + 2)) the iterate w_k is exactly X'abar_k / lambda, abar_k a weighted mean
of all the a so far: a feasible point of the exact dual. So every run carries its own lower bound and the
gap is honest. Convergence is O(1 / (lambda k)), slow by nature; the certificate shows how far it got.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nerm.svm.certify import feasible
from nerm.svm.data import NeutralData, validated
from nerm.svm.intercept import best_intercept
from nerm.svm.pieces import Multipliers
from nerm.svm.result import NeutralSVM
from nerm.validation import as_nonnegative, as_positive

# A margin this close to 1 (relative) counts as sitting on the bend.
_ON_BEND = 1e-10


def subgradient_method(
    X: Any,
    y: Any,
    viewpoint: Any,
    lam: float,
    eta: float,
    intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int = 2000,
    sample_weight: Any = None,
    neutrality_weight: Any = None,
    callback: Callable[[dict[str, float]], object] | None = None,
) -> NeutralSVM:
    """Minimise the linear neutral SVM's primal by averaged subgradient steps; stop at relative gap tol.

    The result is the best of the iterates and of their weighted mean. ``converged`` is False, and
    ``status`` says which gap is left, when max_iter steps were not enough. A callback returning False
    stops the run. X is (n, d), dense or sparse; y (-1/+1), viewpoint and the weights s and u are (n,).

    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> subgradient_method(X, y, v, lam=2.0, eta=1.0, max_iter=3).converged
    False
    >>> model = subgradient_method(X, y, v, lam=2.0, eta=1.0, tol=1e-2)
    >>> model.converged, model.dual <= 5.25 <= model.primal + 1e-12
    (True, True)
    """
    data = validated(X, y, viewpoint, lam, eta, sample_weight=sample_weight, neutrality_weight=neutrality_weight)
    tol = as_nonnegative(tol, "tol", "Use a relative gap such as 1e-3")
    max_iter = int(as_positive(max_iter, "max_iter"))
    d = data.X.shape[1]
    w, mean = np.zeros(d), np.zeros(d)
    a_mean, nu_mean = np.zeros(data.n), 0.0
    best_primal, best_w = np.inf, w
    dual, lower = -np.inf, (a_mean, nu_mean)
    history: list[dict[str, float]] = []
    next_check, steps = 1, 0
    for k in range(max_iter):
        scores = _with_intercept(data, w, intercept)
        primal = data.primal(scores, float(w @ w))
        if primal < best_primal:
            best_primal, best_w = primal, w
        m = multipliers_at(data, scores, balance=intercept)
        a = m.alpha * data.y + (m.beta_plus - m.beta_minus) * data.viewpoint
        rate = 2.0 / (k + 2)
        mean = (1 - rate) * mean + rate * w
        w = (1 - rate) * w + rate * np.asarray(data.X.T @ a).ravel() / data.lam
        a_mean, nu_mean = (1 - rate) * a_mean + rate * a, (1 - rate) * nu_mean + rate * m.nu_plus
        steps = k + 1
        if steps < next_check and steps < max_iter:
            continue
        next_check = steps + max(1, steps // 10)
        averaged = data.primal(_with_intercept(data, mean, intercept), float(mean @ mean))
        if averaged < best_primal:
            best_primal, best_w = averaged, mean
        bound = _dual(data, a_mean, nu_mean, intercept)[1]
        if bound > dual:
            dual, lower = bound, (a_mean, nu_mean)
        history.append({"iterations": steps, "primal": best_primal, "dual": dual, "gap": best_primal - dual})
        if best_primal - dual <= tol * abs(best_primal):
            break
        if callback is not None and callback(dict(history[-1])) is False:
            break
    return _result(data, best_w, *lower, intercept, tol, steps, tuple(history))


def hinge_subgradient(t: np.ndarray, scores: np.ndarray, side: float) -> np.ndarray:
    """Return c with -c t in the subdifferential of (1 - t f)_+ at f: 1 where **t f < 1**, 0 where t f > 1.

    The print tests w.x + b < 1 without t. At t f = 1 any c in [0, 1] will do; the one returned is the limit
    from larger (side = +1) or smaller (side = -1) scores.
    """
    margin = t * scores
    bend = np.abs(1.0 - margin) <= _ON_BEND * (1.0 + np.abs(margin))
    return np.where(bend, side * t < 0, margin < 1.0).astype(float)


def multipliers_at(data: NeutralData, scores: np.ndarray, balance: bool = True) -> Multipliers:
    """Return multipliers that form a subgradient of P at these scores, with sum_i a_i = 0 on request.

    At the best intercept the derivative in b is <= 0 from the left and >= 0 from the right, and each
    one-sided derivative is that of some choice of multipliers. The mixture of the two choices with
    derivative zero is the one wanted: subdifferentials are convex.
    """
    right = _one_sided(data, scores, 1.0)
    if not balance:
        return right
    left = _one_sided(data, scores, -1.0)
    slope_right, slope_left = _derivative(data, right), _derivative(data, left)
    rise = slope_right - slope_left
    share = float(np.clip(-slope_left / rise, 0.0, 1.0)) if rise > 0 else 0.5
    return Multipliers(
        *(
            (1 - share) * getattr(left, name) + share * getattr(right, name)
            for name in ("alpha", "beta_plus", "beta_minus", "nu_plus", "nu_minus")
        )
    )


def _one_sided(data: NeutralData, scores: np.ndarray, side: float) -> Multipliers:
    """Return the multipliers behind the one-sided derivative of P in b, with nu^{+-} in {0, eta}."""
    u, v = data.neutrality_weight, data.viewpoint
    alpha = data.sample_weight * hinge_subgradient(data.y, scores, side)
    plus = u * hinge_subgradient(v, scores, side)
    minus = u * hinge_subgradient(-v, scores, side)
    up, down = data.neutrality(scores)
    if abs(up - down) <= _ON_BEND * (1.0 + up + down):
        # C^+ = C^-: the maximum follows the term that grows faster in this direction.
        chosen_plus = side * (-(plus @ v)) > side * (minus @ v)
    else:
        chosen_plus = up > down
    nu_plus, nu_minus = (data.eta, 0.0) if chosen_plus else (0.0, data.eta)
    return Multipliers(alpha, nu_plus * plus, nu_minus * minus, nu_plus, nu_minus)


def _derivative(data: NeutralData, m: Multipliers) -> float:
    """Return dP/db = -sum_i a_i."""
    return -float(m.alpha @ data.y + (m.beta_plus - m.beta_minus) @ data.viewpoint)


def _with_intercept(data: NeutralData, w: np.ndarray, intercept: bool) -> np.ndarray:
    g = np.asarray(data.X @ w).ravel()
    return g + best_intercept(data, g)[0] if intercept else g


def _dual(data: NeutralData, a: np.ndarray, nu: float, intercept: bool) -> tuple[tuple[np.ndarray, Multipliers], float]:
    """Return the feasible multipliers near (a, nu) and the exact dual's value there."""
    a, m = feasible(data, a, nu, data.eta - nu, intercept)
    w = np.asarray(data.X.T @ a).ravel() / data.lam
    return (a, m), m.total - 0.5 * data.lam * float(w @ w)


def _result(
    data: NeutralData,
    w: np.ndarray,
    a: np.ndarray,
    nu: float,
    intercept: bool,
    tol: float,
    steps: int,
    history: tuple[dict[str, float], ...],
) -> NeutralSVM:
    (a, m), dual = _dual(data, a, nu, intercept)
    g = np.asarray(data.X @ w).ravel()
    b, left, right = best_intercept(data, g) if intercept else (0.0, 0.0, 0.0)
    primal = data.primal(g + b, float(w @ w))
    relative = (primal - dual) / max(abs(primal), float(np.finfo(float).tiny))
    converged = relative <= tol
    status = (
        "optimal: the duality gap is within the tolerance"
        if converged
        else f"not converged: a relative gap of {relative:.1e} is left after {steps} steps"
    )
    support = np.flatnonzero(a)
    return NeutralSVM(
        alpha=m.alpha, beta_plus=m.beta_plus, beta_minus=m.beta_minus, nu_plus=m.nu_plus, nu_minus=m.nu_minus,
        a=a, intercept=b, intercept_interval=(left, right), scores=g + b, lam=data.lam, eta=data.eta,
        variant="exact", kernel=data.kernel, support=support, support_vectors=data.X[support],
        n_features=data.X.shape[1], primal=primal, dual=dual, converged=converged, status=status,
        iterations=steps, history=history, weights=w,
    )  # fmt: skip
