"""Methods of fairlearn with the interface of `nerm.baselines`."""

from abc import abstractmethod
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from nerm.baselines.base import GroupClassifier, base_classifier, dense, quiet
from nerm.errors import MissingPackageError
from nerm.typing import Bools, Floats
from nerm.validation import as_nonnegative, as_positive


class FairlearnClassifier(GroupClassifier):
    """A method of fairlearn whose predictions are drawn: ``decision_function`` is their chance minus 1/2.

    Attributes
    ----------
    model_ : object
        fairlearn's own.
    objective_ : float
        The training error of the draws.
    """

    randomised: ClassVar[bool] = True
    level: ClassVar[str] = "asked"

    @abstractmethod
    def _model(self) -> Any:
        """Return fairlearn's model, unfitted."""

    @abstractmethod
    def _chance(self, matrix: Any, favoured: Bools) -> Floats:
        """Return the probability that the desired outcome is drawn."""

    def _module(self, name: str) -> Any:
        """Import a module of fairlearn; say what to install where that fails."""
        try:
            return import_module(f"fairlearn.{name}")
        except ImportError as error:
            raise MissingPackageError(
                f"{type(self).__name__} needs fairlearn, which cannot be imported ({error}). "
                "Install it with: pip install 'nerm-learn[compare]'."
            ) from error

    def _fit(self, X: Any, y: Any, viewpoint: Any) -> None:
        """Fit fairlearn's model."""
        self.model_ = self._model()
        sparse, positive, favoured = self._prepare(X, y, viewpoint)
        matrix = dense(sparse)
        with quiet():
            self.model_.fit(matrix, positive.astype(int), sensitive_features=favoured.astype(int))
        self.objective_ = float(np.abs(positive - self._chance(matrix, favoured)).mean())
        self.n_iter_, self.converged_ = 1, True

    def decision_function(self, X: Any, *, viewpoint: Any = None) -> Floats:
        """Return P(the desired outcome is drawn) - 1/2."""
        matrix = dense(self._known_matrix(X))
        nobody = np.zeros(len(matrix), dtype=bool)
        favoured = self._known_groups(viewpoint, len(matrix)) if self.sees_group else nobody
        return self._chance(matrix, favoured) - 0.5


@dataclass(eq=False, repr=False)
class FairlearnReduction(FairlearnClassifier):
    """``fairlearn.reductions.ExponentiatedGradient`` with ``DemographicParity``, a mixture of classifiers.

    ``decision_function`` is the probability that the mixture predicts the desired outcome, minus 1/2,
    (n,), computed from its public ``predictors_`` and ``weights_``; ``predict`` thresholds it, so it is
    deterministic where fairlearn's own is random. Sparse X is made dense, as fairlearn asks.

    Parameters
    ----------
    estimator : classifier, optional
        Must accept ``sample_weight``; logistic regression by default.
    eps : float
        How far a group's positive rate may be from the overall one, in the mixture: fairlearn's
        ``difference_bound``. The rates of two groups then differ by up to eps over the larger group's share.
    max_iter : int
        Turns of the exponentiated gradient.

    Attributes
    ----------
    model_ : ExponentiatedGradient
        fairlearn's own.
    objective_ : float
        The training error of the mixture.
    n_iter_, converged_ : int, bool
        Turns, and whether fairlearn's gap is within its target.

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
        reductions, eps = self._module("reductions"), as_positive(self.eps, "eps")
        # fairlearn's own eps bounds its multipliers, not the rates.
        parity = reductions.DemographicParity(difference_bound=eps)
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
    """``fairlearn.postprocessing.ThresholdOptimizer`` for parity: two thresholds per group, drawn between.

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

    def _model(self) -> Any:
        processing, limit = self._module("postprocessing"), as_nonnegative(self.limit, "limit")
        allowed = {"tol": limit} if limit else {}
        return processing.ThresholdOptimizer(estimator=base_classifier(self.estimator), **allowed)

    def _chance(self, matrix: Any, favoured: Bools) -> Floats:
        chances = self.model_._pmf_predict(matrix, sensitive_features=favoured.astype(int))
        return np.asarray(chances, dtype=float)[:, 1]
