"""A data set as an experiment holds it: both codings of all rows, or the raw frame where folds code for themselves."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.errors import InvalidInputError
from nerm.typing import Array, Floats, Ints, Matrix
from nerm.validation import check_known

DISCRETIZE = ("all rows", "training folds")


@dataclass(frozen=True, eq=False)
class CodedData:
    """Labels, viewpoint and inputs of one data set.

    Attributes
    ----------
    name
        Of the data set.
    y, viewpoint
        (n,), -1/+1.
    raw
        A frame that is to be discretised in each fold, or None.
    nominal, matrix
        Codes and one-hot rows, where all rows were coded at once.
    """

    name: str
    y: Floats
    viewpoint: Floats
    raw: Any = None
    nominal: Array | None = None
    matrix: Matrix = None

    def parts(self, coding: str, train: Ints, test: Ints) -> tuple[Matrix, Matrix]:
        """Return training and test rows in a method's coding."""
        if self.raw is None:
            rows: Matrix = self.nominal if coding == "nominal" else self.matrix
            return rows[train], rows[test]
        from nerm.datasets import Discretize, OneHot

        codes = Discretize().fit(self.raw.iloc[train])
        nominal = [codes.transform(self.raw.iloc[part]) for part in (train, test)]
        if coding == "nominal":
            return nominal[0].to_numpy(), nominal[1].to_numpy()
        one_hot = OneHot().fit(nominal[0])
        return one_hot.transform(nominal[0]), one_hot.transform(nominal[1])

    def digest(self) -> str:
        """Return 16 hex digits that stand for the content: codes follow from what they were made of."""
        import pandas as pd

        content = [self.y, self.viewpoint]
        if self.raw is not None:
            content.append(pd.util.hash_pandas_object(self.raw, index=False).to_numpy())
        elif self.nominal is not None:
            content.append(self.nominal)
        else:
            content += [
                self.matrix.data,
                self.matrix.indices.astype(np.int64),
                self.matrix.indptr.astype(np.int64),
            ]
        hashed = hashlib.sha256()
        for part in content:
            hashed.update(np.ascontiguousarray(part).tobytes())
        return hashed.hexdigest()[:16]


def as_coded_data(datasets: Any, discretize: str, codings: set[str], data_home: Any) -> list[CodedData]:
    """Return data sets given by name or as `Dataset`, in the codings that are asked for."""
    from nerm.datasets import Dataset

    check_known(discretize, "'discretize'", DISCRETIZE)
    several: Sequence[Any] = [datasets] if isinstance(datasets, str | Dataset) else list(datasets)
    if not several:
        raise InvalidInputError(
            "'datasets' must name at least one data set", "none", "Give datasets=('german',)"
        )
    coded = [_coded(data, discretize, codings, data_home) for data in several]
    names = [data.name for data in coded]
    if len(set(names)) < len(names):
        raise InvalidInputError("each of 'datasets' must have its own name", repr(names), "Rename one")
    return coded


def _coded(data: Any, discretize: str, codings: set[str], data_home: Any) -> CodedData:
    from nerm.datasets import Dataset, Discretize, OneHot, load
    from nerm.datasets.coding import as_frame

    if not isinstance(data, Dataset):
        data = load(data, random_state=0 if data == "synthetic" else None, data_home=data_home)
    known = data.name, np.asarray(data.y, dtype=float), np.asarray(data.viewpoint, dtype=float)
    if data.coding == "one-hot":
        if "nominal" in codings:
            must = (
                f"the data set {data.name!r} must be raw or nominal for the methods that need nominal codes"
            )
            raise InvalidInputError(
                must, "coding 'one-hot'", "Load it with coding='raw', or leave those methods out"
            )
        return CodedData(*known, matrix=sp.csr_matrix(data.X))
    if data.coding == "raw" and discretize == "training folds":
        return CodedData(*known, raw=as_frame(data.X))
    nominal = Discretize().fit_transform(as_frame(data.X)) if data.coding == "raw" else data.X
    return CodedData(*known, nominal=nominal.to_numpy(dtype=float), matrix=OneHot().fit_transform(nominal))
