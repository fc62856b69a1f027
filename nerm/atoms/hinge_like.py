"""The hinge and its relatives: margin functions whose conjugate is quadratic on an interval."""

from abc import abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.margin import Facts, MarginFunction, on_interval
from nerm.typing import Floats


class HingeLike(MarginFunction):
    """phi(m) = max over u in [low, high] of  m u - a u - (q/2) u^2, that is phi*(u) = a u + (q/2) u^2 on [low, high].

    Facts, subgradients, conjugate and prox follow from the four numbers, which a class of this family gives
    as `dual_form`; `value`, `expression` and `latex` are its own formula.

    Examples
    --------
    >>> from nerm import Pinball
    >>> phi = Pinball(tau=0.5)
    >>> phi.dual_form
    (1.0, 0.0, -1.0, 0.5)
    >>> phi.facts.kinks, phi.conjugate([-1.0, 0.5, 0.6])
    ((1.0,), array([-1. ,  0.5,  inf]))
    """

    @property
    @abstractmethod
    def dual_form(self) -> tuple[float, float, float, float]:
        """The numbers (a, q, low, high) of the conjugate."""

    @cached_property
    def facts(self) -> Facts:
        """What is known of this function, all of it from `dual_form`."""
        a, q, low, high = self.dual_form
        curved, straight, unbounded = q > 0, low == high, low > 0 or high < 0
        ends = {a + q * low, a + q * high}  # where the maximum reaches an end of the interval
        return Facts(
            at_zero=float(-self.conjugate(self.subgradient(0.0)[0])) + 0.0,
            slopes=(low, high),
            smoothness=1.0 / q if curved else 0.0 if straight else np.inf,
            kinks=() if curved or straight else (a,),
            breakpoints=() if straight else tuple(m for m in sorted(ends) if np.isfinite(m)),
            minimum=-np.inf if unbounded else 0.0,
            quadratic=(a, q),
            bend=a if q == 0 and np.isfinite([low, high]).all() else None,
            surrogate_only=unbounded,
        )

    def subgradient(self, m: ArrayLike) -> tuple[Floats, Floats]:
        """Return the u at which the maximum is attained: clip((m - a) / q, low, high), or the ends if q = 0."""
        a, q, low, high = self.dual_form
        z = np.asarray(m, dtype=float) - a
        if q > 0:
            slope = np.clip(z / q, low, high)
            return slope, slope
        return np.where(z <= 0, low, high), np.where(z < 0, low, high)

    def conjugate(self, u: ArrayLike) -> Floats:
        """Return a u + (q/2) u^2 on [low, high]."""
        a, q, low, high = self.dual_form
        u = np.asarray(u, dtype=float)
        inside = np.clip(u, low, high)
        return on_interval(u, (low, high), a * inside + 0.5 * q * inside**2)

    def prox(self, m: ArrayLike, step: float = 1.0) -> Floats:
        """Return m - step clip((m - a) / (q + step), low, high): by Moreau, since the conjugate's prox is that clip."""
        a, q, low, high = self.dual_form
        m = np.asarray(m, dtype=float)
        return m - step * np.clip((m - a) / (q + step), low, high)
