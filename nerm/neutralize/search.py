"""The weight at which a one-sided term makes the measure as large as the limit allows.

As eta grows from 0 the signed measure falls from that of the plain model through 0 to that of f ~ -v, nearly
monotonely and in small jumps: scores are discrete. A bracket of it is closed by the Illinois rule; of all solutions
within the limit the least neutralised counts. Several terms are searched jointly, since each moves the parts of all.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nerm.atoms.margin import MarginFunction
from nerm.neutralize.trial import AGREEMENT, DISAGREEMENT, Trial
from nerm.solution import Solution
from nerm.typing import Floats

MOST_SOLVES = 14  # in one search over one weight
FIRST = 0.3  # the first weight tried: as eta is the weight of one mean loss against another, it is of order 1
GROWTH = 3.0
FILLED = 0.5  # a measure of this share of the limit or more is near enough to it
NARROW = 1e-3  # a bracket this narrow, relative to its ends, holds a jump


@dataclass(frozen=True, eq=False)
class Attempt:
    """One solution: weights and sides of its terms, its scores and the signed parts of the measure."""

    etas: tuple[float, ...]
    sides: tuple[str, ...]
    solution: Solution
    scores: Floats
    parts: Floats

    @property
    def value(self) -> float:
        """The measure in size."""
        return float(np.abs(self.parts).max())


class WeightSearch:
    """All terms of a trial with one surrogate."""

    def __init__(
        self,
        trial: Trial,
        surrogate: MarginFunction,
        limit: float,
        plain: Attempt,
        note: Callable[[MarginFunction, Attempt], None],
        measured: Callable[[Solution], Floats] | None = None,
        first: float | None = None,
    ) -> None:
        self.trial, self.surrogate, self.limit, self.plain, self.note = trial, surrogate, limit, plain, note
        self.measured, self.first = measured, FIRST if first is None else first

    def run(self) -> list[Attempt]:
        """Return the points within the limit, the least neutralised first, or else the nearest to it."""
        seen = [self.plain, *(self._one() if len(self.plain.parts) == 1 else self._several())]
        within = [p for p in seen if p.value <= self.limit]
        return sorted(within, key=lambda p: -p.value) or sorted(seen, key=lambda p: p.value)

    def _one(self) -> list[Attempt]:
        """Search one weight; return every point that was solved."""
        way, found, start = float(np.sign(self.plain.parts[0])), list[Attempt](), self.plain
        low, high = (0.0, abs(float(self.plain.parts[0]))), (np.inf, 0.0)
        eta, weights, stale = self.first, [1.0, 1.0], 0
        while len(found) < MOST_SOLVES:
            point = self._solve(np.array([way * eta]), start)
            found.append(point)
            value = way * float(point.parts[0])
            if FILLED * self.limit <= value <= self.limit:
                break
            above = value > self.limit
            if above:
                low, start = (eta, value), point
            else:
                high = eta, value
            weights, stale = self._illinois(weights, above, stale), 1 if above else -1
            if np.isinf(high[0]):
                eta *= GROWTH
            elif high[0] - low[0] <= NARROW * high[0]:
                break
            else:
                eta = self._between(low, high, weights)
        return found

    def _several(self) -> list[Attempt]:
        """Search several weights jointly: a damped secant method on the signed parts; return every point.

        x_k is the weight of part k, negative for the other side. The Jacobian is learned from one solve a part and from
        every step (Broyden); what lies within half of the limit already is left alone.
        """
        K, h, at = len(self.plain.parts), self.first, self.plain
        found, x, jacobian, damping = list[Attempt](), np.zeros(K), np.zeros((K, K)), 1e-3
        for k in range(K):
            step = h * np.sign(self.plain.parts[k]) * np.eye(K)[k]
            found.append(self._solve(step, self.plain))
            jacobian[:, k] = (found[-1].parts - self.plain.parts) / step[k]
            if found[-1].value < at.value:
                at, x = found[-1], step
        while len(found) < MOST_SOLVES * K and at.value > self.limit and damping < 1e6:
            rest = at.parts - np.clip(at.parts, -FILLED * self.limit, FILLED * self.limit)
            normal = jacobian.T @ jacobian
            step = -np.linalg.solve(normal + damping * (np.trace(normal) / K + 1e-300) * np.eye(K), jacobian.T @ rest)
            step *= min(1.0, 2 * max(h, float(np.abs(x).max())) / max(float(np.abs(step).max()), 1e-300))
            point = self._solve(x + step, at)
            found.append(point)
            jacobian += np.outer(point.parts - at.parts - jacobian @ step, step) / (step @ step)
            damping = damping / 3 if point.value < at.value else 4 * damping
            if point.value < at.value:
                at, x = point, x + step
        return found

    @staticmethod
    def _illinois(weights: list[float], above: bool, stale: int) -> list[float]:
        """Halve the weight of an end that stayed twice, so that the bracket closes from both sides."""
        if stale == (1 if above else -1):
            return [weights[0], 0.5 * weights[1]] if above else [0.5 * weights[0], weights[1]]
        return [1.0, 1.0]

    def _between(self, low: tuple[float, float], high: tuple[float, float], weights: list[float]) -> float:
        """Return where the line between the ends passes the middle of what is near enough."""
        goal = 0.5 * (1.0 + FILLED) * self.limit
        over = weights[0] * (min(low[1], 10.0) - goal)
        under = weights[1] * (goal - high[1])
        share = float(np.clip(over / (over + under), 0.05, 0.95)) if over + under > 0 else 0.5
        return low[0] + share * (high[0] - low[0])

    def _solve(self, x: Floats, start: Attempt) -> Attempt:
        """Solve with the weights |x|, on the side of agreement where x is positive."""
        etas, sides = tuple(np.abs(x).tolist()), tuple(AGREEMENT if way >= 0 else DISAGREEMENT for way in x)
        solution = self.trial.solve(self.surrogate, etas, sides, start.solution)
        scores = solution.training_scores()
        parts = self.trial.measured(scores) if self.measured is None else self.measured(solution)
        point = Attempt(etas, sides, solution, scores, parts)
        self.note(self.surrogate, point)
        return point
