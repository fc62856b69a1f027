from __future__ import annotations

import numpy as np
import pytest

from nerm.experiments import convergence, slopes


def test_slopes_recover_a_known_rate():
    pandas = pytest.importorskip("pandas")
    n = np.array([100, 400, 1600])
    rows = [{"n": k, "eta": e, "risk_error": np.sqrt(3.0 * e / k)} for k in n for e in (1.0, 2.0)]
    found = slopes(pandas.DataFrame(rows), ["risk"])
    assert found.slope.tolist() == pytest.approx([-0.5, -0.5])
    assert found.c.tolist() == pytest.approx([3.0, 6.0])


def test_errors_are_differences_and_risks_are_means():
    table = convergence([60], [0.0, 2.0], repetitions=2, folds=3)
    assert len(table) == 2 * 3 * 2
    assert (table.status == "ok").all()
    for part in ("risk", "neutrality", "zero_one", "sign_neutrality"):
        assert table[f"{part}_error"].to_numpy() == pytest.approx(
            abs(table[f"{part}_test"] - table[f"{part}_train"])
        )
    assert (table.neutrality_train >= 1 - 1e-9).all()  # C_psi >= psi(0)
    by_eta = table.groupby("eta").neutrality_train.mean()
    assert by_eta[2.0] <= by_eta[0.0] + 1e-9


def test_the_same_sample_or_a_new_one():
    fixed = convergence([50], [1.0], repetitions=2, folds=2)
    drawn = convergence([50], [1.0], repetitions=2, folds=2, redraw=True)
    # The mean over the folds of one sample hardly moves with the folds; that of another sample does.
    assert fixed.risk_train.nunique() == 4
    assert not np.allclose(fixed.risk_train, drawn.risk_train)


@pytest.mark.long
def test_a_file_with_some_of_the_rows_is_completed(tmp_path):
    options = {"n": [40, 80], "etas": [0.1, 1.0], "repetitions": 1, "folds": 2}
    whole = convergence(**options, results=tmp_path / "one.csv").drop(columns="seconds")
    lines = (tmp_path / "one.csv").read_text().splitlines(keepends=True)
    (tmp_path / "cut.csv").write_text("".join(lines[:4]))
    assert convergence(**options, results=tmp_path / "cut.csv").drop(columns="seconds").equals(whole)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"n": [5]}, "'n' must be a whole number, at least 10. Got 5."),
        ({"n": [60.5]}, "'n' must be a whole number, at least 10. Got 60.5."),
        ({"etas": [-1.0]}, "'etas' must be a finite number, at least 0. Got -1.0."),
        ({"etas": []}, r"'etas' must not be empty. Got \[\]."),
        ({"lam_per_sample": 0.0}, "'lam_per_sample' must be a finite positive number. Got 0.0."),
        ({"n_jobs": 1.5}, "'n_jobs' must be a whole number, at least 1. Got 1.5. Use -1 for all cores."),
    ],
)
def test_bad_input(change, text):
    with pytest.raises(ValueError, match=text):
        convergence(**{"n": [40], "repetitions": 1, **change})


def test_slopes_of_a_foreign_table():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(
        ValueError, match=r"'table' must come from nerm.experiments.convergence. Got a table with"
    ):
        slopes(pandas.DataFrame({"n": [1]}))


@pytest.mark.slow
def test_both_errors_fall_like_one_over_root_n():
    table = convergence([200, 800, 3200], [0.1, 1.0, 10.0], repetitions=6, redraw=True)
    assert slopes(table).slope.between(-0.75, -0.3).all()
