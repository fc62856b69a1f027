"""Adult, German credit and Bank marketing: from the UCI files or from OpenML, the same frame either way."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from nerm.datasets.published_files import PUBLISHED, digest, fetch_openml_frame, find, read_verified
from nerm.errors import InvalidInputError

ADULT_ROWS = 16281

#: What the codes of german.data stand for (german.doc), column by column, in the words of OpenML's credit-g.
GERMAN_CODES: dict[str, dict[str, str]] = PUBLISHED["german"]["codes"]


@dataclass(frozen=True)
class PublishedTable:
    """A published table: where it is, how to read it, and what its target and viewpoint are.

    Attributes
    ----------
    name
        What nerm calls it; ``published.json`` has an entry of that name. Its ``sha256`` is of the unzipped
        UCI file, ``digest`` of the frame that both routes must give (`published_files.digest`), ``csv`` is
        how pandas reads the file, ``openml`` its number there.
    decode, from_openml
        What turns pandas' frame of the file, and OpenML's frame, into the table.
    """

    name: str
    decode: Callable[[Any], Any] = lambda frame: frame
    from_openml: Callable[[Any], Any] = lambda frame: frame

    @property
    def about(self) -> dict[str, Any]:
        """The entry in ``published.json``."""
        return PUBLISHED[self.name]

    def frame(self, data_home: Any) -> tuple[Any, str]:
        """Return the table and where it came from: the UCI file when there is one, else OpenML."""
        about, file = self.about, self.about["file"]
        path = find(self.name, file, data_home)
        if path is not None:
            text = io.StringIO(read_verified(path, about["sha256"]))
            read = pd.read_csv(text, names=about["columns"], keep_default_na=False, **about["csv"])
            return self._typed(self.decode(read)), f"UCI file {file}"
        published = fetch_openml_frame(self.name, about["openml"], file, data_home)
        try:
            frame = self._typed(self.from_openml(published))
        except (KeyError, ValueError, TypeError) as error:
            raise self._other_table(
                f"a frame of shape {published.shape} that does not map to it ({error})"
            ) from error
        found = digest(frame)
        if found != about["digest"]:
            raise self._other_table(f"a frame of shape {frame.shape} with checksum {found[:12]}…")
        return frame, f"OpenML {about['openml']}"

    def _other_table(self, got: str) -> InvalidInputError:
        about, file = self.about, self.about["file"]
        return InvalidInputError(
            f"OpenML data set {about['openml']} must be the published {file} (checksum {about['digest'][:12]}…)",
            got,
            f"Put the UCI file {file} in a folder and name it in NERM_DATA or data_home",
        )

    def _typed(self, frame: Any) -> Any:
        """Return the columns in order: integers, and categories in alphabetical order."""
        typed = {}
        for column in self.about["columns"]:
            series = frame[column]
            if column in self.about["numbers"]:
                typed[column] = series.astype("int64").to_numpy()
            else:
                values = series.astype(object).where(series.notna().to_numpy(), None)
                typed[column] = pd.Categorical(
                    values, categories=sorted({v for v in values if v is not None})
                )
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


TABLES = {
    "adult": PublishedTable("adult", decode=_decode_adult, from_openml=_adult_from_openml),
    "german": PublishedTable("german", decode=_decode_german),
    "bank": PublishedTable("bank", from_openml=_bank_from_openml),
}
