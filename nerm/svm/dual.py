"""The neutral SVM's dual as a quadratic programme, exact or as printed.

Exact, divided by lambda so that its value is the primal's (docs/errata.md, erratum 1)::

    minimise    (1 / 2 lambda) a'K a - sum_i (alpha_i + beta_i^+ + beta_i^-)
    subject to  a_i = alpha_i y_i + (beta_i^+ - beta_i^-) v_i,   sum_i a_i = 0,   0 <= alpha_i <= s_i,
                0 <= beta_i^{+-} <= u_i nu^{+-},   nu^+ + nu^- <= eta.

Published: as printed in the paper (section 6.2 and appendix), 0 <= beta^{+-}, beta_i^+ + beta_i^- <= eta u_i,
and no nu: each sample may choose its own direction. It is the dual of a shrinkage problem, not of the
neutral SVM (docs/errata.md); it is here to be looked at.

The solver minimises minus the dual, so the value of the QP is minus the dual's value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.svm.certify import certified
from nerm.svm.data import NeutralData, validated
from nerm.svm.qp import GRANTED, QP, blocks
from nerm.svm.result import NeutralSVM
from nerm.svm.rows import full_gram


def dual_qp(
    X_or_gram: Any,
    y: Any,
    viewpoint: Any,
    lam: float,
    eta: float,
    kernel: Any = "linear",
    variant: str = "exact",
    sample_weight: Any = None,
    neutrality_weight: Any = None,
    intercept: bool = True,
) -> QP:
    """Return the dual QP in (a, alpha, beta^+, beta^-, nu); a Gram matrix goes with ``kernel="precomputed"``.

    X is (n, d) or the Gram matrix (n, n); y (-1/+1), viewpoint and the weights s and u are (n,). Without
    ``intercept`` the row sum_i a_i = 0 is left out. The published variant has no block nu.

    The exact dual meets the primal, 5.25 here. The published one exceeds it: weak duality fails, and for
    v = +-1 and eta >= 1 it returns w = 0:

    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> for variant in ("exact", "published"):
    ...     solution = dual_qp(X, y, v, lam=2.0, eta=1.0, variant=variant).solve()
    ...     print(variant, round(-solution.value, 4), abs(solution.model.coef).round(4))
    exact 5.25 [0.5]
    published 8.0 [0.]
    """
    data = validated(
        X_or_gram, y, viewpoint, lam, eta,
        kernel=kernel, variant=variant, sample_weight=sample_weight, neutrality_weight=neutrality_weight,
    )  # fmt: skip
    gram = full_gram(data)
    n, s, u = data.n, data.sample_weight, data.neutrality_weight
    exact = variant == "exact"
    layout = blocks({"a": n, "alpha": n, "beta_plus": n, "beta_minus": n, "nu": 2 if exact else 0})
    rows = blocks(
        {"a": n, "sum": int(intercept), "alpha": n, "beta_plus": n, "beta_minus": n,
         "coupling": 2 * n + 3 if exact else n}
    )  # fmt: skip
    I, Y, V = sp.identity(n), sp.diags_array(data.y), sp.diags_array(data.viewpoint)
    Z = sp.csc_matrix((n, n))
    column = sp.csc_matrix(u.reshape(-1, 1))
    none, row_none = sp.csc_matrix((n, 1)), sp.csc_matrix((1, n))
    edge = 2 if exact else 0
    pad = sp.csc_matrix((n, edge))
    lines = [sp.hstack([I, -Y, -V, V, pad])]
    lower, upper = [np.zeros(n)], [np.zeros(n)]
    if intercept:
        lines.append(
            sp.hstack([sp.csc_matrix(np.ones((1, n))), row_none, row_none, row_none, sp.csc_matrix((1, edge))])
        )
        lower.append(np.zeros(1))
        upper.append(np.zeros(1))
    lines += [sp.hstack([Z, I, Z, Z, pad]), sp.hstack([Z, Z, I, Z, pad]), sp.hstack([Z, Z, Z, I, pad])]
    lower += [np.zeros(3 * n)]
    upper += [s, np.full(2 * n, np.inf)]
    if exact:
        # beta - u nu <= 0 for both signs, nu >= 0, nu^+ + nu^- <= eta.
        lines += [sp.hstack([Z, Z, I, Z, -column, none]), sp.hstack([Z, Z, Z, I, none, -column])]
        nothing = sp.csc_matrix((2, 4 * n))
        lines += [
            sp.hstack([nothing, sp.identity(2)]),
            sp.hstack([nothing[:1], sp.csc_matrix(np.ones((1, 2)))]),
        ]
        lower += [np.full(2 * n, -np.inf), np.zeros(2), np.full(1, -np.inf)]
        upper += [np.zeros(2 * n), np.full(2, np.inf), np.full(1, data.eta)]
    else:
        lines += [sp.hstack([Z, Z, I, I])]
        lower += [np.full(n, -np.inf)]
        upper += [data.eta * u]
    total = 4 * n + edge
    P = sp.block_diag([sp.csc_matrix(gram / data.lam), sp.csc_matrix((total - n, total - n))], format="csc")
    q = np.concatenate([np.zeros(n), np.full(3 * n, -1.0), np.zeros(edge)])

    def recover(x: np.ndarray, z: np.ndarray, status: str) -> NeutralSVM:
        return _recovered(data, gram, intercept, layout, x, status)

    return QP(
        sp.csc_matrix(P), q, sp.csc_matrix(sp.vstack(lines)), np.concatenate(lower), np.concatenate(upper),
        0.0, layout, rows, recover,
    )  # fmt: skip


def _recovered(
    data: NeutralData, gram: np.ndarray, intercept: bool, layout: dict[str, slice], x: np.ndarray, status: str
) -> NeutralSVM:
    """Return the kernel expansion of a, with the best intercept, and feasible multipliers.

    The multiplier of sum_i a_i = 0 is an optimal b as well; the best intercept for the scores is used
    because it is one even when the solver was stopped early.
    """
    nu = x[layout["nu"]] if data.variant == "exact" else np.full(2, np.nan)
    return certified(
        data, x[layout["a"]], float(nu[0]), float(nu[1]), lambda a: gram @ a,
        converged=True, tol=GRANTED / 2, status=status, intercept=intercept,
    )  # fmt: skip
