"""Stories of careful users who once got another model than they asked for, without a word."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from tests.cli.conftest import as_csv, census

FAST = ("--surrogate", "hinge", "--limit", "0.1")


def written(tmp_path, rows, name="census.csv"):
    path = tmp_path / name
    path.write_text(as_csv(rows), encoding="utf-8")
    return path


def respelled(column, *spellings, rows=None):
    """Return rows in which the values of a column take turns in their spelling."""
    rows = census() if rows is None else rows
    for i, row in enumerate(rows):
        row[column] = {name: words[i % len(words)] for name, *words in spellings}[row[column]]
    return rows


YES_AND_NO = ((">50K", "yes", "yes", "Yes"), ("<=50K", "no", "NO ", "no"))


def test_yes_in_two_spellings_is_one_value_and_a_note_says_so(nerm, tmp_path):
    """The export has 'Yes', 'yes', 'NO' and 'no'. Nobody wants to learn 'yes' against 'Yes'."""
    path = written(tmp_path, respelled("income", *YES_AND_NO))
    roles = ("--target", "income", "--viewpoint", "sex")
    ran = nerm("fit", path, *roles, *FAST, "--json")
    assert ran.code == 0, ran.err
    plain = json.loads(ran.out)
    assert plain["target"] == {"column": "income", "positive": "yes", "negative": "no"}
    clean = json.loads(nerm("fit", written(tmp_path, census(), "c.csv"), *roles, *FAST, "--json").out)
    assert plain["measures"] == clean["measures"]
    assert "in 'income' is read as 'yes'; --exact keeps them apart" in ran.err
    assert "'NO' (" in ran.err
    # --positive names the value, however it is spelled
    for spelling in ("yes", "Yes", " YES"):
        again = json.loads(nerm("fit", path, *roles, *FAST, "--positive", spelling, "--json").out)
        assert again["measures"] == clean["measures"]


def test_exact_refuses_to_merge_and_the_rest_is_said_first(nerm, tmp_path):
    path = written(tmp_path, respelled("income", *YES_AND_NO))
    roles = ("--target", "income", "--viewpoint", "sex", "--exact")
    ran = nerm("fit", path, *roles, *FAST)
    assert (ran.code, ran.out) == (2, "")
    assert "the target must have two values. Got 4 in 'income'" in ran.err
    ran = nerm("fit", path, *roles, *FAST, "--positive", "yes")
    first = ran.err.splitlines()[0]
    assert first.startswith("nerm: the target 'income' is 'yes' (")
    assert "against the rest: 'NO' (" in first
    assert "'Yes' (" in first


def test_accents_and_blanks_are_no_groups(nerm, tmp_path):
    rows = respelled("sex", ("male", "Süd", "SÜD", "Su\u0308d"), ("female", "Nord", "nord", " Nord"))
    ran = nerm("fit", written(tmp_path, rows), "--target", "income", "--viewpoint", "sex", *FAST, "--json")
    assert ran.code == 0, ran.err
    assert [group["name"] for group in json.loads(ran.out)["groups"]] == ["sex = Süd", "sex = Nord"]
    assert "in 'sex' are read as 'Süd'" in ran.err
    assert "in 'sex' is read as 'Nord'" in ran.err


def test_m_and_male_are_pointed_out_and_read_as_one_on_request(nerm, tmp_path):
    """Two offices, two codes: M/F and Male/female. 'F against the rest' would count every 'female' as male."""
    rows = respelled("sex", ("male", "M", "Male", "M"), ("female", "F", "female", "F"), rows=census(600))
    path, roles = written(tmp_path, rows), ("--target", "income", "--viewpoint", "sex")
    ran = nerm("fit", path, *roles, *FAST)
    assert ran.code == 0, ran.err
    assert "the groups of 'sex' are compared each with the rest: 'M' (" in ran.err.splitlines()[0]
    assert "'female' (90 rows) and 'F' (188) in 'sex' may mean the same: --same 'female=F'" in ran.err
    ran = nerm("fit", path, *roles, *FAST, "--same", "female=F", "--same", "Male=M", "--json")
    assert [group["name"] for group in json.loads(ran.out)["groups"]] == ["sex = M", "sex = F"]
    assert "'female' (90 rows) in 'sex' is read as 'F'" in ran.err
    ran = nerm("fit", path, *roles, *FAST, "--favoured", "F")
    assert "the viewpoint 'sex' is 'F' (188 rows) against the rest: 'M' (" in ran.err.splitlines()[0]
    assert "'female' (90)" in ran.err.splitlines()[0]


@pytest.fixture
def regions(tmp_path):
    """Write a file of two large groups and two of 20 and 18 rows; one value is misspelled, one is a dash."""
    rows = census(400)
    for i, row in enumerate(rows):
        row["region"] = "north" if i % 2 else "south"
        if i < 40:
            row["region"] = "island" if i % 2 else "coast"
    rows[100]["region"], rows[101]["region"] = "nroth", "-"
    return written(tmp_path, rows)


def test_small_groups_are_pooled_and_never_the_headline(nerm, regions):
    roles = ("--target", "income", "--viewpoint", "region")
    ran = nerm("fit", regions, *roles, *FAST, "--test", "0", "--json")
    assert ran.code == 0, ran.err
    groups = {group["name"]: group for group in json.loads(ran.out)["groups"]}
    assert groups["region = - or coast or island or nroth"]["rows"] == 42
    assert not any(group["few"] for group in groups.values())
    assert "groups of 'region' below 30 rows are pooled as one: '-' (1 row), 'coast' (20)" in ran.err
    assert "small groups are pooled: region = north or region = - or coast or island or nroth\n" in ran.err
    assert "'nroth' (1 row) and 'north' (179) in 'region' may mean the same" in ran.err
    assert "'-' (1 row) in 'region' is read as a value of its own: --missing '-' reads it" in ran.err
    words = ("--same", "nroth=north", "--missing", "-", "--same", "coast=south")
    ran = nerm("fit", regions, *roles, *FAST, *words, "--test", "0", "--json")
    plain = json.loads(ran.out)
    assert "are set aside, and only counted in the rest of other groups: 'island' (20 rows)" in ran.err
    assert "region = island" in {group["name"] for group in plain["groups"]}
    shown = {d[side] for d in plain["differences"] for side in ("one", "other")}
    assert shown == {"region = north", "region = south", "the rest"}


def test_a_group_with_few_held_out_rows_is_not_the_headline(nerm, tmp_path):
    """A group of 60 rows has its own term, but its 15 held-out rows decided the measures."""
    rows = census(480)
    for i, row in enumerate(rows):
        row["region"] = "west" if i % 8 == 0 else "north" if i % 2 else "south"
        row["decision"] = ">50K" if (row["region"] == "west" and i % 16) or i % 3 == 0 else "<=50K"
    path = written(tmp_path, rows)
    roles = ("--target", "income", "--viewpoint", "region")
    ran = nerm("fit", path, *roles, *FAST)
    assert ran.code == 0, ran.err
    assert "region = west   15 (few)" in ran.out
    assert "the measures above leave such groups out" in " ".join(ran.out.split())
    plain = json.loads(nerm("fit", path, *roles, *FAST, "--json").out)
    sound = [d["value"] for d in plain["differences"][:-1] if not d["few"]]
    assert len(sound) == 2
    assert plain["measures"]["calders_verwer_score"] == pytest.approx(max(sound, key=abs))
    found = json.loads(nerm("audit", path, *roles, "--prediction", "decision", "--json").out)
    headline = [d["value"] for d in found["differences"][:-1]]  # all 60 rows of the west are audited
    assert found["measures"]["calders_verwer_score"] == pytest.approx(max(headline, key=abs))


def test_two_groups_one_of_them_small_have_the_higher_rate_as_reference(nerm, tmp_path):
    """Only one group was large enough, so the title's rule could not hold."""
    rows = census(60)
    for i, row in enumerate(rows):
        row["sex"] = "female" if i < 25 else "male"
        row["decision"] = ">50K" if i < 20 or i % 2 else "<=50K"
    ran = nerm("audit", written(tmp_path, rows), *ROLES, "--prediction", "decision")
    assert "Impact ratios: positive rate divided by the highest" in ran.out
    assert "no reference" not in ran.out


def test_west_is_no_misspelling_of_east(nerm, tmp_path):
    rows = census(300)
    for i, row in enumerate(rows):
        row["region"] = "West" if i % 13 == 0 else "East" if i % 2 else "Noth" if i == 2 else "North"
    ran = nerm("fit", written(tmp_path, rows), "--target", "income", "--viewpoint", "region", *FAST)
    assert "'Noth' (1 row) and 'North' (137) in 'region' may mean the same" in ran.err
    assert "'West'" not in "".join(line for line in ran.err.splitlines() if "may mean the same" in line)


def test_groups_of_few_rows_only_are_refused(nerm, tmp_path):
    rows = respelled("sex", ("male", "M", "Male"), ("female", "F", "female"), rows=census(60))
    ran = nerm("fit", written(tmp_path, rows), "--target", "income", "--viewpoint", "sex", *FAST)
    assert (ran.code, ran.out) == (2, "")
    assert "a group of 'sex' must have at least 30 rows. Got 'Male' (" in ran.err
    assert "--same" in ran.err


def test_new_rows_in_another_spelling_are_scored_as_the_known_ones(nerm, tmp_path):
    path = written(tmp_path, census())
    model, roles = tmp_path / "m.nerm", ("--target", "income", "--viewpoint", "sex")
    assert nerm("fit", path, *roles, *FAST, "--out", model, "-q").code == 0
    loud = written(tmp_path, [{**row, "job": row["job"].upper()} for row in census()], "loud.csv")
    ran, plain = nerm("predict", model, loud), nerm("predict", model, path)
    assert ran.out == plain.out
    assert "'job': 236 values read as the values of fit that differ only by case" in ran.err
    exact = nerm("predict", model, loud, "--exact")
    assert "'job': 236 values not seen in fit" in exact.err


def test_decisions_in_another_spelling_are_decisions(nerm, tmp_path):
    rows = census()
    for i, row in enumerate(rows):
        row["decision"] = (">50k" if i % 3 else "<=50K. ").strip()
    path, roles = written(tmp_path, rows), ("--target", "income", "--viewpoint", "sex")
    plain = json.loads(nerm("audit", path, *roles, "--prediction", "decision", "--json").out)
    rates = [group["positive_rate"] * group["rows"] for group in plain["groups"]]
    assert sum(rates) == pytest.approx(sum(i % 3 > 0 for i in range(len(rows))))
    ran = nerm("audit", path, *roles, "--prediction", "decision", "--exact")
    assert (ran.code, ran.out) == (2, "")
    assert "must be a value of 'income'" in ran.err


def test_save_writes_a_model_within_a_limit_or_nothing(nerm, data, tmp_path):
    """No limit stood, the command said so, and wrote the unrestricted model with exit code 0."""
    saved, page = tmp_path / "model.nerm", tmp_path / "page.html"
    roles = ("--target", "income", "--viewpoint", "sex", "--surrogate", "hinge")
    ran = nerm(
        "tradeoff", data, *roles, "--limits", "0.01", "--budget", "0", "--save", saved, "--report", page
    )
    assert ran.code == 5
    assert not saved.exists()
    assert page.exists()
    assert (
        "nothing is saved, because no model within a limit is recommended: allow larger --limits" in ran.err
    )
    text = " ".join(ran.out.split())
    assert (
        "so “no limit” stands. One threshold per group, which needs the group of every new row, reaches"
        in text
    )
    assert "group thresholds" in text
    assert "Model:" not in text
    ran = nerm("tradeoff", data, *roles, "--limits", "0.1", "--budget", "0.5", "--save", saved)
    assert ran.code == 0, ran.err
    assert saved.exists()


def test_limits_that_change_nothing_are_listed_once(nerm, data, tmp_path):
    saved, roles = tmp_path / "model.nerm", ("--target", "income", "--viewpoint", "sex")
    ran = nerm(
        "tradeoff", data, *roles, "--surrogate", "hinge", "--limits", "0.9,0.8", "--save", saved, "--json"
    )
    assert ran.code == 0, ran.err  # the plain model is within a limit
    assert saved.exists()
    assert [point["label"] for point in json.loads(ran.out)["points"]] == ["no limit"]
    assert "the model without a limit is within 0.9, 0.8 already, so these limits change nothing" in ran.err


def test_progress_says_what_is_done_and_left(data):
    from nerm.report import Settings
    from nerm.report.study import run_study
    from nerm.tables import make_task, read_table, survey

    said: list[str] = []
    task = survey(make_task(read_table(data), "income", "sex"))
    run_study(task, Settings(limits=(0.1,), surrogate="hinge"), progress=said.append)
    assert said[0] == "no limit on 240 rows; fits done 0, left 12"
    assert said[-1].startswith("part 5 of 5, limit 0.1 on 192 rows; fits done 11, left 1, about ")
    assert len(said) == 12


def test_a_title_above_the_header_is_advised_to_be_skipped(nerm, tmp_path):
    """'Name the separator' helps nobody whose sheet has a title."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    roles = ("--target", "income", "--viewpoint", "sex")
    rows = [list(row.values()) for row in census(80)]
    for name, titles in (("wide", [["Staff", *[""] * 4], [""] * 5]), ("narrow", [["Staff"]])):
        path = tmp_path / f"{name}.xlsx"
        lines = (
            [*titles, list(census(1)[0]), *rows] if name == "wide" else [*titles, *([row[0]] for row in rows)]
        )
        pd.DataFrame(lines).to_excel(path, header=False, index=False)
        ran = nerm("fit", path, *roles)
        assert (ran.code, ran.out) == (2, "")
        assert ("--skip-lines 2," if name == "wide" else "--skip-lines") in ran.err
        assert "--separator" not in ran.err
    text = tmp_path / "census.csv"
    text.write_text("Staff of 2024\nas of 31 December\n\n" + as_csv(census(), ";"), encoding="utf-8")
    ran = nerm("fit", text, *roles)
    assert ran.code == 2
    assert "Got 'Staff of 2024' above lines of 5 fields" in ran.err
    assert "Leave out the lines above the header with --skip-lines 3." in ran.err
    assert nerm("fit", text, *roles, *FAST, "--skip-lines", 3).code == 0


def test_age_is_compared_with_a_number_or_cut(nerm, data):
    roles = ("--target", "income", "--viewpoint")
    ran = nerm("fit", data, *roles, "age")
    assert ran.code == 2
    assert "Use --viewpoint 'age>=" in ran.err
    assert "--bins" in ran.err
    named = {}
    for comparison in ("age>=40", "age > 40", "age<40"):
        plain = json.loads(nerm("fit", data, *roles, comparison, *FAST, "--test", 0, "--json").out)
        named[comparison] = {group["name"]: group["rows"] for group in plain["groups"]}
    ages = [float(row["age"]) for row in census() if row["age"] != "?"]
    older = sum(age >= 40 for age in ages)
    assert (
        named["age>=40"]
        == named["age<40"]
        == {"age = 40 or more": older, "age = below 40": len(ages) - older}
    )
    assert named["age > 40"]["age = above 40"] == sum(age > 40 for age in ages)
    ran = nerm("fit", data, *roles, "age", "--bins", "35,45", *FAST, "--test", 0, "--json")
    groups = {group["name"]: group["rows"] for group in json.loads(ran.out)["groups"]}
    assert groups["age = 35 to below 45"] == sum(35 <= age < 45 for age in ages)
    assert set(groups) == {"age = below 35", "age = 35 to below 45", "age = 45 or more"}
    ran = nerm("fit", data, *roles, "job>=3")
    assert (ran.code, ran.out) == (2, "")
    assert "'job>=3' must compare a column of numbers" in ran.err
    assert (
        "--bins must come with a viewpoint of numbers" in nerm("fit", data, *roles, "sex", "--bins", "3").err
    )


@pytest.mark.long
def test_a_mistyped_column_is_suggested_before_anything_slow_is_imported(data):
    code = f"""
import sys
from nerm.cli import main
try:
    main(["fit", {str(data)!r}, "--target", "incmoe", "--viewpoint", "sex"])
except SystemExit as error:
    print(error.code, *(name for name in ("sklearn", "numba", "cvxpy", "scipy.stats") if name in sys.modules))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Got 'incmoe'. Did you mean 'income'?" in ran.stderr
    assert ran.stdout == "2\n"


def test_a_limit_of_0_is_refused_in_words_that_hold(nerm, data):
    ran = nerm(
        "fit", data, "--target", "income", "--viewpoint", "sex", "--surrogate", "hinge", "--limit", "0"
    )
    assert ran.code in (0, 5)
    assert "0.0000" not in ran.err


ROLES = ("--target", "income", "--viewpoint", "sex")


def test_probabilities_are_not_audited_as_scores(nerm, tmp_path):
    """Every probability is above 0, so that everybody was told yes and all groups were equal."""
    rows = census()
    for row in rows:
        row["chance"] = f"{1 / (1 + np.exp(-0.2 * (float(row['hours']) - 41))):.3f}"
    path = written(tmp_path, rows)
    ran = nerm("audit", path, *ROLES, "--score", "chance")
    assert (ran.code, ran.out) == (2, "")
    assert "--threshold must be given if no score in 'chance' is negative. Got scores from 0.0" in ran.err
    found = json.loads(nerm("audit", path, *ROLES, "--score", "chance", "--threshold", "0.5", "--json").out)
    right = [(float(row["hours"]) > 41) == (row["income"] == ">50K") for row in rows]
    assert found["measures"]["accuracy"] == pytest.approx(np.mean(right), abs=0.01)
    assert nerm("audit", path, *ROLES, "--score", "chance", "--threshold", "0").code == 4


def test_predict_takes_further_words_for_missing(nerm, tmp_path, data):
    """The option was taken and had no effect."""
    model = tmp_path / "m.nerm"
    assert nerm("fit", data, *ROLES, *FAST, "--out", model, "-q").code == 0
    rows = census(20)
    rows[0]["age"] = "unknown"
    path = written(tmp_path, rows, "new.csv")
    assert "must hold numbers, as the model was fitted on. Got 'unknown'" in nerm("predict", model, path).err
    assert nerm("predict", model, path, "--missing", "unknown").code == 0


def test_missing_is_missing_in_upper_and_lower_case(nerm, tmp_path):
    rows = census()
    for i, row in enumerate(rows):
        row["job"] = {0: "na", 1: "N/a", 2: "NULL"}.get(i, row["job"])
    ran = nerm("fit", written(tmp_path, rows), *ROLES, *FAST, "--test", 0)
    assert "'job': 7 values missing (2.9 %, written 'N/a', 'NULL', 'na')" in ran.err


def test_thousands_units_and_short_years_are_said(nerm, tmp_path):
    rows = census()
    for i, row in enumerate(rows):
        row["pay"] = "1.200" if i % 3 else "950"
        row["share"] = f"{i % 50 + 1} %" if i % 2 else f"0.{i % 90 + 10}"
        row["price"] = f"{'$' if i % 2 else '£'}{i % 40}"
        row["born"] = f"{i % 28 + 1:02d}.{i % 12 + 1:02d}.{i % 30 + 50}"
    ran = nerm("fit", written(tmp_path, rows), *ROLES, *FAST, "--test", 0)
    assert ran.code == 0, ran.err
    for said in (
        "'1.200' beside '950' in 'pay' is read with a decimal point; --decimal comma reads it as thousands",
        "'share' has numbers with no unit and %, which are read as if they had one unit",
        "'price' has numbers with $ and £, which are read as if they had one unit",
        "years of two digits in 'born' are read as 1969 to 2068, at most 2068",
    ):
        assert said in ran.err


def test_dates_of_new_rows_are_read_as_in_fit_and_a_doubt_is_said(nerm, tmp_path):
    rows = census()
    for i, row in enumerate(rows):
        row["day"] = f"{i % 28 + 1:02d}/{i % 12 + 1:02d}/2024"
    path, model = written(tmp_path, rows), tmp_path / "m.nerm"
    ran = nerm("fit", path, *ROLES, *FAST, "--out", model)
    assert "'day' read as dates (day.month.year)" in ran.err
    assert "dates read as in fit" not in nerm("predict", model, path).err
    few = written(tmp_path, [{**row, "day": "03/04/2024"} for row in rows[:9]], "few.csv")
    ran = nerm("predict", model, few)
    assert "'day': dates read as in fit (day.month.year), though they can be read otherwise" in ran.err


def test_names_for_a_file_that_names_its_columns_are_refused(nerm, data):
    ran = nerm("fit", data, *ROLES, "--columns", "age,hours,job,sex,income")
    assert (ran.code, ran.out) == (2, "")
    assert "Got a first line of these names. Remove --columns" in ran.err


def test_a_frame_that_names_a_column_twice_is_refused():
    pd = pytest.importorskip("pandas")
    from nerm.errors import InvalidInputError
    from nerm.tables import table_of

    with pytest.raises(InvalidInputError, match=r"must name every column once\. Got '1' 2 times"):
        table_of(pd.DataFrame({1: [1, 2], "1": [3, 4]}))


def leaking(n=60):
    """Return rows in which the date of notice is known for those who left, and only for them."""
    rng = np.random.default_rng(5)
    rows = census(n)
    for row in rows:
        left = row.pop("income") == ">50K"
        row["left"] = "yes" if left else "no"
        row["notice"] = f"{rng.integers(1, 28):02d}.{rng.integers(1, 12):02d}.2024" if left else ""
        row["points"] = f"{rng.normal() + 9 * left:.3f}"
        row["noise"] = f"{rng.normal():.3f}"
        row["code"] = f"k{rng.integers(0, 30)}"
    return rows


def test_a_column_that_gives_the_target_away_is_found_in_60_rows(nerm, tmp_path):
    path = written(tmp_path, leaking())
    ran = nerm("fit", path, "--target", "left", "--viewpoint", "sex", *FAST)
    assert (
        "'notice' nearly repeats the target 'left' (whether it is missing tells it in 60 of 60 rows)"
        in ran.err
    )
    assert (
        "'points' nearly repeats the target 'left' (one threshold on it tells it in 60 of 60 rows)" in ran.err
    )
    assert "leave it out with --leave-out" in ran.err
    assert "'noise' nearly" not in ran.err
    assert "'code' nearly" not in ran.err


def test_amounts_with_a_word_among_them_are_no_names_of_rows(nerm, tmp_path):
    """One 'k.A.' among amounts in Euro made the whole column words, which then were left out."""
    rows = census()
    for i, row in enumerate(rows):
        amount = f"{1000 + 31.5 * i:,.2f} €".translate(str.maketrans(",.", ".,"))
        row["pay"] = "k.A." if i == 9 else amount
        row["change"] = f"({i % 7}.5)" if i % 2 else f"{i % 5}.5"
    path = tmp_path / "pay.csv"
    path.write_text(as_csv(rows, ";"), encoding="utf-8")
    ran = nerm("fit", path, *ROLES, *FAST)
    assert ran.code == 2
    assert "column 'pay' must hold numbers only, or words. Got 239 numbers and 1 other values" in ran.err
    assert "first 'k.A.' in row 10" in ran.err
    assert "--missing 'k.A.'" in ran.err
    ran = nerm("fit", path, *ROLES, *FAST, "--missing", "k.A.", "--numeric", "pay")
    assert ran.code == 0, ran.err
    assert "'pay': 1 values missing" in ran.err
    assert "numbers in parentheses in 'change' are read as negative" in ran.err


def test_a_dash_in_most_rows_makes_no_words_of_numbers(nerm, tmp_path):
    """Two thirds of the bonuses were '-'; the numbers became categories, without a note."""
    rows = census()
    for i, row in enumerate(rows):
        row["bonus"] = "-" if i % 3 else f"{100 + i}"
        row["left on"] = "still here" if i % 4 else f"2024-{i % 12 + 1:02d}-{i % 28 + 1:02d}"
    path = written(tmp_path, rows)
    ran = nerm("fit", path, *ROLES, *FAST)
    assert (ran.code, ran.out) == (2, "")
    assert "column 'bonus' must hold numbers only, or words. Got 80 numbers and 160 other values" in ran.err
    ran = nerm("fit", path, *ROLES, *FAST, "--missing", "-")
    assert "column 'left on' must hold dates only, or words. Got 60 dates (year-month-day) and" in ran.err
    ran = nerm("fit", path, *ROLES, *FAST, "--missing", "-", "--missing", "still here", "--numeric", "bonus")
    assert ran.code == 0, ran.err
    assert "'bonus': 119 values missing" in ran.err


def test_the_reading_is_said_also_if_no_model_can_be_fitted(nerm, tmp_path):
    rows = respelled("income", *YES_AND_NO)
    for row in rows:
        row["hours"], row["job"] = "1", "clerk"
    path = written(tmp_path, rows)
    ran = nerm("fit", path, *ROLES, "--limit", "0.0001", "--class-weight", "none", "--leave-out", "age")
    assert ran.code != 0
    assert "in 'income' is read as 'yes'; --exact keeps them apart" in ran.err


def test_separators_inside_quotes_do_not_count(nerm, tmp_path):
    """'Doe, J' and '$1,200' made the header look like a title, and --skip-lines 1 was advised."""
    text = as_csv(
        [{"name": f"Doe, J{i}", "pay": f"${1200 + 7 * i:,}", **row} for i, row in enumerate(census())]
    )
    path = tmp_path / "census.csv"
    path.write_text(text, encoding="utf-8")
    ran = nerm("fit", path, *ROLES, *FAST)
    assert ran.code == 0, ran.err
    assert "'pay' read with a decimal point" in ran.err
    assert "'name', 'pay' left out" in ran.err or "'name' left out" in ran.err


def test_a_long_list_of_categories_and_a_target_that_is_constant_in_a_group_are_said(nerm, tmp_path):
    rows = census(480)
    for i, row in enumerate(rows):
        row["city"] = f"city {i % 160}"
        if row["sex"] == "female":
            row["income"] = "<=50K"
    ran = nerm("fit", written(tmp_path, rows), *ROLES, *FAST, "--test", 0)
    assert "'city' has 160 different words: the 99 most frequent are kept and the others are one" in ran.err
    assert "every row with 'sex = female' has 'income = <=50K'" in ran.err


def test_a_group_of_few_rows_is_no_reference_of_impact_ratios(nerm, tmp_path):
    """Three rows of 'unknown' were all hired, and every group seemed to be disadvantaged."""
    rows = census(300)
    for i, row in enumerate(rows):
        row["decision"] = ">50K" if i % 2 or i < 6 else "<=50K"
        row["sex"] = "unknown" if i < 6 else row["sex"]
    path = written(tmp_path, rows)
    ran = nerm("audit", path, *ROLES, "--prediction", "decision", "--json")
    ratios = {ratio["name"]: ratio for ratio in json.loads(ran.out)["impact_ratios"]}
    assert ratios["sex = unknown"]["few"]
    assert max(ratio["impact_ratio"] for ratio in ratios.values() if not ratio["few"]) == 1.0
    shown = nerm("audit", path, *ROLES, "--prediction", "decision").out
    assert "(few): below 30 rows, so it may be chance.\n" in shown
    assert "if these rows are new to the model" in " ".join(shown.split())
    assert "neutral to" not in shown  # nobody has shown that the audited decisions are
