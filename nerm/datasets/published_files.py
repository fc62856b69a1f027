"""Read published files and files of the user, as described in ``published.json``.

A reader is a function (about, path, data_home) -> (table, source). `about` is the data set's entry in
``published.json``, `path` a file or None, `data_home` a folder or None, and `source` says where the table
came from. To add a UCI table that is also on OpenML, add an entry to ``published.json``. To add any other
data set, add an entry and a reader in `READERS`.
"""

import gzip
import hashlib
import io
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nerm.errors import InvalidInputError


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


_JSON = resources.files("nerm.datasets").joinpath("published.json").read_text(encoding="utf-8")
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


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, decompressed if it is a gzip file."""
    content = path.read_bytes()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


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


def read_uci(about: dict[str, Any], path: Any, data_home: Any) -> tuple[Any, str]:
    """Return (table, source) of a UCI file; if it is not found, read the same table from OpenML."""
    where = find(about["name"], about["file"], data_home)
    if where is None:
        return _openml_table(about, data_home), f"OpenML {about['openml']}"
    with readable(where, "gzip"):
        content = read_bytes(where)
    found = hashlib.sha256(content).hexdigest()
    if found != about["sha256"]:
        must = f"{where} must be the published file (sha256 {about['sha256'][:12]}… unzipped)"
        do = "The file is truncated or changed: download it again, or remove it to load from OpenML"
        raise InvalidInputError(must, f"sha256 {found[:12]}… over {len(content)} bytes", do)
    read = pd.read_csv(io.BytesIO(content), names=about["columns"], keep_default_na=False, **about["csv"])
    return _typed(about, _decoded(read, about.get("codes", {}))), f"UCI file {about['file']}"


def _openml_table(about: dict[str, Any], data_home: Any) -> Any:
    """Return the table of a UCI file from OpenML; raise an error if it is not the published one."""
    served = fetch_openml_frame(about, data_home)
    which = f"OpenML data set {about['openml']} must be the published {about['file']}"
    must = f"{which} (checksum {about['digest'][:12]}…)"
    do = f"Put the UCI file {about['file']} in a folder and name it in NERM_DATA or data_home"
    try:
        renamed = served.rename(columns=about.get("openml_columns", {})).iloc[: about.get("rows")]
        frame = _typed(about, _decoded(renamed, about.get("openml_codes", {})))
    except (KeyError, ValueError, TypeError) as error:
        got = f"a frame of shape {served.shape} that does not map to it ({error})"
        raise InvalidInputError(must, got, do) from error
    found = hashlib.sha256(frame.to_csv(index=False, lineterminator="\n").encode()).hexdigest()
    if found != about["digest"]:
        raise InvalidInputError(must, f"a frame of shape {frame.shape} with checksum {found[:12]}…", do)
    return frame


def _decoded(frame: Any, codes: dict[str, dict[str, str]]) -> Any:
    """Replace the codes in some columns by words; `codes` has one dict from code to word per column."""
    return frame.assign(**{column: frame[column].astype(str).map(words) for column, words in codes.items()})


def _typed(about: dict[str, Any], frame: Any) -> Any:
    """Return the published columns, in order, as integers or as alphabetically sorted categories."""
    typed = {}
    for column in about["columns"]:
        is_number = column in about["numbers"]
        typed[column] = frame[column].astype("int64") if is_number else pd.Categorical(list(frame[column]))
    return pd.DataFrame(typed).reset_index(drop=True)


def read_acs_income(about: dict[str, Any], path: Any, data_home: Any) -> tuple[Any, str]:
    """Return (table, source) of ACSIncome (Ding et al., 2021), from a file or from OpenML.

    The file is acs_income.csv, or a part of the table as the repository dssg/aequitas has it,
    acs/acs_income_part.parquet. The features are integers or categories; one more column says whether the
    income is above 50,000.
    """
    part = find("acs", "acs_income_part.parquet", data_home)
    where = find("acs_income", about["file"], data_home) or part
    if where is None:
        frame, source = fetch_openml_frame(about, data_home), f"OpenML {about['openml']}"
    else:
        with readable(where, "CSV" if where is not part else "Parquet"):
            frame = pd.read_csv(where) if where is not part else pd.read_parquet(where)
            source = f"file {where.name}"
    origin, features = where or "OpenML", about["columns"][:-1]
    _check_columns(frame, [*features, "PINCP"], about, origin)
    if frame["PINCP"].max() <= 1:  # this part has races from 0, and 1 for an income above 50,000
        frame = frame.assign(PINCP=frame["PINCP"] * (about["income_above"] + 1), RAC1P=frame["RAC1P"] + 1)
    numbers = frame[features].apply(pd.to_numeric, errors="coerce")
    for row, j in np.argwhere((numbers % 1 != 0).to_numpy())[:1]:  # true for nan
        must, got = f"{features[j]!r} of {origin} must hold whole numbers", repr(frame[features[j]].iloc[row])
        raise InvalidInputError(must, f"{got} in row {row}", "Use the published table")
    words = {column: str for column in features if column not in about["numbers"]}
    income = np.where(frame["PINCP"].astype(float) > about["income_above"], ">50K", "<=50K")
    return _typed(about, numbers.astype("int64").astype(words).assign(income=income)), source


def users_file(about: dict[str, Any], path: Any, data_home: Any) -> Path:
    """Return the path of a file that cannot be downloaded: `path`, or the file in a folder of `homes`."""
    where = find(about["name"], about["file"], data_home) if path is None else Path(path).expanduser()
    if where is None or not where.is_file():
        missing = "no path, and no such file in data_home or in the folder that NERM_DATA names"
        must = f"'path' must name the file {about['file']}, which cannot be downloaded"
        do = f"Get it {about['origin']} and call load({about['name']!r}, path=…)"
        raise DataUnavailableError(must, missing if where is None else f"no file at {where}", do)
    return where


def read_dutch(about: dict[str, Any], path: Any, data_home: Any) -> tuple[Any, str]:
    """Return (table, source) of the Dutch census of 2001, from the user's ARFF file.

    All columns are categories.
    """
    from scipy.io import arff

    where = users_file(about, path, data_home)
    with readable(where, "ARFF"):
        data, _ = arff.loadarff(io.StringIO(read_bytes(where).decode("utf-8")))
    frame = pd.DataFrame(data).map(_label).astype("category")
    _check_columns(frame, about["columns"], about, where)
    occupations = sorted(set(frame["occupation"].dropna()))
    if occupations != ["2_1", "5_4_9"]:
        must = f"'occupation' in {where} must hold the two classes '2_1' and '5_4_9'"
        got = ", ".join(map(repr, occupations[:5])) or "no class"
        raise InvalidInputError(must, got, "Use the file whose target is already reduced to these two")
    return frame[about["columns"]], str(where)


def _label(value: Any) -> str | None:
    """Return an ARFF value as text, for instance 1.0 as '1'; None for ``?`` and NaN."""
    if isinstance(value, bytes):
        return None if value == b"?" else value.decode()
    return None if np.isnan(value) else f"{value:g}"


def read_news(about: dict[str, Any], path: Any, data_home: Any) -> tuple[Any, str]:
    """Return (table, source) of the news sentences BABE (Spinde et al. 2021), from the user's file.

    The column "type" is the political side of the sentence's outlet.
    """
    where = users_file(about, path, data_home)
    with readable(where, "CSV"):
        text = io.StringIO(read_bytes(where).decode("utf-8-sig"))
        frame = pd.read_csv(text, sep=";", dtype=object, keep_default_na=False, na_values=[""])
    _check_columns(frame, about["columns"], about, where)
    categories = {column: pd.Categorical(frame[column]) for column in about["categories"]}
    return frame[about["columns"]].assign(**categories), f"file {about['file']}"


def _check_columns(frame: Any, columns: list[str], about: dict[str, Any], where: Any) -> None:
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        must = f"{where} must have the {len(columns)} columns of {about['file']}"
        got = f"a file without {', '.join(map(repr, missing))}"
        raise InvalidInputError(must, got, "Check that it is that file, with its separator and column names")


#: The readers of data sets that are no UCI tables, by name; `read_uci` reads the others.
READERS = {"acs_income": read_acs_income, "acs_race": read_acs_income, "dutch": read_dutch, "news": read_news}
