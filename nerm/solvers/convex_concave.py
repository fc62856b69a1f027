"""The convex-concave procedure: a stationary point of an objective with differences of convex functions.

From the convex relaxation, the tangent at f = 0, or from a given start: every step solves the convex problem
that touches the objective at the last hypothesis from above (`nerm.solvers.convexify`), certified like any
other. So the objective never rises. A step is prolonged as long as that lowers the objective. Rows come to
rest on the bends of what is subtracted, where many tangents touch and the step knows one: when the objective
falls no more, one step is taken with the tangent a little beyond, at a larger f, and only if that does not
help either, the point counts as stationary.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nerm.certify.solution import Solution, Status, stationary
from nerm.errors import InvalidInputError
from nerm.model.problem import Problem
from nerm.solvers import clock
from nerm.solvers.base import path_order
from nerm.solvers.convexify import convexified, differences
from nerm.typing import Floats
from nerm.validation import as_positive

BEYOND = 1.01  # how much larger the f is whose tangent is tried where the objective falls no more
FALL = 10.0  # a step that lowers the objective by less than this many tolerances is the last
LONGEST = 30  # doublings of a step
NO_STEP = (Status.FAILED, Status.INFEASIBLE)  # of a step: there is no next one

Hypothesis = tuple[Floats, float]
Solve = Callable[[Problem, float], Solution]  # of a convex problem, until a moment of `nerm.solvers.clock`


def stationary_points(
    problems: list[Problem],
    solve: Solve,
    tol: float,
    deadline: float,
    *,
    start: Any = None,
    max_steps: int = 100,
) -> list[Solution]:
    """Run the procedure on relatives, each from the last.

    On German a path upwards ends lower than one downwards, or than the relaxation of every weight, and needs
    two steps for most. `start` is (coef, intercept) on the given rows.
    """
    if start is not None and not (isinstance(start, tuple | list) and len(start) == 2):
        raise InvalidInputError("'start' must be a hypothesis", repr(start), "Pass (coef, intercept)")
    found, most = dict[int, Solution](), int(as_positive(max_steps, "max_steps"))
    for done, i in enumerate(path_order(problems, turning=False)):
        own = clock.share(deadline, len(problems) - done)
        at = None if start is None else problems[i].checked(*start)
        found[i] = _Procedure(problems[i], solve, tol, most, own).run(at)
        if found[i].status is Status.STATIONARY:
            start = found[i].coef, found[i].intercept
    return [found[i] for i in range(len(problems))]


@dataclass
class _Procedure:
    """One problem, how its convex steps are solved, and what has come of them."""

    problem: Problem
    solve: Solve
    tol: float
    max_steps: int
    deadline: float

    def __post_init__(self) -> None:
        self.steps: list[Solution] = []
        self.trace: list[dict[str, Any]] = []

    def run(self, start: Hypothesis | None) -> Solution:
        """Take steps until the objective falls no more; return the last hypothesis as a solution."""
        best = (np.zeros(self.problem.hypothesis.size), 0.0) if start is None else start
        lowest, beyond, settled = np.inf if start is None else self._height(best), 1.0, False
        while len(self.steps) < self.max_steps and not settled:
            step = self.solve(convexified(self.problem, beyond * best[0], beyond * best[1]), self.deadline)
            found = self.problem.checked(step.coef, step.intercept)
            found, value = (
                self._prolonged(found, best) if np.isfinite(lowest) else (found, self._height(found))
            )
            falls = lowest - value > FALL * self.tol * abs(value)
            if value < lowest or not np.isfinite(lowest):
                best, lowest = found, value
            self._note(step, lowest)
            if step.status in NO_STEP or step.stats.timed_out or self._is_convex():
                break
            settled, beyond = not falls and beyond > 1, 1.0 if falls else BEYOND
            if clock.is_up(self.deadline):
                break
        return self._solution(best, settled=settled)

    def _is_convex(self) -> bool:
        """Tell whether all differences have the weight 0: then the first step is the answer."""
        terms = self.problem.objective.terms
        return not any(terms[block.term].weight for block in differences(self.problem))

    def _height(self, at: Hypothesis) -> float:
        """Return the objective; infinite where a constraint is missed."""
        missed = self.problem.objective.constraints and self.problem.violation(*at) > 0
        return np.inf if missed else float(self.problem.evaluate(*at))

    def _prolonged(self, found: Hypothesis, before: Hypothesis) -> tuple[Hypothesis, float]:
        """Go on in the direction of a step, twice as far each time, as long as the objective falls."""
        best, lowest = found, self._height(found)
        for doubling in range(LONGEST):
            further = 2.0**doubling
            ahead = found[0] + further * (found[0] - before[0]), found[1] + further * (found[1] - before[1])
            value = self._height(ahead)
            if not value < lowest:
                break
            best, lowest = ahead, value
        return best, lowest

    def _note(self, step: Solution, value: float) -> None:
        stats = step.stats
        self.steps.append(step)
        self.trace.append(
            {
                "step": len(self.steps),
                "objective": value,
                "convex_objective": step.objective.total,
                "relative_gap": step.certificate.relative_gap,
                "solver": stats.solver,
                "seconds": stats.build_seconds + stats.solve_seconds + stats.certify_seconds,
            }
        )

    def _solution(self, best: Hypothesis, *, settled: bool) -> Solution:
        """Return the hypothesis with the true objective and with the trace; of a convex problem the one step."""
        last = self.steps[-1]
        if not self._is_convex() and (last.status not in NO_STEP or len(self.steps) > 1):
            late = clock.is_up(self.deadline)
            last = stationary(self.problem, best, self.steps, settled=settled, late=late)
        objective = self.problem.evaluate(*best).with_thetas(last.objective.thetas)
        seconds = {
            name: sum(getattr(step.stats, name) for step in self.steps)
            for name in ("build_seconds", "solve_seconds", "certify_seconds")
        }
        stats = replace(
            last.stats,
            iterations=len(self.steps),
            reason=f"each step of the convex-concave procedure: {last.stats.reason}",
            details={"trace": tuple(self.trace)},
            **seconds,
        )
        return replace(last, problem=self.problem, objective=objective, multipliers=None, stats=stats)
