"""Linear systems: a pivoted Cholesky factor, and preconditioned conjugate gradients.

The Cholesky factorization K = Z Z' + E of a Gram matrix computes only the columns of K that it needs. The
columns of the pivots are exact: K[:, pivots] = Z L', where L = Z[pivots] is lower triangular. So the linear
hypothesis Z w equals the kernel expansion K c, where L' c = w and c is 0 except on the pivots. Its scores and
its norm c'Kc = ||w||^2 are exact. The error E matters only for the dual bound, which needs c'Kc for another
c.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from nerm.solvers import clock
from nerm.typing import Floats, Ints

Columns = Callable[[Ints], Floats]
BLOCK = 64


@dataclass(frozen=True)
class Factor:
    """A low-rank factorization K = Z Z' + E of a Gram matrix.

    Attributes
    ----------
    Z
        (n, rank).
    pivots
        The rows that Z reproduces, in the order in which Z[pivots] is lower triangular.
    residual
        The largest diagonal entry of E.
    """

    Z: Floats
    pivots: Ints
    residual: float

    def expansion(self, w: Floats) -> Floats:
        """Return the coefficients c, (rank,), of the pivots with K[:, pivots] c = Z w."""
        if len(self.pivots) == 0:  # K is 0; scipy before 1.14 solves no empty system
            return np.zeros(0)
        return np.asarray(solve_triangular(self.Z[self.pivots].T, w, lower=False))


def pivoted_cholesky(
    columns: Columns, diagonal: Floats, tol: float, max_rank: int | None = None, deadline: float = clock.NEVER
) -> Factor:
    """Factor K = Z Z' + E until the diagonal of E is at most tol times the largest diagonal entry of K.

    The factorization stops earlier at rank `max_rank` or at the deadline. Pivots are chosen in blocks of the
    largest residuals, so that most work is in matrix products. Inside a block the pivots are ordered
    greedily; a pivot is dropped if its residual is far below that of the first pivot.

    Parameters
    ----------
    columns
        A function of indices that returns K[:, indices].
    diagonal
        The diagonal of K, (n,).

    Returns
    -------
    Factor

    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    >>> found = pivoted_cholesky(lambda i: X @ X[i].T, (X**2).sum(axis=1), 1e-12)
    >>> found.Z.shape, np.allclose(found.Z @ found.Z.T, X @ X.T)
    ((3, 2), True)
    """
    n = len(diagonal)
    limit = n if max_rank is None else min(max_rank, n)
    rest = np.array(diagonal, dtype=float)
    floor = tol * max(float(rest.max()), 1e-300)
    storage, pivots = np.empty((n, min(limit, 4 * BLOCK)), order="F"), np.zeros(0, dtype=int)
    while len(pivots) < limit and rest.max() > floor and not (len(pivots) and clock.is_up(deadline)):
        rank = len(pivots)
        Z, count = storage[:, :rank], min(BLOCK, limit - rank)
        block = np.argpartition(-rest, count - 1)[:count]
        block = block[rest[block] > floor]
        S = columns(block) - Z @ Z[block].T
        order, L = _small_cholesky(S[block], floor)
        new = solve_triangular(L, S[:, order].T, lower=True).T
        pivots = np.concatenate([pivots, block[order]])
        if len(pivots) > storage.shape[1]:
            storage = np.hstack([Z, np.empty((n, min(limit, 2 * len(pivots)) - rank), order="F")])
        storage[:, rank : len(pivots)] = new
        rest -= np.einsum("ij,ij->i", new, new)
        rest[pivots] = 0.0
    Z = storage[:, : len(pivots)]
    # The rows of pivots are triangular in exact arithmetic; make them so, for the solve in `expansion`.
    Z[pivots] = np.tril(Z[pivots])
    return Factor(np.ascontiguousarray(Z), pivots, float(max(rest.max(), 0.0)))


def _small_cholesky(S: Floats, floor: float) -> tuple[Ints, Floats]:
    """Return the greedy pivots of a small matrix and their lower triangular factor.

    The factorization stops when the largest residual is at most `floor` or a tenth of the first pivot.
    """
    rest = S.diagonal().copy()
    least = max(floor, 0.1 * float(rest.max()))
    L = np.zeros_like(S)
    order: list[int] = []
    for k in range(len(S)):
        p = int(np.argmax(rest))
        if k and rest[p] <= least:
            break
        column = (S[:, p] - L[:, :k] @ L[p, :k]) / np.sqrt(rest[p])
        L[:, k] = column
        rest = np.maximum(rest - column**2, 0.0)
        rest[[*order, p]] = -1.0
        order.append(p)
    return np.array(order), L[order][:, : len(order)]


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
        B, (n, k).
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
        q = z + size / np.maximum(last, tiny) * q
        products += 1
    return x, products
