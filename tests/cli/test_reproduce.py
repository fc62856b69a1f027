"""`nerm reproduce`: every option of the experiments, from the command line."""

from __future__ import annotations

import json

import pytest

from nerm import experiments
from tests.cli.test_bad_input import refused

pytestmark = pytest.mark.long

TINY = ("--repetitions", 1, "--folds", 2)
FEW = ("--datasets", "diabetes", "--methods", "neutral-svm, lr", "--lam", "10", *TINY)


def test_convergence_prints_slopes_and_saves_the_figure(nerm, tmp_path):
    figure, results = tmp_path / "one.png", tmp_path / "one.csv"
    ran = nerm("reproduce", "convergence", "--n", "40,80", *TINY, "--figure", figure, "--results", results)
    assert ran.code == 0, ran.err
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert "slope" in ran.out
    assert "12 ok; the fits took" in ran.out
    assert f"Figure: {figure}" in ran.out.replace("\n", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.csv", "one.png"]
    again = nerm("reproduce", "convergence", "--n", "40,80", *TINY, "--results", results, "--json", "-q")
    plain = json.loads(again.out)
    assert plain["fits"] == {"ok": 12}
    assert {row["error"] for row in plain["summary"]} == {"risk", "neutrality"}
    assert plain["files"] == {"results": str(results)}
    refused(
        nerm("reproduce", "convergence", "--n", "40", *TINY, "--results", results),
        "must be of this experiment, with n [40]",
    )


def test_tradeoff_prints_the_front_and_saves_the_figure(nerm, tmp_path):
    figure = tmp_path / "two.svg"
    ran = nerm("reproduce", "tradeoff", *FEW, "--figure", figure, "--json")
    assert ran.code == 0, ran.err
    plain = json.loads(ran.out)
    assert plain["fits"] == {"ok": 22}
    assert {row["method"] for row in plain["summary"]} == {"neutral-svm", "lr"}
    assert plain["seconds"] > 0
    assert "<svg" in figure.read_text(encoding="utf-8")


def test_levels_prints_what_is_known_of_a_method_and_saves_the_figure(nerm, tmp_path):
    few = ("--datasets", "diabetes", "--methods", "thresholds,lr", "--lam", "10", *TINY)
    asked = ("--measures", "calders_verwer_score", "--limits", "0.1,0.02")
    ran = nerm("reproduce", "levels", *few, *asked, "--figure", tmp_path / "levels.png", "--json")
    assert ran.code == 0, ran.err
    plain = json.loads(ran.out)
    assert plain["fits"] == {"ok": 6}
    facts = {row["method"]: (row["sees_group"], row["randomised"], row["level"]) for row in plain["summary"]}
    assert facts == {"thresholds": (True, False, "asked"), "lr": (False, False, "none")}
    assert (tmp_path / "levels.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("which", "given", "expected"),
    [
        (
            "convergence",
            ("--n", "40, 80", "--etas", "0.5,2", "--redraw", "--folds", 3, "--seed", 5, "--jobs", 2),
            {"n": (40, 80), "etas": (0.5, 2.0), "redraw": True, "folds": 3, "seed": 5, "n_jobs": 2},
        ),
        ("convergence", (), {"folds": 5, "repetitions": 10, "seed": 0, "n_jobs": 1}),
        (
            "tradeoff",
            (
                "--datasets",
                "german",
                "--methods",
                "lr,svm",
                "--lam",
                "1,10",
                "--discretize",
                "training folds",
            ),
            {
                "datasets": ("german",),
                "methods": ("lr", "svm"),
                "lam": (1.0, 10.0),
                "discretize": "training folds",
            },
        ),
        (
            "tradeoff",
            ("--data-home", "here", "--results", "r.csv"),
            {"data_home": "here", "results": "r.csv"},
        ),
        (
            "levels",
            ("--datasets", "german", "--measures", "neutrality_risk", "--limits", "0.1,0.05", "--lam", "1"),
            {"datasets": ("german",), "measures": ("neutrality_risk",), "limits": (0.1, 0.05), "lam": (1.0,)},
        ),
    ],
)
def test_every_option_reaches_the_experiment(nerm, monkeypatch, which, given, expected):
    asked = {}

    def run(**options):
        asked.update(options)
        raise experiments_stopped

    experiments_stopped = KeyboardInterrupt()
    monkeypatch.setattr(experiments, which, run)
    assert nerm("reproduce", which, *given).code == 130
    assert {name: asked[name] for name in expected} == expected
    left_out = {
        "n",
        "etas",
        "redraw",
        "datasets",
        "methods",
        "lam",
        "discretize",
        "data_home",
    }
    left_out |= {"measures", "limits"}
    assert not (left_out - expected.keys()) & asked.keys()


def test_one_line_and_code_2(nerm):
    refused(
        nerm("reproduce", "tradeoff", "--datasets", "diabetes", "--methods", "nope"),
        "'methods' must be one of ",
    )
    refused(nerm("reproduce", "tradeoff", *FEW, "--jobs", 0), "'n_jobs' must be")
    refused(nerm("reproduce", "convergence", "--n", "40,x"), "--n", "must be numbers", "40,x")
    refused(nerm("reproduce", "convergence", "--datasets", "german"), "--datasets belongs to tradeoff")
    refused(nerm("reproduce", "tradeoff", "--redraw"), "--redraw belongs to convergence")
    refused(nerm("reproduce", "tradeoff", "--n", "40"), "--n belongs to convergence")
    refused(
        nerm("reproduce", "convergence", "--data-home", "x"), "--data-home belongs to tradeoff and levels"
    )
    refused(nerm("reproduce", "tradeoff", "--limits", "0.1"), "--limits belongs to levels")
    refused(nerm("reproduce", "levels", "--limits", "0"), "'limits' must be a finite positive number")
    assert nerm("reproduce").code == 2


@pytest.mark.parametrize("command", [("reproduce", "convergence"), ("solvers", "--compare")])
def test_a_figure_that_cannot_be_drawn_is_refused_before_any_work(nerm, tmp_path, command):
    results = tmp_path / "one.csv"
    refused(
        nerm(*command, "--results", results, "--figure", tmp_path / "one.xyz"),
        "--figure must end in .png, .pdf, ",
    )
    assert list(tmp_path.iterdir()) == []


def test_a_figure_on_a_full_disk_leaves_no_file(nerm, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    def full(self, file, **options):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    refused(
        nerm("reproduce", "convergence", "--n", "40", *TINY, "--figure", tmp_path / "one.png"),
        "No space left",
    )
    assert list(tmp_path.iterdir()) == []
