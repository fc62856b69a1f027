"""What columns hold, which of them name rows, and which repeat the target or the viewpoint."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

from nerm.errors import InvalidInputError
from nerm.tables import Recipe, learn_recipe, make_task, parse_table, survey, table_of
from nerm.tables.values import dates_in, quoted
from tests.tables.habits import csv_of, dense, frame


def surveyed(options=None, **columns):
    data = frame().assign(**columns)
    return survey(make_task(parse_table(csv_of(data), "t"), "loan", "sex"), **(options or {}))


RNG = np.random.default_rng(0)
N = len(frame())
YES, MALE = frame()["loan"] == "yes", frame()["sex"] == "male"


@pytest.mark.parametrize(
    ("column", "left_out"),
    [
        (RNG.permutation(N), True),
        (RNG.permutation(N) + 1e6, True),  # 1000017.0, as pandas writes them
        (RNG.choice(10**9, N, replace=False), True),
        ([f"u{i}" for i in RNG.permutation(N)], True),
        ([f"u{i // 2}" if i < 20 else f"u{i}" for i in range(N)], True),  # nearly
        (RNG.normal(size=N).round(6), False),  # measured
        (RNG.integers(0, 90, N), False),
        (
            np.where(YES, 40_000, 20_000) + RNG.choice(30_000, N, replace=False),
            False,
        ),  # ordered with the target
        (RNG.choice(["a", "b", "c"], N), False),
    ],
)
def test_identifiers(column, left_out):
    task = surveyed(new=column)
    assert ("new" not in task.inputs) == left_out
    assert any("'new' left out: another value in nearly every row" in note for note in task.notes) == left_out


@pytest.mark.parametrize(("step", "left_out"), [(1, True), (3, False)])
def test_row_numbers_of_a_file_that_is_sorted_by_its_target(step, left_out):
    data = frame().sort_values("loan").assign(rownames=step * np.arange(N) + 1)
    task = survey(make_task(parse_table(csv_of(data), "t"), "loan", "sex"))
    assert ("rownames" not in task.inputs) == left_out
    assert any("'rownames' nearly repeats the target" in note for note in task.notes) != left_out


def test_identifiers_that_are_kept_on_request():
    numbers = RNG.permutation(N)
    assert surveyed({"numeric": ["new"]}, new=numbers).kinds["new"] == "numbers"
    assert surveyed({"nominal": ["new"]}, new=numbers).kinds["new"] == "words"
    with pytest.raises(InvalidInputError, match=r"--numeric 'job' must hold numbers\. Got words"):
        surveyed({"numeric": ["job"]})
    data = pd.DataFrame({"id": numbers, "loan": frame()["loan"], "sex": frame()["sex"]})
    task = make_task(parse_table(csv_of(data), "t"), "loan", "sex")
    with pytest.raises(InvalidInputError, match="must have a column to learn from"):
        survey(task)


def flipped(signs, many):
    return np.where(np.arange(N) < many, ~signs, signs)


@pytest.mark.parametrize(
    ("column", "role"),
    [
        (np.where(YES, "A", "B"), "target 'loan'"),
        (np.where(YES, 3, 7), "target 'loan'"),
        (np.where(flipped(YES, 3), "A", "B"), "target 'loan'"),
        (np.where(YES, RNG.choice([1, 3], N), 2), "target 'loan'"),  # codes whose order says nothing
        (np.where(YES, 1.0, 0.0) + RNG.uniform(0, 0.9, N), "target 'loan'"),
        (np.where(YES, "", "none"), "target 'loan'"),  # known only to those who decided
        (np.where(MALE, "Mr", "Ms"), "viewpoint 'sex'"),
        (np.where(flipped(YES, 40), "A", "B"), None),
        (np.where(YES, 1.0, 0.0) + RNG.normal(size=N), None),
        (RNG.choice(["a", "b"], N), None),
    ],
)
def test_leaks(column, role):
    task = surveyed(new=column)
    found = [note for note in task.notes if "nearly repeats the" in note]
    assert "new" in task.inputs
    assert [f"'new' nearly repeats the {role}" in note for note in found] == ([True] if role else [])


def test_several_leaks_are_one_note():
    copies = {f"copy{j}": np.where(YES, "A", "B") for j in range(7)}
    (note,) = (note for note in surveyed(**copies).notes if "nearly repeat" in note)
    assert note.startswith(
        "'copy0', 'copy1', 'copy2', 'copy3', 'copy4' and 2 more nearly repeat the target 'loan' ("
    )


def test_dates_by_hand():
    text = "day\n2024-01-01\n2024-03-01\n\n2025-02-01\n"
    table = parse_table(text.replace("\n", ",1\n").replace("day,1", "day,x"), "t")
    recipe, notes = learn_recipe(table, ["day"])
    assert recipe.feature_names == ["day (year)", "day (month)", "day (days)", "day (missing)"]
    X = dense(recipe.transform(table)[0])
    days = np.array([0, 60, 397])  # 2024 is a leap year
    assert X[[0, 1, 3], 2] == pytest.approx((days - days.mean()) / days.std())
    assert X[:, 3].tolist() == [0, 0, 1, 0]
    months = np.array([1, 3, 2])
    assert X[[0, 1, 3], 1] == pytest.approx((months - 2) / months.std())
    assert X[2, 1] == pytest.approx(0)  # the median, which is the mean here
    assert notes == ("'day': 1 values missing (25 %)",)
    assert Recipe.from_dict(recipe.to_dict()) == recipe
    assert recipe.summary() == "1 columns, 4 features"
    with pytest.raises(InvalidInputError, match=r"'day' of 'new' must hold dates.*Got 'soon' in row 1"):
        recipe.transform(parse_table("day,x\nsoon,1\n", "new"))


def test_dates_in_a_task():
    days = pd.Timestamp("2015-01-01") + pd.to_timedelta(np.arange(N) * 37 % 3000, unit="D")
    same = days - pd.to_timedelta(days.day - 1 - np.arange(N) % 12, unit="D")
    task = surveyed(good=days.strftime("%m/%d/%Y"), unclear=same.strftime("%d/%m/%Y"))
    assert task.kinds["good"] == "month/day/year"
    assert "'good' read as dates (month/day/year)" in " ".join(task.notes)
    assert "unclear" not in task.inputs
    assert "'unclear' left out: dates whose day and month cannot be told apart" in " ".join(task.notes)
    assert surveyed({"nominal": ["unclear"]}, unclear=same.strftime("%d/%m/%Y")).kinds["unclear"] == "words"
    spoiled = days.strftime("%Y-%m-%d").to_numpy(object)
    spoiled[3] = "later"
    with pytest.raises(
        InvalidInputError, match=r"'day' must hold dates only, or words\. Got 239 dates .*and 1 other"
    ):
        surveyed(day=spoiled)


FEW_DAYS = [datetime.date(1999, 1, 31), datetime.date(2014, 5, 13), datetime.date(2020, 2, 29)]


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ("%Y-%m-%d", "year-month-day"),
        ("%d.%m.%y", "day.month.year"),
        ("%m/%d/%Y %I:%M %p", "month/day/year"),
        ("%d %b %Y", "months by name"),
        ("%d-%b-%y", "months by name"),
        ("%B %d, %Y", "months by name"),
        ("%Y-%m", "year-month"),
        ("%m/%Y", "year-month"),
    ],
)
def test_date_formats(form, kind):
    words = [datetime.datetime(d.year, d.month, d.day, 14, 5).strftime(form) for d in FEW_DAYS] * 10
    rows = [f"{word};{i % 7};{i % 3 % 2};{i % 2}" for i, word in enumerate(words)]
    task = survey(make_task(parse_table("\n".join(["day;x;y;v", *rows]), "t", separator=";"), "y", "v"))
    assert task.kinds["day"] == kind
    assert any("'day' read as dates" in note for note in task.notes)
    expected = [d if "%d" in form else d.replace(day=1) for d in FEW_DAYS]
    assert [day.date() for day in dates_in(words[:3], kind)] == expected


@pytest.mark.parametrize(
    ("words", "positive", "said"),
    [
        (("ja", "nein"), "ja", False),
        (("nein", "ja"), "ja", False),
        (("cat", "dog"), "dog", True),
        (("1", "2"), "2", True),
    ],
)
def test_which_value_counts_as_positive_is_said_where_it_is_a_guess(words, positive, said):
    data = frame().assign(loan=np.where(YES, *words))
    table = parse_table(csv_of(data), "t")
    task = make_task(table, "loan", "sex")
    assert task.target.positive == positive
    other = next(word for word in words if word != positive)
    note = f"loan = {positive} counts as positive, the last in order; --positive takes {other!r} instead"
    assert (note in task.notes) == said
    assert make_task(table, "loan", "sex", positive=other).notes == ()


def test_a_long_cell_does_not_fill_a_sentence():
    cell = "x" * 5000
    assert len(quoted(cell)) == 60
    with pytest.raises(InvalidInputError) as refused:
        make_task(parse_table(f"a,y,v\n1,{cell},1\n2,b,2\n3,c,1\n", "t"), "y", "v")
    assert len(str(refused.value)) < 400


def test_many_numbers_are_a_regression_unless_refused():
    text = "a,y,v\n" + "".join(f"{i % 5},{i},{i % 2}\n" for i in range(40))
    task = make_task(parse_table(text, "t"), "y", "v")
    assert task.numbers.tolist() == list(range(40))
    assert task.rows(task.v > 0).numbers.tolist() == list(range(1, 40, 2))
    assert "'y' is read as a number: a regression; --task classification takes its values" in task.notes
    assert make_task(parse_table(text, "t"), "y", "v", positive="7").numbers is None
    with pytest.raises(InvalidInputError, match="or take it as a number with --task regression"):
        make_task(parse_table(text, "t"), "y", "v", task="classification")


def test_few_rows_are_pointed_out():
    rows = [f"{i % 5},{int(i < 4)},{'c' if i % 50 == 9 else 'ab'[i % 2]}\n" for i in range(200)]
    task = make_task(parse_table("x,y,v\n" + "".join(rows), "t"), "y", "v")
    (note,) = (note for note in task.notes if "may be chance" in note)
    assert note == "fewer than 30 rows have 'y = 1', 'v = c': what is said of them may be chance"


def test_more_features_than_the_rows_can_tell():
    noise = np.random.default_rng(0).normal(size=(150, 120)).round(3)
    table = table_of(pd.DataFrame(noise).add_prefix("x"))
    _, notes = learn_recipe(table, table.names)
    assert notes[-1].startswith("120 features for 150 rows")
    assert learn_recipe(table, table.names[:70])[1] == ()
