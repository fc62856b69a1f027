"""The objective written once more, in plain Python loops and plain cvxpy: oracles that share no code with nerm."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np

LOSSES = {
    "hinge": lambda m: max(0.0, 1 - m),
    "squared-hinge": lambda m: max(0.0, 1 - m) ** 2,
    "logistic": lambda m: math.log1p(math.exp(-m)) if m > -30 else -m,
    "squared": lambda m: (1 - m) ** 2,
    "exponential": lambda m: math.exp(-m),
    "modified-huber": lambda m: -4 * m if m < -1 else max(0.0, 1 - m) ** 2,
    "identity": lambda m: m,
}


def naive_objective(X, y, v, w, b, *, loss="hinge", surrogate="hinge", mu=0.0, eta=0.0, s=None, u=None):
    """Return (1/n) sum s phi(y f) + (mu/2)||w||^2 + eta max(C+, C-), by loops over the rows."""
    n = len(y)
    X = np.asarray(X.todense()) if hasattr(X, "todense") else X
    risk = plus = minus = 0.0
    for i in range(n):
        f = sum(X[i, j] * w[j] for j in range(X.shape[1])) + b
        risk += (1.0 if s is None else s[i]) * LOSSES[loss](y[i] * f) / n
        plus += (1.0 if u is None else u[i]) * LOSSES[surrogate](v[i] * f) / n
        minus += (1.0 if u is None else u[i]) * LOSSES[surrogate](-v[i] * f) / n
    return risk + 0.5 * mu * sum(c * c for c in w) + eta * max(plus, minus)


def hinge_optimum(X, y, v, mu, eta, *, s=None, u=None, intercept=True):
    """Return (value, w, b) of the neutral SVM in mean form: the textbook QP with slacks, written by hand."""
    n, d = X.shape
    s = np.ones(n) if s is None else s
    u = np.ones(n) if u is None else u
    w, b, xi, plus, minus, zeta = (
        cp.Variable(d),
        cp.Variable(),
        *(cp.Variable(n) for _ in range(3)),
        cp.Variable(),
    )
    f = X @ w + b
    constraints = [xi >= 0, plus >= 0, minus >= 0, xi >= 1 - cp.multiply(y, f)]
    constraints += [plus >= 1 - cp.multiply(v, f), minus >= 1 + cp.multiply(v, f)]
    constraints += [u @ plus <= zeta, u @ minus <= zeta] + ([] if intercept else [b == 0])
    problem = cp.Problem(cp.Minimize((s @ xi + eta * zeta) / n + mu / 2 * cp.sum_squares(w)), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value, w.value, float(b.value)
