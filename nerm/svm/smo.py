"""The reference SMO for the neutral SVM's exact dual, and for the published one.

Inside: pair steps at fixed nu^+ (`nerm.svm.smo_loop`). Outside: D(nu^+) is concave with derivative C^+ - C^-,
so its maximum is bracketed and the bracket is cut by interpolation. Between two solved points the levels a
and the scores are interpolated as well: a(nu^+) is piecewise linear (a parametric quadratic programme), so
the warm start is exact until the active set changes, and it costs no kernel value at all.

Pair steps go on only while they own a fair share of the true gap; the rest belongs to nu^+.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.svm.certify import certified
from nerm.svm.data import NeutralData, validated
from nerm.svm.inner import FixedNu, Standing
from nerm.svm.pieces import Multipliers, make_pieces
from nerm.svm.result import NeutralSVM
from nerm.svm.rows import GramRows
from nerm.validation import as_nonnegative, as_positive

_MAX_OUTER = 100
# Pair steps stop once their share of the true gap is below this; the search in nu^+ must do the rest.
_INNER_SHARE = 0.1


@dataclass
class _Point:
    """A solved point of the search: nu^+, levels, scores without intercept, slope of the dual."""

    nu_plus: float
    a: np.ndarray
    G: np.ndarray
    slope: float


class _Search:
    """The search over nu^+ and the bookkeeping shared by its inner solves."""

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
        self.share = _INNER_SHARE
        self.stopped = False

    def solve(self, start: Multipliers) -> tuple[FixedNu, bool, str]:
        """Run the whole search; return the last inner state, whether it met the tolerance, and a sentence."""
        d = self.data
        nu = start.nu_plus if d.variant == "exact" else 0.0
        a, G = self._cold(nu, start)
        left: _Point | None = None
        right: _Point | None = None
        stride, last_side, damp = 0.1 * d.eta, 0, [1.0, 1.0]
        state = self._state(nu, a, G)
        while True:
            self.outer += 1
            standing, exact = self._inner(state)
            if standing.gap <= self._target(standing):
                return state, True, "optimal: the duality gap is within the tolerance"
            if self.stopped:
                return state, False, "stopped: the callback asked for it"
            if self.iterations >= self.max_iter:
                return state, False, f"not converged: the limit of {self.max_iter} pair steps was reached"
            one_sided = (nu >= d.eta and standing.slope > 0) or (nu <= 0 and standing.slope < 0)
            if d.eta == 0 or d.variant != "exact" or (one_sided and exact) or self.outer >= _MAX_OUTER:
                return state, False, "not converged: no further progress in floating point"
            if one_sided:
                # The end of the interval is optimal (theta = 0 or 1): only pair steps are left to do.
                self.share = 0.0
                continue
            point = _Point(nu, state.a, state.G, standing.slope)
            side = 1 if standing.slope > 0 else -1
            if side > 0:
                left = point
            else:
                right = point
            if left is not None and right is not None:
                # Illinois: an end that stays twice counts half, so the bracket closes from both sides.
                damp = (
                    [1.0, 1.0]
                    if side != last_side
                    else [damp[0] * (0.5 if side < 0 else 1), damp[1] * (0.5 if side > 0 else 1)]
                )
                if abs(right.nu_plus - left.nu_plus) <= 1e-11 * d.eta:
                    # An inexact slope may have sent us to the wrong side: solve to the end here and look
                    # again.
                    if self.share == 0.0 and exact:
                        return state, False, "not converged: no further progress in floating point"
                    self.share, left, right, stride, last_side = 0.0, None, None, 1e-6 * d.eta, 0
                    continue
                nu, a, G = self._between(left, right, damp)
            else:
                nu = float(np.clip(nu + side * stride, 0.0, d.eta))
                stride *= 2.5
                a, G = self._rescaled(state, nu)
            last_side = side
            state = self._state(nu, a, G)

    def _inner(self, state: FixedNu) -> tuple[Standing, bool]:
        """Take pair steps until they no longer own the gap; return the standing and whether none are left."""
        chunk = int(np.clip(self.data.n, 200, 1000))
        exhausted = False
        while True:
            standing = state.standing()
            target = self._target(standing)
            if exhausted or standing.inner_gap <= max(target, self.share * standing.gap):
                standing = state.standing(best=True)
            self._report(standing)
            if (
                exhausted
                or self.stopped
                or standing.gap <= target
                or self.iterations >= self.max_iter
                or standing.inner_gap <= self.share * standing.gap
            ):
                return standing, exhausted
            epsilon = 1e-14 * (1.0 + float(np.abs(state.G).max()))
            done, exhausted = state.advance(min(chunk, self.max_iter - self.iterations), epsilon, self.clock)
            self.iterations += done

    def _between(
        self, left: _Point, right: _Point, damp: list[float]
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Interpolate nu^+ to the zero of the slope, and the levels and scores with it."""
        rising, falling = left.slope * damp[0], -right.slope * damp[1]
        share = float(np.clip(rising / (rising + falling), 0.02, 0.98)) if rising + falling > 0 else 0.5
        nu = (1 - share) * left.nu_plus + share * right.nu_plus
        return nu, (1 - share) * left.a + share * right.a, (1 - share) * left.G + share * right.G

    def _rescaled(self, state: FixedNu, nu: float) -> tuple[np.ndarray, np.ndarray]:
        """Carry the multipliers over to another nu^+ as the same fractions of their bounds."""
        a = _levels(self.data, state.pieces.multipliers(state.a), nu, state.G)
        free = (state.x > 0) & (state.x < state.pieces.width[np.arange(self.data.n), state.seg])
        a = make_pieces(self.data, nu, self.data.eta - nu).balanced(a, free)
        return a, self.rows.product(a) / self.data.lam

    def _cold(self, nu: float, start: Multipliers) -> tuple[np.ndarray, np.ndarray]:
        """Return feasible levels and scores from the starting multipliers."""
        m, d = start, self.data
        a = m.alpha * d.y + (m.beta_plus - m.beta_minus) * d.viewpoint
        a = make_pieces(d, nu, d.eta - nu).balanced(a)
        return a, self.rows.product(a) / d.lam if a.any() else np.zeros(d.n)

    def _state(self, nu: float, a: np.ndarray, G: np.ndarray) -> FixedNu:
        return FixedNu(make_pieces(self.data, nu, self.data.eta - nu), a, G, self.rows)

    def _target(self, standing: Standing) -> float:
        return self.tol * abs(standing.primal)

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


def smo(
    X: Any,
    y: Any,
    viewpoint: Any,
    lam: float,
    eta: float,
    kernel: Any = "rbf",
    variant: str = "exact",
    tol: float = 1e-6,
    sample_weight: Any = None,
    neutrality_weight: Any = None,
    callback: Callable[[dict[str, float]], object] | None = None,
    cache_mb: float = 500.0,
    warm_start: NeutralSVM | None = None,
    max_iter: int | None = None,
) -> NeutralSVM:
    """Solve the neutral SVM's dual by two-variable steps until the true relative duality gap is at most tol.

    ``variant="published"`` solves the printed dual in its (alpha, r) form, the one in which pair steps cannot
    stall; it is the dual of a shrinkage problem, kept for research (docs/errata.md). ``callback`` gets a
    dict (iterations, outer_iterations, primal, dual, gap, violation) now and then; returning False
    stops the search. ``warm_start`` takes an earlier result on the same rows (another eta or lambda, say).
    Memory: about cache_mb plus a few vectors; the n x n matrix is formed only when it fits into cache_mb.
    """
    data = validated(
        X, y, viewpoint, lam, eta,
        kernel=kernel, variant=variant, sample_weight=sample_weight, neutrality_weight=neutrality_weight,
    )  # fmt: skip
    tol = as_nonnegative(tol, "tol", "Use a relative gap such as 1e-6")
    cache_mb = as_positive(cache_mb, "cache_mb", "Use a number of megabytes such as 500")
    limit = max(1_000_000, 200 * data.n) if max_iter is None else int(as_positive(max_iter, "max_iter"))
    if warm_start is not None and len(warm_start.a) != data.n:
        raise InvalidInputError(
            f"'warm_start' must belong to the same {data.n} rows",
            f"a result on {len(warm_start.a)} rows",
            "Start cold instead",
        )
    rows = GramRows(data, cache_mb)
    search = _Search(data, rows, tol, limit, callback)
    state, converged, status = search.solve(_start(data, warm_start))
    p = state.pieces
    return certified(
        data, state.a, p.nu_plus, p.nu_minus, rows.product,
        converged=converged, tol=tol, status=status,
        iterations=search.iterations, outer_iterations=search.outer, history=tuple(search.history),
    )  # fmt: skip


def _start(data: NeutralData, warm: NeutralSVM | None) -> Multipliers:
    """Return the multipliers to start from: an earlier result's, rescaled to the new bounds, or cold ones."""
    s, u, nu = data.sample_weight, data.neutrality_weight, data.eta / 2
    if warm is None or data.variant != "exact" or warm.variant != "exact":
        return Multipliers(np.zeros(data.n), nu * u, nu * u, nu, nu)
    nu = data.eta * float(np.clip(warm.theta, 0.0, 1.0))
    old = Multipliers(np.minimum(warm.alpha, s), warm.beta_plus, warm.beta_minus, warm.nu_plus, warm.nu_minus)
    a = _levels(data, old, nu, warm.scores)
    return make_pieces(data, nu, data.eta - nu).multipliers(a)


def _levels(data: NeutralData, old: Multipliers, nu: float, scores: np.ndarray) -> np.ndarray:
    """Return a with beta^{+-} at the same fractions of their new bounds (from the scores if there was none)."""
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
