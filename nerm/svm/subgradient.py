"""The subgradient method on the primal (paper, section 6.1), corrected, with a certificate.

The intercept is not regularised, so a step in it has no natural length. It is minimised out exactly instead::

    F(w) = min over b of P(w, b)      is lambda-strongly convex,      lambda w - X'a  in  dF(w)

where a comes from multipliers at the best b chosen, where hinges bend or C^+ = C^-, such that sum_i a_i =
0. With the step 2 / (lambda (k + 2)) the iterate w_k is exactly X'abar_k / lambda, abar_k a weighted mean
of all the a so far: a feasible point of the exact dual. So every run carries its own lower bound and the
gap is honest. Convergence is O(1 / (lambda k)), slow by nature; the certificate shows how far it got.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from nerm.svm.data import ROOT_EPS, Floats, NeutralSVM, neutral_svm, number
from nerm.svm.result import Result, result_of


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
) -> Result:
    """Minimise the linear neutral SVM's primal by averaged subgradient steps; stop at relative gap tol.

    Parameters
    ----------
    X : (n, d) matrix
        Dense or sparse.
    y, viewpoint : (n,) arrays
        Labels -1/+1 (or any two values), and v.
    lam, eta : float
        In sum form.
    intercept : bool
        Whether b is free.
    tol : float
        The relative duality gap; at 0 all steps are taken.
    max_iter : int
        The limit of steps.
    sample_weight, neutrality_weight : (n,) arrays, optional
        s and u.
    callback : callable, optional
        Gets a dict (iterations, primal, dual, gap, in mean form) now and then; returning False stops the run.

    Returns
    -------
    Result
        The best of the iterates and of their weighted mean; ``history`` says how the gap fell.

    Examples
    --------
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> rough = subgradient_method(X, y, v, lam=2.0, eta=1.0, tol=1e-2)
    >>> rough.status, rough.certificate.dual <= 5.25 / 4 <= rough.certificate.primal + 1e-12
    ('optimal', True)

    """
    weights = {"sample_weight": sample_weight, "neutrality_weight": neutrality_weight}
    data = neutral_svm(X, y, viewpoint, lam, eta, intercept=intercept, **weights)
    tol = number(tol, "tol")
    max_iter = int(number(max_iter, "max_iter", positive=True))
    n = len(data.y)
    w = mean_w = np.zeros(data.X.shape[1])
    mean_gamma = np.zeros((3, n))
    mean_nu = 0.0
    upper = (np.inf, w, 0.0)
    lower = (-np.inf, mean_gamma, 0.0)
    history: list[dict[str, float]] = []
    claim = ""
    next_check = 1
    for k in range(1, max_iter + 1):
        here = _upper(data, w)
        upper = min(upper, here, key=lambda point: point[0])
        gamma, nu = multipliers_at(data, data.scores(w) + here[2])
        rate = 2.0 / (k + 1)
        mean_w = (1 - rate) * mean_w + rate * w
        mean_gamma = (1 - rate) * mean_gamma + rate * gamma
        mean_nu = (1 - rate) * mean_nu + rate * nu
        w = data.coef(data.boxes(mean_nu).a(mean_gamma))
        if k < next_check and k < max_iter:
            continue
        next_check = k + max(1, k // 10)
        upper = min(upper, _upper(data, mean_w), key=lambda point: point[0])
        lower = max(lower, _lower(data, mean_gamma, mean_nu), key=lambda point: point[0])
        gap = upper[0] - lower[0]
        values = {"primal": upper[0] / n, "dual": lower[0] / n, "gap": gap / n}
        history.append({"iterations": k, **values})
        claim = f"not converged: a relative gap of {gap / abs(upper[0]):.1e} is left after {k} steps"
        if gap <= tol * abs(upper[0]):
            claim = "optimal: the duality gap is within the tolerance"
            break
        if callback is not None and callback(dict(history[-1])) is False:
            break
    details = {"iterations": k, "history": tuple(history)}
    return result_of(data, lower[1], lower[2], tol, claim, hypothesis=upper[1:], **details)


def _upper(data: NeutralSVM, w: Floats) -> tuple[float, Floats, float]:
    """Return P at w and its best intercept, with both."""
    b = data.best_intercept(data.scores(w))
    return data.primal(w, b), w, b


def _lower(data: NeutralSVM, gamma: Floats, nu: float) -> tuple[float, Floats, float]:
    """Return the exact dual's value at the multipliers, made feasible, with them."""
    boxes = data.boxes(nu)
    gamma = data.feasible(boxes, gamma, data.scores(data.coef(boxes.a(gamma))))
    return data.dual(boxes, gamma), gamma, nu


def hinge_subgradient(t: Floats, scores: Floats) -> Floats:
    """Return c with -c t in the subdifferential of (1 - t f)_+ at f: 1 where **t f < 1**, else 0.

    The print tests w.x + b < 1 without t. At t f = 1 every c in [0, 1] is one.
    """
    margin = t * scores
    return (margin < 1.0 - ROOT_EPS * (1.0 + np.abs(margin))).astype(float)


def multipliers_at(data: NeutralSVM, scores: Floats) -> tuple[Floats, float]:
    """Return (alpha, beta^+, beta^-) and nu^+ of a subgradient of P at these scores.

    With a free intercept sum_i a_i = 0 is wanted. At the best intercept two choices attain it: nu^+ in
    [0, eta] where C^+ = C^-, and multipliers in their boxes where a hinge bends.
    """
    plus, minus = data.sides(scores)
    tie = abs(plus - minus) <= ROOT_EPS * (1.0 + plus + minus)
    shares = hinge_subgradient(data.boxes(0.0).target, scores)
    nu = data.eta if plus > minus else 0.0
    if tie:
        at_0, at_eta = (float(box.a(box.high * shares).sum()) for box in map(data.boxes, (0.0, data.eta)))
        zero = at_0 / (at_0 - at_eta) if at_0 != at_eta else 0.5
        nu = data.eta * float(np.clip(zero, 0.0, 1.0))
    boxes = data.boxes(nu)
    return data.feasible(boxes, boxes.high * shares, scores), nu
