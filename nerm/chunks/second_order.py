"""Smooth functions: Newton steps whose values, gradients and Hessians are sums over chunks.

The model of a step keeps the maximum of two sides and the regularizers as they are, so that theta comes with
it: min over the step of sum q_j + sum_k eta_k max(q_k^+, q_k^-) + Omega(w + step). The multipliers u =
-phi'(m) at a hypothesis bound the optimum from below, after they are scaled so that sum c = 0; near the
optimum that bound is exact.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nerm.certify.conjugates import conjugate_of_sum, parts_of
from nerm.chunks.progress import Method, Progress
from nerm.chunks.sums import Curved, Derivatives
from nerm.model.blocks import shares
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.chunks.chunked_problem import ChunkedProblem

BACK = 0.3  # of a step that led uphill though the sample did not see it
SHORTEST = 10  # halvings of a step that the sample tries
FLAT = 1e-12  # of the objective: a rise by rounding


def pass_over(problem: ChunkedProblem, state: Progress) -> Derivatives:
    """Return what a pass at the next hypothesis finds."""
    found: Derivatives = problem.sweep(Curved(problem.terms, state.at))
    return found


def next_state(problem: ChunkedProblem, state: Progress, found: Derivatives, tol: float) -> Progress:
    """Return the bound of this hypothesis, and where the model of second order says to look next."""
    from nerm.atoms.small_programs import QuadraticModel, model_minimum

    bound = max(state.bound, dual_bound(problem, found, state.thetas))
    value = problem.value(found.values, state.at[0]).total
    if state.best is not None and value > state.value + FLAT * abs(state.value):  # it led uphill
        w, b = state.best
        at = w + BACK * (state.at[0] - w), b + BACK * (state.at[1] - b)
        return replace(state, at=at, bound=bound)
    n, frame = problem.terms.divisor, problem.frame
    model = QuadraticModel(found.values / n, found.gradients / n, found.hessians / n)
    sides = np.array([side for _, _, side in problem.layout])
    parts = parts_of(frame.regularizers)
    step, thetas = model_minimum(model, problem.factors, sides, parts, state.at[0], frame.intercept)
    bound = max(bound, dual_bound(problem, found, thetas))
    length = step_length(problem, state, found, step)
    at = state.at[0] + length * step[:-1], state.at[1] + length * float(step[-1])
    return replace(state, at=at, thetas=thetas, bound=bound)


def step_length(problem: ChunkedProblem, state: Progress, found: Derivatives, step: Floats) -> float:
    """Return 1 or the halving of a step that is best by the sample, corrected to the slope that all rows have there."""
    X, (w, b) = problem.sample.X, state.at
    scores, moves = X @ w + b, X @ step[:-1] + step[-1]
    blocks = problem.terms.blocks(problem.sample)
    masses = np.array([float(block.weights.sum()) for block in blocks])
    scales = found.masses.sum(axis=1) / np.where(masses > 0, masses, 1.0)
    slopes = [
        (one.weights * one.targets * moves) @ one.atom.subgradient(one.targets * scores)[0] for one in blocks
    ]
    missing = found.gradients @ step - scales * np.array(slopes)
    here = np.array([block.total(scores) for block in blocks])

    def expected(length: float) -> float:
        there = np.array([block.total(scores + length * moves) for block in blocks])
        sums = found.values + scales * (there - here) + length * missing
        return problem.value(sums, w + length * step[:-1]).total

    best, least = 1.0, expected(1.0)
    for halvings in range(1, SHORTEST + 1):
        value = expected(0.5**halvings)
        if not value < least and np.isfinite(least):
            break
        best, least = 0.5**halvings, value
    return best


def dual_bound(problem: ChunkedProblem, found: Derivatives, thetas: Floats) -> float:
    """Return the bound of multipliers u = -phi'(m), known by their sums over rows of either sign of the target.

    A multiple s in [0, 1] of them has phi*(s u) <= s phi*(u) + (1 - s) phi*(0) by convexity: that balances
    sum c, and brings sum c x where Omega* is finite.
    """
    _n, frame = problem.terms.divisor, problem.frame
    nu = problem.factors * shares(problem.layout, thetas)
    at_zero = np.array([float(atom.conjugate(0.0)) for atom, _, _ in problem.layout])
    scalable = np.isfinite(at_zero)
    scale = np.ones(found.stars.shape)
    pulls = nu[:, None] * found.pulls[:, :, -1]
    if frame.intercept:
        rest = float(pulls[~scalable].sum())
        up, down = (float(pulls[scalable][side * pulls[scalable] > 0].sum()) for side in (1, -1))
        if up + down + rest > 0:
            heavy, wanted = pulls > 0, -(down + rest)
            size = up
        else:
            heavy, wanted, size = pulls < 0, -(up + rest), down
        if size == 0 or not 0 <= wanted / size <= 1 + 1e-9:
            return -np.inf if up + down + rest else _bound(problem, found, nu, scale, at_zero)
        scale[heavy & scalable[:, None]] = min(wanted / size, 1.0)
    value = _bound(problem, found, nu, scale, at_zero)
    return value


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


METHOD = Method(pass_over, next_state)
