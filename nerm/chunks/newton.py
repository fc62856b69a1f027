"""Smooth functions on chunks: Newton steps with a quadratic model of each block.

A block is a sum S = sum_i B_i phi(m_i) over all rows, with weights B_i and margins m_i = t_i f_i - o_i. q_j
is the second-order Taylor polynomial of block j at the present (w, b), divided by n (`Terms.divisor`). The
step minimizes

    sum_j factor_j q_j + sum_k eta_k max(q_k^+, q_k^-) + Omega(w + step),

where the first sum is over the blocks that are whole terms, the second over the two-sided terms, and factor_j
and eta_k are the weights of the terms. Maxima and the regularizer Omega are not approximated, so the solution
also gives theta.

The multipliers u = -phi'(m) at a hypothesis give a lower bound on the optimum. First they are scaled so
that the weighted duals c_i of the rows (`nerm.certify.certificate`) add up to 0. The bound converges to the
optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nerm.certify.conjugates import conjugate_of_sum, parts_of
from nerm.chunks.coding import Terms
from nerm.chunks.passes import Hypothesis, Progress, Sums, evaluated
from nerm.chunks.pieces import ChunkRows
from nerm.model.blocks import Block, score_unit, shares, term_weights
from nerm.model.hypothesis import sorted_csr
from nerm.solvers.interior_point.matrices import Features, RowThreads
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.chunks.chunked_problem import ChunkedProblem


@dataclass(frozen=True, eq=False)
class Derivatives(Sums):
    """Derivatives of the J blocks with respect to (w, b), and sums over multipliers.

    A block is sum B phi(m) over the rows, with weights B, margins m = t f - o and the multipliers
    u = -phi'(m). The sums with a last or middle axis of 2 are separate for t u <= 0 and t u > 0.

    Attributes
    ----------
    hessians : (J, d + 1, d + 1) array
        The Hessians.
    stars : (J, 2) array
        sum B (phi*(-u) - u o).
    linear : (J, 2, d + 1) array
        sum B t u (x, 1), which is minus the gradient.
    masses : (J, 2) array
        sum B.
    """

    hessians: Floats
    stars: Floats
    linear: Floats
    masses: Floats


def derivatives(raw: ChunkRows, terms: Terms, at: Hypothesis) -> Derivatives:
    """Return the derivatives and sums of one chunk at a hypothesis."""
    rows, blocks, scores, sums = evaluated(raw, terms, at)
    count, d = len(blocks), rows.X.shape[1] + 1
    features = Features(sorted_csr(rows.X), RowThreads(rows.n, d - 1, 1))
    hessians, weighted = np.zeros((count, d, d)), np.zeros((rows.n, 2 * count))
    stars, masses = np.zeros((count, 2)), np.zeros((count, 2))
    for j, block in enumerate(blocks):
        B, t = block.weights, block.targets
        m = block.margins(scores)
        slope = np.mean(block.atom.subgradient(m), axis=0)
        star = B * block.conjugates(-slope)
        upper = np.triu(features.gram(B * t * t * curvature(block, m)))
        hessians[j] = upper + np.triu(upper, 1).T
        for s, mine in enumerate((t * slope >= 0, t * slope < 0)):
            weighted[:, 2 * j + s] = np.where(mine, -B * t * slope, 0.0)
            stars[j, s], masses[j, s] = star[mine].sum(), B[mine].sum()
    linear = np.vstack([np.asarray(rows.X.T @ weighted), weighted.sum(axis=0)]).T.reshape(count, 2, d)
    return Derivatives(*sums, hessians, stars, linear, masses)


def work(problem: ChunkedProblem, state: Progress) -> Any:
    """Return the function of a pass: it maps a raw chunk to its `Derivatives`.

    They are taken at the hypothesis ``state.at``.
    """
    return partial(derivatives, terms=problem.terms, at=state.at)


def curvature(block: Block, margins: Floats) -> Floats:
    """Return phi''(m) in the shape of `margins`.

    If the atom has no function for it, differences of slopes are used.
    """
    stated = block.atom.curvature(margins)
    if stated is not None:
        return np.asarray(stated)
    step = np.cbrt(np.finfo(float).eps) * np.maximum(1.0, np.abs(margins))
    above, below = (np.mean(block.atom.subgradient(margins + way * step), axis=0) for way in (1.0, -1.0))
    return np.asarray(np.maximum(above - below, 0.0) / (2 * step))


def next_state(
    problem: ChunkedProblem, state: Progress, done: Any, found: Derivatives, tol: float
) -> Progress:
    """Return the state with a new lower bound and the next hypothesis.

    The next hypothesis minimizes the quadratic model. If the objective is larger than at the best hypothesis,
    the last step is halved instead. `found` is the result of the pass; `done` and `tol` are not used.
    """
    from nerm.atoms.small_programs import model_minimum

    bound = max(state.bound, dual_bound(problem, found, state.thetas))
    value = problem.value(found.values, state.at[0]).total
    if value > state.value + problem.n * np.finfo(float).eps * abs(state.value):
        # worse by more than rounding errors: halve the previous step
        at = 0.5 * (state.best[0] + state.at[0]), 0.5 * (state.best[1] + state.at[1])
        return replace(state, at=at, bound=bound)
    n, sample = problem.terms.divisor, problem.sample
    model = found.values / n, -found.linear.sum(axis=1) / n, found.hessians / n
    sides = np.array([block.side for block in sample.blocks])
    given = term_weights(sample), sides, parts_of(sample.regularizers), state.at[0], sample.intercept
    step, thetas = model_minimum(model, *given, score_unit(sample.blocks, intercept=True)[1])
    bound = max(bound, dual_bound(problem, found, thetas))
    at = state.at[0] + step[:-1], state.at[1] + float(step[-1])
    return replace(state, at=at, thetas=thetas, bound=bound)


def dual_bound(problem: ChunkedProblem, found: Derivatives, thetas: Floats) -> float:
    """Return the dual bound of the multipliers u = -phi'(m), from sums over rows.

    The sums are scaled by factors s in [0, 1] so that the weighted duals c_i add up to 0 and the conjugate
    Omega* of the regularizer is finite at sum_i c_i x_i / n. By convexity::

        phi*(-s u) <= s phi*(-u) + (1 - s) phi*(0),

    so the bound stays valid. Return -inf if no such factors exist.
    """
    n, sample = problem.terms.divisor, problem.sample
    nu = term_weights(sample) * shares(sample.blocks, thetas)
    at_zero = np.array([[float(block.atom.conjugate(0.0))] for block in sample.blocks])
    scalable = np.isfinite(at_zero)
    scale = np.ones(found.stars.shape)
    c = nu[:, None] * found.linear[:, :, -1]
    if sample.intercept and c.sum():
        heavy = scalable & (np.sign(c.sum()) * c > 0)
        if not heavy.any() or not (wanted := 1 - c.sum() / c[heavy].sum()) >= 0:
            return -np.inf
        scale[heavy] = wanted
    q = np.einsum("j,js,jsd->d", nu, scale, found.linear)[:-1] / n
    omega = conjugate_of_sum(parts_of(sample.regularizers), q, sample.hypothesis.squared_norm)
    if omega.shrink < 1 and not scalable.all():
        return -np.inf
    scale = omega.shrink * scale
    rest = (1 - scale) * np.where(scalable, at_zero, 0.0)
    stars = scale * found.stars + rest * found.masses
    return float(-(nu @ stars.sum(axis=1)) / n - omega.value)
