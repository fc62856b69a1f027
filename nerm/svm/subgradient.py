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

from nerm.certify.solution import Answer, Solution
from nerm.model.problem import Problem
from nerm.solvers import clock
from nerm.solvers.smo.intercept import best_intercept
from nerm.solvers.smo.segments import Segments
from nerm.svm.binding import SumForm, neutral_svm, sum_form
from nerm.typing import Floats
from nerm.validation import as_nonnegative

ON_BEND = 1e-10  # a margin this close to 1 (relative) counts as sitting on the bend


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
) -> Solution:
    """Minimise the linear neutral SVM's primal by averaged subgradient steps; stop at relative gap tol.

    Parameters
    ----------
    X : (n, d) matrix
        Dense or sparse.
    y, viewpoint : (n,) arrays
        Labels -1/+1 (or any two values), and v.
    lam, eta : float
        In sum form: values are n times those of the solution.
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
    Solution
        The best of the iterates and of their weighted mean. ``stats.claim`` says in words whether the gap was
        reached, ``stats.details["history"]`` how it fell.

    Examples
    --------
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> rough = subgradient_method(X, y, v, lam=2.0, eta=1.0, tol=1e-2)
    >>> str(rough.status), rough.certificate.dual <= 5.25 / 4 <= rough.certificate.primal + 1e-12
    ('optimal', True)

    """
    weights = {"sample_weight": sample_weight, "neutrality_weight": neutrality_weight}
    problem = neutral_svm(X, y, viewpoint, lam, eta, intercept=intercept, **weights)
    tol = max(as_nonnegative(tol, "tol", "Use a relative gap such as 1e-3"), np.finfo(float).tiny)
    return problem.solve("subgradient", tol, max_iter=max_iter, callback=callback)


def descend(
    problem: Problem,
    tol: float,
    *,
    max_iter: int = 2000,
    callback: Callable[[dict[str, float]], object] | None = None,
    deadline: float = clock.NEVER,
) -> Answer:
    """Run the method on a linear neutral SVM until its own relative gap is at most `tol`, or time is up."""
    form = sum_form(problem)
    w = mean = np.zeros(form.X.shape[1])
    a_mean, nu_mean = np.zeros(len(form.y)), 0.0
    found, lower, history = (np.inf, w, 0.0), (-np.inf, a_mean, 0.5), []
    next_check, steps = 1, 0
    for k in range(max_iter):
        here = _measured(problem, w)
        found = min(found, here, key=lambda point: point[0])
        a, nu = forces_at(form, problem.hypothesis.scores(w, here[2]), balance=problem.intercept)
        rate, steps = 2.0 / (k + 2), k + 1
        mean = (1 - rate) * mean + rate * w
        w = (1 - rate) * w + rate * problem.hypothesis.adjoint(a) / form.lam
        a_mean, nu_mean = (1 - rate) * a_mean + rate * a, (1 - rate) * nu_mean + rate * nu
        late = clock.is_up(deadline)
        if steps < next_check and steps < max_iter and not late:
            continue
        next_check = steps + max(1, steps // 10)
        found = min(found, _measured(problem, mean), key=lambda point: point[0])
        lower = max(lower, _bound(problem, form, a_mean, nu_mean), key=lambda point: point[0])
        gap = found[0] - lower[0]
        history.append({"iterations": steps, "primal": found[0], "dual": lower[0], "gap": gap})
        stop = callback is not None and callback(dict(history[-1])) is False
        if gap <= tol * abs(found[0]) or stop or late:
            break
    (primal, coef, b), (dual, a, theta) = found, lower
    left = (primal - dual) / max(abs(primal), np.finfo(float).tiny)
    return Answer(
        coef,
        b,
        Segments(problem, theta).multipliers(a, problem.hypothesis.scores(coef, b)),
        claim="optimal: the duality gap is within the tolerance"
        if left <= tol
        else f"not converged: a relative gap of {left:.1e} is left after {steps} steps",
        iterations=steps,
        details={"history": tuple(history)},
        timed_out=left > tol and clock.is_up(deadline),
    )


def _measured(problem: Problem, w: Floats) -> tuple[float, Floats, float]:
    """Return P, in mean form, at w and its best intercept, with both."""
    b = best_intercept(problem, problem.hypothesis.scores(w))[0] if problem.intercept else 0.0
    return problem.evaluate(w, b).total, w, b


def _bound(problem: Problem, form: SumForm, a: Floats, nu: float) -> tuple[float, Floats, float]:
    """Return the exact dual's value, in mean form, at the feasible point nearest to (a, nu^+), with that point."""
    theta = min(nu / form.eta, 1.0) if form.eta > 0 else 0.5
    segments = Segments(problem, theta)
    a = segments.balanced(a) if problem.intercept else np.clip(a, segments.low, segments.high)
    q = problem.hypothesis.adjoint(a)
    return (segments.gain(a) - float(q @ q) / (2 * form.lam)) / problem.divisor, a, theta


def hinge_subgradient(t: Floats, scores: Floats, side: float) -> Floats:
    """Return c with -c t in the subdifferential of (1 - t f)_+ at f: 1 where **t f < 1**, 0 where t f > 1.

    The print tests w.x + b < 1 without t. At t f = 1 any c in [0, 1] will do; the one returned is the limit
    from larger (side = +1) or smaller (side = -1) scores.
    """
    margin = t * scores
    bend = np.abs(1.0 - margin) <= ON_BEND * (1.0 + np.abs(margin))
    return np.where(bend, side * t < 0, margin < 1.0).astype(float)


def forces_at(form: SumForm, scores: Floats, balance: bool = True) -> tuple[Floats, float]:
    """Return (a, nu^+) behind a subgradient of P at these scores, with sum_i a_i = 0 on request.

    At the best intercept the derivative in b, -sum_i a_i, is <= 0 from the left and >= 0 from the right, and
    each one-sided derivative is that of some choice of multipliers. The mixture of the two choices with
    derivative zero is the one wanted: subdifferentials are convex.
    """
    right, nu_right = _one_sided(form, scores, 1.0)
    if not balance:
        return right, nu_right
    left, nu_left = _one_sided(form, scores, -1.0)
    rise = float(left.sum() - right.sum())
    share = float(np.clip(left.sum() / rise, 0.0, 1.0)) if rise > 0 else 0.5
    return (1 - share) * left + share * right, (1 - share) * nu_left + share * nu_right


def _one_sided(form: SumForm, scores: Floats, side: float) -> tuple[Floats, float]:
    """Return (a, nu^+) behind the one-sided derivative of P in b, with nu^{+-} in {0, eta}."""
    v, u = form.v, form.u
    plus, minus = u * hinge_subgradient(v, scores, side), u * hinge_subgradient(-v, scores, side)
    up, down = (float(u @ np.maximum(0.0, 1.0 - t * scores)) for t in (v, -v))
    if abs(up - down) <= ON_BEND * (1.0 + up + down):
        # C^+ = C^-: the maximum follows the term that grows faster in this direction.
        follow_plus = bool(side * (-(plus @ v)) > side * (minus @ v))
    else:
        follow_plus = up > down
    a = form.s * form.y * hinge_subgradient(form.y, scores, side)
    return a + form.eta * v * (plus if follow_plus else -minus), form.eta if follow_plus else 0.0
