"""Neutral heads beside linear models and group thresholds, at one limit on parity.

    python benchmarks/heads.py --data acs-sex acs-race --seeds 3 --limit 0.01      the part of ACSIncome in NERM_DATA
    python benchmarks/heads.py --data adult bank german --seeds 5 --limit 0.02
    python benchmarks/heads.py --data acs-race --rows 40000

Rows are split 70/30, stratified by label and group. Columns that are no numbers are categories; the group is left out. The
base model is scikit-learn's HistGradientBoostingClassifier. `linear` is nerm.NERMClassifier on the columns of X, `head` is
nerm.neutral_head, also with `viewpoint_score=True`; `group thresholds` sees the group of every row. `train` and `test` are differences in positive rates;
seconds are processor time of training, `times base` relative to that of the base model.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import nerm
from nerm.features import input_columns

NAMES = {"acs-sex": "acs_income", "acs-race": "acs_race"}


def base_model() -> Any:
    """Return boosted trees that read categories by their numbers."""
    coded = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1)
    return make_pipeline(coded, HistGradientBoostingClassifier(max_iter=200, early_stopping=False))


def measured(name: str, scores: Any, seconds: float, base: float, rows: Any) -> dict[str, Any]:
    y, v, train, test = rows
    gaps = {
        part: (scores[at][v[at] > 0] > 0).mean() - (scores[at][v[at] < 0] > 0).mean()
        for part, at in (("train", train), ("test", test))
    }
    accuracy = ((scores[test] > 0) == (y[test] > 0)).mean()
    auc = roc_auc_score(y[test], scores[test])
    return {
        "method": name,
        "accuracy": accuracy,
        "auc": auc,
        **gaps,
        "seconds": seconds,
        "times base": seconds / base,
    }


def run(data: str, seed: int, limit: float, count: int | None) -> list[dict[str, Any]]:
    table = nerm.datasets.load(NAMES.get(data, data))
    X, y, v = table.X, table.y, table.viewpoint
    if count is not None:
        kept = np.random.default_rng(seed).permutation(len(y))[:count]
        X, y, v = X.iloc[kept], y[kept], v[kept]
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed, stratify=2 * y + v)
    rows, T = (y, v, train, test), X.iloc[train]
    found = []

    started = time.process_time()
    base = base_model().fit(T, y[train])
    seconds = time.process_time() - started
    plain = base.decision_function(X)
    found.append(measured("base", plain, seconds, seconds, rows))

    started = time.process_time()
    coder = input_columns().fit(T)
    model = nerm.NERMClassifier("logistic", surrogate="hinge", lam=1e-4, limit=limit).fit(
        coder.transform(T), y[train], viewpoint=v[train]
    )
    spent = time.process_time() - started
    found.append(measured("linear", model.decision_function(coder.transform(X)), spent, seconds, rows))

    for name, on in {"head": False, "head, inferred group": True}.items():
        started = time.process_time()
        head = nerm.neutral_head(base, T, y[train], v[train], limit=limit, viewpoint_score=on)
        spent = time.process_time() - started
        found.append(measured(name, head.decision_function(X), spent, seconds, rows))

    started = time.process_time()
    coded, trees = base[0].transform(X), base[-1]
    cut = nerm.baselines.GroupThresholds(trees, limit).fit(coded[train], y[train], viewpoint=v[train])
    spent = time.process_time() - started
    found.append(
        measured("group thresholds", cut.decision_function(coded, viewpoint=v), spent, seconds, rows)
    )
    return [{"data": data, "seed": seed, "limit": limit, **row} for row in found]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=["acs-sex", "acs-race"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=0.01)
    parser.add_argument("--rows", type=int, default=None)
    given = parser.parse_args()
    found = []
    for data in given.data:
        for seed in range(given.seeds):
            found += run(data, seed, given.limit, given.rows)
            print(pd.DataFrame(found[-5:]).round(4).to_string(index=False, header=seed == 0), flush=True)
    table = pd.DataFrame(found).drop(columns="seed").groupby(["data", "limit", "method"], sort=False)
    print("\nmeans over seeds")
    print(table.mean().round(4).reset_index().to_string(index=False))


if __name__ == "__main__":
    main()
