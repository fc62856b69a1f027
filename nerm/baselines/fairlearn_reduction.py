"""fairlearn's reductions approach (Agarwal et al., ICML 2018) behind nerm's face."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from nerm.baselines.base import GroupClassifier, base_classifier, dense, quiet, wants
from nerm.typing import Floats
from nerm.validation import as_positive


@dataclass(eq=False, repr=False)
class FairlearnReduction(GroupClassifier):
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

    randomised: ClassVar[bool] = True
    level: ClassVar[str] = "asked"

    def fit(self, X: Any, y: Any, *, viewpoint: Any = None) -> Self:
        """Run the exponentiated gradient.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Numbers.
        y, viewpoint : array-like of shape (n,)
            Two values each; the larger is the desired outcome, the favoured group.
        """
        with wants(self, "fairlearn"):
            from fairlearn.reductions import DemographicParity, ExponentiatedGradient
        eps = as_positive(self.eps, "eps")
        sparse, positive, favoured = self._prepare(X, y, viewpoint)
        matrix = dense(sparse)
        # fairlearn's own eps bounds its multipliers, not the rates.
        parity = DemographicParity(difference_bound=eps)
        self.model_ = ExponentiatedGradient(
            base_classifier(self.estimator), parity, max_iter=int(self.max_iter)
        )
        with quiet():
            self.model_.fit(matrix, positive.astype(int), sensitive_features=favoured.astype(int))
        self.objective_ = float(np.abs(positive - self._chance(matrix)).mean())
        self.n_iter_ = int(self.model_.last_iter_) + 1
        gap, most = self.model_.best_gap_, self.model_.nu
        self._conclude(
            gap <= most, f"fairlearn's gap is {gap:.2g} and was to fall below {most:.2g}", "Raise max_iter"
        )
        return self

    def decision_function(self, X: Any, *, viewpoint: Any = None) -> Floats:
        """Return P(mixture predicts the desired outcome) - 1/2; the viewpoint is not needed."""
        return self._chance(dense(self._known_matrix(X))) - 0.5

    def _chance(self, matrix: Any) -> Floats:
        chance = np.zeros(matrix.shape[0])
        for predictor, weight in zip(self.model_.predictors_, self.model_.weights_, strict=True):
            if weight > 0:
                chance += weight * np.asarray(predictor.predict(matrix), dtype=float)
        return chance
