"""The generic builder: any objective on any data as one cvxpy problem, and its answer read back.

The scores are a variable f tied by the equality f = X w + b. This keeps every atom's argument free of cvxpy's interval
propagation, which from 1.9.0 on turns inf - inf into 0, and with it come wrong bounds and wrong "optimal" answers from
solvers that take variable bounds; and the equality's dual is the force c_i of every sample, from which all
multipliers follow. All weights are Parameters and the problem is DPP: a path over eta compiles once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from nerm.atoms.regularizer import Regularizer
from nerm.blocks import Block
from nerm.hypothesis import KernelHypothesis
from nerm.multipliers import Multipliers
from nerm.objective import Risk
from nerm.problem import Problem
from nerm.recovery import multipliers_from_forces
from nerm.typing import Floats


@dataclass(frozen=True, eq=False)
class Model:
    """A cvxpy problem together with the pieces by which it is steered and read.

    Attributes
    ----------
    problem : cvxpy.Problem
    coef, intercept : cvxpy.Variable
        The intercept is None where there is none.
    tie : cvxpy.Constraint
        f == X w + b, whose dual holds the forces on the scores.
    weights : tuple of cvxpy.Parameter
        The weight of each term of the objective, in its order.
    sides : list of pairs of cvxpy.Constraint
        C+ <= t and C- <= t of each neutrality term.
    recover : array or None
        What turns the variable into kernel coefficients.

    """

    problem: cp.Problem
    coef: cp.Variable
    intercept: cp.Variable | None
    tie: cp.Constraint
    weights: tuple[cp.Parameter, ...]
    sides: list[tuple[cp.Constraint, cp.Constraint]]
    recover: Floats | None

    def set_weights(self, problem: Problem) -> None:
        """Take the weights of a problem with the same terms and data."""
        for parameter, weighted in zip(self.weights, problem.objective.terms, strict=True):
            parameter.value = weighted.weight

    def hypothesis(self) -> tuple[Floats, float] | None:
        """Return (coef, intercept) as they stand in the variables; None if the solver left nothing finite."""
        if self.coef.value is None or (self.intercept is not None and self.intercept.value is None):
            return None
        w = np.atleast_1d(np.asarray(self.coef.value, dtype=float))
        b = 0.0 if self.intercept is None else float(np.asarray(self.intercept.value).reshape(()))
        if not (np.isfinite(w).all() and np.isfinite(b)):
            return None
        return (w if self.recover is None else self.recover @ w), b

    def multipliers(self, problem: Problem) -> Multipliers | None:
        """Return the multipliers behind the duals of the solved model; None if the solver gave none."""
        forces = self.tie.dual_value
        if forces is None or not np.isfinite(forces).all():
            return None
        thetas = np.array([_share(plus.dual_value, minus.dual_value) for plus, minus in self.sides])
        # cvxpy's dual of f == X w + b is -(1/n) times the derivative of the separable part: c / n.
        return multipliers_from_forces(problem, problem.divisor * np.asarray(forces, dtype=float).ravel(), thetas)


def _share(plus: Any, minus: Any) -> float:
    """Return theta from the multipliers of C+ <= t and C- <= t; 1/2 where both vanish (eta = 0)."""
    if plus is None or minus is None:
        return 0.5
    a, b = max(0.0, float(np.asarray(plus).reshape(()))), max(0.0, float(np.asarray(minus).reshape(())))
    return a / (a + b) if a + b > 0 else 0.5


def build(problem: Problem) -> Model:
    """Return the cvxpy model: minimise sum of weighted terms subject to f = X w + b and C_k^+- <= t_k."""
    X, recover = _features(problem)
    w = cp.Variable(X.shape[1], name="coef")
    b = cp.Variable(name="intercept") if problem.intercept else None
    f = cp.Variable(problem.hypothesis.n, name="scores")
    tie = f == (X @ w if b is None else X @ w + b)
    means = {(block.term, block.side): _mean(block, f, problem.divisor) for block in problem.blocks}
    weights, values = [], []
    sides: list[tuple[cp.Constraint, cp.Constraint]] = []
    for number, (name, weighted) in enumerate(zip(_names(problem), problem.objective.terms, strict=True)):
        if isinstance(weighted.term, Regularizer):
            value = weighted.term.expression(w)
        elif (number, 0) in means:
            value = means[number, 0]
        else:
            value = cp.Variable(name=f"larger_{len(sides)}")
            sides.append((means[number, 1] <= value, means[number, -1] <= value))
        weights.append(cp.Parameter(nonneg=True, name=name))
        values.append(weights[-1] * value)
    constraints = [tie, *(side for pair in sides for side in pair)]
    model = Model(cp.Problem(cp.Minimize(cp.sum(values)), constraints), w, b, tie, tuple(weights), sides, recover)
    model.set_weights(problem)
    return model


def _names(problem: Problem) -> list[str]:
    """Return a name for the weight of each term: its kind and its number among those of its kind."""
    kinds = [
        "regularizer" if isinstance(t.term, Regularizer) else "risk" if isinstance(t.term, Risk) else "eta"
        for t in problem.objective.terms
    ]
    return [f"{kind}_{kinds[:i].count(kind)}" for i, kind in enumerate(kinds)]


def _features(problem: Problem) -> tuple[Any, Floats | None]:
    """Return the matrix X of the model, and for kernels the map from its w back to kernel coefficients.

    With K = L L', f = K c and c' K c become f = L w and ||w||^2: a kernel problem is a linear one on L.
    """
    if isinstance(problem.hypothesis, KernelHypothesis):
        return problem.hypothesis.factor
    return problem.hypothesis.X, None


def _mean(block: Block, f: cp.Variable, divisor: float) -> cp.Expression:
    """Return (1/n) sum_i weights_i atom(targets_i f_i); rows of weight 0 do not enter."""
    rows = np.flatnonzero(block.weights)
    part = slice(None) if len(rows) == len(block.weights) else rows
    scores = f if len(rows) == len(block.weights) else f[rows]
    return (block.weights[part] / divisor) @ block.atom.expression(cp.multiply(block.targets[part], scores))
