"""Model-based eta-neutral logistic regression of Fukuchi, Sakuma and Kamishima (ECML PKDD 2013)."""

from dataclasses import dataclass
from itertools import product
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import validate_data

from nerm.baselines.base import GroupClassifier, with_ones
from nerm.baselines.neutral_likelihood import NeutralLikelihood, minimise
from nerm.errors import InvalidInputError
from nerm.typing import Bools, Floats
from nerm.validation import as_labels, as_matrix, as_nonnegative, as_positive, as_vector

FEASIBLE = 1e-6


@dataclass(eq=False, repr=False)
class EtaNeutralLogisticRegression(GroupClassifier):
    """Logistic regression whose positive rate in each group stays within a factor 1 + eta of the overall one.

    With p_i = P(y=1|x_i) = sigma(w.x_i + b), q_v(y) the mean of P(y|x_i) over the rows of group v and r(y)
    over all::

        min  -sum_i log P(y_i|x_i) + (lam/2) ||w||^2
        subject to   q_v(y) <= (1 + eta) r(y)   for the four (y, v)

    At eta = 0 the four constraints say q_0 = q_1, which is then imposed as the one equality that it is (four
    tight constraints are degenerate). The intercept b is not regularised.

    ``viewpoint`` in ``fit`` is two-valued, or a model of it: an array of probabilities P(v=+1|x_i) with more
    than two values, or a fitted classifier with ``predict_proba`` (asked on X). Means are then weighted by
    P(v|x_i). Predictions do not need the viewpoint.

    The constraints are curved, so this is a local optimum, reached by an augmented Lagrangian with exact
    Newton steps from the unconstrained optimum (d of a few thousand at most: a d × d system is solved a
    step).

    Parameters
    ----------
    eta, lam : float
        The slack of the constraints and the weight of the regularizer (sum form).
    tol : float
        The largest entry that the gradient of the Lagrangian / n may have at the end.
    max_iter : int
        At most so many Newton steps.
    verbose : bool
        Print the rounds.

    Attributes
    ----------
    coef_, intercept_ : array of shape (d,) and float
        w and b.
    objective_ : float
        The minimised sum.
    constraints_ : array of shape (2, 2)
        q_v(y) - (1 + eta) r(y): rows y = negative, positive; columns viewpoint = -1, +1; none exceeds 1e-6
        when converged.
    active_constraints_ : list
        The (class, group) with a positive multiplier; at eta = 0 the string ``"q_0 = q_1"`` alone.
    multipliers_ : array
        Of the constraints, for the objective as a sum.
    violation_, gradient_norm_ : float
        What is left of the constraints and of the gradient of the Lagrangian / n.
    n_iter_, converged_ : int, bool
        Newton steps, and whether they got there.

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
    verbose: bool = False

    def fit(self, X: Any, y: Any, *, viewpoint: Any = None) -> Self:
        """Minimise under the constraints.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Numbers.
        y : array-like of shape (n,)
            Two values.
        viewpoint : array-like of shape (n,), or a classifier
            Two values, probabilities, or a model of them.
        """
        eta, lam = as_nonnegative(self.eta, "eta"), as_nonnegative(self.lam, "lam")
        tol = as_positive(self.tol, "tol")
        matrix = as_matrix(X)
        n, d = matrix.shape
        positive = self._fit_labels(y, n)
        belonging = self._belonging(viewpoint, X, n, positive)
        problem = NeutralLikelihood(with_ones(matrix), positive, belonging, eta, lam)
        found = minimise(problem, np.zeros(d + 1), tol, FEASIBLE / 10, int(self.max_iter), self.verbose)
        p = expit(problem.X @ found.weights)
        validate_data(self, X, skip_check_array=True)
        self.coef_, self.intercept_ = found.weights[:d].copy(), float(found.weights[d])
        self.objective_ = problem.objective(found.weights) * n
        self.constraints_ = problem.published_constraints(p)
        self.violation_, self.gradient_norm_ = found.violation, found.gradient_norm
        self.n_iter_, self.multipliers_ = found.steps, found.multipliers * n
        # Class by class, group by group, as the constraints stand.
        names = ["q_0 = q_1"] if eta == 0 else list(product(self.classes_.tolist(), self.groups_.tolist()))
        self.active_constraints_ = [name for name, m in zip(names, self.multipliers_, strict=True) if m != 0]
        broken = f"the constraints are violated by {found.violation:.2g} (at most {FEASIBLE:.0g} is allowed)"
        slope = f"the largest entry of the Lagrangian's gradient is {found.gradient_norm:.2g} (tol {tol:.2g})"
        do = "Raise max_iter, scale the features, or raise lam"
        self._conclude(found.converged, f"{broken} and {slope} after {found.steps} steps", do)
        return self

    def decision_function(self, X: Any, *, viewpoint: Any = None) -> Floats:
        """Return the log-odds of the desired outcome; the viewpoint is not needed."""
        return self._known_matrix(X) @ self.coef_ + self.intercept_

    def _belonging(self, viewpoint: Any, X: Any, n: int, positive: Bools) -> Floats:
        """Return P(v=+1|x_i): 0 or 1 for a two-valued viewpoint, else the model's probabilities."""
        if hasattr(viewpoint, "predict_proba"):
            viewpoint = np.asarray(viewpoint.predict_proba(X))[:, -1]
        elif viewpoint is None or len(np.unique(np.asarray(viewpoint))) <= 2:
            favoured = self._fit_groups(viewpoint, n)
            self._check_cells(positive, favoured)
            return favoured.astype(float)
        elif np.asarray(viewpoint).dtype.kind not in "fiub":
            as_labels(viewpoint, n, "viewpoint")  # raises: more than two classes
        chances = as_vector(viewpoint, n, "viewpoint")
        outside = (chances < 0) | (chances > 1)
        if outside.any() or chances.min() == chances.max():
            k = int(np.flatnonzero(outside)[0]) if outside.any() else 0
            raise InvalidInputError(
                "'viewpoint' must hold two groups or probabilities of the favoured group that vary within [0, 1]",
                f"{len(np.unique(chances))} different values, {chances[k]:g} at index {k}",
                "Pass two groups, P(v=+1|x) for each row, or a fitted classifier with predict_proba",
            )
        self.groups_ = np.array([-1, 1])
        return chances
