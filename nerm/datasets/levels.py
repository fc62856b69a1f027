"""The values of one attribute, as codes and as columns of zeros and ones."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from nerm.typing import Ints


@dataclass(frozen=True)
class Levels:
    """The values of one attribute: two of them share one column, any other number has a column each.

    Attributes
    ----------
    values
        In the order of their columns.

    Examples
    --------
    >>> levels = Levels(("a", "b", "c"))
    >>> codes = levels.codes(["c", None, "a"])
    >>> codes.tolist(), levels.matrix(codes).toarray().tolist()
    ([2, -1, 0], [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    """

    values: tuple[Any, ...]

    @classmethod
    def seen(cls, series: Any) -> Self:
        """Return the values that occur: in the order of the categories when there are any, else sorted."""
        present = series.dropna().unique()
        if series.dtype.name == "category":
            return cls(tuple(value for value in series.cat.categories if value in present))
        return cls(tuple(sorted(present.tolist(), key=lambda v: (isinstance(v, str), v))))

    @property
    def shown(self) -> tuple[Any, ...]:
        """The values that have a column: of two only the second, since the first says the same."""
        return self.values[1:] if len(self.values) == 2 else self.values

    def codes(self, column: Any) -> Ints:
        """Return the place of each entry among the values, (n,); -1 for what is missing or none of them."""
        import pandas as pd

        values, column = pd.Index(self.values), pd.Series(column)
        both_numbers = values.dtype.kind == column.dtype.kind == "f"  # looked up some ten times as fast
        return np.asarray(
            values.get_indexer(column) if both_numbers else values.astype(object).get_indexer(column.astype(object))
        )

    def matrix(self, codes: Ints, unknown: float = 0.0) -> Any:
        """Return the CSR matrix of zeros and ones, (n, columns).

        Parameters
        ----------
        codes
            As `codes` returns them. A row with code -1 is all zeros.
        unknown
            What stands in the one column of two values for code -1 instead, since 0 means the first of them.
        """
        if len(self.values) == 2:
            return sp.csr_matrix(np.where(codes < 0, unknown, codes).astype(float)[:, None])
        rows = np.flatnonzero(codes >= 0)
        return sp.csr_matrix((np.ones(len(rows)), (rows, codes[rows])), shape=(len(codes), len(self.values)))
