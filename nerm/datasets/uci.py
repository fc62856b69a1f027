"""Adult, German credit and Bank marketing: from the UCI files or from OpenML, the same frame either way."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nerm.datasets.files import digest, fetch_openml_frame, find, read_verified
from nerm.errors import InvalidInputError

ADULT_COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "class",
]
ADULT_NUMBERS = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
ADULT_ROWS = 16281

BANK_COLUMNS = [
    "age",
    "job",
    "marital",
    "education",
    "default",
    "balance",
    "housing",
    "loan",
    "contact",
    "day",
    "month",
    "duration",
    "campaign",
    "pdays",
    "previous",
    "poutcome",
    "y",
]
BANK_NUMBERS = ["age", "balance", "day", "duration", "campaign", "pdays", "previous"]

#: Column by column what the codes of german.data stand for (german.doc), in the words of OpenML's credit-g;
#: None marks a number.
GERMAN_CODES: dict[str, dict[str, str] | None] = {
    "checking_status": {"A11": "<0", "A12": "0<=X<200", "A13": ">=200", "A14": "no checking"},
    "duration": None,
    "credit_history": {
        "A30": "no credits/all paid",
        "A31": "all paid",
        "A32": "existing paid",
        "A33": "delayed previously",
        "A34": "critical/other existing credit",
    },
    "purpose": {
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture/equipment",
        "A43": "radio/tv",
        "A44": "domestic appliance",
        "A45": "repairs",
        "A46": "education",
        "A47": "vacation",
        "A48": "retraining",
        "A49": "business",
        "A410": "other",
    },
    "credit_amount": None,
    "savings_status": {
        "A61": "<100",
        "A62": "100<=X<500",
        "A63": "500<=X<1000",
        "A64": ">=1000",
        "A65": "no known savings",
    },
    "employment": {"A71": "unemployed", "A72": "<1", "A73": "1<=X<4", "A74": "4<=X<7", "A75": ">=7"},
    "installment_commitment": None,
    "personal_status": {
        "A91": "male div/sep",
        "A92": "female div/dep/mar",
        "A93": "male single",
        "A94": "male mar/wid",
        "A95": "female single",
    },
    "other_parties": {"A101": "none", "A102": "co applicant", "A103": "guarantor"},
    "residence_since": None,
    "property_magnitude": {
        "A121": "real estate",
        "A122": "life insurance",
        "A123": "car",
        "A124": "no known property",
    },
    "age": None,
    "other_payment_plans": {"A141": "bank", "A142": "stores", "A143": "none"},
    "housing": {"A151": "rent", "A152": "own", "A153": "for free"},
    "existing_credits": None,
    "job": {
        "A171": "unemp/unskilled non res",
        "A172": "unskilled resident",
        "A173": "skilled",
        "A174": "high qualif/self emp/mgmt",
    },
    "num_dependents": None,
    "own_telephone": {"A191": "none", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
    "class": {"1": "good", "2": "bad"},
}
GERMAN_NUMBERS = [column for column, codes in GERMAN_CODES.items() if codes is None]


@dataclass(frozen=True)
class Table:
    """A published table: where it is, how to read it, and what its target and viewpoint are."""

    name: str
    file: str
    sha256: str  #: of the unzipped UCI file
    digest: str  #: of the frame that both routes must give (``files.digest``)
    openml: int
    read: Callable[[str], Any]
    from_openml: Callable[[Any], Any]
    target: tuple[str, str]  #: column and desired value
    viewpoint: tuple[str, str]  #: column and value of the favoured group
    description: str

    def frame(self, data_home: Any) -> tuple[Any, str]:
        """Return the table and where it came from: the UCI file when there is one, else OpenML."""
        path = find(self.name, self.file, data_home)
        if path is not None:
            return self.read(read_verified(path, self.sha256)), f"UCI file {self.file}"
        published = fetch_openml_frame(self.name, self.openml, self.file, data_home)
        source = f"OpenML {self.openml}"
        try:
            frame = self.from_openml(published)
        except (KeyError, ValueError, TypeError) as error:
            raise self._other_table(f"a frame of shape {published.shape} that does not map to it ({error})") from error
        found = digest(frame)
        if found != self.digest:
            raise self._other_table(f"a frame of shape {frame.shape} with checksum {found[:12]}…")
        return frame, source

    def _other_table(self, got: str) -> InvalidInputError:
        return InvalidInputError(
            f"OpenML data set {self.openml} must be the published {self.file} (checksum {self.digest[:12]}…)",
            got,
            f"Put the UCI file {self.file} in a folder and name it in NERM_DATA or data_home",
        )


def _typed(frame: Any, columns: list[str], numbers: list[str]) -> Any:
    """Return the columns in order: integers, and categories in alphabetical order."""
    import pandas as pd

    typed = {}
    for column in columns:
        series = frame[column]
        if column in numbers:
            typed[column] = series.astype("int64").to_numpy()
        else:
            values = series.astype(object).where(series.notna().to_numpy(), None)
            typed[column] = pd.Categorical(values, categories=sorted({v for v in values if v is not None}))
    return pd.DataFrame(typed)


def read_adult(text: str) -> Any:
    """Read adult.test: a comment in line 1, spaces after commas, a dot after the label, ``?`` for missing."""
    import pandas as pd

    raw = pd.read_csv(
        io.StringIO(text),
        skiprows=1,
        names=ADULT_COLUMNS,
        skipinitialspace=True,
        na_values="?",
        keep_default_na=False,
    )
    raw["class"] = raw["class"].str.rstrip(".")
    return _typed(raw, ADULT_COLUMNS, ADULT_NUMBERS)


def adult_from_openml(frame: Any) -> Any:
    """Take the first 16281 rows of OpenML 1590, which are adult.test in order."""
    if len(frame) < ADULT_ROWS:
        raise ValueError(f"{len(frame)} rows, fewer than {ADULT_ROWS}")
    return _typed(frame.iloc[:ADULT_ROWS].reset_index(drop=True), ADULT_COLUMNS, ADULT_NUMBERS)


def read_german(text: str) -> Any:
    """Read german.data (spaces between columns, no header) and decode its codes."""
    import pandas as pd

    columns = list(GERMAN_CODES)
    raw = pd.read_csv(io.StringIO(text), sep=r"\s+", names=columns, dtype=str, keep_default_na=False)
    for column, codes in GERMAN_CODES.items():
        if codes is not None:
            raw[column] = raw[column].map(codes)
    return _typed(raw, columns, GERMAN_NUMBERS)


def german_from_openml(frame: Any) -> Any:
    """Take OpenML 31 (credit-g), which is german.data decoded, row by row."""
    return _typed(frame, list(GERMAN_CODES), GERMAN_NUMBERS)


def read_bank(text: str) -> Any:
    """Read bank-full.csv: semicolons, quotes, a header; ``unknown`` is a value of its own."""
    import pandas as pd

    return _typed(pd.read_csv(io.StringIO(text), sep=";", keep_default_na=False), BANK_COLUMNS, BANK_NUMBERS)


def bank_from_openml(frame: Any) -> Any:
    """Take OpenML 1461: V1 .. V16 in file order, Class 1 = no and 2 = yes."""
    names = {f"V{k}": column for k, column in enumerate(BANK_COLUMNS[:-1], start=1)} | {"Class": "y"}
    renamed = frame.rename(columns=names)
    renamed["y"] = renamed["y"].astype(str).map({"1": "no", "2": "yes"})
    return _typed(renamed, BANK_COLUMNS, BANK_NUMBERS)


TABLES = {
    table.name: table
    for table in (
        Table(
            name="adult",
            file="adult.test",
            sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            digest="d63b9c211fc25c5966fa75feae0357d92dcce444bdfb2d249b63a197b1903a23",
            openml=1590,
            read=read_adult,
            from_openml=adult_from_openml,
            target=("class", ">50K"),
            viewpoint=("sex", "Male"),
            description=(
                "Census income (Adult), the adult.test part that the paper used, rows with missing entries "
                "kept. y = +1: income above 50K; viewpoint = +1: male."
            ),
        ),
        Table(
            name="german",
            file="german.data",
            sha256="b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
            digest="dab919c9d15cf123e9905ab2bb22ce290dd19371c2d00357dab68caac788e7f8",
            openml=31,
            read=read_german,
            from_openml=german_from_openml,
            target=("class", "good"),
            viewpoint=("foreign_worker", "no"),
            description=(
                "Statlog German credit, codes decoded. y = +1: good credit risk; viewpoint = +1: not a "
                "foreign worker (37 of 1000 rows, granted credit more often)."
            ),
        ),
        Table(
            name="bank",
            file="bank-full.csv",
            sha256="d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",
            digest="dd1402d6ab644efe79cf2fb2b4e5db735a4ec10570e114f31019113968d8d3a1",
            openml=1461,
            read=read_bank,
            from_openml=bank_from_openml,
            target=("y", "yes"),
            viewpoint=("loan", "no"),
            description=(
                "Bank marketing, the full file. y = +1: subscribed a term deposit; viewpoint = +1: no "
                "personal loan (the group that subscribes more often). Rows are in the order of their dates: "
                "shuffle or interleave folds."
            ),
        ),
    )
}
