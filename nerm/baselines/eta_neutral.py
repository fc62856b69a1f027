"""The maximum likelihood estimator under eta-neutrality constraints of Fukuchi, Sakuma and Kamishima (2013).

`EtaNeutralLogisticRegression` minimises a `NeutralLikelihood` by the augmented Lagrangian method; each
subproblem is solved by scipy's trust-region Newton method.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.utils.validation import validate_data

from nerm.baselines.base import GroupClassifier, dense, with_ones
from nerm.errors import InvalidInputError
from nerm.typing import Bools, Floats, Matrix
from nerm.validation import as_labels, as_nonnegative, as_positive, as_vector


@dataclass(eq=False, repr=False)
class EtaNeutralLogisticRegression(GroupClassifier):
    """Logistic regression whose outcome rates per group are at most 1 + eta times the overall rates.

    Let P(y=1|x_i) = sigma(w.x_i + b), let q_v(y) be the mean of P(y|x_i) over the rows of group v, and r(y)
    the mean over all rows. The problem is::

        min  -sum_i log P(y_i|x_i) + (lam/2) ||w||^2
        subject to   q_v(y) <= (1 + eta) r(y)   for the four (y, v)

    At eta = 0 the four constraints are equivalent to the equality q_0 = q_1. This one equality is imposed
    instead, since the four active constraints would be degenerate. The intercept b is not regularized.

    ``viewpoint`` in ``fit`` has two values, or it is a model of the viewpoint: an array of probabilities
    P(v=+1|x_i) with more than two values, or a fitted classifier with ``predict_proba`` (evaluated on X). In
    that case the means are weighted by P(v|x_i). Predictions do not need the viewpoint.

    The constraints are not convex, so the result is a local optimum. The augmented Lagrangian method with
    trust-region Newton steps starts at zero. Each step solves a d × d system, so d should be at most a few
    thousand.

    Parameters
    ----------
    eta, lam : float
        The slack of the constraints, and the weight of the regularizer (sum form).
    tol : float
        Tolerance on the largest entry of the gradient of the Lagrangian / n, and on the largest violation of
        a constraint.
    max_iter : int
        Maximal number of Newton steps.

    Attributes
    ----------
    coef_, intercept_ : array of shape (d,) and float
        w and b.
    objective_ : float
        The final value of the objective (sum form).
    constraints_ : array of shape (2, 2)
        The values q_v(y) - (1 + eta) r(y): one row per class (negative, positive), one column per group
        (-1, +1). After convergence none exceeds tol.
    active_constraints_ : list
        The pairs (class, group) whose constraint has a positive multiplier. At eta = 0 it contains only the
        string ``"q_0 = q_1"``.
    multipliers_ : array of shape (4,), or (1,) at eta = 0
        The multipliers of the constraints, for the objective in sum form.
    violation_, gradient_norm_ : float
        The largest violation of a constraint, and the largest entry of the gradient of the Lagrangian / n.
    n_iter_, converged_ : int, bool
        Number of Newton steps, and whether both are within tol.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2)); y = X.sum(axis=1) > 0; s = X[:, 0] + 0.5 * rng.normal(size=40) > 0
    >>> model = EtaNeutralLogisticRegression(eta=0.0).fit(X, y, viewpoint=s)
    >>> p = expit(model.decision_function(X))
    >>> bool(abs(p[s].mean() - p[~s].mean()) < 1e-5), model.active_constraints_
    (True, ['q_0 = q_1'])
    >>> bool(EtaNeutralLogisticRegression(eta=0.1).fit(X, y, viewpoint=s).objective_ < model.objective_)
    True
    """

    eta: float = 0.0
    lam: float = 1.0
    tol: float = 1e-7
    max_iter: int = 500

    def _fit(self, X: Any, y: Any, viewpoint: Any) -> None:
        """Solve the constrained problem and set the fitted attributes."""
        eta, lam = as_nonnegative(self.eta, "eta"), as_nonnegative(self.lam, "lam")
        tol = as_positive(self.tol, "tol")
        matrix, positive, belonging = self._belonging(X, y, viewpoint)
        n, d = matrix.shape
        problem = NeutralLikelihood(with_ones(matrix), positive, belonging, eta, lam)
        w, converged = self._minimise(problem, tol)
        self.coef_, self.intercept_ = w[:d].copy(), float(w[d])
        self.objective_ = problem.objective(w) * n
        self.constraints_ = (problem.rows @ expit(problem.X @ w) + problem.offsets).reshape(2, 2)
        # The order of the constraints: by class, then by group.
        names = ["q_0 = q_1"] if eta == 0 else list(product(self.classes_.tolist(), self.groups_.tolist()))
        self.active_constraints_ = [name for name, m in zip(names, self.multipliers_, strict=True) if m != 0]
        broken = f"the constraints are violated by {self.violation_:.2g}"
        slope = f"the largest entry of the Lagrangian's gradient is {self.gradient_norm_:.2g} (tol {tol:.2g})"
        self._conclude(converged, f"{broken} and {slope} after {self.n_iter_} steps")

    def _scores(self, rows: Matrix, favoured: Bools) -> Floats:
        """Return the log-odds of the desired outcome, (n,)."""
        return rows @ self.coef_ + self.intercept_

    def _belonging(self, X: Any, y: Any, viewpoint: Any) -> tuple[Matrix, Bools, Floats]:
        """Store columns, classes and groups; return X, a mask of the desired outcome, (n,), and P(v=+1|x_i).

        For a two-valued viewpoint the probabilities are 0 or 1; otherwise they are the given probabilities.
        """
        is_model = hasattr(viewpoint, "predict_proba")
        values = np.asarray(viewpoint.predict_proba(X)[:, -1] if is_model else viewpoint)
        if not is_model and (values.dtype.kind not in "fiub" or len(np.unique(values)) <= 2):
            matrix, positive, favoured = self._prepare(X, y, viewpoint)
            return matrix, positive, favoured.astype(float)
        matrix = self._rows(X)
        labels, self.classes_ = as_labels(y, matrix.shape[0])
        chances = as_vector(values, matrix.shape[0], "viewpoint")
        outside = np.flatnonzero((chances < 0) | (chances > 1))
        if len(outside) or chances.min() == chances.max():
            k = outside[0] if len(outside) else 0
            must = "'viewpoint' must hold two groups, or probabilities that vary within [0, 1]"
            got = f"{len(np.unique(chances))} different values, {chances[k]:g} at index {k}"
            do = "Pass two groups, P(v=+1|x) for each row, or a fitted classifier with predict_proba"
            raise InvalidInputError(must, got, do)
        self.groups_ = np.array([-1, 1])
        validate_data(self, X, skip_check_array=True)
        return matrix, labels > 0, chances

    def _minimise(self, problem: "NeutralLikelihood", tol: float) -> tuple[Floats, bool]:
        """Minimise F subject to c <= 0 (or c = 0) by the augmented Lagrangian method.

        Each round minimises the augmented Lagrangian to the tolerance ``tol`` and updates the multipliers to
        mu = max(0, mu + rho c) (without max for an equality). If the violation does not shrink to a quarter
        in a round, rho is multiplied by 10. After a round, grad F + sum_k mu_k grad c_k is equal to the
        gradient of the augmented Lagrangian, which is within ``tol``. The remaining optimality conditions,
        feasibility and complementarity, hold if ``max(c, -mu / rho)`` is 0; its largest absolute value must
        be within ``tol``.

        Returns the weights, and whether all conditions hold within ``tol``.
        """
        w, mu = np.zeros(problem.X.shape[1]), np.zeros(len(problem.A))
        rho, shortfall, max_steps, self.n_iter_ = 10.0, np.inf, int(self.max_iter), 0
        while True:
            options = {"gtol": tol, "maxiter": max_steps - self.n_iter_}
            given: dict[str, Any] = {"args": (mu, rho), "jac": True, "hess": problem.hessian}
            found = minimize(problem.augmented, w, **given, method="trust-exact", options=options)
            w, self.n_iter_ = found.x, self.n_iter_ + int(found.nit)
            mu = problem.multipliers(w, mu, rho)
            c = problem.constraints(w)
            violation = float(np.abs(c if problem.equality else np.maximum(c, -mu / rho)).max())
            self.gradient_norm_ = float(np.abs(found.jac).max())
            converged = violation <= tol and self.gradient_norm_ <= tol
            if converged or self.n_iter_ >= max_steps:
                self.violation_ = float(np.abs(c).max() if problem.equality else np.maximum(c, 0.0).max())
                self.multipliers_ = mu * problem.n
                return w, converged
            if violation > 0.25 * shortfall:
                rho *= 10.0
            shortfall = violation


class NeutralLikelihood:
    """The objective F (mean form) and the constraints c of `EtaNeutralLogisticRegression`.

    With p_i = sigma(x_i . w) and the negative log-likelihood NLL::

        F(w) = (1/n) NLL + (lam/2n) ||w||^2      c_k(w) = A_k . p(w) + offset_k

    Every constraint is linear in the probabilities p. Let a_v be the averaging weights of group v: 1 / (size
    of the group) on its rows, or P(v|x_i) divided by its sum. Then
    ``q_v(1) - (1 + eta) r(1) = (a_v - (1 + eta)/n) . p`` and
    ``q_v(0) - (1 + eta) r(0) = -(a_v - (1 + eta)/n) . p - eta``. At eta = 0 there is one equality, with the
    row ``a_1 - a_0`` of A.

    The last column of X is constant; its weight, the intercept, is not regularized.
    """

    def __init__(self, X: Matrix, positive: Bools, belonging: Floats, eta: float, lam: float) -> None:
        self.X, self.n = X, X.shape[0]
        self.y = positive.astype(float)
        self.ridge = np.full(X.shape[1], lam / self.n)
        self.ridge[-1] = 0.0
        averages = np.stack([(1.0 - belonging) / (1.0 - belonging).sum(), belonging / belonging.sum()])
        rows = averages - (1.0 + eta) / self.n
        #: The published constraints are rows . p + offsets, by class and group.
        self.rows, self.offsets = np.concatenate([-rows, rows]), np.array([-eta, -eta, 0.0, 0.0])
        self.equality = eta == 0
        self.A, self.offset = self.rows, self.offsets
        if self.equality:
            self.A, self.offset = np.diff(averages, axis=0), np.zeros(1)

    def objective(self, w: Floats) -> float:
        """Return the objective F(w) of the class docstring."""
        scores = self.X @ w
        losses = np.logaddexp(0.0, np.where(self.y > 0, -scores, scores))
        return float(losses.mean() + 0.5 * (self.ridge @ w**2))

    def constraints(self, w: Floats) -> Floats:
        """Return c(w), (number of constraints,). Feasible means c <= 0, or c = 0 if eta = 0."""
        return self.A @ expit(self.X @ w) + self.offset

    def multipliers(self, w: Floats, mu: Floats, rho: float) -> Floats:
        """Return the multipliers m = max(0, mu + rho c(w)); for an equality m = mu + rho c(w).

        `mu` are the present multipliers and `rho` is the penalty parameter of the augmented Lagrangian.
        """
        m = mu + rho * self.constraints(w)
        return m if self.equality else np.maximum(m, 0.0)

    def augmented(self, w: Floats, mu: Floats, rho: float) -> tuple[float, Floats]:
        """Return the augmented Lagrangian F + sum_k (m_k^2 - mu_k^2) / (2 rho) and its gradient.

        m is `multipliers` at (w, mu, rho). The gradient is that of F + m . c for fixed m.
        """
        m, p = self.multipliers(w, mu, rho), expit(self.X @ w)
        gradient = self.X.T @ ((p - self.y) / self.n + (m @ self.A) * p * (1 - p)) + self.ridge * w
        return self.objective(w) + float((m**2 - mu**2).sum()) / (2 * rho), gradient

    def hessian(self, w: Floats, mu: Floats, rho: float) -> Floats:
        """Return the matrix of second derivatives of the augmented Lagrangian."""
        m, p = self.multipliers(w, mu, rho), expit(self.X @ w)
        slope = p * (1 - p)
        jacobian = (self.X.T @ (self.A[m != 0] * slope).T).T
        weights = slope / self.n + (m @ self.A) * slope * (1 - 2 * p)
        gram = self.X.T @ (sp.diags_array(weights) @ self.X)
        return dense(gram) + rho * (jacobian.T @ jacobian) + np.diag(self.ridge)
