"""Naive Bayes on nominal tables: the codes of attributes, missing and unseen values among them, and the plain model."""

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from nerm.baselines.base import GroupClassifier
from nerm.datasets.coding import Levels, as_frame
from nerm.errors import InvalidInputError
from nerm.typing import Bools, Floats, Ints


def _columns(X: Any) -> list[Any]:
    """Return the columns of a DataFrame or of a two-dimensional array."""
    if sp.issparse(X):
        must = "'X' must be a dense nominal table (codes or categories)"
        got = f"a sparse matrix of shape {X.shape}"
        raise InvalidInputError(must, got, "Pass the nominal coding, not the one-hot one")
    return [column for _, column in as_frame(X).items()]


class NominalCodes:
    """The values of each attribute, learnt once; ``codes`` numbers them through all attributes.

    Every attribute j owns ``V_j + 2`` consecutive numbers: its values, then one for values not seen in fit,
    then one for missing entries.
    """

    def __init__(self, X: Any) -> None:
        self.levels = [Levels.seen(column) for column in _columns(X)]
        self.sizes = np.array([len(levels.values) for levels in self.levels])
        self.starts = np.concatenate([[0], np.cumsum(self.sizes + 2)])

    def codes(self, X: Any) -> Ints:
        """Return the n × d matrix of numbers."""
        columns = _columns(X)
        if len(columns) != len(self.levels):
            must = f"'X' must have the {len(self.levels)} columns seen in fit"
            raise InvalidInputError(must, f"{len(columns)} columns", "Code the rows as in fit")
        places = np.column_stack(
            [levels.codes(column) for levels, column in zip(self.levels, columns, strict=True)]
        )
        missing = np.column_stack([column.isna() for column in columns])
        numbers = np.where(missing, self.sizes + 1, np.where(places < 0, self.sizes, places))
        return self.starts[:-1] + numbers

    def log_odds(self, codes: Ints, positive: Bools) -> Floats:
        """Return, for each number, what it adds to the log-odds of the positive class.

        ``log P(x_j | 1) - log P(x_j | 0)`` with ``P(x_j | y) = (n(y, x_j) + 1/V_j) / (n_j(y) + 1)``, n_j(y)
        the rows of class y in which attribute j is not missing. An unseen value has n(y, x_j) = 0; a missing
        entry adds nothing.
        """
        missing = self.starts[1:] - 1
        smooth = np.repeat(1.0 / np.maximum(self.sizes, 1), self.sizes + 2)

        def log_chances(chosen: Bools) -> Floats:
            counts = np.bincount(codes[chosen].ravel(), minlength=int(self.starts[-1]))
            present = np.repeat(chosen.sum() - counts[missing], self.sizes + 2)
            return np.asarray(np.log(counts + smooth) - np.log(present + 1.0))

        odds = log_chances(positive) - log_chances(~positive)
        odds[missing] = 0.0
        return odds


class NominalNaiveBayes(GroupClassifier):
    """Naive Bayes with the smoothing of Calders and Verwer (2010); the viewpoint is accepted and not used.

    ``P(y|x) ~ (N[y] + 1/2) prod_j (n(y, x_j) + 1/V_j) / (n_j(y) + 1)``, V_j the number of values of attribute
    j in the training rows and n_j(y) the rows of class y in which it is not missing. Missing entries (NaN,
    None) are skipped; a value not seen in fit counts as seen 0 times.

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

    level: ClassVar[str] = "none"

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
