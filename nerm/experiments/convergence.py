"""Figure 1 of the paper: how the errors of risk and neutrality risk fall with the number of samples."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.experiments.records import Key, Records, Row
from nerm.experiments.running import Workers, record_all
from nerm.splitting import as_count, assign_folds, seed_sequence

SIZES = (100, 200, 500, 1000, 2000, 5000, 10000)
PARTS = ("risk", "neutrality", "zero_one", "sign_neutrality")
MEASURES = tuple(f"{part}_{where}" for part in PARTS for where in ("train", "test", "error"))
KEYS = ("n", "repetition", "fold")
COLUMNS = (*KEYS, "eta", *MEASURES, "status", "reason")


@dataclass(frozen=True)
class Task:
    """One fold of one sample."""

    n: int
    repetition: int
    fold: int
    folds: int
    etas: tuple[float, ...]
    lam_per_sample: float
    seed: int
    redraw: bool


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

    The lambda of a fold is `lam_per_sample` times its training rows, so the mean form stays the same at every size. The
    errors are ``|test - train|`` of the empirical hinge risk (risk_error), of the relaxed neutrality risk
    max(C+, C-) with the hinge (neutrality_error), and of what they stand for: the 0/1 error (zero_one_error) and C_sgn
    (sign_neutrality_error).

    redraw
        False, as the paper says: one sample for all repetitions, which differ in their folds; a small sample is the
        beginning of a larger one. True: every repetition draws true weights and samples of its own.

    The other parameters are those of `tradeoff`. All etas of a fold are solved as one path.

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
        raise InvalidInputError("'lam_per_sample' must be positive", repr(lam_per_sample), "The paper has 0.05")
    import nerm

    settings = {
        "experiment": "convergence",
        "nerm": nerm.__version__,
        "n": sizes,
        "etas": list(grid),
        "lam_per_sample": float(lam_per_sample),
        "repetitions": int(repetitions),
        "folds": int(folds),
        "seed": int(seed),
        "redraw": bool(redraw),
    }
    tasks: dict[Key, tuple[str, Task]] = {
        (str(size), str(r), str(k)): ("", Task(size, r, k, folds, grid, float(lam_per_sample), seed, bool(redraw)))
        for r in range(repetitions)
        for k in range(folds)
        for size in sizes
    }
    ordered = sorted(tasks, key=lambda key: tuple(map(int, key)))
    with Records(results, settings, COLUMNS, KEYS, dict.fromkeys(ordered, len(grid))) as records:
        record_all(fit_fold, tasks, {"": None}, records, _dead, workers, "convergence", progress)
        return records.frame()


def fit_fold(_: None, task: Task) -> tuple[list[Row], list[float]]:
    """Return the rows and seconds of one fold; errors are recorded in them."""
    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(1):  # the order of sums must not depend on the number of workers
            return _measure(task)
    except Exception as error:
        return _dead("", task, f"{type(error).__name__}: {error}")


def _measure(task: Task) -> tuple[list[Row], list[float]]:
    from nerm.atoms import Hinge, SquaredL2
    from nerm.datasets.synthetic import synthetic
    from nerm.objective import Neutrality, Risk

    drawn = seed_sequence(task.seed, "synthetic", *([task.repetition] if task.redraw else []))
    # One integer for all sizes: then a small sample is the beginning of a larger one.
    data = synthetic(task.n, int(drawn.generate_state(1, np.uint64)[0]))
    X, y, v = data["X"], data["y"], data["viewpoint"]
    strata = [np.zeros(task.n)]
    of = assign_folds(strata, task.folds, seed_sequence(task.seed, "folds", task.n, task.repetition))
    train, test = of != task.fold, of == task.fold
    # (lambda / 2n) ||w||^2 in mean form, lambda = lam_per_sample * n: n cancels.
    objective = Risk(Hinge()) + task.lam_per_sample * SquaredL2() + 1.0 * Neutrality(Hinge())
    rows, seconds = [], []
    for eta, solution in zip(
        task.etas, objective.on(X[train], y[train], viewpoint=v[train]).path(task.etas), strict=True
    ):
        scores = solution.decision_function(X)
        row: Row = {"n": task.n, "repetition": task.repetition, "fold": task.fold, "eta": eta}
        for where, part in (("train", train), ("test", test)):
            measured = measure(scores[part], y[part], v[part])
            row.update({f"{name}_{where}": value for name, value in measured.items()})
        row.update({f"{name}_error": abs(row[f"{name}_test"] - row[f"{name}_train"]) for name in PARTS})
        optimal = solution.status == "optimal"
        row["status"] = "ok" if optimal else "not converged"
        row["reason"] = "" if optimal else f"certified relative gap {solution.certificate.relative_gap:.1e}"
        rows.append(row)
        stats = solution.stats
        seconds.append(stats.build_seconds + stats.solve_seconds + stats.certify_seconds)
    return rows, seconds


def measure(scores: np.ndarray, y: np.ndarray, viewpoint: np.ndarray) -> dict[str, float]:
    """Return the hinge risk, the relaxed neutrality risk, the 0/1 error and C_sgn of these scores."""
    from nerm.atoms import Hinge
    from nerm.metrics import neutrality_risk, relaxed_neutrality_risk
    from nerm.signs import sign

    return {
        "risk": float(Hinge().value(y * scores).mean()),
        "neutrality": relaxed_neutrality_risk(scores, viewpoint, Hinge()),
        "zero_one": float((sign(scores) != y).mean()),
        "sign_neutrality": neutrality_risk(scores, viewpoint),
    }


def _dead(_: str, task: Task, reason: str) -> tuple[list[Row], list[float]]:
    place = {"n": task.n, "repetition": task.repetition, "fold": task.fold}
    empty = dict.fromkeys(MEASURES, math.nan)
    rows = [{**place, "eta": eta, **empty, "status": "failed", "reason": reason} for eta in task.etas]
    return rows, [math.nan] * len(rows)


def slopes(table: Any, errors: Sequence[str] = ("risk", "neutrality")) -> Any:
    """Return, for each error and eta, the least-squares slope of log mean error against log n, and c of sqrt(c / n).

    A slope of -1/2 is the rate of the paper's bounds. c is the constant that fits best with the slope held at -1/2.
    One size has no slope: nan.

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
        raise InvalidInputError(
            "'table' must come from nerm.experiments.convergence",
            f"a table with the columns {', '.join(map(str, table.columns))}",
            "Pass the table that convergence returned",
        )
    found = []
    for error in errors:
        for eta, group in table.groupby("eta", sort=True):
            mean = group.groupby("n")[f"{error}_error"].mean().dropna()
            x, y = np.log(mean.index.to_numpy(dtype=float)), np.log(mean.to_numpy())
            slope = float(np.polyfit(x, y, 1)[0]) if len(x) > 1 else math.nan
            found.append({"error": error, "eta": float(eta), "slope": slope, "c": float(np.exp(np.mean(2 * y + x)))})
    return pd.DataFrame(found, columns=["error", "eta", "slope", "c"])
