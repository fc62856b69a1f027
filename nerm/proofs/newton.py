"""One Newton step from a solution towards the optimum of a changed problem.

With the hypothesis z = (w, b), its scores f, and the multipliers u of the unchanged solution, let g be the
gradient of the changed objective at z with the multipliers u as slopes, and r the values eta (C+ - C-) of the
two-sided terms with theta in (0, 1). The step solves::

    H dz + G dtheta = -g,    G' dz = -r

H is that of the unchanged problem, which is computed once per solution, corrected for the rows whose weights
have changed. It has the mean curvature of every block between f - h and f + h, which is positive also near
kinks. Here h = sqrt(size / n) is about how much scores change if the rows are drawn again. The multipliers
change along the same secants: u + (u(f + h) - u(f - h)) / 2h * df. `nerm.certify` makes them feasible and
certifies z + dz with them, so the step can only make a bound loose, never wrong.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from nerm.certify.conjugates import MOST_OPERATIONS, parts_of, square_weight
from nerm.certify.multipliers import Multipliers, multipliers_at
from nerm.certify.solution import Solution
from nerm.errors import Degenerate
from nerm.model.blocks import term_weights, weighted_duals
from nerm.model.problem import Problem
from nerm.proofs.system import Coordinates, System, two_sides
from nerm.typing import Floats


class NewtonStep:
    """The Newton system at a solution of a linear problem; `towards` applies it to a changed problem."""

    def __init__(self, problem: Problem, coef: Floats, intercept: float, at: Multipliers) -> None:
        self.space, self.mu = Coordinates(problem), square_weight(problem.regularizers)
        h = float(np.sqrt(self.space.size / problem.n))
        scores = problem.hypothesis.scores(coef, intercept)
        down, up = (multipliers_at(problem.blocks, scores + way * h) for way in (-1, 1))
        self.rates = (up - down) / (2 * h)
        self.density = -weighted_duals(problem, self.rates, at.thetas)
        self.H = self.space.hessian(self.density, 0.0)
        plus, inside, apart = two_sides(problem, scores, at.thetas)
        self.tied = inside > apart  # theta in (0, 1), and C+ = C- up to the accuracy
        self.plus = plus[self.tied]

    def towards(
        self, problem: Problem, coef: Floats, intercept: float, at: Multipliers
    ) -> tuple[tuple[Floats, float], Multipliers, float]:
        """Return a hypothesis and multipliers for a changed problem, from the unchanged ones.

        `coef`, `intercept` and `at` are the unchanged hypothesis and multipliers. The problem may have added
        rows behind the others. The third result estimates the bound on the change of w that the unchanged
        ones give (`nerm.proofs.changes`). The estimate omits the part of this bound that is due to sum_i c_i.
        """
        hypothesis, space, old = problem.hypothesis, self.space, self.rates.shape[1]
        scores = hypothesis.scores(coef, intercept)

        def gradient(coef: Floats, c: Floats) -> Floats:
            """Return the gradient of (mu/2) ||w||^2 - (1/n) sum_i c_i f_i at z, (size,)."""
            c = c / problem.divisor
            w = self.mu * coef - hypothesis.adjoint(c) + space.offset * c.sum()
            return np.append(w, -c.sum() if problem.intercept else np.zeros(0))

        g = gradient(coef, weighted_duals(problem, at.rows, at.thetas))[:, None]
        G, r = np.zeros((len(self.plus), space.size)), np.zeros((len(self.plus), 1))
        for k, j in enumerate(self.plus):
            plus, minus = problem.blocks[j : j + 2]
            c = plus.weights * plus.targets * at.rows[j] - minus.weights * minus.targets * at.rows[j + 1]
            G[k] = gradient(np.zeros(len(coef)), c)
            r[k] = (plus.total(scores) - minus.total(scores)) / problem.divisor
        etas = term_weights(problem)[self.plus, None]
        rates = np.pad(self.rates, ((0, 0), (0, problem.n - old)))
        density, total = -weighted_duals(problem, rates, at.thetas), self.mu * problem.divisor
        other = np.flatnonzero(density[:old] != self.density)  # the rows whose weights have changed
        if 2 * len(other) > old:
            H = space.hessian(density[:old], total)
        else:
            H = self.H + space.hessian(density[other], total, other)
            H -= space.hessian(self.density[other], 0.0, other)
        dz, change, _ = System(H / problem.divisor, etas * G).solve(g, -etas * r)
        moved, level = space.outside(dz[:, 0])
        thetas = at.thetas.copy()
        thetas[self.tied] = np.clip(thetas[self.tied] + change[:, 0], 0.0, 1.0)
        new = coef + moved, intercept + float(level)
        change_of_scores = hypothesis.scores(*new) - scores
        domains = np.array([block.domain for block in problem.blocks])

        def multipliers(shift: float) -> tuple[Floats, float]:
            """Return the multipliers for another change of the scores, and the sum of their c_i."""
            rows = np.clip(at.rows + rates * (change_of_scores + shift), *domains.T[:, :, None])
            return rows, float(weighted_duals(problem, rows, thetas).sum())

        rows, excess = multipliers(0.0)
        if problem.intercept:  # mix them with others of the opposite excess, so that sum_i c_i = 0
            others, lack = multipliers(2 * excess / float(density.sum()))
            if excess * lack < 0:
                rows = (excess * others - lack * rows) / (excess - lack)
        unequal = etas[:, 0] * np.maximum(r[:, 0], 0.0) - at.thetas[self.tied] * (etas * r)[:, 0]
        half = float(np.linalg.norm(g[: space.X.shape[1]])) / (2 * self.mu)
        least = half + float(np.sqrt(half**2 + max(unequal.sum(), 0.0) / self.mu))
        return new, Multipliers(rows, thetas), least


_KNOWN: WeakKeyDictionary[Solution, NewtonStep] = WeakKeyDictionary()


def newton_step(solution: Solution) -> NewtonStep:
    """Return the Newton system at a solution; it is computed once and kept.

    Raise `Degenerate` if the regularizer is not the squared l2 norm alone, or if the system is too large.
    """
    if solution not in _KNOWN:
        problem, at = solution.problem, solution.multipliers
        parts, operations = parts_of(problem.regularizers), problem.n * problem.hypothesis.size**2
        if at is None or operations > MOST_OPERATIONS or len(parts) != 1 or not square_weight(parts):
            raise Degenerate("no Newton step: the problem is too large, or its regularizer has no curvature")
        _KNOWN[solution] = NewtonStep(problem, solution.coef, solution.intercept + solution.threshold, at)
    return _KNOWN[solution]
