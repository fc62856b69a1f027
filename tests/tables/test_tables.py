"""Reading, roles and recipes, against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from nerm.errors import InvalidInputError
from nerm.report.study import splits
from nerm.tables import Recipe, learn_recipe, load_model, make_task, parse_table
from tests.cli.conftest import as_csv, census
from tests.tables.habits import dense

TEXT = "x,job,y,v\n1,a,0,m\n3,b,1,f\n?,a,1,m\n5,,0,f\n"


def test_a_recipe_by_hand():
    recipe, notes = learn_recipe(parse_table(TEXT, "t"), ["x", "job"], kinds={"job": "words"})
    assert recipe.feature_names == ["x", "x (missing)", "job = a", "job = b", "job = (missing)"]
    X, _ = recipe.transform(parse_table(TEXT, "t"))
    scale = np.sqrt(8 / 3)  # of 1, 3, 5
    expected = [
        [-2 / scale, 0, 1, 0, 0],
        [0, 0, 0, 1, 0],
        [0, 1, 1, 0, 0],  # the median, 3, is the mean here
        [2 / scale, 0, 0, 0, 1],
    ]
    assert dense(X) == pytest.approx(np.array(expected))
    assert notes == ("'x': 1 values missing (25 %, written '?')", "'job': 1 values missing (25 %)")
    assert Recipe.from_dict(recipe.to_dict()) == recipe


def test_new_values_are_none_of_the_known_ones():
    recipe, _ = learn_recipe(parse_table("x,job,two\n1,a,l\n2,b,r\n3,c,l\n", "t"), ["x", "job", "two"])
    X, guessed = recipe.transform(parse_table("two,job,x\nmiddle,d,\n", "new"))
    assert recipe.feature_names == ["x", "job = a", "job = b", "job = c", "two = r"]
    assert dense(X).tolist() == [[0, 0, 0, 0, 0.5]]
    assert len(recipe.imputation_notes(guessed)) == 3


def test_rare_values_are_pooled_and_row_names_left_out():
    n = 400
    lines = [f"{i % 120},id{i},{i % 2}" for i in range(n)]
    table = parse_table("code,name,same\n" + "\n".join(lines), "t")
    recipe, notes = learn_recipe(table, ["code", "name", "same"], kinds={"code": "words", "name": "words"})
    assert recipe.left_out == {"name": "another word in every row, so it was treated as a row identifier"}
    assert recipe.columns[0].levels[-1] == "(other)"
    assert len(recipe.columns[0].levels) == 100
    X, _ = recipe.transform(table)
    assert dense(X)[:, :100].sum(axis=1).tolist() == [1.0] * n
    assert "'code' has 120 different words: the 99 most frequent are kept" in notes[0]
    assert "'name' left out" in notes[1]


def test_constant_columns_are_left_out_and_nothing_left_is_an_error():
    table = parse_table("a,b\n1,x\n1,x\n", "t")
    with pytest.raises(InvalidInputError, match="input column with more than one value"):
        learn_recipe(table, ["a", "b"])


@pytest.mark.parametrize(
    ("text", "options", "names", "rows"),
    [
        ("a;b\n1;2\n", {}, ("a", "b"), [["1", "2"]]),
        ("a\tb\n1\t2\n", {}, ("a", "b"), [["1", "2"]]),
        ("1  2\n3 4\n", {"columns": ["a", "b"]}, ("a", "b"), [["1", "2"], ["3", "4"]]),
        ("# hello\na, b\n1, 2\n\n", {"skip_lines": 1}, ("a", "b"), [["1", "2"]]),
        ('a,b\n"1,5","two\nlines"\n', {}, ("a", "b"), [["1,5", "two\nlines"]]),
        ("a,b\r\n1,2\r\n", {}, ("a", "b"), [["1", "2"]]),
        ("1,2\n", {"header": False}, ("c1", "c2"), [["1", "2"]]),
        ("a:b\n1:2\n", {"separator": ":"}, ("a", "b"), [["1", "2"]]),
    ],
)
def test_reading(text, options, names, rows):
    table = parse_table(text, "t", **options)
    assert table.names == names
    assert [[table[name][i] for name in names] for i in range(len(table))] == rows


@pytest.fixture
def task():
    return make_task(parse_table(as_csv(census()), "census"), "income", "sex")


def test_roles(task):
    assert (task.target.positive, task.target.negative) == (">50K", "<=50K")
    assert task.viewpoint.group(1) == "sex = male"
    assert task.inputs == ("age", "hours", "job")
    assert (task.y > 0).tolist() == [row["income"] == ">50K" for row in census()]
    numeric = make_task(parse_table("x,y,v\n1,10,0\n2,9,1\n3,9,0\n", "t"), "y", "v")
    assert numeric.target.positive == "10"  # by number, not by letter


def test_rows_without_target_or_viewpoint_are_left_out():
    rows = census()
    rows[0]["income"], rows[1]["sex"] = "", "?"
    left = make_task(parse_table(as_csv(rows), "census"), "income", "sex")
    assert len(left) == len(rows) - 2
    assert [note.split(" were")[0] for note in left.notes] == [
        "1 rows without a value of 'income'",
        "1 rows without a value of 'sex'",
    ]


def test_splits_keep_the_share_of_every_combination(task):
    ((train, test),) = splits(task, 0, 0.25)
    assert sorted([*train, *test]) == list(range(len(task)))
    for y in (-1, 1):
        for v in (-1, 1):
            cell = (task.y == y) & (task.v == v)
            assert abs(cell[test].sum() - 0.25 * cell.sum()) <= 0.5
    held = [set(test) for _, test in splits(task, 0)]
    assert sorted(i for part in held for i in part) == list(range(len(task)))
    assert all(len(part) in (48, 49, 47) for part in held)


def test_no_code_in_a_model_file(task, tmp_path):
    """The file is a zip of JSON and plain arrays; what is not a table model is refused."""
    import zipfile

    from nerm.estimators import NERMClassifier
    from nerm.tables import TableModel

    recipe, _ = learn_recipe(task.table, task.inputs)
    X, _ = recipe.transform(task.table)
    model = TableModel(
        recipe, NERMClassifier().fit(X, task.y, viewpoint=task.v), task.target, task.viewpoint, {"a": 1}
    )
    path = tmp_path / "m.nerm"
    model.save(path)
    again = load_model(path)
    assert again.recipe == recipe
    assert again.facts == {"a": 1}
    assert again.scores(task.table)[0] == pytest.approx(model.scores(task.table)[0], abs=0)
    with zipfile.ZipFile(path) as archive:
        assert {name.rsplit(".")[-1] for name in archive.namelist()} == {"json", "npy"}
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InvalidInputError, match="truncated"):
        load_model(path)
