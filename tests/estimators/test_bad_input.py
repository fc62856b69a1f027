"""Bad input to the classifiers gets one clear sentence, matched by its text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import nerm
from nerm import NERMClassifier, NeutralSVC
from nerm.viewpoint import Column, Learned
from tests.conftest import make_data

X, Y, V = make_data(0, n=20)
FRAME = pd.DataFrame(X, columns=list("abcd"))


def fit(X=X, y=Y, viewpoint=V, model=None, **kwargs):
    return (NeutralSVC(eta=1.0) if model is None else model).fit(X, y, viewpoint=viewpoint, **kwargs)


def holed(kind):
    values = np.array(["m", "f"] * 10, dtype=object)
    values[3] = kind
    return values


HUGE = 10**400  # an integer that no float can hold

CASES = [
    (
        lambda: fit([[HUGE], *[[0]] * 19]),
        "'X' must be finite. Got an integer that no float can hold. Scale it down.",
    ),
    (
        lambda: fit().predict([[HUGE, 0, 0, 0]]),
        "'X' must be finite. Got an integer that no float can hold. Scale it",
    ),
    (
        lambda: fit(y=[HUGE, 1] * 10),
        "'y' must hold classes: words, or integers of at most 64 bits. Got Unknown label",
    ),
    (
        lambda: fit(y=np.arange(20) / 7),
        "Got continuous numbers. Use NeutralRegressor, or y > threshold.",
    ),
    (
        lambda: fit(model=NeutralSVC(class_weight={1: HUGE})),
        "'class_weight' must be finite. Got an integer that no float can hold. Scale it down.",
    ),
    (
        lambda: fit(viewpoint=None),
        "'viewpoint' must be given when eta > 0. Got None. Call fit(X, y, viewpoint=...)",
    ),
    (
        lambda: fit(viewpoint=V[:-1]),
        "'viewpoint' must have one entry for each of the 20 rows. Got shape (19,).",
    ),
    (
        lambda: fit(viewpoint=np.ones(20)),
        "'viewpoint' must take at least two values. Got a single value, 1.0. Every model is neutral to a constant",
    ),
    (
        lambda: fit(viewpoint=["m"] * 20),
        "'viewpoint' must take at least two values. Got a single value, 'm'.",
    ),
    (
        lambda: fit(viewpoint=np.zeros(20, int)),
        "'viewpoint' must take at least two values. Got a single value, 0.",
    ),
    (
        lambda: fit(sample_weight=(V > 0) * 1.0, y=np.arange(20) % 2),
        "'viewpoint' must take at least two values. Got a single value, 1.0.",
    ),
    (
        lambda: fit(viewpoint=lambda X: np.zeros(20)),
        "'viewpoint(X)' must take at least two values. Got a single value, 0.0.",
    ),
    (
        lambda: fit(viewpoint={"sex": V, "age": np.ones(20)}),
        "\"viewpoint['age']\" must take at least two values.",
    ),
    (
        lambda: fit(viewpoint=np.r_[np.nan, V[1:]]),
        "'viewpoint' must be finite. Got nan at index 0. Drop or impute these rows.",
    ),
    (lambda: fit(viewpoint=np.r_[V[:-1], -np.inf]), "'viewpoint' must be finite. Got -inf at index 19."),
    (
        lambda: fit(viewpoint=holed(None)),
        "'viewpoint' must not be missing. Got None at index 3. Drop these rows",
    ),
    (lambda: fit(viewpoint=holed(float("nan"))), "'viewpoint' must not be missing. Got nan at index 3."),
    (lambda: fit(viewpoint=holed(pd.NA)), "'viewpoint' must not be missing. Got <NA> at index 3."),
    (
        lambda: fit(viewpoint=holed(7)),
        "'viewpoint' must hold values of one type. Got mixed types, first 'm'.",
    ),
    (lambda: fit(viewpoint={}), "'viewpoint' must name at least one viewpoint. Got an empty dict."),
    (lambda: fit(viewpoint=True), "'viewpoint' must be an array or a column. Got True."),
    (lambda: fit(FRAME, viewpoint="sex"), "a column of X must be one of 'a', 'b', 'c', 'd'. Got 'sex'."),
    (
        lambda: fit(FRAME, viewpoint=Column("sex", drop=True)),
        "a column of X must be one of 'a', 'b', 'c', 'd'.",
    ),
    (
        lambda: fit(viewpoint="sex"),
        "a column can be named only if X has column names. Got 'sex' and an X without names.",
    ),
    (
        lambda: fit(viewpoint=4),
        "a column must be one of 0 to 3. Got 4. Count from 0.",
    ),
    (
        lambda: fit(FRAME.assign(a=np.nan), viewpoint=Column("a", drop=True)),
        "\"X['a']\" must be finite. Got nan at index 0 (and 19 more).",
    ),
    (
        lambda: fit(viewpoint=np.repeat(np.arange(100), 1), X=np.ones((100, 1)), y=np.arange(100) % 2),
        "'viewpoint' must have at most 12 different integers to be read as groups. Got 100. Convert it to float",
    ),
    (
        lambda: fit(viewpoint=LogisticRegression()),
        "'viewpoint' must be a fitted estimator. Got LogisticRegression that is not fitted. Call its fit(",
    ),
    (
        lambda: fit(viewpoint=LogisticRegression),
        "Got the class LogisticRegression. Make an instance and fit it.",
    ),
    (
        lambda: fit(viewpoint=Learned(LogisticRegression, X, V)),
        "'estimator' must be an array, a callable or a fitted estimator. Got the class LogisticRegression.",
    ),
    (
        lambda: fit(viewpoint=Learned(LogisticRegression(), X, np.ones(20))),
        "the labels of a learned viewpoint must take at least two values. Got [1.0] only.",
    ),
    (
        lambda: fit(viewpoint=lambda X: X),
        "'viewpoint(X)' must have one entry for each of the 20 rows. Got shape (20, 4).",
    ),
    (lambda: fit(y=np.ones(20)), "'y' must hold at least two classes. Got one class among"),
    (
        lambda: fit(sample_weight=(Y > 0).astype(float)),
        "'y' must hold at least two classes. Got one class among the rows with positive weight: 1.0.",
    ),
    (
        lambda: fit(sample_weight=-np.ones(20)),
        "'sample_weight' must be nonnegative. Got -1 at index 0 (and 19 more).",
    ),
    (lambda: fit(model=NeutralSVC(lam=0.0)), "'lam' must be a finite positive number. Got 0.0."),
    (lambda: fit(model=NeutralSVC(eta=-1)), "'eta' must be a finite number, at least 0. Got -1."),
    (lambda: fit(model=NeutralSVC(tol=0)), "'tol' must be a finite positive number. Got 0."),
    (
        lambda: fit(model=NeutralSVC(weights="fair")),
        "'weights' must be one of 'balanced', 'conditional', 'equal_opportunity', 'predictive_equality', 'uniform'.",
    ),
    (
        lambda: fit(model=NeutralSVC(weights=np.ones(20))),
        "'weights' must be one of 'balanced', 'conditional', 'equal_opportunity', 'pre",
    ),
    (lambda: fit(model=NeutralSVC(kernel="rbg")), "'kernel' must be one of 'linear', "),
    (
        lambda: fit(model=NeutralSVC(kernel="precomputed")),
        "a precomputed kernel must be a square matrix. Got shape (20, 4).",
    ),
    (
        lambda: fit(model=NeutralSVC(class_weight="fair")),
        "'class_weight' must be one of 'balanced'. Got 'fair'.",
    ),
    (
        lambda: fit(model=NeutralSVC(solver="magic")),
        "'solver' must be one of 'augmented-lagrangian', 'auto', ",
    ),
    (lambda: fit(model=NERMClassifier(loss="hing")), "'loss' must be one of 'exponential', 'hinge', "),
    (
        lambda: fit(model=NERMClassifier(loss=3)),
        "'loss' must be a margin function or its name. Got 3. Pass nerm.Hinge()",
    ),
    (
        lambda: fit(model=NERMClassifier(regularizer=nerm.Hinge())),
        "'regularizer' must be a regularizer or its name. Got Hinge(). Pass nerm.L1(), for instance.",
    ),
    (
        lambda: fit(model=NERMClassifier(loss="identity")),
        "a loss must be bounded below. Got Identity().",
    ),
    (
        lambda: fit(model=NERMClassifier(regularizer="l1", kernel="rbf")),
        "a kernel problem must be regularised by SquaredL2",
    ),
    (
        lambda: fit(viewpoint={"sex": V}, model=NeutralSVC(eta={})),
        "'eta' must have an entry for each viewpoint. Got none",
    ),
    (
        lambda: fit(viewpoint={"sex": V}, model=NeutralSVC(eta={"sex": 1, "age": 1})),
        "a key of 'eta' must be one of 'sex'. Got 'age'.",
    ),
    (
        lambda: fit().score(X, np.where(Y > 0, 2.0, -1.0)),
        "'y' must hold classes seen in fit, -1.0, 1.0. Got 2.0 at index",
    ),
    (lambda: fit().fit_facts(to="sex"), "'to' must be one of 'viewpoint'. Got 'sex'."),
    (lambda: fit().fit_facts(label=7), "'label' must be one of '1.0'. Got 7."),
    (
        lambda: NeutralSVC().fit(X, Y).fit_facts(),
        "a guarantee must be about a model that was fitted with a viewpoint in this session. Got a model fitted without",
    ),
    (
        lambda: fit(viewpoint={"a": V, "b": X[:, 0]}).fit_facts(),
        "a guarantee must be about one viewpoint. Got 2: 'a', 'b'. Choose one: fit_facts(to='a').",
    ),
    (lambda: fit(y=np.arange(20) % 3).fit_facts(), "a guarantee must be about one class. Got 3: "),
    (
        lambda: (nerm.Risk(nerm.Hinge()) + nerm.Neutrality(nerm.Hinge())).on(
            X, Y, viewpoint=Column(0, drop=True)
        ),
        "a problem uses all columns of X. Got Column(key=0, drop=True).",
    ),
    (
        lambda: (nerm.Risk(nerm.Hinge()) + nerm.SquaredL2()).on(X, Y).solve().fit_facts(),
        "a guarantee about neutrality must have a viewpoint. Got a problem without a neutrality term.",
    ),
]


@pytest.mark.parametrize(("make", "text"), CASES, ids=[text[:60] for _, text in CASES])
def test_one_sentence(make, text):
    with pytest.raises(nerm.NermError) as caught:
        make()
    assert text in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


def test_what_scikit_learn_says_itself():
    model = fit()
    with pytest.raises(ValueError, match="X has 3 features, but NeutralSVC is expecting 4 features as input"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.predict(np.full((1, 4), np.nan))
    with pytest.raises(ValueError, match="X has 4 features, but NeutralSVC is expecting 5 features as input"):
        fit(np.column_stack([X, V]), viewpoint=Column(4, drop=True)).predict(X)


def test_a_failed_fit_changes_nothing():
    before = X.copy(), V.copy()
    with pytest.raises(nerm.NermError):
        fit(viewpoint=V[:-1])
    np.testing.assert_array_equal(before[0], X)
    np.testing.assert_array_equal(before[1], V)


def test_one_class_of_any_type():
    for labels in (pd.Series(["a"] * 20), ["a"] * 20, pd.Series(["a"] * 20, dtype="category")):
        with pytest.raises(nerm.NermError, match="among the rows with positive weight: 'a'"):
            fit(y=labels)


HUGE = 10**400


@pytest.mark.parametrize(
    "make",
    [
        lambda: fit(model=NeutralSVC(lam=HUGE)),
        lambda: fit(model=NeutralSVC(eta=HUGE)),
        lambda: fit(model=NeutralSVC(tol=HUGE)),
        lambda: fit(model=NeutralSVC(kernel="rbf", gamma=HUGE)),
        lambda: fit(model=NeutralSVC(kernel="poly", degree=HUGE)),
        lambda: fit(model=NeutralSVC(kernel="poly", coef0=HUGE)),
        lambda: fit(model=NeutralSVC(eta=1.0, limit=HUGE)),
        lambda: fit(sample_weight=[HUGE, *[1] * 19]),
        lambda: HUGE * nerm.SquaredL2(),
        lambda: nerm.Ramp(width=HUGE),
        lambda: nerm.SmoothHinge(HUGE),
        lambda: (nerm.Risk(nerm.Hinge()) + nerm.SquaredL2()).on([[HUGE]] * 2, [0, 1]),
        lambda: (nerm.Risk(nerm.Hinge()) + nerm.SquaredL2()).on(X, Y).solve(tol=HUGE),
        lambda: (nerm.Risk(nerm.Hinge()) + nerm.SquaredL2()).on(X, Y).solve(time_limit=HUGE),
        lambda: (nerm.Risk(nerm.Hinge()) + nerm.Neutrality(nerm.Hinge())).on(X, Y, viewpoint=V).path([HUGE]),
        lambda: (nerm.Risk(nerm.Hinge()) + nerm.SquaredL2()).on(X, Y).evaluate(np.zeros(4), HUGE),
        lambda: nerm.bounds.rademacher_linear(X, HUGE),
        lambda: nerm.metrics.neutrality_risk([HUGE, 1], [1, -1]),
    ],
)
def test_integers_of_four_hundred_digits(make):
    with pytest.raises(nerm.NermError) as caught:
        make()
    assert len(str(caught.value)) < 300
