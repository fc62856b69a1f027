"""Methods that can be compared, those of the paper among them, and functions that create new ones.

`Method` describes a method: ``method.fit(fold, lam, grid)`` yields one `Fit` per setting of its grid, for the
rows of one `Fold`. `METHODS` has the methods that `tradeoff` compares over neutrality weights.
"""

import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import nerm
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.experiments.running import by_name, reason_of
from nerm.typing import Array, Floats, Matrix
from nerm.validation import check_known


def decades(steps: Sequence[int], first: int, last: int) -> tuple[float, ...]:
    """Return all step * 10^k for k = first, ..., last, sorted by k.

    >>> decades((1, 3), -1, 0)
    (0.1, 0.3, 1.0, 3.0)
    """
    return tuple(float(f"{step}e{k}") for k in range(first, last + 1) for step in steps)


#: 0, 0.01, 0.05, 0.1, ..., 100: the paper's weights for the neutral SVM and PR (table 2).
ETAS = (0.0, *decades((1, 5), -2, 2)[:-1])
#: 0, 5e-5, 1e-4, 5e-4, ..., 0.5: the paper's values of eta for eta-LR.
ETA_BOUNDS = (0.0, *decades((1, 5), -5, -1)[1:])
#: Attributes of `Method` that are columns of the result tables.
FACTS = ("sees_group", "randomised", "level")


@dataclass(frozen=True, eq=False)
class Fold:
    """The training rows of one fold, and its test rows without their labels, which no method may use.

    Attributes
    ----------
    X, X_test
        Training rows, (n, d), and test rows, (m, d), in the method's coding.
    y, viewpoint
        Labels and viewpoints of the training rows, (n,), in -1/+1.
    viewpoint_test
        Viewpoints of the test rows, (m,).
    seed
        Random seed, for a method that draws random numbers.

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
    """The result of fitting a method at one setting; a failed fit has no scores but a reason.

    Attributes
    ----------
    scores
        Scores of the test rows, (m,), or None if the fit failed.
    seconds
        Time of the fit.
    reason
        Why there are no scores, or the message of a solver that stopped early.
    status
        "ok", "not converged" or "failed"; in the experiment `levels` also "collapsed" or "not reached".

    >>> import numpy as np
    >>> from nerm.experiments import METHODS
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> fold = Fold(np.zeros((4, 1)), y, y, np.zeros((2, 1)), np.array([-1.0, 1.0]), seed=0)
    >>> (fit,) = METHODS["lr"].fit(fold, -1.0, ())
    >>> fit.scores is None, fit.status, fit.reason.split(":")[0]
    (True, 'failed', 'InvalidParameterError')

    """

    scores: Floats | None
    seconds: float
    reason: str = ""
    status: str = "ok"

    @classmethod
    def of(cls, solution: Any, X: Matrix) -> Self:
        """Return the fit of a `Solution`, with its scores of the rows X."""
        stats, optimal = solution.stats, solution.status.success
        reason = "" if optimal else f"certified relative gap {solution.certificate.relative_gap:.1e}"
        seconds = stats.build_seconds + stats.solve_seconds + stats.certify_seconds
        return cls(solution.decision_function(X), seconds, reason, "ok" if optimal else "not converged")


FitGrid = Callable[[Fold, float, Sequence[float]], Iterator[Fit]]


@dataclass(frozen=True, eq=False)
class Method:
    """A method: its name, the coding of its rows, its grid of settings, and the function that fits it.

    Attributes
    ----------
    name, label
        The name of the method in tables, and its name in figures.
    coding
        Coding of the rows that the method takes: "one-hot" or "nominal".
    etas
        The grid of neutrality weights or limits; empty if the method has none.
    tuning
        Name of the family of methods that share one tuned lambda; None if the method has no lambda. It is
        tuned with the method of this name in `METHODS` (else with this method), at eta = 0.
    fit
        ``fit(fold, lam, etas)`` yields one `Fit` per eta, or a single one if the method has no eta.
    details
        Text that distinguishes methods of the same name; part of an experiment's settings.
    sees_group, randomised
        Whether predictions use the viewpoint, and whether they are random.
    level
        How the method meets a limit on measured neutrality: "asked" (the level is a parameter),
        "grid" (a search over its weights), or "none" (the method cannot meet a given limit).

    >>> import numpy as np
    >>> from nerm.experiments import METHODS
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
    details: str = ""
    sees_group: bool = False
    randomised: bool = False
    level: str = "grid"


def fit_and_score(model: Any, fold: Fold) -> Fit:
    """Fit a scikit-learn classifier and score the test rows; return the `Fit`.

    The text of an error or of warnings becomes the `reason` of the fit. The viewpoint is passed to those
    methods of the classifier that have a parameter `viewpoint`.
    """
    base, started = nerm.baselines.base, time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(fold.X, fold.y, **base.viewpoint_for(model.fit, fold.viewpoint))
            scores = base.scores_of(model, fold.X_test, fold.viewpoint_test)
        except Exception as error:
            return Fit(None, time.perf_counter() - started, reason_of(error), "failed")
    messages = dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught)
    early = any(message.startswith("ConvergenceWarning") for message in messages)
    seconds = time.perf_counter() - started
    return Fit(scores, seconds, "; ".join(messages), "not converged" if early else "ok")


def from_objective(
    name: str,
    objective: Callable[[float], Any],
    etas: Sequence[float] = ETAS,
    *,
    label: str = "",
    tuning: str | None = None,
    kernel: Any = None,
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
    options
        Passed to ``Problem.path``: ``solver``, ``tol``.

    >>> import nerm
    >>> terms = nerm.Risk(nerm.Logistic()) + nerm.Neutrality(nerm.Hinge())
    >>> mine = from_objective("mine", lambda lam: terms + lam * nerm.L1(), [0, 1])
    >>> mine.etas
    (0.0, 1.0)

    """

    def fit(fold: Fold, lam: float, values: Sequence[float]) -> Iterator[Fit]:
        problem = objective(lam / len(fold.y)).on(fold.X, fold.y, viewpoint=fold.viewpoint, kernel=kernel)
        return (Fit.of(solution, fold.X_test) for solution in problem.path(list(values) or [0.0], **options))

    return Method(name, label or name, "one-hot", tuple(map(float, etas)), tuning, fit)


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

    kind = f"{type(estimator).__module__}.{type(estimator).__qualname__}"
    details = re.sub(r" at 0x[0-9a-f]+", "", f"{kind} {known!r}")  # addresses differ from run to run
    facts = {fact: getattr(estimator, fact) for fact in FACTS if hasattr(estimator, fact)}
    fit = refitted(lambda lam: clone(estimator), eta)
    return Method(name, name, coding, tuple(map(float, etas)), None, fit, details=details, **facts)


def refitted(make: Callable[[float], Any], eta: str | None = None) -> FitGrid:
    """Return a function ``fit`` of a `Method`, which fits one classifier for all weights.

    ``make(lam)`` returns the classifier of scikit-learn, unfitted; `eta` is the name of its parameter for the
    neutrality weight. With ``warm_start=True`` each fit starts from the fit for the previous weight.
    """

    def fit(fold: Fold, lam: float, values: Sequence[float]) -> Iterator[Fit]:
        model = make(lam)
        seed = {"random_state": fold.seed} if "random_state" in model.get_params() else {}
        for weight in [{eta: value} for value in values if eta] or [{}]:
            yield fit_and_score(model.set_params(**seed, **weight), fold)

    return fit


def neutral_svm(weights: str = "uniform") -> Method:
    """Return the paper's neutral SVM.

    `weights` are the row weights of the neutrality term.
    """

    def objective(lam: float) -> Any:
        neutrality = nerm.Neutrality(nerm.Hinge(), weights=weights)
        return nerm.Risk(nerm.Hinge()) + lam * nerm.SquaredL2() + 1.0 * neutrality

    return from_objective("neutral-svm", objective, label="neutral SVM", tuning="svm")


def plain_lr(lam: float) -> Any:
    """Return an unfitted scikit-learn logistic regression; lam is in sum form, C = 1/lam."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1.0 / lam, solver="newton-cholesky", max_iter=500)


remover = refitted(lambda lam: nerm.baselines.PrejudiceRemover(lam=lam, warm_start=True), "eta")
eta_lr = refitted(lambda lam: nerm.baselines.EtaNeutralLogisticRegression(lam=lam), "eta")
naive_bayes = refitted(lambda lam: nerm.baselines.CV2NB())
_METHODS = [
    neutral_svm(),
    Method("cv2nb", "CV2NB", "nominal", (), None, naive_bayes, sees_group=True, level="asked"),
    Method("pr", "PR", "one-hot", ETAS, "pr", remover, sees_group=True),
    Method("eta-lr", "η-LR", "one-hot", ETA_BOUNDS, "lr", eta_lr),
    replace(neutral_svm(), name="svm", label="plain SVM", etas=(), level="none"),
    Method("lr", "plain LR", "one-hot", (), "lr", refitted(plain_lr), level="none"),
]
#: The paper's methods by name: neutral-svm, cv2nb, pr, eta-lr, and plain svm and lr to compare them with.
METHODS = {method.name: method for method in _METHODS}


def resolve(methods: str | Method | Sequence[str | Method], known: Mapping[str, Method]) -> dict[str, Method]:
    """Return `Method` objects by name.

    `methods` are such objects, or names in `known`.
    """
    given = []
    for method in [methods] if isinstance(methods, str | Method) else methods:
        if not isinstance(method, Method):
            check_known(method, "'methods'", known, "Use these, or nerm.experiments.from_estimator")
            method = known[method]
        given.append(method)
    return by_name(given, "methods")
