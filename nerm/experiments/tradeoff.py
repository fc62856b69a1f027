"""Figure 2 of the paper: classification quality against neutrality, method by method, on real data; and its fronts."""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nerm.errors import InvalidInputError
from nerm.experiments.coded_data import CodedData, as_coded_data
from nerm.experiments.methods import FACTS, METHODS, Method, resolve, sweep
from nerm.experiments.records import Records, Row
from nerm.experiments.running import Job, Workers, record_all
from nerm.splitting import as_count, assign_folds, seed_sequence
from nerm.typing import Bools, Floats

#: The values of lambda (sum form, C = 1/lambda) among which it is tuned; the paper does not say its own.
LAMBDAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
TUNING = 2**32 - 1  # in place of a repetition: these folds are none of the experiment's own
TUNING_KEYS = ("dataset", "tuning", "lam", "fold")
Measure = Callable[[Floats, Floats, Floats, bool], dict[str, float]]
Lambdas = dict[tuple[str, str | None], float]


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

    Parameters
    ----------
    datasets, methods
        Names (`nerm.datasets.names()`, `METHODS`), `Dataset` objects, and methods made by `from_objective` or
        `from_estimator`.
    etas
        Other grids by method name; the paper's otherwise.
    lam
        A number (sum form, C = 1/lam), or the values among which it is tuned: once a data set and family of
        methods, without neutrality, on all rows, by cross-validated AUC, as in the paper. Ties go to the
        larger one.
    repetitions, folds, seed, stratify
        Repetition r splits each data set anew by a seed derived from (seed, data set, r). `stratify` keeps
        the shares of the four combinations of label and viewpoint in every fold.
    discretize
        Learn cut points and pooled values on ``"all rows"``, as the paper did, or on ``"training folds"``.
    n_jobs, backend, client
        Worker processes of joblib, or ``backend="dask"``: a LocalCluster of n_jobs processes, or the cluster
        of `client` (a Client or an address). The table does not depend on them.
    results
        A .csv file that every finished fold is appended to. Started again with the same settings, the
        experiment goes on where it was killed; the file of another one is refused. Files ``…-times.csv``
        (seconds) and ``…-tuning.csv`` (the choice of lambda) stand beside it.
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
        seconds. A method that draws its predictions is measured by its chances.

    >>> from nerm.experiments import tradeoff, front
    >>> grid = {"neutral-svm": [0, 1]}
    >>> table = tradeoff("diabetes", ["neutral-svm", "lr"], etas=grid, lam=1.0, repetitions=1, folds=2)
    >>> table.shape[0], table.status.unique().tolist()
    (6, ['ok'])
    >>> front(table).columns[:4].tolist()
    ['dataset', 'method', 'eta', 'auc']
    """
    chosen = resolve(methods, dict(etas or {}))
    grids = {m.name: list(m.etas) for m in chosen}
    return cross_validate(
        {"experiment": "tradeoff", "etas": grids},
        [({}, m) for m in chosen],
        "eta",
        "trade-off",
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


def cross_validate(
    settings: Row,
    chosen: Sequence[tuple[Row, Method]],
    grid: str,
    title: str,
    workers: Workers,
    *,
    datasets: Any,
    lam: Any,
    repetitions: int,
    folds: int,
    seed: int,
    stratify: bool,
    discretize: str,
    results: Any,
    progress: bool | None,
    data_home: Any,
) -> Any:
    """Do what `tradeoff` says for methods, each with what else its rows are about; `grid` names the grid's column."""
    as_count(repetitions, "repetitions")
    methods, lams = [method for _, method in chosen], _as_lams(lam)
    data = {
        each.name: each
        for each in as_coded_data(datasets, discretize, {m.coding for m in methods}, data_home)
    }
    from nerm import __version__

    common = {
        "nerm": __version__,
        "datasets": {name: each.digest() for name, each in data.items()},
        "methods": {m.name: m.details for m in methods},
        "lam": list(lams),
        "discretize": discretize,
        "folds": as_count(folds, "folds", 2),
        "seed": as_count(seed, "seed", 0),
        "stratify": bool(stratify),
    }
    record = partial(record_all, shared=data, workers=workers, progress=progress)
    tuned = _tune(
        data, methods, {"experiment": f"{settings['experiment']} tuning", **common}, results, record
    )
    jobs = []
    for name, (about, method) in product(data, chosen):
        weight = tuned.get((name, method.tuning), math.nan)
        facts = {fact: getattr(method, fact) for fact in FACTS}
        for repetition, fold in product(range(repetitions), range(folds)):
            place = {"dataset": name, **about, "method": method.name, "repetition": repetition, "fold": fold}
            places = tuple(
                {**place, grid: value, "lam": weight, **facts} for value in method.etas or (math.nan,)
            )
            jobs.append(Job(places, _measured, (common, _report, method, weight, repetition, fold), name))
    signs = np.array([1.0, 1.0, -1.0, -1.0])
    measures = _report(signs, signs, signs[[0, 2, 1, 3]])  # for their names
    keys = ("dataset", *chosen[0][0], "method", "repetition", "fold")
    columns = (*keys, grid, "lam", *FACTS, *measures, "status", "reason")
    settings = {"experiment": settings["experiment"], **common, **settings, "repetitions": int(repetitions)}
    return record(jobs, records=Records(results, settings, columns, keys), title=title)


def _as_lams(lam: Any) -> tuple[float, ...]:
    values = np.atleast_1d(np.asarray(lam, dtype=float))
    if values.ndim != 1 or len(values) == 0 or not ((values > 0) & np.isfinite(values)).all():
        must = "'lam' must be a positive number or a nonempty list of them"
        raise InvalidInputError(must, repr(lam), "Give lam=1.0, for instance")
    return tuple(sorted({float(v) for v in values}))


def _report(y: Floats, scores: Floats, viewpoint: Floats, randomised: bool = False) -> dict[str, float]:
    """Return what `nerm.metrics.report` has and the groups' positive rates; in expectation, where these are chances."""
    from nerm.metrics import report

    chance = np.clip(scores + 0.5, 0.0, 1.0) if randomised else (scores > 0).astype(float)
    made = report(y, scores, viewpoint).as_dict()
    if randomised:  # each row as two, one a prediction
        both, predicted = np.concatenate([chance, 1 - chance]), np.repeat([1.0, -1.0], len(y))
        made = report(np.tile(y, 2), predicted, np.tile(viewpoint, 2), both).as_dict() | {"auc": made["auc"]}
    made = {name: value for name, value in made.items() if name != "n"}
    groups = {"minus": viewpoint <= 0, "plus": viewpoint > 0}
    return made | {f"positive_rate_{name}": float(chance[rows].mean()) for name, rows in groups.items()}


def _auc(y: Floats, scores: Floats, viewpoint: Floats, randomised: bool = False) -> dict[str, float]:
    from sklearn.metrics import roc_auc_score

    return {"auc": float(roc_auc_score(y, scores))}


def _measured(
    data: CodedData, settings: Row, measure: Measure, method: Method, lam: float, repetition: int, fold: int
) -> Iterator[Row]:
    """Fit a method at every weight on one fold and yield what is measured on its test rows."""
    strata = [data.y, data.viewpoint] if settings["stratify"] else [np.zeros(len(data.y))]
    of = assign_folds(strata, settings["folds"], seed_sequence(settings["seed"], data.name, repetition))
    train, test = np.flatnonzero(of != fold), np.flatnonzero(of == fold)
    own = int(seed_sequence(settings["seed"], data.name, repetition, fold).generate_state(1)[0])
    for fit in sweep(method, data, train, test, lam, own):
        status = fit.status or ("ok" if fit.converged else "not converged")
        row: Row = {"status": status, "reason": fit.reason, "seconds": fit.seconds}
        try:
            if fit.scores is None:
                row["status"] = "failed"
            else:
                row |= measure(data.y[test], fit.scores, data.viewpoint[test], method.randomised)
        except Exception as error:  # scores that are not finite, for instance
            row |= {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
        yield row


def _tune(
    data: Iterable[str], chosen: Sequence[Method], common: Row, results: Any, record: Callable[..., Any]
) -> Lambdas:
    """Choose lambda by data set and family: the one of the largest mean AUC, the larger one of equals."""
    families = {
        m.tuning: replace(m, fit=m.plain, etas=(0.0,)) for m in chosen if m.tuning is not None and m.plain
    }
    lams = common["lam"]
    if len(lams) == 1 or not families:
        return {(name, family): lams[0] for name in data for family in families}
    jobs = []
    for name, (family, method), lam, fold in product(data, families.items(), lams, range(common["folds"])):
        place = {"dataset": name, "tuning": family, "lam": lam, "fold": fold}
        jobs.append(Job((place,), _measured, (common, _auc, method, lam, TUNING, fold), name))
    path = None if results is None else os.fspath(results).removesuffix(".csv") + "-tuning.csv"
    columns = (*TUNING_KEYS, "auc", "status", "reason")
    table = record(jobs, records=Records(path, common, columns, TUNING_KEYS), title="choice of lambda")
    best: Lambdas = {}
    for (name, family), rows in table.groupby(["dataset", "tuning"]):
        means = rows.groupby("lam")["auc"].mean().dropna()
        if means.empty:
            must = f"some lambda must give a fit of {family!r} on {name!r}"
            got = f"{len(lams)} failures, for instance {rows.reason.iloc[0]!r}"
            raise InvalidInputError(must, got, "Give lam=1.0, for instance, to leave the tuning out")
        best[name, family] = float(means.index[means >= means.max()].max())
    return best


def non_dominated(quality: ArrayLike, risk: ArrayLike) -> Bools:
    """Return True for the points that no other point dominates.

    A point dominates another if its quality is at least as large and its risk at most as large, and not both
    are equal. A point with a nan is dominated; equal points stand or fall together.

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
    """Return means and standard deviations of two measures by data set, method and eta, and which are not dominated.

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
        folds), fits, failed (folds without a result, which the means leave out), what is known of the method
        (sees_group, randomised, level; where the table has it) and non_dominated, judged among the etas of
        one method, as in the paper's figure 2.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"dataset": "german", "method": "pr", "eta": [0.0, 1.0, 10.0] * 2, "status": "ok",
    ...                       "auc": [0.8, 0.7, 0.6, 0.9, 0.8, 0.7], "neutrality_risk": [0.5, 0.1, 0.2] * 2})
    >>> front(table)[["eta", "auc", "neutrality_risk", "fits", "non_dominated"]].round(2)
        eta   auc  neutrality_risk  fits  non_dominated
    0   0.0  0.85              0.5     2           True
    1   1.0  0.75              0.1     2           True
    2  10.0  0.65              0.2     2          False
    """
    missing = {"dataset", "method", "eta", "status", quality, risk} - set(table.columns)
    if missing:
        must = "'table' must come from nerm.experiments.tradeoff"
        got = f"a table without {', '.join(map(repr, sorted(missing)))}"
        raise InvalidInputError(must, got, "Pass the table that tradeoff returned")
    rows = table.assign(**{risk: table[risk].abs(), "failed": table["status"] == "failed"})
    groups = rows.groupby(["dataset", "method", "eta"], dropna=False, sort=True)
    means = groups.agg(
        **{
            quality: (quality, "mean"),
            risk: (risk, "mean"),
            f"{quality}_std": (quality, "std"),
            f"{risk}_std": (risk, "std"),
            "fits": ("failed", "size"),
            "failed": ("failed", "sum"),
            **{fact: (fact, "first") for fact in FACTS if fact in rows},
        }
    ).reset_index()
    means["non_dominated"] = False
    for _, group in means.groupby(["dataset", "method"]):
        means.loc[group.index, "non_dominated"] = non_dominated(group[quality], group[risk])
    return means
