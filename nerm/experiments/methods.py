"""The methods that `tradeoff` compares over neutrality weights, and functions that create new ones."""

import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import nerm
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.experiments.harness import FACTS, Fit, Fold, Method, decades
from nerm.experiments.running import reason_of
from nerm.typing import Array, Matrix
from nerm.validation import as_nonnegative, check_known

#: 0, 0.01, 0.05, 0.1, ..., 100: the paper's weights for the neutral SVM and PR (table 2).
ETAS = (0.0, *decades((1, 5), -2, 2)[:-1])
#: 0, 5e-5, 1e-4, 5e-4, ..., 0.5: the paper's values of eta for eta-LR.
ETA_BOUNDS = (0.0, *decades((1, 5), -5, -1)[1:])


def fit_of(solution: Any, X: Matrix) -> Fit:
    """Return the `Fit` of a solution, with its scores of the rows X."""
    stats, optimal = solution.stats, solution.status.success
    reason = "" if optimal else f"certified relative gap {solution.certificate.relative_gap:.1e}"
    seconds = stats.build_seconds + stats.solve_seconds + stats.certify_seconds
    return Fit(solution.decision_function(X), seconds, reason, "ok" if optimal else "not converged")


def attempt(model: Any, fold: Fold) -> Fit:
    """Fit a scikit-learn classifier and score the test rows; return the `Fit`.

    The text of an error or of warnings becomes its `reason`. The viewpoint is passed to those functions of
    the classifier that have a parameter `viewpoint`.
    """
    from nerm.baselines.base import scores_of, viewpoint_for

    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(fold.X, fold.y, **viewpoint_for(model.fit, fold.viewpoint))
            scores = scores_of(model, fold.X_test, fold.viewpoint_test)
        except Exception as error:
            return Fit(None, time.perf_counter() - started, reason_of(error), "failed")
    messages = dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught)
    stopped_early = any(message.startswith("ConvergenceWarning") for message in messages)
    status = "not converged" if stopped_early else "ok"
    return Fit(scores, time.perf_counter() - started, "; ".join(messages), status)


def from_objective(
    name: str,
    objective: Callable[[float], Any],
    etas: Sequence[float] = ETAS,
    *,
    label: str = "",
    tuning: str | None = None,
    kernel: Any = None,
    sample_weight: Callable[[Array], Array | None] | None = None,
    **options: Any,
) -> Method:
    """Create a method for `tradeoff` from an objective; the neutrality weights are solved as one path.

    Parameters
    ----------
    name, label, tuning
        As in `Method`.
    objective
        A function: ``objective(lam)``, with lam in mean form, returns a `nerm.Objective` with a neutrality
        term.
    etas
        Neutrality weights.
    kernel
        As for ``Objective.on``.
    sample_weight
        A function that takes labels, (n,), and returns row weights, (n,), or None.
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

    return Method(name, label or name, "one-hot", tuple(map(float, etas)), tuning, fit, fit)


def from_estimator(
    name: str, estimator: Any, *, eta: str | None = None, etas: Sequence[float] = (), coding: str = "one-hot"
) -> Method:
    """Create a method for `tradeoff` from a scikit-learn classifier.

    Parameters
    ----------
    name
        Name in tables and figures.
    estimator
        An unfitted classifier for labels -1 and +1. ``viewpoint=`` is passed to fit and decision_function if
        they have this parameter. A parameter ``random_state`` is set from the fold's seed. If the classifier
        has attributes ``sees_group``, ``randomised`` or ``level``, the method takes them over.
    eta, etas
        Name of the classifier's parameter for the neutrality weight, and its values.
    coding
        Coding of the rows: ``"one-hot"`` (a CSR matrix) or ``"nominal"`` (codes, nan = missing).

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


def neutral_svm(weights: str = "uniform") -> Method:
    """Return the paper's neutral SVM; `weights` are the row weights of the neutrality term."""

    def objective(lam: float) -> Any:
        neutrality = nerm.Neutrality(nerm.Hinge(), weights=weights)
        return nerm.Risk(nerm.Hinge()) + lam * nerm.SquaredL2() + 1.0 * neutrality

    return from_objective("neutral-svm", objective, label="neutral SVM", tuning="svm")


def prejudice_remover(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
    """Fit the prejudice remover (PR) for each eta, started from the coefficients for the previous eta."""
    model = nerm.baselines.PrejudiceRemover(lam=lam, warm_start=True)
    return (attempt(model.set_params(eta=eta), fold) for eta in etas)


def eta_lr(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
    """Fit eta-neutral logistic regression for each eta."""
    return (attempt(nerm.baselines.EtaNeutralLogisticRegression(eta, lam), fold) for eta in etas)


def cv2nb(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
    """Fit CV2NB (Calders and Verwer's two naive Bayes models), which has neither lambda nor eta."""
    yield attempt(nerm.baselines.CV2NB(), fold)


def logistic_regression(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
    """Fit logistic regression without neutrality."""
    yield attempt(plain_lr(lam), fold)


def plain_lr(lam: float) -> Any:
    """Return an unfitted scikit-learn logistic regression; lam is in sum form, C = 1/lam."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1.0 / lam, solver="newton-cholesky", max_iter=500)


#: The paper's methods by name: neutral-svm, cv2nb, pr, eta-lr, and plain svm and lr to compare them with.
METHODS = {
    m.name: m
    for m in (
        neutral_svm(),
        Method("cv2nb", "CV2NB", "nominal", (), None, cv2nb, sees_group=True, level="asked"),
        Method("pr", "PR", "one-hot", ETAS, "pr", prejudice_remover, prejudice_remover, sees_group=True),
        Method("eta-lr", "η-LR", "one-hot", ETA_BOUNDS, "lr", eta_lr, logistic_regression),
        replace(neutral_svm(), name="svm", label="plain SVM", etas=(), level="none"),
        Method("lr", "plain LR", "one-hot", (), "lr", logistic_regression, logistic_regression, level="none"),
    )
}


def resolve(
    methods: str | Method | Sequence[str | Method],
    etas: Mapping[str, Sequence[float]],
    known: Mapping[str, Method] = METHODS,
) -> list[Method]:
    """Return the `Method` objects of these names.

    Parameters
    ----------
    methods
        Names in `known`, or `Method` objects.
    etas
        By method name, a grid that replaces the method's own.
    known
        The methods by name.
    """
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
        values = {as_nonnegative(value, "etas") for value in np.atleast_1d(grid).tolist()}
        if not chosen[name].etas or not values:
            must = "'etas' must hold a nonempty list of weights for a method that takes them"
            do = "Give etas={'neutral-svm': [0, 1]}, for instance"
            raise InvalidInputError(must, f"{sorted(values)} for {name!r}", do)
        chosen[name] = replace(chosen[name], etas=tuple(sorted(values)))
    return list(chosen.values())
