"""Half the squared Euclidean norm."""

from dataclasses import dataclass
from typing import Any, ClassVar

from nerm.atoms.regularizer import Regularizer
from nerm.typing import Floats


@dataclass(frozen=True)
class SquaredL2(Regularizer):
    """Omega(w) = 1/2 ||w||^2, its own conjugate. On a kernel problem it is 1/2 c' K c.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredL2().value(np.array([3.0, 4.0]))
    12.5
    """

    name: ClassVar[str] = "squared-l2"

    def value(self, w: Floats) -> float:
        """Return 1/2 ||w||^2."""
        return 0.5 * float(w @ w)

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return w."""
        return w, w

    def conjugate(self, q: Floats) -> float:
        """Return 1/2 ||q||^2."""
        return 0.5 * float(q @ q)

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return w / (1 + step)."""
        return w / (1.0 + step)

    def expression(self, w: Any) -> Any:
        """Return sum_squares(w) / 2."""
        import cvxpy as cp

        return cp.sum_squares(w) / 2

    def formula(self, mean: str = "mean") -> str:
        """Return the term as text."""
        return "½‖w‖²"

    def latex_formula(self) -> str:
        """Return the term as LaTeX."""
        return r"\tfrac12\|w\|_2^2"
