"""Solve one problem with one-sided neutrality terms of several weights; choose a threshold for each.

As the weight eta grows from 0, the signed measure decreases from its value at the plain model (eta = 0),
through 0, to its value at a model that opposes the viewpoint v. For every eta the best threshold within the
limit is found exactly (`nerm.metrics.thresholds`). Both the neutrality term and the threshold cost accuracy.
As eta grows, the cost of the term increases and the cost of the threshold decreases. Their sum is smallest
where the two changes cancel, so eta is bisected for that. With several terms, secant steps (Broyden's method)
find the ratio of their weights first.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from nerm import metrics
from nerm import weights as neutrality_weights
from nerm.atoms.difference import DCFunction, Ramp
from nerm.atoms.losses import Hinge, Logistic
from nerm.atoms.margin import MarginFunction
from nerm.certify.solution import Solution, Status
from nerm.defaults import DEFAULTS
from nerm.errors import InvalidInputError, NotNeutralError
from nerm.model.expressions import Neutrality, Objective, Risk, WeightedTerm
from nerm.model.problem import Problem, with_terms
from nerm.neutralize.groups import Groups
from nerm.neutralize.target import NEARLY, Candidate, Neutralized, Target, shown, side_of, trace_rows
from nerm.signs import sign
from nerm.solvers.progress import print_solve
from nerm.solvers.registry import SolverPool
from nerm.typing import Bools, Floats

MOST_SOLVES = 40  # convex solves of one search, in all
FIRST_WEIGHT = 0.3  # eta compares two mean losses, so it is of order 1
LOOKS = 3  # candidates at the full tolerance
EXPLORED = 5  # candidates per surrogate
MOST_STEPS = 2  # convex steps of a nonconvex candidate that is only compared
USED = 0.8  # a measure of this share of the limit uses it
ADVICE = (("limit", "raise"), ("keep", "lower"), ("surrogate", "change"), ("lam", "change"))


@dataclass(eq=False)
class Search:
    """Solve one problem with one-sided neutrality terms of varying weights, and record the candidates.

    The one-sided terms replace the problem's own neutrality terms.

    Parameters
    ----------
    problem : Problem
        Its risk, regularizers and constraints are kept.
    target : Target
        The limit, the measure and the tolerance.
    groups : tuple of Groups
        The groups that are compared.
    row_weight : (n,) array
        Weight of each row in the measure and in neutrality terms.
    solver : str
        See `nerm.Problem.solve`.
    first : float, optional
        The weight to try first.
    on : (X, y, groups), optional
        Other rows to measure on: the features, the labels and the groups.
    one_of_several : bool
        Whether this is one of several one-vs-rest problems. If so, the plain model is accepted even if it is
        constant, and nearly constant candidates are usable.
    before : Thresholds, optional
        The measures of the plain model at threshold 0; by default it is solved first.
    candidates : list of Candidate
        All candidates so far.
    rows : list of (Candidate, dict)
        One row of the trace per convex solve. Searches on a part of the rows add to the same list.
    choice : pandas.DataFrame
        The comparison of the surrogates; empty if there is none.

    """

    problem: Problem
    target: Target
    groups: tuple[Groups, ...]
    row_weight: Floats
    solver: Any = "auto"
    first: float | None = None
    on: Any = None
    one_of_several: bool = False
    before: Any = None
    candidates: list[Candidate] = field(default_factory=list)
    rows: list[tuple[Candidate, dict[str, Any]]] = field(default_factory=list)
    choice: pd.DataFrame = field(default_factory=pd.DataFrame)

    def __post_init__(self) -> None:
        self.surrogates = surrogates_of(self.target.surrogate, self.problem)

    @cached_property
    def pool(self) -> SolverPool:
        """The solver sessions, which reuse computations from one solve to the next."""
        return SolverPool(self.solver)

    @cached_property
    def terms(self) -> list[tuple[str, Any, Floats]]:
        """(name, neutrality weights, viewpoint) of each one-sided term."""
        named = [(name, v) for groups in self.groups for name, v in groups.views.items()]
        return [(name, weights, v) for name, v in named for weights in self.target.metric.weights]

    @cached_property
    def least_shares(self) -> tuple[float, float]:
        """The least shares of rows to predict as +1 and as -1: a model below them is nearly constant."""
        p, s, least = self.problem, self.row_weight, [0.0, 0.0]
        risks = [t.term for t in p.objective.terms if isinstance(t.term, Risk)]
        risk = np.sum([term.row_weights(p.y, p.sample_weight) for term in risks], axis=0)
        for k, among in enumerate((p.y > 0, p.y <= 0)):
            if min(among.sum(), risk @ among / risk.mean()) >= 1 / NEARLY:
                least[k] = NEARLY * float(s @ among / s.sum())
        return least[0], least[1]

    @property
    def left(self) -> int:
        """The number of convex solves that the search may still do."""
        return MOST_SOLVES - len(self.rows)

    def affordable(self, surrogate: Any, kept: int = 0) -> int:
        """Return for how many weights a surrogate can still be solved.

        A nonconvex surrogate needs several convex solves per weight. `kept` solves are reserved for later.
        """
        return (self.left - kept) // (MOST_STEPS if isinstance(surrogate, DCFunction) else 1)

    @property
    def group_names(self) -> list[str]:
        """The names of all groups, in the order of `Thresholds.rates`."""
        return [name for groups in (self.on or [self.groups])[-1] for name in groups.names]

    # --- one solve ------------------------------------------------------------------------------------

    @cached_property
    def plain(self) -> Candidate:
        """The candidate without neutrality terms."""
        return self.solve(None, np.zeros(len(self.terms)), tol=self.target.tol)

    def solve(
        self, surrogate: Any, weights: Floats, near: Any = None, tol: float = 0.0, steps: int = MOST_STEPS
    ) -> Candidate:
        """Solve with one-sided terms of these signed weights, (number of terms,).

        A positive weight penalizes agreement with the viewpoint, a negative one disagreement. Only a
        nonconvex problem uses `near`, a candidate to start from, and `steps`, its largest number of convex
        steps.
        """
        objective = self.objective(surrogate, weights)
        near = near and (near.solution.coef, near.solution.intercept)
        solution = self.solution(objective, tol or self.target.rough_tol, near, min(steps, self.left))
        return self._candidate(solution, surrogate, weights)

    def objective(self, surrogate: Any, weights: Floats) -> Objective:
        """Return the objective with one-sided terms of signed weights; without terms if surrogate is None."""
        given, s = self.problem.objective, self.row_weight
        terms = [t for t in given.terms if not isinstance(t.term, Neutrality)]
        for (name, kind, v), weight in zip(self.terms, weights.tolist(), strict=True) if surrogate else ():
            u = s * neutrality_weights.resolve(kind, self.problem.y, v, s)
            to = None if len(self.problem.viewpoints) == 1 else name
            terms.append(WeightedTerm(abs(weight), Neutrality(surrogate, to, u, side_of(surrogate, weight))))
        return replace(given, terms=tuple(terms))

    def solution(self, objective: Objective, tol: float, near: Any = None, steps: int = 1) -> Solution:
        """Solve the problem with this objective, from the hypothesis `near`."""
        weighted = with_terms(self.problem, objective)
        options = {} if near is None or weighted.is_convex else {"start": near, "max_steps": max(steps, 1)}
        return self.pool.solve(weighted, tol, **options)

    def scores(self, solution: Solution) -> Floats:
        """Return the scores of a solution on the rows of the problem, (n,)."""
        return solution.training_scores()

    def table(self, solution: Solution, scores: Floats) -> metrics.Thresholds:
        """Return all thresholds of a solution, with the measure at each."""
        y, groups, weight = self.problem.y, self.groups, self.row_weight
        if self.on is not None:
            X, y, groups = self.on
            scores, weight = solution.decision_function(X), np.ones(len(y))
        codes, views = [g.codes for g in groups], [v for g in groups for v in g.views.values()]
        return metrics.thresholds(scores, y, codes, self.target.metric, weight, views)

    def _candidate(self, solution: Solution, surrogate: Any, weights: Floats) -> Candidate:
        """Return the candidate of a solution with its best threshold, and record it."""
        scores, most, status = self.scores(solution), self.target.allowance, solution.status
        table = self.table(solution, scores)
        if self.before is None:
            self.before = table.at_zero
        unneeded = self.one_of_several or table.at_zero.distance[0] <= most
        if not self.problem.intercept or (surrogate is None and unneeded):
            table = table.at_zero  # no threshold is allowed, or none is needed
        usable, objection = self.usable(table)
        within, used = table.best(most, usable), table.best(most, usable, USED * most)
        if used is not None and table.accuracy[within] - table.accuracy[used] <= self.error_of_accuracy:
            within = used
        nearest = table.best(float(table.distance[usable].min()), usable) if within is None else within
        at = table.best(np.inf, usable)  # without the limit
        shifted = scores - table.thresholds[nearest]
        quality = self.quality(shifted)
        if self.target.keep and not objection and quality["auc"] <= 0.5:
            objection = "ranks no better than chance"
        elif self.target.keep and not objection and np.ptp(scores) <= DEFAULTS.tol:
            objection = "has scores that differ only by rounding"
        # A nonconvex problem need not have reached a stationary point yet.
        solved = status.success or (not solution.problem.is_convex and status is Status.INACCURATE)
        candidate = Candidate(
            surrogate,
            weights,
            solution,
            shifted,
            float(table.thresholds[nearest]),
            table.parts[nearest],
            table.rates[nearest],
            objection,
            admissible=solved and not objection and within is not None,
            directions=self.directions(scores - table.thresholds[at]),
            distance=float(table.distance[at]) if solved else np.inf,
            free=float(table.accuracy[at]),
            cost=float(table.accuracy[at] - table.accuracy[nearest]),
            quality=quality,
        )
        metric, rates = self.target.metric, zip(self.group_names, candidate.rates.tolist(), strict=True)
        measured = {"measure": metric.measured(candidate.parts), "threshold": candidate.threshold}
        measured |= {"rows": solution.stats.details.get("rows", self.problem.n)}
        measured |= {name: candidate.quality[name] for name in ("accuracy", "auc")}
        measured |= {f"positive rate, {name}": rate for name, rate in rates}
        self.candidates.append(candidate)
        self.rows += [(candidate, row) for row in trace_rows(candidate, measured)]
        if self.target.verbose:
            note = f"{surrogate!r} eta {candidate.shown_etas}" if surrogate else "no neutrality"
            print_solve(solution, f"{note}: {metric.name} {measured['measure']:.4g}")
        return candidate

    def usable(self, table: metrics.Thresholds) -> tuple[Bools, str]:
        """Return a mask of the usable thresholds, (m,), and an objection.

        The conditions on a usable model are checked in order of importance. If some threshold satisfies all
        of them, the objection is "". Otherwise the objection names the first condition that no remaining
        threshold satisfies, and the mask has the thresholds that satisfy the conditions before it.
        """
        target, share, (yes, no) = self.target, table.share, self.least_shares
        conditions: list[tuple[str, Any]] = []
        if target.keep:
            conditions += [("predicts the same class for every row", (share > 0) & (share < 1))]
            if not self.one_of_several:
                conditions += [("is nearly constant", (share >= yes) & (1 - share >= no))]
            for name, rate, before in zip(self.group_names, table.rates.T, self.before.rates[0], strict=True):
                rare = f"predicts +1 for less than {target.keep:g} times {before:.1%} of {name}, the rate "
                conditions += [(f"{rare}without neutrality", rate >= target.keep * before)]
        least = target.least_accuracy
        conditions += [(f"has an accuracy below {least:g}", table.accuracy >= least)]
        usable = np.ones(len(share), dtype=bool)
        for objection, met in conditions:
            if not (usable & met).any():
                return usable, objection
            usable &= met
        return usable, ""

    def directions(self, scores: Floats) -> Floats:
        """Return the weighted agreement of the predictions with the viewpoint of each term.

        The shape is (number of terms,).
        """
        y, s = self.problem.y, self.row_weight
        return np.array([metrics.agreement(kind, y, scores, sign(v), s) for _, kind, v in self.terms])

    def quality(self, scores: Floats, rows: Any = slice(None)) -> dict[str, float]:
        """Return accuracy, AUC and the criterion `prefer` ("worth") on all rows, or on some."""
        y, f, s, prefer = self.problem.y[rows], scores[rows], self.row_weight[rows], self.target.prefer
        area = float("nan") if (y > 0).all() == (y > 0).any() else metrics.auc(y, f, s)
        found = {"accuracy": float(s @ (sign(f) == y) / s.sum()), "auc": area}
        return found | {"worth": float(prefer(y, f)) if callable(prefer) else found[prefer]}

    # --- the search -------------------------------------------------------------------------------------

    def best(self, candidates: Sequence[Candidate]) -> Candidate | None:
        """Return the best admissible candidate; None if there is none.

        Of candidates that differ by less than a standard error, one that uses the limit is preferred: it is
        closer to the plain model. If the AUC decides, the accuracy must keep a share (`keep`) of the largest
        advantage over a constant: an extreme threshold makes any ranking neutral.
        """
        worth = {one: one.quality["worth"] for one in candidates if one.admissible}
        if self.target.prefer == "auc" and worth:
            share = float(self.row_weight @ (self.problem.y > 0) / self.row_weight.sum())
            constant, most = max(share, 1 - share), max(one.quality["accuracy"] for one in worth)
            least = constant + self.target.keep * (most - constant)
            worth = {one: value for one, value in worth.items() if one.quality["accuracy"] >= least}
        top = max(worth.values(), default=0.0) - self.error_of_accuracy
        used = [one for one in worth if self.uses(one) and worth[one] >= top]
        return max(used or worth, key=lambda candidate: worth[candidate], default=None)

    def final(self, at: Candidate) -> Candidate | None:
        """Solve at the weights of a candidate, and near them; return the best usable one.

        It may be the plain model. The candidate may have been fitted on a part of the rows. A new candidate
        that uses the limit and is about as accurate ends the search.
        """
        own = at in self.candidates
        if len(self.terms) > 1 and not own:
            at, own = self.explore(at.surrogate, at.weights), True
        near, tol = at if own or not self.problem.is_kernel else self.plain, self.target.tol
        known: list[Candidate] = []
        end = max(self.left - 4 * LOOKS, 2 * LOOKS if isinstance(at.surrogate, DCFunction) else 0)
        while self.left > end:
            self.narrow(at.surrogate, at.weights, 1, near)
            near = self.candidates[-1]
            known.append(near)
            if near.admissible and self.uses(near) and self.lost(at, near) <= 1:
                break
        best = self.best([self.plain, *known])
        if best is not None and not best.solution.status.success and self.left > LOOKS:
            known.append(self.solve(at.surrogate, best.weights, best, tol, self.left - LOOKS))
        return self.best([one for one in (self.plain, *known) if one.solution.status.success])

    def uses(self, one: Candidate) -> bool:
        """Return whether the limit is active: the measure of a candidate is about at the limit.

        It must have the sign that it has for the plain model.
        """
        return one.value >= USED * self.target.allowance and float(one.parts @ self.plain.parts) > 0

    @cached_property
    def error_of_accuracy(self) -> float:
        """The standard error of the accuracy of the plain model."""
        accuracy = self.before.accuracy[0]
        return float(np.sqrt(accuracy * (1 - accuracy) / self.problem.n))

    def lost(self, at: Candidate, one: Candidate) -> float:
        """Return how much less accurate `one` is than the candidate `at`.

        The difference is in standard errors of the accuracy on the rows of `at`.
        """
        rows = at.solution.problem.n or self.problem.n  # a solution of chunks holds no rows
        error = self.error_of_accuracy * np.sqrt(self.problem.n / rows)
        return float((at.quality["accuracy"] - one.quality["accuracy"]) / max(error, 1e-300))

    def explore(self, surrogate: Any, start: Floats | None = None) -> Candidate:
        """Search weights that are just large enough for the limit, at a rough tolerance.

        Return the best candidate, or one with smaller weights whose limit is active and that is nearly as
        good. With several terms, secant steps find weights at which the ranking without a threshold is about
        within the limit. `start`, (number of terms,), are the first weights.
        """
        x, directions, count = start, self.plain.directions, len(self.terms)
        if x is None:
            x = directions if directions.any() else np.ones(count)
            x = (self.first or FIRST_WEIGHT) * x / np.abs(x).sum()
        if count == 1:
            self.narrow(surrogate, x, min(EXPLORED, self.affordable(surrogate, MOST_SOLVES // 2)))
        else:
            most = 3 if isinstance(surrogate, DCFunction) else 2 + 2 * min(count, 5)
            most = max(1, min(most, self.affordable(surrogate, 8)))
            secant(partial(self.solve, surrogate), self.plain, x, self.target.allowance, most)
        known = [one for one in self.candidates if one.surrogate is surrogate]
        best = self.best(known) or self.nearest(known)
        close = [one for one in known if one.admissible and self.uses(one) and self.lost(best, one) <= 0.5]
        return min(close, key=lambda one: float(np.abs(one.weights).sum()), default=best)

    def narrow(self, surrogate: Any, x: Floats, solves: int, near: Any = None) -> None:
        """Bisect for the smallest multiple of the weights x that is large enough.

        `enough` says whether a multiple is large enough. By default the multiples start far away, and the
        tolerance is rough. If a candidate `near` is given, x has nearly the right size, and the final
        tolerance is used.
        """
        tol, growth = (self.target.tol, 1.35) if near else (self.target.rough_tol, 2.0)
        for _ in range(min(solves, self.left)):
            known = [one for one in self.candidates if one.surrogate is surrogate]
            known = [one for one in known if one.solution.tol == tol]
            known.sort(key=lambda one: max(one.etas))
            sizes = {float(one.weights @ x / (x @ x)): one for one in known}
            sizes = {size: one for size, one in sizes.items() if np.allclose(size * x, one.weights)}
            low, size = next_size(self.enough(sizes), growth)
            self.solve(surrogate, size * x, near or sizes.get(low, self.plain), tol)

    def enough(self, sizes: Mapping[float, Candidate]) -> dict[float, bool]:
        """Return for each multiple of the weights whether it is large enough.

        `sizes` maps the multiples, called sizes, to their candidates, in increasing order. A larger size
        makes the ranking less accurate, but the threshold that meets the limit then costs less accuracy. A
        size is large enough if a step halfway to the next size would lose more accuracy of the ranking than
        the whole cost of its threshold. It is also large enough in three other cases: the measure has changed
        its sign, the ranking is no better than chance, or the solve failed.
        """
        found, before, ones = {}, self.plain, list(sizes.values())
        for size, one, after in zip(sizes, ones, [*ones[1:], *ones[-1:]], strict=True):
            over = one.quality["auc"] <= 0.5 or float(one.directions @ self.plain.directions) < 0
            lost = (before.free - after.free) / (1 if one is after else 2)
            found[size] = over or not np.isfinite(one.distance) or (one.admissible and one.cost <= lost)
            before = one
        return found

    # --- the answer -------------------------------------------------------------------------------------

    def answer(self, candidate: Candidate) -> Neutralized:
        """Return the result for a candidate.

        The last solve of this candidate is marked as chosen in the trace.
        """
        last = max((i for i, (one, _) in enumerate(self.rows) if one is candidate), default=-1)
        trace = pd.DataFrame([row for _, row in self.rows])
        return Neutralized(
            solution=candidate.solution.shifted(candidate.threshold),
            threshold=candidate.threshold,
            eta=shown(candidate.etas),
            side=shown(candidate.sides),
            surrogate=candidate.surrogate or self.surrogates[0],
            measure=self.target.metric.name,
            limit=self.target.limit,
            value=self.target.metric.measured(candidate.parts),
            reached=candidate.value <= self.target.allowance + 1e-12,
            trace=trace.assign(chosen=np.arange(len(trace)) == last),
            choice=self.choice,
            groups=tuple(name for g in self.groups if len(g.names) > 2 for name in g.names),
        )

    def nearest(self, among: Sequence[Candidate] = ()) -> Candidate:
        """Return the certified and usable candidate that is nearest to the limit.

        That is the one with the smallest distance of the measure from its best value. If several are within
        the limit, it is the most accurate one of them.
        """

        def rank(one: Candidate) -> tuple[bool, bool, float, float]:
            far = max(one.value, self.target.allowance)
            return not one.solution.status.success, bool(one.objection), far, -one.quality["accuracy"]

        return min(among or self.candidates, key=rank)

    def error(self) -> NotNeutralError:
        """Return the error that reports the nearest usable model, why it is refused, and what to change."""
        best, metric = self.nearest(), self.target.metric
        which = "it" if any(best.etas) else "the plain model already"
        why = best.objection and f"{which} {best.objection}"
        measured = f"{metric.measured(best.parts):.4g}{' of the limits' if metric.limits else ''}"
        rates = ", ".join(f"{rate:.3f}" for rate in best.rates)
        closest = f"The closest, with {best.surrogate or self.surrogates[0]!r} at eta {best.shown_etas}, "
        closest += f"has {measured}, accuracy {best.quality['accuracy']:.3f} and positive rates {rates}"
        advice: Sequence[tuple[str, str]] = ADVICE
        if not best.solution.status.success:
            why, advice = "its solution was not certified", (("tol", "raise"), ("lam", "raise"))
        elif not any(best.etas) and best.value <= self.target.allowance:  # the limit is not the obstacle
            advice = (("class_weight", "balance"), ("sample_weight", "change"), ("lam", "lower"))
        failed = f"No non-constant model satisfies {self.target.condition}"
        error = NotNeutralError(failed, f"{closest}, but {why}" if why else closest, advice)
        error.best = self.answer(best)
        return error


def surrogates_of(surrogate: Any, problem: Problem) -> list[Any]:
    """Return the surrogates to compare, as a list.

    "auto" stands for a convex one, the hinge if every loss is piecewise linear and the logistic function
    otherwise, and a ramp, which has slope 0 at large scores and is not convex.
    """
    if isinstance(surrogate, str) and surrogate == "auto":
        losses = [t.term.loss for t in problem.objective.terms if isinstance(t.term, Risk)]
        smooth = any(np.isfinite(loss.facts.smoothness) for loss in losses)
        return [Logistic() if smooth else Hinge(), Ramp(1.5)]
    given = list(surrogate) if isinstance(surrogate, list | tuple) else [surrogate]
    if not given or not all(isinstance(one, MarginFunction | DCFunction) for one in given):
        must = "'surrogate' must be 'auto', a margin function or a list of them"
        raise InvalidInputError(must, repr(surrogate), "Pass nerm.Logistic(), for instance")
    return given


def next_size(enough: Mapping[float, bool], growth: float = 2.0) -> tuple[float, float]:
    """Return the next size to try, after the largest one that is known to be too small.

    `enough` says for each size whether it was enough.

    >>> next_size({}), next_size({1.0: False}), next_size({1.0: True}), next_size({1.0: False, 2.0: True})
    ((0.0, 1.0), (1.0, 2.0), (0.0, 0.5), (1.0, 1.5))
    """
    high = min((size for size, met in enough.items() if met), default=np.inf)
    low = max((size for size in enough if size < high), default=0.0)
    if not np.isfinite(high):
        return low, growth * low or 1.0
    if not low:
        return low, high / growth
    return low, (low + high) / 2


def secant(evaluate: Callable[[Floats, Any], Any], at: Any, x: Floats, most: float, solves: int) -> Any:
    """Take secant steps in the weights until the distance of the measure is at most `most`.

    This is Broyden's method. The first Jacobian of `directions` is a multiple of the identity.

    Parameters
    ----------
    evaluate : callable
        Function (weights, candidate to start from) -> candidate. A candidate has `weights`, `directions` and
        `distance`, which is infinite if it could not be solved.
    at : candidate
        The plain model.
    x : (count,) array
        The first weights.
    solves : int
        The largest number of evaluations.

    Returns
    -------
    candidate
        The candidate with the smallest distance.
    """
    plain, jacobian = at, np.zeros((len(x), len(x)))
    for _ in range(solves):
        new = evaluate(x, at)
        if not np.isfinite(new.distance):
            x = 0.5 * (at.weights + x)  # the objective is unbounded, or nearly: stay closer
            continue
        change, move = new.directions - at.directions, x - at.weights
        length = max(float(move @ move), np.finfo(float).tiny)
        if not jacobian.any():
            jacobian = min(float(change @ move) / length, -1e-3) * np.eye(len(x))
        else:
            jacobian = jacobian + np.outer(change - jacobian @ move, move) / length
        if new.distance < at.distance or at is plain:
            at = new
        if at.distance <= most:
            break
        x = step(at, plain.directions, jacobian, most)
    return at


def step(at: Any, plain: Floats, jacobian: Floats, goal: float) -> Floats:
    """Return the weights at which the distance of the measure should be `goal`.

    They follow from the linear model `jacobian` of `directions`, the weighted agreement of each term. Each
    entry should get the sign that it has at the plain model, `plain`.
    """
    directions = np.copysign(at.directions * (goal / max(at.distance, 1e-300)), plain)
    move = np.linalg.lstsq(jacobian, directions - at.directions, rcond=1e-6)[0]
    longest = 2 * max(float(np.abs(at.weights).max()), FIRST_WEIGHT)
    move = move * min(1.0, longest / max(float(np.abs(move).max()), 1e-300))
    return np.asarray(at.weights + (move if move.any() else 0.1 * at.weights))


def with_named_weights(objective: Objective, names: Sequence[str]) -> Objective:
    """Replace the arrays of neutrality weights in an objective by names, one per neutrality term."""
    known = iter(names)
    terms = tuple(
        replace(t, term=replace(t.term, weights=next(known))) if isinstance(t.term, Neutrality) else t
        for t in objective.terms
    )
    return replace(objective, terms=terms)
