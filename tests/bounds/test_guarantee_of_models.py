"""`guarantee` of problems and fitted models: what it takes, and which facts it names."""

from __future__ import annotations

import nerm
from nerm.bounds import guarantee
from tests.conftest import make_data


def test_guarantee_takes_a_problem_and_handles_an_infinite_class():
    X, y, v = make_data(5)
    objective = nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + nerm.Neutrality(nerm.Hinge())
    assert "Theorem 2" in repr(guarantee(objective.on(X, y, viewpoint=v)))
    X[0] = 2000.0
    steep = nerm.NERMClassifier("exponential", surrogate="exponential", eta=1.0, lam=0.001).fit(
        X, y, viewpoint=v
    )
    text = repr(guarantee(steep))
    assert "must be finite on the values of the class" in text
    assert "corollary" in text


def test_guarantee_names_a_learned_kernel_width():
    X, y, v = make_data(6)
    learned = repr(guarantee(nerm.NeutralSVC(kernel="rbf", eta=1.0, lam=5.0).fit(X, y, viewpoint=v)))
    fixed = repr(guarantee(nerm.NeutralSVC(kernel="rbf", gamma=0.5, eta=1.0, lam=5.0).fit(X, y, viewpoint=v)))
    assert "the kernel's width, learned from these rows and treated as fixed" in learned
    assert "kernel's width" not in fixed
