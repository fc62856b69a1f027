"""The subgradient method on the primal, corrected, with a certificate.

The paper describes the method in section 6.1. The symbols are those of `nerm.svm.data`. The intercept b is
not regularised, so strong convexity gives no step length for b. Therefore P is minimised exactly over b in
every step::

    F(w) = min over b of P(w, b)      is lambda-strongly convex,      lambda w - X'a  in  dF(w)

Here dF is the subdifferential, and a_i is the sum of target times dual variable of row i at the best b. At a
kink of a hinge, and if C^+ = C^-, the dual variables are not unique; they are chosen so that sum_i a_i = 0.
With the step length 2 / (lambda (k + 2)), k = 0, 1, ..., the next iterate is exactly X'abar_k / lambda, where
abar_k is a weighted mean of all a so far. This mean is a feasible point of the exact dual, so every run has a
lower bound and a duality gap. Convergence is O(1 / (lambda k)).
"""

from dataclasses import replace
from typing import Any

import numpy as np

from nerm.svm.data import ROOT_EPS, Floats, NeutralSVM, Result, number


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
) -> Result:
    """Minimise the primal of the linear neutral SVM by averaged subgradient steps.

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
        The method stops when the relative duality gap is at most `tol`.
    max_iter : int
        The maximal number of steps.
    sample_weight, neutrality_weight : (n,) arrays, optional
        The row weights s of the risk and u of the neutrality term; ones by default.

    Returns
    -------
    Result
        The weighted mean of the iterates; ``history`` records the gap at some of the steps.

    Examples
    --------
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> rough = subgradient_method(X, y, v, lam=2.0, eta=1.0, tol=1e-2)
    >>> rough.status, rough.certificate.dual <= 5.25 / 4 <= rough.certificate.primal + 1e-12
    ('optimal', True)

    """
    data = NeutralSVM(X, y, viewpoint, lam, eta, sample_weight, neutrality_weight, intercept)
    tol, max_iter = number(tol, "tol"), int(number(max_iter, "max_iter", positive=True))
    n, d = data.X.shape
    w = mean_w = np.zeros(d)
    mean_z, mean_nu = np.zeros((3, n)), 0.0
    history, next_check = [], 1
    for k in range(1, max_iter + 1):
        scores = data.scores(w)
        z, nu = multipliers_at(data, scores + data.best_intercept(scores))
        rate = 2.0 / (k + 1)
        mean_w = (1 - rate) * mean_w + rate * w
        mean_z = (1 - rate) * mean_z + rate * z
        mean_nu = (1 - rate) * mean_nu + rate * nu
        w = data.coef(mean_z)
        if k < next_check and k < max_iter:
            continue
        next_check = k + max(1, k // 10)
        hypothesis = mean_w, data.best_intercept(data.scores(mean_w))
        found = data.result(mean_z, mean_nu, tol, hypothesis)
        history.append({"iterations": k, **found.certificate._asdict()})
        if found.status == "optimal":
            break
    claim = f"a relative gap of {found.certificate.relative_gap:.1e} is left after {k} steps"
    return replace(found, claim=claim, iterations=k, history=tuple(history))


def hinge_subgradient(t: Floats, scores: Floats) -> Floats:
    """Return c, shaped like t, for which -c t is a subgradient of (1 - t f)_+ at f.

    c is 1 where **t f < 1**, else 0. At t f = 1 every c in [0, 1] would be valid. The paper's formula tests
    w.x + b < 1 without t, which is an error.
    """
    margin = t * scores
    return (margin < 1.0 - ROOT_EPS * (1.0 + np.abs(margin))).astype(float)


def multipliers_at(data: NeutralSVM, scores: Floats) -> tuple[Floats, float]:
    """Return the dual variables of a subgradient of P at given scores, (n,): z, (3, n), and nu^+.

    z is target times dual variable, one row each for alpha, beta^+ and beta^-. With a free intercept, the sum
    of all entries of z must be 0. At the best intercept this is possible, because two things can be chosen:
    nu^+ in [0, eta] if C^+ = C^-, and the dual variables of hinges at their kink.
    """
    plus, minus = data.sides(scores)
    active = hinge_subgradient(data.targets, scores)
    nu = data.eta if plus > minus else 0.0
    if abs(plus - minus) <= ROOT_EPS * (1.0 + plus + minus):
        at_0, at_eta = (float(np.sum(active * np.add(*data.boxes(end)))) for end in (0.0, data.eta))
        zero = at_0 / (at_0 - at_eta) if at_0 != at_eta else 0.5
        nu = data.eta * float(np.clip(zero, 0.0, 1.0))
    return data.feasible(active * np.add(*data.boxes(nu)), nu, scores), nu
