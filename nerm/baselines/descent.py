"""L-BFGS on an objective that is a sum over rows: one place for its settings."""

from collections.abc import Callable
from typing import Any

import scipy.optimize

from nerm.typing import Floats

Total = Callable[[Floats], tuple[float, Floats]]


def lbfgs(total: Total, start: Floats, n: int, tol: float, max_iter: int, *, memory: int, **options: Any) -> Any:
    """Minimise a sum over n rows until no entry of the (projected) gradient of its mean exceeds tol.

    Parameters
    ----------
    total
        Returns the sum and its gradient.
    start, memory
        Where to begin, and how many steps L-BFGS remembers.
    options
        Passed to `scipy.optimize.minimize`: ``bounds``, ``callback``.

    Returns
    -------
    scipy.optimize.OptimizeResult
        With the end point ``x`` and the steps ``nit``.
    """

    def mean(point: Floats) -> tuple[float, Floats]:
        value, gradient = total(point)
        return value / n, gradient / n

    limits = {"maxiter": max_iter, "maxfun": 4 * max_iter, "maxcor": memory, "gtol": tol, "ftol": 0.0}
    return scipy.optimize.minimize(mean, start, jac=True, method="L-BFGS-B", options=limits, **options)
