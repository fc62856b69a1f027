"""The data of a neutral SVM (checked arguments, primal objective, dual boxes), and the result of a method.

In the paper's sum form::

    P(w, b) = sum_i s_i (1 - y_i f_i)_+  +  (lambda/2) ||w||^2  +  eta max(C^+, C^-),
    C^{+-} = sum_i u_i (1 -+ v_i f_i)_+

The published variant has eta sum_i u_i (1 + |v_i f_i|) in place of eta max(C^+, C^-): the printed dual is
the dual of that problem (docs/errata.md, erratum 1).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from nerm.errors import InvalidInputError, UnknownNameError

Floats = NDArray[np.float64]
EPS = float(np.finfo(float).eps)
ROOT_EPS = EPS**0.5  # relative error that rounding explains: of kernel values, of margins at a bend


class Boxes(NamedTuple):
    """The dual at a fixed nu^+, in z = t gamma: what each multiplier adds to its a_i.

    Arrays have one row per block of multipliers and one column per sample::

        maximise    constant + sum gain * z - a'Ka / (2 lambda),      gain = 1 / t
        subject to  a_i = sum_k z_ki,   sum_i a_i = 0 (if `balanced`),   low <= z <= high

    A multiplier of target t = 0 moves no a_i: it is at its upper bound, in the constant.
    """

    low: Floats
    high: Floats
    gain: Floats
    constant: float
    balanced: bool

    def loss(self, scores: Floats) -> float:
        """Return the maximum of constant + sum z (gain - f) over the boxes: P at this nu^+ but its norm."""
        slope = self.gain - scores
        return self.constant + float(np.maximum(self.low * slope, self.high * slope).sum())

    def feasible(self, z: Floats, scores: Floats) -> Floats:
        """Clip z into the boxes, then move those that cost the dual least until sum_i a_i = 0."""
        z = np.clip(z, self.low, self.high)
        if not self.balanced:
            return z
        excess = float(z.sum())
        order = np.argsort((self.gain - scores) * np.sign(excess), axis=None)
        slack = (z - self.low if excess > 0 else self.high - z).ravel()[order]
        move = np.clip(abs(excess) - (np.cumsum(slack) - slack), 0.0, slack)
        np.put(z, order, z.ravel()[order] - np.sign(excess) * move)
        return np.clip(z, self.low, self.high)


@dataclass(frozen=True, eq=False)
class NeutralSVM:
    """A neutral SVM in the paper's symbols; `kernel` is None for a linear model."""

    X: Any
    y: Floats
    v: Floats
    s: Floats
    u: Floats
    lam: float
    eta: float
    kernel: Callable[[Any, Any], Any] | None
    intercept: bool
    exact: bool

    @cached_property
    def gram(self) -> Floats:
        """The (n, n) matrix of kernel values, symmetric and positive semidefinite up to rounding."""
        n = len(self.y)
        gram = dense(self.X @ self.X.T if self.kernel is None else self.kernel(self.X, self.X))
        must = "a kernel must return one finite value for each pair of rows"
        finite = gram.shape == (n, n) and np.isfinite(gram).all()
        require(finite, must, f"shape {gram.shape}", "Check the kernel")
        scale = ROOT_EPS * float(np.abs(gram).max())
        off = float(np.abs(gram - gram.T).max())
        require(off <= scale, "a Gram matrix must be symmetric", f"K - K.T = {off:g}", "Use K + K.T")
        gram = (gram + gram.T) / 2
        least = 0.0 if self.kernel is None else float(np.linalg.eigvalsh(gram)[0])
        must = "a Gram matrix must be positive semidefinite for the problem to be convex"
        require(least >= -scale * n, must, f"a smallest eigenvalue of {least:g}", "Use another kernel")
        return gram

    def scores(self, coef: Floats) -> Floats:
        """Return X w, or K c, (n,): the scores without intercept."""
        return np.asarray((self.X if self.kernel is None else self.gram) @ coef)

    def coef(self, z: Floats) -> Floats:
        """Return w = X'a / lambda, or c = a / lambda."""
        a = z.sum(axis=0)
        return np.asarray((self.X.T @ a if self.kernel is None else a) / self.lam)

    def norm(self, coef: Floats) -> float:
        """Return (lambda/2) ||w||^2, or (lambda/2) c'Kc."""
        return self.lam / 2 * float(coef @ (coef if self.kernel is None else self.gram @ coef))

    def primal(self, coef: Floats, intercept: float) -> float:
        """Return P."""
        return float(self.loss(self.scores(coef) + intercept)) + self.norm(coef)

    def dual(self, boxes: Boxes, z: Floats) -> float:
        """Return the dual's value at feasible multipliers."""
        return boxes.constant + float((boxes.gain * z).sum()) - self.norm(self.coef(z))

    @property
    def targets(self) -> Floats:
        """The targets t of (alpha, beta^+, beta^-), (3, n)."""
        return np.array([self.y, self.v, -self.v])

    def boxes(self, nu_plus: float) -> Boxes:
        """Return the boxes of (alpha, beta^+, beta^-) at nu^- = eta - nu^+; of (alpha, r) if published.

        In the published variant beta_i^+ + beta_i^- = eta u_i at the optimum. That leaves r = beta^+ - beta^-
        in [-eta u, eta u], of gain 0.
        """
        bound = self.eta * self.u
        if self.exact:
            t, most = self.targets, np.array([self.s, nu_plus * self.u, bound - nu_plus * self.u])
            low, high = np.minimum(t * most, 0.0), np.maximum(t * most, 0.0)
            gain = np.divide(1.0, t, out=np.zeros_like(t), where=t != 0)
            return Boxes(low, high, gain, float(most[t == 0].sum()), self.intercept)
        alpha, r = self.y * self.s, np.abs(self.v) * bound
        low, high = np.array([np.minimum(alpha, 0.0), -r]), np.array([np.maximum(alpha, 0.0), r])
        return Boxes(low, high, np.array([self.y, 0 * r]), float(bound.sum()), self.intercept)

    def sides(self, scores: Floats) -> tuple[Any, Any]:
        """Return C^+ and C^- along the last axis of scores."""
        margins = self.v * scores
        return np.maximum(0, 1 - margins) @ self.u, np.maximum(0, 1 + margins) @ self.u

    def loss(self, scores: Floats) -> Any:
        """Return P without its norm, along the last axis of scores."""
        risk = np.maximum(0, 1 - self.y * scores) @ self.s
        if self.exact:
            return risk + self.eta * np.maximum(*self.sides(scores))
        return risk + self.eta * ((1 + np.abs(self.v * scores)) @ self.u)

    def best_intercept(self, scores: Floats) -> float:
        """Return a minimiser b of P for scores without intercept; 0 where b is not free.

        P is convex in b and no minimiser is beyond all bends of the hinges: by ever finer grids.
        """
        if not self.intercept:
            return 0.0
        seen = self.v != 0
        bends = [self.y - scores, *(end / self.v[seen] - scores[seen] for end in (1.0, -1.0))]
        low, high = np.concatenate(bends).min(), np.concatenate(bends).max()
        for _ in range(20):
            grid = np.linspace(low, high, 33)
            best = int(self.loss(scores + grid[:, None]).argmin())
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, 32)]
        return float(grid[best])


def neutral_svm(
    X: Any,
    y: Any,
    viewpoint: Any,
    lam: Any,
    eta: Any,
    *,
    kernel: Any = "linear",
    variant: str = "exact",
    sample_weight: Any = None,
    neutrality_weight: Any = None,
    intercept: bool = True,
) -> NeutralSVM:
    """Check the arguments that all functions of `nerm.svm` take.

    Parameters
    ----------
    X : (n, d) matrix
        Dense or sparse; the (n, n) Gram matrix with ``kernel="precomputed"``.
    y, viewpoint : (n,) arrays
        Labels (any two values, the larger one is +1) and v; the viewpoint may be None when eta is 0.
    lam, eta : float
        lambda > 0 and eta >= 0, in sum form.
    kernel : {"linear", "rbf", "precomputed"} or callable
        A callable maps two matrices of rows to the matrix of their kernel values.
    variant : {"exact", "published"}
        The published one is the problem whose dual is printed in the paper.
    sample_weight, neutrality_weight : (n,) arrays, optional
        s and u.
    intercept : bool
        Whether b is free.

    Returns
    -------
    NeutralSVM
        The data, in sum form.

    """
    if variant not in ("exact", "published"):
        raise UnknownNameError("'variant'", variant, ("exact", "published"))
    lam = number(lam, "lam", positive=True)
    eta = number(eta, "eta")
    X = sp.csr_matrix(X, dtype=float) if sp.issparse(X) else _floats(X, "X")
    require(X.ndim == 2, "'X' must be two-dimensional", f"shape {X.shape}", "Pass one row per sample")
    n = X.shape[0]
    must = "'viewpoint' must be given when eta is positive"
    require(viewpoint is not None or eta == 0, must, "None", "Pass one number per row, or set eta to 0")
    v = np.zeros(n) if viewpoint is None else _vector(viewpoint, n, "viewpoint")
    s = _weights(sample_weight, n, "sample_weight")
    u = _weights(neutrality_weight, n, "neutrality_weight")
    must, got = f"'y' must have one label for each of the {n} rows", f"shape {np.shape(y)}"
    require(np.shape(y) == (n,), must, got, f"Pass a vector of length {n}")
    classes, labels = np.unique(np.asarray(y), return_inverse=True)
    got = "a single class" if len(classes) == 1 else f"{len(classes)} classes"
    require(len(classes) == 2, "'y' must hold exactly two classes", got, "Pass two values, such as -1 and 1")
    y = 2.0 * labels - 1.0
    return NeutralSVM(X, y, v, s, u, lam, eta, _kernel(kernel, X), intercept, variant == "exact")


def _kernel(kernel: Any, X: Any) -> Callable[[Any, Any], Any] | None:
    """Return a callable k(A, B), or None for "linear"; gamma of "rbf" is 1 / (d Var(X))."""

    def rbf(A: Any, B: Any) -> Floats:
        gamma = 1.0 / (X.shape[1] * (dense(X).var() or 1.0))
        return np.exp(-gamma * cdist(dense(A), dense(B), "sqeuclidean"))

    known = {"linear": None, "precomputed": lambda A, _: A, "rbf": rbf}
    if not callable(kernel) and kernel not in known:
        raise UnknownNameError("'kernel'", kernel, known, "Use one of these names, or a callable")
    return kernel if callable(kernel) else known[kernel]


def require(holds: Any, must: str, got: str, do: str) -> None:
    """Raise an error of three parts where a condition does not hold."""
    if not holds:
        raise InvalidInputError(must, got, do)


def number(value: Any, name: str, *, positive: bool = False) -> float:
    """Return a finite number that is at least 0, or positive."""
    found = float(_floats(value, name))
    must = "a finite positive number" if positive else "a finite number, at least 0"
    valid = 0 <= found < np.inf and not (positive and found == 0)
    require(valid, f"{name!r} must be {must}", repr(value), f"Pass such a number as {name}")
    return found


def dense(matrix: Any) -> Floats:
    """Return a matrix as a dense array of floats."""
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=float)


def _floats(values: Any, name: str) -> Floats:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        must = f"{name!r} must hold real numbers"
        raise InvalidInputError(must, str(error), "Encode categories as numbers") from None


def _vector(values: Any, n: int, name: str) -> Floats:
    vector = _floats(values, name)
    must = f"{name!r} must have one entry for each of the {n} rows"
    require(vector.shape == (n,), must, f"shape {vector.shape}", f"Pass a vector of length {n}")
    bad = int(np.isfinite(vector).argmin())  # the first one, 0 where all are finite
    got = f"{vector[bad]} at index {bad}"
    require(np.isfinite(vector[bad]), f"{name!r} must be finite", got, "Drop or impute these rows")
    return vector


def _weights(values: Any, n: int, name: str) -> Floats:
    weights = np.ones(n) if values is None else _vector(values, n, name)
    got = f"{weights.min():g} at index {weights.argmin()}"
    require(weights.min() >= 0, f"{name!r} must be nonnegative", got, "Use 0 to leave a row out")
    require(weights.any(), f"{name!r} must have a positive entry", "only zeros", "Give a positive weight")
    return weights


class Multipliers(NamedTuple):
    """The dual variables, divided by their upper bounds.

    The paper's multipliers are s_i alpha_i, theta eta u_i beta_plus_i and (1 - theta) eta u_i beta_minus_i.
    In the published variant theta is nan, and they are eta u_i beta_plus_i and eta u_i beta_minus_i.
    """

    alpha: Floats
    beta_plus: Floats
    beta_minus: Floats
    theta: float


class Bounds(NamedTuple):
    """Objective and dual value of a result, in mean form: the optimum lies between them."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """The duality gap."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The duality gap divided by the objective."""
        return self.gap / max(abs(self.primal), EPS)

    def entry(self, iterations: int) -> dict[str, float]:
        """Return one entry of `Result.history`: iterations, primal, dual and gap."""
        return {"iterations": iterations, **self._asdict(), "gap": self.gap}


@dataclass(frozen=True, eq=False)
class Result:
    """What a method of `nerm.svm` found.

    Attributes
    ----------
    coef, intercept : array and float
        w of a linear model, or c with f(x) = sum_i c_i k(x_i, x) + b; and b.
    multipliers, certificate : Multipliers and Bounds
        Feasible dual variables, and the values of P and of the dual.
    status, claim : str
        "optimal" where the relative gap is within the tolerance, else "inaccurate"; and the method's words.
    iterations, outer_iterations : int
        Steps taken, and how many values of nu^+ were tried.
    history : tuple of dict
        Steps (iterations) and values (primal, dual, gap, in mean form) so far, now and then.

    Examples
    --------
    >>> from nerm.svm import smo
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> result = smo(X, y, v, lam=2.0, eta=1.0, kernel="linear")
    >>> result.status, round(4 * result.certificate.primal, 4), result.coef.round(3)
    ('optimal', 5.25, array([0.5]))

    """

    data: NeutralSVM = field(repr=False)
    coef: Floats
    intercept: float
    multipliers: Multipliers
    certificate: Bounds
    status: str
    claim: str
    iterations: int = 0
    outer_iterations: int = 0
    history: tuple[dict[str, float], ...] = field(default=(), repr=False)

    def training_scores(self) -> Floats:
        """Return f on the training rows, (n,)."""
        return self.data.scores(self.coef) + self.intercept

    def decision_function(self, X: Any) -> Floats:
        """Return f on new rows, (m,); for a precomputed kernel X has their values with the training rows."""
        rows = X if self.data.kernel is None else self.data.kernel(X, self.data.X)
        return np.asarray(rows @ self.coef) + self.intercept

    def predict(self, X: Any) -> Floats:
        """Return +1 where f > 0, else -1."""
        return np.where(self.decision_function(X) > 0, 1.0, -1.0)


def result_of(
    data: NeutralSVM,
    z: Floats,
    nu_plus: float,
    tol: float,
    claim: str = "",
    hypothesis: tuple[Floats, float] | None = None,
) -> Result:
    """Build the result of a hypothesis and of multipliers z = t gamma, which are made feasible first.

    Without a hypothesis it is the one of the multipliers, w = X'a / lambda with its best intercept.
    """
    boxes = data.boxes(nu_plus)
    z = boxes.feasible(z, data.scores(hypothesis[0] if hypothesis else data.coef(z)))
    coef, b = hypothesis or (data.coef(z), data.best_intercept(data.scores(data.coef(z))))
    bounds = Bounds(data.primal(coef, b) / len(data.y), data.dual(boxes, z) / len(data.y))
    # where an upper bound is 0, the share is that of the subgradient at the scores
    share = (data.targets * (data.scores(coef) + b) < 1).astype(float)
    theta = nu_plus / data.eta if data.eta > 0 else 0.5
    most = boxes.low + boxes.high
    if not data.exact:
        most[1], theta = data.eta * data.u * data.v, np.nan
        share[1] = 0.0
    share[: len(z)] = np.divide(z, most, out=share[: len(z)], where=most != 0)
    if not data.exact:
        share[1:] = (1 + share[1]) / 2, (1 - share[1]) / 2
    status = "optimal" if bounds.relative_gap <= tol else "inaccurate"
    return Result(data, coef, b, Multipliers(share[0], share[1], share[2], theta), bounds, status, claim)
