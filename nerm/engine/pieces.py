"""All pieces of a problem (see `nerm.engine.kernels`) with their state, and the passes over them.

Sums are not divided by n here: the engine works with n P, so that lam = mu n multiplies ||w||^2 / 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nerm.engine import kernels
from nerm.engine.margins import QuadraticConjugate, SmoothMargin
from nerm.engine.model import LinearModel
from nerm.engine.threads import Blocks


@dataclass
class Linearisation:
    """Row vectors of the Newton system, one line each of `vectors`, and sums for each piece."""

    vectors: np.ndarray  # c, h, density, then e_k, then eh_k
    products: np.ndarray  # (J,) sum B (p^+ A + p^- C)
    value: np.ndarray  # (J,) sum B phi as the multipliers see it
    primal: np.ndarray  # (J,) sum B phi(m)
    conjugate: np.ndarray  # (J,) sum B phi*(u)
    change: np.ndarray  # (J,) change of `value` that does not depend on df, along the affine direction


class Pieces:
    """Targets, weights and state of every piece: the losses first, then the two sides of each neutrality term."""

    def __init__(self, model: LinearModel, merged: tuple[np.ndarray, np.ndarray] | None, blocks: Blocks) -> None:
        def add_up(weights: np.ndarray) -> np.ndarray:
            return weights if merged is None else np.bincount(merged[0], weights, len(merged[1]))

        def first(values: np.ndarray) -> np.ndarray:
            return values if merged is None else values[merged[1]]

        losses, terms = model.losses, model.neutralities
        self.n_losses, self.n_terms = len(losses), len(terms)
        self.margins = [term.margin for term in losses] + [term.margin for term in terms for _ in "+-"]
        self.term = np.array([-1] * len(losses) + [k for k in range(len(terms)) for _ in "+-"])
        self.sign = np.array([0.0] * len(losses) + [1.0, -1.0] * len(terms))
        y = first(model.y)
        views = [first(term.viewpoint) for term in terms]
        self.targets = np.vstack([y for _ in losses] + [sign * v for v in views for sign in (1.0, -1.0)])
        weights = [add_up(term.weights) for term in losses] + [add_up(t.weights) for t in terms for _ in "+-"]
        self.weights = np.vstack(weights)
        # A row without weight must not hold up the others: with target 0 its margin never moves.
        self.targets[self.weights == 0] = 0.0
        self.total = self.weights.sum(axis=1)
        self.eta = np.array([term.eta for term in terms])
        self._blocks = blocks
        self._allocate()

    def _allocate(self) -> None:
        shape = self.targets.shape
        self.u, self.upper, self.lower, self.kappa, self.du = (np.zeros(shape) for _ in range(5))
        self._upper_second, self._lower_second = np.zeros(shape), np.zeros(shape)
        self._smooth_value = np.zeros(shape[0])
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

        def work(start: int, stop: int) -> None:
            for j in range(self.count):
                if (q := self.quadratic(j)) is not None:
                    state = self.u[j], self.upper[j], self.lower[j], q.linear, q.quadratic, q.low, q.high
                    kernels.centre(self.targets[j], f, *state, barrier, start, stop)

        self._blocks.run(work)

    def values(self, f: np.ndarray) -> np.ndarray:
        """Return sum_i B_i phi(t_i f_i) for each piece."""
        return np.array(
            [kernels.weigh(b, m.value(t * f)) for m, t, b in zip(self.margins, self.targets, self.weights, strict=True)]
        )

    def linearise(self, f: np.ndarray, nu: np.ndarray) -> Linearisation:
        """Return the Newton system's row vectors and the sums of all pieces; nu has one entry a piece."""
        K = self.n_terms
        vectors = np.zeros((3 + 2 * K, self.n_rows))
        idle = np.zeros((2, self.n_rows))

        def work(start: int, stop: int) -> np.ndarray:
            sums = np.zeros((self.count, 5))
            c, h, density = vectors[:3]
            for j in range(self.count):
                k = int(self.term[j])
                e, eh = (vectors[3 + k], vectors[3 + K + k]) if k >= 0 else idle
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
                    sums[j] = kernels.linearise(*row, f, *state, density, c, h, e, eh, self.sign[j], start, stop)
                    continue
                given = *row, self.u[j], self.kappa[j]
                kernels.add_given(*given, density, c, e, self.sign[j], start, stop)
                if k >= 0:
                    eh[start:stop] += (
                        self.sign[j] * self.weights[j, start:stop] * self.targets[j, start:stop] * self.u[j, start:stop]
                    )
                part = slice(start, stop)
                m, b, u = self.targets[j, part] * f[part], self.weights[j, part], self.u[j, part]
                sums[j, 1] = sums[j, 2] = kernels.weigh(b, self.margins[j].value(m))
                sums[j, 3] = kernels.weigh(b, self.margins[j].conjugate(u))
            return sums

        sums = np.sum(self._blocks.run(work), axis=0)
        return Linearisation(vectors, *sums.T)

    def predict(self, df: np.ndarray, nu: np.ndarray, dnu: np.ndarray, limit: float) -> tuple[np.ndarray, np.ndarray]:
        """Follow the affine direction; return the cross terms B t dnu du of all rows, and weights by longest step."""
        cross = np.zeros(self.n_rows)

        def work(start: int, stop: int) -> np.ndarray:
            histogram = np.zeros(kernels.BINS)
            for j in range(self.count):
                if (q := self.quadratic(j)) is not None:
                    state = self.u[j], self.upper[j], self.lower[j], q.low, q.high, self.kappa[j]
                    second = self._upper_second[j], self._lower_second[j], limit, cross, histogram
                    kernels.predict(self.targets[j], self.weights[j], nu[j], dnu[j], df, *state, *second, start, stop)
                elif dnu[j] != 0:
                    part = slice(start, stop)
                    t = self.targets[j, part]
                    cross[part] += self.weights[j, part] * t * t * self.kappa[j, part] * df[part] * dnu[j]
            return histogram

        return cross, np.sum(self._blocks.run(work), axis=0)

    def trial(self, df: np.ndarray) -> np.ndarray:
        """Return u after a full affine step, held to its domain, in the array that `direct` will overwrite."""

        def work(start: int, stop: int) -> None:
            for j, margin in enumerate(self.margins):
                state = self.u[j], self.upper[j], self.lower[j], margin.low, margin.high, self.kappa[j]
                kernels.trial(self.targets[j], df, *state, self.du[j], start, stop)

        self._blocks.run(work)
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

        return np.asarray(np.sum(self._blocks.run(work), axis=0))

    def direct(self, df: np.ndarray, nu: np.ndarray, target: float) -> tuple[np.ndarray, float]:
        """Store the corrected du; return weights by longest step of u, and the longest step safe for all rows."""

        def work(start: int, stop: int) -> tuple[np.ndarray, float]:
            histogram, longest = np.zeros(kernels.BINS), np.inf
            for j in range(self.count):
                if (q := self.quadratic(j)) is not None:
                    state = self.u[j], self.upper[j], self.lower[j], q.low, q.high, self.kappa[j]
                    second = self._upper_second[j], self._lower_second[j], target, self.du[j], histogram
                    steps = kernels.direct(self.targets[j], self.weights[j], nu[j], df, *state, *second, start, stop)
                    longest = min(longest, *steps)
            return histogram, longest

        found = self._blocks.run(work)
        return np.sum([h for h, _ in found], axis=0), min(s for _, s in found)

    def advance(self, f: np.ndarray, target: float, step: float, keep: float) -> None:
        """Move the state of every piece along the stored direction; f is the score after the step."""
        self.refresh(f)

        def work(start: int, stop: int) -> None:
            for j in range(self.count):
                if (q := self.quadratic(j)) is not None:
                    state = self.u[j], self.upper[j], self.lower[j], q.linear, q.quadratic, q.low, q.high
                    move = self._upper_second[j], self._lower_second[j], target, self.du[j], step, keep
                    kernels.advance(self.targets[j], f, *state, *move, start, stop)

        self._blocks.run(work)
