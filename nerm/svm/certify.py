"""From levels a and nu to a certified result: feasible multipliers, a hypothesis, the gap between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nerm.kernels import Precomputed
from nerm.svm.data import NeutralData
from nerm.svm.intercept import best_intercept
from nerm.svm.pieces import Multipliers, make_pieces
from nerm.svm.result import NeutralSVM


def feasible(
    data: NeutralData, a: np.ndarray, nu_plus: float, nu_minus: float, intercept: bool = True
) -> tuple[np.ndarray, Multipliers]:
    """Return (a, multipliers) that satisfy every constraint of the dual, near the given ones.

    nu is clipped and scaled to nu^+ + nu^- = eta (raising nu only widens boxes), a is clipped into its
    interval and (with an intercept) balanced to sum zero, and the multipliers are the best ones that
    produce a.
    """
    if data.variant == "exact":
        plus, minus = max(0.0, nu_plus), max(0.0, nu_minus)
        total = plus + minus
        plus = data.eta * (plus / total) if total > 0 else 0.5 * data.eta
        nu_plus, nu_minus = plus, data.eta - plus
    pieces = make_pieces(data, nu_plus, nu_minus)
    a = pieces.balanced(a) if intercept else np.clip(a, pieces.low, pieces.high)
    m = pieces.multipliers(a)
    return m.alpha * data.y + (m.beta_plus - m.beta_minus) * data.viewpoint, m


def certified(
    data: NeutralData,
    a: np.ndarray,
    nu_plus: float,
    nu_minus: float,
    gram_product: Callable[[np.ndarray], np.ndarray],
    *,
    converged: bool,
    tol: float,
    status: str,
    intercept: bool = True,
    **facts: Any,
) -> NeutralSVM:
    """Return the result for levels a, with primal and dual computed afresh from K a."""
    a, m = feasible(data, a, nu_plus, nu_minus, intercept)
    G = gram_product(a) / data.lam
    half_norm = 0.5 * float(a @ G)
    b, left, right = best_intercept(data, G) if intercept else (0.0, 0.0, 0.0)
    scores = G + b
    primal = data.risk(scores) + half_norm + data.penalty(scores)
    dual = m.total - half_norm
    # Twice the tolerance: the search's own scores carry rounding that this fresh product does not.
    if converged and primal - dual > (2 * tol + 1e-13) * abs(primal):
        converged = False
        status = f"{status}; but a relative gap of {(primal - dual) / abs(primal):.1e} is left"
    support = np.flatnonzero(a)
    precomputed = isinstance(data.kernel, Precomputed)
    return NeutralSVM(
        alpha=m.alpha, beta_plus=m.beta_plus, beta_minus=m.beta_minus, nu_plus=m.nu_plus, nu_minus=m.nu_minus,
        a=a, intercept=b, intercept_interval=(left, right), scores=scores,
        lam=data.lam, eta=data.eta, variant=data.variant, kernel=data.kernel,
        support=support, support_vectors=None if precomputed else data.X[support], n_features=data.X.shape[1],
        primal=primal, dual=dual, converged=converged, status=status, **facts,
    )  # fmt: skip
