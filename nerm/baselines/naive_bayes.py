"""Naive Bayes on nominal data: what CV2NB starts from, and the baseline without a viewpoint."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from nerm.baselines.base import GroupClassifier
from nerm.baselines.nominal import NominalCodes
from nerm.typing import Floats, Ints


class NominalNaiveBayes(GroupClassifier):
    """Naive Bayes with the smoothing of Calders and Verwer (2010); the viewpoint is accepted and not used.

    ``P(y|x) ~ (N[y] + 1/2) prod_j (n(y, x_j) + 1/V_j) / (n_j(y) + 1)``, V_j the number of values of attribute j in the
    training rows and n_j(y) the rows of class y in which it is not missing. Missing entries (NaN, None) are skipped; a
    value not seen in fit counts as seen 0 times.

    Attributes
    ----------
    counts_ : array of shape (2,)
        Rows of each class.
    objective_ : float
        The negative log-likelihood of the training labels.
    n_iter_, converged_ : int, bool
        0 and True: the fit is a count.

    Examples
    --------
    >>> model = NominalNaiveBayes().fit([[0], [0], [1], [1]], [-1, -1, 1, -1])
    >>> model.predict([[0], [1], [float("nan")]])
    array([-1, -1, -1])
    """

    def fit(self, X: Any, y: Any, *, viewpoint: Any = None) -> Self:
        """Count. X is (n, d), nominal; y (n,), two values."""
        self._nominal = NominalCodes(X)
        codes = self._nominal.codes(X)
        positive = self._fit_labels(y, len(codes))
        validate_data(self, X, skip_check_array=True)
        self.counts_ = np.array([(~positive).sum(), positive.sum()], dtype=float)
        self._odds = self._nominal.log_odds(codes, positive)
        margins = np.where(positive, 1.0, -1.0) * self._scores(codes)
        self.objective_ = float(np.logaddexp(0.0, -margins).sum())
        self.n_iter_, self.converged_ = 0, True
        return self

    def decision_function(self, X: Any, *, viewpoint: Any = None) -> Floats:
        """Return the log-odds of the positive class."""
        check_is_fitted(self)
        self._check_columns(X)
        return self._scores(self._nominal.codes(X))

    def _scores(self, codes: Ints) -> Floats:
        prior = np.log(self.counts_[1] + 0.5) - np.log(self.counts_[0] + 0.5)
        return self._odds[codes].sum(axis=1) + prior
