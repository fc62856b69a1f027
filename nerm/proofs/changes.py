"""Bound the change of the optimum if rows are deleted, added or reweighted.

Let P be the objective of the changed problem, (w*, b*) its optimum with value P*, and (w, b) any hypothesis
with value P_1. Let D be the dual bound of multipliers with weighted dual variables c, q = (1/n) sum_i c_i
x_i, and mu the weight of 1/2 ||w||^2 in P.

*Coefficients.* P - (mu/2) ||w||^2 is convex, so P_1 - P* >= (mu/2) ||w - w*||^2. If the regularizer is
(mu/2) ||w||^2 alone, the Fenchel-Young inequality for every row and sum_i c_i = 0 give
P* >= D + (mu/2) ||w* - q/mu||^2. The sum of both inequalities is a ball::

    ||w* - (w + q/mu) / 2||^2 <= (P_1 - D) / mu - ||w - q/mu||^2 / 4

*Intercept.* P is not strongly convex in b. Let c now be the weighted dual variables from the slopes at the
scores f_i + delta. Let R be the objective without Omega and with theta fixed, which makes it at most as
large. R is convex, so R(w*, b*) >= R(f + delta) - (1/n) sum_i c_i (f*_i - f_i - delta). For any vector a put
t = b + a.w and m = (1/n) sum_i c_i; then b* = t* - a.w*, and by the definition of the conjugate::

    P_1 >= P* >= R(f + delta) + (1/n) sum_i c_i (f_i + delta) - Omega*(q - m a) - m t*

For delta > 0 the slopes are larger, so m < 0, and the inequality bounds t* from above; for delta < 0 it
bounds t* from below. The vector a is the mean of the rows, weighted by the difference of the two vectors c;
then q - m a hardly depends on delta.

*Scores.* f*(x) = w*.(x - a) + t*. Its first part differs from (centre of the ball).(x - a) by at most the
radius times ||x - a||, and t* lies in its interval. With a kernel, all inner products are those of its
reproducing kernel Hilbert space.

*One row at a time.* Let P_i be the objective without row i, (w_i, b_i) its optimum, N its divisor and theta
fixed. Multipliers with weighted duals c and conjugates S_j of the rows give, by the Fenchel-Young inequality
for all rows but i, with A = sum_j c_j x_j, m = sum_j c_j and M = m - c_i::

    N P_i(w_i, b_i) >= -sum_(j != i) S_j - (A - c_i x_i).w_i - M b_i + (N mu/2) ||w_i||^2

If M = 0, the minimum over w_i is a bound D_i, and ||w - w_i||^2 <= 2 (P_i(w, b) - D_i) / mu. For any M put
t = w_i.x_i + b_i, the score of the row by the model without it. The minimum over w_i for a fixed t is
-sum_(j != i) S_j - ||A - m x_i||^2 / (2 N mu) - M t, and this is at most N P_i(w, b): a bound on t from below
if M > 0, from above if M < 0. The multipliers are those of the solution and of the slopes at f + delta, for
a few delta. S is convex, so a mixture of two of them has at most the mixture of their S; for each row the
mixture with M = 0 is taken.

Hypothesis and multipliers are those after one Newton step from the unchanged solution (`nerm.proofs.newton`),
those of the unchanged solution itself, or those of a solve of the changed problem. `nerm.certify` certifies
them, and those with the smallest bound on the change of w are used.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.certify.certificate import Certificate, Certified, best_certificate
from nerm.certify.conjugates import conjugate_of_sum, parts_of, square_weight
from nerm.certify.multipliers import Multipliers, multipliers_at, separable
from nerm.certify.solution import Solution
from nerm.errors import Degenerate, InvalidInputError, UnsupportedProblemError
from nerm.model.blocks import EPS, scaled_weights, sum_error, term_weights, weighted_duals
from nerm.model.expressions import Neutrality, viewpoint_of
from nerm.model.hypothesis import KernelHypothesis, LinearHypothesis
from nerm.model.kernels import Linear
from nerm.model.problem import Problem, bind, with_terms
from nerm.proofs.newton import newton_step
from nerm.typing import Floats
from nerm.validation import as_matrix, as_values, as_vector, as_weights
from nerm.viewpoint import Viewpoints
from nerm.viewpoint import resolve as read_viewpoint
from nerm.weights import resolve


@dataclass(frozen=True, eq=False, repr=False)
class ChangeBound:
    """Bounds on the optimum of a changed problem, from `Solution.without`, `with_rows` or `reweighted`.

    Attributes
    ----------
    solution : Solution
        The unchanged solution.
    problem : Problem
        The changed problem. Deleted rows stay in it with weight 0.
    old : (coef, intercept)
        The unchanged hypothesis, with kernel coefficients for all rows of the changed problem.
    estimate : (coef, intercept)
        The best hypothesis that was computed for the changed problem.
    centre, radius
        The optimal coefficients are within `radius` of `centre`. The radius is infinite without a squared l2
        term in the regularizer.

    >>> import numpy as np, nerm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)); y = np.sign(X[:, 0] + rng.normal(size=300)); v = np.sign(X[:, 1])
    >>> objective = nerm.Risk(nerm.Logistic()) + 0.1 * nerm.SquaredL2() + nerm.Neutrality(nerm.Logistic())
    >>> solution = objective.on(X, y, viewpoint=v).solve()
    >>> bound = solution.without([0, 1, 2])
    >>> truth = objective.on(X[3:], y[3:], viewpoint=v[3:]).solve(tol=1e-10)
    >>> change = np.linalg.norm(truth.coef - solution.coef)
    >>> bool(change <= bound.coefficients < 1.7 * change)
    True
    >>> bound.decisions(X) >= int((truth.predict(X) != solution.predict(X)).sum())
    True

    """

    solution: Solution
    problem: Problem
    old: tuple[Floats, float]
    estimate: tuple[Floats, float]
    multipliers: Multipliers
    value: float
    gap: float
    slack: float
    centre: Floats
    radius: float

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate of the unchanged hypothesis on the changed problem.

        Its gap bounds the decrease of the objective from this hypothesis to the new optimum.
        """
        return best_certificate(self.problem, *self.old, self.multipliers).certificate

    @property
    def coefficients(self) -> float:
        """A bound on the norm of the change of w; with a kernel, the norm of its Hilbert space."""
        moved = self.problem.hypothesis.squared_norm(self.centre - self.old[0])
        return float(np.sqrt(moved)) + self.radius

    def scores(self, X: Any = None) -> tuple[Floats, Floats]:
        """Return lower and upper bounds on the scores of the changed optimum, (m,) each.

        X are rows, by default those of the problem.
        """
        hypothesis, (a, low, high) = self.problem.hypothesis, self._level
        kernel = hypothesis.kernel if isinstance(hypothesis, KernelHypothesis) else Linear()
        if X is not None and kernel.name == "precomputed":
            must = "bounds for new rows need k(x, x), which a precomputed kernel does not have"
            raise UnsupportedProblemError(must, "new rows", "Call scores() for the training rows")
        X = hypothesis.X if X is None else as_matrix(X)
        middle, level = (hypothesis.decision_function(X, one, 0.0) for one in (self.centre, a))
        norms = kernel.diagonal(X)
        if not np.isfinite(self.radius):
            return np.full(len(norms), -np.inf), np.full(len(norms), np.inf)
        square, rounding = hypothesis.squared_norm(a), 4 * hypothesis.rounding
        shift = float(self.centre @ (hypothesis.scores(a) if self.problem.is_kernel else a))
        spread = np.sqrt(np.maximum(norms - 2 * level + square, 0.0) + rounding * (norms + square))
        width = self.radius * spread + rounding * (np.abs(middle) + abs(shift))
        return middle - shift + low - width, middle - shift + high + width

    def decisions(self, X: Any = None) -> int:
        """Return a bound on the number of predictions for X that differ between the two models.

        By default X are the rows of the problem. A threshold of the solution applies to both models. For a
        regression it bounds how many scores change their sign.
        """
        hypothesis, threshold, (low, high) = self.problem.hypothesis, self.solution.threshold, self.scores(X)
        old = hypothesis.decision_function(hypothesis.X if X is None else X, *self.old)
        return int(np.sum(np.where(old > threshold, low <= threshold, high > threshold)))

    @cached_property
    def _level(self) -> tuple[Floats, float, float]:
        """The vector a, and the ends of the interval of t* = b* + a.w*."""
        problem, hypothesis = self.problem, self.problem.hypothesis
        if not problem.intercept:
            return np.zeros(hypothesis.size), 0.0, 0.0
        parts, thetas = parts_of(problem.regularizers), self.multipliers.thetas
        scores, n = hypothesis.scores(*self.estimate), problem.divisor
        error = self.slack + 8 * EPS * self.value

        def slopes(delta: float) -> tuple[Multipliers, Floats]:
            at = Multipliers(multipliers_at(problem.blocks, scores + delta), thetas)
            return at, weighted_duals(problem, at.rows, thetas)

        delta, nothing = float(np.sqrt(self.gap + error)), (np.zeros(hypothesis.size), -np.inf, np.inf)
        if not np.isfinite(self.radius):
            return nothing
        for _ in range(4):  # the best delta balances the gap and the curvature along b
            down, up = slopes(-delta), slopes(delta)
            difference = float(np.sum(down[1] - up[1]))
            if not difference > 0:
                return nothing
            delta = float(np.sqrt(4 * n * delta * (self.gap + error) / difference))
        a, ends = hypothesis.adjoint(down[1] - up[1]) / difference, list[float]()
        for at, c in (down, up):
            m = float(c.sum()) / n
            if m >= 0 if ends else m <= 0:
                return nothing
            omega = conjugate_of_sum(parts, hypothesis.adjoint(c) / n - m * a, hypothesis.squared_norm)
            ends.append(-(separable(problem, at)[0] + omega.value + error + self.value) / m)
        return a, ends[0], ends[1]

    def update(self, tol: float = 1e-6) -> Solution:
        """Solve the changed problem."""
        return self.problem.solve(tol=tol)

    def __repr__(self) -> str:
        return (
            f"<ChangeBound: relative gap {self.certificate.relative_gap:.2g}, coefficients change by at most "
            f"{self.coefficients:.3g}, at most {self.decisions()} of {self.problem.n} decisions change>"
        )


def bound(
    solution: Solution, problem: Problem, coef: Floats, at: Multipliers, tol: float | None
) -> ChangeBound:
    """Bound the optimum of a changed problem, from one Newton step or a solve up to `tol`."""
    if problem.objective.constraints or not problem.is_convex:
        must = "bounds on a change need a convex problem without constraints"
        raise UnsupportedProblemError(must, repr(problem.objective), "Drop the constraints")
    old = coef, solution.intercept + solution.threshold
    if tol is not None or problem.is_kernel:  # with a kernel, a solve costs less than a Newton step
        new = problem.solve(tol=1e-8 if tol is None else tol)
        certified = Certified(new.objective, new.certificate, new.multipliers)
        return _enclosed(solution, problem, old, (new.coef, new.intercept), certified)
    found = []
    with suppress(Degenerate):
        pair, moved, least = newton_step(solution).towards(problem, *old, at)
        found = [_enclosed(solution, problem, old, pair, best_certificate(problem, *pair, moved, np.inf))]
        if found[0].coefficients <= least:
            return found[0]
    found.append(_enclosed(solution, problem, old, old, best_certificate(problem, *old, at, np.inf)))
    return min(found, key=lambda one: (one.coefficients, one.gap))


def _enclosed(
    solution: Solution,
    problem: Problem,
    old: tuple[Floats, float],
    estimate: tuple[Floats, float],
    certified: Certified,
) -> ChangeBound:
    """Enclose the optimum of a changed problem in a ball, from a certified hypothesis."""
    value, certificate, at = certified
    if at is None:
        raise Degenerate(f"the changed problem has no dual bound: {certificate.reason}")
    mu, hypothesis, centre = square_weight(problem.regularizers), problem.hypothesis, estimate[0]
    gap = certificate.gap + certificate.slack
    radius = float(np.sqrt(2 * gap / mu)) if mu > 0 else np.inf
    if mu > 0 and len(parts_of(problem.regularizers)) == 1:
        c = weighted_duals(problem, at.rows, at.thetas)
        q = hypothesis.adjoint(c, balanced=problem.intercept) / (problem.divisor * mu)
        apart = hypothesis.squared_norm(centre - q)
        centre, radius = 0.5 * (centre + q), float(np.sqrt(max(gap / mu - 0.25 * apart, 0.0)))
    bounds = value.total, gap, certificate.slack, centre, radius
    return ChangeBound(solution, problem, old, estimate, at, *bounds)


def without(solution: Solution, rows: Any, tol: float | None = None) -> ChangeBound:
    """Bound the change if rows are deleted; `Solution.without` explains the parameters."""
    problem, at = _changeable(solution)
    out = np.zeros(problem.n, dtype=bool)
    out[rows] = True
    if out.all() or not out.any():
        must, do = "'rows' must be some of the rows, but not all", "Pass their indices or a mask"
        raise InvalidInputError(must, f"{int(out.sum())} of {problem.n}", do)
    blocks = []
    for block in problem.blocks:
        term, weights = problem.objective.every_term[block.term], np.where(out, 0.0, block.weights)
        if isinstance(term, Neutrality) and isinstance(term.weights, str):
            v = problem.viewpoints[viewpoint_of(term, problem.viewpoints)]
            weights[~out] = resolve(term.weights, problem.y[~out], v[~out])
        blocks.append(replace(block, weights=weights))
    changed = replace(
        problem,
        blocks=tuple(blocks),
        sample_weight=np.where(out, 0.0, problem.sample_weight),
        divisor=problem.divisor * float(np.mean(~out)),
    )
    return bound(solution, changed, solution.coef, at, tol)


def reweighted(solution: Solution, sample_weight: Any, tol: float | None = None) -> ChangeBound:
    """Bound the change if the rows get other sample weights."""
    problem, at = _changeable(solution)
    weights = as_weights(sample_weight, problem.n, "sample_weight")
    changed = with_terms(problem, problem.objective, sample_weight=weights)
    return bound(solution, changed, solution.coef, at, tol)


def with_rows(
    solution: Solution,
    X: Any,
    y: Any,
    viewpoint: Any = None,
    sample_weight: Any = None,
    tol: float | None = None,
) -> ChangeBound:
    """Bound the change if rows are added; `Solution.with_rows` explains the parameters."""
    problem, at = _changeable(solution)
    old, new = problem.hypothesis, as_matrix(X)
    k = new.shape[0]
    views: dict[str, Floats] = read_viewpoint(viewpoint, X, k, problem.groups)
    regression = problem.objective.is_regression
    labels = as_vector(y, k, "y") if regression else as_values(y, k, "y", "label")
    if not (regression or np.isin(labels, problem.classes).all()) or set(views) != set(problem.viewpoints):
        must = f"added rows must have labels of {problem.classes.tolist()} and the viewpoints of the problem"
        raise InvalidInputError(must, f"{labels[:5].tolist()} and {list(views)}", "Code them as in training")
    labels = labels if regression else np.where(labels == problem.classes[1], 1.0, -1.0)
    new = new.toarray() if sp.issparse(new) and not sp.issparse(old.X) else new
    stacked = sp.vstack([old.X, new], format="csr") if sp.issparse(old.X) else np.vstack([old.X, new])
    views = {name: np.append(v, views[name]) for name, v in problem.viewpoints.items()}
    changed = bind(
        problem.objective,
        stacked,
        np.append(problem.y, labels),
        viewpoint=Viewpoints(views, problem.groups),
        kernel=getattr(old, "kernel", None),
        intercept=problem.intercept,
        sample_weight=np.append(problem.sample_weight, as_weights(sample_weight, k, "sample_weight")),
        divisor=problem.divisor * (1 + k / problem.n),
        checked=True,
    )
    changed = replace(changed, classes=problem.classes)
    coef = np.append(solution.coef, np.zeros(k)) if problem.is_kernel else solution.coef
    scores = changed.hypothesis.scores(coef, solution.intercept + solution.threshold)
    rows = multipliers_at(changed.blocks, scores)
    rows[:, : problem.n] = at.rows
    return bound(solution, changed, coef, replace(at, rows=rows), tol)


def _changeable(solution: Solution) -> tuple[Problem, Multipliers]:
    """Return the problem and the multipliers of a solution that has both."""
    if solution.multipliers is None or not solution.problem.blocks:
        must = "bounds on a change need a certified solution with its rows"
        raise InvalidInputError(must, f"a solution by {solution.stats.solver!r}", "Solve the problem again")
    return solution.problem, solution.multipliers


@dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOut:
    """For every row, bounds on the model that is trained without it; from `Solution.leave_one_out`.

    Attributes
    ----------
    coefficients : (n,) array
        Bounds on the norm of the change of w, in the function space of the kernel if there is one.
    low, high : (n,) arrays
        The score of row i by the model that is trained without row i lies between them.

    >>> import numpy as np, nerm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)); y = np.sign(X[:, 0] + rng.normal(size=200))
    >>> objective = nerm.Risk(nerm.Logistic()) + 0.1 * nerm.SquaredL2()
    >>> solution = objective.on(X, y).solve(tol=1e-9)
    >>> found = solution.leave_one_out()
    >>> truth = objective.on(X[1:], y[1:]).solve(tol=1e-9)
    >>> change = np.linalg.norm(truth.coef - solution.coef)
    >>> bool(change < found.coefficients[0] < 7 * change)
    True
    >>> found
    <LeaveOneOut: 200 rows; without one, w moves by at most ... (median ...), and its own score has ...>
    >>> found.unmoved(0.1)  # each of so many rows can be deleted, and w moves by at most 0.1
    200

    """

    coefficients: Floats
    low: Floats
    high: Floats

    @property
    def proved(self) -> int:
        """The number of rows whose leave-one-out score has a proved sign.

        The leave-one-out score of a row is its score by the model that is trained without it.
        """
        return int(np.sum((self.low > 0) | (self.high <= 0)))

    def unmoved(self, size: float) -> int:
        """Return for how many rows the deletion of the row alone moves w by at most `size`."""
        return int(np.sum(self.coefficients <= size))

    def __repr__(self) -> str:
        n, moves = len(self.low), self.coefficients
        return (
            f"<LeaveOneOut: {n} rows; without one, w moves by at most {moves.max():.3g} (median "
            f"{np.median(moves):.3g}), and its own score has a proved sign for {self.proved} of {n} rows>"
        )


def leave_one_out(solution: Solution) -> LeaveOneOut:
    """Bound the change for every row.

    `Solution.leave_one_out` explains what is supported.
    """
    problem, at = _changeable(solution)
    mu, n, blocks = square_weight(problem.regularizers), problem.n, problem.blocks
    terms = [term for term in problem.objective.every_term if isinstance(term, Neutrality)]
    named = any(isinstance(term.weights, str) and term.weights != "uniform" for term in terms)
    alone = mu > 0 and len(parts_of(problem.regularizers)) == 1
    if named or not (alone and problem.is_convex and n > 1) or problem.objective.constraints:
        must = "leave_one_out needs a convex problem with SquaredL2 alone, uniform weights and no constraints"
        raise UnsupportedProblemError(must, repr(problem.objective), "Call without([row]) for single rows")
    pair, N = (solution.coef, solution.intercept + solution.threshold), problem.divisor * (n - 1) / n
    first, hypothesis = best_certificate(problem, *pair, at), problem.hypothesis
    scores = hypothesis.scores(*pair)
    at, error = first.multipliers or at, N * (2 * first.certificate.slack + 8 * EPS * first.value.total)
    losses = [b.weights * b.atom.value(b.margins(scores)) for b in blocks]
    parts = [eta * (one.sum() - one) for eta, one in zip(term_weights(problem), losses, strict=True)]
    value = error + 0.5 * mu * N * hypothesis.squared_norm(solution.coef)
    for j, block in enumerate(blocks):
        if block.side >= 0:
            value = value + (np.maximum(parts[j], parts[j + 1]) if block.side else parts[j])
    if isinstance(hypothesis, LinearHypothesis):
        hypothesis = LinearHypothesis(hypothesis.features(balanced=problem.intercept))
    weights, norms = scaled_weights(problem, at.thetas), hypothesis.squared_row_norms()

    def duals(delta: float) -> tuple[Floats, Floats]:
        """Return c and S at the scores + delta; for delta = 0 those of the solution."""
        rows = multipliers_at(blocks, scores + delta) if delta else at.rows
        stars = [w * block.conjugates(row) for w, block, row in zip(weights, blocks, rows, strict=True)]
        return weighted_duals(problem, rows, at.thetas), np.sum(stars, axis=0)

    top, most = 1.0 / n, 4 * float(np.abs(duals(0.0)[0]).max())
    while top < n and min(abs(duals(sign * top)[0].sum()) for sign in (-1, 1)) < most:
        top *= 2
    halves = top * 0.5 ** np.arange(9)
    deltas = np.concatenate([-halves, [0.0], halves[::-1]])
    c, stars = (np.stack(part) for part in zip(*map(duals, deltas), strict=True))
    products = np.stack([hypothesis.scores(hypothesis.adjoint(one)) for one in c])  # A.x_i
    squares, crossed = np.sum(c * products, axis=1), np.sum(c[1:] * products[:-1], axis=1)  # A.A
    m, others, i = c.sum(axis=1)[:, None], stars.sum(axis=1)[:, None] - stars, np.arange(n)
    M = m - c
    k, share = np.full(n, len(halves)), np.zeros(n)
    if problem.intercept:  # M falls: between which two of the multipliers is it 0?
        k = np.clip(np.sum(M >= 0, axis=0) - 1, 0, len(M) - 2)
        fall = M[k, i] - M[k + 1, i]
        share = np.divide(M[k, i], fall, where=fall > 0, out=np.full(n, np.nan))
    own, along, rest = ((1 - share) * one[k, i] + share * one[k + 1, i] for one in (c, products, others))
    size = (1 - share) ** 2 * squares[k] + share**2 * squares[k + 1] + own**2 * norms
    cross = 2 * share * (1 - share) * crossed[k] - 2 * own * along
    gap = np.maximum(value + rest + ((1 + 8 * sum_error(n)) * size + cross) / (2 * mu * N), error)
    found = np.where((share >= 0) & (share <= 1), np.sqrt(2 * gap / (mu * N)), np.inf)
    low, high = scores - found * np.sqrt(norms), scores + found * np.sqrt(norms)
    if problem.intercept:
        size = squares[:, None] + m**2 * norms
        least = -others - ((1 + 8 * sum_error(n)) * size - 2 * m * products) / (2 * mu * N) - value
        ends = np.divide(least, M, where=M != 0, out=0.0 * M)
        low = np.max(np.where(M > 0, ends, -np.inf), axis=0)
        high = np.min(np.where(M < 0, ends, np.inf), axis=0)
    return LeaveOneOut(found, low - solution.threshold, high - solution.threshold)
