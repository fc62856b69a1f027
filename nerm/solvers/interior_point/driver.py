"""The engine: features, coordinates and threads prepared once, then one solve after the other, each from the last."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from nerm.atoms.regularizer import Norms
from nerm.certify.multipliers import Multipliers
from nerm.certify.solution import Answer
from nerm.errors import InvalidInputError
from nerm.model.blocks import Block
from nerm.solvers import clock
from nerm.solvers.interior_point.arrays import Arrays
from nerm.solvers.interior_point.condense import foretold, optimum
from nerm.solvers.interior_point.coordinates import choose
from nerm.solvers.interior_point.matrices import Features
from nerm.solvers.interior_point.memory import Memory, is_known, nothing
from nerm.solvers.interior_point.norms import Penalty
from nerm.solvers.interior_point.predictor_corrector import Outcome, PredictorCorrector
from nerm.solvers.interior_point.threads import RowThreads, blas
from nerm.solvers.interior_point.tuning import Tuning
from nerm.typing import Floats, Matrix

NOTHING = 1e-30  # of the weight of all blocks alone: a block that weighs less does nothing
LENT = 0.1  # of the accuracy: twice what a square may cost that is no part of the problem
TINY = np.finfo(float).tiny
TUNING = Tuning()
Point = tuple[Floats, float] | tuple[Floats, float, Sequence[Norms]]


class Engine:
    """A problem ready to be solved for any weights of its terms.

    ::

        P(w, b) = sum_single factor_j S_j + sum_pairs factor_k max(S_k^+, S_k^-) + (mu/2) ||w||^2 + norms of w
        S_j     = (1/n) sum_i B_ji phi_j(t_ji f_i),          f = X w + b  (b = 0 without an intercept)

    Every solve starts from what the last ones foretell.

    Parameters
    ----------
    X
        (m, d), a dense array or a canonical CSR matrix: the distinct rows.
    blocks
        Those of side 0 first, then the two sides of each pair, adjacent (`nerm.model.blocks`). Others on the
        same rows may take their place between two solves: the last solutions still serve.
    n
        The divisor of all sums: rows before equal ones were merged.
    intercept
        Whether b is free.
    axes
        Whether there will be norms of single coefficients or groups of them: then these stay the unknowns.
    tuning
        The constants of the method.
    workers
        The most threads; by default one a core.
    """

    def __init__(
        self, X: Matrix, blocks: Sequence[Block], n: float, *, intercept: bool = True, axes: bool = False,
        tuning: Tuning = TUNING, workers: int | None = None,
    ) -> None:  # fmt: skip
        self.blocks, self.n, self.intercept, self.tuning = tuple(blocks), n, intercept, tuning
        self.coordinates, X = choose(X, intercept=intercept, axes=axes)
        self._share_out(X, workers)

    def _share_out(self, X: Matrix, workers: int | None) -> None:
        """Prepare features on so many threads, and know of no solution yet."""
        self.workers = RowThreads(X.shape[0], X.shape[1], workers)
        self.features, self._acting = Features(X, self.workers), list[Block]()
        self._memory = Memory(self.tuning, self.blocks)

    def solve(
        self, factors: Floats, mu: float, tol: float = 1e-6, norms: Sequence[Norms] = (), *,
        start: tuple[Floats, float] | None = None, max_iterations: int | None = None, deadline: float = clock.NEVER,
    ) -> Answer:  # fmt: skip
        """Minimise P to the relative gap tol.

        Parameters
        ----------
        factors
            (B,) the weight of each block's term.
        mu
            The weight of 1/2 ||w||^2.
        norms
            Others, weights included; `axes` must have been asked for.
        start
            (coef, intercept) of a neighbouring problem; by default the last solutions serve.
        max_iterations, deadline
            When to stop at the latest, `deadline` by `nerm.solvers.clock`.

        Returns
        -------
        Answer
            Its multipliers are feasible; its details have P and D in mean form and the number of products X
            w.
        """
        if not mu > 0 and not norms:
            stated = "the weight of the squared l2 norm must be positive where there is no other"
            raise InvalidInputError(stated, f"mu = {mu}", "Use mu > 0, or another solver")
        started = time.perf_counter()
        self.features.passes = 0
        with self.workers:
            method = self._method(
                np.asarray(factors, dtype=float), self._penalty(factors, mu, norms, tol), deadline
            )
            if start is not None:
                self._memory.begin(
                    method, *self.coordinates.inside(np.asarray(start[0], dtype=float), start[1])
                )
            outcome = self._outcome(method, tol, max_iterations or self.tuning.max_iterations)
            return self._answer(method, outcome, started)

    def _penalty(self, factors: Floats, mu: float, norms: Sequence[Norms], tol: float) -> Penalty:
        """Return n Omega; without a square one is lent, which changes the objective by less than the accuracy.

        At the optimum ||w||_2 <= c Omega(w) <= c S, S the value of blocks alone at f = 0: the sides of a pair
        cannot add up to less than there. c is 1 / (least weight), times sqrt(k) for the largest of k entries.
        """
        if not norms:
            return Penalty(mu * self.n)
        weights = [self.n * n.weights for n in norms]
        lam = mu * self.n
        if mu == 0:
            least = min(
                w.min() / (1 if n.order == 2 else n.groups.shape[1] ** 0.5)
                for w, n in zip(weights, norms, strict=True)
            )
            pairs = zip(factors, self.blocks, strict=True)
            at_zero = sum(f * b.weights.sum() * b.atom.facts.at_zero for f, b in pairs if b.side == 0)
            lam = LENT * tol * least**2 / max(at_zero, TINY)
        scaled = tuple(n._replace(weights=w) for n, w in zip(norms, weights, strict=True))
        return Penalty(lam, scaled, self._squares, lent=mu == 0)

    @cached_property
    def _squares(self) -> Floats:
        """The mean square of each column, that of nothing taken for the mean of all: a scale, and no more."""
        squares = self.features.squares() / self.features.shape[0]
        mean = float(squares.mean()) or 1.0
        return np.where(squares > 1e-12 * mean, squares, mean)

    def _method(self, factors: Floats, penalty: Penalty, deadline: float = clock.NEVER) -> PredictorCorrector:
        """Return the method for these weights, without terms whose weight is 0 to floating-point numbers."""
        masses = factors * [float(block.weights.sum()) for block in self.blocks]
        alone = np.array([block.side == 0 for block in self.blocks])
        least = NOTHING * masses[alone].sum()
        acting = np.flatnonzero((masses > least) | (alone & (masses == least)))  # both are 0: one must act
        if (blocks := [self.blocks[j] for j in acting]) != self._acting:
            self._arrays, self._acting = Arrays(blocks, self.features), blocks
        tuning = replace(self.tuning, deadline=deadline)
        return PredictorCorrector(self._arrays, factors[acting], penalty, tuning, intercept=self.intercept)

    def _outcome(self, method: PredictorCorrector, tol: float, limit: int) -> Outcome:
        """Try a warm start from the last solutions, then a cold start."""
        outcome = nothing()
        guess = self._memory.guess(method, self.blocks)
        if is_known(guess):
            half = -(-limit // 2)  # a cold start may have to take over
            near, others = self._memory.near(method), self._memory.last.scores
            outcome = foretold(method, guess, self._memory.miss, tol, half, near, others)
        if not outcome.converged and not (is_known(guess) and clock.is_up(method.tuning.deadline)):
            cold = method.start(np.zeros(self.features.shape[1]), 0.0, self.tuning.cold)
            outcome = outcome.then(optimum(method, cold, tol, limit - outcome.iterations), tol)
        self._memory.keep(method, self.blocks, outcome, guess)
        return outcome

    def _answer(self, method: PredictorCorrector, outcome: Outcome, started: float) -> Answer:
        """Return an outcome on the features as they were given, with multipliers of all blocks."""
        if (
            outcome.u is None or outcome.nu is None
        ):  # it stopped short of any bound: the best its hypothesis allows
            at = method.start(outcome.coef, outcome.intercept, 1e-6)
            g = method.arrays.linearise(at, method.each(at.nu)).columns[:-1, 0]
            method.bound(at.duals.u, at.nu, at.pulls.answer(g), outcome)
        assert outcome.u is not None
        assert outcome.nu is not None
        u, shares = (
            dict(zip(self._acting, outcome.u, strict=True)),
            iter(outcome.nu[:, 0] / outcome.nu.sum(axis=1)),
        )
        rows, thetas = np.empty((len(self.blocks), len(outcome.scores))), []
        for j, block in enumerate(self.blocks):
            rows[j] = -u[block] if block in u else 0.0
            if block not in u or not block.weights.all():  # where there is no weight, there is no multiplier
                middle = np.mean(block.atom.subgradient(block.targets * outcome.scores), axis=0)
                rows[j] = np.where(block.weights > 0, rows[j], -middle) if block in u else -middle
            if block.side > 0:
                thetas.append(next(shares) if block in u else 0.5)
        coef, intercept = self.coordinates.outside(outcome.coef, outcome.intercept)
        late, seconds = clock.is_up(method.tuning.deadline), time.perf_counter() - started
        claim = "converged" if outcome.converged else "stopped: time is up" if late else "stopped early"
        details = {
            "primal": outcome.primal / self.n,
            "dual": outcome.dual / self.n,
            "passes": self.features.passes,
        }
        multipliers = Multipliers(rows, np.array(thetas))
        return Answer(
            coef, intercept, multipliers, claim, outcome.iterations,
            solve_seconds=seconds, details=details, timed_out=late and not outcome.converged,
        )  # fmt: skip

    def path(self, points: Sequence[Point], tol: float = 1e-6, **limits: Any) -> list[Answer]:
        """Solve for one (factors, mu) or (factors, mu, norms) after the other, neighbours close, as on a sorted grid.

        A long path is cut into stretches that share the cores, each with a cold start of its own: two
        problems at a time keep two cores busier than one problem on both. So answers depend on the number of
        cores, within the tolerance. The limits are those of `solve`, max_iterations of each point and `deadline`
        of all: where time is up, a point keeps the hypothesis that its neighbours foretell.
        """
        fewest, most = self.tuning.stretch_rows
        count = min(self.workers.count, len(points) // self.tuning.stretch)
        if count <= 1 or not fewest <= self.features.shape[0] <= most:
            return [self.solve(*point[:2], tol, *point[2:], **limits) for point in points]
        edges, engines = (
            [len(points) * i // count for i in range(count + 1)],
            [copy(self) for _ in range(count)],
        )

        def stretch(engine: Engine, start: int, stop: int) -> list[Answer]:
            engine._share_out(self.features.X, 1)
            return engine.path(points[start:stop], tol, **limits)

        with blas.held(), ThreadPoolExecutor(count) as pool:
            answers = list(chain.from_iterable(pool.map(stretch, engines, edges, edges[1:])))
        self._memory = engines[-1]._memory
        return answers
