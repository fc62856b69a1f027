"""The SMO as a solver; a session keeps rows of the Gram matrix and the last multipliers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nerm.atoms.regularizer import SquaredL2
from nerm.certify.multipliers import Multipliers
from nerm.certify.solution import Answer, Solution
from nerm.errors import InvalidInputError
from nerm.model.blocks import two_sided, value_at_zero, weighted_duals
from nerm.model.problem import Problem
from nerm.solvers import auto, clock
from nerm.solvers.base import NermSolver, Session, check_options
from nerm.typing import Floats
from nerm.validation import as_positive

if TYPE_CHECKING:
    from nerm.solvers.linalg.gram_cache import GramCache


@dataclass(frozen=True)
class SMO(NermSolver):
    """Pair steps on the exact dual inside a search over theta (`nerm.solvers.smo`)."""

    name: str = "smo"
    keeps_time = True
    merges_rows: ClassVar[bool] = True

    def requirements(self) -> str:
        """Return one phrase: the problems that it takes."""
        return (
            "a neutral SVM: atoms of two straight lines (hinge, pinball, identity), squared l2, at most one "
            "neutrality term, a free intercept"
        )

    def why_unsupported(self, problem: Problem) -> str | None:
        """Return the first part of the problem that the SMO does not take."""
        for block in problem.blocks:
            alone_unbounded = block.side == 0 and not block.domain[0] <= 0 <= block.domain[1]
            if block.atom.facts.bend is None or alone_unbounded:
                return repr(block.atom)
        if not value_at_zero(problem) > 0:
            return "no risk of positive weight"
        if len(two_sided(problem)) > 1:
            return f"{len(two_sided(problem))} neutrality terms"
        for _, omega in problem.regularizers:
            if not isinstance(omega, SquaredL2):
                return repr(omega)
        if not sum(weight for weight, _ in problem.regularizers) > 0:
            return "no squared l2 regularizer of positive weight"
        return None if problem.intercept else "no intercept"

    def cost(self, shape: auto.Shape) -> float:
        """Return about how many seconds a solve takes."""
        return auto.pair_steps(shape)

    def open(self, problem: Problem) -> Session:
        """Start a session; rows of the kernel are computed when they are asked for."""
        return SMOSession()


class SMOSession(Session):
    """One problem and others along a path: they share rows of the Gram matrix, and each starts warm."""

    def __init__(self) -> None:
        self._cache: GramCache | None = None
        self._last: tuple[Multipliers, Floats] | None = None
        self._line: list[tuple[float, Floats]] = []  # the last two points: eta, and (a, nu^+)

    def answer(
        self, problem: Problem, accuracy: float, options: dict[str, Any], deadline: float = clock.NEVER
    ) -> Answer:
        """Run the SMO to this relative gap."""
        check_options("smo", options, self._solve, {"problem", "tol", "deadline"})
        return self._solve(problem, 0.9 * accuracy, **options, deadline=deadline)

    def _solve(
        self,
        problem: Problem,
        tol: float,
        *,
        callback: Callable[[dict[str, float]], object] | None = None,
        cache_mb: float = 500.0,
        warm_start: Solution | None = None,
        max_iter: int | None = None,
        deadline: float = clock.NEVER,
    ) -> Answer:
        # Imported here, since compiled code takes long to load.
        from nerm.solvers.linalg.gram_cache import GramCache
        from nerm.solvers.smo.theta_search import solve

        megabytes = as_positive(cache_mb, "cache_mb", "Use a number of megabytes such as 500")
        limit = None if max_iter is None else int(as_positive(max_iter, "max_iter"))
        if self._cache is None:
            self._cache = GramCache(problem.hypothesis, megabytes)
        if self._last is None and warm_start is not None:
            self._last = _where_it_ended(warm_start, problem)
        start = self._start(problem)
        answer = solve(
            problem, self._cache, tol, start=start, max_iter=limit, callback=callback, deadline=deadline
        )
        assert answer.coef is not None
        assert answer.multipliers is not None
        self._last = answer.multipliers, problem.hypothesis.scores(answer.coef, answer.intercept)
        eta, m = float(problem.etas.sum()), answer.multipliers
        point = np.append(weighted_duals(problem, m.rows, m.thetas), eta * m.thetas.sum())
        self._line = [*self._line[-1:], (eta, point)]
        return answer

    def _start(self, problem: Problem) -> tuple[Multipliers, Floats] | None:
        """Return where to start: on the line through the last two points, else at the last one.

        Until the active set changes, a and nu^+ = theta eta are linear in eta.
        """
        from nerm.solvers.smo.segments import Segments

        eta = float(problem.etas.sum())
        if self._last is None or len(self._line) < 2 or self._line[0][0] == self._line[1][0] or eta == 0:
            return self._last
        (first, x), (second, y) = self._line
        *a, nu = y + (eta - second) / (second - first) * (y - x)
        scores, segments = self._last[1], Segments(problem, float(np.clip(nu / eta, 0.0, 1.0)))
        return segments.multipliers(segments.balanced(np.array(a), scores), scores), scores


def _where_it_ended(solution: Solution, problem: Problem) -> tuple[Multipliers, Floats] | None:
    """Return the multipliers and scores of an earlier solution; None where it has other terms."""
    if solution.problem.n != problem.n:
        must = f"'warm_start' must belong to the same {problem.n} rows"
        raise InvalidInputError(must, f"a result on {solution.problem.n} rows", "Start cold instead")
    found = solution.multipliers
    if found is None or found.rows.shape[0] != len(problem.blocks):
        return None
    return found, solution.training_scores()


SOLVERS = (SMO(),)
