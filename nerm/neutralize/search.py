"""The weight at which a one-sided term makes the measure as large as the limit allows.

As eta grows from 0 the signed measure falls from that of the plain model through 0 to that of f ~ -v, nearly
monotonely and in small jumps: scores are discrete. A bracket of it is closed by the Illinois rule; of all solutions
within the limit the least neutralised counts. Several terms are searched jointly, since each moves the parts of all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

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
class Measured:
    """What has signed parts of a measure."""

    parts: Floats

    @property
    def value(self) -> float:
        """The measure in size."""
        return float(np.abs(self.parts).max())


@dataclass(frozen=True, eq=False)
class Attempt(Measured):
    """One solution: weights and sides of its terms, its scores and the signed parts of the measure."""

    etas: tuple[float, ...]
    sides: tuple[str, ...]
    solution: Solution
    scores: Floats

    @property
    def weights(self) -> Floats:
        """The weights of its terms, negative on the side of disagreement."""
        return np.array([eta if side == AGREEMENT else -eta for eta, side in zip(self.etas, self.sides, strict=True)])


Point = TypeVar("Point", bound=Measured)


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
        known: Sequence[Attempt] = (),
    ) -> None:
        self.trial, self.surrogate, self.limit, self.plain, self.note = trial, surrogate, limit, plain, note
        self.measured, self.first, self.known = measured, FIRST if first is None else first, known

    def run(self) -> list[Attempt]:
        """Return the points within the limit, the least neutralised first, or else the nearest to it."""
        seen = [self.plain, *self.known, *(self._one() if len(self.plain.parts) == 1 else self._several())]
        within = [p for p in seen if p.value <= self.limit]
        return sorted(within, key=lambda p: sum(p.etas)) or sorted(seen, key=lambda p: p.value)

    def _one(self) -> list[Attempt]:
        """Search one weight, within the bracket that known points leave; return every point that was solved."""
        way, found, start = float(np.sign(self.plain.parts[0])), list[Attempt](), self.plain
        low, high = (0.0, abs(float(self.plain.parts[0]))), (np.inf, 0.0)
        known, weights, stale = sorted(self.known, key=lambda p: p.etas), [1.0, 1.0], 0
        while len(found) < MOST_SOLVES and (known or high[0] - low[0] > NARROW * high[0] or np.isinf(high[0])):
            if known:
                point = known.pop(0)
            else:
                growing = np.isinf(high[0])
                eta = max(self.first, GROWTH * low[0]) if growing else self._between(low, high, weights)
                point = self.solve(np.array([way * eta]), start)
                found.append(point)
            eta, value = point.etas[0], way * float(point.parts[0])
            if FILLED * self.limit <= value <= self.limit:
                break
            above = value > self.limit
            if eta < high[0] and above:
                low, start = (eta, value), point
            elif eta < high[0]:
                high = eta, value
            weights, stale = self._illinois(weights, above, stale), 1 if above else -1
        return found

    def _several(self) -> list[Attempt]:
        """Search several weights jointly; return every point that was solved."""
        first = np.where(self.plain.parts < 0, -self.first, self.first)
        return damped_secant(self.solve, np.zeros(len(first)), self.plain, first, self.limit)

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

    def solve(self, x: Floats, start: Attempt) -> Attempt:
        """Solve with the weights `|x|`, on the side of agreement where x is positive."""
        etas, sides = tuple(np.abs(x).tolist()), tuple(AGREEMENT if way >= 0 else DISAGREEMENT for way in x)
        solution = self.trial.solve(self.surrogate, etas, sides, start.solution)
        scores = self.trial.scores(solution)
        parts = self.trial.measured(scores) if self.measured is None else self.measured(solution)
        point = Attempt(parts, etas, sides, solution, scores)
        self.note(self.surrogate, point)
        return point


def damped_secant(
    evaluate: Callable[[Floats, Point], Point], x: Floats, at: Point, first: Floats, limit: float
) -> list[Point]:
    """Search several signed weights x for parts within the limit, from a point; return every point.

    The Jacobian of the parts is learned from one step of each weight and from every step (Broyden); what lies within
    half of the limit already is left alone.
    """
    n, start, origin = len(x), at, x
    found, jacobian, damping, h = list[Point](), np.zeros((len(at.parts), n)), 1e-3, float(np.abs(first).max())
    for k in range(n):
        step = first[k] * np.eye(n)[k]
        found.append(evaluate(origin + step, start))
        jacobian[:, k] = (found[-1].parts - start.parts) / first[k]
        if found[-1].value < at.value:
            at, x = found[-1], origin + step
    while len(found) < MOST_SOLVES * n and at.value > limit and damping < 1e6:
        rest = at.parts - np.clip(at.parts, -FILLED * limit, FILLED * limit)
        normal = jacobian.T @ jacobian
        step = -np.linalg.solve(normal + damping * (np.trace(normal) / n + 1e-300) * np.eye(n), jacobian.T @ rest)
        step *= min(1.0, 2 * max(h, float(np.abs(x).max())) / max(float(np.abs(step).max()), 1e-300))
        point = evaluate(x + step, at)
        found.append(point)
        jacobian += np.outer(point.parts - at.parts - jacobian @ step, step) / max(float(step @ step), 1e-300)
        damping = damping / 3 if point.value < at.value else 4 * damping
        if point.value < at.value:
            at, x = point, x + step
    return found
