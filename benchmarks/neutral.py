"""Neutrality that is asked for, method by method: what a limit on the measured neutrality costs.

    python benchmarks/neutral.py                                        adult, bank, german; 10 seeds; all methods
    python benchmarks/neutral.py --data adult --seeds 2 --limits 0.01 --measures parity --csv rows.csv
    python benchmarks/neutral.py --csv benchmarks/neutral_rows.csv      goes on with the runs behind decision 0010
    python benchmarks/neutral.py --data acs-sex acs-race --rows 10000   ACSIncome, acs/*.parquet in NERM_DATA

Needs the UCI files in NERM_DATA (or a connection); `--rows` draws fewer rows of each. Rows are split 70/30, stratified by label and viewpoint,
and coded one-hot. Every method is brought to the limit on its training rows: where it takes a level, that is
asked for, else its weight is searched (`level`). Of its models within the limit the most accurate one on the
training rows is taken that keeps half of the plain model's positive rate in each group; where there is none,
the most accurate one, and it counts as `collapsed`. `returned` is the share of runs that ended within the
limit, not all predictions alike; other columns are means over those, with standard errors. A method that
draws its predictions is measured by its chances.
"""

from __future__ import annotations

import os

# One thread a process: BLAS threads that wait for each other cost more than these small matrices take.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder

import nerm
from nerm import Hinge, Logistic, Neutrality, Risk, SquaredL2, baselines
from nerm.baselines.base import scores_of
from nerm.datasets import load

#: name -> (of nerm.metrics, weights of the neutrality term)
MEASURES = {
    "parity": ("calders_verwer_score", "balanced"),
    "C_sgn": ("neutrality_risk", "uniform"),
    "opportunity": ("equal_opportunity_difference", "equal_opportunity"),
}
KEYS = ["data", "measure", "limit", "method", "seed"]
ETAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


class Split:
    """Rows to fit on and to test on, the regularization weight (sum form), and fits that several limits share."""

    def __init__(self, data: Any, seed: int, lam: float, rows: int | None = None) -> None:
        some = np.random.default_rng(seed).permutation(len(data.y))[:rows]
        X, y, v = data.X[some], data.y[some], data.viewpoint[some]
        strata = 2 * (y > 0) + (v > 0)
        train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed, stratify=strata)
        self.X, self.y, self.v = X[train], y[train], v[train]
        self.X_test, self.y_test, self.v_test = X[test], y[test], v[test]
        self.lam, self.kept, self.charged = lam, {}, {}

    def problem(self, loss: Any, *neutrality: Any) -> Any:
        """Return a problem of nerm on the training rows, eta = 1 where it has a neutrality term."""
        objective = sum(neutrality, Risk(loss) + self.lam / len(self.y) * SquaredL2())
        return objective.on(self.X, self.y, viewpoint=self.v)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what was made for this key; who finds it made is charged its seconds all the same."""
        if key not in self.kept:
            started = time.perf_counter()
            self.kept[key] = make(), time.perf_counter() - started
            self.charged[key] = 0.0  # it is in the running time
        self.charged.setdefault(key, self.kept[key][1])
        return self.kept[key][0]

    @property
    def plain(self) -> Any:
        return self.once("plain", self.problem(Logistic()).solve)

    @property
    def plain_chances(self) -> np.ndarray:
        return chances(self.plain.training_scores(), False)


@dataclass
class Method:
    """``candidates(split, limit, measure)`` yields models; the most accurate one within the limit is taken."""

    candidates: Callable[[Split, float, str], Iterator[Any]]
    sees_group: bool = False
    randomised: bool = False
    level: str = "grid"
    measures: tuple[str, ...] = tuple(MEASURES)


def chances(scores: np.ndarray, randomised: bool) -> np.ndarray:
    """Return the chance of a positive prediction of every row."""
    return scores + 0.5 if randomised else (scores > 0).astype(float)


def by_group(chance: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.array([chance[v > 0].mean(), chance[v < 0].mean()])


def signed(measure: str, chance: np.ndarray, y: np.ndarray, v: np.ndarray) -> float:
    """Return the measure with its sign, in expectation."""
    if measure == "C_sgn":
        return float(((2 * chance - 1) * v).mean())
    among = y > 0 if measure == "opportunity" else np.ones(len(y), dtype=bool)
    return float(-np.diff(by_group(chance[among], v[among]))[0])


def bisected(
    split: Split, limit: float, measure: str, fit: Callable[[float], Any], low: float, high: float
) -> Any:
    """Yield models of a bisection for the weight, from nearly plain to beyond neutral, that just meets the limit."""
    toward = np.sign(signed(measure, split.plain_chances, split.y, split.v))
    for weight in (high, low):
        yield fit(weight)
    for _ in range(9):
        middle = (low + high) / 2
        model = fit(middle)
        yield model
        chance = chances(scores_of(model, split.X, split.v), False)
        value = toward * signed(measure, chance, split.y, split.v)
        low, high = (middle, high) if value > limit else (low, middle)


def searchfair(split: Split, limit: float, measure: str, loss: Any) -> Iterator[Any]:
    """SearchFair (Lohaus, Perrot, von Luxburg, 2020): one convex side of the measure, its weight found by bisection.

    Parity is P(f > 0 | v = +1) + P(f <= 0 | v = -1) - 1, at most twice the balanced mean of hinge(-v f),
    minus 1: a one-sided term, on the side that the plain model leans to. They search for parity 0, here it is
    the level.
    """
    side = "agreement" if signed(measure, split.plain_chances, split.y, split.v) > 0 else "disagreement"
    problem = split.problem(loss, Neutrality(Hinge(), weights=MEASURES[measure][1], side=side))
    yield from bisected(split, limit, measure, lambda eta: problem.with_neutrality(eta).solve(), 0.0, 2.0)


def paper(split: Split, limit: float, measure: str) -> Iterator[Any]:
    """Yield the paper's neutral SVM, hinge loss and the max of two hinges, over a grid of weights."""
    problem = split.problem(Hinge(), Neutrality(Hinge(), weights=MEASURES[measure][1]))
    yield from split.once(("paper", measure), lambda: problem.path(ETAS))


def eta_lr(split: Split, limit: float, measure: str) -> Iterator[Any]:
    """Yield eta-LR by bisection over 1 / (1 + eta), which is 1 where it is most neutral."""
    yield from bisected(split, limit, measure, partial(eta_lr_at, split), 0.25, 1.0)


def eta_lr_at(split: Split, tightness: float = 1.0) -> Any:
    model = baselines.EtaNeutralLogisticRegression(eta=1 / tightness - 1, lam=split.lam)
    return split.once(("eta-lr", tightness), lambda: model.fit(split.X, split.y, viewpoint=split.v))


def exponentiated(split: Split, limit: float, measure: str) -> Iterator[Any]:
    """Yield fairlearn's reductions, whose bound is on the distance of a group's rate from the overall one."""
    share = max(np.mean(split.v > 0), np.mean(split.v < 0))
    for eps in share * limit * np.array([1.0, 0.9, 0.7, 0.4, 0.1]):
        model = baselines.FairlearnReduction(eps=eps)
        yield split.once(
            ("fairlearn", eps), lambda model=model: model.fit(split.X, split.y, viewpoint=split.v)
        )


def fitted(make: Callable[..., Any], split: Split, limit: float, measure: str) -> Iterator[Any]:
    yield make(split, limit, MEASURES[measure][0]).fit(split.X, split.y, viewpoint=split.v)


def neutralized(split: Split, limit: float, measure: str, prefer: str) -> Iterator[Any]:
    problem = split.problem(Logistic(), Neutrality(Logistic(), weights=MEASURES[measure][1]))
    yield problem.neutralize(limit, MEASURES[measure][0], prefer=prefer).solution


def path_with_thresholds(split: Split, limit: float, measure: str) -> Iterator[Any]:
    """Yield a path of one-sided logistic terms, each with its best threshold (`nerm.metrics.best_threshold`)."""
    name, weights = MEASURES[measure]
    side = "agreement" if signed(measure, split.plain_chances, split.y, split.v) > 0 else "disagreement"
    problem = split.problem(Logistic(), Neutrality(Logistic(), weights=weights, side=side))
    keep = 0.5 * by_group(split.plain_chances, split.v)[::-1]
    for solution in split.once(
        ("path", measure), lambda: problem.path(np.linspace(0.0, 1.0, 21)[1:].tolist())
    ):
        scores = solution.training_scores()
        with suppress(nerm.NotNeutralError):
            yield solution.shifted(
                nerm.metrics.best_threshold(scores, split.y, split.v, limit, name, keep=keep)
            )


def acs_income(viewpoint: str) -> Any:
    """Return the ACSIncome rows of acs/*.parquet, one-hot; the viewpoint is sex, or the largest race and the rest."""
    (file,) = Path(os.environ["NERM_DATA"], "acs").glob("*.parquet")
    table = pd.read_parquet(file)
    y, sex = np.where(table["PINCP"] > 0, 1.0, -1.0), np.where(table["SEX"] == 1, 1.0, -1.0)
    race = np.where(table["RAC1P"] == table["RAC1P"].mode()[0], 1.0, -1.0)
    coded = {
        name: pd.qcut(table[name], 10, labels=False, duplicates="drop") for name in ("SCHL", "WKHP", "AGEP")
    }
    coded |= {"OCCP": table["OCCP"] // 500, "POBP": table["POBP"] // 50}
    coded |= {name: table[name] for name in ("RELP", "COW", "MAR")}
    X = OneHotEncoder(min_frequency=100, handle_unknown="ignore").fit_transform(pd.DataFrame(coded)).tocsr()
    return SimpleNamespace(X=X, y=y, viewpoint=sex if viewpoint == "sex" else race)


SEES = {"sees_group": True, "level": "asked"}
DRAWN = {"randomised": True, "measures": ("parity",)}
METHODS = {  # "unprocessed" is eta-LR at its most neutral, "fairlearn-cuts" its ThresholdOptimizer
    "plain": Method(lambda split, limit, measure: iter([split.plain]), level="none"),
    "paper": Method(paper),
    "eta-lr": Method(eta_lr),
    "path-thresholds": Method(path_with_thresholds),
    "exp-gradient": Method(exponentiated, **DRAWN),
    "exp-gradient-hard": Method(exponentiated, measures=("parity",)),
    "searchfair": Method(partial(searchfair, loss=Hinge())),
    "searchfair-logistic": Method(partial(searchfair, loss=Logistic())),
    "thresholds": Method(partial(fitted, lambda s, *of: baselines.GroupThresholds(s.plain, *of)), **SEES),
    "unprocessed": Method(partial(fitted, lambda s, *of: baselines.Unprocessed(eta_lr_at(s), *of)), **SEES),
    "fairlearn-cuts": Method(
        partial(fitted, lambda s, t, _: baselines.FairlearnThresholds(limit=t)), **SEES, **DRAWN
    ),
}
if hasattr(nerm.Problem, "neutralize"):
    METHODS |= {
        f"nerm-{p}": Method(partial(neutralized, prefer=p), level="asked") for p in ("accuracy", "auc")
    }


def run(data: str, seed: int, measures: list[str], options: Any) -> list[dict[str, Any]]:
    """Return the rows of one split: every method at every limit on these measures."""
    warnings.simplefilter("ignore")
    cells = [
        (measure, limit, name)
        for measure, limit, name in product(measures, options.limits, options.methods)
        if measure in METHODS[name].measures and (data, measure, limit, name, seed) not in options.done
    ]
    if not cells:
        return []
    table = acs_income(data.removeprefix("acs-")) if data.startswith("acs-") else load(data, coding="one-hot")
    split = Split(table, seed, options.lam, options.rows)
    for loss in (Hinge(), Logistic()):
        split.problem(loss).solve()  # what compiles has compiled
    return [
        dict(zip(KEYS, (data, measure, limit, name, seed), strict=True))
        | run_once(METHODS[name], split, limit, measure)
        for measure, limit, name in cells
    ]


def run_once(method: Method, split: Split, limit: float, measure: str) -> dict[str, Any]:
    """Return what one method reached: of its models within the limit, one that has not collapsed, the most accurate."""
    row = {
        "sees_group": method.sees_group,
        "randomised": method.randomised,
        "level": method.level,
        "reason": "",
    }
    least = 0.5 * by_group(split.plain_chances, split.v)
    started, found, split.charged = time.perf_counter(), [], {}
    try:
        for model in method.candidates(split, limit, measure):
            chance = chances(scores_of(model, split.X, split.v), method.randomised)
            value = abs(signed(measure, chance, split.y, split.v))
            if method.level == "none" or (value <= limit + 1e-9 and np.ptp(chance) > 0):
                stands = bool((by_group(chance, split.v) >= least).all())
                found.append((stands, 1 - np.abs((split.y > 0) - chance).mean(), -len(found), value, model))
    except (nerm.NermError, ValueError) as error:
        row["reason"] = f"{type(error).__name__}: {error}"
    row |= {"returned": bool(found), "seconds": time.perf_counter() - started + sum(split.charged.values())}
    if not found:
        return row
    stands, _, _, value, model = max(found)
    scores = scores_of(model, split.X_test, split.v_test)
    chance = chances(scores, method.randomised)
    row |= {
        "accuracy": 1 - np.abs((split.y_test > 0) - chance).mean(),
        "auc": roc_auc_score(split.y_test, scores),
    }
    test = signed(measure, chance, split.y_test, split.v_test)
    row |= {"train": value, "test": test, "collapsed": not stands}
    return row | dict(zip(("rate+", "rate-"), by_group(chance, split.v_test), strict=True))


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means over the seeds, with the standard errors of accuracy and AUC."""
    shown = ["accuracy", "auc", "train", "test", "rate+", "rate-", "seconds", "returned", "collapsed"]
    rows = rows.reindex(columns=dict.fromkeys([*rows.columns, *shown])).astype(dict.fromkeys(shown, float))
    groups = rows.groupby(
        ["data", "measure", "limit", "method", "sees_group", "randomised", "level"], sort=False
    )
    means = groups[shown].mean()
    for place, column in ((1, "accuracy"), (3, "auc")):
        means.insert(place, f"±{column[:3]}", groups[column].sem())
    return means.reset_index()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=["adult", "bank", "german"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, help="draw this number of rows; all by default")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--limits", nargs="+", type=float, default=[0.05, 0.02, 0.01])
    parser.add_argument("--measures", nargs="+", default=list(MEASURES), choices=list(MEASURES))
    parser.add_argument(
        "--methods", nargs="+", default=list(METHODS), choices=list(METHODS), metavar="METHOD"
    )
    parser.add_argument(
        "--lam", type=float, default=1.0, help="regularization weight, sum form (C = 1 / lam)"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--csv", help="a file for the rows, one a run; what it holds already is not run again"
    )
    options = parser.parse_args()
    parts = [pd.read_csv(options.csv)] if options.csv and os.path.exists(options.csv) else []
    options.done = {row for part in parts for row in part[KEYS].itertuples(index=False, name=None)}
    seeds = range(options.start, options.start + options.seeds)
    splits = product(options.data, seeds, [[measure] for measure in options.measures])
    jobs = [delayed(run)(*split, options) for split in splits]
    for part in Parallel(options.jobs, return_as="generator_unordered")(jobs):
        parts.append(pd.DataFrame(part))
        if options.csv:
            pd.concat(parts, ignore_index=True).to_csv(options.csv, index=False)
    rows = pd.concat(parts, ignore_index=True)
    print(table(rows).to_string(index=False, float_format=lambda value: f"{value:.3f}"))


if __name__ == "__main__":
    main()
