"""One table, written in the ways in which programs and people write tables: it is read as the same one."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pandas as pd
import pytest

from nerm.errors import InvalidInputError
from nerm.tables import learn_recipe, make_task, parse_table, read_table, survey, table_of
from nerm.tables.dates import MONTHS, days_in
from nerm.tables.numbers import TIME, decimal_marks, numbers_in
from nerm.tables.opening import quoted
from tests.tables.habits import csv_of, frame

DATA = frame(20)
RECORDS = json.loads(DATA.to_json(orient="records", double_precision=15))
TEXT = csv_of(DATA)
BODY = TEXT.splitlines(keepends=True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (DATA.to_csv(index=True).encode(), "column 1 has no name in the header and is called 'c1'"),
        (DATA.to_csv(sep=" ").partition(" ")[2].encode(), "column 1 has no name"),  # R's write.table
        (TEXT.replace("\n", ",\n").encode(), "column 7 has no name"),
        ((BODY[0] + "".join(BODY[1:]).replace("\n", ",\n")).encode(), "column 7 has no name"),
        (b"# made on a Monday\n# by hand, twice\n" + TEXT.encode(), "2 lines at the top that begin with #"),
        (b"sep=;\n" + csv_of(DATA, sep=";").encode(), None),
        (b'"sep=\\t"\r\n' + csv_of(DATA, sep="\t").encode(), None),
        (csv_of(DATA, sep="\t").encode("utf-16-le"), None),
        (csv_of(DATA, sep="\t").encode("utf-16-be"), None),
        (TEXT.encode("utf-32"), None),
        (json.dumps(RECORDS).encode(), None),
        (json.dumps(RECORDS, indent=1).encode(), None),
        (json.dumps({"made": "today", "rows": RECORDS}).encode(), None),
        (json.dumps({"rows": RECORDS}, indent=2).encode(), None),
        (json.dumps({name: [row[name] for row in RECORDS] for name in DATA}).encode(), None),
        (DATA.to_json(orient="split", double_precision=15).encode(), None),
        (DATA.to_json(orient="columns", double_precision=15).encode(), None),
        (DATA.to_json(orient="index", double_precision=15).encode(), None),
        ("\n\n".join(map(json.dumps, RECORDS)).encode(), None),
    ],
)
def test_the_same_table(content, said, tmp_path):
    path = tmp_path / "people"
    path.write_bytes(content)
    table = read_table(path)
    assert [name for name in table.names if not name.startswith("c") or name == "children"] == list(DATA)
    for name, values in DATA.items():
        found = table.numbers(name) if values.dtype.kind in "if" else table[name]
        assert found.tolist() == values.tolist()
    assert any(said in note for note in table.notes) if said else not table.notes


def test_a_name_that_is_made_up_is_a_new_one():
    assert parse_table(",c1\n1,2\n", "t").names == ("c1_", "c1")
    assert parse_table("#id,age\n1,2\n", "t").names == ("#id", "age")  # a header, not a comment


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "Sales of 2023;;;\n;;;\na;b;c;d\n1;2;3;4\n",
            "no name for 3 of 4. Leave out lines above it with --skip-lines",
        ),
        ("a,b\n1,2,3\n4,5\n6,7\n", "1 of 3 rows (33.3 %) with another number, first 3 in line 2"),
        ("a,b\n1,2,3\n4,5\n6,7,8\n", "2 of 3 rows"),
    ],
)
def test_what_stays_unclear_is_refused(text, sentence):
    with pytest.raises(InvalidInputError) as refused:
        parse_table(text, "t")
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ({"one": RECORDS, "two": RECORDS}, "hold one table. Got an object of 'one', 'two'"),
        ({"a": [1, 2], "b": [1]}, "hold one table"),
        ([1, 2], "hold objects. Got int in row 1"),
    ],
)
def test_json_that_is_no_table(found, sentence, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(found, indent=1))
    with pytest.raises(InvalidInputError) as refused:
        read_table(path)
    assert sentence in str(refused.value)


def test_objects_in_json_become_columns(tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [{"a": {"b": {"c": i}, "d": "x"}, "e": [1, 2], "f": {}} for i in range(3)]
    path.write_text("\n".join(map(json.dumps, rows)))
    table = read_table(path)
    assert table.names == ("a.b.c", "a.d", "e", "f")
    assert table["a.b.c"].tolist() == ["0", "1", "2"]


# --- numbers --------------------------------------------------------------------------------------

NUMBERS = np.array([-1234.5, 0.25, 12.0, 99999.75])


@pytest.mark.parametrize(
    ("words", "mark"),
    [
        (["(1,234.50)", "0.25", "12.00", "99,999.75"], "."),
        (["1.234,50-", "0,25", "12,00", "99.999,75"], ","),
        (["−1234.5", "0.25", "12", "99999.75"], "."),
        (["EUR -1'234.50", "EUR 0.25", "EUR 12.00", "EUR 99'999.75"], "."),
        (["-$1,234.50", "$0.25", "$12.00", "$99,999.75"], "."),
        (["-1\u202f234,5 kg", "0,25 kg", "12 kg", "99\u202f999,75 kg"], ","),
        (["-1234.5 m²", "0.25m²", "12 m²", "99999.75 m²"], "."),
    ],
)
def test_signs_and_units(words, mark):
    assert decimal_marks({"x": np.array(words, dtype=object)}, ("",), None, ";") == {"x": mark}
    assert numbers_in(words, mark).tolist() == NUMBERS.tolist()


@pytest.mark.parametrize(
    "words",
    [
        ["A11", "A12"],
        ["12", "12a", "14"],
        ["3 kg", "5 lb"],
        ["12a", "12b"],
        ["1st", "2nd"],
        ["18-25", "26-30"],
    ],
)
def test_codes_are_no_numbers(words):
    assert decimal_marks({"x": np.array(words, dtype=object)}, ("",), None, ",") == {}


def test_one_year_and_many_years():
    words = np.array(["1 year", "2 years", "30 years"], dtype=object)
    table = parse_table("\n".join(["x;y", *(f"{word};1" for word in words)]), "t")
    assert table.numbers("x").tolist() == [1, 2, 30]


def test_times_are_hours():
    words = ["00:30", "14:15:36", "2:15 pm", "12:00 a.m.", "36:00"]
    assert numbers_in(words, TIME) == pytest.approx([0.5, 14.26, 14.25, 0.0, 36.0])
    assert np.isnan(numbers_in(["14:75", "3:1", "noon"], TIME)).all()
    table = parse_table("a;b\n" + "".join(f"{word};1\n" for word in words), "t")
    assert table.numbers("a") == pytest.approx([0.5, 14.26, 14.25, 0.0, 36.0])
    assert table.notes == ("'a' read as times in hours ('00:30' is 0.5)",)


def test_typed_times_and_durations():
    cells = pd.DataFrame(
        {"a": [datetime.time(8, 30), datetime.time(23, 0)], "b": pd.to_timedelta([36, 12], "h")}
    )
    table = table_of(cells)
    assert table["a"].tolist() == ["08:30:00", "23:00:00"]
    assert table["b"].tolist() == ["1.5", "0.5"]


@pytest.mark.parametrize("power", [300, -300])
def test_numbers_of_any_size_are_scaled(power):
    table = parse_table("x,y\n" + "".join(f"{k}e{power},{k}\n" for k in range(1, 6)), "t")
    X, _ = learn_recipe(table, ["x", "y"])[0].transform(table)
    np.testing.assert_allclose(X[:, 0], X[:, 1], atol=1e-12)


# --- dates ----------------------------------------------------------------------------------------

DAYS = [datetime.date(1999, 1, 31), datetime.date(2014, 5, 13), datetime.date(2020, 2, 29)]


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ("%Y-%m-%d", "ymd"),
        ("%d.%m.%y", "dmy"),
        ("%d. %m. %Y", "dmy"),
        ("%m/%d/%Y %I:%M %p", "mdy"),
        ("%d %b %Y", "named"),
        ("%d-%b-%y", "named"),
        ("%B %d, %Y", "named"),
        ("%A, %d. %B %Y", "named"),
        ("%Y%m%d", "compact"),
    ],
)
def test_dates_as_people_write_them(form, kind):
    words = [datetime.datetime(d.year, d.month, d.day, 14, 5).strftime(form) for d in DAYS] * 10
    task = surveyed(words)
    assert task.kinds["day"] == kind
    assert any("'day' read as dates" in note for note in task.notes)
    days = days_in(words[:3], kind)
    assert days.tolist() == [float(d.toordinal() - datetime.date(1970, 1, 1).toordinal()) for d in DAYS]


@pytest.mark.parametrize(
    ("form", "kind"), [("%Y-%m", "ym"), ("%m/%Y", "my"), ("%m.%Y", "my"), ("%b %Y", "named")]
)
def test_months_without_a_day(form, kind):
    words = [d.strftime(form) for d in DAYS] * 10
    assert surveyed(words).kinds["day"] == kind
    firsts = [d.replace(day=1).toordinal() - datetime.date(1970, 1, 1).toordinal() for d in DAYS]
    assert days_in(words[:3], kind).tolist() == firsts


def test_numbers_that_might_be_dates_stay_numbers_on_request():
    words = ["20240131", "20240201", "19991224"] * 10
    assert surveyed(words, numeric=["day"]).kinds["day"] == "numbers"
    assert surveyed(words, nominal=["day"]).kinds["day"] == "words"
    assert surveyed(["20240131", "20241301"] * 15).kinds["day"] == "numbers"


def test_months_have_names():
    assert MONTHS["jan"] == 1 == MONTHS["januar"] == MONTHS["gen"]
    assert MONTHS["mär"] == 3 == MONTHS["mars"]
    assert "jui" not in MONTHS  # juin or juillet
    assert set(MONTHS.values()) == set(range(1, 13))


def surveyed(words, **options):
    rows = [f"{word};{i % 7};{i % 3 % 2};{i % 2}" for i, word in enumerate(words)]
    table = parse_table("\n".join(["day;x;y;v", *rows]), "t", separator=";")
    return survey(make_task(table, "y", "v"), **options)


# --- sentences ------------------------------------------------------------------------------------


def test_a_long_cell_does_not_fill_a_sentence():
    cell = "x" * 5000
    assert len(quoted(cell)) == 60
    with pytest.raises(InvalidInputError) as refused:
        make_task(parse_table(f"a,y,v\n1,{cell},1\n2,b,2\n3,c,1\n", "t"), "y", "v")
    assert len(str(refused.value)) < 400


def test_many_numbers_are_no_target():
    text = "a,y,v\n" + "".join(f"{i % 5},{i},{i % 2}\n" for i in range(40))
    with pytest.raises(InvalidInputError, match="Make a column of two values of it"):
        make_task(parse_table(text, "t"), "y", "v")


def test_few_rows_are_pointed_out():
    rows = [f"{i % 5},{int(i < 4)},{'c' if i % 50 == 9 else 'ab'[i % 2]}\n" for i in range(200)]
    task = make_task(parse_table("x,y,v\n" + "".join(rows), "t"), "y", "v")
    assert [note for note in task.notes if "may be chance" in note] == [
        "y = 1 in only 4 rows: what is said of it may be chance",
        "v = c in only 4 rows: what is said of it may be chance",
    ]


def test_more_features_than_the_rows_can_tell():
    noise = np.random.default_rng(0).normal(size=(150, 120)).round(3)
    table = table_of(pd.DataFrame(noise).add_prefix("x"))
    _, notes = learn_recipe(table, table.names)
    assert notes[-1].startswith("120 features for 150 rows")
    assert learn_recipe(table, table.names[:70])[1] == ()
