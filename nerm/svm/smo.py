"""The reference SMO for the neutral SVM's exact dual, and for the published one: `nerm.solvers.smo` in the paper's terms."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nerm.certify.solution import Solution
from nerm.svm.binding import neutral_svm
from nerm.validation import as_nonnegative


def smo(
    X: Any,
    y: Any,
    viewpoint: Any,
    lam: float,
    eta: float,
    kernel: Any = "rbf",
    variant: str = "exact",
    tol: float = 1e-6,
    sample_weight: Any = None,
    neutrality_weight: Any = None,
    callback: Callable[[dict[str, float]], object] | None = None,
    cache_mb: float = 500.0,
    warm_start: Solution | None = None,
    max_iter: int | None = None,
) -> Solution:
    """Solve the neutral SVM's dual by two-variable steps until the true relative duality gap is at most tol.

    Parameters
    ----------
    X : (n, d) matrix
        Dense or sparse; the (n, n) Gram matrix with ``kernel="precomputed"``.
    y, viewpoint : (n,) arrays
        Labels -1/+1 (or any two values), and v.
    lam, eta : float
        In sum form: values are n times those of the solution.
    kernel : str, callable or Kernel
        With "linear" the solution's `coef` is w, else c = a / lambda.
    variant : {"exact", "published"}
        "published" solves the printed dual, which is that of a shrinkage problem, kept for research
        (docs/errata.md).
    tol : float
        The relative duality gap; at 0 it goes as far as floating point does.
    sample_weight, neutrality_weight : (n,) arrays, optional
        s and u.
    callback : callable, optional
        Gets a dict (iterations, outer_iterations, primal, dual, gap, violation, in mean form) now and then;
        returning False stops the search.
    cache_mb : float
        Room for rows of the Gram matrix; the whole matrix is formed only when it fits.
    warm_start : Solution, optional
        An earlier one on the same rows, of another eta or lambda, say.
    max_iter : int, optional
        The limit of pair steps.

    Returns
    -------
    Solution
        ``stats.details`` has intercept_interval, outer_iterations and history.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2)); y = np.sign(X[:, 0]); v = np.sign(X[:, 0] + X[:, 1])
    >>> cold = smo(X, y, v, lam=1.0, eta=1.0)
    >>> str(cold.status), bool(cold.certificate.relative_gap < 1e-6)
    ('optimal', True)
    >>> warm = smo(X, y, v, lam=1.0, eta=1.1, warm_start=cold)
    >>> bool(cold.certificate.dual <= warm.certificate.primal)  # the optimum does not fall with eta
    True

    """
    settings = {"kernel": kernel, "variant": variant}
    weights = {"sample_weight": sample_weight, "neutrality_weight": neutrality_weight}
    problem = neutral_svm(X, y, viewpoint, lam, eta, **settings, **weights)
    tol = max(as_nonnegative(tol, "tol", "Use a relative gap such as 1e-6"), np.finfo(float).tiny)
    options: dict[str, Any] = {
        "callback": callback,
        "cache_mb": cache_mb,
        "warm_start": warm_start,
        "max_iter": max_iter,
    }
    return problem.solve("smo", tol, **options)
