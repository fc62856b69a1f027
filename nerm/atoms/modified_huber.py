"""The modified Huber loss."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.hinge_like import HingeLike
from nerm.typing import Floats


@dataclass(frozen=True)
class ModifiedHuber(HingeLike):
    """phi(m) = max(0, 1 - m)^2 for m >= -1 and -4 m below; phi*(u) = u + u^2 / 4 on [-4, 0].

    The squared hinge with its tail straightened, as in scikit-learn's
    ``SGDClassifier(loss="modified_huber")``.

    Examples
    --------
    >>> ModifiedHuber().value([-2.0, -1.0, 0.0])
    array([8., 4., 1.])
    """

    name: ClassVar[str] = "modified-huber"
    dual_form = (1.0, 0.5, -4.0, 0.0)

    def value(self, m: ArrayLike) -> Floats:
        """Return the modified Huber loss at m."""
        m = np.asarray(m, dtype=float)
        return np.where(m < -1, -4.0 * m, np.clip(1.0 - m, 0.0, 2.0) ** 2)

    def expression(self, m: Any) -> Any:
        """Return huber(pos(1 - m), 2)."""
        import cvxpy as cp

        return cp.huber(cp.pos(1 - m), 2)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\operatorname{{huber}}_2(\max(0,\ 1 {minus_m}))"
