"""The problems of the benchmark: data drawn from a seed, the objective, and a lower bound on it; numpy only.

In mean form, with a margin function phi (hinge or logistic), rows x_i, labels y_i and a viewpoint v_i of
-1/+1:

    P = mean phi(y f) + lambda / (2 n) |w|^2 + eta max(mean phi(v f), mean phi(-v f)),     f = X w + b  or  f = K c + b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import xlogy

BLOCK = 1000  # rows of a kernel matrix that are held at a time


def one_hot(
    n: int, columns: int = 100, attributes: int = 13, seed: int = 0
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Draw one-hot data with a label and a viewpoint from correlated logistic models."""
    rng = np.random.default_rng(seed)
    sizes = [columns // attributes + (a < columns % attributes) for a in range(attributes)]
    index = np.empty((n, attributes), dtype=np.int32)
    for a, size in enumerate(sizes):
        share = 1.0 / np.arange(1, size + 1)
        index[:, a] = sum(sizes[:a]) + rng.choice(size, n, p=share / share.sum())
    pointer = np.arange(0, n * attributes + 1, attributes)
    X = sp.csr_matrix((np.ones(n * attributes), index.ravel(), pointer), shape=(n, columns))
    return X, *_targets(X, rng)


def correlated(
    n: int, columns: int = 100, attributes: int = 13, seed: int = 0
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Draw one-hot data whose attributes are cut from correlated Gaussian variables."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n, 3)) @ rng.normal(size=(3, attributes)) + 0.7 * rng.normal(
        size=(n, attributes)
    )
    sizes = [columns // attributes + (a < columns % attributes) for a in range(attributes)]
    index = np.empty((n, attributes), dtype=np.int32)
    for a, size in enumerate(sizes):
        cuts = np.quantile(latent[:, a], np.sort(rng.random(size - 1)))
        index[:, a] = sum(sizes[:a]) + np.searchsorted(cuts, latent[:, a])
    pointer = np.arange(0, n * attributes + 1, attributes)
    X = sp.csr_matrix((np.ones(n * attributes), index.ravel(), pointer), shape=(n, columns))
    return X, *_targets(X, rng)


def mixed(
    n: int, numbers: int = 10, attributes: int = 8, levels: int = 6, rare: float = 0.1, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw a table of standardised numbers, every third of them skewed, beside dummies; a class is rare."""
    rng = np.random.default_rng(seed)
    size = numbers + attributes
    latent = rng.normal(size=(n, 3)) @ rng.normal(size=(3, size)) + rng.normal(size=(n, size))
    table = latent[:, :numbers].copy()
    table[:, ::3] = np.exp(0.7 * table[:, ::3] / table[:, ::3].std(axis=0))
    parts = [(table - table.mean(axis=0)) / table.std(axis=0)]
    for column in latent[:, numbers:].T:
        cuts = np.quantile(column, np.sort(rng.random(levels - 1)))
        parts.append(np.eye(levels)[np.searchsorted(cuts, column)])
    X, found = np.hstack(parts), []
    direction = rng.normal(size=X.shape[1])
    for w, share in ((direction, rare), (0.5 * direction + rng.normal(size=X.shape[1]), 0.35)):
        scores = 2 * (X @ w) / (X @ w).std() + rng.logistic(size=n)
        found.append(np.where(scores > np.quantile(scores, 1 - share), 1.0, -1.0))
    return X, found[0], found[1]


def gaussian(n: int, columns: int = 50, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw dense Gaussian data in the same way."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    return X, *_targets(X, rng)


def synthetic(n: int, columns: int = 10, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw the paper's synthetic data (section 7.1, with the noise as it was meant)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, columns))
    w_y, w_v = rng.uniform(-1, 1, columns), rng.uniform(-1, 1, columns)
    w_v[0] = w_y[0]

    def labels(w: np.ndarray) -> np.ndarray:
        clean = np.where(X @ w > 0, 1.0, -1.0)
        return np.where(rng.random(n) < 1 / (1 + np.exp(np.minimum(100 * np.abs(X @ w), 500))), -clean, clean)

    return X, labels(w_y), labels(w_v)


def published(name: str) -> Any:
    """Return a function that loads a share of the rows of a published data set, one-hot coded."""

    def load(scale: float) -> tuple[Any, np.ndarray, np.ndarray]:
        from nerm.datasets import load as load_data

        data = load_data(name, coding="one-hot")
        rows = slice(None, int(scale * len(data.y)))
        return sp.csr_matrix(data.X)[rows], data.y[rows], data.viewpoint[rows]

    return load


def _targets(X: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    direction = rng.normal(size=X.shape[1])
    found = []
    for w in (direction, 0.5 * direction + rng.normal(size=X.shape[1])):
        scores = X @ w
        noise = rng.logistic(size=X.shape[0])
        found.append(np.where(scores - np.median(scores) + noise > 0, 1.0, -1.0))
    return found[0], found[1]


def hinge(m: np.ndarray) -> np.ndarray:
    return np.maximum(0.0, 1.0 - m)


def logistic(m: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, -m)


def size(X: Any) -> int:
    """Return the bytes that the data take."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) if sp.issparse(X) else int(X.nbytes)


def by_rbf(X: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return K c for exp(-gamma |x - x'|^2), gamma = 1 / (d Var X) as in scikit-learn, a block of rows at a time."""
    gamma, squares = 1.0 / (X.shape[1] * X.var()), (X**2).sum(axis=1)
    found = np.empty(len(X))
    for k in range(0, len(X), BLOCK):
        rows = slice(k, k + BLOCK)
        distances = np.maximum(squares[rows, None] + squares - 2 * X[rows] @ X.T, 0.0)
        found[rows] = np.exp(-gamma * distances) @ c
    return found


@dataclass(frozen=True)
class Task:
    """One problem: how to draw its data, its weights and its atom; cheap to send to another process.

    `bound` is a lower bound on the optimum, against which everybody's gap is taken.
    """

    kind: str
    n: int
    d: int
    lam: float
    eta: float
    accuracy: float
    bound: float = np.nan

    @property
    def is_kernel(self) -> bool:
        return self.kind.startswith("kernel")

    @property
    def is_logistic(self) -> bool:
        return self.kind.endswith("logistic")

    def data(self) -> tuple[Any, np.ndarray, np.ndarray]:
        draw = synthetic if self.is_kernel else {"dense": gaussian}.get(self.kind, one_hot)
        return draw(self.n, self.d)

    def value(self, m: np.ndarray) -> np.ndarray:
        return logistic(m) if self.is_logistic else hinge(m)

    def objective(self, X: Any, y: np.ndarray, v: np.ndarray, coef: np.ndarray, intercept: float) -> float:
        """Return P at (w, b), or at (c, b) where |w|^2 = c'Kc."""
        scores = by_rbf(X, coef) if self.is_kernel else X @ coef
        norm = coef @ scores if self.is_kernel else coef @ coef
        f = scores + intercept
        neutrality = max(self.value(v * f).mean(), self.value(-v * f).mean()) if self.eta else 0.0
        return float(self.value(y * f).mean() + self.lam / (2 * self.n) * norm + self.eta * neutrality)

    def dual_bound(self, X: Any, y: np.ndarray, v: np.ndarray, multipliers: Any) -> float:
        """Recompute the dual value from (alpha, beta^+, beta^-, theta) in [0, 1]; nan if they are not feasible."""
        alpha, plus, minus, theta = multipliers
        parts = [(1.0, y, alpha)]
        if self.eta:
            parts += [(self.eta * theta, v, plus), (self.eta * (1 - theta), -v, minus)]
        c, value = np.zeros(self.n), 0.0
        for weight, target, m in parts:
            if (m < -1e-12).any() or (m > 1 + 1e-12).any():
                return np.nan
            m = np.clip(m, 0.0, 1.0)
            c += weight * target * m
            conjugate = xlogy(m, m) + xlogy(1 - m, 1 - m) if self.is_logistic else -m
            value -= weight * conjugate.mean()
        if abs(c.sum()) > 1e-9 * np.abs(c).sum():
            return np.nan
        if self.is_kernel:
            norm = c @ by_rbf(X, c)
        else:
            q = X.T @ c
            norm = q @ q
        return float(value - norm / (2 * self.lam * self.n))

    def gap(self, objective: float) -> float:
        return (objective - self.bound) / abs(objective)
