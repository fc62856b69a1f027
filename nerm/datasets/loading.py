"""``load``: every data set, in every coding."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from nerm.datasets import dutch as dutch_census
from nerm.datasets.dataset import Dataset
from nerm.datasets.discretize import Discretize, as_frame
from nerm.datasets.one_hot import OneHot
from nerm.datasets.published_files import PUBLISHED
from nerm.datasets.synthetic import FEATURES, synthetic
from nerm.datasets.uci import TABLES
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.typing import Bools

CODINGS = ("raw", "nominal", "one-hot")
UCI_LICENCE = "CC BY 4.0 (UCI Machine Learning Repository)"


def names() -> list[str]:
    """Return what ``load`` knows.

    Returns
    -------
    list of str

    Examples
    --------
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

    Parameters
    ----------
    name
        ``"synthetic"``, ``"diabetes"`` (comes with scikit-learn: works offline), ``"adult"``, ``"german"``,
        ``"bank"`` or ``"dutch"``.
    coding
        ``"raw"`` (as published), ``"nominal"`` (the paper's discretised codes, NaN = missing) or ``"one-hot"`` (CSR).
        The last two learn cut points and pooled values from all rows, as the paper did; to learn them on training
        folds only, load ``"raw"`` and put ``Discretize`` and ``OneHot`` in a pipeline.
    n, random_state
        For ``"synthetic"``: how many rows (default 1000), and the seed.
    path
        For ``"dutch"``: the user's ARFF file.
    data_home
        A folder with the UCI files (plain or gzip'ed), looked at before the one that the environment variable
        NERM_DATA names; scikit-learn's cache of OpenML downloads goes there too. Without UCI files the data come from
        OpenML.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> load("diabetes", coding="one-hot")
    Dataset('diabetes', coding='one-hot': 442 rows, 36 columns, 50.0% desired outcomes, 46.8% favoured)
    """
    if name not in names():
        raise UnknownNameError("'name'", name, names())
    if coding not in CODINGS:
        raise UnknownNameError("'coding'", coding, CODINGS)
    owners = (("n", n, "synthetic"), ("random_state", random_state, "synthetic"), ("path", path, "dutch"))
    for option, value, owner in owners:
        if value is not None and name != owner:
            raise InvalidInputError(
                f"{option!r} must be given for {owner!r} only", f"it with {name!r}", f"Leave {option!r} out"
            )
    if name == "synthetic":
        raw = _synthetic(1000 if n is None else n, random_state)
    elif name == "diabetes":
        raw = _diabetes()
    elif name == "dutch":
        raw = _dutch(path)
    else:
        raw = _uci(name, data_home)
    return raw if coding == "raw" else _coded(raw, coding)


def _coded(raw: Dataset, coding: str) -> Dataset:
    """Discretise on all rows, and one-hot code where asked."""
    features = as_frame(raw.X)
    discretize = Discretize(output="categories" if coding == "one-hot" else "codes")
    X = discretize.fit_transform(features)
    feature_names = list(features.columns)
    if coding == "one-hot":
        one_hot = OneHot().fit(X)
        X, feature_names = one_hot.transform(X), one_hot.get_feature_names_out().tolist()
    return replace(raw, X=X, feature_names=feature_names, coding=coding, categories=discretize.categories_)


def _labelled(frame: Any, target: tuple[str, Bools], viewpoint: tuple[str, Bools], **about: Any) -> Dataset:
    """Return the raw data set of a whole table: two of its columns, and the rows in which they count as +1."""
    features = frame.drop(columns=[target[0], viewpoint[0]])
    y, v = (np.where(positive, 1.0, -1.0) for _, positive in (target, viewpoint))
    return Dataset(features, y, v, list(features.columns), coding="raw", frame=frame, **about)


def _where(frame: Any, column: str, value: str) -> tuple[str, Bools]:
    """Return the column's name and the rows in which it has this value."""
    return column, (frame[column] == value).to_numpy()


def _synthetic(n: int, random_state: Any) -> Dataset:
    return Dataset(
        **synthetic(n, random_state),
        feature_names=[f"x{j}" for j in range(FEATURES)],
        name="synthetic",
        coding="raw",
        description=f"{n} samples of the paper's synthetic distribution, label noise corrected.",
        source="generated",
        licence="none needed",
    )


def _uci(name: str, data_home: Any) -> Dataset:
    table = TABLES[name]
    frame, source = table.frame(data_home)
    target, viewpoint = _where(frame, *table.target), _where(frame, *table.viewpoint)
    return _labelled(
        frame, target, viewpoint, name=name, description=table.description, source=source, licence=UCI_LICENCE
    )


def _dutch(path: Any) -> Dataset:
    frame = dutch_census.read_dutch(path)
    about = PUBLISHED["dutch"]
    description = about["description"]
    if len(frame) != dutch_census.ROWS:
        description += f" The file in circulation has {dutch_census.ROWS} rows, this one {len(frame)}."
    return _labelled(
        frame,
        _where(frame, *about["target"]),
        _where(frame, *about["viewpoint"]),
        name="dutch",
        description=description,
        source=str(path),
        licence="IPUMS terms of use; not to be passed on",
    )


def _diabetes() -> Dataset:
    """Return scikit-learn's diabetes data in their original units."""
    from sklearn.datasets import load_diabetes

    frame = load_diabetes(as_frame=True, scaled=False).frame
    return _labelled(
        frame,
        ("target", (frame["target"] > frame["target"].median()).to_numpy()),
        ("sex", (frame["sex"] == 2).to_numpy()),
        name="diabetes",
        description="Diabetes progression after one year (Efron et al. 2004). y = +1: progression above the median; "
        "viewpoint = +1: sex coded 2 (the publication does not say which sex that is; this group is above the median "
        "slightly more often).",
        source="sklearn.datasets.load_diabetes(scaled=False)",
        licence="distributed with scikit-learn",
    )
