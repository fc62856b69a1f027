"""What guarantee() says of a fitted model, and what it refuses to say."""

import math
from dataclasses import replace

import numpy as np
import pytest
from simulated_world import World

import nerm
from nerm import bounds
from nerm.atoms import Hinge, Logistic
from nerm.errors import InvalidInputError
from nerm.weights import balanced_weights


@pytest.fixture(scope="module")
def world():
    return World()


@pytest.fixture(scope="module")
def fitted(world):
    rng = np.random.default_rng(10)
    n, mu, eta = 4000, 0.05, 1.0
    i = world.sample(rng, n)
    w, b = world.solve(np.bincount(i, minlength=len(world.p)) / n, mu, eta)
    facts = bounds.FitFacts(
        scores=world.X[i] @ w + b,
        y=world.y[i],
        viewpoint=world.v[i],
        loss=Hinge(),
        surrogate=Hinge(),
        eta=eta,
        coef_norm=float(np.linalg.norm(w)),
        intercept=b,
        diagonal=(world.X[i] ** 2).sum(axis=1),
        lam=mu * n,
        gap=1e-6,
    )
    new = world.sample(rng, 3000)
    return facts, (world.X[new] @ w + b, world.v[new])


def by_source(guarantee):
    return {(s.quantity, s.source.split(",")[0]): s for s in guarantee}


def test_guarantee_gathers_the_bounds_and_calls_the_vacuous_so(fitted, world):
    facts, holdout = fitted
    said = bounds.guarantee(facts, holdout=holdout, input_radius=world.R, viewpoint_bound=1.0)
    s = by_source(said)
    assert s["C_n,psi", "corollary"].bound == pytest.approx(2.0, abs=1e-5)
    assert s["C_n,psi", "corollary"].on_sample <= s["C_n,psi", "corollary"].bound
    assert s["C_sgn", "hold-out"].bound == bounds.holdout_neutrality_bound(*holdout)
    assert s["|difference in positive rates|", "hold-out"].bound == bounds.holdout_parity_bound(*holdout)
    B, share = bounds.radius_from_data(facts.coef_norm, 0.05)
    beta, share = bounds.radius_from_data(abs(facts.intercept), share)
    rn = (B * world.R + beta) / math.sqrt(4000)
    expected = bounds.neutrality_bound(
        facts.scores, facts.viewpoint, Hinge(), complexity=rn, margin_bound=B * world.R + beta, delta=share
    )
    assert s["C_psi", "Theorem 2"].bound == pytest.approx(expected, rel=1e-12)
    assert not s["C_psi", "Theorem 2"].vacuous
    radius = math.sqrt(20)
    M = radius * world.R + 1 + radius * world.R
    third = 2 + 1e-6 + 2 * M / math.sqrt(4000) + (1 + M) * math.sqrt(math.log(40) / 8000)
    assert s["C_psi", "Theorem 3"].bound == pytest.approx(third, rel=1e-9)
    through = s["C_sgn", "through psi"]
    assert through.vacuous
    assert not through.holds
    assert "C_psi >= psi(0) = 1" in through.note
    text = repr(said)
    assert (
        "each statement by itself holds with probability 0.95, all 5 probabilistic ones together with 0.75"
        in text
    )
    assert "C_sgn: no bound  VACUOUS" in text
    assert "largest of the sample" not in text


def test_guarantee_says_what_stands_in_for_unknown_bounds(fitted):
    facts, _ = fitted
    text = repr(bounds.guarantee(facts))
    assert "for all inputs, the largest of the sample" in text
    assert "no hold-out given; the value on the training rows is no guarantee" in text


def test_guarantee_on_few_rows_is_vacuous_and_says_so(fitted):
    facts, _ = fitted
    few = replace(
        facts,
        scores=facts.scores[:20],
        y=facts.y[:20],
        viewpoint=facts.viewpoint[:20],
        diagonal=facts.diagonal[:20],
        lam=1.0,
    )
    s = by_source(bounds.guarantee(few, input_radius=1.0))
    assert s["C_psi", "Theorem 2"].vacuous
    assert "no better than the largest possible value" in s["C_psi", "Theorem 2"].note
    assert "VACUOUS" in str(s["C_psi", "Theorem 3"])


@pytest.mark.parametrize(
    ("changes", "source", "why"),
    [
        ({"eta": 0.0}, "corollary", "eta = 0"),
        ({"eta": 0.0}, "Theorem 3", "eta = 0"),
        ({"lam": None}, "Theorem 3", "no radius before the data"),
        ({"loss": Logistic()}, "Theorem 3", "the intercept has no radius before the data"),
        ({"lam": 1e7}, "Theorem 3", "the solution is outside of its class"),
    ],
)
def test_guarantee_says_why_a_statement_is_missing(fitted, changes, source, why):
    facts, _ = fitted
    statements = [s for s in bounds.guarantee(replace(facts, **changes)) if s.source.startswith(source)]
    assert [s.holds for s in statements] == [False]
    assert why in statements[0].note
    assert "no bound" in str(statements[0])


def test_a_radius_of_the_intercept_rests_on_the_smallest_viewpoint(fitted):
    """It is said where it is less than that of signs, and only where there is an intercept."""

    def third(v, **changes):
        known = {"viewpoint": v, **changes}
        return by_source(bounds.guarantee(replace(facts, **known), viewpoint_bound=1.0))["C_psi", "Theorem 3"]

    facts, _ = fitted
    small = 0.5 * facts.viewpoint
    small[0] *= 1.5  # two values would be read as -1 and +1
    assert "|v| >= 0.5 for all inputs" in third(small).assumes
    assert "|v| >=" not in third(facts.viewpoint).assumes
    without = third(small, fit_intercept=False, intercept=0.0)
    assert without.holds  # its radius is 0, and so is the intercept
    assert "|v| >=" not in without.assumes
    assert replace(without, note="").remark == f"assumes {without.assumes}"
    assert replace(without, note="why").remark == "why"


def test_nothing_follows_from_a_surrogate_that_is_zero_at_zero(fitted):
    facts, _ = fitted
    said = by_source(bounds.guarantee(replace(facts, surrogate=nerm.Identity())))["C_sgn", "through psi"]
    assert "psi(0) = 0 dominates no indicator" in said.note
    said = by_source(bounds.guarantee(facts))["C_sgn", "through psi"]
    assert "vacuous for every f" in said.note


def test_guarantee_with_weights_keeps_what_still_holds(fitted):
    facts, holdout = fitted
    u = balanced_weights(facts.viewpoint)
    s = by_source(bounds.guarantee(replace(facts, neutrality_weights=u), holdout=holdout))
    assert not s["C_psi", "Theorem 2"].holds
    assert "the plain mean" in s["C_psi", "Theorem 3"].note
    assert s["risk", "Theorem 1"].holds
    assert s["C_n,psi", "corollary"].bound == pytest.approx(2.0, abs=1e-5)
    s = by_source(
        bounds.guarantee(replace(facts, neutrality_weights=2 * u, sample_weight=np.full(4000, 3.0)))
    )
    assert not s["risk", "Theorem 1"].holds
    assert s["C_n,psi", "corollary"].bound == pytest.approx(5.0, abs=1e-5)  # 2 psi(0) + 3 phi(0) / eta


def test_guarantee_takes_a_model_that_knows_its_facts(fitted):
    facts, _ = fitted

    class Model:
        def fit_facts(self):
            return facts

    assert repr(bounds.guarantee(Model())) == repr(bounds.guarantee(facts))
    with pytest.raises(InvalidInputError, match=r"'model' must be a nerm\.bounds\.FitFacts or have a method"):
        bounds.guarantee(object())
    with pytest.raises(InvalidInputError, match=r"'input_radius' must bound \|\|x\|\| of every row"):
        bounds.guarantee(facts, input_radius=0.1)
    with pytest.raises(InvalidInputError, match=r"'viewpoint_bound' must bound \|v\| of every row"):
        bounds.guarantee(facts, viewpoint_bound=0.99)  # it is 1


def test_guarantee_of_a_constant_viewpoint_in_the_holdout(fitted):
    facts, (scores, viewpoint) = fitted
    s = by_source(bounds.guarantee(facts, holdout=(scores, np.ones_like(viewpoint))))
    assert s["C_sgn", "hold-out"].holds
    assert "some row must have viewpoint -1" in s["|difference in positive rates|", "hold-out"].note


def test_without_an_intercept_its_radius_is_zero(fitted, world):
    facts, _ = fitted
    plain = replace(facts, scores=facts.scores - facts.intercept, intercept=0.0, fit_intercept=False)
    s = by_source(bounds.guarantee(plain, input_radius=world.R, viewpoint_bound=1.0))
    B, share = bounds.radius_from_data(facts.coef_norm, 0.05)
    size = B * world.R
    expected = bounds.neutrality_bound(
        plain.scores,
        facts.viewpoint,
        Hinge(),
        complexity=size / math.sqrt(4000),
        margin_bound=size,
        delta=share,
    )
    assert s["C_psi", "Theorem 2"].bound == pytest.approx(expected, rel=1e-12)


def test_lam_is_that_of_a_risk_of_weight_one():
    """With 2 mean phi + (mu / 2) ||w||^2 the lam of the sum form is n mu / 2."""
    X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    for weight in (1.0, 2.0, 0.25):
        objective = weight * nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2() + nerm.Neutrality(nerm.Hinge())
        assert objective.on(X, y, viewpoint=v).solve().fit_facts().lam == pytest.approx(4 * 0.5 / weight)


@pytest.mark.parametrize(
    ("etas", "intercept", "known"),
    [
        ((1.0, 1.0), True, False),
        ((1.0, 1.0), False, True),
        ((1.0, 0.0), True, True),
        ((0.0, 0.0), True, True),
    ],
)
def test_with_a_free_intercept_the_radius_needs_a_single_acting_term(etas, intercept, known):
    X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], {"a": [1, -1, 1, -1], "b": [1, 1, 1, -1]}
    objective = nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2()
    for name, eta in zip("ab", etas, strict=True):
        objective = objective + eta * nerm.Neutrality(nerm.Hinge(), to=name)
    facts = objective.on(X, y, viewpoint=v, intercept=intercept).solve().fit_facts("a")
    assert (facts.lam is not None) == known
