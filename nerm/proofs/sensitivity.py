"""Derivatives of a solution, from its optimality conditions linearised at the active kinks.

Let P be the objective, z = (w, b) and F_i = (x_i, 1), so that row i has the score F_i z. A row is *active* if
it is at a kink of one of its blocks and its multiplier gamma_i is strictly inside its interval. At all other
rows the blocks must be smooth. If a parameter changes by dp, the active rows (F_A) stay at their kinks,
C+ = C- still holds for the terms with theta in (0, 1), and the gradient stays zero::

    H dz + F_A' dgamma + G dtheta = -g dp,    F_A dz = s dp,    G' dz = -r dp

H is the Hessian of P without the active rows. G has the gradients of eta (C+ - C-). g and r are the
derivatives of the gradient of P and of eta (C+ - C-) by the parameter. s is the derivative of the scores at
which the active rows are at their kinks: 1 for row i if the parameter is y_i of a residual y_i - f_i, else 0.
A coefficient that the l1 norm keeps at 0 adds the equation dw_j = 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nerm.atoms.regularizer import L1, Regularizer, SquaredL2
from nerm.certify.conjugates import parts_of, square_weight
from nerm.certify.multipliers import Multipliers
from nerm.errors import Degenerate, InvalidInputError, UnsupportedProblemError
from nerm.model.blocks import EPS, scaled_weights, shares, term_weights
from nerm.model.expressions import Risk
from nerm.proofs.system import Coordinates, System, two_sides
from nerm.typing import Floats
from nerm.validation import check_known

if TYPE_CHECKING:
    from nerm.certify.solution import Solution
    from nerm.model.problem import Problem

PARAMETERS = ("eta", "lam", "sample_weight", "y")


class Linearization:
    """The optimality conditions of a problem, linearised at a hypothesis with multipliers.

    `width` is the accuracy of the hypothesis. A margin within `width` of a kink may be at the kink, and a
    multiplier within `width` of an end of its interval (relative to the length) may be at the end. If both
    hold, the row is `weak`: it is not known on which side of the kink it is.
    """

    def __init__(
        self, problem: Problem, coef: Floats, intercept: float, at: Multipliers, width: float
    ) -> None:
        self.problem, self.at, self.width = problem, at, width
        self.scores = problem.hypothesis.scores(coef, intercept)
        self.space = Coordinates(problem)
        self.w = self.space.inside(coef)
        self.weights = scaled_weights(problem, at.thetas)
        self.active, self.weak = np.zeros(problem.n, dtype=bool), np.zeros(problem.n, dtype=bool)
        self.slopes = -at.rows.copy()
        self.kinked = np.zeros(at.rows.shape, dtype=bool)
        self.density = np.zeros(problem.n)
        self.residual_density = np.zeros(problem.n)
        for j, (block, weights) in enumerate(zip(problem.blocks, self.weights, strict=True)):
            self._classify(j, block, weights)
        self.density[self.active] = 0.0
        parts = zip(self.weights, problem.blocks, self.slopes, strict=True)
        self.gradients = [w * block.targets * slope for w, block, slope in parts]
        self.score_gradient = sum(self.gradients)
        self._ties()
        self._regularize()

    def _classify(self, j: int, block: Any, weights: Floats) -> None:
        """Find the rows of block j that are at a kink.

        Set the slopes of the block in all rows, and the curvatures in the other rows.
        """
        counted = weights * block.targets != 0
        margins, breaks = block.margins(self.scores), np.array(block.atom.facts.breakpoints)
        at = np.zeros(len(margins), dtype=bool)
        if len(breaks):
            near = np.clip(np.searchsorted(0.5 * (breaks[1:] + breaks[:-1]), margins), 0, len(breaks) - 1)
            place = breaks[near]
            low, high = (ends[near] for ends in block.atom.subgradient(breaks))
            distance = np.abs(margins - place) / (1 + np.abs(place))
            kink = high - low > self.width * (1 + np.abs(low))  # else the curvature jumps, or is infinite
            inside = np.minimum(self.slopes[j] - low, high - self.slopes[j])
            inside = np.divide(inside, high - low, where=kink, out=0.0 * inside)
            at = counted & kink & (inside >= distance)
            self.weak |= counted & (np.maximum(distance, inside) <= self.width)
            close = (distance <= self.width) & ~at & kink
            right = np.where(self.slopes[j] - low > high - self.slopes[j], 1.0, -1.0)
            moved = place + right * np.maximum(np.abs(margins - place), 4 * EPS * (1 + np.abs(place)))
            margins = np.where(close, moved, margins)
        low, high = block.atom.subgradient(margins)
        self.slopes[j] = np.where(at, self.slopes[j], 0.5 * (low + high))
        self.kinked[j] = at
        self.active |= at
        curvature = np.where(at | ~counted, 0.0, block.atom.derived.jet(margins, "right").curvature)
        self.density += weights * block.targets**2 * curvature
        if block.atom.of_residual:
            self.residual_density += weights * curvature

    def _ties(self) -> None:
        """Find the two-sided terms with C+ = C- and theta in (0, 1), and the gradients of eta (C+ - C-)."""
        blocks, etas = self.problem.blocks, term_weights(self.problem)
        plus, inside, apart = two_sides(self.problem, self.scores, self.at.thetas)
        self.tied = inside > apart
        self.weak_tie = (inside >= 0) & (np.maximum(inside, apart) <= self.width)
        self.differences = np.zeros((len(plus), self.problem.n))  # by the scores
        self.tie_gradients = np.zeros((len(plus), self.space.size))
        for k, j in enumerate(plus):
            part = [blocks[i].weights * blocks[i].targets * self.slopes[i] for i in (j, j + 1)]
            self.differences[k] = etas[j] * (part[0] - part[1])
            self.tie_gradients[k] = self.adjoint(np.where(self.active, 0.0, self.differences[k]))

    def _regularize(self) -> None:
        """Find the gradient and the curvature of Omega, and the coefficients that the l1 norm keeps at 0."""
        parts = parts_of(self.problem.regularizers)
        if not all(isinstance(atom, SquaredL2 | L1) for _, atom in parts):
            must = "derivatives need SquaredL2, L1 or ElasticNet as regularizer"
            raise UnsupportedProblemError(must, repr(self.problem.objective), "Use one of them")
        self.mu = square_weight(parts)
        share, d = sum(weight for weight, atom in parts if isinstance(atom, L1)), len(self.w)
        rest = np.abs(self.adjoint(self.score_gradient)[:d] + self.mu * self.w)
        inside = 1 - rest / share if share else np.full(d, -1.0)
        self.held = inside >= np.abs(self.w)
        self.weak_coef = np.maximum(inside, np.abs(self.w)) <= self.width
        self.gradient = sum((weight * self.slope(atom) for weight, atom in parts), start=np.zeros(d))

    def slope(self, omega: Regularizer) -> Floats:
        """Return the gradient of a regularizer, (d,); 0 for the coefficients that are kept at 0."""
        slopes = [
            (share, self.w if isinstance(atom, SquaredL2) else np.sign(self.w))
            for share, atom in omega.parts(len(self.w))
        ]
        return np.where(self.held, 0.0, sum((share * one for share, one in slopes), start=0.0 * self.w))

    def adjoint(self, c: Floats) -> Floats:
        """Return (1/n) sum_i c_i F_i, (size,)."""
        return self.space.adjoint(c) / self.problem.divisor

    @cached_property
    def system(self) -> System:
        """The linear system of the module docstring, H dz + A' dm = -g and A dz = s.

        The rows of A are, in this order, the active rows, the coefficients that the l1 norm keeps at 0, and
        the ties C+ = C-.
        """
        H = self.space.hessian(self.density / self.problem.divisor, self.mu)
        held = np.eye(self.space.size)[: len(self.w)][self.held]
        return System(H, np.vstack([self.space.rows(self.active), held, self.tie_gradients[self.tied]]))

    def solve(self, g: Floats, r: Floats, s: Any = 0.0) -> tuple[Floats, Floats, float]:
        """Call `System.solve` for g, (size, k), r, (ties, k), and s, (active rows, k) or 0."""
        given = np.zeros((len(self.system.A), g.shape[1]))
        given[: int(self.active.sum())], given[len(given) - len(r) :] = s, -r
        return self.system.solve(g, given)

    def moved_by_y(self) -> tuple[Floats, Floats]:
        """Return r and s for a change of each y_i by 1, (ties, n) and (active rows, n).

        Raise `Degenerate` if a row is weak, or at a kink of its residual and of another block.
        """
        residual = np.array([block.atom.of_residual for block in self.problem.blocks])
        moved = self.kinked[residual].any(axis=0)
        if (self.weak & ~self.active | moved & self.kinked[~residual].any(axis=0)).any():
            raise Degenerate("a change of y moves a row away from its kink")
        active = np.flatnonzero(self.active)
        s = np.zeros((len(active), len(moved)))
        s[np.arange(len(active)), active] = moved[active]
        return self.differences[self.tied] / self.problem.divisor * moved, s

    def check(self, dz: Floats, change: Floats) -> None:
        """Raise `Degenerate` if the derivative (dz, change) holds in one direction only.

        This is so if a weak row, coefficient or tie changes its state. A weak row is taken as at its kink or
        not, a weak coefficient as 0 or not, a weak tie as C+ = C- or not. In the first state it is an
        equation of the system, and changes its state if its multiplier changes (`change`). In the second
        state it does so if dz changes its value.
        """
        weak, lengths = np.flatnonzero(self.weak & ~self.active), self.system.lengths
        axes = np.eye(self.space.size)[: len(self.w)][self.weak_coef & ~self.held]
        moves = np.vstack([self.space.rows(weak), axes, self.tie_gradients[self.weak_tie & ~self.tied]])
        moving = np.any(np.abs(moves @ dz) > 1e-7 * (np.abs(moves) @ np.abs(dz)), axis=1)
        inside = np.concatenate([self.weak[self.active], self.weak_coef[self.held], self.weak_tie[self.tied]])
        size = np.abs(lengths * change)
        leaving = inside & (size > 1e-7 * size.max(initial=0.0)).any(axis=1)
        if moving.any() or leaving.any():
            rows = [*weak[moving[: len(weak)]], *np.flatnonzero(self.active)[leaving[: self.active.sum()]]]
            what = f"row {rows[0]} is" if rows else "a coefficient, or C+ against C-, is"
            raise Degenerate(f"{what} at a kink, and its multiplier is at an end of its interval")


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """The derivative of a solution by one parameter, from `Solution.sensitivity`.

    For "sample_weight" and "y" every array has a last axis of length n: the influence of each row. The
    property `scores` is the derivative of the training scores.

    Attributes
    ----------
    parameter : {"eta", "lam", "sample_weight", "y"}
        eta is the sum of the neutrality weights, lam the sum of the regularization weights.
    coef, intercept : arrays
        The derivatives of w (or of the kernel coefficients) and of b.
    terms : array
        The derivative of the value of each term of the objective, without its weight.
    residual : float
        The residual of the linear system, relative to its right-hand side.

    With the rows x = 1, y = 1 and x = -1, y = -1, the objective is (1 - w)^2 + lam/2 w^2, and its optimum is
    w = 2 / (2 + lam):

    >>> import nerm
    >>> objective = nerm.Risk(nerm.Squared()) + 2.0 * nerm.SquaredL2()
    >>> solution = objective.on([[1.0], [-1.0]], [1, -1], intercept=False).solve(tol=1e-10)
    >>> solution.sensitivity("lam").coef.round(6).tolist()  # -2 / (2 + lam)^2
    [-0.125]

    """

    parameter: str
    coef: Floats
    intercept: Floats
    terms: Floats
    residual: float
    features: Any = field(repr=False)
    change: Floats = field(repr=False)

    @property
    def scores(self) -> Floats:
        """The derivative of the training scores, (n,), or (n, n) for "sample_weight" and "y"."""
        d = self.features.shape[1]
        return np.asarray(self.features @ self.change[:d] + self.change[d:].sum(axis=0))


def sensitivity(solution: Solution, parameter: str) -> Sensitivity:
    """Return the derivative of a solution; `Solution.sensitivity` explains the parameters."""
    check_known(parameter, "'parameter'", PARAMETERS)
    problem, at = solution.problem, solution.multipliers
    if at is None or not problem.is_convex or problem.objective.constraints:
        must = "derivatives need a certified solution of a convex problem without constraints"
        raise UnsupportedProblemError(must, repr(problem.objective), "Solve such a problem first")
    if parameter == "y" and not problem.objective.is_regression:
        do = 'Ask for "sample_weight" to see the influence of rows'
        raise InvalidInputError("a derivative by y needs a risk of residuals", repr(problem.objective), do)
    width = max(float(np.sqrt(max(solution.certificate.relative_gap, 0.0))), 1e-7)
    system = Linearization(problem, solution.coef, solution.intercept + solution.threshold, at, width)
    n, d, blocks = problem.n, len(system.w), problem.blocks
    kinds = [problem.objective.terms[block.term].term.kind for block in blocks]
    total = {"eta": problem.etas.sum(), "lam": sum(weight for weight, _ in problem.regularizers)}
    if not total.get(parameter, 1.0) > 0:
        must = f"a derivative by {parameter} needs a positive weight"
        raise InvalidInputError(must, "0", f"Solve at a small {parameter} instead")
    own = np.zeros((len(problem.objective.terms), 1))  # the derivatives at a fixed hypothesis
    r: Floats = np.zeros((int(system.tied.sum()), 1))
    s: Any = 0.0
    if parameter == "lam":
        g = np.append(system.gradient, np.zeros(int(problem.intercept)))[:, None] / total["lam"]
    elif parameter == "eta":
        neutral = sum(
            part for part, kind in zip(system.gradients, kinds, strict=True) if kind == "neutrality"
        )
        g = system.adjoint(np.where(system.active, 0.0, neutral))[:, None] / total["eta"]
    else:
        slope, own, r = np.zeros(n), np.zeros((len(own), n)), np.zeros((len(r), n))
        for block, slopes in zip(blocks, system.slopes, strict=True):
            weighted = problem.objective.terms[block.term]
            if parameter == "y" and block.atom.of_residual:
                own[block.term] = block.weights * slopes / problem.divisor
            elif isinstance(weighted.term, Risk):
                costs = weighted.term.row_weights(problem.y, np.ones(n))
                slope += weighted.weight * costs * block.targets * slopes
                own[block.term] = costs * block.atom.value(block.margins(system.scores)) / problem.divisor
        if parameter == "y":
            slope = -system.residual_density
            r, s = system.moved_by_y()
        g = system.space.rows(slice(None)).T * np.where(system.active, 0.0, slope) / problem.divisor
    dz, change, residual = system.solve(g, r, s)
    system.check(dz, change)
    coef, intercept = system.space.outside(dz)
    terms = own.copy()
    for factor, block, slopes in zip(shares(blocks, at.thetas), blocks, system.slopes, strict=True):
        if factor:
            terms[block.term] += factor * system.adjoint(block.weights * block.targets * slopes) @ dz
    for k, weighted in enumerate(problem.objective.terms):
        if isinstance(weighted.term, Regularizer):
            terms[k] += system.slope(weighted.term) @ dz[:d]
    last = slice(None) if parameter in ("sample_weight", "y") else 0
    found = {"coef": coef, "intercept": intercept, "terms": terms, "change": dz}
    found = {name: np.asarray(one)[..., last] for name, one in found.items()}
    return Sensitivity(parameter, residual=residual, features=system.space.X, **found)
