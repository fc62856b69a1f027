"""One method on one fold of the trade-off experiment."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nerm.experiments.methods import Fit, Fold, Method
from nerm.experiments.records import Row
from nerm.experiments.tables import Table
from nerm.splitting import assign_folds, seed_sequence

MEASURES = (
    "accuracy",
    "auc",
    "neutrality_risk",
    "neutrality_risk_if_independent",
    "calders_verwer_score",
    "normalized_prejudice_index",
    "normalized_mutual_information",
    "equal_opportunity_difference",
    "equalized_odds_difference",
)
COLUMNS = ("dataset", "method", "repetition", "fold", "eta", "lam", *MEASURES, "status", "reason")
KEYS = ("dataset", "method", "repetition", "fold")


@dataclass(frozen=True, eq=False)
class Task:
    """One method on one fold: everything but the rows themselves."""

    method: Method
    lam: float
    repetition: int
    fold: int
    folds: int
    seed: int
    stratify: bool


def fit_fold(table: Table, task: Task) -> tuple[list[Row], list[float]]:
    """Return the rows and the seconds of one method on one fold; errors are recorded in them."""
    from threadpoolctl import threadpool_limits

    # One thread: with several, sums are taken in an order that depends on how many workers share the machine.
    with threadpool_limits(1):
        fits = _fits(table, task)
    test = fold_of(table, task) == task.fold
    rows = [_row(table, task, eta, fit, test) for eta, fit in zip(task.method.etas or (math.nan,), fits, strict=True)]
    return rows, [fit.seconds for fit in fits]


def _fits(table: Table, task: Task) -> list[Fit]:
    expected = max(1, len(task.method.etas))
    fits: list[Fit] = []
    try:
        fold = as_fold(table, task)
        for fit in task.method.fit(fold, task.lam, task.method.etas):
            fits.append(fit)
        reason = f"the method gave {len(fits)} fits for {expected} neutrality weights"
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    return (fits + [Fit(None, 0.0, reason, False)] * expected)[:expected]


def fold_of(table: Table, task: Task) -> np.ndarray:
    """Return the fold of each row in the task's repetition."""
    strata = [table.y, table.viewpoint] if task.stratify else [np.zeros(len(table.y))]
    return assign_folds(strata, task.folds, seed_sequence(task.seed, table.name, task.repetition))


def as_fold(table: Table, task: Task) -> Fold:
    """Return the training and test rows of a task."""
    of = fold_of(table, task)
    train, test = np.flatnonzero(of != task.fold), np.flatnonzero(of == task.fold)
    X, X_test = table.parts(task.method.coding, train, test)
    own = seed_sequence(task.seed, table.name, task.repetition, task.fold)
    return Fold(X, table.y[train], table.viewpoint[train], X_test, table.viewpoint[test], int(own.generate_state(1)[0]))


def _row(table: Table, task: Task, eta: float, fit: Fit, test: np.ndarray) -> Row:
    from nerm.metrics import report

    measured, reason = dict.fromkeys(MEASURES, math.nan), fit.reason
    status = "ok" if fit.converged else "not converged"
    if fit.scores is None:
        status = "failed"
    else:
        try:
            found = report(table.y[test], fit.scores, table.viewpoint[test])
            measured = {name: getattr(found, name) for name in MEASURES}
        except Exception as error:
            status, reason = "failed", f"{type(error).__name__}: {error}"
    place = {"dataset": table.name, "method": task.method.name, "repetition": task.repetition, "fold": task.fold}
    return {**place, "eta": float(eta), "lam": float(task.lam), **measured, "status": status, "reason": reason}


def dead_fold(name: str, task: Task, reason: str) -> tuple[list[Row], list[float]]:
    """Return the rows of a task whose worker died."""
    place = {"dataset": name, "method": task.method.name, "repetition": task.repetition, "fold": task.fold}
    empty = dict.fromkeys(MEASURES, math.nan)
    etas = task.method.etas or (math.nan,)
    rows = [{**place, "eta": e, "lam": task.lam, **empty, "status": "failed", "reason": reason} for e in etas]
    return rows, [math.nan] * len(rows)
