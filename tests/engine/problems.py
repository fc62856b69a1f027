"""Random problems for the engine and a naive judge that shares no code with it."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

import nerm
from nerm.model.blocks import Block
from nerm.solvers.interior_point import Engine, Tuning
from nerm.solvers.interior_point.norms import Penalty

INF = np.inf
TUNING = Tuning()

# name: (what the engine takes, numpy value, conjugate with its domain, cvxpy expression)
ATOMS = {
    "hinge": (
        nerm.Hinge(),
        lambda m: np.maximum(0, 1 - m),
        (lambda u: u, -1, 0),
        lambda m: cp.pos(1 - m),
    ),
    "squared_hinge": (
        nerm.SquaredHinge(),
        lambda m: np.maximum(0, 1 - m) ** 2,
        (lambda u: u + u**2 / 4, -INF, 0),
        lambda m: cp.square(cp.pos(1 - m)),
    ),
    "smooth_hinge": (  # rounded on [1/2, 1]
        nerm.SmoothHinge(width=0.5),
        lambda m: np.where(m >= 1, 0, np.where(m <= 0.5, 0.75 - m, (1 - m) ** 2)),
        (lambda u: u + u**2 / 4, -1, 0),
        lambda m: 0.25 * cp.huber(2 * cp.pos(1 - m), 1),
    ),
    "huberized_hinge": (  # rounded on [0, 2]
        nerm.HuberizedHinge(width=1.0),
        lambda m: np.where(m >= 2, 0, np.where(m <= 0, 1 - m, (2 - m) ** 2 / 4)),
        (lambda u: 2 * u + u**2, -1, 0),
        lambda m: cp.huber(0.5 * cp.pos(2 - m), 1),
    ),
    "modified_huber": (
        nerm.ModifiedHuber(),
        lambda m: np.where(m >= 1, 0, np.where(m >= -1, (1 - m) ** 2, -4 * m)),
        (lambda u: u + u**2 / 4, -4, 0),
        lambda m: cp.huber(cp.pos(1 - m), 2),
    ),
    "squared": (
        nerm.Squared(),
        lambda m: (1 - m) ** 2,
        (lambda u: u + u**2 / 4, -INF, INF),
        lambda m: cp.square(1 - m),
    ),
    "pinball": (
        nerm.Pinball(tau=0.3),
        lambda m: np.maximum(1 - m, 0.3 * (m - 1)),
        (lambda u: u, -1, 0.3),
        lambda m: cp.maximum(1 - m, 0.3 * (m - 1)),
    ),
    "identity": (
        nerm.Identity(),
        lambda m: m,
        (lambda u: 0 * u, 1, 1),
        lambda m: m,
    ),
    "logistic": (
        nerm.Logistic(),
        lambda m: np.log1p(np.exp(-np.abs(m))) + np.maximum(-m, 0),
        (lambda u: _entropy(-u) + _entropy(1 + u), -1, 0),
        lambda m: cp.logistic(-m),
    ),
    "exponential": (
        nerm.Exponential(),
        lambda m: np.exp(-m),
        (lambda u: _entropy(-u) + u, -INF, 0),
        lambda m: cp.exp(-m),
    ),
}  # fmt: skip

LOSSES = [name for name in ATOMS if name != "identity"]
SURROGATES = list(ATOMS)


def _entropy(x):
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1)), 0.0)


class Found:
    """An answer of the engine, by the names of the paper."""

    def __init__(self, answer, losses: int):
        self.coef, self.intercept, self.iterations = answer.coef, answer.intercept, answer.iterations
        self.converged = answer.claim == "converged"
        self.primal, self.dual, self.passes = (answer.details[name] for name in ("primal", "dual", "passes"))
        rows, self.theta = answer.multipliers.rows, answer.multipliers.thetas
        self.alpha, self.beta_plus, self.beta_minus = rows[:losses], rows[losses::2], rows[losses + 1 :: 2]


class Case:
    """A problem by the names of its atoms, with its primal and dual written out naively in the mean form."""

    def __init__(self, X, y, losses, mu, terms=(), intercept=True):
        """Losses: (name, weights); terms: (name, eta, viewpoint, weights)."""
        self.X, self.y, self.losses, self.mu, self.terms, self.intercept = X, y, losses, mu, terms, intercept
        self.n = X.shape[0]

    @property
    def blocks(self) -> list[Block]:
        """The blocks of the problem: the losses, then both sides of each term."""
        losses = [Block(ATOMS[name][0], s, self.y, 0, 0) for name, s in self.losses]
        return losses + [
            Block(ATOMS[name][0], u, t * v, 0, t) for name, _, v, u in self.terms for t in (1, -1)
        ]

    def factors(self, scale: float = 1.0) -> np.ndarray:
        """Return the weight of each block's term, those of neutrality multiplied by one factor."""
        return np.array([1.0] * len(self.losses) + [scale * eta for _, eta, *_ in self.terms for _ in "+-"])

    def engine(self, tuning: Tuning = TUNING, workers: int | None = None) -> Engine:
        """Return an engine that knows nothing yet."""
        return Engine(self.X, self.blocks, self.n, intercept=self.intercept, tuning=tuning, workers=workers)

    def method(self, engine: Engine, scale: float = 1.0):
        """Return the engine's method, whose arrays have one line a block."""
        return engine._method(self.factors(scale), Penalty(self.mu * self.n))

    def solve(self, tol: float = 1e-6, *, tuning: Tuning = TUNING, **options) -> Found:
        """Solve from nothing."""
        return Found(self.engine(tuning).solve(self.factors(), self.mu, tol, **options), len(self.losses))

    def path(self, scales, tol: float = 1e-6, *, tuning: Tuning = TUNING) -> list[Found]:
        """Solve one after the other with every eta multiplied by a scale."""
        answers = self.engine(tuning).path([(self.factors(scale), self.mu) for scale in scales], tol)
        return [Found(answer, len(self.losses)) for answer in answers]

    @property
    def has_zero_infimum(self) -> bool:
        """Tell, from the data alone, whether an intercept can bring every loss to 0: one class has all the weight."""
        labels = {label for _, s in self.losses for label in self.y[s > 0]}
        return (
            self.intercept and len(labels) < 2 and not any(eta > 0 and u.any() for _, eta, _, u in self.terms)
        )

    def primal(self, coef, intercept) -> float:
        f = self.X @ coef + intercept
        value = self.mu / 2 * coef @ coef
        for name, s in self.losses:
            value += np.mean(s * ATOMS[name][1](self.y * f))
        for name, eta, v, u in self.terms:
            value += eta * max(np.mean(u * ATOMS[name][1](v * f)), np.mean(u * ATOMS[name][1](-v * f)))
        return float(value)

    def dual(self, result: Found) -> float:
        """Return the bound by its formula; -inf if a multiplier is outside its domain or sum c is not 0."""
        c, value, scale = np.zeros(self.n), 0.0, 0.0
        parts = [(name, s, self.y, a) for (name, s), a in zip(self.losses, result.alpha, strict=True)]
        for k, (name, eta, v, u) in enumerate(self.terms):
            theta = result.theta[k]
            assert 0 <= theta <= 1
            parts.append((name, eta * theta * u, v, result.beta_plus[k]))
            parts.append((name, eta * (1 - theta) * u, -v, result.beta_minus[k]))
        for name, weight, target, multiplier in parts:
            conjugate, low, high = ATOMS[name][2]
            if (-multiplier < low - 1e-12).any() or (-multiplier > high + 1e-12).any():
                return -INF
            c += weight * target * multiplier
            scale += np.abs(weight * target * multiplier).sum()
            value -= np.mean(weight * conjugate(-multiplier))
        if self.intercept and abs(c.sum()) > 1e-11 * scale + 1e-12:
            return -INF
        q = self.X.T @ c / self.n
        return float(value - q @ q / (2 * self.mu))

    def optimum(self) -> float:
        """Clarabel's optimum of a model written by hand, the scores tied by an equality."""
        w, b, f = cp.Variable(self.X.shape[1]), cp.Variable(), cp.Variable(self.n)
        value = self.mu / 2 * cp.sum_squares(w)
        for name, s in self.losses:
            value += s @ ATOMS[name][3](cp.multiply(self.y, f)) / self.n
        for name, eta, v, u in self.terms:
            plus, minus = (u @ ATOMS[name][3](cp.multiply(t, f)) / self.n for t in (v, -v))
            value += eta * cp.maximum(plus, minus)
        tied = [f == self.X @ w + b] + ([] if self.intercept else [b == 0])
        problem = cp.Problem(cp.Minimize(value), tied)
        found = []
        # Clarabel warns where it cannot keep 1e-10; its point is judged by the naive objective either way.
        for tol in (1e-10, 1e-8):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                problem.solve(solver=cp.CLARABEL, tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
            found.append(self.primal(w.value, float(b.value)))
        return min(found)


def random_case(seed: int) -> Case:
    """Draw atoms, weights (zeros included), viewpoints (zeros included), lambda, eta, scale and storage at random."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 120)), int(rng.integers(1, 9))
    X = rng.normal(size=(n, d))
    style = rng.integers(4)
    if style == 1:
        X = sp.csr_matrix(np.where(rng.random((n, d)) < 0.4, X, 0.0))
    elif style == 2:
        X = sp.csr_matrix((rng.random((n, d)) < 0.3).astype(float))  # many equal rows
    elif style == 3:
        X = X * 10.0 ** rng.integers(-3, 4, size=d)
        X[:, 0] = 1.0  # a constant column
        X = np.column_stack([X, X[:, -1]])  # and a double one
    direction = rng.normal(size=X.shape[1])
    scores = np.asarray(X @ direction)
    scores = (scores - scores.mean()) / (scores.std() + 1e-9)
    y = np.where(scores + rng.normal(size=n) * rng.choice([0.01, 1.0]) > 0, 1.0, -1.0)

    def weights():
        kind = rng.integers(3)
        if kind == 0:
            return np.ones(n)
        w = rng.exponential(size=n)
        return np.where(rng.random(n) < 0.3, 0.0, w) if kind == 2 else w

    def viewpoint():
        kind = rng.integers(3)
        v = np.where(scores + rng.normal(size=n) > 0.5, 1.0, -1.0)
        if kind == 1:
            v = rng.normal(size=n)
        elif kind == 2:
            v = np.where(rng.random(n) < 0.2, 0.0, v)
        return v

    losses = [(str(rng.choice(LOSSES)), weights()) for _ in range(rng.choice([1, 1, 1, 2]))]
    terms = [
        (
            str(rng.choice(SURROGATES)),
            float(rng.choice([0.0, 0.01, 0.1, 1.0, 10.0, 100.0])),
            viewpoint(),
            weights(),
        )
        for _ in range(rng.choice([0, 1, 1, 2, 3]))
    ]
    mu = float(10.0 ** rng.integers(-4, 3))
    return Case(X, y, losses, mu, terms, intercept=bool(rng.random() < 0.8))


def many(n: int = 3000, seed: int = 0, *, sparse: bool = False, real: bool = False):
    """Draw enough rows for small problems to pay."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    if sparse:
        X = sp.csr_matrix(np.where(np.abs(X) > 0.6, X, 0.0))
    scores = X @ np.array([1.0, 0.5, 0.0, 0.0, -0.5])
    y = np.where(scores + rng.logistic(size=n) > 0, 1.0, -1.0)
    v = np.where(scores + X @ np.array([0.0, 0.0, 2.0, 0.0, 0.0]) + rng.logistic(size=n) > 0.3, 1.0, -1.0)
    if real:
        v = v * rng.exponential(size=n) * (rng.random(n) < 0.9)  # zeros too
    return X, y, v
