"""A problem as arrays, the iterate on it, and the passes over its rows.

Sums are not divided by n here: the engine works with n P, so that lam = mu n multiplies ||w||^2 / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nerm.model.blocks import Block
from nerm.solvers.interior_point import passes
from nerm.solvers.interior_point.matrices import Features
from nerm.solvers.interior_point.norms import Pulls
from nerm.solvers.interior_point.passes import AFFINE, HIGH, KIND, LOW, MOVING, SMOOTH
from nerm.typing import Floats, Ints


class Data(NamedTuple):
    """What does not change: t and B, each (J, n), and a line for each block, (J, 7)."""

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
    """Where the method stands: hypothesis, scores, nu and sigma of both sides of each term, and the duals of all rows.

    Attributes
    ----------
    coef, intercept, scores
        The hypothesis in the engine's coordinates, and X w + b, (n,).
    nu, sigma
        The multipliers of the two sides of each neutrality term and their slacks, (K, 2).
    duals
        u, p^+ and p^- of every row, (J, n) each.
    pulls
        The same for the norms of w.
    """

    coef: Floats
    intercept: float
    scores: Floats
    nu: Floats
    sigma: Floats
    duals: Duals
    pulls: Pulls


@dataclass
class Linearisation:
    """The Newton system at a state: (X, 1)'(c, h, e_1, ...) in columns, the density of rows, and sums for each block.

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
    """Return the lines that compiled code reads of blocks: risks first, then the two sides of each term."""
    lines: list[tuple[float, ...]] = []
    for block in blocks:
        linear, quadratic = block.atom.facts.quadratic or (0.0, 0.0)
        low, high = block.atom.facts.slopes
        kind = SMOOTH if block.atom.facts.quadratic is None else AFFINE if low == high else MOVING
        term = sum(line[passes.SIGN] > 0 for line in lines) - (block.side < 0)
        lines.append((linear, quadratic, low, high, kind, block.side, 2 + term if block.side else 0))
    return np.array(lines, dtype=float).reshape(-1, 7)


def fours(count: int, n: int) -> Floats:
    """Return room for `count` vectors of n rows, in whole fours of lines, which `Features.columns` takes at once."""
    return np.zeros((-(-count // 4) * 4, n))


class Arrays:
    """Targets, weights and features of all blocks, what settled rows add to them, and room for one direction.

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
    pull, settled
        What rows that have left add to every block: the forces (X, 1)'(B t u), (J, d + 1), and sum B phi*(u),
        (J,).
    """

    def __init__(self, blocks: Sequence[Block], features: Features) -> None:
        lines = table(blocks)
        weights = np.vstack([block.weights for block in blocks])
        targets = np.vstack([block.targets for block in blocks])
        # A row without weight must not hold up the others: with target 0 its margin never moves.
        self._fill(blocks, features, Data(np.where(weights == 0, 0.0, targets), weights, lines))
        self.mass = weights.sum(axis=1)
        self.pull, self.settled = np.zeros((len(blocks), features.shape[1] + 1)), np.zeros(len(blocks))

    def _fill(self, blocks: Sequence[Block], features: Features, data: Data) -> None:
        self.blocks, self.features, self.data = tuple(blocks), features, data
        self.kinds, self.low, self.high = data.table[:, KIND], data.table[:, LOW], data.table[:, HIGH]
        self.singles = sum(block.side == 0 for block in blocks)
        self.terms = (len(blocks) - self.singles) // 2
        self.total = data.weights.sum(axis=1)
        self.moving = (self.kinds == MOVING) * self.total
        self.ends = self.moving * (np.isfinite(self.low).astype(int) + np.isfinite(self.high))
        self.smooth = [j for j, kind in enumerate(self.kinds) if kind == SMOOTH]
        n = features.shape[0]
        self._vectors, self._density, self._h = fours(2 + self.terms, n), np.zeros(n), np.zeros((1, n))
        self.move = Move(*np.zeros((4, len(blocks), n)))

    def fewer(self, rows: Ints, pull: Floats, settled: Floats) -> Arrays:
        """Return these rows alone, with what the others add."""
        few = object.__new__(Arrays)
        targets, weights = (np.ascontiguousarray(part[:, rows]) for part in self.data[:2])
        few._fill(self.blocks, self.features.some(rows), Data(targets, weights, self.data.table))
        few.mass, few.pull, few.settled = self.mass, self.pull + pull, self.settled + settled
        return few

    @property
    def n_rows(self) -> int:
        """The number of rows that are left."""
        return int(self.features.shape[0])

    def sides(self, values: Floats) -> Floats:
        """Return the entries of the sides, (K, 2), of one entry a block, (J,)."""
        return values[self.singles :].reshape(self.terms, 2)

    def _given(self, state: State) -> tuple[tuple[Floats, ...], ...]:
        """Return what passes read and write, as plain tuples."""
        return tuple(self.data), tuple(state.duals), tuple(self.move)

    def centre(self, scores: Floats, barrier: float, u: Floats | None, give: float) -> Duals:
        """Return all rows on the central path of their own scores, not far from u, and u of affine functions."""
        duals = Duals(*np.zeros((3, len(self.blocks), self.n_rows)))
        duals.u[:], give = (0.0, 0.0) if u is None else (u, give)
        duals.u[self.kinds == AFFINE] = self.low[self.kinds == AFFINE, None]
        given = tuple(self.data), tuple(duals), scores, barrier
        self.features.workers.run(lambda *part: passes.centre(*given, *part, give))
        return duals

    def values(self, scores: Floats, coef: Floats, intercept: float) -> Floats:
        """Return sum_i B_i phi(t_i f_i) for each block, phi replaced by its affine part on rows that have settled."""

        def work(start: int, stop: int) -> Floats:
            sums: Floats = passes.values(tuple(self.data), scores, start, stop)
            for j in self.smooth:
                m = self.data.targets[j, start:stop] * scores[start:stop]
                sums[j] = self.data.weights[j, start:stop] @ self.blocks[j].atom.value(m)
            return sums

        return self.features.workers.add_up(work) + self._beyond(coef, intercept)

    def _beyond(self, coef: Floats, intercept: float) -> Floats:
        """Return what the rows that have settled add to the value of each block."""
        return self.pull[:, :-1] @ coef + self.pull[:, -1] * intercept - self.settled

    def linearise(self, state: State, nu: Floats) -> Linearisation:
        """Return the Newton system at a state; nu has one entry a block. Smooth functions get u and kappa here."""
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
        columns[:, 0] += nu @ self.pull
        columns[:, 2:] += (self.pull[self.singles :: 2] - self.pull[self.singles + 1 :: 2]).T
        beyond = self._beyond(state.coef, state.intercept)
        value = power - conjugate + products + beyond  # from m = linear + quadratic u + p^+ - p^-
        conjugate += self.settled
        return Linearisation(
            columns, self._density, products, value, primal + beyond, conjugate, curve - products
        )

    def _smooth(self, j: int, state: State, part: slice) -> float:
        """Set u = phi'(m) and kappa = phi''(m); return sum B phi(m)."""
        atom, m = self.blocks[j].atom, self.data.targets[j, part] * state.scores[part]
        state.duals.u[j, part] = atom.subgradient(m)[0]
        self.move.kappa[j, part] = atom.curvature(m)
        return float(self.data.weights[j, part] @ atom.value(m))

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
        """Return the longest step along the direction that is safe for every row."""
        return float(
            min(self.features.workers.run(lambda *part: passes.longest_step(*self._given(state), nu, *part)))
        )

    def advance(self, state: State, step: float, keep: float, curved_keep: float) -> None:
        """Move the duals of every row along the direction; the scores are those after the step."""
        keeps = np.where(self.data.table[:, passes.QUADRATIC] > 0, curved_keep, keep)
        given = *self._given(state), state.scores, step, keeps
        self.features.workers.run(lambda *part: passes.advance(*given, *part))
