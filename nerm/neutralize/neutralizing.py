"""From a target to solutions: of one problem, or of several classes, each against the rest."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from nerm.certify.solution import Solution
from nerm.errors import InvalidInputError, NotNeutralError
from nerm.metrics import Metric
from nerm.model.expressions import Neutrality, viewpoint_of
from nerm.model.problem import Problem
from nerm.neutralize.search import ADVICE, FIRST_WEIGHT, Search, damped_secant
from nerm.neutralize.surrogates import compare, surrogates_of
from nerm.neutralize.target import Candidate, Neutralized, Target
from nerm.typing import Floats
from nerm.validation import as_weights
from nerm.viewpoint import resolve


def neutralize(
    problem: Problem, limit: float, measure: Any, *, on: Any = None, **options: Any
) -> Neutralized:
    """Return the solution within a limit on measured neutrality (see `nerm.Problem.neutralize`)."""
    target = Target(limit, measure, **options)
    surrogates_of(target.surrogate)  # an error here comes before any solve
    metric = target.metric
    own = _own_weights(problem) if metric.is_custom else None
    if own is not None:
        target = replace(target, measure=replace(metric, weights=(own,)))
    search = search_for(problem, target)
    search.measured = measured_on(on, problem, search.metric, search.viewpoints)
    return answers([search])[0]


def best_surrogate(problem: Problem, limit: float, measure: Any, **options: Any) -> Any:
    """Return the surrogate that is best on rows that are set apart, None where none meets the limit.

    That is the first half of `neutralize`: no solution on all rows is searched for.

    Parameters
    ----------
    problem, limit, measure, options
        As for `nerm.Problem.neutralize`.

    """
    target = Target(limit, measure, **options)
    search, surrogates = search_for(problem, target), surrogates_of("auto")
    if search.plain.value <= target.limit:
        return surrogates[0]
    choice = compare(search, surrogates)
    return None if (choice["worth"] == -np.inf).all() else surrogates[int(choice.index[0])]


def search_for(problem: Problem, target: Target, row_weight: Floats | None = None, **options: Any) -> Search:
    """Return the search on a problem; rows count once or by `row_weight`. Options as of `Search`."""
    weight = np.ones(problem.n) if row_weight is None else row_weight
    options.setdefault("used", np.ones(problem.n, dtype=bool))
    return Search(problem, target, viewpoints_of(problem), weight, **options)


def viewpoints_of(problem: Problem) -> tuple[str, ...]:
    """Return the viewpoints of the neutrality terms, or all where there is no such term."""
    if not problem.viewpoints:
        must = "'viewpoint' must be given to be neutral to it"
        raise InvalidInputError(must, "None", "Bind the data with viewpoint=...")
    terms = [t.term for t in problem.objective.terms if isinstance(t.term, Neutrality)]
    named = tuple(dict.fromkeys(viewpoint_of(term, problem.viewpoints) for term in terms))
    return named or tuple(problem.viewpoints)


def answers(searches: Sequence[Search], surrogates: Sequence[Any] | None = None) -> list[Neutralized]:
    """Return one result per search: one problem, or one class against the rest each.

    Every class is brought within the limit by itself. The class of the largest score is another decision;
    where that is beyond the limit, the weights of all classes are searched jointly, and the value of a result
    is about it. `surrogates` are those of the target, or one for each search.
    """
    given = [search.target.surrogate for search in searches] if surrogates is None else surrogates
    parts = [_found(search, surrogate) for search, surrogate in zip(searches, given, strict=True)]
    found, chosen = [part[1] for part in parts], [part[0] for part in parts]
    if len(searches) > 1:
        found = _classes(searches, chosen, found)
    results = [
        search.answer(candidate, surrogate, choice)
        for search, candidate, (surrogate, _, choice) in zip(searches, found, parts, strict=True)
    ]
    if len(searches) == 1:
        return results
    values = np.abs(_predicted_parts(searches, found, False)).reshape(len(searches), -1).max(axis=1)
    return [replace(one, value=v, reached=True) for one, v in zip(results, values.tolist(), strict=True)]


def _found(search: Search, surrogate: Any) -> tuple[Any, Candidate, pd.DataFrame]:
    """Return the best surrogate, the candidate within the limit, and how surrogates compared."""
    surrogates, choice = surrogates_of(surrogate, search), pd.DataFrame()
    firsts: list[float | None] = [None] * len(surrogates)
    if len(surrogates) > 1 and search.plain.value > search.target.limit:
        choice = compare(search, surrogates)
        surrogates = [surrogates[i] for i in choice.index]
        if len(search.plain.parts) == 1:  # the weight that met the limit on most rows is close to that of all
            firsts = [eta if eta > 0 else None for eta in choice.get("eta", choice["worth"] * np.nan)]
    for one, first in zip(surrogates, firsts, strict=True):
        candidate = search.find(one, first)
        if candidate is not None:
            return one, candidate, choice
    raise search.error(surrogates)


# --- several classes ---------------------------------------------------------------------------------


def predicted(scores: Floats) -> Floats:
    """Return +1 where a class is predicted, the first of the largest scores, else -1.

    Scores are (n, number of classes).

    >>> predicted(np.array([[0.2, 0.3, -1.0], [-2.0, -3.0, -2.0]]))
    array([[-1.,  1., -1.],
           [ 1., -1., -1.]])
    """
    return np.where(np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None], 1.0, -1.0)


def _classes(
    searches: Sequence[Search], surrogates: Sequence[Any], start: Sequence[Candidate]
) -> list[Candidate]:
    """Return candidates whose predicted classes are within the limit, if possible with each class' scores."""
    target = searches[0].target
    least = target.keep * _predicted_rates(searches, [search.plain for search in searches])
    seen: list[tuple[Floats, Sequence[Candidate]]] = []
    for with_scores in (True, False):

        def evaluate(
            x: Floats, before: Sequence[Candidate], with_scores: bool = with_scores
        ) -> tuple[Floats, Sequence[Candidate]]:
            new = [
                old if np.array_equal(part, old.weights) else search.solve(surrogate, part, old)
                for search, surrogate, part, old in zip(
                    searches, surrogates, np.split(x, len(searches)), before, strict=True
                )
            ]
            return _predicted_parts(searches, new, with_scores), new

        at = (_predicted_parts(searches, start, with_scores), start)
        seen = [at]
        if np.abs(at[0]).max() > target.limit:
            x = np.concatenate([candidate.weights for candidate in start])
            first = FIRST_WEIGHT * np.where(x == 0, 1.0, x)
            seen += damped_secant(evaluate, x, at, first, target.limit)
        within = [found for parts, found in seen if np.abs(parts).max() <= target.limit]
        for found in sorted(within, key=lambda found: sum(sum(one.etas) for one in found)):
            certified = all(candidate.solution.status.success for candidate in found)
            if certified and (_predicted_rates(searches, found) >= least).all():
                return list(found)
    closest = min(float(np.abs(parts).max()) for parts, _ in seen)
    failed = f"No models predict every class often enough with |{target.metric.name}| <= {target.limit:g}"
    raise NotNeutralError(failed, f"The closest have {closest:.4g}", ADVICE)


def _predictions(candidates: Sequence[Candidate]) -> Floats:
    """Return +1 where a class is predicted, (number of classes, n)."""
    return predicted(np.column_stack([candidate.scores for candidate in candidates])).T


def _predicted_parts(
    searches: Sequence[Search], candidates: Sequence[Candidate], with_scores: bool
) -> Floats:
    """Return the parts of the predicted classes and, with scores, those of each class' own scores."""
    shown = zip(searches, _predictions(candidates), strict=True)
    parts = [search.measure(scores) for search, scores in shown]
    parts += [candidate.parts for candidate in candidates] if with_scores else []
    return np.concatenate(parts)


def _predicted_rates(searches: Sequence[Search], candidates: Sequence[Candidate]) -> Floats:
    """Return how often each class is predicted in each group."""
    shown = zip(searches, _predictions(candidates), strict=True)
    return np.array([search.rates(scores) for search, scores in shown])


# --- what the measure is taken on --------------------------------------------------------------------


def _own_weights(problem: Problem) -> Floats | None:
    """Return the array of weights of the problem's one neutrality term, None where there is no such array."""
    terms = [t.term for t in problem.objective.terms if isinstance(t.term, Neutrality)]
    if len(terms) != 1 or terms[0].weights is None or isinstance(terms[0].weights, str):
        return None
    return as_weights(terms[0].weights, problem.n, "weights")


def measured_on(
    on: Any, problem: Problem, metric: Metric, names: tuple[str, ...]
) -> Callable[[Solution], Floats] | None:
    """Return the function that measures a solution on other rows; None for the training rows."""
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
    views, ones = resolve(viewpoint, X, len(labels)), np.ones(len(labels))
    missing = [name for name in names if name not in views]
    if missing:
        must = f"the viewpoints of 'on' must be named as those of the problem, {', '.join(map(repr, names))}"
        do = f"Pass {{{missing[0]!r}: ...}} as its viewpoint"
        raise InvalidInputError(must, ", ".join(map(repr, views)), do)

    def measured(solution: Solution) -> Floats:
        scores = solution.decision_function(X)
        return np.concatenate([metric.parts(signs, scores, views[name], ones) for name in names])

    return measured
