"""The session of the interior-point solver: solve on the rows near a kink, check on all rows, and warm-start.

A session solves the problems along a path, which differ in the weights of their terms. Each solve is
warm-started from the last one.

A hinge-like function phi is affine beyond its kinks. Once the scores are near the optimum, the dual variable
u of most rows is at an end of its interval. These rows are fixed: in each block they are replaced by one
linear function. With the targets t_i, weights B_i and scores f_i = w.x_i + b of the fixed rows,

    sum_i B_i phi(t_i f_i)  >=  (sum_i B_i t_i u_i x_i)'w + (sum_i B_i t_i u_i) b - sum_i B_i phi*(u_i),

with equality if every fixed row stays on its side of the kinks. The problem on the other rows is called
condensed (`Arrays.near_kinks`). Fixed u are feasible, so a dual bound of the condensed problem is always a
dual bound of the whole problem. The primal value is computed on all rows. If the primal value and the dual
bound do not meet, rows are chosen again: also those that crossed a kink. In the end all rows are taken.
"""

import time
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from nerm.certify.multipliers import Multipliers
from nerm.certify.solution import Answer
from nerm.model.blocks import Block, score_unit, term_weights
from nerm.model.problem import Problem
from nerm.solvers import clock
from nerm.solvers.base import Session, check_options
from nerm.solvers.interior_point.matrices import Arrays, Features, RowThreads, State, choose_coordinates
from nerm.solvers.interior_point.norms import Penalty
from nerm.solvers.interior_point.predictor_corrector import Outcome, PredictorCorrector, Tuning
from nerm.solvers.interior_point.solver import needs_axes, structure_of
from nerm.typing import Floats
from nerm.validation import as_positive

EPS = np.finfo(float).eps
TINY = np.finfo(float).tiny
SCORE_ERRORS = ("cold_error", "warm_error", "least_error")  # the constants of `Tuning` in units of a score
RIDGE = 0.1  # share of the tolerance for an auxiliary ridge


class Engine(Session):
    """A session that solves a problem for any weights of its terms.

    The objective is P(w, b), with f = X w + b (b = 0 without an intercept):

        P(w, b) = sum over single blocks j of factor_j S_j + sum over terms k of factor_k max(S_k^+, S_k^-)
                  + (mu/2) ||w||^2 + norms of w
        S_j     = (1/n) sum_i B_ji phi_j(t_ji f_i - o_ji)

    Block j has the atom phi_j, the row weights B_ji, targets t_ji and offsets o_ji; its factor is the weight
    of its term. S_k^+ and S_k^- of a two-sided term k are the sums of the blocks of its sides. Each solve
    starts from the last solutions. Between two solves the blocks can be replaced by others on the same rows.
    If the problem has norms of coefficients or of groups of coefficients, the unknowns are the coefficients
    themselves. Otherwise they can be coordinates in a smaller space (`choose_coordinates`).

    Parameters
    ----------
    problem
        A problem that the solver "interior-point" takes.
    workers
        The largest number of threads; by default one per core.
    """

    tuning = Tuning()

    def __init__(self, problem: Problem, workers: int | None = None) -> None:
        started = time.perf_counter()
        self.n = problem.divisor
        self.intercept = problem.intercept
        self._axes = needs_axes(problem)
        self._outside, X = choose_coordinates(problem.hypothesis.X, intercept=self.intercept, axes=self._axes)
        self.workers = RowThreads(X.shape[0], X.shape[1], workers)
        self.features = Features(X, self.workers)
        self._active = list[Block]()
        self._level, self._unit = score_unit(problem.blocks, intercept=self.intercept)
        errors = {name: self._unit * getattr(self.tuning, name) for name in SCORE_ERRORS}
        self.tuning = replace(self.tuning, **errors)
        self._solutions = list[tuple[Floats, Outcome]]()  # the logarithms of the weights, and the solution
        self._score_error = self.tuning.warm_error
        self._build_seconds = time.perf_counter() - started

    def renewed(self, problem: Problem) -> bool:
        """Return whether the session can solve this problem on the same rows.

        It cannot if the problem has norms of coefficients or of groups, and the unknowns of the session are
        coordinates in a smaller space.
        """
        return self._axes or not needs_axes(problem)

    def answer(
        self, problem: Problem, accuracy: float, options: dict[str, Any], deadline: float = clock.NEVER
    ) -> Answer:
        """Solve one problem to this relative gap.

        The details of the returned `Answer` are the primal value P and the dual value D, both divided by n,
        and the number of products X w.
        """
        check_options("interior-point", options, ("max_iterations",))
        most = int(as_positive(options.get("max_iterations", self.tuning.max_iterations), "max_iterations"))
        started = time.perf_counter()
        self.blocks = problem.blocks
        self.features.passes = 0
        tol = 0.9 * accuracy
        with self.workers:
            method = self._method(problem, tol, deadline)
            outcome = self._solve(method, tol, most)
            answer = self._answer(method, outcome, started)
        answer = replace(answer, build_seconds=self._build_seconds)
        self._build_seconds = 0.0
        return answer

    def _method(self, problem: Problem, tol: float, deadline: float) -> PredictorCorrector:
        """Return the method for the weights of a problem.

        A block is left out if its weight is negligible beside those of the single blocks, that is, below
        rounding.
        """
        factors = term_weights(problem)
        masses = factors * [float(block.weights.sum()) for block in self.blocks]
        single = np.array([block.side == 0 for block in self.blocks])
        least = EPS**2 * masses[single].sum()
        active = np.flatnonzero((masses > least) | (single & (masses == least)))  # both 0: one must be active
        blocks = [self.blocks[j] for j in active]
        if blocks != self._active:
            self._arrays = Arrays(blocks, self.features)
            self._active = blocks
        penalty = self._penalty(problem, tol)
        return PredictorCorrector(
            self._arrays, factors[active], penalty, self.tuning, self.intercept, deadline
        )

    def _penalty(self, problem: Problem, tol: float) -> Penalty:
        """Return the regularizer n Omega; if it has no squared l2 norm, add an auxiliary ridge.

        The ridge (r/2) ||w||^2 is so small that it changes the objective by less than the tolerance. Let S be
        the value of the single blocks at f = 0, in sum form. If no loss is negative, the optimum satisfies n
        Omega(w) <= S, because max(C+, C-) is smallest at f = 0. Let m be the smallest weight of a norm,
        divided by sqrt(k), where k is the number of coefficients in the largest group. If each coefficient is
        in a group, ||w|| <= n Omega(w) / m <= S / m, and r = RIDGE tol m^2 / S gives (r/2) ||w||^2 <= RIDGE
        tol S / 2. If some coefficient is in no group, no such bound is known: then r is chosen so that (r/2)
        ||w||^2 is this small if each coefficient changes the scores by about one unit.
        """
        mu, norms, form = structure_of(problem)
        scaled = tuple(n._replace(weights=self.n * n.weights) for n in norms)
        quadratic = None if form is None else self.n * form.toarray()
        squares = self._squares if self._axes else np.zeros(0)
        if mu > 0:
            return Penalty(self.n * mu, scaled, squares, quadratic=quadratic)
        pairs = zip(term_weights(problem), self.blocks, strict=True)
        at_zero = sum(f * b.at_zero for f, b in pairs if b.side == 0)
        plain = [n for n in scaled if n.matrix is None]
        covered = len(np.unique(np.concatenate([[], *(n.groups.ravel() for n in plain)]))) == len(squares)
        if not covered or form is not None:
            ridge = RIDGE * tol * at_zero / (self._unit**2 * (1 / squares).sum())
            return Penalty(ridge, scaled, squares, quadratic=quadratic)
        least = min(n.weights.min() / (1 if n.order == 2 else n.groups.shape[1] ** 0.5) for n in plain)
        return Penalty(RIDGE * tol * least**2 / max(at_zero, TINY), scaled, squares, auxiliary=True)

    @cached_property
    def _squares(self) -> Floats:
        """The mean square of each column of X, (d,).

        A negligible mean square is replaced by the mean over all columns.
        """
        squares = self.features.squares() / self.features.shape[0]
        mean = float(squares.mean()) or 1.0
        return np.where(squares > EPS**0.75 * mean, squares, mean)

    def _solve(self, method: PredictorCorrector, tol: float, limit: int) -> Outcome:
        """Try a warm start with half of the iterations `limit`, then a cold start; keep the solution.

        The mean error of the scores at a warm start is stored. It is the expected error at the next warm
        start.
        """
        outcome, warm, error = None, self._warm_start(method), self.tuning.warm_error
        if warm is not None:
            outcome = minimise(method, warm, self._score_error, tol, -(-limit // 2))
        if outcome is None or not (outcome.converged or clock.is_up(method.deadline)):
            zero = method.evaluate(np.zeros(self.features.shape[1]), self._level)
            spent = 0 if outcome is None else outcome.iterations
            cold = minimise(method, zero, self.tuning.cold_error, tol, limit - spent)
            outcome = cold if outcome is None else outcome.then(cold, tol)
        if warm is not None:
            error = max(float(np.abs(outcome.scores - warm.scores).mean()), self.tuning.least_error)
        self._score_error = error
        kept = replace(outcome, u=None)  # it needs much memory, and the next start not at all
        self._solutions = [*self._solutions[-1:], (log_weights(method), kept)]
        return outcome

    def _warm_start(self, method: PredictorCorrector) -> Outcome | None:
        """Return the hypothesis from which the next solve starts, or None for a cold start.

        It is the last solution, or the point for the new weights on the line through the last two solutions
        as a function of the logarithms of the weights, if that has a lower primal value. Return None if there
        is no solution yet, if a weight has changed much, or if f = 0 has a lower primal value.
        """
        if not self._solutions:
            return None
        (first, older), (second, newer) = self._solutions[0], self._solutions[-1]
        weights = log_weights(method)
        comparable = weights.shape == second.shape
        if comparable and np.abs(weights - second).max() > self.tuning.farthest:
            return None
        here = method.evaluate(newer.coef, newer.intercept, newer.scores)
        if not here.primal <= method.evaluate(0.0 * newer.coef, 0.0, 0.0 * newer.scores).primal:
            return None
        way = second - first if comparable and first.shape == second.shape else np.zeros(1)
        if not way.any():
            return here
        share = float((weights - second) @ way / (way @ way))
        pairs = [(getattr(newer, k), getattr(older, k)) for k in ("coef", "intercept", "scores")]
        ahead = method.evaluate(*(last + share * (last - before) for last, before in pairs))
        return ahead if ahead.primal < here.primal else here

    def _answer(self, method: PredictorCorrector, outcome: Outcome, started: float) -> Answer:
        """Turn an outcome of the method into an answer to the given problem.

        The answer has multipliers of all blocks. Those of blocks that `_method` left out, and of rows of
        weight 0, are subgradients at the scores.
        """
        u = dict(zip(self._active, outcome.u, strict=True))
        known = dict.fromkeys(block.term for block in self._active if block.side)
        thetas = dict.fromkeys((block.term for block in self.blocks if block.side), 0.5)
        thetas.update(zip(known, (outcome.nu[:, 0] / outcome.nu.sum(axis=1)).tolist(), strict=True))
        rows = np.empty((len(self.blocks), len(outcome.scores)))
        for j, block in enumerate(self.blocks):
            rows[j] = -u[block] if block in u else 0.0
            if block not in u or not block.weights.all():  # without weight, any subgradient
                middle = np.mean(block.atom.subgradient(block.margins(outcome.scores)), axis=0)
                rows[j] = np.where(block.weights > 0, rows[j], -middle) if block in u else -middle
        coef, intercept = self._outside(outcome.coef, outcome.intercept)
        is_late = clock.is_up(method.deadline)
        claim = "converged" if outcome.converged else "stopped: time is up" if is_late else "stopped early"
        return Answer(
            coef,
            intercept,
            Multipliers(rows, np.array(list(thetas.values()))),
            claim=claim,
            iterations=outcome.iterations,
            solve_seconds=time.perf_counter() - started,
            details={
                "primal": outcome.primal / self.n,
                "dual": outcome.dual / self.n,
                "passes": self.features.passes,
            },
            timed_out=is_late and not outcome.converged,
        )


def minimise(method: PredictorCorrector, start: Outcome, error: float, tol: float, limit: int) -> Outcome:
    """Solve condensed problems until the relative gap on all rows is at most `tol`.

    As soon as a step changes the scores little, fewer rows are chosen around the iterate. If the last
    condensed problem is solved but the gap on all rows is larger than the tolerance, rows are chosen around
    its solution if that has a lower primal value. Otherwise more rows are chosen around the same start.

    Parameters
    ----------
    method
        The method on all rows.
    start
        The hypothesis to start from.
    error
        The expected mean error of its scores.
    tol
        The target of the relative gap.
    limit
        The largest number of iterations.
    """
    tuning, inner, best, here, others = method.tuning, method, start, start, start.scores
    iterations = misled = 0
    state: State | None = None
    while True:
        few, is_large = None, inner.arrays.n_rows >= tuning.fewest_rows and not inner.arrays.smooth
        if is_large and misled < tuning.rounds and (state is None or not misled):
            few = inner.arrays.near_kinks(here.scores, others, tuning.near_kink * error, tuning.most_rows)
        if few is not None:
            inner, last_error, is_large = replace(method, arrays=few), error, few.n_rows >= tuning.fewest_rows
            state = inner.start(inner.evaluate(here.coef, here.intercept, here.scores[few.rows]), error)
        elif state is None:
            state = inner.start(here, error)
        settled = tuning.settled * error if is_large and not misled else 0.0
        found = inner.run(state, tol, limit - iterations, settled=settled)
        iterations += found.iterations
        if found.score_error is not None:
            here = replace(found, coef=state.coef, intercept=state.intercept, scores=state.scores)
            others, error = here.scores, found.score_error
            continue
        whole = found
        if inner is not method:
            whole = method.evaluate(found.coef, found.intercept)
            whole.dual, whole.u, whole.nu = found.dual, inner.arrays.on_all_rows(found.u), found.nu
        best = best.then(whole, tol)
        best.iterations = iterations
        is_last = best.converged or iterations >= limit or clock.is_up(method.deadline)
        if is_last or inner is method:
            return best
        if whole.primal < start.primal:
            here, others, start, error = whole, start.scores, whole, last_error
        else:
            here, others, error = start, whole.scores, tuning.wider * last_error
        inner, state, misled = method, None, misled + 1


def log_weights(method: PredictorCorrector) -> Floats:
    """Return the logarithms of the positive weights of terms and regularizers."""
    norms = [n.weights[:1] for n in method.penalty.norms]
    weights = np.concatenate([method.factors, [method.penalty.lam], *norms])
    return np.asarray(np.log(weights[weights > 0]))
