"""verbose=True says what is being computed: one line per solve, pass or candidate, and a bar on a terminal."""

from __future__ import annotations

import re

import numpy as np
import pytest

import nerm
from nerm import Hinge, Logistic, Neutrality, Ramp, Risk, SquaredL2
from tests.conftest import make_data

X, Y, V = make_data(0, n=200)
PROBLEM = (Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge())).on(X, Y, viewpoint=V)
LINE = (
    r"(?P<solver>\S+) +(?P<rows>[\d,]+) rows  objective (?P<value>\S+) +gap (?P<gap>\S+) +(?P<seconds>\S+) s"
)


def lines(capsys):
    """Return the fields of every printed line; each must have the form of `LINE`."""
    out = capsys.readouterr().out
    found = [re.match(LINE, line) for line in out.splitlines()]
    assert all(found), out
    return [(one.groupdict(), one.string) for one in found]


def test_a_solve_prints_one_line(capsys):
    solution = PROBLEM.solve(verbose=True)
    ((fields, text),) = lines(capsys)
    assert fields["solver"] == solution.stats.solver
    assert fields["rows"] == "200"
    assert float(fields["value"]) == pytest.approx(solution.objective.total, rel=1e-6)
    assert float(fields["gap"]) == pytest.approx(solution.certificate.relative_gap, rel=0.1)
    assert text.endswith("eta 1")
    PROBLEM.solve()
    PROBLEM.path([0.0, 1.0])
    PROBLEM.neutralize(0.5, surrogate=Hinge())
    assert capsys.readouterr().out == ""


def test_a_path_and_a_grid_print_one_line_per_solve(capsys):
    PROBLEM.path([0.5, 1.0, 2.0], verbose=True)
    assert sorted(text.partition("eta ")[2] for _, text in lines(capsys)) == ["0.5", "1", "2"]
    PROBLEM.grid(lam=[0.1, 1.0], eta=[0.5, 1.0], verbose=True)
    assert len(lines(capsys)) == 4


def test_each_step_of_a_nonconvex_solve_prints_a_line(capsys):
    solution = (Risk(Ramp()) + 0.1 * SquaredL2()).on(X, Y).solve(verbose=True)
    assert len(lines(capsys)) == solution.stats.iterations


def test_a_search_prints_one_line_per_row_of_its_trace(capsys):
    """A search with an atom of one's own computed for minutes in silence."""
    found = PROBLEM.neutralize(0.05, surrogate=[Hinge(), Logistic()], verbose=True)
    shown = lines(capsys)
    assert len(shown) == len(found.trace)
    assert shown[0][1].endswith(f"no neutrality: calders_verwer_score {found.trace['measure'][0]:.4g}")
    assert any("Hinge() eta" in text for _, text in shown)
    assert any("Logistic() eta" in text for _, text in shown)


def test_classifiers_print_their_solves(capsys):
    nerm.NeutralSVC(eta=0.1, verbose=True).fit(X, Y, viewpoint=V)
    assert len(lines(capsys)) == 1
    nerm.NeutralSVC(lam=1.0, verbose=True).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    assert len(lines(capsys)) == 3
    model = nerm.NeutralSVC(limit=0.1, verbose=True).fit(X, Y, viewpoint=V)
    assert len(lines(capsys)) == len(model.trace_)


def test_chunks_print_their_passes(capsys):
    problem = PROBLEM.objective.on(nerm.Chunks((X, Y, V)))
    solution = problem.solve(verbose=True)
    shown = lines(capsys)
    assert len(shown) == solution.stats.details["passes"]
    assert shown[-1][0]["solver"] == "chunks"
    assert float(shown[-1][0]["gap"]) == pytest.approx(solution.certificate.relative_gap, rel=0.1)
    assert shown[-1][1].endswith(f"pass {len(shown)}")
    problem.path([0.5, 1.0], verbose=True)
    assert len(lines(capsys)) >= 2
    found = problem.neutralize(0.1, verbose=True)
    assert len(lines(capsys)) == len(found.trace)
    nerm.NeutralSVC(eta=0.1, verbose=True).fit(nerm.Chunks((X, Y, V)))
    assert lines(capsys)


def test_a_terminal_gets_a_progress_bar(monkeypatch, capsys):
    seen = []

    def track(solutions, text, total, transient):
        seen.append((text, total, transient))
        return solutions

    monkeypatch.setattr("rich.progress.track", track)
    PROBLEM.path([0.5, 1.0], verbose=True)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    PROBLEM.path([0.5, 1.0])
    PROBLEM.solve(verbose=True)
    assert seen == []
    PROBLEM.path([0.5, 1.0, 2.0], verbose=True)
    assert seen == [("solving", 3, True)]
    assert len(lines(capsys)) == 6
