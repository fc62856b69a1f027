"""The SMO at fixed theta: a box problem in the levels a_i, solved as far as its caller needs."""

from dataclasses import dataclass

import numpy as np

from nerm.model.blocks import term_weights
from nerm.model.problem import Problem
from nerm.solvers import clock
from nerm.solvers.linalg.gram_cache import BATCH, GramCache
from nerm.solvers.smo import pair_steps
from nerm.solvers.smo.intercept import best_intercept
from nerm.solvers.smo.segments import Segments
from nerm.typing import Floats, Ints


@dataclass(frozen=True)
class Standing:
    """Where a point stands, times the divisor.

    Attributes
    ----------
    primal, dual : float
        The true values at this point, the dual at its theta.
    lagrangian : float
        The primal with theta C+ + (1 - theta) C- for the maximum: `lagrangian - dual` is what more pair steps
        can win, the rest of `primal - dual` belongs to theta.
    slope : float
        The derivative of the dual in theta: the weight of the term times C+ - C-.
    violation : float
        m(a) - M(a), the paper's test.

    """

    primal: float
    dual: float
    lagrangian: float
    slope: float
    violation: float

    @property
    def gap(self) -> float:
        """The duality gap."""
        return self.primal - self.dual

    @property
    def inner_gap(self) -> float:
        """The part of the gap that is due to the pair steps."""
        return self.lagrangian - self.dual


class FixedTheta:
    """The state of the compiled loop at one theta: levels a, scores G without intercept, active rows."""

    def __init__(
        self, problem: Problem, theta: float, cache: GramCache, a: Floats, G: Floats | None = None
    ) -> None:
        self.problem, self.theta, self.cache = problem, theta, cache
        self.segments = s = Segments(problem, theta)
        self.lam = problem.divisor * sum(weight for weight, _ in problem.regularizers)
        scores = _scores(problem, a / self.lam) if G is None else G.copy()
        x, rise, fall = np.zeros((3, len(a)))
        seg = np.zeros(len(a), dtype=np.int64)
        self.at = pair_steps.Places(a.copy(), scores, seg, x, rise, fall, s.low, s.start, s.width, s.slope)
        pair_steps.place(self.at)
        self.active = np.arange(len(a))

    def _violations(self) -> tuple[Floats, Floats]:
        return self.at.rise - self.at.G, self.at.fall - self.at.G

    def standing(self, best: bool = False) -> Standing:
        """Return primal, dual and slope at the intercept (m + M) / 2, the primal on request at the best one."""
        up, down = self._violations()
        m, M = float(up.max()), float(down.min())
        ends = [end for end in (m, M) if np.isfinite(end)]
        norm = 0.5 * float(self.at.a @ self.at.G)
        totals = self._totals(self.at.G + (float(np.mean(ends)) if ends else 0.0))
        primal = _larger(totals)
        if best:
            primal = min(
                primal, _larger(self._totals(self.at.G + best_intercept(self.problem, self.at.G)[0]))
            )
        alone, plus, minus = totals
        theta = self.theta
        mixed = alone + theta * plus + (1 - theta) * minus
        dual = self.segments.gain(self.at.a) - norm
        return Standing(primal + norm, dual, mixed + norm, plus - minus, m - M)

    def _totals(self, scores: Floats) -> tuple[float, float, float]:
        """Return the weighted sums of the blocks alone, of C+ and of C-."""
        sums = {0: 0.0, 1: 0.0, -1: 0.0}
        for factor, block in zip(term_weights(self.problem), self.problem.blocks, strict=True):
            sums[block.side] += factor * block.total(scores)
        return sums[0], sums[1], sums[-1]

    def _likely(self, count: int) -> Ints:
        """Return the rows that violate most on either side, the next candidates for a working set."""
        if count < 2:
            return np.array([], dtype=np.intp)
        up, down = self._violations()
        k = min(count, len(up)) - 1
        return np.stack([np.argpartition(-up, k)[:count], np.argpartition(down, k)[:count]], axis=1).ravel()

    def advance(self, steps: int, deadline: float = clock.NEVER) -> tuple[int, bool]:
        """Do up to `steps` pair steps, or until time is up; return how many, and whether no violation is left."""
        at, done, n = self.at, 0, len(self.at.a)
        epsilon = 1e-14 * (1.0 + float(np.abs(at.G).max()))
        up, down = self._violations()
        # A shrunken set is left as soon as its own violation is small beside that of all rows.
        shrunken = max(epsilon, 0.2 * float(up.max() - down.min()))
        while done < steps and not clock.is_up(deadline):
            whole = len(self.active) == n
            limit = epsilon if whole else shrunken
            status, taken, wanted = pair_steps.run(
                at, self.cache.rows, self.lam, self.active, limit, steps - done
            )
            done += taken
            if status == pair_steps.NEED_ROW:
                self.cache.load_with(wanted, self._likely(BATCH))
            elif status == pair_steps.CONVERGED:
                if whole:
                    return done, True
                self.active = np.arange(n)  # converged on the active rows only: bring all back and look again
        up, down = self._violations()
        kept = (up[self.active] >= down.min()) | (down[self.active] <= up.max())
        self.active = self.active[kept]
        return done, False


def _larger(totals: tuple[float, float, float]) -> float:
    return totals[0] + max(totals[1:])


def _scores(problem: Problem, c: Floats) -> Floats:
    """Return K c."""
    return problem.hypothesis.scores(problem.hypothesis.adjoint(c))
