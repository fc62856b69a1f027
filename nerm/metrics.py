"""Measures of quality and of neutrality as plain functions of scores, and their registry.

Scores f, viewpoints v, labels y and sample weights are (n,) arrays. The prediction is +1 if the score is
positive, else -1. A viewpoint of two different values (numbers, booleans, strings) is two groups, and the
larger value is +1, as everywhere in nerm (`nerm.viewpoint`); of a real-valued viewpoint the sign counts, with
0 as -1. Sample weights count as multiplicities: a row of weight 2 is two rows.

C_sgn (:func:`neutrality_risk`) is the paper's measure. It is *uncentred*: it need not be 0 if predictions and
viewpoint are independent. Compare it with demographic parity (:func:`calders_verwer_score`) and mutual
information (:func:`normalized_prejudice_index`); :func:`report` shows all of them.

To add a measure, write a function whose arguments are some of `y`, `scores`, `viewpoint` and `sample_weight`,
and decorate it with ``@measure(note)``. The decorator adds a `Metric` to `METRICS`, which the report, the
scorers, `Problem.neutralize`, the classifiers and the command line read.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy.special import entr, rel_entr

from nerm import weights as neutrality_weights
from nerm.errors import InvalidInputError
from nerm.signs import sign
from nerm.typing import Bools, Floats
from nerm.validation import as_labels, as_scores, as_weights, check_known
from nerm.viewpoint import as_numbers, as_sides

__all__ = ["METRICS", "Metric", "Report", "make_neutrality_scorer", "relaxed_neutrality_risk", "report"]

_Function = TypeVar("_Function", bound=Callable[..., float])


@dataclass(frozen=True)
class Metric:
    """A measure of quality or neutrality: a function and its properties.

    For neutrality weights u of mean 1 the *weighted agreement* is ``(1/n) sum_i u_i sign f_i sign v_i``. It
    equals C_sgn (up to its sign) for uniform weights, the Calders-Verwer score for balanced weights, the
    difference of true positive rates for equal-opportunity weights, and the difference of false positive
    rates for predictive-equality weights.

    Attributes
    ----------
    name : str
        The name of the measure, which is the name of the function.
    function : callable
        A function whose arguments are some of y, scores, viewpoint and sample_weight.
    note : str
        The definition in one line.
    weights : tuple of str or array
        The neutrality weights of the one-sided neutrality terms that can change the measure. Each gives one
        signed part (see `parts`). Empty if no neutrality term changes the measure.
    option : str
        The name on the command line.
    words : str
        The name in a report for lay readers.
    best : float
        The value of a perfect or perfectly neutral model.
    is_agreement : bool
        Whether the parts are weighted agreements, for which Hoeffding's inequality gives a bound. Otherwise
        the weighted agreement gives only the sign of the measure.
    is_custom : bool
        Whether the function was given by the user, as ``(y, scores, viewpoint) -> signed float``.

    >>> METRICS["calders_verwer_score"].option, METRICS["calders_verwer_score"].best
    ('parity', 0.0)

    """

    name: str
    function: Callable[..., float]
    note: str = ""
    weights: tuple[Any, ...] = ()
    option: str = ""
    words: str = ""
    best: float = 0.0
    is_agreement: bool = True
    is_custom: bool = False

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the arguments of the function."""
        return tuple(inspect.signature(self.function).parameters)

    @property
    def needs_y(self) -> bool:
        """Whether the labels y are an argument of the function."""
        return "y" in self.arguments

    def value(self, **given: Any) -> float:
        """Return the value of the measure.

        Pass y, scores, viewpoint and sample_weight by name. Those that the function does not take are unused.
        """
        return self.function(**{name: given[name] for name in self.arguments})

    def parts(self, y: Floats, scores: Floats, viewpoint: Floats, sample_weight: Floats) -> list[float]:
        """Return the signed parts of the measure, one per entry of `weights`; all arguments are (n,).

        A part is positive if the predictions tend to agree with the viewpoint. The measure is the part with
        the largest absolute value. A custom measure has one part, its value.
        """
        if self.is_custom:
            value = float(self.function(y, scores, viewpoint))
            if not np.isfinite(value):
                must = f"the measure {self.name!r} must return a finite number"
                raise InvalidInputError(must, f"{value:g}", "Check it on these scores")
            return [value]
        v = sign(viewpoint)
        signed = [_agreement(name, y, scores, v, sample_weight) for name in self.weights]
        if self.is_agreement:
            return signed
        size = self.value(y=y, scores=scores, viewpoint=v, sample_weight=sample_weight)
        return [float(np.copysign(size, signed[0]))]


#: Every measure by name, in the order of the report.
METRICS: dict[str, Metric] = {}


def limitable() -> dict[str, Metric]:
    """Return the measures that `Problem.neutralize` can limit, by name.

    These are the measures that some neutrality term can change.
    """
    return {name: metric for name, metric in METRICS.items() if metric.weights}


def as_metric(measure: Any) -> Metric:
    """Return the `Metric` for a name or a callable; by name, only measures that can be limited.

    >>> as_metric("equalized_odds_difference").weights
    ('equal_opportunity', 'predictive_equality')
    """
    if isinstance(measure, Metric):
        return measure
    if callable(measure):
        name = getattr(measure, "__name__", repr(measure))
        return Metric(name, measure, weights=("balanced",), words=name, is_agreement=False, is_custom=True)
    if not isinstance(measure, str):
        must = "'measure' must be the name of a measure or a function (y, scores, viewpoint) -> signed float"
        raise InvalidInputError(must, repr(measure), "Pass 'calders_verwer_score', for instance")
    check_known(measure, "'measure'", limitable(), "Use one of these names, or a function")
    return METRICS[measure]


def moved_by(weights: str) -> Metric:
    """Return the measure that a neutrality term with these named weights reduces.

    >>> moved_by("predictive_equality").name
    'predictive_equality_difference'
    """
    found = {metric.weights[0]: metric for metric in reversed(METRICS.values()) if len(metric.weights) == 1}
    check_known(weights, "'weights'", found)
    return found[weights]


def _agreement(weights: Any, y: Floats | None, scores: Floats, v: Floats, s: Floats) -> float:
    """Return the weighted agreement (1/n) sum_i u_i sign f_i v_i for v of -1 and +1.

    The row weights are s. Except for uniform weights it is computed as the difference of the positive rates
    of both groups, so that it is exactly 0 if the rates are equal.
    """
    u = neutrality_weights.resolve(weights, y, v, s)
    if isinstance(weights, str) and weights == "uniform":
        return float(s @ (sign(scores) * v) / s.sum())
    groups = [(u > 0) & (v == side) for side in (1, -1)]
    one, other = (s[group & (scores > 0)].sum() / s[group].sum() for group in groups)
    return float(one - other)


def measure(note: str, *weights: str, **properties: Any) -> Callable[[_Function], _Function]:
    """Return a decorator that registers a function as a measure.

    `note`, `weights` and the `properties` are attributes of `Metric`. By default `option` is the function's
    name with hyphens, and `words` is the note. A function whose name has no leading underscore also becomes
    public.
    """

    def register(function: _Function) -> _Function:
        name = function.__name__.removeprefix("_")
        defaults = {"option": name.replace("_", "-"), "words": note}
        METRICS[name] = Metric(name, function, note, weights, **(defaults | properties))
        if name == function.__name__:
            __all__.append(name)
        return function

    return register


@measure("", words="accuracy", best=1.0)
def _accuracy(y: Any, scores: Any, sample_weight: Any = None) -> float:
    """Return the weighted share of rows whose label is predicted correctly."""
    f, w = _scored(scores, sample_weight)
    return float(w @ (sign(f) == _labels(y, len(f))) / w.sum())


@measure("", words="AUC", best=1.0)
def auc(y: Any, scores: Any, sample_weight: Any = None) -> float:
    """Return the area under the ROC curve.

    This is the weighted share of pairs of a positive and a negative row in which the positive row has the
    larger score. A tie counts one half. All arguments are (n,).

    Examples
    --------
    >>> auc([1, 1, -1], [0.5, 2.0, 0.5])
    0.75
    """
    from sklearn.metrics import roc_auc_score

    f, w = _scored(scores, sample_weight)
    labels = _labels(y, len(f))
    if min(w[labels > 0].sum(), w[labels <= 0].sum()) == 0:
        do = "Use data where both are seen"
        raise UndefinedMeasureError("AUC needs rows of both classes", "one class", do)
    return float(roc_auc_score(labels, f, sample_weight=w))


@measure("mutual information of prediction and label", best=1.0)
def normalized_mutual_information(y: Any, scores: Any, sample_weight: Any = None) -> float:
    """Return NMI = I(Y; Yhat) / sqrt(H(Y) H(Yhat)) of the labels Y and the predictions Yhat = sign f.

    I is the mutual information and H the entropy. NMI measures quality on the same scale as
    :func:`normalized_prejudice_index` measures neutrality. The labels are -1 and +1, or any two values (the
    larger is +1). 0/0 counts as 0. All arguments are (n,).

    Examples
    --------
    >>> normalized_mutual_information([1, 1, -1, -1], [0.3, 2.0, -1.0, -0.1])
    1.0
    """
    f, w = _scored(scores, sample_weight)
    return _normalized_information(f > 0, _labels(y, len(f)) > 0, w)


@measure("C_sgn = |mean(sign f sign v)|; uncentred", "uniform", option="c-sgn", words="C_sgn")
def neutrality_risk(scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return `C_sgn = |mean(sign f * sign v)|`, the +1/-1 empirical neutrality risk of the paper.

    This is definition 2 of the paper. It is 0 if f agrees with the viewpoint on exactly half of the rows, and
    1 if it agrees on all rows or on none. All arguments are (n,). With
    :func:`nerm.weights.balanced_weights` as sample weights it equals the absolute Calders-Verwer score, and
    with :func:`nerm.weights.equal_opportunity_weights` the absolute equal-opportunity difference.

    Examples
    --------
    >>> neutrality_risk([2.0, 1.0, -1.0, 3.0], [1, 1, 1, -1])
    0.0
    >>> neutrality_risk([2.0, 1.0, -1.0, 3.0], [1, 1, -1, 1])
    1.0
    """
    f, v, w = _aligned(scores, viewpoint, sample_weight)
    return float(abs(w @ (sign(f) * v)) / w.sum())


@measure("what C_sgn would be under independence")
def _neutrality_risk_if_independent(scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return `|E sign v| |E sign f|`, the value of C_sgn if sign f and sign v were independent."""
    f, v, w = _aligned(scores, viewpoint, sample_weight)
    return float(abs(w @ v) * abs(w @ sign(f)) / w.sum() ** 2)


@measure(
    "P(+1 | v=+1) - P(+1 | v=-1): demographic parity",
    "balanced",
    option="parity",
    words="difference in positive rates",
)
def calders_verwer_score(scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return P(f > 0 given v > 0) - P(f > 0 given v <= 0), in [-1, 1]; it is 0 at demographic parity.

    All arguments are (n,).

    Examples
    --------
    >>> calders_verwer_score([1.0, 1.0, -1.0, 1.0], [1, 1, -1, -1])
    0.5
    """
    return _rate_difference("balanced", None, scores, viewpoint, sample_weight)


@measure(
    "mutual information of prediction and viewpoint",
    "balanced",
    option="npi",
    words="mutual information of decision and group",
    is_agreement=False,
)
def normalized_prejudice_index(scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return NPI = I(Y; V) / sqrt(H(Y) H(V)) with Y = sign f and V = sign v, in [0, 1].

    I is the mutual information and H the entropy of the (weighted) empirical distribution; the base of the
    logarithm cancels. If Y or V is constant, its entropy is 0, and the result is 0. All arguments are (n,).

    Examples
    --------
    >>> normalized_prejudice_index([1.0, 1.0, -1.0, -1.0], [1, 1, -1, -1])
    1.0
    >>> normalized_prejudice_index([1.0, 1.0, 1.0, 1.0], [1, 1, -1, -1])
    0.0
    """
    f, v, w = _aligned(scores, viewpoint, sample_weight)
    return _normalized_information(f > 0, v > 0, w)


@measure(
    "the same difference among y = +1",
    "equal_opportunity",
    option="opportunity",
    words="difference in true positive rates",
)
def equal_opportunity_difference(y: Any, scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return P(f > 0 given v > 0, y = +1) - P(f > 0 given v <= 0, y = +1): signed, in [-1, 1].

    This is the difference of true positive rates between both groups. All arguments are (n,).

    Examples
    --------
    >>> equal_opportunity_difference([1, 1, 1, -1], [1.0, 1.0, -1.0, 1.0], [1, -1, -1, -1])
    0.5
    """
    return _rate_difference("equal_opportunity", y, scores, viewpoint, sample_weight)


@measure(
    "the same difference among y = -1",
    "predictive_equality",
    option="predictive-equality",
    words="difference in false positive rates",
)
def predictive_equality_difference(y: Any, scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return P(f > 0 given v > 0, y = -1) - P(f > 0 given v <= 0, y = -1): signed, in [-1, 1].

    This is the difference of false positive rates between both groups. All arguments are (n,).

    Examples
    --------
    >>> predictive_equality_difference([-1, -1, -1, 1], [1.0, 1.0, -1.0, 1.0], [1, -1, -1, -1])
    0.5
    """
    return _rate_difference("predictive_equality", y, scores, viewpoint, sample_weight)


@measure(
    "worst of the differences among y = +1 and y = -1",
    "equal_opportunity",
    "predictive_equality",
    option="odds",
    words="largest difference in error rates",
)
def equalized_odds_difference(y: Any, scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return the larger of the absolute differences of true positive rates and of false positive rates.

    The differences are between v > 0 and v <= 0; the value is in [0, 1]. All arguments are (n,).

    Examples
    --------
    >>> equalized_odds_difference([1, 1, -1, -1], [1.0, 1.0, 1.0, -1.0], [1, -1, 1, -1])
    1.0
    """
    both = (equal_opportunity_difference, predictive_equality_difference)
    return max(abs(difference(y, scores, viewpoint, sample_weight)) for difference in both)


def relaxed_neutrality_risk(scores: Any, viewpoint: Any, surrogate: Any, sample_weight: Any = None) -> float:
    """Return C_psi = max(C+, C-) with C± = mean(psi(± v f)), the relaxed convex empirical neutrality risk.

    The formula uses the values of the viewpoint, not only its signs. If psi is convex, C_psi >= psi(0) for
    all scores.

    Parameters
    ----------
    scores, viewpoint : array-like of shape (n,)
        Real numbers.
    surrogate : MarginFunction
        psi: a margin function, or any object with a method ``value(margins)``.
    sample_weight : array-like of shape (n,), optional
        Normalised to mean 1.

    Examples
    --------
    >>> from nerm.atoms import Hinge
    >>> relaxed_neutrality_risk([0.5, 0.5, -0.5, 0.5], [1, 1, 1, 1], Hinge())
    1.25
    """
    f, w = _scored(scores, sample_weight)
    v = as_numbers(viewpoint, len(f), w > 0)
    plus, minus = (w @ np.asarray(surrogate.value(side * v * f), dtype=float) for side in (1.0, -1.0))
    return float(max(plus, minus) / w.sum())


class Report(dict[str, float]):
    """A dict of quality and neutrality measures by name; it prints as a table.

    Each measure is also an attribute: ``report.accuracy``. `neutrality_risk_if_independent` is
    `|E sign v| |E sign f|`, the value that C_sgn would have if the predictions, with the same positive rate,
    were independent of the viewpoint. Compare C_sgn with this number, because C_sgn is uncentred.

    Attributes
    ----------
    n : int
        The number of rows.
    measures : dict
        Every measure by name; nan if it is not defined on the data (an empty group, a single class).
    undefined : dict
        For each measure that is not defined, the reason.

    Examples
    --------
    Here predictions and viewpoint are independent, and C_sgn is not 0:

    >>> made = report([1, 1, 1, -1], [1.0, 1.0, 1.0, 1.0], [1, 1, 1, -1])
    >>> made.neutrality_risk, made.neutrality_risk_if_independent, made.calders_verwer_score
    (0.5, 0.5, 0.0)
    >>> made.undefined["equal_opportunity_difference"]
    'some row must have viewpoint -1 and y = +1'
    """

    def __init__(self, n: int, measures: dict[str, float], undefined: dict[str, str] | None = None) -> None:
        super().__init__({"n": n, **measures})
        self.n, self.measures, self.undefined = n, measures, undefined or {}

    def __getattr__(self, name: str) -> float:
        if name not in self:
            raise AttributeError(f"a Report has no measure {name!r}")
        return self[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def as_dict(self) -> dict[str, float]:
        """Return n and the measures as a plain dict, for example for `pandas.Series(report.as_dict())`."""
        return dict(self)

    def __repr__(self) -> str:
        lines = [f"Report on {self.n} rows"]
        for name, value in self.measures.items():
            note = self.undefined.get(name, METRICS[name].note)
            shown = "undefined" if name in self.undefined else f"{value:9.4f}"
            lines.append(f"  {name:<31}{shown:>9}  {note}".rstrip())
        return "\n".join(lines)


def report(y: Any, scores: Any, viewpoint: Any, sample_weight: Any = None) -> Report:
    """Return accuracy, AUC and every neutrality measure of these scores; all arguments are (n,).

    Examples
    --------
    >>> report([1, 1, -1, -1], [0.5, 2.0, -1.0, 0.5], [1, 1, -1, -1])
    Report on 4 rows
      accuracy                          0.7500
      auc                               0.8750
      normalized_mutual_information     0.3456  mutual information of prediction and label
      neutrality_risk                   0.5000  C_sgn = |mean(sign f sign v)|; uncentred
      neutrality_risk_if_independent    0.0000  what C_sgn would be under independence
      calders_verwer_score              0.5000  P(+1 | v=+1) - P(+1 | v=-1): demographic parity
      normalized_prejudice_index        0.3456  mutual information of prediction and viewpoint
      equal_opportunity_difference   undefined  some row must have viewpoint -1 and y = +1
      predictive_equality_difference undefined  some row must have viewpoint +1 and y = -1
      equalized_odds_difference      undefined  some row must have viewpoint -1 and y = +1
    """
    f, v, w = _aligned(scores, viewpoint, sample_weight)
    labels = _labels(y, len(f))
    measures: dict[str, float] = {}
    undefined: dict[str, str] = {}
    for name, metric in METRICS.items():
        try:
            measures[name] = metric.value(y=labels, scores=f, viewpoint=v, sample_weight=w)
        except UndefinedMeasureError as error:
            measures[name], undefined[name] = float("nan"), error.parts[0]
    return Report(len(f), measures, undefined)


def make_neutrality_scorer(
    metric: str | Callable[..., float] = "neutrality_risk", response_method: str = "decision_function"
) -> Any:
    """Return a scikit-learn scorer: minus the absolute value of a neutrality measure.

    The scorer requests the viewpoint by metadata routing, so `GridSearchCV` and `cross_validate` split it
    into folds with the data. To use sample weights too, call
    `set_score_request(viewpoint=True, sample_weight=True)`. A constant prediction is perfectly neutral, so
    use this scorer only together with a scorer for quality.

    Parameters
    ----------
    metric : str or callable
        The name of a measure of this module, or a callable `metric(scores, viewpoint, sample_weight=None)`.
    response_method : {"decision_function", "predict_proba"}
        The method of the estimator that gives the scores. The threshold for a positive prediction is 0 for
        "decision_function", and a probability of 1/2 for "predict_proba".

    Returns
    -------
    callable
        A scorer for the argument ``scoring=`` of scikit-learn.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y, v = np.array([[0.0], [1.0], [2.0], [3.0]]), [-1, -1, 1, 1], [-1, 1, 1, 1]
    >>> scorer = make_neutrality_scorer("calders_verwer_score")
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     round(scorer(LogisticRegression().fit(X, y), X, y, viewpoint=v), 4)
    -0.6667
    """
    if isinstance(metric, str):
        known = [name for name in __all__ if name in METRICS and "viewpoint" in METRICS[name].arguments]
        check_known(metric, "'metric'", known, "Use one of these, or a callable")
    check_known(response_method, "'response_method'", ("decision_function", "predict_proba"))
    import sklearn
    from sklearn.metrics import make_scorer

    options = {"metric": metric, "threshold": 0.0 if response_method == "decision_function" else 0.5}
    scorer = make_scorer(_score, response_method=response_method, greater_is_better=False, **options)
    # set_score_request works only while metadata routing is enabled; the request is kept afterwards.
    with sklearn.config_context(enable_metadata_routing=True):
        return scorer.set_score_request(viewpoint=True)


def _score(
    y: Any, response: Any, *, metric: Any, threshold: float, viewpoint: Any = None, sample_weight: Any = None
) -> float:
    """Return the absolute value of a measure, after `threshold` is subtracted from the response.

    It is a function of the module, not a closure, so that scorers can be pickled for worker processes.
    """
    if viewpoint is None:
        do = "Pass params={'viewpoint': v} to cross_validate, or viewpoint=v to GridSearchCV.fit"
        raise InvalidInputError("a neutrality scorer must be given the viewpoint", "none", do)
    v = as_numbers(viewpoint, np.size(response))
    scores = np.asarray(response, dtype=float) - threshold
    if callable(metric):
        return abs(float(metric(scores, v, sample_weight=sample_weight)))
    return abs(METRICS[metric].value(y=y, scores=scores, viewpoint=v, sample_weight=sample_weight))


class UndefinedMeasureError(InvalidInputError):
    """Raised if a measure is not defined on the data; `report` catches it and shows "undefined"."""


def _scored(scores: Any, sample_weight: Any) -> tuple[Floats, Floats]:
    """Check scores and weights, and return them as vectors, (n,) each."""
    f = as_scores(scores)
    return f, as_weights(sample_weight, len(f), "sample_weight")


def _aligned(scores: Any, viewpoint: Any, sample_weight: Any) -> tuple[Floats, Floats, Floats]:
    """Check scores, viewpoint and weights, and return them, (n,) each; the viewpoint is -1 or +1."""
    f, w = _scored(scores, sample_weight)
    return f, as_sides(viewpoint, len(f), w > 0), w


def _labels(y: Any, n: int) -> Floats:
    """Return labels as -1 and +1, (n,).

    Labels that are already -1 or +1 may all be of one class, which happens in small folds.
    """
    labels = np.asarray(y)
    if labels.dtype.kind in "iuf" and labels.shape == (n,) and np.isin(labels, (-1, 1)).all():
        return labels.astype(float)
    return as_labels(y, n)[0]


def _rate_difference(weights: str, y: Any, scores: Any, viewpoint: Any, sample_weight: Any) -> float:
    """Return the difference of positive rates that `_agreement` computes for these named weights."""
    f, v, w = _aligned(scores, viewpoint, sample_weight)
    labels = None if y is None else _labels(y, len(f))
    try:
        return _agreement(weights, labels, f, v, w)
    except InvalidInputError as error:
        must, got, _ = error.parts
        do = "Use data where both groups are seen, or another measure"
        raise UndefinedMeasureError(must, got, do) from None


def _normalized_information(a: Bools, b: Bools, w: Floats) -> float:
    """Return I(A; B) / sqrt(H(A) H(B)) of two binary variables, 0 when either is constant."""
    joint = np.array([[w[(a == i) & (b == j)].sum() for j in (False, True)] for i in (False, True)]) / w.sum()
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    scale = np.sqrt(entr(rows).sum() * entr(columns).sum())
    if scale == 0:
        return 0.0
    # Clip to [0, 1], because rounding may give a value slightly outside.
    return float(np.clip(rel_entr(joint, np.outer(rows, columns)).sum() / scale, 0.0, 1.0))
