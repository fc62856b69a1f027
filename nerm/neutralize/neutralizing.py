"""Neutral up to a limit: which surrogate serves best, at which weight, and whether the answer is one to be used."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from nerm.certify.solution import Solution
from nerm.errors import InvalidInputError
from nerm.metrics import as_metric
from nerm.model.objective import Neutrality, viewpoint_of
from nerm.model.problem import Problem
from nerm.model.viewpoint import resolve
from nerm.neutralize.attempts import Attempts
from nerm.neutralize.classes import Together
from nerm.neutralize.result import Neutralized
from nerm.neutralize.search import Attempt
from nerm.neutralize.surrogates import Prefer, candidates_of, compared, judge_of
from nerm.neutralize.trial import Trial
from nerm.solvers.registry import SolverPool
from nerm.typing import Floats
from nerm.validation import as_nonnegative, as_positive, as_weights


@dataclass(frozen=True)
class Asking:
    """What is asked of one problem or of several classes alike (`nerm.Problem.neutralize` explains).

    Beside that, estimators give the weights of rows in the measure, the first weight to try and the solver;
    `moved_by` are the neutrality weights, (n,), of the term that moves a measure of one's own, where balanced
    ones do not.
    """

    limit: float
    measure: Any = "calders_verwer_score"
    tol: float = 1e-6
    prefer: Prefer = "accuracy"
    keep: float = 0.5
    random_state: int = 0
    row_weight: Floats | None = None
    first: float | None = None
    solver: Any = "auto"
    moved_by: Floats | None = None

    def study(self, problem: Problem, on: Any = None, *, among_classes: bool = False) -> Attempts:
        """Return the plain solution of a problem, to be neutralized; all that is asked for is checked."""
        limit, keep = as_nonnegative(self.limit, "limit"), as_nonnegative(self.keep, "keep")
        weight = np.ones(problem.n) if self.row_weight is None else self.row_weight
        measured, views, tol = as_metric(self.measure), _viewpoints(problem), as_positive(self.tol, "tol")
        if self.moved_by is not None:
            measured = replace(measured, weights=(self.moved_by,))
        everybody = np.ones(problem.n, dtype=bool)
        trial = Trial(problem, measured, views, weight, everybody, tol, SolverPool(self.solver))
        return Attempts(trial, limit, keep, _elsewhere(trial, on), self.first, among_classes)

    def answers(self, studies: Sequence[Attempts], surrogates: Sequence[Any]) -> list[Neutralized]:
        """Return a solution for one study, or one for each class against the rest.

        Of several classes everyone is brought within the limit by itself. The class of the largest score is
        another decision; where that is beyond the limit, the weights of all are searched jointly
        (`Together`).
        """
        parts = [self._found(study, one) for study, one in zip(studies, surrogates, strict=True)]
        found = [attempt for _, attempt, _ in parts]
        if len(studies) > 1:
            found = Together(studies, [surrogate for surrogate, _, _ in parts], found).run()
        return [
            study.answer(surrogate, attempt, choice)
            for study, attempt, (surrogate, _, choice) in zip(studies, found, parts, strict=True)
        ]

    def choice(self, study: Attempts, candidates: Sequence[Any]) -> pd.DataFrame:
        """Return how surrogates compare on rows that are set apart, the best first; the index counts them as given."""
        judge = judge_of(self.prefer)
        return compared(study.trial, candidates, study.limit, study.keep, judge, self.random_state)

    def _found(self, study: Attempts, surrogate: Any) -> tuple[Any, Attempt, pd.DataFrame]:
        """Return the surrogate that serves best, the solution within the limit, and how surrogates compared."""
        candidates, choice = candidates_of(surrogate, study), pd.DataFrame()
        firsts: list[float | None] = [None] * len(candidates)
        if len(candidates) > 1 and study.plain.value > study.limit:
            choice = self.choice(study, candidates)
            candidates = [candidates[i] for i in choice.index]
            if len(study.plain.parts) == 1:  # what met the limit on most rows is near what meets it on all
                firsts = [eta if eta > 0 else None for eta in choice.get("eta", choice["worth"] * np.nan)]
        for candidate, first in zip(candidates, firsts, strict=True):
            found = study.of(candidate, first)
            if found is not None:
                return candidate, found, choice
        raise study.refusal()


def neutralize(
    problem: Problem, limit: float, measure: Any, *, on: Any = None, surrogate: Any = "auto", **asked: Any
) -> Neutralized:
    """Return the solution whose measured neutrality is within the limit (`nerm.Problem.neutralize` explains)."""
    asking = Asking(limit, measure, moved_by=_own_weights(problem) if callable(measure) else None, **asked)
    judge_of(asking.prefer), candidates_of(surrogate)  # what is wrong is said before anything is solved
    return asking.answers([asking.study(problem, on)], [surrogate])[0]


def best_surrogate(problem: Problem, limit: float, measure: Any, **asked: Any) -> Any:
    """Return which surrogate serves a limit best on rows that are set apart, None where none meets it.

    That is the first half of `neutralize`: no solution on all rows is searched for.

    Parameters
    ----------
    problem, limit, measure, asked
        As for `nerm.Problem.neutralize`.
    """
    asking, candidates = Asking(limit, measure, **asked), candidates_of("auto")
    study = asking.study(problem)
    if study.plain.value <= study.limit:
        return candidates[0]
    choice = asking.choice(study, candidates)
    return None if (choice["worth"] == -np.inf).all() else candidates[int(choice.index[0])]


def _own_weights(problem: Problem) -> Floats | None:
    """Return the array of weights of the problem's one neutrality term, None where there is no such array."""
    terms = [t.term for t in problem.objective.terms if isinstance(t.term, Neutrality)]
    if len(terms) != 1 or terms[0].weights is None or isinstance(terms[0].weights, str):
        return None
    return as_weights(terms[0].weights, problem.n, "weights")


def _viewpoints(problem: Problem) -> tuple[str, ...]:
    """Return the viewpoints of the neutrality terms, or all where there is no such term."""
    if not problem.viewpoints:
        must = "'viewpoint' must be given to be neutral to it"
        raise InvalidInputError(must, "None", "Bind the data with viewpoint=...")
    terms = [t.term for t in problem.objective.terms if isinstance(t.term, Neutrality)]
    named = tuple(dict.fromkeys(viewpoint_of(term, problem.viewpoints) for term in terms))
    return named or tuple(problem.viewpoints)


def _elsewhere(trial: Trial, on: Any) -> Callable[[Solution], Floats] | None:
    """Return what measures a solution on other rows, (X, y, viewpoint); None for the training rows."""
    if on is None:
        return None
    if not isinstance(on, tuple | list) or len(on) != 3:
        raise InvalidInputError(
            "'on' must be (X, y, viewpoint)", repr(type(on).__name__), "Pass the three as a tuple"
        )
    X, y, viewpoint = on
    labels = np.asarray(y)
    strange = np.flatnonzero(~np.isin(labels, trial.problem.classes))
    if len(strange):
        known = ", ".join(map(repr, trial.problem.classes.tolist()))
        must = f"the labels of 'on' must be {known}"
        raise InvalidInputError(must, f"{labels[strange[0]]!r} at index {strange[0]}", "Leave it out")
    signs = np.where(labels == trial.problem.classes[1], 1.0, -1.0)
    if np.shape(X)[0] != len(labels):
        got = f"{np.shape(X)[0]} rows of X and {len(labels)} labels"
        raise InvalidInputError(
            "'on' must have one label a row", got, "Pass (X, y, viewpoint) of the same rows"
        )
    views, ones = resolve(viewpoint, X, len(labels)), np.ones(len(labels))
    missing = [name for name in trial.viewpoints if name not in views]
    if missing:
        must = f"the viewpoints of 'on' must be named as those of the problem, {', '.join(map(repr, trial.viewpoints))}"
        raise InvalidInputError(
            must, ", ".join(map(repr, views)), f"Pass {{{missing[0]!r}: ...}} as its viewpoint"
        )

    def measured(solution: Solution) -> Floats:
        scores = solution.decision_function(X)
        return np.concatenate(
            [trial.measure.parts(signs, scores, views[name], ones) for name in trial.viewpoints]
        )

    return measured
