"""The two methods on chunks: small problems on the rows near kinks, and Newton steps for smooth functions.

**Straight pieces between kinks.** The problem on few rows (`nerm.chunks.sums`) is an ordinary `nerm.Problem`:
its own certificate bounds its optimum from below, and by Jensen's inequality that is a bound for all rows. A
pass gives the value of all rows at its hypothesis; where value and bound meet, the hypothesis is certified.
Otherwise the rows around the new hypothesis, and between it and the best one, make the next small problem.

While many rows cross kinks, the optimum of the small problem lies far off, in a direction in which its mean
rows do not bend. So an estimate replaces the settled rows by rows of the sample of the same weight, and a
linear function per block corrects the slope in (w, b)::

    sum over kept of B phi(t f) + scale * sum over sampled of B phi(t f) + (slope of all - of sampled).(w, b)

Its optimum is only where the next pass looks: the bound never comes from it.

**Smooth functions.** The model of a Newton step keeps the maximum of two sides and the regularizers as they
are, so that theta comes with it: min over the step of sum q_j + sum_k eta_k max(q_k^+, q_k^-) + Omega(w +
step). The multipliers u = -phi'(m) at a hypothesis bound the optimum from below, after they are scaled so
that sum c = 0; near the optimum that bound is exact.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from nerm.atoms.margin import MarginFunction
from nerm.certify.conjugates import conjugate_of_sum, parts_of
from nerm.chunks.census import ChunkRows
from nerm.chunks.progress import Hypothesis, Method, Progress
from nerm.chunks.sums import Curved, Derivatives, FewRows, KeptRows, NearKinks, joined, kept_rows
from nerm.model.blocks import Block, shares
from nerm.model.hypothesis import LinearHypothesis, sorted_csr
from nerm.model.problem import Problem
from nerm.neutralize.surrogates import ROUGH_TOL
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.chunks.chunked_problem import ChunkedProblem

LEAST_ROWS = 50_000  # kept around a hypothesis, if not KEPT_SHARE of all rows
KEPT_SHARE = 0.05
GROUPS = 1000  # of mean rows per block, sign and slope: more make the small problem closer to the whole one
FINER = 0.25  # of the tolerance, for a small problem
SMALL_TARGET = 0.01  # phi that is straight between margins -1 and 1 is so for scores up to its inverse

# --- straight pieces between kinks -------------------------------------------------------------------


def _pass_near_kinks(problem: ChunkedProblem, state: Progress) -> FewRows:
    """Return what a pass at the next hypothesis finds."""
    work = _within(problem, _work(problem, state), _most(problem, state))
    found: FewRows = replace(problem.sweep(work), work=work)
    return found


def _solve_few_rows(problem: ChunkedProblem, state: Progress, found: FewRows, tol: float) -> Progress:
    """Solve on few rows, and return the bound and where to look next.

    That is the optimum of the small problem where, by the sample, value and bound will meet there. Else rows
    that are summed up would cross kinks on the way: it is the optimum of an estimate that lets them
    (`_estimate`).
    """
    small = on_rows(problem, joined([*found.kept, found.mean_rows()]))
    solution = small.solve("auto", FINER * tol)
    bound = max(state.bound, solution.certificate.dual - solution.certificate.slack)
    proposed = _estimate(problem, found, problem.sample)
    if proposed is not None:
        model = on_rows(problem, proposed[0])
        hoped = model.evaluate(solution.coef, solution.intercept).total - proposed[1] - bound
        if hoped > tol * abs(bound):
            solution = model.solve("auto", max(FINER * tol, ROUGH_TOL * min(hoped / abs(bound), 1.0)))
    thetas = solution.multipliers.thetas if solution.multipliers is not None else state.thetas
    at = (np.asarray(solution.coef), float(solution.intercept))
    return replace(state, at=at, bound=bound, thetas=thetas, kept=small.hypothesis.n)


def on_rows(problem: ChunkedProblem, few: KeptRows) -> Problem:
    """Return the problem on some rows with the weights and targets that they have in each block."""
    X = sorted_csr(few.X)
    n = X.shape[0]
    columns = zip(problem.layout, few.weights, few.targets, strict=True)
    blocks = tuple(
        Block(atom, weights, targets, term, side) for (atom, term, side), weights, targets in columns
    )
    return replace(
        problem.frame,
        hypothesis=LinearHypothesis(X),
        y=np.ones(n),
        viewpoints={name: np.ones(n) for name in problem.frame.viewpoints},
        sample_weight=np.ones(n),
        blocks=blocks,
    )


def of_sample(problem: ChunkedProblem, rows: ChunkRows) -> Problem:
    """Return the problem on a sample of the rows."""
    zero = np.zeros(problem.frame.hypothesis.size), 0.0
    found = _work(problem, Progress(zero, np.zeros(0))).of(rows)
    share = len(rows.y) / problem.terms.coding.n
    return replace(on_rows(problem, joined(found.kept)), divisor=problem.terms.divisor * share)


def _work(problem: ChunkedProblem, state: Progress) -> NearKinks:
    """Return the work of a pass at the next hypothesis, with all rows kept."""
    X = problem.sample.X
    scores = X @ state.at[0] + state.at[1]
    cuts = max(
        2, min(20, GROUPS // X.shape[1])
    )  # of the scores, so that there are some thousands of mean rows
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, 1 + cuts)[1:-1]))
    square = X.multiply(X) if sp.issparse(X) else X * X
    scale = np.sqrt(np.asarray(square.mean(axis=0)).ravel())
    scale = np.where(scale > 0, scale, np.inf)
    return NearKinks(problem.terms, state.at, state.best or state.at, np.inf, 1.0, edges, scale)


def _most(problem: ChunkedProblem, state: Progress) -> int:
    """Return how many rows to keep: more from pass to pass, as memory allows."""
    wanted = max(LEAST_ROWS, KEPT_SHARE * problem.terms.coding.n) * 1.5 ** max(0, state.passes - 3)
    return int(min(wanted, problem.rows_limit))


def _within(problem: ChunkedProblem, work: NearKinks, most: int) -> NearKinks:
    """Return the work that keeps at most about `most` rows: those within a distance from a kink.

    Where more rows lie *on* kinks, or cross them between the two hypotheses, a share of these is kept.
    """
    n = problem.terms.coding.n
    if n <= most:
        return work

    def expected(distance: float) -> float:
        return n * float(replace(work, distance=distance).near(problem.sample).mean())

    low, high = 0.0, 1e3
    for _ in range(30):
        middle = 0.5 * (low + high) if low else high / 8
        low, high = (middle, high) if expected(middle) <= most else (low, middle)
        if high - low <= 0.02 * high:
            break
    return replace(work, distance=low, thin=min(1.0, most / max(expected(low), 1.0)))


FEW_ROWS = Method(_pass_near_kinks, _solve_few_rows)


def _estimate(problem: ChunkedProblem, found: FewRows, sample: ChunkRows) -> tuple[KeptRows, float] | None:
    """Return rows that replace all rows, and the excess of their objective; None where there are none.

    The rows are such that the estimate has the value and the slope of all rows at the hypothesis of the pass.
    """
    work: NearKinks = found.work
    if np.isinf(work.distance):
        return None
    blocks = work.terms.blocks(sample)
    sampled = _sampled(work, found, sample, blocks)
    if sampled is None:
        return None
    rows, missing = sampled
    parts = [*found.kept, rows]
    for j, block in enumerate(blocks):
        line = _straight(block.atom, missing[j])
        if line is None:
            return None
        parts.append(_alone(j, len(blocks), *line))
    surplus = _values(blocks, parts, work.at) - found.values
    tops: dict[int, float] = {}
    for block, more in zip(blocks, surplus.tolist(), strict=True):
        tops[block.term] = max(more, tops.get(block.term, -np.inf))
    for j, block in enumerate(blocks):  # both sides of a maximum must have the same
        less = tops[block.term] - surplus[j]
        if less > 0 and block.atom.facts.at_zero > 0:
            parts.append(_alone(j, len(blocks), *_constant(len(work.at[0]), less / block.atom.facts.at_zero)))
    weights = problem.frame.objective.terms
    excess = sum(weights[term].weight * top for term, top in tops.items())
    return joined(parts), excess / problem.terms.divisor


def _sampled(
    work: NearKinks, found: FewRows, sample: ChunkRows, blocks: tuple[Block, ...]
) -> tuple[KeptRows, Floats] | None:
    """Return rows of the sample for all settled rows, and the slopes (J, d + 1) that are missing."""
    _, settled, slopes = work.parted(sample, blocks, sample.X @ work.at[0] + work.at[1])
    rows = np.flatnonzero(settled)
    sampled = kept_rows(sample.X, blocks, rows)
    weights, targets = sampled.weights, sampled.targets
    masses = (weights * (targets != 0)).sum(axis=1)
    wanted, slope = found.slopes()
    if not len(rows) or np.any((masses == 0) & (wanted > 0)):
        return None
    weights = weights * (wanted / np.where(masses > 0, masses, 1.0))[:, None]
    pulls = weights * targets * np.stack([one[rows] for one in slopes])
    missing = slope - np.column_stack([np.asarray(sampled.X.T @ pulls.T).T, pulls.sum(axis=1)])
    return replace(sampled, weights=weights), missing


def _values(blocks: tuple[Block, ...], parts: list[KeptRows], at: Hypothesis) -> Floats:
    """Return the blocks of rows at the hypothesis of the pass, (J,)."""
    total = np.zeros(len(blocks))
    for part in parts:
        scores = part.X @ at[0] + at[1]
        for j, block in enumerate(blocks):
            total[j] += part.weights[j] @ block.atom.value(part.targets[j] * scores)
    return total


def _straight(atom: MarginFunction, slope: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Return rows, weights and targets of the sum slope.(w, b) + constant; None if phi bends around 0.

    W phi(e (x.w + b)) = W phi(0) + W phi'(0) e (x.w + b) for a small e where phi is straight around 0. One
    row brings the slope in w, and another one, x = 0, what is left in b.
    """
    low, high = float(atom.subgradient(np.array(-0.5))[0]), float(atom.subgradient(np.array(0.5))[1])
    if low != high or low == 0:
        return None
    length = float(np.linalg.norm(slope[:-1]))
    X = np.vstack([slope[:-1] / max(length, 1e-300), np.zeros(len(slope) - 1)])
    pulls = np.array([length, slope[-1] - length])
    targets = np.where(pulls * low > 0, SMALL_TARGET, -SMALL_TARGET)
    return X, np.abs(pulls / (SMALL_TARGET * low)), targets


def _constant(columns: int, weight: float) -> tuple[Floats, Floats, Floats]:
    """Return rows of a total weight whose slopes cancel."""
    return np.zeros((2, columns)), np.full(2, weight / 2), np.array([SMALL_TARGET, -SMALL_TARGET])


def _alone(number: int, count: int, X: Floats, weights: Floats, targets: Floats) -> KeptRows:
    """Return rows that count in one block only."""
    every, there = np.zeros((count, len(weights))), np.ones((count, len(weights)))
    every[number], there[number] = weights, targets
    return KeptRows(X, every, there)


# --- smooth functions ---------------------------------------------------------------------------------


def _pass_for_derivatives(problem: ChunkedProblem, state: Progress) -> Derivatives:
    """Return what a pass at the next hypothesis finds."""
    found: Derivatives = problem.sweep(Curved(problem.terms, state.at))
    return found


def _newton_step(problem: ChunkedProblem, state: Progress, found: Derivatives, tol: float) -> Progress:
    """Return the bound of this hypothesis, and where the model of second order says to look next."""
    from nerm.atoms.small_programs import QuadraticModel, model_minimum

    bound = max(state.bound, dual_bound(problem, found, state.thetas))
    value = problem.value(found.values, state.at[0]).total
    rounding = problem.n * np.finfo(float).eps
    if state.best is not None and value > state.value + rounding * abs(state.value):  # halve the last step
        at = 0.5 * (state.best[0] + state.at[0]), 0.5 * (state.best[1] + state.at[1])
        return replace(state, at=at, bound=bound)
    n, frame = problem.terms.divisor, problem.frame
    model = QuadraticModel(found.values / n, found.gradients / n, found.hessians / n)
    sides = np.array([side for _, _, side in problem.layout])
    parts = parts_of(frame.regularizers)
    step, thetas = model_minimum(model, problem.factors, sides, parts, state.at[0], frame.intercept)
    bound = max(bound, dual_bound(problem, found, thetas))
    at = state.at[0] + step[:-1], state.at[1] + float(step[-1])
    return replace(state, at=at, thetas=thetas, bound=bound)


def dual_bound(problem: ChunkedProblem, found: Derivatives, thetas: Floats) -> float:
    """Return the bound of multipliers u = -phi'(m), from their sums over rows of either target sign.

    A multiple s in [0, 1] of them has phi*(s u) <= s phi*(u) + (1 - s) phi*(0) by convexity: that balances
    sum c, and brings sum c x where Omega* is finite.
    """
    nu = problem.factors * shares(problem.layout, thetas)
    at_zero = np.array([float(atom.conjugate(0.0)) for atom, _, _ in problem.layout])
    scalable = np.isfinite(at_zero)
    scale = np.ones(found.stars.shape)
    pulls = nu[:, None] * found.pulls[:, :, -1]
    if problem.frame.intercept:
        rest = float(pulls[~scalable].sum())
        up, down = (float(pulls[scalable][side * pulls[scalable] > 0].sum()) for side in (1, -1))
        side, size, other = (1, up, down) if up + down + rest > 0 else (-1, down, up)
        heavy, wanted = side * pulls > 0, -(other + rest)
        if size == 0 or not 0 <= wanted / size <= 1 + 1e-9:
            return -np.inf if up + down + rest else _bound(problem, found, nu, scale, at_zero)
        scale[heavy & scalable[:, None]] = min(wanted / size, 1.0)
    return _bound(problem, found, nu, scale, at_zero)


def _bound(problem: ChunkedProblem, found: Derivatives, nu: Floats, scale: Floats, at_zero: Floats) -> float:
    """Return D for multiples of the multipliers, and less of all of them where Omega* asks for it."""
    n, frame = problem.terms.divisor, problem.frame
    q = np.einsum("j,js,jsd->d", nu, scale, found.pulls)[:-1] / n
    omega = conjugate_of_sum(parts_of(frame.regularizers), q, frame.hypothesis.squared_norm)
    if omega.shrink < 1 and not np.isfinite(at_zero).all():
        return -np.inf
    scale = omega.shrink * scale
    rest = np.where(scale < 1, (1 - scale) * np.where(np.isfinite(at_zero), at_zero, 0.0)[:, None], 0.0)
    stars = scale * found.stars + rest * found.masses
    return float(-(nu @ stars.sum(axis=1)) / n - omega.value)


NEWTON = Method(_pass_for_derivatives, _newton_step)
