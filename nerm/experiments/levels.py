"""Methods brought to an asked level of measured neutrality: figure 2 again, with a level in place of a weight."""

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.experiments.methods import FACTS, METHODS, Fit, Fold, Method, resolve
from nerm.experiments.running import Workers
from nerm.experiments.tradeoff import LAMBDAS, cross_validate
from nerm.typing import Floats
from nerm.validation import check_known

#: What is asked for.
LIMITS = (0.1, 0.05, 0.02, 0.01)
#: The measures that are limited, and the weights of a neutrality term for each.
MEASURES = {"neutrality_risk": "uniform", "calders_verwer_score": "balanced"}
STATUSES = ("ok", "collapsed", "not reached", "failed")
KEEP = 0.5  # of plain logistic regression's positive rate in each group


@dataclass(eq=False)
class Training:
    """The training rows of a fold, what is limited on them, and the fits that several limits share."""

    fold: Fold
    lam: float
    measure: str
    fits: dict[Any, Any] = field(default_factory=dict)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what was made for this key."""
        if key not in self.fits:
            self.fits[key] = make()
        return self.fits[key]

    def fitted(self, model: Any) -> Any:
        """Fit a classifier of `nerm.baselines`."""
        return model.fit(self.fold.X, self.fold.y, viewpoint=self.fold.viewpoint)

    def problem(self, loss: Any, *neutrality: Any) -> Any:
        """Return a problem of nerm on these rows."""
        from nerm.atoms import SquaredL2
        from nerm.objective import Risk

        objective = sum(neutrality, Risk(loss) + self.lam / len(self.fold.y) * SquaredL2())
        return objective.on(self.fold.X, self.fold.y, viewpoint=self.fold.viewpoint)

    @property
    def weights(self) -> str:
        """The weights of a neutrality term that moves the measure."""
        return MEASURES[self.measure]

    @property
    def plain(self) -> Any:
        """Plain logistic regression."""
        from nerm.atoms import Logistic

        return self.once("plain", self.problem(Logistic()).solve)

    def chances(self, model: Any, randomised: bool = False) -> Floats:
        """Return the chance of a positive prediction of every row."""
        from nerm.baselines.base import scores_of

        scores = scores_of(model, self.fold.X, self.fold.viewpoint)
        return scores + 0.5 if randomised else (scores > 0).astype(float)

    def rates(self, chance: Floats) -> Floats:
        """Return the positive rates of the groups v = -1 and v = +1."""
        return np.array([chance[self.fold.viewpoint * side > 0].mean() for side in (-1, 1)])

    def signed(self, chance: Floats) -> float:
        """Return the measure in expectation, positive where predictions follow the viewpoint."""
        if self.weights == "balanced":
            return float(np.diff(self.rates(chance))[0])
        return float(((2 * chance - 1) * self.fold.viewpoint).mean())

    def bisected(self, limit: float, fit: Callable[[float], Any], low: float, high: float) -> Iterator[Any]:
        """Yield models of a bisection for the weight, from nearly plain to beyond neutral, that meets the limit."""
        toward = np.sign(self.signed(self.chances(self.plain)))
        yield from (self.once(weight, partial(fit, weight)) for weight in (high, low))
        for _ in range(9):
            middle = (low + high) / 2
            model = self.once(middle, partial(fit, middle))
            yield model
            above = toward * self.signed(self.chances(model)) > limit
            low, high = (middle, high) if above else (low, middle)


Candidates = Callable[[Training, float], Iterator[Any]]


def neutralized(training: Training, limit: float) -> Iterator[Any]:
    """Ask `Problem.neutralize` for the level."""
    from nerm.atoms import Logistic
    from nerm.objective import Neutrality

    term = Neutrality(Logistic(), weights=training.weights)
    problem = training.once("problem", partial(training.problem, Logistic(), term))
    yield problem.neutralize(limit, training.measure).solution


def searchfair(training: Training, limit: float) -> Iterator[Any]:
    """SearchFair (Lohaus, Perrot, von Luxburg, 2020): one convex side of the measure, its weight found by bisection.

    Parity is P(f > 0 | v = +1) + P(f <= 0 | v = -1) - 1, at most twice the balanced mean of hinge(-v f), minus 1: a
    one-sided term, on the side that the plain model leans to. They search for parity 0, here it is the level.
    """
    from nerm.atoms import Hinge, Logistic
    from nerm.objective import Neutrality

    side = "agreement" if training.signed(training.chances(training.plain)) > 0 else "disagreement"
    term = Neutrality(Hinge(), weights=training.weights, side=side)
    problem = training.once("problem", partial(training.problem, Logistic(), term))
    return training.bisected(limit, lambda eta: problem.with_neutrality(eta).solve(), 0.0, 2.0)


def paper(training: Training, limit: float) -> Iterator[Any]:
    """Yield the paper's neutral SVM, hinge loss and the max of two hinges, over the paper's grid of weights."""
    from nerm.atoms import Hinge
    from nerm.objective import Neutrality

    problem = partial(training.problem, Hinge(), Neutrality(Hinge(), weights=training.weights))
    return iter(training.once("path", lambda: problem().path(METHODS["neutral-svm"].etas)))


def eta_lr(training: Training, limit: float) -> Iterator[Any]:
    """Yield eta-LR by bisection over 1 / (1 + eta), which is 1 where it is most neutral."""
    return training.bisected(limit, partial(_eta_lr_at, training), 0.25, 1.0)


def _eta_lr_at(training: Training, tightness: float = 1.0) -> Any:
    from nerm.baselines import EtaNeutralLogisticRegression

    return training.fitted(EtaNeutralLogisticRegression(eta=1 / tightness - 1, lam=training.lam))


def prejudice_remover(training: Training, limit: float) -> Iterator[Any]:
    """Yield PR over the paper's grid of weights, each from the one before."""
    from nerm.baselines import PrejudiceRemover

    model = PrejudiceRemover(lam=training.lam, warm_start=True)
    grid = METHODS["pr"].etas
    return iter(training.once("grid", lambda: [copy(training.fitted(model.set_params(eta=eta))) for eta in grid]))


def exponentiated(training: Training, limit: float) -> Iterator[Any]:
    """Ask fairlearn's reduction, whose bound is on the distance of a group's rate from the overall one."""
    from nerm.baselines import FairlearnReduction

    favoured = float(np.mean(training.fold.viewpoint > 0))
    yield training.fitted(FairlearnReduction(_plain_classifier(training), eps=max(favoured, 1 - favoured) * limit))


def drawn_thresholds(training: Training, limit: float) -> Iterator[Any]:
    """Ask fairlearn's ThresholdOptimizer for the level."""
    from nerm.baselines import FairlearnThresholds

    yield training.fitted(FairlearnThresholds(_plain_classifier(training), limit))


def _plain_classifier(training: Training) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1 / training.lam, solver="newton-cholesky", max_iter=500)


def thresholds(training: Training, limit: float) -> Iterator[Any]:
    """Cut the plain scores by one threshold a group."""
    from nerm.baselines import GroupThresholds

    yield training.fitted(GroupThresholds(training.plain, limit, training.measure))


def unprocessed(training: Training, limit: float) -> Iterator[Any]:
    """Cut the scores of eta-LR at its most neutral by one threshold a group."""
    from nerm.baselines import Unprocessed

    model = training.once("eta-lr", partial(_eta_lr_at, training))
    yield training.fitted(Unprocessed(model, limit, training.measure))


@dataclass(frozen=True, eq=False)
class Brought:
    """``fit`` of a `Method` whose grid are limits: of its candidates for each limit, the best one.

    Best is the most accurate one on the training rows among those within the limit that keep half (`KEEP`) of plain
    logistic regression's positive rate in each group. Where none keeps it, the most accurate one within the limit is
    taken, and the status is "collapsed"; where none is within the limit, the nearest one, and it is "not reached".
    """

    candidates: Candidates
    measure: str = ""
    randomised: bool = False

    def __call__(self, fold: Fold, lam: float, limits: Sequence[float]) -> Iterator[Fit]:
        """Yield one fit a limit."""
        training = Training(fold, lam, self.measure)
        for limit in limits:
            started = time.perf_counter()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fit = self._best(training, limit)
            except Exception as error:
                fit = Fit(None, 0.0, f"{type(error).__name__}: {error}", False)
            yield replace(fit, seconds=time.perf_counter() - started)

    def _best(self, training: Training, limit: float) -> Fit:
        from nerm.baselines.base import scores_of

        fold, ranked = training.fold, []
        least = KEEP * training.rates(training.chances(training.plain))
        for number, model in enumerate(self.candidates(training, limit)):
            chance = training.chances(model, self.randomised)
            beyond = max(0.0, abs(training.signed(chance)) - limit - 1e-9)
            stands = bool((training.rates(chance) >= least).all() and np.ptp(chance) > 0)
            accuracy = 1 - np.abs((fold.y > 0) - chance).mean()
            ranked.append(((-beyond, stands, accuracy, -number), model))
        (behind, stands, *_), model = max(ranked, key=lambda pair: pair[0])
        status = "not reached" if behind < 0 else "ok" if stands else "collapsed"
        reason = "" if behind == 0 else f"{limit - behind:.4f} on the training rows is the nearest"
        return Fit(scores_of(model, fold.X_test, fold.viewpoint_test), 0.0, reason, status=status)


def _asked(name: str, label: str, candidates: Candidates, tuning: str = "lr", **facts: Any) -> Method:
    plain = METHODS["svm" if tuning == "svm" else "lr"].plain
    return Method(name, label, "one-hot", LIMITS, tuning, Brought(candidates), plain, **facts)


_SEES: dict[str, Any] = {"sees_group": True, "level": "asked"}
#: Methods by name that `levels` brings to a level; some know one measure only (`ONLY`).
LEVEL_METHODS = {
    m.name: m
    for m in (
        _asked("nerm", "nerm at a limit", neutralized, level="asked"),
        _asked("neutral-svm", "neutral SVM (paper)", paper, "svm"),
        _asked("searchfair", "SearchFair's form", searchfair),
        _asked("eta-lr", "η-LR", eta_lr),
        _asked("exp-gradient", "ExponentiatedGradient", exponentiated, randomised=True, level="asked"),
        _asked("thresholds", "group thresholds", thresholds, **_SEES),
        _asked("unprocessed", "unprocessed η-LR", unprocessed, **_SEES),
        _asked("fairlearn-thresholds", "ThresholdOptimizer", drawn_thresholds, **_SEES, randomised=True),
        _asked("pr", "PR", prejudice_remover, sees_group=True),
        METHODS["cv2nb"],
        METHODS["lr"],
        METHODS["svm"],
    )
}
#: The methods that know one measure only.
ONLY = dict.fromkeys(("exp-gradient", "fairlearn-thresholds"), "calders_verwer_score")


def levels(
    datasets: Any = ("german", "adult", "bank"),
    methods: Sequence[str | Method] = tuple(LEVEL_METHODS),
    *,
    measures: str | Sequence[str] = tuple(MEASURES),
    limits: float | Sequence[float] = LIMITS,
    lam: float | Sequence[float] = LAMBDAS,
    repetitions: int = 10,
    folds: int = 5,
    seed: int = 0,
    stratify: bool = True,
    discretize: str = "all rows",
    n_jobs: int = 1,
    backend: str = "joblib",
    client: Any = None,
    results: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    data_home: Any = None,
) -> Any:
    """Ask every method for levels of measured neutrality, and measure on test rows what came of it: one row a fit.

    Each method is brought to ``|measure| <= limit`` on its training rows: where it takes a level, that is asked for,
    else its weight is searched. The folds are those of `tradeoff`.

    Parameters
    ----------
    datasets, lam, repetitions, folds, seed, stratify, discretize, n_jobs, backend, client, results, progress, data_home
        As for `tradeoff`.
    methods
        Names (`LEVEL_METHODS`), or methods without a grid as for `tradeoff`: they take no level.
    measures
        What is limited: ``"neutrality_risk"`` (C_sgn), ``"calders_verwer_score"`` (parity), or both.
    limits
        The levels.

    Returns
    -------
    DataFrame
        With the columns of `tradeoff`, where `measure` is what was limited and `limit` (nan for methods without) stands
        for eta. A status of "collapsed" says that the limit was met on the training rows only by denying half of those
        whom plain logistic regression accepts in some group, "not reached" that it was not met (the nearest model is
        measured), "failed" that there is no model.

    >>> table = levels("diabetes", ["nerm", "lr"], measures="calders_verwer_score", limits=0.05, lam=1.0, folds=2,
    ...                repetitions=1)
    >>> table[["method", "limit", "sees_group", "randomised", "level", "status"]]
      method  limit  sees_group  randomised  level status
    0   nerm   0.05       False       False  asked     ok
    1   nerm   0.05       False       False  asked     ok
    2     lr    NaN       False       False   none     ok
    3     lr    NaN       False       False   none     ok
    """
    wanted = tuple(sorted(np.unique(np.asarray(limits, dtype=float)), reverse=True))
    if not wanted or not all(0 < limit < np.inf for limit in wanted):
        raise InvalidInputError("'limits' must be positive numbers", repr(limits), "Give limits=[0.05], for instance")
    names = [measures] if isinstance(measures, str) else list(measures)
    for name in names:
        check_known(name, "'measures'", MEASURES)
    chosen = resolve(methods, {}, LEVEL_METHODS)
    asked = [
        ({"measure": name}, _at(m, name, wanted)) for name in names for m in chosen if ONLY.get(m.name, name) == name
    ]
    return cross_validate(
        {"experiment": "levels", "measures": names, "limits": list(wanted)},
        asked,
        "limit",
        "levels",
        Workers(n_jobs, backend, client),
        datasets=datasets,
        lam=lam,
        repetitions=repetitions,
        folds=folds,
        seed=seed,
        stratify=stratify,
        discretize=discretize,
        results=results,
        progress=progress,
        data_home=data_home,
    )


def _at(method: Method, measure: str, limits: tuple[float, ...]) -> Method:
    """Return the method that is brought to these limits of one measure."""
    if not isinstance(method.fit, Brought):
        return method
    return replace(method, etas=limits, fit=replace(method.fit, measure=measure, randomised=method.randomised))


def level_means(table: Any) -> Any:
    """Return what each method reached on test rows at each level: means over folds, and of how many.

    Parameters
    ----------
    table
        From `levels`.

    Returns
    -------
    DataFrame
        By dataset, measure, method (with its facts) and limit: the means of `measured` (the absolute value of the
        measure), auc, accuracy and the groups' positive rates, the standard errors of auc and accuracy (``…_sem``) and
        the folds: all of them (fits), and those whose status is ok, collapsed, not reached, failed.

    >>> import pandas as pd
    >>> row = {"dataset": "d", "measure": "neutrality_risk", "method": "nerm", "sees_group": False, "randomised": False,
    ...        "level": "asked", "limit": 0.1, "neutrality_risk": 0.08, "calders_verwer_score": 0.0, "auc": 0.8,
    ...        "accuracy": 0.7, "positive_rate_minus": 0.4, "positive_rate_plus": 0.4, "status": "ok"}
    >>> means = level_means(pd.DataFrame([row, {**row, "neutrality_risk": 0.06, "status": "collapsed"}]))
    >>> means[["measured", "fits", "ok", "collapsed"]].round(2).to_dict("records")
    [{'measured': 0.07, 'fits': 2, 'ok': 1, 'collapsed': 1}]
    """
    by = ["dataset", "measure", "method", *FACTS, "limit"]
    shown = ["auc", "accuracy", "positive_rate_minus", "positive_rate_plus"]
    missing = {*by, *shown, *MEASURES, "status"} - set(table.columns)
    if missing:
        must = "'table' must come from nerm.experiments.levels"
        got = f"a table without {', '.join(map(repr, sorted(missing)))}"
        raise InvalidInputError(must, got, "Pass the table that levels returned")
    counts = {status.replace(" ", "_"): table["status"] == status for status in STATUSES}
    measured = (
        table["calders_verwer_score"].abs().where(table["measure"] != "neutrality_risk", table["neutrality_risk"])
    )
    groups = table.assign(measured=measured, **counts).groupby(by, dropna=False, sort=False)
    means = groups[["measured", *shown]].mean()
    for column in ("auc", "accuracy"):
        means[f"{column}_sem"] = groups[column].sem()
    means["fits"] = groups.size()
    return means.join(groups[list(counts)].sum()).reset_index()
