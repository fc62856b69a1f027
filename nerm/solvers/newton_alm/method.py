"""An augmented Lagrangian on f = X w + b, with semismooth Newton steps on the rows at kinks.

::

    n P(w, b) = sum_single F_j S_j + sum_k eta_k max(S_k^+, S_k^-) + (lam/2) ||w||^2
    S_j       = sum_i B_ji phi_j(t_ji f_i)

Its dual is climbed by proximal points: with a centre (U, theta^0, b^0), one minimises over (w, b)

::

    sum_single F_j S_j^tau + (lam/2) ||w||^2 + (r/2) (b - b^0)^2
    + sum_k max over theta in [0, 1] of eta_k (theta S_k^+tau + (1 - theta) S_k^-tau) - (R_k/2) (theta -
    theta_k^0)^2

where S^tau is smoothed around U (`nerm.solvers.newton_alm.smoothing`), and takes the multipliers and thetas
found there as the next centre. This objective has a derivative everywhere, and its Newton systems know only
rows whose multiplier is between the ends of its domain: those at a kink. The dual value never falls; near the
end each centre takes a step or two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nerm.model.blocks import Block, shares
from nerm.solvers import clock
from nerm.solvers.newton_alm.kernel_products import KernelProducts
from nerm.solvers.newton_alm.kernel_system import KernelSystem
from nerm.solvers.newton_alm.newton_cg import RowProducts, System
from nerm.solvers.newton_alm.smoothing import Blocks, Smoothed
from nerm.typing import Floats


@dataclass(frozen=True)
class Constants:
    """The constants of the method.

    Attributes
    ----------
    cold, warm
        tau at a start from nothing and from a neighbour, in units of a margin.
    shrink, least
        By what tau is multiplied from centre to centre, until it is so small relative to how much a row's
        multiplier moves its own margin, B t^2 |x|^2 / lam in the mean.
    fair
        The part of the gap that a centre may leave; if it leaves more, tau shrinks further.
    side_width
        R_k relative to how much theta_k can move the term, e'H^-1 e; it shrinks with tau where tau shrinks
        further.
    intercept_width
        r relative to lam, or to the mean weight of a row where that is less.
    inner
        Share of the gap that the smoothed problem may leave to the next centre.
    residual, rough
        Relative residual of a Newton system, and of the one that finds R_k.
    slope
        Share of the slope that a line search may leave.
    centres, steps, products
        The most centres, Newton steps a centre, and products a system.
    patience
        Centres that may pass without making the gap a tenth smaller.
    """

    cold: float = 3.0
    warm: float = 0.1
    shrink: float = 0.25
    least: float = 0.1
    fair: float = 0.7
    side_width: float = 0.1
    intercept_width: float = 1e-3
    inner: float = 0.1
    residual: float = 0.1
    rough: float = 0.3
    slope: float = 0.1
    centres: int = 60
    steps: int = 50
    products: int = 300
    patience: int = 10


CONSTANTS = Constants()


@dataclass(frozen=True, eq=False)
class Iterate:
    """Where the method stands: (w, b) with its value n P, multipliers u and thetas with their bound n D, and the work.

    The bound is an estimate as long as sum c is not exactly 0: what is missing is charged to it.
    """

    h: Floats
    scores: Floats
    u: Floats
    thetas: Floats
    primal: float = np.inf
    dual: float = -np.inf
    converged: bool = False
    centres: int = 0
    steps: int = 0
    products: int = 0

    @property
    def gap(self) -> float:
        """N P - n D."""
        return self.primal - self.dual


class _Gradient(NamedTuple):
    """The smoothed problem at one (w, b): its parts, thetas, gradient, and the part X'c of that."""

    at: Smoothed
    thetas: Floats
    gradient: Floats
    force: Floats


class AugmentedLagrangian:
    """The method on blocks with their factors, all positive, and (lam/2) ||w||^2."""

    def __init__(
        self,
        blocks: list[Block],
        factors: Floats,
        rows: RowProducts | KernelProducts,
        lam: float,
        constants: Constants = CONSTANTS,
    ) -> None:
        self.blocks, self.factors, self.rows, self.lam, self.constants = (
            Blocks(blocks),
            factors,
            rows,
            lam,
            constants,
        )
        self.first = np.flatnonzero(self.blocks.pairs)  # the sides + of terms of two; their sides - follow
        self.eta = factors[self.first]
        self.floor = min(constants.least * self._own_reach(), constants.cold)
        weight = float((factors[:, None] * self.blocks.pulls * self.blocks.targets).sum()) / rows.shape[0]
        width = constants.intercept_width * min(lam, weight or lam)
        self.ridge = np.append(np.full(rows.shape[1] - 1, lam), width)

    def nothing(self) -> Iterate:
        """Return the zero hypothesis, with multipliers in the middle."""
        scores = np.zeros(self.rows.shape[0])
        slopes = [block.atom.facts.slopes for block in self.blocks.blocks]
        middle = [np.clip(0.5 * (max(low, -1.0) + min(high, 1.0)), low, high) for low, high in slopes]
        u = np.repeat(np.array(middle)[:, None], len(scores), axis=1)
        return Iterate(np.zeros(self.rows.shape[1]), scores, u, np.full(len(self.eta), 0.5))

    def at(self, h: Floats, scores: Floats) -> Iterate:
        """Return a hypothesis, with multipliers that its scores allow."""
        return replace(self.nothing(), h=h, scores=scores, u=self.blocks.multipliers(scores))

    def run(
        self, start: Iterate, tau: float, tol: float, deadline: float = clock.NEVER
    ) -> tuple[Iterate, float]:
        """Climb until the gap is at most tol of the value; return the best point and the last tau."""
        now, best, smallest, patience = start, replace(start, primal=np.inf, dual=-np.inf), np.inf, 0
        for _ in range(self.constants.centres):
            now, best = self._centre(now, best, tau, tol, deadline)
            best = replace(best, centres=best.centres + 1)
            patience, slow = (
                0 if best.gap < 0.9 * smallest else patience + 1,
                best.gap > self.constants.fair * smallest,
            )
            smallest = min(smallest, best.gap)
            if best.converged or patience >= self.constants.patience or clock.is_up(deadline):
                break
            tau = (
                self.constants.shrink * tau
                if slow
                else max(self.constants.shrink * tau, min(tau, self.floor))
            )
        return best, tau

    def _own_reach(self) -> float:
        """Return B t^2 |x|^2 / lam in the mean over blocks and rows: what a multiplier does to its own margin."""
        curvature = (self.factors[:, None] * self.blocks.pulls * self.blocks.targets).mean(axis=0)
        return float(curvature @ self.rows.norms) / (self.lam * len(curvature)) or 1.0

    def _centre(
        self, centre: Iterate, best: Iterate, tau: float, tol: float, deadline: float
    ) -> tuple[Iterate, Iterate]:
        """Minimise the smoothed problem around one centre."""
        h, scores, width = centre.h, centre.scores, None
        for step in range(self.constants.steps):
            line = step == 0 and best.centres > 0
            if width is None:
                width = self._widths(scores, centre, tau, line)
            point = self._point(h, scores, centre, tau, width)
            best = self._better(best, h, scores, point, tol)
            left = self.rows.dot(point.gradient, point.gradient / self.ridge) / 2
            enough = step > 0 and left <= self.constants.inner * max(best.gap, tol * abs(best.primal))
            if best.converged or enough or clock.is_up(deadline):
                break
            move, products = self._direction(point, h, scores, centre, tau, width, line)
            moved = self.rows.times(move)
            length = self._length(h, scores, move, moved, centre, tau, width)
            if length == 0.0:
                break
            h, scores = h + length * move, scores + length * moved
            best = replace(best, steps=best.steps + 1, products=best.products + products)
        return replace(centre, h=h, scores=scores, u=point.at.u, thetas=point.thetas), best

    def _thetas(self, values: Floats, centre: Iterate, width: Floats) -> Floats:
        """Return the maximising theta of each term of two sides."""
        lead = self.eta * (values[self.first] - values[self.first + 1])
        return np.asarray(np.clip(centre.thetas + lead / width, 0.0, 1.0))

    def _scales(self, thetas: Floats) -> Floats:
        """Return what multiplies each block, (J, 1)."""
        return np.asarray(self.factors * shares(self.blocks.blocks, thetas))[:, None]

    def _point(self, h: Floats, scores: Floats, centre: Iterate, tau: float, width: Floats) -> _Gradient:
        at = self.blocks.smoothed(scores, centre.u, tau)
        thetas = self._thetas(at.values, centre, width)
        force = self.rows.pull(self.blocks.pulls * at.u, self._scales(thetas)[:, 0])
        return _Gradient(at, thetas, self._pull(h, centre) + force, force)

    def _pull(self, h: Floats, centre: Iterate) -> Floats:
        """Return the gradient of the regularizer, that of the intercept included."""
        pull = self.ridge * h
        pull[-1] -= self.ridge[-1] * centre.h[-1]
        return np.asarray(pull)

    def _better(self, best: Iterate, h: Floats, scores: Floats, point: _Gradient, tol: float) -> Iterate:
        """Keep the best value and the best bound."""
        values = self.blocks.values(scores)
        sides = np.maximum(values[self.first], values[self.first + 1])
        alone = np.array([block.side == 0 for block in self.blocks.blocks])
        c = point.force
        primal = 0.5 * self.lam * self.rows.square(h) + self.factors[alone] @ values[alone] + self.eta @ sides
        if primal < best.primal:
            best = replace(best, primal=float(primal), h=h, scores=scores)
        settled = self._scales(point.thetas)[:, 0] @ point.at.settled
        dual = -settled - self.rows.square(c) / (2 * self.lam) - abs(c[-1]) * (1 + abs(h[-1]))
        if dual > best.dual:
            best = replace(best, dual=float(dual), u=point.at.u, thetas=point.thetas)
        return replace(best, converged=bool(best.gap <= tol * abs(best.primal)))

    def _lines(self, u: Floats) -> Floats:
        """Return E: the gradient of eta_k (S_k^+ - S_k^-) for each term of two sides, (K, d + 1)."""
        pulls, apart = self.blocks.pulls * u, np.zeros((len(self.eta), len(u)))
        for k, j in enumerate(self.first):
            apart[k, j], apart[k, j + 1] = self.eta[k], -self.eta[k]
        return np.array([self.rows.pull(pulls, shares) for shares in apart]).reshape(-1, self.rows.shape[1])

    def _widths(self, scores: Floats, centre: Iterate, tau: float, line: bool) -> Floats:
        """Return R_k, relative to e'H^-1 e: how far the two sides of a term go apart as theta_k moves."""
        if not len(self.eta):
            return np.zeros(0)
        at = self.blocks.smoothed(scores, centre.u, tau, line=line)
        system = self._system(at, centre.thetas)
        reach = [system.reach(e, self.constants.rough, 20) for e in self._lines(at.beyond)]
        width = self.constants.side_width * min(1.0, tau / self.floor)
        return np.maximum(width * np.array(reach), 1e-9 * self.eta * self.eta.max())

    def _system(self, at: Smoothed, thetas: Floats) -> System | KernelSystem:
        density = (self._scales(thetas) * self.blocks.pulls * self.blocks.targets * at.curvature).sum(axis=0)
        return self.rows.system(density, self.ridge)

    def _direction(
        self,
        point: _Gradient,
        h: Floats,
        scores: Floats,
        centre: Iterate,
        tau: float,
        width: Floats,
        line: bool,
    ) -> tuple[Floats, int]:
        """Return Newton's direction and the products it took.

        The first one from a centre moves the rows that were at a kink there as if they stayed: they are the
        same as before but for a few, and at the old hypothesis, with the new tau, they all seem to have left.
        """
        at, gradient = point.at, point.gradient
        if line:
            at = self.blocks.smoothed(scores, centre.u, tau, line=True)
            force = self.rows.pull(self.blocks.pulls * at.beyond, self._scales(point.thetas)[:, 0])
            gradient = self._pull(h, centre) + force
        system, between = self._system(at, point.thetas), (point.thetas > 0) & (point.thetas < 1)
        lines = self._lines(at.beyond)[between]
        move = system.solve(
            -gradient, lines, width[between], self.constants.residual, self.constants.products
        )
        if line and self.rows.dot(move, point.gradient) >= 0:
            return self._direction(point, h, scores, centre, tau, width, False)
        return move, system.iterations

    def _length(
        self,
        h: Floats,
        scores: Floats,
        move: Floats,
        moved: Floats,
        centre: Iterate,
        tau: float,
        width: Floats,
    ) -> float:
        """Return a step after which little is left of the slope: a root of it by false position, bracketed."""

        def slope(t: float) -> float:
            with np.errstate(over="ignore", invalid="ignore"):
                at = self.blocks.smoothed(scores + t * moved, centre.u, tau)
                scales = self._scales(self._thetas(at.values, centre, width))
                along = (scales * self.blocks.pulls * at.u).sum(axis=0) @ moved
                found = float(self.rows.dot(self._pull(h + t * move, centre), move) + along)
            return found if np.isfinite(found) else np.inf

        start = slope(0.0)
        low, high, at_low, at_high, side = 0.0, 1.0, start, slope(1.0), 0
        if not start < 0:
            return 0.0
        if at_high <= self.constants.slope * -start:
            return 1.0
        for _ in range(40):
            share = at_low / (at_low - at_high) if np.isfinite(at_high) else 0.1
            t = low + min(max(share, 0.02), 0.98) * (high - low)
            here = slope(t)
            if abs(here) <= self.constants.slope * -start:
                return t
            if here > 0:
                high, at_high, at_low = t, here, at_low * (0.5 if side > 0 else 1.0)
            else:
                low, at_low, at_high = t, here, at_high * (0.5 if side < 0 else 1.0)
            side = 1 if here > 0 else -1
        return low
