"""The radii of a class and its Rademacher complexity, in closed form and by Monte Carlo.

For `F = { w.x + b : ||w|| <= B, |b| <= beta }` the supremum is explicit and splits::

    Rhat_n(vF) = E_sigma sup_f (1/n) sum_i sigma_i v_i f(x_i)
               = (1/n) ( B E ||sum_i sigma_i v_i x_i|| + beta E |sum_i sigma_i v_i| )

Without a viewpoint (v = 1) this is the complexity of F itself, for the risk.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.errors import InvalidInputError
from nerm.model import kernels
from nerm.splitting import as_count
from nerm.typing import Floats
from nerm.validation import as_matrix, as_nonnegative, as_positive, as_vector, check_finite

_BOUNDED_INPUTS = "The inputs must be bounded: scale them, or use a bounded kernel"
_FINITE_CLASS = "The class must have finite complexity"


def as_delta(delta: Any) -> float:
    """Return a probability of failure strictly between 0 and 1."""
    if not isinstance(delta, float | int | np.floating) or not 0.0 < delta < 1.0:
        do = "The bound holds with probability 1 - delta: use 0.05, for instance"
        raise InvalidInputError("'delta' must be strictly between 0 and 1", repr(delta), do)
    return float(delta)


def as_rows(n: Any) -> int:
    """Return n, the number of rows."""
    return as_count(n, "n", do="Pass the number of rows")


def norm_radius(lam: float, n: int, at_zero: float = 1.0, *, gap: float = 0.0) -> float:
    """Return a bound on ||w|| that does not depend on eta.

    It holds for every w whose objective is within `gap` (mean form) of the optimum. The problem is
    R_n + Omega + eta C_n with Omega = (lam / 2n) ||w||^2, convex phi >= 0 and convex psi; `at_zero` is
    phi(0). The smaller of two bounds is returned::

        ||w||  <=  sqrt(2n (phi(0) + gap) / lam)
        ||w||  <=  sqrt(n phi(0) / lam) + sqrt(2n gap / lam)

    The first compares w with f = 0 and uses C_n >= psi(0). The second bounds the optimum and adds the
    distance to it, which strong convexity limits. The optimum (w, b) minimises the objective at (t w, t b)
    over t, so the derivatives from the left at t = 1 satisfy R' + 2 Omega + eta C' <= 0. By convexity
    R' >= R - R(0) >= -phi(0) and C' >= C - C(0) >= 0, so 2 Omega <= phi(0).

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
    """Return a bound on `|b|` that *some* optimum meets: `flat_from / min(1, |v|) + B R`.

    For phi and psi that never increase and are constant from the margin `flat_from` on (hinges: 1), and `|v|`
    at least `smallest_viewpoint`. If all f_i exceed `flat_from / min(1, |v|)`, lowering b raises no term; so
    some optimum has an f_i at or below it, and `|w.x_i| <= B R`. For hinges and v = ±1 this is 1 + B R. The
    optimum in b can be an interval: check the b at hand.

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
    """Return (B_k, delta_k): the first radius B_k = base 2^k that holds `norm`, and its share of delta.

    A bound for a fixed radius does not hold for one read off the data. It does for a grid fixed in advance,
    by a union bound: delta_k = delta / ((k+1)(k+2)), which sums to delta over k = 0, 1, 2, ... Use delta_k in
    place of delta. For a pair `(||w||, |b|)` apply it twice, the second time with the first share.

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
    """Return (B/n) sqrt(sum v_i^2 ||x_i||^2) + (beta/n) sqrt(sum v_i^2) >= Rhat_n(vF), for dense or sparse X.

    X is (n, d), viewpoint (n,); radius is B, intercept_radius beta.

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
    """Return (B/n) sqrt(sum v_i^2 k_ii) + (beta/n) sqrt(sum v_i^2) >= Rhat_n(vF).

    `gram` is the (n, n) Gram matrix or just its diagonal k(x_i, x_i), (n,) (see
    `nerm.kernels.Kernel.diagonal`); viewpoint is (n,), radius B and intercept_radius beta. The inequality is
    Jensen's, E||.|| <= sqrt(E||.||^2), and loses a few per cent.

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
    """Return G (B R + beta) / sqrt(n) >= R_n(vF), where k(x, x) <= R^2 and `|v| <= G` for every x.

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
    """An estimate of Rhat_n(vF): the mean over random signs, and how far it may be off.

    `scale` is tau with tau^2 = (1/n^2) sum v_i^2 (B sqrt(k_ii) + beta)^2: flipping one sign moves the
    supremum by at most `2 |v_i| (B sqrt(k_ii) + beta) / n`, so one draw is sub-Gaussian with parameter tau
    (McDiarmid).

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
        """Return estimate + tau sqrt(2 ln(1/delta) / draws), which exceeds Rhat_n with probability 1 - delta.

        Its delta adds to that of the bound in which it is used.
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
    """Estimate Rhat_n(vF) from random signs; a few per cent below the closed form, which it converges under.

    X is (n, d), viewpoint (n,). `kernel` is as elsewhere; with `"precomputed"` X is the (n, n) Gram matrix.

    Examples
    --------
    >>> round(rademacher_monte_carlo([[1.0], [1.0]], radius=1.0).estimate, 1)  # the limit is 1/2
    0.5
    """
    B, beta = _radii(radius, intercept_radius)
    draws = as_count(draws, "draws")
    rows: Any = as_matrix(X)
    kernel = kernels.resolve(kernel).fitted(rows)
    linear = isinstance(kernel, kernels.Linear)
    gram = None if linear else kernels.check_gram(kernel(rows, rows))
    diagonal = kernel.diagonal(rows) if gram is None else _diagonal(gram)
    n = len(diagonal)
    v = _viewpoint(viewpoint, n)
    rng = np.random.default_rng(random_state)
    suprema = []
    batch = max(1, min(draws, 4_000_000 // n))  # a batch of signs stays near 32 MB
    for start in range(0, draws, batch):
        signs = 2.0 * rng.integers(0, 2, size=(min(batch, draws - start), n)) - 1.0
        signed = signs * v
        if gram is None:
            sums = (rows.T @ signed.T).T if sp.issparse(rows) else signed @ rows
            norms = np.sqrt((np.asarray(sums) ** 2).sum(axis=1))
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
    """Return B and beta, the bounds on ||w|| and `|b|`."""
    B = as_nonnegative(radius, "radius", f"{_FINITE_CLASS}: bound ||w||, see nerm.bounds.norm_radius")
    do = f"{_FINITE_CLASS}: bound |b|, see nerm.bounds.intercept_radius"
    return B, as_nonnegative(intercept_radius, "intercept_radius", do)


def _viewpoint(viewpoint: Any, n: int) -> Floats:
    """Return the viewpoint, or ones (the class F itself) for None."""
    return np.ones(n) if viewpoint is None else as_vector(viewpoint, n, "viewpoint")


def _diagonal(gram: Any) -> Floats:
    """Return k(x_i, x_i) from a Gram matrix or from the diagonal itself; no entry may be negative."""
    values = np.asarray(gram, dtype=float)
    diagonal = np.diag(kernels.check_gram(values)).copy() if values.ndim == 2 else values
    if diagonal.ndim != 1 or diagonal.size == 0:
        must = "'gram' must be a square matrix or its diagonal"
        raise InvalidInputError(must, f"shape {values.shape}", "Pass k(x_i, x_j), or k(x_i, x_i)")
    check_finite(diagonal, "gram", f"{_FINITE_CLASS}: check the kernel for overflow")
    if (diagonal < 0).any():
        i = int(np.argmin(diagonal))
        got = f"{diagonal[i]:g} at index {i}"
        raise InvalidInputError("k(x, x) must be nonnegative", got, "Use a positive semidefinite kernel")
    return diagonal
