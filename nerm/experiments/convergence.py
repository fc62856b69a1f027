"""Figure 1 of the paper: how the errors of risk and neutrality risk fall with the number of samples."""

import math
import os
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.experiments.methods import fit_of, svm_objective
from nerm.experiments.records import Records, Row
from nerm.experiments.running import Job, Workers, record_all
from nerm.splitting import as_count, assign_folds, seed_sequence
from nerm.typing import Floats

SIZES = (100, 200, 500, 1000, 2000, 5000, 10000)
DIGITS = 12  # of a measured number: the last ones are rounding, which another process may do in another order
PARTS = ("risk", "neutrality", "zero_one", "sign_neutrality")
MEASURES = tuple(f"{part}_{where}" for part in PARTS for where in ("train", "test", "error"))
KEYS = ("n", "repetition", "fold")
COLUMNS = (*KEYS, "eta", *MEASURES, "status", "reason")


def convergence(
    n: Sequence[int] = SIZES,
    etas: Sequence[float] = (0.1, 1.0, 10.0),
    *,
    lam_per_sample: float = 0.05,
    repetitions: int = 10,
    folds: int = 5,
    seed: int = 0,
    redraw: bool = False,
    n_jobs: int = 1,
    backend: str = "joblib",
    client: Any = None,
    results: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Any:
    """Fit the neutral SVM on the paper's synthetic data of several sizes; return one row a fold and eta.

    The errors are ``|test - train|`` of the empirical hinge risk (risk_error), of the relaxed neutrality risk
    max(C+, C-) with the hinge (neutrality_error), and of what they stand for: the 0/1 error (zero_one_error)
    and C_sgn (sign_neutrality_error).

    Parameters
    ----------
    n
        Numbers of samples.
    etas
        Neutrality weights; all those of a fold are solved as one path.
    lam_per_sample
        The lambda of a fold is this times its training rows, so the mean form stays the same at every size.
    redraw
        False, as the paper says: one sample for all repetitions, which differ in their folds; a small sample
        is the beginning of a larger one. True: every repetition draws true weights and samples of its own.
    repetitions, folds, seed, n_jobs, backend, client, results, progress
        As for `tradeoff`.

    Returns
    -------
    DataFrame
        With the columns n, repetition, fold, eta, each measure on training rows, on test rows and their
        difference (``…_train``, ``…_test``, ``…_error``), status, reason, seconds.

    >>> from nerm.experiments import convergence, slopes
    >>> table = convergence([40, 80], [1.0], repetitions=1, folds=2)
    >>> table.shape[0], slopes(table).columns.tolist()
    (4, ['error', 'eta', 'slope', 'c'])
    """
    workers = Workers(n_jobs, backend, client)
    as_count(repetitions, "repetitions")
    as_count(folds, "folds", 2)
    as_count(seed, "seed", 0)
    sizes = sorted({as_count(size, "n", 2 * folds) for size in np.atleast_1d(np.asarray(n, dtype=object))})
    grid = tuple(sorted({float(eta) for eta in np.atleast_1d(np.asarray(etas, dtype=float))}))
    if not grid or not all(0 <= eta < math.inf for eta in grid):
        raise InvalidInputError("'etas' must hold weights, at least 0", repr(etas), "Give etas=[0.1, 1, 10]")
    if not 0 < lam_per_sample < math.inf:
        raise InvalidInputError(
            "'lam_per_sample' must be positive", repr(lam_per_sample), "The paper has 0.05"
        )
    from nerm import __version__

    settings = {
        "experiment": "convergence",
        "nerm": __version__,
        "n": sizes,
        "etas": list(grid),
        "lam_per_sample": float(lam_per_sample),
        "repetitions": int(repetitions),
        "folds": int(folds),
        "seed": int(seed),
        "redraw": bool(redraw),
    }
    jobs = []
    for size, repetition, fold in product(sizes, range(repetitions), range(folds)):
        place = {"n": size, "repetition": repetition, "fold": fold}
        places = tuple({**place, "eta": eta} for eta in grid)
        jobs.append(Job(places, _errors, (settings, size, repetition, fold)))
    return record_all(
        jobs, {"": None}, workers, Records(results, settings, COLUMNS, KEYS), "convergence", progress
    )


def _errors(_: None, settings: Row, n: int, repetition: int, fold: int) -> Iterator[Row]:
    """Solve for every eta on one fold of one sample and yield the errors."""
    from nerm.datasets.synthetic import synthetic

    seed = settings["seed"]
    drawn = seed_sequence(seed, "synthetic", *([repetition] if settings["redraw"] else []))
    # One integer for all sizes: then a small sample is the beginning of a larger one.
    data = synthetic(n, int(drawn.generate_state(1, np.uint64)[0]))
    X, y, v = data["X"], data["y"], data["viewpoint"]
    of = assign_folds([np.zeros(n)], settings["folds"], seed_sequence(seed, "folds", n, repetition))
    train, test = of != fold, of == fold
    # (lambda / 2n) ||w||^2 in mean form, lambda = lam_per_sample * n: n cancels.
    problem = svm_objective(settings["lam_per_sample"]).on(X[train], y[train], viewpoint=v[train])
    for solution in problem.path(settings["etas"]):
        fit = fit_of(solution, X)
        assert fit.scores is not None
        on_train, on_test = (measure(fit.scores[part], y[part], v[part]) for part in (train, test))
        row: Row = {
            "seconds": fit.seconds,
            "reason": fit.reason,
            "status": "ok" if fit.converged else "not converged",
        }
        for name in PARTS:
            row |= {f"{name}_train": on_train[name], f"{name}_test": on_test[name]}
            row[f"{name}_error"] = round(abs(on_test[name] - on_train[name]), DIGITS)
        yield row


def measure(scores: Floats, y: Floats, viewpoint: Floats) -> dict[str, float]:
    """Return the hinge risk, the relaxed neutrality risk, the 0/1 error and C_sgn of these scores, to DIGITS places."""
    from nerm.atoms import Hinge
    from nerm.metrics import neutrality_risk, relaxed_neutrality_risk
    from nerm.signs import sign

    found = {
        "risk": float(Hinge().value(y * scores).mean()),
        "neutrality": relaxed_neutrality_risk(scores, viewpoint, Hinge()),
        "zero_one": float((sign(scores) != y).mean()),
        "sign_neutrality": neutrality_risk(scores, viewpoint),
    }
    return {name: round(value, DIGITS) for name, value in found.items()}


def slopes(table: Any, errors: Sequence[str] = ("risk", "neutrality")) -> Any:
    """Return, for each error and eta, the least-squares slope of log mean error against log n, and c of sqrt(c / n).

    A slope of -1/2 is the rate of the paper's bounds. c is the constant that fits best with the slope held at
    -1/2. One size has no slope: nan.

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

    if not {"n", "eta", *(f"{e}_error" for e in errors)} <= set(table.columns):
        must = "'table' must come from nerm.experiments.convergence"
        got = f"a table with the columns {', '.join(map(str, table.columns))}"
        raise InvalidInputError(must, got, "Pass the table that convergence returned")
    found = []
    for error in errors:
        for eta, group in table.groupby("eta", sort=True):
            mean = group.groupby("n")[f"{error}_error"].mean().dropna()
            x, y = np.log(mean.index.to_numpy(dtype=float)), np.log(mean.to_numpy())
            slope = float(np.polyfit(x, y, 1)[0]) if len(x) > 1 else math.nan
            found.append(
                {"error": error, "eta": float(eta), "slope": slope, "c": float(np.exp(np.mean(2 * y + x)))}
            )
    return pd.DataFrame(found, columns=["error", "eta", "slope", "c"])
