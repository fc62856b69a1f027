"""The two kinds of margin function that the engine takes, as numbers and array functions only.

A hinge-like function is the support of a quadratic on an interval,

    phi(m) = sup over u in [low, high] of  m u - linear u - (quadratic / 2) u^2,

so its conjugate is phi*(u) = linear u + (quadratic / 2) u^2 on [low, high]:

| function                                   | linear | quadratic | low  | high |
|--------------------------------------------|--------|-----------|------|------|
| hinge                                      | 1      | 0         | -1   | 0    |
| squared hinge                              | 1      | 1/2       | -inf | 0    |
| hinge rounded quadratically on [1-h, 1]    | 1      | h         | -1   | 0    |
| hinge rounded quadratically on [1-h, 1+h]  | 1 + h  | 2 h       | -1   | 0    |
| modified Huber                             | 1      | 1/2       | -4   | 0    |
| squared (1-m)^2                            | 1      | 1/2       | -inf | inf  |
| pinball (tau)                              | 1      | 0         | -1   | tau  |
| identity                                   | 0      | 0         | 1    | 1    |

A smooth function is given by itself, two derivatives and its conjugate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isinf

import numpy as np
from scipy.special import expit, xlogy

from nerm.errors import InvalidInputError

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class QuadraticConjugate:
    """phi*(u) = linear u + (quadratic / 2) u^2 on [low, high].

    >>> hinge = QuadraticConjugate(linear=1.0, quadratic=0.0, low=-1.0, high=0.0)
    >>> hinge.value(np.array([-1.0, 0.5, 3.0]))
    array([2. , 0.5, 0. ])
    """

    linear: float
    quadratic: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (self.quadratic >= 0 and self.low <= self.high):
            raise InvalidInputError(
                "a conjugate must be convex on an interval", str(self), "Use quadratic >= 0 and low <= high"
            )
        if self.quadratic == 0 and (isinf(self.low) or isinf(self.high)):
            raise InvalidInputError(
                "a linear conjugate must live on a bounded interval",
                str(self),
                "Give a quadratic part or finite ends",
            )

    @property
    def fixed(self) -> bool:
        """Tell whether the domain is a single point: phi is then affine."""
        return self.low == self.high

    def maximiser(self, margins: np.ndarray) -> np.ndarray:
        """Return u in d phi(m), the middle of the interval at a kink."""
        z = margins - self.linear
        if self.quadratic > 0:
            return np.clip(z / self.quadratic, self.low, self.high)
        middle = 0.5 * (self.low + self.high)
        return np.where(z > 0, self.high, np.where(z < 0, self.low, middle))

    def value(self, margins: np.ndarray) -> np.ndarray:
        """Return phi(m), the supremum in closed form."""
        u = self.maximiser(margins)
        return u * (margins - self.linear) - 0.5 * self.quadratic * u * u

    def conjugate(self, u: np.ndarray) -> np.ndarray:
        """Return phi*(u); u is taken to lie in the domain."""
        return self.linear * u + 0.5 * self.quadratic * u * u


@dataclass(frozen=True)
class SmoothMargin:
    """A twice differentiable margin function: value, phi', phi'' >= 0, and phi* on [low, high]."""

    value: Function
    derivative: Function
    curvature: Function
    conjugate: Function
    low: float = -inf
    high: float = inf

    fixed = False

    def maximiser(self, margins: np.ndarray) -> np.ndarray:
        """Return u = phi'(m)."""
        return self.derivative(margins)


Margin = QuadraticConjugate | SmoothMargin

HINGE = QuadraticConjugate(1.0, 0.0, -1.0, 0.0)


def _logistic_value(m: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, -m)


def _logistic_derivative(m: np.ndarray) -> np.ndarray:
    return -expit(-m)


def _logistic_curvature(m: np.ndarray) -> np.ndarray:
    return expit(m) * expit(-m)


def _logistic_conjugate(u: np.ndarray) -> np.ndarray:
    return xlogy(-u, -u) + xlogy(1 + u, 1 + u)


LOGISTIC = SmoothMargin(
    _logistic_value, _logistic_derivative, _logistic_curvature, _logistic_conjugate, low=-1.0, high=0.0
)


def _exponential_value(m: np.ndarray) -> np.ndarray:
    # Newton's trial points may lie far out; a huge finite value lets the line search turn back without an overflow.
    return np.exp(np.minimum(-m, 300.0))


def _exponential_derivative(m: np.ndarray) -> np.ndarray:
    return -_exponential_value(m)


def _exponential_conjugate(u: np.ndarray) -> np.ndarray:
    return xlogy(-u, -u) + u


EXPONENTIAL = SmoothMargin(
    _exponential_value, _exponential_derivative, _exponential_value, _exponential_conjugate, high=0.0
)
