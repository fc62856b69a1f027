"""What the printed dual really solves (docs/errata.md, erratum 1): its penalty as a term.

Its constraint beta_i^+ + beta_i^- <= eta u_i, for each row by itself, makes eta sum_i u_i (1 + |v_i f_i|) of
eta max(C^+, C^-): a pure shrinkage of the scores. With r = beta^+ - beta^- it is one block with one
multiplier a row, r_i / (eta u_i) in [-1, 1], the form in which pair steps cannot stall.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.margin import Facts, MarginFunction, on_interval
from nerm.atoms.pinball import Pinball
from nerm.model.objective import Neutrality
from nerm.typing import Floats


@dataclass(frozen=True)
class OnePlusAbsolute(MarginFunction):
    """psi(m) = 1 + `|m|`; psi*(u) = -1 on [-1, 1]."""

    @property
    def facts(self) -> Facts:
        """What is known of this function."""
        return Facts(at_zero=1.0, slopes=(-1.0, 1.0), kinks=(0.0,), breakpoints=(0.0,), minimum=1.0, bend=0.0)

    def value(self, m: ArrayLike) -> Floats:
        """Return 1 + `|m|`."""
        return np.asarray(1.0 + np.abs(np.asarray(m, dtype=float)))

    def subgradient(self, m: ArrayLike) -> tuple[Floats, Floats]:
        """Return the sign of m, all of [-1, 1] at 0."""
        m = np.asarray(m, dtype=float)
        return np.where(m > 0, 1.0, -1.0), np.where(m < 0, -1.0, 1.0)

    def conjugate(self, u: ArrayLike) -> Floats:
        """Return -1 on [-1, 1]."""
        return on_interval(u, (-1.0, 1.0), np.full(np.shape(u), -1.0))

    def expression(self, m: Any) -> Any:
        """Return 1 + `|m|`, the pinball of tau = 1 at 1 + m."""
        return 1 + Pinball(tau=1.0).expression(1 + m)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"(1 + |{m}|)"


class Shrinkage(Neutrality):
    """(1/n) sum_i u_i (1 + `|v_i f_i|`), which cannot tell following the viewpoint from opposing it."""

    def __init__(self, weights: Any = "uniform") -> None:
        super().__init__(OnePlusAbsolute(), weights=weights)

    def sums(self, y: Floats, viewpoints: Mapping[str, Floats], sample_weight: Floats) -> tuple[Any, ...]:
        """Return its one sum: both sides are the same."""
        _, *same, _ = super().sums(y, viewpoints, sample_weight)[0]
        return ((self.surrogate, *same, 0),)

    def __repr__(self) -> str:
        return "Shrinkage()"

    def formula(self, mean: str = "mean") -> str:
        """Return the term as text."""
        return f"{mean} (1 + |v f|)"
