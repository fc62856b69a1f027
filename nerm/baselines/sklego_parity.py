"""scikit-lego's covariance-constrained logistic regression (Zafar et al., AISTATS 2017) behind nerm's face."""

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from nerm.baselines.base import GroupClassifier, dense, quiet, wants
from nerm.errors import NotSolvedError
from nerm.typing import Floats
from nerm.validation import as_nonnegative, as_positive


@dataclass(eq=False, repr=False)
class SklegoDemographicParity(GroupClassifier):
    """``sklego.linear_model.DemographicParityClassifier``: a bound on the covariance of viewpoint and score.

    ``max  log-likelihood - lam ||w||_2   subject to   |mean((v - mean v) f)| <= covariance_threshold``: lam
    is scikit-lego's 1 / C, and its "l2" penalty is the norm, not its square. The viewpoint (0/1) rides along
    as the sensitive column, which scikit-lego uses in the constraint and not as a feature; predictions do
    not need it. Sparse X is made dense, as scikit-lego asks.

    Parameters
    ----------
    covariance_threshold : float
        The bound on the covariance.
    lam : float
        The weight of the norm.

    Attributes
    ----------
    model_ : DemographicParityClassifier
        scikit-lego's own.
    coef_, intercept_ : array of shape (d,) and float
        w and b.
    objective_ : float
        The negative log-likelihood of the training labels plus lam ||w||.
    covariance_, n_iter_, converged_ : float, int, bool
        What was reached, and whether the covariance is within the bound.

    Examples
    --------
    Where the package is missing, ``fit`` says what to install:

    >>> import importlib.util
    >>> model = SklegoDemographicParity(covariance_threshold=0.1)
    >>> if importlib.util.find_spec("sklego") is None:
    ...     try:
    ...         model.fit([[0.0], [1.0], [0.0], [1.0]], [0, 1, 1, 0], viewpoint=[0, 0, 1, 1])
    ...     except ImportError as error:
    ...         assert "pip install 'nerm-learn[compare]'" in str(error)
    >>> model
    SklegoDemographicParity(covariance_threshold=0.1)
    """

    covariance_threshold: float = 0.01
    lam: float = 1.0

    def fit(self, X: Any, y: Any, *, viewpoint: Any = None) -> Self:
        """Solve the convex program through scikit-lego.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Numbers.
        y, viewpoint : array-like of shape (n,)
            Two values each; the larger is the desired outcome, the favoured group.
        """
        with wants(self, "scikit-lego", "cvxpy"):
            import cvxpy
            from sklego.linear_model import DemographicParityClassifier
        threshold = as_nonnegative(self.covariance_threshold, "covariance_threshold")
        lam = as_positive(self.lam, "lam")
        sparse, positive, favoured = self._prepare(X, y, viewpoint)
        matrix = dense(sparse)
        table = np.column_stack([matrix, favoured.astype(float)])
        with quiet():
            # It advertises another method whenever it is built, which is no news to who asks for it by name.
            warnings.filterwarnings("ignore", message="Please consider using fairlearn", category=UserWarning)
            classifier = DemographicParityClassifier(
                covariance_threshold=threshold,
                sensitive_cols=[matrix.shape[1]],
                C=1.0 / lam,
                penalty="l2",
                max_iter=0,  # it has no effect and any other value is answered by a log message saying so
            )
            try:
                self.model_ = classifier.fit(table, positive.astype(int))
            except (cvxpy.error.SolverError, ValueError) as error:
                raise NotSolvedError(
                    f"scikit-lego's program must be solved by cvxpy's default solver. Got {type(error).__name__}: "
                    f"{str(error).rstrip('.')}. Use fewer rows or columns, or raise covariance_threshold or lam."
                ) from error
        inner = self.model_.estimators_[0]
        self.coef_ = np.asarray(inner.coef_, dtype=float).ravel()
        self.intercept_ = float(np.ravel(inner.intercept_)[0])
        scores = matrix @ self.coef_ + self.intercept_
        losses = np.logaddexp(0.0, np.where(positive, -scores, scores))
        self.objective_ = float(losses.sum() + lam * np.linalg.norm(self.coef_))
        self.covariance_ = float(np.mean((favoured - favoured.mean()) * scores))
        self.n_iter_ = int(inner.n_iter_ or 0)
        reached = f"the covariance is {self.covariance_:.2g} and the bound {threshold:.2g}"
        self._conclude(abs(self.covariance_) <= threshold + 1e-4, reached, "Raise the bound or lam")
        return self

    def decision_function(self, X: Any, *, viewpoint: Any = None) -> Floats:
        """Return the log-odds of the desired outcome; the viewpoint is not needed."""
        return self._known_matrix(X) @ self.coef_ + self.intercept_
