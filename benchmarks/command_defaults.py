"""The command's defaults on real files, as a person would use them: held-out folds, next to plain logistic regression.

    python benchmarks/command_defaults.py                               adult (both files), bank, german; 5 folds
    python benchmarks/command_defaults.py --data german --folds 10

Needs the UCI files in NERM_DATA. Each file is cut into folds, stratified by target and group. `nerm fit
--test 0` sees the rows outside a fold, with nothing said but the columns; `nerm predict` scores the fold. All
folds together are one set of predictions, by which both models are compared here by plain counts: accuracy,
difference in positive rates, and positive rates of the groups beside those of the labels. Logistic regression
is scikit-learn's with its own defaults, on scaled numbers and 0/1 columns.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from nerm.datasets.loading import PUBLISHED

#: name -> (file, names of columns, lines to skip, separator, target, its positive value, viewpoint)
FILES = {
    "adult.data": ("adult/adult.data.gz", "adult", 0, ",", "class", ">50K", "sex"),
    "adult.test": ("adult/adult.test.gz", "adult", 1, ",", "class", ">50K.", "sex"),
    "bank": ("bank/bank-full.csv.gz", None, 0, ";", "y", "yes", "loan"),
    "german": ("german/german.data.gz", "german", 0, " ", "class", "1", "foreign_worker"),
}


def frame_of(name: str) -> tuple[pd.DataFrame, str, str, str]:
    """Return a file's rows, and the names of target, its positive value and the viewpoint."""
    file, columns, skipped, separator, target, positive, viewpoint = FILES[name]
    frame = pd.read_csv(
        Path(os.environ["NERM_DATA"]) / file,
        sep=separator,
        skiprows=skipped,
        skipinitialspace=True,
        names=None if columns is None else list(PUBLISHED[columns]["columns"]),
        keep_default_na=False,
        dtype={target: str},
    )
    return frame, target, positive, viewpoint


def nerm_decisions(
    train: pd.DataFrame, test: pd.DataFrame, target: str, positive: str, viewpoint: str
) -> Any:
    """Return the decisions of `nerm fit` and `nerm predict`, with nothing said but the columns."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {
            name: str(Path(folder) / name) for name in ("train.csv", "test.csv", "model.nerm", "scored.csv")
        }
        train.to_csv(paths["train.csv"], index=False)
        test.drop(columns=[target, viewpoint]).to_csv(paths["test.csv"], index=False)
        roles = ("--target", target, "--positive", positive, "--viewpoint", viewpoint)
        command = (sys.executable, "-m", "nerm")
        fit = ("fit", paths["train.csv"], *roles, "--test", "0", "--out", paths["model.nerm"], "-q")
        subprocess.run([*command, *fit], check=True, capture_output=True)
        predict = ("predict", paths["model.nerm"], paths["test.csv"], "--out", paths["scored.csv"], "-q")
        subprocess.run([*command, *predict], check=True, capture_output=True)
        return (pd.read_csv(paths["scored.csv"], dtype=str)["prediction"] == positive).to_numpy()


def usual_decisions(
    train: pd.DataFrame, test: pd.DataFrame, target: str, positive: str, viewpoint: str
) -> Any:
    """Return the decisions of scikit-learn's logistic regression on the same columns."""
    coded = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include=np.number)),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude=np.number)),
    )
    model = make_pipeline(coded, LogisticRegression(max_iter=5000))
    model.fit(train.drop(columns=[target, viewpoint]), train[target] == positive)
    return model.predict(test.drop(columns=[target, viewpoint]))


def counted(y: Any, group: Any, decided: Any) -> dict[str, Any]:
    """Return accuracy, the difference in positive rates between the two groups, and the rates with those of labels."""
    names = sorted(set(group))
    rates = [float(decided[group == name].mean()) for name in names]
    labels = [float(y[group == name].mean()) for name in names]
    return {
        "accuracy": float((decided == y).mean()),
        "difference": rates[1] - rates[0],
        "rates": rates,
        "true": labels,
    }


def measured(name: str, folds: int) -> None:
    """Print what both models do on the held-out folds of one file."""
    frame, target, positive, viewpoint = frame_of(name)
    y, group = (frame[target] == positive).to_numpy(), frame[viewpoint].astype(str).to_numpy()
    found = {method: np.zeros(len(y), dtype=bool) for method in (nerm_decisions, usual_decisions)}
    each: list[float] = []
    cut = StratifiedKFold(folds, shuffle=True, random_state=0).split(
        y, np.char.add(group.astype(str), y.astype(str))
    )
    for train, test in cut:
        for method, decided in found.items():
            decided[test] = method(frame.iloc[train], frame.iloc[test], target, positive, viewpoint)
        own = counted(y[test], group[test], found[nerm_decisions][test])
        each.append(own["difference"])
    ours, usual = (counted(y, group, found[method]) for method in (nerm_decisions, usual_decisions))
    shown = " ".join(f"{x:+.3f}" for x in each)
    rates = ", ".join(f"{r:.3f} ({t:.3f})" for r, t in zip(ours["rates"], ours["true"], strict=True))
    print(f"{name}: {len(y):,} rows, {folds} folds")
    print(f"  accuracy {ours['accuracy']:.4f}, logistic regression {usual['accuracy']:.4f}", end="")
    print(f" ({ours['accuracy'] - usual['accuracy']:+.4f})")
    print(
        f"  difference {ours['difference']:+.4f}, logistic regression {usual['difference']:+.4f}; folds: {shown}"
    )
    print(f"  positive rates (labels): {rates}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", choices=list(FILES), default=list(FILES))
    parser.add_argument("--folds", type=int, default=5)
    given = parser.parse_args()
    for data in given.data:
        measured(data, given.folds)
