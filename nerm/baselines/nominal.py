"""Nominal tables as integer codes, and the naive Bayes log-odds tables on them."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.datasets.discretize import as_frame
from nerm.datasets.levels import Levels
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
        places = np.column_stack([levels.codes(column) for levels, column in zip(self.levels, columns, strict=True)])
        missing = np.column_stack([column.isna() for column in columns])
        numbers = np.where(missing, self.sizes + 1, np.where(places < 0, self.sizes, places))
        return self.starts[:-1] + numbers

    def log_odds(self, codes: Ints, positive: Bools) -> Floats:
        """Return, for each number, what it adds to the log-odds of the positive class.

        ``log P(x_j | 1) - log P(x_j | 0)`` with ``P(x_j | y) = (n(y, x_j) + 1/V_j) / (n_j(y) + 1)``, n_j(y) the rows
        of class y in which attribute j is not missing. An unseen value has n(y, x_j) = 0; a missing entry adds nothing.
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
