"""Neutral up to a limit: which surrogate serves best, at which weight, and whether the answer is one to be used."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from nerm.atoms.difference import DCFunction
from nerm.atoms.hinge import Hinge
from nerm.atoms.logistic import Logistic
from nerm.atoms.margin import MarginFunction
from nerm.atoms.ramp import Ramp
from nerm.errors import InvalidInputError, NotNeutralError, UnknownNameError
from nerm.neutralize.measures import as_measure
from nerm.neutralize.search import Attempt, WeightSearch
from nerm.neutralize.trial import AGREEMENT, Trial
from nerm.objective import Neutrality, viewpoint_of
from nerm.problem import Problem
from nerm.signs import sign
from nerm.solution import Solution
from nerm.solvers import Relatives
from nerm.splitting import hold_out
from nerm.typing import Bools, Floats
from nerm.validation import as_nonnegative, as_positive
from nerm.viewpoint import resolve

#: What "auto" compares: a smooth surrogate, the paper's, and ramps, which leave the ranking of sure cases alone.
AUTO: tuple[MarginFunction | DCFunction, ...] = (Logistic(), Hinge(), Ramp(1.0), Ramp(2.0))
INNER_SHARE = 0.3  # of the rows, on which candidates are compared
TIED = 2.0  # standard errors of a difference that do not count
INNER_TOL = 1e-4  # the relative gap of solves that serve the comparison only
Prefer = str | Callable[[Floats, Floats], float]
Judge = Callable[[Trial, Floats, Bools], Floats]


@dataclass(frozen=True, eq=False, repr=False)
class Neutralized:
    """A solution within an asked limit of measured neutrality.

    Attributes
    ----------
    solution : Solution
        Certified; of the problem with one-sided neutrality terms of the weights that were found.
    eta, side
        Weight and side of the term; a tuple each where there are several.
    surrogate : MarginFunction
        What the terms are made of.
    measure, limit, value
        What was asked for, and the measure of the solution, signed where it has one part.
    reached : bool
        Whether it is within the limit.
    trace : pandas.DataFrame
        Every solve: surrogate, weight, measure, accuracy, AUC, positive rates, status, certified gap; one is `chosen`.
    choice : pandas.DataFrame
        How the surrogates compared on rows that were set apart; empty where one was given.

    >>> import numpy as np, nerm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)); v = np.where(X[:, 0] + rng.normal(size=300) > 0, 1, -1)
    >>> y = np.where(X.sum(axis=1) > 0, 1, -1)
    >>> problem = (nerm.Risk(nerm.Logistic()) + 0.01 * nerm.SquaredL2()).on(X, y, viewpoint=v)
    >>> found = problem.neutralize(0.05, surrogate=nerm.Hinge())
    >>> found.side, found.reached, found.trace["status"].unique().tolist()
    ('agreement', True, ['optimal'])

    """

    solution: Solution
    eta: float | tuple[float, ...]
    side: str | tuple[str, ...]
    surrogate: Any
    measure: str
    limit: float
    value: float
    reached: bool
    trace: pd.DataFrame = field(repr=False)
    choice: pd.DataFrame = field(repr=False)

    def __repr__(self) -> str:
        eta = f"{self.eta:.4g}" if isinstance(self.eta, float) else ", ".join(f"{e:.4g}" for e in self.eta)
        chosen = self.trace[self.trace["chosen"]].iloc[0]
        return (
            f"{self.measure} {self.value:+.4f} (limit {self.limit:g}), by {self.surrogate!r} with eta {eta}: accuracy "
            f"{chosen['accuracy']:.4f}, AUC {chosen['auc']:.4f} on the training rows, {len(self.trace)} solves"
        )


def neutralize(
    problem: Problem,
    limit: float,
    measure: Any = "calders_verwer_score",
    *,
    tol: float = 1e-6,
    on: Any = None,
    surrogate: Any = "auto",
    prefer: Prefer = "accuracy",
    keep: float = 0.5,
    row_weight: Floats | None = None,
    random_state: int = 0,
    first: float | None = None,
    among_classes: bool = False,
    solver: Any = "auto",
) -> Neutralized:
    """Return the solution whose measured neutrality is within the limit (`nerm.Problem.neutralize` explains).

    Estimators give the weights of rows in the measure, the first weight to try, the solver, and say whether this is one
    of several classes against the rest: then a plain model that says no to everybody is ordinary.
    """
    limit, keep = as_nonnegative(limit, "limit"), as_nonnegative(keep, "keep")
    weight = np.ones(problem.n) if row_weight is None else row_weight
    everybody = np.ones(problem.n, dtype=bool)
    measured, views, tol = as_measure(measure), _viewpoints(problem), as_positive(tol, "tol")
    trial = Trial(problem, measured, views, weight, everybody, tol, Relatives(solver))
    judge = _judge(prefer)
    candidates = _candidates(surrogate)
    study = _Attempts(trial, limit, keep, _elsewhere(trial, on), first, among_classes)
    choice = pd.DataFrame()
    if len(candidates) > 1 and study.plain.value > limit:
        choice = _compared(trial, candidates, limit, keep, judge, random_state)
        candidates = [candidates[i] for i in choice.index]
    for candidate in candidates:
        found = study.of(candidate)
        if found is not None:
            return study.answer(candidate, found, choice)
    raise study.refusal(candidates)


@dataclass
class _Attempts:
    """Searches on one trial, and the record of every solve."""

    trial: Trial
    limit: float
    keep: float
    elsewhere: Callable[[Solution], Floats] | None = None
    first: float | None = None
    among_classes: bool = False

    def __post_init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.points: list[Attempt] = []
        self.nearest: list[tuple[Any, Attempt]] = []
        solution = self.trial.plain()
        scores = solution.training_scores()
        parts = self.trial.measured(scores) if self.elsewhere is None else self.elsewhere(solution)
        none = (0.0,) * len(parts)
        self.plain = Attempt(none, (AGREEMENT,) * len(parts), solution, scores, parts)
        self._note(None, self.plain)

    def _note(self, surrogate: Any, point: Attempt) -> None:
        trial, solution = self.trial, point.solution
        self.points.append(point)
        rates = {
            f"positive rate, {name} {group}": rate
            for name, pair in zip(trial.viewpoints, trial.rates(point.scores), strict=True)
            for group, rate in zip("-+", pair, strict=True)
        }
        self.rows.append(
            {
                "surrogate": "" if surrogate is None else repr(surrogate),
                "eta": point.etas[0] if len(point.etas) == 1 else point.etas,
                "side": point.sides[0] if len(point.sides) == 1 else point.sides,
                "measure": float(point.parts[0]) if len(point.parts) == 1 else point.value,
                **trial.quality(point.scores),
                **rates,
                "status": solution.status.value,
                "relative_gap": solution.certificate.relative_gap,
            }
        )

    def of(self, surrogate: Any) -> Attempt | None:
        """Return the best point of one surrogate that is within the limit and one to be used; None if there is none."""
        if self.plain.value <= self.limit:
            self.nearest.append((surrogate, self.plain))
            return self.plain if self.among_classes or not self.objection(self.plain) else None
        search = WeightSearch(self.trial, surrogate, self.limit, self.plain, self._note, self.elsewhere, self.first)
        points = search.run()
        self.nearest.append((surrogate, points[0]))
        return next((p for p in points if p.value <= self.limit and not self.objection(p)), None)

    def objection(self, point: Attempt) -> str:
        """Say why a solution is none to be used: it ranks no better than chance, or denies too many; empty if it is."""
        if not point.solution.status.success:
            return "its solution was not certified"
        positive = point.scores[self.trial.used] > 0
        if self.keep and positive.all() == positive.any():
            return f"{'it' if any(point.etas) else 'the plain model already'} says the same to everybody"
        if not self.trial.quality(point.scores)["auc"] > 0.5:
            return "it ranks no better than chance"
        before, after = self.trial.rates(self.plain.scores), self.trial.rates(point.scores)
        if (after < self.keep * before).any():
            (i, g), *_ = np.argwhere(after < self.keep * before)
            group = f"{self.trial.viewpoints[i]} {'-+'[g]}"
            return f"{after[i, g]:.1%} of the group {group} would get yes, {before[i, g]:.1%} without neutrality"
        return ""

    def answer(self, surrogate: Any, point: Attempt, choice: pd.DataFrame) -> Neutralized:
        """Return a point as the result."""
        several = len(point.parts) > 1
        return Neutralized(
            solution=point.solution,
            eta=point.etas if several else point.etas[0],
            side=point.sides if several else point.sides[0],
            surrogate=surrogate,
            measure=self.trial.measure.name,
            limit=self.limit,
            value=point.value if several else float(point.parts[0]),
            reached=point.value <= self.limit,
            trace=pd.DataFrame(self.rows).assign(chosen=[point is other for other in self.points]),
            choice=choice,
        )

    def refusal(self, candidates: Sequence[Any]) -> NotNeutralError:
        """Return the error that says what was reached, and why that is no answer."""
        surrogate, point = min(self.nearest, key=lambda pair: (pair[1].value > self.limit, pair[1].value))
        why = self.objection(point) if point.value <= self.limit else "that is beyond the limit"
        names = ", ".join(repr(c) for c in candidates)
        must = f"a model within {self.limit:g} of {self.trial.measure.name} = 0 must exist that is no constant"
        nearest = f"{point.value:.4f} with {surrogate!r} at eta {_list(point.etas)}"
        got = f"none with {names}: the nearest has {nearest}, and {why}"
        do = "Raise the limit, lower 'keep', or try another surrogate or lam"
        error = NotNeutralError(must, got, do)
        error.best = self.answer(surrogate, point, pd.DataFrame())
        return error


def _list(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.4g}" for number in numbers)


def _compared(
    trial: Trial, candidates: Sequence[Any], limit: float, keep: float, judge: Judge, seed: int
) -> pd.DataFrame:
    """Search with each surrogate on most rows, roughly, and judge it on the others; the best first.

    One that is worth less by no more than two standard errors of the difference is as good, and the ranking decides.
    """
    p, rows = trial.problem, []
    apart = hold_out([p.y, *(sign(p.viewpoints[name]) for name in trial.viewpoints)], INNER_SHARE, seed)
    if len(np.unique(p.y[apart])) < 2:  # too few rows to compare anything: the order in which they were given
        return pd.DataFrame({"surrogate": [repr(c) for c in candidates], "worth": np.nan})
    inner = replace(trial, used=~apart, tol=max(trial.tol, INNER_TOL), relatives=Relatives(trial.relatives.solver))
    study = _Attempts(inner, limit, keep)
    worths: dict[int, Floats] = {}
    for i, candidate in enumerate(candidates):
        row: dict[str, Any] = {"surrogate": repr(candidate), "worth": -np.inf}
        found = study.of(candidate)
        if found is not None:
            worths[i] = judge(inner, found.scores, apart)
            row |= {"worth": float(worths[i].mean()), **inner.quality(found.scores, apart)}
            with suppress(InvalidInputError):  # a group of one row is not seen there
                row["measure"] = float(np.abs(inner.measured(found.scores, apart)).max())
        rows.append(row)
    frame = pd.DataFrame(rows)
    frame["tied"] = False
    if worths:
        best = worths[int(frame["worth"].idxmax())]
        for i, worth in worths.items():
            lost = best - worth
            frame.loc[i, "tied"] = lost.mean() <= TIED * lost.std() / np.sqrt(len(lost))
        return frame.assign(ranking=frame["auc"].where(frame["tied"])).sort_values(
            ["tied", "ranking", "worth"], ascending=False, kind="stable"
        ).drop(columns="ranking")  # fmt: skip
    return frame


def _judge(prefer: Prefer) -> Judge:
    """Return what a model is worth on rows: who is judged rightly, one by one; its AUC; a function of (y, scores)."""
    if callable(prefer):
        return lambda trial, scores, rows: np.array([float(prefer(trial.problem.y[rows], scores[rows]))])
    if prefer not in ("accuracy", "auc"):
        raise UnknownNameError("'prefer'", prefer, ("accuracy", "auc"), "Use one of these, or a function (y, scores)")
    if prefer == "auc":
        return lambda trial, scores, rows: np.array([trial.quality(scores, rows)["auc"]])

    def right(trial: Trial, scores: Floats, rows: Bools) -> Floats:
        weight = trial.row_weight[rows] / trial.row_weight[rows].mean()
        return weight * (sign(scores[rows]) == trial.problem.y[rows])

    return right


def _candidates(surrogate: Any) -> list[Any]:
    """Return the surrogates to compare."""
    if isinstance(surrogate, str) and surrogate == "auto":
        return list(AUTO)
    given = list(surrogate) if isinstance(surrogate, list | tuple) else [surrogate]
    if not given or not all(isinstance(atom, MarginFunction | DCFunction) for atom in given):
        must = "'surrogate' must be 'auto', a margin function or a list of them"
        raise InvalidInputError(must, repr(surrogate), "Pass nerm.Logistic(), for instance")
    return given


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
        raise InvalidInputError("'on' must be (X, y, viewpoint)", repr(type(on).__name__), "Pass the three as a tuple")
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
        raise InvalidInputError("'on' must have one label a row", got, "Pass (X, y, viewpoint) of the same rows")
    views, ones = resolve(viewpoint, X, len(labels)), np.ones(len(labels))
    missing = [name for name in trial.viewpoints if name not in views]
    if missing:
        must = f"the viewpoints of 'on' must be named as those of the problem, {', '.join(map(repr, trial.viewpoints))}"
        raise InvalidInputError(must, ", ".join(map(repr, views)), f"Pass {{{missing[0]!r}: ...}} as its viewpoint")

    def measured(solution: Solution) -> Floats:
        scores = solution.decision_function(X)
        return np.concatenate([trial.measure.parts(signs, scores, views[name], ones) for name in trial.viewpoints])

    return measured
