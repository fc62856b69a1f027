"""The multipliers of a problem, and how they are computed without a solver.

They are computed from the scores f_i, or from the weighted duals c_i of the rows. The symbols are those of
`nerm.certify.certificate`. The certificate makes multipliers feasible before it uses them, so an error in
this module can make a bound loose but never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from nerm.atoms.functions import FARTHEST
from nerm.certify.conjugates import MOST_COEFFICIENTS, MOST_OPERATIONS, MOST_STEPS, NEGLIGIBLE, square_weight
from nerm.model.blocks import EPS, Block, limit_values, shares, term_weights, two_sided, weighted_duals
from nerm.model.constraints import nonnegative_least_squares
from nerm.model.hypothesis import KernelHypothesis, LinearHypothesis
from nerm.model.problem import relaxed_problem
from nerm.typing import Floats, Ints

if TYPE_CHECKING:
    from nerm.model.problem import Problem


@dataclass(frozen=True, eq=False)
class Multipliers:
    """The dual variables alpha, beta^+, beta^- and theta of a problem.

    There is one alpha, beta^+ and beta^- per row and term, and one theta in [0, 1] per two-sided neutrality
    term. At an optimum -alpha_i is a subgradient of the loss phi at y_i f_i, and -beta_i^+- is a subgradient
    of the surrogate psi at +-v_i f_i. The weighted dual of row i, with row weights s and u, is::

        c_i = s_i alpha_i y_i + eta u_i v_i (theta beta_i^+ - (1 - theta) beta_i^-).

    At an optimum sum_i c_i = 0 if the intercept is free, and w = X'c / (mu n) if the regularizer is
    (mu/2) ||w||^2.

    Attributes
    ----------
    rows : (number of blocks, n) array
        One row per block, in the order of `problem.blocks`: the risks, the one-sided neutrality terms, then
        C+ and C- of each two-sided neutrality term.
    thetas : (K,) array
        For each of the K two-sided neutrality terms, the weight of C+ in
        max(C+, C-) = max over theta of theta C+ + (1 - theta) C-.
    one_sided : int
        The number of one-sided neutrality terms.
    limits : (number of limits,) array
        The multiplier eta >= 0 of each limit C <= t. The blocks of a limit are treated as a term of weight
        eta.
    linear : (number of linear constraints,) array
        z of A w <= b: at least 0, or of any sign for an equation. Empty if z is not known.

    >>> import nerm
    >>> X, y, v = np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([1, 1, -1, -1]), np.array([1, -1, 1, -1])
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    >>> solution = objective.on(X, y, viewpoint=v).solve()
    >>> m = solution.multipliers
    >>> c = m.alpha * y + 1.0 * v * (m.theta * m.beta_plus - (1 - m.theta) * m.beta_minus)
    >>> bool(abs(c.sum()) < 1e-9), bool(np.allclose(X.T @ c / (0.5 * 4), solution.coef, atol=1e-4))
    (True, True)

    """

    rows: Floats
    thetas: Floats
    one_sided: int = 0
    limits: Floats = field(default_factory=partial(np.zeros, 0))
    linear: Floats = field(default_factory=partial(np.zeros, 0))

    @property
    def _alone(self) -> int:
        return len(self.rows) - 2 * len(self.thetas)

    @property
    def alpha(self) -> Floats:
        """Multipliers of the risk, (n,); (number of risks, n) if there are several."""
        return _single(self.rows[: self._alone - self.one_sided])

    @property
    def betas(self) -> Floats:
        """Multipliers of the one-sided neutrality terms, (number of these terms, n)."""
        return self.rows[self._alone - self.one_sided : self._alone]

    @property
    def beta_plus(self) -> Floats:
        """Multipliers of C+, (n,); (K, n) for K two-sided neutrality terms."""
        return _single(self.rows[self._alone :: 2])

    @property
    def beta_minus(self) -> Floats:
        """Multipliers of C-, (n,); (K, n) for K two-sided neutrality terms."""
        return _single(self.rows[self._alone + 1 :: 2])

    @property
    def theta(self) -> float | Floats:
        """The weight of C+: a number if there is one term, else as `thetas`."""
        return float(self.thetas[0]) if len(self.thetas) == 1 else self.thetas


def _single(rows: Floats) -> Floats:
    return rows[0] if len(rows) == 1 else rows


def multipliers_from_weighted_duals(problem: Problem, c: Floats, thetas: Floats) -> Multipliers:
    """Split the weighted dual c_i of every row into multipliers, at fixed thetas.

    In the optimal split the multipliers of row i, one per block, are (minus) subgradients at one common score
    f_i. Their weighted sum is monotone in f_i, and bisection finds the f_i where it equals c_i. If the sum
    jumps over c_i at a kink, the multipliers are a convex combination of those on both sides of the kink.

    Parameters
    ----------
    problem : Problem
        The problem.
    c : (n,) array
        The weighted dual of each row.
    thetas : (K,) array
        One number per two-sided neutrality term.

    """
    thetas = np.clip(np.nan_to_num(thetas, nan=0.5), 0.0, 1.0)
    c = np.nan_to_num(c)

    def missing(scores: Floats) -> Floats:
        return c - weighted_duals(problem, multipliers_at(problem.blocks, scores), thetas)

    return multipliers_between(problem, c, thetas, *_sign_change(missing, len(c)))


def multipliers_between(
    problem: Problem, c: Floats, thetas: Floats, low: Floats, high: Floats
) -> Multipliers:
    """Return the combination of the multipliers at two scores of each row that has the weighted duals c."""
    rows_low, rows_high = multipliers_at(problem.blocks, low), multipliers_at(problem.blocks, high)
    c_low, c_high = (weighted_duals(problem, rows, thetas) for rows in (rows_low, rows_high))
    span = c_low - c_high
    share = np.clip(np.divide(c - c_high, span, out=np.full(len(c), 0.5), where=span > 0), 0.0, 1.0)
    return Multipliers(share * rows_low + (1 - share) * rows_high, thetas)


def _sign_change(increasing: Callable[[Floats], Floats], n: int) -> tuple[Floats, Floats]:
    """Return adjacent numbers (low, high), (n,) each, around the sign change of a nondecreasing function.

    If the function has no sign change between -FARTHEST and FARTHEST, both numbers are close to the end where
    its sign would change.
    """
    low, high = np.full(n, -FARTHEST), np.full(n, FARTHEST)
    for _ in range(MOST_STEPS):
        middle = 0.5 * (low + high)
        if ((middle <= low) | (middle >= high)).all():
            break
        above = increasing(middle) > 0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return low, high


def multipliers_at(blocks: tuple[Block, ...], scores: Floats) -> Floats:
    """Return the midpoints of the possible multipliers, (number of blocks, n).

    At given scores, (n,), the possible multipliers of a block in a row are minus the subdifferential of the
    atom. Infinite slopes are replaced by +-1e150.
    """
    rows = []
    for block in blocks:
        low, high = block.atom.subgradient(block.margins(scores))
        rows.append(np.nan_to_num(-0.5 * (low + high), nan=1e150, posinf=1e150, neginf=-1e150))
    return np.stack(rows)


def candidates(problem: Problem, coef: Floats, intercept: float) -> Iterator[Multipliers]:
    """Yield multipliers computed from the scores alone.

    The certificate uses the best of them. Where an atom is smooth, its multiplier is minus the derivative. At
    a kink any point of minus the subdifferential is allowed, and if C+ = C- any theta in [0, 1]; the choice
    is made by `_fitted`. The scores are not exact, so a margin within some width of a kink counts as at the
    kink. With a squared l2 norm the largest width is best; otherwise three widths are tried.
    """
    scores = problem.hypothesis.scores(coef, intercept)
    limits = _limits_at(problem, coef, scores)
    relaxed = relaxed_problem(problem, limits) if problem.limits else problem
    for root in (6,) if square_weight(problem.regularizers) > 0 else (2, 3, 6):
        with np.errstate(over="ignore", invalid="ignore"):
            found = _fitted(relaxed, coef, scores, width=EPS ** (1 / root))
        yield with_linear(problem, replace(found, limits=limits), coef)


def with_linear(problem: Problem, multipliers: Multipliers, coef: Floats) -> Multipliers:
    """Add the multipliers z of the linear constraints A w <= b, if they are missing.

    They are computed from q = (1/n) sum_i c_i x_i: A'z should equal the difference between q and the nearest
    point of the subdifferential of Omega at w.
    """
    region = problem.region
    if region is None or len(multipliers.linear) == len(region.bound):
        return multipliers
    relaxed = relaxed_problem(problem, multipliers.limits) if problem.limits else problem
    c = weighted_duals(relaxed, multipliers.rows, multipliers.thetas)
    q = problem.hypothesis.adjoint(c) / problem.divisor
    rest = q - np.clip(q, *_regularizer_interval(replace(problem, region=None), coef))
    return replace(multipliers, linear=region.multipliers(coef, rest))


def _limits_at(problem: Problem, coef: Floats, scores: Floats) -> Floats:
    """Return one multiplier per limit, (number of limits,), computed from the scores.

    A limit that is not active gets 0. For the others, nonnegative least squares with one unknown per side of
    a limit brings q = (1/n) sum_i c_i x_i close to the subdifferential of Omega at w.
    """
    if not problem.limits:
        return np.zeros(0)
    bounds = np.array([limit.bound for limit in problem.limits])
    tight = limit_values(problem, scores) >= bounds - 1e-5 * np.maximum(bounds, 1.0)
    first = len(problem.objective.terms)
    rows = multipliers_at(problem.blocks, scores)
    owners = [b.term - first for b in problem.blocks if b.term >= first and tight[b.term - first]]
    weights = np.zeros(len(bounds))
    if not owners:
        return weights

    def gradient(c: Floats) -> Floats:
        """Return (1/n) sum_i c_i x_i, followed by (1/n) sum_i c_i (0 if the intercept is not free)."""
        mean = c.sum() if problem.intercept else 0.0
        return np.append(problem.hypothesis.adjoint(c), mean) / problem.divisor

    gradients = [
        gradient(block.weights * block.targets * row)
        for block, row in zip(problem.blocks, rows, strict=True)
        if block.term - first in owners
    ]
    q = gradient(weighted_duals(problem, rows, np.full(len(two_sided(problem)), 0.5)))
    rest = np.append(np.clip(q[:-1], *_regularizer_interval(problem, coef)), 0.0) - q
    np.add.at(weights, owners, nonnegative_least_squares(np.column_stack(gradients), rest))
    return weights


def _fitted(problem: Problem, coef: Floats, scores: Floats, width: float) -> Multipliers:
    """Return multipliers computed from the scores, with the smallest bound on the gap that is found.

    The unknowns are the thetas, and the multipliers whose margin m is within `width` of a kink k. With a
    multiplier a in minus the subdifferential at k, a row adds

        phi(m) + phi*(-a) + a m = phi(m) - phi(k) + a (m - k)

    to the gap, times its weight. Omega adds at most ||r||^2 / (2 mu), where r is the distance of
    q = (1/n) sum_i c_i x_i to the subdifferential of Omega at w; if the weight mu of the squared l2 norm is
    0, a small number replaces it. A penalty on (sum_i c_i)^2 of the same kind stands for a free intercept.
    Only the rows at a kink change q, so all other rows are read once.
    """
    blocks = problem.blocks
    weights = two_sided(problem)
    counted, thetas = weights > 0, np.full(len(weights), 0.5)
    kinks, low, high = _at_kinks(blocks, scores, width)
    factors = np.stack([f * b.weights for f, b in zip(term_weights(problem), blocks, strict=True)])
    targets = np.stack([block.targets for block in blocks])
    start = Multipliers(0.5 * (low + high), thetas)
    free = (high > low) & (factors * targets != 0)
    if not (free.any() or counted.any()):
        return start
    some = np.flatnonzero(free.any(axis=0))[: MOST_COEFFICIENTS if problem.is_kernel else None]
    free, low, high, B, t = (part[:, some] for part in (free, low, high, factors, targets))
    # what the other rows add to c, one line for theta = 0 and one per theta, for its change
    fixed = factors * targets * start.rows
    fixed[:, some] = np.where(free, 0.0, fixed[:, some])
    known = np.where(counted, 0.0, thetas)
    lines = np.stack(
        [shares(blocks, known), *(shares(blocks, known + one) for one in np.eye(len(counted))[counted])]
    )
    lines[1:] -= lines[0]
    distance = _distance(problem, coef, lines @ fixed, some)
    # what a row adds to the gap per unit of its weight: above + a * beyond
    margins = np.stack([block.margins(scores) for block in blocks])
    values = np.stack([block.atom.value(m) for block, m in zip(blocks, margins, strict=True)])
    at_kinks = np.stack([block.atom.value(kink) for block, kink in zip(blocks, kinks[:, some], strict=True)])
    above, beyond = np.where(free, values[:, some] - at_kinks, 0.0), margins[:, some] - kinks[:, some]
    totals = np.where(factors > 0, factors * values, 0.0).sum(axis=1)
    lead = lines[1:] @ totals  # eta n (C+ - C-)
    k, rows = int(free.sum()), start.rows[:, some]

    def gap(x: Floats) -> tuple[float, Floats]:
        """Return the bound on the gap in sum form, without a constant, and its gradient in x."""
        rows[free], theta = x[:k], x[k:]
        share = (np.append(1.0, theta) @ lines)[:, None]
        a = np.where(free, rows, 0.0)
        value, slope, slope_theta = distance(theta, (share * B * t * a).sum(axis=0))
        lost = B * (above + a * np.where(free, beyond, 0.0))
        inner = (lost + B * t * a * slope).sum(axis=1)
        gradient = share * B * (beyond + t * slope)
        value += float(share[:, 0] @ lost.sum(axis=1) - theta @ lead)
        return value, np.append(gradient[free], slope_theta - lead + lines[1:] @ inner)

    x, ends = np.append(rows[free], thetas[counted]), np.zeros(int(counted.sum()))
    unit = float(np.abs(totals).sum()) or 1.0
    if not np.isfinite(gap(x)[0] / unit):
        return start
    size = problem.hypothesis.X.size / problem.hypothesis.n + 10 * len(blocks)
    steps = int(np.clip(MOST_OPERATIONS / (4 * MOST_STEPS * size * max(len(some), 1)), 5, MOST_STEPS))
    from scipy.optimize import Bounds, minimize  # takes long to import

    found = minimize(
        lambda x: [part / unit for part in gap(x)],
        x,
        jac=True,
        bounds=Bounds(np.append(low[free], ends), np.append(high[free], ends + 1.0)),
        method="L-BFGS-B",
        options={"maxiter": steps, "maxcor": 30, "ftol": 1e-12, "gtol": 0.0},
    )
    rows[free] = found.x[:k]
    start.rows[:, some], start.thetas[counted] = rows, found.x[k:]
    return start


def _distance(
    problem: Problem, coef: Floats, fixed: Floats, some: Ints
) -> Callable[[Floats, Floats], tuple[float, Floats, Floats]]:
    """Return a function of thetas and c that bounds the part of Omega in the gap, in sum form.

    `fixed`, (1 + number of thetas, n), holds weighted duals that do not change, and their change per unit of
    each theta. c, (len(some),), is added to them on the rows `some`. The function returns n ||r||^2 / (2 mu)
    plus the penalty on the sum of the weighted duals (`_fitted` defines r and mu), and the derivatives in c
    and in the thetas.
    """
    hypothesis, n = problem.hypothesis, problem.divisor
    interval = _regularizer_interval(problem, coef)
    # the factor of (mean of c)^2, which gives it the units of ||q||^2
    balance = float(np.mean(hypothesis.squared_row_norms())) if problem.intercept else 0.0
    sums = fixed.sum(axis=1) / n
    q = np.stack([hypothesis.adjoint(line) for line in fixed]) / n
    X: Any = hypothesis.X[some] if isinstance(hypothesis, LinearHypothesis) else None
    transposed: Any = None if X is None else X.T.tocsr() if sp.issparse(X) else X.T
    if isinstance(hypothesis, KernelHypothesis):
        q[0] -= interval[0]
        product = np.stack([hypothesis.scores(line) for line in q])
        gram = hypothesis.some(some).gram if len(some) else np.zeros((0, 0))
    mu = square_weight(problem.regularizers) or NEGLIGIBLE * (hypothesis.squared_norm(q[0]) or 1.0)

    def at(theta: Floats, c: Floats) -> tuple[float, Floats, Floats]:
        weights, c = np.append(1.0, theta), c / n
        mean = float(weights @ sums + c.sum())
        if X is None:
            own = gram @ c
            slope, slope_theta = (
                weights @ product[:, some] + own,
                product @ (weights @ q) + product[:, some] @ c,
            )
            value = weights @ slope_theta + c @ slope
        else:
            rest = weights @ q + transposed @ c
            rest = rest - np.clip(rest, *interval)
            value, slope, slope_theta = rest @ rest, X @ rest, q @ rest
        value = n * (value + balance * mean**2) / (2 * mu)
        return float(value), (slope + balance * mean) / mu, n * (slope_theta + balance * mean * sums)[1:] / mu

    return at


def _regularizer_interval(problem: Problem, coef: Floats) -> tuple[Floats, Floats]:
    """Return lower and upper ends of the subgradients of Omega at w, (d,) each.

    Omega is the weighted sum of the regularizers. Constraints that bound a single coefficient extend the
    interval of this coefficient.
    """
    low, high = np.zeros(len(coef)), np.zeros(len(coef))
    for weight, omega in problem.regularizers:
        below, above = omega.subgradient(coef)
        low, high = low + weight * below, high + weight * above
    return (low, high) if problem.region is None else problem.region.extended(coef, low, high)


def _at_kinks(blocks: tuple[Block, ...], scores: Floats, width: float) -> tuple[Floats, Floats, Floats]:
    """Return margins and the smallest and largest possible multipliers there, (number of blocks, n) each.

    A margin within `width` of a kink is replaced by the kink.
    """
    margins = np.stack([block.margins(scores) for block in blocks])
    low, high = np.empty_like(margins), np.empty_like(margins)
    for block, m, a, b in zip(blocks, margins, low, high, strict=True):
        for kink in block.atom.facts.kinks:
            m[np.abs(m - kink) <= width] = kink
        below, above = block.atom.subgradient(m)
        a[:], b[:] = np.nan_to_num(-above), np.nan_to_num(-below)
    return margins, low, high
