"""Sentences from news articles with the side of their outlet (BABE, Spinde et al. 2021), from the user's own file."""

import io
import os
from pathlib import Path
from typing import Any

import pandas as pd

from nerm.datasets.dataset import DataUnavailableError
from nerm.datasets.published_files import PUBLISHED, find, read_bytes
from nerm.errors import InvalidInputError

ROWS = 3674


def read_news(path: str | os.PathLike[str] | None, data_home: Any) -> tuple[Any, str]:
    """Return the table of ``final_labels_SG2.csv``, plain or gzip'ed, and where it came from.

    Parameters
    ----------
    path
        Where the file is; without it the folders `data_home` and NERM_DATA are looked at.
    data_home
        A folder.

    Returns
    -------
    DataFrame, str
    """
    about = PUBLISHED["news"]
    where = find("news", about["file"], data_home) if path is None else Path(path).expanduser()
    if where is None or not where.is_file():
        got = (
            "no path, and none in the folder that NERM_DATA names" if where is None else f"no file at {where}"
        )
        do = f"Get {about['file']} from {about['repository']} and call load('news', path=…)"
        raise DataUnavailableError("'path' must name the file of the news sentences", got, do)
    return _typed(_parse(where), where), f"file {about['file']}"


def _parse(where: Path) -> Any:
    """Parse the text: semicolons between columns, perhaps a byte-order mark; an empty cell is missing."""
    try:
        text = read_bytes(where).decode("utf-8-sig")
        return pd.read_csv(io.StringIO(text), sep=";", dtype=object, keep_default_na=False, na_values=[""])
    except ValueError as error:  # neither UTF-8 nor a table
        must, got = f"{where} must be a whole CSV file", f"one that cannot be read ({error})"
        raise InvalidInputError(must, got, "Download it again") from None


def _typed(frame: Any, where: Path) -> Any:
    """Return the published columns in order: text as words, what is one of few values as categories."""
    about = PUBLISHED["news"]
    missing = [column for column in about["columns"] if column not in frame.columns]
    if missing:
        must = f"{where} must have the {len(about['columns'])} columns of {about['file']}"
        got = f"a file without {', '.join(map(repr, missing))}"
        raise InvalidInputError(must, got, "Check that it is that file, with ';' between the columns")
    strange = sorted(set(frame["type"].dropna()) - {"left", "right", "center"})
    if strange:
        must = f"'type' in {where} must be 'left', 'right', 'center' or empty"
        raise InvalidInputError(must, repr(strange[0]), "Use the published file")
    if frame["text"].isna().any():
        row = int(frame["text"].isna().to_numpy().argmax())
        raise InvalidInputError(
            f"'text' in {where} must not be empty", f"no text in row {row}", "Drop this row"
        )
    categories = {column: pd.Categorical(frame[column]) for column in about["categories"]}
    return frame[about["columns"]].assign(**categories)
