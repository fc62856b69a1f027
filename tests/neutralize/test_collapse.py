"""Nothing praises a constant: what counts as one, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from nerm.neutralize.target import collapse

NAMES = ("class no", "class yes")
N = 1000


def first(share: float, n: int = N) -> np.ndarray:
    """Return 1 for this share of the rows, the first ones, and 0 for the others."""
    return (np.arange(n) < round(share * n)).astype(int)


def as_scores(answers: np.ndarray) -> np.ndarray:
    return np.where(answers == 1, 0.7, -1.3)


@pytest.mark.parametrize(
    ("labels", "answers", "constant"),
    [
        (0.5, 0.0, True),
        (0.5, 1.0, True),
        (0.5, 0.049, True),
        (0.5, 0.05, False),  # a tenth of the labels' share is enough
        (0.5, 0.951, True),
        (0.01, 0.0, True),
        (0.01, 0.001, False),  # a truly rare class, and a model that is as rare
        (0.01, 0.01, False),
        (0.01, 0.95, True),  # nine of ten would be ordinary, if they were labelled so
        (0.99, 0.99, False),
        (0.009, 0.0, False),  # nine rows: a tenth of them is less than one
    ],
)
def test_the_share_is_measured_against_the_labels(labels, answers, constant):
    said = collapse(as_scores(first(answers)), first(labels), NAMES)
    assert (said is not None) is constant
    if constant:
        usual, share = ("no", 1 - answers) if answers < 0.5 else ("yes", answers)
        wanted = 1 - labels if usual == "no" else labels
        assert said == (
            f"The model predicts class {usual} for {100 * share:.1f} % of rows (labels: {100 * wanted:.1f} %): "
            "it is nearly constant."
        )


def test_a_row_of_weight_two_is_two_rows():
    labels, times = first(0.3), 1 + np.arange(N) % 3
    said = []
    for share in (0.02, 0.029, 0.031, 0.05):
        scores = as_scores(first(share))
        said.append(collapse(np.repeat(scores, times), np.repeat(labels, times), NAMES))
        assert collapse(scores, labels, NAMES, weight=1.0 * times) == said[-1]
        assert collapse(scores, labels, NAMES, weight=1e-6 * times) == said[-1]
    assert said[0]
    assert not said[-1]


def test_a_class_that_was_weighed_away_need_not_be_predicted():
    labels = first(0.4)
    ignored = np.where(labels == 1, 1e-4, 1e3)
    assert collapse(as_scores(first(0.0)), labels, NAMES, risk_weight=ignored) is None
    assert collapse(as_scores(first(0.0)), labels, NAMES, risk_weight=1.0 / (1.0 + labels)) is not None


def test_signs_that_are_rounding_are_no_predictions():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=N)
    said = collapse(1e-9 * noise, first(0.5), NAMES)
    assert "constant but for rounding" in said
    assert collapse(1e-3 * noise, first(0.5), NAMES) is None


def test_several_classes_are_measured_by_predictions():
    """A class that never wins is ordinary; one that always wins is not."""
    labels = np.arange(N) % 5
    scores = np.eye(5)[labels]
    names = [f"class {k}" for k in range(5)]
    never = scores.copy()
    never[:, 4] = -1.0
    assert collapse(scores, labels, names) is None
    assert collapse(never, labels, names) is None
    always = scores.copy()
    always[:, 2] = 2.0
    assert "predicts class 2 for 100.0 % of rows (labels: 20.0 %)" in collapse(always, labels, names)


@pytest.mark.parametrize(
    ("before", "now", "collapsed"),
    [
        ((0.4, 0.2), (0.4, 0.2), None),
        ((0.4, 0.2), (0.14, 0.14), "men"),  # 0.3 for everybody, so 0.15 is the least that men may get
        ((0.4, 0.2), (0.2, 0.09), "women"),
        ((0.4, 0.2), (0.16, 0.1), None),
        ((0.8, 0.2), (0.3, 0.3), None),  # men come down to what everybody may get: that is neutrality
        ((0.8, 0.2), (0.2, 0.2), "men"),
        ((0.3, 0.01), (0.3, 0.0), None),  # five women
    ],
)
def test_no_group_may_fall_below_half_of_the_plain_model(before, now, collapsed):
    men, women = np.arange(N) < N // 2, np.arange(N) >= N // 2
    asked = []

    def answers(rates):
        return np.concatenate([first(rate, N // 2) for rate in rates])

    def plain():
        asked.append(1)
        return as_scores(answers(before))

    labels, groups = first(0.9)[::-1], {"men": men, "women": women}  # so that everything looks too low
    said = collapse(as_scores(answers(now)), labels, NAMES, groups, plain=plain)
    assert asked == [1]
    if collapsed is None:
        assert said is None
        return
    k = ("men", "women").index(collapsed)
    rates = f"{100 * now[k]:.1f} % of the rows with {collapsed} (without neutrality: {100 * before[k]:.1f} %)"
    assert said == f"The model predicts class yes for {rates}: its positive rate collapsed."
    assert collapse(as_scores(answers(now)), labels, NAMES, groups, plain=lambda: None) is None
    assert collapse(as_scores(answers(now)), labels, NAMES, groups) is None


def test_the_plain_model_is_needed_only_if_a_class_is_rare():
    groups = {"men": np.arange(N) % 2 == 0, "women": np.arange(N) % 2 == 1, "nobody": np.zeros(N, dtype=bool)}

    def plain():
        raise AssertionError("it was asked for")

    assert collapse(as_scores(first(0.2)), first(0.3), NAMES, groups, plain=plain) is None
