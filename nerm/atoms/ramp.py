"""The ramp: the indicator of an error, with a slope."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.difference import DCFunction, Parts
from nerm.atoms.margin import Facts
from nerm.atoms.two_lines import TwoLines
from nerm.typing import Floats
from nerm.validation import as_positive


@dataclass(frozen=True)
class Ramp(DCFunction):
    """phi(m) = r(m / width), r(m) = min(1, max(0, (1 - m) / 2)): not convex, a difference of two hinges.

    ``r(m) = max(0, (1 - m) / 2) - max(0, (-1 - m) / 2)``. As a loss no row costs more than 1 (the ramp loss
    SVM). As a surrogate r(m) + r(-m) = 1 like the indicator, so ``max(C+, C-) - mean(u)/2 = |C+ - C-| / 2``
    is the measure of neutrality itself, up to the width. Solved by the convex-concave procedure, to a
    stationary point.

    Parameters
    ----------
    width : float
        Positive; where `|m|` is larger, the ramp is flat.

    Examples
    --------
    >>> Ramp(width=0.5).value([-1.0, -0.5, 0.0, 0.25, 2.0])
    array([1.  , 1.  , 0.5 , 0.25, 0.  ])
    """

    name: ClassVar[str] = "ramp"
    width: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", as_positive(self.width, "width"))

    @cached_property
    def facts(self) -> Facts:
        """What is known of this function."""
        ends = (-self.width, self.width)
        return Facts(at_zero=0.5, slopes=(-0.5 / self.width, 0.0), kinks=ends, breakpoints=ends)

    @cached_property
    def parts(self) -> Parts:
        """The two hinges, and `|1 - m| / 2`, at their width."""
        slope = 0.5 / self.width
        hinge, later = TwoLines(self.width, -slope, 0.0), TwoLines(-self.width, -slope, 0.0)
        return Parts(hinge, later, TwoLines(self.width, -slope, slope))

    def value(self, m: ArrayLike) -> Floats:
        """Return min(1, max(0, (1 - m / width) / 2))."""
        return np.clip(0.5 - np.asarray(m, dtype=float) * (0.5 / self.width), 0.0, 1.0)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\operatorname{{ramp}}_{{{self.width:g}}}({m})"
