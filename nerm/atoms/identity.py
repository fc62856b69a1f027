"""The identity: the covariance criterion of neutrality."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.hinge_like import HingeLike
from nerm.typing import Floats


@dataclass(frozen=True)
class Identity(HingeLike):
    """psi(m) = m; psi*(1) = 0. As a surrogate, max(C+, C-) = `|mean(v f)|`; unbounded below, so never a loss.

    Examples
    --------
    >>> Identity().value([-1.0, 2.0])
    array([-1.,  2.])
    """

    name: ClassVar[str] = "identity"
    dual_form = (0.0, 0.0, 1.0, 1.0)

    def value(self, m: ArrayLike) -> Floats:
        """Return m."""
        return np.array(m, dtype=float)

    def expression(self, m: Any) -> Any:
        """Return m."""
        return m

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"({m})"
