"""The baselines on discretised Adult, side by side.

    python benchmarks/baselines_table.py --write docs/baselines.md      the table, five interleaved folds

Needs the UCI file of Adult in NERM_DATA (or a connection). The fold of a row is its index mod 5;
discretisation is fitted on all rows, as in the paper. A method whose package is missing is reported and left
out.
"""

from __future__ import annotations

import os

# One thread a process: BLAS threads that wait for each other cost more than these small matrices take.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import nerm
from nerm import baselines, metrics
from nerm.datasets import load

FOLDS = 5
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
COLUMNS = ["accuracy", "AUC", "NMI", "NPI", "CV score", "C_sgn", "fit (s)"]


class PlainLogistic:
    """Logistic regression with the face of the baselines."""

    def fit(self, X: Any, y: Any, viewpoint: Any = None) -> PlainLogistic:
        self.model = LogisticRegression(C=1.0, max_iter=5000, tol=1e-6).fit(X, y)
        return self

    def decision_function(self, X: Any, viewpoint: Any = None) -> np.ndarray:
        return self.model.decision_function(X)


class NeutralSVM:
    """The neutral SVM with the paper's lam and eta (sum form), written in nerm's mean form."""

    def __init__(self, lam: float, eta: float) -> None:
        self.lam, self.eta = lam, eta

    def fit(self, X: Any, y: Any, viewpoint: Any = None) -> NeutralSVM:
        hinge = nerm.Hinge()
        objective = (
            nerm.Risk(hinge) + self.lam / len(y) * nerm.SquaredL2() + self.eta * nerm.Neutrality(hinge)
        )
        self.solution = objective.on(X, y, viewpoint=viewpoint).solve()
        gap = self.solution.certificate.relative_gap
        if not gap <= 1e-6:
            warnings.warn(f"the neutral SVM's certified gap is {gap:.2g}", ConvergenceWarning, stacklevel=2)
        return self

    def decision_function(self, X: Any, viewpoint: Any = None) -> np.ndarray:
        return self.solution.decision_function(X)


def fair_representations() -> Any:
    # A_z against sums over about 13,000 rows: of their order.
    return baselines.LearningFairRepresentations(10, A_x=0.01, A_y=1.0, A_z=13000.0, n_init=3, random_state=0)


#: name -> (coding, maker); makers run late, so that a missing package costs its own row only.
METHODS: dict[str, tuple[str, Callable[[], Any]]] = {
    "logistic regression": ("one-hot", PlainLogistic),
    "naive Bayes": ("nominal", baselines.NominalNaiveBayes),
    "two naive Bayes": ("nominal", lambda: baselines.CV2NB(max_iter=0)),
    "CV2NB": ("nominal", baselines.CV2NB),
    "PR, eta = 1": ("one-hot", lambda: baselines.PrejudiceRemover(eta=1.0)),
    "PR, eta = 10": ("one-hot", lambda: baselines.PrejudiceRemover(eta=10.0)),
    "PR, eta = 100": ("one-hot", lambda: baselines.PrejudiceRemover(eta=100.0)),
    "eta-LR, eta = 0.1": ("one-hot", lambda: baselines.EtaNeutralLogisticRegression(eta=0.1)),
    "eta-LR, eta = 0": ("one-hot", lambda: baselines.EtaNeutralLogisticRegression(eta=0.0)),
    "LFR, 10 prototypes": ("one-hot", fair_representations),
    "neutral SVM, eta = 0": ("one-hot", lambda: NeutralSVM(1.0, 0.0)),
    "neutral SVM, eta = 0.1": ("one-hot", lambda: NeutralSVM(1.0, 0.1)),
    "neutral SVM, eta = 1": ("one-hot", lambda: NeutralSVM(1.0, 1.0)),
    "neutral SVM, eta = 10": ("one-hot", lambda: NeutralSVM(1.0, 10.0)),
    "fairlearn, parity": ("one-hot", baselines.FairlearnReduction),
}


def evaluate(name: str, data: dict[str, Any]) -> np.ndarray:
    """Return the folds × columns table of one method."""
    coding, make = METHODS[name]
    X, y, v = data[coding].X, data[coding].y, data[coding].viewpoint
    X = X.to_numpy() if coding == "nominal" else X
    fold = np.arange(len(y)) % FOLDS
    rows = []
    for k in range(FOLDS):
        train, test = fold != k, fold == k
        started = time.perf_counter()
        model = make().fit(X[train], y[train], viewpoint=v[train])
        seconds = time.perf_counter() - started
        scores = model.decision_function(X[test], viewpoint=v[test])
        rows.append(
            [
                np.mean(np.where(scores > 0, 1, -1) == y[test]),
                roc_auc_score(y[test], scores),
                metrics.normalized_mutual_information(y[test], scores),
                metrics.normalized_prejudice_index(scores, v[test]),
                metrics.calders_verwer_score(scores, v[test]),
                metrics.neutrality_risk(scores, v[test]),
                seconds,
            ]
        )
    return np.array(rows)


def table(names: list[str]) -> str:
    """Return the markdown table of the named methods: means over the folds."""
    data = {coding: load("adult", coding) for coding in ("nominal", "one-hot")}
    lines = ["| method | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name in names:
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always", ConvergenceWarning)
                mean = evaluate(name, data).mean(axis=0)
        except (ImportError, nerm.NermError) as error:
            print(f"{name}: left out. {error}", flush=True)
            continue
        late = sum(issubclass(w.category, ConvergenceWarning) for w in said)
        shown = " | ".join([*(f"{value:.4f}" for value in mean[:-1]), f"{mean[-1]:.2f}"])
        mark = f" (unconverged in {late} folds)" if late else ""
        lines.append(f"| {name}{mark} | {shown} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def write(path: Path, text: str) -> None:
    """Put the table between the marks of the page."""
    page = path.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", type=Path, help="page whose table to replace")
    parser.add_argument("--method", action="append", choices=list(METHODS), help="only this one (repeatable)")
    options = parser.parse_args()
    text = table(options.method or list(METHODS))
    if options.write:
        write(options.write, text)


if __name__ == "__main__":
    main()
