"""Balanced neutrality on Adult: the Calders-Verwer score falls where it matters, on rows that the fit has not seen."""

from __future__ import annotations

import numpy as np
import pytest

from nerm import NeutralSVC
from nerm.datasets import load
from nerm.metrics import calders_verwer_score, neutrality_risk
from nerm.weights import balanced_weights
from tests.datasets.conftest import FOLDER

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def adult():
    if not (FOLDER / "adult").is_dir():
        pytest.skip(f"needs the UCI files: none in {FOLDER} (set NERM_DATA)")
    return load("adult", coding="one-hot", data_home=FOLDER)


def held_out(data, eta):
    """Return the Calders-Verwer scores and accuracies of five interleaved folds (row mod 5), lam = 0.01 n."""
    scores, accuracies = [], []
    for fold in range(5):
        test = np.arange(len(data.y)) % 5 == fold
        model = NeutralSVC(lam=0.01 * (~test).sum(), eta=eta, weights="balanced")
        model.fit(data.X[~test], data.y[~test], viewpoint=data.viewpoint[~test])
        assert model.certificate_.relative_gap <= 1e-6
        f, v = model.decision_function(data.X[test]), data.viewpoint[test]
        scores.append(calders_verwer_score(f, v))
        accuracies.append(model.score(data.X[test], data.y[test]))
        # with balanced weights C_sgn is the absolute score, exactly
        assert neutrality_risk(f, v, balanced_weights(v)) == pytest.approx(abs(scores[-1]), abs=1e-12)
    return np.abs(scores).mean(), np.mean(accuracies)


@pytest.mark.filterwarnings(
    "ignore::nerm.NearlyConstantWarning"
)  # at eta = 1 the rate of men collapses in some folds
def test_eta_drives_the_held_out_score_below_a_fifth(adult):
    measured = {eta: held_out(adult, eta) for eta in (0.0, 0.1, 1.0)}
    scores = {eta: score for eta, (score, _) in measured.items()}
    assert scores[0.0] > 0.15
    assert scores[1.0] < scores[0.1] < scores[0.0]
    assert scores[1.0] < scores[0.0] / 5
    # not by predicting one class: the largest class alone has accuracy 0.764
    assert measured[1.0][1] > 0.775
