"""The radii of a class and its Rademacher complexity.

The complexity is bounded in closed form or estimated by Monte Carlo. For
`F = { w.x + b : ||w|| <= B, |b| <= beta }`, n rows x_i with viewpoints v_i, and independent random signs
sigma_i, the empirical Rademacher complexity of the class vF of the functions v f is::

    Rhat_n(vF) = E_sigma sup_f (1/n) sum_i sigma_i v_i f(x_i)
               = (1/n) ( B E ||sum_i sigma_i v_i x_i|| + beta E |sum_i sigma_i v_i| )

Its expectation over the data is R_n(vF). Without a viewpoint v is 1, and Rhat_n(vF) is the complexity of F
itself, which a bound on the risk needs.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.model import kernels
from nerm.splitting import as_count
from nerm.typing import Floats
from nerm.validation import as_matrix, as_nonnegative, as_positive, check_finite
from nerm.viewpoint import as_numbers

_BOUNDED_INPUTS = "The inputs must be bounded: scale them, or use a bounded kernel"
_FINITE_CLASS = "The class must have finite complexity"


def as_delta(delta: Any) -> float:
    """Return `delta`, the probability that a bound fails.

    Raise an error unless it is strictly between 0 and 1.
    """
    if not isinstance(delta, float | int | np.floating) or not 0.0 < delta < 1.0:
        do = "The bound holds with probability 1 - delta: use 0.05, for instance"
        raise InvalidInputError("'delta' must be strictly between 0 and 1", repr(delta), do)
    return float(delta)


def as_rows(n: Any) -> int:
    """Return n, the number of rows; raise an error unless it is a positive integer."""
    return as_count(n, "n", do="Pass the number of rows")


def norm_radius(lam: float, n: int, at_zero: float = 1.0, *, gap: float = 0.0) -> float:
    """Return a bound on ||w|| that does not depend on eta.

    It holds for every w whose objective is within `gap` (mean form) of the optimum. The objective is
    R_n + Omega + eta C_n, where R_n is the empirical risk with a convex loss phi >= 0, C_n the relaxed
    neutrality risk with a convex surrogate psi, and Omega = (lam / 2n) ||w||^2. `at_zero` is phi(0). The
    smaller of two bounds is returned::

        ||w||  <=  sqrt(2n (phi(0) + gap) / lam)
        ||w||  <=  sqrt(n phi(0) / lam) + sqrt(2n gap / lam)

    The first bound follows from a comparison with f = 0 and from C_n >= psi(0). The second bound is a bound
    on the norm of the optimum plus a bound on the distance to the optimum, by strong convexity. Its first
    summand is proved as follows. For the optimum (w, b), t = 1 minimises the objective at (t w, t b) over t.
    Let R' and C' be the derivatives of R_n and C_n in t, from the left at t = 1. Then
    R' + 2 Omega + eta C' <= 0. By convexity R' >= R_n - R_n(0) >= -phi(0) and C' >= C_n - C_n(0) >= 0, where
    R_n(0) and C_n(0) are the values at f = 0. So 2 Omega <= phi(0).

    Examples
    --------
    >>> norm_radius(lam=5.0, n=100)
    4.4721...
    """
    strength = as_positive(lam, "lam", "The norm is bounded only by a positive regularization") / as_rows(n)
    phi = as_nonnegative(at_zero, "at_zero")
    gap = as_nonnegative(gap, "gap", "Pass the certified gap, primal minus dual, in mean form")
    near_optimum = math.sqrt(phi / strength) + math.sqrt(2 * gap / strength)
    return min(near_optimum, math.sqrt(2 * (phi + gap) / strength))


def intercept_radius(
    radius: float, input_radius: float, *, flat_from: float = 1.0, smallest_viewpoint: float = 1.0
) -> float:
    """Return a bound on `|b|` that holds for *some* optimum.

    The bound is m + B R with m = `flat_from` / min(1, `smallest_viewpoint`). It assumes that phi and psi
    never increase and are constant from the margin `flat_from` on (hinge: 1), and that `|v|` is at least
    `smallest_viewpoint`. `radius` is B, a bound on ||w||, and `input_radius` is R, a bound on ||x||. For
    hinges and v = ±1 the bound is 1 + B R.

    Proof for b > 0: if all scores f_i exceed m, decreasing b increases no term. So some optimum has an f_i
    that is at most m, and `|w.x_i| <= B R`. The optimal b need not be unique, so check that the b of your
    solution satisfies the bound.

    Examples
    --------
    >>> intercept_radius(radius=2.0, input_radius=3.0)
    7.0
    """
    B = as_nonnegative(radius, "radius", "Bound ||w|| first, see nerm.bounds.norm_radius")
    R = as_nonnegative(input_radius, "input_radius", _BOUNDED_INPUTS)
    unbounded = "A viewpoint of 0 leaves the intercept unbounded"
    v = as_positive(smallest_viewpoint, "smallest_viewpoint", unbounded)
    return as_nonnegative(flat_from, "flat_from") / min(1.0, v) + B * R


def radius_from_data(norm: Any, delta: float, *, base: float = 1.0) -> tuple[float, float]:
    """Return a radius B_k >= `norm` from a fixed grid, and its part delta_k of delta.

    B_k = base 2^k is the smallest point of the grid k = 0, 1, 2, ... that is at least `norm`. A bound that
    holds for a fixed radius does not hold for a radius computed from the data. It holds for all radii of a
    grid fixed in advance, by a union bound with delta_k = delta / ((k+1)(k+2)), whose sum over all k is
    delta. Use B_k and delta_k in the bound in place of the norm and delta. For a pair `(||w||, |b|)` call the
    function twice, the second time with the delta_k of the first.

    Examples
    --------
    >>> radius_from_data(3.0, delta=0.06)
    (4.0, 0.005)
    """
    size = as_nonnegative(norm, "norm", _FINITE_CLASS)
    start = as_positive(base, "base")
    k = 0
    while start * 2.0**k < size:
        k += 1
    return start * 2.0**k, as_delta(delta) / ((k + 1) * (k + 2))


def rademacher_linear(
    X: Any, radius: float, *, intercept_radius: float = 0.0, viewpoint: Any = None
) -> float:
    """Return an upper bound on the empirical Rademacher complexity of a linear class.

    The class vF consists of the functions v (w.x + b) with ||w|| <= B and `|b| <= beta`. The bound is::

        (B/n) sqrt(sum_i v_i^2 ||x_i||^2) + (beta/n) sqrt(sum_i v_i^2)

    X is (n, d), dense or sparse, and viewpoint is (n,), by default ones; radius is B and intercept_radius is
    beta.

    Examples
    --------
    >>> rademacher_linear([[3.0, 4.0], [0.0, 0.0]], radius=2.0, intercept_radius=0.0)
    5.0
    """
    squares = kernels.Linear().diagonal(as_matrix(X))
    return rademacher_kernel(squares, radius, intercept_radius=intercept_radius, viewpoint=viewpoint)


def rademacher_kernel(
    gram: Any, radius: float, *, intercept_radius: float = 0.0, viewpoint: Any = None
) -> float:
    """Return an upper bound on the empirical Rademacher complexity of a kernel class.

    The class vF consists of the functions v (w(x) + b) with `|b| <= beta` and ||w|| <= B in the function
    space of the kernel. The bound is::

        (B/n) sqrt(sum_i v_i^2 k_ii) + (beta/n) sqrt(sum_i v_i^2)

    `gram` is the (n, n) Gram matrix or its diagonal k_ii = k(x_i, x_i), (n,) (see
    `nerm.kernels.Kernel.diagonal`). viewpoint is (n,), by default ones; radius is B and intercept_radius is
    beta. The bound follows from Jensen's inequality for the square root, and is a few per cent too large.

    Examples
    --------
    >>> rademacher_kernel([1.0, 1.0, 1.0, 1.0], radius=2.0, intercept_radius=1.0, viewpoint=[1, -1, 1, -1])
    1.5
    """
    diagonal = _diagonal(gram)
    n = len(diagonal)
    v = _viewpoint(viewpoint, n)
    B, beta = _radii(radius, intercept_radius)
    return float((B * np.sqrt(v**2 @ diagonal) + beta * np.sqrt(v @ v)) / n)


def rademacher_population(
    n: int, radius: float, input_radius: float, *, intercept_radius: float = 0.0, viewpoint_bound: float = 1.0
) -> float:
    """Return an upper bound on the expected Rademacher complexity of a class.

    The class vF consists of the functions v (w.x + b) with ||w|| <= B and `|b| <= beta`. Its empirical
    complexity Rhat_n(vF) has an expectation R_n(vF) of at most::

        G (B R + beta) / sqrt(n)

    if ||x|| <= R (with a kernel: k(x, x) <= R^2) and `|v| <= G` for every x. radius is B, input_radius is R,
    intercept_radius is beta and viewpoint_bound is G.

    Examples
    --------
    >>> rademacher_population(100, radius=2.0, input_radius=1.0, intercept_radius=3.0)
    0.5
    """
    R = as_nonnegative(input_radius, "input_radius", _BOUNDED_INPUTS)
    do = "The viewpoint must be bounded: use its sign, for instance"
    G = as_nonnegative(viewpoint_bound, "viewpoint_bound", do)
    B, beta = _radii(radius, intercept_radius)
    return G * (B * R + beta) / as_rows(n) ** 0.5


@dataclass(frozen=True)
class MonteCarloComplexity:
    """A Monte Carlo estimate of the empirical Rademacher complexity Rhat_n(vF).

    It is the mean over draws of random signs, with its standard error (see `rademacher_monte_carlo`). `scale`
    is tau with tau^2 = (1/n^2) sum_i v_i^2 (B sqrt(k_ii) + beta)^2. If one sign changes, the supremum
    changes by at most `2 |v_i| (B sqrt(k_ii) + beta) / n`. So by McDiarmid's inequality the supremum of one
    draw is sub-Gaussian with parameter tau.

    Examples
    --------
    >>> made = rademacher_monte_carlo([[1.0], [1.0]], radius=1.0, draws=4000)
    >>> abs(made.estimate - 0.5) < 5 * made.standard_error  # E |s_1 + s_2| / 2 = 1/2
    True
    >>> round(made.scale, 4), made.estimate < made.upper(0.05) < made.upper(0.01)
    (0.7071, True)
    """

    estimate: float
    standard_error: float
    draws: int
    scale: float

    def upper(self, delta: float) -> float:
        """Return an upper bound on Rhat_n(vF) that holds with probability 1 - delta.

        It is estimate + tau sqrt(2 ln(1/delta) / draws), where tau is `scale`. If it is used in another bound
        that fails with probability delta', the result holds with probability 1 - delta - delta'.
        """
        return self.estimate + self.scale * float(np.sqrt(2.0 * np.log(1.0 / as_delta(delta)) / self.draws))


def rademacher_monte_carlo(
    X: Any,
    radius: float,
    *,
    kernel: Any = "linear",
    intercept_radius: float = 0.0,
    viewpoint: Any = None,
    draws: int = 1000,
    random_state: int | None = 0,
) -> MonteCarloComplexity:
    """Estimate the empirical Rademacher complexity Rhat_n(vF) by Monte Carlo.

    The class vF consists of the functions v (w.x + b) with ||w|| <= B and `|b| <= beta`. The estimate is the
    mean over `draws` vectors of random signs. It is usually a few per cent below the upper bound of
    `rademacher_kernel`. X is (n, d); with `kernel="precomputed"` it is the (n, n) Gram matrix. viewpoint is
    (n,), by default ones; radius is B and intercept_radius is beta.

    Examples
    --------
    >>> round(rademacher_monte_carlo([[1.0], [1.0]], radius=1.0).estimate, 1)  # the limit is 1/2
    0.5
    """
    B, beta = _radii(radius, intercept_radius)
    draws = as_count(draws, "draws")
    rows: Any = as_matrix(X)
    kernel = kernels.resolve(kernel).fitted(rows)
    gram = None if isinstance(kernel, kernels.Linear) else kernels.check_gram(kernel(rows, rows))
    diagonal = kernel.diagonal(rows) if gram is None else _diagonal(gram)
    n = len(diagonal)
    v = _viewpoint(viewpoint, n)
    rng = np.random.default_rng(random_state)
    suprema = []
    batch = max(1, min(draws, 4_000_000 // n))  # a batch of signs takes at most about 32 MB
    for start in range(0, draws, batch):
        signed = (2.0 * rng.integers(0, 2, size=(min(batch, draws - start), n)) - 1.0) * v
        if gram is None:
            norms = np.linalg.norm(signed @ rows, axis=1)
        else:
            norms = np.sqrt(np.maximum(np.einsum("ij,ij->i", signed @ gram, signed), 0.0))
        suprema.append((B * norms + beta * np.abs(signed.sum(axis=1))) / n)
    values = np.concatenate(suprema)
    return MonteCarloComplexity(
        estimate=float(values.mean()),
        standard_error=float(values.std(ddof=1) / np.sqrt(draws)) if draws > 1 else float("inf"),
        draws=draws,
        scale=float(np.sqrt(v**2 @ (B * np.sqrt(diagonal) + beta) ** 2) / n),
    )


def _radii(radius: Any, intercept_radius: Any) -> tuple[float, float]:
    """Check and return B and beta, the bounds on ||w|| and `|b|`."""
    B = as_nonnegative(radius, "radius", f"{_FINITE_CLASS}: bound ||w||, see nerm.bounds.norm_radius")
    do = f"{_FINITE_CLASS}: bound |b|, see nerm.bounds.intercept_radius"
    return B, as_nonnegative(intercept_radius, "intercept_radius", do)


def _viewpoint(viewpoint: Any, n: int) -> Floats:
    """Return the viewpoint, (n,); if it is None, return ones, for which the class vF is F."""
    return np.ones(n) if viewpoint is None else as_numbers(viewpoint, n)


def _diagonal(gram: Any) -> Floats:
    """Return the diagonal k(x_i, x_i), (n,), of a Gram matrix, or check a given diagonal.

    No entry may be negative.
    """
    values = np.asarray(gram, dtype=float)
    diagonal = np.diag(kernels.check_gram(values)).copy() if values.ndim == 2 else values
    if diagonal.ndim != 1 or diagonal.size == 0:
        must = "'gram' must be a square matrix or its diagonal"
        raise InvalidInputError(must, f"shape {values.shape}", "Pass all k(x_i, x_j), or all k(x_i, x_i)")
    check_finite(diagonal, "gram", f"{_FINITE_CLASS}: check the kernel for overflow")
    if (diagonal < 0).any():
        i = int(np.argmin(diagonal))
        got = f"{diagonal[i]:g} at index {i}"
        raise InvalidInputError("k(x, x) must be nonnegative", got, "Use a positive semidefinite kernel")
    return diagonal
