"""The weight at which a one-sided term makes the measure as large as the limit allows.

As eta grows from 0 the signed measure falls from that of the plain model through 0 to that of f ~ -v, nearly
monotonely and in small jumps: scores are discrete. A bracket of it is closed by the Illinois rule; of all
solutions within the limit the least neutralised counts. Several terms are searched jointly, since each moves
the parts of all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from nerm.atoms.margin import MarginFunction
from nerm.certify.solution import Solution
from nerm.neutralize.boundedness import largest_weight
from nerm.neutralize.trial import AGREEMENT, DISAGREEMENT, Trial
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
    """One solution: its terms' weights, negative where they punish opposing the viewpoint, and sides, and its scores.

    `parts` are the signed parts of the measure.
    """

    weights: Floats
    sides: tuple[str, ...]
    solution: Solution
    scores: Floats

    @property
    def etas(self) -> tuple[float, ...]:
        """The weights of its terms in size."""
        return tuple(np.abs(self.weights).tolist())


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
        largest = largest_weight(self.trial, self.surrogate, np.array([way])) or np.inf
        low, high = (0.0, abs(float(self.plain.parts[0]))), (np.inf, 0.0)
        known, weights, stale = sorted(self.known, key=lambda p: p.etas), [1.0, 1.0], 0
        while len(found) < MOST_SOLVES and (
            known or high[0] - low[0] > NARROW * high[0] or np.isinf(high[0])
        ):
            if known:
                point = known.pop(0)
            else:
                growing = np.isinf(high[0])
                eta = self._larger(low[0], largest) if growing else self._between(low, high, weights)
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

    def _larger(self, eta: float, largest: float) -> float:
        """Return the next weight beyond all that were tried, below that at which the problem is unbounded."""
        following = max(self.first, GROWTH * eta)
        return following if following < largest else 0.5 * (eta + largest)

    def _between(self, low: tuple[float, float], high: tuple[float, float], weights: list[float]) -> float:
        """Return where the line between the ends passes the middle of what is near enough."""
        goal = 0.5 * (1.0 + FILLED) * self.limit
        over = weights[0] * (min(low[1], 10.0) - goal)
        under = weights[1] * (goal - high[1])
        share = float(np.clip(over / (over + under), 0.05, 0.95)) if over + under > 0 else 0.5
        return low[0] + share * (high[0] - low[0])

    def solve(self, x: Floats, start: Attempt) -> Attempt:
        """Solve with the weights `|x|`, such that following the viewpoint is punished where x is positive."""
        sides = tuple(self._side(way) for way in x)
        solution = self.trial.solve(self.surrogate, np.abs(x).tolist(), sides, start.solution)
        scores = self.trial.scores(solution)
        parts = self.trial.measured(scores) if self.measured is None else self.measured(solution)
        point = Attempt(parts, x, sides, solution, scores)
        self.note(self.surrogate, point)
        return point

    def _side(self, way: float) -> str:
        """Return the side of a term that punishes following, or opposing: of an increasing psi it is the other one."""
        follows = way >= 0
        if self.surrogate.facts.monotone == "increasing":
            follows = not follows
        return AGREEMENT if follows else DISAGREEMENT


def damped_secant(
    evaluate: Callable[[Floats, Point], Point], x: Floats, at: Point, first: Floats, limit: float
) -> list[Point]:
    """Search several signed weights x for parts within the limit, from a point; return every point.

    The Jacobian of the parts is learned from one step of each weight and from every step (Broyden); what lies
    within half of the limit already is left alone.
    """
    n, start, origin = len(x), at, x
    found, jacobian, damping, h = (
        list[Point](),
        np.zeros((len(at.parts), n)),
        1e-3,
        float(np.abs(first).max()),
    )
    for k in range(n):
        step = first[k] * np.eye(n)[k]
        found.append(evaluate(origin + step, start))
        jacobian[:, k] = (found[-1].parts - start.parts) / first[k]
        if found[-1].value < at.value:
            at, x = found[-1], origin + step
    while len(found) < MOST_SOLVES * n and at.value > limit and damping < 1e6:
        rest = at.parts - np.clip(at.parts, -FILLED * limit, FILLED * limit)
        normal = jacobian.T @ jacobian
        step = -np.linalg.solve(
            normal + damping * (np.trace(normal) / n + 1e-300) * np.eye(n), jacobian.T @ rest
        )
        step *= min(1.0, 2 * max(h, float(np.abs(x).max())) / max(float(np.abs(step).max()), 1e-300))
        point = evaluate(x + step, at)
        found.append(point)
        jacobian += np.outer(point.parts - at.parts - jacobian @ step, step) / max(float(step @ step), 1e-300)
        damping = damping / 3 if point.value < at.value else 4 * damping
        if point.value < at.value:
            at, x = point, x + step
    return found
