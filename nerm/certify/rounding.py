"""The slack of a certificate: bounds on rounding errors and on errors of hand-written atoms.

The computed score of row i has an error of at most e_i (`Hypothesis.score_errors`), with a probability close
to 1 (`nerm.model.blocks.sum_error`). The error of the objective is at most the mean over rows of the slope
of the loss times e_i. The dual bound D depends on the scores f_i of the optimum through (1/n) sum_i c_i f_i,
where c_i is the weighted dual of row i (`nerm.certify.certificate`). So the error of D is at most (1/n) sum_i
of the absolute terms of c_i times e_i. The rounding errors of the losses and conjugates themselves are added.

The optimum is not known, but e_i depends on its norm. This norm is estimated by the larger of the norms of w
and of q / mu. Here q = (1/n) sum_i c_i x_i, mu is the weight of the squared l2 norm, and q / mu are the
coefficients that correspond to the multipliers.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nerm.certify.conjugates import NEGLIGIBLE, square_weight
from nerm.certify.multipliers import Multipliers
from nerm.model.blocks import EPS, Block, scaled_weights, sum_error, term_weights, weigh
from nerm.model.problem import relaxed_problem
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.model.problem import Problem


class DualPoint(NamedTuple):
    """A lower bound D on the optimum, and the multipliers that give it.

    Attributes
    ----------
    bound : float
        D; -inf if there is no bound.
    multipliers : Multipliers or None
        The feasible multipliers that give D.
    reason : str
        Why there is no bound, or why it is loose; "" if there is nothing to report.
    q : (d,) array or None
        The vector at which the conjugate Omega* of the regularizer was evaluated. It equals
        (1/n) sum_i c_i x_i - A'z up to rounding, for linear constraints A w <= b with multipliers z.
    q_error : float
        The Euclidean norm of the difference between these two vectors; 0 in exact arithmetic.

    """

    bound: float
    multipliers: Multipliers | None
    reason: str = ""
    q: Floats | None = None
    q_error: float = 0.0


class Slack:
    """Bounds on the rounding errors in the certificate of one hypothesis.

    Attributes
    ----------
    problem, coef, intercept
        The problem and the hypothesis.
    level : float
        The summand of the scores that is equal for all rows (`LinearHypothesis.level`).
    mu : float
        The weight of the squared l2 norm (mu/2) ||w||^2.
    """

    def __init__(self, problem: Problem, coef: Floats, intercept: float) -> None:
        self.problem = problem
        self.coef = coef
        self.intercept = intercept
        self.level = problem.hypothesis.level(coef, intercept)
        self.mu = square_weight(problem.regularizers)

    @cached_property
    def scores(self) -> Floats:
        """The scores of the hypothesis, (n,)."""
        return self.problem.hypothesis.scores(self.coef, self.intercept)

    @cached_property
    def primal(self) -> float:
        """A bound on the rounding error of the objective."""
        problem, hypothesis = self.problem, self.problem.hypothesis
        errors = hypothesis.score_errors(hypothesis.extent(self.coef), self.level)
        errors = errors + hypothesis.level_error(self.coef, self.intercept)
        total = self.mu * hypothesis.norm_error(self.coef) / 2
        with np.errstate(over="ignore", invalid="ignore"):
            for factor, block in zip(term_weights(problem), problem.blocks, strict=True):
                if factor:
                    error = np.nan_to_num(self._value_errors(block, errors))
                    total += factor * weigh(block.weights, error) / problem.divisor
        if problem.is_kernel:
            return total
        others = (weight * omega.value(self.coef) for weight, omega in problem.regularizers if weight)
        return total + sum_error(len(self.coef)) * sum(others, start=0.0)

    def _value_errors(self, block: Block, errors: Floats) -> Floats:
        """Return a bound on the error of the block's atom in each row, (n,).

        Two errors are added: the effect of the `errors` of the scores, (n,), and the rounding error of the
        atom itself. The slopes next to the margins are computed only if the atom's largest slope does not
        bound the effect well enough.
        """
        margins = block.margins(self.scores)
        width = np.abs(block.targets) * errors + EPS * (np.abs(margins) + 2 * np.abs(block.offsets))
        values, steepest = np.abs(block.atom.value(margins)), np.asarray(max(map(abs, block.domain)))
        if not steepest * width.max(initial=0.0) <= 1e-4 * NEGLIGIBLE * values.mean():
            low = block.atom.subgradient(margins - width)[0]
            steepest = np.maximum(np.abs(low), np.abs(block.atom.subgradient(margins + width)[1]))
        return np.asarray(steepest * width + 4 * EPS * values)

    def of(self, point: DualPoint) -> float:
        """Return a bound on the rounding errors of the primal value and of the dual bound of `point`.

        The result is 0 if `point` has no dual bound.
        """
        at, problem, hypothesis = point.multipliers, self.problem, self.problem.hypothesis
        if at is None or point.q is None or not np.isfinite(point.bound):
            return 0.0
        if problem.limits:
            problem = relaxed_problem(problem, at.limits)
        optimum = point.q / self.mu if self.mu > 0 else 0.0 * point.q
        extent = max(hypothesis.extent(self.coef), hypothesis.extent(optimum))
        own = 0.0
        sizes = np.zeros(hypothesis.n)
        c = np.zeros(hypothesis.n)
        rows = zip(scaled_weights(problem, at.thetas), problem.blocks, at.rows, strict=True)
        for weights, block, row in rows:
            weighted = weights * block.targets * row
            sizes += np.abs(weighted)
            c += weighted
            stars = np.where(weights > 0, np.abs(block.atom.conjugate(-row)), 0.0)
            own += weigh(weights, stars + (2 + np.abs(block.offsets)) * np.abs(row))
        errors = hypothesis.score_errors(extent, self.level) + 2 * EPS * np.abs(self.scores)
        sums = weigh(sizes, errors) + 4 * EPS * own
        sums += abs(float(c.sum())) * abs(self.level) if problem.intercept else 0.0
        if problem.region is not None:
            bounds = np.abs(problem.region.bound) + np.abs(problem.region.matrix @ self.coef)
            sums += EPS * problem.divisor * float(np.abs(at.linear) @ bounds)
        size = max(float(np.linalg.norm(self.coef)), float(np.linalg.norm(optimum)))
        return self.primal + sums / problem.divisor + point.q_error * size


def rounding_of_sums(sample: Problem, coef: Floats, intercept: float, rows: int, values: float) -> float:
    """Estimate the rounding errors of a primal value and a dual bound on chunks.

    Parameters
    ----------
    sample : Problem
        A problem on a sample of the rows. The effect of rounding errors of the scores is estimated from it.
    coef, intercept
        The hypothesis.
    rows : int
        The number of all rows. The summation adds a relative error of `sum_error(rows)`.
    values : float
        A bound on the size of the sums.

    """
    return 2 * Slack(sample, coef, intercept).primal + sum_error(rows) * values


def custom_atom_error(
    problem: Problem, hypothesis: tuple[Floats, float], behind: Multipliers | None
) -> float:
    """Return how much errors in hand-written values and conjugates of atoms can change the gap.

    A user's own class may define `value` or `conjugate` itself, and these may be wrong. So they are compared
    with those that the formula gives (`MarginFunction.derived`), at the margins of the hypothesis and at the
    multipliers `behind` the dual bound. The result is 0 if `behind` is None.
    """
    by_hand = [j for j, block in enumerate(problem.blocks) if block.atom.by_hand]
    if not by_hand or behind is None:
        return 0.0
    relaxed = relaxed_problem(problem, behind.limits) if problem.limits else problem
    scores, weights = problem.hypothesis.scores(*hypothesis), scaled_weights(relaxed, behind.thetas)
    total = 0.0
    for j in by_hand:
        block = problem.blocks[j]
        counted = term_weights(problem)[j] * block.weights > 0
        margins = block.margins(scores)[counted]
        apart = np.abs(block.atom.value(margins) - block.atom.derived.jet(margins).value)
        total += term_weights(problem)[j] * weigh(block.weights[counted], apart)
        u = -behind.rows[j]
        with np.errstate(invalid="ignore"):
            deficit = np.nan_to_num(block.atom.derived.conjugate(u) - block.atom.conjugate(u))
        total += weigh(weights[j], np.maximum(deficit, 0.0))
    return total / problem.divisor
