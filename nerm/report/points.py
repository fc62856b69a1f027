"""One model of a study: what was asked of it, what it does to people, and what is guaranteed about it."""

import shlex
from dataclasses import dataclass
from typing import Any

import numpy as np

from nerm import bounds
from nerm.bounds.guarantee import Statement
from nerm.bounds.theorems import HELD_OUT
from nerm.errors import InvalidInputError, NermError
from nerm.estimators.parameters import atom_name
from nerm.intervals import Interval
from nerm.report.calibration import Calibration, calibration_of
from nerm.report.decisions import (
    Decisions,
    Difference,
    Group,
    decisions_of,
    differences_of,
    groups_of,
    measures_of,
)
from nerm.report.fitting import FittedModel
from nerm.report.settings import Level, Settings
from nerm.tables.roles import TableTask
from nerm.typing import Floats, Ints


@dataclass(frozen=True)
class Point:
    """One model: what was asked of it, and what it does on held-out rows.

    Attributes
    ----------
    level
        What was asked for: a limit, a weight, or (the plain model) neither; `label` is its name.
    model
        The shown model: its weight, certificate and coefficients. None for scores that somebody else made.
    measures, training
        The measures of `nerm.metrics.report` on held-out rows, and on the training rows; of several groups
        that are set against the rest, the largest in size.
    intervals
        By the name of a measure, where it may be (95 %): (low, high). AUC and mutual information have none.
    groups
        Every group with its rates, each with an interval; `few` marks those below 30 rows.
    differences
        In positive rates: each group against the rest and, with several, the largest between any two groups;
        each with an interval and `few`.
    calibration
        How well probabilities hold in each group; empty where the loss is not logistic.
    decisions
        Per 1,000 people.
    statements
        The bounds.
    collapse
        Says that the model is nearly constant or that its positive rate collapsed.
    command
        The `nerm fit` command that makes this model; empty where there is none.
    """

    level: Level
    model: FittedModel | None
    measures: dict[str, float]
    intervals: dict[str, Interval]
    training: dict[str, float]
    groups: tuple[Group, ...]
    differences: tuple[Difference, ...]
    calibration: tuple[Calibration, ...]
    decisions: Decisions
    statements: tuple[Statement, ...]
    collapse: str | None
    command: str
    name: str = ""

    @property
    def label(self) -> str:
        """What the point is called: "limit 0.02", "no limit", "η = 0.5", or its own name."""
        return self.name or self.level.label

    @property
    def eta(self) -> float:
        """The neutrality weight."""
        return 0.0 if self.model is None else self.model.eta

    @property
    def certified(self) -> str:
        """The certified relative gap; in a word where there is none."""
        if self.model is None:
            return "–"
        status = self.model.solution.status.value
        return status if status == "stationary" else f"{self.model.relative_gap:.0e}"

    def aim(self, settings: Settings) -> float:
        """Return the absolute value of the measure that is aimed at, on held-out rows."""
        return abs(self.measures[settings.aim[0]])


@dataclass(frozen=True)
class OtherMethod:
    """Another method at one weight (or without one), measured on the same held-out rows."""

    method: str
    eta: float | None
    measures: dict[str, float]
    intervals: dict[str, Interval]

    @property
    def name(self) -> str:
        """The method with its weight."""
        return self.method if self.eta is None else f"{self.method}, η = {self.eta:g}"


def other_of(task: TableTask, method: str, eta: float | None, scores: Floats) -> OtherMethod:
    """Return another method, measured on these rows."""
    measured = measures_of(task, scores)
    return OtherMethod(method, eta, measured.values, measured.intervals)


def point_of(held: TableTask, scores: Floats, plain: Floats, settings: Settings, **more: Any) -> Point:
    """Return a point: what scores do on held-out rows, beside those of the plain model.

    Parameters
    ----------
    held, scores, plain
        The rows, f of each, and f without neutrality, (n,).
    settings
        Of the study.
    more
        What else a `Point` holds.
    """
    measured, probability = measures_of(held, scores), settings.probability(scores, held.y)
    return Point(
        measures=measured.values,
        intervals=measured.intervals,
        groups=groups_of(held, scores),
        differences=differences_of(held, scores),
        calibration=() if probability is None else calibration_of(held, probability),
        decisions=decisions_of(held, scores, plain),
        **more,
    )


def completed(command: str, model: FittedModel) -> str:
    """Return the command that fits this model again.

    Parameters
    ----------
    command
        Without the level; empty for none.
    model
        What it is to fit.
    """
    if not command:
        return ""
    surrogate = model.surrogate if model.level.limit is not None else None
    named = (
        ""
        if surrogate is None or "--surrogate" in command
        else f" --surrogate {shlex.quote(atom_name(surrogate))}"
    )
    return f"{command} {model.level.option}{named} --out model.nerm"


def held_out_bounds(
    scores: Floats, held: TableTask, part: Ints, settings: Settings, models: int
) -> list[Statement]:
    """Return the hold-out bounds.

    They share delta among all models, groups and parts, so that they hold for every model at once: whoever
    picks one after looking keeps the guarantee. With several parts they are about the mean over the parts'
    models.

    Parameters
    ----------
    scores, held, part
        f of each held-out row, the rows, and which part held each out, (n,).
    settings
        Their delta.
    models
        How many models are looked at.
    """
    parts = np.unique(part)
    share = settings.delta / (2 * models * len(parts) * len(held.terms))
    mean = "this model" if len(parts) == 1 else f"the mean over the {len(parts)} parts' models"
    statements = []
    for quantity, measure, bound in HELD_OUT:
        try:
            value = max(
                float(np.mean([bound(scores[part == k], v[part == k], delta=share) for k in parts]))
                for v in held.terms.values()
            )
        except InvalidInputError:  # a part without one of the groups
            continue
        note = (
            "no better than the largest possible value, 1"
            if value >= 1
            else f"about {mean}, for all models at once"
        )
        sample = max(abs(measure(scores, v)) for v in held.terms.values())
        statements.append(Statement(quantity, "held-out rows", sample, min(value, 1.0), "", value >= 1, note))
    return statements


def theorems(model: FittedModel, delta: float) -> list[Statement]:
    """Return what the theorems say about a model, nothing where they are silent.

    Parameters
    ----------
    model
        The model.
    delta
        Probability with which a bound may fail.
    """
    try:
        stated = bounds.guarantee(model.facts(), delta=delta)
    except NermError:
        return []
    return [statement for statement in stated if statement.source not in ("hold-out", "through psi")]
