"""A primal-dual interior-point method in which every row takes its own step.

The problem is the saddle  min over (w, b), max over u in its interval and theta in [0, 1]  of

    sum_j nu_j sum_i B_ji (u_ji (t_ji f_i - linear_j) - quadratic_j u_ji^2 / 2) + (lam/2) ||w||^2,     f = X w + b,

smoothed by a log barrier on u of *unit* scale: the weights B and nu multiply it. So a row of weight 2 is two rows, a
side of weight nu -> 0 keeps well-scaled multipliers, and from any (w, b) all rows can be put on the central path of
their own scores, one by one: that is the start, cold or warm.

Mehrotra's predictor-corrector gives the direction. The usual common step is set by the worst of some 10^5 rows; here
(w, b) steps as far as all but a small share of the weight allows, and the rows in the way stop short of their bound.
What that spoils, X'c + lam w = 0, the next Newton step repairs. If the gap stops falling, the method goes on with
the common step, which is slower and does not fail.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nerm.engine import kernels
from nerm.engine.bounds import dual_bound, primal_value
from nerm.engine.matrices import Features
from nerm.engine.newton import NewtonSystem
from nerm.engine.pieces import Linearisation, Pieces

COLD = 1.0  # barrier at the cold start: the scale of a margin
SHARE = 0.03  # share of the weight that a step may leave behind
KEEP = 0.2  # of a row's distance to its bound that a bold step must leave
CURVED_KEEP = 0.1  # the same where phi* is curved, which makes Newton's direction better
SAFE_KEEP = 0.005  # the same for the common step
SIDE_BARRIER = 0.1  # barrier of nu sigma against that of u p, per eta times total weight
LEAST_STEP = 0.1  # of a bold step; where it is shorter, the common one may be longer
CLOSE = 15.0  # mean difference of two sides, in units of the barrier, up to which a warm start calls them nearly equal
LEAST_SHARE = 0.01  # of eta, that a warm start leaves to the smaller side
MISS_PER_MOVE, MISS_PER_MOVE_BEFORE = 0.3, 0.03  # mean error of the scores after two moves of them
FALLING = 0.5  # ratio of two moves of the scores below which they are getting shorter, not only starting short
NEGLIGIBLE = 1e-4  # of the mean density: rows below it are left out of the Gram matrix
SECOND_ORDER = 10.0  # bound on second-order terms, in units of the mean product
PATIENCE = 6  # iterations without halving the gap before the common step takes over
SAFE_PATIENCE = 20  # the same before the common step gives up
RESTART = 0.1  # barrier with which the common step takes over
NEAR = 50.0  # times the tolerance: the gap from which on the affine step's multipliers are tried as a bound
HALVINGS = 6  # of a step that makes a smooth problem worse
VANISHED = 1e-100  # share of the first objective below which the optimum is 0 and no relative accuracy can be had
MAX_ITERATIONS = 200


@dataclass
class Iterate:
    """Where the method stands: hypothesis, scores, and nu, sigma of the two sides of each neutrality term, (K, 2)."""

    coef: np.ndarray
    intercept: float
    scores: np.ndarray
    nu: np.ndarray
    sigma: np.ndarray

    def become(self, other: Iterate) -> None:
        """Stand where another iterate stands."""
        self.coef, self.intercept, self.scores = other.coef, other.intercept, other.scores
        self.nu, self.sigma = other.nu, other.sigma


@dataclass
class Outcome:
    """The best hypothesis and the best multipliers that were seen, with n P and n D."""

    coef: np.ndarray
    intercept: float
    scores: np.ndarray
    values: np.ndarray | None = None  # what each piece adds up to
    primal: float = np.inf
    dual: float = -np.inf
    u: np.ndarray | None = None
    nu: np.ndarray | None = None
    iterations: int = 0
    converged: bool = False
    miss: float | None = None  # where a run stopped early: the mean error of the scores that is expected there

    def gap_within(self, tol: float) -> bool:
        """Tell whether the bounds meet to the relative accuracy tol."""
        return bool(np.isfinite(self.primal)) and self.primal - self.dual <= tol * abs(self.primal)

    def keep(self, primal: float, coef: np.ndarray, intercept: float, scores: np.ndarray, values: np.ndarray) -> None:
        """Take a better hypothesis."""
        self.primal, self.coef, self.intercept, self.scores, self.values = primal, coef, intercept, scores, values

    def then(self, other: Outcome, tol: float) -> Outcome:
        """Return the best of this attempt and another: the lower primal, the higher dual, the iterations of both."""
        low = self if self.primal < other.primal else other
        high = self if self.dual > other.dual else other
        both = replace(low, dual=high.dual, u=high.u, nu=high.nu, iterations=self.iterations + other.iterations)
        both.converged = both.gap_within(tol)
        return both


class InteriorPoint:
    """One problem on its way to the optimum. `lam` = mu n; everything is n times the mean form."""

    def __init__(self, pieces: Pieces, features: Features, lam: float, *, intercept: bool) -> None:
        self.pieces, self.features, self.lam, self.intercept = pieces, features, lam, intercept
        ends = pieces.bounds_count()
        self._ends_loss = float(ends[: pieces.n_losses] @ pieces.total[: pieces.n_losses])
        self._ends_side = (ends * pieces.total)[pieces.n_losses :].reshape(-1, 2)
        self._weight = pieces.weights[pieces.n_losses :: 2].sum(axis=1)  # of all rows, settled ones too
        self._side_unit = SIDE_BARRIER * np.repeat((self._weight * pieces.eta)[:, None], 2, axis=1)
        self._has_bounds = np.array([pieces.quadratic(j) is not None for j in range(pieces.count)])

    def cold(self) -> Iterate:
        """Start from nothing."""
        return self.start(np.zeros(self.features.shape[1]), 0.0, COLD)

    def start(self, coef: np.ndarray, intercept: float, barrier: float) -> Iterate:
        """Put all rows and sides on the central path of the scores of (coef, intercept)."""
        scores = self.features.times(coef) + intercept if coef.any() else np.full(self.pieces.n_rows, intercept)
        self.pieces.centre(scores, barrier)
        nu = _central_sides(
            self.pieces.sides(self.pieces.values(scores)), self.pieces.eta, barrier * self._side_unit[:, 0]
        )
        return Iterate(coef.copy(), intercept, scores, nu, barrier * self._side_unit / nu)

    def warm(self, coef: np.ndarray, intercept: float, barrier: float) -> Iterate:
        """Start near the optimum: nu of sides that are nearly equal follows from the forces, X'c + lam w = 0.

        Which of two nearly equal sides is the larger at a guess says little about nu; least squares in nu says much.
        """
        at = self.start(coef, intercept, barrier)
        values = self.pieces.sides(self.pieces.values(at.scores))
        close = np.abs(values[:, 0] - values[:, 1]) < CLOSE * barrier * self._weight
        if not close.any():
            return at
        _, reduced = self._linearised(at)
        reduced = reduced if self.intercept else reduced[:-1]  # else sum c = 0 is asked of nobody
        force = -reduced[:, 0]
        force[: len(coef)] -= self.lam * coef
        move = np.zeros(self.pieces.n_terms)
        move[close] = np.linalg.lstsq(reduced[:, 2 : 2 + len(move)][:, close], force, rcond=None)[0]
        least = np.minimum(at.nu.min(axis=1), LEAST_SHARE * self.pieces.eta)
        plus = np.clip(at.nu[:, 0] + move, least, self.pieces.eta - least)
        at.nu = np.column_stack([plus, self.pieces.eta - plus])
        at.sigma = barrier * self._side_unit / at.nu
        return at

    def run(
        self, at: Iterate, tol: float, limit: int = MAX_ITERATIONS, *, until: float = 0.0, leash: float = np.inf
    ) -> Outcome:
        """Iterate until the relative gap is at most tol, or nothing moves any more.

        With `until`, also stop once directions are short and getting shorter: the last would move the scores by less
        than that in the mean. With `leash`, also stop when the scores have gone farther than that from the start, in
        the mean. `at` can be run on.
        """
        best = Outcome(at.coef, at.intercept, at.scores)
        bold, record, since, start_value, move = True, np.inf, 0, 0.0, np.inf
        start = at.scores
        for best.iterations in range(limit + 1):
            lin, reduced = self._linearised(at)
            gap = self._look(at, lin, reduced, best, tol)
            start_value = max(start_value, best.primal)
            if best.converged or not np.isfinite(gap) or 0 <= best.primal <= VANISHED * start_value:
                break
            if best.iterations == limit:
                break
            since = 0 if gap <= 0.5 * record else since + 1
            record = min(record, gap)
            if since > PATIENCE and bold:
                bold, record, since = False, np.inf, 0
                at.become(self.start(best.coef, best.intercept, RESTART))
                start = at.scores
                continue
            if since > SAFE_PATIENCE:
                break
            near = gap <= NEAR * tol * abs(best.primal)
            before, move = move, self._step(at, lin, reduced, best, tol, bold=bold, near=near)
            if best.converged:
                break
            if move < until and move < FALLING * before < np.inf:
                best.iterations += 1
                best.miss = max(MISS_PER_MOVE * move, MISS_PER_MOVE_BEFORE * before)
                break
            if leash < np.inf and np.abs(at.scores - start).mean() > leash:
                break
        return best

    def _linearised(self, at: Iterate) -> tuple[Linearisation, np.ndarray]:
        """Return the Newton system's row vectors, and these times (X, 1): one column each."""
        lin = self.pieces.linearise(at.scores, self.pieces.of_each(at.nu))
        return lin, np.vstack([self.features.columns(lin.vectors), lin.vectors.sum(axis=1)])

    def _count(self, at: Iterate) -> float:
        """Return the sum of weights of all complementarity products, so that their mean is the barrier parameter."""
        return self._ends_loss + float((self._ends_side * at.nu).sum() + self._side_unit.sum()) + 1e-300

    def _look(self, at: Iterate, lin: Linearisation, reduced: np.ndarray, best: Outcome, tol: float) -> float:
        """Update the best bounds; return an estimate of the gap of this iterate (exact once it may be small enough)."""
        primal = primal_value(self.pieces, lin.primal, at.coef, self.lam)
        if primal < best.primal:
            best.keep(primal, at.coef, at.intercept, at.scores, lin.primal)
        g = reduced[:-1, 0]
        gap = primal + float(self.pieces.of_each(at.nu) @ lin.conjugate) + (g @ g) / (2 * self.lam)
        if np.isfinite(gap) and gap <= 2 * tol * abs(primal):
            dual = self._bound(self.pieces.u, at.nu, best)
            gap = max(gap, primal - dual) if np.isfinite(dual) else max(gap, abs(primal))
            best.converged = best.gap_within(tol)
        return float(gap)

    def _bound(self, u: np.ndarray, sides: np.ndarray, best: Outcome) -> float:
        """Return n D of these multipliers, made feasible, and keep them if they are the best."""
        nu = self.pieces.of_each(sides)
        dual, u = dual_bound(self.pieces, self.features, u, nu, self.lam, intercept=self.intercept)
        if dual > best.dual:
            best.dual, best.u, best.nu = dual, u, sides.copy()
        return dual

    def _step(
        self, at: Iterate, lin: Linearisation, reduced: np.ndarray, best: Outcome, tol: float, *, bold: bool, near: bool
    ) -> float:
        """One predictor-corrector step, in place; return the mean change of the scores that it would make in full.

        `near` the end, the full affine step may already be good enough.
        """
        nu = self.pieces.of_each(at.nu)
        products = at.nu * at.sigma
        mu = (float(nu @ lin.products) + float(products.sum())) / self._count(at)
        ratio = (at.sigma / at.nu).sum(axis=1)
        gram = self.features.gram(lin.density, NEGLIGIBLE * lin.density.mean() if bold else 0.0)
        system = NewtonSystem(gram, reduced[:, 2 : 2 + self.pieces.n_terms], self.lam, ratio, intercept=self.intercept)
        sides = self.pieces.sides(lin.value)
        base = -reduced[:, 0].copy()
        base[:-1] -= self.lam * at.coef

        def direction(
            h: np.ndarray, change: np.ndarray, side: np.ndarray
        ) -> tuple[np.ndarray, float, np.ndarray, np.ndarray, np.ndarray]:
            t = side / at.nu + sides + at.sigma + self.pieces.sides(change)
            z, x = system.solve(base - h, t[:, 0] - t[:, 1])
            dw = z[: len(at.coef)]
            db = float(z[-1]) if self.intercept else 0.0
            dnu = np.column_stack([x, -x])
            return dw, db, self.features.times(dw) + db, dnu, (side - at.sigma * dnu) / at.nu

        *_, df, dnu, dsigma = direction(reduced[:, 1], lin.change, -products)
        if near:
            plus = np.clip(at.nu[:, 0] + dnu[:, 0], 0.0, self.pieces.eta)
            self._bound(self.pieces.trial(df), np.column_stack([plus, self.pieces.eta - plus]), best)
            best.converged = best.gap_within(tol)
            if best.converged:
                return 0.0
        piece_dnu = np.concatenate([np.zeros(self.pieces.n_losses), dnu.ravel()])
        cross, histogram = self.pieces.predict(df, nu, piece_dnu, SECOND_ORDER * mu if bold else np.inf)
        weight = float(nu[self._has_bounds] @ self.pieces.total[self._has_bounds])
        affine = min(1.0, _quantile(histogram, SHARE * weight), _room(at.nu, dnu), _room(at.sigma, dsigma))
        target = max((1 - affine) ** 3, 1e-3) * mu
        h = cross
        change = self.pieces.correct(nu, target, h)
        side = target * self._side_unit - products - dnu * dsigma
        reduced_h = np.append(self.features.columns(h[None, :])[:, 0], h.sum())
        dw, db, df, dnu, dsigma = direction(reduced_h, change, side)
        histogram = self.pieces.direct(df, nu, target)
        step = _quantile(histogram, SHARE * weight) if bold else 0.0
        if step <= LEAST_STEP:
            step = max(step, (1 - SAFE_KEEP) * self.pieces.longest_step(nu, target))
        step = min(1.0, step, (1 - SAFE_KEEP) * min(_room(at.nu, dnu), _room(at.sigma, dsigma)))
        if self.pieces.some_smooth:
            step = self._searched(at, dw, df, dnu, step)
        at.coef = at.coef + step * dw
        at.intercept += step * db
        at.scores = at.scores + step * df
        at.nu = at.nu + step * dnu
        at.sigma = at.sigma + step * dsigma
        keep = (KEEP, CURVED_KEEP) if bold else (0.5 * SAFE_KEEP, 0.5 * SAFE_KEEP)
        self.pieces.advance(at.scores, target, step, *keep)
        return float(np.abs(df).mean())

    def _searched(self, at: Iterate, dw: np.ndarray, df: np.ndarray, dnu: np.ndarray, step: float) -> float:
        """Halve the step of a smooth problem until the Lagrangian does not rise.

        The direction is Newton's for loss + regularizer + nu S with the *new* nu, which is therefore held fixed here.
        Beside hinge-like pieces, whose direction is another, a smooth one is only kept from running away.
        """
        nu = self.pieces.of_each(at.nu + step * dnu)

        def lagrangian(s: float) -> float:
            w = at.coef + s * dw
            return float(0.5 * self.lam * (w @ w) + nu @ self.pieces.values(at.scores + s * df))

        here = lagrangian(0.0)
        rise = (1e-12 if self.pieces.all_smooth else 0.1) * abs(here)
        for _ in range(HALVINGS):
            if lagrangian(step) <= here + rise:
                break
            step *= 0.5
        return step


def _central_sides(values: np.ndarray, eta: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return nu maximising nu^+ S^+ + nu^- S^- + unit (log nu^+ + log nu^-) under nu^+ + nu^- = eta, shape (K, 2).

    With d = S^+ - S^-, the smaller side is  eta unit / (unit + |d| eta / 2 + sqrt(unit^2 + (d eta / 2)^2)).
    """
    half = 0.5 * (values[:, 0] - values[:, 1]) * eta
    small = eta * (unit / (unit + np.abs(half) + np.hypot(unit, half)))
    plus = np.where(half > 0, eta - small, small)
    return np.column_stack([plus, np.where(half > 0, small, eta - small)])


def _quantile(histogram: np.ndarray, weight: float) -> float:
    """Return the longest step that leaves behind rows of at most this weight; infinite if none is left behind."""
    behind = np.cumsum(histogram)
    if behind[-1] <= weight:
        return np.inf
    return float(np.searchsorted(behind, weight, side="right")) / kernels.BINS


def _room(x: np.ndarray, dx: np.ndarray) -> float:
    """Return the longest step that keeps x + step dx >= 0."""
    falling = dx < 0
    return float(np.min(-x[falling] / dx[falling])) if falling.any() else np.inf
