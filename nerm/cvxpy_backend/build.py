"""Write any objective on any data as one cvxpy problem, and read its solution back.

The scores are a variable f with the constraint f == X w + b, for two reasons. First, cvxpy from 1.9.0 on
propagates intervals through expressions and turns inf - inf into 0. An atom of X w + b then leads to wrong
bounds of variables, and solvers that use such bounds return wrong "optimal" answers. Second, the dual
variable of the constraint holds the weighted dual variable c_i of every row, from which all multipliers
follow. All weights are cvxpy Parameters and the problem follows cvxpy's rules for parametrized programs
(DPP), so a path over eta is compiled once.
"""

from dataclasses import replace
from itertools import chain
from typing import Any

import cvxpy as cp
import numpy as np

from nerm.atoms.custom_regularizer import dual_number, dual_share
from nerm.atoms.regularizer import Regularizer
from nerm.certify.multipliers import Multipliers, multipliers_from_weighted_duals
from nerm.model.blocks import Block, by_side
from nerm.model.constraints import Polyhedron
from nerm.model.hypothesis import KernelHypothesis, far_offset
from nerm.model.problem import Problem, relaxed_problem
from nerm.typing import Floats, Ints


class Model:
    """The cvxpy model of a problem: minimise the weighted terms subject to f = X w + b and the constraints.

    With K = L L' and f = K c, a kernel problem is the linear problem f = L w, because c' K c = ||w||^2.

    Parameters
    ----------
    problem : Problem
        The problem.
    slack : bool
        Whether to minimise a common slack of the limits, C_k <= t_k + slack, instead of the objective.
    near : bool
        Whether to shift columns that are far from 0, which changes the model's intercept.
        `Model.hypothesis` undoes the shift.

    Attributes
    ----------
    problem : cvxpy.Problem
        The cvxpy problem.
    coef, intercept : cvxpy.Variable
        `coef` is w. `intercept` is b, or None if the problem has no intercept.
    tie : cvxpy.Constraint
        f == X w + b. Its dual variable holds the weighted dual variable of each row.
    weights : list of cvxpy.Parameter
        The weight of each term, in the order of the objective's terms.
    sides : list of pairs of cvxpy.Constraint
        C+ <= t and C- <= t of each two-sided neutrality term; then the same pair of each two-sided limit.
    limits : list of tuples of cvxpy.Constraint
        For each limit one constraint, or two if the limit is two-sided.
    linear : tuple of cvxpy.Constraint
        A w <= b and E w == e, if the problem has such constraints.
    recover : array or None
        For kernels, the matrix that maps w to kernel coefficients.
    offset : (d,) array
        The vector that was subtracted from each row of X.

    """

    def __init__(self, problem: Problem, *, slack: bool = False, near: bool = False) -> None:
        hypothesis = problem.hypothesis
        X: Any = hypothesis.X
        self.recover: Floats | None = None
        if isinstance(hypothesis, KernelHypothesis):
            X, self.recover = hypothesis.factor
        centred = near and problem.intercept and self.recover is None
        self.offset = far_offset(X) if centred else np.zeros(X.shape[1])
        X = X - self.offset if self.offset.any() else X
        self.coef = w = cp.Variable(X.shape[1], name="coef")
        self.intercept = b = cp.Variable(name="intercept") if problem.intercept else None
        f = cp.Variable(hypothesis.n, name="scores")
        self.tie = f == (X @ w if b is None else X @ w + b)
        means = by_side(problem.blocks, (_mean(block, f, problem.divisor) for block in problem.blocks))
        self.weights = [cp.Parameter(nonneg=True, name=name) for name in _names(problem)]
        self.sides: list[tuple[cp.Constraint, ...]] = []
        values = []
        for number, weighted in enumerate(problem.objective.terms):
            if isinstance(weighted.term, Regularizer):
                value = weighted.term.expression(w)
            elif (number, 0) in means:
                value = means[number, 0]
            else:
                value = cp.Variable(name=f"larger_{len(self.sides)}")
                self.sides.append((means[number, 1] <= value, means[number, -1] <= value))
            values.append(self.weights[number] * value)
        excess = cp.Variable(name="slack") if slack else 0.0
        self.limits = [
            tuple(mean <= limit.bound + excess for (term, _), mean in means.items() if term == number)
            for number, limit in enumerate(problem.limits, len(values))
        ]
        self.linear = () if problem.region is None else _linear_constraints(problem.region, w)
        constraints = [self.tie, *chain(*self.sides), *chain(*self.limits), *self.linear]
        self.problem = cp.Problem(cp.Minimize(excess if slack else cp.sum(values)), constraints)
        self.sides += [limit for limit in self.limits if len(limit) == 2]
        self.set_weights(problem)

    def set_weights(self, problem: Problem, scale: float = 1.0) -> None:
        """Set the Parameters to the weights of `problem`, multiplied by `scale` > 0.

        The problem must have the same terms and data as the model.
        """
        for parameter, weighted in zip(self.weights, problem.objective.terms, strict=True):
            parameter.value = scale * weighted.weight

    def hypothesis(self) -> tuple[Floats, float] | None:
        """Return (coef, intercept) of the solved model; None if a value is missing or not finite.

        The shift of the columns is undone, and for kernels `coef` holds the kernel coefficients.
        """
        w = np.atleast_1d(np.asarray(self.coef.value, dtype=float))  # None becomes nan
        b = np.asarray(0.0 if self.intercept is None else self.intercept.value, dtype=float).item()
        if not (np.isfinite(w).all() and np.isfinite(b)):
            return None
        if self.offset.any():
            return w, b - float(self.offset @ w)
        return (w if self.recover is None else self.recover @ w), b

    def multipliers(self, problem: Problem, scale: float = 1.0) -> Multipliers | None:
        """Compute the multipliers from the dual variables of the solved model; None if there are none.

        `scale` is the factor by which the weights were multiplied in `set_weights`.
        """
        duals = self.tie.dual_value
        if duals is None or not np.isfinite(duals).all():
            return None
        thetas = np.array([dual_share(plus, minus) for plus, minus in self.sides])
        sums = [sum(map(dual_number, limit)) for limit in self.limits]
        weights = np.array(sums) / scale
        # cvxpy's dual variable of f == X w + b is minus the derivative of the losses in f, which is c / n.
        c = problem.divisor * np.asarray(duals, dtype=float).ravel() / scale
        found = multipliers_from_weighted_duals(relaxed_problem(problem, weights), c, thetas)
        return replace(found, limits=weights, linear=self._linear(problem) / scale)

    def _linear(self, problem: Problem) -> Floats:
        """Return the dual variables of the linear constraints, in the order of `problem.region`.

        The array is empty if there are no linear constraints or no dual variables.
        """
        if problem.region is None or any(c.dual_value is None for c in self.linear):
            return np.zeros(0)
        z = np.zeros(len(problem.region.bound))
        for rows, constraint in zip(_rows_of(problem.region), self.linear, strict=True):
            z[rows] = np.nan_to_num(np.asarray(constraint.dual_value, dtype=float).ravel())
        return z


def _rows_of(region: Polyhedron) -> list[Ints]:
    """Return the indices of the inequalities, then those of the equations; empty arrays are left out."""
    return [rows for rows in (np.flatnonzero(~region.equal), np.flatnonzero(region.equal)) if len(rows)]


def _linear_constraints(region: Polyhedron, w: cp.Variable) -> tuple[cp.Constraint, ...]:
    """Return the cvxpy constraints A w <= b and E w == e; those without rows are left out."""
    return tuple(
        region.matrix[rows] @ w == region.bound[rows]
        if region.equal[rows[0]]
        else region.matrix[rows] @ w <= region.bound[rows]
        for rows in _rows_of(region)
    )


def _names(problem: Problem) -> list[str]:
    """Return a name for the weight of each term: its kind and a counter per kind, such as `eta_0`."""
    kinds = ["eta" if t.term.kind == "neutrality" else t.term.kind for t in problem.objective.terms]
    return [f"{kind}_{kinds[:i].count(kind)}" for i, kind in enumerate(kinds)]


def _mean(block: Block, f: cp.Variable, divisor: float) -> cp.Expression:
    """Return (1/n) sum_i weights_i atom(targets_i f_i - offsets_i), over rows of nonzero weight."""
    rows = np.flatnonzero(block.weights)
    part = slice(None) if len(rows) == len(block.weights) else rows
    scores = f if len(rows) == len(block.weights) else f[rows]
    margins = cp.multiply(block.targets[part], scores)
    margins = margins - block.offsets[part] if block.offsets.any() else margins
    return (block.weights[part] / divisor) @ block.atom.expression(margins)
