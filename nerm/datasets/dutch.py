"""The Dutch census of 2001, from the user's own ARFF file (the data may not be passed on)."""

import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from nerm.datasets.dataset import DataUnavailableError
from nerm.datasets.published_files import PUBLISHED, read_bytes
from nerm.errors import InvalidInputError

ROWS = 60420


def read_dutch(path: str | os.PathLike[str] | None) -> Any:
    """Return the frame of an ARFF file like ``dutch_census_2001.arff``, every column nominal.

    Parameters
    ----------
    path
        Where the file is.

    Returns
    -------
    DataFrame
    """
    if path is None:
        must = "'path' must name the ARFF file of the Dutch census ('dutch' cannot be downloaded)"
        do = "Get dutch_census_2001.arff under IPUMS's terms and call load('dutch', path=…)"
        raise InvalidInputError(must, "no path", do)
    where = Path(path).expanduser()
    if not where.is_file():
        do = "Get dutch_census_2001.arff under IPUMS's terms and pass where it is"
        raise DataUnavailableError(
            "'path' must name the ARFF file of the Dutch census", f"no file at {where}", do
        )
    frame = _parse(where)
    columns = PUBLISHED["dutch"]["columns"]
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        must = f"{where} must have the {len(columns)} columns of dutch_census_2001.arff"
        do = "Check that it is the Dutch census file and that its columns keep their names"
        raise InvalidInputError(must, f"a file without {', '.join(map(repr, missing))}", do)
    occupations = sorted(set(frame["occupation"].dropna()))
    if occupations != ["2_1", "5_4_9"]:
        must = f"'occupation' in {where} must hold the two classes '2_1' and '5_4_9'"
        got = ", ".join(map(repr, occupations[:5])) or "no class"
        raise InvalidInputError(must, got, "Use the file whose target is already reduced to these two")
    return frame[columns]


def _parse(where: Path) -> Any:
    """Parse the ARFF text; numbers such as 1.0 become the label '1', ``?`` becomes missing."""
    import pandas as pd
    from scipy.io import arff

    try:
        text = read_bytes(where).decode("utf-8")
        data, _ = arff.loadarff(io.StringIO(text))
    except (arff.ArffError, ValueError, IndexError, StopIteration, NotImplementedError) as error:
        must = f"{where} must be a whole ARFF file"
        got = f"one that cannot be read ({type(error).__name__}: {error})"
        raise InvalidInputError(must, got, "The file may be truncated: copy it again") from error
    if len(data) == 0:
        do = "The file may be truncated: copy it again"
        raise InvalidInputError(f"{where} must hold at least one row", "none", do)
    return pd.DataFrame({name: pd.Categorical([_label(v) for v in data[name]]) for name in data.dtype.names})


def _label(value: Any) -> str | None:
    if isinstance(value, bytes):
        text = value.decode()
        return None if text == "?" else text
    return None if np.isnan(value) else f"{value:g}"
