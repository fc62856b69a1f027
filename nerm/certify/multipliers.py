"""The multipliers of a problem: compute them without a solver, and make them feasible.

They are computed from the scores f_i, or from the weighted duals c_i of the rows. The symbols are those of
`nerm.certify.certificate`. The certificate makes multipliers feasible before it uses them, so an error in
this module can make a bound loose but never wrong.

Multipliers are feasible if they are in their domains and, for a free intercept, sum_i c_i = 0. Here c_i is
the weighted dual of row i (`nerm.certify.certificate`). A hypothesis is feasible if it satisfies the
constraints. The multipliers of a solver are only nearly feasible, and a dual bound is valid for feasible ones
only. If they cannot be made feasible, they are replaced by the centre, where c = 0 (`towards_centre`), or
there is no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.atoms.functions import FARTHEST, bisected
from nerm.certify.conjugates import (
    MOST_COEFFICIENTS,
    MOST_OPERATIONS,
    MOST_STEPS,
    NEGLIGIBLE,
    square_weight,
    unpunished,
)
from nerm.model.blocks import (
    EPS,
    Block,
    limit_values,
    scaled_weights,
    shares,
    term_weights,
    two_sided,
    weighted_duals,
)
from nerm.model.constraints import nonnegative_least_squares
from nerm.model.hypothesis import KernelHypothesis, LinearHypothesis
from nerm.model.problem import Problem, relaxed_problem
from nerm.typing import Bools, Floats, Ints

FAILED_STEPS = 3  # steps without progress after which `Conditions.settle` stops
CANCELLED = 1e-11  # a sum below this fraction of the sum of its absolute summands counts as 0
LOST = 4 * EPS  # bound on the rounding error of c_i, relative to the sum of its absolute terms
NOT_ATTAINED = (
    "no hypothesis attains the optimum: along a direction that no regularizer punishes the objective falls "
    "for ever; regularise more"
)
NO_CENTRE = "an atom has no multiplier 0, so there is no centre to draw the multipliers to"


def repaired(
    problem: Problem, multipliers: Multipliers, free: Floats, linear_term: Floats | None = None
) -> tuple[Multipliers | None, str]:
    """Return feasible multipliers near the given ones.

    The returned multipliers are in their domains, with sum_i c_i = 0 if the intercept is free, and with
    sum_i c_i x_i = 0 in the directions of w that no regularizer penalizes. If no such multipliers are found,
    the centre is returned (`towards_centre`), or None if there is no centre. The second result is a sentence
    about the condition that failed; "" if none failed.

    Parameters
    ----------
    problem : Problem
        The problem.
    multipliers : Multipliers
        The given multipliers.
    free : (d, k) array
        A basis of the directions that no regularizer penalizes.
    linear_term : (d,) array, optional
        A'z for multipliers z of linear constraints A w <= b. In the free directions, (1/n) sum_i c_i x_i
        must equal this vector instead of 0.

    """
    thetas = np.clip(np.nan_to_num(multipliers.thetas, nan=0.5), 0.0, 1.0)
    inside = Multipliers(np.clip(np.nan_to_num(multipliers.rows), *_domains(problem)), thetas)
    n, k = problem.hypothesis.n, free.shape[1]
    if n * k**2 > MOST_OPERATIONS:
        reason = f"{n} rows and {k} directions without a regularizer are too many"
    else:
        target = np.zeros(k) if linear_term is None else problem.divisor * (free.T @ linear_term)
        reason = _in_words(free, Conditions.of(problem, free).settle(problem, inside, target))
    if not reason:
        return inside, ""
    centre = towards_centre(problem, inside, 0.0)
    return centre, reason if centre else f"{reason}; {NO_CENTRE}"


def moved(problem: Problem, multipliers: Multipliers, by: Floats) -> Multipliers | None:
    """Shift multipliers so that (1/n) sum_i c_i x_i changes by the vector `by`, (d,).

    The returned multipliers are feasible. Return None if none are found, or if the problem has a kernel or is
    too large.
    """
    if problem.is_kernel or not by.any() or problem.hypothesis.n * len(by) ** 2 > MOST_OPERATIONS:
        return None
    conditions = Conditions.of(problem, np.eye(len(by)))
    copy = replace(multipliers, rows=multipliers.rows.copy())
    c = weighted_duals(problem, copy.rows, copy.thetas)
    target = problem.hypothesis.adjoint(c, balanced=problem.intercept) + problem.divisor * by
    return None if conditions.settle(problem, copy, target).any() else copy


def separable(problem: Problem, multipliers: Multipliers) -> tuple[float, float]:
    """Return the part of -D that is a sum over rows, and n times its absolute values' sum.

    D is the dual bound (`nerm.certify.certificate`). The part is::

        (1/n) sum over blocks j and rows i of  weight_ji phi_ji*(-multiplier_ji)

    where phi_ji* is the conjugate of the atom of block j with the offset of row i (`Block.conjugates`), and
    weight_ji = term weight x share x row weight (`nerm.model.blocks.scaled_weights`).
    """
    total, size = 0.0, 0.0
    weights = scaled_weights(problem, multipliers.thetas)
    for w, block, row in zip(weights, problem.blocks, multipliers.rows, strict=True):
        values = w * np.where(w > 0, block.conjugates(row), 0.0)
        total, size = total + float(values.sum()), size + float(np.abs(values).sum())
    return total / problem.divisor, size


def lost(problem: Problem, multipliers: Multipliers) -> float:
    """Return a bound on the rounding error of the dual bound D from cancellation inside c_i.

    The weighted dual c_i is a sum of one term per block. Its rounding error is at most LOST times the sum of
    the absolute terms. The returned bound is (LOST / n) sum_i (sum of the absolute terms of c_i - `|c_i|`).
    """
    moments = dual_factors(problem, multipliers.thetas) * multipliers.rows
    return LOST * float(np.sum(np.abs(moments).sum(axis=0) - np.abs(moments.sum(axis=0)))) / problem.divisor


def dual_factors(problem: Problem, thetas: Floats) -> Floats:
    """Return the factors of the multipliers in the weighted duals c_i, (number of blocks, n).

    c_i = sum_j weight_ji target_ji multiplier_ji over the blocks j, so the factor is weight_ji target_ji. The
    weights are those of `separable`.
    """
    weights = scaled_weights(problem, thetas)
    return np.stack([w * block.targets for w, block in zip(weights, problem.blocks, strict=True)])


def _domains(problem: Problem) -> Floats:
    """Return the lower and upper ends of the domain of each block's multipliers, (2, number of blocks, 1)."""
    return np.array([block.domain for block in problem.blocks]).T[:, :, None]


def towards_centre(problem: Problem, multipliers: Multipliers, t: float) -> Multipliers | None:
    """Return (1 - t) * centre + t * multipliers for t < 1; None if there is no centre.

    The centre is alpha = 0, beta^+ = beta^-, theta = 1/2; its weighted duals c_i are 0. The dual bound D is
    concave in (alpha, theta beta^+, (1 - theta) beta^-, theta), so the combination is taken of these
    products, not of beta^+ and beta^-. There is no centre if 0 is outside the domain of a risk or of a
    one-sided neutrality term. `nerm.certify.certificate` defines the symbols.
    """
    alone = [block for block in problem.blocks if block.side == 0]
    if any(not block.domain[0] <= 0 <= block.domain[1] for block in alone):
        return None
    thetas = 0.5 + t * (multipliers.thetas - 0.5)
    old, new = shares(problem.blocks, multipliers.thetas), shares(problem.blocks, thetas)
    rows = t * multipliers.rows
    for j, block in enumerate(problem.blocks):
        if block.side:
            rest = (1 - t) * 0.5 * float(np.clip(0.0, *block.domain))
            rows[j] = (t * old[j] * multipliers.rows[j] + rest) / new[j]
    return Multipliers(np.clip(rows, *_domains(problem)), thetas)  # rounding can leave a domain


@dataclass(frozen=True, eq=False)
class Conditions:
    """Linear conditions on the weighted duals c: sum_i c_i F_i = target and sum_i c_i = 0.

    The second condition applies only if the intercept is free. Here F_i = N'x_i, and the columns of N are
    directions of w, for example those that no regularizer penalizes.

    A condition counts as satisfied if its error is at most CANCELLED times the sum of the absolute summands.
    Then the multipliers are exactly feasible for slightly changed rows x_i: a relative change of the entries
    by CANCELLED is enough. The error of the bound D at a hypothesis w is at most CANCELLED * sum_ij `|c_i
    x_ij w_j|` / n.
    """

    features: Any  # F, (n, k), dense or sparse
    sizes: Any  # |X| |N|, (n, k)
    intercept: bool

    @classmethod
    def of(cls, problem: Problem, directions: Floats) -> Conditions:
        """Return the conditions for the directions in the columns of `directions`, (d, k).

        On a kernel problem the only condition is sum_i c_i = 0.
        """
        if not isinstance(problem.hypothesis, LinearHypothesis) or not directions.shape[1]:
            none = np.zeros((problem.hypothesis.n, 0))
            return cls(none, none, problem.intercept)
        X = problem.hypothesis.features(balanced=problem.intercept)
        axes = np.flatnonzero(directions.any(axis=1))
        if np.array_equal(directions[axes], np.eye(directions.shape[1])):  # axes, in their order
            F = X[:, axes]
            return cls(F, abs(F), problem.intercept)
        return cls(X @ directions, abs(X) @ np.abs(directions), problem.intercept)

    def settle(self, problem: Problem, multipliers: Multipliers, target: Floats) -> Bools:
        """Change multipliers in place until sum_i c_i F_i = target (and sum_i c_i = 0).

        They stay in their domains. F_i are the numbers of row i in the class docstring. At first only
        multipliers in the interior of their domain change, which changes the dual bound to second order only.
        Then all multipliers may change. Each step solves a weighted least squares problem in which
        multipliers near an end of their domain change less.

        Parameters
        ----------
        problem : Problem
            The problem.
        multipliers : Multipliers
            Its `rows` are changed.
        target : (k,) array
            The required value of sum_i c_i F_i.

        Returns
        -------
        (k,) or (k + 1,) mask
            True for each condition that still fails. If the intercept is free, the last entry is for sum_i
            c_i = 0.
        """
        weighted_targets, domains = dual_factors(problem, multipliers.thetas), _domains(problem)
        target = np.append(target[: self.features.shape[1]], np.zeros(int(self.intercept)))
        rows = multipliers.rows
        missing, relative = self._missing(weighted_targets, rows, target)
        for at_ends in (False, True):
            best, failed = (rows.copy(), missing, relative), 0
            while failed < FAILED_STEPS and (least := best[2].max(initial=0.0)) > EPS:
                self._step(domains, weighted_targets, rows, missing, at_ends)
                missing, relative = self._missing(weighted_targets, rows, target)
                failed = 0 if relative.max() < 0.9 * least else failed + 1
                if relative.max() < least:
                    best = rows.copy(), missing, relative
            rows[:], missing, relative = best
        return np.asarray(relative > CANCELLED)

    def _missing(self, weighted_targets: Floats, rows: Floats, target: Floats) -> tuple[Floats, Floats]:
        """Return the residual of each condition, and its size relative to the sum of the absolute summands.

        The residual is target - sum_i c_i F_i. Both arrays have one entry per condition: k entries, and one
        more for sum_i c_i = 0 if the intercept is free.
        """
        moments = weighted_targets * rows
        c, sizes = moments.sum(axis=0), _sizes(moments)
        total, total_size = ([c.sum()], [sizes.sum()]) if self.intercept else ([], [])
        missing = target - np.append(self.features.T @ c, total)
        size = np.append(self.sizes.T @ sizes, total_size) + np.abs(target)
        return missing, np.abs(missing) / np.where(size > 0, size, 1.0)

    def _step(
        self, domains: Floats, weighted_targets: Floats, rows: Floats, missing: Floats, at_ends: bool
    ) -> None:
        """Move the multipliers `rows` in place by one weighted least squares step.

        The multipliers stay inside their domains, and each moves by at most 1 + `|multiplier|`. A multiplier
        that can move less than half of its step is kept fixed, and the step is computed again for the others;
        then every multiplier moves as far as its domain allows. `at_ends` says whether multipliers at an end
        of their domain may move.
        """
        both = np.minimum([domains[1] - rows, rows - domains[0]], 1.0 + np.abs(rows))
        distance = np.maximum(*both) if at_ends else np.minimum(*both)
        for _ in range(MOST_STEPS):
            shift = self._shift(weighted_targets, distance, missing)
            stuck = np.where(shift > 0, *both) < 0.5 * np.abs(shift)
            if not stuck.any():
                break
            distance = np.where(stuck, 0.0, distance)
        rows += np.clip(shift, -0.99 * both[1], 0.99 * both[0])
        np.clip(rows, *domains, out=rows)

    def _shift(self, weighted_targets: Floats, distance: Floats, missing: Floats) -> Floats:
        """Return the shift of the multipliers, (number of blocks, n), that makes the residuals `missing` 0.

        Among all such shifts, the one with the smallest sum (shift / distance)^2 is returned. `distance`, of
        the same shape, is how far each multiplier may move; a multiplier with distance 0 is fixed.
        """
        gains = ((weighted_targets * distance) ** 2).sum(axis=0)
        M, k = weighted_gram(self.features, gains, self.intercept), self.features.shape[1]
        scale = np.sqrt(np.diag(M))
        scale[scale == 0] = 1.0
        along = np.linalg.lstsq(M / scale[:, None] / scale, missing / scale, rcond=1e-14)[0] / scale
        return np.asarray(weighted_targets * distance**2 * (self.features @ along[:k] + along[k:].sum()))


def weighted_gram(X: Any, weights: Floats, intercept: bool) -> Floats:
    """Return F' diag(weights) F; F is X, with a column of ones behind it if there is an intercept."""
    stack = sp.hstack if sp.issparse(X) else np.hstack
    F = stack([X, np.ones((len(weights), int(intercept)))])
    gram = F.T @ (sp.diags_array(weights) @ F)
    return np.asarray(gram.toarray() if sp.issparse(gram) else gram)


def _sizes(moments: Floats) -> Floats:
    """Return `|c_i|` plus an allowance for the rounding error of the weighted dual c_i, (n,).

    `moments`, (number of blocks, n), holds the terms of c_i. The allowance is LOST / CANCELLED times the sum
    of their absolute values. The callers multiply the result by CANCELLED, which makes the allowance LOST
    times this sum.
    """
    return np.asarray(np.abs(moments.sum(axis=0)) + LOST / CANCELLED * np.abs(moments).sum(axis=0))


def _in_words(free: Floats, failing: Bools) -> str:
    """Return a sentence about the conditions in the mask `failing`; "" for none."""
    k = free.shape[1]
    columns = np.flatnonzero(np.abs(free[:, failing[:k]]).max(axis=1, initial=0.0) > 1e-9).tolist()
    what = ["sum c = 0"] if failing[k:].any() else []
    if columns:
        names = ", ".join(map(str, columns[:5]))
        names += f" and {len(columns) - 5} more" if len(columns) > 5 else ""
        which = f"column {names}" if len(columns) == 1 else f"columns {names}"
        what.append(f"sum c x = 0 in the direction of {which}, which no regularizer punishes")
    return f"the multipliers cannot be brought to {' and '.join(what)}" if what else ""


def runs_away(problem: Problem, coef: Floats, intercept: float, value: float) -> bool:
    """Return whether the objective decreases without end, so that no optimum exists.

    The test moves w and b far along the directions that no regularizer penalizes, and compares the objective
    there with `value`, the objective at the hypothesis. Only an atom that approaches its infimum without
    attaining it, such as the logistic loss, can make the objective decrease in this way.
    """
    far_margins = np.array([-30.0, 30.0])
    falling = [b for b in problem.blocks if b.atom.value(far_margins).min() > b.atom.facts.minimum]
    free, far = unpunished(problem), EPS**-0.5
    there = coef + far * (free @ (free.T @ coef)), (1 + far) * intercept
    return bool(falling) and problem.evaluate(*there).total < value


def restored(
    problem: Problem, coef: Floats, intercept: float, inside: tuple[Floats, float] | None = None
) -> tuple[Floats, float]:
    """Return a hypothesis (coef, intercept) near the given one that satisfies the constraints.

    The coefficients are projected on the linear constraints. If limits C <= t are then still exceeded, f is
    replaced by s f + (1 - s) f_0 with the largest s in [0, 1] for which convexity guarantees the limits:
    C(s f + (1 - s) f_0) <= s C(f) + (1 - s) C(f_0). If f_0 does not satisfy the constraints, only the
    projection is returned.

    Parameters
    ----------
    problem : Problem
        The problem.
    coef, intercept
        The hypothesis f.
    inside
        (coef, intercept) of f_0, which satisfies the linear constraints and is strictly inside all limits.
        By default f_0 = 0.

    """
    if problem.region is not None:
        coef = problem.region.project(coef)
    bounds = np.array([limit.bound for limit in problem.limits])
    scores = problem.hypothesis.scores(coef, intercept)
    values = limit_values(problem, scores)
    if (values <= bounds).all():
        return coef, intercept
    w, b = (np.zeros_like(coef), 0.0) if inside is None else inside
    if problem.region is not None and problem.region.violation(w):
        return coef, intercept
    centre = problem.hypothesis.scores(w, b)
    least, exceeded = limit_values(problem, centre), values > bounds
    if (least[exceeded] >= bounds[exceeded]).any():
        return coef, intercept
    share = float(np.min((bounds - least)[exceeded] / (values - least)[exceeded]))
    margin = 0.0  # s is reduced until the limits also hold in floating-point arithmetic
    while (limit_values(problem, share * scores + (1 - share) * centre) > bounds).any() and margin < 1.0:
        margin = max(4 * margin, EPS)
        share *= 1 - min(margin, 1.0)
    return share * coef + (1 - share) * w, share * intercept + (1 - share) * b


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

    def too_low(scores: Floats) -> Bools:
        return c <= weighted_duals(problem, multipliers_at(problem.blocks, scores), thetas)

    ends = np.full((2, len(c)), [[-FARTHEST], [FARTHEST]])
    return multipliers_between(problem, c, thetas, *bisected(too_low, *ends))


def multipliers_between(
    problem: Problem, c: Floats, thetas: Floats, low: Floats, high: Floats
) -> Multipliers:
    """Return the combination of the multipliers at two scores of each row that has the weighted duals c."""
    rows_low, rows_high = multipliers_at(problem.blocks, low), multipliers_at(problem.blocks, high)
    c_low, c_high = (weighted_duals(problem, rows, thetas) for rows in (rows_low, rows_high))
    span = c_low - c_high
    share = np.clip(np.divide(c - c_high, span, out=np.full(len(c), 0.5), where=span > 0), 0.0, 1.0)
    return Multipliers(share * rows_low + (1 - share) * rows_high, thetas)


def multipliers_at(blocks: tuple[Block, ...], scores: Floats) -> Floats:
    """Return the midpoints of the possible multipliers, (number of blocks, n).

    At given scores, (n,), the possible multipliers of a block in a row are minus the subdifferential of the
    atom. Infinite slopes are replaced by +-1e150.
    """
    _, low, high = multiplier_intervals(blocks, scores)
    return np.asarray(0.5 * low + 0.5 * high)  # the sum may overflow


def multiplier_intervals(
    blocks: tuple[Block, ...], scores: Floats, width: float = 0.0
) -> tuple[Floats, Floats, Floats]:
    """Return margins and the smallest and largest possible multipliers there, (number of blocks, n) each.

    A margin within `width` of a kink is replaced by the kink. Infinite multipliers are replaced by +-1e150.
    """
    margins = np.stack([block.margins(scores) for block in blocks])
    low, high = np.empty_like(margins), np.empty_like(margins)
    for block, m, a, b in zip(blocks, margins, low, high, strict=True):
        for kink in block.atom.facts.kinks if width else ():
            m[np.abs(m - kink) <= width] = kink
        b[:], a[:] = block.atom.subgradient(m)
    low, high = (np.nan_to_num(-slopes, posinf=1e150, neginf=-1e150) for slopes in (low, high))
    return margins, low, high


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

    A limit that is not active gets 0. The multipliers of the others are computed by nonnegative least
    squares, with one unknown per side of a limit: they bring q = (1/n) sum_i c_i x_i close to the
    subdifferential of Omega at w.
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
    thetas, ends = np.full(len(weights), 0.5), np.zeros(len(weights))
    kinks, low, high = multiplier_intervals(blocks, scores, width)
    factors = np.stack([f * b.weights for f, b in zip(term_weights(problem), blocks, strict=True)])
    targets = np.stack([block.targets for block in blocks])
    start = Multipliers(0.5 * (low + high), thetas)
    free = (high > low) & (factors * targets != 0)
    if not (free.any() or weights.any()):
        return start
    some = np.flatnonzero(free.any(axis=0))[: MOST_COEFFICIENTS if problem.is_kernel else None]
    free, low, high, B, t = (part[:, some] for part in (free, low, high, factors, targets))
    # what the other rows add to c, one line for theta = 0 and one per theta, for its change
    fixed = factors * targets * start.rows
    fixed[:, some] = np.where(free, 0.0, fixed[:, some])
    lines = np.stack([shares(blocks, ends), *(shares(blocks, one) for one in np.eye(len(thetas)))])
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

    x = np.append(rows[free], thetas)
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
    start.rows[:, some], start.thetas[:] = rows, found.x[k:]
    return start


def _distance(
    problem: Problem, coef: Floats, fixed: Floats, some: Ints
) -> Callable[[Floats, Floats], tuple[float, Floats, Floats]]:
    """Return a function that bounds the contribution of Omega to the gap, in sum form.

    The weighted duals of the rows are fixed[0] + sum_k theta_k fixed[k], plus c on the rows `some`; `fixed`
    is (1 + number of thetas, n). The function maps (thetas, c) to n ||r||^2 / (2 mu) plus the penalty on the
    sum of the weighted duals, and to its derivatives in c and in the thetas. `_fitted` defines r and mu.
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
