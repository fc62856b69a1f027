"""Linear systems: Cholesky factors of singular matrices, and preconditioned conjugate gradients."""

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpstrf

from nerm.typing import Floats, Ints


def pivoted_cholesky(K: Floats, tol: float) -> tuple[Floats, Ints]:
    """Factor K until the diagonal of K - Z Z' is at most tol times the largest diagonal entry of K.

    Return Z, (n, rank), and the pivots: the rows of K that Z Z' reproduces, in the order in which Z[pivots]
    is lower triangular. The linear hypothesis Z w equals the kernel expansion K c with Z[pivots]' c = w,
    where c is 0 except on the pivots.

    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    >>> Z, pivots = pivoted_cholesky(X @ X.T, 1e-12)
    >>> Z.shape, pivots, np.allclose(Z @ Z.T, X @ X.T)
    ((3, 2), array([2, 0], dtype=int32), True)
    """
    L, order, rank, _ = dpstrf(K, tol=tol * float(K.diagonal().max(initial=0.0)), lower=1)
    Z = np.zeros((len(K), rank))
    Z[order - 1] = np.tril(L[:, :rank])
    return Z, order[:rank] - 1


def conjugate_gradients(
    product: Callable[[Floats], Floats],
    precondition: Callable[[Floats], Floats],
    right: Floats,
    tol: float,
    limit: int,
) -> tuple[Floats, int]:
    """Solve A X = B for a positive definite A by preconditioned conjugate gradients, column by column.

    Parameters
    ----------
    product
        The function Q -> A Q, for Q of the shape of B.
    precondition
        The function R -> M^-1 R, where M approximates A.
    right
        B, (n,) or (n, k).
    tol
        The tolerance: stop when r' M^-1 r of every column's residual r is at most tol^2 times its first
        value.
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
        q *= size / np.maximum(last, tiny)
        q += z
        products += 1
    return x, products
