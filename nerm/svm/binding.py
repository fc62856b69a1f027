"""The neutral SVM as a `Problem`, and a problem of this kind in the paper's symbols.

The paper writes sums, the package means::

    P(f) = sum_i s_i (1 - y_i f_i)_+  +  (lambda/2) ||w||^2  +  eta max(C^+, C^-),
    C^{+-} = sum_i u_i (1 -+ v_i f_i)_+

is n times Risk(Hinge()) + (lambda/n) SquaredL2() + eta Neutrality(Hinge()). So values in sum form are n times
those of a `Solution`, scores are the same, and the paper's multipliers are s_i alpha_i, theta eta u_i
beta_i^+ and (1 - theta) eta u_i beta_i^-: nerm's alpha and beta are shares in [0, 1], theta is nu^+ / eta.
"""

from typing import Any, NamedTuple

import numpy as np

from nerm.atoms.hinge import Hinge
from nerm.atoms.squared_l2 import SquaredL2
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.model.bind import bind
from nerm.model.kernels import Linear, resolve
from nerm.model.objective import Neutrality, Risk
from nerm.model.problem import Problem
from nerm.svm.published import Shrinkage
from nerm.typing import Floats, Matrix
from nerm.validation import as_nonnegative, as_positive, as_weights

VARIANTS = ("exact", "published")


def neutral_svm(
    X: Any,
    y: Any,
    viewpoint: Any,
    lam: Any,
    eta: Any,
    *,
    kernel: Any = "linear",
    variant: str = "exact",
    sample_weight: Any = None,
    neutrality_weight: Any = None,
    intercept: bool = True,
) -> Problem:
    """Return the problem behind the arguments that all functions of `nerm.svm` take.

    Parameters
    ----------
    X : (n, d) matrix
        Dense or sparse; the (n, n) Gram matrix with ``kernel="precomputed"``.
    y, viewpoint : (n,) arrays
        Labels and v; the viewpoint may be None when eta is 0.
    lam, eta : float
        lambda > 0 and eta >= 0, in sum form.
    kernel : str, callable or Kernel
        As in `Objective.on`; "linear" is the linear hypothesis.
    variant : {"exact", "published"}
        The published one is what the printed dual really solves (`nerm.svm.published`).
    sample_weight, neutrality_weight : (n,) arrays, optional
        s and u.
    intercept : bool
        Whether b is free.

    Returns
    -------
    Problem
        In mean form: sums divided by n, lam / n for lam. Rows that are equal in (x, y, v) are one row in it.

    """
    if variant not in VARIANTS:
        raise UnknownNameError("'variant'", variant, VARIANTS)
    lam = as_positive(lam, "lam", "lambda is 1 / C; use for instance 1.0")
    eta = as_nonnegative(eta, "eta", "Use 0 for the plain SVM, or a positive number")
    if viewpoint is None and eta > 0:
        must = "'viewpoint' must be given when eta is positive"
        raise InvalidInputError(must, "None", "Pass one number for each row, or set eta to 0")
    n = np.shape(y)[0] if np.ndim(y) else 1
    objective = Risk(Hinge()) + (lam / n) * SquaredL2()
    if viewpoint is not None:
        u = as_weights(neutrality_weight, n, "neutrality_weight")
        objective += eta * (Neutrality(Hinge(), weights=u) if variant == "exact" else Shrinkage(u))
    resolved = resolve(kernel)
    return bind(
        objective,
        X,
        y,
        viewpoint=viewpoint,
        kernel=None if isinstance(resolved, Linear) else resolved,
        intercept=intercept,
        sample_weight=sample_weight,
    )


class SumForm(NamedTuple):
    """A neutral SVM in the paper's symbols, on the distinct rows; without a neutrality term v and eta are 0."""

    X: Matrix
    y: Floats
    v: Floats
    s: Floats
    u: Floats
    lam: float
    eta: float


def sum_form(problem: Problem) -> SumForm:
    """Return the problem, made by `neutral_svm` or of that kind, in the paper's symbols."""
    risk, *others = problem.blocks
    none = np.zeros(problem.hypothesis.n)
    return SumForm(
        X=problem.hypothesis.X,
        y=risk.targets,
        v=others[0].targets if others else none,
        s=problem.factors[0] * risk.weights,
        u=others[0].weights if others else none,
        lam=problem.divisor * sum(weight for weight, _ in problem.regularizers),
        eta=float(problem.factors[1]) if others else 0.0,
    )
