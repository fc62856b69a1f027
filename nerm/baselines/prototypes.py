"""The objective of learning fair representations: value and gradient by matrix products, dense or sparse X."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds
from scipy.special import softmax

from nerm.typing import Bools, Floats, Matrix

EDGE = 1e-6


class Prototypes:
    """``A_x sum ||x - M p||^2 + A_y CE + A_z sum_k |z_k|``, z_k = mean_{s=1} M_k - mean_{s=0} M_k.

    The variable is flat: prototypes P (K × d), prediction weights w (K), distances alpha (2 × d). X enters
    only through X P', M'X and H'X, so a sparse X stays sparse.
    """

    def __init__(self, X: Matrix, positive: Bools, favoured: Bools, K: int, scales: tuple[float, ...]) -> None:
        self.X, self.K, self.scales = X, K, scales
        self.n, self.d = X.shape
        self.y = positive.astype(float)
        self.favoured = favoured
        #: +1/c_1 on favoured rows, -1/c_0 on the others: z = parity @ M.
        self.parity = np.where(favoured, 1.0 / favoured.sum(), -1.0 / (~favoured).sum())
        self.square = float(X.multiply(X).sum()) if sp.issparse(X) else float((X**2).sum())

    def parts(self, point: Floats) -> tuple[Floats, Floats, Floats]:
        """Return P, w and alpha as views of the flat variable."""
        K, d = self.K, self.d
        return point[: K * d].reshape(K, d), point[K * d : K * d + K], point[K * d + K :].reshape(2, d)

    def bounds(self) -> Bounds:
        """Return the box: w in [EDGE, 1 - EDGE], alpha >= 0."""
        sizes = (self.K * self.d, self.K, 2 * self.d)
        return Bounds(np.repeat([-np.inf, EDGE, 0.0], sizes), np.repeat([np.inf, 1.0 - EDGE, np.inf], sizes))

    def start(self, random: np.random.RandomState) -> Floats:
        """Return a start: each prototype the mean of a few random rows, w their share of positives, alpha = 1."""
        rows = random.randint(self.n, size=(self.K, min(10, self.n)))
        P = np.vstack([np.asarray(self.X[few].mean(axis=0)) for few in rows])
        return np.concatenate([P.ravel(), np.clip(self.y[rows].mean(axis=1), 0.05, 0.95), np.ones(2 * self.d)])

    @staticmethod
    def assign(X: Matrix, favoured: Bools, P: Floats, alpha: Floats) -> Floats:
        """Return M = softmax(-d); the part of d that is the same for all prototypes drops out."""
        M = np.empty((X.shape[0], len(P)))
        for rows, a in ((~favoured, alpha[0]), (favoured, alpha[1])):
            M[rows] = softmax(2.0 * (X[rows] @ (a * P).T) - P**2 @ a, axis=1)
        return M

    def terms(self, point: Floats) -> tuple[float, float, float]:
        """Return the three weighted terms, exactly."""
        P, w, alpha = self.parts(point)
        M = self.assign(self.X, self.favoured, P, alpha)
        A_x, A_y, A_z = self.scales
        return (
            A_x * self._reconstruction(M, P, M.T @ self.X),
            A_y * self._cross_entropy(M @ w),
            A_z * float(np.abs(self.parity @ M).sum()),
        )

    def renew(self, point: Floats, multipliers: Floats, stiffness: float) -> Floats:
        """Return the multipliers of the next round: clip(multipliers + stiffness z) to [-A_z, A_z]."""
        P, _, alpha = self.parts(point)
        z = self.parity @ self.assign(self.X, self.favoured, P, alpha)
        return np.clip(multipliers + stiffness * z, -self.scales[2], self.scales[2])

    def value_and_gradient(self, point: Floats, envelope: tuple[Floats, float] | None = None) -> tuple[float, Floats]:
        """Return the objective and its gradient; with ``envelope`` = (multipliers m, stiffness t) of a round.

        In a round `A_z |z|` is replaced by ``min over u of A_z |u| + m (z - u) + (t/2) (z - u)^2``, whose
        derivative is ``clip(m + t z, -A_z, A_z)``.

        With G = dL/dM and H = dL/dd = -M (G - rowsum(M G)), whose rows sum to 0::

            dL/dalpha_j = sum_ik H_ik (x_ij - p_kj)^2 = sum_k p_kj^2 H_.k - 2 sum_k p_kj (H'X)_kj     (a
            group's rows) dL/dp_kj    = 2 alpha_j (p_kj H_.k - (H'X)_kj) + 2 A_x ((M'M P)_kj - (M'X)_kj)
        """
        P, w, alpha = self.parts(point)
        A_x, A_y, _ = self.scales
        M = self.assign(self.X, self.favoured, P, alpha)
        MX = np.asarray(M.T @ self.X)
        yhat = M @ w
        z = self.parity @ M
        parity, slope = self._parity(z, envelope)
        value = A_x * self._reconstruction(M, P, MX) + A_y * self._cross_entropy(yhat) + parity

        pull = (1.0 - self.y) / (1.0 - yhat) - self.y / yhat
        G = 2.0 * A_x * (M @ (P @ P.T) - self.X @ P.T)
        G += A_y * pull[:, None] * w + self.parity[:, None] * slope
        H = -M * (G - (M * G).sum(axis=1, keepdims=True))
        to_P = 2.0 * A_x * (M.T @ M @ P - MX)
        to_alpha = np.empty_like(alpha)
        for s, rows in enumerate((~self.favoured, self.favoured)):
            HX = np.asarray(H[rows].T @ self.X[rows])
            load = H[rows].sum(axis=0)[:, None]
            to_alpha[s] = (P**2 * load - 2.0 * P * HX).sum(axis=0)
            to_P += 2.0 * alpha[s] * (P * load - HX)
        return value, np.concatenate([to_P.ravel(), A_y * (M.T @ pull), to_alpha.ravel()])

    def _parity(self, z: Floats, envelope: tuple[Floats, float] | None) -> tuple[float, Floats]:
        """Return the parity term and its derivative in z."""
        A_z = self.scales[2]
        if envelope is None:
            return A_z * float(np.abs(z).sum()), A_z * np.sign(z)
        multipliers, stiffness = envelope
        shifted = multipliers + stiffness * z
        slope = np.clip(shifted, -A_z, A_z)
        return float((slope * shifted - slope**2 / 2 - multipliers**2 / 2).sum() / stiffness), slope

    def _reconstruction(self, M: Floats, P: Floats, MX: Any) -> float:
        """Return sum_i ||x_i - (M P)_i||^2, expanded so that X stays sparse."""
        return self.square - 2.0 * float((np.asarray(MX) * P).sum()) + float(((M.T @ M) * (P @ P.T)).sum())

    def _cross_entropy(self, yhat: Floats) -> float:
        """Return the sum of -log of the probability of the true label."""
        return float(-np.log(np.where(self.y > 0, yhat, 1.0 - yhat)).sum())
