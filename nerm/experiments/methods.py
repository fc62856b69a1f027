"""The methods that the trade-off experiment compares: each fits a whole grid of neutrality weights on one fold."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError, UnknownNameError

#: 0, 0.01, 0.05, 0.1, ..., 100: the paper's weights for the neutral SVM and PR (table 2).
ETAS = (0.0, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0)
#: 0, 5e-5, 1e-4, 5e-4, ..., 0.5: the paper's bounds for eta-LR.
ETA_BOUNDS = (0.0, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5)


@dataclass(frozen=True, eq=False)
class Fold:
    """One fold: X in the coding that the method asked for, labels and viewpoints in -1/+1, and a seed.

    X is (n, d), y and viewpoint are (n,), on the training rows; X_test is (m, d), viewpoint_test (m,). The labels of
    the test rows are not in it: no method can look at them.

    >>> from dataclasses import fields
    >>> [field.name for field in fields(Fold)]
    ['X', 'y', 'viewpoint', 'X_test', 'viewpoint_test', 'seed']
    """

    X: Any
    y: np.ndarray
    viewpoint: np.ndarray
    X_test: Any
    viewpoint_test: np.ndarray
    seed: int


@dataclass(frozen=True, eq=False)
class Fit:
    """What came of one neutrality weight: scores on the test rows, (m,), or None and the reason.

    A failure does not stop an experiment; it becomes a row with its reason:

    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> fold = Fold(np.zeros((4, 1)), y, y, np.zeros((2, 1)), np.array([-1.0, 1.0]), seed=0)
    >>> (fit,) = METHODS["lr"].fit(fold, -1.0, ())
    >>> fit.scores is None, fit.converged, fit.reason.split(":")[0]
    (True, False, 'InvalidParameterError')
    """

    scores: np.ndarray | None
    seconds: float
    reason: str = ""  # of a failure (no scores), or what a solver that stopped early said
    converged: bool = True


@dataclass(frozen=True, eq=False)
class Method:
    """A method: what it is called, what it is given, and how it fits a grid.

    ``fit(fold, lam, etas)`` yields one `Fit` for each eta. `etas` is its grid, empty for a method without neutrality
    weight. `tuning` names the family that shares one lambda (see ``plain``); None means that it has no lambda.
    ``plain(fold, lam)`` returns the scores of the method that is not neutralised, by which lambda is tuned.

    >>> X, y, v = np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([1, 1, -1, -1]), np.array([1, -1, 1, -1])
    >>> fold = Fold(X, y, v, X_test=np.array([[1.0]]), viewpoint_test=np.array([1]), seed=0)
    >>> fits = METHODS["neutral-svm"].fit(fold, 2.0, [0.0, 1.0])
    >>> [fit.scores.round(3).tolist() for fit in fits]
    [[1.0], [0.5]]
    """

    name: str
    label: str
    coding: str
    etas: tuple[float, ...]
    tuning: str | None
    fit: Callable[[Fold, float, Sequence[float]], Iterator[Fit]]
    plain: Callable[[Fold, float], np.ndarray] | None = None
    details: str = ""  # part of the experiment's fingerprint


def neutral_svm(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
    """Fit the neutral SVM for all etas as one warm-started path."""
    import nerm

    n = len(fold.y)
    objective = nerm.Risk(nerm.Hinge()) + (lam / n) * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    for solution in objective.on(fold.X, fold.y, viewpoint=fold.viewpoint).path(list(etas) or [0.0]):
        stats = solution.stats
        seconds = stats.build_seconds + stats.solve_seconds + stats.certify_seconds
        optimal = solution.status == nerm.Status.OPTIMAL
        reason = "" if optimal else f"certified relative gap {solution.certificate.relative_gap:.1e}"
        yield Fit(solution.decision_function(fold.X_test), seconds, reason, optimal)


def prejudice_remover(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
    """Fit PR for all etas, each from the weights of the one before: a third of the time of starting from zero."""
    from nerm.baselines import PrejudiceRemover

    model = PrejudiceRemover(lam=lam, warm_start=True)
    for eta in etas:
        model.set_params(eta=eta)
        yield attempt(partial(model.fit, fold.X, fold.y, viewpoint=fold.viewpoint), fold)


def eta_lr(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
    """Fit eta-neutral logistic regression for all etas."""
    from nerm.baselines import EtaNeutralLogisticRegression as Model

    for eta in etas:
        model = Model(eta=eta, lam=lam)
        yield attempt(partial(model.fit, fold.X, fold.y, viewpoint=fold.viewpoint), fold)


def cv2nb(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
    """Fit CV2NB, which has neither lambda nor eta."""
    from nerm.baselines import CV2NB

    yield attempt(lambda: CV2NB().fit(fold.X, fold.y, viewpoint=fold.viewpoint), fold)


def logistic_regression(fold: Fold, lam: float, etas: Sequence[float] = ()) -> Iterator[Fit]:
    """Fit plain logistic regression."""
    yield attempt(lambda: _logistic(fold, lam), fold, with_viewpoint=False)


def _logistic(fold: Fold, lam: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1.0 / lam, solver="newton-cholesky", max_iter=500).fit(fold.X, fold.y)


def _plain_svm(fold: Fold, lam: float) -> np.ndarray:
    import nerm

    objective = nerm.Risk(nerm.Hinge()) + (lam / len(fold.y)) * nerm.SquaredL2()
    return objective.on(fold.X, fold.y).solve().decision_function(fold.X_test)


def _plain_pr(fold: Fold, lam: float) -> np.ndarray:
    from nerm.baselines import PrejudiceRemover

    model = PrejudiceRemover(eta=0.0, lam=lam).fit(fold.X, fold.y, viewpoint=fold.viewpoint)
    return model.decision_function(fold.X_test, viewpoint=fold.viewpoint_test)


def _plain_lr(fold: Fold, lam: float) -> np.ndarray:
    return _logistic(fold, lam).decision_function(fold.X_test)


def attempt(train: Callable[[], Any], fold: Fold, with_viewpoint: bool = True) -> Fit:
    """Train a model and score the test rows; an error or a warning becomes a reason, never a stop."""
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            scores = scores_of(train(), fold, with_viewpoint)
        except Exception as error:
            return Fit(None, time.perf_counter() - started, f"{type(error).__name__}: {error}", False)
    said = "; ".join(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught))
    stopped_early = any(w.category.__name__ == "ConvergenceWarning" for w in caught)
    return Fit(scores, time.perf_counter() - started, said, not stopped_early)


def scores_of(model: Any, fold: Fold, with_viewpoint: bool) -> np.ndarray:
    """Return real scores of the test rows, positive for the desired outcome."""
    extra = {"viewpoint": fold.viewpoint_test} if with_viewpoint else {}
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(fold.X_test, **extra), dtype=float)
    return np.asarray(model.predict_proba(fold.X_test, **extra), dtype=float)[:, 1] - 0.5


#: The paper's methods by name: neutral-svm, cv2nb, pr, eta-lr, and plain svm and lr to compare them with.
METHODS = {
    m.name: m
    for m in (
        Method("neutral-svm", "neutral SVM", "one-hot", ETAS, "svm", neutral_svm, _plain_svm),
        Method("cv2nb", "CV2NB", "nominal", (), None, cv2nb),
        Method("pr", "PR", "one-hot", ETAS, "pr", prejudice_remover, _plain_pr),
        Method("eta-lr", "η-LR", "one-hot", ETA_BOUNDS, "lr", eta_lr, _plain_lr),
        Method("svm", "plain SVM", "one-hot", (), "svm", neutral_svm, _plain_svm),
        Method("lr", "plain LR", "one-hot", (), "lr", logistic_regression, _plain_lr),
    )
}


def from_estimator(
    name: str, estimator: Any, *, eta: str | None = None, etas: Sequence[float] = (), coding: str = "one-hot"
) -> Method:
    """Return a method for `tradeoff` made of a scikit-learn classifier.

    `eta` names the parameter that takes the values `etas`. `coding` is ``"one-hot"`` (a CSR matrix) or ``"nominal"``
    (codes, nan = missing). fit and decision_function are given ``viewpoint=`` where their signatures have it; a
    parameter `random_state` is set from the fold's seed. Labels are -1 and +1.

    >>> from sklearn.dummy import DummyClassifier
    >>> from_estimator("constant", DummyClassifier(strategy="prior")).coding
    'one-hot'
    """
    from sklearn.base import clone

    if coding not in ("one-hot", "nominal"):
        raise UnknownNameError("'coding'", coding, ("one-hot", "nominal"))
    if not hasattr(estimator, "get_params") or not (
        hasattr(estimator, "decision_function") or hasattr(estimator, "predict_proba")
    ):
        raise InvalidInputError(
            "'estimator' must be a scikit-learn classifier with decision_function or predict_proba",
            repr(estimator),
            "Pass an unfitted classifier",
        )
    known = estimator.get_params()
    if eta is not None and eta not in known:
        raise UnknownNameError("'eta'", eta, known, "Name a parameter of the estimator")
    if (eta is None) != (len(etas) == 0):
        raise InvalidInputError(
            "'eta' and 'etas' must be given together", f"eta={eta!r} and etas={etas!r}", "Give both, or neither"
        )
    takes = ("viewpoint" in _parameters(type(estimator), "fit"), "viewpoint" in _scoring_parameters(type(estimator)))

    def fit(fold: Fold, lam: float, values: Sequence[float]) -> Iterator[Fit]:
        for value in values or (None,):

            def train(value: float | None = value) -> Any:
                model = clone(estimator)
                if eta is not None:
                    model.set_params(**{eta: value})
                if "random_state" in known:
                    model.set_params(random_state=fold.seed)
                return model.fit(fold.X, fold.y, **({"viewpoint": fold.viewpoint} if takes[0] else {}))

            yield attempt(train, fold, takes[1])

    # Addresses in memory differ from run to run and say nothing.
    details = re.sub(r" at 0x[0-9a-f]+", "", f"{type(estimator).__module__}.{type(estimator).__qualname__} {known!r}")
    return Method(name, name, coding, tuple(float(v) for v in etas), None, fit, details=details)


def _parameters(kind: type, name: str) -> Any:
    import inspect

    return inspect.signature(getattr(kind, name)).parameters


def _scoring_parameters(kind: type) -> Any:
    return _parameters(kind, "decision_function" if hasattr(kind, "decision_function") else "predict_proba")


def resolve(methods: Sequence[str | Method], etas: dict[str, Sequence[float]] | None) -> list[Method]:
    """Return the methods of these names, with other grids where `etas` has them."""
    from dataclasses import replace

    chosen: list[Method] = []
    for method in [methods] if isinstance(methods, str | Method) else methods:
        if not isinstance(method, Method):
            if method not in METHODS:
                raise UnknownNameError("'methods'", method, METHODS, "Use these, or nerm.experiments.from_estimator")
            method = METHODS[method]
        if method.name in {m.name for m in chosen}:
            raise InvalidInputError("each of 'methods' must have its own name", repr(method.name), "Rename one")
        chosen.append(method)
    if not chosen:
        raise InvalidInputError("'methods' must name at least one method", "none", "Give methods=('neutral-svm',)")
    for name, grid in (etas or {}).items():
        at = next((k for k, m in enumerate(chosen) if m.name == name), None)
        if at is None:
            raise UnknownNameError("a key of 'etas'", name, [m.name for m in chosen])
        values = [float(v) for v in np.atleast_1d(np.asarray(grid, dtype=float))]
        if not chosen[at].etas or not values or not all(0 <= v < np.inf for v in values):
            raise InvalidInputError(
                "'etas' must hold a nonempty list of weights, at least 0, for a method that takes them",
                f"{values} for {name!r}",
                "Give etas={'neutral-svm': [0, 1]}, for instance",
            )
        chosen[at] = replace(chosen[at], etas=tuple(sorted(set(values))))
    return chosen
