"""The nouns of a search for neutrality: `Target`, `Candidate`, `History` and the result, `Neutralized`.

A model is **nearly constant** if the rows to which it does not give its most frequent prediction are less
than a tenth (`NEARLY`) of the rows that are not labelled so, or if its scores differ by no more than a
solver's tolerance, so that their signs are rounding. The share is measured against the labels and not against
all rows: where 1 % are positive, predicting 0.6 % positive is an ordinary model; where half are, it is
nearly constant. With several classes only the most frequent one counts: a rare class that is never predicted
is ordinary.

Its positive rate **collapsed** if in some group it fell below half of the rate that the same model without
neutrality (eta = 0) has in that group, and of that model's rate among all rows: a favoured group may come
down to the common rate. That model is solved only where the labels in its place give the same verdict.

Both need at least ten rows that should get another prediction, since a tenth of fewer is less than one row. A
class whose rows hardly count in the risk, by the user's weights, need not be predicted.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from nerm.certify.solution import Solution
from nerm.defaults import DEFAULTS
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.metrics import Metric, as_metric
from nerm.typing import Bools, Floats, Ints
from nerm.validation import as_nonnegative, as_positive

Prefer = str | Callable[[Floats, Floats], float]


@dataclass(frozen=True)
class Target:
    """The level of neutrality that is wanted, and how the search for it chooses (`nerm.Problem.neutralize`).

    With `confidence` the measure is to be within the limit on new rows with that probability.
    """

    limit: float
    measure: Any = "calders_verwer_score"
    tol: float = 1e-6
    surrogate: Any = "auto"
    prefer: Prefer = "accuracy"
    keep: float = 0.5
    random_state: int = 0
    confidence: float | None = None

    def __post_init__(self) -> None:
        as_nonnegative(self.limit, "limit")
        as_nonnegative(self.keep, "keep")
        as_positive(self.tol, "tol")
        as_metric(self.measure)
        known, do = ("accuracy", "auc"), "Use one of these, or a function (y, scores)"
        if not callable(self.prefer) and self.prefer not in known:
            raise UnknownNameError("'prefer'", self.prefer, known, do)
        if self.confidence is not None and not 0 < as_nonnegative(self.confidence, "confidence") < 1:
            must = "'confidence' must be between 0 and 1"
            raise InvalidInputError(must, f"{self.confidence!r}", "Pass 0.95, for instance")

    @property
    def rough_tol(self) -> float:
        """The relative gap of solves that serve a comparison only: 1e-4 for 1e-6."""
        return max(self.tol, float(self.tol ** (2 / 3)))

    @property
    def metric(self) -> Metric:
        """The measure with its facts."""
        return as_metric(self.measure)


@dataclass(frozen=True, eq=False)
class Candidate:
    """One solve.

    Attributes
    ----------
    surrogate : MarginFunction or None
        psi of its terms; None for the plain model.
    weights : (number of parts,) array
        The weights of its terms, negative where they punish opposing the viewpoint.
    solution : Solution
    scores : (n,) array
        f of the rows.
    parts : (number of parts,) array
        The signed parts of the measure.

    """

    surrogate: Any
    weights: Floats
    solution: Solution
    scores: Floats
    parts: Floats

    @property
    def value(self) -> float:
        """The measure: the largest part in size."""
        return float(np.abs(self.parts).max())

    @property
    def measured(self) -> float:
        """The measure, signed where it has one part."""
        return float(self.parts[0]) if len(self.parts) == 1 else self.value

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides of the terms."""
        return tuple(side_of(self.surrogate, weight) for weight in self.weights.tolist())

    @property
    def etas(self) -> tuple[float, ...]:
        """The weights of the terms in size."""
        return tuple(np.abs(self.weights).tolist())


def side_of(surrogate: Any, weight: float) -> str:
    """Return the side of a term that punishes following, or opposing: of an increasing psi the other one."""
    increasing = surrogate is not None and surrogate.facts.monotone == "increasing"
    return "agreement" if (weight >= 0) != increasing else "disagreement"


def shown(values: tuple[Any, ...]) -> Any:
    """Return the only value, or all of several."""
    return values[0] if len(values) == 1 else values


@dataclass
class History:
    """Every candidate of a search, and the rows of the trace, which a search on fewer rows shares."""

    candidates: list[Candidate] = field(default_factory=list)
    rows: list[tuple[Candidate, dict[str, Any]]] = field(default_factory=list)

    def add(self, candidate: Candidate, measured: dict[str, float]) -> None:
        """Record a candidate with its number of rows, accuracy, AUC and positive rates."""
        self.candidates.append(candidate)
        row = {
            "surrogate": "" if candidate.surrogate is None else repr(candidate.surrogate),
            "eta": shown(candidate.etas),
            "side": shown(candidate.sides),
            "measure": candidate.measured,
            **measured,
            "status": candidate.solution.status.value,
            "relative_gap": candidate.solution.certificate.relative_gap,
        }
        self.rows.append((candidate, row))

    def of(self, surrogate: Any) -> list[Candidate]:
        """Return the candidates with this surrogate."""
        return [candidate for candidate in self.candidates if candidate.surrogate is surrogate]

    def closest(self, limit: float) -> Candidate:
        """Return the candidate of least weight within the limit, or else that of the smallest measure."""
        within = [candidate for candidate in self.candidates if candidate.value <= limit]
        if within:
            return min(within, key=lambda candidate: sum(candidate.etas))
        return min(self.candidates, key=lambda candidate: candidate.value)

    def trace(self, chosen: Candidate) -> pd.DataFrame:
        """Return one row per solve."""
        candidates, rows = zip(*self.rows, strict=True)
        return pd.DataFrame(rows).assign(chosen=[chosen is other for other in candidates])


@dataclass(frozen=True, eq=False, repr=False)
class Neutralized:
    """A solution within a limit on measured neutrality.

    Attributes
    ----------
    solution : Solution
        Certified; of the problem with one-sided neutrality terms of the weights that were found.
    eta, side
        Weight and side of the term; a tuple each where there are several.
    surrogate : MarginFunction
        psi of the terms.
    measure, limit, value
        The target, and the measure of the solution, signed where it has one part.
    reached : bool
        Whether it is within the limit.
    trace : pandas.DataFrame
        Every solve: surrogate, weight, measure, rows, accuracy, AUC, positive rates, status, certified gap;
        one is `chosen`. Surrogates are compared by rougher solves on fewer rows.
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
            f"{self.measure} {self.value:+.4f} (limit {self.limit:g}), by {self.surrogate!r} with eta {eta}: "
            f"accuracy {chosen['accuracy']:.4f}, AUC {chosen['auc']:.4f} on the training rows, "
            f"{len(self.trace)} solves"
        )


NEARLY = 0.1  # of the rows that are labelled otherwise


def collapse(
    scores: Floats,
    labels: Ints,
    classes: Iterable[str],
    groups: Mapping[str, Bools] | None = None,
    *,
    plain: Callable[[], Floats | None] | None = None,
    weight: Floats | None = None,
    risk_weight: Floats | None = None,
) -> str | None:
    """Return a sentence if a model is nearly constant or its positive rate collapsed, else None.

    Parameters
    ----------
    scores
        f of the training rows, (n,), or (n, number of classes).
    labels
        The number of each row's class, (n,).
    classes
        The names of the classes in the sentence, in the order of their numbers.
    groups
        By name, the rows that belong to a group, (n,) each.
    plain
        Returns the scores of the same model without neutrality, (n,), or None if there are none.
    weight, risk_weight
        Sample weights, and these times class weights, (n,); by default 1, and the sample weights.

    Examples
    --------
    >>> scores, labels = np.full(100, -1.0), np.repeat([0, 1], [80, 20])
    >>> scores[-1] = 0.5
    >>> collapse(scores, labels, ["class no", "class yes"])
    'The model predicts class no for 99.0 % of rows (labels: 80.0 %): it is nearly constant.'
    >>> collapse(np.arange(-80, 20), labels, ["class no", "class yes"]) is None
    True
    """
    s = np.ones(len(labels)) if weight is None else weight
    names = tuple(classes)
    decided = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
    usual = int(np.bincount(decided, s).argmax())
    missed, counted = labels != usual, s if risk_weight is None else risk_weight
    if min(missed.sum(), (counted * missed).sum() / counted.mean()) >= 1 / NEARLY:
        others, wanted = (float((s * (answers != usual)).sum() / s.sum()) for answers in (decided, labels))
        if others < NEARLY * wanted:
            shares = f"{_percent(1 - others)} of rows (labels: {_percent(1 - wanted)})"
            return f"The model predicts {names[usual]} for {shares}: it is nearly constant."
        spread = float(np.ptp(scores, axis=0).max())
        if spread <= DEFAULTS.tol:
            return f"The model's scores differ by no more than {spread:.1e}: it is constant but for rounding."
    if plain is None or not groups or scores.ndim == 2:
        return None
    if _collapsed(decided, labels, groups, names[1], s) is None:
        return None
    before = plain()
    return None if before is None else _collapsed(decided, (before > 0).astype(int), groups, names[1], s)


def _collapsed(
    decided: Ints, before: Ints, groups: Mapping[str, Bools], positive: str, s: Floats
) -> str | None:
    """Return a sentence about a group whose positive rate fell below half of what it was."""
    everybody = s @ before / s.sum()
    for name, among in groups.items():
        if np.count_nonzero(among & (before > 0)) < 1 / NEARLY:
            continue
        weights = s * among  # cheaper than gathering rows
        now, then = (weights @ answers / weights.sum() for answers in (decided, before))
        if now < DEFAULTS.keep * min(then, everybody):
            rates = f"{_percent(now)} of the rows with {name} (without neutrality: {_percent(then)})"
            return f"The model predicts {positive} for {rates}: its positive rate collapsed."
    return None


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
