"""Problems with norms, drawn with corners on purpose, and their optimum by plain cvxpy."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

import nerm

LOSSES = {
    "hinge": (nerm.Hinge(), lambda m: cp.pos(1 - m)),
    "logistic": (nerm.Logistic(), lambda m: cp.logistic(-m)),
    "squared hinge": (nerm.SquaredHinge(), lambda m: cp.square(cp.pos(1 - m))),
    "squared": (nerm.Squared(), lambda m: cp.square(1 - m)),
}


@dataclass(frozen=True)
class Stated:
    """A problem, and what it was made of."""

    problem: nerm.Problem
    X: Any
    y: Any
    views: dict[str, Any]
    loss: str
    surrogate: str
    eta: float
    norms: list[tuple[str, float, Any]]  # kind, weight, groups
    intercept: bool

    def optimum(self) -> float:
        """Return the optimum by Clarabel, from the formula written out."""
        n, d = self.X.shape
        f, w, b = cp.Variable(n), cp.Variable(d), cp.Variable()
        total = cp.sum(LOSSES[self.loss][1](cp.multiply(self.y, f))) / n
        for v in self.views.values():
            sides = [cp.sum(LOSSES[self.surrogate][1](sign * cp.multiply(v, f))) / n for sign in (1, -1)]
            total = total + self.eta * cp.maximum(*sides)
        for kind, weight, groups in self.norms:
            total = total + weight * _norm(kind, w, groups)
        far = (
            self.X.mean(axis=0) if self.intercept else np.zeros(d)
        )  # the same problem, better for the solver
        rows = [f == (self.X - far) @ w + b] + ([] if self.intercept else [b == 0])
        problem = cp.Problem(cp.Minimize(total), rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the last digits that were asked for may be missing
            problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        return float(problem.value)


def _norm(kind: str, w: Any, groups: Any) -> Any:
    if kind == "groups":
        return cp.sum([cp.norm2(w[np.flatnonzero(groups == g)]) for g in np.unique(groups)])
    return {"l1": cp.norm1(w), "linf": cp.norm_inf(w), "square": cp.sum_squares(w) / 2}[kind]


def drawn(seed: int) -> Stated:
    """Return a small random problem."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.choice([5, 12, 40, 150])), int(rng.choice([1, 2, 4, 10, 25]))
    X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d) * rng.choice([0, 1, 2]))
    corner = seed % 6
    if corner == 1:
        X[:, rng.integers(d)] = 1.0
    elif corner == 2:
        X[:, rng.integers(d)] = 0.0
    elif corner == 3:
        X = np.round(X)
    elif corner == 4:
        X += 10.0
    elif d > 1 and corner == 5:
        X[:, 0] = X[:, 1]
    y = np.where(X @ rng.normal(size=d) + rng.normal(size=n) > np.median(X), 1.0, -1.0)
    y[0], y[-1] = 1.0, -1.0
    views = {
        f"v{k}": np.where(rng.normal(size=n) > 0, 1.0, -1.0) if rng.random() < 0.7 else rng.normal(size=n)
        for k in range(rng.integers(1, 3))
    }
    loss, surrogate = (str(rng.choice(list(LOSSES))) for _ in range(2))
    groups = rng.integers(0, max(1, d // 2), size=d)
    kinds = {
        "l1": nerm.L1(),
        "groups": nerm.GroupL2(groups.tolist()),
        "linf": nerm.LInf(),
        "square": nerm.SquaredL2(),
    }
    lam, eta = 10.0 ** rng.uniform(-4, 1), float(rng.choice([0.0, 0.1, 1.0, 10.0, 100.0]))
    chosen = [str(rng.choice(["l1", "groups", "linf"]))]
    chosen += [k for k in kinds if k not in chosen and rng.random() < 0.25]
    norms = [(kind, float(lam * 10.0 ** rng.uniform(-1, 0.5)), groups) for kind in chosen]
    objective: Any = nerm.Risk(LOSSES[loss][0])
    for kind, weight, _ in norms:
        objective = objective + weight * kinds[kind]
    for name in views:
        objective = objective + eta * nerm.Neutrality(LOSSES[surrogate][0], to=name)
    intercept = bool(rng.random() < 0.8)
    problem = objective.on(X, y, viewpoint=views, intercept=intercept)
    return Stated(problem, X, y, views, loss, surrogate, eta, norms, intercept)
