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

from nerm.atoms.margin import MarginFunction
from nerm.hypothesis import Kernelized
from nerm.multipliers import Multipliers
from nerm.problem import Problem
from nerm.recovery import multipliers_from_forces


@dataclass(frozen=True, eq=False)
class Model:
    """A cvxpy problem together with the pieces by which it is steered and read."""

    problem: cp.Problem
    coef: cp.Variable
    intercept: cp.Variable | None
    tie: cp.Constraint
    sides: tuple[tuple[cp.Constraint, cp.Constraint], ...]
    risk_weights: tuple[cp.Parameter, ...]
    regularizer_weights: tuple[cp.Parameter, ...]
    neutrality_weights: tuple[cp.Parameter, ...]
    recover: np.ndarray | None

    def set_weights(self, problem: Problem) -> None:
        """Take the weights of a problem with the same terms and data."""
        for parameter, risk in zip(self.risk_weights, problem.risks, strict=True):
            parameter.value = risk.weight
        for parameter, (weight, _) in zip(self.regularizer_weights, problem.regularizers, strict=True):
            parameter.value = weight
        for parameter, term in zip(self.neutrality_weights, problem.neutralities, strict=True):
            parameter.value = term.weight

    def hypothesis(self) -> tuple[np.ndarray, float] | None:
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
        thetas = [_share(plus.dual_value, minus.dual_value) for plus, minus in self.sides]
        # cvxpy's dual of f == X w + b is -(1/n) times the derivative of the separable part: c / n.
        return multipliers_from_forces(problem, problem.n * np.asarray(forces, dtype=float).ravel(), np.array(thetas))


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
    f = cp.Variable(problem.n, name="scores")
    tie = f == (X @ w if b is None else X @ w + b)

    objective, constraints, sides = [], [tie], []
    risk_weights = tuple(cp.Parameter(nonneg=True, name=f"risk_{i}") for i in range(len(problem.risks)))
    for parameter, risk in zip(risk_weights, problem.risks, strict=True):
        objective.append(parameter * _mean(risk.sample_weight, risk.loss, risk.targets, f))

    regularizer_weights = tuple(
        cp.Parameter(nonneg=True, name=f"regularizer_{i}") for i in range(len(problem.regularizers))
    )
    for parameter, (_, omega) in zip(regularizer_weights, problem.regularizers, strict=True):
        objective.append(parameter * omega.expression(w))

    neutrality_weights = tuple(cp.Parameter(nonneg=True, name=f"eta_{k}") for k in range(len(problem.neutralities)))
    for k, (parameter, term) in enumerate(zip(neutrality_weights, problem.neutralities, strict=True)):
        larger = cp.Variable(name=f"larger_{k}")
        plus = _mean(term.sample_weight, term.surrogate, term.viewpoint, f) <= larger
        minus = _mean(term.sample_weight, term.surrogate, -term.viewpoint, f) <= larger
        objective.append(parameter * larger)
        constraints += [plus, minus]
        sides.append((plus, minus))

    model = Model(
        problem=cp.Problem(cp.Minimize(cp.sum(objective)), constraints),
        coef=w,
        intercept=b,
        tie=tie,
        sides=tuple(sides),
        risk_weights=risk_weights,
        regularizer_weights=regularizer_weights,
        neutrality_weights=neutrality_weights,
        recover=recover,
    )
    model.set_weights(problem)
    return model


def _features(problem: Problem) -> tuple[Any, np.ndarray | None]:
    """Return the matrix X of the model, and for kernels the map from its w back to kernel coefficients.

    With K = L L', f = K c and c' K c become f = L w and ||w||^2: a kernel problem is a linear one on L.
    """
    if isinstance(problem.hypothesis, Kernelized):
        return problem.hypothesis.factor
    return problem.hypothesis.X, None


def _mean(weights: np.ndarray, atom: MarginFunction, targets: np.ndarray, f: cp.Variable) -> cp.Expression:
    """Return (1/n) sum_i weights_i atom(targets_i f_i); rows of weight 0 do not enter."""
    n = len(weights)
    rows = np.flatnonzero(weights)
    if len(rows) < n:
        weights, targets, f = weights[rows], targets[rows], f[rows]
    return (weights / n) @ atom.expression(cp.multiply(targets, f))
