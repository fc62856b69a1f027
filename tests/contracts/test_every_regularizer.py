"""Every built-in regularizer keeps the contract; and the contract does catch ones that break it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import nerm
from nerm import L1, ElasticNet, GroupL2, LInf, SquaredL2, atoms
from nerm.testing import check_regularizer

INSTANCES = [cls() for cls in atoms.regularizers().values()] + [
    ElasticNet(0.0),
    ElasticNet(1.0),
    ElasticNet(0.9),
    GroupL2([0, 0, 1, 1, 2, 2]),
    GroupL2([[0, 5], [1, 2, 3], [4]], weights=[1.0, 2.0, 0.5]),
    GroupL2(["a", "b", "a", "b", "a", "b"]),
]


@pytest.mark.parametrize("atom", INSTANCES, ids=repr)
def test_contract(atom):
    check_regularizer(atom)


@pytest.mark.parametrize("atom", INSTANCES, ids=repr)
def test_prox_is_what_cvxpy_finds(atom):
    import cvxpy as cp

    rng = np.random.default_rng(3)
    w, z = rng.normal(size=6) * 2, cp.Variable(6)
    cp.Problem(cp.Minimize(0.7 * atom.expression(z) + cp.sum_squares(z - w) / 2)).solve(solver="CLARABEL")
    np.testing.assert_allclose(atom.prox(w, 0.7), z.value, atol=1e-4)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ElasticNet(1.5), "'l1_ratio' must lie between 0 and 1. Got 1.5."),
        (lambda: GroupL2([0, 0, 1]).check(4), "must have one label for each of the 4 columns. Got 3 labels."),
        (
            lambda: GroupL2([[0, 1], [1, 2]]).check(3),
            "or lists that hold the number of each column once. Got [[0, 1], [1, 2]].",
        ),
        (
            lambda: GroupL2([0, 1], weights=[1.0]).check(2),
            "must have one entry for each of the 2 groups. Got 1",
        ),
        (
            lambda: GroupL2([0, 1], weights=[1.0, -1.0]),
            "'weights of the groups' must be a finite positive number. Got -1.0.",
        ),
        (lambda: nerm.SmoothHinge(0.0), "'width' must be a finite positive number. Got 0.0."),
        (lambda: nerm.Pinball(-1), "'tau' must be a finite number, at least 0. Got -1."),
    ],
)
def test_bad_parameters(make, text):
    with pytest.raises(nerm.InvalidInputError) as caught:
        make()
    assert text in str(caught.value)


@dataclass(frozen=True)
class WrongProx(L1):
    def prox(self, w, step=1.0):
        return super().prox(w, 0.9 * step)


@dataclass(frozen=True)
class WrongConjugate(LInf):
    def conjugate(self, q):
        return super().conjugate(0.5 * q)


@dataclass(frozen=True)
class WrongSubgradient(SquaredL2):
    def subgradient(self, w):
        return 2 * w, 2 * w


@dataclass(frozen=True)
class WrongStructure(LInf):
    """The l-infinity norm in all but `structure`, which solvers read."""

    def structure(self, d):
        return L1().structure(d)

    def at(self, d):
        return LInf().at(d)

    def expression(self, w):
        return LInf().expression(w)


@dataclass(frozen=True)
class WrongPart(ElasticNet):
    def parts(self, d):
        return ((2 * self.l1_ratio, L1()), *super().parts(d)[1:])


@dataclass(frozen=True)
class FreeThatCosts(L1):
    def free(self, d):
        return np.eye(d)[:, :1]


@dataclass(frozen=True)
class FreeNotOrthonormal(SquaredL2):
    def free(self, d):
        return 2 * np.eye(d)[:, :1]


@dataclass(frozen=True)
class ForgottenFree(SquaredL2):
    """Omega(w) = 1/2 ||w_2, ..., w_d||^2, whose first axis is free."""

    def value(self, w):
        return super().value(w[1:])

    def subgradient(self, w):
        slope = np.append(0.0, w[1:])
        return slope, slope

    def conjugate(self, q):
        return super().conjugate(q) if q[0] == 0 else np.inf

    def prox(self, w, step=1.0):
        return np.append(w[0], w[1:] / (1 + step))

    def expression(self, w):
        return super().expression(w[1:])


@pytest.mark.parametrize(
    ("atom", "clause"),
    [
        (WrongProx(), "prox"),
        (WrongConjugate(), "outside the unit ball"),
        (WrongSubgradient(), "one-sided derivatives"),
        (WrongStructure(), "the structure must add up"),
        (WrongPart(), "the parts must add up"),
        (FreeThatCosts(), "constant along the directions of free"),
        (FreeNotOrthonormal(), "orthonormal"),
        (ForgottenFree(), "free must span"),
    ],
)
def test_contract_catches(atom, clause):
    with pytest.raises(AssertionError, match=clause):
        check_regularizer(atom)


def test_a_ball_below_the_last_digit_of_w():
    """The prox of l-infinity projects on an l1 ball; one too small to be seen beside w leaves w."""
    w = np.array([1e20, -3.0])
    assert nerm.LInf().prox(w, 1.0).tolist() == [1e20, -3.0]
    assert np.allclose(nerm.LInf().prox(np.array([3.0, 1.0]), 1.0), [2.0, 1.0])
