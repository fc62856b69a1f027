"""Three files of careful users, through fit, tradeoff, predict and audit: nothing changes its meaning in silence."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from nerm.tables import load_model, read_table

QUICK = ("--surrogate", "hinge", "--limits", "0.2")


def drawn(n: int, seed: int):
    """Return random numbers, groups, hours that depend on them, ages, and labels."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    hours, age = 34 + 5 * group + 6 * rng.normal(size=n), np.round(42 + 9 * rng.normal(size=n))
    return rng, group, hours, age, 0.15 * (hours - 36) + 0.05 * (age - 42) + rng.normal(size=n) > 0


def euros(amount: float) -> str:
    """Return 1234.5 as a German spreadsheet writes it: 1.234,50 €."""
    return f"{amount:,.2f} €".translate(str.maketrans(",.", ".,"))


# --- a semicolon file of Windows, with two title lines, amounts in Euro and mixed case ---------------------


@pytest.fixture
def credits(tmp_path):
    """Write the file; return its path and the table that its author means."""
    rng, group, hours, age, granted = drawn(300, 1)
    meant = pd.DataFrame(
        {
            "Alter": age,
            "Einkommen": np.round(1200 + 60 * hours, 2),
            "Ort": rng.choice(["München", "Köln"], 300),
            "Geschlecht": np.where(group, "männlich", "weiblich"),
            "Bewilligt": np.where(granted, "ja", "nein"),
        }
    )
    lines = ["Kreditanträge der Filiale Süd;;;;", "Stand: 31.12.2024;;;;", ";".join(meant.columns)]
    for i, row in enumerate(meant.itertuples(index=False)):
        words = [f"{row.Alter:.0f}", euros(row.Einkommen), row.Ort, row.Geschlecht, row.Bewilligt]
        loud = {2: str.upper, 3: str.capitalize, 4: str.title}
        lines.append(";".join(loud.get(j, str)(w) if (i + j) % 3 == 0 else w for j, w in enumerate(words)))
    path = tmp_path / "kredit.csv"
    path.write_bytes("\r\n".join(lines).encode("cp1252"))
    return path, meant


@pytest.mark.long
def test_the_credits_of_a_branch(nerm, credits, tmp_path):
    path, meant = credits
    roles = ("--target", "Bewilligt", "--viewpoint", "Geschlecht")
    # The user is led to the right options, one by one.
    ran = nerm("fit", path, *roles)
    assert ran.code == 2
    assert "Got byte 0xe4 in line 1" in ran.err
    assert "--encoding cp1252" in ran.err
    ran = nerm("fit", path, *roles, "--encoding", "cp1252")
    assert ran.code == 2
    assert "--skip-lines 2" in ran.err
    reading = ("--encoding", "cp1252", "--skip-lines", "2")
    model, fitted = tmp_path / "model.nerm", (*roles, *reading, "--surrogate", "hinge", "--limit", "0.2")
    ran = nerm("fit", path, *fitted, "--out", model, "--json")
    assert ran.code == 0, ran.err
    # Everything that was read otherwise than it is written is said,
    for said in (
        "'Nein' (",
        "in 'Bewilligt' is read as 'nein'; --exact keeps them apart",
        "in 'Bewilligt' is read as 'ja'",
        "in 'Geschlecht' is read as 'weiblich'",
        "in 'Geschlecht' is read as 'männlich'",
        "'Einkommen' read with a decimal comma; --decimal says otherwise",
        "in 'Ort' is read as 'Köln'",
    ):
        assert said in ran.err
    # and the model has learned the amounts, and the table that the author means.
    found = json.loads(ran.out)
    assert found["target"] == {"column": "Bewilligt", "positive": "ja", "negative": "nein"}
    assert {g["name"] for g in found["groups"]} == {"Geschlecht = weiblich", "Geschlecht = männlich"}
    clean = tmp_path / "clean.csv"
    meant.to_csv(clean, index=False)
    plainly = tmp_path / "plain.nerm"
    again = json.loads(
        nerm("fit", clean, *roles, "--surrogate", "hinge", "--limit", "0.2", "--out", plainly, "--json").out
    )
    assert again["measures"] == found["measures"]
    (income,) = [c for c in load_model(model).recipe.columns if c.name == "Einkommen"]
    assert 2000 < income.mean < 6000
    # New rows: scored as the same rows of the clean table are,
    scored = tmp_path / "scored.csv"
    ran = nerm("predict", model, path, *reading, "--keep", "Bewilligt,Geschlecht", "--out", scored)
    assert ran.code == 0, ran.err
    assert "'Ort': 100 values read as the values of fit that differ only by case" in ran.err
    expected = load_model(plainly).decision_function(meant)
    np.testing.assert_allclose(read_table(scored).numbers("score"), expected, rtol=1e-6)
    # also one row alone, whose 2.500 could be two and a half.
    single = tmp_path / "single.csv"
    single.write_text("Alter;Einkommen;Ort\n40;2.500;Köln\n", encoding="utf-8")
    ran = nerm("predict", model, single, "--json")
    row = pd.DataFrame({"Alter": [40], "Einkommen": [2500.0], "Ort": ["Köln"]})
    assert json.loads(ran.out)["predictions"][0]["score"] == pytest.approx(
        load_model(plainly).decision_function(row)[0], rel=1e-6
    )
    assert "'Einkommen' read with a decimal comma" in ran.err
    # The audit of the scored file, whose roles are spelled as in the first one.
    audit = json.loads(nerm("audit", scored, *roles, "--score", "score", "--json").out)
    rates = {g["name"]: g["base_rate"] for g in audit["groups"]}
    granted = meant.assign(yes=meant["Bewilligt"] == "ja").groupby("Geschlecht")["yes"].mean()
    assert rates == {f"Geschlecht = {sex}": pytest.approx(rate) for sex, rate in granted.items()}
    # The trade-off recommends within a limit and saves, or says why not and saves nothing.
    saved = tmp_path / "saved.nerm"
    ran = nerm("tradeoff", path, *roles, *reading, *QUICK, "--save", saved)
    assert (ran.code, saved.exists()) in ((0, True), (5, False))
    assert (
        "difference: in positive rates, that of v = +1 minus that of v = -1; v = +1 is Geschlecht" in ran.out
    )


# --- an Excel sheet with a title, four groups, a typo and '-' for missing ------------------------------------


@pytest.fixture
def applications(tmp_path):
    pytest.importorskip("openpyxl")
    rng, _, hours, age, hired = drawn(240, 2)
    region = rng.choice(["North", "South", "East", "West"], 240)
    meant = pd.DataFrame({"age": age, "hours": np.round(hours, 1), "region": region, "hired": hired})
    meant["hired"] = np.where(hired, "yes", "no")
    cells = meant.astype(object)
    cells.loc[[3, 60], "hours"] = "-"
    cells.loc[[5, 65, 125], "region"] = "-"
    cells.loc[np.flatnonzero(region == "North")[7], "region"] = "Nroth"
    title = [["Applications 2024", "", "", ""], [""] * 4, list(meant.columns)]
    path = tmp_path / "jobs.xlsx"
    pd.DataFrame([*title, *cells.to_numpy().tolist()]).to_excel(path, header=False, index=False)
    return path, cells


@pytest.mark.long
def test_the_applications_of_four_regions(nerm, applications, tmp_path):
    path, cells = applications
    roles = ("--target", "hired", "--viewpoint", "region")
    ran = nerm("fit", path, *roles)
    assert ran.code == 2
    assert "--skip-lines 2" in ran.err
    assert "--separator" not in ran.err
    ran = nerm("fit", path, *roles, "--skip-lines", 2)
    assert ran.code == 2
    assert "column 'hours' must hold numbers only, or words. Got 238 numbers and 2 other values" in ran.err
    assert "--missing '-'" in ran.err
    # Without further words, the typo is pointed out and small groups are not the headline.
    reading = ("--skip-lines", 2, "--missing", "-")
    model, quick = tmp_path / "model.nerm", ("--surrogate", "hinge", "--limit", "0.2", "--test", "0")
    ran = nerm("fit", path, *roles, *reading, *quick, "--json")
    assert ran.code == 0, ran.err
    assert "'Nroth' (1 row) and 'North' (" in ran.err
    assert "--same 'Nroth=North' reads them as one" in ran.err
    assert "groups of 'region' below 30 rows are set aside" in ran.err
    assert "'Nroth'" not in {d["one"] for d in json.loads(ran.out)["differences"]}
    # With them, the model is that of four regions.
    same = ("--same", "Nroth=North")
    ran = nerm("fit", path, *roles, *reading, *same, *quick, "--out", model, "--json")
    assert "'Nroth' (1 row) in 'region' is read as 'North'\n" in ran.err  # --exact would not change this
    assert "3 rows without a value of 'region' were left out, written '-'" in ran.err
    assert "'hours': 2 values missing (0.84 %, written '-')" in ran.err
    found = json.loads(ran.out)
    counts = cells["region"].replace({"Nroth": "North", "-": None}).value_counts()
    assert {g["name"]: g["rows"] for g in found["groups"]} == {f"region = {r}": n for r, n in counts.items()}
    first = ran.err.splitlines()[0]
    assert first.startswith("nerm: the groups of 'region' are compared each with the rest: ")
    assert all(f"'{region}' ({rows}" in first for region, rows in counts.items())
    # The ratio that is shown is the worst of the groups, as the difference is.
    rates = {g["name"]: g["positive_rate"] for g in found["groups"]}
    rows = {g["name"]: g["rows"] for g in found["groups"]}
    ratios = []
    for name, rate in rates.items():
        others = [other for other in rates if other != name]
        rest = sum(rates[other] * rows[other] for other in others) / sum(rows[other] for other in others)
        ratios.append(min(rate, rest) / max(rate, rest))
    assert found["measures"]["selection_rate_ratio"] == pytest.approx(min(ratios))
    # New rows keep the words for missing of the fit; the audit says what its own file has.
    scored = tmp_path / "scored.csv"
    ran = nerm("predict", model, path, "--skip-lines", 2, "--keep", "hired,region", "--out", scored)
    assert ran.code == 0, ran.err
    (hours,) = [c for c in load_model(model).recipe.columns if c.name == "hours"]
    assert hours.indicator
    ran = nerm("audit", scored, *roles, "--score", "score")
    assert ran.code == 0, ran.err
    assert "'-' (3 rows) in 'region' is read as a value of its own: --missing '-' reads it" in ran.err
    assert "'Nroth' (1 row) and 'North' (" in ran.err
    ran = nerm("audit", scored, *roles, *same, "--missing", "-", "--score", "score", "--json")
    assert len(json.loads(ran.out)["groups"]) == 4
    saved = tmp_path / "saved.nerm"
    ran = nerm("tradeoff", path, *roles, *reading, *same, *QUICK, "--save", saved)
    assert (ran.code, saved.exists()) in ((0, True), (5, False))
    assert "each group is v = +1 once, and the least neutral value is shown" in " ".join(ran.out.split())


# --- a UTF-16 file of 60 rows with M/F/Male/female and a date that gives the target away -----------------------


@pytest.fixture
def staff(tmp_path):
    rng, group, hours, age, left = drawn(60, 3)
    lines = ["age\thours\tsex\tnotice\tleft"]
    for i in range(60):
        sex = (("F", "female"), ("M", "Male"))[group[i]][i % 3 == 0]
        notice = f"{rng.integers(1, 28):02d}.{rng.integers(1, 13):02d}.2024" if left[i] else ""
        lines.append(f"{age[i]:.0f}\t{hours[i]:.1f}\t{sex}\t{notice}\t{left[i]}")
    path = tmp_path / "staff.txt"
    path.write_bytes("\r\n".join(lines).encode("utf-16"))
    return path, np.where(group, "M", "F"), left


@pytest.mark.long
def test_the_staff_that_left(nerm, staff, tmp_path):
    path, sex, left = staff
    roles, quick = ("--target", "left", "--viewpoint", "sex"), ("--surrogate", "hinge", "--limit", "0.3")
    ran = nerm("fit", path, *roles, *quick)
    assert (ran.code, ran.out) == (2, "")
    assert "a group of 'sex' must have at least 30 rows. Got 'F' (" in ran.err
    assert "Read values as one with --same" in ran.err
    same = ("--same", "Male=M", "--same", "female=F")
    ran = nerm("fit", path, *roles, *quick, *same)
    assert ran.code in (0, 4), ran.err
    assert "'notice' nearly repeats the target 'left' (whether it is missing tells it in 60 of 60" in ran.err
    assert "leave it out with --leave-out" in ran.err
    assert "rows) in 'sex' is read as 'F'\n" in ran.err
    model = tmp_path / "model.nerm"
    options = (*roles, *same, "--leave-out", "notice")
    ran = nerm("fit", path, *options, *quick, "--test", "0", "--out", model, "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert {g["name"]: g["rows"] for g in found["groups"]} == {
        f"sex = {group}": int((sex == group).sum()) for group in "MF"
    }
    assert found["target"] == {"column": "left", "positive": "True", "negative": "False"}
    assert {c.name for c in load_model(model).recipe.columns} == {"age", "hours"}
    assert "fewer than 30 rows have" in ran.err
    scored = tmp_path / "scored.csv"
    ran = nerm("predict", model, path, "--keep", "left,sex", "--out", scored)
    assert ran.code == 0, ran.err
    ran = nerm("audit", scored, *roles, "--score", "score")
    assert (ran.code, ran.out) == (2, "")  # not in silence "F against the rest"
    audit = json.loads(nerm("audit", scored, *roles, *same, "--score", "score", "--json").out)
    rates = {g["name"]: g["base_rate"] for g in audit["groups"]}
    assert rates == {f"sex = {group}": pytest.approx(left[sex == group].mean()) for group in "MF"}
    saved = tmp_path / "saved.nerm"
    ran = nerm("tradeoff", path, *options, *QUICK, "--save", saved)
    assert (ran.code, saved.exists()) in ((0, True), (5, False))
