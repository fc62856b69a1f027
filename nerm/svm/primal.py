"""The neutral SVM's primal as a quadratic programme (paper, section 6.1), corrected and weighted.

::

    minimise    sum_i s_i xi_i + (lambda/2) ||w||^2 + eta zeta
    subject to  f = X w + b,   1 - y_i f_i <= xi_i,   1 - v_i f_i <= xi_i^+,   1 + v_i f_i <= xi_i^-,
                sum_i u_i xi_i^+ <= zeta,   sum_i u_i xi_i^- <= zeta,   xi, xi^+, xi^- >= 0.

The scores f are variables of their own, so X enters once instead of three times. Samples with u_i = 0, and
all of them when eta = 0, have no neutrality rows: their slacks would be free and cost nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.svm.certify import feasible
from nerm.svm.data import NeutralData, validated
from nerm.svm.intercept import best_intercept
from nerm.svm.qp import GRANTED, QP, blocks
from nerm.svm.result import NeutralSVM


def primal_qp(
    X: Any,
    y: Any,
    viewpoint: Any,
    lam: float,
    eta: float,
    intercept: bool = True,
    sample_weight: Any = None,
    neutrality_weight: Any = None,
) -> QP:
    """Return the primal QP in (w, b, f, xi, xi^+, xi^-, zeta); without ``intercept`` the block b is empty.

    X is (n, d), dense or sparse; y (-1/+1), viewpoint and the weights s and u are (n,). The value is that of the
    sum form: n times the same problem in mean form, with lam / n and the same eta.

    >>> import nerm
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> value = primal_qp(X, y, v, lam=2.0, eta=1.0).solve().value
    >>> objective = nerm.Risk(nerm.Hinge()) + (2.0 / 4) * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    >>> bool(abs(value - 4 * objective.on(X, y, viewpoint=v).solve().objective.total) < 1e-4)
    True
    """
    data = validated(X, y, viewpoint, lam, eta, sample_weight=sample_weight, neutrality_weight=neutrality_weight)
    n, d = data.X.shape
    u = data.neutrality_weight
    neutral = np.flatnonzero(u > 0) if data.eta > 0 else np.array([], dtype=int)
    k, one = len(neutral), int(len(neutral) > 0)
    layout = blocks(
        {
            "coef": d,
            "intercept": int(intercept),
            "scores": n,
            "xi": n,
            "xi_plus": k,
            "xi_minus": k,
            "zeta": one,
        }
    )
    rows = blocks({"scores": n, "alpha": n, "beta_plus": k, "beta_minus": k, "nu": 2 * one, "signs": n + 2 * k})

    I_n, I_k = sp.identity(n, format="csc"), sp.identity(k, format="csc")
    pick = I_n[neutral]
    v_pick = sp.diags_array(data.viewpoint[neutral]) @ pick if k else pick
    u_row = sp.csc_matrix(u[neutral].reshape(1, -1)) if one else None
    minus_one = sp.csc_matrix([[-1.0]]) if one else None
    ones = sp.csc_matrix(np.ones((n, int(intercept))))
    grid: list[list[Any]] = [
        # coef, intercept, scores, xi, xi_plus, xi_minus, zeta
        [-sp.csc_matrix(data.X), -ones, I_n, None, None, None, None],
        [None, None, sp.diags_array(data.y), I_n, None, None, None],
        [None, None, v_pick, None, I_k, None, None],
        [None, None, -v_pick, None, None, I_k, None],
        [None, None, None, None, u_row, None, minus_one],
        [None, None, None, None, None, u_row, minus_one],
        [None, None, None, I_n, None, None, None],
        [None, None, None, None, I_k, None, None],
        [None, None, None, None, None, I_k, None],
    ]
    columns = [block.stop - block.start for block in layout.values()]
    heights = [n, n, k, k, one, one, n, k, k]
    A = _assemble(grid, heights, columns)
    lower = np.concatenate([np.zeros(n), np.ones(n + 2 * k), np.full(2 * one, -np.inf), np.zeros(n + 2 * k)])
    upper = np.concatenate([np.zeros(n), np.full(n + 2 * k, np.inf), np.zeros(2 * one), np.full(n + 2 * k, np.inf)])

    total = sum(columns)
    quadratic = np.zeros(total)
    quadratic[layout["coef"]] = data.lam
    q = np.zeros(total)
    q[layout["xi"]] = data.sample_weight
    q[layout["zeta"]] = data.eta

    def recover(x: np.ndarray, z: np.ndarray, status: str) -> NeutralSVM:
        return _recovered(data, intercept, neutral, layout, rows, x, z, status)

    return QP(sp.csc_matrix(sp.diags_array(quadratic)), q, A, lower, upper, 0.0, layout, rows, recover)


def _assemble(grid: list[list[Any]], heights: list[int], columns: list[int]) -> sp.csc_matrix:
    """Stack blocks, with explicit zeros for None: an empty block must still have its shape."""
    full = [
        [
            sp.csc_matrix((h, c)) if block is None else sp.csc_matrix(block)
            for block, c in zip(line, columns, strict=True)
        ]
        for line, h in zip(grid, heights, strict=True)
        if h > 0
    ]
    return sp.csc_matrix(sp.vstack([sp.hstack(line) for line in full]))


def _recovered(
    data: NeutralData,
    intercept: bool,
    neutral: np.ndarray,
    layout: dict[str, slice],
    rows: dict[str, slice],
    x: np.ndarray,
    z: np.ndarray,
    status: str,
) -> NeutralSVM:
    """Return (w, b) as the solver found them, and its multipliers made feasible.

    Lower sides hold at the hinge rows, so alpha = -z and beta = -z there; nu = z at the two sums.
    """
    w = x[layout["coef"]]
    b = float(x[layout["intercept"]][0]) if intercept else 0.0
    beta_plus, beta_minus = np.zeros(data.n), np.zeros(data.n)
    beta_plus[neutral], beta_minus[neutral] = -z[rows["beta_plus"]], -z[rows["beta_minus"]]
    nu = z[rows["nu"]] if len(neutral) else np.zeros(2)
    a = -z[rows["alpha"]] * data.y + (beta_plus - beta_minus) * data.viewpoint
    a, m = feasible(data, a, float(nu[0]), float(nu[1]), intercept=intercept)
    g = np.asarray(data.X @ w).ravel()
    q = np.asarray(data.X.T @ a).ravel() / data.lam
    interval = best_intercept(data, g)[1:] if intercept else (0.0, 0.0)
    primal, dual = data.primal(g + b, float(w @ w)), m.total - 0.5 * data.lam * float(q @ q)
    converged = primal - dual <= GRANTED * abs(primal)
    if not converged:
        status = f"{status}; but a relative gap of {(primal - dual) / abs(primal):.1e} is left"
    support = np.flatnonzero(a)
    return NeutralSVM(
        alpha=m.alpha, beta_plus=m.beta_plus, beta_minus=m.beta_minus, nu_plus=m.nu_plus, nu_minus=m.nu_minus,
        a=a, intercept=b, intercept_interval=interval, scores=g + b, lam=data.lam, eta=data.eta,
        variant="exact", kernel=data.kernel, support=support, support_vectors=data.X[support],
        n_features=data.X.shape[1], primal=primal, dual=dual, converged=converged, status=status, weights=w,
    )  # fmt: skip
