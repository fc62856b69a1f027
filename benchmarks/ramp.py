"""The ramp as loss and as surrogate on Adult, Bank and German: steps, values and what the models do on unseen rows.

    NERM_DATA=... python benchmarks/ramp.py --eta 0.3 1 3

Rows are split 70/30 at random. For each weight: the steps of the convex-concave procedure and its seconds,
whether the objective fell at every step, how well every step was certified; on the test rows accuracy, AUC,
the rates of positive predictions in both groups, and their difference. The hinge, the logistic function and
eta = 0 stand beside it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.metrics import roc_auc_score

import nerm

LOSSES = {"logistic": nerm.Logistic(), "hinge": nerm.Hinge(), "ramp": nerm.Ramp()}


def measured(scores: np.ndarray, y: np.ndarray, v: np.ndarray) -> str:
    rates = [(scores[v == group] > 0).mean() for group in (-1, 1)]
    accuracy, auc = ((scores > 0) == (y > 0)).mean(), roc_auc_score(y, scores)
    return f"{accuracy:.3f} {auc:.3f} {rates[0]:.3f} {rates[1]:.3f} {rates[1] - rates[0]:+.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--eta", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--lam", type=float, default=1e-3, help="in mean form")
    parser.add_argument("--loss", choices=LOSSES, default="logistic")
    parser.add_argument("--data", nargs="+", default=["adult", "bank", "german"])
    given = parser.parse_args()
    surrogates = {
        "none": None,
        "hinge": nerm.Hinge(),
        "logistic": nerm.Logistic(),
        "ramp": nerm.Ramp(given.width),
    }
    print(
        "data, surrogate, eta, status, steps, falls, worst gap, seconds; accuracy, AUC, rates of -1 and +1, difference"
    )
    for name in given.data:
        data = nerm.datasets.load(name, coding="one-hot")
        test = np.random.default_rng(0).random(len(data.y)) < 0.3
        X, y, v = data.X[~test], data.y[~test], data.viewpoint[~test]
        for psi, atom in surrogates.items():
            for eta in [0.0] if atom is None else given.eta:
                objective = nerm.Risk(LOSSES[given.loss]) + given.lam * nerm.SquaredL2()
                if atom is not None:
                    objective = objective + eta * nerm.Neutrality(atom, weights="balanced")
                problem = objective.on(X, y, viewpoint=v if atom is not None else None)
                started = time.perf_counter()
                solution = problem.solve()
                seconds = time.perf_counter() - started
                trace = solution.stats.details.get("trace", ())
                values = [step["objective"] for step in trace]
                gap = max([step["relative_gap"] for step in trace], default=solution.certificate.relative_gap)
                falls = values == sorted(values, reverse=True)
                scores = solution.decision_function(data.X[test])
                print(
                    f"{name:<7}{psi:<9}{eta:<5g}{solution.status.value:<11}{len(trace):>3} {falls} {gap:.1e} "
                    f"{seconds:5.1f}  {measured(scores, data.y[test], data.viewpoint[test])}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
