"""Methods that are brought to an asked level of measured neutrality on their training rows."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from nerm.experiments.methods import METHODS, Fit, Fold, Method
from nerm.typing import Floats

#: What is asked for.
LIMITS = (0.1, 0.05, 0.02, 0.01)
#: The measures that are limited, and the weights of a neutrality term for each.
MEASURES = {"neutrality_risk": "uniform", "calders_verwer_score": "balanced"}
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
        from nerm.model.objective import Risk

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
    from nerm.model.objective import Neutrality

    term = Neutrality(Logistic(), weights=training.weights)
    problem = training.once("problem", partial(training.problem, Logistic(), term))
    yield problem.neutralize(limit, training.measure).solution


def searchfair(training: Training, limit: float) -> Iterator[Any]:
    """SearchFair (Lohaus, Perrot, von Luxburg, 2020): one convex side of the measure, its weight found by bisection.

    Parity is P(f > 0 | v = +1) + P(f <= 0 | v = -1) - 1, at most twice the balanced mean of hinge(-v f),
    minus 1: a one-sided term, on the side that the plain model leans to. They search for parity 0, here it is
    the level.
    """
    from nerm.atoms import Hinge, Logistic
    from nerm.model.objective import Neutrality

    side = "agreement" if training.signed(training.chances(training.plain)) > 0 else "disagreement"
    term = Neutrality(Hinge(), weights=training.weights, side=side)
    problem = training.once("problem", partial(training.problem, Logistic(), term))
    return training.bisected(limit, lambda eta: problem.with_neutrality(eta).solve(), 0.0, 2.0)


def paper(training: Training, limit: float) -> Iterator[Any]:
    """Yield the paper's neutral SVM, hinge loss and the max of two hinges, over the paper's grid of weights."""
    from nerm.atoms import Hinge
    from nerm.model.objective import Neutrality

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
    return iter(
        training.once("grid", lambda: [copy(training.fitted(model.set_params(eta=eta))) for eta in grid])
    )


def exponentiated(training: Training, limit: float) -> Iterator[Any]:
    """Ask fairlearn's reduction, whose bound is on the distance of a group's rate from the overall one."""
    from nerm.baselines import FairlearnReduction

    favoured = float(np.mean(training.fold.viewpoint > 0))
    yield training.fitted(
        FairlearnReduction(_plain_classifier(training), eps=max(favoured, 1 - favoured) * limit)
    )


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

    Best is the most accurate one on the training rows among those within the limit that keep half (`KEEP`) of
    plain logistic regression's positive rate in each group. Where none keeps it, the most accurate one within
    the limit is taken, and the status is "collapsed"; where none is within the limit, the nearest one, and it
    is "not reached".
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
