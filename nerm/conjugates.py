"""The conjugate of a weighted sum of regularizers: what the certificate subtracts for Omega.

Any split q = sum_j q_j gives Omega*(q) <= sum_j weight_j Omega_j*(q_j / weight_j), so a split that is not the best
makes a bound loose and never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

import numpy as np

from nerm.atoms.regularizer import Norm, Regularizer
from nerm.atoms.squared_l2 import SquaredL2
from nerm.typing import Floats

Parts: TypeAlias = list[tuple[float, Regularizer]]  # a sum of regularizers with positive weights


class ConjugateValue(NamedTuple):
    """An upper bound `value` on Omega*(shrink q), and if q had to shrink, why."""

    shrink: float
    value: float
    reason: str = ""


def parts_of(regularizers: Iterable[tuple[float, Regularizer]]) -> Parts:
    """Return a weighted sum of regularizers as one of their parts, without those of weight 0."""
    parts = [(weight * share, atom) for weight, omega in regularizers for share, atom in omega.parts()]
    return [(weight, atom) for weight, atom in parts if weight > 0]


def conjugate_of_sum(parts: Parts, q: Floats, squared_norm: Callable[[Floats], float]) -> ConjugateValue:
    """Return Omega*(t q) with the largest t in [0, 1] for which it is known to be finite.

    Omega is a weighted sum: its squares add up to (mu/2) ||w||^2, and the conjugate of a sum is the best split of q
    among the parts: (mu/2) ||.||^2 + norms has Omega*(q) = dist(q, sum of dual balls)^2 / (2 mu). The norm of the
    square is given by `squared_norm`: that of a kernel's function space, or the Euclidean one.
    """
    mu = sum(weight for weight, atom in parts if isinstance(atom, SquaredL2))
    others = [(weight, atom) for weight, atom in parts if not isinstance(atom, SquaredL2)]
    if not others:
        square = squared_norm(q)
        if mu > 0 or square == 0:
            return ConjugateValue(1.0, square / (2 * mu) if mu > 0 else 0.0)
        return ConjugateValue(0.0, 0.0, "no regularizer, and sum c x is not 0")
    norms = [(weight, atom) for weight, atom in others if isinstance(atom, Norm)]
    if len(norms) < len(others):
        return _single_conjugate(others, mu, q)
    if mu > 0:
        rest = _residual(norms, q)
        return ConjugateValue(1.0, float(rest @ rest) / (2 * mu))
    return ConjugateValue(min(1.0, 1.0 / max(_gauge(norms, q), np.finfo(float).tiny)), 0.0)


def _single_conjugate(parts: Parts, mu: float, q: Floats) -> ConjugateValue:
    """Return the bound for one regularizer that is neither a square nor a norm, from its own conjugate."""
    if len(parts) > 1 or mu > 0:
        return ConjugateValue(0.0, 0.0, "no rule for this sum of regularizers: only q = 0 is known to be feasible")
    weight, omega = parts[0]
    t = 1.0
    while t > 1e-12 and not np.isfinite(omega.conjugate(t * q / weight)):
        t *= 0.5
    if t <= 1e-12:
        return ConjugateValue(0.0, 0.0, f"the conjugate of {omega!r} is infinite at the multipliers")
    return ConjugateValue(t, weight * omega.conjugate(t * q / weight))


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
