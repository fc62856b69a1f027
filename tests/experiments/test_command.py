from __future__ import annotations

import subprocess
import sys

import pytest

from nerm.experiments.__main__ import main


def test_convergence_prints_slopes_and_saves_the_figure(tmp_path, capsys):
    figure = tmp_path / "deep" / "one.png"
    code = main(["convergence", "--n", "40", "80", "--repetitions", "1", "--folds", "2", "--figure", str(figure)])
    assert code == 0
    assert figure.read_bytes().startswith(b"\x89PNG")
    out = capsys.readouterr().out
    assert "slope" in out
    assert "12 ok; " in out


def test_tradeoff_prints_the_front_and_saves_the_figure(tmp_path, capsys):
    figure = tmp_path / "two.png"
    options = ["--datasets", "diabetes", "--methods", "neutral-svm", "lr", "--lam", "10"]
    options += ["--repetitions", "1", "--folds", "2"]
    assert main(["tradeoff", *options, "--figure", str(figure)]) == 0
    assert figure.exists()
    assert "neutral-svm" in capsys.readouterr().out


def test_an_error_is_one_line_and_code_2(capsys):
    assert main(["tradeoff", "--datasets", "diabetes", "--methods", "nope"]) == 2
    assert capsys.readouterr().err.startswith("Error: 'methods' must be one of ")
    with pytest.raises(SystemExit):
        main([])


def test_importing_the_experiments_imports_nothing_heavy():
    heavy = "('sklearn', 'pandas', 'matplotlib', 'joblib', 'rich', 'distributed', 'cvxpy')"
    code = f"import sys, nerm.experiments, nerm.plots; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
