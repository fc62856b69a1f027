"""What a certificate must add to its gap: what rounding may hide, and what atoms of a user's own get wrong.

A score is wrong by at most e_i (`Hypothesis.score_errors`). So the objective is wrong by the losses' slopes
times e_i, and the bound, which is sum_i c_i f_i at the optimum's scores, by the parts of c_i times e_i;
besides both carry the rounding of their own summands. The optimum is taken to be as large as the hypothesis,
or as the multipliers say it is.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nerm.atoms import margin_functions, numeric
from nerm.atoms.custom import expressed
from nerm.atoms.regularizer import Norm
from nerm.atoms.squared_l2 import SquaredL2
from nerm.atoms.two_lines import TwoLines
from nerm.certify.conjugates import parts_of
from nerm.certify.multipliers import Multipliers
from nerm.model.blocks import scaled_weights, weigh
from nerm.rounding import EPS, unit
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.model.problem import Problem

SAMPLE = 500  # multipliers at which the conjugate of an atom of one's own is held against its expression


class DualPoint(NamedTuple):
    """A bound and what it rests on.

    Attributes
    ----------
    bound : float
        D, -inf if there is none.
    multipliers : Multipliers or None
        The feasible ones that give it.
    reason : str
        What stood in the way.
    q : array or None
        sum c x / n, as Omega* was taken of it.
    missed : float
        How far from that sum c x / n is in fact.
    within : array or None
        W, where the bound is one on hypotheses with `|w_j| <= W_j`, among which the optimum is.

    """

    bound: float
    multipliers: Multipliers | None
    reason: str = ""
    q: Floats | None = None
    missed: float = 0.0
    within: Floats | None = None


class Slack:
    """What rounding may hide when a hypothesis is judged."""

    def __init__(self, problem: Problem, coef: Floats, intercept: float) -> None:
        self.problem, self.coef, self.intercept = problem, coef, intercept
        self.level = problem.hypothesis.level(coef, intercept)
        self.mu = float(sum(weight for weight, omega in problem.regularizers if isinstance(omega, SquaredL2)))

    @cached_property
    def scores(self) -> Floats:
        """Those of the hypothesis."""
        return self.problem.hypothesis.scores(self.coef, self.intercept)

    @cached_property
    def primal(self) -> float:
        """What it may hide from the objective."""
        problem, hypothesis = self.problem, self.problem.hypothesis
        extent = hypothesis.extent(self.coef)
        scores = self.scores
        errors = hypothesis.score_errors(extent, self.level)
        total = self.mu * hypothesis.norm_error(self.coef) / 2
        with np.errstate(over="ignore", invalid="ignore"):
            for factor, block in zip(problem.factors, problem.blocks, strict=True):
                if factor:
                    margins, width = block.targets * scores, np.abs(block.targets) * errors
                    width = width + EPS * np.abs(margins)
                    low, high = (
                        block.atom.subgradient(margins - width)[0],
                        block.atom.subgradient(margins + width)[1],
                    )
                    hidden = np.maximum(np.abs(low), np.abs(high)) * width + 4 * EPS * np.abs(
                        block.atom.value(margins)
                    )
                    total += factor * weigh(block.weights, np.nan_to_num(hidden)) / problem.divisor
        others = (weight * omega.value(self.coef) for weight, omega in problem.regularizers if weight)
        return total + (0.0 if problem.is_kernel else unit(len(self.coef)) * sum(others, start=0.0))

    def of(self, point: DualPoint) -> float:
        """Return what it may hide from the objective and from this bound; 0 where there is no bound."""
        at, problem, hypothesis = point.multipliers, self.problem, self.problem.hypothesis
        if at is None or point.q is None or not np.isfinite(point.bound):
            return 0.0
        if problem.limits:
            problem = problem.relaxed(at.limits)
        optimum = (
            point.within if point.within is not None else point.q / self.mu if self.mu > 0 else 0.0 * point.q
        )
        extent = max(hypothesis.extent(self.coef), hypothesis.extent(optimum))
        own, parts, c = 0.0, np.zeros(hypothesis.n), np.zeros(hypothesis.n)
        for weights, block, row in zip(
            scaled_weights(problem, at.thetas), problem.blocks, at.rows, strict=True
        ):
            force = weights * block.targets * row
            parts, c = parts + np.abs(force), c + force
            own += weigh(
                weights, np.where(weights > 0, np.abs(block.atom.conjugate(-row)), 0.0) + 2 * np.abs(row)
            )
        errors = hypothesis.score_errors(extent, self.level) + 2 * EPS * np.abs(self.scores)
        sums = weigh(parts, errors) + 4 * EPS * own
        sums += abs(float(c.sum())) * abs(self.level) if problem.intercept else 0.0
        region = problem.region
        if region is not None:
            sums += (
                EPS
                * problem.divisor
                * float(np.abs(at.linear) @ (np.abs(region.bound) + np.abs(region.matrix @ self.coef)))
            )
        missed = point.missed * self.radius if point.missed else 0.0
        return self.primal + sums / problem.divisor + missed

    @cached_property
    def radius(self) -> float:
        """How large ||w|| can be where the objective is not above this one's; where nothing bounds it, as it is here.

        `||w|| <= ||(Omega°(e_1), ..., Omega°(e_d))|| Omega(w)` for a norm with dual norm Omega°.
        """
        coef, most = self.coef, float(self.problem.evaluate(self.coef, self.intercept))
        found = [np.sqrt(2 * most / self.mu)] if self.mu > 0 else []
        for weight, atom in parts_of(self.problem.regularizers):
            if isinstance(atom, Norm) and not atom.free(len(coef)).shape[1]:
                found.append(
                    most / weight * float(np.linalg.norm([atom.dual_norm(e) for e in np.eye(len(coef))]))
                )
        return max(min(found, default=0.0), float(np.linalg.norm(coef)))


def doubt(problem: Problem, hypothesis: tuple[Floats, float], behind: Multipliers | None) -> float:
    """Return by how much atoms of a user's own differ from their cvxpy expressions at the margins and multipliers.

    The expression is convex by cvxpy's rules; a value or a conjugate that was given is only known to agree
    with it at some points.
    """
    ours = {*margin_functions().values(), TwoLines}  # what the parts of a ramp and tangents are made of
    own = [j for j, block in enumerate(problem.blocks) if type(block.atom) not in ours]
    if not own or behind is None:
        return 0.0
    relaxed = problem.relaxed(behind.limits) if problem.limits else problem
    scores, weights = problem.hypothesis.scores(*hypothesis), scaled_weights(relaxed, behind.thetas)
    total = 0.0
    for j in own:
        block, margins = problem.blocks[j], problem.blocks[j].targets * scores
        counted = problem.factors[j] * block.weights > 0
        apart = np.abs(block.atom.value(margins[counted]) - expressed(block.atom, margins[counted]))
        total += problem.factors[j] * weigh(block.weights[counted], apart)
        u = np.unique(-behind.rows[j][weights[j] > 0])
        places = (
            np.unique(np.linspace(0, len(u) - 1, SAMPLE).astype(int)) if len(u) else np.zeros(0, dtype=int)
        )
        total += float(weights[j].sum()) * numeric.deficit(
            block.atom, partial(expressed, block.atom), u[places]
        )
    return total / problem.divisor
