"""Solve a problem for any weights of its terms; each solve is warm-started from the last ones."""

import time
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from nerm.atoms.regularizer import Norms
from nerm.certify.multipliers import Multipliers
from nerm.certify.solution import Answer
from nerm.errors import InvalidInputError
from nerm.model.blocks import Block
from nerm.solvers import clock
from nerm.solvers.interior_point.arrays import Arrays
from nerm.solvers.interior_point.condense import Start, WarmStart, minimise
from nerm.solvers.interior_point.matrices import Features, RowThreads, choose_coordinates
from nerm.solvers.interior_point.norms import Penalty
from nerm.solvers.interior_point.predictor_corrector import Outcome, PredictorCorrector, Tuning
from nerm.typing import Floats, Matrix

EPS = np.finfo(float).eps
TINY = np.finfo(float).tiny
RIDGE = 0.1  # share of the tolerance for an auxiliary ridge
TUNING = Tuning()
Point = tuple[Floats, float] | tuple[Floats, float, Sequence[Norms]]


class Engine:
    """A problem ready to be solved for any weights of its terms.

    ::

        P(w, b) = sum_single factor_j S_j + sum_pairs factor_k max(S_k^+, S_k^-) + (mu/2) ||w||^2 + norms of w
        S_j     = (1/n) sum_i B_ji phi_j(t_ji f_i),          f = X w + b  (b = 0 without an intercept)

    Parameters
    ----------
    X
        (m, d), a dense array or a canonical CSR matrix.
    blocks
        Those of side 0 first, then the two sides of each pair, adjacent (`nerm.model.blocks`). They can be
        replaced by others on the same rows between two solves; the last solution is still a warm start.
    n
        The divisor of all sums.
    intercept
        Whether b is free.
    axes
        Whether norms of coefficients or groups will be added: then the unknowns are the coefficients
        themselves, not coordinates of a smaller space.
    tuning
        The constants of the method.
    workers
        The most threads; by default one per core.
    """

    def __init__(
        self,
        X: Matrix,
        blocks: Sequence[Block],
        n: float,
        *,
        intercept: bool = True,
        axes: bool = False,
        tuning: Tuning = TUNING,
        workers: int | None = None,
    ) -> None:
        self.blocks = tuple(blocks)
        self.n = n
        self.intercept = intercept
        self.tuning = tuning
        self.coordinates, X = choose_coordinates(X, intercept=intercept, axes=axes)
        self.workers = RowThreads(X.shape[0], X.shape[1], workers)
        self.features = Features(X, self.workers)
        self._active = list[Block]()
        self._warm = WarmStart(tuning)

    def path(
        self,
        points: Sequence[Point],
        tol: float = 1e-6,
        *,
        max_iterations: int | None = None,
        deadline: float = clock.NEVER,
    ) -> Iterator[Answer]:
        """Solve for each (factors, mu) or (factors, mu, norms) in order; adjacent ones should be similar.

        After the deadline a point gets the hypothesis of the point before it.
        """
        for point in points:
            yield self.solve(*point[:2], tol, *point[2:], max_iterations=max_iterations, deadline=deadline)

    def solve(
        self,
        factors: Floats,
        mu: float,
        tol: float = 1e-6,
        norms: Sequence[Norms] = (),
        *,
        max_iterations: int | None = None,
        deadline: float = clock.NEVER,
    ) -> Answer:
        """Minimise P to the relative gap tol.

        Parameters
        ----------
        factors
            (B,) the weight of each block's term.
        mu
            The weight of 1/2 ||w||^2.
        norms
            Other norms, with their weights; they need `axes`.
        max_iterations, deadline
            When to stop at the latest, `deadline` by `nerm.solvers.clock`.

        Returns
        -------
        Answer
            Its dual variables are feasible; its details have P and D in mean form and the number of products
            X w.
        """
        if not mu > 0 and not norms:
            stated = "the weight of the squared l2 norm must be positive where there is no other"
            raise InvalidInputError(stated, f"mu = {mu}", "Use mu > 0, or another solver")
        started = time.perf_counter()
        self.features.passes = 0
        with self.workers:
            method = self._method(np.asarray(factors, dtype=float), mu, norms, tol, deadline)
            outcome = self._solve(method, tol, max_iterations or self.tuning.max_iterations)
            return self._answer(method, outcome, started)

    def _method(
        self, factors: Floats, mu: float, norms: Sequence[Norms], tol: float, deadline: float
    ) -> PredictorCorrector:
        """Return the method for these weights, without terms whose relative weight is below rounding."""
        masses = factors * [float(block.weights.sum()) for block in self.blocks]
        single = np.array([block.side == 0 for block in self.blocks])
        least = EPS**2 * masses[single].sum()
        active = np.flatnonzero((masses > least) | (single & (masses == least)))  # both 0: one must be active
        blocks = [self.blocks[j] for j in active]
        if blocks != self._active:
            self._arrays = Arrays(blocks, self.features)
            self._active = blocks
        penalty = self._penalty(factors, mu, norms, tol)
        return PredictorCorrector(
            self._arrays, factors[active], penalty, self.tuning, intercept=self.intercept, deadline=deadline
        )

    def _penalty(self, factors: Floats, mu: float, norms: Sequence[Norms], tol: float) -> Penalty:
        """Return n Omega, with an auxiliary ridge below the tolerance if there is no squared l2 norm.

        At the optimum ||w||_2 <= c Omega(w) <= c S, S the value of single blocks at f = 0: the sides of a
        pair cannot add up to less than there. c is 1 / (least weight), times sqrt(k) for the largest of k.
        """
        if not norms:
            return Penalty(mu * self.n)
        scaled = tuple(n._replace(weights=self.n * n.weights) for n in norms)
        lam = mu * self.n
        if mu == 0:
            least = min(n.weights.min() / (1 if n.order == 2 else n.groups.shape[1] ** 0.5) for n in scaled)
            pairs = zip(factors, self.blocks, strict=True)
            at_zero = sum(f * b.weights.sum() * b.atom.facts.at_zero for f, b in pairs if b.side == 0)
            lam = RIDGE * tol * least**2 / max(at_zero, TINY)
        return Penalty(lam, scaled, self._squares, auxiliary=mu == 0)

    @cached_property
    def _squares(self) -> Floats:
        """The mean square of each column, replaced by the mean of all where it is negligible."""
        squares = self.features.squares() / self.features.shape[0]
        mean = float(squares.mean()) or 1.0
        return np.where(squares > EPS**0.75 * mean, squares, mean)

    def _solve(self, method: PredictorCorrector, tol: float, limit: int) -> Outcome:
        """Try a warm start with half of the iterations, then a cold start."""
        outcome = None
        warm = self._warm.start(method, self.blocks)
        if warm is not None:
            outcome = minimise(method, warm, tol, -(-limit // 2))
        if outcome is None or not (outcome.converged or clock.is_up(method.deadline)):
            zero = method.evaluate(np.zeros(self.features.shape[1]), 0.0)
            spent = 0 if outcome is None else outcome.iterations
            cold = minimise(method, Start(zero, self.tuning.cold_error), tol, limit - spent)
            outcome = cold if outcome is None else outcome.then(cold, tol)
        self._warm.keep(method, self.blocks, outcome, warm)
        return outcome

    def _answer(self, method: PredictorCorrector, outcome: Outcome, started: float) -> Answer:
        """Return an outcome on the given features, with dual variables of all blocks."""
        if outcome.u is None or outcome.nu is None:  # no bound yet: the best dual variables for its scores
            at = method.start(outcome, 0.0)
            g = method.arrays.linearise(at, method.block_weights(at.nu)).columns[:-1, 0]
            method.bound(at.duals.u, at.nu, at.norms.feasible_gradient(g), outcome)
        assert outcome.u is not None
        assert outcome.nu is not None
        u = dict(zip(self._active, outcome.u, strict=True))
        shares = iter(outcome.nu[:, 0] / outcome.nu.sum(axis=1))
        rows = np.empty((len(self.blocks), len(outcome.scores)))
        thetas = []
        for j, block in enumerate(self.blocks):
            rows[j] = -u[block] if block in u else 0.0
            if block not in u or not block.weights.all():  # without weight, any subgradient
                middle = np.mean(block.atom.subgradient(block.targets * outcome.scores), axis=0)
                rows[j] = np.where(block.weights > 0, rows[j], -middle) if block in u else -middle
            if block.side > 0:
                thetas.append(next(shares) if block in u else 0.5)
        coef, intercept = self.coordinates.outside(outcome.coef, outcome.intercept)
        is_late = clock.is_up(method.deadline)
        claim = "converged" if outcome.converged else "stopped: time is up" if is_late else "stopped early"
        return Answer(
            coef,
            intercept,
            Multipliers(rows, np.array(thetas)),
            claim,
            outcome.iterations,
            solve_seconds=time.perf_counter() - started,
            details={
                "primal": outcome.primal / self.n,
                "dual": outcome.dual / self.n,
                "passes": self.features.passes,
            },
            timed_out=is_late and not outcome.converged,
        )
