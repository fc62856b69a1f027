"""Figure 2 of the paper, with methods compared at equal limits on a measure of neutrality.

`levels` fits each of `LEVEL_METHODS` at each limit. For each limit a method returns several candidate fits,
and `Selection` chooses the best one on the training rows.
"""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp

import nerm
from nerm.defaults import LIMITS
from nerm.errors import InvalidInputError
from nerm.experiments.methods import METHODS, Fit, Fold, Method, fit_and_score, neutral_svm, plain_lr, resolve
from nerm.experiments.running import as_grid, check_columns, reason_of
from nerm.experiments.tradeoff import cross_validate, measures
from nerm.typing import Floats
from nerm.validation import check_known

#: By measure that can be limited, the `weights` of the neutrality term that controls it.
MEASURES = {"neutrality_risk": "uniform", "calders_verwer_score": "balanced"}
#: By method that supports only one measure, this measure.
ONLY = dict.fromkeys(("exp-gradient", "fairlearn-thresholds"), "calders_verwer_score")


@dataclass(eq=False)
class Training:
    """The training rows of a fold and the measure that is limited on them.

    `fold` is a `Fold` whose test rows are the n training rows followed by the m test rows of the experiment.
    So the scores of a fit are (n + m,), and the first n of them are used to choose among fits.

    Attributes
    ----------
    fold
        The rows, as described above.
    lam
        Regularization weight in sum form.
    measure
        The limited measure, a key of `MEASURES`.
    """

    fold: Fold
    lam: float
    measure: str

    def problem(self, *neutrality: Any) -> Any:
        """Return the problem of logistic regression on the training rows plus these neutrality terms."""
        plain = nerm.Risk(nerm.Logistic()) + self.lam / len(self.fold.y) * nerm.SquaredL2()
        return sum(neutrality, plain).on(self.fold.X, self.fold.y, viewpoint=self.fold.viewpoint)

    @cached_property
    def plain(self) -> Any:
        """The solution of plain logistic regression."""
        return self.problem().solve()

    @cached_property
    def boosted(self) -> Any:
        """Boosted trees, fitted to the labels of the training rows."""
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer

        as_dense = FunctionTransformer(nerm.baselines.base.dense, accept_sparse=True)
        return make_pipeline(as_dense, HistGradientBoostingClassifier()).fit(self.fold.X, self.fold.y)

    @cached_property
    def plain_measures(self) -> dict[str, float]:
        """The measures of plain logistic regression on the training rows."""
        return self.measures(self.plain.decision_function(self.fold.X))

    def measures(self, scores: Floats, randomised: bool = False) -> dict[str, float]:
        """Return the measures on the training rows.

        The first n scores are those of the training rows; further scores are ignored.
        """
        return measures(self.fold.y, scores[: len(self.fold.y)], self.fold.viewpoint, randomised)

    def signed(self, scores: Floats) -> float:
        """Return the measure with a sign: positive if the predictions agree with v."""
        y, metric = self.fold.y, nerm.metrics.METRICS[self.measure]
        return metric.parts(y, scores[: len(y)], self.fold.viewpoint, np.ones(len(y)))[0]

    @cached_property
    def plain_sign(self) -> float:
        """The sign of the measure of plain logistic regression."""
        return float(np.sign(self.signed(self.plain.decision_function(self.fold.X))))

    def bisected(self, limit: float, fit: Callable[[float], Fit], low: float, high: float) -> Iterator[Fit]:
        """Yield the fits of a bisection for the weight at which the measure equals the limit.

        ``fit(weight)`` returns a fit. At `low` it is nearly the plain model; at `high` it is more neutral
        than any limit requires.
        """
        yield from (fit(high), fit(low))
        for _ in range(9):
            middle = (low + high) / 2
            found = fit(middle)
            yield found
            assert found.scores is not None, found.reason
            above = self.plain_sign * self.signed(found.scores) > limit
            low, high = (middle, high) if above else (low, middle)


Find = Callable[[float], Iterable[Fit]]
#: A function that takes training rows and returns a `Find`: from a limit to the candidate fits.
Candidates = Callable[[Training], Find]


def one(classifier: Callable[[Training, float], Any]) -> Candidates:
    """Return the candidates of a method that fits one model per limit.

    ``classifier(training, limit)`` returns the unfitted model.
    """
    return lambda training: lambda limit: [fit_and_score(classifier(training, limit), training.fold)]


def neutralized(training: Training) -> Find:
    """Return candidates of nerm: one model, by `Problem.neutralize` with the limit."""
    measure, X = training.measure, training.fold.X_test
    problem = training.problem(nerm.Neutrality(nerm.Logistic(), weights=MEASURES[measure]))
    return lambda limit: [Fit.of(problem.neutralize(limit, measure).solution, X)]


def searchfair(training: Training) -> Find:
    """Return candidates of SearchFair (Lohaus, Perrot, von Luxburg, 2020): bisect a one-sided term's weight.

    Parity is P(f > 0 | v = +1) + P(f <= 0 | v = -1) - 1. It is at most 2 M - 1, where M is the balanced mean
    of hinge(-v f), a one-sided neutrality term. The sign of the parity without neutrality decides which side
    is penalised. SearchFair searches for the weight with parity 0; here parity must equal the limit.
    """
    side = "agreement" if training.plain_sign > 0 else "disagreement"
    problem = training.problem(nerm.Neutrality(nerm.Hinge(), weights=MEASURES[training.measure], side=side))
    fit = cache(lambda eta: Fit.of(problem.with_neutrality(eta).solve(), training.fold.X_test))
    return lambda limit: training.bisected(limit, fit, 0.0, 2.0)


def bisected_eta_lr(training: Training) -> Find:
    """Return candidates of eta-LR by bisection over 1 / (1 + eta).

    The value 1 (eta = 0) is most neutral.
    """
    fit_grid, fold, lam = METHODS["eta-lr"].fit, training.fold, training.lam
    fit = cache(lambda tightness: next(fit_grid(fold, lam, [1 / tightness - 1])))
    return lambda limit: training.bisected(limit, fit, 0.25, 1.0)


def over_grid(method: Method, training: Training) -> Find:
    """Return the candidates of a method that has a grid of weights.

    They are its fits over the grid, the same for every limit.
    """
    fits = list(method.fit(training.fold, training.lam, method.etas))
    return lambda limit: fits


def paper_grid(training: Training) -> Find:
    """Return candidates of the paper's neutral SVM: its fits over the paper's grid of weights."""
    return over_grid(neutral_svm(MEASURES[training.measure]), training)


def reduction(training: Training, limit: float) -> Any:
    """Return fairlearn's ExponentiatedGradient for a limit.

    fairlearn bounds by eps the difference between the positive rate of a group and the overall rate. With q
    the share of the larger group, eps = q * limit bounds the difference between the two groups by the limit.
    """
    favoured = float(np.mean(training.fold.viewpoint > 0))
    eps = max(favoured, 1 - favoured) * limit
    return nerm.baselines.FairlearnReduction(plain_lr(training.lam), eps=eps)


def unprocessed(training: Training, limit: float) -> Any:
    """Return the thresholds per group, for a limit, on the scores of neutral logistic regression."""
    neutral = nerm.baselines.EtaNeutralLogisticRegression(0.0, training.lam)
    return nerm.baselines.Unprocessed(neutral, limit, training.measure)


def head(training: Training, limit: float) -> Any:
    """Return a neutral head on boosted trees for a limit."""
    last = nerm.NERMClassifier("logistic", surrogate="hinge", lam=training.lam / len(training.fold.y))
    last.set_params(measure=training.measure, limit=limit)
    return nerm.NeutralHead(training.boosted, last, cv=2)


@dataclass(frozen=True, eq=False)
class Selection:
    """The ``fit`` function of a method whose grid consists of limits.

    For each limit it chooses the best candidate. All comparisons are on the training rows. A candidate is
    sound if its positive rate in each group is at least half of that of plain logistic regression, and its
    predictions are not constant. The choice is

    - the most accurate sound candidate within the limit, with the status "ok";
    - if there is none, the most accurate candidate within the limit, with the status "collapsed";
    - if there is none, the candidate closest to the limit, with the status "not reached".

    Attributes
    ----------
    candidates
        A function that returns the candidate fits, such as `neutralized`.
    measure
        The limited measure, a key of `MEASURES`.
    randomised
        Whether scores are probabilities minus 1/2.
    """

    candidates: Candidates
    measure: str = ""
    randomised: bool = False

    def __call__(self, fold: Fold, lam: float, limits: Sequence[float]) -> Iterator[Fit]:
        """Yield one fit per limit."""
        stack = sp.vstack if sp.issparse(fold.X) else np.vstack
        viewpoints = np.concatenate([fold.viewpoint, fold.viewpoint_test])
        both = replace(fold, X_test=stack([fold.X, fold.X_test]), viewpoint_test=viewpoints)
        training = Training(both, lam, self.measure)
        candidates = cache(self.candidates)
        for limit in limits:
            started = time.perf_counter()
            try:
                with warnings.catch_warnings(action="ignore"):
                    fit = self._best(training, limit, list(candidates(training)(limit)))
            except Exception as error:
                fit = Fit(None, 0.0, reason_of(error), "failed")
            yield replace(fit, seconds=time.perf_counter() - started)

    def _best(self, training: Training, limit: float, candidates: list[Fit]) -> Fit:
        n, sides = len(training.fold.y), ("positive_rate_minus", "positive_rate_plus")
        ranks = {}
        for fit in candidates:
            if fit.scores is not None:
                found = training.measures(fit.scores, self.randomised)
                beyond = max(0.0, abs(found[self.measure]) - limit - 1e-9)
                sound = all(2 * found[side] >= training.plain_measures[side] for side in sides)
                sound &= bool(np.ptp(fit.scores[:n]) > 0) and found[sides[0]] + found[sides[1]] < 2
                ranks[fit] = (-beyond, sound, found["accuracy"])
        if not ranks:
            return candidates[0]
        best = max(ranks, key=lambda fit: ranks[fit])
        short, sound, _ = ranks[best]
        status = "not reached" if short < 0 else "ok" if sound else "collapsed"
        reason = "" if short == 0 else f"{limit - short:.4f} on the training rows is the nearest"
        assert best.scores is not None
        return Fit(best.scores[n:], 0.0, reason, status)


def _at_limits(name: str, label: str, candidates: Candidates, tuning: str = "lr", **facts: Any) -> Method:
    return Method(name, label, "one-hot", LIMITS, tuning, Selection(candidates), **facts)


_SEES: dict[str, Any] = {"sees_group": True, "level": "asked"}
cut = one(lambda t, limit: nerm.baselines.GroupThresholds(t.plain, limit, t.measure))
cut_trees = one(lambda t, limit: nerm.baselines.GroupThresholds(t.boosted, limit, t.measure))
drawn = one(lambda t, limit: nerm.baselines.FairlearnThresholds(plain_lr(t.lam), limit))
_METHODS = [
    _at_limits("nerm", "nerm at a limit", neutralized, level="asked"),
    _at_limits("neutral-svm", "neutral SVM (paper)", paper_grid, "svm"),
    _at_limits("searchfair", "SearchFair's form", searchfair),
    _at_limits("eta-lr", "η-LR", bisected_eta_lr),
    _at_limits("exp-gradient", "ExponentiatedGradient", one(reduction), randomised=True, level="asked"),
    _at_limits("thresholds", "group thresholds", cut, **_SEES),
    _at_limits("head", "neutral head on boosted trees", one(head), level="asked"),
    _at_limits("boosted-thresholds", "boosted trees, group thresholds", cut_trees, **_SEES),
    _at_limits("unprocessed", "unprocessed η-LR", one(unprocessed), **_SEES),
    _at_limits("fairlearn-thresholds", "ThresholdOptimizer", drawn, **_SEES, randomised=True),
    _at_limits("pr", "PR", partial(over_grid, METHODS["pr"]), sees_group=True),
    *(METHODS[name] for name in ("cv2nb", "lr", "svm")),
]
#: The methods of `levels` by name; some support only one measure (`ONLY`).
LEVEL_METHODS = {method.name: method for method in _METHODS}
#: The default methods of `levels`: those that do not start from boosted trees.
LINEAR = tuple(sorted(LEVEL_METHODS.keys() - {"head", "boosted-thresholds"}))


def levels(
    datasets: Any = ("german", "adult", "bank"),
    methods: Sequence[str | Method] = LINEAR,
    *,
    measures: str | Sequence[str] = tuple(MEASURES),
    limits: float | Sequence[float] = LIMITS,
    **options: Any,
) -> Any:
    """Compare methods at equal limits on measured neutrality; return one row per fit.

    Each method must satisfy ``|measure| <= limit`` on its training rows. It is then measured on test rows.
    The limit is passed to methods that accept one; for the others it is met by a search over their weight.
    The folds are those of `tradeoff`.

    Parameters
    ----------
    datasets
        As for `tradeoff`.
    methods
        Names in `LEVEL_METHODS`, or `Method` objects without a grid, to which no limit applies.
    measures
        The limited measure: ``"neutrality_risk"`` (C_sgn), ``"calders_verwer_score"`` (parity), or both.
    limits
        Upper limits on the absolute value of the measure.
    options
        lam, repetitions, folds, seed, stratify, discretize, n_jobs, results, progress and data_home, as for
        `nerm.experiments.cross_validate`.

    Returns
    -------
    DataFrame
        With the columns of `tradeoff`, a column `measure` (the limited measure), and `limit` in place of eta
        (nan for methods without a limit). Further values of `status` are "collapsed" (the limit was met on
        the training rows, but in some group the positive rate is below half of that of plain logistic
        regression) and "not reached" (the limit was not met; the closest model is measured).

    >>> few = {"lam": 1.0, "folds": 2, "repetitions": 1}
    >>> table = levels("diabetes", ["nerm", "lr"], measures="calders_verwer_score", limits=0.05, **few)
    >>> table[["method", "limit", "sees_group", "randomised", "level", "status"]]
      method  limit  sees_group  randomised  level status
    0   nerm   0.05       False       False  asked     ok
    1   nerm   0.05       False       False  asked     ok
    2     lr    NaN       False       False   none     ok
    3     lr    NaN       False       False   none     ok
    """
    grid = as_grid(limits, "limits")[::-1]
    names = [measures] if isinstance(measures, str) else list(measures)
    chosen = []
    for name, method in product(names, resolve(methods, LEVEL_METHODS).values()):
        check_known(name, "'measures'", MEASURES)
        if isinstance(method.fit, Selection):
            fit = replace(method.fit, measure=name, randomised=method.randomised)
            method = replace(method, etas=tuple(grid), fit=fit)
        elif method.etas:
            must = "each of 'methods' must be one of LEVEL_METHODS or have no grid"
            got = f"{method.name!r} with etas {list(method.etas)}"
            raise InvalidInputError(must, got, "Use tradeoff for a grid")
        if ONLY.get(method.name, name) == name:
            chosen.append(({"measure": name}, method))
    if not chosen:
        must = f"one of 'methods' must support one of 'measures', {names}"
        raise InvalidInputError(must, repr(methods), f"Give measures={list(MEASURES)}")
    settings = {"experiment": "levels", "measures": names, "limits": grid}
    return cross_validate(chosen, settings, "limit", datasets=datasets, **options)


def acs(datasets: Any = ("acs_income", "acs_race"), **options: Any) -> Any:
    """Compare all methods of `levels`, neutral heads included, on ACSIncome, by sex and by race.

    The limits are 0.05, 0.02 and 0.01 on parity. The data are acs_income.csv, as folktables writes it, or a
    part of it in Parquet (see `nerm.datasets.load`). The options and the result are those of `levels`.

    >>> few = {"methods": "nerm", "lam": 1.0, "folds": 2, "repetitions": 1, "limits": 0.1}
    >>> acs("diabetes", **few)["measure"].unique().tolist()  # any other data set
    ['calders_verwer_score']
    """
    defaults = {"methods": list(LEVEL_METHODS), "measures": "calders_verwer_score", "limits": LIMITS[1:]}
    return levels(datasets, **{**defaults, **options})


def level_means(table: Any) -> Any:
    """Return means over folds of the measures on test rows, one row per method and limit.

    Parameters
    ----------
    table
        From `levels`.

    Returns
    -------
    DataFrame
        One row per dataset, measure, method and limit. Its columns are these four, sees_group, randomised and
        level (as in `Method`); the means of `measured` (the absolute value of the measure), auc, accuracy and
        the positive rates of the groups; the standard errors of auc and accuracy (``…_sem``); the number of
        folds (fits), and how many have each status (ok, not_converged, collapsed, not_reached, failed).

    >>> import pandas as pd
    >>> row = {"dataset": "d", "measure": "neutrality_risk", "method": "nerm", "sees_group": False,
    ...     "randomised": False, "level": "asked", "limit": 0.1, "neutrality_risk": 0.08, "auc": 0.8,
    ...     "calders_verwer_score": 0.0, "accuracy": 0.7, "positive_rate_minus": 0.4,
    ...     "positive_rate_plus": 0.4, "status": "ok"}
    >>> means = level_means(pd.DataFrame([row, {**row, "neutrality_risk": 0.06, "status": "collapsed"}]))
    >>> means[["measured", "fits", "ok", "collapsed"]].round(2).to_dict("records")
    [{'measured': 0.07, 'fits': 2, 'ok': 1, 'collapsed': 1}]
    """
    by = ["dataset", "measure", "method", "sees_group", "randomised", "level", "limit"]
    shown = ["auc", "accuracy", "positive_rate_minus", "positive_rate_plus"]
    check_columns(table, {*by, *shown, *MEASURES, "status"}, "levels")
    statuses = ("ok", "not converged", "collapsed", "not reached", "failed")
    counts = {status.replace(" ", "_"): table["status"] == status for status in statuses}
    by_risk = table["measure"] == "neutrality_risk"
    measured = table["neutrality_risk"].where(by_risk, table["calders_verwer_score"].abs())
    groups = table.assign(measured=measured, **counts).groupby(by, dropna=False, sort=False)
    errors = groups[["auc", "accuracy"]].sem().add_suffix("_sem")
    means = groups[["measured", *shown]].mean().join(errors).assign(fits=groups.size())
    return means.join(groups[list(counts)].sum()).reset_index()
