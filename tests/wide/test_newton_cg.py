"""Products and Newton systems, against dense matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

from nerm.solvers.interior_point.matrices import RowThreads
from nerm.solvers.newton_alm.newton_cg import RowProducts, System


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_products_and_systems(sparse, intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 60)) * (rng.random((40, 60)) < 0.3)
    A = np.column_stack([X, np.full(40, float(intercept))])
    h, c, density = rng.normal(size=61), rng.normal(size=40), np.maximum(rng.normal(size=40), 0.0)
    h[-1] *= intercept
    rows = RowProducts(sp.csr_matrix(X) if sparse else X, RowThreads(40, 0), intercept=intercept)
    assert rows.times(h) == pytest.approx(A @ h)
    assert rows.adjoint(c) == pytest.approx(A.T @ c)
    assert rows.norms == pytest.approx((X**2).sum(axis=1))
    ridge, lines, widths = np.full(61, 0.5), rng.normal(size=(2, 61)), np.array([0.1, 2.0])
    lines[:, -1] *= intercept
    H = np.diag(ridge) + A.T @ (density[:, None] * A) + lines.T @ (lines / widths[:, None])
    rhs = rng.normal(size=61)
    rhs[-1] *= intercept
    system = System(rows, density, ridge)
    assert system.solve(rhs, lines, widths, 1e-10, 500) == pytest.approx(np.linalg.solve(H, rhs), abs=1e-7)
    assert system.iterations > 0
    assert not System(rows, density, ridge).solve(np.zeros(61), lines, widths, 0.1, 500).any()
    assert rows.passes > 2


def test_rows_on_several_threads_add_up_to_the_same():
    rng = np.random.default_rng(1)
    X = sp.random(13_000, 50, 0.1, "csr", random_state=0)
    rows, density, q = np.arange(13_000), rng.random(13_000), rng.normal(size=51)
    products = []
    for count in (1, 2):
        with RowThreads(13_000, 0, count) as workers:
            product, squares = RowProducts(X, workers, intercept=True).curve(rows, density)
            products.append(np.append(product(q), squares))
    assert products[0] == pytest.approx(products[1])
