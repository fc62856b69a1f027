"""Load a data set in one of the three codings: raw, nominal or one-hot."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from nerm.datasets.coding import as_frame, coder_to
from nerm.datasets.published_files import PUBLISHED, READERS, read_uci
from nerm.errors import InvalidInputError
from nerm.signs import sign
from nerm.splitting import as_count
from nerm.typing import Floats, Ints, Matrix
from nerm.validation import check_known

#: For each option of `load`, the data sets that accept it.
OWNERS = {"n": ("synthetic",), "random_state": ("synthetic",), "path": ("dutch", "news")}


@dataclass(frozen=True, repr=False, eq=False)
class Dataset:
    """Inputs, labels and viewpoint of one data set.

    Attributes
    ----------
    X
        The features, (n, d), without the target and the viewpoint. With the coding "raw", they are as
        published; with "nominal", a DataFrame of codes, where NaN means missing; with "one-hot", a CSR
        matrix. The data set "news" contains only the labelled sentences of outlets on the left or the right.
    y
        (n,): +1 for the desired outcome, else -1.
    viewpoint
        (n,): +1 for the favoured group, else -1.
    feature_names
        The names of the columns of X.
    name, coding, description, source, licence
        The data set's name, the coding of X, a description, the origin of the data and their licence.
    frame
        The whole published table, including target and viewpoint; None if there is none.
    categories
        For each attribute, the labels of the nominal codes.
    details
        Further facts, for instance the true weights of synthetic data.

    Examples
    --------
    >>> from nerm.datasets import load
    >>> data = load("diabetes")
    >>> data
    Dataset('diabetes', coding='raw': 442 rows, 9 columns, 50.0% desired outcomes, 46.8% favoured)
    >>> "sex" in data.feature_names, "sex" in data.frame.columns
    (False, True)
    """

    X: Any
    y: Floats
    viewpoint: Floats
    feature_names: list[str]
    name: str
    coding: str
    description: str
    source: str
    licence: str
    frame: Any = None
    categories: Mapping[str, list[str]] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        return (
            f"Dataset({self.name!r}, coding={self.coding!r}: {rows} rows, {columns} columns, "
            f"{(self.y > 0).mean():.1%} desired outcomes, {(self.viewpoint > 0).mean():.1%} favoured)"
        )

    def coded(self, coding: str) -> Self:
        """Return the data set in the coding ``"nominal"`` or ``"one-hot"``, learned from all rows."""
        if coding == self.coding:
            return self
        if self.coding == "one-hot":
            must = f"the data set {self.name!r} must be raw or nominal where nominal codes are needed"
            do = "Load it with coding='raw', or leave out the methods that need them"
            raise InvalidInputError(must, "coding 'one-hot'", do)
        coder = coder_to(coding, self.coding)
        X, names = coder.fit_transform(self.X), coder.get_feature_names_out().tolist()
        categories = coder[0].categories_ if self.coding == "raw" else self.categories
        return replace(self, X=X, feature_names=names, coding=coding, categories=categories)

    def parts(self, coding: str, train: Ints, test: Ints) -> tuple[Matrix, Matrix]:
        """Return the features of training and test rows as matrices, coded as the training rows are.

        Parameters
        ----------
        coding
            ``"nominal"`` or ``"one-hot"``. If X has another coding, this one is learned on the training rows.
        train, test
            Row indices.
        """
        found = [self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows] for rows in (train, test)]
        if coding != self.coding:
            coder = coder_to(coding, self.coding).fit(found[0])
            found = [coder.transform(part) for part in found]
        X, X_test = (part if sp.issparse(part) else np.asarray(part, dtype=float) for part in found)
        return X, X_test


def names() -> list[str]:
    """Return the names of all data sets that ``load`` accepts, sorted.

    Returns
    -------
    list of str

    Examples
    --------
    >>> names()
    ['acs_income', 'acs_race', 'adult', 'bank', 'diabetes', 'dutch', 'german', 'news', 'synthetic']
    """
    return sorted(PUBLISHED)


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
        ``"synthetic"``, ``"diabetes"`` (included in scikit-learn, works offline), ``"adult"``, ``"german"``,
        ``"bank"``, ``"dutch"``, ``"acs_income"`` and ``"acs_race"`` (1.66 million rows, with sex or race as
        the viewpoint) or ``"news"`` (sentences, with the political side of their outlet).
    coding
        ``"raw"`` (as published), ``"nominal"`` (the paper's discretised codes, NaN = missing) or
        ``"one-hot"`` (CSR). The last two learn cut points and pooled values from all rows, as the paper did;
        to learn them on training folds only, load ``"raw"`` and put ``Discretize`` and ``OneHot`` in a
        pipeline. ``"news"`` is text and has only the coding ``"raw"``.
    n, random_state
        For ``"synthetic"``: the number of rows (default 1000), and a seed for ``numpy.random.default_rng``.
    path
        For ``"dutch"``: the user's ARFF file. For ``"news"``: the user's CSV file. Needed only if the file is
        not in `data_home` or in the folder NERM_DATA.
    data_home
        A folder with the published files (plain or gzip). It is searched before the folder that the
        environment variable NERM_DATA names. scikit-learn also stores its OpenML downloads there. If the
        files are not found, Adult, German, Bank and ACSIncome are downloaded from OpenML.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> load("diabetes", coding="one-hot")
    Dataset('diabetes', coding='one-hot': 442 rows, 36 columns, 50.0% desired outcomes, 46.8% favoured)
    """
    check_known(name, "'name'", names())
    check_known(coding, "'coding'", ("raw", "nominal", "one-hot"))
    for option, value in {"n": n, "random_state": random_state, "path": path}.items():
        if value is not None and name not in OWNERS[option]:
            must = f"{option!r} must be given for {' and '.join(map(repr, OWNERS[option]))} only"
            raise InvalidInputError(must, f"it with {name!r}", f"Leave {option!r} out")
    if name == "news" and coding != "raw":
        do = "Load it raw and turn its text into numbers, with scikit-learn's TfidfVectorizer for instance"
        raise InvalidInputError("'coding' must be 'raw' for 'news', which is text", repr(coding), do)
    if name == "synthetic":
        drawn = synthetic(1000 if n is None else n, random_state)
        raw = _dataset(name, **drawn, description=f"{len(drawn['y'])} {PUBLISHED[name]['description']}")
    elif name == "diabetes":
        raw = _diabetes()
    else:
        raw = _labelled(name, *READERS.get(name, read_uci)(PUBLISHED[name], path, data_home))
    return raw if coding == "raw" else raw.coded(coding)


def _dataset(name: str, X: Any, y: Floats, viewpoint: Floats, **more: Any) -> Dataset:
    """Return a raw data set with its published description, source and licence.

    `more` are further attributes of `Dataset`; they replace the published ones.
    """
    about: dict[str, Any] = {key: PUBLISHED[name].get(key) for key in ("description", "source", "licence")}
    return Dataset(X, y, viewpoint, list(as_frame(X).columns), name, "raw", **about | more)


def _labelled(name: str, frame: Any, source: str) -> Dataset:
    """Return the raw data set of a published table that includes the target and the viewpoint.

    ``published.json`` names the columns of target and viewpoint, and the rows and features to keep.
    """
    about = PUBLISHED[name]
    description = about["description"]
    if len(frame) != about.get("rows", len(frame)):
        description += f" The file in circulation has {about['rows']} rows, this one {len(frame)}."
    rows = frame
    for column, values in about.get("keep", {}).items():
        rows = rows[rows[column].isin(values)]
    roles = [about["target"], about["viewpoint"]]
    signs = [np.where((rows[column] == value).to_numpy(), 1.0, -1.0) for column, value in roles]
    X = rows[about["features"]] if "features" in about else rows.drop(columns=[column for column, _ in roles])
    return _dataset(name, X, *signs, frame=frame, source=source, description=description)


def _diabetes() -> Dataset:
    """Return scikit-learn's diabetes data set in its original units; the target is cut at its median."""
    from sklearn.datasets import load_diabetes

    frame = load_diabetes(as_frame=True, scaled=False).frame
    y = np.where(frame["target"] > frame["target"].median(), 1.0, -1.0)
    v = np.where(frame["sex"] == 2, 1.0, -1.0)
    return _dataset("diabetes", frame.drop(columns=["target", "sex"]), y, v, frame=frame)


def synthetic(n: int, random_state: Any) -> dict[str, Any]:
    """Draw the paper's n samples (section 7.1), with the corrected label noise.

    The inputs x and the true weight vectors w_y and w_v are uniform on [-1, 1]^10; w_y and w_v have the same
    first entry. Then ``y = sign(w_y.x)`` and ``v = sign(w_v.x)``, each flipped with probability
    ``1 / (1 + exp(+100 |w.x|))``. The paper prints -100, which would flip 99.5 % of the labels instead of
    0.45 %. The weights are drawn first and then the samples one after the other. So, with the same integer
    seed, the rows for a small n are the first rows for a larger n.

    Returns
    -------
    dict
        X (n, 10), y (n,), viewpoint (n,), and details with w_y and w_v.
    """
    as_count(n, "n", do="Give the number of samples to draw")
    d = 10
    uniform = np.random.default_rng(random_state).uniform
    w_y, w_v = uniform(-1.0, 1.0, (2, d))
    w_v[0] = w_y[0]
    draws = uniform(-1.0, 1.0, (n, d + 2))
    X, chance = draws[:, :d], (draws[:, d:] + 1.0) / 2.0
    margins = X @ np.column_stack([w_y, w_v])
    decay = np.exp(-100.0 * np.abs(margins))  # decay / (1 + decay) is the probability, and cannot overflow
    y, viewpoint = (np.where(chance < decay / (1.0 + decay), -1.0, 1.0) * sign(margins)).T
    return {"X": X, "y": y, "viewpoint": viewpoint, "details": {"w_y": w_y, "w_v": w_v}}
