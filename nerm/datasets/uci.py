"""Adult, German credit and Bank marketing: from the UCI files or from OpenML, the same frame either way."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nerm.datasets.published_files import PUBLISHED, digest, fetch_openml_frame, find, read_verified
from nerm.errors import InvalidInputError

ADULT_ROWS = 16281

#: What the codes of german.data stand for (german.doc), column by column, in the words of OpenML's credit-g.
GERMAN_CODES: dict[str, dict[str, str]] = PUBLISHED["german"]["codes"]


@dataclass(frozen=True)
class PublishedTable:
    """A published table: where it is, how to read it, and what its target and viewpoint are.

    All but the two functions is an entry of ``published.json``.

    Attributes
    ----------
    name, file, openml
        What nerm calls it, the UCI file, and its number at OpenML.
    sha256, digest
        Checksums of the unzipped UCI file, and of the frame that both routes must give (`published_files.digest`).
    csv
        How pandas reads the file.
    columns, numbers, codes
        Every column in order, those that hold numbers, and what codes stand for.
    target, viewpoint
        A column and the value that counts as +1: the desired outcome, the favoured group.
    description, licence
        What it is, what y and the viewpoint say, and on which terms.
    decode, from_openml
        What turns pandas' frame of the file, and OpenML's frame, into the table.
    """

    name: str
    file: str
    openml: int
    sha256: str
    digest: str
    csv: Mapping[str, Any]
    columns: list[str]
    numbers: list[str]
    target: tuple[str, str]
    viewpoint: tuple[str, str]
    description: str
    licence: str
    codes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    decode: Callable[[Any], Any] = lambda frame: frame
    from_openml: Callable[[Any], Any] = lambda frame: frame

    def frame(self, data_home: Any) -> tuple[Any, str]:
        """Return the table and where it came from: the UCI file when there is one, else OpenML."""
        import pandas as pd

        path = find(self.name, self.file, data_home)
        if path is not None:
            text = io.StringIO(read_verified(path, self.sha256))
            read = pd.read_csv(text, names=self.columns, keep_default_na=False, **self.csv)
            return self._typed(self.decode(read)), f"UCI file {self.file}"
        published = fetch_openml_frame(self.name, self.openml, self.file, data_home)
        try:
            frame = self._typed(self.from_openml(published))
        except (KeyError, ValueError, TypeError) as error:
            raise self._other_table(f"a frame of shape {published.shape} that does not map to it ({error})") from error
        found = digest(frame)
        if found != self.digest:
            raise self._other_table(f"a frame of shape {frame.shape} with checksum {found[:12]}…")
        return frame, f"OpenML {self.openml}"

    def _other_table(self, got: str) -> InvalidInputError:
        return InvalidInputError(
            f"OpenML data set {self.openml} must be the published {self.file} (checksum {self.digest[:12]}…)",
            got,
            f"Put the UCI file {self.file} in a folder and name it in NERM_DATA or data_home",
        )

    def _typed(self, frame: Any) -> Any:
        """Return the columns in order: integers, and categories in alphabetical order."""
        import pandas as pd

        typed = {}
        for column in self.columns:
            series = frame[column]
            if column in self.numbers:
                typed[column] = series.astype("int64").to_numpy()
            else:
                values = series.astype(object).where(series.notna().to_numpy(), None)
                typed[column] = pd.Categorical(values, categories=sorted({v for v in values if v is not None}))
        return pd.DataFrame(typed)


def _decode_adult(frame: Any) -> Any:
    """Take away the dot after each label."""
    return frame.assign(**{"class": frame["class"].str.rstrip(".")})


def _adult_from_openml(frame: Any) -> Any:
    """Take the first 16281 rows of OpenML 1590, which are adult.test in order."""
    if len(frame) < ADULT_ROWS:
        raise ValueError(f"{len(frame)} rows, fewer than {ADULT_ROWS}")
    return frame.iloc[:ADULT_ROWS].reset_index(drop=True)


def _decode_german(frame: Any) -> Any:
    """Put words in the place of codes, column by column."""
    return frame.assign(**{c: frame[c].map(codes) for c, codes in GERMAN_CODES.items()})


def _bank_from_openml(frame: Any) -> Any:
    """Name the columns of OpenML 1461: V1 .. V16 in file order, Class 1 = no and 2 = yes."""
    names = {f"V{k}": column for k, column in enumerate(PUBLISHED["bank"]["columns"][:-1], start=1)}
    return frame.rename(columns=names).assign(y=frame["Class"].astype(str).map({"1": "no", "2": "yes"}))


def _published(name: str, **functions: Any) -> PublishedTable:
    return PublishedTable(name, **PUBLISHED[name], **functions)


TABLES = {
    "adult": _published("adult", decode=_decode_adult, from_openml=_adult_from_openml),
    "german": _published("german", decode=_decode_german),
    "bank": _published("bank", from_openml=_bank_from_openml),
}
