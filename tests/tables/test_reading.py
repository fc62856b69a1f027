"""Formats, encodings, decimal marks, dates, limits: against pandas, and against values worked out by hand."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from nerm.errors import InvalidInputError, MissingPackageError
from nerm.tables import parse_table, read_parts, read_table, table_of
from nerm.tables.values import date_orders, dates_in, decimal_marks, numbers_in, positive_of
from tests.tables.habits import HABITS, clean, csv_of, frame


def columns_of(table):
    return {name: table[name].tolist() for name in table.names}


# --- formats --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["parquet", "feather", "excel", "json lines", "gz", "bz2", "xz", "zip"])
def test_the_same_table_from_every_format(name, tmp_path):
    table = read_table(HABITS[name].made(tmp_path))
    for column, values in frame().items():
        if values.dtype.kind in "if":
            assert numbers_in(table[column]).tolist() == values.tolist()
        else:
            assert table[column].tolist() == values.tolist()


def test_typed_cells_become_the_words_of_a_csv_file():
    data = pd.DataFrame(
        {
            "a": [1.0, np.nan, 2.5],
            "b": pd.array([1, None, 3], dtype="Int64"),
            "c": pd.to_datetime(["2024-05-01 00:00", None, "2024-05-02 10:30"]),
            "d": [True, False, True],
            "e": ["x ", None, "z"],
        }
    )
    expected = {
        "a": ["1", "", "2.5"],
        "b": ["1", "", "3"],
        "c": ["2024-05-01", "", "2024-05-02 10:30:00"],
        "d": ["True", "False", "True"],
        "e": ["x", "", "z"],
    }
    assert columns_of(table_of(data)) == expected
    buffer = io.BytesIO()
    data.to_parquet(buffer)
    (path := io.BytesIO(buffer.getvalue())).seek(0)
    import pyarrow.parquet as pq

    assert columns_of(table_of(pq.read_table(path))) == expected
    import polars as pl

    assert columns_of(table_of(pl.DataFrame({"e": ["x", None]}))) == {"e": ["x", ""]}
    with pytest.raises(
        InvalidInputError, match=r"must be a DataFrame of pandas, polars or pyarrow\. Got list"
    ):
        table_of([1, 2])


def archive(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for name, text in members.items():
            made.writestr(name.replace("__", "/"), text)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xd0\xcf\x11\xe0rest", r"be UTF-8 text\. Got byte 0xd0 in line 1\. .* save the table as CSV"),
        (b"SQLite format 3\0", r"be a text file\. Got a NUL byte in line 1\. .* save the table as CSV"),
        (b"<!DOCTYPE html><html>", r"must"),
        (archive(a="1", b="2"), r"archive of one file\. Got 2: a, b"),
        (archive(**{"xl__workbook.xml": "<x/>", "[Content_Types].xml": "<x/>"}), "be a whole file"),
        (archive(a="x,y\n1,2\n" * 50)[:60], "be a whole file"),
        (b"PAR1 and nothing else", "be a whole file"),
        (b"ARROW1 and nothing else", "be a whole file"),
        (gzip.compress(b"a,b\n1,2\n" * 99)[:-12], "be a whole file"),
        (bz2.compress(b"a,b\n1,2\n" * 99)[:-12], "be a whole file"),
        (b'{"a": 1}\n{"a": 2', "be JSON lines, one object per line"),
        (b"[1, 2]", "must"),
        (
            b"a,b\n\x81,2\n",
            r"UTF-8 text\. Got byte 0x81 in line 2\. Name the encoding of a text, such as --encoding cp1252",
        ),
    ],
    ids=lambda part: (
        part if isinstance(part, str) else "file"
    ),  # archives hold the time, names of tests must not
)
def test_what_is_no_table_gets_advice_for_what_it_is(content, words, tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=words):
        read_table(path)


def test_json_with_holes_and_as_one_list(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('{"a": 1, "b": "x"}\n\n{"b": null, "a": 2.5, "c": [1]}\n')
    assert columns_of(read_table(path)) == {"a": ["1", "2.5"], "b": ["x", ""], "c": ["", "[1]"]}
    path.write_text(json.dumps([{"a": 1, "b": "x"}, {"a": 2}], indent=1))
    assert columns_of(read_table(path)) == {"a": ["1", "2"], "b": ["x", ""]}


def test_sheets(tmp_path):
    path = HABITS["excel"].made(tmp_path)
    assert read_table(path).notes == ("the sheet 'census' was read, the first of 2; --sheet takes another",)
    assert read_table(path, sheet="census").notes == ()
    with pytest.raises(InvalidInputError, match=r"--sheet must be one of 'census', 'notes'\. Got 'none'"):
        read_table(path, sheet="none")


def test_titles_and_empty_rows_of_a_sheet(tmp_path):
    path = tmp_path / "t.xlsx"
    cells = [
        ["Report", None, None],
        [None] * 3,
        ["a", "b", None],
        [1, None, None],
        [None, None, None],
        [2, "x", None],
    ]
    pd.DataFrame(cells).to_excel(path, header=False, index=False)
    table = read_table(path, skip_lines=1)
    assert columns_of(table) == {"a": ["1", "2"], "b": ["", "x"]}
    assert table.places.tolist() == [1, 2]


def test_a_package_that_is_not_there(tmp_path, monkeypatch):
    path = HABITS["parquet"].made(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingPackageError, match=r"needs the package pyarrow.*pip install pyarrow\."):
        read_table(path)
    sheet = HABITS["excel"].made(tmp_path)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingPackageError, match=r"needs the package openpyxl.*pip install openpyxl\."):
        read_table(sheet)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig"])
def test_encodings(encoding, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("prix en €;métier\n1;infirmière\n".encode(encoding))
    named = "cp1252" if encoding == "cp1252" else None
    assert columns_of(read_table(path, encoding=named)) == {"prix en €": ["1"], "métier": ["infirmière"]}
    with pytest.raises(InvalidInputError, match=r"--encoding must be known to Python\. Got 'klingon'"):
        read_table(path, encoding="klingon")


def test_standard_input(tmp_path, monkeypatch):
    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(gzip.compress(csv_of(frame()).encode())))

    monkeypatch.setattr(sys, "stdin", Stdin)
    table = read_table("-")
    assert table.source == "standard input"
    assert table["sex"].tolist() == frame()["sex"].tolist()


def test_blank_lines_are_no_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\n\na,b\n\n1,2\n")
    assert columns_of(read_table(path)) == {"a": ["1"], "b": ["2"]}


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_parts_are_the_table(size, tmp_path):
    path = tmp_path / "t.csv"
    lines = csv_of(frame()).splitlines()
    lines[50] = ""
    path.write_text("\n".join(lines))
    whole, shares = read_table(path), []
    parts = list(read_parts(path, cells=6 * size, progress=shares.append))
    assert max(len(part) for part in parts) == min(size, len(whole))
    assert np.concatenate([part.places for part in parts]).tolist() == whole.places.tolist()
    assert [word for part in parts for word in part["pay"]] == whole["pay"].tolist()
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_many_columns():
    names = [f"x{j}" for j in range(2000)]
    table = parse_table("\n".join([",".join(names), ",".join("1" * len(names))]), "t")
    assert len(table.names) == len(names)


# --- numbers --------------------------------------------------------------------------------------

POINT, COMMA = {"x": "."}, {"x": ","}


@pytest.mark.parametrize(
    ("words", "separator", "marks", "numbers"),
    [
        (["1,5", "2"], ";", COMMA, [1.5, 2]),
        (["1,5", "2"], ",", COMMA, [1.5, 2]),  # quoted
        (["1.234,5", "0,25"], ";", COMMA, [1234.5, 0.25]),
        (["1,234.5", "7"], ",", POINT, [1234.5, 7]),
        (["1,234,567", "7"], ";", POINT, [1234567, 7]),
        (["1,234", "7"], ";", COMMA, [1.234, 7]),  # open: a semicolon file has decimal commas
        (["1,234", "7"], ",", POINT, [1234, 7]),
        (["-$1,234.50", "$0.25"], ";", POINT, [-1234.5, 0.25]),
        (["−1234,5", "2"], ";", COMMA, [-1234.5, 2]),
        (["A11", "12a"], ";", {}, [np.nan, np.nan]),
        (["18-25", "26-30"], ";", {}, [np.nan, np.nan]),
        (["12 000", "1 234 567"], ";", COMMA, [12000, 1234567]),
        (["1'234.50", "9"], ",", POINT, [1234.5, 9]),
        (["€ 1.200,00", "-3,5 €"], ";", COMMA, [1200, -3.5]),
        (["12 %", "7.5%"], ",", POINT, [12, 7.5]),
        (["1.5", "2"], ";", {}, [1.5, 2]),
        (["1,5", "a,b"], ";", {}, [np.nan, np.nan]),
        (["1,2,3", "4,5"], ";", {}, [np.nan, np.nan]),
        (["01.02.2024", "1,5"], ";", {}, [np.nan, np.nan]),
        (["€", "1,5"], ";", {}, [np.nan, np.nan]),
    ],
)
def test_decimal_marks(words, separator, marks, numbers):
    found = decimal_marks({"x": np.array(words, dtype=object)}, None, separator)
    assert found == marks
    np.testing.assert_array_equal(numbers_in(words, found.get("x")), numbers)


def test_a_column_is_read_as_the_others_are():
    text = "a;b;c\n1,5;1.234;1,250\n2,25;980;3\n"
    table = parse_table(text, "t")
    assert table.marks == {"a": ",", "b": ",", "c": ","}
    assert table.numbers("b").tolist() == [1234, 980]
    assert table.notes == ("'a', 'b', 'c' read with a decimal comma; --decimal says otherwise",)
    mixed = parse_table("a;b\n1,5;1.5\n2,25;2.125\n", "t")
    assert (mixed.marks, mixed.numbers("b").tolist()) == ({"a": ","}, [1.5, 2.125])
    asked = parse_table("a;b\n1,250;x\n3;y\n", "t", decimal="point")
    assert asked.numbers("a").tolist() == [1250, 3]
    assert parse_table("a;b\n1.250;x\n3;y\n", "t", decimal="comma").numbers("a").tolist() == [1250, 3]
    with pytest.raises(InvalidInputError, match=r"'decimal' must be one of 'comma', 'point'\. Got 'dot'"):
        parse_table(text, "t", decimal="dot")


def test_a_later_part_may_be_the_first_to_show_decimals(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1,5;1\n2,5;2\n3,5;2,5\n4,5;3\n")
    assert [part.numbers("b").tolist() for part in read_parts(path, cells=4)] == [[1, 2], [2.5, 3]]


def test_files_without_a_header_and_with_decimal_commas():
    table = parse_table("1,5;2,5;3,5\n1,5;2,5;3,5\n", "t", header=False)
    assert table.names == ("c1", "c2", "c3")


# --- dates and labels -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "orders"),
    [
        (["2024-01-31", "2023-12-01 10:30", "1999-05-05T08:00:00Z"], ["year-month-day"]),
        (["31.12.2024", "1.2.2023"], ["day.month.year"]),
        (["01.02.2024"], ["day.month.year"]),  # with points it is always the day first
        (["12/31/2024", "01/02/2024"], ["month/day/year"]),
        (["31/12/2024", "01/02/2024"], ["day.month.year"]),
        (["01/02/2024", "03/04/2024"], ["day.month.year", "month/day/year"]),
        (["31.12.69", "1.1.20"], ["day.month.year"]),
        (["2024-13-45"], []),
        (["clerk", "smith"], []),
        (["192.168.0.1", "10.0.0.1"], []),
    ],
)
def test_orders_of_dates(words, orders):
    assert date_orders(words) == orders


def test_days_are_those_of_the_calendar():
    words = pd.date_range("1950-01-15", periods=50, freq="457D")
    for order, form in (
        ("year-month-day", "%Y-%m-%d"),
        ("day.month.year", "%d.%m.%Y"),
        ("month/day/year", "%m/%d/%Y"),
    ):
        assert dates_in(words.strftime(form), order).tolist() == words.tolist()


@pytest.mark.parametrize(
    ("pair", "positive"),
    [
        (("ja", "nein"), "ja"),
        (("Oui", "Non"), "Oui"),
        (("FALSE", "TRUE"), "TRUE"),
        (("0", "1"), "1"),
        (("-1", "1"), "1"),
        (("good", "bad"), "good"),
        (("sí", "no"), "sí"),
        (("да", "нет"), "да"),
        (("是", "否"), "是"),
        (("<=50K.", ">50K."), ">50K."),
        (("1", "2"), None),
        (("cat", "dog"), None),
        (("yes", "Yes"), None),
    ],
)
def test_the_positive_one_of_a_pair(pair, positive):
    assert positive_of(*pair) == positive_of(*pair[::-1]) == positive


def test_clean_files_are_read_as_pandas_reads_them(tmp_path):
    path = tmp_path / "t.csv"
    clean(path)
    table, expected = read_table(path), pd.read_csv(path)
    assert table.notes == ()
    for name in ("pay", "hours", "children"):
        np.testing.assert_array_equal(table.numbers(name), expected[name].to_numpy(float))
