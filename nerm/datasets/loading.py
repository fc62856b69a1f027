"""``load``: one door to every data set, in every coding."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from nerm.datasets import dutch as dutch_census
from nerm.datasets.dataset import Dataset
from nerm.datasets.discretize import Discretize
from nerm.datasets.one_hot import OneHot
from nerm.datasets.synthetic import load_synthetic
from nerm.datasets.uci import TABLES
from nerm.errors import InvalidInputError, UnknownNameError

CODINGS = ("raw", "nominal", "one-hot")
UCI_LICENCE = "CC BY 4.0 (UCI Machine Learning Repository)"


def names() -> list[str]:
    """Return what ``load`` knows.

    >>> names()
    ['adult', 'bank', 'diabetes', 'dutch', 'german', 'synthetic']
    """
    return sorted([*TABLES, "diabetes", "dutch", "synthetic"])


def load(
    name: str,
    coding: str = "raw",
    *,
    n: int | None = None,
    random_state: Any = None,
    path: str | os.PathLike[str] | None = None,
    data_home: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Load a data set as a ``Dataset`` with X, y and viewpoint.

    ``name`` is ``"synthetic"``, ``"diabetes"`` (comes with scikit-learn: works offline), ``"adult"``,
    ``"german"``, ``"bank"`` or ``"dutch"``.

    ``coding`` is ``"raw"`` (as published), ``"nominal"`` (the paper's discretised codes, NaN = missing) or
    ``"one-hot"`` (CSR). The last two learn cut points and pooled values from all rows, as the paper did; to
    learn them on training folds only, load ``"raw"`` and put ``Discretize`` and ``OneHot`` in a pipeline.

    ``n`` (default 1000) and ``random_state`` belong to ``"synthetic"``; ``path``, the user's ARFF file, to
    ``"dutch"``.

    ``data_home`` is a folder with the UCI files (plain or gzip'ed), looked at before the one that the
    environment variable NERM_DATA names; scikit-learn's cache of OpenML downloads goes there too. Without UCI
    files the data come from OpenML.

    >>> load("diabetes", coding="one-hot")
    Dataset('diabetes', coding='one-hot': 442 rows, 36 columns, 50.0% desired outcomes, 46.8% favoured)
    """
    if name not in names():
        raise UnknownNameError("'name'", name, names())
    if coding not in CODINGS:
        raise UnknownNameError("'coding'", coding, CODINGS)
    for option, value, owner in (
        ("n", n, "synthetic"),
        ("random_state", random_state, "synthetic"),
        ("path", path, "dutch"),
    ):
        if value is not None and name != owner:
            raise InvalidInputError(
                f"{option!r} must be given for {owner!r} only", f"it with {name!r}", f"Leave {option!r} out"
            )
    if name == "synthetic":
        raw, features = load_synthetic(1000 if n is None else n, random_state)
    elif name == "diabetes":
        raw, features = _diabetes()
    elif name == "dutch":
        raw, features = _dutch(path)
    else:
        raw, features = _uci(name, data_home)
    return raw if coding == "raw" else _coded(raw, features, coding)


def _coded(raw: Dataset, features: Any, coding: str) -> Dataset:
    """Discretise on all rows, and one-hot code where asked."""
    discretize = Discretize(output="categories")
    nominal = discretize.fit_transform(features)
    if coding == "one-hot":
        one_hot = OneHot().fit(nominal)
        X, feature_names = one_hot.transform(nominal), one_hot.get_feature_names_out().tolist()
    else:
        X, feature_names = Discretize().fit_transform(features), list(features.columns)
    kept = {field: getattr(raw, field) for field in raw.__dataclass_fields__}
    kept.update(X=X, feature_names=feature_names, coding=coding, categories=discretize.categories_)
    return Dataset(**kept)


def _split(frame: Any, target: tuple[str, str], viewpoint: tuple[str, str]) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return features, y and viewpoint of a whole table."""
    y = np.where((frame[target[0]] == target[1]).to_numpy(), 1.0, -1.0)
    v = np.where((frame[viewpoint[0]] == viewpoint[1]).to_numpy(), 1.0, -1.0)
    return frame.drop(columns=[target[0], viewpoint[0]]), y, v


def _uci(name: str, data_home: Any) -> tuple[Dataset, Any]:
    table = TABLES[name]
    frame, source = table.frame(data_home)
    features, y, viewpoint = _split(frame, table.target, table.viewpoint)
    data = Dataset(
        X=features,
        y=y,
        viewpoint=viewpoint,
        feature_names=list(features.columns),
        name=name,
        coding="raw",
        description=table.description,
        source=source,
        licence=UCI_LICENCE,
        frame=frame,
    )
    return data, features


def _dutch(path: Any) -> tuple[Dataset, Any]:
    frame = dutch_census.read_dutch(path)
    features, y, viewpoint = _split(frame, dutch_census.TARGET, dutch_census.VIEWPOINT)
    whole = (
        ""
        if len(frame) == dutch_census.ROWS
        else f" The file in circulation has {dutch_census.ROWS} rows, this one {len(frame)}."
    )
    data = Dataset(
        X=features,
        y=y,
        viewpoint=viewpoint,
        feature_names=list(features.columns),
        name="dutch",
        coding="raw",
        description="Dutch census of 2001. y = +1: prestigious occupation (2_1); viewpoint = +1: male (1)." + whole,
        source=str(path),
        licence="IPUMS terms of use; not to be passed on",
        frame=frame,
    )
    return data, features


def _diabetes() -> tuple[Dataset, Any]:
    """Return scikit-learn's diabetes data in their original units."""
    from sklearn.datasets import load_diabetes

    frame = load_diabetes(as_frame=True, scaled=False).frame
    features = frame.drop(columns=["target", "sex"])
    data = Dataset(
        X=features,
        y=np.where(frame["target"] > frame["target"].median(), 1.0, -1.0),
        viewpoint=np.where(frame["sex"] == 2, 1.0, -1.0),
        feature_names=list(features.columns),
        name="diabetes",
        coding="raw",
        description=(
            "Diabetes progression after one year (Efron et al. 2004). y = +1: progression above the median; "
            "viewpoint = +1: sex coded 2 (the publication does not say which sex that is; this group is "
            "above the median slightly more often)."
        ),
        source="sklearn.datasets.load_diabetes(scaled=False)",
        licence="distributed with scikit-learn",
        frame=frame,
    )
    return data, features
