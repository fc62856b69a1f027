"""What goes into the engine and what comes out: arrays and numbers, nothing else.

P(w, b) = (1/n) sum_i sum_r s_ri phi_r(y_i f_i) + (mu/2) ||w||^2 + sum_k eta_k max(C_k^+, C_k^-)
C_k^+-  = (1/n) sum_i u_ki psi_k(+- v_ki f_i),          f = X w + b  (b = 0 without an intercept)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nerm.engine.margins import Margin
from nerm.errors import InvalidInputError

NOTHING = 1e-30  # of the losses' weight: a neutrality term that weighs less does nothing


@dataclass(frozen=True)
class LossTerm:
    """(1/n) sum_i weights_i margin(y_i f_i)."""

    margin: Margin
    weights: np.ndarray


@dataclass(frozen=True)
class NeutralityTerm:
    """eta max over both signs of (1/n) sum_i weights_i margin(+- viewpoint_i f_i)."""

    margin: Margin
    eta: float
    viewpoint: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class LinearModel:
    """The whole problem. The arrays are taken as valid: finite, of n rows, weights and eta nonnegative."""

    X: Any  # a dense array or a scipy CSR matrix
    y: np.ndarray
    losses: tuple[LossTerm, ...]
    mu: float
    neutralities: tuple[NeutralityTerm, ...] = ()
    intercept: bool = True

    def __post_init__(self) -> None:
        if not self.mu > 0:
            raise InvalidInputError(
                "the weight of the squared l2 norm must be positive",
                f"mu = {self.mu}",
                "Use mu > 0, or another solver",
            )

    @property
    def n_rows(self) -> int:
        """The number of samples n, the divisor of all sums."""
        return int(self.X.shape[0])

    def acting(self) -> list[int]:
        """Return the numbers of the neutrality terms whose weight is not 0 to floating-point numbers."""
        least = NOTHING * sum(float(loss.weights.sum()) for loss in self.losses)
        return [k for k, term in enumerate(self.neutralities) if term.eta * float(term.weights.sum()) > least]

    def with_eta_scaled(self, factor: float) -> LinearModel:
        """Return the same problem with every eta_k multiplied by one factor: a point of the eta path."""
        return replace(self, neutralities=tuple(replace(t, eta=t.eta * factor) for t in self.neutralities))


@dataclass(frozen=True)
class EngineResult:
    """A hypothesis, multipliers of unit scale (alpha_r in -d phi_r, beta_k^+- in -d psi_k) and the bounds they give.

    The multipliers are feasible: inside the domains of the conjugates, and sum_i c_i = 0 up to rounding when the
    intercept is free, so that dual <= optimum <= primal.
    """

    coef: np.ndarray
    intercept: float
    alpha: np.ndarray  # (number of losses, n)
    beta_plus: np.ndarray  # (number of neutrality terms, n)
    beta_minus: np.ndarray
    theta: np.ndarray  # (number of neutrality terms,)
    primal: float
    dual: float
    iterations: int
    converged: bool
    rows: int  # rows left after equal ones were merged

    @property
    def gap(self) -> float:
        """Primal - dual."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """Gap / |primal|, never negative."""
        gap = max(self.gap, 0.0)
        if gap == 0:
            return 0.0
        return gap / abs(self.primal) if self.primal else float("inf")
