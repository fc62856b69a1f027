"""The multipliers of a NERM problem: one vector a risk, two a neutrality term, and theta."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Multipliers:
    """alpha_i in -d phi(y_i f_i), beta_i^+- in -d psi(+-v_i f_i), theta in [0, 1].

    Stored with one row a term: alphas is (number of risks, n), betas_plus and betas_minus (K, n), thetas (K,), for K
    neutrality terms; `alpha`, `beta_plus`, `beta_minus` and `theta` drop that axis when there is one term. At an
    optimum they pull with no net force: sum_i c_i = 0 for a free intercept, and for (mu/2) ||w||^2 the
    coefficients are w = X'c / (mu n), where::

        c_i = s_i alpha_i y_i + eta u_i v_i (theta beta_i^+ - (1 - theta) beta_i^-).

    >>> import nerm
    >>> X, y, v = np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([1, 1, -1, -1]), np.array([1, -1, 1, -1])
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    >>> solution = objective.on(X, y, viewpoint=v).solve()
    >>> m = solution.multipliers
    >>> c = m.alpha * y + 1.0 * v * (m.theta * m.beta_plus - (1 - m.theta) * m.beta_minus)
    >>> bool(abs(c.sum()) < 1e-9), bool(np.allclose(X.T @ c / (0.5 * 4), solution.coef, atol=1e-4))
    (True, True)
    """

    alphas: np.ndarray
    betas_plus: np.ndarray
    betas_minus: np.ndarray
    thetas: np.ndarray

    @property
    def alpha(self) -> np.ndarray:
        """Multipliers of the risk, (n,); one row a risk if there are several."""
        return self.alphas[0] if len(self.alphas) == 1 else self.alphas

    @property
    def beta_plus(self) -> np.ndarray:
        """Multipliers of C+, (n,); one row a term unless there is exactly one."""
        return self.betas_plus[0] if len(self.betas_plus) == 1 else self.betas_plus

    @property
    def beta_minus(self) -> np.ndarray:
        """Multipliers of C-, (n,); one row a term unless there is exactly one."""
        return self.betas_minus[0] if len(self.betas_minus) == 1 else self.betas_minus

    @property
    def theta(self) -> float | np.ndarray:
        """The weight of C+ in max(C+, C-) = max over theta of theta C+ + (1 - theta) C-."""
        return float(self.thetas[0]) if len(self.thetas) == 1 else self.thetas
