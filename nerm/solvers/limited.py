"""Meet one limit C(f) <= t with a solver that takes no constraints.

The limit is met by a search over the weight eta of C. Let P be the objective, and let p(eta) be the minimum
of P + eta C, attained at f_eta. The dual problem is

    max over eta >= 0 of  p(eta) - eta t.

It is concave, because p is a minimum of linear functions of eta, and its slope is C(f_eta) - t. Every eta
gives a lower bound on the optimum. The upper bound is the objective at f = (1 - s) f_low + s f_high, a point
between the solutions on both sides of the limit, with the smallest s that satisfies the limit. The
corresponding combination of their multipliers is dual feasible, so both errors are of second order in the
width of the bracket.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nerm.certify.certificate import dual_point
from nerm.certify.multipliers import Multipliers
from nerm.certify.solution import Answer
from nerm.model.blocks import EPS, limit_values, shares, term_weights, value_at_zero
from nerm.model.problem import Problem, relaxed_problem
from nerm.solvers import clock
from nerm.solvers.base import Session, limit
from nerm.solvers.rootfind import Bracket
from nerm.typing import Floats

MOST_WEIGHTS = 40  # largest number of weights tried for one limit
WEIGHT_SHARE = 0.2  # the accuracy of the solve for one weight, as a share of the tolerance


class Solved:
    """The solution for one weight eta of the limit.

    Attributes
    ----------
    eta
        The weight.
    coef, intercept, scores
        The hypothesis and its scores, (n,).
    value, limited
        The objective P and the limited term C at the hypothesis.
    multipliers, bound
        The multipliers, and the lower bound on the optimum that they give.
    """

    def __init__(
        self, problem: Problem, eta: float, coef: Floats, intercept: float, multipliers: Multipliers
    ) -> None:
        self.eta, self.coef, self.intercept = eta, coef, intercept
        self.multipliers = replace(multipliers, limits=np.array([eta]))
        self.scores = problem.hypothesis.scores(coef, intercept)
        self.value = float(problem.evaluate(coef, intercept))
        self.limited = float(limit_values(problem, self.scores)[0])
        self.bound = dual_point(problem, self.multipliers).bound


class LimitedSession(Session):
    """A session that meets one limit C(f) <= t by a search for the weight eta at which C(f_eta) = t.

    For each weight the limit becomes a term of the objective; the session that `open_session` returns solves
    this problem. The attributes other than that session describe the present search.
    """

    def __init__(self, open_session: Callable[[Problem], Session], problem: Problem) -> None:
        self._session = open_session(relaxed_problem(problem, [1.0]))

    def answer(
        self, problem: Problem, accuracy: float, options: dict[str, Any], deadline: float = clock.NEVER
    ) -> Answer:
        """Search until the value and the bound agree; each solve is warm-started from the last one.

        The search also stops when the rounding errors of eta C exceed the accuracy.
        """
        self.problem, self.accuracy, self.options, self.deadline = problem, accuracy, options, deadline
        self.found, self.limit = list[Answer](), problem.limits[0].bound
        bracket = Bracket()  # of eta, by C(f_eta) - t
        low: Solved | None = None  # the last points on both sides of the limit
        high: Solved | None = None
        eta = 0.0
        while len(self.found) < MOST_WEIGHTS and not (self.found and clock.is_up(deadline)):
            point = self._at(eta)
            if point is None:  # the solver stopped early without a hypothesis
                return self.found[-1]
            bracket.add(eta, point.limited - self.limit)
            low, high = (low, point) if point.limited <= self.limit else (point, high)
            best = point if low is None or high is None else self._mixture(low, high)
            if low is None or (high is not None and self._is_met(best)):
                break
            following = bracket.next() if high is not None else 4 * eta or self._first(point)
            hidden = EPS * following * max(abs(point.limited), abs(self.limit))
            if following == eta or hidden > accuracy * abs(point.value):
                break
            eta = following
        return self._answer(best)

    def _at(self, eta: float) -> Solved | None:
        """Solve for one eta, in half of the time that is left."""
        relaxed = relaxed_problem(self.problem, [eta])
        half = limit(clock.share(self.deadline, 2))
        answer = self._session.answer(relaxed, WEIGHT_SHARE * self.accuracy, self.options, **half)
        self.found.append(answer)
        if answer.coef is None or answer.multipliers is None:
            return None
        return Solved(self.problem, eta, answer.coef, answer.intercept, answer.multipliers)

    def _first(self, low: Solved) -> float:
        """Return the first positive weight eta of the search for C <= t.

        Let P be the objective and p(eta) the minimum of P + eta C; P(0) and C(0) are the values at f = 0.
        Since p(eta) <= P(0) + eta C(0), the optimal eta is at most (P(0) - p(0)) / (t - C(0)). The first eta
        is a fraction of this bound. It assumes that C(f_eta) decreases to its smallest value about like 1 /
        (1 + k eta).
        """
        block = next(b for b in self.problem.blocks if b.term >= len(self.problem.objective.terms))
        mass = float(block.weights.sum()) / self.problem.divisor
        at_zero = block.atom.facts.at_zero * mass
        least = at_zero if block.side else block.atom.facts.minimum * mass
        distance = max(self.limit - at_zero, 1e-6 * (low.limited - self.limit))
        most = max(value_at_zero(self.problem) - low.value, 1e-12 * abs(low.value)) / distance
        return 0.1 * most * (low.limited - self.limit) / max(low.limited - least, 1e-300)

    def _mixture(self, low: Solved, high: Solved) -> Solved:
        """Return the convex combination of two solutions that meets the limit with equality.

        Its multipliers and bound are the best among those of the combination and of the two solutions.
        """
        share = Bracket()
        share.add(0.0, low.limited - self.limit)
        share.add(1.0, high.limited - self.limit)
        while share.high - share.low > EPS**0.75:
            s = share.next()
            scores = (1 - s) * low.scores + s * high.scores
            share.add(s, float(limit_values(self.problem, scores)[0]) - self.limit)
        s = share.high
        coef, intercept = (1 - s) * low.coef + s * high.coef, (1 - s) * low.intercept + s * high.intercept
        eta = (1 - s) * low.eta + s * high.eta
        mixed = Solved(self.problem, eta, coef, intercept, _mixed(self.problem, low, high, s))
        best = max((mixed, low, high), key=lambda point: point.bound)
        mixed.bound, mixed.multipliers = best.bound, best.multipliers
        return mixed

    def _is_met(self, point: Solved) -> bool:
        """Return whether the value and the lower bound of a point agree to the accuracy.

        A small violation of the limit is allowed here: `certify_answer` restores the limit.
        """
        return point.value - point.bound <= self.accuracy * abs(point.value)

    def _answer(self, point: Solved) -> Answer:
        met = self._is_met(point)
        is_late = clock.is_up(self.deadline) or any(answer.timed_out for answer in self.found)
        return Answer(
            coef=point.coef,
            intercept=point.intercept,
            multipliers=point.multipliers,
            claim="converged" if met else "stopped early",
            iterations=sum(answer.iterations or 0 for answer in self.found),
            build_seconds=sum(answer.build_seconds for answer in self.found),
            solve_seconds=sum(answer.solve_seconds for answer in self.found),
            details={"solves": len(self.found), "eta": point.eta},
            timed_out=not met and is_late,
        )


def _mixed(problem: Problem, low: Solved, high: Solved, s: float) -> Multipliers:
    """Return the combined multipliers of two solutions.

    Their weighted duals are (1 - s) times those of `low` plus s times those of `high`.
    """
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
