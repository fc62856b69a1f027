"""What comes back from a solver: a hypothesis, its certificate, and the status that the certificate grants."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from nerm.certificate import Certificate
from nerm.multipliers import Multipliers
from nerm.problem import ObjectiveValue, Problem

if TYPE_CHECKING:
    from nerm.bounds import FitFacts


class Status(StrEnum):
    """Whether the answer can be trusted; `status.sentence` says it in words.

    >>> Status.OPTIMAL == "optimal"
    True
    >>> Status.INACCURATE.sentence
    'The solver returned a hypothesis whose certified relative gap exceeds the tolerance.'
    """

    OPTIMAL = "optimal"
    INACCURATE = "inaccurate"
    FAILED = "failed"

    @property
    def sentence(self) -> str:
        """What this status means."""
        return {
            "optimal": "nerm certified the relative duality gap within the tolerance.",
            "inaccurate": "The solver returned a hypothesis whose certified relative gap exceeds the tolerance.",
            "failed": "The solver returned no usable hypothesis; the zero hypothesis stands in its place.",
        }[self.value]


@dataclass(frozen=True)
class Stats:
    """Who solved, how, and how long it took."""

    solver: str
    version: str = ""
    iterations: int | None = None
    build_seconds: float = 0.0
    solve_seconds: float = 0.0
    certify_seconds: float = 0.0
    claim: str = ""
    reason: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """A hypothesis with its objective, multipliers and certificate.

    coef, intercept
        (d,) and b of f = X w + b, or (n,) and b of f = K c + b; coef is read-only.
    objective
        The value in total and by term, at (coef, intercept).
    multipliers
        `nerm.Multipliers` behind the certificate's bound; None where no bound was found.
    certificate, tol, status
        Primal value and lower bound, recomputed by nerm; the status is optimal iff certificate.relative_gap <= tol.
    stats
        Solver, version, iterations, seconds, and the solver's own claim, which grants nothing.

    >>> import nerm
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], ["no", "no", "yes", "yes"], [1, -1, 1, -1]
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    >>> solution = objective.on(X, y, viewpoint=v).solve()
    >>> str(solution.status), solution.coef.round(3).tolist(), round(solution.objective.total, 4)
    ('optimal', [-0.5], 1.3125)
    >>> solution.certificate.dual <= 1.3125 <= solution.certificate.primal + 1e-9
    True
    >>> solution.predict([[3.0], [-3.0]]).tolist()
    ['no', 'yes']
    """

    problem: Problem
    status: Status
    coef: np.ndarray
    intercept: float
    objective: ObjectiveValue
    multipliers: Multipliers | None
    certificate: Certificate
    stats: Stats
    tol: float

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) for new rows, (m,).

        X
            (m, d), dense or sparse; with a precomputed kernel (m, n), the values k(x_new, x_i).
        """
        return self.problem.hypothesis.decision_function(X, self.coef, self.intercept)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of new rows, (m,): the larger class iff f(x) > 0."""
        return self.problem.classes[(self.decision_function(X) > 0).astype(int)]

    def fit_facts(self, to: str | None = None) -> FitFacts:
        """Return what `nerm.bounds.guarantee` needs to know of this solution, about one viewpoint."""
        from nerm.bounds.facts import facts_of

        return facts_of(self, to)

    def save(self, path: Any) -> None:
        """Write the solution with its problem to one file, without pickle; `nerm.load(path)` reads it back."""
        from nerm.saving import save

        save(self, path)

    def __repr__(self) -> str:
        iterations = "" if self.stats.iterations is None else f", {self.stats.iterations} iterations"
        return "\n".join(
            [
                f"{self.status.value} by {self.stats.solver} in {self.stats.solve_seconds:.3g} s{iterations}",
                repr(self.objective),
                f"certificate: {self.certificate} (tolerance {self.tol:g})",
            ]
        )
