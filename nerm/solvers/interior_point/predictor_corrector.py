"""A primal-dual interior-point method in which every row takes its own step.

The problem is the saddle  min over (w, b), max over u in its interval and theta in [0, 1]  of

    sum_j nu_j sum_i B_ji (u_ji (t_ji f_i - linear_j) - quadratic_j u_ji^2 / 2) + (lam/2) ||w||^2,     f = X w + b,

smoothed by a log barrier on u of *unit* scale: the weights B and nu multiply it. So a row of weight 2 is two
rows, a side of weight nu -> 0 keeps well-scaled multipliers, and from any (w, b) all rows can be put on the
central path of their own scores, one by one: that is the start, cold or warm.

Mehrotra's predictor-corrector gives the direction. The usual common step is set by the worst of some 10^5
rows; here (w, b) steps as far as all but a small share of the weight allows, and the rows in the way stop
short of their bound. What that spoils, X'c + lam w = 0, the next Newton step repairs. If the gap stops
falling, the method goes on with the common step, which is slower and does not fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nerm.solvers import clock
from nerm.solvers.interior_point import passes
from nerm.solvers.interior_point.arrays import Arrays, Linearisation, State
from nerm.solvers.interior_point.duality import dual_bound, primal_value
from nerm.solvers.interior_point.newton import NewtonSystem
from nerm.solvers.interior_point.norms import Penalty, Pulls
from nerm.solvers.interior_point.tuning import Tuning
from nerm.typing import Floats

HUGE = 1e100  # a value whose square may overflow
Near = tuple[Floats, Floats]  # multipliers u, (J, n), and nu, (K, 2)
Direction = tuple[Floats, float, Floats, Floats, Floats]  # dw, db, df, dnu, dsigma


@dataclass
class Outcome:
    """The best hypothesis and the best multipliers that were seen, with n P and n D.

    Attributes
    ----------
    coef, intercept, scores, values
        The hypothesis, its scores, and what each block adds up to there.
    u, nu, pull
        Feasible multipliers, (J, n) and (K, 2), and the force of norms, (d,); None before there are any.
    state
        Where the run stands and can go on.
    miss, barrier
        Where a run stopped early: the mean error of the scores that is expected there, and the barrier of its
        last step.
    """

    coef: Floats
    intercept: float
    scores: Floats
    values: Floats
    primal: float
    dual: float = -np.inf
    u: Floats | None = None
    nu: Floats | None = None
    pull: Floats | None = None
    iterations: int = 0
    converged: bool = False
    state: State | None = None
    miss: float | None = None
    barrier: float = 0.0

    @property
    def near(self) -> Near | None:
        """The multipliers, if there are any."""
        return None if self.u is None or self.nu is None else (self.u, self.nu)

    def gap_within(self, tol: float) -> bool:
        """Tell whether the bounds meet to the relative accuracy tol."""
        return bool(np.isfinite(self.primal)) and self.primal - self.dual <= tol * abs(self.primal)

    def then(self, other: Outcome, tol: float) -> Outcome:
        """Return the best of this attempt and another: the lower primal, the higher dual, the iterations of both."""
        low = self if self.primal < other.primal else other
        high = self if self.dual > other.dual else other
        both = replace(low, dual=high.dual, u=high.u, nu=high.nu, pull=high.pull)
        both.iterations = self.iterations + other.iterations
        both.converged = both.gap_within(tol)
        return both


class PredictorCorrector:
    """The method on one problem.

    Parameters
    ----------
    arrays
        The problem.
    factors
        (J,) the weight of each block's term.
    penalty
        The regularizer: everything is n times the mean form.
    """

    def __init__(
        self, arrays: Arrays, factors: Floats, penalty: Penalty, tuning: Tuning, *, intercept: bool
    ) -> None:
        self.arrays, self.factors, self.penalty, self.tuning = arrays, factors, penalty, tuning
        self.intercept, self.lam = intercept, penalty.lam
        self.eta = factors[arrays.singles :: 2]
        self.side_unit = tuning.side_barrier * arrays.sides(factors * arrays.mass)

    def on(self, arrays: Arrays) -> PredictorCorrector:
        """Return the same method on fewer rows."""
        return PredictorCorrector(arrays, self.factors, self.penalty, self.tuning, intercept=self.intercept)

    def each(self, nu: Floats) -> Floats:
        """Return the multiplier of each block, (J,): its factor, or nu, (K, 2), for a side."""
        return np.concatenate([self.factors[: self.arrays.singles], nu.ravel()])

    def start(
        self, coef: Floats, intercept: float, barrier: float, near: Near | None = None, miss: float = 0.0
    ) -> State:
        """Return all rows and sides on the central path of the scores of (coef, intercept).

        Scores that are off by `miss` say little of the multipliers of rows at a kink: these stay near given
        ones.
        """
        here, (u, nu), give = self.evaluate(coef, intercept), near or (None, None), self.tuning.give * miss
        values = self.arrays.sides(here.values)
        if nu is None:
            nu = _central_sides(values, self.eta, barrier * self.side_unit[:, 0])
        else:
            lead = (values[:, 0] - values[:, 1]) / self.arrays.sides(self.arrays.mass)[:, 0]
            nu = _near_sides(
                lead, nu[:, 0] / nu.sum(axis=1), self.eta, barrier * self.tuning.side_barrier, give
            )
        duals = self.arrays.centre(here.scores, barrier, u, give)
        pulls = Pulls(self.penalty, coef, barrier)
        return State(coef.copy(), intercept, here.scores, nu, barrier * self.side_unit / nu, duals, pulls)

    def scores(self, coef: Floats, intercept: float) -> Floats:
        """Return X w + b."""
        if not coef.any():
            return np.full(self.arrays.n_rows, intercept)
        return self.arrays.features.times(coef) + intercept

    def evaluate(self, coef: Floats, intercept: float, scores: Floats | None = None) -> Outcome:
        """Return a hypothesis, whose scores may be known already, with its primal value."""
        scores = self.scores(coef, intercept) if scores is None else scores
        values = self.arrays.values(scores, coef, intercept)
        primal = primal_value(self.arrays, values, self.factors, self.penalty.value(coef))
        return Outcome(coef, intercept, scores, values, primal)

    def run(
        self, state: State, tol: float, limit: int, *, until: float = 0.0, expected: float = np.inf
    ) -> Outcome:
        """Iterate until the relative gap is at most tol, or nothing moves any more.

        Parameters
        ----------
        limit
            The most iterations.
        until
            Also stop once directions are short and getting shorter: the last would move the scores by less
            than that in the mean.
        expected
            Also stop if the first direction is far longer than that: `miss` is then its length.
        """
        tuning = self.tuning
        best = Outcome(state.coef, state.intercept, state.scores, np.empty(0), np.inf, state=state)
        bold, record, since, first_value, move = tuning.share > 0, np.inf, 0, 0.0, np.inf
        for best.iterations in range(limit + 1):
            nu = self.each(state.nu)
            lin = self.arrays.linearise(state, nu)
            gap = self._keep(state, lin, nu, best, tol)
            first_value = max(first_value, best.primal)
            if best.converged or not np.isfinite(gap) or 0 <= best.primal <= tuning.vanished * first_value:
                break
            since = 0 if gap <= 0.5 * record else since + 1
            record = min(record, gap)
            if best.iterations == limit or since > tuning.safe_patience or clock.is_up(tuning.deadline):
                break
            if since > tuning.patience and bold:
                bold, record, since = False, np.inf, 0
                best.state = state = self.start(best.coef, best.intercept, tuning.restart)
                continue
            try:
                before, (move, mu) = move, self._step(state, lin, nu, bold=bold)
            except np.linalg.LinAlgError:  # numbers too far apart for any direction: what is known stands
                break
            if best.iterations == 0 and move > tuning.surprise * expected:
                best.iterations, best.miss = best.iterations + 1, move
                break
            if move < until and move < tuning.falling * before < np.inf:
                best.iterations += 1
                best.barrier = mu
                best.miss = max(
                    share * way for share, way in zip(tuning.miss_per_move, (move, before), strict=True)
                )
                break
        return best

    def _keep(self, state: State, lin: Linearisation, nu: Floats, best: Outcome, tol: float) -> float:
        """Update the best bounds; return an estimate of the gap of this iterate (exact once it may be small enough)."""
        primal = primal_value(self.arrays, lin.primal, self.factors, self.penalty.value(state.coef))
        if primal < best.primal:
            best.coef, best.intercept, best.scores = state.coef, state.intercept, state.scores
            best.values, best.primal = lin.primal, primal
        pull = state.pulls.answer(lin.columns[:-1, 0])
        g = lin.columns[:-1, 0] + pull
        bound = -float(nu @ lin.conjugate)
        gap = primal - bound + self.penalty.taken(g, bound)
        if np.isfinite(gap) and gap <= 2 * tol * abs(primal):
            dual = self.bound(state.duals.u, state.nu, pull, best)
            gap = max(gap, primal - dual) if np.isfinite(dual) else max(gap, abs(primal))
            best.converged = best.gap_within(tol)
        return gap

    def taken(self, pull: Floats) -> Callable[[Floats, float], float]:
        """Return what the regularizer takes from a bound as a function of X'c, given the force of norms."""
        return lambda g, bound: self.penalty.taken(g + pull, bound)

    def bound(self, u: Floats, nu: Floats, pull: Floats, best: Outcome) -> float:
        """Return n D of these multipliers, made feasible, and keep them if they are the best."""
        dual, u = dual_bound(self.arrays, u, self.each(nu), self.taken(pull), intercept=self.intercept)
        if dual > best.dual or best.u is None:
            best.dual, best.u, best.nu, best.pull = dual, u, nu.copy(), pull
        return dual

    def _step(self, state: State, lin: Linearisation, nu: Floats, *, bold: bool) -> tuple[float, float]:
        """One predictor-corrector step, in place; return the mean change of the scores in full, and the barrier."""
        arrays, tuning, pulls = self.arrays, self.tuning, state.pulls
        products = state.nu * state.sigma
        count = self.arrays.ends @ nu + self.side_unit.sum() + pulls.unit + 1e-300
        mu = (float(nu @ lin.products) + float(products.sum()) + pulls.products) / count
        mu = max(
            mu, pulls.products / (pulls.unit + 1e-300)
        )  # light as they are, norms must not be left behind
        direction = self._system(state, lin)
        dw, _, df, dnu, dsigma = direction(lin.columns[:, 1], lin.change, -products, pulls.aim(state.coef))
        histogram = arrays.direct(state, nu, df, corrected=False)
        left_behind = tuning.share * float(nu @ arrays.moving)
        room = min(_room(state.nu, dnu), _room(state.sigma, dsigma))
        pulls.follow(dw)
        affine = min(1.0, _quantile(histogram, left_behind), room)
        target = max((1 - affine) ** 3, 1e-3) * mu
        piece_dnu = np.concatenate([np.zeros(arrays.singles), dnu.ravel()])
        h, change = arrays.correct(state, nu, piece_dnu, target, tuning.second_order * mu if bold else np.inf)
        side = target * self.side_unit - products - dnu * dsigma
        dw, db, df, dnu, dsigma = direction(
            h, change, side, pulls.aim(state.coef, target, tuning.second_order * mu)
        )
        histogram = arrays.direct(state, nu, df, corrected=True)
        safe = 1 - tuning.safe_keep
        step = _quantile(histogram, left_behind) if bold else safe * arrays.longest_step(state, nu)
        pulls.follow(dw)
        step = min(1.0, step, safe * min(_room(state.nu, dnu), _room(state.sigma, dsigma)))

        def hypothesis(s: float) -> tuple[Floats, float, Floats]:
            return state.coef + s * dw, state.intercept + s * db, state.scores + s * df

        if arrays.smooth:
            step = self._searched(hypothesis, self.each(state.nu + step * dnu), pulls.ahead, lin.primal, step)
        state.coef, state.intercept, state.scores = hypothesis(step)
        state.nu = state.nu + step * dnu
        state.sigma = state.sigma + step * dsigma
        keeps = (
            (tuning.keep, tuning.curved_keep) if bold else (0.5 * tuning.safe_keep, 0.5 * tuning.safe_keep)
        )
        arrays.advance(state, step, *keeps)
        pulls.advance(step, tuning.keep)
        return float(np.abs(df).mean()), mu

    def _system(
        self, state: State, lin: Linearisation
    ) -> Callable[[Floats, Floats, Floats, Floats], Direction]:
        """Factor the Newton system; return a function of the right-hand side's h, changes of value, sides and norms."""
        arrays, d = self.arrays, len(state.coef)
        gram, ratio = arrays.features.gram(lin.density), (state.sigma / state.nu).sum(axis=1)
        state.pulls.add_to(gram)
        system = NewtonSystem(gram, lin.columns[:, 2:], self.lam, ratio, intercept=self.intercept)
        base = -lin.columns[:, 0]
        base[:-1] -= self.lam * state.coef + state.pulls.force

        def direction(h: Floats, change: Floats, side: Floats, aim: Floats) -> Direction:
            t = side / state.nu + arrays.sides(lin.value + change) + state.sigma
            right = base - h
            right[:-1] -= aim
            z, x = system.solve(right, t[:, 0] - t[:, 1])
            db = float(z[-1]) if self.intercept else 0.0
            dnu = np.outer(x, (1.0, -1.0))
            return z[:d], db, arrays.features.times(z[:d]) + db, dnu, (side - state.sigma * dnu) / state.nu

        return direction

    def _searched(
        self,
        hypothesis: Callable[[float], tuple[Floats, float, Floats]],
        nu: Floats,
        ahead: Floats,
        values: Floats,
        step: float,
    ) -> float:
        """Halve the step of a smooth problem until the Lagrangian is not huge and does not rise.

        The direction is Newton's for loss + regularizer + nu S with the *new* nu, which is therefore held
        fixed here. Beside hinge-like blocks, whose direction is another, a smooth one is only kept from
        running away.
        """
        w, _, _ = hypothesis(0.0)

        def regularizer(w: Floats) -> float:
            return float(0.5 * self.lam * (w @ w) + ahead @ w)

        here = regularizer(w) + nu @ values
        highest = here + (0.1 if self.arrays.moving.any() else 1e-12) * abs(here)
        for halvings in range(60):
            w, b, f = hypothesis(step)
            value = regularizer(w) + nu @ self.arrays.values(f, w, b)
            if value <= highest or (halvings >= self.tuning.halvings and value < HUGE):
                break
            step *= 0.5
        return step


def _central_sides(values: Floats, eta: Floats, unit: Floats) -> Floats:
    """Return nu maximising nu^+ S^+ + nu^- S^- + unit (log nu^+ + log nu^-) under nu^+ + nu^- = eta, shape (K, 2).

    With d = S^+ - S^-, the smaller side is  eta unit / (unit + |d| eta / 2 + sqrt(unit^2 + (d eta / 2)^2)).
    """
    half = 0.5 * (values[:, 0] - values[:, 1]) * eta
    small = eta * (unit / (unit + np.abs(half) + np.hypot(unit, half)))
    plus = np.where(half > 0, eta - small, small)
    return np.column_stack([plus, np.where(half > 0, small, eta - small)])


def _near_sides(lead: Floats, theta: Floats, eta: Floats, barrier: float, give: float) -> Floats:
    """Return nu = eta (x, 1 - x) with  lead - give (x - theta) - barrier/(1 - x) + barrier/x = 0, by bisection."""
    low, high = np.zeros(len(theta)), np.ones(len(theta))
    for _ in range(50):
        x = 0.5 * (low + high)
        rises = lead - give * (x - theta) - barrier / (1 - x) + barrier / x > 0
        low, high = np.where(rises, x, low), np.where(rises, high, x)
    return np.column_stack([eta * x, eta * (1 - x)])


def _quantile(histogram: Floats, weight: float) -> float:
    """Return the longest step that leaves behind rows of at most this weight; infinite if none is left behind."""
    behind = np.cumsum(histogram)
    if behind[-1] <= weight:
        return np.inf
    return float(np.searchsorted(behind, weight, side="right")) / passes.BINS


def _room(x: Floats, dx: Floats) -> float:
    """Return the longest step that keeps x + step dx >= 0."""
    return min(
        (-a / b for a, b in zip(x.ravel().tolist(), dx.ravel().tolist(), strict=True) if b < 0),
        default=np.inf,
    )
