"""The choice of lambda: once a data set and family of methods, without neutrality, as in the paper."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from nerm.errors import InvalidInputError
from nerm.experiments.methods import Method
from nerm.experiments.one_fold import Task, as_fold, fold_of
from nerm.experiments.records import Key, Records, Row
from nerm.experiments.running import Workers, record_all
from nerm.experiments.tables import Table

COLUMNS = ("dataset", "tuning", "lam", "fold", "auc", "status", "reason")
KEYS = ("dataset", "tuning", "lam", "fold")


TUNING = 2**32 - 1  # in place of a repetition: these folds are none of the experiment's own


def score_lambda(table: Table, task: Task) -> tuple[list[Row], list[float]]:
    """Return the AUC of one lambda on one fold, without neutrality."""
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits

    started, auc, status, reason = time.perf_counter(), math.nan, "ok", ""
    try:
        assert task.method.plain is not None
        with threadpool_limits(1):
            (fit,) = task.method.plain(as_fold(table, task), task.lam, (0.0,))
        status, reason = "failed" if fit.scores is None else "ok", fit.reason
        if fit.scores is not None:
            auc = float(roc_auc_score(table.y[fold_of(table, task) == task.fold], fit.scores))
    except Exception as error:
        status, reason = "failed", f"{type(error).__name__}: {error}"
    return [_row(table.name, task, auc, status, reason)], [time.perf_counter() - started]


def _row(name: str, task: Task, auc: float, status: str, reason: str) -> Row:
    place = {"dataset": name, "tuning": task.method.tuning, "lam": task.lam, "fold": task.fold}
    return {**place, "auc": auc, "status": status, "reason": reason}


def tune(
    shared: Mapping[str, Table],
    chosen: Sequence[Method],
    lams: Sequence[float],
    folds: int,
    seed: int,
    stratify: bool,
    settings: dict[str, Any],
    results: Any,
    workers: Workers,
    progress: bool | None,
) -> dict[tuple[str, str | None], float]:
    """Return lambda by data set and family: the one of the largest mean AUC, the larger one of equals."""
    families = {m.tuning: m for m in chosen if m.tuning is not None}
    if len(lams) == 1:
        return {(name, family): lams[0] for name in shared for family in families}
    tasks: dict[Key, tuple[str, Task]] = {
        (name, str(family), repr(lam), str(k)): (name, Task(method, lam, TUNING, k, folds, seed, stratify))
        for name in shared
        for family, method in families.items()
        for lam in lams
        for k in range(folds)
    }
    if not tasks:
        return {}
    path = None if results is None else os.fspath(results).removesuffix(".csv") + "-tuning.csv"
    said = {"experiment": "tradeoff tuning", **{k: v for k, v in settings.items() if k not in ("repetitions", "etas")}}

    def dead(name: str, task: Task, reason: str) -> tuple[list[Row], list[float]]:
        return [_row(name, task, math.nan, "failed", reason)], [math.nan]

    with Records(path, said, COLUMNS, KEYS, dict.fromkeys(tasks, 1)) as records:
        record_all(score_lambda, tasks, shared, records, dead, workers, "choice of lambda", progress)
        means = records.frame().groupby(["dataset", "tuning", "lam"], sort=True)["auc"].mean()
    best: dict[tuple[str, str | None], float] = {}
    for name in shared:
        for family in families:
            by_lam = means[name][family].dropna()
            if by_lam.empty:
                raise InvalidInputError(
                    f"some lambda must give a fit of {family!r} on {name!r}",
                    f"{len(lams)} failures, for instance {records.frame().reason.iloc[0]!r}",
                    "Give lam=1.0, for instance, to leave the tuning out",
                )
            best[name, family] = float(by_lam.index[by_lam.to_numpy() >= by_lam.max()].max())
    return best
