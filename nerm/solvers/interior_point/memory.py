"""What an engine keeps of the problems it has solved: where the next one may have its solution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nerm.model.blocks import Block
from nerm.solvers.interior_point.predictor_corrector import HUGE, Near, Outcome, PredictorCorrector
from nerm.solvers.interior_point.tuning import Tuning
from nerm.typing import Floats


class Memory:
    """The last two solutions by the logarithms of their weights, and how well they foretold each other.

    Attributes
    ----------
    miss
        The mean error of the scores that is expected of a guess: that of the last one.
    """

    def __init__(self, tuning: Tuning, blocks: Sequence[Block]) -> None:
        self._tuning, self._blocks, self._solutions = tuning, tuple(blocks), list[tuple[Floats, Outcome]]()
        self.miss = tuning.first_miss

    def __bool__(self) -> bool:
        return bool(self._solutions)

    @property
    def last(self) -> Outcome:
        """The last solution."""
        return self._solutions[-1][1]

    def is_of(self, blocks: Sequence[Block]) -> bool:
        """Tell whether the last solution is one of these blocks, and not of others on the same rows."""
        return self._blocks == tuple(blocks)

    def begin(self, method: PredictorCorrector, coef: Floats, intercept: float) -> None:
        """Take a hypothesis for the last solution, and know of no other."""
        self._solutions = [(place(method), method.evaluate(coef, intercept))]
        self.miss = self._tuning.first_miss

    def keep(
        self, method: PredictorCorrector, blocks: Sequence[Block], outcome: Outcome, guess: Outcome
    ) -> None:
        """Keep a solution for those that follow, and how far off the guess was."""
        found = method.evaluate(outcome.coef, outcome.intercept, outcome.scores)
        found.u, found.nu, found.pull = outcome.u, outcome.nu, outcome.pull
        tuning, foretold = self._tuning, is_known(guess)
        miss = float(np.abs(found.scores - guess.scores).mean()) if foretold else tuning.first_miss
        self.miss = max(
            miss, tuning.least_miss
        )  # a point that did not move foretells nothing of one that does
        self._solutions, self._blocks = [*self._solutions[-1:], (place(method), found)], tuple(blocks)

    def near(self, method: PredictorCorrector) -> Near | None:
        """Return the multipliers of the last solution, where it had as many blocks."""
        last = self.last
        return last.near if last.u is not None and len(last.u) == len(method.arrays.blocks) else None

    def guess(self, method: PredictorCorrector, blocks: Sequence[Block]) -> Outcome:
        """Return the last solution, or the straight line in log weights through the last two where that is better.

        What is far away foretells nothing: a start from there takes longer than one from nothing. Nor does
        the solution of other labels that is worse than f = 0.
        """
        if not self:
            return nothing()
        (before, older), (last, newer), here = self._solutions[0], self._solutions[-1], place(method)
        if last.shape == here.shape and np.abs(here - last).max() > self._tuning.farthest:
            return nothing()
        near = method.evaluate(newer.coef, newer.intercept, newer.scores)
        if not self.is_of(blocks) and near.primal >= method.evaluate(0.0 * newer.coef, 0.0).primal:
            return nothing()
        if (
            not self._tuning.extrapolates
            or not before.shape == last.shape == here.shape
            or not (last - before).any()
        ):
            return near
        on = float((here - last) @ (last - before) / ((last - before) @ (last - before)))
        ahead = method.evaluate(
            newer.coef + on * (newer.coef - older.coef),
            newer.intercept + on * (newer.intercept - older.intercept),
            newer.scores + on * (newer.scores - older.scores),
        )
        return ahead if ahead.primal < near.primal else near


def nothing() -> Outcome:
    """Return what is known before anything is."""
    return Outcome(np.empty(0), 0.0, np.empty(0), np.empty(0), np.inf)


def is_known(guess: Outcome) -> bool:
    """Tell whether a guess is one."""
    return guess.primal < HUGE


def place(method: PredictorCorrector) -> Floats:
    """Return the logarithms of the weights of a problem."""
    weights = np.concatenate([method.factors, [method.lam], *(n.weights[:1] for n in method.penalty.norms)])
    return np.asarray(np.log(weights[weights > 0]))
