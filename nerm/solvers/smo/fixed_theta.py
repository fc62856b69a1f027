"""The SMO at fixed theta: a compiled loop of pair steps (select by WSS2, update, test), and its state.

Each row has one level a_i (`nerm.solvers.smo.segments`). With G = K a / lambda, the scores without
intercept, raising a_i earns ``rise_i - G_i`` and lowering it costs ``fall_i - G_i``, where rise and fall are
the slopes of h_i to the right and to the left of a_i (-inf and +inf at the ends). A feasible a is optimal iff

::

    m(a) = max_i (rise_i - G_i)  <=  M(a) = min_j (fall_j - G_j),

and then every b in [m, M] is an optimal intercept: the paper's test, here necessary *and* sufficient.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from nerm.model.blocks import term_weights
from nerm.model.problem import Problem
from nerm.solvers import clock
from nerm.solvers.linalg.gram_cache import BATCH, GramCache
from nerm.solvers.smo.segments import Segments, best_intercept
from nerm.typing import Floats, Ints

MORE, CONVERGED, NEED_ROW = 0, 1, 2
TAU = 1e-12  # replaces a zero curvature when pairs are compared, as in LIBSVM; never in the step


class Places(NamedTuple):
    """The level of every row, a = low + start[seg] + x with x inside segment seg, and the slopes there.

    `slope` is padded by +inf before and -inf behind the segments of a row, so that no end is a special case.
    numba writes the name of this class into its cache on disk: delete __pycache__ after a change.
    """

    a: Floats
    G: Floats
    seg: NDArray[np.int64]
    x: Floats
    rise: Floats
    fall: Floats
    low: Floats
    start: Floats
    width: Floats
    slope: Floats


@numba.njit(cache=True)
def set_slopes(i, at):  # type: ignore[no-untyped-def]
    """Write the right and left slope of h_i at its current place."""
    k = at.seg[i]
    at.rise[i] = at.slope[i, k + 1] if at.x[i] < at.width[i, k] else at.slope[i, k + 2]
    at.fall[i] = at.slope[i, k + 1] if at.x[i] > 0.0 else at.slope[i, k]


@numba.njit(cache=True)
def place(at):  # type: ignore[no-untyped-def]
    """Put every row at its level a_i, snapping to a break within rounding, and set its slopes."""
    segments = at.width.shape[1]
    for i in range(len(at.a)):
        k = 0
        level = at.a[i] - at.low[i]
        snap = 1e-12 * (abs(at.low[i]) + at.start[i, -1] + at.width[i, -1])
        while k + 1 < segments and at.width[i, k + 1] > 0.0 and level > at.start[i, k + 1] - snap:
            k += 1
        inside = level - at.start[i, k]
        if inside <= snap:
            inside = 0.0
        elif inside >= at.width[i, k] - snap:
            inside = at.width[i, k]
        at.seg[i] = k
        at.x[i] = inside
        at.a[i] = at.low[i] + at.start[i, k] + inside
        set_slopes(i, at)


@numba.njit(cache=True)
def pair_step(i, j, curvature, at):  # type: ignore[no-untyped-def]
    """Raise a_i and lower a_j by the best common amount and return it.

    Along the pair the dual is concave: quadratic between breaks, its derivative dropping at each break. So
    the best step walks break by break while the derivative is positive. Zero curvature (equal x) is no
    special danger: the walk then goes to the break or bound, as it must on a linear function.
    """
    seg, x, width = at.seg, at.x, at.width
    total = 0.0
    pull = (at.rise[i] - at.G[i]) - (at.fall[j] - at.G[j])
    while pull > 0.0:
        if x[i] >= width[i, seg[i]]:
            seg[i] += 1
            x[i] = 0.0
        if x[j] <= 0.0:
            seg[j] -= 1
            x[j] = width[j, seg[j]]
        room_i = width[i, seg[i]] - x[i]
        room = min(room_i, x[j])
        step = min(pull / curvature, room) if curvature * room > pull else room
        x[i] = width[i, seg[i]] if step == room_i else min(x[i] + step, width[i, seg[i]])
        x[j] = max(x[j] - step, 0.0)
        total += step
        set_slopes(i, at)
        set_slopes(j, at)
        if step < room:
            break
        pull = (at.rise[i] - at.G[i]) - (at.fall[j] - at.G[j]) - curvature * total
    return total


@numba.njit(cache=True)
def run(at, kernel, lam, active, epsilon, max_steps):  # type: ignore[no-untyped-def]
    """Do at most max_steps pair steps on the active rows; return (status, steps, row of K wanted).

    G of *every* row is kept up to date (a row of K is in memory anyway), so shrinking only shortens the two
    searches and nothing has to be rebuilt when a row comes back.
    """
    diagonal, slot_of = kernel.diagonal, kernel.slot_of
    for done in range(max_steps):
        # Working set, first index: the steepest rise, i = argmax (rise - G).
        i, best = -1, -np.inf
        for k in active:
            value = at.rise[k] - at.G[k]
            if value > best:
                best, i = value, k
        if i < 0:
            return CONVERGED, done, -1
        if slot_of[i] < 0:
            return NEED_ROW, done, i
        kernel.clock[0] += 1
        kernel.last_used[slot_of[i]] = kernel.clock[0]
        row_i = kernel.table[slot_of[i]]
        # Second index: the largest second-order gain B^2 / A among the j that violate with i.
        j, gain, lowest = -1, 0.0, np.inf
        for k in active:
            value = at.fall[k] - at.G[k]
            lowest = min(lowest, value)
            pull = best - value
            if pull > 0.0:
                score = pull * pull / max(diagonal[i] + diagonal[k] - 2.0 * row_i[k], TAU)
                if score > gain:
                    gain, j = score, k
        if j < 0 or best - lowest <= epsilon:
            return CONVERGED, done, -1
        if slot_of[j] < 0:
            return NEED_ROW, done, j
        kernel.last_used[slot_of[j]] = kernel.clock[0]
        row_j = kernel.table[slot_of[j]]
        step = pair_step(i, j, max(0.0, diagonal[i] + diagonal[j] - 2.0 * row_i[j]) / lam, at) / lam
        for k in (i, j):
            at.a[k] = at.low[k] + at.start[k, at.seg[k]] + at.x[k]
        for k in range(len(at.a)):
            at.G[k] += step * (row_i[k] - row_j[k])
    return MORE, max_steps, -1


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
        self.at = Places(a.copy(), scores, seg, x, rise, fall, s.low, s.start, s.width, s.slope)
        place(self.at)
        self.active = np.arange(len(a))

    def _violations(self) -> tuple[Floats, Floats]:
        return self.at.rise - self.at.G, self.at.fall - self.at.G

    def standing(self, best: bool = False) -> Standing:
        """Return values and slope at the intercept (m + M) / 2; the primal on request at the best one."""
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
        """Do up to `steps` pair steps; return how many, and whether no violation is left."""
        at, done, n = self.at, 0, len(self.at.a)
        epsilon = 1e-14 * (1.0 + float(np.abs(at.G).max()))
        up, down = self._violations()
        # A shrunken set is left as soon as its own violation is small beside that of all rows.
        shrunken = max(epsilon, 0.2 * float(up.max() - down.min()))
        while done < steps and not clock.is_up(deadline):
            whole = len(self.active) == n
            limit = epsilon if whole else shrunken
            status, taken, wanted = run(at, self.cache.rows, self.lam, self.active, limit, steps - done)
            done += taken
            if status == NEED_ROW:
                self.cache.load_with(wanted, self._likely(BATCH))
            elif status == CONVERGED:
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
