"""Preconditioned conjugate gradients for several right-hand sides at once."""

from collections.abc import Callable

import numpy as np

from nerm.typing import Floats


def conjugate_gradients(
    product: Callable[[Floats], Floats],
    precondition: Callable[[Floats], Floats],
    right: Floats,
    tol: float,
    limit: int,
) -> tuple[Floats, int]:
    """Solve A X = B for a positive definite A, each column of B by its own steps.

    Parameters
    ----------
    product
        Q -> A Q, for Q of the shape of B.
    precondition
        R -> M^-1 R, M an approximation of A.
    right
        B, (n, k).
    tol
        Stop when r' M^-1 r of every column is at most tol^2 times its first value.
    limit
        The largest number of products.

    Returns
    -------
    X, products

    >>> A = np.diag([1.0, 2.0, 4.0])
    >>> X, products = conjugate_gradients(lambda Q: A @ Q, lambda R: R.copy(), np.ones((3, 1)), 1e-12, 10)
    >>> X[:, 0].round(6).tolist(), products
    ([1.0, 0.5, 0.25], 3)
    """
    tiny = np.finfo(float).tiny
    x = np.zeros_like(right)
    r = right.copy()
    z = precondition(r)
    q = z.copy()
    size = (r * z).sum(axis=0)
    enough = tol**2 * size
    products = 0
    while products < limit and (size > enough).any():
        Aq = product(q)
        step = size / np.maximum((q * Aq).sum(axis=0), tiny)
        x += step * q
        r -= step * Aq
        z = precondition(r)
        last = size
        size = (r * z).sum(axis=0)
        q = z + size / np.maximum(last, tiny) * q
        products += 1
    return x, products
