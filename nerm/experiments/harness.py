"""The one harness: split rows, fit methods over grids of settings, measure on test rows, return tidy rows.

- `Method` describes a method: ``method.fit(fold, lam, grid)`` yields one `Fit` per setting of its grid.
- `sweep` fits one method over its grid on one pair of training and test rows.
- `held_out_scores` sweeps several methods over several such pairs and returns one score per held-out row.
- `cross_validate` sweeps methods over data sets, repetitions and folds, in parallel and resumable, tunes
  lambda first, and returns a table with one row per fit. `tradeoff` and `levels` are specifications of it.

The rows may be any object with ``y``, ``viewpoint`` and ``parts(coding, train, test)`` (`CodedRows`):
`CodedData` here, or the rows of a user's table.
"""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from nerm.errors import InvalidInputError
from nerm.experiments.running import Job, Journal, Row, Workers, run_jobs
from nerm.splitting import as_count, assign_folds, seed_sequence
from nerm.typing import Array, Floats, Ints, Matrix
from nerm.validation import check_known

#: The values of lambda (sum form, C = 1/lambda) among which it is tuned; the paper does not state its own.
LAMBDAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
#: The columns that describe a method; they are attributes of `Method`.
FACTS = ("sees_group", "randomised", "level")
Measure = Callable[[Floats, Floats, Floats, bool], dict[str, float]]


@dataclass(frozen=True, eq=False)
class Fold:
    """The training rows of one fold, and its test rows without their labels, which no method may see.

    Attributes
    ----------
    X, X_test
        Training rows, (n, d), and test rows, (m, d), in the method's coding.
    y, viewpoint
        Labels and viewpoints of the training rows, (n,), in -1/+1.
    viewpoint_test
        Viewpoints of the test rows, (m,).
    seed
        For a method that draws random numbers.

    >>> from dataclasses import fields
    >>> [field.name for field in fields(Fold)]
    ['X', 'y', 'viewpoint', 'X_test', 'viewpoint_test', 'seed']

    """

    X: Matrix
    y: Array
    viewpoint: Array
    X_test: Matrix
    viewpoint_test: Array
    seed: int


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of one setting; a failure is a fit without scores and with a reason.

    Attributes
    ----------
    scores
        Of the test rows, (m,), or None.
    seconds
        The time of the fit.
    reason
        Why there are no scores, or the message of a solver that stopped early.
    converged
        False for a failure and for a solver that stopped early.
    status
        The status in tables, where neither "ok" nor "not converged" is meant.

    >>> from nerm.experiments import METHODS
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> fold = Fold(np.zeros((4, 1)), y, y, np.zeros((2, 1)), np.array([-1.0, 1.0]), seed=0)
    >>> (fit,) = METHODS["lr"].fit(fold, -1.0, ())
    >>> fit.scores is None, fit.converged, fit.reason.split(":")[0]
    (True, False, 'InvalidParameterError')

    """

    scores: Floats | None
    seconds: float
    reason: str = ""
    converged: bool = True
    status: str = ""


FitGrid = Callable[[Fold, float, Sequence[float]], Iterator[Fit]]


@dataclass(frozen=True, eq=False)
class Method:
    """A method: its name, the coding of its rows, its grid of settings, and the function that fits it.

    Attributes
    ----------
    name, label
        In tables, and in figures.
    coding
        Of its rows: "one-hot" or "nominal".
    etas
        Its grid, of neutrality weights or limits; empty for a method without.
    tuning
        The family that shares one lambda; None for a method without lambda.
    fit
        ``fit(fold, lam, etas)`` yields one `Fit` per eta, or a single one where there is no eta.
    plain
        The same for the method without neutrality (``etas=(0.0,)``), by which lambda is tuned.
    details
        Anything else that tells this method from another of its name; part of an experiment's settings.
    sees_group, randomised, level
        Whether predictions use the viewpoint, whether they are drawn at random, and how a level of measured
        neutrality is reached: "asked" for, found by a "grid", or "none".

    >>> from nerm.experiments import METHODS
    >>> X, y, v = np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([1, 1, -1, -1]), np.array([1, -1, 1, -1])
    >>> fold = Fold(X, y, v, X_test=np.array([[1.0]]), viewpoint_test=np.array([1]), seed=0)
    >>> fits = METHODS["neutral-svm"].fit(fold, 2.0, [0.0, 1.0])
    >>> [fit.scores.round(3).tolist() for fit in fits]
    [[1.0], [0.5]]

    """

    name: str
    label: str
    coding: str
    etas: tuple[float, ...]
    tuning: str | None
    fit: FitGrid
    plain: FitGrid | None = None
    details: str = ""
    sees_group: bool = False
    randomised: bool = False
    level: str = "grid"


class CodedRows(Protocol):
    """Labelled rows in the coding of any method."""

    @property
    def y(self) -> Array:
        """Labels, (n,), -1/+1."""

    @property
    def viewpoint(self) -> Array:
        """Viewpoints, (n,), -1/+1."""

    def parts(self, coding: str, train: Ints, test: Ints) -> tuple[Matrix, Matrix]:
        """Return training and test rows, in a coding that is learned on the training rows."""


@dataclass(frozen=True, eq=False)
class CodedData:
    """One data set: all rows in both codings, or a raw frame that each fold codes by itself.

    Attributes
    ----------
    name
        Of the data set.
    y, viewpoint
        (n,), -1/+1.
    coded
        Rows by coding; empty where the folds code `raw`.
    raw
        A frame, or None.
    """

    name: str
    y: Floats
    viewpoint: Floats
    coded: Mapping[str, Matrix]
    raw: Any = None

    def parts(self, coding: str, train: Ints, test: Ints) -> tuple[Matrix, Matrix]:
        """Return training and test rows in a method's coding."""
        if self.raw is None:
            rows = self.coded[coding]
            return rows[train], rows[test]
        from sklearn.pipeline import make_pipeline

        from nerm.datasets import Discretize, OneHot

        coder = make_pipeline(Discretize(), OneHot()) if coding == "one-hot" else Discretize()
        X, X_test = (coder.fit(self.raw.iloc[train]).transform(self.raw.iloc[part]) for part in (train, test))
        return (X, X_test) if coding == "one-hot" else (X.to_numpy(), X_test.to_numpy())

    def digest(self) -> str:
        """Return a checksum of the content."""
        import joblib
        import pandas as pd

        if self.raw is not None:
            content = pd.util.hash_pandas_object(self.raw, index=False).to_numpy()
        elif "nominal" in self.coded:
            content = self.coded["nominal"]
        else:
            content = self.coded["one-hot"].indices, self.coded["one-hot"].indptr, self.coded["one-hot"].data
        return str(joblib.hash((self.y, self.viewpoint, content)))[:16]


def coded_data(datasets: Any, discretize: str, codings: set[str], data_home: Any) -> dict[str, CodedData]:
    """Return data sets, given by name or as `Dataset`, by name and in these codings."""
    from nerm.datasets import Dataset

    check_known(discretize, "'discretize'", ("all rows", "training folds"))
    several = [datasets] if isinstance(datasets, str | Dataset) else list(datasets)
    coded = [_coded(data, discretize, codings, data_home) for data in several]
    if not coded:
        must = "'datasets' must name at least one data set"
        raise InvalidInputError(must, "none", "Give datasets=('german',)")
    names = [data.name for data in coded]
    if len(set(names)) < len(names):
        raise InvalidInputError("each of 'datasets' must have its own name", repr(names), "Rename one")
    return dict(zip(names, coded, strict=True))


def _coded(data: Any, discretize: str, codings: set[str], data_home: Any) -> CodedData:
    from nerm.datasets import Dataset, Discretize, OneHot, load
    from nerm.datasets.coding import as_frame

    if not isinstance(data, Dataset):
        data = load(data, random_state=0 if data == "synthetic" else None, data_home=data_home)
    common = data.name, np.asarray(data.y, dtype=float), np.asarray(data.viewpoint, dtype=float)
    if data.coding == "one-hot":
        if "nominal" in codings:
            must = (
                f"the data set {data.name!r} must be raw or nominal for the methods that need nominal codes"
            )
            do = "Load it with coding='raw', or leave those methods out"
            raise InvalidInputError(must, "coding 'one-hot'", do)
        return CodedData(*common, {"one-hot": sp.csr_matrix(data.X)})
    if data.coding == "raw" and discretize == "training folds":
        return CodedData(*common, {}, as_frame(data.X))
    nominal = Discretize().fit_transform(as_frame(data.X)) if data.coding == "raw" else data.X
    one_hot = OneHot().fit_transform(nominal)
    return CodedData(*common, {"nominal": nominal.to_numpy(dtype=float), "one-hot": one_hot})


def sweep(
    method: Method, rows: CodedRows, train: Ints, test: Ints, lam: float, seed: int = 0
) -> Iterator[Fit]:
    """Fit a method at every setting of its grid on some rows, and score other rows.

    Parameters
    ----------
    method
        One of `METHODS`, or made by `from_objective` or `from_estimator`.
    rows
        All rows: an object with ``y``, ``viewpoint`` and ``parts(coding, train, test)``.
    train, test
        Numbers of the rows to fit on and to score.
    lam
        The regularization weight in sum form: lambda, C = 1/lambda; in mean form lambda/n on n training rows.
    seed
        For a method that draws random numbers.

    Yields
    ------
    Fit
        One for each of ``method.etas``, or a single one where it has none.

    >>> from nerm.experiments import METHODS
    >>> data = coded_data("diabetes", "all rows", {"one-hot"}, None)["diabetes"]
    >>> fits = list(sweep(METHODS["neutral-svm"], data, np.arange(300), np.arange(300, 442), lam=10.0))
    >>> len(fits), fits[0].scores.shape
    (10, (142,))
    """
    X, X_test = rows.parts(method.coding, train, test)
    fold = Fold(X, rows.y[train], rows.viewpoint[train], X_test, rows.viewpoint[test], seed)
    return method.fit(fold, lam, method.etas)


def held_out_scores(
    methods: Sequence[Method],
    rows: CodedRows,
    pairs: Sequence[tuple[Ints, Ints]],
    lam: float,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[dict[tuple[str, float | None], Floats], list[str]]:
    """Score held-out rows with every method at every setting, each row by a model that did not see it.

    Parameters
    ----------
    methods, rows, seed
        As for `sweep`.
    pairs
        Numbers of the training and of the held-out rows, for each part.
    lam
        The regularization weight in mean form.
    progress
        Called with the name of each method before it is fitted.

    Returns
    -------
    dict, list of str
        The scores, (n,), by label and setting (None without a grid), nan for rows that no part holds out; a
        setting that failed in one part is left out. And the reasons of failures.

    >>> from nerm.experiments import METHODS
    >>> data = coded_data("diabetes", "all rows", {"one-hot"}, None)["diabetes"]
    >>> part = np.arange(300), np.arange(300, 442)
    >>> scores, reasons = held_out_scores([METHODS["lr"]], data, [part], lam=0.01)
    >>> {key: int(np.isfinite(values).sum()) for key, values in scores.items()}, reasons
    ({('plain LR', None): 142}, [])
    """
    found: dict[tuple[str, float | None], Floats] = {}
    failed: dict[tuple[str, float | None], str] = {}
    for k, (train, test) in enumerate(pairs):
        for method in methods:
            progress(f"part {k + 1} of {len(pairs)}, {method.label}")
            fits = sweep(method, rows, train, test, lam * len(train), seed)
            for setting, fit in zip(method.etas or (None,), fits, strict=True):
                key = method.label, setting
                if fit.scores is None or not np.isfinite(fit.scores).all():
                    failed.setdefault(key, f"{method.label} failed: {fit.reason}")
                else:
                    found.setdefault(key, np.full(len(rows.y), np.nan))[test] = fit.scores
    return {key: scores for key, scores in found.items() if key not in failed}, list(failed.values())


def cross_validate(
    chosen: Sequence[tuple[Row, Method]],
    settings: Row,
    grid: str,
    title: str,
    *,
    datasets: Any,
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
    """Measure methods over their grids by repeated cross-validation; return one row per fit.

    Parameters
    ----------
    chosen
        Methods, each with columns of its own.
    settings
        The name and the settings of the experiment, beside those that follow from the other arguments.
    grid
        The column of the setting: "eta" or "limit".
    title
        Of the progress bar.
    datasets, lam, repetitions, folds, seed, stratify, discretize, n_jobs, backend, client, results, progress,
    data_home
        As for `nerm.experiments.tradeoff`.

    Returns
    -------
    DataFrame
    """
    workers = Workers(n_jobs, backend, client)
    as_count(repetitions, "repetitions")
    methods = [method for _, method in chosen]
    data = coded_data(datasets, discretize, {method.coding for method in methods}, data_home)
    from nerm import __version__

    common = {
        "nerm": __version__,
        "datasets": {name: each.digest() for name, each in data.items()},
        "methods": {m.name: m.details for m in methods},
        "lam": _as_lams(lam),
        "discretize": discretize,
        "folds": as_count(folds, "folds", 2),
        "seed": as_count(seed, "seed", 0),
        "stratify": bool(stratify),
    }
    experiment = settings["experiment"]
    run = partial(run_jobs, data=data, workers=workers, progress=progress)
    lams = _tune(methods, {"experiment": f"{experiment} tuning", **common}, results, run, list(data))
    jobs = []
    for name, (own, method) in product(data, chosen):
        weight = lams.get((name, method.tuning), math.nan)
        facts = {fact: getattr(method, fact) for fact in FACTS}
        for repetition, fold in product(range(repetitions), range(folds)):
            place = {"dataset": name, **own, "method": method.name, "repetition": repetition, "fold": fold}
            values = method.etas or (math.nan,)
            places = tuple({**place, grid: value, "lam": weight, **facts} for value in values)
            jobs.append(Job(places, _measured, (common, measures, method), name))
    signs = np.array([1.0, 1.0, -1.0, -1.0])
    keys = ("dataset", *chosen[0][0], "method", "repetition", "fold")
    columns = (*keys, grid, "lam", *FACTS, *measures(signs, signs, signs[[0, 2, 1, 3]]), "status", "reason")
    settings = {"experiment": experiment, **common, **settings, "repetitions": int(repetitions)}
    return run(jobs, Journal(results, settings, columns, keys), title=title)


def _as_lams(lam: Any) -> list[float]:
    values = np.atleast_1d(np.asarray(lam, dtype=float))
    if values.ndim != 1 or len(values) == 0 or not ((values > 0) & np.isfinite(values)).all():
        must = "'lam' must be a positive number or a nonempty list of them"
        raise InvalidInputError(must, repr(lam), "Give lam=1.0, for instance")
    return sorted({float(v) for v in values})


def _tune(
    methods: Sequence[Method], common: Row, results: Any, run: Callable[..., Any], data: Sequence[str]
) -> dict[tuple[str, str | None], float]:
    """Return lambda by data set and family: that of the largest mean AUC, of equals the largest."""
    plain = [replace(m, fit=m.plain, etas=(0.0,)) for m in methods if m.tuning is not None and m.plain]
    families = {str(method.tuning): method for method in plain}
    lams = common["lam"]
    if len(lams) == 1 or not families:
        return {(name, family): lams[0] for name in data for family in families}
    jobs = []
    for name, family, lam, fold in product(data, families, lams, range(common["folds"])):
        place = {"dataset": name, "tuning": family, "lam": lam, "fold": fold}
        jobs.append(Job((place,), _measured, (common, _auc, families[family]), name))
    path = None if results is None else os.fspath(results).removesuffix(".csv") + "-tuning.csv"
    keys = ("dataset", "tuning", "lam", "fold")
    table = run(
        jobs, Journal(path, common, (*keys, "auc", "status", "reason"), keys), title="choice of lambda"
    )
    best: dict[tuple[str, str | None], float] = {}
    for (name, family), rows in table.groupby(["dataset", "tuning"]):
        means = rows.groupby("lam")["auc"].mean().dropna()
        if means.empty:
            must = f"some lambda must give a fit of {family!r} on {name!r}"
            got = f"{len(lams)} failures, for instance {rows.reason.iloc[0]!r}"
            raise InvalidInputError(must, got, "Give lam=1.0, for instance, to leave the tuning out")
        best[name, family] = float(means.index[means >= means.max()].max())
    return best


def _measured(
    data: CodedData, places: Sequence[Row], common: Row, measure: Measure, method: Method
) -> Iterator[Row]:
    """Fit a method over its grid on one fold and yield the measures on its test rows."""
    fold, lam = places[0]["fold"], places[0]["lam"]
    # Lambda is tuned on folds that the experiment itself does not use: those of no repetition.
    repetition = places[0].get("repetition", 2**32 - 1)
    strata = [data.y, data.viewpoint] if common["stratify"] else [np.zeros(len(data.y))]
    assigned = assign_folds(strata, common["folds"], seed_sequence(common["seed"], data.name, repetition))
    train, test = np.flatnonzero(assigned != fold), np.flatnonzero(assigned == fold)
    seed = int(seed_sequence(common["seed"], data.name, repetition, fold).generate_state(1)[0])
    for fit in sweep(method, data, train, test, lam, seed):
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


def measures(y: Floats, scores: Floats, viewpoint: Floats, randomised: bool = False) -> dict[str, float]:
    """Return the measures of `nerm.metrics.report` and the positive rates of the groups.

    The scores of a randomised method are P(yhat = +1) - 1/2: it is measured in expectation over its draws.
    """
    from nerm.metrics import report

    chance = np.clip(scores + 0.5, 0.0, 1.0) if randomised else (scores > 0).astype(float)
    found = report(y, scores, viewpoint).as_dict()
    if randomised:  # two weighted rows, one per prediction, in the place of each row
        weights = np.concatenate([chance, 1 - chance])
        predicted = np.repeat([1.0, -1.0], len(y))
        expected = report(np.tile(y, 2), predicted, np.tile(viewpoint, 2), weights).as_dict()
        found = expected | {"auc": found["auc"]}
    rates = {"minus": chance[viewpoint <= 0].mean(), "plus": chance[viewpoint > 0].mean()}
    return {name: value for name, value in found.items() if name != "n"} | {
        f"positive_rate_{name}": float(rate) for name, rate in rates.items()
    }


def _auc(y: Floats, scores: Floats, viewpoint: Floats, randomised: bool = False) -> dict[str, float]:
    from sklearn.metrics import roc_auc_score

    return {"auc": float(roc_auc_score(y, scores))}
