"""Files of different formats, each with the same made-up rows, written by hand and not by the package."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

N = 240


def frame(n: int = N, seed: int = 0) -> pd.DataFrame:
    """Return clean data: numbers, words, a target and a viewpoint that hang together."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, n)
    pay = np.round(2400 + 300 * sex + 500 * rng.normal(size=n), 2)
    hours = np.round(38 + 3 * sex + 5 * rng.normal(size=n), 1)
    score = 0.002 * (pay - 2550) + 0.1 * (hours - 39) + 0.7 * rng.normal(size=n)
    return pd.DataFrame(
        {
            "pay": pay,
            "hours": hours,
            "children": rng.integers(0, 4, n),
            "job": rng.choice(["clerk", "smith", "nurse"], size=n),
            "sex": np.where(sex, "male", "female"),
            "loan": np.where(score > 0, "yes", "no"),
        }
    )


@dataclass(frozen=True)
class Habit:
    """A way to write a table.

    Attributes
    ----------
    write
        Writes the file of this path.
    suffix
        Of the file's name.
    options
        That the command needs for it.
    says
        What the command says about it.
    roles
        Target and viewpoint.
    clean
        Whether the model must be the one of the clean file.
    """

    write: Callable[[Path], object]
    suffix: str = ".csv"
    options: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    roles: tuple[str, str] = ("loan", "sex")
    clean: bool = True

    def made(self, folder: Path) -> Path:
        """Write the file and return its path."""
        path = folder / f"census{self.suffix}"
        self.write(path)
        return path

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the command takes besides the file."""
        return ("--target", self.roles[0], "--viewpoint", self.roles[1], *self.options)


def dense(matrix):
    """Return a matrix as an array."""
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def csv_of(data: pd.DataFrame, **options: object) -> str:
    return data.to_csv(index=False, lineterminator="\n", **options)


def clean(path: Path) -> None:
    path.write_text(csv_of(frame()), encoding="utf-8")


def decimal_commas(path: Path) -> None:
    """As Excel writes it in most of Europe: semicolons, decimal commas, points between thousands, a byte order mark."""
    data = frame()
    data["pay"] = [f"{x:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".") for x in data["pay"]]
    data["hours"] = [f"{x:.1f}".replace(".", ",") for x in data["hours"]]
    path.write_bytes(csv_of(data, sep=";").replace("\n", "\r\n").encode("utf-8-sig"))


def dates(path: Path) -> None:
    days = pd.Timestamp("2015-01-01") + pd.to_timedelta(np.arange(N) * 37 % 3000, unit="D")
    data = frame().assign(joined=days.strftime("%d.%m.%Y"), seen=days.strftime("%Y-%m-%d 08:30"))
    path.write_text(csv_of(data), encoding="utf-8")


def identifiers(path: Path) -> None:
    rng = np.random.default_rng(1)
    data = frame().assign(number=rng.permutation(N) + 10_000, key=[f"k{i:04x}" for i in rng.permutation(N)])
    path.write_text(csv_of(data), encoding="utf-8")


def unicode_headers(path: Path) -> None:
    names = {
        "pay": "Vergütung (€)",
        "hours": "часы",
        "children": "子供の数",
        "job": "métier",
        "sex": "Geschlecht",
    }
    path.write_text(csv_of(frame().rename(columns=names)), encoding="utf-8")


def missing_markers(path: Path) -> None:
    data = frame().astype(object)
    for j, (name, word) in enumerate([("pay", "n/a"), ("hours", "k.A."), ("children", "?"), ("job", "#N/A")]):
        data.loc[data.index[j::15], name] = word
    path.write_text(csv_of(data), encoding="utf-8")


def three_groups(path: Path) -> None:
    rng = np.random.default_rng(2)
    path.write_text(csv_of(frame().assign(sex=rng.choice(["a", "b", "c"], N))), encoding="utf-8")


def rare_class(path: Path) -> None:
    data = frame()
    path.write_text(csv_of(data.assign(loan=np.where(data["pay"] > data["pay"].quantile(0.96), "yes", "no"))))


def leak(path: Path) -> None:
    data = frame()
    path.write_text(csv_of(data.assign(decision=np.where(data["loan"] == "yes", "A", "B"))))


def cp1252(path: Path) -> None:
    data = frame().rename(columns={"pay": "pay in €"}).replace({"job": {"nurse": "infirmière"}})
    path.write_bytes(csv_of(data).encode("cp1252"))


def many_columns(path: Path) -> None:
    noise = np.random.default_rng(3).normal(size=(N, 300)).round(3)
    path.write_text(csv_of(pd.concat([frame(), pd.DataFrame(noise).add_prefix("x")], axis=1)))


def two_sheets(path: Path) -> None:
    with pd.ExcelWriter(path) as book:
        frame().to_excel(book, sheet_name="census", index=False)
        pd.DataFrame({"note": ["none"]}).to_excel(book, sheet_name="notes", index=False)


def zipped(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner/census.csv", csv_of(frame()))


def packed(compress: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(compress(csv_of(frame()).encode()))


def json_lines(path: Path) -> None:
    frame().to_json(path, orient="records", lines=True, double_precision=15)


def parquet_bytes(write: str) -> Callable[[Path], object]:
    def made(path: Path) -> None:
        buffer = io.BytesIO()
        getattr(frame().astype({"job": "category"}), write)(buffer)
        path.write_bytes(buffer.getvalue())

    return made


#: The twelve, and some more.
HABITS = {
    "decimal commas": Habit(decimal_commas, says=("'pay', 'hours' read with a decimal comma",)),
    "dates": Habit(
        dates, says=("'joined' read as dates (day.month.year)", "'seen' read as dates"), clean=False
    ),
    "identifiers": Habit(identifiers, says=("'number', 'key' left out: another value in nearly every row",)),
    "unicode headers": Habit(unicode_headers, roles=("loan", "Geschlecht")),
    "missing markers": Habit(missing_markers, options=("--missing", "k.A."), clean=False),
    "three groups": Habit(three_groups, options=("--favoured", "a"), clean=False),
    "rare class": Habit(rare_class, options=("--class-weight", "balanced"), clean=False),
    "leak": Habit(leak, says=("'decision' nearly repeats the target 'loan'",), clean=False),
    "cp1252": Habit(cp1252, options=("--encoding", "cp1252")),
    "parquet": Habit(parquet_bytes("to_parquet"), ".parquet"),
    "gz": Habit(packed(gzip.compress), ".csv.gz"),
    "300 columns": Habit(many_columns, clean=False),
    "feather": Habit(parquet_bytes("to_feather"), ".feather"),
    "excel": Habit(two_sheets, ".xlsx", says=("the sheet 'census' was read, the first of 2",)),
    "json lines": Habit(json_lines, ".jsonl"),
    "bz2": Habit(packed(bz2.compress), ".csv.bz2"),
    "xz": Habit(packed(lzma.compress), ".csv.xz"),
    "zip": Habit(zipped, ".zip"),
}
TWELVE = tuple(HABITS)[:12]
