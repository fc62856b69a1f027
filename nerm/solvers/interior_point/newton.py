"""The Newton system of one iteration, reduced to (w, b) and one unknown for each neutrality term.

With nu_k^+ = eta_k theta_k, nu_k^- = eta_k (1 - theta_k), sigma_k^+- >= 0 their slacks, one system is

    (lam I + X'DX) dw + X'D1 db + sum_k dnu_k X'e_k  = -(lam w + X'(c + h))
          1'DX  dw +  1'D1 db + sum_k dnu_k 1'e_k  = -1'(c + h)                      (free intercept only)
    (sigma_k^+ / nu_k^+ + sigma_k^- / nu_k^-) dnu_k - e_k'(X dw + 1 db) = t_k^+ - t_k^-

where dnu_k^+ = dnu_k = -dnu_k^- keeps the sum at eta_k. The first two are one Cholesky factor, the rest K
equations. (In the last one e_k stands for its derivative along the rows' own curve, e_k + O(barrier): the
system stays symmetric.)
"""

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from nerm.typing import Floats


class NewtonSystem:
    """A factored system; `solve` takes one right-hand side after the other."""

    def __init__(self, gram: Floats, e: Floats, lam: float, ratio: Floats, *, intercept: bool) -> None:
        """Factor. Column k of `e` holds (X'e_k, 1'e_k); `ratio` is sigma^+/nu^+ + sigma^-/nu^-."""
        d = gram.shape[0] - 1
        size = d + 1 if intercept else d
        matrix = np.array(gram[:size, :size], order="F")
        matrix[np.arange(d), np.arange(d)] += lam
        # Unit diagonal: the scale of a feature then matters neither for the factor nor for the jitter below.
        diagonal = matrix.diagonal()
        floor = 1e-300 + 1e-30 * diagonal.max()
        self._scale = 1.0 / np.sqrt(np.maximum(diagonal, floor))
        matrix *= self._scale[:, None]
        matrix *= self._scale
        self._factor = _cholesky(matrix)
        self._e = e[:size]
        self._inverse_e = self._apply(self._e)
        self._small = self._e.T @ self._inverse_e + np.diag(ratio)
        self._size = size

    def _apply(self, rhs: Floats) -> Floats:
        scale = self._scale if rhs.ndim == 1 else self._scale[:, None]
        return np.asarray(scale * dpotrs(self._factor, scale * rhs)[0])

    def solve(self, rhs: Floats, term_rhs: Floats) -> tuple[Floats, Floats]:
        """Return ((dw, db) or dw, dnu)."""
        step = self._apply(rhs[: self._size])
        term_rhs = term_rhs + self._e.T @ step
        if len(term_rhs) == 1 and self._small[0, 0] > 0:
            dnu = term_rhs / self._small[0, 0]
        else:
            dnu = np.linalg.lstsq(self._small, term_rhs, rcond=None)[0] if len(term_rhs) else term_rhs
        return step - self._inverse_e @ dnu, dnu


def _cholesky(matrix: Floats) -> Floats:
    """Factor a matrix of unit diagonal, with as little added to it as rounding makes necessary.

    LAPACK itself: on systems this small, checks around it cost as much as the factor.
    """
    diagonal = np.arange(len(matrix))
    jitter = 4e-16 * len(matrix)
    while jitter <= 1:
        matrix[diagonal, diagonal] += jitter
        factor, failed = dpotrf(matrix)
        if not failed:
            return np.asarray(factor)
        jitter *= 100
    raise np.linalg.LinAlgError("the Newton system is not positive definite")
