"""The neutral SVM's primal as a quadratic programme (paper, section 6.1), corrected and weighted.

::

    minimise    sum_i s_i xi_i + (lambda/2) ||w||^2 + eta zeta
    subject to  f = X w + b,   1 - y_i f_i <= xi_i,   1 - v_i f_i <= xi_i^+,   1 + v_i f_i <= xi_i^-,
                sum_i u_i xi_i^+ <= zeta,   sum_i u_i xi_i^- <= zeta,   xi, xi^+, xi^- >= 0.

The scores f are variables of their own, so X enters once instead of three times. Samples with u_i = 0, and
all of them when eta = 0, have no neutrality rows: their slacks would be free and cost nothing.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.certify.solution import Answer
from nerm.model.problem import Problem
from nerm.svm.binding import neutral_svm, sum_form
from nerm.svm.qp import QP, answer_of, slices
from nerm.typing import Floats


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
    """Return the primal QP in (w, b, f, xi, xi^+, xi^-, zeta).

    Parameters
    ----------
    X : (n, d) matrix
        Dense or sparse.
    y, viewpoint : (n,) arrays
        Labels -1/+1 (or any two values), and v.
    lam, eta : float
        In sum form: the value is n times that of the same problem in mean form, with lam / n and the same
        eta.
    intercept : bool
        Without it the block b is empty.
    sample_weight, neutrality_weight : (n,) arrays, optional
        s and u.

    Returns
    -------
    QP
        Its value is in sum form.

    Examples
    --------
    >>> import nerm
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> value = primal_qp(X, y, v, lam=2.0, eta=1.0).solve().value
    >>> objective = nerm.Risk(nerm.Hinge()) + (2.0 / 4) * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    >>> bool(abs(value - 4 * objective.on(X, y, viewpoint=v).solve().objective.total) < 1e-4)
    True

    """
    weights = {"sample_weight": sample_weight, "neutrality_weight": neutrality_weight}
    return primal_qp_of(neutral_svm(X, y, viewpoint, lam, eta, intercept=intercept, **weights))


def primal_qp_of(problem: Problem) -> QP:
    """Return the primal QP of a linear neutral SVM."""
    X, y, v, s, u, lam, eta = sum_form(problem)
    n, d = X.shape
    neutral = np.flatnonzero(u > 0) if eta > 0 else np.array([], dtype=int)
    b, k, one = int(problem.intercept), len(neutral), int(len(neutral) > 0)
    layout = slices(coef=d, intercept=b, scores=n, xi=n, xi_plus=k, xi_minus=k, zeta=one)
    rows = slices(scores=n, alpha=n, beta_plus=k, beta_minus=k, nu=2 * one, signs=n + 2 * k)
    I, K, V = sp.identity(n), sp.identity(k), sp.diags_array(v).tocsr()[neutral]
    U, minus = sp.csc_matrix(u[neutral].reshape(1, -1)[:one]), -sp.identity(one)
    o = None
    A = sp.bmat(
        [
            # coef, intercept, scores, xi, xi_plus, xi_minus, zeta
            [-sp.csc_matrix(X), sp.csc_matrix(-np.ones((n, b))), I, o, o, o, o],
            [o, o, sp.diags_array(y), I, o, o, o],
            [o, o, V, o, K, o, o],
            [o, o, -V, o, o, K, o],
            [o, o, o, o, U, o, minus],
            [o, o, o, o, o, U, minus],
            [o, o, o, I, o, o, o],
            [o, o, o, o, K, o, o],
            [o, o, o, o, o, K, o],
        ],
        format="csc",
    )
    hinges, signs = np.ones(n + 2 * k), np.zeros(n + 2 * k)
    lower = np.concatenate([np.zeros(n), hinges, np.full(2 * one, -np.inf), signs])
    upper = np.concatenate([np.zeros(n), np.inf * hinges, np.zeros(2 * one), signs + np.inf])
    quadratic, q = np.zeros((2, A.shape[1]))
    quadratic[layout["coef"]], q[layout["xi"]], q[layout["zeta"]] = lam, s, eta

    def answer(x: Floats, z: Floats, status: str) -> Answer:
        """Return (w, b) as found. Lower sides hold at the hinges: alpha = -z, beta = -z there; nu = z at the sums."""
        beta = np.zeros(n)
        beta[neutral] = z[rows["beta_minus"]] - z[rows["beta_plus"]]
        hypothesis = x[layout["coef"]], float(x[layout["intercept"]].sum())
        nu = z[rows["nu"]] if one else np.zeros(2)
        return answer_of(problem, beta * v - z[rows["alpha"]] * y, nu, status, hypothesis)

    return QP(sp.csc_matrix(sp.diags_array(quadratic)), q, A, lower, upper, layout, rows, problem, answer)
