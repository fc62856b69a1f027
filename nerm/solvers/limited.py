"""One limit C(f) <= t by a solver that knows no constraints: a search over the weight eta of C.

With p(eta) the optimum of the objective + eta C, the dual of the limited problem is max over eta >= 0 of
p(eta) - eta t, concave with slope C(f_eta) - t (MATHEMATICS, section 11). Every eta gives a bound from below.
From above the segment between the solutions on either side of the limit does: f = (1 - s) f_low + s f_high
with the smallest s that satisfies the limit. The same mixture of their multipliers is a dual point, so both
errors are of second order in the width of the bracket.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nerm.certify.certificate import dual_point
from nerm.certify.multipliers import Multipliers
from nerm.certify.solution import Answer
from nerm.model.blocks import EPS, limit_values, shares, term_weights, value_at_zero
from nerm.model.problem import Problem, relaxed_problem
from nerm.solvers import clock
from nerm.solvers.base import Session, Solver, limit
from nerm.solvers.rootfind import Bracket
from nerm.typing import Floats

MOST_WEIGHTS = 40  # that are tried for one limit
WEIGHT_SHARE = 0.2  # of the tolerance, for the solve of one weight


@dataclass(frozen=True, eq=False)
class Solved:
    """A hypothesis and multipliers for one eta: its scores, objective without the limit, C, and bound."""

    eta: float
    coef: Floats
    intercept: float
    scores: Floats
    value: float
    limited: float
    multipliers: Multipliers
    bound: float


class LimitedSession(Session):
    """A solver's session on the relaxed problem, and the search around it."""

    def __init__(self, solver: Solver, problem: Problem) -> None:
        self._session = solver.open(relaxed_problem(problem, [1.0]))

    def answer(
        self, problem: Problem, accuracy: float, options: dict[str, Any], deadline: float = clock.NEVER
    ) -> Answer:
        """Search for the weight of the limit; the session remembers the last solutions."""
        try:
            return _Search(self._session, problem, accuracy, options, deadline).run()
        except _NothingFoundError as nothing:
            return nothing.answer


class _NothingFoundError(Exception):
    """The solver gave up on one weight: the search has nothing better to say than its answer."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


class _Search:
    """A search for the weight eta at which C(f_eta) passes t."""

    def __init__(
        self, session: Session, problem: Problem, accuracy: float, options: dict[str, Any], deadline: float
    ) -> None:
        self.session = session
        self.problem = problem
        self.accuracy = accuracy
        self.options = options
        self.deadline = deadline
        self.late = False
        self.bracket = Bracket()  # of eta, by C(f_eta) - t
        (self.limit,) = (limit.bound for limit in problem.limits)
        self.iterations = self.solves = 0
        self.build_seconds = self.solve_seconds = 0.0
        first = len(problem.objective.terms)
        own = [block for block in problem.blocks if block.term >= first]
        mass = float(own[0].weights.sum()) / problem.divisor
        self.at_zero = own[0].atom.facts.at_zero * mass
        self.least = self.at_zero if own[0].side else own[0].atom.facts.minimum * mass

    def run(self) -> Answer:
        """Search until the primal value and the bound meet, or the limit's rounding hides the objective."""
        low = best = self._at(0.0)
        if low.limited <= self.limit:
            return self._answer(low)
        self.bracket.add(0.0, low.limited - self.limit)
        high: Solved | None = None
        eta = self._first(low)
        while self.solves < MOST_WEIGHTS and not clock.is_up(self.deadline):
            point = self._at(eta)
            self.bracket.add(eta, point.limited - self.limit)
            if point.limited > self.limit:
                low = best = point
            else:
                high = point
            if high is not None:
                best = self._mixture(low, high)
                if best.value - best.bound <= self.accuracy * abs(best.value):
                    break
            following = self.bracket.next() if high is not None else 4 * eta
            hidden = EPS * following * max(abs(point.limited), abs(self.limit))
            if following == eta or hidden > self.accuracy * abs(point.value):
                break
            eta = following
        return self._answer(best)

    def _at(self, eta: float) -> Solved:
        """Solve for one eta, in half of the time that is left."""
        relaxed = relaxed_problem(self.problem, [eta])
        half = limit(clock.share(self.deadline, 2))
        answer = self.session.answer(relaxed, WEIGHT_SHARE * self.accuracy, self.options, **half)
        self.late = self.late or answer.timed_out
        self.solves += 1
        self.iterations += answer.iterations or 0
        self.build_seconds += answer.build_seconds
        self.solve_seconds += answer.solve_seconds
        if answer.coef is None or answer.multipliers is None:
            raise _NothingFoundError(answer)
        return self._point(eta, answer.coef, answer.intercept, answer.multipliers)

    def _point(self, eta: float, coef: Floats, intercept: float, multipliers: Multipliers) -> Solved:
        multipliers = replace(multipliers, limits=np.array([eta]))
        scores = self.problem.hypothesis.scores(coef, intercept)
        value = float(self.problem.evaluate(coef, intercept))
        limited = float(limit_values(self.problem, scores)[0])
        bound = dual_point(self.problem, multipliers).bound
        return Solved(eta, coef, intercept, scores, value, limited, multipliers, bound)

    def _first(self, low: Solved) -> float:
        """Return a first guess.

        p(eta) <= P(0) + eta C(0) bounds the right eta by (P(0) - p(0)) / (t - C(0)); C falls from C(f_0)
        towards its least value about like 1 / (1 + k eta).
        """
        room = max(self.limit - self.at_zero, 1e-6 * (low.limited - self.limit))
        most = max(value_at_zero(self.problem) - low.value, 1e-12 * abs(low.value)) / room
        return 0.1 * most * (low.limited - self.limit) / max(low.limited - self.least, 1e-300)

    def _mixture(self, low: Solved, high: Solved) -> Solved:
        """Return the mixture of two hypotheses that just satisfies the limit, and of their multipliers."""
        from scipy.optimize import brentq

        def over(share: float) -> float:
            scores = (1 - share) * low.scores + share * high.scores
            return float(limit_values(self.problem, scores)[0]) - self.limit

        s = float(brentq(over, 0.0, 1.0, xtol=1e-13)) if high.limited < self.limit else 1.0
        nudge = EPS
        while over(s) > 0 and s < 1.0:
            s = min(1.0, s + nudge)
            nudge *= 8
        coef, intercept = (1 - s) * low.coef + s * high.coef, (1 - s) * low.intercept + s * high.intercept
        eta = (1 - s) * low.eta + s * high.eta
        mixed = self._point(eta, coef, intercept, _mixed(self.problem, low, high, s))
        best = max((mixed, low, high), key=lambda point: point.bound)
        return replace(mixed, bound=best.bound, multipliers=best.multipliers)

    def _answer(self, point: Solved) -> Answer:
        met = point.limited <= self.limit and point.value - point.bound <= self.accuracy * abs(point.value)
        return Answer(
            coef=point.coef,
            intercept=point.intercept,
            multipliers=point.multipliers,
            claim="converged" if met else "stopped early",
            iterations=self.iterations,
            build_seconds=self.build_seconds,
            solve_seconds=self.solve_seconds,
            details={"solves": self.solves, "eta": point.eta},
            timed_out=not met and (self.late or clock.is_up(self.deadline)),
        )


def _mixed(problem: Problem, low: Solved, high: Solved, s: float) -> Multipliers:
    """Return multipliers whose weighted duals are (1 - s) times the first and s times the second."""
    parts = [(1 - s, low), (s, high)]
    factors = [share * term_weights(relaxed_problem(problem, [p.eta])) for share, p in parts]
    nus = [f * shares(problem.blocks, p.multipliers.thetas) for f, (_, p) in zip(factors, parts, strict=True)]
    total = nus[0] + nus[1]
    rows = sum(nu[:, None] * p.multipliers.rows for nu, (_, p) in zip(nus, parts, strict=True))
    rows = np.divide(rows, total[:, None], out=high.multipliers.rows.copy(), where=total[:, None] > 0)
    alone = len(problem.blocks) - 2 * len(high.multipliers.thetas)
    plus, both = total[alone::2], total[alone::2] + total[alone + 1 :: 2]
    thetas = np.divide(plus, both, out=np.full(len(plus), 0.5), where=both > 0)
    return Multipliers(rows, thetas)
