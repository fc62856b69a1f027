"""Learning fair representations of Zemel, Wu, Swersky, Pitassi and Dwork (ICML 2013)."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds
from scipy.special import logit, softmax
from sklearn.utils import check_random_state

from nerm.baselines.base import GroupClassifier, lbfgs
from nerm.splitting import as_count
from nerm.typing import Bools, Floats, Matrix
from nerm.validation import as_nonnegative, as_positive

#: Smallest distance of the prediction weights to 0 and 1, which keeps the cross-entropy finite.
EDGE = np.sqrt(np.finfo(float).eps)
#: The multipliers, (K,), and the stiffness of the smooth parity term.
Envelope = tuple[Floats, float]


class Prototypes:
    """The objective of `LearningFairRepresentations` on given rows: value, gradient, bounds and start.

    ``A_x sum_i ||x_i - (M P)_i||^2 + A_y CE + A_z sum_k |z_k|`` with
    ``z_k = mean_{s=1} M_k - mean_{s=0} M_k``.

    The variables are stored in one flat array: prototypes P (K × d), prediction weights w (K), and distance
    weights alpha (2 × d), one row per group. A sparse X stays sparse, because it is used only in the products
    X P', M'X and H'X.
    """

    def __init__(self, X: Matrix, positive: Bools, favoured: Bools, K: int, scales: Floats) -> None:
        self.X, self.K, self.scales = X, K, scales
        self.n, self.d = X.shape
        self.y = positive.astype(float)
        self.favoured = favoured
        #: +1/c_1 on favoured rows, -1/c_0 on the others: z = parity @ M.
        self.parity = np.where(favoured, 1.0 / favoured.sum(), -1.0 / (~favoured).sum())
        self.square = float(X.multiply(X).sum()) if sp.issparse(X) else float((X**2).sum())

    def parts(self, point: Floats) -> tuple[Floats, Floats, Floats]:
        """Return P (K, d), w (K,) and alpha (2, d) as views of the flat array."""
        K, d = self.K, self.d
        return point[: K * d].reshape(K, d), point[K * d : K * d + K], point[K * d + K :].reshape(2, d)

    def bounds(self) -> Bounds:
        """Return the bounds on the variables: w in [EDGE, 1 - EDGE], alpha >= 0, P unbounded."""
        sizes = (self.K * self.d, self.K, 2 * self.d)
        return Bounds(np.repeat([-np.inf, EDGE, 0.0], sizes), np.repeat([np.inf, 1.0 - EDGE, np.inf], sizes))

    def start(self, random: np.random.RandomState) -> Floats:
        """Return a random starting point, as a flat array.

        Each prototype is the mean of at most 10 random rows, its entry in w is their positive rate clipped
        to [0.05, 0.95], and alpha = 1.
        """
        rows = random.randint(self.n, size=(self.K, min(10, self.n)))
        P = np.vstack([np.asarray(self.X[few].mean(axis=0)) for few in rows])
        w = np.clip(self.y[rows].mean(axis=1), 0.05, 0.95)
        return np.concatenate([P.ravel(), w, np.ones(2 * self.d)])

    @staticmethod
    def assign(X: Matrix, favoured: Bools, P: Floats, alpha: Floats) -> Floats:
        """Return the assignments M = softmax(-distance), (n, K).

        Terms of the distance that do not depend on the prototype cancel in the softmax and are omitted.
        """
        M = np.empty((X.shape[0], len(P)))
        for rows, a in ((~favoured, alpha[0]), (favoured, alpha[1])):
            M[rows] = softmax(2.0 * (X[rows] @ (a * P).T) - P**2 @ a, axis=1)
        return M

    def value_and_gradient(self, point: Floats, envelope: Envelope | None = None) -> tuple[float, Floats]:
        """Return the objective L and its gradient as a flat array.

        If ``envelope`` = (multipliers m, stiffness t) is given, `A_z |z|` is replaced by the smooth function
        ``min over u of A_z |u| + m (z - u) + (t/2) (z - u)^2``, whose derivative is
        ``clip(m + t z, -A_z, A_z)``.

        The gradient uses G = dL/dM and the derivative in the distances, H = dL/dd = -M (G - rowsum(M G)).
        The rows of H sum to 0, and ``H_.k`` is the sum of its column k::

            dL/dalpha_j = sum_k p_kj^2 H_.k - 2 sum_k p_kj (H'X)_kj       (over the rows of a group)
            dL/dp_kj    = 2 alpha_j (p_kj H_.k - (H'X)_kj) + 2 A_x ((M'M P)_kj - (M'X)_kj)
        """
        P, w, alpha = self.parts(point)
        A_x, A_y, _ = self.scales
        M = self.assign(self.X, self.favoured, P, alpha)
        MX = np.asarray(M.T @ self.X)
        yhat = M @ w
        z = self.parity @ M
        parity, slope = self.parity_term(z, envelope)
        # sum_i ||x_i - (M P)_i||^2, expanded so that X stays sparse.
        reconstruction = self.square - 2.0 * float((MX * P).sum()) + float(((M.T @ M) * (P @ P.T)).sum())
        entropy = float(-np.log(np.where(self.y > 0, yhat, 1.0 - yhat)).sum())
        value = A_x * reconstruction + A_y * entropy + parity

        to_yhat = (1.0 - self.y) / (1.0 - yhat) - self.y / yhat
        G = 2.0 * A_x * (M @ (P @ P.T) - self.X @ P.T)
        G += A_y * to_yhat[:, None] * w + self.parity[:, None] * slope
        H = -M * (G - (M * G).sum(axis=1, keepdims=True))
        to_P = 2.0 * A_x * (M.T @ M @ P - MX)
        to_alpha = np.empty_like(alpha)
        for s, rows in enumerate((~self.favoured, self.favoured)):
            HX = np.asarray(H[rows].T @ self.X[rows])
            load = H[rows].sum(axis=0)[:, None]
            to_alpha[s] = (P**2 * load - 2.0 * P * HX).sum(axis=0)
            to_P += 2.0 * alpha[s] * (P * load - HX)
        return value, np.concatenate([to_P.ravel(), A_y * (M.T @ to_yhat), to_alpha.ravel()])

    def parity_term(self, z: Floats, envelope: Envelope | None) -> tuple[float, Floats]:
        """Return the parity term, or its smooth replacement, and its derivative in z, (K,).

        The derivative of the smooth replacement is the next vector of multipliers.
        """
        A_z = self.scales[2]
        if envelope is None:
            return A_z * float(np.abs(z).sum()), A_z * np.sign(z)
        multipliers, stiffness = envelope
        shifted = multipliers + stiffness * z
        slope = np.clip(shifted, -A_z, A_z)
        return float((slope * shifted - slope**2 / 2 - multipliers**2 / 2).sum() / stiffness), slope


@dataclass(eq=False, repr=False)
class LearningFairRepresentations(GroupClassifier):
    """Classify by soft assignments to prototypes that are on average equal in both groups.

    With prototypes p_k, ``M_ik = softmax_k(-d_ik)``, ``d_ik = sum_j alpha_j (x_ij - p_kj)^2`` (alpha of the
    row's group) and ``yhat = M w``, ``0 <= w <= 1``, the fit minimises::

        A_x sum_i ||x_i - (M p)_i||^2 + A_y CE + A_z sum_k | mean_{s=1} M_k - mean_{s=0} M_k |

    Here CE is the cross-entropy: the sum over the rows of -log of the probability of the true label. The
    first two terms are sums over n rows and the parity term is a sum over prototypes, so A_z must grow with
    n.

    At the optimum some differences of means z_k are 0, where the objective is not differentiable and
    L-BFGS would stall. The method of multipliers therefore replaces `A_z |z_k|` by its Moreau envelope around
    a multiplier in [-A_z, A_z], and converges to a solution of the original problem. The problem is not
    convex: the method runs from ``n_init`` random starts and keeps the best result. The weights w have a
    small distance from 0 and 1, so that CE is finite.

    ``transform`` returns the representation M.

    Parameters
    ----------
    n_prototypes : int
        The number K of prototypes.
    A_x, A_y, A_z : float
        The weights of reconstruction, prediction and parity.
    n_init : int
        The number of random starts.
    tol, max_iter : float, int
        Tolerance on the residual (see `residual_`), and maximal number of L-BFGS steps per start.
    random_state : int, RandomState or None
        Seed of the starts.

    Attributes
    ----------
    prototypes_, weights_ : arrays of shape (K, d) and (K,)
        The prototypes p_k and the prediction weights w.
    alpha_ : array of shape (2, d)
        The distance weights, one row per group in ``groups_``.
    objective_ : float
        The smallest objective of all starts.
    objectives_ : array of shape (n_init,)
        The final objective of each start.
    n_iter_, residual_, converged_ : int, float, bool
        Steps, residual and convergence of the best start. The residual is the larger of two numbers: the
        largest entry of the projected gradient divided by n, and 10 times the largest change of a multiplier
        divided by the stiffness of the envelope.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2)); y = X.sum(axis=1) > 0; s = X[:, 0] + 0.5 * rng.normal(size=40) > 0
    >>> model = LearningFairRepresentations(2, n_init=1, tol=0.01, random_state=0).fit(X, y, viewpoint=s)
    >>> M = model.transform(X, viewpoint=s)
    >>> M.shape, np.allclose(M.sum(axis=1), 1)
    ((40, 2), True)
    >>> bool(np.abs(M[s].mean(axis=0) - M[~s].mean(axis=0)).max() < 1e-2)  # the groups agree
    True
    """

    n_prototypes: int = 10
    A_x: float = 0.01
    A_y: float = 1.0
    A_z: float = 50.0
    n_init: int = 3
    tol: float = 1e-3
    max_iter: int = 1500
    random_state: Any = None

    sees_group: ClassVar[bool] = True

    def _fit(self, X: Any, y: Any, viewpoint: Any) -> None:
        """Run L-BFGS from every start and keep the best."""
        scales = np.array([as_nonnegative(getattr(self, name), name) for name in ("A_x", "A_y", "A_z")])
        tol = as_positive(self.tol, "tol")
        prototypes = as_count(self.n_prototypes, "n_prototypes", do="Use 1 or more")
        starts = as_count(self.n_init, "n_init", do="Use 1 or more")
        problem = Prototypes(*self._prepare(X, y, viewpoint), prototypes, scales)
        random = check_random_state(self.random_state)
        ends = [self._descend(problem, problem.start(random), tol) for _ in range(starts)]
        best = min(ends, key=lambda end: end[0])
        self.objectives_ = np.array([end[0] for end in ends])
        self.objective_, found, self.n_iter_, self.residual_ = best
        self.prototypes_, self.weights_, self.alpha_ = (part.copy() for part in problem.parts(found))
        reached = f"the residual is {self.residual_:.2g} after {self.n_iter_} steps, tol is {tol:.2g}"
        do = "Raise max_iter, scale the features, or use fewer prototypes"
        self._conclude(self.residual_ <= tol, reached, do)

    def _descend(self, problem: Prototypes, start: Floats, tol: float) -> tuple[float, Floats, int, float]:
        """Run the method of multipliers from one start; return (objective, point, steps, residual).

        The objective is the original one, without the envelope.
        """
        n, point, steps = problem.n, start, 0
        bounds = problem.bounds()
        multipliers = np.zeros(problem.K)
        stiffness, before = max(10.0 * problem.scales[2], 1.0), np.inf
        while True:
            envelope = (multipliers, stiffness)
            smoothed = partial(problem.value_and_gradient, envelope=envelope)
            left = max(int(self.max_iter) - steps, 1)
            found = lbfgs(smoothed, point, n, tol, left, 20, bounds=bounds)
            point, steps = found.x, steps + max(int(found.nit), 1)
            inside = np.clip(point - found.jac, bounds.lb, bounds.ub)
            P, _, alpha = problem.parts(point)
            M = problem.assign(problem.X, problem.favoured, P, alpha)
            _, multipliers = problem.parity_term(problem.parity @ M, envelope)
            unsettled = float(np.abs(multipliers - envelope[0]).max() / stiffness)
            residual = max(float(np.abs(point - inside).max()), 10 * unsettled)
            if residual <= tol or steps >= self.max_iter:
                return problem.value_and_gradient(point)[0], point, steps, residual
            if unsettled > 0.5 * before:
                stiffness *= 4.0
            before = unsettled

    def transform(self, X: Any, *, viewpoint: Any = None) -> Floats:
        """Return the assignments M of the rows to the prototypes, (n, K); each row sums to 1."""
        return Prototypes.assign(*self._known(X, viewpoint), self.prototypes_, self.alpha_)

    def _scores(self, rows: Matrix, favoured: Bools) -> Floats:
        """Return the log-odds of the probabilities yhat = M w, (n,)."""
        yhat = Prototypes.assign(rows, favoured, self.prototypes_, self.alpha_) @ self.weights_
        return np.asarray(logit(np.clip(yhat, EDGE, 1.0 - EDGE)))
