"""Bad input gets one clear sentence, matched by its text."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import nerm
from nerm import Hinge, Neutrality, Risk, SquaredL2
from tests.conftest import make_data

X, Y, V = make_data(0, n=20)
OBJECTIVE = Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge())


def spoiled(array, index, value):
    copy = np.array(array, dtype=float)
    copy[index] = value
    return copy


def on(X=X, y=Y, objective=OBJECTIVE, **kwargs):
    return objective.on(X, y, **{"viewpoint": V, **kwargs})


SPARSE_NAN = sp.csr_matrix(spoiled(X, (3, 1), np.nan))

CASES = [
    (
        lambda: on(X=spoiled(X, (3, 1), np.nan)),
        "'X' must be finite. Got nan at row 3, column 1. Drop or impute these rows.",
    ),
    (lambda: on(X=SPARSE_NAN), "'X' must be finite. Got nan at row 3, column 1."),
    (
        lambda: on(X=spoiled(spoiled(X, (3, 1), np.inf), (5, 0), -np.inf)),
        "Got inf at row 3, column 1 (and 1 more).",
    ),
    (
        lambda: on(X=X[:, 0]),
        "'X' must be two-dimensional, with one row per sample. Got an array of shape (20,).",
    ),
    (
        lambda: on(X=X[:0], y=Y[:0], viewpoint=V[:0]),
        "'X' must have at least one row and one column. Got shape (0, 4).",
    ),
    (lambda: on(X=X[:, :0]), "'X' must have at least one row and one column. Got shape (20, 0)."),
    (lambda: on(X=[["a", "b"]] * 20), "'X' must hold real numbers. Got text. Encode categories as numbers."),
    (lambda: on(y=Y[:-1]), "'y' must have one label for each of the 20 rows. Got shape (19,)."),
    (lambda: on(y=np.ones(20)), "'y' must hold exactly two classes. Got a single class: 1.0."),
    (lambda: on(y=np.arange(20) % 3), "'y' must hold exactly two classes. Got 3 classes: 0, 1, 2."),
    (lambda: on(y=spoiled(Y, 4, np.nan)), "'y' must be finite. Got nan at index 4."),
    (lambda: on(y=np.array([1, "a"] * 10, dtype=object)), "'y' must hold labels of one type."),
    (lambda: on(y=np.array([None, "a"] * 10, dtype=object)), "'y' must not be missing. Got None at index 0"),
    (
        lambda: on(y=np.array(["NaT", "2020-01-01"] * 10, "M8[D]")),
        "'y' must not be missing. Got NaT at index 0",
    ),
    (
        lambda: on(viewpoint=V[:-1]),
        "'viewpoint' must have one entry for each of the 20 rows. Got shape (19,).",
    ),
    (
        lambda: on(viewpoint=spoiled(V, 17, np.nan)),
        "'viewpoint' must be finite. Got nan at index 17. Drop or impute these rows.",
    ),
    (
        lambda: on(viewpoint=["f", "m", "d", "f"] * 5),
        "'viewpoint' must hold two groups, or real numbers. Got 3 values, first 'd'. Compare one group with the",
    ),
    (
        lambda: on(viewpoint=None),
        "'viewpoint' must be given when the objective has a neutrality term. Got None.",
    ),
    (lambda: on(viewpoint={}), "'viewpoint' must name at least one viewpoint. Got an empty dict."),
    (
        lambda: on(viewpoint={"sex": V, "age": V}),
        "a neutrality term must name its viewpoint when there are several.",
    ),
    (
        lambda: on(objective=Risk(Hinge()) + Neutrality(Hinge(), to="race"), viewpoint={"sex": V}),
        "'to' of a neutrality term must be one of 'sex'. Got 'race'.",
    ),
    (
        lambda: on(viewpoint=LogisticRegression),
        "'viewpoint' must be an array, a callable or a fitted estimator. Got the class LogisticRegression.",
    ),
    (
        lambda: on(viewpoint=LogisticRegression()),
        "'viewpoint' must be a fitted estimator. Got LogisticRegression that is not fitted.",
    ),
    (
        lambda: on(viewpoint=lambda X: X),
        "'viewpoint(X)' must have one entry for each of the 20 rows. Got shape (20, 4).",
    ),
    (
        lambda: on(sample_weight=-np.ones(20)),
        "'sample_weight' must be nonnegative. Got -1 at index 0 (and 19 more).",
    ),
    (
        lambda: on(sample_weight=spoiled(np.ones(20), 2, np.nan)),
        "'sample_weight' must be finite. Got nan at index 2.",
    ),
    (lambda: on(sample_weight=np.zeros(20)), "'sample_weight' must have a positive entry. Got only zeros."),
    (
        lambda: on(objective=Risk(Hinge()) + Neutrality(Hinge(), weights=np.ones(7))),
        "'weights' must have one entry for each of the 20 rows. Got shape (7,).",
    ),
    (
        lambda: on(objective=Risk(Hinge()) + Neutrality(Hinge(), weights=-np.ones(20))),
        "'weights' must be nonnegative.",
    ),
    (
        lambda: on(objective=Risk(Hinge()) + Neutrality(Hinge(), weights="balanced"), viewpoint=np.ones(20)),
        "some row must have viewpoint -1. Got none among 20 rows.",
    ),
    (lambda: (1.0 * SquaredL2()).on(X, Y), "an objective must contain a risk. Got SquaredL2()."),
    (
        lambda: on(kernel="rbg"),
        "'kernel' must be one of 'linear', 'poly', 'polynomial', 'precomputed', 'rbf', 'sigmoid'. Got 'rbg'.",
    ),
    (lambda: on(kernel=3), "'kernel' must be a name, a callable, a nerm.kernels.Kernel, or None. Got int."),
    (
        lambda: on(kernel=lambda A, B: np.ones(3)),
        "a kernel must return one value for each pair of rows, here an array of shape (20, 20). Got shape (3,).",
    ),
    (lambda: on(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)), "'kernel' must be finite."),
    (lambda: on(kernel="precomputed"), "a Gram matrix must be square. Got shape (20, 4)."),
    (
        lambda: on(X=X @ X.T + np.triu(np.ones((20, 20)), 1), kernel="precomputed"),
        "a Gram matrix must be symmetric.",
    ),
    (
        lambda: on(X=-X @ X.T, kernel="precomputed"),
        "a Gram matrix must be positive semidefinite for the problem to be convex.",
    ),
    (
        lambda: on(kernel=nerm.kernels.Sigmoid(gamma=1.0, coef0=-1.0)),
        "a Gram matrix must be positive semidefinite",
    ),
    (lambda: nerm.kernels.RBF(gamma=-1), "'gamma' must be a finite positive number. Got -1."),
    (lambda: nerm.kernels.Polynomial(degree=0), "'degree' must be a positive integer. Got 0."),
    (
        lambda: on(objective=Risk(Hinge()) + nerm.L1(), kernel="rbf"),
        "a kernel problem must be regularised by SquaredL2, the norm of its function space. Got L1().",
    ),
    (
        lambda: on(objective=Risk(Hinge()) + nerm.GroupL2([0, 1])),
        "'groups' must have one label for each of the 4 columns. Got 2 labels.",
    ),
    (lambda: on().solve("no-such-solver"), "'solver' must be one of 'augmented-lagrangian', 'auto', "),
    (lambda: on().solve(tol=0), "'tol' must be a finite positive number. Got 0."),
    (lambda: on().solve(tol=float("nan")), "'tol' must be a finite positive number. Got nan."),
    (lambda: on().path([]), "'eta' must be a nonempty list of neutrality weights. Got []."),
    (lambda: on().path([0.1, -1]), "'eta' must be a finite number, at least 0. Got -1."),
    (lambda: on().path([float("nan")]), "'eta' must be a finite number, at least 0. Got nan."),
    (
        lambda: (Risk(Hinge()) + SquaredL2()).on(X, Y).path([1]),
        "the objective must have a neutrality term to weight by eta.",
    ),
    (
        lambda: on().evaluate(np.ones(5)),
        "'coef' must have one entry for each of the 4 coefficients. Got shape (5,).",
    ),
    (lambda: on().evaluate([np.nan] * 4), "'coef' must be finite."),
    (
        lambda: on().solve().decision_function(X[:, :3]),
        "'X' must have the 4 features seen in training. Got 3 columns.",
    ),
    (
        lambda: on(objective=Risk(Hinge()) + SquaredL2() + Neutrality(nerm.Squared())).solve("osqp"),
        "solver 'osqp' must be given a problem that it can take",
    ),
    (
        lambda: on(objective=Risk(nerm.Logistic()) + SquaredL2()).solve("osqp"),
        "Use 'clarabel', which takes every built-in atom.",
    ),
    (
        lambda: on().solve("clarabel", no_such_option=1),
        "every option must be one of clarabel's own. Got ['no_such_option']",
    ),
    (lambda: on(X=np.ma.masked_greater(X, 1.0)), "'X' must have no masked entries. Got a masked array."),
    (lambda: on(y=np.ma.masked_array(Y, mask=Y > 0)), "'y' must have no masked entries."),
    (lambda: on(X=X + 1j), "'X' must hold real numbers. Got complex numbers."),
    (lambda: on(X=sp.csr_matrix(X + 1j)), "'X' must hold real numbers. Got complex numbers."),
    (lambda: on(X=X.astype("datetime64[s]")), "'X' must hold real numbers. Got dates."),
    (
        lambda: on(X=[*X.astype(object).tolist()[:-1], ["a", 1, 2, 3]]),
        "'X' must hold real numbers. Got text.",
    ),
    (
        lambda: on(X=np.array([[1, None]] * 20, dtype=object)),
        "'X' must be finite. Got None at row 0, column 1.",
    ),
    (lambda: on(y=None), "'y' must have one label for each of the 20 rows. Got None. Pass y=...."),
    (lambda: on(y=[[1], [1, 2]]), "'y' must be a vector with one label per row. Got list"),
    (lambda: on(y=Y + 1j), "'y' must hold classes or real numbers. Got complex numbers."),
    (lambda: on(X=None), "'X' must be an array of numbers. Got None. Pass X=...."),
    (
        lambda: on(viewpoint={"sex": None}),
        "\"viewpoint['sex']\" must have one entry for each of the 20 rows.",
    ),
    (lambda: nerm.metrics.neutrality_risk([1.0, -1.0], None), "entry for each of the 2 rows. Got None."),
    (lambda: on(sample_weight="abc"), "'sample_weight' must hold real numbers. Got text."),
    (lambda: on(sample_weight={}), "'sample_weight' must be numeric. Got dict"),
    (lambda: on(intercept="no"), "'intercept' must be True or False. Got 'no'."),
    (lambda: on(kernel=nerm.kernels.RBF), "'kernel' must be an instance. Got the class RBF. Write RBF()."),
    (lambda: nerm.kernels.RBF(gamma=np.ones(2)), "'gamma' must be a finite positive number."),
    (lambda: nerm.kernels.Sigmoid(coef0=np.nan), "'coef0' must be a finite number. Got nan."),
    (lambda: nerm.kernels.Polynomial(coef0=-1), "'coef0' must be a finite number, at least 0. Got -1."),
    (lambda: on(kernel=lambda A, B: [["a"] * len(B)] * len(A)), "'kernel' must hold real numbers. Got text."),
    (
        lambda: on(intercept=False).certify(np.zeros(4), 1.0),
        "'intercept' must be 0 on a problem without an intercept. Got 1.",
    ),
    (lambda: on().evaluate(np.zeros(4), np.nan), "'intercept' must be a finite number. Got nan."),
    (lambda: on().evaluate(np.zeros(4), "a"), "'intercept' must be a finite number. Got str 'a'."),
    (lambda: Neutrality(Hinge(), weights=["a"]), "'weights' must hold real numbers. Got text."),
    (lambda: Neutrality(Hinge(), to=1), "'to' must be the name of a viewpoint. Got 1."),
    (lambda: on().solve(["a"]), "'solver' must be one of 'augmented-lagrangian', 'auto', "),
    (
        lambda: on().solve("osqp", no_such_option=1),
        "every option must be one of osqp's own. Got ['no_such_option']",
    ),
    (
        lambda: on().solve("interior-point", max_iterations="a"),
        "'max_iterations' must be a finite positive number.",
    ),
    (
        lambda: on(objective=0 * Risk(Hinge()) + SquaredL2()).solve("smo"),
        "Got a problem with no risk of positive weight.",
    ),
    *(
        (lambda g=groups: nerm.GroupL2(g), f"that hold the number of each column once. Got {groups!r}.")
        for groups in (3, "ab", [[0.5, 1], [2]], [[0, 1], 2], [0, "a", 1], [[0, 1], [-1]], [["a", 0]])
    ),
    (lambda: nerm.ElasticNet("a"), "'l1_ratio' must be a finite number, at least 0."),
    (lambda: nerm.SmoothHinge("1"), "'width' must be a finite positive number. Got str '1'."),
    (lambda: SquaredL2() / 0, "'divisor' must be a finite positive number. Got 0."),
    (lambda: 1e200 * (1e200 * SquaredL2()), "'weight' must be a finite number, at least 0. Got inf."),
    (lambda: -SquaredL2(), "A negative weight would make the objective non-convex."),
    (lambda: Risk(Hinge()) - Neutrality(Hinge()), "A negative weight would make the objective non-convex."),
]


@pytest.mark.parametrize(("make", "text"), CASES, ids=[text[:60] for _, text in CASES])
def test_one_sentence(make, text):
    with pytest.raises(nerm.NermError) as caught:
        make()
    assert text in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        nerm.MissingPackageError, match=r"solver 'piqp' needs the package 'piqp'. It is not installed."
    ):
        on().solve("piqp")


def test_errors_survive_a_trip_between_processes():
    for error in (
        nerm.InvalidInputError("a", "b", "c"),
        nerm.UnknownNameError("x", "y", ["z"]),
        nerm.NotSolvedError("no"),
    ):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_nothing_is_changed_by_a_failed_call():
    Z = X.copy()
    with pytest.raises(nerm.NermError):
        on(viewpoint=V[:-1])
    np.testing.assert_array_equal(X, Z)
