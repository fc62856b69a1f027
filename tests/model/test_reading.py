"""Input that once was read in one of two ways, in silence, in Python: it is said or refused now."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import nerm
from nerm import Hinge, Neutrality, Risk, SquaredL2
from nerm import metrics as m
from tests.conftest import make_data

X, Y, V = make_data(0, n=200)
OBJECTIVE = Risk(Hinge()) + 0.05 * SquaredL2() + Neutrality(Hinge())
PROBABILITIES = 1 / (1 + np.exp(-X[:, 0]))


@pytest.mark.parametrize(
    "measure",
    [
        lambda f: m.calders_verwer_score(f, V),
        lambda f: m.neutrality_risk(f, V),
        lambda f: m.normalized_prejudice_index(f, V),
        lambda f: m.selection_rate_ratio(f, V),
        lambda f: m.equal_opportunity_difference(Y, f, V),
        lambda f: m.report(Y, f, V),
        lambda f: nerm.bounds.holdout_parity_bound(f, V),
    ],
)
@pytest.mark.parametrize("scores", [PROBABILITIES, 100 * PROBABILITIES, np.where(X[:, 0] > 0, 2, 1)])
def test_probabilities_are_no_scores(measure, scores):
    """With predict_proba every decision is +1, so that the difference in positive rates was 0: 'neutral'."""
    with pytest.warns(UserWarning, match=r"'scores' has no negative entry, so that 100% of the predictions"):
        measure(scores)


@pytest.mark.filterwarnings("error")
def test_decisions_scores_and_ranks_are_not_warned_about():
    assert m.calders_verwer_score(PROBABILITIES - 0.5, V) == m.calders_verwer_score(X[:, 0], V)
    assert m.calders_verwer_score(X[:, 0] > 0, V) == m.calders_verwer_score(X[:, 0], V)
    assert m.auc(Y, PROBABILITIES) == pytest.approx(m.auc(Y, X[:, 0]))
    m.relaxed_neutrality_risk(PROBABILITIES, V, Hinge())
    m.calders_verwer_score(np.full(200, 0.3), V)


def test_the_problem_says_which_class_is_positive():
    """'denied' is the larger word, so that equal opportunity is about the denied."""
    words = np.where(Y > 0, "denied", "approved")
    assert "; y: 'approved' is -1, 'denied' is +1" in repr(OBJECTIVE.on(X, words, viewpoint=V))
    chunked = OBJECTIVE.on(nerm.Chunks((X, words, V)))
    assert "; y: 'approved' is -1, 'denied' is +1" in repr(chunked)
    assert "y:" not in repr(OBJECTIVE.on(X, Y, viewpoint=V))
    ordered = pd.Categorical(np.where(Y > 0, "high", "low"), ["low", "high"], ordered=True)
    assert "y: 'high' is -1, 'low' is +1" in repr(OBJECTIVE.on(X, ordered, viewpoint=V))


@pytest.mark.parametrize("codes", [np.arange(200) % 3, np.arange(200) % 4 + 1])
def test_codes_of_groups_that_pandas_made_floats_have_no_side(codes):
    """A column of integers with a missing value becomes one of floats, and 0 was set against 1 and 2."""
    for reader in (m.neutrality_risk, m.calders_verwer_score, nerm.bounds.holdout_parity_bound):
        with pytest.raises(
            nerm.InvalidInputError, match=r"'viewpoint' must hold numbers of both signs, or two"
        ):
            reader(X[:, 0], codes.astype(float))
    with pytest.raises(nerm.InvalidInputError, match=r"must hold numbers of both signs"):
        nerm.weights.balanced_weights(codes.astype(float))
    with pytest.warns(UserWarning, match=r"'viewpoint' is read as real numbers of mean"):
        OBJECTIVE.on(X, Y, viewpoint=codes.astype(float))


def test_zero_is_on_the_negative_side_as_a_score_of_zero_is():
    given = np.array([-1.0, 0.0, 1.0, 2.0])
    assert m.calders_verwer_score([-1.0, 1.0, 1.0, 1.0], given) == 0.5


def test_age_in_years_is_not_forty_groups():
    ages = (40 + 10 * X[:, 0]).astype(int)
    with pytest.raises(
        nerm.InvalidInputError, match=r"at most 12 different integers to be read as groups"
    ) as e:
        nerm.NeutralSVC(eta=0.1).fit(X, Y, viewpoint=ages)
    assert "Convert it to float if it holds numbers, to str if it names groups" in str(e.value)
    assert len(nerm.NeutralSVC(eta=0.1).fit(X, Y, viewpoint=ages % 3).solutions_[0].problem.viewpoints) == 3


@pytest.mark.parametrize("words", [("yes", "Yes"), ("m", "M"), ("a b", "a  b "), ("\u00c9", "\u00e9")])
def test_two_spellings_are_pointed_out(words):
    one, other = sorted(words)
    spelled = np.where(Y > 0, *words)
    text = f"'y' holds {one!r} and {other!r}, which are read as two labels. Merge them if they mean the same."
    with pytest.warns(UserWarning, match="which are read as two labels") as warned:
        OBJECTIVE.on(X, spelled, viewpoint=V)
    assert text in [str(w.message) for w in warned]
    with pytest.warns(UserWarning, match="which are read as two labels"):
        nerm.NeutralSVC(lam=1.0).fit(X, spelled)
    with pytest.warns(UserWarning, match="'viewpoint' holds .* which are read as two values"):
        nerm.NeutralSVC(eta=0.1).fit(X, Y, viewpoint=spelled)


@pytest.mark.filterwarnings("ignore::nerm.errors.NearlyConstantWarning")  # of labels in another order
@pytest.mark.parametrize("reader", ["a problem", "a classifier"])
@pytest.mark.parametrize("name", ["y", "viewpoint", "sample_weight"])
def test_rows_of_pandas_in_another_order_are_refused(reader, name):
    """The same rows in another order: numpy would give each row the label of another."""
    frame = pd.DataFrame(X)
    given = {"y": Y, "viewpoint": V, "sample_weight": np.ones(200)}
    given = {key: pd.Series(values) for key, values in given.items()}
    given[name] = given[name].sort_index(ascending=False)

    def read(y, **others):
        if reader == "a problem":
            return OBJECTIVE.on(frame, y, **others)
        return nerm.NeutralSVC(eta=0.1).fit(frame, y, **others)

    with pytest.raises(nerm.InvalidInputError, match=rf"'{name}' must have the rows of X in the same order"):
        read(**given)
    read(**given | {name: given[name].to_numpy()})
    read(**given | {name: given[name].set_axis(range(1000, 1200))})  # other names: the order counts


def test_a_column_that_is_named_twice_is_no_viewpoint():
    frame = pd.DataFrame(X[:, [0, 1, 2]], columns=["a", "a", "b"])
    with pytest.raises(nerm.InvalidInputError, match=r"must occur once in X\. Got 'a' 2 times"):
        OBJECTIVE.on(frame, Y, viewpoint="a")
