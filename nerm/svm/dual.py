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

from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.certify.solution import Answer
from nerm.model.hypothesis import KernelHypothesis
from nerm.model.kernels import Linear
from nerm.model.problem import Problem
from nerm.svm.binding import neutral_svm, sum_form
from nerm.svm.qp import QP, answer_of, slices
from nerm.typing import Floats


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
    """Return the dual QP in (a, alpha, beta^+, beta^-, nu).

    Parameters
    ----------
    X_or_gram : (n, d) matrix
        Or the (n, n) Gram matrix with ``kernel="precomputed"``.
    y, viewpoint : (n,) arrays
        Labels -1/+1 (or any two values), and v.
    lam, eta : float
        In sum form.
    kernel : str, callable or Kernel
        As in `Objective.on`; "linear" is the linear hypothesis.
    variant : {"exact", "published"}
        The published one has no block nu.
    sample_weight, neutrality_weight : (n,) arrays, optional
        s and u.
    intercept : bool
        Without it the row sum_i a_i = 0 is left out.

    Returns
    -------
    QP
        Its value is in sum form.

    Examples
    --------
    The exact dual meets the primal, 5.25 here. The published one exceeds it: weak duality fails, and for
    v = +-1 and eta >= 1 it returns w = 0:

    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> for variant in ("exact", "published"):
    ...     solution = dual_qp(X, y, v, lam=2.0, eta=1.0, variant=variant).solve()
    ...     print(variant, round(-solution.value, 4), abs(solution.model.coef).round(4))
    exact 5.25 [0.5]
    published 8.0 [0.]

    """
    settings = {"kernel": kernel, "variant": variant, "intercept": intercept}
    weights = {"sample_weight": sample_weight, "neutrality_weight": neutrality_weight}
    return dual_qp_of(neutral_svm(X_or_gram, y, viewpoint, lam, eta, **settings, **weights))


def dual_qp_of(problem: Problem) -> QP:
    """Return the dual QP of a neutral SVM, the published one if its neutrality term has one side."""
    X, y, v, s, u, lam, eta = sum_form(problem)
    n = problem.hypothesis.n
    exact = len(problem.blocks) != 2
    gram = problem.hypothesis.gram if isinstance(problem.hypothesis, KernelHypothesis) else Linear()(X, X)
    layout = slices(a=n, alpha=n, beta_plus=n, beta_minus=n, nu=2 if exact else 0)
    coupling = 2 * n + 3 if exact else n
    rows = slices(a=n, sum=int(problem.intercept), alpha=n, beta_plus=n, beta_minus=n, coupling=coupling)
    I, Y, V, o = sp.identity(n), sp.diags_array(y), sp.diags_array(v), None
    # columns a, alpha, beta_plus, beta_minus, nu; each row of blocks with its lower and upper side
    lines: list[tuple[list[Any], Any, Any]] = [
        ([I, -Y, -V, V, sp.csc_matrix((n, 2 if exact else 0))], 0.0, 0.0)
    ]
    if problem.intercept:
        lines.append(([np.ones((1, n)), o, o, o, o], 0.0, 0.0))
    lines += [([o, I, o, o, o], 0.0, s), ([o, o, I, o, o], 0.0, np.inf), ([o, o, o, I, o], 0.0, np.inf)]
    if exact:  # beta - u nu <= 0 for both signs, nu >= 0, nu^+ + nu^- <= eta
        plus, minus = np.outer(u, [1.0, 0.0]), np.outer(u, [0.0, 1.0])
        lines += [([o, o, I, o, -plus], -np.inf, 0.0), ([o, o, o, I, -minus], -np.inf, 0.0)]
        lines += [([o, o, o, o, sp.identity(2)], 0.0, np.inf), ([o, o, o, o, np.ones((1, 2))], -np.inf, eta)]
    else:
        lines.append(([o, o, I, I, o], -np.inf, eta * u))
    A = sp.bmat([line for line, _, _ in lines], format="csc")
    heights = [next(block.shape[0] for block in line if block is not None) for line, _, _ in lines]
    sides = [np.broadcast_to(side, h) for h, line in zip(heights, lines, strict=True) for side in line[1:]]
    rest = A.shape[1] - n
    P = sp.block_diag([sp.csc_matrix(gram / lam), sp.csc_matrix((rest, rest))], format="csc")
    q = np.concatenate([np.zeros(n), np.full(3 * n, -1.0), np.zeros(rest - 3 * n)])

    def answer(x: Floats, z: Floats, status: str) -> Answer:
        nu = x[layout["nu"]] if exact else np.zeros(2)
        return answer_of(problem, x[layout["a"]], nu, status)

    return QP(P, q, A, np.concatenate(sides[::2]), np.concatenate(sides[1::2]), layout, rows, problem, answer)
