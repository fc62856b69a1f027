"""The multipliers of a NERM problem: one vector a block, and theta of each neutrality term."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from nerm.typing import Floats


@dataclass(frozen=True, eq=False)
class Multipliers:
    """alpha_i in -d phi(y_i f_i), beta_i^+- in -d psi(+-v_i f_i), theta in [0, 1].

    At an optimum they pull with no net force: sum_i c_i = 0 for a free intercept, and for (mu/2) ||w||^2 the
    coefficients are w = X'c / (mu n), where::

        c_i = s_i alpha_i y_i + eta u_i v_i (theta beta_i^+ - (1 - theta) beta_i^-).

    Attributes
    ----------
    rows : (number of blocks, n) array
        One row a block, in the order of `problem.blocks`: the risks, the one-sided neutrality terms, then C+
        and C- of each neutrality term of two sides.
    thetas : (K,) array
        The weight of C+ in max(C+, C-) = max over theta of theta C+ + (1 - theta) C-, for each term of two
        sides.
    one_sided : int
        How many neutrality terms have one side.
    limits : (number of limits,) array
        The multiplier eta >= 0 of each limit C <= t, whose blocks are terms of that weight.
    linear : (number of linear constraints,) array
        z of A w <= b, at least 0, and of any sign for an equation; empty where it is not known.

    >>> import nerm
    >>> X, y, v = np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([1, 1, -1, -1]), np.array([1, -1, 1, -1])
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    >>> solution = objective.on(X, y, viewpoint=v).solve()
    >>> m = solution.multipliers
    >>> c = m.alpha * y + 1.0 * v * (m.theta * m.beta_plus - (1 - m.theta) * m.beta_minus)
    >>> bool(abs(c.sum()) < 1e-9), bool(np.allclose(X.T @ c / (0.5 * 4), solution.coef, atol=1e-4))
    (True, True)

    """

    rows: Floats
    thetas: Floats
    one_sided: int = 0
    limits: Floats = field(default_factory=partial(np.zeros, 0))
    linear: Floats = field(default_factory=partial(np.zeros, 0))

    @property
    def _alone(self) -> int:
        return len(self.rows) - 2 * len(self.thetas)

    @property
    def alphas(self) -> Floats:
        """Multipliers of the risks, one row each."""
        return self.rows[: self._alone - self.one_sided]

    @property
    def betas(self) -> Floats:
        """Multipliers of the one-sided neutrality terms, one row each."""
        return self.rows[self._alone - self.one_sided : self._alone]

    @property
    def betas_plus(self) -> Floats:
        """Multipliers of C+, one row a neutrality term."""
        return self.rows[self._alone :: 2]

    @property
    def betas_minus(self) -> Floats:
        """Multipliers of C-, one row a neutrality term."""
        return self.rows[self._alone + 1 :: 2]

    @property
    def alpha(self) -> Floats:
        """Multipliers of the risk, (n,); one row a risk if there are several."""
        return _single(self.alphas)

    @property
    def beta_plus(self) -> Floats:
        """Multipliers of C+, (n,); one row a term unless there is exactly one."""
        return _single(self.betas_plus)

    @property
    def beta_minus(self) -> Floats:
        """Multipliers of C-, (n,); one row a term unless there is exactly one."""
        return _single(self.betas_minus)

    @property
    def theta(self) -> float | Floats:
        """The weight of C+; one number a term unless there is exactly one."""
        return float(self.thetas[0]) if len(self.thetas) == 1 else self.thetas


def _single(rows: Floats) -> Floats:
    return rows[0] if len(rows) == 1 else rows
