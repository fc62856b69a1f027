"""Oracles for the neutral SVM: the formulas written out naively, sharing no code with nerm."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import cvxpy as cp
import numpy as np


def hinge(m: float) -> float:
    return 1.0 - m if m < 1.0 else 0.0


def objective(scores, norm2, y, v, lam, eta, s=None, u=None, variant="exact") -> float:
    """P, term by term in a loop."""
    n = len(y)
    s = np.ones(n) if s is None else s
    u = np.ones(n) if u is None else u
    risk = sum(s[i] * hinge(y[i] * scores[i]) for i in range(n))
    if variant == "published":
        penalty = sum(u[i] * (1.0 + abs(v[i] * scores[i])) for i in range(n))
    else:
        plus = sum(u[i] * hinge(v[i] * scores[i]) for i in range(n))
        minus = sum(u[i] * hinge(-v[i] * scores[i]) for i in range(n))
        penalty = max(plus, minus)
    return risk + 0.5 * lam * norm2 + eta * penalty


def dual_value(alpha, beta_plus, beta_minus, gram, y, v, lam) -> float:
    """Return the dual divided by lambda, straight from its definition."""
    a = alpha * y + (beta_plus - beta_minus) * v
    return float(np.sum(alpha + beta_plus + beta_minus) - a @ gram @ a / (2 * lam))


@dataclass
class SumForm:
    """A solution in the paper's sum form: n times the values, multipliers times their bounds."""

    alpha: np.ndarray
    beta_plus: np.ndarray
    beta_minus: np.ndarray
    nu_plus: float
    nu_minus: float
    a: np.ndarray
    scores: np.ndarray
    primal: float
    dual: float


def sum_form(solution, y, v, eta, s=None, u=None) -> SumForm:
    """Read a result or a solution of the exact variant."""
    n, m = len(y), solution.multipliers
    s = np.ones(n) if s is None else s
    u = np.ones(n) if u is None else u
    alpha = s * m.alpha
    if v is None or eta == 0:
        v, plus, minus, nu = np.zeros(n), np.zeros(n), np.zeros(n), (0.0, 0.0)
    else:
        nu = eta * m.theta, eta * (1 - m.theta)
        plus, minus = nu[0] * u * m.beta_plus, nu[1] * u * m.beta_minus
    return SumForm(
        alpha, plus, minus, *nu,
        a=alpha * y + (plus - minus) * v,
        scores=solution.training_scores(),
        primal=n * solution.certificate.primal,
        dual=n * solution.certificate.dual,
    )  # fmt: skip


def assert_dual_feasible(solution, y, v, eta, s=None, u=None, tol=1e-10) -> None:
    """Every constraint of the exact dual holds for the multipliers of a solution: boxes, and sum_i a_i = 0."""
    n = len(y)
    s = np.ones(n) if s is None else s
    u = np.ones(n) if u is None else u
    m = sum_form(solution, y, v, eta, s, u)
    size = 1.0 + eta * np.abs(v).max() * u.max() + s.max()
    for name, values, bound in (
        ("alpha", m.alpha, s),
        ("beta_plus", m.beta_plus, m.nu_plus * u),
        ("beta_minus", m.beta_minus, m.nu_minus * u),
    ):
        assert (values >= -tol * size).all(), name
        assert (values <= bound + tol * size).all(), name
    assert m.nu_plus >= 0
    assert m.nu_minus >= 0
    assert m.nu_plus + m.nu_minus <= eta * (1 + 1e-12)
    assert abs(m.a.sum()) <= tol * size * n


def factor(gram: np.ndarray) -> np.ndarray:
    """F with F F' = K: explicit features for any kernel."""
    values, vectors = np.linalg.eigh(gram)
    keep = values > 1e-12 * values.max()
    return vectors[:, keep] * np.sqrt(values[keep])


def solve_by_hand(features, y, v, lam, eta, s=None, u=None, variant="exact"):
    """Solve the primal as a plain cvxpy model; return (optimum, w, b)."""
    n, d = features.shape
    s = np.ones(n) if s is None else s
    u = np.ones(n) if u is None else u
    w, b, f = cp.Variable(d), cp.Variable(), cp.Variable(n)
    total = s @ cp.pos(1 - cp.multiply(y, f)) + lam / 2 * cp.sum_squares(w)
    if variant == "published":
        total += eta * (u.sum() + (u * np.abs(v)) @ cp.abs(f))
    elif eta > 0:
        total += eta * cp.maximum(u @ cp.pos(1 - cp.multiply(v, f)), u @ cp.pos(1 + cp.multiply(v, f)))
    problem = cp.Problem(cp.Minimize(total), [f == features @ w + b])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert problem.status in ("optimal", "optimal_inaccurate")
    return problem.value, w.value, float(b.value)


def best_intercepts(g, y, v, lam, eta, slack=1e-9):
    """Brute force over every bend and crossing: the interval of b whose value is within slack of the best."""
    bends = np.concatenate([y - g] + [sign / v[v != 0] - g[v != 0] for sign in (1.0, -1.0)])
    bends = np.unique(bends)

    def difference(b):
        return sum(hinge(v[i] * (g[i] + b)) - hinge(-v[i] * (g[i] + b)) for i in range(len(y)))

    crossings = []
    for p, q in pairwise(bends):
        dp, dq = difference(p), difference(q)
        if dp * dq < 0:
            crossings.append(p + (q - p) * dp / (dp - dq))
    points = np.sort(np.append(bends, crossings))
    values = np.array([objective(g + b, 0.0, y, v, lam, eta) for b in points])
    good = points[values <= values.min() + slack * max(1.0, values.min())]
    return float(values.min()), float(good[0]), float(good[-1])


@dataclass
class Case:
    X: np.ndarray
    y: np.ndarray
    v: np.ndarray
    lam: float
    eta: float
    kernel: str
    gamma: float = 0.5

    @property
    def gram(self):
        if self.kernel == "linear":
            return self.X @ self.X.T
        squares = ((self.X[:, None, :] - self.X[None, :, :]) ** 2).sum(axis=2)
        return np.exp(-self.gamma * squares)


def random_case(seed: int) -> Case:
    """Draw a small problem; kernel, kind of viewpoint, eta and lambda cycle with the seed."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 30)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    v = X[:, -1] + 0.5 * X[:, 0] + 0.3 * rng.normal(size=n)
    v -= v.mean()  # so that both signs occur
    if seed % 3 < 2:
        v = np.where(v > 0, 1.0, -1.0)
    if seed % 5 == 0:
        v[rng.integers(n)] = 0.0
    return Case(
        X, y, v,
        lam=[0.05, 0.5, 5.0][(seed // 2) % 3],
        eta=[0.0, 0.01, 0.1, 1.0, 10.0, 100.0][(seed // 6) % 6],
        kernel="linear" if seed % 2 else "rbf",
    )  # fmt: skip


def synthetic(n: int, d: int = 10, seed: int = 0):
    """Draw the paper's synthetic data, with the label noise as it was meant (rare flips)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    w_y, w_v = rng.uniform(-1, 1, d), rng.uniform(-1, 1, d)
    w_v[0] = w_y[0]

    def labels(w):
        clean = np.where(X @ w > 0, 1.0, -1.0)
        flip = rng.random(n) < 1 / (1 + np.exp(np.minimum(100 * np.abs(X @ w), 500)))
        return np.where(flip, -clean, clean)

    return X, labels(w_y), labels(w_v)
