"""LFR: the objective in plain loops, its gradient by differences, seeds and starts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from nerm.baselines import LearningFairRepresentations
from nerm.baselines.fair_representations import Prototypes
from nerm.errors import InvalidInputError


def mixed_data(seed=0, n=60, d=3):
    random = np.random.default_rng(seed)
    s = random.random(n) < 0.6
    X = random.normal(size=(n, d)) + 0.5 * s[:, None]
    y = X[:, 0] + 0.8 * s + 0.5 * random.normal(size=n) > 0.5
    return X, y, s


def literal_terms(P, w, alpha, X, y, s):
    """Reconstruction, cross-entropy and parity, row by row."""
    reconstruction = entropy = 0.0
    used = {False: [], True: []}
    for x, label, group in zip(X, y, s, strict=True):
        distances = [sum(alpha[int(group)][j] * (x[j] - p[j]) ** 2 for j in range(len(x))) for p in P]
        weights = [math.exp(min(distances) - d) for d in distances]
        M = [v / sum(weights) for v in weights]
        back = [sum(M[k] * P[k][j] for k in range(len(P))) for j in range(len(x))]
        reconstruction += sum((a - b) ** 2 for a, b in zip(x, back, strict=True))
        yhat = sum(m * v for m, v in zip(M, w, strict=True))
        entropy -= math.log(yhat if label else 1 - yhat)
        used[bool(group)].append(M)
    means = {g: [sum(M[k] for M in rows) / len(rows) for k in range(len(P))] for g, rows in used.items()}
    parity = sum(abs(a - b) for a, b in zip(means[True], means[False], strict=True))
    return reconstruction, entropy, parity


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sparse", [False, True])
def test_value_and_gradient_agree_with_the_formula_and_its_differences(seed, sparse):
    X, y, s = mixed_data(seed)
    scales = (0.3, 1.2, 7.0)
    problem = Prototypes(sp.csr_matrix(X) if sparse else X, y, s, 4, scales)
    random = np.random.default_rng(seed + 50)
    parts = (random.normal(size=(4, 3)), random.uniform(0.1, 0.9, 4), random.uniform(0.1, 1.5, (2, 3)))
    point = np.concatenate([part.ravel() for part in parts])

    def literal(x):
        return sum(a * t for a, t in zip(scales, literal_terms(*problem.parts(x), X, y, s), strict=True))

    value, gradient = problem.value_and_gradient(point)
    assert value == pytest.approx(literal(point), rel=1e-10)
    for k in range(len(point)):
        step = np.zeros(len(point))
        step[k] = 1e-5
        assert gradient[k] == pytest.approx(
            (literal(point + step) - literal(point - step)) / 2e-5, rel=1e-5, abs=1e-5
        )


def test_a_round_of_the_method_of_multipliers_is_the_envelope_and_has_its_gradient():
    X, y, s = mixed_data(1)
    A_z, m, t = 2.0, np.array([0.5, -1.9, 0.0]), 8.0
    problem = Prototypes(X, y, s, 3, (0.0, 0.0, A_z))
    point = problem.start(np.random.RandomState(0))
    value, gradient = problem.value_and_gradient(point, (m, t))
    M = problem.assign(X, s, *problem.parts(point)[::2])
    z = M[s].mean(axis=0) - M[~s].mean(axis=0)
    u = np.linspace(-2, 2, 400001)[:, None]
    assert value == pytest.approx(
        (A_z * abs(u) + m * (z - u) + t / 2 * (z - u) ** 2).min(axis=0).sum(), abs=1e-8
    )
    for k in range(len(point)):
        step = np.zeros(len(point))
        step[k] = 1e-5
        ahead, behind = (problem.value_and_gradient(point + sign * step, (m, t))[0] for sign in (1, -1))
        assert gradient[k] == pytest.approx((ahead - behind) / 2e-5, abs=1e-8)


@pytest.mark.long
def test_the_best_of_several_seeded_starts_is_kept():
    X, y, s = mixed_data(2)
    model = LearningFairRepresentations(4, A_x=0.1, A_z=20.0, n_init=2, random_state=3).fit(X, y, viewpoint=s)
    again = clone(model).fit(X, y, viewpoint=s)
    np.testing.assert_array_equal(again.prototypes_, model.prototypes_)
    assert len(model.objectives_) == 2
    assert model.objective_ == model.objectives_.min()
    assert len(np.unique(model.objectives_)) > 1
    reconstruction, entropy, parity = literal_terms(model.prototypes_, model.weights_, model.alpha_, X, y, s)
    assert model.objective_ == pytest.approx(0.1 * reconstruction + entropy + 20.0 * parity)
    assert model.converged_


def test_transform_gives_the_weights_on_prototypes_and_predictions_follow_them():
    X, y, s = mixed_data(3)
    model = LearningFairRepresentations(3, random_state=0, n_init=1).fit(X, y, viewpoint=s)
    M = model.transform(X, viewpoint=s)
    assert M.shape == (60, 3)
    np.testing.assert_allclose(M.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X, viewpoint=s), M @ model.weights_ > 0.5)
    assert model.score(X, y, viewpoint=s) > 0.7


@pytest.mark.long
def test_a_large_parity_weight_makes_the_groups_use_prototypes_alike():
    X, y, s = mixed_data(4, n=150)
    gaps = []
    for A_z in (0.0, 1000.0):
        model = LearningFairRepresentations(4, A_z=A_z, n_init=2, random_state=0).fit(X, y, viewpoint=s)
        M = model.transform(X, viewpoint=s)
        gaps.append(np.abs(M[s].mean(axis=0) - M[~s].mean(axis=0)).sum())
    assert gaps[0] > 0.1
    assert gaps[1] < 1e-3


def test_no_convergence_is_said_with_the_residual():
    X, y, s = mixed_data(5)
    with pytest.warns(
        ConvergenceWarning,
        match=r"LearningFairRepresentations did not converge: .* tol is 1e-12\. Raise max_iter",
    ):
        LearningFairRepresentations(3, tol=1e-12, max_iter=3, n_init=1, random_state=0).fit(X, y, viewpoint=s)


@pytest.mark.parametrize("name", ["n_prototypes", "n_init"])
def test_counts_are_whole_numbers(name):
    X, y, s = mixed_data()
    with pytest.raises(InvalidInputError) as caught:
        LearningFairRepresentations(**{name: 0}).fit(X, y, viewpoint=s)
    assert str(caught.value) == f"'{name}' must be a whole number, at least 1. Got 0. Use 1 or more."


def test_no_more_steps_than_allowed():
    X, y, s = mixed_data()
    model = LearningFairRepresentations(3, tol=1e-12, max_iter=3, n_init=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model.fit(X, y, viewpoint=s)
    assert model.n_iter_ <= 3
