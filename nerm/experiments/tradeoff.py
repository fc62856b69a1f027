"""Figure 2 of the paper: quality against neutrality on real data, by weights and by levels."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nerm.errors import InvalidInputError
from nerm.experiments.harness import FACTS, LAMBDAS, Method, cross_validate
from nerm.experiments.methods import LEVEL_METHODS, LIMITS, MEASURES, METHODS, ONLY, at_limits, resolve
from nerm.typing import Bools
from nerm.validation import check_known


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
    """Measure methods at neutrality weights by repeated cross-validation; return one row per fit.

    Parameters
    ----------
    datasets, methods
        Names (`nerm.datasets.names()`, `METHODS`), `Dataset` objects, and methods made by `from_objective` or
        `from_estimator`.
    etas
        Other grids by method name; the paper's otherwise.
    lam
        A number (sum form, C = 1/lam), or the values among which it is tuned: once per data set and family of
        methods, without neutrality, on all rows, by cross-validated AUC, as in the paper. Of equals the
        largest is taken.
    repetitions, folds, seed, stratify
        Repetition r splits each data set by a seed that is derived from (seed, data set, r). `stratify` keeps
        the shares of the four combinations of label and viewpoint in every fold.
    discretize
        Learn cut points and pooled values on ``"all rows"``, as the paper did, or on ``"training folds"``.
    n_jobs, backend, client
        Worker processes of joblib, or ``backend="dask"``: a LocalCluster of n_jobs processes, or the cluster
        of `client` (a Client or an address). The table does not depend on them.
    results
        A .csv file that every finished fold is appended to. Started again with the same settings, a killed
        experiment resumes; the file of another experiment is refused. Files ``…-times.csv`` (seconds) and
        ``…-tuning.csv`` (the choice of lambda) are beside it.
    progress
        A bar with the time left; by default on a terminal only.
    data_home
        The folder with the data, as for `nerm.datasets.load`.

    Returns
    -------
    DataFrame
        With the columns dataset, method, repetition, fold, eta (nan for methods without), lam, sees_group,
        randomised and level (as in `Method`), the measures of `nerm.metrics.report` on the test rows, the
        positive rates of the groups v = -1 and v = +1, status ("ok", "not converged", "failed"), reason,
        seconds. A randomised method is measured in expectation.

    >>> from nerm.experiments import tradeoff, front
    >>> grid = {"neutral-svm": [0, 1]}
    >>> table = tradeoff("diabetes", ["neutral-svm", "lr"], etas=grid, lam=1.0, repetitions=1, folds=2)
    >>> table.shape[0], table.status.unique().tolist()
    (6, ['ok'])
    >>> front(table).columns[:4].tolist()
    ['dataset', 'method', 'eta', 'auc']
    """
    options = dict(locals())
    options.pop("etas")
    chosen = resolve(options.pop("methods"), dict(etas or {}))
    settings = {"experiment": "tradeoff", "etas": {method.name: list(method.etas) for method in chosen}}
    return cross_validate([({}, method) for method in chosen], settings, "eta", "trade-off", **options)


def levels(
    datasets: Any = ("german", "adult", "bank"),
    methods: Sequence[str | Method] = tuple(LEVEL_METHODS),
    *,
    measures: str | Sequence[str] = tuple(MEASURES),
    limits: float | Sequence[float] = LIMITS,
    **options: Any,
) -> Any:
    """Bring methods to levels of measured neutrality and measure them on test rows; one row per fit.

    Each method is brought to ``|measure| <= limit`` on its training rows: where it takes a level, that is
    asked for, else its weight is searched. The folds are those of `tradeoff`.

    Parameters
    ----------
    datasets
        As for `tradeoff`.
    methods
        Names (`LEVEL_METHODS`), or methods without a grid as for `tradeoff`: they take no level.
    measures
        The limited measure: ``"neutrality_risk"`` (C_sgn), ``"calders_verwer_score"`` (parity), or both.
    limits
        The levels.
    options
        lam, repetitions, folds, seed, stratify, discretize, n_jobs, backend, client, results, progress and
        data_home, as for `tradeoff`.

    Returns
    -------
    DataFrame
        With the columns of `tradeoff`; `measure` is the limited measure, and `limit` (nan for methods
        without) is in the place of eta. The status "collapsed" says that the limit was met on the training
        rows only with less than half of the positive rate of plain logistic regression in some group, "not
        reached" that it was not met (the nearest model is measured), "failed" that there is no model.

    >>> few = {"lam": 1.0, "folds": 2, "repetitions": 1}
    >>> table = levels("diabetes", ["nerm", "lr"], measures="calders_verwer_score", limits=0.05, **few)
    >>> table[["method", "limit", "sees_group", "randomised", "level", "status"]]
      method  limit  sees_group  randomised  level status
    0   nerm   0.05       False       False  asked     ok
    1   nerm   0.05       False       False  asked     ok
    2     lr    NaN       False       False   none     ok
    3     lr    NaN       False       False   none     ok
    """
    wanted = tuple(sorted(np.unique(np.asarray(limits, dtype=float)).tolist(), reverse=True))
    if not wanted or not all(0 < limit < np.inf for limit in wanted):
        must = "'limits' must be positive numbers"
        raise InvalidInputError(must, repr(limits), "Give limits=[0.05], for instance")
    names = [measures] if isinstance(measures, str) else list(measures)
    for name in names:
        check_known(name, "'measures'", MEASURES)
    given = resolve(methods, {}, LEVEL_METHODS)
    pairs = [(name, method) for name in names for method in given if ONLY.get(method.name, name) == name]
    if not pairs:
        must = f"'methods' must name one that knows one of 'measures', {names}"
        raise InvalidInputError(must, repr(methods), f"Give measures={list(MEASURES)}")
    chosen = [({"measure": name}, at_limits(method, name, wanted)) for name, method in pairs]
    settings = {"experiment": "levels", "measures": names, "limits": list(wanted)}
    return cross_validate(chosen, settings, "limit", "levels", datasets=datasets, **options)


def non_dominated(quality: ArrayLike, risk: ArrayLike) -> Bools:
    """Return True for the points that no other point dominates.

    A point dominates another if its quality is at least as large and its risk at most as large, and not both
    are equal. A point with a nan is dominated; equal points are dominated together or not at all.

    Parameters
    ----------
    quality, risk
        (k,); more of the first and less of the second is better.

    Returns
    -------
    ndarray of shape (k,)

    >>> non_dominated([0.9, 0.8, 0.7, 0.85], [0.3, 0.1, 0.2, 0.3]).tolist()
    [True, True, False, False]
    """
    q, r = np.asarray(quality, dtype=float), np.asarray(risk, dtype=float)
    if q.ndim != 1 or q.shape != r.shape:
        must = "'quality' and 'risk' must be vectors of one length"
        raise InvalidInputError(must, f"shapes {q.shape} and {r.shape}", "Pass two columns")
    no_worse = (q[:, None] >= q) & (r[:, None] <= r)
    better = (q[:, None] > q) | (r[:, None] < r)
    front: Bools = ~(no_worse & better).any(axis=0) & ~np.isnan(q) & ~np.isnan(r)
    return front


def front(table: Any, quality: str = "auc", risk: str = "neutrality_risk") -> Any:
    """Return means of two measures by data set, method and eta, and which of them are not dominated.

    Parameters
    ----------
    table
        From `tradeoff`.
    quality, risk
        Two of its measures. A signed one enters by its absolute value as a risk.

    Returns
    -------
    DataFrame
        With the columns dataset, method, eta, the two means, their standard deviations (``…_std``, over all
        folds), fits, failed (folds without a result, which the means leave out), sees_group, randomised and
        level where the table has them, and non_dominated, among the etas of one method, as in the paper's
        figure 2.

    >>> import pandas as pd
    >>> measures = {"auc": [0.8, 0.7, 0.6, 0.9, 0.8, 0.7], "neutrality_risk": [0.5, 0.1, 0.2] * 2}
    >>> table = pd.DataFrame({"method": "pr", "eta": [0.0, 1.0, 10.0] * 2, "status": "ok", **measures})
    >>> table = table.assign(dataset="german")
    >>> front(table)[["eta", "auc", "neutrality_risk", "fits", "non_dominated"]].round(2)
        eta   auc  neutrality_risk  fits  non_dominated
    0   0.0  0.85              0.5     2           True
    1   1.0  0.75              0.1     2           True
    2  10.0  0.65              0.2     2          False
    """
    _check_columns(table, {"dataset", "method", "eta", "status", quality, risk}, "tradeoff")
    rows = table.assign(**{risk: table[risk].abs(), "failed": table["status"] == "failed"})
    groups = rows.groupby(["dataset", "method", "eta"], dropna=False, sort=True)
    deviations = groups[[quality, risk]].std().add_suffix("_std")
    means = groups[[quality, risk]].mean().join(deviations)
    means = means.assign(fits=groups.size(), failed=groups["failed"].sum())
    means = means.join(groups[[fact for fact in FACTS if fact in rows]].first()).reset_index()
    means["non_dominated"] = False
    for _, group in means.groupby(["dataset", "method"]):
        means.loc[group.index, "non_dominated"] = non_dominated(group[quality], group[risk])
    return means


def level_means(table: Any) -> Any:
    """Return means of the measures on test rows by method and level.

    Parameters
    ----------
    table
        From `levels`.

    Returns
    -------
    DataFrame
        By dataset, measure, method (with its facts) and limit: the means of `measured` (the absolute value of
        the measure), auc, accuracy and the positive rates of the groups, the standard errors of auc and
        accuracy (``…_sem``) and the numbers of folds: all of them (fits), and by status, ok, not_converged,
        collapsed, not_reached, failed.

    >>> import pandas as pd
    >>> row = {"dataset": "d", "measure": "neutrality_risk", "method": "nerm", "sees_group": False,
    ...     "randomised": False, "level": "asked", "limit": 0.1, "neutrality_risk": 0.08, "auc": 0.8,
    ...     "calders_verwer_score": 0.0, "accuracy": 0.7, "positive_rate_minus": 0.4,
    ...     "positive_rate_plus": 0.4, "status": "ok"}
    >>> means = level_means(pd.DataFrame([row, {**row, "neutrality_risk": 0.06, "status": "collapsed"}]))
    >>> means[["measured", "fits", "ok", "collapsed"]].round(2).to_dict("records")
    [{'measured': 0.07, 'fits': 2, 'ok': 1, 'collapsed': 1}]
    """
    by = ["dataset", "measure", "method", *FACTS, "limit"]
    shown = ["auc", "accuracy", "positive_rate_minus", "positive_rate_plus"]
    _check_columns(table, {*by, *shown, *MEASURES, "status"}, "levels")
    statuses = ("ok", "not converged", "collapsed", "not reached", "failed")
    counts = {status.replace(" ", "_"): table["status"] == status for status in statuses}
    by_risk = table["measure"] == "neutrality_risk"
    measured = table["neutrality_risk"].where(by_risk, table["calders_verwer_score"].abs())
    groups = table.assign(measured=measured, **counts).groupby(by, dropna=False, sort=False)
    errors = groups[["auc", "accuracy"]].sem().add_suffix("_sem")
    means = groups[["measured", *shown]].mean().join(errors).assign(fits=groups.size())
    return means.join(groups[list(counts)].sum()).reset_index()


def _check_columns(table: Any, needed: set[str], function: str) -> None:
    missing = needed - set(table.columns)
    if missing:
        must = f"'table' must come from nerm.experiments.{function}"
        got = f"a table without {', '.join(map(repr, sorted(missing)))}"
        raise InvalidInputError(must, got, f"Pass the table that {function} returned")
