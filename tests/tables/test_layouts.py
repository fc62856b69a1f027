"""One table in the forms in which programs write it: it is read as the same table."""

from __future__ import annotations

import json

import numpy as np
import pytest

from nerm.errors import InvalidInputError
from nerm.tables import learn_recipe, parse_table, read_table
from tests.tables.habits import csv_of, dense, frame

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
        (TEXT.encode("utf-16"), None),
        (json.dumps(RECORDS).encode(), None),
        (json.dumps(RECORDS, indent=1).encode(), None),
        ("\n\n".join(map(json.dumps, RECORDS)).encode(), None),
    ],
)
def test_same_table(content, said, tmp_path):
    path = tmp_path / "census"
    path.write_bytes(content)
    table = read_table(path)
    assert [name for name in table.names if not name.startswith("c") or name == "children"] == list(DATA)
    for name, values in DATA.items():
        found = table.numbers(name) if values.dtype.kind in "if" else table[name]
        assert found.tolist() == values.tolist()
    assert any(said in note for note in table.notes) if said else not table.notes


def test_made_up_names_are_new():
    assert parse_table(",c1\n1,2\n", "t").names == ("c1_", "c1")


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
def test_unclear_layout_is_refused(text, sentence):
    with pytest.raises(InvalidInputError) as refused:
        parse_table(text, "t")
    assert sentence in str(refused.value)


@pytest.mark.parametrize("power", [300, -300])
def test_numbers_of_any_size_are_scaled(power):
    table = parse_table("x,y\n" + "".join(f"{k}e{power},{k}\n" for k in range(1, 6)), "t")
    X, _ = learn_recipe(table, ["x", "y"])[0].transform(table)
    np.testing.assert_allclose(dense(X)[:, 0], dense(X)[:, 1], atol=1e-12)
