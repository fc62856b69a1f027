"""The multipliers of a problem, and how they are computed without a solver.

They are computed from the scores f_i, or from the weighted duals c_i of the rows. The symbols are those of
`nerm.certify.certificate`. The certificate makes multipliers feasible before it uses them, so an error in
this module can make a bound loose but never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from nerm.atoms.jets import FARTHEST
from nerm.model.blocks import EPS, Block, limit_values, shares, term_weights, two_sided, weighted_duals
from nerm.model.constraints import nonnegative_least_squares
from nerm.model.problem import relaxed_problem
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.model.problem import Problem

MOST_STEPS = 1_000  # the limit of iterations of every iterative method in this package


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
    def alphas(self) -> Floats:
        """Multipliers of the risks, (number of risks, n)."""
        return self.rows[: self._alone - self.one_sided]

    @property
    def betas(self) -> Floats:
        """Multipliers of the one-sided neutrality terms, (number of these terms, n)."""
        return self.rows[self._alone - self.one_sided : self._alone]

    @property
    def betas_plus(self) -> Floats:
        """Multipliers of C+, (K, n) for K two-sided neutrality terms."""
        return self.rows[self._alone :: 2]

    @property
    def betas_minus(self) -> Floats:
        """Multipliers of C-, (K, n) for K two-sided neutrality terms."""
        return self.rows[self._alone + 1 :: 2]

    @property
    def alpha(self) -> Floats:
        """Multipliers of the risk: (n,) if there is one risk, else as `alphas`."""
        return _single(self.alphas)

    @property
    def beta_plus(self) -> Floats:
        """Multipliers of C+: (n,) if there is one term, else as `betas_plus`."""
        return _single(self.betas_plus)

    @property
    def beta_minus(self) -> Floats:
        """Multipliers of C-: (n,) if there is one term, else as `betas_minus`."""
        return _single(self.betas_minus)

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

    low, high = _sign_change(missing, len(c))
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
    low, high = np.full(n, -1.0), np.full(n, 1.0)
    while ((increasing(high) < 0) & (high < FARTHEST)).any():
        high = np.where(increasing(high) < 0, np.minimum(4 * high, FARTHEST), high)
    while ((increasing(low) > 0) & (low > -FARTHEST)).any():
        low = np.where(increasing(low) > 0, np.maximum(4 * low, -FARTHEST), low)
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
    a kink any point of minus the subdifferential is allowed, and if C+ = C- any theta in [0, 1]. Among these
    choices, least squares brings q = (1/n) sum_i c_i x_i close to the subdifferential of Omega at w, and
    sum_i c_i close to 0. The scores are not exact, so a margin within some width of a kink counts as at the
    kink. Three widths are tried.
    """
    scores = problem.hypothesis.scores(coef, intercept)
    limits = _limits_at(problem, coef, scores)
    relaxed = relaxed_problem(problem, limits) if problem.limits else problem
    for root in (2, 3, 6):
        found = _least_squares(relaxed, coef, scores, width=EPS ** (1 / root))
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


def _least_squares(problem: Problem, coef: Floats, scores: Floats, width: float) -> Multipliers:
    """Return multipliers computed from the scores by least squares.

    They bring q = (1/n) sum_i c_i x_i close to the subdifferential of Omega at w, and sum_i c_i close to 0.
    The unknowns are the multipliers whose margin is within `width` of a kink, and the thetas of terms with C+
    = C- up to `width`.
    """
    hypothesis, divisor = problem.hypothesis, problem.divisor
    thetas, tied = _thetas(problem, scores, width)
    low, high = _intervals(problem.blocks, scores, width)
    target = _regularizer_interval(problem, coef)
    blocks = zip(term_weights(problem), problem.blocks, strict=True)
    weighted_targets = np.stack([factor * b.weights * b.targets for factor, b in blocks])
    # the factor of (mean of c)^2, which gives it the units of ||q||^2
    balance = float(np.mean(hypothesis.squared_row_norms())) if problem.intercept else 0.0
    start, free = Multipliers(0.5 * (low + high), thetas), (high > low) & (weighted_targets != 0)
    k = int(free.sum())

    def at(x: Floats) -> Multipliers:
        """Return the multipliers for the unknowns x."""
        rows, new_thetas = start.rows.copy(), thetas.copy()
        rows[free], new_thetas[tied] = x[:k], x[k:]
        return Multipliers(rows, new_thetas)

    def misfit(x: Floats) -> tuple[float, Floats]:
        """Return half of the squared distance that is minimised, and its gradient in x."""
        m = at(x)
        per_unit = shares(problem.blocks, m.thetas)[:, None] * weighted_targets
        c = (per_unit * m.rows).sum(axis=0)
        q, mean = hypothesis.adjoint(c) / divisor, float(c.sum()) / divisor
        rest = q - np.clip(q, *target)
        slope = (hypothesis.scores(rest) + balance * mean) / divisor
        sides = Multipliers(weighted_targets * m.rows, m.thetas)
        gradient = (sides.betas_plus - sides.betas_minus)[tied] @ slope
        value = 0.5 * (hypothesis.squared_norm(rest) + balance * mean**2)
        return value, np.append((per_unit * slope)[free], gradient)

    x = np.append(start.rows[free], thetas[tied])
    unit = misfit(x)[0] if len(x) else 0.0
    if not unit > 0:
        return start
    from scipy.optimize import Bounds, minimize  # takes long to import

    ends = Bounds(np.append(low[free], 0.0 * thetas[tied]), np.append(high[free], 0.0 * thetas[tied] + 1.0))
    found = minimize(
        lambda x: [part / unit for part in misfit(x)],
        x,
        jac=True,
        bounds=ends,
        method="L-BFGS-B",
        options={"maxiter": MOST_STEPS, "ftol": 0.0, "gtol": 0.0},
    )
    return at(found.x)


def _thetas(problem: Problem, scores: Floats, width: float) -> tuple[Floats, Floats]:
    """Return theta and a mask of ties, (K,) each, for the K two-sided neutrality terms.

    theta is 1 if C+ is larger, 0 if C- is larger and 1/2 at a tie. The mask is True at ties of terms with a
    positive weight.
    """
    sides = np.array([b.total(scores) / problem.divisor for b in problem.blocks if b.side]).reshape(-1, 2)
    tied = np.abs(sides[:, 0] - sides[:, 1]) <= 10 * width * np.maximum(1.0, sides.max(axis=1, initial=0.0))
    return np.where(tied, 0.5, (sides[:, 0] > sides[:, 1]).astype(float)), tied & (two_sided(problem) > 0)


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


def _intervals(blocks: tuple[Block, ...], scores: Floats, width: float) -> tuple[Floats, Floats]:
    """Return the smallest and the largest possible multipliers, (number of blocks, n) each.

    They are taken over all margins that differ by at most `width` from the margins at `scores`.
    """
    low, high = [], []
    for block in blocks:
        margins = block.margins(scores)
        below = block.atom.subgradient(margins - width)[0]
        above = block.atom.subgradient(margins + width)[1]
        low.append(np.maximum(-above, block.domain[0]))
        high.append(np.minimum(-below, block.domain[1]))
    return np.nan_to_num(np.stack(low)), np.nan_to_num(np.stack(high))
