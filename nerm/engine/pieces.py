"""All pieces of a problem (see `nerm.engine.kernels`) with their state, and the passes over them.

Sums are not divided by n here: the engine works with n P, so that lam = mu n multiplies ||w||^2 / 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nerm.engine import kernels
from nerm.engine.margins import Margin, QuadraticConjugate, SmoothMargin
from nerm.engine.model import LinearModel
from nerm.engine.threads import Blocks

SAMPLE = 10_000  # rows of each block that decide on the length of a step


@dataclass
class Linearisation:
    """Row vectors of the Newton system, one line each of `vectors`, and sums for each piece."""

    vectors: np.ndarray  # c, h, then e_k
    density: np.ndarray
    products: np.ndarray  # (J,) sum B (p^+ A + p^- C)
    value: np.ndarray  # (J,) sum B phi as the multipliers see it
    primal: np.ndarray  # (J,) sum B phi(m)
    conjugate: np.ndarray  # (J,) sum B phi*(u)
    change: np.ndarray  # (J,) change of `value` that does not depend on df, along the affine direction


class Pieces:
    """Targets, weights and state of every piece: the losses first, then the two sides of each neutrality term."""

    def __init__(
        self,
        losses: list[Margin],
        surrogates: list[Margin],
        targets: np.ndarray,
        weights: np.ndarray,
        blocks: Blocks,
        settled: np.ndarray | None = None,
    ) -> None:
        """Take one margin a loss and one a neutrality term; targets and weights have a line for each piece, (J, n).

        The last rows may have settled: their multipliers, (J, few), stay as they are given.
        """
        self.n_losses, self.n_terms = len(losses), len(surrogates)
        self.losses, self.surrogates = losses, surrogates
        self.margins = losses + [margin for margin in surrogates for _ in "+-"]
        self.term = np.array([-1] * len(losses) + [k for k in range(len(surrogates)) for _ in "+-"])
        self.sign = np.array([0.0] * len(losses) + [1.0, -1.0] * len(surrogates))
        # A row without weight must not hold up the others: with target 0 its margin never moves.
        self.targets, self.weights = np.where(weights == 0, 0.0, targets), weights
        self.moving = weights.shape[1] - (0 if settled is None else settled.shape[1])
        self.total = self.weights[:, : self.moving].sum(axis=1)  # of the rows that move
        self.eta = np.ones(len(surrogates))
        self.blocks = blocks.fewer(self.moving)
        self._allocate()
        if settled is not None:
            self.u[:, self.moving :] = settled

    @classmethod
    def of(cls, model: LinearModel, merged: tuple[np.ndarray, np.ndarray] | None, blocks: Blocks) -> Pieces:
        """Return the pieces of a model, its equal rows merged."""

        def add_up(weights: np.ndarray) -> np.ndarray:
            return weights if merged is None else np.bincount(merged[0], weights, len(merged[1]))

        def first(values: np.ndarray) -> np.ndarray:
            return values if merged is None else values[merged[1]]

        losses, terms = model.losses, model.neutralities
        y, views = first(model.y), [first(term.viewpoint) for term in terms]
        targets = np.vstack([y for _ in losses] + [sign * v for v in views for sign in (1.0, -1.0)])
        weights = [add_up(term.weights) for term in losses] + [add_up(t.weights) for t in terms for _ in "+-"]
        return cls([t.margin for t in losses], [t.margin for t in terms], targets, np.vstack(weights), blocks)

    def _allocate(self) -> None:
        shape = self.targets.shape
        self.u, self.upper, self.lower, self.kappa, self.du = (np.zeros(shape) for _ in range(5))
        self._upper_second, self._lower_second = np.zeros(shape), np.zeros(shape)
        for j, margin in enumerate(self.margins):
            if isinstance(margin, QuadraticConjugate) and margin.fixed:
                self.u[j] = margin.low

    @property
    def count(self) -> int:
        """The number of pieces J."""
        return len(self.margins)

    @property
    def n_rows(self) -> int:
        """The number of (merged) rows."""
        return int(self.targets.shape[1])

    def of_each(self, nu: np.ndarray) -> np.ndarray:
        """Return the multiplier of each piece, (J,): 1 for a loss, nu, (K, 2), for a side."""
        return np.concatenate([np.ones(self.n_losses), nu.ravel()])

    def sides(self, values: np.ndarray) -> np.ndarray:
        """Return the entries of the sides, (K, 2), of one entry a piece, (J,)."""
        return values[self.n_losses :].reshape(-1, 2)

    def quadratic(self, j: int) -> QuadraticConjugate | None:
        """Return the conjugate of piece j if its u moves on its own (quadratic, not a single point)."""
        margin = self.margins[j]
        return margin if isinstance(margin, QuadraticConjugate) and not margin.fixed else None

    @property
    def all_smooth(self) -> bool:
        """Tell whether every piece is differentiable as it stands, so that there is nothing to smooth."""
        return all(self.quadratic(j) is None for j in range(self.count))

    @property
    def some_smooth(self) -> bool:
        """Tell whether a piece has a curvature that changes, so that Newton's step may be too long."""
        return any(isinstance(margin, SmoothMargin) for margin in self.margins)

    def bounds_count(self) -> np.ndarray:
        """Return for each piece the number of finite ends of its domain that carry a barrier."""
        return np.array(
            [
                0 if (q := self.quadratic(j)) is None else int(np.isfinite(q.low)) + int(np.isfinite(q.high))
                for j in range(self.count)
            ]
        )

    def refresh(self, f: np.ndarray) -> None:
        """Set u = phi'(m) and kappa = phi''(m) of the smooth pieces at the scores f."""
        for j, margin in enumerate(self.margins):
            if isinstance(margin, SmoothMargin):
                m = self.targets[j] * f
                self.u[j] = margin.derivative(m)
                self.kappa[j] = margin.curvature(m)

    def centre(self, f: np.ndarray, barrier: float) -> None:
        """Put every piece on the central path of its own scores."""
        self.refresh(f)
        if not f.any():  # a cold start: all rows are alike
            self._centre_alike(barrier)
            return

        def work(start: int, stop: int) -> None:
            for j in range(self.count):
                if (q := self.quadratic(j)) is not None:
                    state = self.u[j], self.upper[j], self.lower[j], q.linear, q.quadratic, q.low, q.high
                    kernels.centre(self.targets[j], f, *state, barrier, start, stop)

        self.blocks.run(work)

    def _centre_alike(self, barrier: float) -> None:
        zero, state = np.zeros(1), np.zeros((3, 1))
        for j in range(self.count):
            if (q := self.quadratic(j)) is not None:
                kernels.centre(zero, zero, *state, q.linear, q.quadratic, q.low, q.high, barrier, 0, 1)
                for values, value in zip((self.u, self.upper, self.lower), state, strict=True):
                    values[j, : self.moving] = value

    def values(self, f: np.ndarray) -> np.ndarray:
        """Return sum_i B_i phi(t_i f_i) for each piece, phi replaced by its affine part on rows that have settled."""

        def work(start: int, stop: int) -> np.ndarray:
            sums, part = np.zeros(self.count), slice(start, stop)
            for j, margin in enumerate(self.margins):
                if (q := self.quadratic(j)) is not None:
                    row = self.targets[j], self.weights[j], f, q.linear, q.quadratic, q.low, q.high
                    sums[j] = kernels.total_value(*row, start, stop)
                else:
                    sums[j] = kernels.weigh(self.weights[j, part], margin.value(self.targets[j, part] * f[part]))
            return sums

        sums = np.sum(self.blocks.run(work), axis=0)
        if self.moving < self.n_rows:
            sums += [self._affine(j, f)[0] for j in range(self.count)]
        return np.asarray(sums)

    def linearise(self, f: np.ndarray, nu: np.ndarray) -> Linearisation:
        """Return the Newton system's row vectors and the sums of all pieces; nu has one entry a piece."""
        vectors = np.zeros((-(-(2 + self.n_terms) // 4) * 4, self.n_rows))  # whole fours, for `Features.columns`
        density = np.zeros(self.n_rows)

        def work(start: int, stop: int) -> np.ndarray:
            sums = np.zeros((self.count, 5))
            c, h = vectors[:2]
            for j in range(self.count):
                k = int(self.term[j])
                e = vectors[2 + k] if k >= 0 else vectors[0]  # a loss has sign 0 and adds nothing to e
                row = self.targets[j], self.weights[j], nu[j]
                if (q := self.quadratic(j)) is not None:
                    state = (
                        self.u[j],
                        self.upper[j],
                        self.lower[j],
                        q.linear,
                        q.quadratic,
                        q.low,
                        q.high,
                        self.kappa[j],
                    )
                    sums[j] = kernels.linearise(*row, f, *state, density, c, h, e, self.sign[j], start, stop)
                    continue
                given = *row, self.u[j], self.kappa[j]
                kernels.add_given(*given, density, c, e, self.sign[j], start, stop)
                part = slice(start, stop)
                m, b, u = self.targets[j, part] * f[part], self.weights[j, part], self.u[j, part]
                sums[j, 1] = sums[j, 2] = kernels.weigh(b, self.margins[j].value(m))
                sums[j, 3] = kernels.weigh(b, self.margins[j].conjugate(u))
            return sums

        sums = np.sum(self.blocks.run(work), axis=0)
        if self.moving < self.n_rows:
            self._add_settled(f, nu, vectors, sums)
        return Linearisation(vectors, density, *sums.T)

    def _affine(self, j: int, f: np.ndarray) -> tuple[float, float]:
        """Return sum B (u m - phi*(u)) and sum B phi*(u) over the rows that have settled."""
        part = slice(self.moving, None)
        b, u = self.weights[j, part], self.u[j, part]
        conjugate = kernels.weigh(b, self.margins[j].conjugate(u))
        return kernels.weigh(b * self.targets[j, part] * u, f[part]) - conjugate, conjugate

    def _add_settled(self, f: np.ndarray, nu: np.ndarray, vectors: np.ndarray, sums: np.ndarray) -> None:
        """Add the rows that have settled: forces that do not move."""
        part = slice(self.moving, None)
        for j in range(self.count):
            force = self.weights[j, part] * self.targets[j, part] * self.u[j, part]
            vectors[0, part] += nu[j] * force
            if (k := int(self.term[j])) >= 0:
                vectors[2 + k, part] += self.sign[j] * force
            value, conjugate = self._affine(j, f)
            sums[j, 1:4] += value, value, conjugate

    def predict(self, df: np.ndarray, nu: np.ndarray, dnu: np.ndarray, limit: float) -> tuple[np.ndarray, np.ndarray]:
        """Follow the affine direction; return the cross terms B t dnu du of all rows, and weights by longest step."""
        cross = np.zeros(self.n_rows)

        def work(start: int, stop: int) -> np.ndarray:
            for j in range(self.count):
                if (q := self.quadratic(j)) is not None:
                    state = self.u[j], self.upper[j], self.lower[j], q.low, q.high, self.kappa[j]
                    second = self._upper_second[j], self._lower_second[j], limit, cross, self.du[j]
                    kernels.predict(self.targets[j], self.weights[j], dnu[j], df, *state, *second, start, stop)
                elif dnu[j] != 0:
                    part = slice(start, stop)
                    t = self.targets[j, part]
                    cross[part] += self.weights[j, part] * t * t * self.kappa[j, part] * df[part] * dnu[j]
            return self._histogram(nu, start, stop)

        return cross, np.sum(self.blocks.run(work), axis=0)

    def _histogram(self, nu: np.ndarray, start: int, stop: int) -> np.ndarray:
        """Return the weights of rows by the longest step that the stored du allows them, from a sample of the rows."""
        histogram = np.zeros(kernels.BINS)
        stride = 1 + (stop - start) // SAMPLE
        for j in range(self.count):
            if (q := self.quadratic(j)) is not None:
                kernels.count_steps(
                    self.weights[j], nu[j], self.u[j], self.du[j], q.low, q.high, histogram, stride, start, stop
                )
        return histogram

    def trial(self, df: np.ndarray) -> np.ndarray:
        """Return u after a full affine step, held to its domain, in the array that `direct` will overwrite."""

        def work(start: int, stop: int) -> None:
            for j, margin in enumerate(self.margins):
                state = self.u[j], self.upper[j], self.lower[j], margin.low, margin.high, self.kappa[j]
                kernels.trial(self.targets[j], df, *state, self.du[j], start, stop)

        self.blocks.run(work)
        self.du[:, self.moving :] = self.u[:, self.moving :]
        return self.du

    def correct(self, nu: np.ndarray, target: float, h: np.ndarray) -> np.ndarray:
        """Add the corrected right-hand side to h (which holds the cross terms); return the changes of value."""

        def work(start: int, stop: int) -> np.ndarray:
            change = np.zeros(self.count)
            for j in range(self.count):
                if (q := self.quadratic(j)) is not None:
                    state = self.u[j], self.upper[j], self.lower[j], q.low, q.high, self.kappa[j]
                    second = self._upper_second[j], self._lower_second[j], target, h
                    change[j] = kernels.correct(self.targets[j], self.weights[j], nu[j], *state, *second, start, stop)
            return change

        return np.asarray(np.sum(self.blocks.run(work), axis=0))

    def direct(self, df: np.ndarray, nu: np.ndarray, target: float) -> np.ndarray:
        """Store the corrected du; return weights by longest step of u."""

        def work(start: int, stop: int) -> np.ndarray:
            for j in range(self.count):
                if (q := self.quadratic(j)) is not None:
                    state = self.u[j], self.upper[j], self.lower[j], q.low, q.high, self.kappa[j]
                    second = self._upper_second[j], self._lower_second[j], target, self.du[j]
                    kernels.direct(self.targets[j], df, *state, *second, start, stop)
            return self._histogram(nu, start, stop)

        return np.asarray(np.sum(self.blocks.run(work), axis=0))

    def longest_step(self, nu: np.ndarray, target: float) -> float:
        """Return the longest step along the stored direction that is safe for every row."""

        def work(start: int, stop: int) -> float:
            longest = np.inf
            for j in range(self.count):
                if (q := self.quadratic(j)) is not None:
                    state = self.weights[j], nu[j], self.u[j], self.upper[j], self.lower[j], q.low, q.high
                    second = self._upper_second[j], self._lower_second[j], target, self.du[j]
                    longest = min(longest, kernels.longest_step(*state, *second, start, stop))
            return longest

        return min(self.blocks.run(work))

    def advance(self, f: np.ndarray, target: float, step: float, keep: float, curved_keep: float) -> None:
        """Move the state of every piece along the stored direction; f is the score after the step."""
        self.refresh(f)

        def work(start: int, stop: int) -> None:
            for j in range(self.count):
                if (q := self.quadratic(j)) is not None:
                    state = self.u[j], self.upper[j], self.lower[j], q.linear, q.quadratic, q.low, q.high
                    move = (
                        self._upper_second[j],
                        self._lower_second[j],
                        target,
                        self.du[j],
                        step,
                        curved_keep if q.quadratic else keep,
                    )
                    kernels.advance(self.targets[j], f, *state, *move, start, stop)

        self.blocks.run(work)
