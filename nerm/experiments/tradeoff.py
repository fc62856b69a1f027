"""Figure 2 of the paper: classification quality against neutrality, method by method, on real data."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.experiments.methods import METHODS, Method, resolve
from nerm.experiments.one_fold import COLUMNS, KEYS, Task, dead_fold, fit_fold
from nerm.experiments.records import Key, Records
from nerm.experiments.running import Workers, record_all
from nerm.experiments.tables import Table, as_tables
from nerm.experiments.tuning import tune
from nerm.splitting import as_count

#: The values of lambda (sum form, C = 1/lambda) among which it is tuned; the paper does not say its own.
LAMBDAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)


def tradeoff(
    datasets: Any = ("german", "adult", "bank"),
    methods: Sequence[str | Method] = tuple(METHODS),
    *,
    etas: Mapping[str, Sequence[float]] | None = None,
    lam: float | Sequence[float] = LAMBDAS,
    repetitions: int = 10,
    folds: int = 5,
    seed: int = 0,
    stratify: bool = True,
    discretize: str = "all rows",
    n_jobs: int = 1,
    backend: str = "joblib",
    client: Any = None,
    results: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    data_home: Any = None,
) -> Any:
    """Measure every method at every neutrality weight by repeated cross-validation; return one row a fit.

    datasets, methods
        Names (`nerm.datasets.names()`, `METHODS`), `Dataset` objects, and methods made by `from_estimator`.
    etas
        Other grids by method name; the paper's otherwise.
    lam
        A number (sum form, C = 1/lam), or the values among which it is tuned: once a data set and family of methods,
        without neutrality, on all rows, by cross-validated AUC, as in the paper. Ties go to the larger one.
    repetitions, folds, seed, stratify
        Repetition r splits each data set anew by a seed derived from (seed, data set, r). `stratify` keeps the shares
        of the four combinations of label and viewpoint in every fold.
    discretize
        Learn cut points and pooled values on ``"all rows"``, as the paper did, or on ``"training folds"``.
    n_jobs, backend, client
        Worker processes of joblib, or ``backend="dask"``: a LocalCluster of n_jobs processes, or the cluster of
        `client` (a Client or an address). The table does not depend on them.
    results
        A .csv file that every finished fold is appended to. Started again with the same settings, the experiment goes
        on where it was killed; the file of another one is refused. Files ``…-times.csv`` (seconds) and
        ``…-tuning.csv`` (the choice of lambda) stand beside it.
    progress
        A bar with the time left; by default on a terminal only.

    The columns are dataset, method, repetition, fold, eta (nan for methods without), lam, the measures of
    `nerm.metrics.report` on the test rows, status ("ok", "not converged", "failed"), reason, seconds.

    >>> from nerm.experiments import tradeoff, front
    >>> grid = {"neutral-svm": [0, 1]}
    >>> table = tradeoff("diabetes", ["neutral-svm", "lr"], etas=grid, lam=1.0, repetitions=1, folds=2)
    >>> table.shape[0], table.status.unique().tolist()
    (6, ['ok'])
    >>> front(table).columns[:4].tolist()
    ['dataset', 'method', 'eta', 'auc']
    """
    workers = Workers(n_jobs, backend, client)
    as_count(repetitions, "repetitions")
    as_count(folds, "folds", 2)
    as_count(seed, "seed", 0)
    chosen = resolve(methods, dict(etas or {}))
    lams = _as_lams(lam)
    tables = as_tables(datasets, discretize, {m.coding for m in chosen}, data_home)
    settings = _settings(tables, chosen, lams, repetitions, folds, seed, stratify, discretize)
    shared = {table.name: table for table in tables}

    tuned = tune(shared, chosen, lams, folds, seed, stratify, settings, results, workers, progress)
    # Data sets and methods take turns, so that the time left is estimated from all of them.
    places = [
        (table, method, r, k) for r in range(repetitions) for k in range(folds) for table in tables for method in chosen
    ]
    tasks: dict[Key, tuple[str, Task]] = {
        (table.name, method.name, str(r), str(k)): (
            table.name,
            Task(method, tuned.get((table.name, method.tuning), math.nan), r, k, folds, seed, stratify),
        )
        for table, method, r, k in places
    }
    named = [(table.name, method.name) for table in tables for method in chosen]
    ordered = sorted(tasks, key=lambda key: (named.index((key[0], key[1])), int(key[2]), int(key[3])))
    sizes = {key: max(1, len(tasks[key][1].method.etas)) for key in ordered}
    with Records(results, {"experiment": "tradeoff", **settings}, COLUMNS, KEYS, sizes) as records:
        record_all(fit_fold, tasks, shared, records, dead_fold, workers, "trade-off", progress)
        return records.frame()


def _as_lams(lam: Any) -> tuple[float, ...]:
    values = np.atleast_1d(np.asarray(lam, dtype=float))
    if values.ndim != 1 or len(values) == 0 or not ((values > 0) & np.isfinite(values)).all():
        raise InvalidInputError(
            "'lam' must be a positive number or a nonempty list of them", repr(lam), "Give lam=1.0, for instance"
        )
    return tuple(sorted({float(v) for v in values}))


def _settings(
    tables: Sequence[Table],
    methods: Sequence[Method],
    lams: Sequence[float],
    repetitions: int,
    folds: int,
    seed: int,
    stratify: bool,
    discretize: str,
) -> dict[str, Any]:
    import nerm

    return {
        "nerm": nerm.__version__,
        "datasets": {table.name: table.digest() for table in tables},
        "methods": {m.name: m.details for m in methods},
        "etas": {m.name: list(m.etas) for m in methods},
        "lam": list(lams),
        "repetitions": int(repetitions),
        "folds": int(folds),
        "seed": int(seed),
        "stratify": bool(stratify),
        "discretize": discretize,
    }
