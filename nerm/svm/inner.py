"""The SMO at fixed nu^+ and nu^-: a box problem in the n levels a_i, solved as far as its caller needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nerm.svm import smo_loop
from nerm.svm.data import NeutralData
from nerm.svm.intercept import best_intercept
from nerm.svm.pieces import Pieces
from nerm.svm.rows import GramRows


@dataclass(frozen=True)
class Standing:
    """Where a point stands: true primal and dual in the sum form, the gap inside fixed nu, the slope in nu^+.

    ``lagrangian - dual`` is what more pair steps can win; the rest of ``primal - dual`` belongs to nu.
    ``slope = C^+ - C^-`` is the derivative of the dual in nu^+.
    """

    primal: float
    dual: float
    lagrangian: float
    slope: float
    intercept: float
    violation: float

    @property
    def gap(self) -> float:
        """Return the duality gap."""
        return self.primal - self.dual

    @property
    def inner_gap(self) -> float:
        """Return the part of the gap that is due to the pair steps."""
        return self.lagrangian - self.dual


class FixedNu:
    """The state of the compiled loop for one (nu^+, nu^-): levels a, scores G without b, active set."""

    def __init__(self, pieces: Pieces, a: np.ndarray, G: np.ndarray, rows: GramRows) -> None:
        self.data: NeutralData = pieces.data
        self.pieces, self.rows = pieces, rows
        n = self.data.n
        self.a, self.G = a.copy(), G.copy()
        self.seg, self.x = np.zeros(n, dtype=np.int64), np.zeros(n)
        self.rise, self.fall = np.zeros(n), np.zeros(n)
        p = pieces
        smo_loop.place(self.a, p.low, p.start, p.width, p.count, p.slope, self.seg, self.x, self.rise, self.fall)
        self.active = np.arange(n)
        self.n_active = n

    def extremes(self) -> tuple[float, float]:
        """Return m(a) and M(a) over all samples."""
        return float((self.rise - self.G).max()), float((self.fall - self.G).min())

    def standing(self, best: bool = False) -> Standing:
        """Return primal, dual and slope; ``best`` takes the best intercept for the primal, not (m+M)/2."""
        d, p = self.data, self.pieces
        m, M = self.extremes()
        ends = [e for e in (m, M) if np.isfinite(e)]
        b = float(np.mean(ends)) if ends else 0.0
        half_norm = 0.5 * float(self.a @ self.G)
        dual = p.multipliers(self.a).total - half_norm
        scores = self.G + b
        risk = d.risk(scores)
        if d.variant == "exact":
            plus, minus = d.neutrality(scores)
            lagrangian = risk + half_norm + p.nu_plus * plus + p.nu_minus * minus
            primal = risk + half_norm + d.eta * max(plus, minus)
            slope = plus - minus
        else:
            primal = lagrangian = risk + half_norm + d.penalty(scores)
            slope = 0.0
        if best:
            other = best_intercept(d, self.G)[0]
            value = d.risk(self.G + other) + half_norm + d.penalty(self.G + other)
            if value < primal:
                primal, b = value, other
        return Standing(primal, dual, lagrangian, slope, b, m - M)

    def _likely(self, count: int) -> np.ndarray:
        """Return the samples that violate most on either side, the next candidates for a working set."""
        if count < 2:
            return np.array([], dtype=np.int64)
        up, down = self.rise - self.G, self.fall - self.G
        k = min(count, self.data.n) - 1
        return np.stack([np.argpartition(-up, k)[:count], np.argpartition(down, k)[:count]], axis=1).ravel()

    def advance(self, steps: int, epsilon: float, clock: np.ndarray) -> tuple[int, bool]:
        """Do up to ``steps`` pair steps; return how many, and whether no violation above epsilon is left."""
        p, r = self.pieces, self.rows
        done = 0
        m, M = self.extremes()
        # A shrunken set is left as soon as its own violation is small beside that of all samples.
        shrunken_epsilon = max(epsilon, 0.2 * (m - M))
        while done < steps:
            whole = self.n_active == self.data.n
            status, taken, wanted = smo_loop.run(
                self.a, self.G, self.seg, self.x, self.rise, self.fall,
                p.low, p.start, p.slope, p.width, p.count, self.data.lam,
                r.diagonal, r.table, r.slot_of, r.stamp, clock,
                self.active, self.n_active, epsilon if whole else shrunken_epsilon, steps - done,
            )  # fmt: skip
            done += taken
            if status == smo_loop.NEED_ROW:
                r.load(wanted, self._likely(r.batch), int(clock[0]))
            elif status == smo_loop.CONVERGED:
                if whole:
                    return done, True
                # Converged on the active samples only: bring all back and look again.
                self.active = np.arange(self.data.n)
                self.n_active = self.data.n
        m, M = self.extremes()
        self.n_active = smo_loop.shrink(self.active, self.n_active, self.rise, self.fall, self.G, m, M)
        return done, False
