"""Several classes jointly: the predicted class is measured here once more, in plain numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import nerm
from nerm.neutralize import Asking, neutralizing
from nerm.neutralize.classes import Together, predicted

PLAIN = nerm.Risk(nerm.Logistic()) + 0.01 * nerm.SquaredL2()
LIMIT = 0.08


def made(limit=LIMIT, keep=0.5, seed=0):
    """Return studies of three classes against the rest, and the viewpoint."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 3))
    v = np.where(X[:, 0] + 0.7 * rng.normal(size=300) > 0, 1.0, -1.0)
    label = np.argmax(
        np.column_stack([X[:, 0] + X[:, 2], 1.5 * X[:, 1], -X[:, 2]]) + 0.5 * rng.normal(size=(300, 3)),
        axis=1,
    )
    problems = [PLAIN.on(X, np.where(label == k, 1.0, -1.0), viewpoint=v) for k in range(3)]
    asking = Asking(limit, keep=keep, tol=1e-5)
    return [asking.study(problem, among_classes=True) for problem in problems], v


def gaps(attempts, v):
    """Return by how much each class is predicted more often where v = 1."""
    chosen = np.argmax(np.column_stack([a.scores for a in attempts]), axis=1)
    return np.array([np.mean(chosen[v > 0] == k) - np.mean(chosen[v < 0] == k) for k in range(3)])


def together(studies, start):
    return Together(studies, [nerm.Logistic()] * 3, start)


def test_the_predicted_class_is_the_first_of_the_largest():
    shown = predicted(np.array([[0.2, 0.3, -1.0], [-2.0, -3.0, -2.0], [0.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(shown, [[-1, 1, -1], [1, -1, -1], [1, -1, -1]])


def test_classes_from_their_plain_models_come_within_the_limit():
    studies, v = made(keep=0.1)
    plain = [study.plain for study in studies]
    assert np.abs(gaps(plain, v)).max() > LIMIT
    found = together(studies, plain).run()
    assert np.abs(gaps(found, v)).max() <= LIMIT
    assert max(a.value for a in found) <= LIMIT  # with the scores of each
    chosen = np.argmax(np.column_stack([a.scores for a in found]), axis=1)
    before = np.argmax(np.column_stack([a.scores for a in plain]), axis=1)
    for k in range(3):
        for side in (-1, 1):
            assert np.mean(chosen[v == side] == k) >= 0.1 * np.mean(before[v == side] == k)
    for attempt, study in zip(found, studies, strict=True):  # each is a solution of its class
        assert attempt.solution.status.success
        np.testing.assert_allclose(study.trial.measured(attempt.scores), attempt.parts)


def test_classes_near_enough_stay_as_they_are():
    studies, v = made(limit=0.9)
    plain = [study.plain for study in studies]
    found = together(studies, plain).run()
    assert all(a is b for a, b in zip(found, plain, strict=True))
    assert all(len(study.points) == 1 for study in studies)
    assert np.abs(gaps(found, v)).max() > 0.1


def test_the_parts_of_a_joint_point():
    studies, v = made()
    plain = [study.plain for study in studies]
    whole = together(studies, plain)
    alone, both = whole._joint(plain, signs=False), whole._joint(plain, signs=True)
    np.testing.assert_allclose(alone.parts, gaps(plain, v))
    np.testing.assert_allclose(both.parts, [*gaps(plain, v), *(p.parts[0] for p in plain)])
    chosen = np.argmax(np.column_stack([a.scores for a in plain]), axis=1)
    expected = [[[np.mean(chosen[v == side] == k) for side in (-1, 1)]] for k in range(3)]
    np.testing.assert_allclose(both.rates, expected)


def test_the_first_steps_are_a_share_of_a_weight_or_a_first_weight():
    studies, _ = made()
    start = [study.search(nerm.Logistic()).solve(np.array([x]), study.plain) for study, x in zip(
        studies, (0.0, 2.0, -0.5), strict=True
    )]  # fmt: skip
    whole = together(studies, start)
    at = whole._joint(start, signs=False)
    asked = [np.concatenate([a.weights for a in p.attempts]) for p in whole._search(at, signs=False)][:3]
    moved = np.array(asked) - [0.0, 2.0, -0.5]
    assert np.count_nonzero(moved) == 3
    steps = np.diag(moved)
    assert steps[0] == 0.3
    assert 0 < steps[1] < 1.0
    assert -0.25 < steps[2] < 0


def test_a_class_whose_weight_stays_is_not_solved_again():
    studies, _ = made()
    plain = [study.plain for study in studies]
    whole = together(studies, plain)
    point = whole._solve(False, np.array([0.0, 0.4, 0.0]), whole._joint(plain, signs=False))
    assert [a is b for a, b in zip(point.attempts, plain, strict=True)] == [True, False, True]
    assert point.attempts[1].weights == [0.4]
    assert [len(study.points) for study in studies] == [1, 2, 1]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_of_several_classes_the_predicted_one_is_within_the_limit(count, monkeypatch):
    joint = []
    monkeypatch.setattr(
        neutralizing,
        "Together",
        lambda studies, surrogates, start: joint.append(start) or Together(studies, surrogates, start),
    )
    studies, v = made(limit=0.15, keep=0.1)
    answers = Asking(0.15).answers(studies[:count], [nerm.Logistic()] * count)
    assert len(answers) == count
    assert len(joint) == (count > 1)
    chosen = np.argmax(np.column_stack([a.solution.training_scores() for a in answers]), axis=1)
    for k in range(count):
        assert abs(np.mean(chosen[v > 0] == k) - np.mean(chosen[v < 0] == k)) <= 0.15


@pytest.mark.parametrize("what", ["rates", "certificate"])
def test_solutions_that_deny_or_are_not_certified_are_none(what):
    studies, _ = made(limit=2.0, keep=1.01 if what == "rates" else 0.5)
    start = [study.plain for study in studies]
    if what == "certificate":
        start[1] = replace(start[1], solution=replace(start[1].solution, status=nerm.Status.INACCURATE))
    with pytest.raises(nerm.NotNeutralError, match="often enough .* The closest have 0"):
        together(studies, start).run()
    studies, _ = made(limit=2.0, keep=1.0)  # as often as before is often enough
    start = [study.plain for study in studies]
    assert all(a is b for a, b in zip(together(studies, start).run(), start, strict=True))
