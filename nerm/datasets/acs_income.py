"""ACSIncome (Ding et al., 2021): 1.66 million people of the American Community Survey of 2018, from a CSV or OpenML."""

from typing import Any

import numpy as np
import pandas as pd

from nerm.datasets.published_files import PUBLISHED, fetch_openml_frame, find
from nerm.errors import InvalidInputError

THRESHOLD = 50_000  # dollars a year: the task of the paper


def read_acs_income(data_home: Any) -> tuple[Any, str]:
    """Return the table, codes as categories, and where it came from: acs_income.csv where there is one, else OpenML.

    Parameters
    ----------
    data_home
        A folder to look in, before the one that NERM_DATA names.

    Returns
    -------
    DataFrame, str
    """
    about = PUBLISHED["acs_income"]
    path = find("acs_income", about["file"], data_home)
    if path is None:
        return typed(fetch_openml_frame("acs_income", about["openml"], about["file"], data_home), "OpenML"), (
            f"OpenML {about['openml']}"
        )
    try:
        read = pd.read_csv(path)
    except (ValueError, OSError, EOFError) as error:
        must, do = f"{path} must be a whole CSV file", "Download it again, or remove it to load from OpenML"
        raise InvalidInputError(must, f"one that cannot be read ({error})", do) from None
    return typed(read, str(path)), f"file {about['file']}"


def typed(frame: Any, where: str) -> Any:
    """Return the published columns in order: whole numbers, codes as categories, and whether income is above 50,000."""
    about = PUBLISHED["acs_income"]
    missing = [column for column in [*about["columns"][:-1], "PINCP"] if column not in frame.columns]
    if missing:
        must = f"{where} must have the columns of ACSIncome"
        do = "Write it with folktables' or fairlearn's names of columns"
        raise InvalidInputError(must, f"a table without {', '.join(map(repr, missing))}", do)
    found = {}
    for column in about["columns"][:-1]:
        numbers = pd.to_numeric(frame[column], errors="coerce")
        strange = numbers.isna() | (numbers % 1 != 0)
        if strange.any():
            row = int(np.flatnonzero(strange.to_numpy())[0])
            must = f"{column!r} of {where} must hold whole numbers"
            raise InvalidInputError(
                must, f"{frame[column].iloc[row]!r} in row {row}", "Use the published table"
            )
        codes = numbers.astype("int64")
        found[column] = codes if column in about["numbers"] else pd.Categorical(codes.astype(str))
    income = pd.to_numeric(frame["PINCP"], errors="coerce")
    found["income"] = pd.Categorical(
        np.where(income > THRESHOLD, ">50K", "<=50K"), categories=["<=50K", ">50K"]
    )
    return pd.DataFrame(found)
