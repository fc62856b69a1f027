"""An audit of anybody's model: a page beside it, several groups, and pipelines that were saved with skops."""

from __future__ import annotations

import json

import numpy as np
import pytest

from nerm.report.study import by_group
from nerm.tables import make_task, parse_table
from tests.cli.conftest import ROLES, as_csv, census


def scored(n=240, *, words=False):
    """Return rows with somebody's score, which follows sex; without inputs beside it if `words`."""
    rng = np.random.default_rng(3)
    rows = []
    for row in census(n):
        score = (float(row["hours"]) - 41) / 5 + 0.5 * rng.normal()
        kept = {name: row[name] for name in ("sex", "income")} if words else row
        rows.append({**kept, "points": f"{score:.4f}"})
    return rows


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "scored.csv"
    path.write_text(as_csv(scored(words=True)), encoding="utf-8")
    return path


def test_a_page_of_given_scores(nerm, file, tmp_path):
    page = tmp_path / "audit.html"
    ran = nerm("audit", file, *ROLES, "--score", "points", "--report", page, "--json")
    assert ran.code == 0, ran.err
    plain = json.loads(ran.out)
    (other,) = plain["alternatives"]
    assert other["label"] == "group thresholds"
    assert abs(other["calders_verwer_score"]) < 0.01 < abs(plain["measures"]["calders_verwer_score"])
    text = page.read_text(encoding="utf-8")
    assert "as given" in text
    assert "group thresholds" in text
    assert f"{plain['measures']['auc']:.3f}" in text


@pytest.mark.long
def test_neutral_models_stand_beside_it_where_there_are_inputs(nerm, tmp_path):
    path, page = tmp_path / "scored.csv", tmp_path / "audit.html"
    path.write_text(as_csv(scored()), encoding="utf-8")
    ran = nerm("audit", path, *ROLES, "--score", "points", "--report", page, "--json")
    labels = [point["label"] for point in json.loads(ran.out)["alternatives"]]
    assert {"group thresholds", "nerm, no limit"} <= set(labels)
    assert "nerm, no limit" in page.read_text(encoding="utf-8")


def test_thresholds_by_group_give_everybody_the_same_rate():
    task = make_task(parse_table(as_csv(census()), "census.csv"), "income", ["sex", "job"])
    scores = np.random.default_rng(0).normal(size=len(task)) + 0.5 * task.v
    moved = by_group(task, scores, task, scores)
    wanted = (scores > 0).mean()
    for among in task.groups.values():
        assert (moved[among] > 0).mean() == pytest.approx(wanted, abs=3 / among.sum())


def test_several_groups_are_compared(nerm, tmp_path):
    """Rates by hand: each group against the rest, and the largest difference."""
    path = tmp_path / "scored.csv"
    rows = [{**row, "job": row["job"] or "nurse"} for row in scored()]
    path.write_text(as_csv(rows), encoding="utf-8")
    roles = ("--target", "income", "--viewpoint", "job")
    plain = json.loads(nerm("audit", path, *roles, "--score", "points", "--json").out)
    decided = {
        job: [float(r["points"]) > 0 for r in rows if r["job"] == job] for job in ("clerk", "nurse", "smith")
    }
    rates = {job: np.mean(of) for job, of in decided.items()}
    assert {g["name"]: g["positive_rate"] for g in plain["groups"]} == {
        f"job = {job}": pytest.approx(rate) for job, rate in rates.items()
    }
    *against, largest = plain["differences"]
    for difference in against:
        job = difference["one"].removeprefix("job = ")
        rest = np.concatenate([of for other, of in decided.items() if other != job]).mean()
        assert difference["other"] == "the rest"
        assert difference["value"] == pytest.approx(rates[job] - rest)
    assert largest["value"] == pytest.approx(max(rates.values()) - min(rates.values()))
    worst = max(abs(difference["value"]) for difference in against)
    assert abs(plain["measures"]["calders_verwer_score"]) == pytest.approx(worst)


def test_combinations_and_few_rows_are_marked(nerm, tmp_path):
    path = tmp_path / "scored.csv"
    path.write_text(as_csv(scored()), encoding="utf-8")
    ran = nerm(
        "audit", path, "--target", "income", "--viewpoint", "sex,job", "--intersect", "--score", "points"
    )
    assert ran.code == 0, ran.err
    assert "sex and job = male, clerk" in ran.out
    few = tmp_path / "few.csv"
    few.write_text(as_csv(scored(40)), encoding="utf-8")
    assert "(few): below 30 rows" in nerm("audit", few, *ROLES, "--score", "points").out


def test_what_is_audited_is_named_once(nerm, file):
    ran = nerm("audit", file, *ROLES)
    assert ran.code == 2
    assert "one of --score, --prediction and --model" in ran.err


class TestSkops:
    """A pipeline from scikit-learn, on the columns that it saw."""

    @pytest.fixture
    def pipeline(self):
        pytest.importorskip("skops")
        import pandas as pd
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        frame = pd.DataFrame(census())
        X = frame[["hours"]].astype(float)
        return make_pipeline(StandardScaler(), LogisticRegression()).fit(X, frame["income"]), X, frame

    def test_its_scores_are_audited(self, nerm, data, pipeline, tmp_path):
        from skops import io

        model, X, frame = pipeline
        io.dump(model, tmp_path / "model.skops")
        ran = nerm("audit", data, *ROLES, "--model", tmp_path / "model.skops", "--json")
        assert ran.code == 0, ran.err
        rates = [(model.predict(X)[frame["sex"] == sex] == ">50K").mean() for sex in ("male", "female")]
        assert json.loads(ran.out)["measures"]["calders_verwer_score"] == pytest.approx(rates[0] - rates[1])

    def test_types_that_nobody_trusts_are_refused(self, nerm, data, pipeline, tmp_path):
        from skops import io

        model, _, _ = pipeline
        model.steps.insert(0, ("odd", Odd()))
        io.dump(model, tmp_path / "model.skops")
        ran = nerm("audit", data, *ROLES, "--model", tmp_path / "model.skops")
        assert ran.code == 2
        assert "must be made of trusted types" in ran.err
        assert "--trust" in ran.err

    def test_other_files_are_refused(self, nerm, data, tmp_path):
        pytest.importorskip("skops")
        ran = nerm("audit", data, *ROLES, "--model", data)
        assert ran.code == 2
        assert "written by skops.io.dump" in ran.err
        assert nerm("audit", data, *ROLES, "--model", tmp_path / "none.skops").code == 2


class Odd:
    """A step that does nothing."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X
