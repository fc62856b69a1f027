"""L-BFGS on an objective that is a sum over rows: one place for its settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.optimize

from nerm.typing import Floats


def lbfgs(
    value_and_gradient: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    n: int,
    tol: float,
    max_iter: int,
    *,
    memory: int,
    bounds: Any = None,
    callback: Callable[[Floats], None] | None = None,
) -> Any:
    """Minimise a sum over n rows until no entry of the (projected) gradient of its mean exceeds tol.

    Returns
    -------
    scipy.optimize.OptimizeResult
        With the end point ``x`` and the steps ``nit``.
    """

    def mean(point: Floats) -> tuple[float, Floats]:
        value, gradient = value_and_gradient(point)
        return value / n, gradient / n

    options = {"maxiter": max_iter, "maxfun": 4 * max_iter, "maxcor": memory, "gtol": tol, "ftol": 0.0}
    return scipy.optimize.minimize(
        mean, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=callback, options=options
    )
