"""Files that nerm 0.2.0 wrote, with equal rows merged, are read as what they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nerm

SAVED = Path(__file__).parent / "saved"


def drawn() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the 60 rows, many of them equal, that the files are about."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(60, 3)).astype(float)
    y = np.sign(X[:, 0] - 1 + 0.5 * rng.normal(size=60))
    return X, np.where(y == 0, 1.0, y), np.sign(X[:, 1] - 0.5)


@pytest.mark.parametrize(
    ("name", "shift", "kernel"), [("solution", 0, None), ("kernel", 0, "rbf"), ("far", 1e7, None)]
)
def test_solution_of_0_2_is_certified_on_the_given_rows(name, shift, kernel):
    X, y, v = drawn()
    solution = nerm.load(SAVED / f"{name}_0.2.0.nerm")
    assert str(solution.status) == "optimal"
    assert solution.problem.n == 60
    objective = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    problem = objective.on(X + shift, y, viewpoint=v, kernel=kernel)
    np.testing.assert_allclose(
        float(problem.evaluate(solution.coef, solution.intercept)), solution.objective.total, rtol=1e-6
    )
    np.testing.assert_allclose(problem.solve().objective.total, solution.objective.total, rtol=3e-6)


def test_model_of_0_2_predicts():
    X, y, v = drawn()
    model = nerm.load(SAVED / "model_0.2.0.nerm")
    again = nerm.NeutralSVC(kernel="rbf", eta=1.0).fit(X, y, viewpoint=v)
    np.testing.assert_allclose(model.decision_function(X), again.decision_function(X), atol=1e-2)


def test_table_model_of_0_2_reads_dates():
    """The scores of the first rows are those that 0.2 printed."""
    rows = nerm.tables.read_table(SAVED / "dates.csv")
    model = nerm.load(SAVED / "table_0.2.0.nerm")
    scores, _ = model.scores(rows)
    np.testing.assert_allclose(scores[:2], [0.2547427113941045, -0.634367938670696], rtol=1e-9)
    assert "hired (days)" in model.recipe.feature_names
