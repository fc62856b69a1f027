"""l1 and elastic net through the engine: `|w_j|` is a margin function of one more row, e_j.

::

    (1/n) sum_i s_i phi(y_i f_i) + ... + mu_1 ||w||_1 + (mu/2) ||w||^2

is the engine's own problem with d more rows e_j and the loss `|m|` = max over u in [-1, 1] of m u on them. These rows
must not see the intercept, so it becomes a column of the data, long enough (REACH) for its share of the squared norm to
vanish. Pure l1 has no squared norm; one is lent that changes the objective by less than the accuracy. Either loan can
only loosen the certificate, which is computed for the problem as it was stated.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.atoms.l1 import L1
from nerm.atoms.squared_l2 import SquaredL2
from nerm.errors import UnknownNameError
from nerm.multipliers import Multipliers
from nerm.problem import Problem
from nerm.solution import Answer
from nerm.solvers.base import OwnSolver
from nerm.solvers.interior_point import LARGEST_SYSTEM, is_known, margin, multipliers_of

REACH = 1e3


@dataclass(frozen=True)
class L1Engine(OwnSolver):
    """The interior-point engine on a linear problem with an l1 part."""

    name: str = "l1"

    def needs(self) -> str:
        """One phrase: what a problem must be like."""
        return (
            "a linear problem with l1 or elastic net, hinge-like, logistic or exponential atoms, "
            f"and at most {LARGEST_SYSTEM} columns"
        )

    def obstacle(self, problem: Problem) -> str | None:
        """Name the first thing in the way."""
        if problem.is_kernel:
            return "a kernel"
        for _, omega in problem.regularizers:
            if not all(isinstance(part, L1 | SquaredL2) for _, part in omega.parts()):
                return repr(omega)
        if not _weights(problem)[0] > 0:
            return "no l1 part of positive weight"
        for block in problem.blocks:
            if not is_known(block.atom):
                return repr(block.atom)
        return f"{problem.hypothesis.size} columns" if problem.hypothesis.size > LARGEST_SYSTEM else None

    def answer(self, problem: Problem, accuracy: float, options: dict[str, Any]) -> Answer:
        """Add the rows, solve, and take them away again."""
        from nerm.engine import solve

        for option in options:
            raise UnknownNameError("an option of 'l1'", option, ["(it has none)"])
        started = time.perf_counter()
        model = _extended(problem, accuracy)
        built = time.perf_counter()
        result = solve(model, 0.3 * accuracy, merge=False)
        n, d = problem.hypothesis.n, problem.hypothesis.size
        return Answer(
            coef=result.coef[:d],
            intercept=float(REACH * result.coef[d]) if problem.intercept else 0.0,
            multipliers=Multipliers(
                np.delete(multipliers_of(result).rows[:, :n], len(result.alpha) - 1, 0), result.theta
            ),
            claim="converged" if result.converged else "stopped early",
            iterations=result.iterations,
            build_seconds=built - started,
            solve_seconds=time.perf_counter() - built,
        )

    def accuracies(self, tol: float) -> tuple[float, ...]:
        """Return a second, finer accuracy as well: the loans are estimates."""
        return tol, 1e-2 * tol


def _weights(problem: Problem) -> tuple[float, float]:
    """Return the total weights of ||w||_1 and of 1/2 ||w||^2."""
    parts = [(weight * share, atom) for weight, omega in problem.regularizers for share, atom in omega.parts()]
    return tuple(sum(w for w, atom in parts if isinstance(atom, kind)) for kind in (L1, SquaredL2))  # type: ignore[return-value]


def _extended(problem: Problem, accuracy: float) -> Any:
    """Return the engine's model with the rows e_j below the data and the intercept as a last column."""
    from nerm.engine import LinearModel, LossTerm, NeutralityTerm, QuadraticConjugate

    n, d = problem.hypothesis.n, problem.hypothesis.size
    l1, mu = _weights(problem)
    # ||w||_2 <= ||w||_1 <= P(0) / mu_1 at the optimum, so this much costs at most the accuracy
    lent = 0.1 * accuracy * l1**2 / max(problem.value_at_zero(), np.finfo(float).tiny)
    rows = n + d
    up = rows / problem.divisor  # the engine divides by all rows

    def below(values: np.ndarray, fill: float) -> np.ndarray:
        return np.concatenate([values, np.full(d, fill)])

    pairs = list(zip(problem.factors, problem.blocks, strict=True))
    losses = [LossTerm(margin(b.atom), below(up * f * b.weights, 0.0)) for f, b in pairs if b.side == 0]
    losses.append(LossTerm(QuadraticConjugate(0.0, 0.0, -1.0, 1.0), below(np.zeros(n), rows * l1)))
    return LinearModel(
        X=_with_rows(problem),
        y=below(problem.blocks[0].targets, 1.0),
        losses=tuple(losses),
        mu=max(mu, lent),
        neutralities=tuple(
            NeutralityTerm(margin(b.atom), f, below(b.targets, 0.0), below(up * b.weights, 0.0))
            for f, b in pairs
            if b.side == 1
        ),
        intercept=False,
    )


def _with_rows(problem: Problem) -> Any:
    """Return [[X, REACH], [I, 0]], sparse if X is; the last column is absent without an intercept."""
    X = problem.hypothesis.X
    n, d = X.shape
    if sp.issparse(X):
        wide = sp.hstack([X, sp.csr_matrix(np.full((n, 1), REACH))]) if problem.intercept else X
        return sp.csr_matrix(sp.vstack([wide, sp.eye(d, wide.shape[1])]))
    column = np.full((n, int(problem.intercept)), REACH)
    return np.vstack([np.hstack([X, column]), np.eye(d, d + int(problem.intercept))])


SOLVERS = (L1Engine(),)
