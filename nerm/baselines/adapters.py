"""Methods of fairlearn with the interface of `nerm.baselines`."""

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nerm.baselines.base import GroupClassifier, base_classifier, dense
from nerm.errors import import_optional
from nerm.typing import Bools, Floats, Matrix
from nerm.validation import as_nonnegative, as_positive

INSTALL = "'nerm-learn[compare]'"


class FairlearnClassifier(GroupClassifier):
    """Base class of fairlearn's methods with randomised predictions.

    ``decision_function`` is the probability of the desired outcome minus 1/2.

    Attributes
    ----------
    model_ : object
        The fitted model of fairlearn.
    objective_ : float
        The expected training error of the randomised predictions.
    """

    randomised: ClassVar[bool] = True
    level: ClassVar[str] = "asked"

    @abstractmethod
    def _model(self) -> Any:
        """Return the unfitted model of fairlearn."""

    @abstractmethod
    def _chance(self, matrix: Any, favoured: Bools) -> Floats:
        """Return the probability of the desired outcome for each row, (n,).

        `favoured` says which rows belong to the favoured group, (n,).
        """

    def _fit(self, X: Any, y: Any, viewpoint: Any) -> None:
        """Fit fairlearn's model."""
        self.model_ = self._model()
        sparse, positive, favoured = self._prepare(X, y, viewpoint)
        matrix = dense(sparse)
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            self.model_.fit(matrix, positive.astype(int), sensitive_features=favoured.astype(int))
        self.objective_ = float(np.abs(positive - self._chance(matrix, favoured)).mean())
        self.n_iter_, self.converged_ = 1, True

    def _scores(self, rows: Matrix, favoured: Bools) -> Floats:
        """Return the probability of the desired outcome minus 1/2, (n,)."""
        return self._chance(dense(rows), favoured) - 0.5


@dataclass(eq=False, repr=False)
class FairlearnReduction(FairlearnClassifier):
    """``fairlearn.reductions.ExponentiatedGradient`` with ``DemographicParity``.

    The model is a random mixture of classifiers. ``decision_function`` is the probability that the mixture
    predicts the desired outcome, minus 1/2, (n,), computed from fairlearn's ``predictors_`` and ``weights_``.
    ``predict`` returns the more probable outcome, so it is deterministic, unlike fairlearn's ``predict``.
    Sparse X is made dense, since fairlearn requires it.

    Parameters
    ----------
    estimator : classifier, optional
        The base classifier, which must accept ``sample_weight``; logistic regression by default.
    eps : float
        Largest allowed difference between a group's positive rate and the overall positive rate of the
        mixture (fairlearn's ``difference_bound``). The rates of the two groups then differ by at most
        eps / p, where p is the share of the larger group.
    max_iter : int
        Maximal number of iterations of the exponentiated gradient.

    Attributes
    ----------
    model_ : ExponentiatedGradient
        The fitted model of fairlearn.
    objective_ : float
        The expected training error of the mixture.
    n_iter_, converged_ : int, bool
        Number of iterations, and whether fairlearn's duality gap is within its tolerance ``nu``.

    Examples
    --------
    Where the package is missing, ``fit`` says what to install:

    >>> import importlib.util
    >>> model = FairlearnReduction(eps=0.02)
    >>> if importlib.util.find_spec("fairlearn") is None:
    ...     try:
    ...         model.fit([[0.0], [1.0], [0.0], [1.0]], [0, 1, 1, 0], viewpoint=[0, 0, 1, 1])
    ...     except ImportError as error:
    ...         assert "pip install 'nerm-learn[compare]'" in str(error)
    >>> model
    FairlearnReduction(eps=0.02)
    """

    estimator: Any = None
    eps: float = 0.01
    max_iter: int = 50

    def _model(self) -> Any:
        reductions = import_optional("fairlearn.reductions", "FairlearnReduction", INSTALL)
        # The rates are limited by difference_bound; fairlearn's own eps bounds its multipliers.
        parity = reductions.DemographicParity(difference_bound=as_positive(self.eps, "eps"))
        base = base_classifier(self.estimator)
        return reductions.ExponentiatedGradient(base, parity, max_iter=int(self.max_iter))

    def _fit(self, X: Any, y: Any, viewpoint: Any) -> None:
        """Run the exponentiated gradient."""
        super()._fit(X, y, viewpoint)
        self.n_iter_ = int(self.model_.last_iter_) + 1
        gap, most = self.model_.best_gap_, self.model_.nu
        reached = f"fairlearn's gap is {gap:.2g} and was to fall below {most:.2g}"
        self._conclude(gap <= most, reached, "Raise max_iter")

    def _chance(self, matrix: Any, favoured: Bools) -> Floats:
        votes = [predictor.predict(matrix) for predictor in self.model_.predictors_]
        return np.asarray(self.model_.weights_) @ np.asarray(votes, dtype=float)


@dataclass(eq=False, repr=False)
class FairlearnThresholds(FairlearnClassifier):
    """``fairlearn.postprocessing.ThresholdOptimizer`` with demographic parity.

    Each group has two thresholds, and each prediction uses one of the two at random. ``decision_function`` is
    the probability of the desired outcome minus 1/2, (n,). The limit holds for the random predictions, not
    for ``predict``, which returns the more probable outcome. `GroupThresholds` is a deterministic
    alternative. Sparse X is made dense, since fairlearn requires it.

    Parameters
    ----------
    estimator : classifier, optional
        The classifier whose scores are thresholded; logistic regression by default.
    limit : float
        The allowed difference of positive rates (``tol`` of fairlearn 0.13 and later).

    Attributes
    ----------
    model_ : ThresholdOptimizer
        The fitted model of fairlearn.
    objective_ : float
        The expected training error of the random predictions.
    n_iter_, converged_ : int, bool
        Always 1 and True: the method is not iterative.

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

    def _model(self) -> Any:
        processing = import_optional("fairlearn.postprocessing", "FairlearnThresholds", INSTALL)
        limit = as_nonnegative(self.limit, "limit")
        allowed = {"tol": limit} if limit else {}
        return processing.ThresholdOptimizer(estimator=base_classifier(self.estimator), **allowed)

    def _chance(self, matrix: Any, favoured: Bools) -> Floats:
        chances = self.model_._pmf_predict(matrix, sensitive_features=favoured.astype(int))
        return np.asarray(chances, dtype=float)[:, 1]
