"""Figure 2 of the paper: quality against neutrality on real data, for a grid of neutrality weights.

`cross_validate` tunes lambda, then fits methods on data sets, repetitions and folds, and returns a table with
one row per fit. It runs in parallel and can resume after an interruption. `tradeoff` and `levels` call it.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import nerm
from nerm.errors import InvalidInputError
from nerm.experiments.methods import FACTS, METHODS, Fit, Fold, Method, decades, resolve
from nerm.experiments.running import Job, Row, as_grid, by_name, check_columns, reason_of, run_jobs
from nerm.splitting import as_count, assign_folds, seed_sequence
from nerm.typing import Bools, Floats, Ints
from nerm.validation import as_labels, as_nonnegative, check_known, flat
from nerm.viewpoint import as_sides

#: The columns that a fit is measured by.
MEASURED = (*nerm.metrics.METRICS, "positive_rate_minus", "positive_rate_plus")
#: The name of a data set, additional columns, a method and its lambda: what each fold is fitted with.
Cell = tuple[str, Row, Method, float]
#: The values of lambda (sum form, C = 1/lambda) to tune over; the paper does not state its values.
LAMBDAS = decades((1, 3), -2, 2)


def tradeoff(
    datasets: Any = ("german", "adult", "bank"),
    methods: Sequence[str | Method] = tuple(METHODS),
    *,
    etas: Mapping[str, Sequence[float]] | None = None,
    **options: Any,
) -> Any:
    """Measure methods over their neutrality weights by repeated cross-validation; return one row per fit.

    Parameters
    ----------
    datasets
        Names in `nerm.datasets.names()`, or `Dataset` objects.
    methods
        Names in `METHODS`, or methods created by `from_objective` or `from_estimator`.
    etas
        By method name, a grid of neutrality weights; the default is the paper's grid.
    options
        lam, repetitions, folds, seed, stratify, discretize, n_jobs, results, progress and data_home, as for
        `nerm.experiments.cross_validate`.

    Returns
    -------
    DataFrame
        With the columns dataset, method, repetition, fold, eta (nan for methods without eta), lam;
        sees_group, randomised and level (as in `Method`); the measures of `nerm.metrics.report` on the test
        rows; the positive rates of the groups v = -1 and v = +1; status ("ok", "not converged", "failed"),
        reason, seconds. The measures of a randomised method are expectations over its random predictions.

    >>> from nerm.experiments import tradeoff, front
    >>> grid = {"neutral-svm": [0, 1]}
    >>> table = tradeoff("diabetes", ["neutral-svm", "lr"], etas=grid, lam=1.0, repetitions=1, folds=2)
    >>> table.shape[0], table.status.unique().tolist()
    (6, ['ok'])
    >>> front(table).columns[:4].tolist()
    ['dataset', 'method', 'eta', 'auc']
    """
    chosen = resolve(methods, METHODS)
    for name, grid in (etas or {}).items():
        check_known(name, "a key of 'etas'", chosen)
        values = as_grid(grid, "etas", as_nonnegative)
        if not chosen[name].etas:
            must = "'etas' must name methods that have a neutrality weight"
            raise InvalidInputError(must, f"{name!r}, which has none", f"Remove {name!r} from 'etas'")
        chosen[name] = replace(chosen[name], etas=tuple(values))
    grids = {name: list(method.etas) for name, method in chosen.items()}
    pairs: list[tuple[Row, Method]] = [({}, method) for method in chosen.values()]
    settings = {"experiment": "tradeoff", "etas": grids}
    return cross_validate(pairs, settings, "eta", datasets=datasets, **options)


def non_dominated(quality: ArrayLike, risk: ArrayLike) -> Bools:
    """Return a mask of the points that no other point dominates.

    A point dominates another if its quality is at least as large, its risk is at most as large, and at least
    one of them differs. So equal points do not dominate each other. A point with a nan is never in the mask.

    Parameters
    ----------
    quality, risk
        Two values per point, (k,) each; large quality and small risk are better.

    Returns
    -------
    ndarray of bool, shape (k,)

    >>> non_dominated([0.9, 0.8, 0.7, 0.85], [0.3, 0.1, 0.2, 0.3]).tolist()
    [True, True, False, False]
    """
    q = np.asarray(quality, dtype=float).ravel()
    r = np.asarray(flat(risk, len(q), "risk", "value per entry of 'quality'"), dtype=float)
    no_worse = (q[:, None] >= q) & (r[:, None] <= r)
    better = (q[:, None] > q) | (r[:, None] < r)
    return np.asarray(~(no_worse & better).any(axis=0) & ~np.isnan(q + r))


def front(table: Any, quality: str = "auc", risk: str = "neutrality_risk") -> Any:
    """Return means of two measures per data set, method and eta, and mark those that are not dominated.

    Parameters
    ----------
    table
        From `tradeoff`.
    quality, risk
        Names of two measures in the table. The absolute value of `risk` is used.

    Returns
    -------
    DataFrame
        With the columns dataset, method, eta; the means of the two measures over folds and their standard
        deviations (``…_std``); fits (number of folds); failed (folds without a result, which the means leave
        out); sees_group, randomised and level if the table has them; and non_dominated, which compares the
        etas of one method on one data set, as in the paper's figure 2.

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
    check_columns(table, {"dataset", "method", "eta", "status", quality, risk}, "tradeoff")
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


def _loaded(datasets: Any, data_home: Any) -> dict[str, Any]:
    """Return `Dataset` objects by name.

    `datasets` are one or several names or `Dataset` objects.
    """
    found = []
    for data in [datasets] if isinstance(datasets, str | nerm.datasets.Dataset) else datasets:
        if not isinstance(data, nerm.datasets.Dataset):
            seed = 0 if data == "synthetic" else None
            data = nerm.datasets.load(data, random_state=seed, data_home=data_home)
        # Only X, y and viewpoint are sent to the workers.
        y, viewpoint = as_labels(data.y, len(data.y))[0], as_sides(data.viewpoint, len(data.y))
        found.append(replace(data, y=y, viewpoint=viewpoint, frame=None))
    return by_name(found, "datasets")


def _digest(data: Any) -> str:
    """Return a checksum of the rows of a data set."""
    import joblib
    import pandas as pd

    X = data.X
    if data.coding != "one-hot":
        X = pd.util.hash_pandas_object(nerm.datasets.coding.as_frame(X), index=False).to_numpy()
    return str(joblib.hash((data.y, data.viewpoint, X)))[:16]


def sweep(method: Method, rows: Any, train: Ints, test: Ints, lam: float, seed: int = 0) -> Iterator[Fit]:
    """Fit a method on training rows at every setting of its grid, and score test rows.

    Parameters
    ----------
    method
        One of `METHODS`, or made by `from_objective` or `from_estimator`.
    rows
        All rows: a `Dataset`, or any object with ``y`` and ``viewpoint``, (n,) in -1/+1, and a method
        ``parts(coding, train, test)`` that returns the features of the training and of the test rows.
    train, test
        Indices of the rows to fit on and of the rows to score.
    lam
        The regularization weight lambda in sum form, so C = 1/lambda. In mean form it is lambda/n for n
        training rows.
    seed
        Random seed, for a method that draws random numbers.

    Yields
    ------
    Fit
        One per value in ``method.etas``, or a single one if there are none.

    >>> from nerm.experiments import METHODS
    >>> data = nerm.datasets.load("diabetes", "one-hot")
    >>> fits = list(sweep(METHODS["neutral-svm"], data, np.arange(300), np.arange(300, 442), lam=10.0))
    >>> len(fits), fits[0].scores.shape
    (10, (142,))
    """
    X, X_test = rows.parts(method.coding, train, test)
    fold = Fold(X, rows.y[train], rows.viewpoint[train], X_test, rows.viewpoint[test], seed)
    return method.fit(fold, lam, method.etas)


def cross_validate(
    chosen: Sequence[tuple[Row, Method]],
    settings: Row,
    grid: str,
    *,
    datasets: Any,
    lam: float | Sequence[float] = LAMBDAS,
    repetitions: int = 10,
    folds: int = 5,
    seed: int = 0,
    stratify: bool = True,
    discretize: str = "all rows",
    data_home: Any = None,
    results: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Any:
    """Measure methods over their grids by repeated cross-validation; return one row per fit.

    Parameters
    ----------
    chosen
        Pairs (columns, method): a dictionary of additional columns, constant for the method, and a `Method`.
    settings
        The name of the experiment and its own settings; those that follow from the other arguments are added.
    grid
        The column for the values of the method's grid: "eta" or "limit".
    datasets
        Names or `Dataset` objects.
    lam
        lambda in sum form (C = 1/lam), or several values to tune over. As in the paper, lambda is tuned once
        per data set and family of methods, without neutrality, on all rows, by cross-validated AUC. Of
        equally good values the largest is taken.
    repetitions, folds, seed, stratify
        Repetition r splits each data set with a seed derived from (seed, data set, r). With `stratify`, every
        fold keeps the shares of the four combinations of label and viewpoint.
    discretize
        Whether the discretization of raw data is learned on ``"all rows"``, as in the paper, or on the
        ``"training folds"``.
    data_home
        The folder with the data, as for `nerm.datasets.load`.
    results
        A .csv file for the rows of every finished fold. The same call resumes an interrupted experiment from
        it; the file of another experiment is refused. The fits that tune lambda are in ``…-tuning.csv`` in
        the same folder. Do not use one file in two runs at the same time.
    options
        ``n_jobs`` is the number of joblib workers, by default 1; inside
        ``with joblib.parallel_config(backend="dask")`` they run on a dask cluster. The table, except for
        seconds, does not depend on this number. ``progress`` is whether to show a progress bar, by default on
        a terminal only.

    Returns
    -------
    DataFrame
        One row per fit, with the columns that `tradeoff` describes.

    >>> few = {"datasets": "diabetes", "lam": 1.0, "repetitions": 1, "folds": 2}
    >>> cross_validate([({}, METHODS["lr"])], {"experiment": "mine"}, "eta", **few).status.tolist()
    ['ok', 'ok']
    """
    as_count(repetitions, "repetitions")
    check_known(discretize, "'discretize'", ("all rows", "training folds"))
    methods = [method for _, method in chosen]
    plain = {m.tuning: METHODS.get(m.tuning, m) for m in methods if m.tuning is not None}
    families = {family: replace(method, etas=(0.0,)) for family, method in plain.items()}
    data, coded = _loaded(datasets, data_home), {}
    for (name, rows), coding in product(data.items(), {m.coding for m in (*methods, *families.values())}):
        later = rows.coding == "raw" and discretize == "training folds"  # each fold codes its own rows
        coded[name, coding] = rows if later else rows.coded(coding)
    common: Row = {
        "nerm": nerm.__version__,
        "datasets": {name: _digest(rows) for name, rows in data.items()},
        "methods": {m.name: m.details for m in methods},
        "lam": as_grid(lam, "lam"),
        "discretize": discretize,
        "folds": as_count(folds, "folds", 2),
        "seed": as_count(seed, "seed", 0),
        "stratify": bool(stratify),
    }

    def run(cells: Iterable[Cell], repetitions: Iterable[int], settings: Row, results: Any) -> Any:
        jobs = []
        for (name, own, method, weight), repetition, fold in product(cells, repetitions, range(folds)):
            place = {"dataset": name, **own, "method": method.name, "repetition": repetition, "fold": fold}
            facts = {"lam": weight, **{fact: getattr(method, fact) for fact in FACTS}}
            places = tuple({**place, grid: value, **facts} for value in method.etas or (np.nan,))
            jobs.append(Job(places, partial(_measured, coded[name, method.coding], common, method, grid)))
        return run_jobs(jobs, MEASURED, settings, results=results, **options)

    path = None if results is None else os.fspath(results).removesuffix(".csv") + "-tuning.csv"
    tuning = {"experiment": f"{settings['experiment']} tuning", **common}
    # Tuning has no repetition: use a number that no repetition has, so that its folds are different ones.
    tune = partial(run, repetitions=[2**32 - 1], settings=tuning, results=path)
    tuned = _tuned(families, list(data), common["lam"], tune)
    cells = [(name, *pair, tuned.get((name, pair[1].tuning), np.nan)) for name, pair in product(data, chosen)]
    settings = {"experiment": "", **common, **settings, "repetitions": int(repetitions)}
    return run(cells, range(repetitions), settings, results)


def _tuned(
    families: Mapping[str, Method], names: list[str], lams: list[float], run: Callable[[Iterable[Cell]], Any]
) -> dict[tuple[str, str | None], float]:
    """Return lambda by (data set, family): the value with the largest mean AUC.

    Of equally good values the largest lambda is taken. `families` are the methods that tune, without
    neutrality, and ``run(cells)`` fits and measures them.
    """
    if len(lams) == 1 or not families:
        return {(name, family): lams[0] for name in names for family in families}
    tried = product(names, families, lams)
    table = run((name, {"tuning": family}, families[family], lam) for name, family, lam in tried)
    best: dict[tuple[str, str | None], float] = {}
    for (name, family), rows in table.groupby(["dataset", "tuning"]):
        means = rows.groupby("lam")["auc"].mean().dropna()
        if means.empty:
            must = f"at least one lambda must give a fit of {family!r} on {name!r}"
            got = f"{len(lams)} failures, for instance {rows.reason.iloc[0]!r}"
            raise InvalidInputError(must, got, "Pass lam=1.0, for instance, to skip the tuning")
        best[name, family] = float(means.index[means >= means.max()].max())
    return best


def _measured(data: Any, given: Row, method: Method, grid: str, places: Sequence[Row]) -> Iterator[Row]:
    """Fit a method on one fold; yield one row of measures on the test rows per setting.

    Each entry of `places` is a setting: a dict whose entry `grid` ("eta" or "limit") is a value of the
    method's grid.
    """
    if method.etas:
        method = replace(method, etas=tuple(place[grid] for place in places))
    repetition, fold, lam = (places[0][name] for name in ("repetition", "fold", "lam"))
    strata = [data.y, data.viewpoint] if given["stratify"] else [np.zeros(len(data.y))]
    assigned = assign_folds(strata, given["folds"], seed_sequence(given["seed"], data.name, repetition))
    train, test = np.flatnonzero(assigned != fold), np.flatnonzero(assigned == fold)
    seed = int(seed_sequence(given["seed"], data.name, repetition, fold).generate_state(1)[0])
    for fit in sweep(method, data, train, test, lam, seed):
        row: Row = {"status": fit.status, "reason": fit.reason, "seconds": fit.seconds}
        try:
            if fit.scores is not None:
                row |= measures(data.y[test], fit.scores, data.viewpoint[test], method.randomised)
        except Exception as error:  # scores that are not finite, for instance
            row |= {"status": "failed", "reason": reason_of(error)}
        yield row


def measures(y: Floats, scores: Floats, viewpoint: Floats, randomised: bool = False) -> dict[str, float]:
    """Return the measures of `nerm.metrics.report` and the positive rates of the groups, by name.

    The scores of a randomised method are P(yhat = +1) - 1/2. Its measures are expectations over its random
    predictions, except for the AUC, which is that of the scores.
    """
    report = nerm.metrics.report
    chance = np.clip(scores + 0.5, 0.0, 1.0) if randomised else (scores > 0).astype(float)
    with warnings.catch_warnings():  # a method may predict +1 for every row of a fold
        warnings.filterwarnings("ignore", "'scores' has no negative entry")
        found = report(y, scores, viewpoint).measures
    if randomised:  # replace each row by two weighted rows, one per prediction
        weights = np.concatenate([chance, 1 - chance])
        predicted = np.repeat([1.0, -1.0], len(y))
        expected = report(np.tile(y, 2), predicted, np.tile(viewpoint, 2), weights).measures
        found = expected | {"auc": found["auc"]}
    groups = {"minus": viewpoint <= 0, "plus": viewpoint > 0}
    return found | {f"positive_rate_{name}": float(chance[rows].mean()) for name, rows in groups.items()}
