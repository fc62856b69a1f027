"""The reference SMO for the neutral SVM's exact dual, and for the published one.

The paper's appendix, corrected: pair steps at fixed nu^+ (`nerm.svm.smo_loop`) inside a one-dimensional
search over nu^+ (`nerm.svm.nu_search`), stopped by the true duality gap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.svm.certify import certified
from nerm.svm.data import NeutralData, validated
from nerm.svm.pieces import Multipliers, make_pieces
from nerm.svm.result import NeutralSVM
from nerm.validation import as_nonnegative, as_positive


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
    warm_start: NeutralSVM | None = None,
    max_iter: int | None = None,
) -> NeutralSVM:
    """Solve the neutral SVM's dual by two-variable steps until the true relative duality gap is at most tol.

    ``variant="published"`` solves the printed dual in its (alpha, r) form, the one in which pair steps cannot
    stall; it is the dual of a shrinkage problem, kept for research (docs/errata.md). ``callback`` gets a
    dict (iterations, outer_iterations, primal, dual, gap, violation) now and then; returning False
    stops the search. ``warm_start`` takes an earlier result on the same rows (another eta or lambda, say).
    Memory: about cache_mb plus a few vectors; the n x n matrix is formed only when it fits into cache_mb.

    X is (n, d), dense or sparse, or the Gram matrix with ``kernel="precomputed"``; y (-1/+1), viewpoint and the
    weights s and u are (n,).

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2)); y = np.sign(X[:, 0]); v = np.sign(X[:, 0] + X[:, 1])
    >>> cold = smo(X, y, v, lam=1.0, eta=1.0)
    >>> cold.converged, bool(cold.relative_gap < 1e-6)
    (True, True)
    >>> warm = smo(X, y, v, lam=1.0, eta=1.1, warm_start=cold)
    >>> bool(cold.dual <= warm.primal)  # the optimum does not fall with eta
    True
    """
    # numba is slow to import: only those who solve pay for it.
    from nerm.svm.nu_search import NuSearch
    from nerm.svm.rows import GramRows

    data = validated(
        X, y, viewpoint, lam, eta,
        kernel=kernel, variant=variant, sample_weight=sample_weight, neutrality_weight=neutrality_weight,
    )  # fmt: skip
    tol = as_nonnegative(tol, "tol", "Use a relative gap such as 1e-6")
    cache_mb = as_positive(cache_mb, "cache_mb", "Use a number of megabytes such as 500")
    limit = max(1_000_000, 200 * data.n) if max_iter is None else int(as_positive(max_iter, "max_iter"))
    if warm_start is not None and len(warm_start.a) != data.n:
        raise InvalidInputError(
            f"'warm_start' must belong to the same {data.n} rows",
            f"a result on {len(warm_start.a)} rows",
            "Start cold instead",
        )
    rows = GramRows(data, cache_mb)
    search = NuSearch(data, rows, tol, limit, callback)
    state, converged, status = search.solve(_start(data, warm_start))
    p = state.pieces
    return certified(
        data, state.a, p.nu_plus, p.nu_minus, rows.product,
        converged=converged, tol=tol, status=status,
        iterations=search.iterations, outer_iterations=search.outer, history=tuple(search.history),
    )  # fmt: skip


def _start(data: NeutralData, warm: NeutralSVM | None) -> Multipliers:
    """Return the multipliers to start from: an earlier result's, rescaled to the new bounds, or cold ones."""
    s, u, nu = data.sample_weight, data.neutrality_weight, data.eta / 2
    if warm is None or data.variant != "exact" or warm.variant != "exact":
        return Multipliers(np.zeros(data.n), nu * u, nu * u, nu, nu)
    from nerm.svm.nu_search import levels

    nu = data.eta * float(np.clip(warm.theta, 0.0, 1.0))
    old = Multipliers(np.minimum(warm.alpha, s), warm.beta_plus, warm.beta_minus, warm.nu_plus, warm.nu_minus)
    a = levels(data, old, nu, warm.scores)
    return make_pieces(data, nu, data.eta - nu).multipliers(a)
