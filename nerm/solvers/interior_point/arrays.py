"""A problem as arrays, the iterate on it, the passes over its rows, its primal value and dual bound.

Sums are not divided by n here: the method works with n P, so that lam = mu n multiplies ||w||^2 / 2, and

    n D = - sum_j nu_j sum_i B_ji phi_j*(u_ji) - ||X'c||^2 / (2 lam),      c_i = sum_j nu_j B_ji t_ji u_ji,

with sum_i c_i = 0 for a free intercept. Rows with fixed u are part of the bound, so it holds for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np

from nerm.atoms.jets import STEEPEST
from nerm.model.blocks import Block, pair_numbers
from nerm.solvers.interior_point import passes
from nerm.solvers.interior_point.matrices import Features
from nerm.solvers.interior_point.norms import NormDuals
from nerm.solvers.interior_point.passes import AFFINE, HIGH, KIND, LOW, MOVING, SMOOTH, options
from nerm.typing import Floats, Ints

EPS = np.finfo(float).eps
NEARLY = EPS**0.5  # relative difference at which two sums over all rows count as equal
BALANCED = 1e-11  # |sum c| / sum |c| up to which dual variables are feasible


class Data(NamedTuple):
    """t and B, each (J, n), and one line of facts per block, (J, 7)."""

    targets: Floats
    weights: Floats
    table: Floats


class Duals(NamedTuple):
    """u, p^+ and p^- of every row, each (J, n)."""

    u: Floats
    upper: Floats
    lower: Floats


class Move(NamedTuple):
    """kappa, du, over and under of every row, each (J, n): the direction of one step."""

    kappa: Floats
    du: Floats
    over: Floats
    under: Floats


@dataclass
class State:
    """The iterate: hypothesis, scores, and all dual variables.

    Attributes
    ----------
    coef, intercept, scores
        The hypothesis in the engine's coordinates, and X w + b, (n,).
    nu, sigma
        The multipliers of the two sides of each neutrality term and their slacks, (K, 2).
    duals
        u, p^+ and p^- of every row, (J, n) each.
    norms
        The dual variables of the norms of w.
    """

    coef: Floats
    intercept: float
    scores: Floats
    nu: Floats
    sigma: Floats
    duals: Duals
    norms: NormDuals


@dataclass
class Linearisation:
    """The Newton system at a state.

    Attributes
    ----------
    columns
        (d + 1, 2 + K): the row vectors c, h and e_k times (X, 1).
    density
        (n,), the weights of rows in the Gram matrix.
    products, value, primal, conjugate, change
        (J,), sums of B times p^+ A + p^- C, phi as the multipliers see it, phi(m), phi*(u), and the change of
        the value that does not depend on df, along the affine direction.
    """

    columns: Floats
    density: Floats
    products: Floats
    value: Floats
    primal: Floats
    conjugate: Floats
    change: Floats


def table(blocks: Sequence[Block]) -> Floats:
    """Return the table of blocks for compiled code: single blocks first, then both sides of each pair."""
    lines: list[tuple[float, ...]] = []
    for block, pair in zip(blocks, pair_numbers(blocks), strict=True):
        linear, quadratic = block.atom.facts.quadratic or (0.0, 0.0)
        low, high = block.atom.facts.slopes
        kind = SMOOTH if block.atom.facts.quadratic is None else AFFINE if low == high else MOVING
        lines.append((linear, quadratic, low, high, kind, block.side, 2 + pair if block.side else 0))
    return np.array(lines, dtype=float).reshape(-1, 7)


def fours(count: int, n: int) -> Floats:
    """Return zeros, (count, n), count rounded up to a multiple of 4, as `Features.columns` needs."""
    return np.zeros((-(-count // 4) * 4, n))


class Arrays:
    """Targets, weights and features of all blocks, and one direction.

    Attributes
    ----------
    singles, terms
        The numbers of blocks that are a term of their own, which come first, and of terms that are two
        blocks.
    mass, total
        (J,) the weight of all rows, and of those that are left.
    moving, ends
        (J,) the weight of rows whose u moves on its own, and the same for each end of its domain, which has a
        barrier.
    fixed_gradient, fixed_conjugate
        The part of the rows with fixed u in each block: (X, 1)'(B t u), (J, d + 1), and sum B phi*(u), (J,).
    """

    def __init__(self, blocks: Sequence[Block], features: Features) -> None:
        lines = table(blocks)
        weights = np.vstack([block.weights for block in blocks])
        targets = np.vstack([block.targets for block in blocks])
        # With target 0 the margin of a row without weight is constant: it does not limit any step.
        self._fill(blocks, features, Data(np.where(weights == 0, 0.0, targets), weights, lines))
        self.mass = weights.sum(axis=1)
        self.fixed_gradient, self.fixed_conjugate = (
            np.zeros((len(blocks), features.shape[1] + 1)),
            np.zeros(len(blocks)),
        )

    def _fill(self, blocks: Sequence[Block], features: Features, data: Data) -> None:
        self.blocks, self.features, self.data = tuple(blocks), features, data
        self.kinds, self.low, self.high = data.table[:, KIND], data.table[:, LOW], data.table[:, HIGH]
        self.singles = sum(block.side == 0 for block in blocks)
        self._pairs = np.array(pair_numbers(blocks)[self.singles :], dtype=int)
        self._minus = np.array([int(block.side < 0) for block in blocks[self.singles :]], dtype=int)
        self.terms = int(self._pairs.max(initial=-1)) + 1
        self._first = self.singles + np.unique(self._pairs, return_index=True)[1]
        self.total = data.weights.sum(axis=1)
        self.moving = (self.kinds == MOVING) * self.total
        self.ends = self.moving * (np.isfinite(self.low).astype(int) + np.isfinite(self.high))
        self.smooth = [j for j, kind in enumerate(self.kinds) if kind == SMOOTH]
        n = features.shape[0]
        self._vectors, self._density, self._h = fours(2 + self.terms, n), np.zeros(n), np.zeros((1, n))
        self.move = Move(*np.zeros((4, len(blocks), n)))

    def of_rows(self, rows: Ints, gradient: Floats, conjugate: Floats) -> Arrays:
        """Return these rows alone; u of the others is fixed."""
        few = object.__new__(Arrays)
        targets, weights = (np.ascontiguousarray(part[:, rows]) for part in self.data[:2])
        few._fill(self.blocks, self.features.some(rows), Data(targets, weights, self.data.table))
        few.mass, few.fixed_gradient, few.fixed_conjugate = (
            self.mass,
            self.fixed_gradient + gradient,
            self.fixed_conjugate + conjugate,
        )
        return few

    @property
    def n_rows(self) -> int:
        """The number of rows that are left."""
        return int(self.features.shape[0])

    def sides(self, values: Floats) -> Floats:
        """Add up the blocks of each side: (K, 2, ...) from one entry per block, (J, ...)."""
        if len(self._pairs) == 2 * self.terms:  # one block per side
            return values[self.singles :].reshape(self.terms, 2, *values.shape[1:])
        sums = np.zeros((self.terms, 2, *values.shape[1:]))
        np.add.at(sums, (self._pairs, self._minus), values[self.singles :])
        return sums

    def by_block(self, singles: Floats, sides: Floats) -> Floats:
        """Return one entry per block, (J,), from those of single blocks and of sides, (K, 2)."""
        return np.concatenate([singles, sides[self._pairs, self._minus]])

    def of_terms(self, values: Floats) -> Floats:
        """Return the entry of each two-sided term, (K,), from one entry per block, (J,)."""
        return values[self._first]

    def _given(self, state: State) -> tuple[tuple[Floats, ...], ...]:
        """Return the arguments of the compiled passes, as plain tuples."""
        return tuple(self.data), tuple(state.duals), tuple(self.move)

    def centre(self, scores: Floats, barrier: float, u: Floats | None, proximity: float) -> Duals:
        """Return all rows on the central path of their own scores, near u if it is given."""
        duals = Duals(*np.zeros((3, len(self.blocks), self.n_rows)))
        if u is not None:
            duals.u[:] = u
        duals.u[self.kinds == AFFINE] = self.low[self.kinds == AFFINE, None]
        given = tuple(self.data), tuple(duals), scores, barrier
        self.features.workers.run(lambda *part: passes.centre(*given, *part, proximity))
        return duals

    def values(self, scores: Floats, coef: Floats, intercept: float) -> Floats:
        """Return sum_i B_i phi(t_i f_i) for each block, affine where u is fixed."""

        def work(start: int, stop: int) -> Floats:
            sums: Floats = passes.values(tuple(self.data), scores, start, stop)
            for j in self.smooth:
                m = self.data.targets[j, start:stop] * scores[start:stop]
                sums[j] = self.data.weights[j, start:stop] @ self.blocks[j].atom.value(m)
            return sums

        return self.features.workers.add_up(work) + self._beyond(coef, intercept)

    def _beyond(self, coef: Floats, intercept: float) -> Floats:
        """Return the value of the rows with fixed u in each block."""
        return (
            self.fixed_gradient[:, :-1] @ coef + self.fixed_gradient[:, -1] * intercept - self.fixed_conjugate
        )

    def linearise(self, state: State, nu: Floats) -> Linearisation:
        """Return the Newton system at a state; set u and kappa of smooth blocks."""
        vectors, given = self._vectors, self._given(state)

        def work(start: int, stop: int) -> Floats:
            values = [self._smooth(j, state, slice(start, stop)) for j in self.smooth]
            sums: Floats = passes.linearise(*given, nu, state.scores, vectors, self._density, start, stop)
            sums[self.smooth, 2] = values
            return sums

        products, power, primal, conjugate, curve = self.features.workers.add_up(work).T
        conjugate[self.smooth] = (power - primal)[self.smooth]  # there phi(m) + phi*(u) = u m
        few = vectors[: 2 + self.terms]
        columns = np.vstack([self.features.columns(vectors)[:, : len(few)], few.sum(axis=1)])
        columns[:, 0] += nu @ self.fixed_gradient
        plus, minus = np.moveaxis(self.sides(self.fixed_gradient), 1, 0)
        columns[:, 2:] += (plus - minus).T
        beyond = self._beyond(state.coef, state.intercept)
        value = power - conjugate + products + beyond  # from m = linear + quadratic u + p^+ - p^-
        conjugate += self.fixed_conjugate
        return Linearisation(
            columns, self._density, products, value, primal + beyond, conjugate, curve - products
        )

    def _smooth(self, j: int, state: State, part: slice) -> float:
        """Set u = phi'(m) and kappa = phi''(m); return sum B phi(m)."""
        atom, m = self.blocks[j].atom, self.data.targets[j, part] * state.scores[part]
        jet = atom.derived.jet(m)
        state.duals.u[j, part] = jet.low
        self.move.kappa[j, part] = np.minimum(jet.curvature, STEEPEST)
        return float(self.data.weights[j, part] @ jet.value)

    def direct(self, state: State, nu: Floats, df: Floats, *, corrected: bool) -> Floats:
        """Set du along df; return the weight of rows by the longest step that they allow."""
        given = self._given(state)
        return self.features.workers.add_up(lambda *part: passes.direct(*given, nu, df, corrected, *part))

    def correct(
        self, state: State, nu: Floats, dnu: Floats, target: float, limit: float
    ) -> tuple[Floats, Floats]:
        """Return the corrected right-hand side, (X, 1)'h, and the changes of the blocks' values."""
        given = *self._given(state), nu, dnu, target, limit, self._h[0]
        changes = self.features.workers.add_up(lambda *part: passes.correct(*given, *part))
        return np.append(self.features.columns(self._h)[:, 0], self._h.sum()), changes

    def longest_step(self, state: State, nu: Floats) -> float:
        """Return the longest step that keeps u, p^+ and p^- of every row within their bounds."""
        return float(
            min(self.features.workers.run(lambda *part: passes.longest_step(*self._given(state), nu, *part)))
        )

    def advance(self, state: State, step: float, keep: float, curved_keep: float) -> None:
        """Move the duals of every row along the direction; the scores are those after the step."""
        keeps = np.where(self.data.table[:, passes.QUADRATIC] > 0, curved_keep, keep)
        given = *self._given(state), state.scores, step, keeps
        self.features.workers.run(lambda *part: passes.advance(*given, *part))


def primal_value(arrays: Arrays, values: Floats, factors: Floats, regularizer: float) -> float:
    """Return n P from sum B phi(m) of each block."""
    risks = factors[: arrays.singles] @ values[: arrays.singles]
    larger = arrays.sides(values).max(axis=1, initial=-np.inf)
    return float(regularizer + risks + arrays.of_terms(factors) @ larger)


def weighted_duals(arrays: Arrays, u: Floats, nu: Floats) -> Floats:
    """Return c_i = sum_j nu_j B_ji t_ji u_ji of the rows that are left."""
    return np.asarray(np.einsum("j,ji,ji,ji->i", nu, arrays.data.weights, arrays.data.targets, u))


@numba.njit(**options)
def _shift(data, nu, u, against, share):  # type: ignore[no-untyped-def]
    """Move each u by a share of its distance to a bound, so that t u moves against the sign `against`.

    If that bound is infinite, the distance to the other bound is taken, or 1 without any. Return the
    decrease of `against` * sum c for share 1.
    """
    targets, weights, table = data
    total = 0.0
    for j in range(u.shape[0]):
        lo, hi = table[j, LOW], table[j, HIGH]
        if table[j, KIND] == AFFINE:
            continue
        for i in range(u.shape[1]):
            t = targets[j, i]
            if t == 0.0:
                continue
            below = u[j, i] - lo if np.isfinite(lo) else hi - u[j, i] if np.isfinite(hi) else 1.0
            above = hi - u[j, i] if np.isfinite(hi) else u[j, i] - lo if np.isfinite(lo) else 1.0
            way = -below if against * t > 0 else above
            total -= against * nu[j] * weights[j, i] * t * way
            if share > 0:
                u[j, i] = min(max(u[j, i] + share * way, lo), hi)
    return total


def balanced(arrays: Arrays, u: Floats, nu: Floats) -> Floats | None:
    """Return u with sum_i c_i = 0, each moved by one share of its distance to a bound; None if impossible."""
    u = u.copy()
    for _ in range(3):  # the second and third rounds take back what rounding left
        excess = float(weighted_duals(arrays, u, nu).sum() + nu @ arrays.fixed_gradient[:, -1])
        if excess == 0:
            break
        sign = 1.0 if excess > 0 else -1.0
        possible = _shift(tuple(arrays.data), nu, u, sign, 0.0)
        if possible < (1 - NEARLY) * abs(excess):
            return None
        # All the way means exactly to the bound, which a share of 1 - 1e-16 would miss.
        share = 1.0 if possible <= (1 + NEARLY) * abs(excess) else abs(excess) / possible
        _shift(tuple(arrays.data), nu, u, sign, share)
    return u if is_balanced(arrays, u, nu) else None


def is_balanced(arrays: Arrays, u: Floats, nu: Floats) -> bool:
    """Tell whether sum_i c_i = 0 up to rounding.

    |sum_i c_i| must be at most BALANCED times sum_i |c_i|. If the terms that different blocks add to c_i
    cancel, their rounding error is allowed as well: EPS times the sum of their absolute values, but at most
    NEARLY times sum_i |c_i|.
    """
    c, beyond = weighted_duals(arrays, u, nu), nu * arrays.fixed_gradient[:, -1]
    left, size = abs(float(c.sum() + beyond.sum())), float(np.abs(c).sum() + abs(beyond.sum()))
    if left <= BALANCED * size:
        return True
    gross = float(
        nu @ np.abs(arrays.data.weights * arrays.data.targets * u).sum(axis=1) + np.abs(beyond).sum()
    )
    return bool(left <= min(EPS * gross, NEARLY * size))


def dual_bound(
    arrays: Arrays, u: Floats, nu: Floats, conjugate: Callable[[Floats, float], float], *, intercept: bool
) -> tuple[float, Floats]:
    """Return (n D, feasible u) for any u in its domains; -inf if sum c = 0 cannot be attained.

    `conjugate` is the conjugate of the regularizer at X'c, ||X'c||^2 / (2 lam) for a ridge.
    """
    feasible = balanced(arrays, u, nu) if intercept else u.copy()
    if feasible is None:
        return -np.inf, u
    g = (
        arrays.features.columns(weighted_duals(arrays, feasible, nu)[None, :])[:, 0]
        + nu @ arrays.fixed_gradient[:, :-1]
    )
    stars = [
        arrays.data.weights[j] @ block.atom.conjugate(feasible[j]) for j, block in enumerate(arrays.blocks)
    ]
    bound = -float(nu @ (arrays.fixed_conjugate + stars))
    return bound - conjugate(g, bound), feasible
