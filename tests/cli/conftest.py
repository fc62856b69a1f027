"""A small table on disk, and the command run in this process."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np
import pytest

from nerm.cli import cli
from nerm.cli.console import ended

N = 240


def census(n: int = N, seed: int = 0) -> list[dict[str, str]]:
    """Return rows of a made-up table: numbers, words, missing values, a target and a viewpoint that hang together."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, n)
    hours = np.round(38 + 6 * sex + 6 * rng.normal(size=n), 1)
    age = np.round(40 + 9 * rng.normal(size=n), 1)
    job = rng.choice(["clerk", "smith", "nurse"], size=n)
    income = np.where(0.2 * (hours - 41) + 0.05 * (age - 40) + rng.normal(size=n) > 0, ">50K", "<=50K")
    return [
        {
            "age": "?" if i % 40 == 7 else f"{age[i]}",
            "hours": f"{hours[i]}",
            "job": "" if i % 60 == 11 else str(job[i]),
            "sex": "male" if sex[i] else "female",
            "income": str(income[i]),
        }
        for i in range(n)
    ]


def as_csv(rows: list[dict[str, str]], separator: str = ",") -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), delimiter=separator, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "census.csv"
    path.write_text(as_csv(census()), encoding="utf-8")
    return path


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def nerm(capsys):
    """Return a function that runs the command with some arguments."""

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        code = ended(cli, [str(a) for a in arguments])
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return run


ROLES = ("--target", "income", "--viewpoint", "sex")
