"""Figure 1 of the paper: how the errors of risk and neutrality risk decrease with the sample size."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import nerm
from nerm.experiments.methods import METHODS
from nerm.experiments.running import Job, Row, as_grid, check_columns, run_jobs
from nerm.experiments.tradeoff import sweep
from nerm.splitting import as_count, assign_folds, seed_sequence
from nerm.typing import Floats
from nerm.validation import as_nonnegative, as_positive

PARTS = ("risk", "neutrality", "zero_one", "sign_neutrality")


def convergence(
    n: Sequence[int] = (100, 200, 500, 1000, 2000, 5000, 10000),
    etas: Sequence[float] = (0.1, 1.0, 10.0),
    *,
    lam_per_sample: float = 0.05,
    repetitions: int = 10,
    folds: int = 5,
    seed: int = 0,
    redraw: bool = False,
    **options: Any,
) -> Any:
    """Fit the neutral SVM on synthetic data of several sizes; return one row per fold and eta.

    The errors are ``|test - train|`` of the empirical hinge risk (risk_error), of the relaxed neutrality risk
    max(C+, C-) with the hinge (neutrality_error), of the 0/1 error (zero_one_error) and of C_sgn
    (sign_neutrality_error).

    Parameters
    ----------
    n
        Numbers of samples.
    etas
        Neutrality weights; in each fold they are solved as one path.
    lam_per_sample
        lambda divided by the number of training rows. So lambda in mean form is the same for all n.
    redraw
        False, as in the paper: all repetitions use one sample and differ only in their folds; the sample of
        size n consists of the first n rows of the largest one. True: every repetition draws its own true
        weights and its own sample.
    repetitions, folds, seed
        As for `cross_validate`.
    options
        n_jobs, results and progress, as for `cross_validate`.

    Returns
    -------
    DataFrame
        With the columns n, repetition, fold, eta; for each measure its value on training rows, on test rows,
        and the absolute difference (``…_train``, ``…_test``, ``…_error``); status, reason, seconds.

    >>> from nerm.experiments import convergence, slopes
    >>> table = convergence([40, 80], [1.0], repetitions=1, folds=2)
    >>> table.shape[0], slopes(table).columns.tolist()
    (4, ['error', 'eta', 'slope', 'c'])
    """
    least = 2 * as_count(folds, "folds", 2)
    sizes = as_grid(n, "n", partial(as_count, at_least=least))
    grid = as_grid(etas, "etas", as_nonnegative)
    settings = {
        "experiment": "convergence",
        "nerm": nerm.__version__,
        "n": sizes,
        "etas": grid,
        "lam_per_sample": as_positive(lam_per_sample, "lam_per_sample"),
        "repetitions": as_count(repetitions, "repetitions"),
        "folds": int(folds),
        "seed": as_count(seed, "seed", 0),
        "redraw": bool(redraw),
    }
    work = partial(_errors, settings)
    jobs = [
        Job(tuple({"n": size, "repetition": repetition, "fold": fold, "eta": eta} for eta in grid), work)
        for size, repetition, fold in product(sizes, range(repetitions), range(folds))
    ]
    measured = [f"{part}_{where}" for part in PARTS for where in ("train", "test", "error")]
    return run_jobs(jobs, measured, settings, **options)


def _errors(settings: Row, places: Sequence[Row]) -> Iterator[Row]:
    """Solve for every eta on one fold of one sample; yield one row of measures and errors per eta."""
    n, repetition, fold = (places[0][name] for name in ("n", "repetition", "fold"))
    seed = settings["seed"]
    drawn = seed_sequence(seed, "synthetic", *([repetition] if settings["redraw"] else []))
    # The seed does not depend on n, so the sample of size n consists of the first n rows of a larger one.
    data = nerm.datasets.load("synthetic", n=n, random_state=int(drawn.generate_state(1, np.uint64)[0]))
    rows = replace(data, coding="one-hot")  # used as they are
    assigned = assign_folds([np.zeros(n)], settings["folds"], seed_sequence(seed, "folds", n, repetition))
    train, test = np.flatnonzero(assigned != fold), np.flatnonzero(assigned == fold)
    method = replace(METHODS["neutral-svm"], etas=tuple(place["eta"] for place in places))
    for fit in sweep(method, rows, train, np.arange(n), settings["lam_per_sample"] * len(train)):
        assert fit.scores is not None
        row: Row = {"seconds": fit.seconds, "reason": fit.reason, "status": fit.status}
        on_train, on_test = (_risks(fit.scores[i], rows.y[i], rows.viewpoint[i]) for i in (train, test))
        for part in PARTS:
            row |= {f"{part}_train": on_train[part], f"{part}_test": on_test[part]}
            row[f"{part}_error"] = abs(on_test[part] - on_train[part])
        yield row


def _risks(scores: Floats, y: Floats, viewpoint: Floats) -> dict[str, float]:
    """Return the hinge risk, the relaxed neutrality risk, the 0/1 error and C_sgn."""
    hinge = nerm.Hinge()
    relaxed = nerm.metrics.relaxed_neutrality_risk(scores, viewpoint, hinge)
    wrong, neutrality = (scores > 0) != (y > 0), nerm.metrics.neutrality_risk(scores, viewpoint)
    values = (hinge.value(y * scores).mean(), relaxed, wrong.mean(), neutrality)
    # Round: the last digits depend on the order of summation.
    return {part: round(float(value), 12) for part, value in zip(PARTS, values, strict=True)}


def slopes(table: Any, errors: Sequence[str] = ("risk", "neutrality")) -> Any:
    """Fit the rate at which mean errors decrease with n, for each error and eta.

    The slope is that of log(mean error) against log n, by least squares; nan if there is only one n. The
    paper's bounds have the slope -1/2. c is the least-squares constant of the curve sqrt(c / n), whose slope
    is fixed at -1/2.

    Parameters
    ----------
    table
        From `convergence`.
    errors
        "risk", "neutrality", "zero_one" or "sign_neutrality".

    Returns
    -------
    DataFrame
        With the columns error, eta, slope, c.

    >>> import pandas as pd
    >>> n = np.array([100, 400, 1600])
    >>> table = pd.DataFrame({"n": n, "eta": 1.0, "risk_error": np.sqrt(4 / n), "neutrality_error": 8 / n})
    >>> slopes(table).round(2)[["error", "slope"]].to_numpy().tolist()
    [['risk', -0.5], ['neutrality', -1.0]]
    >>> round(float(slopes(table).c[0]), 6)
    4.0
    """
    import pandas as pd

    check_columns(table, ["n", "eta", *(f"{error}_error" for error in errors)], "convergence")
    found = []
    for error, (eta, group) in product(errors, table.groupby("eta", sort=True)):
        mean = group.groupby("n")[f"{error}_error"].mean().dropna()
        x, y = np.log(mean.index.to_numpy(dtype=float)), np.log(mean.to_numpy())
        slope = float(np.polyfit(x, y, 1)[0]) if len(x) > 1 else np.nan
        c = float(np.exp(np.mean(2 * y + x)))
        found.append({"error": error, "eta": float(eta), "slope": slope, "c": c})
    return pd.DataFrame(found, columns=["error", "eta", "slope", "c"])
