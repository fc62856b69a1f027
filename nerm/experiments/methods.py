"""The methods that experiments compare, and how each is brought to a level of measured neutrality.

`METHODS` are fitted at neutrality weights, for `tradeoff`; `LEVEL_METHODS` are brought to limits on their
training rows, for `levels`. `from_objective` and `from_estimator` make further ones.
"""

import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.errors import InvalidInputError, UnknownNameError
from nerm.experiments.harness import FACTS, Fit, FitGrid, Fold, Method
from nerm.typing import Array, Floats, Matrix
from nerm.validation import check_known

#: 0, 0.01, 0.05, 0.1, ..., 100: the paper's weights for the neutral SVM and PR (table 2).
ETAS = (0.0, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0)
#: 0, 5e-5, 1e-4, 5e-4, ..., 0.5: the paper's bounds for eta-LR.
ETA_BOUNDS = (0.0, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5)
#: The levels of `levels`.
LIMITS = (0.1, 0.05, 0.02, 0.01)
#: The measures that are limited, and the weights of a neutrality term for each.
MEASURES = {"neutrality_risk": "uniform", "calders_verwer_score": "balanced"}
#: The methods that know one measure only.
ONLY = dict.fromkeys(("exp-gradient", "fairlearn-thresholds"), "calders_verwer_score")


def fit_of(solution: Any, X: Matrix) -> Fit:
    """Return the fit of a certified solution on these rows."""
    stats, optimal = solution.stats, solution.status.success
    reason = "" if optimal else f"certified relative gap {solution.certificate.relative_gap:.1e}"
    seconds = stats.build_seconds + stats.solve_seconds + stats.certify_seconds
    return Fit(solution.decision_function(X), seconds, reason, optimal)


def attempt(model: Any, fold: Fold) -> Fit:
    """Fit a scikit-learn classifier and score the test rows; an error or a warning becomes a reason.

    The viewpoint is passed to the methods whose signatures have it.
    """
    from nerm.baselines.base import scores_of, viewpoint_for

    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(fold.X, fold.y, **viewpoint_for(model.fit, fold.viewpoint))
            scores = scores_of(model, fold.X_test, fold.viewpoint_test)
        except Exception as error:
            return Fit(None, time.perf_counter() - started, f"{type(error).__name__}: {error}", False)
    messages = "; ".join(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught))
    stopped_early = any(w.category.__name__ == "ConvergenceWarning" for w in caught)
    return Fit(scores, time.perf_counter() - started, messages, not stopped_early)


def from_objective(
    name: str,
    objective: Callable[[float], Any],
    etas: Sequence[float] = ETAS,
    *,
    label: str = "",
    tuning: str | None = None,
    details: str = "",
    kernel: Any = None,
    sample_weight: Callable[[Array], Array | None] | None = None,
    **options: Any,
) -> Method:
    """Return a method for `tradeoff` made of an objective; its neutrality weights are solved as one path.

    Parameters
    ----------
    name, label, tuning, details
        As in `Method`.
    objective
        ``objective(lam)``, lam in mean form, returns a `nerm.Objective` with a neutrality term.
    etas
        Total neutrality weights.
    kernel
        As for ``Objective.on``.
    sample_weight
        A function of the training labels that returns their weights.
    options
        Passed to ``Problem.path``: ``solver``, ``tol``.

    >>> import nerm
    >>> terms = nerm.Risk(nerm.Logistic()) + nerm.Neutrality(nerm.Hinge())
    >>> mine = from_objective("mine", lambda lam: terms + lam * nerm.L1(), [0, 1])
    >>> mine.etas
    (0.0, 1.0)

    """

    def fit(fold: Fold, lam: float, values: Sequence[float]) -> Iterator[Fit]:
        weight = None if sample_weight is None else sample_weight(fold.y)
        given = {"viewpoint": fold.viewpoint, "kernel": kernel, "sample_weight": weight}
        problem = objective(lam / len(fold.y)).on(fold.X, fold.y, **given)
        return (fit_of(solution, fold.X_test) for solution in problem.path(list(values) or [0.0], **options))

    return Method(name, label or name, "one-hot", tuple(map(float, etas)), tuning, fit, fit, details)


def from_estimator(
    name: str, estimator: Any, *, eta: str | None = None, etas: Sequence[float] = (), coding: str = "one-hot"
) -> Method:
    """Return a method for `tradeoff` made of a scikit-learn classifier.

    Parameters
    ----------
    name
        In tables and figures.
    estimator
        An unfitted classifier for labels -1 and +1. fit and decision_function are given ``viewpoint=`` where
        their signatures have it; a parameter ``random_state`` is set from the fold's seed; ``sees_group``,
        ``randomised`` and ``level`` are read from its attributes, where it has them.
    eta, etas
        The parameter that takes the neutrality weight, and its values.
    coding
        Of its rows: ``"one-hot"`` (a CSR matrix) or ``"nominal"`` (codes, nan = missing).

    >>> from sklearn.dummy import DummyClassifier
    >>> from_estimator("constant", DummyClassifier(strategy="prior")).coding
    'one-hot'

    """
    from sklearn.base import clone

    check_known(coding, "'coding'", ("one-hot", "nominal"))
    scores = hasattr(estimator, "decision_function") or hasattr(estimator, "predict_proba")
    if not hasattr(estimator, "get_params") or not scores:
        must = "'estimator' must be a scikit-learn classifier with decision_function or predict_proba"
        raise InvalidInputError(must, repr(estimator), "Pass an unfitted classifier")
    known = estimator.get_params()
    if eta is not None and eta not in known:
        raise UnknownNameError("'eta'", eta, known, "Name a parameter of the estimator")
    if (eta is None) != (len(etas) == 0):
        got = f"eta={eta!r} and etas={etas!r}"
        raise InvalidInputError("'eta' and 'etas' must be given together", got, "Give both, or neither")

    def fit(fold: Fold, lam: float, values: Sequence[float]) -> Iterator[Fit]:
        seed = {"random_state": fold.seed} if "random_state" in known else {}
        for weight in [{str(eta): value} for value in values] or [{}]:
            yield attempt(clone(estimator).set_params(**seed, **weight), fold)

    kind = f"{type(estimator).__module__}.{type(estimator).__qualname__}"
    details = re.sub(r" at 0x[0-9a-f]+", "", f"{kind} {known!r}")  # addresses differ from run to run
    facts = {fact: getattr(estimator, fact) for fact in FACTS if hasattr(estimator, fact)}
    return Method(name, name, coding, tuple(map(float, etas)), None, fit, details=details, **facts)


def svm_objective(lam: float, weights: str = "uniform") -> Any:
    """Return the neutral SVM's objective in mean form."""
    from nerm.atoms.hinges import Hinge
    from nerm.atoms.penalties import SquaredL2
    from nerm.model.expressions import Neutrality, Risk

    return Risk(Hinge()) + lam * SquaredL2() + 1.0 * Neutrality(Hinge(), weights=weights)


def prejudice_remover(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
    """Fit PR for all etas, each from the weights of the one before."""
    from nerm.baselines import PrejudiceRemover

    model = PrejudiceRemover(lam=lam, warm_start=True)
    return (attempt(model.set_params(eta=eta), fold) for eta in etas)


def eta_lr(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
    """Fit eta-neutral logistic regression for all etas."""
    from nerm.baselines import EtaNeutralLogisticRegression

    return (attempt(EtaNeutralLogisticRegression(eta=eta, lam=lam), fold) for eta in etas)


def cv2nb(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
    """Fit CV2NB, which has neither lambda nor eta."""
    from nerm.baselines import CV2NB

    yield attempt(CV2NB(), fold)


def logistic_regression(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
    """Fit plain logistic regression."""
    yield attempt(_plain_classifier(lam), fold)


def _plain_classifier(lam: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1.0 / lam, solver="newton-cholesky", max_iter=500)


_SVM = from_objective("neutral-svm", svm_objective, label="neutral SVM", tuning="svm")
#: The paper's methods by name: neutral-svm, cv2nb, pr, eta-lr, and plain svm and lr to compare them with.
METHODS = {
    m.name: m
    for m in (
        _SVM,
        Method("cv2nb", "CV2NB", "nominal", (), None, cv2nb, sees_group=True, level="asked"),
        Method("pr", "PR", "one-hot", ETAS, "pr", prejudice_remover, prejudice_remover, sees_group=True),
        Method("eta-lr", "η-LR", "one-hot", ETA_BOUNDS, "lr", eta_lr, logistic_regression),
        replace(_SVM, name="svm", label="plain SVM", etas=(), level="none"),
        Method("lr", "plain LR", "one-hot", (), "lr", logistic_regression, logistic_regression, level="none"),
    )
}


def resolve(
    methods: str | Method | Sequence[str | Method],
    etas: Mapping[str, Sequence[float]],
    known: Mapping[str, Method] = METHODS,
) -> list[Method]:
    """Return the methods of these names, with other grids where `etas` has them."""
    chosen: dict[str, Method] = {}
    for method in [methods] if isinstance(methods, str | Method) else methods:
        if not isinstance(method, Method):
            check_known(method, "'methods'", known, "Use these, or nerm.experiments.from_estimator")
            method = known[method]
        if method.name in chosen:
            must = "each of 'methods' must have its own name"
            raise InvalidInputError(must, repr(method.name), "Rename one")
        chosen[method.name] = method
    if not chosen:
        must = "'methods' must name at least one method"
        raise InvalidInputError(must, "none", "Give methods=('neutral-svm',)")
    for name, grid in etas.items():
        check_known(name, "a key of 'etas'", chosen)
        values = [float(v) for v in np.atleast_1d(np.asarray(grid, dtype=float))]
        if not chosen[name].etas or not values or not all(0 <= v < np.inf for v in values):
            must = "'etas' must hold a nonempty list of weights, at least 0, for a method that takes them"
            do = "Give etas={'neutral-svm': [0, 1]}, for instance"
            raise InvalidInputError(must, f"{values} for {name!r}", do)
        chosen[name] = replace(chosen[name], etas=tuple(sorted(set(values))))
    return list(chosen.values())


@dataclass(eq=False)
class Training:
    """The training rows of a fold, the measure that is limited on them, and the fits that limits share.

    The test rows of `fold` are the training rows followed by those of the experiment's fold, so that the
    scores of a fit are (n + m,) and the first n decide which fit is taken.
    """

    fold: Fold
    lam: float
    measure: str
    randomised: bool = False
    fits: dict[Any, Any] = field(default_factory=dict)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the value that was made for this key."""
        if key not in self.fits:
            self.fits[key] = make()
        return self.fits[key]

    def problem(self, loss: Any, *neutrality: Any) -> Any:
        """Return a problem of nerm on these rows."""
        from nerm.atoms.penalties import SquaredL2
        from nerm.model.expressions import Risk

        objective = sum(neutrality, Risk(loss) + self.lam / len(self.fold.y) * SquaredL2())
        return objective.on(self.fold.X, self.fold.y, viewpoint=self.fold.viewpoint)

    def solved(self, solution: Any) -> Fit:
        """Return the fit of a solution."""
        return fit_of(solution, self.fold.X_test)

    @property
    def weights(self) -> str:
        """The weights of a neutrality term for the measure."""
        return MEASURES[self.measure]

    @property
    def plain(self) -> Any:
        """The solution of plain logistic regression."""
        from nerm.atoms.smooth import Logistic

        return self.once("plain", lambda: self.problem(Logistic()).solve())

    def chances(self, fit: Fit, randomised: bool = False) -> Floats:
        """Return the probability of a positive prediction for each training row."""
        assert fit.scores is not None, fit.reason
        scores = fit.scores[: len(self.fold.y)]
        return scores + 0.5 if randomised else (scores > 0).astype(float)

    def rates(self, chance: Floats) -> Floats:
        """Return the positive rates of the groups v = -1 and v = +1."""
        return np.array([chance[self.fold.viewpoint * side > 0].mean() for side in (-1, 1)])

    def signed(self, chance: Floats) -> float:
        """Return the expected measure, positive where predictions follow the viewpoint."""
        if self.weights == "balanced":
            return float(np.diff(self.rates(chance))[0])
        return float(((2 * chance - 1) * self.fold.viewpoint).mean())

    def bisected(self, limit: float, fit: Callable[[float], Fit], low: float, high: float) -> Iterator[Fit]:
        """Yield the fits of a bisection over weights, from nearly plain (low) to beyond neutral (high)."""
        toward = np.sign(self.signed(self.chances(self.solved(self.plain))))
        yield from (self.once(weight, partial(fit, weight)) for weight in (high, low))
        for _ in range(9):
            middle = (low + high) / 2
            found = self.once(middle, partial(fit, middle))
            yield found
            above = toward * self.signed(self.chances(found)) > limit
            low, high = (middle, high) if above else (low, middle)


Candidates = Callable[[Training, float], Iterable[Fit]]


def neutralized(training: Training, limit: float) -> Iterator[Fit]:
    """Ask `Problem.neutralize` for the level."""
    from nerm.atoms.smooth import Logistic
    from nerm.model.expressions import Neutrality

    term = Neutrality(Logistic(), weights=training.weights)
    problem = training.once("problem", lambda: training.problem(Logistic(), term))
    yield training.solved(problem.neutralize(limit, training.measure).solution)


def searchfair(training: Training, limit: float) -> Iterator[Fit]:
    """SearchFair (Lohaus, Perrot, von Luxburg, 2020): a one-sided term whose weight is bisected.

    Parity is P(f > 0 | v = +1) + P(f <= 0 | v = -1) - 1, at most twice the balanced mean of hinge(-v f),
    minus 1: a one-sided term, on the side to which the plain model leans. They search for parity 0, here it
    is the level.
    """
    from nerm.atoms.hinges import Hinge
    from nerm.atoms.smooth import Logistic
    from nerm.model.expressions import Neutrality

    follows = training.signed(training.chances(training.solved(training.plain))) > 0
    term = Neutrality(Hinge(), weights=training.weights, side="agreement" if follows else "disagreement")
    problem = training.once("problem", lambda: training.problem(Logistic(), term))
    solve = lambda eta: training.solved(problem.with_neutrality(eta).solve())  # noqa: E731
    return training.bisected(limit, solve, 0.0, 2.0)


def bisected_eta_lr(training: Training, limit: float) -> Iterator[Fit]:
    """Yield eta-LR by bisection over 1 / (1 + eta), which is 1 where it is most neutral."""
    fit = lambda tightness: next(eta_lr(training.fold, training.lam, [1 / tightness - 1]))  # noqa: E731
    return training.bisected(limit, fit, 0.25, 1.0)


def paper_grid(training: Training, limit: float) -> Iterable[Fit]:
    """Yield the paper's neutral SVM over the paper's grid of weights."""
    method = from_objective("", lambda lam: svm_objective(lam, training.weights))
    return training.once("grid", lambda: list(method.fit(training.fold, training.lam, ETAS)))


def pr_grid(training: Training, limit: float) -> Iterable[Fit]:
    """Yield PR over the paper's grid of weights."""
    return training.once("grid", lambda: list(prejudice_remover(training.fold, training.lam, ETAS)))


def exponentiated(training: Training, limit: float) -> Any:
    """Ask fairlearn's reduction, whose bound is on the distance of a group's rate from the overall one."""
    from nerm.baselines import FairlearnReduction

    favoured = float(np.mean(training.fold.viewpoint > 0))
    bound = max(favoured, 1 - favoured) * limit
    yield attempt(FairlearnReduction(_plain_classifier(training.lam), eps=bound), training.fold)


def drawn_thresholds(training: Training, limit: float) -> Iterator[Fit]:
    """Ask fairlearn's ThresholdOptimizer for the level."""
    from nerm.baselines import FairlearnThresholds

    yield attempt(FairlearnThresholds(_plain_classifier(training.lam), limit), training.fold)


def thresholds(training: Training, limit: float) -> Iterator[Fit]:
    """Cut the plain scores by one threshold per group."""
    from nerm.baselines import GroupThresholds

    yield attempt(GroupThresholds(training.plain, limit, training.measure), training.fold)


def unprocessed(training: Training, limit: float) -> Iterator[Fit]:
    """Cut the scores of eta-LR at its most neutral by one threshold per group."""
    from nerm.baselines import EtaNeutralLogisticRegression, Unprocessed

    fold = training.fold
    model = EtaNeutralLogisticRegression(eta=0.0, lam=training.lam)
    base = training.once("eta-lr", lambda: model.fit(fold.X, fold.y, viewpoint=fold.viewpoint))
    yield attempt(Unprocessed(base, limit, training.measure), fold)


@dataclass(frozen=True, eq=False)
class Brought:
    """The ``fit`` of a method whose grid are limits: the best of its candidates for each limit.

    The best candidate is the most accurate one on the training rows among those within the limit that keep
    half of plain logistic regression's positive rate in each group. Where none keeps it, the most accurate
    one within the limit is taken, and the status is "collapsed"; where none is within the limit, the nearest
    one, and the status is "not reached".
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
        y = training.fold.y
        least = 0.5 * training.rates(training.chances(training.solved(training.plain)))
        candidates = list(self.candidates(training, limit))
        found = [fit for fit in candidates if fit.scores is not None]
        if not found:
            return Fit(None, 0.0, candidates[0].reason, False)
        ranks = []
        for number, fit in enumerate(found):
            chance = training.chances(fit, self.randomised)
            beyond = max(0.0, abs(training.signed(chance)) - limit - 1e-9)
            sound = bool((training.rates(chance) >= least).all() and np.ptp(chance) > 0)
            accuracy = 1 - np.abs((y > 0) - chance).mean()
            ranks.append((-beyond, sound, accuracy, -number))
        (short, sound, _, number) = max(ranks)
        status = "not reached" if short < 0 else "ok" if sound else "collapsed"
        reason = "" if short == 0 else f"{limit - short:.4f} on the training rows is the nearest"
        scores = found[-number].scores
        assert scores is not None
        return Fit(scores[len(y) :], 0.0, reason, status=status)


def at_limits(method: Method, measure: str, limits: tuple[float, ...]) -> Method:
    """Return the method that is brought to these limits of one measure."""
    if isinstance(method.fit, Brought):
        fit = replace(method.fit, measure=measure, randomised=method.randomised)
        return replace(method, etas=limits, fit=fit)
    if method.etas:
        must = "each of 'methods' must be one of LEVEL_METHODS or have no grid"
        got = f"{method.name!r} with etas {list(method.etas)}"
        raise InvalidInputError(must, got, "Use tradeoff for a grid")
    return method


def _asked(name: str, label: str, candidates: Candidates, tuning: str = "lr", **facts: Any) -> Method:
    plain: FitGrid | None = METHODS["svm" if tuning == "svm" else "lr"].plain
    return Method(name, label, "one-hot", LIMITS, tuning, Brought(candidates), plain, **facts)


_SEES: dict[str, Any] = {"sees_group": True, "level": "asked"}
#: The methods that `levels` brings to a level, by name; some know one measure only (`ONLY`).
LEVEL_METHODS = {
    m.name: m
    for m in (
        _asked("nerm", "nerm at a limit", neutralized, level="asked"),
        _asked("neutral-svm", "neutral SVM (paper)", paper_grid, "svm"),
        _asked("searchfair", "SearchFair's form", searchfair),
        _asked("eta-lr", "η-LR", bisected_eta_lr),
        _asked("exp-gradient", "ExponentiatedGradient", exponentiated, randomised=True, level="asked"),
        _asked("thresholds", "group thresholds", thresholds, **_SEES),
        _asked("unprocessed", "unprocessed η-LR", unprocessed, **_SEES),
        _asked("fairlearn-thresholds", "ThresholdOptimizer", drawn_thresholds, **_SEES, randomised=True),
        _asked("pr", "PR", pr_grid, sees_group=True),
        METHODS["cv2nb"],
        METHODS["lr"],
        METHODS["svm"],
    )
}
