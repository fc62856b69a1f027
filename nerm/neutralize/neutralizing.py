"""Find solutions that meet a `Target`, for one binary problem or for several one-vs-rest problems."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from nerm.atoms.difference import DCFunction, Ramp
from nerm.atoms.losses import Hinge, Logistic
from nerm.atoms.margin import MarginFunction
from nerm.errors import InvalidInputError, NotNeutralError
from nerm.model.expressions import Neutrality, Risk, viewpoint_of
from nerm.model.problem import Problem
from nerm.neutralize.groups import Groups, groups_of
from nerm.neutralize.search import ADVICE, FIRST_WEIGHT, MOST_SOLVES, MOST_STEPS, Search, secant
from nerm.neutralize.target import Candidate, History, Neutralized, Target
from nerm.signs import sign
from nerm.splitting import HOLD_OUT, assign_folds, hold_out
from nerm.typing import Floats, Ints
from nerm.validation import as_weights
from nerm.viewpoint import resolve

COMPARED_ROWS = 10_000  # the largest number of rows on which surrogates are fitted to compare them


def neutralize(
    problem: Problem, limit: float, measure: Any, *, on: Any = None, **options: Any
) -> Neutralized:
    """Return a solution within a limit on measured neutrality (see `nerm.Problem.neutralize`)."""
    target = Target(limit, measure, **options)
    surrogates_of(target.surrogate, problem)  # an error here comes before any solve
    metric = target.metric
    own = _own_weights(problem) if metric.is_custom else None
    if own is not None:
        target = replace(target, measure=replace(metric, weights=(own,)))
    search = search_for(problem, target)
    search.on = measured_on(on, problem, target)
    return answers([search])[0]


def surrogates_of(surrogate: Any, problem: Problem) -> list[Any]:
    """Return the surrogates to compare, as a list.

    "auto" stands for a convex one, the hinge if every loss is piecewise linear and the logistic function
    otherwise, and a ramp, which has slope 0 at large scores and is not convex.
    """
    if isinstance(surrogate, str) and surrogate == "auto":
        losses = [t.term.loss for t in problem.objective.terms if isinstance(t.term, Risk)]
        smooth = any(np.isfinite(loss.facts.smoothness) for loss in losses)
        return [Logistic() if smooth else Hinge(), Ramp(1.0)]
    given = list(surrogate) if isinstance(surrogate, list | tuple) else [surrogate]
    if not given or not all(isinstance(one, MarginFunction | DCFunction) for one in given):
        must = "'surrogate' must be 'auto', a margin function or a list of them"
        raise InvalidInputError(must, repr(surrogate), "Pass nerm.Logistic(), for instance")
    return given


def search_for(problem: Problem, target: Target, row_weight: Floats | None = None, **options: Any) -> Search:
    """Return a `Search` for a problem; `options` are further parameters of `Search`.

    `row_weight`, (n,), weights the rows in the measure and in neutrality; by default every row has weight 1.
    """
    weight = np.ones(problem.n) if row_weight is None else row_weight
    groups = target_groups({name: problem.viewpoints[name] for name in viewpoints_of(problem)}, target)
    terms = {name: v for one in groups for name, v in one.views.items()}
    whole = replace(problem, viewpoints={**problem.viewpoints, **terms})
    return Search(whole, target, groups, weight, **options)


def target_groups(views: Any, target: Target) -> tuple[Groups, ...]:
    """Return the groups of viewpoints, by name, that a target compares."""
    kinds = [kind for kind in target.metric.weights if isinstance(kind, str)]
    return groups_of(views, target.groups, pairs=kinds == ["uniform"])


def viewpoints_of(problem: Problem) -> tuple[str, ...]:
    """Return the names of the viewpoints of the neutrality terms, or of all if there is no such term."""
    if not problem.viewpoints:
        must = "'viewpoint' must be given to be neutral to it"
        raise InvalidInputError(must, "None", "Bind the data with viewpoint=...")
    terms = [t.term for t in problem.objective.terms if isinstance(t.term, Neutrality)]
    named = tuple(dict.fromkeys(viewpoint_of(term, problem.viewpoints) for term in terms))
    return named or tuple(problem.viewpoints)


# --- the choice of a surrogate on unseen rows ----------------------------------------------------------


def explore(search: Search, surrogates: Sequence[Any]) -> list[Candidate]:
    """Return the best candidate of each surrogate.

    The search for a nonconvex surrogate starts at twice the weights of the convex one before it.
    """
    found: list[Candidate] = []
    start: Floats | None = None
    for surrogate in surrogates:
        convex = not isinstance(surrogate, DCFunction)
        begin = None if convex or start is None else 2 * start
        at = search.find(surrogate, begin, 0 if begin is None else MOST_STEPS)
        found.append(search.best(search.history.of(surrogate)) or at)
        start = found[-1].weights if convex else start
    return found


def compare(
    search: Search, surrogates: Sequence[Any], folds: int = 3
) -> tuple[list[Candidate], pd.DataFrame]:
    """Compare surrogates on rows that they were not fitted on; return finalists, best first, and a table.

    With many rows, each surrogate is fitted on a part of the rows and compared on the others. With few rows
    it is fitted on all rows, and again, with the same weights, on the rows outside of each fold. The column
    "worth" is the criterion `prefer`. A surrogate is tied with the best if its accuracy is smaller by at most
    two standard errors of the difference; among tied surrogates the AUC decides.
    """
    p, scores = search.problem, np.full((len(surrogates), search.problem.n), np.nan)
    strata, seed = [p.y, *(groups.codes for groups in search.groups)], search.target.random_state
    if p.n > COMPARED_ROWS / 2:
        fitted = hold_out(strata, min(1 - HOLD_OUT, COMPARED_ROWS / p.n), seed)
        finalists = explore(part(search, np.flatnonzero(fitted)), surrogates)
        for k, one in enumerate(finalists):
            scores[k, ~fitted] = _elsewhere(p, one, np.flatnonzero(fitted))[~fitted]
    else:
        finalists = explore(search, surrogates)
        fold = assign_folds(strata, folds, seed) if p.n >= folds else np.zeros(p.n, dtype=int)
        for number in range(folds):
            rows, others = np.flatnonzero(fold != number), fold == number
            whole = all(len(np.unique(g.codes[rows])) == len(g.names) for g in search.groups)
            if not whole or _one_class(p.y[rows]):
                continue
            inner = part(search, rows)
            for k, at in enumerate(finalists):
                coef = at.solution.coef
                near = coef[rows] if p.is_kernel else coef, at.solution.intercept
                again = inner.solve(at.surrogate, at.weights, near, steps=MOST_STEPS - 1)
                scores[k, others] = _elsewhere(p, again, rows)[others]
    seen = np.flatnonzero(np.isfinite(scores).all(axis=0))
    frame = pd.DataFrame({"surrogate": [repr(one) for one in surrogates], "worth": np.nan})
    if _one_class(p.y[seen]):  # too few rows to compare on
        return finalists, frame
    for k, one in enumerate(finalists):
        usable, quality = one.admissible, search.quality(scores[k], seen)
        frame.loc[k, "worth"] = search.worth(scores[k], seen) if usable else -np.inf
        frame.loc[k, ["accuracy", "auc", "eta"]] = *quality.values(), max(one.etas)
    best, s = int(frame["worth"].argmax()), search.row_weight[seen] / search.row_weight[seen].mean()
    right = s * (sign(scores[:, seen]) == p.y[seen])
    lost = right[best] - right
    tied = lost.mean(axis=1) <= 2 * lost.std(axis=1) / np.sqrt(len(seen))
    tied = tied & (frame["worth"] > -np.inf) if search.target.prefer == "accuracy" else frame.index == best
    frame["tied"] = tied
    order = frame.assign(ranking=frame["auc"].where(frame["tied"]))
    order = order.sort_values(["tied", "ranking", "worth"], ascending=False, kind="stable")
    return [finalists[k] for k in order.index], order.drop(columns="ranking")


def part(search: Search, rows: Ints) -> Search:
    """Return the search on some of the rows; it adds to the same trace."""
    p, s = search.problem, search.row_weight
    some = replace(
        p,
        hypothesis=p.hypothesis.some(rows),
        y=p.y[rows],
        viewpoints={name: v[rows] for name, v in p.viewpoints.items()},
        sample_weight=p.sample_weight[rows],
        divisor=p.divisor * float(s[rows].sum() / s.sum()),
        blocks=(),
    )
    groups, history = tuple(one.at(rows) for one in search.groups), History(rows=search.history.rows)
    made = Search(some, search.target, groups, s[rows], search.solver, history=history)
    made.before = made.table(search.plain.solution, search.scores(search.plain.solution)[rows]).at_zero
    return made


def _elsewhere(problem: Problem, candidate: Candidate, rows: Ints) -> Floats:
    """Return the scores on all rows, minus the threshold, of a candidate that was fitted on some rows."""
    coef = candidate.solution.coef
    if problem.is_kernel:
        coef = np.zeros(problem.n)
        coef[rows] = candidate.solution.coef
    return problem.hypothesis.scores(coef, candidate.solution.intercept) - candidate.threshold


def _one_class(y: Floats) -> bool:
    return bool((y > 0).all() == (y > 0).any())


# --- the answer ---------------------------------------------------------------------------------------


def answers(searches: Sequence[Search], surrogates: Sequence[Any] | None = None) -> list[Neutralized]:
    """Return one result per search: for one binary problem, or for several one-vs-rest problems.

    First, each problem is brought within the limit separately. With several classes, the predicted class is
    the one with the largest score, and its measure may still exceed the limit. In that case the weights of
    all problems are searched jointly. With several classes, the `value` of each result is the measure of the
    predicted class.

    `surrogates` has one entry per search; by default it is the surrogate of the search's target.
    """
    given = [search.target.surrogate for search in searches] if surrogates is None else surrogates
    parts = [_found(search, surrogate) for search, surrogate in zip(searches, given, strict=True)]
    if len(searches) == 1:
        ((candidate, surrogate, choice),) = parts
        return [searches[0].answer(candidate, choice, surrogate)]
    joint = _classes(searches, [part[1] for part in parts], [part[0] for part in parts])
    found = zip(searches, joint.candidates, joint.values, parts, strict=True)
    return [
        replace(search.answer(one, choice, surrogate), value=value, reached=True)
        for search, one, value, (_, surrogate, choice) in found
    ]


def _found(search: Search, surrogate: Any) -> tuple[Candidate, Any, pd.DataFrame]:
    """Return a usable candidate within the limit, its surrogate, and the table of compared surrogates."""
    surrogates, choice, plain = surrogates_of(surrogate, search.problem), pd.DataFrame(), search.plain
    if plain.value <= search.target.allowance and not plain.threshold:
        if search.objection(plain) and not search.one_of_several:
            raise search.error(surrogates)
        return plain, surrogates[0], choice
    finalists: list[Any] = [None]
    spare: list[Candidate] = []
    if len(surrogates) > 1:
        finalists, choice = compare(search, surrogates)
    for one in finalists:
        psi, at = surrogates[0] if one is None else one.surrogate, one
        if at is None or at not in search.history.candidates:
            near = at is not None and (len(search.terms) == 1 or isinstance(psi, DCFunction))
            at = search.find(psi, None if at is None else at.weights, MOST_STEPS if near else 0)
        candidate = _finished(search, at, spare)
        if candidate is not None:
            return candidate, psi, choice
    if spare:
        candidate = max(spare, key=lambda one: one.quality["accuracy"])
        return candidate, candidate.surrogate, choice
    last = search.bisect()
    if last is not None:
        return last, last.surrogate, choice
    raise search.error(surrogates)


def _finished(search: Search, at: Candidate, spare: list[Candidate]) -> Candidate | None:
    """Refine around a candidate, and solve the best one to the tolerance; None if none is usable.

    A nonconvex candidate may become less accurate on the way to its stationary point. If it loses more than
    two standard errors, it is added to `spare`, and the next best one is tried.
    """
    search.refine(at)
    candidates, tol = [search.plain, *search.history.of(at.surrogate)], search.target.tol
    reserved = MOST_STEPS if isinstance(at.surrogate, DCFunction) else 0  # solves for another surrogate
    while (rough := search.best(candidates)) is not None:
        candidates, best = [one for one in candidates if one is not rough], rough
        if rough is not search.plain:
            if search.left <= reserved:
                continue
            near = rough.solution.coef, rough.solution.intercept
            best = search.solve(rough.surrogate, rough.weights, near, tol, max(1, search.left - reserved))
        if best.admissible and not search.objection(best):
            lost = rough.quality["accuracy"] - best.quality["accuracy"]
            if lost <= 2 * search.error_of_accuracy:
                return best
            spare.append(best)
    return None


# --- several classes ---------------------------------------------------------------------------------


def predicted(scores: Floats) -> Floats:
    """Return +1 for the predicted class of each row and -1 for the others, (n, number of classes).

    The predicted class is the one with the largest score; ties go to the first. `scores` has the same shape.

    >>> predicted(np.array([[0.2, 0.3, -1.0], [-2.0, -3.0, -2.0]]))
    array([[-1.,  1., -1.],
           [ 1., -1., -1.]])
    """
    return np.where(np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None], 1.0, -1.0)


@dataclass(frozen=True, eq=False)
class Joint:
    """One candidate per class, and the measure of the class that they predict.

    It has the attributes of a `Candidate` that `secant` needs; `values` has one measure per class, and
    `rates` the positive rates of every class and group.
    """

    candidates: list[Candidate]
    weights: Floats
    directions: Floats
    distance: float
    values: list[float]
    rates: Floats


def _joint(searches: Sequence[Search], candidates: Sequence[Candidate]) -> Joint:
    """Return the candidates with the measure of the class that they predict."""
    shown = predicted(np.column_stack([one.scores for one in candidates])).T
    found = list(zip(searches, candidates, shown, strict=True))
    tables = [search.table(one.solution, f).at_zero for search, one, f in found]
    return Joint(
        list(candidates),
        np.concatenate([one.weights for one in candidates]),
        np.concatenate([search.directions(f) for search, _, f in found]),
        max(float(table.distance[0]) for table in tables),
        [abs(searches[0].metric.measured(table.parts[0])) for table in tables],
        np.concatenate([table.rates[0] for table in tables]),
    )


def _classes(searches: Sequence[Search], surrogates: Sequence[Any], start: Sequence[Candidate]) -> Joint:
    """Search for one candidate per class such that the predicted class is within the limit."""
    target, seen = searches[0].target, [_joint(searches, start)]
    least = target.keep * _joint(searches, [search.plain for search in searches]).rates

    def evaluate(x: Floats, before: Joint) -> Joint:
        given = zip(searches, surrogates, np.split(x, len(searches)), before.candidates, strict=True)
        new = [
            old if np.array_equal(w, old.weights) else search.solve(psi, w, None, target.tol)
            for search, psi, w, old in given
        ]
        seen.append(_joint(searches, new))
        return seen[-1]

    if seen[0].distance > target.allowance:
        x = seen[0].weights + FIRST_WEIGHT * seen[0].directions / np.abs(seen[0].directions).max()
        secant(evaluate, seen[0], x, target.allowance, MOST_SOLVES)
    within = [one for one in seen if one.distance <= target.allowance + 1e-12]
    for one in sorted(within, key=lambda one: float(np.abs(one.weights).sum())):
        certified = all(candidate.solution.status.success for candidate in one.candidates)
        if certified and (one.rates >= least).all():
            return one
    failed = f"No models predict every class often enough with {target.condition}"
    raise NotNeutralError(failed, f"The closest have {min(one.distance for one in seen):.4g}", ADVICE)


# --- the rows of the measure ----------------------------------------------------------------------


def _own_weights(problem: Problem) -> Floats | None:
    """Return the neutrality weights, (n,), that the user gave as an array; None otherwise.

    They are returned only if the problem has exactly one neutrality term.
    """
    terms = [t.term for t in problem.objective.terms if isinstance(t.term, Neutrality)]
    if len(terms) != 1 or terms[0].weights is None or isinstance(terms[0].weights, str):
        return None
    return as_weights(terms[0].weights, problem.n, "weights")


def measured_on(on: Any, problem: Problem, target: Target) -> tuple[Any, Floats, tuple[Groups, ...]] | None:
    """Return the rows `on`, (X, y, viewpoint), with labels as signs and with groups; None if `on` is None."""
    if on is None:
        return None
    if not isinstance(on, tuple | list) or len(on) != 3:
        got = repr(type(on).__name__)
        raise InvalidInputError("'on' must be (X, y, viewpoint)", got, "Pass the three as a tuple")
    X, y, viewpoint = on
    labels = np.asarray(y)
    unknown = np.flatnonzero(~np.isin(labels, problem.classes))
    if len(unknown):
        must = f"the labels of 'on' must be {', '.join(map(repr, problem.classes.tolist()))}"
        raise InvalidInputError(must, f"{labels[unknown[0]]!r} at index {unknown[0]}", "Leave it out")
    if np.shape(X)[0] != len(labels):
        got = f"{np.shape(X)[0]} rows of X and {len(labels)} labels"
        do = "Pass (X, y, viewpoint) of the same rows"
        raise InvalidInputError("'on' must have one label per row", got, do)
    signs = np.where(labels == problem.classes[1], 1.0, -1.0)
    views, names = resolve(viewpoint, X, len(labels), problem.groups), viewpoints_of(problem)
    missing = [name for name in names if name not in views]
    if missing:
        must = f"the viewpoints of 'on' must be named as those of the problem, {', '.join(map(repr, names))}"
        do = f"Pass {{{missing[0]!r}: ...}} as its viewpoint"
        raise InvalidInputError(must, ", ".join(map(repr, views)), do)
    return X, signs, target_groups({name: views[name] for name in names}, target)
