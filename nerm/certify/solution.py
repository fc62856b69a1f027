"""What a solver answers, and what becomes of it: a solution, with the status that its certificate grants."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from nerm.certify.certificate import Certificate, best_certificate, infeasibility
from nerm.certify.multipliers import Multipliers
from nerm.certify.restoring import restored
from nerm.lazily import is_lazy, lazily
from nerm.model.objective import Neutrality, viewpoint_of
from nerm.model.problem import Problem
from nerm.model.value import ObjectiveValue
from nerm.typing import Array, Floats

if TYPE_CHECKING:
    from nerm.bounds import FitFacts

WORSE = "what the solver returned was worse than f = 0, which stands in its place"


@dataclass(frozen=True, eq=False)
class Answer:
    """A solver's word: a hypothesis (or None), multipliers if it has some, and its own claim, which grants nothing.

    Attributes
    ----------
    coef : (problem.hypothesis.size,) array or None
        w, or for a kernel one coefficient per row.
    intercept : float
        b.
    multipliers : Multipliers, optional
        With one row a block.
    inside : (coef, intercept), optional
        On a problem with limits, a hypothesis with room in all of them, where f = 0 is none.
    infeasible : bool
        Whether the multipliers are meant to show that no hypothesis meets all limits.
    claim : str
        What the solver says of itself.
    iterations : int, optional
        How many it took.
    build_seconds, solve_seconds : float
        How long it took.
    details : dict
        Whatever else the solver wants to say.
    timed_out : bool
        Whether it stopped because time was up.

    Here is a solver that lies, and what comes of it:

    >>> import numpy as np, nerm
    >>> from nerm.solvers import Answer, OwnSolver
    >>> class Liar(OwnSolver):
    ...     name = "liar"
    ...     def requirements(self): return "anything"
    ...     def why_unsupported(self, problem): return None
    ...     def answer(self, problem, accuracy, options):
    ...         return Answer(np.zeros(problem.hypothesis.size), 0.0, claim="optimal")
    >>> problem = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2()).on([[0.0], [1.0]], [-1, 1])
    >>> solution = problem.solve(Liar())
    >>> solution.stats.claim, str(solution.status)
    ('optimal', 'inaccurate')

    """

    coef: Floats | None
    intercept: float
    multipliers: Multipliers | None = None
    claim: str = ""
    iterations: int | None = None
    build_seconds: float = 0.0
    solve_seconds: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)
    inside: tuple[Floats, float] | None = None
    infeasible: bool = False
    timed_out: bool = False


class Status(StrEnum):
    """Whether the answer can be trusted; `status.sentence` says it in words.

    >>> Status.OPTIMAL == "optimal"
    True
    >>> Status.INACCURATE.sentence
    'The solver returned a hypothesis whose certified relative gap exceeds the tolerance.'
    """

    OPTIMAL = "optimal"
    STATIONARY = "stationary"
    INACCURATE = "inaccurate"
    INFEASIBLE = "infeasible"
    TIME_LIMIT = "time_limit"
    FAILED = "failed"

    @property
    def success(self) -> bool:
        """Whether it is what was asked for: an optimum, or a stationary point of what is not convex."""
        return self in (Status.OPTIMAL, Status.STATIONARY)

    @property
    def sentence(self) -> str:
        """What this status means."""
        return {
            "optimal": "nerm certified the relative duality gap within the tolerance.",
            "stationary": "The convex-concave procedure came to rest at a point that need not be optimal.",
            "inaccurate": "The solver returned a hypothesis whose certified relative gap exceeds the tolerance.",
            "infeasible": "nerm certified that no hypothesis satisfies all constraints; the nearest one is given.",
            "time_limit": "Time was up before nerm could certify the tolerance; the best hypothesis so far is given.",
            "failed": "The solver returned no usable hypothesis; the zero hypothesis stands in its place.",
        }[self.value]


@dataclass(frozen=True)
class Stats:
    """Who solved, how, and how long it took.

    ``claim`` is the solver's own word, ``reason`` why it was chosen, ``timed_out`` whether the time limit
    struck.
    """

    solver: str
    version: str = ""
    iterations: int | None = None
    build_seconds: float = 0.0
    solve_seconds: float = 0.0
    certify_seconds: float = 0.0
    claim: str = ""
    reason: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    timed_out: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """A hypothesis with its objective, multipliers and certificate.

    Attributes
    ----------
    problem : Problem
        What was solved.
    status : Status
        Optimal iff ``certificate.relative_gap <= tol``.
    coef : (d,) or (n,) array
        w of f = X w + b, or c of f = K c + b; read-only.
    intercept : float
        b; where columns are far from 0, with more digits than a float has (`intercept.rest`).
    objective : ObjectiveValue
        The value in total and by term, at (coef, intercept).
    multipliers : Multipliers or None
        Behind the certificate's bound, on the given rows; None where no bound was found.
    certificate : Certificate
        Primal value and lower bound, recomputed by nerm.
    stats : Stats
        Solver, version, iterations, seconds, and the solver's own claim, which grants nothing.
    tol : float
        The relative gap that was asked for.

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
    coef: Floats
    intercept: float
    objective: ObjectiveValue
    multipliers: Multipliers | None
    certificate: Certificate
    stats: Stats
    tol: float

    def decision_function(self, X: Any) -> Floats:
        """Return f(x) for new rows, (m,).

        Parameters
        ----------
        X : (m, d) matrix
            Dense or sparse; with a precomputed kernel (m, n), the values k(x_new, x_i). Of dask's arrays and
            frames, and of `nerm.Chunks`, scores are computed when they are asked for, chunk by chunk.

        """
        if is_lazy(X):
            return lazily(X, self.decision_function, float)
        coef, intercept = self.problem.checked(self.coef, self.intercept)
        return self.problem.hypothesis.decision_function(X, coef, intercept)

    def training_scores(self) -> Floats:
        """Return f at the given rows, (n,)."""
        coef, intercept = self.problem.checked(self.coef, self.intercept)
        return self.problem.hypothesis.scores(coef, intercept)

    def predict(self, X: Any) -> Array:
        """Return the class of new rows, (m,): the larger class iff f(x) > 0."""
        if is_lazy(X):
            return lazily(X, self.predict, self.problem.classes.dtype)
        return self.problem.classes[(self.decision_function(X) > 0).astype(int)]

    def without_rows(self) -> Solution:
        """Return what is left without the training rows: value, certificate, theta and w; no kernel coefficients."""
        none = (
            None
            if self.multipliers is None
            else replace(self.multipliers, rows=self.multipliers.rows[:, :0].copy())
        )
        coef = self.coef[:0].copy() if self.problem.is_kernel else self.coef
        return replace(self, problem=self.problem.without_rows(), coef=coef, multipliers=none)

    @property
    def thetas(self) -> dict[str, float]:
        """By viewpoint, the weight of C+ in its term; nan where eta is 0 or no multipliers are known.

        Where several terms are about one viewpoint, those after the first go by their own text.
        """
        found: dict[str, float] = {}
        for weighted, value in zip(self.problem.objective.terms, self.objective.terms, strict=True):
            if isinstance(weighted.term, Neutrality):
                name = viewpoint_of(weighted.term, self.problem.viewpoints)
                theta = float("nan") if value.theta is None else value.theta
                found[name if name not in found else repr(weighted.term)] = theta
        return found

    def fit_facts(self, to: str | None = None) -> FitFacts:
        """Return what `nerm.bounds.guarantee` needs to know of this solution, about one viewpoint."""
        from nerm.bounds.facts import facts_of

        return facts_of(self, to)

    def save(self, path: Any) -> None:
        """Write the solution with its problem to one file, without pickle; `nerm.load(path)` reads it back."""
        from nerm.io import save

        save(self, path)

    def _limits(self) -> list[str]:
        """Say of each limit how much of it is used, and what it costs."""
        problem = self.problem
        if not (problem.limits and problem.blocks):
            return []
        values = problem.limited(problem.hypothesis.scores(*problem.checked(self.coef, self.intercept)))
        etas = np.full(len(values), np.nan) if self.multipliers is None else self.multipliers.limits
        rows = zip(problem.limits, values, etas, strict=True)
        return [f"{limit!r}: {value:.6g}, multiplier {eta:.3g}" for limit, value, eta in rows]

    def __repr__(self) -> str:
        iterations = "" if self.stats.iterations is None else f", {self.stats.iterations} iterations"
        return "\n".join(
            [
                f"{self.status.value} by {self.stats.solver} in {self.stats.solve_seconds:.3g} s{iterations}",
                repr(self.objective),
                *self._limits(),
                f"certificate: {self.certificate} (tolerance {self.tol:g})",
            ]
        )


def _is_usable(answer: Answer) -> bool:
    return answer.coef is not None and bool(np.isfinite(answer.coef).all() and np.isfinite(answer.intercept))


def _zero(problem: Problem, answer: Answer) -> Answer:
    """Return f = 0 for an answer without anything, with multipliers that pull nowhere: what losses cost at least."""
    rows = np.stack([np.full(problem.hypothesis.n, np.clip(0.0, *block.domain)) for block in problem.blocks])
    multipliers = Multipliers(
        rows, np.full(len(problem.two_sided), 0.5), limits=np.zeros(len(problem.limits))
    )
    return replace(answer, coef=np.zeros(problem.hypothesis.size), intercept=0.0, multipliers=multipliers)


def certify_answer(problem: Problem, answer: Answer, tol: float, stats: Stats) -> Solution:
    """Turn an answer into a solution whose status the certificate grants; its times add to those in `stats`."""
    started = time.perf_counter()
    multipliers = None
    if answer.timed_out and not _is_usable(answer):
        answer = _zero(problem, answer)
    if answer.coef is None or not _is_usable(answer):
        coef, intercept, status = np.zeros(problem.hypothesis.size), 0.0, Status.FAILED
        value = problem.evaluate(coef, intercept)
        certificate = Certificate(value.total, -np.inf)
    else:
        coef, intercept = answer.coef, answer.intercept
        if problem.objective.constraints:
            coef, intercept = restored(problem, coef, intercept, answer.inside)
        given, early_exit = (
            answer.multipliers,
            answer.timed_out,
        )  # who ran out of time does not want to wait for the judge
        value, certificate, multipliers = best_certificate(
            problem, coef, intercept, given, tol, early_exit=early_exit
        )
        if value.total > certificate.scale and not problem.violation(np.zeros_like(coef), 0.0):
            coef, intercept = np.zeros_like(coef), 0.0  # worse than nothing
            value, found, multipliers = best_certificate(
                problem, coef, intercept, multipliers or given, tol, early_exit=early_exit
            )
            certificate = replace(found, reason="; ".join(filter(None, (WORSE, found.reason))))
        missed = Status.TIME_LIMIT if answer.timed_out else Status.INACCURATE
        status = Status.OPTIMAL if certificate.relative_gap <= tol else missed
        excess = (
            infeasibility(problem, answer.multipliers) if answer.infeasible and answer.multipliers else 0.0
        )
        if excess > 1e-9:
            reason = f"every hypothesis exceeds some limit by {excess:.3g} or more"
            status, certificate = Status.INFEASIBLE, replace(certificate, dual=np.inf, reason=reason)
    coef = coef.copy()
    coef.setflags(write=False)  # the certificate is about these numbers
    return Solution(
        problem=problem,
        status=status,
        coef=coef,
        intercept=intercept,
        objective=value if multipliers is None else value.with_thetas(multipliers.thetas),
        multipliers=None if multipliers is None else replace(multipliers, one_sided=problem.one_sided),
        certificate=certificate,
        stats=replace(
            stats,
            iterations=answer.iterations,
            claim=answer.claim,
            details=answer.details,
            timed_out=answer.timed_out,
            build_seconds=stats.build_seconds + answer.build_seconds,
            solve_seconds=stats.solve_seconds + answer.solve_seconds,
            certify_seconds=stats.certify_seconds + time.perf_counter() - started,
        ),
        tol=tol,
    )
