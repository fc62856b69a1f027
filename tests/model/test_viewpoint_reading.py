"""A viewpoint means the same however it is coded, and a viewpoint that cannot be meant is refused or warned about."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import nerm
from nerm import Hinge, Identity, Neutrality, Risk, SquaredL2
from nerm.viewpoint import as_numbers, as_sides, resolve
from tests.conftest import make_data

X, Y, V = make_data(0, n=200)
OBJECTIVE = Risk(Hinge()) + 0.05 * SquaredL2() + 1.0 * Neutrality(Hinge(), weights="balanced")
OBJECTIVE_UNIFORM = Risk(Hinge()) + 0.05 * SquaredL2() + 1.0 * Neutrality(Hinge())
CODINGS = {
    "0/1": (np.where(V > 0, 1, 0), (0, 1)),
    "1/2": (np.where(V > 0, 2, 1), (1, 2)),
    "floats": (np.where(V > 0, 7.5, 2.5), (2.5, 7.5)),
    "booleans": (V > 0, (False, True)),
    "words": (np.where(V > 0, "m", "f"), ("f", "m")),
    "objects": (np.where(V > 0, "m", "f").astype(object), ("f", "m")),
    "categories": (pd.Series(np.where(V > 0, "m", "f"), dtype="category"), ("f", "m")),
    "a list": (np.where(V > 0, "m", "f").tolist(), ("f", "m")),
    "a callable": (lambda X: V > 0, (False, True)),
}
coded = pytest.mark.parametrize(("viewpoint", "groups"), CODINGS.values(), ids=CODINGS)


# --- two values are two groups ---------------------------------------------------------------------------


@coded
def test_a_model_does_not_depend_on_how_two_groups_are_coded(viewpoint, groups):
    """A new user has sex as 0/1, or as words. With 0/1 read as a number one group would drop out of the term."""
    signs = OBJECTIVE.on(X, Y, viewpoint=V)
    problem = OBJECTIVE.on(X, Y, viewpoint=viewpoint)
    np.testing.assert_array_equal(problem.viewpoints["viewpoint"], V)
    assert problem.solve().objective.total == pytest.approx(signs.solve().objective.total, rel=1e-6)
    assert problem.groups == {"viewpoint": groups}
    assert f"viewpoint: {groups[0]!r} is -1, {groups[1]!r} is +1" in repr(problem)
    assert "is -1" not in repr(signs)


def test_zero_and_one_are_neutralized_as_minus_one_and_one():
    """Read as numbers, 0/1 failed here, with the advice to raise the limit."""
    found, signs = (
        OBJECTIVE.on(X, Y, viewpoint=v).neutralize(0.05, surrogate=Hinge())
        for v in (np.where(V > 0, 1, 0), V)
    )
    assert found.reached
    assert found.value == signs.value


@coded
def test_everything_that_takes_a_viewpoint_reads_it_in_this_way(viewpoint, groups):
    if callable(viewpoint):
        pytest.skip("these functions take values")
    n, scores = len(V), X @ [1.0, 0.5, 0.0, -0.2]
    np.testing.assert_array_equal(as_sides(viewpoint, n), V)
    np.testing.assert_array_equal(as_numbers(viewpoint, n), V)
    for name in ("neutrality_risk", "calders_verwer_score", "normalized_prejudice_index"):
        measure = getattr(nerm.metrics, name)
        assert measure(scores, viewpoint) == measure(scores, V)
    assert nerm.metrics.report(Y, scores, viewpoint) == nerm.metrics.report(Y, scores, V)
    relaxed = nerm.metrics.relaxed_neutrality_risk
    assert relaxed(scores, viewpoint, Hinge()) == relaxed(scores, V, Hinge())
    np.testing.assert_array_equal(nerm.weights.balanced_weights(viewpoint), nerm.weights.balanced_weights(V))
    np.testing.assert_array_equal(
        nerm.weights.equal_opportunity_weights(Y, viewpoint), nerm.weights.equal_opportunity_weights(Y, V)
    )
    strata = np.arange(n) % 3
    np.testing.assert_array_equal(nerm.weights.within(strata, viewpoint), nerm.weights.within(strata, V))
    for bound in (nerm.bounds.holdout_neutrality_bound, nerm.bounds.holdout_parity_bound):
        assert bound(scores, viewpoint) == bound(scores, V)
    options = {"complexity": 0.1, "margin_bound": 10.0}
    assert nerm.bounds.neutrality_bound(
        scores, viewpoint, Hinge(), **options
    ) == nerm.bounds.neutrality_bound(scores, V, Hinge(), **options)
    assert nerm.bounds.rademacher_linear(X, 1.0, viewpoint=viewpoint) == nerm.bounds.rademacher_linear(
        X, 1.0, viewpoint=V
    )
    model = nerm.NeutralSVC(lam=10.0, eta=1.0).fit(X, Y, viewpoint=viewpoint)
    np.testing.assert_array_equal(
        model.coef_, nerm.NeutralSVC(lam=10.0, eta=1.0).fit(X, Y, viewpoint=V).coef_
    )
    assert model.groups_ == {"viewpoint": groups}
    if groups != (-1, 1):
        assert f"viewpoint: {groups[0]!r} is -1, {groups[1]!r} is +1" in repr(model.explain())
    remover = nerm.baselines.PrejudiceRemover(eta=1.0).fit(X, Y, viewpoint=viewpoint)
    assert tuple(remover.groups_.tolist()) == groups


def test_the_reference_reads_two_numbers_so_too():
    given = X[:40], Y[:40]
    one, other = (nerm.svm.smo(*given, v, 1.0, 1.0) for v in (np.where(V[:40] > 0, 1.0, 0.0), V[:40]))
    assert one.certificate.primal == other.certificate.primal


def test_rows_to_measure_on_are_read_by_the_groups_of_the_problem():
    """These rows may all belong to one group; alone they would not say which."""
    problem = OBJECTIVE.on(X, Y, viewpoint={"sex": np.where(V > 0, 2, 1)})
    ones, twos = (resolve({"sex": [value] * 3}, None, 3, problem.groups)["sex"].tolist() for value in (1, 2))
    assert (ones, twos) == ([-1.0] * 3, [1.0] * 3)
    measure = lambda y, scores, v: float(np.mean(np.sign(scores) * v))  # noqa: E731
    rows = V > 0
    on = X[rows], Y[rows], {"sex": np.full(rows.sum(), 2)}
    found = problem.neutralize(1.0, measure, on=on, surrogate=Hinge())
    assert found.value == measure(None, found.solution.decision_function(X[rows]), 1.0)
    with pytest.raises(
        nerm.InvalidInputError, match=r"must hold the groups seen in fit, 1 and 2\. Got -1\.0 at index"
    ):
        problem.neutralize(1.0, on=(X, Y, {"sex": V}), surrogate=Hinge())


def test_several_viewpoints_keep_their_groups_in_files(tmp_path):
    objective = Risk(Hinge()) + SquaredL2() + Neutrality(Hinge(), to="sex")
    given = {"sex": np.where(V > 0, "m", "f"), "score": X[:, 1]}
    problem = objective.on(X, Y, viewpoint=given)
    assert problem.groups == {"sex": ("f", "m")}
    problem.solve().save(tmp_path / "solution.nerm")
    assert nerm.load(tmp_path / "solution.nerm").problem.groups == problem.groups
    nerm.NeutralSVC(eta=0.1).fit(X, Y, viewpoint=given).save(tmp_path / "model.nerm")
    assert nerm.load(tmp_path / "model.nerm").groups_ == problem.groups


def test_a_model_of_the_viewpoint_keeps_its_numbers_unless_there_are_two():
    g = LogisticRegression().fit(X, V)
    problem = OBJECTIVE.on(X, Y, viewpoint=g)
    np.testing.assert_array_equal(problem.viewpoints["viewpoint"], g.decision_function(X))
    assert problem.groups == {}
    stump = DecisionTreeClassifier(max_depth=1).fit(X, V)  # two leaves: two probabilities
    problem = OBJECTIVE.on(X, Y, viewpoint=stump)
    assert set(problem.viewpoints["viewpoint"]) == {-1.0, 1.0}
    assert problem.groups["viewpoint"] == tuple(sorted(set(2 * stump.predict_proba(X)[:, 1] - 1)))
    counts = OBJECTIVE.on(X, Y, viewpoint=lambda X: np.round(2 * X[:, 0]).astype(int))
    assert len(np.unique(counts.viewpoints["viewpoint"])) > 2


# --- more than two values -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "viewpoint",
    [np.arange(200) % 3, np.array(["a", "b", "c"])[np.arange(200) % 3], (np.arange(200) % 3).astype(object)],
    ids=["integers", "words", "objects"],
)
def test_more_than_two_groups_name_both_ways(viewpoint):
    """A problem cannot know whether 0, 1, 2 are groups or numbers of children."""
    with pytest.raises(nerm.InvalidInputError) as caught:
        OBJECTIVE.on(X, Y, viewpoint=viewpoint)
    assert "'viewpoint' must hold two groups, or real numbers. Got 3 values, first" in str(caught.value)
    assert "Compare one group with the rest, as in v == value; if they are numbers, convert" in str(
        caught.value
    )
    with pytest.raises(nerm.InvalidInputError, match="two groups, or real numbers"):
        nerm.metrics.calders_verwer_score(Y, viewpoint)
    terms = nerm.NeutralSVC(eta=1.0).fit(X, Y, viewpoint=viewpoint).solutions_[0].thetas
    assert len(terms) == 3  # a classifier has one term per group
    first = np.unique(viewpoint)[0]
    assert OBJECTIVE.on(X, Y, viewpoint=viewpoint == first).groups == {"viewpoint": (False, True)}


def test_a_constant_word_is_refused_and_a_constant_number_needs_both_groups():
    with pytest.raises(nerm.InvalidInputError, match="must take at least two values"):
        OBJECTIVE.on(X, Y, viewpoint=["f"] * 200)
    balanced = nerm.Risk(nerm.Hinge()) + nerm.Neutrality(nerm.Hinge(), weights="balanced")
    with pytest.raises(nerm.InvalidInputError, match="some row must have viewpoint"):
        balanced.on(X, Y, viewpoint=np.zeros(200))


# --- real numbers that are not centred -------------------------------------------------------------------


def aged(n=600):
    rng = np.random.default_rng(1)
    age = rng.uniform(18, 90, n)
    Z = np.column_stack([(age - 50) / 20 + rng.normal(size=n), rng.normal(size=(n, 2))])
    y = np.where(Z[:, 0] + Z[:, 1] + 0.5 * rng.normal(size=n) > 0, 1, -1)
    return Z, y, age


COVARIANCE = Risk(Hinge()) + 0.05 * SquaredL2() + 1.0 * Neutrality(Identity())


def test_age_is_warned_about_and_the_cure_works():
    """Not centred, age makes neutral scores follow it; centred, the covariance is 0 (|cov| is the term)."""
    Z, y, age = aged()

    def correlation(problem):
        return np.corrcoef(problem.solve().training_scores(), age)[0, 1]

    with pytest.warns(UserWarning, match="not centred") as caught:
        raw = COVARIANCE.on(Z, y, viewpoint=age)
    text = str(caught[0].message)
    assert text.startswith(
        f"'viewpoint' is read as real numbers of mean {age.mean():.4g} and standard deviation"
    )
    assert "Pass v - v.mean() to be neutral to its size, or v > threshold for two groups." in text
    assert caught[0].filename == __file__
    plain = correlation((Risk(Hinge()) + 0.05 * SquaredL2()).on(Z, y))
    assert plain > 0.3
    assert correlation(raw) > 0.9 * plain
    centred = COVARIANCE.on(Z, y, viewpoint=age - age.mean())
    assert abs(correlation(centred)) < 1e-3
    solution = centred.solve()
    term, scores = solution.objective.terms[-1], solution.training_scores()
    assert term.value == pytest.approx(abs(np.cov(age, scores, bias=True)[0, 1]), abs=1e-9)


@pytest.mark.parametrize("viewpoint", [np.ones(200), {"age": np.full(200, -0.5)}, lambda X: np.zeros(len(X))])
def test_a_constant_viewpoint_is_warned_about_once(viewpoint):
    with pytest.warns(UserWarning, match="in every row") as caught:
        OBJECTIVE_UNIFORM.on(X, Y, viewpoint=viewpoint)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    assert re.match(r"('viewpoint(\(X\))?'|\"viewpoint\['age'\]\") is (1|-0.5|0) in every row, so that", text)
    assert "every model is neutral to it and a neutrality term can only cost accuracy" in text
    assert text.endswith("Choose another viewpoint, or drop the term.")


def test_a_constant_viewpoint_of_chunks_is_warned_about():
    with pytest.warns(UserWarning, match="'viewpoint' is 1 in every row") as caught:
        OBJECTIVE_UNIFORM.on(nerm.Chunks((X, Y, np.ones(200))))
    assert caught[0].filename == __file__


def test_the_classifiers_warn_too():
    Z, y, age = aged(100)
    with pytest.warns(UserWarning, match="It is not centred") as caught:
        nerm.NeutralSVC(eta=0.1).fit(Z, y, viewpoint={"age": age})
    assert "\"viewpoint['age']\" is read as real numbers" in str(caught[0].message)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="'viewpoint' is read as real numbers") as caught:
        COVARIANCE.on(nerm.Chunks((Z, y, age)))
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("viewpoint", "warned"),
    [
        (lambda g: g, False),
        (lambda g: g + 0.9 * g.std(), False),  # most rows on one side: a sign with a meaning
        (lambda g: g + 1.2 * g.std(), True),
        (lambda g: np.exp(3 * g), True),  # an income: the spread exceeds the mean, and no value is negative
        (lambda g: -np.exp(3 * g), True),
        (lambda g: np.where(g > 0, 1000, 1001), False),  # two values are groups
        (lambda g: lambda X: g + 1.2 * g.std(), False),  # a function: its sign is the opinion
        (lambda g: lambda X: np.exp(g), True),  # but one opinion on every row is none
    ],
)
def test_when_a_viewpoint_counts_as_centred(viewpoint, warned):
    g = X[:, 1] - X[:, 1].mean()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        COVARIANCE.on(X, Y, viewpoint=viewpoint(g))
    assert bool(caught) == warned


def test_measures_refuse_numbers_of_one_sign():
    """They compare v > 0 with v <= 0: of ages they would say that everything is perfectly neutral."""
    Z, _, age = aged(50)
    for measure in (nerm.metrics.neutrality_risk, nerm.metrics.normalized_prejudice_index):
        with pytest.raises(nerm.InvalidInputError, match="numbers of both signs, or two groups"):
            measure(Z[:, 0], age)
        assert measure(Z[:, 0], age - age.mean()) == measure(Z[:, 0], age > age.mean())
