"""The multipliers of a problem, and how they are found: from one weighted dual per row, or from the scores.

Recovered multipliers are made exactly feasible by the certificate: nothing here can make a bound wrong, only
loose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import Bounds, minimize

from nerm.atoms import numeric
from nerm.model.blocks import EPS, Block, limit_values, shares, term_weights, two_sided, weighted_duals
from nerm.model.constraints import nonnegative_least_squares
from nerm.model.problem import relaxed_problem
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.model.problem import Problem

MOST_STEPS = 1_000  # of any iteration in this package


@dataclass(frozen=True, eq=False)
class Multipliers:
    """alpha_i in -d phi(y_i f_i), beta_i^+- in -d psi(+-v_i f_i), theta in [0, 1].

    At an optimum sum_i c_i = 0 for a free intercept, and for (mu/2) ||w||^2 the
    coefficients are w = X'c / (mu n), where::

        c_i = s_i alpha_i y_i + eta u_i v_i (theta beta_i^+ - (1 - theta) beta_i^-).

    Attributes
    ----------
    rows : (number of blocks, n) array
        One row per block, in the order of `problem.blocks`: the risks, the one-sided neutrality terms, then
        C+ and C- of each neutrality term of two sides.
    thetas : (K,) array
        The weight of C+ in max(C+, C-) = max over theta of theta C+ + (1 - theta) C-, for each term of two
        sides.
    one_sided : int
        How many neutrality terms have one side.
    limits : (number of limits,) array
        The multiplier eta >= 0 of each limit C <= t, whose blocks are terms of that weight.
    linear : (number of linear constraints,) array
        z of A w <= b, at least 0, and of any sign for an equation; empty where it is not known.

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
        """Multipliers of the risks, one row each."""
        return self.rows[: self._alone - self.one_sided]

    @property
    def betas(self) -> Floats:
        """Multipliers of the one-sided neutrality terms, one row each."""
        return self.rows[self._alone - self.one_sided : self._alone]

    @property
    def betas_plus(self) -> Floats:
        """Multipliers of C+, one row per neutrality term."""
        return self.rows[self._alone :: 2]

    @property
    def betas_minus(self) -> Floats:
        """Multipliers of C-, one row per neutrality term."""
        return self.rows[self._alone + 1 :: 2]

    @property
    def alpha(self) -> Floats:
        """Multipliers of the risk, (n,); one row per risk if there are several."""
        return _single(self.alphas)

    @property
    def beta_plus(self) -> Floats:
        """Multipliers of C+, (n,); one row per term unless there is exactly one."""
        return _single(self.betas_plus)

    @property
    def beta_minus(self) -> Floats:
        """Multipliers of C-, (n,); one row per term unless there is exactly one."""
        return _single(self.betas_minus)

    @property
    def theta(self) -> float | Floats:
        """The weight of C+; one number per term unless there is exactly one."""
        return float(self.thetas[0]) if len(self.thetas) == 1 else self.thetas


def _single(rows: Floats) -> Floats:
    return rows[0] if len(rows) == 1 else rows


def multipliers_from_weighted_duals(problem: Problem, c: Floats, thetas: Floats) -> Multipliers:
    """Split the weighted dual c_i of every row into the multipliers of its terms, at fixed theta.

    The best split of c_i has all multipliers at one common score: the f_i where the (monotone) total of the
    subgradients passes c_i. It is found by bisection, and where it jumps over c_i, at a kink, the multipliers
    are mixed from both sides.
    """
    thetas = np.clip(np.nan_to_num(thetas, nan=0.5), 0.0, 1.0)
    c = np.nan_to_num(c)

    def missing(scores: Floats) -> Floats:
        return c - weighted_duals(problem, multipliers_at(problem.blocks, scores), thetas)

    low, high = numeric.bisect(missing, *numeric.bracket(missing, np.zeros(len(c))))
    rows_low, rows_high = multipliers_at(problem.blocks, low), multipliers_at(problem.blocks, high)
    c_low, c_high = (weighted_duals(problem, rows, thetas) for rows in (rows_low, rows_high))
    span = c_low - c_high
    share = np.clip(np.divide(c - c_high, span, out=np.full(len(c), 0.5), where=span > 0), 0.0, 1.0)
    return Multipliers(share * rows_low + (1 - share) * rows_high, thetas)


def multipliers_at(blocks: tuple[Block, ...], scores: Floats) -> Floats:
    """Return the middle of each interval of multipliers at given scores; finite if a slope overflows."""
    rows = []
    for block in blocks:
        low, high = block.atom.subgradient(block.targets * scores)
        rows.append(np.nan_to_num(-0.5 * (low + high), nan=1e150, posinf=1e150, neginf=-1e150))
    return np.stack(rows)


def candidates(problem: Problem, coef: Floats, intercept: float) -> Iterator[Multipliers]:
    """Yield multipliers found from the scores alone; the certificate takes the best.

    At smooth points they are the derivatives. Near a kink any point of the subgradient interval will do, and
    at C+ = C- any theta: that freedom is used to bring q = (1/n) sum c_i x_i to the subgradients of Omega at
    w and sum c to 0. How near is near depends on how exact the hypothesis is, so a few distances are tried.
    """
    scores = problem.hypothesis.scores(coef, intercept)
    limits = _limits_at(problem, coef, scores)
    relaxed = relaxed_problem(problem, limits) if problem.limits else problem
    for root in (2, 3, 6):
        found = _least_squares(relaxed, coef, scores, width=EPS ** (1 / root))
        yield with_linear(problem, replace(found, limits=limits), coef)


def with_linear(problem: Problem, multipliers: Multipliers, coef: Floats) -> Multipliers:
    """Return the multipliers with those of the linear constraints, found from q if they are not known."""
    region = problem.region
    if region is None or len(multipliers.linear) == len(region.bound):
        return multipliers
    relaxed = relaxed_problem(problem, multipliers.limits) if problem.limits else problem
    c = weighted_duals(relaxed, multipliers.rows, multipliers.thetas)
    q = problem.hypothesis.adjoint(c) / problem.divisor
    rest = q - np.clip(q, *_regularizer_interval(replace(problem, region=None), coef))
    return replace(multipliers, linear=region.multipliers(coef, rest))


def _limits_at(problem: Problem, coef: Floats, scores: Floats) -> Floats:
    """Return the weights of the limits that bring q nearest to the subgradients of Omega.

    Nonnegative least squares in the two sides of every limit that is tight.
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
        """Return sum c x / n, and sum c / n after it if the intercept is free."""
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
    """Bring q near the subgradients of Omega at w, and sum c near 0, by multipliers in intervals.

    The unknowns are the multipliers whose margin is within `width` of a kink, and the thetas of tied terms.
    """
    hypothesis, divisor = problem.hypothesis, problem.divisor
    thetas, tied = _thetas(problem, scores, width)
    low, high = _intervals(problem.blocks, scores, width)
    target = _regularizer_interval(problem, coef)
    blocks = zip(term_weights(problem), problem.blocks, strict=True)
    weighted_targets = np.stack([factor * b.weights * b.targets for factor, b in blocks])
    # the mean of c is measured in the units of q
    balance = float(np.mean(hypothesis.squared_row_norms())) if problem.intercept else 0.0
    start, free = Multipliers(0.5 * (low + high), thetas), (high > low) & (weighted_targets != 0)
    k = int(free.sum())

    def at(x: Floats) -> Multipliers:
        """Return the multipliers of these unknowns."""
        rows, new_thetas = start.rows.copy(), thetas.copy()
        rows[free], new_thetas[tied] = x[:k], x[k:]
        return Multipliers(rows, new_thetas)

    def misfit(x: Floats) -> tuple[float, Floats]:
        """Return half of the squared distance, and its gradient."""
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
    """Return theta for each term, 1 or 0 where one side is larger, and where the sides tie."""
    sides = np.array([b.total(scores) / problem.divisor for b in problem.blocks if b.side]).reshape(-1, 2)
    tied = np.abs(sides[:, 0] - sides[:, 1]) <= 10 * width * np.maximum(1.0, sides.max(axis=1, initial=0.0))
    return np.where(tied, 0.5, (sides[:, 0] > sides[:, 1]).astype(float)), tied & (two_sided(problem) > 0)


def _regularizer_interval(problem: Problem, coef: Floats) -> tuple[Floats, Floats]:
    """Return the box of subgradients at w of the regularizers and of bounds on single coefficients."""
    low, high = np.zeros(len(coef)), np.zeros(len(coef))
    for weight, omega in problem.regularizers:
        below, above = omega.subgradient(coef)
        low, high = low + weight * below, high + weight * above
    return (low, high) if problem.region is None else problem.region.extended(coef, low, high)


def _intervals(blocks: tuple[Block, ...], scores: Floats, width: float) -> tuple[Floats, Floats]:
    """Return the multipliers that occur at margins within `width` of the given ones."""
    low, high = [], []
    for block in blocks:
        margins = block.targets * scores
        below = block.atom.subgradient(margins - width)[0]
        above = block.atom.subgradient(margins + width)[1]
        low.append(np.maximum(-above, block.domain[0]))
        high.append(np.minimum(-below, block.domain[1]))
    return np.nan_to_num(np.stack(low)), np.nan_to_num(np.stack(high))
