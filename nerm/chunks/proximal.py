"""Any convex objective on chunks: proximal point steps on the dual, with one Newton step per pass.

This is the method of `nerm.solvers.newton_alm.method`, with sums over chunks. Atoms are split into hinge-like
and smooth parts. The hinge-like parts are smoothed around multipliers U, the centre, with a width tau
(`nerm.solvers.newton_alm.smoothing`). q_j is the second-order Taylor polynomial of block j, smoothed and
divided by n (`Terms.divisor`), at the present (w, b). A step minimizes

::

    sum_j factor_j q_j + sum_k eta_k max(q_k^+, q_k^-) + Omega(w + step) + (r/2) (b - b^0)^2,

where the first sum is over the blocks that are whole terms, the second over the two-sided terms, and factor_j
and eta_k are the weights of the terms. Maxima and the regularizer Omega are not approximated, so the solution
also gives theta. If Omega consists of squared and l1 norms, Newton's method makes the step exact
(`polished`). b^0 is the intercept of the hypothesis that defines the centre. If a step increases the smoothed
objective, it is shortened: the same pass has evaluated several shorter steps. When the smoothed problem is
solved accurately enough, compared with the gap, its multipliers are the next centre.

A centre has one number per row and block. It is not stored: it follows from the hypotheses and the widths of
all centres so far, and every pass computes it again. So the tasks of a pass have no side effects, and a
checkpoint is a small file.

The multipliers give a lower bound on the optimum. First they are scaled so that the weighted duals c_i of the
rows (`nerm.certify.certificate`) add up to 0. The bound converges to the optimum.

`Progress` is the state of a fit, which the checkpoint file has, with the sums of a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nerm.atoms.custom_regularizer import HALF_DIGITS
from nerm.atoms.regularizer import L1, SquaredL2
from nerm.certify.conjugates import conjugate_of_sum, parts_of, square_weight
from nerm.chunks.coding import Terms
from nerm.chunks.pieces import UNREADABLE, ChunkRows
from nerm.errors import InvalidInputError
from nerm.files import write_atomically
from nerm.model.blocks import EPS, Block, score_unit, shares, term_weights
from nerm.model.hypothesis import sorted_csr
from nerm.solvers.interior_point.matrices import Features, RowThreads
from nerm.solvers.newton_alm import smoothing
from nerm.solvers.newton_alm.method import COLD_TAU, INNER, INTERCEPT_RIDGE, SHRINK, WARM_TAU
from nerm.typing import Floats, Matrix

if TYPE_CHECKING:
    from nerm.chunks.chunked_problem import ChunkedProblem


class Sums(dict[Any, Any]):
    """Sums over rows, by name.

    `+` adds the values of each name that both have and keeps the others.
    """

    def __add__(self, other: Sums) -> Sums:
        shared = {name: self[name] + other[name] for name in self.keys() & other.keys()}
        return Sums({**self, **other, **shared})


def evaluated(raw: ChunkRows, terms: Terms, at: Floats) -> tuple[ChunkRows, tuple[Block, ...], Floats, Sums]:
    """Code a raw chunk and evaluate it at a hypothesis.

    Return its rows, its blocks, its scores, (n,), and these sums, for J blocks and K viewpoints:

    - rows, the number of rows;
    - values, the sums sum_i weights_i atom(targets_i f_i) of the blocks, (J,);
    - decisions, the total weight of the rows by viewpoint, kind and decision, (1 + K, 4, 2). Entry 0 of the
      first axis is for no viewpoint. The four kinds are the signs of (label, viewpoint) as in
      `nerm.chunks.coding`; the two decisions are score <= 0 and score > 0.
    """
    rows = terms.coding.read(raw)
    blocks, scores = terms.blocks(rows), rows.X @ at[:-1] + at[-1]
    weight = rows.sample_weight if terms.weighted else np.ones(rows.n)
    decisions = np.zeros((1 + len(rows.viewpoints), 4, 2))
    for k, v in enumerate([-np.ones(rows.n), *rows.viewpoints.values()]):
        cell = (4 * (rows.y > 0) + 2 * (v > 0) + (scores > 0)).astype(int)
        decisions[k] = np.bincount(cell, weight, minlength=8).reshape(4, 2)
    values = np.array([block.total(scores) for block in blocks])
    return rows, blocks, scores, Sums(rows=rows.n, values=values, decisions=decisions)


def sums_of(X: Matrix, c: Floats) -> Floats:
    """Return sum_i c_i (x_i, 1), (..., d + 1), for c of shape (..., n)."""
    flat = c.reshape(-1, c.shape[-1])
    linear = np.asarray(X.T @ flat.T).T
    return np.column_stack([linear, flat.sum(axis=1)]).reshape(*c.shape[:-1], -1)


def sums_at(raw: ChunkRows, terms: Terms, at: Floats) -> Sums:
    """Return the sums over a chunk at a hypothesis: row count, block values, decisions.

    `evaluated` defines them.
    """
    return evaluated(raw, terms, at)[-1]


def counted(raw: ChunkRows, terms: Terms, at: Floats, edges: Floats) -> Sums:
    """Count the rows of a raw chunk by their scores, labels and viewpoints.

    `edges` divide the scores into intervals; a score above j of the edges is in interval j. The counts are
    total weights, (number of edges + 1, 2, 2^K), by interval, label and signs of the K viewpoints
    (`signs_of`).
    """
    rows = terms.coding.read(raw)
    weight = rows.sample_weight if terms.weighted else np.ones(rows.n)
    interval = np.searchsorted(edges, rows.X @ at[:-1] + at[-1], side="left")
    shape = len(edges) + 1, 2, 2 ** len(rows.viewpoints)
    cell = np.ravel_multi_index((interval, (rows.y > 0).astype(int), signs_of(rows.viewpoints)), shape)
    counts = np.bincount(cell, weight, int(np.prod(shape))).astype(float)
    return Sums(rows=rows.n, counts=counts.reshape(shape))


def signs_of(viewpoints: Any) -> Any:
    """Return the signs of several viewpoints as one number per row, (n,): bit k is set where v_k > 0."""
    return np.sum([2**k * (v > 0) for k, v in enumerate(viewpoints.values())], axis=0).astype(int)


@dataclass(frozen=True, eq=False)
class Progress:
    """The state of a fit after some passes.

    Attributes
    ----------
    at : (d + 1,) array
        The hypothesis of the next pass, h = (w, b).
    thetas : (K,) array
        The theta of each two-sided term, from the latest solve.
    best : (d + 1,) array
        The hypothesis with the smallest objective so far; before the first pass equal to `at`.
    value, bound : float
        The objective at `best`, infinite before the first pass, and the lower bound on the optimum.
    passes, kept : int
        The number of passes so far, without the counting pass, and the number of rows of the latest small
        problem (`nerm.chunks.kinks`).
    values, decisions : arrays
        The sums of the pass at the best hypothesis.
    keeps_all : bool
        Whether the next pass keeps all rows (`nerm.chunks.kinks`).
    gap : float
        The gap that the next one is compared with: after the previous pass, or at the previous centre.
    centres, taus : (K, d + 1) and (K,) arrays
        The hypotheses that define the centre (`nerm.chunks.proximal`), and the widths of the smoothing with
        which their multipliers are computed. The first one only starts the method.
    tau : float
        The width of the smoothing in the next pass; 0 before the first pass of `nerm.chunks.proximal`.
    base, level : (d + 1,) array and float
        The hypothesis from which the last step was taken, and the smoothed objective there. `level` is
        infinite if the next hypothesis is accepted in any case.
    failed : bool
        Whether the last step was too long.

    """

    at: Floats
    thetas: Floats
    best: Floats
    value: float = np.inf
    bound: float = -np.inf
    passes: int = 0
    kept: int = 0
    values: Floats = field(default_factory=lambda: np.zeros(0))
    decisions: Floats = field(default_factory=lambda: np.zeros((0, 4, 2)))
    keeps_all: bool = False
    gap: float = np.inf
    centres: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    taus: Floats = field(default_factory=lambda: np.zeros(0))
    tau: float = 0.0
    base: Floats = field(default_factory=lambda: np.zeros(0))
    level: float = np.inf
    failed: bool = False


def mark_of(problem: ChunkedProblem) -> str:
    """Return a string that identifies a fit, to recognize its checkpoint.

    It holds the weights of the terms, the objective at a fixed hypothesis on the sample, and the
    fingerprints.
    """
    weights = [float(t.weight).hex() for t in problem.terms.objective.terms]
    probe = np.linspace(-1.0, 1.0, problem.sample.hypothesis.size)
    value = problem.sample.evaluate(probe, float(problem.sample.intercept)).total
    fingerprints = sorted(problem.terms.coding.fingerprints.items())
    return repr((weights, f"{value:.9e}", problem.sample.intercept, fingerprints))


def save_state(path: Any, state: Progress, mark: str) -> None:
    """Write the state to a checkpoint file atomically."""
    arrays = {f.name: getattr(state, f.name) for f in fields(state)}
    with write_atomically(path) as file:
        np.savez(file, mark=mark, **arrays)


def saved_state(path: Any, mark: str) -> Progress | None:
    """Return the state in a checkpoint file, or None if there is no file.

    Raise an error if the file is of another fit, as its `mark` says (`mark_of`).
    """
    if path is None or not Path(path).exists():
        return None
    must, do = "a checkpoint must be of the same objective and chunks", "Remove the file to start again"
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            parts = {name: file[name] if np.ndim(file[name]) else file[name].item() for name in file.files}
    except UNREADABLE as error:
        raise InvalidInputError(must, f"{str(path)!r}, which cannot be read ({error})", do) from None
    if parts.pop("mark", None) != mark:
        raise InvalidInputError(must, f"{str(path)!r} of another fit", do)
    return Progress(**parts)


def numbered(path: Any, number: int) -> Any:
    """Return the checkpoint path of solve `number`; None stays None.

    For number 3, "fit.npz" becomes "fit-3.npz".
    """
    return None if path is None else Path(path).with_stem(f"{Path(path).stem}-{number}")


if TYPE_CHECKING:
    from nerm.chunks.chunked_problem import ChunkedProblem

Smooth = Callable[[list[Block]], smoothing.Blocks]
LENGTHS = np.array([0.5, 0.25, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-5])  # the shorter steps of a pass
SLICE = 2**16  # rows that are evaluated at a time, to limit the memory


def smoothed_pass(raw: ChunkRows, terms: Terms, state: Progress, smooth: Smooth) -> Sums:
    """Return the sums of a raw chunk at ``state.at``: those of `evaluated` and of `smoothed_sums`."""
    rows, blocks, _, sums = evaluated(raw, terms, state.at)
    for cut in (slice(start, start + SLICE) for start in range(0, rows.n, SLICE)):
        sums += smoothed_sums(rows.X[cut], [block.at(cut) for block in blocks], state, smooth)
    return sums


def smoothed_sums(X: Matrix, blocks: list[Block], state: Progress, smooth: Smooth) -> Sums:
    """Return derivatives of the J smoothed blocks with respect to (w, b), and sums over multipliers.

    A block is sum B phi(m) over the rows, with weights B, margins m = t f - o and the multipliers u, which
    are minus slopes of phi. `smooth` maps the parts of the blocks to their `smoothing.Blocks`.

    - smoothed, the smoothed blocks, (J,);
    - gradients and hessians, their derivatives, (J, d + 1) and (J, d + 1, d + 1);
    - shorter, the smoothed blocks after shorter steps, (number of LENGTHS, J);
    - stars, sum B (phi*(-u) - u o), linear, sum B t u (x, 1), and masses, sum B, (J, 2), (J, 2, d + 1) and
      (J, 2). Axis 1 separates the rows with t u <= 0 and t u > 0.
    """
    hypotheses = np.vstack([state.at, state.base, *state.centres[1:]])
    here, before, *centres = (X @ hypotheses[:, :-1].T + hypotheses[:, -1]).T
    parts, first = split(blocks)
    smoothed = smooth(parts)
    kinked = np.array([part.atom.facts.quadratic is not None for part in parts])
    centre = smoothed.middle()
    for scores, tau in zip(centres, state.taus[1:].tolist(), strict=True):
        centre[kinked] = smoothed.smoothed(scores, centre, tau, only=kinked).u[kinked]
    is_centre = len(centres) > 0 and np.array_equal(hypotheses[0], hypotheses[-1])
    at = smoothed.smoothed(here, centre, state.tau)
    steps = (before + t * (here - before) for t in LENGTHS)
    shorter = np.array([smoothed.smoothed(step, centre, state.tau).values for step in steps])
    # The gradient of the smoothed objective was nearly 0 where this hypothesis became the centre.
    u = np.add.reduceat(np.where(is_centre & kinked[:, None], centre, at.u), first, axis=0)
    features = Features(sorted_csr(X), RowThreads(len(here), X.shape[1], 1))
    slopes = np.add.reduceat(smoothed.slopes * at.u, first, axis=0)
    bent = np.add.reduceat(smoothed.slopes * smoothed.targets * at.curvature, first, axis=0)
    upper = np.stack([np.triu(features.gram(row)) for row in bent])
    slope = np.stack([np.clip(row, *b.atom.facts.slopes) for row, b in zip(u, blocks, strict=True)])
    star = np.stack([b.weights * b.conjugates(-row) for row, b in zip(slope, blocks, strict=True)])
    weights = np.stack([block.weights for block in blocks])
    lines = -weights * np.stack([block.targets for block in blocks]) * slope
    sides = np.stack([lines <= 0, lines > 0], axis=1)
    return Sums(
        smoothed=np.add.reduceat(at.values, first),
        gradients=sums_of(X, slopes),
        hessians=upper + np.triu(upper, 1).swapaxes(1, 2),
        shorter=np.add.reduceat(shorter, first, axis=1),
        stars=np.where(sides, star[:, None], 0.0).sum(axis=2),
        linear=sums_of(X, np.where(sides, lines[:, None], 0.0)),
        masses=np.where(sides, weights[:, None], 0.0).sum(axis=2),
    )


def split(blocks: Any) -> tuple[list[Block], list[int]]:
    """Return the hinge-like and smooth parts of all blocks, and the number of each block's first part.

    An atom whose formula is evaluated numerically is not split.
    """
    parts = [[replace(block, atom=atom) for atom in block.atom.parts or (block.atom,)] for block in blocks]
    return list(chain.from_iterable(parts)), np.cumsum([0, *map(len, parts)])[:-1].tolist()


def begin(state: Progress) -> Progress:
    """Return the state before the first pass, at the best hypothesis."""
    h = state.best
    return replace(state, at=h, base=h, level=np.inf, centres=h[None], taus=np.zeros(1), tau=WARM_TAU)


def work(problem: ChunkedProblem, state: Progress) -> Callable[[ChunkRows], Sums]:
    """Return the function that the pass at ``state.at`` applies to every chunk."""
    parts, first = split(problem.sample.blocks)
    factors = np.repeat(term_weights(problem.sample), np.diff([*first, len(parts)]))
    units = smoothing.block_units(parts, intercept=problem.sample.intercept)[1]
    smooth = partial(smoothing.Blocks, factors=factors, units=units)
    return partial(smoothed_pass, terms=problem.terms, state=state, smooth=smooth)


def next_state(problem: ChunkedProblem, state: Progress, done: Any, found: Sums, tol: float) -> Progress:
    """Return the state with a new lower bound and the next hypothesis.

    `found` is the result of the pass; `done`, its function, is not used.
    """
    from nerm.atoms.custom_regularizer import model_minimum

    n, sample = problem.terms.divisor, problem.sample
    factors, omegas, h = term_weights(sample), parts_of(sample.regularizers), state.at
    row = float(factors @ found["masses"].sum(axis=1)) / n**2
    ridge = INTERCEPT_RIDGE * min(square_weight(sample.regularizers) or row, row)

    def level(values: Floats, h: Floats) -> float:
        return problem.value(values, h[:-1]).total + 0.5 * ridge * (h[-1] - state.centres[-1, -1]) ** 2

    bound = max(state.bound, dual_bound(problem, found, state.thetas))
    here = level(found["smoothed"], h)
    if here > state.level + problem.n * EPS * abs(state.level):
        steps = [state.base + t * (h - state.base) for t in LENGTHS]
        levels = [level(values, one) for values, one in zip(found["shorter"], steps, strict=True)]
        best = int(np.argmin(levels))
        # Two steps in a row were too long: tau is too small for a quadratic model.
        tau = min(state.tau / SHRINK, COLD_TAU) if state.failed else state.tau
        state = replace(state, at=steps[best], bound=bound, tau=tau, failed=not state.failed)
        return replace(
            state, level=np.inf if levels[best] <= state.level or tau != state.tau else state.level
        )
    last, offset = np.eye(len(h))[-1], h[-1] - state.centres[-1, -1]
    model = (
        np.append(found["smoothed"] / n, 0.5 * offset**2),
        np.vstack([found["gradients"] / n, offset * last]),
        np.concatenate([found["hessians"] / n, np.outer(last, last)[None]]),
    )
    sides = np.array([*(block.side for block in sample.blocks), 0])
    given = np.append(factors, ridge), sides, omegas, h[:-1], sample.intercept
    step, thetas = model_minimum(model, *given, score_unit(sample.blocks, intercept=True)[1])
    if all(isinstance(atom, SquaredL2 | L1) for _, atom in omegas):
        step, thetas = polished(model, given, step, thetas)
    bound = max(bound, dual_bound(problem, found, thetas))
    # the duality gap of the smoothed problem at h, and the decrease that the model predicts
    nu = factors * shares(sample.blocks, thetas)
    gradient = nu @ found["gradients"] / n
    omega = conjugate_of_sum(omegas, -gradient[:-1], sample.hypothesis.squared_norm)
    dual = omega.shrink * (nu @ found["smoothed"] / n - gradient[:-1] @ h[:-1]) - omega.value
    left = problem.value(found["smoothed"], h[:-1]).total - dual + abs(gradient[-1])
    curved = np.einsum("d,jde,e->j", step, found["hessians"], step)
    predicted = here - level(found["smoothed"] + found["gradients"] @ step + 0.5 * curved, h + step)
    at = h + step
    failed = state.failed and np.isinf(state.level)
    state = replace(state, failed=failed, at=at, base=h, thetas=thetas, bound=bound, level=here)
    gap, size = state.value - bound, tol * abs(state.value)
    is_smooth = all(part.atom.facts.quadratic is None for part in split(sample.blocks)[0])
    is_solved = left <= INNER * max(gap, size) or predicted <= INNER**3 * size
    if is_smooth or not is_solved:
        return state
    centres, taus = np.vstack([state.centres, at]), np.append(state.taus, state.tau)
    # smoothing with a larger tau is easier, and with a smaller one the next centre is better
    tau = state.tau * (SHRINK if gap > SHRINK * state.gap else 1.0)
    return replace(state, centres=centres, taus=taus, tau=tau, level=np.inf, gap=gap)


def polished(
    model: tuple[Floats, Floats, Floats], given: Any, step: Floats, thetas: Floats
) -> tuple[Floats, Floats]:
    """Return the minimum of the model after two Newton steps from `step` and `thetas`.

    Omega must be (mu/2) ||w||^2 + lam ||w||_1. The dual bound contains ||residual||^2 / (2 mu), or divides
    the residual by lam, for the residual of the first of these conditions. So it needs a more accurate
    minimum than a conic solver finds::

        sum_j nu_j grad q_j(step) + mu (v, 0) + lam (sign v, 0) = 0,    v = w + step_w,
        q_k^+(step) = q_k^-(step) if 0 < theta_k < 1,

    where nu_j is the weight of block j, times theta or 1 - theta for a side. With lam > 0, entries of v that
    are nearly 0 stay at 0. `model` and `given` are the arguments of
    `nerm.atoms.custom_regularizer.model_minimum`. If a theta leaves [0, 1] or a sign changes, `step` and
    `thetas` are returned unchanged.
    """
    values, gradients, hessians = model
    factors, sides, omegas, coef, intercept = given
    plus, mu = np.flatnonzero(sides == 1), np.append(np.full(len(coef), square_weight(omegas)), 0.0)
    lam = sum(weight for weight, atom in omegas if isinstance(atom, L1))
    v = coef + step[:-1]
    moved = (np.abs(v) > HALF_DIGITS * np.abs(v).max()) | (lam == 0)
    signs = np.append(np.where(moved, np.sign(v), 0.0), 0.0)
    at, weights = np.concatenate([np.where(moved, v, 0.0) - coef, step[-1:], thetas]), factors.copy()
    inside = np.minimum(thetas, 1 - thetas) > HALF_DIGITS
    kept = np.flatnonzero(np.concatenate([moved, [intercept], inside]))
    for _ in range(2):
        new, share = np.split(at, [len(step)])
        slopes = gradients + hessians @ new
        levels = values + 0.5 * (gradients + slopes) @ new
        weights[plus], weights[plus + 1] = factors[plus] * share, factors[plus] * (1 - share)
        lines = factors[plus, None] * (slopes[plus] - slopes[plus + 1])
        apart = factors[plus] * (levels[plus] - levels[plus + 1])
        curved = np.tensordot(weights, hessians, 1) + np.diag(mu)
        system = np.block([[curved, lines.T], [lines, np.zeros((len(plus), len(plus)))]])
        penalty_slope = mu * (np.append(coef, 0.0) + new) + lam * signs
        right = -np.concatenate([weights @ slopes + penalty_slope, apart])
        at[kept] += np.linalg.lstsq(system[np.ix_(kept, kept)], right[kept], rcond=None)[0]
    new, share = np.split(at, [len(step)])
    same = lam == 0 or np.array_equal(np.sign(coef + new[:-1]), signs[:-1])
    return (new, share) if same and np.all((share >= 0) & (share <= 1)) else (step, thetas)


def dual_bound(problem: ChunkedProblem, found: Sums, thetas: Floats) -> float:
    """Return the dual bound of the multipliers u, from sums over rows.

    The sums are scaled by factors s in [0, 1] so that the weighted duals c_i add up to 0 and the conjugate
    Omega* of the regularizer is finite at sum_i c_i x_i / n. By convexity::

        phi*(-s u) <= s phi*(-u) + (1 - s) phi*(0),

    so the bound stays valid. Return -inf if no such factors exist.
    """
    n, sample = problem.terms.divisor, problem.sample
    nu = term_weights(sample) * shares(sample.blocks, thetas)
    at_zero = np.array([[float(block.atom.conjugate(0.0))] for block in sample.blocks])
    scalable = np.isfinite(at_zero)
    scale = np.ones(found["stars"].shape)
    c = nu[:, None] * found["linear"][:, :, -1]
    if sample.intercept and c.sum():
        heavy = scalable & (np.sign(c.sum()) * c > 0)
        if not heavy.any() or not (wanted := 1 - c.sum() / c[heavy].sum()) >= 0:
            return -np.inf
        scale[heavy] = wanted
    q = np.einsum("j,js,jsd->d", nu, scale, found["linear"])[:-1] / n
    omega = conjugate_of_sum(parts_of(sample.regularizers), q, sample.hypothesis.squared_norm)
    if omega.shrink < 1 and not scalable.all():
        return -np.inf
    scale = omega.shrink * scale
    rest = (1 - scale) * np.where(scalable, at_zero, 0.0)
    stars = scale * found["stars"] + rest * found["masses"]
    return float(-(nu @ stars.sum(axis=1)) / n - omega.value)
