"""Several classes jointly; the tests measure the predicted class once more, in plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

import nerm
from nerm.neutralize import Target
from nerm.neutralize.neutralizing import answers, predicted, search_for

PLAIN = nerm.Risk(nerm.Logistic()) + 0.01 * nerm.SquaredL2()


def searches(limit, keep=0.5, count=3):
    """Return the searches of three classes against the rest, and the viewpoint."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    v = np.where(X[:, 0] + 0.7 * rng.normal(size=300) > 0, 1.0, -1.0)
    means = np.column_stack([X[:, 0] + X[:, 2], 1.5 * X[:, 1], -X[:, 2]])
    label = np.argmax(means + 0.5 * rng.normal(size=(300, 3)), axis=1)
    problems = [PLAIN.on(X, np.where(label == k, 1.0, -1.0), viewpoint=v) for k in range(count)]
    target = Target(limit, keep=keep, tol=1e-5, surrogate=nerm.Logistic())
    return [search_for(problem, target, one_of_several=True) for problem in problems], v


def gaps(scores, v):
    """Return by how much each class is predicted more often where v = 1."""
    chosen = np.argmax(scores, axis=1)
    count = scores.shape[1]
    return np.array([np.mean(chosen[v > 0] == k) - np.mean(chosen[v < 0] == k) for k in range(count)])


def scores_of(found):
    return np.column_stack([one.solution.training_scores() for one in found])


def test_predicted_class_is_the_first_of_the_largest():
    shown = predicted(np.array([[0.2, 0.3, -1.0], [-2.0, -3.0, -2.0], [0.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(shown, [[-1, 1, -1], [1, -1, -1], [1, -1, -1]])


@pytest.mark.parametrize("count", [2, 3])
def test_predicted_classes_meet_the_limit(count):
    made, v = searches(0.1, keep=0.1, count=count)
    before = np.column_stack([search.plain.scores for search in made])
    assert np.abs(gaps(before, v)).max() > 0.1
    found = answers(made)
    assert np.abs(gaps(scores_of(found), v)).max() <= 0.1
    assert all(one.solution.status.success for one in found)
    rates = [[np.mean(np.argmax(f, axis=1)[v == side] == k) for side in (-1, 1) for k in range(count)]
             for f in (before, scores_of(found))]  # fmt: skip
    assert (np.array(rates[1]) >= 0.1 * np.array(rates[0])).all()


def test_classes_within_the_limit_stay_plain():
    made, v = searches(0.9)
    found = answers(made)
    assert [one.eta for one in found] == [0.0] * 3
    assert all(len(one.trace) == 1 for one in found)
    assert np.abs(gaps(scores_of(found), v)).max() > 0.1


def test_classes_that_are_predicted_too_rarely_are_refused():
    made, _ = searches(2.0, keep=1.01)
    with pytest.raises(nerm.NotNeutralError, match=r"often enough .* The closest have 0\.") as caught:
        answers(made)
    assert len(caught.value.best) == 3
    assert not any(one.reached for one in caught.value.best)
    assert len(answers(searches(2.0, keep=1.0)[0])) == 3  # as often as before is often enough
