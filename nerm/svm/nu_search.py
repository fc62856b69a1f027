"""The search over nu^+ around the SMO's pair steps.

D(nu^+), the best dual value at fixed nu^+, is concave with derivative C^+ - C^-: its maximum is bracketed
and the bracket is cut by interpolation. Between two solved points the levels a and the scores are
interpolated as well: a(nu^+) is piecewise linear (a parametric quadratic programme), so the warm start is
exact until the active set changes, and it costs no kernel value at all.

Pair steps go on only while they own a fair share of the true gap; the rest belongs to nu^+. A point solved
up to an inner gap e still says D(nu') <= D(nu) + e + slope (nu' - nu) for every nu', so its word "further
to the right" can be wrong by at most `e / |slope|`. That is its `doubt`. When the bracket keeps closing on one end
and is no wider than that end's doubt, the end is dropped and the search looks beyond it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nerm.svm.data import NeutralData
from nerm.svm.inner import FixedNu, Standing
from nerm.svm.pieces import Multipliers, make_pieces
from nerm.svm.rows import GramRows

_MAX_OUTER = 200
# Pair steps stop once their share of the true gap is below this (less, once that misled the search).
_INNER_SHARE = 0.1
# An end of the bracket is looked at with suspicion after this many steps on the other side.
_STALE = 2

OPTIMAL = "optimal: the duality gap is within the tolerance"
STOPPED = "stopped: the callback asked for it"
STUCK = "not converged: no further progress in floating point"


@dataclass(frozen=True)
class _Point:
    """A solved point: nu^+, levels, scores without intercept, slope of the dual there, and its doubt."""

    nu_plus: float
    a: np.ndarray
    G: np.ndarray
    slope: float
    doubt: float


class NuSearch:
    """The search and its bookkeeping: a bracket (two points or fewer), counters, history."""

    def __init__(
        self,
        data: NeutralData,
        rows: GramRows,
        tol: float,
        max_iter: int,
        callback: Callable[[dict[str, float]], object] | None,
    ) -> None:
        self.data, self.rows, self.tol, self.max_iter, self.callback = data, rows, tol, max_iter, callback
        self.clock = np.zeros(1, dtype=np.int64)
        self.iterations = self.outer = 0
        self.history: list[dict[str, float]] = []
        self.stopped = False
        # ends[+1]: the dual still rises there (the maximum is to the right); ends[-1]: it falls.
        self.ends: dict[int, _Point] = {}
        self.damp = {1: 1.0, -1: 1.0}
        self.last_side = self.repeats = 0
        self.stride = 0.1 * data.eta
        self.share = _INNER_SHARE

    def solve(self, start: Multipliers) -> tuple[FixedNu, bool, str]:
        """Run the whole search; return the last inner state, whether it met the tolerance, and a sentence."""
        d = self.data
        nu = start.nu_plus if d.variant == "exact" else 0.0
        a = start.alpha * d.y + (start.beta_plus - start.beta_minus) * d.viewpoint
        a = make_pieces(d, nu, d.eta - nu).balanced(a)
        state = self._state(nu, a, self.rows.product(a) / d.lam if a.any() else np.zeros(d.n))
        while True:
            self.outer += 1
            standing, exhausted = self._inner(state)
            if standing.gap <= self.tol * abs(standing.primal):
                return state, True, OPTIMAL
            if self.stopped:
                return state, False, STOPPED
            if self.iterations >= self.max_iter:
                return state, False, f"not converged: the limit of {self.max_iter} pair steps was reached"
            nu = state.pieces.nu_plus
            # At an end of [0, eta] with the slope pointing outward (theta = 0 or 1) only pair steps are left.
            at_end = (nu >= d.eta and standing.slope > 0) or (nu <= 0 and standing.slope < 0)
            if self.outer >= _MAX_OUTER:
                return state, False, f"not converged: the limit of {_MAX_OUTER} steps in nu was reached"
            if d.eta == 0 or d.variant != "exact" or (at_end and exhausted):
                return state, False, STUCK
            if at_end:
                continue
            moved = self._next(state, standing)
            if moved is None:
                return state, False, STUCK
            state = moved

    def _next(self, state: FixedNu, standing: Standing) -> FixedNu | None:
        """Enter the solved point into the bracket and return the next, or None if nothing is left to cut."""
        d, nu = self.data, state.pieces.nu_plus
        if standing.slope == 0.0:
            return None
        side = 1 if standing.slope > 0 else -1
        doubt = max(0.0, standing.inner_gap) / abs(standing.slope)
        self.ends[side] = _Point(nu, state.a, state.G, standing.slope, doubt)
        other = self.ends.get(-side)
        self.repeats = self.repeats + 1 if side == self.last_side else 0
        if other is not None and self.repeats >= _STALE and abs(other.nu_plus - nu) <= other.doubt:
            # The far end was probably on the wrong side: forget it, look beyond it as far as its doubt reaches, and be
            # stricter with the pair steps from now on, or the same would happen at the next end.
            self.stride = max(2.0 * abs(other.nu_plus - nu), other.doubt, 1e-12 * d.eta)
            self.share = max(1e-4, 0.2 * self.share)
            del self.ends[-side]
            self.last_side, other = 0, None
        if other is None:
            nu = float(np.clip(nu + side * self.stride, 0.0, d.eta))
            self.stride *= 2.5
            self.last_side = side
            return self._rescaled(state, nu)
        left, right = self.ends[1], self.ends[-1]
        if abs(right.nu_plus - left.nu_plus) <= 4e-16 * d.eta:
            return None
        # Illinois: an end that stays twice counts half, so the bracket closes from both sides.
        self.damp[side] = 1.0
        self.damp[-side] = 0.5 * self.damp[-side] if side == self.last_side else 1.0
        self.last_side = side
        rising, falling = left.slope * self.damp[1], -right.slope * self.damp[-1]
        share = float(np.clip(rising / (rising + falling), 0.02, 0.98))
        return self._state(
            (1 - share) * left.nu_plus + share * right.nu_plus,
            (1 - share) * left.a + share * right.a,
            (1 - share) * left.G + share * right.G,
        )

    def _inner(self, state: FixedNu) -> tuple[Standing, bool]:
        """Take pair steps until they no longer own the gap; return the standing and whether none are left."""
        chunk = int(np.clip(self.data.n, 200, 1000))
        exhausted = False
        while True:
            standing = state.standing()
            target = self.tol * abs(standing.primal)
            if exhausted or standing.inner_gap <= max(target, self.share * standing.gap):
                standing = state.standing(best=True)
            self._report(standing)
            fair = standing.inner_gap <= self.share * standing.gap
            if exhausted or fair or self.stopped or standing.gap <= target or self.iterations >= self.max_iter:
                return standing, exhausted
            epsilon = 1e-14 * (1.0 + float(np.abs(state.G).max()))
            done, exhausted = state.advance(min(chunk, self.max_iter - self.iterations), epsilon, self.clock)
            self.iterations += done

    def _rescaled(self, state: FixedNu, nu: float) -> FixedNu:
        """Carry the multipliers over to another nu^+ as the same fractions of their bounds."""
        a = levels(self.data, state.pieces.multipliers(state.a), nu, state.G)
        free = (state.x > 0) & (state.x < state.pieces.width[np.arange(self.data.n), state.seg])
        a = make_pieces(self.data, nu, self.data.eta - nu).balanced(a, free)
        return self._state(nu, a, self.rows.product(a) / self.data.lam)

    def _state(self, nu: float, a: np.ndarray, G: np.ndarray) -> FixedNu:
        return FixedNu(make_pieces(self.data, nu, self.data.eta - nu), a, G, self.rows)

    def _report(self, standing: Standing) -> None:
        entry = {
            "iterations": self.iterations,
            "outer_iterations": self.outer,
            "primal": standing.primal,
            "dual": standing.dual,
            "gap": standing.gap,
            "violation": standing.violation,
        }
        self.history.append(entry)
        if self.callback is not None and self.callback(dict(entry)) is False:
            self.stopped = True


def levels(data: NeutralData, old: Multipliers, nu: float, scores: np.ndarray) -> np.ndarray:
    """Return a with beta^{+-} at the same fractions of their new bounds (scores decide if none)."""
    u, v = data.neutrality_weight, data.viewpoint
    change = np.zeros(data.n)
    for beta, bound, new, sign in (
        (old.beta_plus, old.nu_plus, nu, 1.0),
        (old.beta_minus, old.nu_minus, data.eta - nu, -1.0),
    ):
        active = (sign * v * scores < 1).astype(float)
        share = np.divide(beta, bound * u, out=active, where=bound * u > 0)
        change += sign * new * u * np.clip(share, 0.0, 1.0)
    return old.alpha * data.y + change * v
