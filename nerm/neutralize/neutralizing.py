"""Find solutions that meet a `Target`, for one binary problem or for several one-vs-rest problems."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from nerm.atoms.difference import DCFunction
from nerm.errors import InvalidInputError, NotNeutralError
from nerm.model.expressions import Neutrality, viewpoint_of
from nerm.model.problem import Problem
from nerm.neutralize.groups import Groups, groups_of
from nerm.neutralize.search import ADVICE, FIRST_WEIGHT, Search, secant
from nerm.neutralize.target import Candidate, Neutralized, Target
from nerm.signs import sign
from nerm.splitting import HOLD_OUT, hold_out
from nerm.typing import Floats, Ints
from nerm.validation import as_values, as_weights
from nerm.viewpoint import resolve

COMPARED_ROWS = 10_000  # the largest number of rows on which surrogates are fitted to compare them


def neutralize(
    problem: Problem, limit: float, measure: Any, *, on: Any = None, **options: Any
) -> Neutralized:
    """Return a solution within a limit on measured neutrality (see `nerm.Problem.neutralize`)."""
    target = Target(limit, measure, **options)
    terms = [t.term for t in problem.objective.terms if isinstance(t.term, Neutrality)]
    if target.metric.is_custom and len(terms) == 1 and not isinstance(terms[0].weights, str | None):
        own = as_weights(terms[0].weights, problem.n, "weights")
        target = replace(target, measure=replace(target.metric, weights=(own,)))
    search = search_for(problem, target)
    search.on = measured_on(on, problem, target)
    return answers([search])[0]


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


def explore(search: Search) -> list[Candidate]:
    """Return the best candidate of each surrogate.

    The search for a nonconvex surrogate starts at twice the weights of the convex one before it.
    """
    found: list[Candidate] = []
    start: Floats | None = None
    for surrogate in search.surrogates:
        convex = not isinstance(surrogate, DCFunction)
        found.append(search.explore(surrogate, None if convex or start is None else 2 * start))
        start = found[-1].weights if convex else start
    return found


def compare(search: Search) -> list[Candidate]:
    """Compare the surrogates on rows that they were not fitted on; return their candidates, best first.

    Each surrogate is fitted on a part of the rows and compared on the others. A function of the user is not
    compared, because it may be about the given rows only.

    The table of the comparison is `search.choice`. Its column "worth" is the criterion `prefer`. A surrogate
    is tied with the best if its accuracy is smaller by at most two standard errors of the difference; among
    tied surrogates the AUC decides.
    """
    p, target = search.problem, search.target
    if len(search.surrogates) == 1 or target.metric.is_custom:
        return explore(search)
    strata = [p.y, *(groups.codes for groups in search.groups)]
    learned = hold_out(strata, min(1 - HOLD_OUT, COMPARED_ROWS / p.n), target.random_state)
    cells = [2 * groups.codes + (p.y > 0) for groups in search.groups]
    if not all(len(np.unique(c[learned])) == len(np.unique(c)) for c in cells):
        return explore(search)
    rows, seen = np.flatnonzero(learned), np.flatnonzero(~learned)
    finalists = explore(part(search, rows))
    if len(np.unique(p.y[seen])) < 2:  # too few rows to compare on
        return finalists
    found = [_elsewhere(p, one, rows) for one in finalists]
    rows_of_table = [
        {"surrogate": repr(one.surrogate), "eta": max(one.etas)}
        | search.quality(scores, seen)
        | ({} if one.admissible else {"worth": -np.inf})
        for one, scores in zip(finalists, found, strict=True)
    ]
    frame = pd.DataFrame(rows_of_table)
    best, s = int(frame["worth"].argmax()), search.row_weight[seen] / search.row_weight[seen].mean()
    right = s * (sign(np.array(found)[:, seen]) == p.y[seen])
    lost = right[best] - right
    frame["tied"] = frame.index == best
    if target.prefer == "accuracy":
        close = lost.mean(axis=1) <= 2 * lost.std(axis=1) / np.sqrt(len(seen))
        frame["tied"] = close & (frame["worth"] > -np.inf)
    ranking = frame.assign(auc=frame["auc"].where(frame["tied"]))
    ranking = ranking.sort_values(["tied", "auc", "worth"], ascending=False, kind="stable")
    search.choice = frame.loc[ranking.index]
    return [finalists[k] for k in ranking.index]


def part(search: Search, rows: Ints) -> Search:
    """Return a search on some of the rows that adds its solves to the same trace."""
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
    groups = tuple(one.at(rows) for one in search.groups)
    made = Search(some, search.target, groups, s[rows], search.solver, rows=search.rows)
    made.before = made.table(search.plain.solution, search.scores(search.plain.solution)[rows]).at_zero
    return made


def _elsewhere(problem: Problem, candidate: Candidate, rows: Ints) -> Floats:
    """Return the scores on all rows of a candidate that was fitted on some of the rows.

    Its threshold is subtracted.
    """
    coef = candidate.solution.coef
    if problem.is_kernel:
        coef = np.zeros(problem.n)
        coef[rows] = candidate.solution.coef
    return problem.hypothesis.scores(coef, candidate.solution.intercept) - candidate.threshold


# --- the answer ---------------------------------------------------------------------------------------


def answers(searches: Sequence[Search]) -> list[Neutralized]:
    """Return one result per search: for one binary problem, or for several one-vs-rest problems.

    First, each problem is brought within the limit separately. With several classes, the predicted class is
    the one with the largest score, and its measure may still exceed the limit. In that case the weights of
    all problems are searched at once. With several classes, the `value` of each result is the measure of the
    predicted class.
    """
    candidates = [_found(search) for search in searches]
    if len(searches) == 1:
        return [searches[0].answer(candidates[0])]
    combined, objection = _classes(searches, candidates)
    found = [
        replace(search.answer(one), value=value, reached=not objection)
        for search, one, value in zip(searches, combined.candidates, combined.values, strict=True)
    ]
    if objection:
        failed = f"No models predict every class often enough with {searches[0].target.condition}"
        error = NotNeutralError(failed, objection, ADVICE)
        error.best = found
        raise error
    return found


def _found(search: Search) -> Candidate:
    """Return the best usable candidate within the limit.

    If there is none, raise an error, or return the nearest candidate if the problem is for one of several
    classes.
    """
    plain = search.plain
    if plain.value <= search.target.allowance and not plain.threshold:
        if not plain.admissible and not search.one_of_several:
            raise search.error()
        return plain
    found: list[Candidate] = []
    for at in compare(search):
        found += filter(None, [search.final(at)])
        if any(search.lost(at, one) <= 2 and search.uses(one) for one in found):
            break  # else the weight does not suit all rows, or convex steps made the model worse
    best = search.best(found)
    convex = [one for one in search.candidates if any(one.etas) and one.solution.problem.is_convex]
    while convex and best is None and search.left:
        best = search.final(search.nearest(convex))
    if best is None and not search.one_of_several:
        raise search.error()
    return best or search.nearest()


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
class ClassCandidates:
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


def _combined(searches: Sequence[Search], candidates: Sequence[Candidate]) -> ClassCandidates:
    """Return the candidates with the measure of the class that they predict."""
    shown = predicted(np.column_stack([one.scores for one in candidates])).T
    found = list(zip(searches, candidates, shown, strict=True))
    tables = [search.table(one.solution, f).at_zero for search, one, f in found]
    return ClassCandidates(
        list(candidates),
        np.concatenate([one.weights for one in candidates]),
        np.concatenate([search.directions(f) for search, _, f in found]),
        max(float(table.distance[0]) for table in tables),
        [abs(searches[0].target.metric.measured(table.parts[0])) for table in tables],
        np.concatenate([table.rates[0] for table in tables]),
    )


def _classes(searches: Sequence[Search], start: Sequence[Candidate]) -> tuple[ClassCandidates, str]:
    """Search for one candidate per class such that the predicted class is within the limit.

    Return the nearest candidates, and a text that says why they are not usable; "" if they are.
    """
    target, seen = searches[0].target, [_combined(searches, start)]
    surrogates = [one.surrogate or search.surrogates[0] for search, one in zip(searches, start, strict=True)]
    least = target.keep * _combined(searches, [search.plain for search in searches]).rates

    def evaluate(x: Floats, before: ClassCandidates) -> ClassCandidates:
        given = zip(searches, surrogates, np.split(x, len(searches)), before.candidates, strict=True)
        new = [
            old if np.array_equal(w, old.weights) else search.solve(psi, w, None, target.tol)
            for search, psi, w, old in given
        ]
        seen.append(_combined(searches, new))
        return seen[-1]

    if seen[0].distance > target.allowance:
        x = seen[0].weights + FIRST_WEIGHT * seen[0].directions / np.abs(seen[0].directions).max()
        affordable = [search.affordable(psi) for search, psi in zip(searches, surrogates, strict=True)]
        secant(evaluate, seen[0], x, target.allowance, max(1, min(affordable)))

    def rank(one: ClassCandidates) -> tuple[bool, bool, float, float]:
        certified = all(candidate.solution.status.success for candidate in one.candidates)
        far = max(one.distance, target.allowance + 1e-12)
        return not certified, bool((one.rates < least).any()), far, float(np.abs(one.weights).sum())

    best = min(seen, key=rank)
    uncertified, rare, far, _ = rank(best)
    why = ", but their solutions were not certified" if uncertified else ""
    why = why or (", but predict a class too rarely in some group" if rare else "")
    return best, f"The closest have {max(best.values):.4g}{why}" if why or far == best.distance else ""


# --- the rows of the measure ----------------------------------------------------------------------


def measured_on(on: Any, problem: Problem, target: Target) -> tuple[Any, Floats, tuple[Groups, ...]] | None:
    """Return the rows on which a search measures: (X, labels, groups); None if `on` is None.

    `on` is (X, y, viewpoint). The labels y become -1 and +1, and the viewpoint becomes the groups that the
    target compares.
    """
    if on is None:
        return None
    if not isinstance(on, tuple | list) or len(on) != 3:
        got = repr(type(on).__name__)
        raise InvalidInputError("'on' must be (X, y, viewpoint)", got, "Pass the three as a tuple")
    X, y, viewpoint = on
    labels, names = as_values(y, np.shape(X)[0], "y", "label"), viewpoints_of(problem)
    views = resolve(viewpoint, X, len(labels), problem.groups)
    for what, given, known in (
        ("labels of 'on' must be among", set(labels.tolist()), problem.classes.tolist()),
        ("viewpoints of the problem must be among those of 'on':", set(names), list(views)),
    ):
        if not given <= set(known):
            must, got = f"the {what} {', '.join(map(repr, known))}", repr(min(given - set(known)))
            raise InvalidInputError(must, got, "Pass on=(X, y, viewpoint) as on(X, y, viewpoint=...)")
    signs = np.where(labels == problem.classes[1], 1.0, -1.0)
    return X, signs, target_groups({name: views[name] for name in names}, target)
