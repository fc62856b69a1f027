"""Minimise the smoothed saddle function by Mehrotra's predictor-corrector method.

The symbols are those of `nerm.solvers.interior_point.passes`. Row i of block j has the target t_ji, the
weight B_ji and the dual variable u_ji. The conjugate of the atom of block j is linear_j u + quadratic_j u^2/2
on the interval of u. In sum form the problem is the saddle

    min over (w, b), max over u_ji in its interval and theta_k in [0, 1]  of
    sum_j nu_j sum_i B_ji (u_ji (t_ji f_i - linear_j) - quadratic_j u_ji^2 / 2) + (lam/2) ||w||^2,

f = X w + b. The factor nu_j of a single block is the weight of its term. The factors of the two sides of
neutrality term k, with weight eta_k, are nu_k^+ = eta_k theta_k and nu_k^- = eta_k (1 - theta_k). Norms of w
are added by `nerm.solvers.interior_point.norms`.

A log barrier keeps u inside its interval. The weights B and nu multiply it, so the barrier parameter has the
scale of a margin, and a row of weight 2 equals two rows. From any (w, b) each row can be put on the central
path of its score.

The usual common step length is the longest one that keeps every row inside its bounds. Here (w, b) steps as
far as all but a small share of the weight allows, and each of the other rows has its own, shorter step
length. The next Newton step corrects the error in X'c + lam w = 0. If the gap stops falling, the method goes
on with the common step length.

`passes.linearise` computes the row vectors c, h and e_k and the density D of the rows. The slacks
sigma_k^+- >= 0 satisfy S_k^+ + sigma_k^+ = S_k^- + sigma_k^- for the values S_k^+- of the sides. The Newton
system is

    (lam I + X'DX) dw + X'D1 db + sum_k dnu_k X'e_k  = -(lam w + X'(c + h))
          1'DX  dw +  1'D1 db + sum_k dnu_k 1'e_k  = -1'(c + h)                      (free intercept only)
    (sigma_k^+ / nu_k^+ + sigma_k^- / nu_k^-) dnu_k - e_k'(X dw + 1 db) = T_k^+ - T_k^-,
    T_k^+- = S_k^+- + change_k^+- + sigma_k^+- + r_k^+- / nu_k^+-

Here change is the part of the change of S that does not depend on (dw, db), and r_k^+- is the required change
of the product nu_k^+- sigma_k^+-. With dnu_k^+ = dnu_k = -dnu_k^- the sum nu_k^+ + nu_k^- stays eta_k. The
first two equations share one Cholesky factor; K equations for the dnu_k are left. The exact derivative of
S_k^+ - S_k^- in the last equation is e_k + O(barrier); with e_k the system stays symmetric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrs

from nerm.solvers import clock
from nerm.solvers.interior_point import passes
from nerm.solvers.interior_point.matrices import Arrays, Linearisation, State, cholesky
from nerm.solvers.interior_point.norms import NormDuals, Penalty
from nerm.typing import Floats

SMALLEST = np.finfo(float).tiny
OVERFLOW = np.finfo(float).max ** 0.3  # a value whose square may overflow
VANISHING = SMALLEST**0.3  # a primal value below this fraction of the first one counts as the optimum 0


@dataclass(frozen=True)
class Tuning:
    """The constants of the method.

    Scores, margins and barriers have one scale, on which the kink of a hinge is at margin 1.
    """

    left_behind: float = 0.03  # share of the weight whose rows may stop short of the common step
    keep: float = 0.2  # share of its distance to a bound that a per-row step leaves
    common_keep: float = 0.005  # the same for the common step
    side_barrier: float = 0.1  # barrier of nu sigma relative to that of u p
    second_order: float = 10.0  # bound on second-order terms, relative to the barrier
    patience: int = 6  # iterations without a halved gap before the common step takes over
    max_iterations: int = 200
    fewest_rows: int = 2000  # problems with fewer rows are not condensed
    most_rows: float = 0.7  # share of the rows above which a condensed problem does not pay
    near_kink: float = 6.0  # rows within so many score errors of a kink stay in a condensed problem
    rounds: int = 6  # problems, condensed or not, before the last one on all rows
    settled: float = 0.5  # a step below so many score errors ends a run: fewer rows matter
    wider: float = 3.0  # growth of the score error where a condensed problem misled
    error_per_move: float = 0.3  # score error after a Newton step, per mean change of the scores
    cold_error: float = 1.0  # score error of f = 0: the scale of a margin
    warm_error: float = 0.1  # score error of a start whose quality is not known
    least_error: float = 1e-4  # score error expected of any start
    farthest: float = 1.5  # change of a log weight beyond which the last solution is no start


class Direction(NamedTuple):
    """A Newton direction: the changes of w, b, the scores, nu and sigma.

    nu and sigma, (K, 2), are the factors and slacks of the sides of each two-sided term (`State`).
    """

    coef: Floats
    intercept: float
    scores: Floats
    nu: Floats
    sigma: Floats


@dataclass
class Outcome:
    """The best hypothesis and the best dual variables so far.

    Attributes
    ----------
    coef, intercept, scores, values
        The hypothesis, its scores, (n,), and the value of each block in sum form, (J,).
    primal, dual
        The primal value n P, and the dual value in sum form (`PredictorCorrector._update_bounds`).
    u, nu
        The dual variables of the rows, (J, n), and of the two-sided terms, (K, 2); None at first.
    iterations, converged
        The number of iterations, and whether the relative gap is at most the tolerance.
    score_error
        The expected mean error of the scores, if a run stopped early.
    """

    coef: Floats
    intercept: float
    scores: Floats
    values: Floats
    primal: float
    dual: float = -np.inf
    u: Any = None
    nu: Any = None
    iterations: int = 0
    converged: bool = False
    score_error: float | None = None

    def gap_within(self, tol: float) -> bool:
        """Return whether the relative gap (n P - n D) / `|n P|` is at most tol."""
        return bool(np.isfinite(self.primal)) and self.primal - self.dual <= tol * abs(self.primal)

    def then(self, other: Outcome, tol: float) -> Outcome:
        """Combine two outcomes: return the lower primal value and the higher dual bound.

        The iterations are added.
        """
        low = self if self.primal < other.primal else other
        high = self if self.dual > other.dual else other
        both = replace(low, dual=high.dual, u=high.u, nu=high.nu)
        both.iterations = self.iterations + other.iterations
        both.converged = both.gap_within(tol)
        return both


@dataclass
class PredictorCorrector:
    """The method on one problem.

    Attributes
    ----------
    arrays
        The problem.
    factors
        (J,): the weight of the term of each block.
    penalty
        The regularizer n Omega.
    tuning
        The constants of the method.
    intercept
        Whether the intercept is free.
    deadline
        The time at which the method stops (`nerm.solvers.clock`).
    eta
        (K,): the weight of each two-sided term.
    side_unit
        (K, 2): the products nu sigma of the sides on the central path at barrier 1.
    """

    arrays: Arrays
    factors: Floats
    penalty: Penalty
    tuning: Tuning
    intercept: bool
    deadline: float = clock.NEVER

    def __post_init__(self) -> None:
        self.eta = self.factors[self.arrays.firsts]
        self.side_unit = self.tuning.side_barrier * self.arrays.sides(self.factors * self.arrays.mass)

    def block_weights(self, nu: Floats) -> Floats:
        """Return the factor nu_j of each block, (J,).

        For a single block it is the weight of the term; for a block of a side it is the side's entry in `nu`,
        (K, 2).
        """
        return self.arrays.by_block(self.factors[: self.arrays.singles], nu)

    def start(self, here: Outcome, score_error: float) -> State:
        """Return the state on the central path at the scores of the hypothesis `here`.

        The barrier parameter is the expected error of the scores.
        """
        barrier = min(max(score_error, self.tuning.least_error), self.tuning.cold_error)
        nu = central_sides(self.arrays.sides(here.values), self.eta, barrier * self.side_unit[:, 0])
        duals = self.arrays.centre(here.scores, barrier)
        norms = NormDuals(self.penalty, here.coef, barrier)
        sigma = barrier * self.side_unit / nu
        return State(here.coef.copy(), here.intercept, here.scores, nu, sigma, duals, norms)

    def evaluate(self, coef: Floats, intercept: float, scores: Floats | None = None) -> Outcome:
        """Return the outcome of a hypothesis: its scores, block values and primal value.

        The scores, (n,), are computed if they are not given.
        """
        scores = self.arrays.features.times(coef) + intercept if scores is None else scores
        values = self.arrays.values(scores, coef, intercept)
        return Outcome(coef, intercept, scores, values, self._primal(values, coef))

    def _primal(self, values: Floats, coef: Floats) -> float:
        """Return the primal value in sum form, n P, for sum B phi(m) of each block, (J,), and w."""
        singles = self.arrays.singles
        larger = self.arrays.sides(values).max(axis=1, initial=-np.inf)
        risks = self.factors[:singles] @ values[:singles]
        return float(self.penalty.value(coef) + risks + self.eta @ larger)

    def run(self, state: State, tol: float, limit: int, *, settled: float = 0.0) -> Outcome:
        """Iterate until the relative gap is at most tol.

        Each iteration solves two Newton systems with one factor:

            affine step     barrier 0: its step length a measures how far the barrier can fall
            centring        target barrier = max((1 - a)^3, 1e-3) * barrier
            corrected step  target barrier and the second-order terms of the affine step
            step length     all but a share `left_behind` of the weight stays inside its bounds

        If the gap is not halved for `patience` iterations, the method restarts from the best hypothesis and
        takes the common step length of all rows. After 4 times as many iterations it stops.

        Parameters
        ----------
        state
            The first iterate; it is changed.
        tol
            The target of the relative gap.
        limit
            The largest number of iterations.
        settled
            The run also stops after a step whose mean change of the scores is below this number and below
            that of the step before. Then the problem can be condensed, and `score_error` of the outcome is
            set.
        """
        tuning = self.tuning
        best = Outcome(state.coef, state.intercept, state.scores, np.empty(0), np.inf)
        per_row = True
        lowest_gap = np.inf
        stalled = 0
        first_value = 0.0
        move = np.inf
        for best.iterations in range(limit + 1):
            nu = self.block_weights(state.nu)
            lin = self.arrays.linearise(state, nu)
            gap = self._update_bounds(state, lin, nu, best)
            best.converged = best.gap_within(tol)
            first_value = max(first_value, best.primal)
            vanishes = 0 <= best.primal <= VANISHING * first_value
            if best.converged or vanishes or not np.isfinite(gap):
                break
            stalled = 0 if gap <= 0.5 * lowest_gap else stalled + 1
            lowest_gap = min(lowest_gap, gap)
            if best.iterations == limit or stalled > 4 * tuning.patience or clock.is_up(self.deadline):
                break
            if stalled > tuning.patience and per_row:
                per_row = False
                lowest_gap = np.inf
                stalled = 0
                here = replace(best, values=self.arrays.values(best.scores, best.coef, best.intercept))
                state = self.start(here, tuning.warm_error)
                continue
            previous_move = move
            try:
                move, barrier = self._step(state, lin, nu, per_row=per_row)
            except np.linalg.LinAlgError:  # no direction in floating-point numbers
                break
            if move < settled and move < previous_move < np.inf:
                best.iterations += 1
                best.score_error = tuning.error_per_move * max(move, barrier)
                break
        return best

    def _update_bounds(self, state: State, lin: Linearisation, nu: Floats, best: Outcome) -> float:
        """Update the best primal value, and the dual value of this iterate; return the gap between them.

        The dual value is min over w of the saddle function at (b, u). If the intercept is free, it is a lower
        bound only for dual variables u with sum_i c_i = 0. So `|sum_i c_i|` times the scale of a score is
        subtracted.
        """
        primal = self._primal(lin.primal, state.coef)
        if primal < best.primal:
            best.coef = state.coef
            best.intercept = state.intercept
            best.scores = state.scores
            best.values = lin.primal
            best.primal = primal
        gradient = lin.columns[:-1, 0]
        excess = float(lin.columns[-1, 0]) if self.intercept else 0.0
        bound = excess * state.intercept - float(nu @ lin.conjugate)
        gradient = gradient + state.norms.feasible_gradient(gradient)
        bound -= self.penalty.conjugate(gradient, excess, bound)
        best.dual = bound - abs(excess) * self.tuning.cold_error
        best.u, best.nu = state.duals.u, state.nu
        return best.primal - best.dual

    def _step(self, state: State, lin: Linearisation, nu: Floats, *, per_row: bool) -> tuple[float, float]:
        """Take one step in place.

        Return the mean absolute change of the scores that a full step would make, and the barrier.
        """
        arrays, tuning, norms = self.arrays, self.tuning, state.norms
        products = state.nu * state.sigma
        count = arrays.ends @ nu + self.side_unit.sum() + norms.unit + SMALLEST
        barrier = (float(nu @ lin.products) + float(products.sum()) + norms.products) / count
        barrier = max(barrier, norms.products / (norms.unit + SMALLEST))
        second_order = tuning.second_order * barrier
        left_behind = tuning.left_behind * float(nu @ arrays.moving)
        newton = self._newton(state, lin)

        affine = newton(lin.columns[:, 1], lin.change, -products, norms.right_hand_side(state.coef))
        histogram = arrays.direct(state, nu, affine.scores, corrected=False)
        norms.follow(affine.coef)
        affine_length = min(1.0, _quantile(histogram, left_behind), _sides_length(state, affine))
        target = max((1 - affine_length) ** 3, 1e-3) * barrier

        side_change = arrays.by_block(np.zeros(arrays.singles), affine.nu)
        h, change = arrays.correct(state, nu, side_change, target, second_order if per_row else np.inf)
        sides = target * self.side_unit - products - affine.nu * affine.sigma
        step = newton(h, change, sides, norms.right_hand_side(state.coef, target, second_order))
        histogram = arrays.direct(state, nu, step.scores, corrected=True)
        norms.follow(step.coef)

        common = 1 - tuning.common_keep
        length = _quantile(histogram, left_behind) if per_row else common * arrays.longest_step(state, nu)
        length = min(1.0, length, common * _sides_length(state, step))
        if arrays.smooth:
            length = self._line_search(state, step, lin.primal, length)
        state.coef = state.coef + length * step.coef
        state.intercept = state.intercept + length * step.intercept
        state.scores = state.scores + length * step.scores
        state.nu = state.nu + length * step.nu
        state.sigma = state.sigma + length * step.sigma
        keep, curved_keep = (tuning.keep, 0.5 * tuning.keep) if per_row else (0.5 * tuning.common_keep,) * 2
        arrays.advance(state, length, keep, curved_keep)
        norms.advance(length, tuning.keep)
        return float(np.abs(step.scores).mean()), barrier

    def _newton(
        self, state: State, lin: Linearisation
    ) -> Callable[[Floats, Floats, Floats, Floats], Direction]:
        """Factor the Newton system of the module docstring; return a function that solves it.

        The function takes four parts of the right-hand side and returns a `Direction`:

        - (X, 1)'h, (d + 1,), for the row vector h of `passes.linearise` or of `passes.correct`;
        - change, (J,), the part of the change of each block value that does not depend on (dw, db);
        - r, (K, 2), the required changes of the products nu sigma of the sides;
        - sum omega k, (d,), the part of the norms (`NormDuals.right_hand_side`).
        """
        arrays = self.arrays
        d = len(state.coef)
        gram = arrays.features.gram(lin.density)
        state.norms.add_to(gram)
        ratio = (state.sigma / state.nu).sum(axis=1)
        system = NewtonSystem(gram, lin.columns[:, 2:], self.penalty.lam, ratio, intercept=self.intercept)
        base = -lin.columns[:, 0]
        base[:-1] -= self.penalty.times(state.coef) + state.norms.gradient

        def direction(h: Floats, change: Floats, sides: Floats, norms: Floats) -> Direction:
            t = sides / state.nu + arrays.sides(lin.value + change) + state.sigma
            right = base - h
            right[:-1] -= norms
            z, x = system.solve(right, t[:, 0] - t[:, 1])
            db = float(z[-1]) if self.intercept else 0.0
            df = arrays.features.times(z[:d]) + db
            dnu = np.outer(x, (1.0, -1.0))
            return Direction(z[:d], db, df, dnu, (sides - state.sigma * dnu) / state.nu)

        return direction

    def _line_search(self, state: State, step: Direction, values: Floats, length: float) -> float:
        """Halve the step on a smooth problem until the Lagrangian does not increase.

        The Lagrangian is the sum of the block values times the new nu, plus the regularizer; nu is fixed, and
        each norm is replaced by its linear function at the new u. If all blocks are smooth, the step is a
        Newton step for this function. If there are hinge-like blocks too, only an increase by more than
        10 % is refused, because then the step is not a Newton step. After `patience` halvings every value
        that does not overflow is accepted.
        """
        nu = self.block_weights(state.nu + length * step.nu)
        slope = state.norms.next_gradient

        def lagrangian(w: Floats, values: Floats) -> float:
            return float(0.5 * w @ self.penalty.times(w) + slope @ w + nu @ values)

        here = lagrangian(state.coef, values)
        highest = here + (0.1 if self.arrays.moving.any() else 1e-12) * abs(here)
        for halvings in range(60):
            w = state.coef + length * step.coef
            b = state.intercept + length * step.intercept
            value = lagrangian(w, self.arrays.values(state.scores + length * step.scores, w, b))
            if value <= highest or (halvings >= self.tuning.patience and value < OVERFLOW):
                break
            length *= 0.5
        return length


def central_sides(values: Floats, eta: Floats, unit: Floats) -> Floats:
    """Return the factors nu, (K, 2), of the sides of two-sided terms on the central path.

    For the values S^+ and S^- of the sides, (K, 2), nu maximises nu^+ S^+ + nu^- S^- + unit (log nu^+ + log
    nu^-) subject to nu^+ + nu^- = eta; eta and unit are (K,). With d = S^+ - S^-, the smaller of nu^+ and
    nu^- is

        eta unit / (unit + |d| eta / 2 + sqrt(unit^2 + (d eta / 2)^2)).
    """
    half = 0.5 * (values[:, 0] - values[:, 1]) * eta
    small = eta * (unit / (unit + np.abs(half) + np.hypot(unit, half)))
    plus = np.where(half > 0, eta - small, small)
    return np.column_stack([plus, np.where(half > 0, small, eta - small)])


def _quantile(histogram: Floats, weight: float) -> float:
    """Return the longest step for which at most this weight of rows would leave its bounds.

    `histogram` holds the weight of rows by their longest step in [0, 1). Return inf if its total is at most
    `weight`.
    """
    behind = np.cumsum(histogram)
    if behind[-1] <= weight:
        return np.inf
    return float(np.searchsorted(behind, weight, side="right")) / passes.BINS


def _sides_length(state: State, step: Direction) -> float:
    """Return the longest step that keeps the factors nu and slacks sigma of all sides positive."""
    lowest = min((step.nu / state.nu).min(initial=0.0), (step.sigma / state.sigma).min(initial=0.0))
    return -1.0 / lowest if lowest < 0 else np.inf


class NewtonSystem:
    """The Newton system of the module docstring, factored; `solve` takes one right-hand side at a time.

    Parameters
    ----------
    gram
        (d + 1, d + 1): (X, 1)'D(X, 1) plus the part of the norms; only the upper triangle is read.
    e
        (d + 1, K): column k holds (X'e_k, 1'e_k).
    lam
        The weight of ||w||^2 / 2.
    ratio
        (K,): sigma_k^+ / nu_k^+ + sigma_k^- / nu_k^-.
    intercept
        Whether the intercept is free.
    """

    def __init__(self, gram: Floats, e: Floats, lam: float, ratio: Floats, *, intercept: bool) -> None:
        """Factor the system."""
        d = gram.shape[0] - 1
        size = d + 1 if intercept else d
        matrix = np.array(gram[:size, :size], order="F")
        matrix[np.arange(d), np.arange(d)] += lam
        # Unit diagonal: the scale of a feature then matters neither for the factor nor for the jitter below.
        diagonal = matrix.diagonal()
        if not (np.isfinite(diagonal).all() and diagonal.max() > 0):
            raise np.linalg.LinAlgError("the Newton system overflows")
        floor = 1e-300 + 1e-30 * diagonal.max()
        self._scale = 1.0 / np.sqrt(np.maximum(diagonal, floor))
        matrix *= self._scale[:, None]
        matrix *= self._scale
        self._factor = cholesky(matrix)
        self._e = e[:size]
        self._inverse_e = self._apply(self._e)
        self._small = self._e.T @ self._inverse_e + np.diag(ratio)
        self._size = size

    def _apply(self, rhs: Floats) -> Floats:
        scale = self._scale if rhs.ndim == 1 else self._scale[:, None]
        return np.asarray(scale * dpotrs(self._factor, scale * rhs)[0])

    def solve(self, rhs: Floats, term_rhs: Floats) -> tuple[Floats, Floats]:
        """Return (dw, db), or dw without an intercept, and the dnu_k, (K,).

        `rhs`, (d + 1,), is the right-hand side of the equations for (dw, db), and `term_rhs`, (K,), that of
        the equations for the dnu_k.
        """
        step = self._apply(rhs[: self._size])
        term_rhs = term_rhs + self._e.T @ step
        if len(term_rhs) == 1 and self._small[0, 0] > 0:
            dnu = term_rhs / self._small[0, 0]
        else:
            dnu = np.linalg.lstsq(self._small, term_rhs, rcond=None)[0] if len(term_rhs) else term_rhs
        return step - self._inverse_e @ dnu, dnu
