"""Fits that share rows and starts: the same models, certified, and nothing kept outside the context."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import nerm
from nerm.errors import InvalidInputError
from nerm.estimators import design
from nerm.model.bind import bind


@pytest.fixture
def bound(monkeypatch):
    """Count how often rows are bound."""
    count = []

    def counting(*args, **options):
        count.append(1)
        return bind(*args, **options)

    monkeypatch.setattr(design, "bind", counting)
    return count


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 4))
    v = np.sign(X[:, 0] + rng.normal(size=150))
    return X, np.digitize(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=150), [-0.7, 0.7]), v


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("classes", [2, 3])
def test_models_agree_with_those_of_separate_fits(rows, kernel, classes, bound):
    X, codes, v = rows
    y = codes if classes == 3 else X[:, 0] + X[:, 1] > 0
    models = [nerm.NeutralSVC(lam=lam, eta=eta, kernel=kernel) for lam in (1.0, 4.0) for eta in (0.0, 0.1)]
    alone = [clone(model).fit(X, y, viewpoint=v) for model in models]
    bound.clear()
    with nerm.sharing():
        together = [model.fit(X, y, viewpoint=v) for model in models]
    assert len(bound) == 1
    for one, other in zip(alone, together, strict=True):
        assert other.certificate_.relative_gap <= other.tol
        assert other.certificate_.primal == pytest.approx(one.certificate_.primal, rel=3 * other.tol)
        assert other.decision_function(X) == pytest.approx(one.decision_function(X), abs=0.02)


def test_other_rows_share_nothing(rows, bound):
    X, codes, v = rows
    y = codes > 0
    with nerm.sharing():
        for _ in range(2):
            nerm.NeutralSVC().fit(X, y)
            nerm.NeutralSVC().fit(X, ~y)
            nerm.NeutralSVC().fit(X, y, viewpoint=v)
            nerm.NeutralSVC().fit(X, y, sample_weight=np.arange(1, 151))
            nerm.NeutralSVC(class_weight="balanced").fit(X, y)
            nerm.NeutralSVC(fit_intercept=False).fit(X, y)
            nerm.NeutralSVC().fit(X + 1e-9, y)
    assert len(bound) == 7


def test_the_oldest_rows_are_forgotten_and_all_of_them_at_the_end(rows, bound):
    X, codes, _ = rows
    y, model = codes > 0, nerm.NeutralSVC()
    with nerm.sharing(most=1):
        for part in (X, X[:, :2], X):
            model.fit(part, y)
        model.fit(X, y)
    assert len(bound) == 3
    model.fit(X, y)
    assert len(bound) == 4
    with (
        pytest.raises(InvalidInputError, match="'most' must be a finite positive number"),
        nerm.sharing(most=0),
    ):
        pass


def test_a_grid_search_binds_every_fold_once(rows, bound):
    X, codes, v = rows
    search = GridSearchCV(nerm.NeutralSVC(eta=0.1), {"lam": [1.0, 3.0, 10.0]}, cv=3, refit=False)
    with nerm.sharing():
        search.fit(X, codes, viewpoint=v)
    assert len(bound) == 3
