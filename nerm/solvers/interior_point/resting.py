"""Points of a path at which the hypothesis rests, and those between two of them, which need no solve.

For a fixed hypothesis the objective is affine in the weights F of the terms, so the optimum is concave in them. And
multipliers taken as forces, F_j u_j, mix to feasible ones of all weights between: for F = s F' + (1 - s) F''

    D(F, mixed)  >=  s D(F', u') + (1 - s) D(F'', u''),          P(F, f) = s P(F', f) + (1 - s) P(F'', f).

So a hypothesis that is optimal for two weights is optimal between them, and the two solutions prove it.
Hypotheses rest where most rows lie on a kink: there only multipliers change. A start that takes the
hypothesis as known says within a few steps whether it still is the optimum, however far away the last point
was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from nerm.certify.multipliers import Multipliers
from nerm.certify.solution import Answer
from nerm.model.blocks import Block, shares
from nerm.solvers.interior_point.condense import answer_on_all_rows, barrier_of, condense, share_near
from nerm.solvers.interior_point.predictor_corrector import Near, Outcome, PredictorCorrector
from nerm.typing import Floats

TINY = 1e-300
Point = TypeVar("Point", bound=tuple[Floats, *tuple[object, ...]])


@dataclass(frozen=True)
class PathPoint:
    """A point of a path, all in mean form, n being the divisor.

    Attributes
    ----------
    factors
        The weight of each block's term, (J,).
    answer, scores, square
        The answer, its scores, and what the regularizer adds.
    """

    factors: Floats
    answer: Answer
    blocks: tuple[Block, ...]
    scores: Floats
    square: float
    n: float

    @cached_property
    def values(self) -> Floats:
        """What each block adds up to, (J,)."""
        return np.array([b.weights @ b.atom.value(b.targets * self.scores) for b in self.blocks]) / self.n

    @property
    def multipliers(self) -> Multipliers:
        """Those of the answer, which has some."""
        assert self.answer.multipliers is not None
        return self.answer.multipliers

    @property
    def forces(self) -> Floats:
        """What multiplies the multipliers of each block: its weight, theta times it for one side of a term."""
        return np.asarray(self.factors * shares(self.factors, self.multipliers.thetas))

    def primal(self, factors: Floats) -> float:
        """Return P of its hypothesis for other weights."""
        alone = len(factors) - 2 * len(self.multipliers.thetas)
        larger = self.values[alone:].reshape(-1, 2).max(axis=1)
        return float(self.square + factors[:alone] @ self.values[:alone] + factors[alone::2] @ larger)


def is_on_kinks(method: PredictorCorrector, scores: Floats) -> bool:
    """Tell whether so many rows lie on a kink that leaving out the others does not pay."""
    tuning = method.tuning
    return share_near(method.arrays, scores, tuning.reach * tuning.least_miss) > tuning.most


def at_rest(method: PredictorCorrector, here: Outcome, near: Near, tol: float, limit: int) -> Outcome:
    """Solve as if only multipliers of rows on a kink had to be found; give up as soon as the hypothesis moves.

    Its `miss` is then how far, where that can be told: not if most rows lie on a kink.
    """
    tuning, miss = method.tuning, method.tuning.least_miss
    small = condense(method.arrays, here.scores, tuning.reach * miss, tuning.most) if tuning.rounds else None
    inner, part = (
        (method, near) if small is None else (method.on(small.arrays), (near[0][:, small.rows], near[1]))
    )
    state = inner.start(here.coef, here.intercept, barrier_of(miss, tuning, part), part, miss)
    found = inner.run(state, tol if small is None else tuning.slack * tol, limit, astray=tuning.astray * miss)
    outcome = here.then(found if small is None else answer_on_all_rows(method, small, found), tol)
    outcome.miss = None if small is None or found.miss is None else min(found.miss, tuning.first_miss)
    return outcome


def along(
    points: Sequence[Point],
    solve: Callable[[Point], PathPoint],
    still: Callable[[Point], PathPoint | None],
    tol: float,
) -> list[Answer]:
    """Return the answers of points whose first entries, the weights, lie on a line in their order.

    Parameters
    ----------
    points
        What `solve` and `still` take.
    solve
        Solves a point.
    still
        Solves it if the last hypothesis rests there, else gives None. What is between two such points needs
        no solve, so the last one is asked for first, and then by halves.
    """
    answers: list[Answer] = []
    while len(answers) < len(points):
        last = solve(points[len(answers)])
        answers.append(last.answer)
        far, ahead = len(points), len(points) - 1
        while ahead >= len(answers):
            if (found := still(points[ahead])) is None:
                far = ahead
            else:
                others = points[len(answers) : ahead]
                answers += [between(last, found, point[0], tol) or solve(point).answer for point in others]
                answers.append(found.answer)
                last = found
            ahead = (len(answers) - 1 + far) // 2
    return answers


def between(one: PathPoint, other: PathPoint, factors: Floats, tol: float) -> Answer | None:
    """Return the answer for weights on the line between those of two others; None if they do not prove it."""
    way = one.factors - other.factors
    share = float((factors - other.factors) @ way) / max(float(way @ way), TINY)
    if not 0 <= share <= 1 or not np.allclose(other.factors + share * way, factors, 1e-12, 0.0):
        return None
    best = one if one.primal(factors) < other.primal(factors) else other
    primal = best.primal(factors)
    dual = share * one.answer.details["dual"] + (1 - share) * other.answer.details["dual"]
    if not primal - dual <= tol * abs(primal):
        return None
    details = {"primal": primal, "dual": dual, "passes": 0}
    return Answer(
        best.answer.coef, best.answer.intercept, _mixed(one, other, share), "converged", 0, details=details
    )


def _mixed(one: PathPoint, other: PathPoint, share: float) -> Multipliers:
    """Return multipliers whose forces are the mixture of those of two points."""
    first, second = share * one.forces, (1 - share) * other.forces
    total = first + second
    part = np.where(total > 0, first / np.maximum(total, TINY), share)[:, None]
    rows = part * one.multipliers.rows + (1 - part) * other.multipliers.rows
    sides = total[len(total) - 2 * len(one.multipliers.thetas) :].reshape(-1, 2)
    return Multipliers(rows, sides[:, 0] / np.maximum(sides.sum(axis=1), TINY))
