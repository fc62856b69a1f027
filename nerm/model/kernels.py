"""Kernels k(x, z): named kernels, a user's own callable, or a precomputed Gram matrix.

A kernel is an immutable object that maps two matrices of rows to the matrix of their kernel values. The
values are computed by scikit-learn (`sklearn.metrics.pairwise`), except for `RBF` on dense rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from nerm.errors import InvalidInputError
from nerm.model.blocks import EPS, row_squares, sum_error
from nerm.typing import Floats, Matrix
from nerm.validation import as_finite, as_floats, as_nonnegative, as_positive, check_finite, check_known

# The largest gamma ||x||^2 for which distances are computed from products, with an error of about eps^(5/6).
LARGEST_EXPONENT = EPS ** (-1 / 6)
CALLED_TILE = 1000  # rows and columns of K per kernel call in `Kernel.product`


@dataclass(frozen=True)
class Kernel(ABC):
    """A positive semidefinite function k(x, z).

    ``kernel(X, Z)`` maps rows (n, d) and (m, d), dense or sparse, to the (n, m) matrix of k(x_i, z_j). `name`
    is the name for ``on(kernel=...)``. `always_psd` is False if the function is not always positive
    semidefinite; the Gram matrix is then checked.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [3.0, 4.0]])
    >>> for kernel in (Linear(), RBF(gamma=0.1), Polynomial(gamma=1.0, degree=2)):
    ...     K = kernel(X, X)
    ...     assert np.allclose(kernel.diagonal(X), np.diag(K)) and np.linalg.eigvalsh(K).min() >= 0
    """

    name: ClassVar[str] = ""
    always_psd: ClassVar[bool] = True

    @abstractmethod
    def __call__(self, X: Any, Z: Any) -> Floats:
        """Return the (n, m) matrix of k(x_i, z_j)."""

    def fitted(self, X: Matrix, sample_weight: Floats | None = None) -> Self:
        """Return this kernel with data-dependent parameters computed from the weighted rows X, (n, d)."""
        return self

    def product(self, X: Any, Z: Any, weights: Floats) -> Floats:
        """Return K @ weights, (n, k), for weights of shape (m, k), where K is the (n, m) matrix kernel(X, Z).

        K is computed tile by tile. If Z is the same object as X, only one triangle of K is computed.
        """
        found = np.zeros((X.shape[0], weights.shape[1]))
        for i in range(0, X.shape[0], CALLED_TILE):
            for j in range(i if Z is X else 0, Z.shape[0], CALLED_TILE):
                rows, columns = slice(i, i + CALLED_TILE), slice(j, j + CALLED_TILE)
                part = self(X[rows], Z[columns])
                found[rows] += part @ weights[columns]
                if Z is X and j > i:
                    found[columns] += part.T @ weights[rows]
        return found

    def diagonal(self, X: Any) -> Floats:
        """Return k(x_i, x_i) for every row, (n,)."""
        tiles = (X[start : start + 100] for start in range(0, X.shape[0], 100))
        return np.concatenate([np.zeros(0), *(np.diag(self(tile, tile)) for tile in tiles)])

    def rounding(self, X: Any) -> float:
        """Bound the rounding error of k(x_i, x_j) / sqrt(k(x_i, x_i) k(x_j, x_j)) over all rows of X."""
        return 4 * EPS


@dataclass(frozen=True)
class _Pairwise(Kernel):
    """A kernel that scikit-learn computes; name and parameters are those of scikit-learn."""

    def __call__(self, X: Any, Z: Any) -> Floats:
        """Return the (n, m) matrix of k(x_i, z_j)."""
        from sklearn.metrics.pairwise import kernel_metrics

        return np.asarray(kernel_metrics()[self.name](X, Z, **self.parameters()))

    def parameters(self) -> dict[str, float]:
        """Return the parameters of the kernel as a dict of numbers; an error if gamma has no value yet."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        if isinstance(given.get("gamma"), str):
            must = f'gamma="{given["gamma"]}" must be computed from data before use'
            raise InvalidInputError(must, "no data", "Call kernel.fitted(X) first")
        return given


@dataclass(frozen=True)
class Linear(_Pairwise):
    """k(x, z) = x.z.

    Examples
    --------
    >>> Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([[11.,  2.]])
    """

    name: ClassVar[str] = "linear"

    def diagonal(self, X: Any) -> Floats:
        """Return ||x_i||^2."""
        return row_squares(X)

    def rounding(self, X: Any) -> float:
        """Bound the relative rounding error of a product of two rows, a sum over d columns."""
        return sum_error(X.shape[1])


@dataclass(frozen=True)
class _WithGamma(_Pairwise):
    """A kernel with a parameter gamma: a positive number, "scale" for 1 / (d Var(X)), or "auto" for 1 / d."""

    gamma: float | str = "scale"

    def __post_init__(self) -> None:
        if not (isinstance(self.gamma, str) and self.gamma in ("scale", "auto")):
            gamma = as_positive(self.gamma, "gamma", 'Use a positive number or "scale"')
            object.__setattr__(self, "gamma", gamma)

    def fitted(self, X: Matrix, sample_weight: Floats | None = None) -> Self:
        """Return the kernel with gamma = "scale" or "auto" replaced by its value on X, as in scikit-learn."""
        if not isinstance(self.gamma, str):
            return self
        variance = _variance(X, sample_weight) if self.gamma == "scale" else 1.0
        return replace(self, gamma=1.0 / (X.shape[1] * variance) if variance > 0 else 1.0)


def _middle(X: Floats) -> Floats:
    """Return the midrange (min + max) / 2 of each column, (d,); repeated rows do not change it."""
    return np.asarray(0.5 * X.min(axis=0) + 0.5 * X.max(axis=0))


@dataclass(frozen=True)
class RBF(_WithGamma):
    """k(x, z) = exp(-gamma ||x - z||^2), with k(x, x) = 1.

    Parameters
    ----------
    gamma : float, "scale" or "auto"
        Positive; "scale" is 1 / (d Var(X)) and "auto" 1 / d, computed when the problem is bound to data.

    Examples
    --------
    >>> float(RBF(gamma=0.5)(np.zeros((1, 2)), np.ones((1, 2)))[0, 0])
    0.3678...
    >>> RBF().fitted(np.array([[0.0, 0.0], [4.0, 4.0]]))
    RBF(gamma=0.125)
    """

    name: ClassVar[str] = "rbf"

    def __call__(self, X: Any, Z: Any) -> Floats:
        """Return the (n, m) matrix of k(x_i, z_j).

        The exponents are computed from one product of shifted rows,

            -gamma ||x - z||^2 = (2 gamma x, gamma ||x||^2, 1)'(z, -1, -gamma ||z||^2),

        or from differences of rows if this would lose digits. Sparse rows are left to scikit-learn.
        """
        if sp.issparse(X) or sp.issparse(Z):
            return super().__call__(X, Z)
        gamma = self.parameters()["gamma"]
        with np.errstate(over="ignore", invalid="ignore"):
            middle = _middle(Z)
            x, z = X - middle, Z - middle
            x_squares, z_squares = gamma * row_squares(x), gamma * row_squares(z)
        if np.append(x_squares, z_squares).max(initial=0.0) <= LARGEST_EXPONENT:
            left = np.column_stack([2 * gamma * x, x_squares, np.ones(len(x))])
            values = left @ np.column_stack([z, -np.ones(len(z)), -z_squares]).T
            np.exp(np.minimum(values, 0.0, out=values), out=values)
            if X is Z:
                np.fill_diagonal(values, 1.0)
            return values
        from scipy.spatial.distance import cdist

        return np.asarray(np.exp(-gamma * cdist(X, Z, "sqeuclidean")))

    def diagonal(self, X: Any) -> Floats:
        """Return k(x_i, x_i) = 1 for every row, (n,)."""
        return np.ones(X.shape[0])

    def rounding(self, X: Any) -> float:
        """Bound the rounding error of gamma ||x - z||^2, computed from products or differences of rows."""
        rows = X if sp.issparse(X) else X - _middle(X)
        largest = self.parameters()["gamma"] * float(row_squares(rows).max(initial=0.0))
        if not sp.issparse(X) and not largest <= LARGEST_EXPONENT:
            largest = 0.0
        return sum_error(X.shape[1] + 2) * (2 + 4 * largest)


@dataclass(frozen=True)
class Polynomial(_WithGamma):
    """k(x, z) = (gamma x.z + coef0)^degree, with coef0 >= 0 so that it is positive semidefinite.

    Examples
    --------
    >>> Polynomial(gamma=1.0, degree=2, coef0=1.0)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[144.]])
    """

    name: ClassVar[str] = "polynomial"
    degree: int = 3
    coef0: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if as_finite(self.degree, "degree") != int(self.degree) or self.degree < 1:
            must = "'degree' must be a positive integer"
            raise InvalidInputError(must, repr(self.degree), "Use 2 or 3, for instance")
        as_nonnegative(self.coef0, "coef0", "A negative one is not positive semidefinite")

    def rounding(self, X: Any) -> float:
        """Bound the relative rounding error: `degree` times the error of a product of rows."""
        return self.degree * sum_error(X.shape[1])


@dataclass(frozen=True)
class Sigmoid(_WithGamma):
    """k(x, z) = tanh(gamma x.z + coef0).

    It is not positive semidefinite in general, so the Gram matrix of the data is checked.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0]])
    >>> gram = Sigmoid(gamma=1.0)(X, X)
    >>> bool(np.linalg.det(gram) < 0)  # an eigenvalue is negative
    True
    >>> check_gram(gram, psd=True)
    Traceback (most recent call last):
        ...
    nerm.errors.InvalidInputError: a Gram matrix must be positive semidefinite for the problem to be convex.
    Got ...
    """

    name: ClassVar[str] = "sigmoid"
    always_psd: ClassVar[bool] = False
    coef0: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        as_finite(self.coef0, "coef0")


@dataclass(frozen=True)
class Custom(Kernel):
    """A kernel from a user's function that maps rows (n, d) and (m, d) to the (n, m) kernel values.

    A callable passed as `kernel` becomes such a kernel. Its Gram matrix is checked to be symmetric and
    positive semidefinite.

    Examples
    --------
    >>> intersection = Custom(lambda X, Z: np.minimum(X[:, None, :], Z[None, :, :]).sum(axis=2))
    >>> intersection(np.array([[1.0, 3.0]]), np.array([[2.0, 2.0], [0.0, 5.0]]))
    array([[3., 3.]])
    """

    name: ClassVar[str] = "callable"
    always_psd: ClassVar[bool] = False
    function: Callable[[Any, Any], Any] = None  # type: ignore[assignment]

    def __call__(self, X: Any, Z: Any) -> Floats:
        """Return function(X, Z), checked for its shape and for finite entries."""
        values = as_floats(self.function(X, Z), "kernel", "Return real numbers")
        expected = (X.shape[0], Z.shape[0])
        if values.shape != expected:
            must = f"a kernel must return one value for each pair of rows, here an array of shape {expected}"
            do = "Return the matrix k(x_i, z_j) for all rows of its two arguments"
            raise InvalidInputError(must, f"shape {values.shape}", do)
        check_finite(values, "kernel", "Check the kernel for overflow or division by zero")
        return values


@dataclass(frozen=True)
class Precomputed(Kernel):
    """A precomputed kernel: X is the (n, n) Gram matrix; for m new rows, X holds k(x_new, x_i), (m, n).

    Examples
    --------
    >>> import nerm
    >>> x, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), [-1, -1, 1, 1]
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2()
    >>> solution = objective.on(x @ x.T, y, kernel="precomputed").solve()
    >>> solution.predict(np.array([[3.0], [-3.0]]) @ x.T)
    array([ 1, -1])
    """

    name: ClassVar[str] = "precomputed"
    always_psd: ClassVar[bool] = False

    def __call__(self, X: Any, Z: Any) -> Floats:
        """Return X itself, which already holds the kernel values; Z is ignored."""
        return np.asarray(X)

    def diagonal(self, X: Any) -> Floats:
        """Return the diagonal of the Gram matrix."""
        return np.diag(X).copy()


def names() -> dict[str, type[Kernel]]:
    """Return a dict of all named kernel classes.

    Examples
    --------
    >>> sorted(names())
    ['linear', 'poly', 'polynomial', 'precomputed', 'rbf', 'sigmoid']
    """
    known = {cls.name: cls for cls in (Linear, RBF, Polynomial, Sigmoid, Precomputed)}
    return {**known, "poly": Polynomial}


def resolve(kernel: Any) -> Kernel:
    """Turn a name, a callable or a Kernel into a Kernel.

    Examples
    --------
    >>> resolve("rbf")
    RBF(gamma='scale')
    >>> resolve(lambda X, Z: X @ Z.T)(np.array([[2.0]]), np.array([[3.0]]))
    array([[6.]])
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        got = f"the class {kernel.__name__}"
        raise InvalidInputError("'kernel' must be an instance", got, f"Write {kernel.__name__}()")
    if isinstance(kernel, str):
        check_known(kernel, "'kernel'", names())
        return names()[kernel]()
    if callable(kernel):
        return Custom(kernel)
    must = "'kernel' must be a name, a callable, a nerm.kernels.Kernel, or None"
    do = 'For a Gram matrix pass it as X with kernel="precomputed"'
    raise InvalidInputError(must, type(kernel).__name__, do)


def check_gram(gram: Any, *, psd: bool = False) -> Floats:
    """Check that a Gram matrix is square, finite and symmetric; with psd=True also positive semidefinite.

    Return the (n, n) matrix without rounding errors: entries K_ij and K_ji that differ by at most 1e-8 times
    the largest entry are averaged, and, with psd=True, negative eigenvalues above -1e-8 n times the largest
    entry are set to 0, so that the problem is convex.

    Examples
    --------
    >>> check_gram([[2.0, 1.0 + 1e-12], [1.0 - 1e-12, 2.0]], psd=True)
    array([[2., 1.],
           [1., 2.]])
    >>> check_gram([[2.0, 1.0], [0.0, 2.0]])
    Traceback (most recent call last):
        ...
    nerm.errors.InvalidInputError: a Gram matrix must be symmetric. Got K[0, 1] = 1 but K[1, 0] = 0. Check the
    ...
    """
    K = as_floats(gram, "gram", "Pass the kernel values as numbers")
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        do = "Pass k(x_i, x_j) for all pairs of training rows"
        raise InvalidInputError("a Gram matrix must be square", f"shape {K.shape}", do)
    check_finite(K, "gram", "Check the kernel for overflow")
    scale = max(float(np.abs(K).max(initial=0.0)), np.finfo(float).tiny)
    asymmetry = float(np.abs(K - K.T).max(initial=0.0))
    if asymmetry > 1e-8 * scale:
        i, j = np.unravel_index(int(np.abs(K - K.T).argmax()), K.shape)
        must = "a Gram matrix must be symmetric"
        got = f"K[{i}, {j}] = {K[i, j]:g} but K[{j}, {i}] = {K[j, i]:g}"
        raise InvalidInputError(must, got, "Check the kernel, or symmetrise it with (K + K.T) / 2")
    K = (K + K.T) / 2 if asymmetry else K
    return _positive(K, scale) if psd else K


def _positive(K: Floats, scale: float) -> Floats:
    """Return K, or the nearest positive semidefinite matrix; raise an error if it differs beyond rounding.

    The test is a Cholesky factorization of K plus a small multiple of the identity, which is cheaper than
    eigenvalues. `scale` is the largest absolute entry of K.
    """
    try:
        np.linalg.cholesky(K + 4 * EPS * scale * len(K) * np.eye(len(K)))
        return K
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(K)
    if values[0] < -1e-8 * scale * len(K):
        must = "a Gram matrix must be positive semidefinite for the problem to be convex"
        do = "Use another kernel or other parameters (the sigmoid kernel is indefinite on most data)"
        raise InvalidInputError(must, f"a smallest eigenvalue of {values[0]:g}", do)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _variance(X: Matrix, sample_weight: Floats | None) -> float:
    """Return the variance of all entries of X with weighted rows; 0 if it is only a rounding error."""
    n = X.shape[0]
    share = np.full(n, 1.0 / n) if sample_weight is None else sample_weight / sample_weight.sum()
    mean = float(share @ np.asarray(X.mean(axis=1)).ravel())
    if not sp.issparse(X):
        return float(share @ np.mean((X - mean) ** 2, axis=1))
    variance = float(share @ np.asarray(X.power(2).mean(axis=1)).ravel()) - mean**2
    return variance if variance > 1e-14 * mean**2 else 0.0  # constant data: only cancellation errors remain


__all__ = [
    "RBF",
    "Custom",
    "Kernel",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "check_gram",
    "names",
    "resolve",
]
