"""The methods that a trade-off compares: each fits a whole grid of neutrality weights on one fold."""

import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from nerm.errors import InvalidInputError, UnknownNameError
from nerm.typing import Array, Floats, Ints, Matrix
from nerm.validation import check_known

#: 0, 0.01, 0.05, 0.1, ..., 100: the paper's weights for the neutral SVM and PR (table 2).
ETAS = (0.0, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0)
#: 0, 5e-5, 1e-4, 5e-4, ..., 0.5: the paper's bounds for eta-LR.
ETA_BOUNDS = (0.0, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5)
FACTS = ("sees_group", "randomised", "level")


@dataclass(frozen=True, eq=False)
class Fold:
    """One fold. The labels of the test rows are not in it: no method can look at them.

    Attributes
    ----------
    X, X_test
        Training rows, (n, d), and test rows, (m, d), in the coding that the method asked for.
    y, viewpoint
        Labels and viewpoints of the training rows, (n,), in -1/+1.
    viewpoint_test
        Viewpoints of the test rows, (m,).
    seed
        For a method that draws.

    >>> from dataclasses import fields
    >>> [field.name for field in fields(Fold)]
    ['X', 'y', 'viewpoint', 'X_test', 'viewpoint_test', 'seed']

    """

    X: Matrix
    y: Array
    viewpoint: Array
    X_test: Matrix
    viewpoint_test: Array
    seed: int


@dataclass(frozen=True, eq=False)
class Fit:
    """What came of one neutrality weight. A failure does not stop an experiment; it becomes a row with its reason.

    Attributes
    ----------
    scores
        Of the test rows, (m,), or None.
    seconds
        What the fit took.
    reason
        Why there are no scores, or what a solver that stopped early said.
    converged
        False for a failure and for a solver that stopped early.
    status
        What tables call it, where "ok" and "not converged" do not say it.

    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> fold = Fold(np.zeros((4, 1)), y, y, np.zeros((2, 1)), np.array([-1.0, 1.0]), seed=0)
    >>> (fit,) = METHODS["lr"].fit(fold, -1.0, ())
    >>> fit.scores is None, fit.converged, fit.reason.split(":")[0]
    (True, False, 'InvalidParameterError')

    """

    scores: Floats | None
    seconds: float
    reason: str = ""
    converged: bool = True
    status: str = ""


FitGrid = Callable[[Fold, float, Sequence[float]], Iterator[Fit]]


@dataclass(frozen=True, eq=False)
class Method:
    """A method: what it is called, what it is given, and how it fits a grid.

    Attributes
    ----------
    name, label
        In tables, and in figures.
    coding
        Of the rows that it is given: "one-hot" or "nominal".
    etas
        Its grid; empty for a method without neutrality weight.
    tuning
        The family that shares one lambda; None for a method without lambda.
    fit
        ``fit(fold, lam, etas)`` yields one `Fit` for each eta, or a single one where there is no eta.
    plain
        The same for the method that is not neutralised (``etas=(0.0,)``), by which lambda is tuned.
    details
        Whatever else tells this method from another of its name; part of an experiment's settings.
    sees_group, randomised, level
        Whether it looks at the viewpoint to predict, whether it draws its predictions, and how a level of
        measured neutrality is had: "asked" for, found by a "grid", or "none".

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
    fit: FitGrid
    plain: FitGrid | None = None
    details: str = ""
    sees_group: bool = False
    randomised: bool = False
    level: str = "grid"


class CodedRows(Protocol):
    """Labelled rows that can be had in a method's coding."""

    @property
    def y(self) -> Array:
        """Labels, (n,), -1/+1."""

    @property
    def viewpoint(self) -> Array:
        """Viewpoints, (n,), -1/+1."""

    def parts(self, coding: str, train: Ints, test: Ints) -> tuple[Matrix, Matrix]:
        """Return training and test rows, coded by what the training rows tell."""


def sweep(
    method: Method, rows: CodedRows, train: Ints, test: Ints, lam: float, seed: int = 0
) -> Iterator[Fit]:
    """Fit a method at all its neutrality weights on some rows and score others: the core of every trade-off.

    Parameters
    ----------
    method
        One of `METHODS`, or made by `from_objective` or `from_estimator`.
    rows
        All rows: an object with ``y``, ``viewpoint`` and ``parts(coding, train, test)``.
    train, test
        Numbers of the rows to fit on and to score.
    lam
        The regularization weight in sum form: lambda, C = 1/lambda; in mean form lambda/n on n training rows.
    seed
        For a method that draws.

    Yields
    ------
    Fit
        One for each of ``method.etas``, or one in all where it has none.

    >>> from nerm.experiments.coded_data import as_coded_data
    >>> (data,) = as_coded_data("diabetes", "all rows", {"one-hot"}, None)
    >>> fits = list(sweep(METHODS["neutral-svm"], data, np.arange(300), np.arange(300, 442), lam=10.0))
    >>> len(fits), fits[0].scores.shape
    (10, (142,))
    """
    X, X_test = rows.parts(method.coding, train, test)
    fold = Fold(X, rows.y[train], rows.viewpoint[train], X_test, rows.viewpoint[test], seed)
    return method.fit(fold, lam, method.etas)


def fit_of(solution: Any, X: Matrix) -> Fit:
    """Return the fit that a certified solution is on these rows."""
    stats, optimal = solution.stats, solution.status.success
    reason = "" if optimal else f"certified relative gap {solution.certificate.relative_gap:.1e}"
    seconds = stats.build_seconds + stats.solve_seconds + stats.certify_seconds
    return Fit(solution.decision_function(X), seconds, reason, optimal)


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
    """Return a method for `tradeoff` made of an objective; all its neutrality weights are solved as one path.

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
    >>> mine = from_objective(
    ...     "mine", lambda lam: nerm.Risk(nerm.Logistic()) + lam * nerm.L1() + nerm.Neutrality(nerm.Hinge()), [0, 1]
    ... )
    >>> mine.etas
    (0.0, 1.0)

    """

    def fit(fold: Fold, lam: float, values: Sequence[float]) -> Iterator[Fit]:
        weight = None if sample_weight is None else sample_weight(fold.y)
        problem = objective(lam / len(fold.y)).on(
            fold.X, fold.y, viewpoint=fold.viewpoint, kernel=kernel, sample_weight=weight
        )
        return (fit_of(solution, fold.X_test) for solution in problem.path(list(values) or [0.0], **options))

    return Method(name, label or name, "one-hot", tuple(map(float, etas)), tuning, fit, fit, details)


def svm_objective(lam: float) -> Any:
    """Return the neutral SVM's objective in mean form."""
    from nerm.atoms import Hinge, SquaredL2
    from nerm.model.objective import Neutrality, Risk

    return Risk(Hinge()) + lam * SquaredL2() + 1.0 * Neutrality(Hinge())


def prejudice_remover(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
    """Fit PR for all etas, each from the weights of the one before: a third of the time of starting from zero."""
    from nerm.baselines import PrejudiceRemover

    model = PrejudiceRemover(lam=lam, warm_start=True)
    for eta in etas:
        yield attempt(model.set_params(eta=eta), fold)


def eta_lr(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
    """Fit eta-neutral logistic regression for all etas."""
    from nerm.baselines import EtaNeutralLogisticRegression

    for eta in etas:
        yield attempt(EtaNeutralLogisticRegression(eta=eta, lam=lam), fold)


def cv2nb(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
    """Fit CV2NB, which has neither lambda nor eta."""
    from nerm.baselines import CV2NB

    yield attempt(CV2NB(), fold)


def logistic_regression(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
    """Fit plain logistic regression."""
    from sklearn.linear_model import LogisticRegression

    yield attempt(LogisticRegression(C=1.0 / lam, solver="newton-cholesky", max_iter=500), fold)


def attempt(model: Any, fold: Fold) -> Fit:
    """Fit a scikit-learn classifier and score the test rows; an error or a warning becomes a reason, never a stop.

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
    said = "; ".join(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught))
    stopped_early = any(w.category.__name__ == "ConvergenceWarning" for w in caught)
    return Fit(scores, time.perf_counter() - started, said, not stopped_early)


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


def from_estimator(
    name: str, estimator: Any, *, eta: str | None = None, etas: Sequence[float] = (), coding: str = "one-hot"
) -> Method:
    """Return a method for `tradeoff` made of a scikit-learn classifier.

    Parameters
    ----------
    name
        What tables and figures call it.
    estimator
        An unfitted classifier for labels -1 and +1. fit and decision_function are given ``viewpoint=`` where
        their signatures have it; a parameter ``random_state`` is set from the fold's seed; ``sees_group``,
        ``randomised`` and ``level`` are read from its attributes, where it has them.
    eta, etas
        The parameter that takes the neutrality weight, and its values.
    coding
        Of the rows that it is given: ``"one-hot"`` (a CSR matrix) or ``"nominal"`` (codes, nan = missing).

    >>> from sklearn.dummy import DummyClassifier
    >>> from_estimator("constant", DummyClassifier(strategy="prior")).coding
    'one-hot'

    """
    from sklearn.base import clone

    check_known(coding, "'coding'", ("one-hot", "nominal"))
    if not hasattr(estimator, "get_params") or not (
        hasattr(estimator, "decision_function") or hasattr(estimator, "predict_proba")
    ):
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

    # Addresses in memory differ from run to run and say nothing.
    details = re.sub(
        r" at 0x[0-9a-f]+", "", f"{type(estimator).__module__}.{type(estimator).__qualname__} {known!r}"
    )
    facts = {fact: getattr(estimator, fact) for fact in FACTS if hasattr(estimator, fact)}
    return Method(name, name, coding, tuple(map(float, etas)), None, fit, details=details, **facts)


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
            raise InvalidInputError(
                "each of 'methods' must have its own name", repr(method.name), "Rename one"
            )
        chosen[method.name] = method
    if not chosen:
        raise InvalidInputError(
            "'methods' must name at least one method", "none", "Give methods=('neutral-svm',)"
        )
    for name, grid in etas.items():
        check_known(name, "a key of 'etas'", chosen)
        values = [float(v) for v in np.atleast_1d(np.asarray(grid, dtype=float))]
        if not chosen[name].etas or not values or not all(0 <= v < np.inf for v in values):
            must = "'etas' must hold a nonempty list of weights, at least 0, for a method that takes them"
            raise InvalidInputError(
                must, f"{values} for {name!r}", "Give etas={'neutral-svm': [0, 1]}, for instance"
            )
        chosen[name] = replace(chosen[name], etas=tuple(sorted(set(values))))
    return list(chosen.values())
