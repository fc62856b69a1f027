"""Make multipliers and hypotheses feasible.

Multipliers are feasible if they are in their domains and, for a free intercept, sum_i c_i = 0. Here c_i is
the weighted dual of row i (`nerm.certify.certificate`). A hypothesis is feasible if it satisfies the
constraints. The multipliers of a solver are only nearly feasible, and a dual bound is valid for feasible ones
only. If they cannot be made feasible, they are replaced by the centre, where c = 0 (`towards_centre`), or
there is no bound. So this module can make a bound loose but never wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from nerm.certify.conjugates import MOST_OPERATIONS, MOST_STEPS, unpunished
from nerm.certify.multipliers import Multipliers
from nerm.model.blocks import EPS, limit_values, scaled_weights, shares, weigh, weighted_duals
from nerm.model.hypothesis import LinearHypothesis
from nerm.typing import Bools, Floats

if TYPE_CHECKING:
    from nerm.model.problem import Problem


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


def separable(problem: Problem, multipliers: Multipliers) -> float:
    """Return the sum over rows in the negative dual bound -D.

    D is defined in `nerm.certify.certificate`. The sum is::

        (1/n) sum over blocks j and rows i of  weight_ji phi_ji*(-multiplier_ji)

    where phi_ji* is the conjugate of the atom of block j with the offset of row i (`Block.conjugates`), and
    weight_ji = term weight x share x row weight
    (`nerm.model.blocks.scaled_weights`).
    """
    weights = scaled_weights(problem, multipliers.thetas)
    rows = zip(weights, problem.blocks, multipliers.rows, strict=True)
    return sum((weigh(w, block.conjugates(row)) for w, block, row in rows), start=0.0) / problem.divisor


def lost(problem: Problem, multipliers: Multipliers) -> float:
    """Return a bound on the rounding error of the dual bound D from cancellation inside c_i.

    The weighted dual c_i is a sum of one term per block. Its rounding error is at most LOST times the sum of
    the absolute terms. The returned bound is (LOST / n) sum_i (sum of the absolute terms of c_i - `|c_i|`).
    """
    moments = _weighted_targets(problem, multipliers.thetas) * multipliers.rows
    return LOST * float(np.sum(np.abs(moments).sum(axis=0) - np.abs(moments.sum(axis=0)))) / problem.divisor


def _weighted_targets(problem: Problem, thetas: Floats) -> Floats:
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
    """Return (1 - t) * centre + t * multipliers; None if there is no centre.

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
        if block.side and new[j] > 0:
            rest = (1 - t) * 0.5 * float(np.clip(0.0, *block.domain))
            rows[j] = (t * old[j] * multipliers.rows[j] + rest) / new[j]
        elif block.side:
            rows[j] = multipliers.rows[j]
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
        """Shift multipliers in place, inside their domains, until the conditions hold.

        Each step solves a weighted least squares problem in which multipliers near an end of their domain
        move less. At first only multipliers away from both ends of their domain move, which changes the bound
        to second order only. Then all multipliers may move.

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
        weighted_targets, domains = _weighted_targets(problem, multipliers.thetas), _domains(problem)
        target = np.append(target[: self.features.shape[1]], np.zeros(int(self.intercept)))
        rows = multipliers.rows
        missing, size = self._missing(weighted_targets, rows, target)
        least = _worst(missing, size)
        for at_ends in (False, True):
            best, failed = (rows.copy(), missing, size), 0
            while failed < FAILED_STEPS and least > EPS:
                self._step(domains, weighted_targets, rows, missing, at_ends)
                missing, size = self._missing(weighted_targets, rows, target)
                worst = _worst(missing, size)
                failed = 0 if worst < 0.9 * least else failed + 1
                if worst < least:
                    best, least = (rows.copy(), missing, size), worst
            rows[:], missing, size = best
        return np.abs(missing) > CANCELLED * size

    def _missing(self, weighted_targets: Floats, rows: Floats, target: Floats) -> tuple[Floats, Floats]:
        """Return the residual of each condition, and the sum of the absolute summands in it.

        The residual is target - sum_i c_i F_i. Both arrays have one entry per condition: k entries, and one
        more for sum_i c_i = 0 if the intercept is free.
        """
        moments = weighted_targets * rows
        c, sizes = moments.sum(axis=0), _sizes(moments)
        total, total_size = ([c.sum()], [sizes.sum()]) if self.intercept else ([], [])
        missing = target - np.append(self.features.T @ c, total)
        return missing, np.append(self.sizes.T @ sizes, total_size) + np.abs(target)

    def _step(
        self, domains: Floats, weighted_targets: Floats, rows: Floats, missing: Floats, at_ends: bool
    ) -> None:
        """Move the multipliers `rows` in place by one weighted least squares step.

        The multipliers stay inside their domains. A multiplier that can move less than half of its step
        is kept fixed, and the step is computed again for the others; then every multiplier moves as far as
        its domain allows. In an unbounded domain the step is at most 1 + `|multiplier|`. `at_ends` says
        whether multipliers at an end of their domain may move.
        """
        both = [domains[1] - rows, rows - domains[0]]
        both = [np.where(np.isfinite(d), np.maximum(d, 0.0), 1.0 + np.abs(rows)) for d in both]
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


def _worst(missing: Floats, size: Floats) -> float:
    """Return the largest residual of a condition, relative to its `size`."""
    return float(np.max(np.abs(missing) / np.where(size > 0, size, 1.0), initial=0.0))


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
