"""Eight groups at once: sex by four races of ACSIncome, nerm beside fairlearn's ExponentiatedGradient.

    python benchmarks/intersections.py                  60,000 rows, largest difference of positive rates 0.05
    python benchmarks/intersections.py --rows 10000

Needs acs/*.parquet in NERM_DATA, and fairlearn. Rows are split 70/30; both methods get the same one-hot features. The
bound of ExponentiatedGradient is on the distance of a group's rate from the overall one, so half of the limit is asked
of it; its predictions are drawn, and are measured by their chances. `seconds` is processor time.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from neutral import acs_income
from sklearn.linear_model import LogisticRegression

import nerm

RACES = {0: "white", 1: "black", 5: "asian"}


def spread(chance: np.ndarray, groups: np.ndarray) -> float:
    """Return the largest difference of positive rates between two groups."""
    rates = pd.Series(chance).groupby(groups).mean()
    return float(rates.max() - rates.min())


def neutral_model(X: Any, y: np.ndarray, views: pd.DataFrame, limit: float) -> Any:
    model = nerm.NERMClassifier("logistic", "squared-l2", lam=1 / len(y), limit=limit, groups="intersect")
    model.fit(X, y, viewpoint=views)
    return lambda rows: (model.decision_function(rows) > 0).astype(float)


def reduction(X: Any, y: np.ndarray, views: pd.DataFrame, limit: float) -> Any:
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    model = ExponentiatedGradient(
        LogisticRegression(max_iter=1000), DemographicParity(difference_bound=limit / 2)
    )
    model.fit(X.toarray(), (y > 0).astype(int), sensitive_features=views.agg(" ".join, axis=1).to_numpy())
    return lambda rows: model._pmf_predict(rows.toarray())[:, 1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--limit", type=float, default=0.05)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    (file,) = Path(os.environ["NERM_DATA"], "acs").glob("*.parquet")
    table, data = pd.read_parquet(file), acs_income("sex")
    sex = np.where(table["SEX"] == 1, "m", "f")
    views = pd.DataFrame({"sex": sex, "race": table["RAC1P"].map(RACES).fillna("other").to_numpy()})
    some = np.random.default_rng(0).permutation(len(table))[: options.rows]
    train, test = np.split(some, [int(0.7 * len(some))])
    groups = views.agg(" ".join, axis=1).to_numpy()
    found = []
    for name, fit in (("nerm", neutral_model), ("exp-gradient", reduction)):
        started = time.process_time()
        chances = fit(data.X[train], data.y[train], views.iloc[train], options.limit)
        row = {"method": name, "seconds": time.process_time() - started}
        for part, rows in (("train", train), ("test", test)):
            chance = chances(data.X[rows])
            row |= {f"difference, {part}": spread(chance, groups[rows])}
            row |= {f"accuracy, {part}": 1 - np.abs((data.y[rows] > 0) - chance).mean()}
        found.append(row)
    print(pd.DataFrame(found).to_string(index=False, float_format=lambda value: f"{value:.4f}"))


if __name__ == "__main__":
    main()
