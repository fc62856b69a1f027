"""The semismooth Newton augmented Lagrangian method on f = X w + b.

::

    n P(w, b) = sum_single F_j S_j + sum_k eta_k max(S_k^+, S_k^-) + (lam/2) ||w||^2
    S_j       = sum_i B_ji phi_j(t_ji f_i)

The outer loop takes proximal point steps on the dual. Around a centre (U, theta^0, b^0) it minimises over
(w, b)

::

    sum_single F_j S_j^tau + (lam/2) ||w||^2 + (r/2) (b - b^0)^2
    + sum_k max over theta in [0, 1] of
          eta_k (theta S_k^+tau + (1 - theta) S_k^-tau) - (R_k/2) (theta - theta_k^0)^2

where S^tau is smoothed around U (`nerm.solvers.newton_alm.smoothing`). The multipliers and thetas at the
minimum are the next centre, and tau decreases. The inner loop is Newton's method: the smoothed objective is
differentiable, and only rows whose multiplier is strictly between its bounds, those at a kink, enter its
Hessian

::

    H = diag(lam, ..., lam, r) + sum_i D_i (x_i, 1) (x_i, 1)' + sum_k e_k e_k' / R_k
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nerm.model.blocks import EPS, Block, shares
from nerm.solvers import clock
from nerm.solvers.newton_alm.kernel_rows import KernelRows, KernelSystem
from nerm.solvers.newton_alm.linear_rows import LinearRows, LinearSystem
from nerm.solvers.newton_alm.smoothing import Blocks, Smoothed, multipliers
from nerm.solvers.rootfind import Bracket
from nerm.typing import Floats

SHRINK = 0.25  # factor of tau from centre to centre
PROXIMAL = 0.1  # floor of tau, R_k and r, relative to how far a multiplier, theta or b moves its own term
INNER = 0.1  # accuracy of inner problems, Newton systems and line searches, relative to what they serve
MAX_ITERATIONS = 60  # of the outer loop, of each inner loop, of each line search
WARM_TAU = SHRINK**2  # tau at a start from the solution of an adjacent problem


@dataclass(frozen=True, eq=False)
class Iterate:
    """A hypothesis with its value n P, multipliers u and thetas with their bound n D, and the work so far.

    The bound is an estimate while sum c is not exactly 0: the missing part is subtracted from it.
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
        """The difference n P - n D."""
        return self.primal - self.dual


class _Point(NamedTuple):
    """The smoothed problem at one (w, b): blocks, thetas, the gradient, and the part X'c of the gradient."""

    at: Smoothed
    thetas: Floats
    gradient: Floats
    dual_vector: Floats


class AugmentedLagrangian:
    """The method on blocks with their factors and (lam/2) ||w||^2."""

    def __init__(
        self, blocks: Sequence[Block], factors: Floats, rows: LinearRows | KernelRows, lam: float
    ) -> None:
        self.blocks = Blocks(blocks, factors)
        self.factors = factors
        self.rows = rows
        self.lam = lam
        self.single = np.array([block.side == 0 for block in blocks])
        self.first = np.flatnonzero([block.side > 0 for block in blocks])  # the sides + of terms of two
        self.eta = factors[self.first]
        curvature = (factors[:, None] * self.blocks.slopes * self.blocks.targets).mean(axis=0)
        # A unit of its multiplier moves the margin of row i by about B t^2 |x_i|^2 / lam.
        moved = float(curvature @ rows.norms) / (lam * len(curvature)) or 1.0
        self.floor = min(PROXIMAL * moved, 1.0)
        ridge = PROXIMAL * min(lam, float(curvature.mean() * len(blocks)) or lam)
        self.ridge = np.append(np.full(rows.shape[1] - 1, lam), ridge)

    def cold(self) -> Iterate:
        """Return the zero hypothesis with multipliers in the middle of their domains."""
        scores = np.zeros(self.rows.shape[0])
        slopes = [block.atom.facts.slopes for block in self.blocks.blocks]
        middle = [np.clip(0.5 * (max(low, -1.0) + min(high, 1.0)), low, high) for low, high in slopes]
        u = np.repeat(np.array(middle)[:, None], len(scores), axis=1)
        return Iterate(np.zeros(self.rows.shape[1]), scores, u, np.full(len(self.eta), 0.5))

    def at(self, h: Floats) -> Iterate:
        """Return a hypothesis with multipliers that are subgradients at its scores."""
        scores = self.rows.scores(h)
        return replace(self.cold(), h=h, scores=scores, u=multipliers(self.blocks.blocks, scores))

    def run(
        self, start: Iterate, tau: float, tol: float, deadline: float = clock.NEVER
    ) -> tuple[Iterate, float]:
        """Take proximal point steps until gap <= tol n P; return the best iterate and the last tau."""
        centre = start
        best = replace(start, primal=np.inf, dual=-np.inf, converged=False)
        smallest = np.inf
        for _ in range(MAX_ITERATIONS):
            centre, best = self._inner(centre, best, tau, tol, deadline)
            best = replace(best, centres=best.centres + 1)
            halved = best.gap <= smallest / 2
            smallest = min(smallest, best.gap)
            if best.converged or tau <= EPS or clock.is_up(deadline):
                break
            tau = max(SHRINK * tau, min(tau, self.floor) if halved else 0.0)
        return best, tau

    def _inner(
        self, centre: Iterate, best: Iterate, tau: float, tol: float, deadline: float
    ) -> tuple[Iterate, Iterate]:
        """Minimise the smoothed problem around one centre by Newton steps; return the next centre."""
        h = centre.h
        scores = centre.scores
        # At the first step rows at a kink of the last centre move as if they stayed there: few leave it.
        extend = best.centres > 0
        widths = self._widths(scores, centre, tau, extend)
        for step in range(MAX_ITERATIONS):
            point = self._point(h, scores, centre, tau, widths)
            best = self._better(best, h, scores, point, tol)
            left = self.rows.dot(point.gradient, point.gradient / self.ridge) / 2
            enough = step > 0 and left <= INNER * max(best.gap, tol * abs(best.primal))
            if best.converged or enough or clock.is_up(deadline):
                break
            move, products = self._direction(point, h, scores, centre, tau, widths, extend and step == 0)
            moved = self.rows.scores(move)
            length = self._step_length(h, scores, move, moved, centre, tau, widths)
            if length == 0.0:
                break
            h = h + length * move
            scores = scores + length * moved
            best = replace(best, steps=best.steps + 1, products=best.products + products)
        return replace(centre, h=h, scores=scores, u=point.at.u, thetas=point.thetas), best

    def _thetas(self, values: Floats, centre: Iterate, widths: Floats) -> Floats:
        """Return the maximising theta of each term of two sides."""
        lead = self.eta * (values[self.first] - values[self.first + 1])
        return np.asarray(np.clip(centre.thetas + lead / widths, 0.0, 1.0))

    def _scales(self, thetas: Floats) -> Floats:
        """Return the factor of each block, theta included, (J,)."""
        return np.asarray(self.factors * shares(self.blocks.blocks, thetas))

    def _point(self, h: Floats, scores: Floats, centre: Iterate, tau: float, widths: Floats) -> _Point:
        at = self.blocks.smoothed(scores, centre.u, tau)
        thetas = self._thetas(at.values, centre, widths)
        dual_vector = self.rows.weighted_sum(self.blocks.slopes * at.u, self._scales(thetas))
        return _Point(at, thetas, self._ridge_gradient(h, centre) + dual_vector, dual_vector)

    def _ridge_gradient(self, h: Floats, centre: Iterate) -> Floats:
        """Return the gradient of (lam/2) ||w||^2 + (r/2) (b - b^0)^2."""
        gradient = self.ridge * h
        gradient[-1] -= self.ridge[-1] * centre.h[-1]
        return np.asarray(gradient)

    def _better(self, best: Iterate, h: Floats, scores: Floats, point: _Point, tol: float) -> Iterate:
        """Return `best`, updated where this point has a lower value n P or a higher bound n D.

        It is `converged` if the gap is at most tol n P.
        """
        values = self.blocks.values(scores)
        sides = np.maximum(values[self.first], values[self.first + 1])
        primal = 0.5 * self.lam * self.rows.squared_norm(h) + self.eta @ sides
        primal += self.factors[self.single] @ values[self.single]
        if primal < best.primal:
            best = replace(best, primal=float(primal), h=h, scores=scores)
        c = point.dual_vector
        dual = -self._scales(point.thetas) @ point.at.conjugates - self.rows.squared_norm(c) / (2 * self.lam)
        dual -= abs(c[-1]) * (1 + abs(h[-1]))
        if dual > best.dual:
            best = replace(best, dual=float(dual), u=point.at.u, thetas=point.thetas)
        return replace(best, converged=bool(best.gap <= tol * abs(best.primal)))

    def _lines(self, u: Floats) -> Floats:
        """Return e_k, the gradient of eta_k (S_k^+ - S_k^-), for each term of two sides."""
        lines = np.zeros((len(self.eta), self.rows.shape[1]))
        for k, j in enumerate(self.first):
            scales = np.zeros(len(u))
            scales[j] = self.eta[k]
            scales[j + 1] = -self.eta[k]
            lines[k] = self.rows.weighted_sum(self.blocks.slopes * u, scales)
        return lines

    def _widths(self, scores: Floats, centre: Iterate, tau: float, extend: bool) -> Floats:
        """Return R_k relative to e_k'H^-1 e_k: how far the sides of a term move apart as theta_k changes."""
        if not self.eta.any():
            return np.ones(len(self.eta))
        at = self.blocks.smoothed(scores, centre.u, tau, extend=extend)
        system = self._system(at, centre.thetas)
        responses = [system.quadratic_form(e) for e in self._lines(at.extended)]
        width = PROXIMAL * min(1.0, tau / self.floor)
        return np.maximum(width * np.array(responses), 1e-9 * self.eta.max() ** 2)

    def _system(self, at: Smoothed, thetas: Floats) -> LinearSystem | KernelSystem:
        curvature = self.blocks.slopes * self.blocks.targets * at.curvature
        return self.rows.system(self._scales(thetas) @ curvature, self.ridge, INNER)

    def _direction(
        self,
        point: _Point,
        h: Floats,
        scores: Floats,
        centre: Iterate,
        tau: float,
        widths: Floats,
        extend: bool,
    ) -> tuple[Floats, int]:
        """Return Newton's direction and the number of products with H."""
        at = point.at
        gradient = point.gradient
        if extend:
            at = self.blocks.smoothed(scores, centre.u, tau, extend=True)
            parts = self.blocks.slopes * at.extended
            gradient = self._ridge_gradient(h, centre) + self.rows.weighted_sum(
                parts, self._scales(point.thetas)
            )
        system = self._system(at, point.thetas)
        between = (point.thetas > 0) & (point.thetas < 1) & (self.eta > 0)
        lines = self._lines(at.extended)[between]
        move = system.solve(-gradient, lines, widths[between])
        if extend and self.rows.dot(move, point.gradient) >= 0:
            return self._direction(point, h, scores, centre, tau, widths, False)
        return move, system.products

    def _step_length(
        self,
        h: Floats,
        scores: Floats,
        move: Floats,
        moved: Floats,
        centre: Iterate,
        tau: float,
        widths: Floats,
    ) -> float:
        """Return a step length in [0, 1] at which the slope along the direction is nearly 0 or negative."""

        def slope(t: float) -> float:
            with np.errstate(over="ignore", invalid="ignore"):
                at = self.blocks.smoothed(scores + t * moved, centre.u, tau)
                scales = self._scales(self._thetas(at.values, centre, widths))
                along = (scales @ (self.blocks.slopes * at.u)) @ moved
                found = float(self.rows.dot(self._ridge_gradient(h + t * move, centre), move) + along)
            return found if np.isfinite(found) else np.inf

        start = slope(0.0)
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
