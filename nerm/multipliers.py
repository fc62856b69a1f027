"""The multipliers of a NERM problem: one vector a risk, two a neutrality term, and theta."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Multipliers:
    """alpha_i in -d phi(y_i f_i), beta_i^+- in -d psi(+-v_i f_i), theta in [0, 1].

    Stored with one row a term; `alpha`, `beta_plus`, `beta_minus` and `theta` drop that axis when there is one term.
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
