"""Adult, German credit and Bank marketing: from the UCI files or from OpenML, the same frame either way."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nerm.datasets.published_files import COLUMNS, digest, fetch_openml_frame, find, read_verified
from nerm.errors import InvalidInputError

ADULT_ROWS = 16281

#: What the codes of german.data stand for (german.doc), column by column, in the words of OpenML's credit-g.
GERMAN_CODES: dict[str, dict[str, str]] = COLUMNS["german"]["codes"]


@dataclass(frozen=True)
class PublishedTable:
    """A published table: where it is, how to read it, and what its target and viewpoint are.

    Attributes
    ----------
    name, file, openml
        What nerm calls it, the UCI file, and its number at OpenML.
    sha256, digest
        Checksums of the unzipped UCI file, and of the frame that both routes must give (`published_files.digest`).
    csv
        How pandas reads the file.
    target, viewpoint
        A column and the value that counts as +1: the desired outcome, the favoured group.
    description
        What it is, and what y and the viewpoint say.
    decode, from_openml
        What turns pandas' frame of the file, and OpenML's frame, into the table.
    """

    name: str
    file: str
    openml: int
    sha256: str
    digest: str
    csv: Mapping[str, Any]
    target: tuple[str, str]
    viewpoint: tuple[str, str]
    description: str
    decode: Callable[[Any], Any] = lambda frame: frame
    from_openml: Callable[[Any], Any] = lambda frame: frame

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(COLUMNS[self.name]["columns"])

    def frame(self, data_home: Any) -> tuple[Any, str]:
        """Return the table and where it came from: the UCI file when there is one, else OpenML."""
        import pandas as pd

        path = find(self.name, self.file, data_home)
        if path is not None:
            text = io.StringIO(read_verified(path, self.sha256))
            return self._typed(
                self.decode(pd.read_csv(text, keep_default_na=False, **self.csv))
            ), f"UCI file {self.file}"
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
            if column in COLUMNS[self.name]["numbers"]:
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
    names = {f"V{k}": column for k, column in enumerate(COLUMNS["bank"]["columns"][:-1], start=1)}
    return frame.rename(columns=names).assign(y=frame["Class"].astype(str).map({"1": "no", "2": "yes"}))


TABLES = {
    table.name: table
    for table in (
        PublishedTable(
            name="adult",
            file="adult.test",
            openml=1590,
            sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            digest="d63b9c211fc25c5966fa75feae0357d92dcce444bdfb2d249b63a197b1903a23",
            csv={"skiprows": 1, "names": COLUMNS["adult"]["columns"], "skipinitialspace": True, "na_values": "?"},
            target=("class", ">50K"),
            viewpoint=("sex", "Male"),
            description="Census income (Adult), the adult.test part that the paper used, rows with missing entries "
            "kept. y = +1: income above 50K; viewpoint = +1: male.",
            decode=_decode_adult,
            from_openml=_adult_from_openml,
        ),
        PublishedTable(
            name="german",
            file="german.data",
            openml=31,
            sha256="b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
            digest="dab919c9d15cf123e9905ab2bb22ce290dd19371c2d00357dab68caac788e7f8",
            csv={"sep": r"\s+", "names": COLUMNS["german"]["columns"], "dtype": str},
            target=("class", "good"),
            viewpoint=("foreign_worker", "no"),
            description="Statlog German credit, codes decoded. y = +1: good credit risk; viewpoint = +1: not a "
            "foreign worker (37 of 1000 rows, granted credit more often).",
            decode=_decode_german,
        ),
        PublishedTable(
            name="bank",
            file="bank-full.csv",
            openml=1461,
            sha256="d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",
            digest="dd1402d6ab644efe79cf2fb2b4e5db735a4ec10570e114f31019113968d8d3a1",
            csv={"sep": ";"},  # "unknown" is a value of its own
            target=("y", "yes"),
            viewpoint=("loan", "no"),
            description="Bank marketing, the full file. y = +1: subscribed a term deposit; viewpoint = +1: no "
            "personal loan (the group that subscribes more often). Rows are in the order of their dates: "
            "shuffle or interleave folds.",
            from_openml=_bank_from_openml,
        ),
    )
}
