"""The data of a neutral SVM (checked arguments, primal objective, dual boxes), and the result of a method.

With labels y, viewpoints v, row weights s and u, and scores f_i = w.x_i + b, the objective in the paper's
sum form is::

    P(w, b) = sum_i s_i (1 - y_i f_i)_+  +  (lambda/2) ||w||^2  +  eta max(C^+, C^-),
    C^{+-} = sum_i u_i (1 -+ v_i f_i)_+

The dual variables are alpha, beta^+, beta^- (together: gamma), one per row and hinge, and nu^+ + nu^- = eta,
the weights of C^+ and C^-. The *target* t of a dual variable is y, v or -v: its hinge is (1 - t_i f_i)_+.

The published variant has `eta sum_i u_i (1 + |v_i f_i|)` in place of eta max(C^+, C^-): the printed dual is
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
ROOT_EPS = EPS**0.5  # the relative rounding error allowed for kernel values and for margins at a kink


class Boxes(NamedTuple):
    """The dual problem at a fixed nu^+, in the variables z = t gamma (target times dual variable).

    Arrays have one row per kind k of dual variable (alpha, beta^+, beta^-) and one column per sample i::

        maximise    constant + sum gain * z - a'Ka / (2 lambda),      gain = 1 / t
        subject to  a_i = sum_k z_ki,   sum_i a_i = 0 (if `balanced`),   low <= z <= high

    A dual variable with target t = 0 does not change a_i. It is set to its upper bound, which is part of
    `constant`.
    """

    low: Floats
    high: Floats
    gain: Floats
    constant: float
    balanced: bool

    def loss(self, scores: Floats) -> float:
        """Return the maximum over low <= z <= high of constant + sum z (gain - f).

        This is P without the regularizer, with nu^+ C^+ + nu^- C^- in place of eta max(C^+, C^-).
        """
        slope = self.gain - scores
        return self.constant + float(np.maximum(self.low * slope, self.high * slope).sum())

    def feasible(self, z: Floats, scores: Floats) -> Floats:
        """Clip z into the boxes, then restore sum_i a_i = 0 (if `balanced`); return z.

        Entries whose change reduces the dual least, to first order at `scores`, are moved first.
        """
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
    """A neutral SVM in the symbols of this module's formula.

    `lam` is lambda, `kernel` is None for a linear model, `intercept` says whether b is free, and `exact` is
    False for the published variant.
    """

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
        """Return w = X'a / lambda, (d,), or for a kernel c = a / lambda, (n,), where a_i = sum_k z_ki."""
        a = z.sum(axis=0)
        return np.asarray((self.X.T @ a if self.kernel is None else a) / self.lam)

    def norm(self, coef: Floats) -> float:
        """Return (lambda/2) ||w||^2, or (lambda/2) c'Kc."""
        return self.lam / 2 * float(coef @ (coef if self.kernel is None else self.gram @ coef))

    def primal(self, coef: Floats, intercept: float) -> float:
        """Return the objective P(w, b), in sum form."""
        return float(self.loss(self.scores(coef) + intercept)) + self.norm(coef)

    def dual(self, boxes: Boxes, z: Floats) -> float:
        """Return the dual objective at feasible z, in sum form."""
        return boxes.constant + float((boxes.gain * z).sum()) - self.norm(self.coef(z))

    @property
    def targets(self) -> Floats:
        """The targets t of (alpha, beta^+, beta^-), (3, n)."""
        return np.array([self.y, self.v, -self.v])

    def boxes(self, nu_plus: float) -> Boxes:
        """Return the boxes of the dual variables at nu^+, with nu^- = eta - nu^+.

        The dual variables are (alpha, beta^+, beta^-), and (alpha, r) in the published variant. There
        beta_i^+ + beta_i^- = eta u_i at the optimum, so r = beta^+ - beta^- in [-eta u, eta u] replaces both;
        its gain is 0.
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
        """Return C^+ and C^-, summed over the last axis of `scores`."""
        margins = self.v * scores
        return np.maximum(0, 1 - margins) @ self.u, np.maximum(0, 1 + margins) @ self.u

    def loss(self, scores: Floats) -> Any:
        """Return P without the regularizer, summed over the last axis of `scores`."""
        risk = np.maximum(0, 1 - self.y * scores) @ self.s
        if self.exact:
            return risk + self.eta * np.maximum(*self.sides(scores))
        return risk + self.eta * ((1 + np.abs(self.v * scores)) @ self.u)

    def best_intercept(self, scores: Floats) -> float:
        """Return a minimiser b of P for given scores without intercept; 0 if b is not free.

        P is convex in b, and some minimiser lies between the smallest and the largest kink of the hinges.
        Successively finer grids in this interval find it.
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
        Labels (any two values, the larger one is +1), and the viewpoint v, which may be None if eta is 0.
    lam, eta : float
        lambda > 0 and eta >= 0, in sum form.
    kernel : {"linear", "rbf", "precomputed"} or callable
        A callable maps two matrices of rows to the matrix of their kernel values.
    variant : {"exact", "published"}
        The published one is the problem whose dual is printed in the paper.
    sample_weight, neutrality_weight : (n,) arrays, optional
        The row weights s of the risk and u of the neutrality term; ones by default.
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
    """Raise `InvalidInputError(must, got, do)` unless `holds`."""
    if not holds:
        raise InvalidInputError(must, got, do)


def number(value: Any, name: str, *, positive: bool = False) -> float:
    """Check that a value is finite and at least 0 (`positive`: more than 0), and return it as a float."""
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
    bad = int(np.isfinite(vector).argmin())  # the first entry that is not finite; 0 if all are finite
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
    """The result of a method of `nerm.svm`.

    Attributes
    ----------
    data : NeutralSVM
        The data of the problem.
    coef : (d,) or (n,) array
        w of a linear model, or c of f(x) = sum_i c_i k(x_i, x) + b.
    intercept : float
        b.
    multipliers : Multipliers
        Feasible dual variables.
    certificate : Bounds
        The primal and the dual objective, in mean form.
    status : str
        "optimal" if the relative gap is within the tolerance, else "inaccurate".
    claim : str
        The status that the method itself reports.
    iterations, outer_iterations : int
        The number of steps, and the number of values of nu^+ that were tried.
    history : tuple of dict
        The steps taken (iterations), primal, dual and gap in mean form, at some of the steps.

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
        """Return f on new rows, (m,).

        For a precomputed kernel X is the (m, n) matrix of kernel values of new and training rows.
        """
        rows = X if self.data.kernel is None else self.data.kernel(X, self.data.X)
        return np.asarray(rows @ self.coef) + self.intercept

    def predict(self, X: Any) -> Floats:
        """Return +1 where f > 0, else -1, (m,)."""
        return np.where(self.decision_function(X) > 0, 1.0, -1.0)


def result_of(
    data: NeutralSVM,
    z: Floats,
    nu_plus: float,
    tol: float,
    claim: str = "",
    hypothesis: tuple[Floats, float] | None = None,
) -> Result:
    """Make the dual variables feasible and return them as a `Result`, with hypothesis and duality gap.

    Parameters
    ----------
    data : NeutralSVM
        The data of the problem.
    z : (3, n) array
        Target times dual variable; (2, n) in the published variant (see `Boxes`).
    nu_plus : float
        nu^+ in [0, eta].
    tol : float
        The relative gap up to which the status is "optimal".
    claim : str
        The status that the method reports.
    hypothesis : (coef, intercept), optional
        By default computed from z: w = X'a / lambda with the best intercept.

    """
    boxes = data.boxes(nu_plus)
    z = boxes.feasible(z, data.scores(hypothesis[0] if hypothesis else data.coef(z)))
    coef, b = hypothesis or (data.coef(z), data.best_intercept(data.scores(data.coef(z))))
    bounds = Bounds(data.primal(coef, b) / len(data.y), data.dual(boxes, z) / len(data.y))
    # a dual variable whose upper bound is 0 has no quotient: use the subgradient of the hinge at the scores
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
