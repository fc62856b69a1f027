"""Load a data set in one of the three codings: raw, nominal or one-hot.

`read_table` reads published files as ``published.json`` describes them: file, columns and their types, target
and viewpoint; for OpenML its number and codes. To add a table, add an entry, and a function in `CODERS` if
the table must be recoded.
"""

import gzip
import hashlib
import io
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp

from nerm.datasets.coding import as_frame, coder_to
from nerm.errors import InvalidInputError
from nerm.signs import sign
from nerm.splitting import as_count
from nerm.typing import Floats, Ints, Matrix
from nerm.validation import check_known


class DataUnavailableError(InvalidInputError, FileNotFoundError):
    """Raised if the data are not on this machine and cannot be downloaded.

    The message says where to put the files. This is also a FileNotFoundError.

    >>> from nerm.datasets import load
    >>> try:
    ...     load("dutch", path="nowhere.arff")
    ... except FileNotFoundError as error:
    ...     print(error)
    'path' must name the file dutch_census_2001.arff, which cannot be downloaded. Got no file at
    nowhere.arff. Get it under IPUMS's terms and call load('dutch', path=…).
    """


_JSON = Path(__file__).with_name("published.json").read_text(encoding="utf-8")
#: The published facts of each data set: its name, file and checksums, columns, target and viewpoint.
PUBLISHED: dict[str, dict[str, Any]] = {k: {"name": k, **about} for k, about in json.loads(_JSON).items()}


def homes(data_home: str | os.PathLike[str] | None) -> list[Path]:
    """Return the folders to search: ``data_home`` if given, then the one named by NERM_DATA if set."""
    named = [data_home, os.environ.get("NERM_DATA")]
    return [Path(home).expanduser() for home in named if home]


def find(name: str, file: str, data_home: str | os.PathLike[str] | None) -> Path | None:
    """Return the path of a file, or None if it is not found.

    It is searched in ``<home>/<name>/`` and ``<home>/`` for every folder in `homes`, plain or with ``.gz``.
    """
    folders = [folder for home in homes(data_home) for folder in (home / name, home)]
    candidates = [folder / one for folder in folders for one in (file, f"{file}.gz")]
    return next((path for path in candidates if path.is_file()), None)


@contextmanager
def readable(path: Path, kind: str) -> Iterator[None]:
    """Turn errors raised in the ``with`` block into an error that says that the file is damaged."""
    try:
        yield
    except (ValueError, OSError, EOFError, zlib.error, IndexError, StopIteration) as error:
        must, got = f"{path} must be a whole {kind} file", f"one that cannot be read ({error})"
        raise InvalidInputError(must, got, "It may be truncated: copy or download it again") from None


def fetch_openml_frame(about: dict[str, Any], data_home: Any) -> Any:
    """Return a data set of OpenML as a DataFrame; scikit-learn downloads it once and caches it."""
    from http.client import HTTPException

    from sklearn.datasets import fetch_openml

    file, number = about["file"], about["openml"]
    try:
        return fetch_openml(data_id=number, as_frame=True, data_home=data_home and str(data_home)).frame
    except (OSError, HTTPException, ValueError) as error:  # OpenML's own errors are ValueErrors
        looked = ", ".join(str(home) for home in homes(data_home)) or "no folder (NERM_DATA is not set)"
        raise DataUnavailableError(
            f"{about['name']!r} must be on this machine or available from OpenML (id {number})",
            f"no {file} or {file}.gz in {looked}, and OpenML answered {type(error).__name__}: {error}",
            f"Go online, or put the UCI file {file} in a folder and name it in NERM_DATA or data_home",
        ) from None  # the message contains the network error


def read_table(about: dict[str, Any], path: Any, data_home: Any) -> tuple[Any, str]:
    """Return (table, source) of a published table, from a file or else from OpenML.

    Parameters
    ----------
    about
        The entry of the data set in ``published.json``.
    path, data_home
        As for `load`.
    """
    where = located(about, path, data_home)
    if where is None:
        return _openml_table(about, data_home), f"OpenML {about['openml']}"
    frame, kind = _parsed(about, where), "UCI file" if "sha256" in about else "file"
    needed = about.get("needed", about["columns"])
    missing = [column for column in needed if column not in frame.columns]
    if missing:
        must = f"{where} must have the {len(needed)} columns of {about['file']}"
        got = f"a file without {', '.join(map(repr, missing))}"
        raise InvalidInputError(must, got, "Check that it is this file, with its separator and column names")
    table = _typed(about, frame, about.get("codes", {}), where)
    return table, f"{kind} {where.name.removesuffix('.gz')}"


def located(about: dict[str, Any], path: Any, data_home: Any) -> Path | None:
    """Return the path of a data set's file: `path`, or a file in a folder of `homes`.

    Return None if there is no such file and OpenML has the table.
    """
    where = None if path is None else Path(path).expanduser()
    places = [(about.get("folder", about["name"]), about["file"]), *about.get("parts", [])]
    for folder, file in places:
        where = where or find(folder, file, data_home)
    if "openml" in about or (where is not None and where.is_file()):
        return where
    missing = "no path, and no such file in data_home or in the folder that NERM_DATA names"
    must = f"'path' must name the file {about['file']}, which cannot be downloaded"
    do = f"Get it {about['origin']} and call load({about['name']!r}, path=…)"
    raise DataUnavailableError(must, missing if where is None else f"no file at {where}", do)


def _parsed(about: dict[str, Any], where: Path) -> Any:
    """Return the table in a CSV, ARFF or Parquet file; refuse a UCI file that is not the published one."""
    with readable(where, "gzip"):
        content = where.read_bytes()
        content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    found = hashlib.sha256(content).hexdigest()
    if about.get("sha256", found) != found:
        must = f"{where} must be the published file (sha256 {about['sha256'][:12]}… unzipped)"
        do = "The file is truncated or changed: download it again, or remove it to load from OpenML"
        raise InvalidInputError(must, f"sha256 {found[:12]}… over {len(content)} bytes", do)
    if where.suffix == ".parquet":
        with readable(where, "Parquet"):
            return pd.read_parquet(io.BytesIO(content))
    if about["file"].endswith(".arff"):
        from scipy.io import arff

        with readable(where, "ARFF"):
            return pd.DataFrame(arff.loadarff(io.StringIO(content.decode()))[0]).map(_label)
    names = about["columns"] if "sha256" in about else None
    with readable(where, "CSV"):
        return pd.read_csv(io.BytesIO(content), names=names, **about.get("csv", {}))


def _label(value: Any) -> str | None:
    """Return an ARFF value as text, for instance 1.0 as '1'; None for ``?`` and NaN."""
    if isinstance(value, bytes):
        return None if value == b"?" else value.decode()
    return None if np.isnan(value) else f"{value:g}"


def _openml_table(about: dict[str, Any], data_home: Any) -> Any:
    """Return a published table from OpenML; raise an error if OpenML has another one."""
    served, digest = fetch_openml_frame(about, data_home), about.get("digest")
    must = f"OpenML data set {about['openml']} must be the published {about['file']}"
    must += f" (checksum {digest[:12]}…)" if digest else ""
    do = f"Put the file {about['file']} in a folder and name it in NERM_DATA or data_home"
    try:
        renamed = served.rename(columns=about.get("openml_columns", {})).iloc[: about.get("rows")]
        frame = _typed(about, renamed, about.get("openml_codes", {}), "OpenML")
    except (KeyError, ValueError, TypeError) as error:
        got = f"a frame of shape {served.shape} that does not map to it ({error})"
        raise InvalidInputError(must, got, do) from error
    text = frame.to_csv(index=False, lineterminator="\n") if digest else ""
    found = hashlib.sha256(text.encode()).hexdigest()
    if digest not in (None, found):
        raise InvalidInputError(must, f"a frame of shape {frame.shape} with checksum {found[:12]}…", do)
    return frame


def _typed(about: dict[str, Any], frame: Any, codes: dict[str, dict[str, str]], origin: Any) -> Any:
    """Return the published columns, in order, as integers, texts or alphabetically sorted categories.

    `codes` has one dict per coded column, from code to word; `origin` says in errors where the table is from.
    """
    if about["name"] in CODERS:
        frame = CODERS[about["name"]](about, frame, origin)
    typed = {}
    for column in about["columns"]:
        values = frame[column].astype(str).map(codes[column]) if column in codes else frame[column]
        if column in about.get("numbers", ()):
            values = values.astype("int64")
        elif column not in about.get("texts", ()):
            values = pd.Categorical(list(values))
        typed[column] = values
    return pd.DataFrame(typed).reset_index(drop=True)


def _code_income(about: dict[str, Any], frame: Any, origin: Any) -> Any:
    """Return ACSIncome (Ding et al., 2021) with whole numbers, other codes as texts, and the column income.

    `frame` has the incomes of folktables, or is a part of the table from the repository dssg/aequitas, which
    counts races from 0 and has 1 for an income above 50,000.
    """
    features = about["columns"][:-1]
    if frame["PINCP"].max() <= 1:
        frame = frame.assign(PINCP=frame["PINCP"] * (about["income_above"] + 1), RAC1P=frame["RAC1P"] + 1)
    numbers = frame[features].apply(pd.to_numeric, errors="coerce")
    for row, j in np.argwhere((numbers % 1 != 0).to_numpy())[:1]:  # true for nan
        must, got = f"{features[j]!r} of {origin} must hold whole numbers", repr(frame[features[j]].iloc[row])
        raise InvalidInputError(must, f"{got} in row {row}", "Use the published table")
    words = {column: str for column in features if column not in about["numbers"]}
    income = np.where(frame["PINCP"].astype(float) > about["income_above"], ">50K", "<=50K")
    return numbers.astype("int64").astype(words).assign(income=income)


def _check_occupations(about: dict[str, Any], frame: Any, origin: Any) -> Any:
    """Return the Dutch census of 2001.

    Raise an error unless its target has two classes.
    """
    occupations = sorted(set(frame["occupation"].dropna()))
    if occupations != ["2_1", "5_4_9"]:
        must = f"'occupation' in {origin} must hold the two classes '2_1' and '5_4_9'"
        got = ", ".join(map(repr, occupations[:5])) or "no class"
        raise InvalidInputError(must, got, "Use the file whose target is already reduced to these two")
    return frame


#: Functions (about, frame, origin) that check or recode a table, by the name of its data set.
CODERS = {"acs_income": _code_income, "acs_race": _code_income, "dutch": _check_occupations}


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
            raise InvalidInputError(must, f"it for {name!r}", f"Remove {option!r}")
    if name == "news" and coding != "raw":
        do = "Load it raw and turn its text into numbers, with scikit-learn's TfidfVectorizer for instance"
        raise InvalidInputError("'coding' must be 'raw' for 'news', which is text", repr(coding), do)
    if name == "synthetic":
        raw = synthetic(1000 if n is None else n, random_state)
    elif name == "diabetes":
        raw = _diabetes()
    else:
        raw = _labelled(name, *read_table(PUBLISHED[name], path, data_home))
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
    """Return scikit-learn's diabetes data set in its original units.

    The target is cut at its median.
    """
    from sklearn.datasets import load_diabetes

    frame = load_diabetes(as_frame=True, scaled=False).frame
    y = np.where(frame["target"] > frame["target"].median(), 1.0, -1.0)
    v = np.where(frame["sex"] == 2, 1.0, -1.0)
    return _dataset("diabetes", frame.drop(columns=["target", "sex"]), y, v, frame=frame)


def synthetic(n: int, random_state: Any) -> Dataset:
    """Draw the paper's n samples (section 7.1), with the corrected label noise.

    The inputs x and the true weight vectors w_y and w_v are uniform on [-1, 1]^10; w_y and w_v have the same
    first entry. Then ``y = sign(w_y.x)`` and ``v = sign(w_v.x)``, each flipped with probability
    ``1 / (1 + exp(+100 |w.x|))``. The paper prints -100, which would flip 99.5 % of the labels instead of
    0.45 %. The weights are drawn first and then the samples one after the other. So, with the same integer
    seed, the rows for a small n are the first rows for a larger n. The `details` have w_y and w_v.
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
    description = f"{n} {PUBLISHED['synthetic']['description']}"
    return _dataset("synthetic", X, y, viewpoint, description=description, details={"w_y": w_y, "w_v": w_v})
