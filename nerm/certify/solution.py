"""Turn a solver's `Answer` into a `Solution`, whose status follows from the certificate only.

All functions that create a solution, or change its status or certificate, are in this module.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from nerm.certify.certificate import ADVICE, Certificate, Slack, best_certificate, infeasibility, one_reason
from nerm.certify.conjugates import NEGLIGIBLE
from nerm.certify.multipliers import Multipliers, restored
from nerm.model.blocks import ObjectiveValue, limit_values, one_sided, two_sided, value_at_zero
from nerm.model.expressions import Neutrality, viewpoint_of
from nerm.model.problem import Problem, check_hypothesis, without_rows
from nerm.typing import Array, Floats
from nerm.validation import is_lazy, own

if TYPE_CHECKING:
    from nerm.bounds import FitFacts
    from nerm.proofs.changes import ChangeBound, LeaveOneOut
    from nerm.proofs.sensitivity import Sensitivity

SECONDS = ("build_seconds", "solve_seconds", "certify_seconds")  # the times in `Stats`
WORSE_THAN_ZERO = (
    "up to rounding the solver's answer was no better than f = 0, which is returned in its place"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """The run of a solver: its own claim, its iterations and its times; see `Answer` and `Stats`."""

    iterations: int | None = None
    build_seconds: float = 0.0
    solve_seconds: float = 0.0
    claim: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    timed_out: bool = False


@dataclass(frozen=True, eq=False)
class Answer(Run):
    """The result of a solver, not yet certified: a hypothesis, multipliers, and the solver's claim.

    Attributes
    ----------
    coef : (problem.hypothesis.size,) array or None
        w, or for a kernel one coefficient per row; None if the solver found nothing.
    intercept : float
        b.
    multipliers : Multipliers, optional
        The solver's dual variables; they need not be feasible.
    inside : (coef, intercept), optional
        A hypothesis strictly inside all limits of the problem; needed only if f = 0 is not strictly inside.
    infeasible : bool
        Whether the solver claims that its multipliers prove that no hypothesis satisfies all limits.
    claim : str
        The status that the solver reports.
    iterations : int, optional
        The number of iterations of the solver.
    build_seconds, solve_seconds : float
        The times for building the model and for solving it.
    details : dict
        Any further results of the solver.
    timed_out : bool
        Whether the solver stopped at the time limit.

    A wrong claim does not change the status:

    >>> import numpy as np, nerm
    >>> from nerm.solvers import Answer, OwnSolver
    >>> class WrongClaim(OwnSolver):
    ...     name = "wrong-claim"
    ...     def requirements(self): return "anything"
    ...     def why_unsupported(self, problem): return None
    ...     def answer(self, problem, accuracy, options):
    ...         return Answer(np.zeros(problem.hypothesis.size), 0.0, claim="optimal")
    >>> problem = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2()).on([[0.0], [1.0]], [-1, 1])
    >>> solution = problem.solve(WrongClaim())
    >>> solution.stats.claim, str(solution.status)
    ('optimal', 'inaccurate')
    """

    coef: Floats | None
    intercept: float
    multipliers: Multipliers | None = None
    inside: tuple[Floats, float] | None = None
    infeasible: bool = False


class Status(StrEnum):
    """The status of a solution, as certified by nerm; `status.sentence` explains it.

    >>> Status.OPTIMAL == "optimal"
    True
    >>> Status.INACCURATE.sentence
    'The solver returned a hypothesis whose certified relative gap exceeds the tolerance.'
    """

    sentence: str

    OPTIMAL = "optimal", "nerm certified the relative duality gap within the tolerance."
    STATIONARY = (
        "stationary",
        "The convex-concave procedure came to rest at a point that need not be optimal.",
    )
    INACCURATE = (
        "inaccurate",
        "The solver returned a hypothesis whose certified relative gap exceeds the tolerance.",
    )
    INFEASIBLE = (
        "infeasible",
        "nerm certified that no hypothesis satisfies all constraints; the nearest one is given.",
    )
    TIME_LIMIT = (
        "time_limit",
        "Time was up before nerm could certify the tolerance; the best hypothesis so far is given.",
    )
    FAILED = "failed", "The solver returned no usable hypothesis; the zero hypothesis stands in its place."

    def __new__(cls, value: str, sentence: str = "") -> Status:
        """Make a member of its value and the sentence that explains it."""
        member = str.__new__(cls, value)
        member._value_, member.sentence = value, sentence
        return member

    @property
    def success(self) -> bool:
        """Whether the problem is solved: to optimality, or to stationarity if it is not convex."""
        return self in (Status.OPTIMAL, Status.STATIONARY)


@dataclass(frozen=True)
class Stats(Run):
    """Which solver was used, and its iterations and times.

    ``claim`` is the status that the solver reported. ``reason`` says why this solver was chosen.
    ``timed_out`` is True if the time limit stopped the solver.
    """

    solver: str
    version: str = ""
    certify_seconds: float = 0.0
    reason: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """A hypothesis with its objective, multipliers and certificate.

    Attributes
    ----------
    problem : Problem
        The problem that was solved.
    status : Status
        Optimal only if ``certificate.relative_gap <= tol``.
    coef : (d,) or (n,) array
        w of f = X w + b, or c of f = K c + b; read-only.
    intercept : float
        b.
    objective : ObjectiveValue
        The value in total and by term, at (coef, intercept).
    multipliers : Multipliers or None
        The feasible multipliers that give the certificate's bound; None if no bound was found.
    certificate : Certificate
        Primal value and lower bound, recomputed by nerm.
    stats : Stats
        Solver, version, iterations, seconds, and the status that the solver reported, which is not trusted.
    tol : float
        The tolerance: the target of the relative gap.
    threshold : float
        The decision threshold that was subtracted from the intercept, 0 by default. Objective, multipliers
        and certificate are about the intercept before, ``intercept + threshold``.

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
    threshold: float = 0.0

    def shifted(self, threshold: float) -> Solution:
        """Return the solution with a decision threshold: f(x) - threshold in place of f(x).

        The certificate stays that of the ranking: of (coef, intercept) before the threshold.
        """
        return replace(self, intercept=self.intercept - threshold, threshold=self.threshold + threshold)

    def decision_function(self, X: Any) -> Floats:
        """Return f(x) for new rows, (m,).

        Parameters
        ----------
        X : (m, d) matrix
            Dense or sparse; with a precomputed kernel (m, n), the values k(x_new, x_i). For dask arrays
            and frames and for `nerm.Chunks`, the scores are computed lazily, chunk by chunk.

        """
        if is_lazy(X):
            from nerm.chunks.pieces import lazily

            return lazily(X, self.decision_function, float)
        coef, intercept = check_hypothesis(self.problem, self.coef, self.intercept)
        return self.problem.hypothesis.decision_function(X, coef, intercept)

    def training_scores(self) -> Floats:
        """Return the scores f of the training rows, (n,)."""
        coef, intercept = check_hypothesis(self.problem, self.coef, self.intercept)
        return self.problem.hypothesis.scores(coef, intercept)

    def predict(self, X: Any) -> Array:
        """Return the predicted class of new rows, (m,); for a regression the scores f(x).

        Of the two sorted classes, the second is predicted if f(x) > 0, otherwise the first.
        """
        if not len(self.problem.classes):
            return self.decision_function(X)
        if is_lazy(X):
            from nerm.chunks.pieces import lazily

            return lazily(X, self.predict, self.problem.classes.dtype)
        return self.problem.classes[(self.decision_function(X) > 0).astype(int)]

    def without_rows(self) -> Solution:
        """Return a copy without the training rows.

        The copy keeps the objective value, the certificate, the thetas, and w of a linear model.
        """
        m = self.multipliers
        kept = None if m is None else replace(m, rows=m.rows[:, :0].copy())
        coef = self.coef[:0].copy() if self.problem.is_kernel else self.coef
        return replace(self, problem=without_rows(self.problem), coef=coef, multipliers=kept)

    @property
    def thetas(self) -> dict[str, float]:
        """The weight theta of C+ in max(C+, C-), by the name of the viewpoint.

        It is nan if eta is 0 or if no multipliers are known. If several terms have the same viewpoint, the
        key of each term after the first is the `repr` of the term.
        """
        found: dict[str, float] = {}
        for weighted, value in zip(self.problem.objective.terms, self.objective.terms, strict=True):
            if isinstance(weighted.term, Neutrality):
                name = viewpoint_of(weighted.term, self.problem.viewpoints)
                theta = float("nan") if value.theta is None else value.theta
                found[name if name not in found else repr(weighted.term)] = theta
        return found

    def without(self, rows: Any, tol: float | None = None) -> ChangeBound:
        """Bound the change of the model if rows are deleted from the training data.

        Parameters
        ----------
        rows : indices or mask
            The rows to delete. The objective keeps its mean form: every sum is divided by the number of the
            other rows, and neutrality weights with a name are computed again. The weights of its terms, the
            coding of labels and viewpoints, and the parameters of a kernel do not change.
        tol : float or None
            None makes one Newton step from the solution, whose matrix is computed once per solution; with a
            kernel a solve costs less, so the changed problem is solved to 1e-8. A number solves it to this
            tolerance: with losses that have kinks the bounds are tighter, but this takes more time.

        Returns
        -------
        ChangeBound

        """
        from nerm.proofs.changes import without

        return without(self, rows, tol)

    def leave_one_out(self) -> LeaveOneOut:
        """Bound the change of the model for every row, if this row alone is deleted.

        The cost is that of about 20 evaluations of the objective. Solve with a small `tol`: the bounds
        contain the gap of the solution. They are loose where C+ = C-, because the deletion breaks this tie;
        `without` solves the changed problem and is tighter. Supported are convex problems without
        constraints, with `SquaredL2` alone as regularizer, and with uniform neutrality weights or an array of
        them.
        """
        from nerm.proofs.changes import leave_one_out

        return leave_one_out(self)

    def with_rows(
        self, X: Any, y: Any, viewpoint: Any = None, sample_weight: Any = None, tol: float | None = None
    ) -> ChangeBound:
        """Bound the change of the model if rows are added; see `without`.

        Labels and viewpoints are coded as in training. A kernel keeps its parameters.
        """
        from nerm.proofs.changes import with_rows

        return with_rows(self, X, y, viewpoint, sample_weight, tol)

    def reweighted(self, sample_weight: Any, tol: float | None = None) -> ChangeBound:
        """Bound the change of the model if the rows have other sample weights, (n,); see `without`."""
        from nerm.proofs.changes import reweighted

        return reweighted(self, sample_weight, tol)

    def sensitivity(self, parameter: str) -> Sensitivity:
        """Return the derivative of the solution by a parameter, from its optimality conditions.

        Parameters
        ----------
        parameter : {"eta", "lam", "sample_weight", "y"}
            The sum of the neutrality weights, the sum of the regularization weights, the weight of each row
            in the risk, or for a regression the y of each row.

        Returns
        -------
        Sensitivity

        Raises
        ------
        Degenerate
            If there is no derivative, because a row is at a kink and can leave it in one direction only.

        """
        from nerm.proofs.sensitivity import sensitivity

        return sensitivity(self, parameter)

    def fit_facts(self, to: str | None = None) -> FitFacts:
        """Return the facts about the viewpoint `to` that `nerm.bounds.guarantee` needs."""
        from nerm.bounds.theorems import facts_of

        return facts_of(self, to)

    def save(self, path: Any) -> None:
        """Write the solution with its problem to one file; `nerm.load(path)` reads it back."""
        from nerm.io import save

        save(self, path)

    def _limits(self) -> list[str]:
        """Return one text per limit: the limit with its bound, its value and its multiplier."""
        problem = self.problem
        if not (problem.limits and problem.blocks):
            return []
        values = limit_values(problem, self.training_scores())
        etas = np.full(len(values), np.nan) if self.multipliers is None else self.multipliers.limits
        rows = zip(problem.limits, values, etas, strict=True)
        return [f"{limit!r}: {value:.6g}, multiplier {eta:.3g}" for limit, value, eta in rows]

    def __repr__(self) -> str:
        iterations = "" if self.stats.iterations is None else f", {self.stats.iterations} iterations"
        lines = [
            f"{self.status.value} by {self.stats.solver} in {self.stats.solve_seconds:.3g} s{iterations}",
            repr(self.objective),
            *self._limits(),
            f"certificate: {self.certificate} (tolerance {self.tol:g})",
        ]
        if self.threshold:
            lines.append(f"threshold {self.threshold:.6g}, which the certificate is not about")
        return "\n".join(lines)


def certify_answer(problem: Problem, answer: Answer, tol: float, stats: Stats) -> Solution:
    """Certify a solver's answer and return it as a `Solution`.

    The hypothesis is replaced by f = 0 if it is not finite. It is also replaced if its objective is larger
    than at f = 0 and f = 0 satisfies the constraints. The times of the answer are added to those in `stats`.
    """
    started = time.perf_counter()
    coef, intercept, given = answer.coef, answer.intercept, answer.multipliers
    failed = coef is None or not (np.isfinite(coef).all() and np.isfinite(intercept))
    if coef is None or failed:
        coef, intercept, given = np.zeros(problem.hypothesis.size), 0.0, None
    if (failed or answer.timed_out) and given is None:
        rows = np.zeros((len(problem.blocks), problem.hypothesis.n))  # put into their domains below
        given = Multipliers(rows, np.full(len(two_sided(problem)), 0.5), limits=np.zeros(len(problem.limits)))
    if problem.objective.constraints:
        coef, intercept = restored(problem, coef, intercept, answer.inside)
    value, certificate, multipliers = best_certificate(problem, coef, intercept, given, tol)
    zero = np.zeros_like(coef)
    error = 0.0 if certificate.relative_gap <= tol else Slack(problem, coef, intercept).primal
    if value.total + error > value_at_zero(problem) and not problem.violation(zero, 0.0):
        before = certificate.reason
        coef, intercept, given = zero, 0.0, multipliers or given
        value, certificate, multipliers = best_certificate(problem, zero, 0.0, given, tol)
        reason = one_reason(WORSE_THAN_ZERO, before, certificate.reason)
        certificate = replace(certificate, reason=reason)
    excess = infeasibility(problem, given) if answer.infeasible and given else 0.0
    if excess > NEGLIGIBLE:
        reason = f"every hypothesis exceeds some limit by {excess:.3g} or more"
        certificate = replace(certificate, dual=np.inf, reason=reason)
    run = {one.name: getattr(answer, one.name) for one in fields(Run)}
    run["certify_seconds"] = time.perf_counter() - started
    stats = replace(stats, **run | {name: run[name] + getattr(stats, name) for name in SECONDS})
    solution = certify_bounds(problem, (coef, intercept), value, multipliers, certificate, stats, tol)
    if excess > NEGLIGIBLE:
        return replace(solution, status=Status.INFEASIBLE)
    if failed and not answer.timed_out:
        reason = f"the solver returned {'no' if answer.coef is None else 'infinite or nan'} coefficients"
        certificate = replace(solution.certificate, dual=-np.inf, reason=reason)
        return replace(solution, status=Status.FAILED, certificate=certificate)
    return solution


def certify_bounds(
    problem: Problem,
    hypothesis: tuple[Floats, float],
    value: ObjectiveValue,
    multipliers: Multipliers | None,
    certificate: Certificate,
    stats: Stats,
    tol: float,
) -> Solution:
    """Return the solution of a hypothesis whose certificate is known; set its status.

    `value` and `certificate` may come from sums over chunks of rows. The status is optimal if the relative
    gap is at most `tol`.
    """
    status = Status.TIME_LIMIT if stats.timed_out else Status.INACCURATE
    if certificate.relative_gap <= tol:
        status = Status.OPTIMAL
    elif certificate.dual < np.inf and "regularise" not in certificate.reason:
        certificate = replace(certificate, reason=one_reason(certificate.reason, ADVICE))
    return Solution(
        problem=problem,
        status=status,
        coef=own(hypothesis[0]),
        intercept=float(hypothesis[1]),
        objective=value if multipliers is None else value.with_thetas(multipliers.thetas),
        multipliers=None if multipliers is None else replace(multipliers, one_sided=one_sided(problem)),
        certificate=certificate,
        stats=stats,
        tol=tol,
    )


def recertified(solution: Solution, coef: Floats | None = None) -> Solution:
    """Return the solution with its value and certificate computed again.

    If `coef` is given, it replaces the coefficients. The status stays optimal if the gap exceeds the
    tolerance by rounding errors only, because another processor may round sums differently.
    """
    coef = solution.coef if coef is None else coef
    certified = solution.intercept + solution.threshold
    value = solution.problem.evaluate(coef, certified)
    certificate = solution.problem.certify(coef, certified, solution.multipliers)
    status = solution.status
    allowed = solution.tol * certificate.size + 2 * certificate.slack
    if status is Status.OPTIMAL and not certificate.relative_gap * certificate.size <= allowed:
        status = Status.INACCURATE
    objective = value.with_thetas(solution.objective.thetas)
    return replace(solution, coef=coef, objective=objective, certificate=certificate, status=status)


def combine(old: Solution | None, new: Solution) -> Solution:
    """Return the better of two solutions of one problem; `new` if `old` is None.

    If `new` is certified infeasible, it is returned. If one of them is optimal or violates a constraint, the
    one with the smaller relative gap is returned (a violated constraint makes the gap infinite). Otherwise
    the one with the smaller objective is returned. If the time limit stopped `new`, the result is marked as
    stopped.
    """
    best = new
    if old is not None and new.status is not Status.INFEASIBLE:
        one, two = old.certificate, new.certificate
        by_gap = old.status.success or new.status.success or one.violation or two.violation
        keys = [(0.0 if by_gap else c.primal, c.relative_gap) for c in (one, two)]
        best = new if keys[1] < keys[0] else old
    return timed_out(best) if new.stats.timed_out else best


def timed_out(solution: Solution) -> Solution:
    """Return a copy of the solution marked as stopped by the time limit.

    The status changes only if it was inaccurate or failed.
    """
    status = solution.status
    if status in (Status.INACCURATE, Status.FAILED):
        status = Status.TIME_LIMIT
    return replace(solution, status=status, stats=replace(solution.stats, timed_out=True))


def stationary(
    problem: Problem,
    hypothesis: tuple[Floats, float],
    steps: Sequence[Solution],
    *,
    settled: bool,
    late: bool,
) -> Solution:
    """Build the solution of a nonconvex problem from the steps of the convex-concave procedure.

    The certificate of this solution has no dual bound; `certificate.reason` reports the largest gap of the
    convex steps.

    Parameters
    ----------
    problem : Problem
        The nonconvex problem.
    hypothesis : (coef, intercept)
        The best hypothesis found.
    steps : sequence of Solution
        The solutions of the convex problems, one per step.
    settled : bool
        Whether the objective stopped decreasing.
    late : bool
        Whether the time limit was reached.
    """
    last = steps[-1]
    certified = all(step.status is Status.OPTIMAL for step in steps)
    found = "a stationary point" if settled else f"not settled after {len(steps)} steps"
    gap = max(step.certificate.relative_gap for step in steps)
    how = f"every convex step was certified, to {gap:.1e}" if certified else "a convex step was not certified"
    value, certificate, _ = best_certificate(problem, *hypothesis, None)
    certificate = replace(certificate, reason=f"{found}: {certificate.reason}; {how}")
    solved, value = settled and certified, value.with_thetas(last.objective.thetas)
    stats = replace(last.stats, timed_out=late and not solved)
    solution = certify_bounds(problem, hypothesis, value, None, certificate, stats, last.tol)
    status = Status.STATIONARY if solved else solution.status
    return replace(solution, status=status, certificate=certificate)
