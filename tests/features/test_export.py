"""ONNX graphs give the scores of the model; a model card quotes what can be measured again."""

from __future__ import annotations

import re

import numpy as np
import pytest

import nerm
from nerm.export import card, onnx


def rows(n=200, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, "paid", "late")
    v = np.where(X[:, 0] + X[:, 1] + rng.normal(size=n) > 0, 1, 0)
    return X, y, v


MODELS = {
    "linear": nerm.NeutralSVC(lam=2.0, eta=0.5),
    "rbf": nerm.NERMClassifier(kernel="rbf", lam=0.05, eta=0.5),
    "poly": nerm.NERMClassifier(kernel="poly", degree=2, coef0=1.0, lam=0.1),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_runtime_gives_the_same_scores(name):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    X, y, v = rows()
    many = np.where(X[:, 2] > 0.7, "other", y)
    for labels in (y, (y == "paid").astype(int), many):
        model = MODELS[name].fit(X, labels, viewpoint=v)
        session = runtime.InferenceSession(onnx(model).SerializeToString())
        new = np.random.default_rng(8).normal(size=(50, 4))
        scores, label = session.run(["scores", "label"], {"X": new})
        np.testing.assert_allclose(scores, model.decision_function(new), rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(label, model.predict(new))


def test_the_linear_graph_is_short():
    o = pytest.importorskip("onnx")
    X, y, v = rows()
    graph = onnx(MODELS["linear"].fit(X, y, viewpoint=v)).graph
    assert isinstance(onnx(MODELS["linear"]), o.ModelProto)
    assert [node.op_type for node in graph.node].count("Gemm") == 1
    assert len(graph.node) <= 8


def test_a_dropped_column_stays_dropped():
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    X, y, v = rows()
    wide = np.column_stack([X, v])
    for kernel in ("linear", "rbf"):
        model = nerm.NERMClassifier(kernel=kernel, eta=0.01, lam=0.1)
        model.fit(wide, y, viewpoint=nerm.viewpoint.Column(4, drop=True))
        session = runtime.InferenceSession(onnx(model).SerializeToString())
        (scores,) = session.run(["scores"], {"X": wide})
        np.testing.assert_allclose(scores, model.decision_function(wide), rtol=1e-9, atol=1e-9)


def test_a_kernel_of_ones_own_is_refused():
    pytest.importorskip("onnx")
    X, y, _ = rows(40)
    model = nerm.NERMClassifier(kernel=lambda A, B: A @ B.T, lam=0.1).fit(X, y)
    with pytest.raises(nerm.InvalidInputError, match="an exported kernel must be linear, rbf or polynomial"):
        onnx(model)


def test_without_onnx(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    X, y, _ = rows(40)
    with pytest.raises(nerm.MissingPackageError, match="pip install onnx"):
        onnx(nerm.NeutralSVC().fit(X, y))


def test_the_numbers_of_a_card_are_those_of_the_rows():
    X, y, v = rows(600)
    model = nerm.NERMClassifier(lam=0.01, limit=0.05).fit(X[:300], y[:300], viewpoint=v[:300])
    text = card(model, X[300:], y[300:], v[300:], data="a synthetic table", target="paid")
    assert "Data: a synthetic table" in text
    assert "within 0.05 on the training rows" in text
    assert "Promise for new rows: none" in text
    assert "no promise was asked for" in text
    yes = model.predict(X[300:]) == "paid"
    for name, among in (("all", np.ones(300, bool)), ("1", v[300:] == 1), ("0", v[300:] == 0)):
        count, rate, low, high, accuracy = re.search(
            rf"\| {re.escape(name)} \| (\d+) \| ([\d.]+) \| ([\d.]+) to ([\d.]+) \| ([\d.]+) \|", text
        ).groups()
        assert int(count) == among.sum()
        assert float(rate) == pytest.approx(yes[among].mean(), abs=1e-4)
        assert float(low) < yes[among].mean() < float(high)
        assert float(accuracy) == pytest.approx((yes == (y[300:] == "paid"))[among].mean(), abs=1e-4)
    difference = yes[v[300:] == 1].mean() - yes[v[300:] == 0].mean()
    assert float(re.search(r"calders_verwer_score: ([-\d.]+)", text)[1]) == pytest.approx(
        difference, abs=1e-4
    )


def test_a_card_of_a_head_says_what_is_certified():
    from sklearn.tree import DecisionTreeClassifier

    X, y, v = rows()
    base = DecisionTreeClassifier(max_depth=3).fit(X, y)
    text = card(nerm.neutral_head(base, X, y, v, limit=0.2), X, y, v)
    assert "This is about the last layer. The base model, DecisionTreeClassifier, is not certified." in text


def test_a_card_is_for_two_classes():
    X, y, v = rows()
    model = nerm.NERMClassifier().fit(X, np.where(X[:, 2] > 1, "other", y))
    with pytest.raises(nerm.InvalidInputError, match="a model card is for two classes"):
        card(model, X, y, v)
