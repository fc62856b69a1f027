"""The semismooth Newton augmented Lagrangian method on f = X w + b.

It minimises n P(w, b), where P is the objective in mean form::

    n P(w, b) = sum over single blocks j of F_j S_j + sum_k eta_k max(S_k^+, S_k^-) + (lam/2) ||w||^2
    S_j       = sum_i B_ji phi_j(t_ji f_i)

Block j has the atom phi_j, row weights B_ji, targets t_ji and the factor F_j, the weight of its term. A
single block is a term of its own or a part of one. The second sum is over the K two-sided terms, with weights
eta_k; a side S_k^+ or S_k^- is the sum of its blocks. There are J blocks and n rows. A multiplier u_ji is a
slope of phi_j at the margin t_ji f_i.

The outer loop takes proximal point steps on the dual. Around a centre (U, theta^0, b^0) of multipliers,
thetas and intercept it minimises over (w, b)

::

    sum over single blocks j of F_j S_j^tau + (lam/2) ||w||^2 + (r/2) (b - b^0)^2
    + sum_k max over theta in [0, 1] of
          eta_k (theta S_k^+tau + (1 - theta) S_k^-tau) - (R_k/2) (theta - theta_k^0)^2

where S^tau is S smoothed around U with parameter tau (`nerm.solvers.newton_alm.smoothing`), and r and R_k are
small proximal weights. The multipliers, thetas and intercept at the minimum are the next centre, and tau
decreases. The inner loop is Newton's method: the smoothed objective is differentiable, with the Hessian

::

    H = diag(lam, ..., lam, r) + sum_i D_i (x_i, 1) (x_i, 1)' + sum_k e_k e_k' / R_k

D_i is the curvature of the smoothed blocks in row i. For piecewise linear atoms it is positive only in rows
at a kink, whose multiplier is strictly between its bounds. e_k is the gradient of eta_k (S_k^+ - S_k^-); the
last sum is over the theta_k strictly inside (0, 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nerm.model.blocks import Block, pair_numbers, shares
from nerm.solvers import clock
from nerm.solvers.newton_alm.rows import KernelRows, KernelSystem, LinearRows, LinearSystem
from nerm.solvers.newton_alm.smoothing import Blocks, Smoothed, block_units, multipliers
from nerm.solvers.rootfind import Bracket
from nerm.typing import Floats

SHRINK = 0.25  # tau is multiplied by this from one centre to the next
PROXIMAL = 0.1  # scale of tau and R_k, relative to the effect of a multiplier or theta on its own term
INTERCEPT_RIDGE = 1e-3  # r relative to lam, or to the mean weight of a row if that is smaller
COLD_TAU = 3.0  # first tau if the start is f = 0, in units of a margin
SLOW = 0.7  # tau may shrink below its floor after a centre that leaves more than this share of the gap
PATIENCE = 15  # the method stops after so many slow centres in a row
INNER = 0.1  # relative accuracy of inner problems, Newton systems and line searches
MAX_ITERATIONS = 60  # limit for the outer loop, for each inner loop and for each line search
WARM_TAU = SHRINK**2  # first tau if the start is the solution of an adjacent problem


@dataclass(frozen=True, eq=False)
class Iterate:
    """The best hypothesis and the best multipliers so far, and the work so far.

    Attributes
    ----------
    h, scores
        The hypothesis, as `LinearRows` or `KernelRows` stores it, and its scores, (n,).
    u, thetas
        Multipliers, (J, n), and one theta per two-sided term, (K,).
    primal, dual
        The primal value n P at h, and the dual value in sum form, n D, at u and thetas. n D is a lower bound
        only if the weighted multipliers c_i add up to 0. Otherwise it is an estimate, reduced by a penalty
        for this sum.
    converged
        Whether the gap is within the tolerance.
    centres, steps, products
        Number of centres, of Newton steps, and of products with Newton matrices.
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
        """The duality gap in sum form, n P - n D."""
        return self.primal - self.dual


class _Centre(NamedTuple):
    """The centre of a proximal point step.

    Attributes
    ----------
    iterate
        The multipliers U, the thetas theta^0, and the intercept b^0 of h.
    tau
        The smoothing parameter.
    widths
        The proximal weight R_k of each theta_k, (K,).
    """

    iterate: Iterate
    tau: float
    widths: Floats


class _Point(NamedTuple):
    """The smoothed problem at one hypothesis.

    Attributes
    ----------
    h, scores
        The hypothesis and its scores, as in `Iterate`.
    at
        The smoothed blocks.
    thetas
        The maximising theta of each two-sided term, (K,).
    scales
        The factors nu_j, (J,): F_j, times theta or 1 - theta for a side.
    gradient
        The gradient in (w, b), shaped like h.
    dual_vector
        The gradient without the terms of lam and r: (X'c, sum_i c_i) for the weighted multipliers
        c_i = sum_j nu_j B_ji t_ji u_ji.
    """

    h: Floats
    scores: Floats
    at: Smoothed
    thetas: Floats
    scales: Floats
    gradient: Floats
    dual_vector: Floats


class AugmentedLagrangian:
    """The method for given blocks and the regularizer (lam/2) `||w||^2`.

    Parameters
    ----------
    blocks
        The blocks of the problem.
    factors
        The factor F_j of each block, (J,).
    rows
        The data as `LinearRows` or `KernelRows`.
    lam
        n mu, where mu is the weight of the squared l2 norm.
    """

    def __init__(
        self, blocks: Sequence[Block], factors: Floats, rows: LinearRows | KernelRows, lam: float
    ) -> None:
        self.level, units = block_units(blocks, intercept=rows.intercept)
        self.blocks = Blocks(blocks, factors, units)
        self.factors = factors
        self.rows = rows
        self.lam = lam
        self.single = np.array([block.side == 0 for block in blocks])
        pairs = np.array(pair_numbers(blocks))
        signs = np.array([block.side for block in blocks], dtype=float)
        self.signs = signs * (pairs == np.arange(pairs.max(initial=-1) + 1)[:, None])  # (K, J): +-1 on sides
        self.eta = np.array([factors[row != 0][0] for row in self.signs])
        curvature = (factors[:, None] * self.blocks.slopes * self.blocks.targets).mean(axis=0)
        # If the multiplier of row i changes by 1, its margin changes by about B t^2 |x_i|^2 / lam.
        moved = float(curvature @ rows.norms) / (lam * len(curvature)) or 1.0
        self.floor = min(PROXIMAL * moved / float(self.blocks.units.max()), COLD_TAU)
        ridge = INTERCEPT_RIDGE * min(lam, float(curvature.mean() * len(blocks)) or lam)
        self.ridge = np.append(np.full(rows.shape[1] - 1, lam), ridge)

    def cold(self) -> Iterate:
        """Return the start without a previous solution.

        w is 0 and the intercept is the typical score `level` (0 for a classification). Thetas are 1/2, and
        multipliers are in the middle of their domains.
        """
        scores = np.full(self.rows.shape[0], self.level)
        h = np.append(np.zeros(self.rows.shape[1] - 1), self.level)
        return Iterate(h, scores, self.blocks.middle(), np.full(len(self.eta), 0.5))

    def at(self, h: Floats) -> Iterate:
        """Return the start at hypothesis h.

        Multipliers are subgradients at the scores of h, and thetas are 1/2.
        """
        scores = self.rows.scores(h)
        return replace(self.cold(), h=h, scores=scores, u=multipliers(self.blocks.blocks, scores))

    def run(
        self, start: Iterate, tau: float, tol: float, deadline: float = clock.NEVER
    ) -> tuple[Iterate, float]:
        """Take proximal point steps until the gap is at most tol times `|n P|`.

        Return the best iterate and the final tau. `start` and `tau` are the first centre and the first
        smoothing parameter.
        """
        centre = start
        best = replace(start, primal=np.inf, dual=-np.inf, converged=False)
        smallest = np.inf
        slow_centres = 0
        for _ in range(MAX_ITERATIONS):
            centre, best = self._inner(centre, best, tau, tol, deadline)
            best = replace(best, centres=best.centres + 1)
            slow = best.gap > SLOW * smallest
            slow_centres = slow_centres + 1 if slow else 0
            smallest = min(smallest, best.gap)
            if best.converged or slow_centres >= PATIENCE or clock.is_up(deadline):
                break
            tau = max(SHRINK * tau, 0.0 if slow else min(tau, self.floor))
        return best, tau

    def _inner(
        self, centre: Iterate, best: Iterate, tau: float, tol: float, deadline: float
    ) -> tuple[Iterate, Iterate]:
        """Minimise the smoothed problem around one centre by Newton steps.

        Return the next centre, and `best` updated with the iterates on the way.
        """
        h, scores = centre.h, centre.scores
        # The first step treats rows at a kink at the previous centre as if they stayed there: most do.
        extend = best.centres > 0
        around = _Centre(centre, tau, self._widths(centre, tau, extend))
        for step in range(MAX_ITERATIONS):
            point = self._point(h, scores, around)
            best = self._better(best, point, tol)
            left = self.rows.dot(point.gradient, point.gradient / self.ridge) / 2
            enough = step > 0 and left <= INNER * max(best.gap, tol * abs(best.primal))
            if best.converged or enough or clock.is_up(deadline):
                break
            move, products = self._direction(point, around, extend and step == 0)
            moved = self.rows.scores(move)
            length = self._step_length(point, move, moved, around)
            if length == 0.0:
                break
            h = h + length * move
            scores = scores + length * moved
            best = replace(best, steps=best.steps + 1, products=best.products + products)
        return replace(centre, h=h, scores=scores, u=point.at.u, thetas=point.thetas), best

    def _thetas(self, values: Floats, around: _Centre) -> Floats:
        """Return the maximising theta of each two-sided term, (K,), for smoothed block values, (J,)."""
        lead = self.eta * (self.signs @ values)
        return np.asarray(np.clip(around.iterate.thetas + lead / around.widths, 0.0, 1.0))

    def _scales(self, thetas: Floats) -> Floats:
        """Return the factors nu_j of the blocks, (J,).

        nu_j is F_j for a single block; for a side it is F_j times theta or 1 - theta.
        """
        return np.asarray(self.factors * shares(self.blocks.blocks, thetas))

    def _point(self, h: Floats, scores: Floats, around: _Centre) -> _Point:
        at = self.blocks.smoothed(scores, around.iterate.u, around.tau)
        thetas = self._thetas(at.values, around)
        scales = self._scales(thetas)
        dual_vector = self.rows.weighted_sum(self.blocks.slopes * at.u, scales)
        gradient = self._ridge_gradient(h, around) + dual_vector
        return _Point(h, scores, at, thetas, scales, gradient, dual_vector)

    def _ridge_gradient(self, h: Floats, around: _Centre) -> Floats:
        """Return the gradient of (lam/2) ||w||^2 + (r/2) (b - b^0)^2 at h."""
        gradient = self.ridge * h
        gradient[-1] -= self.ridge[-1] * around.iterate.h[-1]
        return np.asarray(gradient)

    def _better(self, best: Iterate, point: _Point, tol: float) -> Iterate:
        """Return `best`, updated with a point.

        h is replaced if the primal value n P is lower here. u and thetas are replaced if the dual value in
        sum form, n D, is higher here. `converged` is set if the gap is at most tol times `|n P|`.
        """
        values = self.blocks.values(point.scores)
        sides = np.maximum(np.maximum(self.signs, 0.0) @ values, np.maximum(-self.signs, 0.0) @ values)
        primal = 0.5 * self.lam * self.rows.squared_norm(point.h) + self.eta @ sides
        primal += self.factors[self.single] @ values[self.single]
        if primal < best.primal:
            best = replace(best, primal=float(primal), h=point.h, scores=point.scores)
        c = point.dual_vector
        dual = -point.scales @ point.at.conjugates - self.rows.squared_norm(c) / (2 * self.lam)
        dual -= abs(c[-1]) * (1 + abs(point.h[-1]))
        if dual > best.dual:
            best = replace(best, dual=float(dual), u=point.at.u, thetas=point.thetas)
        return replace(best, converged=bool(best.gap <= tol * abs(best.primal)))

    def _lines(self, u: Floats) -> Floats:
        """Return e_k, the gradient of eta_k (S_k^+ - S_k^-), one row per two-sided term.

        The slopes of the atoms are the multipliers u, (J, n).
        """
        lines = np.zeros((len(self.eta), self.rows.shape[1]))
        for k, scales in enumerate(self.eta[:, None] * self.signs):
            lines[k] = self.rows.weighted_sum(self.blocks.slopes * u, scales)
        return lines

    def _widths(self, centre: Iterate, tau: float, extend: bool) -> Floats:
        """Return the proximal weight R_k of each theta_k, (K,).

        R_k is proportional to e_k'H^-1 e_k, the change of eta_k (S_k^+ - S_k^-) per unit of theta_k. `extend`
        is explained in `Blocks.smoothed`.
        """
        if not self.eta.any():
            return np.ones(len(self.eta))
        at = self.blocks.smoothed(centre.scores, centre.u, tau, extend=extend)
        system = self._system(at, self._scales(centre.thetas))
        responses = [system.quadratic_form(e) for e in self._lines(at.extended)]
        width = PROXIMAL * min(1.0, tau / self.floor)
        return np.maximum(width * np.array(responses), 1e-9 * self.eta.max() ** 2)

    def _system(self, at: Smoothed, scales: Floats) -> LinearSystem | KernelSystem:
        curvature = self.blocks.slopes * self.blocks.targets * at.curvature
        return self.rows.system(scales @ curvature, self.ridge, INNER)

    def _direction(self, point: _Point, around: _Centre, extend: bool) -> tuple[Floats, int]:
        """Return the Newton direction, shaped like h, and the number of products with H.

        With `extend`, rows at a kink at the centre are treated as if they stayed there. If the result is no
        descent direction, the plain Newton direction is returned.
        """
        at, gradient = point.at, point.gradient
        if extend:
            at = self.blocks.smoothed(point.scores, around.iterate.u, around.tau, extend=True)
            sums = self.rows.weighted_sum(self.blocks.slopes * at.extended, point.scales)
            gradient = self._ridge_gradient(point.h, around) + sums
        system = self._system(at, point.scales)
        between = (point.thetas > 0) & (point.thetas < 1) & (self.eta > 0)
        move = system.solve(-gradient, self._lines(at.extended)[between], around.widths[between])
        if extend and self.rows.dot(move, point.gradient) >= 0:
            return self._direction(point, around, False)
        return move, system.products

    def _step_length(self, point: _Point, move: Floats, moved: Floats, around: _Centre) -> float:
        """Return a step length t in [0, 1] by a search for a zero of the slope.

        The slope is that of the smoothed objective along the direction `move`; `moved`, (n,), is the change
        of the scores. t is 1 if the slope there is negative or nearly 0. t is 0 if `move` is no descent
        direction.
        """

        def slope(t: float) -> float:
            at = self.blocks.smoothed(point.scores + t * moved, around.iterate.u, around.tau)
            scales = self._scales(self._thetas(at.values, around))
            along = (scales @ (self.blocks.slopes * at.u)) @ moved
            found = float(self.rows.dot(self._ridge_gradient(point.h + t * move, around), move) + along)
            return found if np.isfinite(found) else np.inf

        start = self.rows.dot(point.gradient, move)
        if not start < 0:
            return 0.0
        end = slope(1.0)
        if end <= INNER * -start:
            return 1.0
        bracket = Bracket()
        bracket.add(0.0, -start)
        bracket.add(1.0, -end)
        for _ in range(MAX_ITERATIONS):
            t = bracket.next()
            here = slope(t)
            if abs(here) <= INNER * -start:
                return t
            bracket.add(t, -here)
        return bracket.low
