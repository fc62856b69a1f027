"""Figure 2 again, with levels of measured neutrality that are asked for in place of weights."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.experiments.level_methods import LEVEL_METHODS, LIMITS, MEASURES, ONLY, Brought
from nerm.experiments.methods import FACTS, Method, resolve
from nerm.experiments.running import Workers
from nerm.experiments.tradeoff import LAMBDAS, cross_validate
from nerm.validation import check_known

STATUSES = ("ok", "not converged", "collapsed", "not reached", "failed")


def levels(
    datasets: Any = ("german", "adult", "bank"),
    methods: Sequence[str | Method] = tuple(LEVEL_METHODS),
    *,
    measures: str | Sequence[str] = tuple(MEASURES),
    limits: float | Sequence[float] = LIMITS,
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
    """Ask every method for levels of measured neutrality, and measure on test rows what came of it: one row a fit.

    Each method is brought to ``|measure| <= limit`` on its training rows: where it takes a level, that is
    asked for, else its weight is searched. The folds are those of `tradeoff`.

    Parameters
    ----------
    datasets, lam, repetitions, folds, seed, stratify, discretize, n_jobs, backend, client, results, progress,
    data_home
        As for `tradeoff`.
    methods
        Names (`LEVEL_METHODS`), or methods without a grid as for `tradeoff`: they take no level.
    measures
        What is limited: ``"neutrality_risk"`` (C_sgn), ``"calders_verwer_score"`` (parity), or both.
    limits
        The levels.

    Returns
    -------
    DataFrame
        With the columns of `tradeoff`, where `measure` is what was limited and `limit` (nan for methods
        without) stands for eta. A status of "collapsed" says that the limit was met on the training rows only
        by denying half of those whom plain logistic regression accepts in some group, "not reached" that it
        was not met (the nearest model is measured), "failed" that there is no model.

    >>> table = levels("diabetes", ["nerm", "lr"], measures="calders_verwer_score", limits=0.05, lam=1.0, folds=2,
    ...                repetitions=1)
    >>> table[["method", "limit", "sees_group", "randomised", "level", "status"]]
      method  limit  sees_group  randomised  level status
    0   nerm   0.05       False       False  asked     ok
    1   nerm   0.05       False       False  asked     ok
    2     lr    NaN       False       False   none     ok
    3     lr    NaN       False       False   none     ok
    """
    wanted = tuple(sorted(np.unique(np.asarray(limits, dtype=float)), reverse=True))
    if not wanted or not all(0 < limit < np.inf for limit in wanted):
        raise InvalidInputError(
            "'limits' must be positive numbers", repr(limits), "Give limits=[0.05], for instance"
        )
    names = [measures] if isinstance(measures, str) else list(measures)
    for name in names:
        check_known(name, "'measures'", MEASURES)
    pairs = [
        (m, name)
        for name in names
        for m in resolve(methods, {}, LEVEL_METHODS)
        if ONLY.get(m.name, name) == name
    ]
    if not pairs:
        must = f"'methods' must name one that knows one of 'measures', {names}"
        raise InvalidInputError(must, repr(methods), f"Give measures={list(MEASURES)}")
    asked = [({"measure": name}, _at(method, name, wanted)) for method, name in pairs]
    return cross_validate(
        {"experiment": "levels", "measures": names, "limits": list(wanted)},
        asked,
        "limit",
        "levels",
        Workers(n_jobs, backend, client),
        datasets=datasets,
        lam=lam,
        repetitions=repetitions,
        folds=folds,
        seed=seed,
        stratify=stratify,
        discretize=discretize,
        results=results,
        progress=progress,
        data_home=data_home,
    )


def _at(method: Method, measure: str, limits: tuple[float, ...]) -> Method:
    """Return the method that is brought to these limits of one measure."""
    if not isinstance(method.fit, Brought):
        if method.etas:
            must = "each of 'methods' must be one of LEVEL_METHODS or have no grid"
            raise InvalidInputError(
                must, f"{method.name!r} with etas {list(method.etas)}", "Use tradeoff for a grid"
            )
        return method
    return replace(
        method, etas=limits, fit=replace(method.fit, measure=measure, randomised=method.randomised)
    )


def level_means(table: Any) -> Any:
    """Return what each method reached on test rows at each level: means over folds, and of how many.

    Parameters
    ----------
    table
        From `levels`.

    Returns
    -------
    DataFrame
        By dataset, measure, method (with its facts) and limit: the means of `measured` (the absolute value of
        the measure), auc, accuracy and the groups' positive rates, the standard errors of auc and accuracy
        (``…_sem``) and the folds: all of them (fits), and by status, ok, not_converged, collapsed,
        not_reached, failed.

    >>> import pandas as pd
    >>> row = {"dataset": "d", "measure": "neutrality_risk", "method": "nerm", "sees_group": False, "randomised": False,
    ...        "level": "asked", "limit": 0.1, "neutrality_risk": 0.08, "calders_verwer_score": 0.0, "auc": 0.8,
    ...        "accuracy": 0.7, "positive_rate_minus": 0.4, "positive_rate_plus": 0.4, "status": "ok"}
    >>> means = level_means(pd.DataFrame([row, {**row, "neutrality_risk": 0.06, "status": "collapsed"}]))
    >>> means[["measured", "fits", "ok", "collapsed"]].round(2).to_dict("records")
    [{'measured': 0.07, 'fits': 2, 'ok': 1, 'collapsed': 1}]
    """
    by = ["dataset", "measure", "method", *FACTS, "limit"]
    shown = ["auc", "accuracy", "positive_rate_minus", "positive_rate_plus"]
    missing = {*by, *shown, *MEASURES, "status"} - set(table.columns)
    if missing:
        must = "'table' must come from nerm.experiments.levels"
        got = f"a table without {', '.join(map(repr, sorted(missing)))}"
        raise InvalidInputError(must, got, "Pass the table that levels returned")
    counts = {status.replace(" ", "_"): table["status"] == status for status in STATUSES}
    measured = (
        table["calders_verwer_score"]
        .abs()
        .where(table["measure"] != "neutrality_risk", table["neutrality_risk"])
    )
    groups = table.assign(measured=measured, **counts).groupby(by, dropna=False, sort=False)
    means = groups[["measured", *shown]].mean()
    for column in ("auc", "accuracy"):
        means[f"{column}_sem"] = groups[column].sem()
    means["fits"] = groups.size()
    return means.join(groups[list(counts)].sum()).reset_index()
