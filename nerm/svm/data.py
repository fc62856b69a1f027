"""The data of a neutral SVM, and the result of a method.

With labels y, viewpoints v, row weights s and u, and scores f_i = w.x_i + b, the objective in the paper's
sum form is::

    P(w, b) = sum_i s_i (1 - y_i f_i)_+  +  (lambda/2) ||w||^2  +  eta max(C^+, C^-),
    C^{+-} = sum_i u_i (1 -+ v_i f_i)_+

The dual variables are alpha, beta^+, beta^- (together: gamma), one per row and hinge, and nu^+ + nu^- = eta,
the weights of C^+ and C^-. The *target* t of a dual variable is y, v or -v: its hinge is (1 - t_i f_i)_+.
The methods work with z = t gamma (target times dual variable), one row per kind k of dual variable and one
column per sample i. At a fixed nu^+ the dual problem is::

    maximise    constant + sum gain * z - a'Ka / (2 lambda),      gain = 1 / t
    subject to  a_i = sum_k z_ki,   sum_i a_i = 0 (if b is free),   low <= z <= high

Here K is the Gram matrix, and low and high are the bounds of z (`NeutralSVM.boxes`). A dual variable with
target t = 0 does not change a_i. It is set to its upper bound, which is part of `constant`.

The published variant has `eta sum_i u_i (1 + |v_i f_i|)` in place of eta max(C^+, C^-): the printed dual is
the dual of that problem (docs/errata.md, erratum 1). Its constraint is beta_i^+ + beta_i^- <= eta u_i, with
equality at the optimum, so that only r = beta^+ - beta^- in [-eta u, eta u] matters. The parts r_+ and r_-,
with upper bounds eta u and gain 0, replace beta^+ and beta^-.
"""

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


@dataclass(eq=False)
class NeutralSVM:
    """A neutral SVM in the symbols of this module; the arguments are checked.

    Attributes
    ----------
    X : (n, d) matrix
        Dense or sparse; the (n, n) Gram matrix with ``kernel="precomputed"``.
    y, v : (n,) arrays
        The labels are any two values; the larger one becomes +1. The viewpoint v has real numbers; if there
        are only two different ones, the larger becomes +1 and the other -1. v may be None if eta is 0.
    lam, eta : float
        lambda > 0 and eta >= 0, in sum form.
    s, u : (n,) arrays, optional
        The row weights of the risk and of the neutrality term; ones by default.
    intercept : bool
        Whether b is free.
    kernel : {"linear", "rbf", "precomputed"} or callable
        A callable maps two matrices of rows to the matrix of their kernel values. The attribute is None for
        "linear", and a callable otherwise; gamma of "rbf" is 1 / (d Var(X)).
    variant : {"exact", "published"}
        "published" is the problem whose dual is printed in the paper.
    """

    X: Any
    y: Any
    v: Any
    lam: Any
    eta: Any
    s: Any = None
    u: Any = None
    intercept: bool = True
    kernel: Any = "linear"
    variant: str = "exact"

    def __post_init__(self) -> None:
        if self.variant not in ("exact", "published"):
            raise UnknownNameError("'variant'", self.variant, ("exact", "published"))
        self.lam, self.eta = number(self.lam, "lam", positive=True), number(self.eta, "eta")
        self.X = X = sp.csr_matrix(self.X, dtype=float) if sp.issparse(self.X) else _floats(self.X, "X")
        require(X.ndim == 2, "'X' must be two-dimensional", f"shape {X.shape}", "Pass one row per sample")
        must, n = "'viewpoint' must be given when eta is positive", X.shape[0]
        require(self.v is not None or self.eta == 0, must, "None", "Pass one number per row, or set eta to 0")
        self.v = _vector(np.zeros(n) if self.v is None else self.v, n, "viewpoint")
        if len(groups := np.unique(self.v)) == 2:
            self.v = np.where(self.v == groups[1], 1.0, -1.0)
        self.s, self.u = _weights(self.s, n, "sample_weight"), _weights(self.u, n, "neutrality_weight")
        classes, labels = np.unique(np.asarray(self.y), return_inverse=True)
        got = "a single class" if len(classes) == 1 else f"{len(classes)} classes"
        require(len(classes) == 2, "'y' must hold exactly two classes", got, "Pass -1 and 1, for instance")
        self.y = _vector(2.0 * labels - 1.0, n, "y")
        self.targets = t = np.array([self.y, self.v, -self.v])
        self.gain = np.divide(1.0, t, out=np.zeros_like(t), where=t != 0)
        self.constant = self.eta * float(self.u[self.v == 0].sum())
        if self.variant == "published":
            self.gain[1:], self.constant = 0.0, self.eta * float(self.u.sum())
        known = {"linear": None, "precomputed": lambda A, _: A, "rbf": self._rbf}
        if not callable(self.kernel) and self.kernel not in known:
            raise UnknownNameError("'kernel'", self.kernel, known, "Use one of these names, or a callable")
        self.kernel = self.kernel if callable(self.kernel) else known[self.kernel]

    def _rbf(self, A: Any, B: Any) -> Floats:
        gamma = 1.0 / (self.X.shape[1] * (dense(self.X).var() or 1.0))
        return np.exp(-gamma * cdist(dense(A), dense(B), "sqeuclidean"))

    @cached_property
    def gram(self) -> Floats:
        """The (n, n) matrix of kernel values.

        It is checked to be symmetric and positive semidefinite up to rounding.
        """
        n = len(self.y)
        K = dense(self.X @ self.X.T if self.kernel is None else self.kernel(self.X, self.X))
        must = "a kernel must return one finite value for each pair of rows"
        require(K.shape == (n, n) and np.isfinite(K).all(), must, f"shape {K.shape}", "Check the kernel")
        scale = ROOT_EPS * float(np.abs(K).max())
        off = float(np.abs(K - K.T).max())
        require(off <= scale, "a Gram matrix must be symmetric", f"K - K.T = {off:g}", "Use K + K.T")
        K = (K + K.T) / 2
        least = 0.0 if self.kernel is None else float(np.linalg.eigvalsh(K)[0])
        must = "a Gram matrix must be positive semidefinite for the problem to be convex"
        require(least >= -scale * n, must, f"a smallest eigenvalue of {least:g}", "Use another kernel")
        return K

    def scores(self, coef: Floats) -> Floats:
        """Return the scores without intercept, (n,): X w, or K c for a kernel."""
        return np.asarray((self.X if self.kernel is None else self.gram) @ coef)

    def coef(self, z: Floats) -> Floats:
        """Return the coefficients that belong to the dual variables z, (3, n).

        z is target times dual variable, one row per kind k of dual variable (alpha, beta^+, beta^-). With a_i
        = sum_k z_ki, the coefficients are w = X'a / lambda, (d,), or c = a / lambda, (n,), for a kernel.
        """
        a = z.sum(axis=0)
        return np.asarray((self.X.T @ a if self.kernel is None else a) / self.lam)

    def norm(self, coef: Floats) -> float:
        """Return (lambda/2) ||w||^2, or (lambda/2) c'Kc for a kernel."""
        return self.lam / 2 * float(coef @ (coef if self.kernel is None else self.gram @ coef))

    def sides(self, scores: Floats) -> tuple[Any, Any]:
        """Return C^+ and C^- at given scores.

        The scores are (n,), or (m, n) for m hypotheses; the sums are over the last axis.
        """
        margins = self.v * scores
        return np.maximum(0, 1 - margins) @ self.u, np.maximum(0, 1 + margins) @ self.u

    def loss(self, scores: Floats) -> Any:
        """Return P without the regularizer at given scores, (n,), or (m, n) for m hypotheses."""
        risk = np.maximum(0, 1 - self.y * scores) @ self.s
        if self.variant == "exact":
            return risk + self.eta * np.maximum(*self.sides(scores))
        return risk + self.eta * ((1 + np.abs(self.v * scores)) @ self.u)

    def boxes(self, nu_plus: float) -> tuple[Floats, Floats]:
        """Return the bounds low and high of z, (3, n) each, for given nu^+.

        nu^- is eta - nu^+. One of low and high is 0 in every entry, because the lower bound of every dual
        variable is 0.
        """
        nu = (nu_plus, self.eta - nu_plus) if self.variant == "exact" else (self.eta, self.eta)
        bounds = self.targets * np.array([self.s, nu[0] * self.u, nu[1] * self.u])
        return np.minimum(bounds, 0.0), np.maximum(bounds, 0.0)

    def feasible(self, z: Floats, nu_plus: float, scores: Floats) -> Floats:
        """Make the dual variables z, (3, n), feasible at nu^+ and return them.

        z is clipped to its bounds (`boxes`). If b is free, entries are then moved until all entries of z add
        up to 0. The first entries to be moved are those whose move reduces the dual value least, to first
        order at `scores`.
        """
        low, high = self.boxes(nu_plus)
        z = np.clip(z, low, high)
        excess = float(z.sum()) if self.intercept else 0.0
        order = np.argsort((self.gain - scores) * np.sign(excess), axis=None)
        slack = (z - low if excess > 0 else high - z).ravel()[order]
        move = np.clip(abs(excess) - (np.cumsum(slack) - slack), 0.0, slack)
        z.flat[order] -= np.sign(excess) * move
        return np.clip(z, low, high)

    def best_intercept(self, scores: Floats) -> float:
        """Return a minimiser b of P for given scores without intercept, (n,); 0 if b is not free.

        P is convex in b, and a minimiser lies between the smallest and the largest kink of the hinges. A
        search on finer and finer grids in this interval finds it.
        """
        if not self.intercept:
            return 0.0
        kinks = (self.gain - scores)[self.targets != 0]
        low, high = kinks.min(), kinks.max()
        for _ in range(20):
            grid = np.linspace(low, high, 33)
            best = int(self.loss(scores + grid[:, None]).argmin())
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, 32)]
        return float(grid[best])

    def result(self, z: Floats, nu_plus: float, tol: float, hypothesis: Any = None) -> "Result":
        """Return a `Result` with feasible dual variables, hypothesis and duality gap.

        Parameters
        ----------
        z : (3, n) array
            Target times dual variable.
        nu_plus : float
            nu^+ in [0, eta].
        tol : float
            The relative gap up to which the status is "optimal".
        hypothesis : (coef, intercept), optional
            By default computed from z: w = X'a / lambda with the best intercept.

        """
        z = self.feasible(z, nu_plus, self.scores(hypothesis[0] if hypothesis else self.coef(z)))
        coef, b = hypothesis or (self.coef(z), self.best_intercept(self.scores(self.coef(z))))
        f = self.scores(coef) + b
        primal = (float(self.loss(f)) + self.norm(coef)) / len(f)
        dual = (self.constant + float((self.gain * z).sum()) - self.norm(self.coef(z))) / len(f)
        bounds = Bounds(primal, dual, primal - dual, (primal - dual) / max(abs(primal), EPS))
        # a dual variable whose upper bound is 0 has no quotient: use the subgradient of its hinge at f
        share, most = (self.targets * f < 1).astype(float), np.add(*self.boxes(nu_plus))
        alpha, plus, minus = np.divide(z, most, out=share, where=most != 0)
        theta = nu_plus / self.eta if self.eta > 0 else 0.5
        if self.variant == "published":
            plus, minus, theta = (1 + plus - minus) / 2, (1 - plus + minus) / 2, np.nan
        status = "optimal" if bounds.relative_gap <= tol else "inaccurate"
        return Result(self, coef, b, Multipliers(alpha, plus, minus, theta), bounds, status)


def require(holds: Any, must: str, got: str, do: str) -> None:
    """Raise `InvalidInputError(must, got, do)` unless `holds`."""
    if not holds:
        raise InvalidInputError(must, got, do)


def number(value: Any, name: str, *, positive: bool = False) -> float:
    """Return a value as a float; raise an error unless it is finite and at least 0.

    With `positive` it must be larger than 0.
    """
    found = float(_floats(value, name))
    must = "a finite positive number" if positive else "a finite number, at least 0"
    valid = 0 < found < np.inf or (found == 0 and not positive)
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
    weights = _vector(np.ones(n) if values is None else values, n, name)
    got = f"{weights.min():g} at index {weights.argmin()}"
    require(weights.min() >= 0, f"{name!r} must be nonnegative", got, "Use 0 to leave a row out")
    require(weights.any(), f"{name!r} must have a positive entry", "only zeros", "Give a positive weight")
    return weights


class Multipliers(NamedTuple):
    """The dual variables, divided by their upper bounds.

    The paper's multipliers are s_i alpha_i, theta eta u_i beta_plus_i and (1 - theta) eta u_i beta_minus_i.
    In the published variant theta is nan, and the last two are eta u_i beta_plus_i and eta u_i beta_minus_i.
    """

    alpha: Floats
    beta_plus: Floats
    beta_minus: Floats
    theta: float


class Bounds(NamedTuple):
    """Objective and dual value of a result, in mean form.

    The optimum lies between them. `gap` is the duality gap, primal - dual, and `relative_gap` is the gap
    divided by the objective.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float


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
        Records of some steps: the number of steps so far (iterations) and the entries of `certificate`.

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
    claim: str = ""
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
