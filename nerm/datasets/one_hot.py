"""One-hot coding of nominal tables, as the paper counts columns."""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from nerm.datasets.discretize import TableTransformer
from nerm.datasets.levels import Levels
from nerm.errors import InvalidInputError
from nerm.typing import Array


class OneHot(TableTransformer):
    """Code a nominal table (codes or pandas categories) as a CSR matrix of zeros and ones, (n, columns).

    An attribute with two values takes one column (1 for the second value), any other one column a value. A
    missing entry, and a value not seen in fit, is all zeros.

    Attributes
    ----------
    ``levels_``
        The `Levels` of each attribute.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"sex": ["f", "m", "m"], "job": ["a", "b", "c"]}, dtype="category")
    >>> one_hot = OneHot().fit(table)
    >>> one_hot.get_feature_names_out().tolist()
    ['sex=m', 'job=a', 'job=b', 'job=c']
    >>> one_hot.transform(table).toarray()
    array([[0., 1., 0., 0.],
           [1., 0., 1., 0.],
           [1., 0., 0., 1.]])
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the values of each attribute.

        Parameters
        ----------
        X
            The table, a DataFrame or an array (n, attributes).
        y
            Not used.
        """
        frame = self._fit_frame(X)
        self.levels_ = {column: Levels.seen(frame[column]) for column in frame.columns}
        if not any(levels.values for levels in self.levels_.values()):
            raise InvalidInputError(
                "'X' must have a value that is not missing", "only missing entries", "Check the table"
            )
        return self

    def transform(self, X: Any) -> Any:
        """Return the CSR matrix of X.

        Parameters
        ----------
        X
            A table with the attributes seen in fit.
        """
        frame = self._known_frame(X)
        known = {column: levels for column, levels in self.levels_.items() if levels.values}
        return sp.hstack([levels.matrix(levels.codes(frame[c])) for c, levels in known.items()], format="csr")

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return one ``attribute=value`` a column.

        Parameters
        ----------
        input_features
            Not used: the names are those seen in fit.
        """
        check_is_fitted(self)
        names = [f"{c}={_show(v)}" for c, levels in self.levels_.items() for v in levels.shown]
        return np.asarray(names, dtype=object)


def _show(value: Any) -> str:
    """Show a code 3.0 as 3."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
