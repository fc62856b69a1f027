"""Search for the weights of one-sided neutrality terms at which a measure is within its limit.

As eta grows from 0, the signed measure decreases from its value at the plain model (eta = 0), through 0, to
its value at a model that opposes the viewpoint v. It does so almost monotonically and in small jumps, because
it depends on the signs of finitely many scores. False position narrows a bracket around the limit. The result
is the usable candidate within the limit that has the least weight. Several weights are searched jointly,
since each of them changes all parts of the measure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from nerm import metrics
from nerm import weights as neutrality_weights
from nerm.certify.solution import Solution
from nerm.errors import NotNeutralError
from nerm.model.expressions import Neutrality, Objective, Risk, WeightedTerm
from nerm.model.problem import Problem, with_terms
from nerm.neutralize.surrogates import largest_weight
from nerm.neutralize.target import Candidate, History, Neutralized, Target, collapse, shown, side_of
from nerm.signs import sign
from nerm.solvers.progress import print_solve
from nerm.solvers.registry import SolverPool
from nerm.solvers.rootfind import Bracket
from nerm.typing import Bools, Floats

MOST_SOLVES = 14  # maximal number of solves per weight
FIRST_WEIGHT = 0.3  # eta compares two mean losses, so it is of order 1; the next one tried is eta / 0.3
T = TypeVar("T")


@dataclass(eq=False)
class Search:
    """Solve one problem with one-sided neutrality terms of varying weights, and record the candidates.

    The one-sided terms replace the problem's own neutrality terms. A measure has one or more *parts*, such as
    the two differences of rates in equalized odds, for each viewpoint. There is one term per part.

    Parameters
    ----------
    problem : Problem
        Its risk, regularizers and constraints are kept.
    target : Target
        The limit, the measure and the tolerance of every solve.
    viewpoints : tuple of str
        Names of the viewpoints to be neutral to.
    row_weight : (n,) array
        Weight of each row in the measure and in neutrality terms.
    used : (n,) array of bool
        The rows for training and for the measure; the other rows get weight 0.
    first : float, optional
        The weight to try first.
    solver : str
        See `nerm.Problem.solve`.
    measured : callable, optional
        Function from a solution to the signed parts of the measure on other rows than the training rows.
    one_of_several : bool
        Whether this is one of several one-vs-rest problems. If so, the plain model is accepted even if it is
        constant, and nearly constant candidates are usable.
    history : History
        All candidates so far.

    """

    problem: Problem
    target: Target
    viewpoints: tuple[str, ...]
    row_weight: Floats
    used: Bools
    first: float | None = None
    solver: Any = "auto"
    measured: Callable[[Solution], Floats] | None = None
    one_of_several: bool = False
    history: History = field(default_factory=History)

    @cached_property
    def pool(self) -> SolverPool:
        """The solver sessions, which reuse computations from one solve to the next."""
        return SolverPool(self.solver)

    @property
    def metric(self) -> metrics.Metric:
        """The measure of the target as a `Metric`."""
        return self.target.metric

    # --- one solve ------------------------------------------------------------------------------------

    @cached_property
    def plain(self) -> Candidate:
        """The candidate without neutrality terms."""
        count = len(self.viewpoints) * len(self.metric.weights)
        return self._candidate(self.solution(self.plain_objective()), None, np.zeros(count))

    def solve(self, surrogate: Any, weights: Floats, start: Candidate) -> Candidate:
        """Solve with one-sided terms of these signed weights, (number of parts,).

        A positive weight penalizes agreement with the viewpoint, a negative one disagreement. Only a
        nonconvex problem uses `start`, as its starting point.
        """
        objective = self.objective(surrogate, weights)
        return self._candidate(self.solution(objective, start.solution), surrogate, weights)

    def _candidate(self, solution: Solution, surrogate: Any, weights: Floats) -> Candidate:
        scores = self.scores(solution)
        parts = self.measure(scores) if self.measured is None else self.measured(solution)
        candidate = Candidate(surrogate, weights, solution, scores, parts)
        rates = {
            f"positive rate, {name} {group}": rate
            for name, pair in zip(self.viewpoints, self.rates(scores), strict=True)
            for group, rate in zip("-+", pair, strict=True)
        }
        rows = solution.stats.details.get("rows", int(self.used.sum()))
        measured = {"rows": rows, **self.quality(scores), **rates}
        self.history.add(candidate, measured)
        if self.target.verbose:
            etas = ", ".join(f"{eta:.4g}" for eta in candidate.etas)
            note = f"{surrogate!r} eta {etas}" if surrogate else "no neutrality"
            print_solve(solution, f"{note}: {self.metric.name} {candidate.measured:.4g}")
        return candidate

    def term_rows(self) -> list[tuple[str, Floats, Floats]]:
        """Return (viewpoint's name, neutrality weights, viewpoint) for each part of the measure.

        Both arrays are (n,). Rows that are not used have neutrality weight 0.
        """
        s = self.row_weight * self.used
        found = []
        for name in self.viewpoints:
            v = self.problem.viewpoints[name]
            for weights in self.metric.weights:
                found.append((name, s * neutrality_weights.resolve(weights, self.problem.y, v, s), v))
        return found

    def plain_objective(self) -> Objective:
        """Return the objective without neutrality terms."""
        terms = self.problem.objective.terms
        kept = tuple(t for t in terms if not isinstance(t.term, Neutrality))
        return replace(self.problem.objective, terms=kept)

    def objective(self, surrogate: Any, weights: Floats) -> Objective:
        """Return the objective with one one-sided term per part; `weights` are their signed weights."""
        plain = self.plain_objective()
        terms = list(plain.terms)
        for (name, u, _), weight in zip(self.term_rows(), weights.tolist(), strict=True):
            to = None if len(self.problem.viewpoints) == 1 else name
            terms.append(WeightedTerm(abs(weight), Neutrality(surrogate, to, u, side_of(surrogate, weight))))
        return replace(plain, terms=tuple(terms))

    def solution(self, objective: Objective, start: Solution | None = None) -> Solution:
        """Solve the problem with this objective on the used rows.

        Only a nonconvex problem uses `start`, as its starting point.
        """
        p = self.problem
        weighted = with_terms(p, objective, sample_weight=p.sample_weight * self.used)
        share = float((self.row_weight * self.used).sum() / self.row_weight.sum())
        options = {} if start is None or weighted.is_convex else {"start": (start.coef, start.intercept)}
        return self.pool.solve(replace(weighted, divisor=p.divisor * share), self.target.tol, **options)

    # --- measures of a model ------------------------------------------------------------------------------

    def scores(self, solution: Solution) -> Floats:
        """Return the scores of a solution on all rows of the problem, (n,)."""
        return solution.training_scores()

    def measure(self, scores: Floats, rows: Bools | None = None) -> Floats:
        """Return the signed parts of the measure, on the used rows or on `rows`, a (n,) mask."""
        rows = self.used if rows is None else rows
        y, f, s = self.problem.y[rows], scores[rows], self.row_weight[rows]
        return np.concatenate(
            [self.metric.parts(y, f, self.problem.viewpoints[name][rows], s) for name in self.viewpoints]
        )

    def rates(self, scores: Floats) -> Floats:
        """Return the positive rates of the groups v <= 0 and v > 0, (number of viewpoints, 2)."""
        found = []
        for name in self.viewpoints:
            v = sign(self.problem.viewpoints[name])
            for side in (-1, 1):
                weight = self.row_weight * self.used * (v == side)
                found.append(weight @ (scores > 0) / max(weight.sum(), np.finfo(float).tiny))
        return np.reshape(found, (-1, 2))

    def quality(self, scores: Floats, rows: Bools | None = None) -> dict[str, float]:
        """Return accuracy and AUC on the used rows or on `rows`, a (n,) mask."""
        rows = self.used if rows is None else rows
        y, f, s = self.problem.y[rows], scores[rows], self.row_weight[rows]
        one_class = (y > 0).all() == (y > 0).any()
        area = float("nan") if one_class else metrics.auc(y, f, s)
        return {"accuracy": float(s @ (sign(f) == y) / s.sum()), "auc": area}

    def objection(self, candidate: Candidate) -> str:
        """Return the reason why a candidate is not usable; an empty string if it is usable."""
        if not candidate.solution.status.success:
            return "its solution was not certified"
        which = "it" if any(candidate.etas) else "the plain model already"
        positive = candidate.scores[self.used] > 0
        if positive.all() == positive.any():
            return f"{which} predicts the same class for every row" if self.target.keep else ""
        if not self.quality(candidate.scores)["auc"] > 0.5:
            return f"{which} ranks no better than chance"
        if self.target.keep and not self.one_of_several:
            p, used = self.problem, self.used
            risks = (t.term for t in p.objective.terms if isinstance(t.term, Risk))
            cost = np.sum([risk.row_weights(p.y, p.sample_weight) for risk in risks], axis=0)
            labels, weight = (p.y[used] > 0).astype(int), self.row_weight[used]
            found = collapse(candidate.scores[used], labels, ("-1", "+1"), weight=weight,
                             risk_weight=cost[used])  # fmt: skip
            if found is not None:
                return found.replace("The model", which).rstrip(".")
        before, after = self.rates(self.plain.scores), self.rates(candidate.scores)
        for i, g in np.argwhere(after < self.target.keep * before).tolist():
            group = f"the rows with {self.viewpoints[i]} {'-+'[g]}"
            return (
                f"{which} predicts +1 for {after[i, g]:.1%} of {group}, {before[i, g]:.1%} without neutrality"
            )
        return ""

    # --- the search -------------------------------------------------------------------------------------

    def find(self, surrogate: Any, first: float | None = None) -> Candidate | None:
        """Return the usable candidate within the limit that has the least weight; None if there is none.

        `first` is the weight to try first.
        """
        limit = self.target.limit
        if self.plain.value <= limit:
            return self.plain if self.one_of_several or not self.objection(self.plain) else None
        if len(self.plain.parts) == 1:
            self._one_weight(surrogate, first or self.first or FIRST_WEIGHT)
        else:
            self._several_weights(surrogate)
        within = [candidate for candidate in self.history.of(surrogate) if candidate.value <= limit]
        within.sort(key=lambda candidate: sum(candidate.etas))
        return next((candidate for candidate in within if not self.objection(candidate)), None)

    def _one_weight(self, surrogate: Any, first: float) -> None:
        """Search one weight, starting from the bracket given by the earlier candidates."""
        limit = self.target.limit
        low = 0.5 * limit  # a measure between this and the limit is close enough to the limit
        goal = 0.5 * (low + limit)
        way = float(np.sign(self.plain.parts[0]))
        largest = largest_weight(self, surrogate, np.array([way])) or np.inf
        narrow = np.sqrt(self.target.tol)  # a bracket of this relative width contains a jump: stop
        known = sorted(self.history.of(surrogate), key=lambda candidate: candidate.etas)
        start, solves, bracket = self.plain, 0, Bracket()
        bracket.add(0.0, abs(float(self.plain.parts[0])) - goal)
        while known or (solves < MOST_SOLVES and not (bracket.high - bracket.low <= narrow * bracket.low)):
            if known:
                candidate = known.pop(0)
            else:
                eta = bracket.next() if bracket.is_closed else max(first, bracket.low / FIRST_WEIGHT)
                if eta >= largest:  # there the problem is unbounded below
                    eta = 0.5 * (bracket.low + largest)
                candidate = self.solve(surrogate, np.array([way * eta]), start)
                solves += 1
            eta, value = candidate.etas[0], way * float(candidate.parts[0])
            if low <= value <= limit:
                return
            if bracket.low < eta < bracket.high:
                bracket.add(eta, value - goal)
                start = candidate if value > limit else start

    def _several_weights(self, surrogate: Any) -> None:
        """Search the weights of all parts jointly, starting from 0."""
        plain = self.plain

        def evaluate(weights: Floats, start: Candidate) -> tuple[Floats, Candidate]:
            candidate = self.solve(surrogate, weights, start)
            return candidate.parts, candidate

        first = np.where(plain.parts < 0, -1.0, 1.0) * (self.first or FIRST_WEIGHT)
        damped_secant(evaluate, np.zeros(len(first)), (plain.parts, plain), first, self.target.limit)

    # --- the answer -------------------------------------------------------------------------------------

    def answer(self, candidate: Candidate, surrogate: Any, choice: pd.DataFrame) -> Neutralized:
        """Return the result for a candidate; `choice` is the table of compared surrogates."""
        return Neutralized(
            solution=candidate.solution,
            eta=shown(candidate.etas),
            side=shown(candidate.sides),
            surrogate=surrogate,
            measure=self.metric.name,
            limit=self.target.limit,
            value=candidate.measured,
            reached=candidate.value <= self.target.limit,
            trace=self.history.trace(candidate),
            choice=choice,
        )

    def error(self, surrogates: Sequence[Any]) -> NotNeutralError:
        """Return the error that reports the closest candidate, why it is not usable, and what to change."""
        limit = self.target.limit
        candidate = self.history.closest(limit)
        surrogate = surrogates[0] if candidate.surrogate is None else candidate.surrogate
        etas = ", ".join(f"{eta:.4g}" for eta in candidate.etas)
        closest = f"The closest, with {surrogate!r} at eta {etas}, has {candidate.value:.4g}"
        if candidate.value <= limit:
            closest = f"{closest}, but {self.objection(candidate)}"
        advice: Sequence[tuple[str, str]] = ADVICE
        if self.plain.value <= limit:  # the limit is not the obstacle
            advice = (("class_weight", "balance"), ("sample_weight", "change"), ("lam", "lower"))
        failed = f"No non-constant model reaches |{self.metric.name}| <= {limit:g}"
        error = NotNeutralError(failed, closest, advice)
        error.best = self.answer(candidate, surrogate, pd.DataFrame())
        return error


ADVICE = (("limit", "raise"), ("keep", "lower"), ("surrogate", "change"), ("lam", "change"))


def with_named_weights(objective: Objective, names: Sequence[str]) -> Objective:
    """Replace the arrays of neutrality weights in an objective by names, one per neutrality term."""
    known = iter(names)
    terms = tuple(
        replace(t, term=replace(t.term, weights=next(known))) if isinstance(t.term, Neutrality) else t
        for t in objective.terms
    )
    return replace(objective, terms=terms)


def damped_secant(
    evaluate: Callable[[Floats, T], tuple[Floats, T]],
    x: Floats,
    at: tuple[Floats, T],
    first: Floats,
    limit: float,
) -> list[tuple[Floats, T]]:
    """Search several signed weights until all parts of the measure are within the limit.

    This is Broyden's method with damping. The Jacobian of the parts with respect to the weights is estimated
    by one finite difference per weight, and updated after every step. Parts of absolute value at most half
    the limit are treated as 0.

    Parameters
    ----------
    evaluate : callable
        Function (weights, model to start from) -> (parts, model).
    x : (n,) array
        The initial weights.
    at : (parts, model)
        The parts and the model at the initial weights.
    first : (n,) array
        The finite difference step of each weight.
    limit : float
        The limit on the absolute value of every part.

    Returns
    -------
    list of (parts, model)
        Every evaluation, in order.

    """

    def size(parts: Floats) -> float:
        return float(np.abs(parts).max())

    n, start, origin = len(x), at, x
    found: list[tuple[Floats, T]] = []
    jacobian = np.zeros((len(at[0]), n))
    damping, longest = 1e-3, float(np.abs(first).max())
    for k in range(n):
        step = first[k] * np.eye(n)[k]
        found.append(evaluate(origin + step, start[1]))
        jacobian[:, k] = (found[-1][0] - start[0]) / first[k]
        if size(found[-1][0]) < size(at[0]):
            at, x = found[-1], origin + step
    while len(found) < MOST_SOLVES * n and size(at[0]) > limit and damping < 1e6:
        rest = at[0] - np.clip(at[0], -0.5 * limit, 0.5 * limit)
        normal = jacobian.T @ jacobian
        ridge = damping * (np.trace(normal) / n + 1e-300) * np.eye(n)
        step = -np.linalg.solve(normal + ridge, jacobian.T @ rest)
        step *= min(1.0, 2 * max(longest, size(x)) / max(size(step), 1e-300))
        new = evaluate(x + step, at[1])
        found.append(new)
        jacobian += np.outer(new[0] - at[0] - jacobian @ step, step) / max(float(step @ step), 1e-300)
        better = size(new[0]) < size(at[0])
        damping = damping / 3 if better else 4 * damping
        if better:
            at, x = new, x + step
    return found
