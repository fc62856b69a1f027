"""Every built-in margin function keeps the contract; and the contract does catch functions that break it."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
import pytest

import nerm
from nerm import atoms
from nerm.atoms import Hinge, HuberizedHinge, Logistic, Pinball, SmoothHinge, Squared
from nerm.testing import check_margin_function

INSTANCES = [cls() for cls in atoms.margin_functions().values()] + [
    nerm.SquaredError(),
    nerm.AbsoluteError(),
    nerm.HuberError(1.2),
    nerm.PinballError(0.9),
    nerm.EpsilonInsensitive(0.0),
    nerm.EpsilonInsensitive(0.435),
    SmoothHinge(0.1),
    SmoothHinge(3.0),
    HuberizedHinge(0.05),
    HuberizedHinge(2.0),
    Pinball(0.0),
    Pinball(1.0),
    Pinball(2.5),
]


@pytest.mark.parametrize("atom", INSTANCES, ids=repr)
def test_contract(atom):
    check_margin_function(atom)


@pytest.mark.parametrize("atom", INSTANCES, ids=repr)
def test_conjugate_is_the_supremum(atom):
    """phi*(u) against brute force on a fine grid of margins."""
    low, high = np.clip(atom.facts.slopes, -3, 3)
    m = np.linspace(-40, 40, 400_001)
    for u in np.linspace(low, high, 7):
        brute = np.max(u * m - atom.value(m))
        assert float(atom.conjugate(u)) == pytest.approx(brute, abs=1e-6)


@pytest.mark.parametrize("atom", INSTANCES, ids=repr)
def test_scalars_and_shapes(atom):
    assert np.shape(atom.value(0.3)) == ()
    assert atom.value(np.zeros((2, 3))).shape == (2, 3)
    assert atom.prox(np.zeros((2, 3)), 0.5).shape == (2, 3)


@pytest.mark.parametrize(
    "atom", [*INSTANCES, nerm.margin_function(lambda m: cp.pos(1 - m), name="own")], ids=repr
)
def test_the_step_of_a_prox_is_one(atom):
    m = np.array([-2.5, -1.0, 0.0, 0.4, 1.0, 3.0])
    np.testing.assert_array_equal(atom.prox(m), atom.prox(m, 1.0))


@pytest.mark.parametrize("atom", INSTANCES, ids=repr)
def test_breakpoints_are_where_the_slope_starts_or_stops_to_change(atom):
    """By secants: a breakpoint has a straight piece on one side, and on the other, or in itself, a change of slope."""
    for m in atom.facts.breakpoints or ():
        h = 1e-3
        left, right = ((atom.value(m + s * 2 * h) - atom.value(m + s * h)) / (s * h) for s in (-1, 1))
        near = [(atom.value(m + s * h) - atom.value(m)) / (s * h) for s in (-1, 1)]
        bends = np.abs([near[0] - left, right - near[1]])
        assert bends.min() < 1e-9, m
        assert max(bends.max(), abs(near[1] - near[0])) > 1e-5, m


@pytest.mark.parametrize("atom", INSTANCES, ids=repr)
def test_curvature_is_the_slope_of_the_derivative(atom):
    """The curvature against second differences of the values, in exact shape, at points that no formula changes at."""
    m = np.array([[-3.7, -1.3, -0.2], [0.6, 1.8, 4.3]])
    curvature = atom.curvature(m)
    if curvature is None:
        assert atom.derived.is_quadratic, "a built-in function states its curvature or is piecewise quadratic"
        return
    h = 1e-3
    bend = (atom.value(m + h) - 2 * atom.value(m) + atom.value(m - h)) / h**2
    np.testing.assert_allclose(curvature, bend, rtol=1e-5, atol=1e-8)
    assert np.shape(atom.curvature(0.3)) == ()


@pytest.mark.parametrize("atom", INSTANCES, ids=repr)
@pytest.mark.parametrize("far", [-1e4, 1e4, -1e100, 1e100])
def test_far_out_there_are_no_warnings_and_no_nan(atom, far):
    """Solvers try points far out: the answer is huge or infinite, never a warning (which pytest makes an error)."""
    m = np.array([far])
    with np.errstate(over="raise", invalid="raise"):
        pieces = [atom.value(m), *atom.subgradient(m), atom.conjugate(m), atom.curvature(m)]
    assert not any(np.isnan(piece).any() for piece in pieces if piece is not None)


@pytest.mark.parametrize(
    "atom", [*INSTANCES, nerm.margin_function(lambda m: cp.pos(m), name="own")], ids=repr
)
def test_facts_of_a_function_by_its_values(atom):
    """Its direction, its steepest slope, how it bends: from secants of its values on a line that goes far out."""
    m = np.linspace(-50, 50, 4001)
    secants = np.diff(atom.value(m)) / np.diff(m)
    rises, falls = secants.max() > 1e-9, secants.min() < -1e-9
    assert atom.facts.monotone == (None if rises and falls else "increasing" if rises else "decreasing")
    assert np.abs(secants).max() <= atom.facts.lipschitz * (1 + 1e-9)
    if np.isfinite(atom.facts.lipschitz):
        assert np.abs(secants).max() == pytest.approx(atom.facts.lipschitz, rel=1e-5)
    if atom.facts.numeric:  # of these no more is known
        return
    bends = np.diff(secants) / 0.025
    if np.isfinite(atom.facts.smoothness):
        assert bends.max() == pytest.approx(atom.facts.smoothness, rel=1e-2, abs=1e-9)


def test_atoms_are_frozen_and_hashable_values():
    assert SmoothHinge(0.5) == SmoothHinge(0.5)
    assert len({Hinge(), Hinge(), Squared()}) == 2
    with pytest.raises(AttributeError):
        SmoothHinge(0.5).width = 2.0


def test_every_file_of_atoms_is_exported():
    """A new file must not be forgotten: every concrete class of the folder is reachable as nerm.Name."""
    for module in pkgutil.iter_modules(atoms.__path__):
        __import__(f"nerm.atoms.{module.name}")
    for cls in (*atoms.margin_functions().values(), *atoms.regularizers().values()):
        assert getattr(nerm, cls.__name__) is cls


# What the contract must catch: one broken clause each.


@dataclass(frozen=True)
class WrongConjugate(Hinge):
    def conjugate(self, u):
        return super().conjugate(u) + 1e-3


@dataclass(frozen=True)
class WrongProx(Hinge):
    def prox(self, m, step=1.0):
        return np.asarray(m) + 0.9 * step * (np.asarray(m) < 1)


@dataclass(frozen=True)
class WrongSubgradientAtKink(Hinge):
    def subgradient(self, m):
        slope = np.where(np.asarray(m) < 1, -1.0, 0.0)
        return slope, slope


@dataclass(frozen=True)
class WrongCurvature(Logistic):
    def curvature(self, m):
        return 2 * super().curvature(m)


@dataclass(frozen=True)
class WrongFacts(Hinge):
    @property
    def facts(self):
        return replace(super().facts, at_zero=2.0)


def hinge_with(**wrong):
    """Return a hinge whose facts are changed."""

    @dataclass(frozen=True)
    class WrongHinge(Hinge):
        @property
        def facts(self):
            return replace(super().facts, **wrong)

    return WrongHinge()


@dataclass(frozen=True)
class WrongExpression(Hinge):
    derived = Hinge().derived

    def expression(self, m):
        return cp.pos(1.1 - m)


@dataclass(frozen=True)
class NotConvex(Hinge):
    def value(self, m):
        return np.minimum(super().value(m), 2.0)


@pytest.mark.parametrize(
    ("atom", "clause"),
    [
        (WrongConjugate(), "Fenchel-Young"),
        (WrongProx(), "prox must minimise"),
        (WrongSubgradientAtKink(), "at a kink the interval must reach"),
        (WrongCurvature(), "curvature must be the slope of the derivative"),
        (WrongFacts(), "facts.at_zero"),
        (hinge_with(slopes=(-0.5, 0.0)), "facts.slopes|outside facts.slopes"),
        (hinge_with(slopes=(-2.0, 0.0)), "facts"),
        (hinge_with(minimum=-1.0), "facts.minimum must be the infimum"),
        (hinge_with(minimum=0.5), "facts.minimum must be the infimum"),
        (hinge_with(surrogate_only=True), "facts.surrogate_only"),
        (hinge_with(kinks=(), breakpoints=()), "facts.kinks must list"),
        (hinge_with(kinks=(1.0, 2.0), breakpoints=(1.0, 2.0)), "facts.kinks must be points"),
        (hinge_with(breakpoints=()), "facts.breakpoints must include"),
        (hinge_with(smoothness=10.0), "facts.smoothness|one derivative"),
        (hinge_with(quadratic=(1.0, 0.5)), "facts.quadratic"),
        (WrongExpression(), "expression must equal the value"),
        (NotConvex(), "must be convex"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_contract_catches(atom, clause):
    with pytest.raises(AssertionError, match=clause):
        check_margin_function(atom)
