"""fairlearn's thresholds by group (Hardt, Price and Srebro, 2016) behind nerm's face."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from nerm.baselines.base import GroupClassifier, base_classifier, dense, quiet, wants
from nerm.typing import Bools, Floats
from nerm.validation import as_nonnegative


@dataclass(eq=False, repr=False)
class FairlearnThresholds(GroupClassifier):
    """``fairlearn.postprocessing.ThresholdOptimizer`` for parity: two thresholds a group, between which is drawn.

    ``decision_function`` is the probability that the desired outcome is drawn, minus 1/2, (n,); the limit
    holds for the draws, not for ``predict``, which takes the likelier outcome. `GroupThresholds` draws
    nothing. Sparse X is made dense, as fairlearn asks.

    Parameters
    ----------
    estimator : classifier, optional
        Whose scores are cut; logistic regression by default.
    limit : float
        The allowed difference of positive rates (fairlearn's ``tol``, of its version 0.13 and later).

    Attributes
    ----------
    model_ : ThresholdOptimizer
        fairlearn's own.
    objective_ : float
        The training error of the draws.
    n_iter_, converged_ : int, bool
        1 and True: nothing is iterated.

    Examples
    --------
    Where the package is missing, ``fit`` says what to install:

    >>> import importlib.util
    >>> model = FairlearnThresholds(limit=0.02)
    >>> if importlib.util.find_spec("fairlearn") is None:
    ...     try:
    ...         model.fit([[0.0], [1.0], [0.0], [1.0]], [0, 1, 1, 0], viewpoint=[0, 0, 1, 1])
    ...     except ImportError as error:
    ...         assert "pip install 'nerm-learn[compare]'" in str(error)
    >>> model
    FairlearnThresholds(limit=0.02)
    """

    estimator: Any = None
    limit: float = 0.0

    sees_group: ClassVar[bool] = True
    randomised: ClassVar[bool] = True
    level: ClassVar[str] = "asked"

    def fit(self, X: Any, y: Any, *, viewpoint: Any = None) -> Self:
        """Fit the classifier and its thresholds.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Numbers.
        y, viewpoint : array-like of shape (n,)
            Two values each; the larger is the desired outcome, the favoured group.
        """
        with wants(self, "fairlearn"):
            from fairlearn.postprocessing import ThresholdOptimizer
        limit = as_nonnegative(self.limit, "limit")
        sparse, positive, favoured = self._prepare(X, y, viewpoint)
        matrix = dense(sparse)
        allowed = {"tol": limit} if limit else {}
        self.model_ = ThresholdOptimizer(estimator=base_classifier(self.estimator), **allowed)
        with quiet():
            self.model_.fit(matrix, positive.astype(int), sensitive_features=favoured.astype(int))
        self.objective_ = float(np.abs(positive - self._chance(matrix, favoured)).mean())
        self.n_iter_, self.converged_ = 1, True
        return self

    def decision_function(self, X: Any, *, viewpoint: Any = None) -> Floats:
        """Return P(the desired outcome is drawn) - 1/2."""
        matrix = dense(self._known_matrix(X))
        return self._chance(matrix, self._known_groups(viewpoint, matrix.shape[0])) - 0.5

    def _chance(self, matrix: Any, favoured: Bools) -> Floats:
        chances = self.model_._pmf_predict(matrix, sensitive_features=favoured.astype(int))
        return np.asarray(chances, dtype=float)[:, 1]
