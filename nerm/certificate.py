"""The certificate: a lower bound on the optimum from conjugates alone, and with it the duality gap.

With max(a, b) = max over theta in [0, 1] of theta a + (1 - theta) b, every alpha_i in -dom phi*, beta_i^+- in -dom psi*
and theta_k in [0, 1] with sum_i c_i = 0 (when the intercept is free) give a bound D <= optimum, where

::

    c_i = s_i alpha_i y_i + sum_k eta_k u_ki v_ki (theta_k beta_ki^+ - (1 - theta_k) beta_ki^-),
    q   = (1/n) sum_i c_i x_i,
    D   = -(1/n) sum_i s_i phi*(-alpha_i)
          -(1/n) sum_ki eta_k u_ki [theta_k psi*(-beta_ki^+) + (1 - theta_k) psi*(-beta_ki^-)] - Omega*(q).

So gap = P - D certifies any hypothesis, whoever computed it. This module is numpy only and knows no solver; multipliers
that come from one are made feasible first (`repaired`), up to rounding, and where none come they are found from the
scores (`nerm.recovery`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nerm.atoms.regularizer import Norm, Regularizer
from nerm.atoms.squared_l2 import SquaredL2
from nerm.blocks import Block, forces, given_weights, scaled_weights, shares, weigh
from nerm.errors import InvalidInputError
from nerm.multipliers import Multipliers
from nerm.recovery import candidates
from nerm.typing import Floats
from nerm.value import ObjectiveValue

if TYPE_CHECKING:
    from nerm.problem import Problem

SECOND_LOOK = 20_000_000  # rows times coefficients up to which unconvincing multipliers are replaced by recovered ones


@dataclass(frozen=True)
class Certificate:
    """primal >= optimum >= dual, recomputed by nerm.

    Attributes
    ----------
    primal, dual : float
        The objective at the hypothesis, and the lower bound on every hypothesis' objective.
    scale : float
        The objective of the zero hypothesis: what "zero" means for an optimum of 0.

    For (1/n) sum max(0, 1 - y f) + ¼ w^2 on two rows x = ±1 the optimum is w = 1. There primal and dual meet; of w = 0
    the certificate says that up to 1 could be gained:

    >>> import nerm
    >>> problem = (nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2()).on([[1.0], [-1.0]], [1, -1], intercept=False)
    >>> problem.certify([1.0])
    Certificate(primal=0.25, dual=0.25, scale=1.0)
    >>> print(problem.certify([0.0]))
    primal 1, dual bound 0, relative gap 1.00e+00

    """

    primal: float
    dual: float
    scale: float = 0.0

    @property
    def gap(self) -> float:
        """Primal - dual, the most that any hypothesis could gain."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """`Gap / |primal|`; infinite if there is no bound.

        A primal below 1e-12 of `scale` counts as that much. A bound *above* the primal by more than rounding (1e-8)
        contradicts itself, by a wrong conjugate or a problem that is not convex: that certifies nothing either.
        """
        if not np.isfinite(self.gap) or -self.gap > 1e-8 * max(abs(self.primal), abs(self.dual)):
            return np.inf
        size = max(abs(self.primal), 1e-12 * self.scale)
        return float(max(self.gap, 0.0) / size) if size else 0.0 if self.gap <= 0 else np.inf

    def times(self, factor: float) -> Certificate:
        """Return the certificate of the objective multiplied by a positive number."""
        return Certificate(factor * self.primal, factor * self.dual, factor * self.scale)

    def __add__(self, other: Certificate) -> Certificate:
        """Return the certificate of the sum of two problems in variables of their own."""
        return Certificate(self.primal + other.primal, self.dual + other.dual, self.scale + other.scale)

    def __str__(self) -> str:
        return f"primal {self.primal:.10g}, dual bound {self.dual:.10g}, relative gap {self.relative_gap:.2e}"


def certify(problem: Problem, coef: Floats, intercept: float, multipliers: Multipliers | None = None) -> Certificate:
    """Return the certificate of a hypothesis, from multipliers of the given rows or, without any, from its scores."""
    if multipliers is not None:
        _check_shape(problem, multipliers)
        multipliers = multipliers.merged(problem.rows, given_weights(problem))
    return judge(problem, coef, intercept, multipliers)[1]


def _check_shape(problem: Problem, multipliers: Multipliers) -> None:
    expected = (len(problem.blocks), problem.n), (len(problem.two_sided),)
    if (multipliers.rows.shape, multipliers.thetas.shape) != expected:
        raise InvalidInputError(
            f"'multipliers' must have rows of shape {expected[0]} and thetas of shape {expected[1]}",
            f"{multipliers.rows.shape} and {multipliers.thetas.shape}",
            "Pass those of a solution of a problem with the same terms and rows",
        )


def judge(
    problem: Problem, coef: Floats, intercept: float, multipliers: Multipliers | None, tol: float | None = None
) -> tuple[ObjectiveValue, Certificate, Multipliers | None]:
    """Return the objective's value, the certificate, and the feasible multipliers behind its bound.

    Everything speaks of the distinct rows. Given multipliers are taken at their word, except that with a `tol` they
    fail to reach, a moderate problem is looked at once more from its scores: a solver can have found the hypothesis
    without its multipliers.
    """
    value, scale = problem.value(coef, intercept), problem.value_at_zero()
    best, behind = Certificate(value.total, -np.inf, scale), None
    if multipliers is not None:
        bound, behind = dual_point(problem, multipliers)
        best = replace(best, dual=bound)
        enough = tol is None or best.relative_gap <= tol
        if enough or problem.hypothesis.n * problem.hypothesis.size > SECOND_LOOK:
            return value, best, behind
    for candidate in candidates(problem, coef, intercept):
        bound, feasible = dual_point(problem, candidate)
        if bound > best.dual:
            best, behind = replace(best, dual=bound), feasible
        if tol is not None and best.relative_gap <= tol:
            break
    return value, best, behind


def dual_bound(problem: Problem, multipliers: Multipliers) -> float:
    """Return the bound D of these multipliers after restoring their feasibility; -inf if that is impossible."""
    return dual_point(problem, multipliers)[0]


def dual_point(problem: Problem, multipliers: Multipliers) -> tuple[float, Multipliers | None]:
    """Return the bound and the feasible multipliers that give it."""
    feasible = repaired(problem, multipliers)
    if feasible is None:
        return -np.inf, None
    q = problem.hypothesis.adjoint(forces(problem, feasible.rows, feasible.thetas)) / problem.divisor
    shrink, omega = conjugate_of_regularizers(problem, q)
    if shrink < 1:
        feasible = towards_centre(problem, feasible, shrink)
        if feasible is None:
            return -np.inf, None
    weights = scaled_weights(problem, feasible.thetas)
    separable = sum(
        weigh(w, block.atom.conjugate(-row))
        for w, block, row in zip(weights, problem.blocks, feasible.rows, strict=True)
    )
    return -separable / problem.divisor - omega, feasible


# --- feasibility ----------------------------------------------------------------------------------


def repaired(problem: Problem, multipliers: Multipliers) -> Multipliers | None:
    """Return the multipliers clipped into their domains and with sum c = 0; None if that cannot be had."""
    thetas = np.clip(np.nan_to_num(multipliers.thetas, nan=0.5), 0.0, 1.0)
    inside = _clipped(problem, Multipliers(np.nan_to_num(multipliers.rows), thetas))
    if problem.intercept and not _balance(problem, inside):
        return towards_centre(problem, inside, 0.0)
    return inside


def _clipped(problem: Problem, multipliers: Multipliers) -> Multipliers:
    """Return the multipliers inside their domains, in memory of their own."""
    rows = zip(problem.blocks, multipliers.rows, strict=True)
    return replace(multipliers, rows=np.stack([np.clip(row, *block.domain) for block, row in rows]))


def _balance(problem: Problem, multipliers: Multipliers) -> bool:
    """Shift multipliers inside their domains, in place, until sum c = 0 up to rounding; False if there is no room.

    Multipliers away from both ends of their domain move first: they sit at kinks or in smooth pieces, where a shift
    costs nothing to first order.
    """
    blocks, rows = problem.blocks, multipliers.rows
    weights = scaled_weights(problem, multipliers.thetas)
    pulls = [w * block.targets for w, block in zip(weights, blocks, strict=True)]
    for room_of in (_interior_room, _room, _room):
        excess, size = _excess(pulls, rows)
        if abs(excess) <= 1e-15 * size:
            return True
        # Lower the sum: multipliers with positive coefficient go down, the others up.
        directions = [-np.sign(excess) * np.sign(a) for a in pulls]
        rooms = [room_of(block, row, d) for block, row, d in zip(blocks, rows, directions, strict=True)]
        capacity = sum(weigh(np.abs(a), room) for a, room in zip(pulls, rooms, strict=True))
        if capacity <= 0:
            continue
        share = min(1.0, abs(excess) / capacity)
        for row, direction, room in zip(rows, directions, rooms, strict=True):
            row += share * direction * room
    excess, size = _excess(pulls, rows)
    return abs(excess) <= 1e-11 * size


def _excess(pulls: list[Floats], rows: Floats) -> tuple[float, float]:
    """Return sum c, and the size of the summands before they cancel: what its rounding is relative to."""
    c = sum(a * row for a, row in zip(pulls, rows, strict=True))
    return float(np.sum(c)), sum(weigh(np.abs(a), np.abs(row)) for a, row in zip(pulls, rows, strict=True))


def _room(block: Block, row: Floats, direction: Floats) -> Floats:
    """Return how far each multiplier can go in its direction; where there is no end, as far as its own size."""
    low, high = block.domain
    room = np.where(direction > 0, high - row, row - low)
    return np.where(np.isfinite(room), np.maximum(room, 0.0), 1.0 + np.abs(row))


def _interior_room(block: Block, row: Floats, direction: Floats) -> Floats:
    """Return the distance to the nearer end of the domain, so that multipliers at an end stay there."""
    return np.minimum(_room(block, row, direction), _room(block, row, -direction))


def towards_centre(problem: Problem, multipliers: Multipliers, t: float) -> Multipliers | None:
    """Return the point at fraction t of the way from the centre (c = 0) to these multipliers, so that c becomes t c.

    The centre is alpha = 0, beta^+ = beta^-, theta = 1/2. The bound is concave in (alpha, theta beta^+,
    (1 - theta) beta^-, theta), so the products are what is mixed. None if 0 is no multiplier of a block alone.
    """
    alone = [block for block in problem.blocks if block.side == 0]
    if any(not block.domain[0] <= 0 <= block.domain[1] for block in alone):
        return None
    thetas = 0.5 + t * (multipliers.thetas - 0.5)
    old, new = shares(problem.blocks, multipliers.thetas), shares(problem.blocks, thetas)
    rows = t * multipliers.rows
    for j, block in enumerate(problem.blocks):
        if block.side and new[j] > 0:
            rest = (1 - t) * 0.5 * float(np.clip(0.0, *block.domain))
            rows[j] = (t * old[j] * multipliers.rows[j] + rest) / new[j]
        elif block.side:
            rows[j] = multipliers.rows[j]
    return _clipped(problem, Multipliers(rows, thetas))  # rounding can take a mixture out of its domain


# --- the regularizer's conjugate ------------------------------------------------------------------


def conjugate_of_regularizers(problem: Problem, q: Floats) -> tuple[float, float]:
    """Return (t, Omega*(t q)) with the largest t in [0, 1] for which it is finite.

    Omega is a weighted sum: its squares add up to (mu/2) ||w||^2, and the conjugate of a sum is the best split of q
    among the parts: (mu/2) ||.||^2 + norms has Omega*(q) = dist(q, sum of dual balls)^2 / (2 mu).
    """
    parts = [(weight * share, atom) for weight, omega in problem.regularizers for share, atom in omega.parts()]
    mu = sum(weight for weight, atom in parts if isinstance(atom, SquaredL2))
    others = [(weight, atom) for weight, atom in parts if weight > 0 and not isinstance(atom, SquaredL2)]
    if not others:
        square = problem.hypothesis.squared_norm(q)
        return (1.0, square / (2 * mu)) if mu > 0 else (1.0 if square == 0 else 0.0, 0.0)
    norms = [(weight, atom) for weight, atom in others if isinstance(atom, Norm)]
    if len(norms) < len(others):
        return _single_conjugate(others, mu, q)
    if mu > 0:
        rest = _residual(norms, q)
        return 1.0, float(rest @ rest) / (2 * mu)
    return min(1.0, 1.0 / max(_gauge(norms, q), np.finfo(float).tiny)), 0.0


def _single_conjugate(parts: list[tuple[float, Regularizer]], mu: float, q: Floats) -> tuple[float, float]:
    """Return the bound for one regularizer that is neither a square nor a norm, from its own conjugate."""
    if len(parts) > 1 or mu > 0:
        return 0.0, 0.0  # no rule for this sum: only q = 0 is known to be feasible
    weight, omega = parts[0]
    t = 1.0
    while t > 1e-12 and not np.isfinite(omega.conjugate(t * q / weight)):
        t *= 0.5
    return (t, weight * omega.conjugate(t * q / weight)) if t > 1e-12 else (0.0, 0.0)


def _residual(norms: list[tuple[float, Norm]], q: Floats) -> Floats:
    """Return q minus its projection on the sum of the balls { weight * dual unit ball }.

    A single norm's prox leaves exactly the rest. Several share q by accelerated projected gradient on
    1/2 ||q - sum_j q_j||^2, q_j in its own ball (the projection is v - prox(v)), after a first sweep that is already
    exact for l1 followed by group l2.
    """
    shares, rest = [], q
    for weight, norm in sorted(norms, key=lambda part: part[1].name != "l1"):
        left = norm.prox(rest, weight)
        shares.append(rest - left)
        rest = left
    if len(norms) == 1:
        return rest
    parts = sorted(norms, key=lambda part: part[1].name != "l1")
    ahead, momentum, size = shares, 1.0, float(np.linalg.norm(q))
    for _ in range(5000):
        open_part = (q - sum(ahead)) / len(parts)
        pushed = [share + open_part for share in ahead]
        new = [v - norm.prox(v, weight) for v, (weight, norm) in zip(pushed, parts, strict=True)]
        moves = [n - s for n, s in zip(new, shares, strict=True)]
        uphill = sum(float(open_part @ move) for move in moves) < 0
        following = 1.0 if uphill else 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
        push = 0.0 if uphill else (momentum - 1) / following
        ahead = [n + push * move for n, move in zip(new, moves, strict=True)]
        shares, momentum = new, following
        if max(float(np.linalg.norm(move)) for move in moves) <= 1e-15 * size:
            break
    return q - sum(shares)


def _gauge(norms: list[tuple[float, Norm]], q: Floats) -> float:
    """Return the smallest r such that q lies in r times the sum of the weighted dual balls."""
    bounds = [norm.dual_norm(q) / weight for weight, norm in norms]
    if len(norms) == 1 or not q.any():
        return bounds[0]
    low, high = 0.0, min(bounds)
    for _ in range(60):
        middle = 0.5 * (low + high)
        rest = _residual([(middle * weight, norm) for weight, norm in norms], q)
        low, high = (middle, high) if np.linalg.norm(rest) > 1e-11 * np.linalg.norm(q) else (low, middle)
    return high
