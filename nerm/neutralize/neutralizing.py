"""Find solutions that meet a `Target`, for one binary problem or for several one-vs-rest problems."""

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
    """Return a solution within a limit on measured neutrality (see `nerm.Problem.neutralize`)."""
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
    """Return the surrogate that is best on a validation set; None if no surrogate meets the limit.

    This is the first step of `neutralize`. The second step, the search for a solution on all rows, is not
    done.

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
    """Return a `Search` for a problem; `options` are further parameters of `Search`.

    `row_weight`, (n,), weights the rows in the measure and in neutrality; by default every row has weight 1.
    """
    weight = np.ones(problem.n) if row_weight is None else row_weight
    options.setdefault("used", np.ones(problem.n, dtype=bool))
    return Search(problem, target, viewpoints_of(problem), weight, **options)


def viewpoints_of(problem: Problem) -> tuple[str, ...]:
    """Return the names of the viewpoints of the neutrality terms, or of all if there is no such term."""
    if not problem.viewpoints:
        must = "'viewpoint' must be given to be neutral to it"
        raise InvalidInputError(must, "None", "Bind the data with viewpoint=...")
    terms = [t.term for t in problem.objective.terms if isinstance(t.term, Neutrality)]
    named = tuple(dict.fromkeys(viewpoint_of(term, problem.viewpoints) for term in terms))
    return named or tuple(problem.viewpoints)


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
    """Return the first surrogate, in order of preference, with a usable candidate within the limit.

    Returns
    -------
    surrogate : MarginFunction
        The surrogate.
    candidate : Candidate
        The candidate within the limit.
    choice : DataFrame
        The comparison of the surrogates from `compare`; empty if none was needed.
    """
    surrogates, choice = surrogates_of(surrogate, search), pd.DataFrame()
    firsts: list[float | None] = [None] * len(surrogates)
    if len(surrogates) > 1 and search.plain.value > search.target.limit:
        choice = compare(search, surrogates)
        surrogates = [surrogates[i] for i in choice.index]
        if len(search.plain.parts) == 1:  # start at the weight that met the limit in the comparison
            firsts = [eta if eta > 0 else None for eta in choice.get("eta", choice["worth"] * np.nan)]
    for one, first in zip(surrogates, firsts, strict=True):
        candidate = search.find(one, first)
        if candidate is not None:
            return one, candidate, choice
    raise search.error(surrogates)


# --- several classes ---------------------------------------------------------------------------------


def predicted(scores: Floats) -> Floats:
    """Return +1 for the predicted class of each row and -1 for the others, (n, number of classes).

    The predicted class is the one with the largest score; ties go to the first. `scores` has the same shape.

    >>> predicted(np.array([[0.2, 0.3, -1.0], [-2.0, -3.0, -2.0]]))
    array([[-1.,  1., -1.],
           [ 1., -1., -1.]])
    """
    return np.where(np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None], 1.0, -1.0)


def _classes(
    searches: Sequence[Search], surrogates: Sequence[Any], start: Sequence[Candidate]
) -> list[Candidate]:
    """Search for one candidate per class such that the predicted class is within the limit.

    The first search asks that the measure of each class' own scores is within the limit too; if it fails, a
    second search asks for the predicted class only. `start` are the candidates to start from, one per class.
    """
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
    """Return +1 for the predicted class of each row and -1 for the others, (number of classes, n)."""
    return predicted(np.column_stack([candidate.scores for candidate in candidates])).T


def _predicted_parts(
    searches: Sequence[Search], candidates: Sequence[Candidate], with_scores: bool
) -> Floats:
    """Return the signed parts of the measure of the predicted classes, as one flat array.

    If `with_scores`, the parts of the measure of each class' own scores are appended.
    """
    shown = zip(searches, _predictions(candidates), strict=True)
    parts = [search.measure(scores) for search, scores in shown]
    parts += [candidate.parts for candidate in candidates] if with_scores else []
    return np.concatenate(parts)


def _predicted_rates(searches: Sequence[Search], candidates: Sequence[Candidate]) -> Floats:
    """Return the share of rows in each group for which each class is predicted.

    The shape is (number of classes, number of viewpoints, 2), the groups being v <= 0 and v > 0.
    """
    shown = zip(searches, _predictions(candidates), strict=True)
    return np.array([search.rates(scores) for search, scores in shown])


# --- the rows of the measure ----------------------------------------------------------------------


def _own_weights(problem: Problem) -> Floats | None:
    """Return the neutrality weights, (n,), that the user gave as an array; None otherwise.

    They are returned only if the problem has exactly one neutrality term.
    """
    terms = [t.term for t in problem.objective.terms if isinstance(t.term, Neutrality)]
    if len(terms) != 1 or terms[0].weights is None or isinstance(terms[0].weights, str):
        return None
    return as_weights(terms[0].weights, problem.n, "weights")


def measured_on(
    on: Any, problem: Problem, metric: Metric, names: tuple[str, ...]
) -> Callable[[Solution], Floats] | None:
    """Return a function that measures a solution on the rows `on`; None if `on` is None.

    `on` is (X, y, viewpoint), and `names` are the viewpoints to measure. The function maps a solution to the
    signed parts of the measure. Without it, the training rows are used.
    """
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
    views, ones = resolve(viewpoint, X, len(labels), problem.groups), np.ones(len(labels))
    missing = [name for name in names if name not in views]
    if missing:
        must = f"the viewpoints of 'on' must be named as those of the problem, {', '.join(map(repr, names))}"
        do = f"Pass {{{missing[0]!r}: ...}} as its viewpoint"
        raise InvalidInputError(must, ", ".join(map(repr, views)), do)

    def measured(solution: Solution) -> Floats:
        scores = solution.decision_function(X)
        return np.concatenate([metric.parts(signs, scores, views[name], ones) for name in names])

    return measured
