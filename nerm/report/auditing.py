"""An audit of anybody's scores as a study: what they do to groups, and what a neutral model of the same rows does."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from nerm.bounds.guarantee import Statement
from nerm.report.decisions import collapse_of
from nerm.report.fitting import Progress, TaskRows, choose_surrogate, silent
from nerm.report.points import Point, held_out_bounds, point_of
from nerm.report.settings import Level, Settings
from nerm.report.study import CROSS_VALIDATED, FOLDS, Study, cross_validated
from nerm.tables.roles import TableTask, folds
from nerm.typing import Floats

GIVEN, BY_GROUP = "as given", "a threshold for each group"
LIMITS = (0.05, 0.02)  # of the neutral models beside it


def audit_study(task: TableTask, scores: Floats, settings: Settings, progress: Progress = silent) -> Study:
    """Return a study of given scores: the scores, the same with group thresholds, and neutral models of the inputs.

    All are measured on all rows: neutral models by cross-validation, and thresholds that give every group the
    positive rate of the scores on the rows that they were set on.

    Parameters
    ----------
    task
        The rows; without inputs there are no neutral models.
    scores
        f of each row, (n,); a positive one is a positive decision.
    settings
        Of the neutral models.
    progress
        Told what is being done.
    """
    started, notes = time.perf_counter(), list(task.notes)
    settings = replace(settings, limits=LIMITS, etas=())
    together = np.zeros(len(task), dtype=int)
    bounds = tuple(held_out_bounds(scores, task, together, settings, 1))
    points = [_point(task, scores, scores, settings, Level(), GIVEN, bounds)]
    if len(np.unique(scores)) > 2:
        points.append(_point(task, by_group(task, scores), scores, settings, Level(0.0), BY_GROUP))
    else:
        notes.append("decisions without scores cannot be moved by thresholds")
    how = "all rows, which are taken to be new to the audited model"
    if task.inputs:
        rows, pairs = (
            TaskRows(task, settings),
            folds(task, FOLDS if len(task) <= CROSS_VALIDATED else 2, settings.seed),
        )
        surrogate = choose_surrogate(rows, np.arange(len(task)), LIMITS, progress)
        found, unmet = cross_validated(rows, pairs, settings.levels, surrogate, progress)
        notes += unmet
        for level, values in found.items():
            points.append(_point(task, values, scores, settings, level, f"nerm, {level.label}"))
        how += f"; models of nerm by {len(pairs)}-fold cross-validation"
    return Study(
        task=task,
        recipe=None,
        settings=settings,
        formula="",
        how_measured=how,
        points=tuple(points),
        others=(),
        chosen=0,
        notes=tuple(dict.fromkeys(notes)),
        seconds=time.perf_counter() - started,
        audited=True,
    )


def by_group(task: TableTask, scores: Floats) -> Floats:
    """Return scores moved by a threshold for each group, so that all have the positive rate of the scores.

    With several viewpoints a group is a combination. Rows of one score stay together.

    Parameters
    ----------
    task, scores
        The rows and f of each, (n,).
    """
    rate, moved = float((scores > 0).mean()), np.empty(len(scores))
    cells = np.unique(np.column_stack(list(task.groups.values())), axis=0, return_inverse=True)[1].ravel()
    for cell in range(cells.max() + 1):
        own = scores[cells == cell]
        ranked = np.sort(own)[::-1]
        accepted = round(rate * len(own))
        edges = np.concatenate([[ranked[0] + 1.0], ranked, [ranked[-1] - 1.0]])
        moved[cells == cell] = own - (edges[accepted] + edges[accepted + 1]) / 2
    return moved


def _point(
    task: TableTask,
    scores: Floats,
    given: Floats,
    settings: Settings,
    level: Level,
    name: str,
    bounds: tuple[Statement, ...] = (),
) -> Point:
    facts: dict[str, Any] = {"level": level, "model": None, "training": {}, "statements": bounds}
    return point_of(
        task, scores, given, settings, collapse=collapse_of(task, scores), command="", name=name, **facts
    )
