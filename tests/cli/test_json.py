"""What --json prints is what docs/howto/command.md says: the page's tables are turned into schemas."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pandas as pd
import pytest

from nerm import metrics
from nerm.cli import COMMANDS
from nerm.experiments import compare
from tests.cli.conftest import ROLES

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "command.md"
MEASURES = set(metrics.report([1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]).as_dict()) - {"n"}


def tables():
    """Return the page's tables: by heading, (key, type) for each row."""
    found = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n### ")[1:]:
        rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", part, re.MULTILINE)[1:]
        found[part.splitlines()[0]] = [
            (key.strip(), kind.strip()) for keys, kind in rows for key in keys.split(",")
        ]
    return found


def schema(name, known):
    """Return the JSON schema of one table."""
    rows = [(key, kind) for key, kind in known[name] if key != "…" and not key.startswith("---")]
    if any(key == "…" for key, _ in known[name]):
        rows += [(key, "number or null") for key in MEASURES - {key for key, _ in rows}]
    properties = {}
    for key, kind in rows:
        kind, _, of = kind.partition(" of ")
        properties[key.rstrip("?")] = {"type": kind.split(" or ")}
        if of:
            properties[key.rstrip("?")]["items"] = schema("bound of a list" if of == "bound" else of, known)
    needed = [key for key, _ in rows if not key.endswith("?")]
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


@pytest.fixture(scope="module")
def known():
    return tables()


def check(ran, name, known):
    assert ran.code in (0, 4), ran.err
    jsonschema.validate(json.loads(ran.out), schema(name, known))


def test_fit_bound_predict_and_audit(nerm, data, known, tmp_path):
    model, scored, page = tmp_path / "m.nerm", tmp_path / "s.csv", tmp_path / "p.html"
    check(
        nerm("fit", data, *ROLES, "--limit", 0.1, "--surrogate", "hinge", "--out", model, "--json"),
        "fit",
        known,
    )
    check(nerm("fit", data, *ROLES, "--eta", 1, "--bounds", "--json"), "fit", known)
    check(nerm("bound", data, *ROLES, "--eta", 1, "--json"), "bound", known)
    check(nerm("predict", model, data, "--json"), "predict", known)
    check(nerm("predict", model, data, "--keep", "income,sex", "--out", scored, "--json"), "predict", known)
    check(nerm("audit", scored, *ROLES, "--score", "score", "--report", page, "--json"), "audit", known)
    check(nerm("solvers", "--json"), "solvers", known)


@pytest.mark.parametrize(
    "options", [("--limits", "0.2", "--surrogate", "hinge"), ("--etas", "0,1", "--loss", "logistic")]
)
def test_tradeoff(nerm, data, known, options):
    check(nerm("tradeoff", data, *ROLES, *options, "--json"), "tradeoff", known)


def test_reproduce_and_compare(nerm, known, monkeypatch):
    few = ("--n", "40", "--etas", "1", "--folds", 2, "--repetitions", 1, "-q")
    check(nerm("reproduce", "convergence", *few, "--json"), "reproduce", known)
    run = {"tol": 1e-4, "status": "optimal", "solver": "smo", "seconds": float("nan")}
    names = ("taken", "solved", "correct", "claims", "mean_seconds", "times_best", "median_gap", "peak_mb")
    frame = pd.DataFrame([run | dict.fromkeys(names, 1.0)])
    monkeypatch.setattr(compare, "compare_solvers", lambda **options: frame)
    monkeypatch.setattr(compare, "summarize", lambda frame: frame)
    check(nerm("solvers", "--compare", "--json"), "solvers --compare", known)


def test_every_command_is_documented(known):
    """Its JSON on this page, and a page or a line of its own."""
    assert {command.name for command in COMMANDS} - set(known) == {"demo"}
    text = PAGE.read_text(encoding="utf-8")
    assert "`nerm demo` prints the same." in text


def test_a_missing_key_would_be_seen(known):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"rows": 1}, schema("audit", known))
