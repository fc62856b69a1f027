"""A model explains itself and answers to the bounds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import nerm
from nerm import NERMClassifier, NeutralSVC
from tests.conftest import make_data


def test_the_explanation_adds_up():
    X, y, v = make_data(0, n=80)
    frame = pd.DataFrame(X, columns=["age", "<income>", "hours", "debt"])
    model = NeutralSVC(lam=4.0, eta=0.8, tol=1e-9).fit(frame, y, viewpoint=v)
    (problem,) = model.explain(top=2).problems
    f = model.decision_function(frame)
    risk, omega, neutrality = problem.terms
    assert risk.value == pytest.approx(np.maximum(0, 1 - y * f).sum())
    assert (omega.weight, omega.value) == (4.0, pytest.approx(0.5 * (model.coef_**2).sum()))
    assert neutrality.plus == pytest.approx(np.maximum(0, 1 - v * f).mean())
    assert neutrality.minus == pytest.approx(np.maximum(0, 1 + v * f).mean())
    assert neutrality.value == pytest.approx(80 * max(neutrality.plus, neutrality.minus))
    assert 0 <= neutrality.theta <= 1
    assert problem.total == pytest.approx(risk.value + 4 * omega.value + 0.8 * neutrality.value)
    assert problem.total == pytest.approx(model.certificate_.primal)
    largest = np.argsort(-np.abs(model.coef_[0]))[:2]
    assert [name for name, _ in problem.coefficients] == frame.columns[largest].tolist()
    assert problem.others == 2


def test_the_explanation_as_text():
    X, y, v = make_data(1)
    frame = pd.DataFrame(X, columns=["age", "<income>", "hours", "debt"])
    explanation = NeutralSVC(eta=0.5).fit(frame, y, viewpoint=v).explain()
    text = repr(explanation)
    for part in (
        "class 1.0: minimise sum hinge(y f) + ½‖w‖² + 0.5 max(",
        "C+ ",
        "theta ",
        "relative gap",
        "<income>",
    ):
        assert part in text
    kernel = NERMClassifier(eta=0.5, kernel="rbf").fit(X, np.arange(60) % 3, viewpoint=v).explain()
    assert len(kernel.problems) == 3
    assert "class 2: minimise mean hinge(y f) + 0.01 ½‖w‖²" in repr(kernel)
    assert "row " in repr(kernel)


def test_theta_weighs_the_larger_side():
    X, y, v = make_data(2)
    for eta in (0.05, 1.0):
        (problem,) = NeutralSVC(lam=5.0, eta=eta, tol=1e-9).fit(X, y, viewpoint=v).explain().problems
        line = problem.terms[2]
        if abs(line.plus - line.minus) > 1e-3:
            assert line.theta == pytest.approx(1.0 if line.plus > line.minus else 0.0, abs=1e-3)


def test_facts_of_a_solution_and_of_a_model_agree():
    X, y, v = make_data(3, n=50)
    lam, eta = 5.0, 0.4
    objective = nerm.Risk(nerm.Hinge()) + (lam / 50) * nerm.SquaredL2() + eta * nerm.Neutrality(nerm.Hinge())
    solution = objective.on(X, y, viewpoint=v).solve(tol=1e-9)
    model = NeutralSVC(lam=lam, eta=eta, tol=1e-9).fit(X, y, viewpoint=v)
    one, two = solution.fit_facts(), model.fit_facts()
    np.testing.assert_allclose(one.scores, two.scores, atol=1e-4)
    for name in ("y", "viewpoint", "diagonal"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name))
    assert (one.lam, one.eta) == (pytest.approx(lam), eta)
    assert (two.lam, two.eta) == (pytest.approx(lam), eta)
    assert one.sample_weight is two.sample_weight is one.neutrality_weights is two.neutrality_weights is None
    assert str(nerm.bounds.guarantee(model)).count("no bound") == 2


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_facts_survive_repeated_rows(kernel):
    X, y, v = make_data(4, n=30)
    X, y, v = np.vstack([X, X[:10]]), np.r_[y, y[:10]], np.r_[v, v[:10]]
    model = NERMClassifier(lam=0.1, eta=1.0, kernel=kernel, tol=1e-8).fit(X, y, viewpoint=v)
    facts = model.fit_facts()
    np.testing.assert_allclose(facts.scores, model.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(facts.y, y)
    np.testing.assert_array_equal(facts.viewpoint, v)
    assert facts.lam == pytest.approx(0.1 * 40)
    assert facts.gap == pytest.approx(model.certificate_.gap, rel=1e-6)
    assert facts.coef_norm <= nerm.bounds.norm_radius(facts.lam, 40, 1.0) * (1 + 1e-9)
    norms = (X**2).sum(axis=1) if kernel == "linear" else np.ones(40)
    np.testing.assert_allclose(facts.diagonal, norms)
    bounds = {s.source: s for s in nerm.bounds.guarantee(model)}
    assert bounds["corollary, always"].on_sample <= bounds["corollary, always"].bound
    assert bounds["Theorem 3, radius from lam"].holds


def test_weights_are_part_of_the_facts():
    X, y, v = make_data(5, n=40)
    s = np.linspace(0, 2, 40)
    model = NeutralSVC(eta=1.0, weights="balanced", class_weight={-1.0: 2.0, 1.0: 1.0}).fit(
        X, y, viewpoint=v, sample_weight=s
    )
    facts = model.fit_facts()
    kept = s > 0
    np.testing.assert_allclose(facts.sample_weight, (s * np.where(y < 0, 2.0, 1.0))[kept])
    u = np.where(v > 0, s.sum() / (2 * s[v > 0].sum()), s.sum() / (2 * s[v < 0].sum()))
    np.testing.assert_allclose(facts.neutrality_weights, (s * u)[kept])
    line = model.explain().problems[0].terms[2]
    f = model.decision_function(X)
    assert line.plus == pytest.approx((s * u * np.maximum(0, 1 - v * f)).sum() / s.sum())


def test_a_viewpoint_without_eta_is_measured_but_not_used():
    X, y, v = make_data(6)
    plain, watched = NeutralSVC().fit(X, y), NeutralSVC().fit(X, y, viewpoint=v)
    np.testing.assert_allclose(plain.coef_, watched.coef_, atol=1e-3)
    line = watched.explain().problems[0].terms[2]
    assert line.weight == 0
    assert np.isnan(line.theta)
    assert watched.fit_facts().eta == 0


@pytest.mark.filterwarnings("ignore::nerm.NearlyConstantWarning")
def test_no_radius_of_the_intercept_is_claimed_for_several_terms():
    X, y, v = make_data(7)
    both = {"sex": v, "g": X[:, 0]}
    assert NeutralSVC(eta=1.0).fit(X, y, viewpoint=both).fit_facts(to="sex").lam is None
    without = NeutralSVC(eta=1.0, fit_intercept=False, lam=2.0).fit(X, y, viewpoint=both)
    assert without.fit_facts(to="sex").lam == pytest.approx(2.0)


def test_the_explanation_says_what_was_asked():
    """A viewpoint called mean_age stays mean_age in the sum form; class weights and a pipeline's names are shown."""
    X, y, v = make_data(8)
    model = NeutralSVC(eta=0.5, class_weight={-1.0: 2.0, 1.0: 1.0}).fit(X, y, viewpoint={"mean_age": v})
    text = repr(model.explain(feature_names=["a", "b", "c", "d"]))
    assert "max(sum hinge(mean_age f), sum hinge(-mean_age f))" in text
    assert "class weights: -1.0 × 2, 1.0 × 1" in text
    assert "  a\n" in text or "  b\n" in text
    with pytest.raises(nerm.InvalidInputError, match="'feature_names' must name the 4 columns seen in fit"):
        model.explain(feature_names=["a"])


def test_certificate_and_status_never_contradict_each_other():
    """Near an optimum of 0 the relative gap counts from the value at zero, in the estimator too."""
    X, y, _ = make_data(9)
    model = NERMClassifier(lam=1e-15, loss="squared-hinge", tol=1e-6).fit(np.column_stack([X, 5 * y]), y)
    (solution,) = model.solutions_
    assert model.certificate_.relative_gap == pytest.approx(solution.certificate.relative_gap)
    assert (solution.status == "optimal") == (model.certificate_.relative_gap <= 1e-6)


def test_the_viewpoint_must_be_named():
    X, y, v = make_data(10)
    with pytest.raises(TypeError, match="positional"):
        NeutralSVC().fit(X, y, v)


def test_an_explanation_of_several_classes_is_indexed_by_class():
    X, _, v = make_data(0, n=90)
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    explanation = nerm.NeutralSVC(lam=5.0, eta=0.1).fit(X, y, viewpoint=np.where(v > 0, "m", "f")).explain()
    assert explanation["b"] is explanation.problems[1]
    assert explanation["b"].label == "b"
    assert list(explanation) == ["a", "b", "c"]
    with pytest.raises(nerm.UnknownNameError, match=r"must be one of 'a', 'b', 'c'\. Got 'd'"):
        explanation["d"]
    assert "viewpoint: 'f' is -1, 'm' is +1" in repr(explanation)
    two = nerm.NeutralSVC().fit(X, v > 0).explain()
    assert two[True] is two.problems[0]
