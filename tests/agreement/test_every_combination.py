"""Every loss x surrogate x regularizer at three neutrality weights: certified, with no solver failing to take it."""

from __future__ import annotations

import pytest

import nerm
from nerm import atoms
from tests.conftest import make_data

pytestmark = pytest.mark.long

LOSSES = [cls() for cls in atoms.margin_functions().values() if not cls().facts.surrogate_only]
SURROGATES = [cls() for cls in atoms.margin_functions().values()]
REGULARIZERS = [nerm.SquaredL2(), nerm.L1(), nerm.ElasticNet(), nerm.GroupL2([0, 0, 1, 1])]


@pytest.mark.parametrize("omega", REGULARIZERS, ids=lambda r: r.name)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda a: a.name)
def test_certified_to_one_in_a_million(loss, omega):
    X, y, v = make_data(1, n=120, d=4)
    for surrogate in SURROGATES:
        problem = (nerm.Risk(loss) + 0.05 * omega + nerm.Neutrality(surrogate)).on(X, y, viewpoint=v)
        for eta, solution in zip((0, 0.3, 3), problem.path([0, 0.3, 3]), strict=True):
            assert solution.status == "optimal", f"{surrogate!r} at eta {eta}: {solution.certificate}"
            assert solution.certificate.relative_gap <= 1e-6
