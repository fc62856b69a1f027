"""A data set as an experiment holds it: both codings of all rows, or the raw frame where folds code for themselves."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.errors import InvalidInputError, UnknownNameError

DISCRETIZE = ("all rows", "training folds")


@dataclass(frozen=True, eq=False)
class Table:
    """Labels, viewpoint and inputs: `raw` (to be discretised in each fold), or `nominal` and `matrix` (done)."""

    name: str
    y: np.ndarray
    viewpoint: np.ndarray
    nominal: np.ndarray | None = None
    matrix: Any = None
    raw: Any = None

    def parts(self, coding: str, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
        """Return training and test rows in a method's coding."""
        if self.raw is not None:
            from nerm.datasets import Discretize, OneHot

            codes = Discretize().fit(self.raw.iloc[train])
            nominal = [codes.transform(self.raw.iloc[rows]) for rows in (train, test)]
            if coding == "nominal":
                return nominal[0].to_numpy(), nominal[1].to_numpy()
            one_hot = OneHot().fit(nominal[0])
            return one_hot.transform(nominal[0]), one_hot.transform(nominal[1])
        table: Any = self.nominal if coding == "nominal" else self.matrix
        return table[train], table[test]

    def digest(self) -> str:
        """Return 16 hex digits that stand for the content."""
        import pandas as pd

        hashed = hashlib.sha256()
        if self.raw is not None:
            hashed.update(pd.util.hash_pandas_object(self.raw, index=False).to_numpy().tobytes())
        parts: list[Any] = [self.y, self.viewpoint, self.nominal, self.matrix]
        for part in parts:
            if sp.issparse(part):
                for array in (part.data, part.indices.astype(np.int64), part.indptr.astype(np.int64)):
                    hashed.update(np.ascontiguousarray(array).tobytes())
            elif part is not None:
                hashed.update(np.ascontiguousarray(part, dtype=float).tobytes())
        return hashed.hexdigest()[:16]


def as_tables(datasets: Any, discretize: str, codings: set[str], data_home: Any) -> list[Table]:
    """Return the tables of data sets given by name or as `Dataset`."""
    from nerm.datasets import Dataset

    if discretize not in DISCRETIZE:
        raise UnknownNameError("'discretize'", discretize, DISCRETIZE)
    several: Sequence[Any] = [datasets] if isinstance(datasets, str | Dataset) else list(datasets)
    if not several:
        raise InvalidInputError("'datasets' must name at least one data set", "none", "Give datasets=('german',)")
    tables = [_table(data, discretize, codings, data_home) for data in several]
    names = [table.name for table in tables]
    if len(set(names)) < len(names):
        raise InvalidInputError("each of 'datasets' must have its own name", repr(names), "Rename one")
    return tables


def _table(data: Any, discretize: str, codings: set[str], data_home: Any) -> Table:
    from nerm.datasets import Dataset, Discretize, OneHot, load

    if not isinstance(data, Dataset):
        data = load(data, random_state=0 if data == "synthetic" else None, data_home=data_home)
    y, v = np.asarray(data.y, dtype=float), np.asarray(data.viewpoint, dtype=float)
    if data.coding == "one-hot":
        if "nominal" in codings:
            raise InvalidInputError(
                f"the data set {data.name!r} must be raw or nominal for the methods that need nominal codes",
                "coding 'one-hot'",
                "Load it with coding='raw', or leave those methods out",
            )
        return Table(data.name, y, v, matrix=sp.csr_matrix(data.X))
    if data.coding == "raw":
        from nerm.datasets.discretize import as_frame

        frame = as_frame(data.X)
        if discretize == "training folds":
            return Table(data.name, y, v, raw=frame)
        nominal = Discretize().fit_transform(frame)
    else:
        nominal = data.X
    return Table(data.name, y, v, nominal.to_numpy(dtype=float), OneHot().fit_transform(nominal))
