from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import nerm
from nerm import plots
from tests.conftest import make_data


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def errors():
    rng = np.random.default_rng(0)
    rows = [
        {"n": n, "eta": eta, "risk_error": abs(rng.normal()) / n**0.5, "neutrality_error": 1 / n**0.5}
        for n in (100, 400, 1600)
        for eta in (0.1, 1.0)
        for _ in range(4)
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def measured():
    points = {"neutral-svm": [(0.9, 0.5), (0.85, 0.2), (0.8, 0.3)], "mine": [(0.7, 0.6)]}
    rows = [
        {
            "dataset": d,
            "method": m,
            "eta": float(k) if m == "neutral-svm" else np.nan,
            "status": "ok",
            "auc": a,
            "neutrality_risk": c,
        }
        for d in ("german", "adult")
        for m, values in points.items()
        for k, (a, c) in enumerate(values)
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def path():
    X, y, v = make_data(0)
    objective = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + nerm.Neutrality(nerm.Hinge())
    return objective.on(X, y, viewpoint=v).path([0.0, 0.1, 1.0]), (X, y, v)


def test_figure_1_has_two_panels_with_slopes_and_the_line(errors):
    axes = plots.figure_1(errors)
    assert len(axes) == 2
    labels = [text.get_text() for text in axes[1].get_legend().get_texts()]
    assert labels == ["$\\sqrt{c/n}$", "η = 0.1  (slope -0.50)", "η = 1  (slope -0.50)"]
    assert axes[0].get_xscale() == axes[0].get_yscale() == "log"
    line = axes[1].lines[-1]
    x, y = line.get_data()
    assert np.allclose(np.asarray(y) ** 2 * x, 1.0)  # c = 1 by construction
    axes[0].figure.canvas.draw()


def test_figure_2_shows_only_what_is_not_dominated_with_guides(measured):
    axes = plots.figure_2(measured)
    assert [ax.get_title() for ax in axes] == ["German", "Adult"]
    assert axes[0].get_xlabel() == "AUC"
    assert axes[0].get_ylabel() == "$C_{sgn}$"
    curves = {line.get_label(): line.get_xydata().tolist() for line in axes[0].lines}
    assert curves["neutral SVM"] == [[0.85, 0.2], [0.9, 0.5]]
    assert curves["mine"] == [[0.7, 0.6]]
    assert axes[0].lines[0].get_xdata()[0] == 0.9
    assert axes[0].lines[1].get_ydata()[0] == 0.2
    pale = plots.tradeoff_panel(measured, "german", dominated=True)
    assert [0.8, 0.3] in [point for line in pale.lines for point in line.get_xydata().tolist()]


def test_given_axes_are_used_and_returned(errors, measured):
    _, ax = plt.subplots()
    assert plots.convergence_panel(errors, ax=ax) is ax
    assert plots.tradeoff_panel(measured, "adult", ax=ax) is ax
    _, two = plt.subplots(1, 2)
    assert plots.figure_1(errors, two)[1] is two[1]


def test_eta_path_shows_the_terms_of_the_solutions(path):
    solutions, (X, y, v) = path
    axes = plots.eta_path(solutions, X=X, y=y, viewpoint=v)
    assert len(axes) == 4
    plus = axes[1].lines[0].get_ydata()
    scores = [s.decision_function(X) for s in solutions]
    assert np.allclose(plus, [np.maximum(0, 1 - v * f).mean() for f in scores])
    theta = axes[2].lines[0].get_ydata()
    assert np.isnan(theta[0])
    assert ((theta[1:] >= 0) & (theta[1:] <= 1)).all()
    axes[0].figure.canvas.draw()
    assert axes[0].lines[0].get_xdata().tolist() == [0.0, 0.1, 1.0]
    accuracy = axes[3].lines[0].get_ydata()
    assert accuracy[0] == pytest.approx(np.mean((scores[0] > 0) == (y > 0)))


def test_colours_are_okabe_and_itos():
    assert set(plots.OKABE_ITO) <= {
        "#000000",
        "#E69F00",
        "#56B4E9",
        "#009E73",
        "#F0E442",
        "#0072B2",
        "#D55E00",
        "#CC79A7",
    }


def test_bad_input(errors, measured, path):
    solutions, (X, y, v) = path
    with pytest.raises(ValueError, match=r"'error' must be one of 'neutrality', .*Got 'loss'."):
        plots.convergence_panel(errors, "loss")
    with pytest.raises(ValueError, match=r"'dataset' must be one of 'adult', 'german'. Got None."):
        plots.tradeoff_panel(measured)
    with pytest.raises(ValueError, match=r"'axes' must hold 2 Axes. Got 3."):
        plots.figure_1(errors, plt.subplots(1, 3)[1])
    n = len(X)
    with pytest.raises(
        ValueError, match=rf"'viewpoint' must have one entry for each of the {n} rows. Got None."
    ):
        plots.eta_path(solutions, X=X, y=y)
    with pytest.raises(ValueError, match=rf"'y' must have one label for each of the {n} rows. Got None."):
        plots.eta_path(solutions, X=X, viewpoint=v)
    with pytest.raises(ValueError, match=r"'X' must be an array of numbers. Got None."):
        plots.eta_path(solutions, y=y)
    with pytest.raises(
        ValueError, match=r"'solutions' must be a path of solutions with a neutrality term. Got .."
    ):
        plots.eta_path([])
    measured["status"], measured["auc"] = "failed", np.nan
    with pytest.raises(ValueError, match=r"'table' must have a result on 'german'. Got failed fits only."):
        plots.tradeoff_panel(measured, "german")
