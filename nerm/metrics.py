"""Measures of quality and of neutrality as plain functions of scores, and their registry.

Scores f, viewpoints v, labels y and sample weights are (n,) arrays. The prediction is +1 if the score is
positive, else -1. A viewpoint of two different values (numbers, booleans, strings) is two groups, and the
larger value is +1, as everywhere in nerm (`nerm.viewpoint`); of a real-valued viewpoint the sign counts, with
0 as -1. Sample weights count as multiplicities: a row of weight 2 is two rows.

C_sgn (:func:`neutrality_risk`) is the paper's measure. It is *uncentred*: it need not be 0 if predictions and
viewpoint are independent. Compare it with demographic parity (:func:`calders_verwer_score`) and mutual
information (:func:`normalized_prejudice_index`); :func:`report` shows all of them.

To add a measure, write a function whose arguments are some of `y`, `scores`, `viewpoint` and `sample_weight`,
and decorate it with ``@measure(words)``. The decorator adds a `Metric` to `METRICS`, which the report, the
scorers, `Problem.neutralize`, the classifiers and the command line read.
"""

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from scipy.special import entr, rel_entr

from nerm import weights as neutrality_weights
from nerm.errors import InvalidInputError, NotNeutralError, UndefinedMeasureError
from nerm.signs import sign
from nerm.typing import Bools, Floats, Ints
from nerm.validation import (
    as_finite,
    as_labels,
    as_nonnegative,
    as_scores,
    as_values,
    as_weights,
    check_known,
    distinct,
)
from nerm.viewpoint import as_numbers, as_sides

__all__ = [
    "METRICS",
    "SCORE_METRICS",
    "Metric",
    "Report",
    "best_threshold",
    "correlation",
    "ks_distance",
    "make_neutrality_scorer",
    "mean_difference",
    "relaxed_neutrality_risk",
    "report",
]

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
    words : str
        The name in sentences and in reports for lay readers.
    weights : tuple of str or array
        The neutrality weights of the one-sided neutrality terms that can change the measure. Each gives one
        signed part (see `parts`). Empty if no neutrality term changes the measure.
    option : str
        The name on the command line.
    best : float
        The value of a perfect or perfectly neutral model.
    is_agreement : bool
        Whether the parts are weighted agreements, for which Hoeffding's inequality gives a bound. Otherwise
        the weighted agreement gives only the sign of the measure.
    is_custom : bool
        Whether the function was given by the user, as ``(y, scores, viewpoint) -> signed float``.
    limits : tuple of (Metric, float)
        For several measures at once (`combined`): the measures and their limits.

    >>> METRICS["calders_verwer_score"].option, METRICS["calders_verwer_score"].best
    ('parity', 0.0)

    """

    name: str
    function: Callable[..., float]
    words: str = ""
    weights: tuple[Any, ...] = ()
    option: str = ""
    best: float = 0.0
    is_agreement: bool = True
    is_custom: bool = False
    limits: tuple[tuple["Metric", float], ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the arguments of the function."""
        return tuple(inspect.signature(self.function).parameters)

    def value(self, **given: Any) -> float:
        """Return the value of the measure.

        Pass y, scores, viewpoint and sample_weight by name. Those that the function does not take are unused.
        """
        return self.function(**{name: given[name] for name in self.arguments})

    def parts(self, y: Floats, scores: Floats, viewpoint: Floats, sample_weight: Floats) -> list[float]:
        """Return the signed parts of the measure, one per entry of `weights`; all arguments are (n,).

        A part is positive if the predictions tend to agree with the viewpoint. The distance of the measure
        from its `best` value is the largest absolute value of a part. A custom measure has one part, its
        value.
        """
        if self.is_custom:
            do = "Let your function return a number"
            return [as_finite(self.function(y, scores, viewpoint), f"{self.name}(y, scores, viewpoint)", do)]
        v = sign(viewpoint)
        signed = [agreement(name, y, scores, v, sample_weight) for name in self.weights]
        if self.is_agreement:
            return signed
        given = {"y": y, "scores": sign(scores), "viewpoint": v, "sample_weight": sample_weight}
        size = abs(self.value(**given) - self.best)
        return [float(np.copysign(size, signed[0]))]

    def allowance(self, limit: float) -> float:
        """Return the largest distance from `best` that a limit allows; raise an error if it is not valid.

        >>> METRICS["calders_verwer_score"].allowance(0.02), METRICS["selection_rate_ratio"].allowance(0.75)
        (0.02, 0.25)
        """
        distance = abs(as_nonnegative(limit, "limit") - self.best)
        if self.best and limit > self.best:
            must = f"a limit of {self.name} must be between 0 and {self.best:g}"
            raise InvalidInputError(must, f"{limit:g}", "Pass 0.8, for instance: the smallest allowed value")
        return distance

    def apart(self, high: float, low: float) -> float:
        """Return the distance from `best` of a measure that compares two rates, high and low."""
        return 1.0 - low / high if self.best and high > 0 else high - low

    def measured(self, parts: Sequence[float] | Floats) -> float:
        """Return the value of the measure, given its parts; with its sign if it has a single part."""
        largest = float(max(parts, key=abs))
        if self.best:
            return self.best - abs(largest)
        return largest if len(parts) == 1 else abs(largest)

    def condition(self, limit: float) -> str:
        """Return the condition that a limit states, as text.

        >>> METRICS["selection_rate_ratio"].condition(0.8)
        'selection_rate_ratio >= 0.8'
        """
        if self.limits:
            return " and ".join(metric.condition(most) for metric, most in self.limits)
        return f"{self.name} >= {limit:g}" if self.best else f"|{self.name}| <= {limit:g}"


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
        return Metric(name, measure, name, ("balanced",), is_agreement=False, is_custom=True)
    if not isinstance(measure, str):
        must = "'measure' must be the name of a measure or a function (y, scores, viewpoint) -> signed float"
        raise InvalidInputError(must, repr(measure), "Pass 'calders_verwer_score', for instance")
    check_known(measure, "'measure'", limitable(), "Use one of these names, or a function")
    return METRICS[measure]


def combined(limits: Mapping[str, float]) -> Metric:
    """Return one measure for several limits: the largest ratio of a distance to its limit.

    The distance of a measure is that from its best value. The limit of the returned measure is 1. The
    measures must be functions of the positive rates by label and group.

    >>> both = combined({"calders_verwer_score": 0.05, "equal_opportunity_difference": 0.1})
    >>> both.condition(1.0)
    '|calders_verwer_score| <= 0.05 and |equal_opportunity_difference| <= 0.1'
    """
    parts = [(as_metric(name), limit) for name, limit in limits.items()]
    wrong = [m.name for m, limit in parts if not (m.is_agreement or m.best) or not m.allowance(limit)]
    if wrong or not parts:
        must = "with several limits, each must allow a positive distance of a measure made of rates"
        do = "Limit a difference of rates to 0.02, for instance, or a ratio to 0.8"
        raise InvalidInputError(must, f"{wrong[0]!r}" if wrong else "none", do)

    def largest_share(y: Any, scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
        given = {"y": y, "scores": scores, "viewpoint": viewpoint, "sample_weight": sample_weight}
        return max(
            abs(metric.value(**given) - metric.best) / metric.allowance(limit) for metric, limit in parts
        )

    weights = tuple(dict.fromkeys(name for metric, _ in parts for name in metric.weights))
    name = " and ".join(metric.name for metric, _ in parts)
    return Metric(name, largest_share, name, weights, limits=tuple(parts))


def moved_by(weights: str) -> Metric:
    """Return the measure that a neutrality term with these named weights reduces.

    >>> moved_by("predictive_equality").name
    'predictive_equality_difference'
    """
    found = {metric.weights[0]: metric for metric in reversed(METRICS.values()) if len(metric.weights) == 1}
    check_known(weights, "'weights'", found)
    return found[weights]


def agreement(weights: Any, y: Floats | None, scores: Floats, v: Floats, s: Floats) -> float:
    """Return the weighted agreement (1/n) sum_i u_i sign f_i v_i for v of -1 and +1.

    The row weights are s. For named weights other than "uniform" it is computed as the difference of the
    positive rates of both groups, so that it is exactly 0 if the rates are equal.
    """
    u = neutrality_weights.resolve(weights, y, v, s)
    if not isinstance(weights, str) or weights == "uniform":
        return float((s * u) @ (sign(scores) * v) / s.sum())
    groups = [(u > 0) & (v == side) for side in (1, -1)]
    one, other = (s[group & (scores > 0)].sum() / s[group].sum() for group in groups)
    return float(one - other)


def measure(words: str, *weights: str, **properties: Any) -> Callable[[_Function], _Function]:
    """Return a decorator that registers a function as a measure.

    `words`, `weights` and the `properties` are attributes of `Metric`. By default `option` is the function's
    name with hyphens. A function whose name has no leading underscore also becomes public.
    """

    def register(function: _Function) -> _Function:
        name = function.__name__.removeprefix("_")
        METRICS[name] = Metric(
            name, function, words, weights, **{"option": name.replace("_", "-")} | properties
        )
        if name == function.__name__:
            __all__.append(name)
        return function

    return register


@measure("accuracy", best=1.0)
def _accuracy(y: Any, scores: Any, sample_weight: Any = None) -> float:
    """Return the weighted share of rows whose label is predicted correctly."""
    f, w = _scored(scores, sample_weight)
    return float(w @ (sign(f) == _labels(y, len(f))) / w.sum())


@measure("AUC", best=1.0)
def auc(y: Any, scores: Any, sample_weight: Any = None) -> float:
    """Return the area under the ROC curve.

    This is the weighted share of pairs of a positive and a negative row in which the positive row has the
    larger score. A tie counts one half. All arguments are (n,).

    Examples
    --------
    >>> auc([1, 1, -1], [0.5, 2.0, 0.5])
    0.75
    """
    f, w = _scored(scores, sample_weight, decide=False)
    labels = _labels(y, len(f))
    if min(w[labels > 0].sum(), w[labels <= 0].sum()) == 0:
        do = "Add rows of the other class"
        raise UndefinedMeasureError("AUC needs rows of both classes", "one class", do)
    values, places = np.unique(f, return_inverse=True)
    plus, minus = (np.bincount(places, w * (side * labels > 0), len(values)) for side in (1, -1))
    return float(plus @ (np.cumsum(minus) - 0.5 * minus) / (plus.sum() * minus.sum()))


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


@measure("C_sgn", "uniform", option="c-sgn")
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


@measure("difference in positive rates", "balanced", option="parity")
def calders_verwer_score(scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return P(f > 0 given v > 0) - P(f > 0 given v <= 0), in [-1, 1]; it is 0 at demographic parity.

    All arguments are (n,).

    Examples
    --------
    >>> calders_verwer_score([1.0, 1.0, -1.0, 1.0], [1, 1, -1, -1])
    0.5
    """
    return _rate_difference("balanced", None, scores, viewpoint, sample_weight)


@measure("ratio of positive rates", "balanced", option="rate-ratio", best=1.0, is_agreement=False)
def selection_rate_ratio(scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return the lowest positive rate of a group divided by the highest, in [0, 1].

    The four-fifths rule asks for at least 0.8. The viewpoint may have any number of groups (strings or
    integers). If no row is predicted positive, 0/0 counts as 1. All arguments are (n,).

    Examples
    --------
    >>> selection_rate_ratio([1.0, 1.0, 1.0, -1.0, 1.0, 1.0], ["a", "a", "b", "b", "c", "c"])
    0.5
    """
    f, w = _scored(scores, sample_weight)
    groups = group_codes(viewpoint, len(f), w)
    rates = np.bincount(groups, w * (f > 0)) / np.bincount(groups, w)
    return float(rates.min() / rates.max()) if rates.max() > 0 else 1.0


@measure("mutual information of decision and group", "balanced", option="npi", is_agreement=False)
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


@measure("difference in true positive rates", "equal_opportunity", option="opportunity")
def equal_opportunity_difference(y: Any, scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return P(f > 0 given v > 0, y = +1) - P(f > 0 given v <= 0, y = +1): signed, in [-1, 1].

    This is the difference of true positive rates between both groups. All arguments are (n,).

    Examples
    --------
    >>> equal_opportunity_difference([1, 1, 1, -1], [1.0, 1.0, -1.0, 1.0], [1, -1, -1, -1])
    0.5
    """
    return _rate_difference("equal_opportunity", y, scores, viewpoint, sample_weight)


@measure("difference in false positive rates", "predictive_equality", option="predictive-equality")
def predictive_equality_difference(y: Any, scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return P(f > 0 given v > 0, y = -1) - P(f > 0 given v <= 0, y = -1): signed, in [-1, 1].

    This is the difference of false positive rates between both groups. All arguments are (n,).

    Examples
    --------
    >>> predictive_equality_difference([-1, -1, -1, 1], [1.0, 1.0, -1.0, 1.0], [1, -1, -1, -1])
    0.5
    """
    return _rate_difference("predictive_equality", y, scores, viewpoint, sample_weight)


@measure("largest difference in error rates", "equal_opportunity", "predictive_equality", option="odds")
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


def mean_difference(scores: Any, viewpoint: Any, sample_weight: Any = None, quantiles: Any = None) -> float:
    """Return the difference of the mean scores of two groups, mean(f | v = +1) - mean(f | v = -1).

    Of more groups it is the largest absolute difference between two of them. All arguments are (n,).

    Parameters
    ----------
    scores, viewpoint, sample_weight : (n,) arrays
        The scores, the groups (or numbers, with `quantiles`), and the weights of the rows.
    quantiles : int or sequence of float, optional
        The number of equally large groups of a real-valued viewpoint, or the levels that separate them.

    Examples
    --------
    >>> mean_difference([1.0, 2.0, 4.0, 5.0], ["a", "a", "b", "b"])
    3.0
    >>> mean_difference([1.0, 2.0, 4.0, 9.0], [0.1, 0.2, 0.3, 0.4], quantiles=2)
    5.0
    """
    f, codes, w = _in_groups(scores, viewpoint, sample_weight, quantiles)
    means = np.bincount(codes, w * f) / np.bincount(codes, w)
    return float(means[1] - means[0] if len(means) == 2 else np.ptp(means))


def correlation(scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return the correlation of the scores with the viewpoint, in [-1, 1]; 0 for constant scores.

    A viewpoint of two groups is coded as -1 and +1. All arguments are (n,).

    Examples
    --------
    >>> round(correlation([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]), 6)
    0.8
    """
    f, w = _scored(scores, sample_weight, decide=False)
    v = as_numbers(viewpoint, len(f), w > 0)
    f, v = (x - np.average(x, weights=w) for x in (f, v))
    size = np.sqrt((w @ f**2) * (w @ v**2))
    return float(w @ (f * v) / size) if size > 0 else 0.0


def ks_distance(scores: Any, viewpoint: Any, sample_weight: Any = None, quantiles: Any = None) -> float:
    """Return the largest gap between the distribution functions of the scores of two groups.

    This is the two-sample statistic of Kolmogorov and Smirnov, in [0, 1]; of more groups, the largest over
    all pairs. The parameters are those of `mean_difference`.

    Examples
    --------
    >>> ks_distance([1.0, 2.0, 3.0, 4.0], [-1, 1, -1, 1])
    0.5
    """
    f, codes, w = _in_groups(scores, viewpoint, sample_weight, quantiles)
    _, place = np.unique(f, return_inverse=True)
    counts = np.zeros((codes.max() + 1, place.max() + 1))
    np.add.at(counts, (codes, place), w)
    below = counts.cumsum(axis=1) / counts.sum(axis=1, keepdims=True)
    return float(np.ptp(below, axis=0).max())


#: The measures of real scores, by name: the neutrality of a regression, whose decision is the score itself.
SCORE_METRICS = {function.__name__: function for function in (mean_difference, correlation, ks_distance)}


def _in_groups(
    scores: Any, viewpoint: Any, sample_weight: Any, quantiles: Any
) -> tuple[Floats, Ints, Floats]:
    """Return the scores, the group of each row and the weights, of the rows of positive weight."""
    f, w = _scored(scores, sample_weight, decide=False)
    if quantiles is None:
        values = as_values(viewpoint, len(f), "viewpoint")
        if values.dtype.kind == "f" and len(distinct(values[w > 0], "viewpoint")) > 2:
            must = "a viewpoint of real numbers must come with the quantiles that separate its groups"
            raise UndefinedMeasureError(must, "none", "Pass quantiles=4, for instance, or use correlation")
        codes = group_codes(viewpoint, len(f), w)
    else:
        codes = quantile_codes(as_numbers(viewpoint, len(f)), quantiles, w)
    if codes[w > 0].max(initial=0) < 1:
        raise UndefinedMeasureError("rows must be of two or more groups", "one", "Add rows of another group")
    return f[w > 0], codes[w > 0], w[w > 0]


def quantile_codes(values: Floats, quantiles: Any, weight: Floats) -> Ints:
    """Return the quantile group 0 .. k - 1 of each number, (n,); empty groups are left out.

    >>> quantile_codes(np.array([1.0, 5.0, 2.0, 9.0]), 2, np.ones(4)).tolist()
    [0, 1, 0, 1]
    """
    levels = np.asarray(quantiles, dtype=float)
    if levels.ndim == 0:
        levels = np.arange(1, int(levels)) / max(int(levels), 1)
    if not (len(levels) and ((levels > 0) & (levels < 1)).all() and (np.diff(levels) > 0).all()):
        must = "'quantiles' must be a number of groups above 1, or increasing levels between 0 and 1"
        raise InvalidInputError(must, repr(quantiles), "Pass 4, or [0.25, 0.5, 0.75]")
    edges = np.quantile(values[weight > 0], levels)
    return np.unique(np.searchsorted(edges, values), return_inverse=True)[1]


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
    f, w = _scored(scores, sample_weight, decide=False)
    v = as_numbers(viewpoint, len(f), w > 0)
    plus, minus = (w @ np.asarray(surrogate.value(side * v * f), dtype=float) for side in (1.0, -1.0))
    return float(max(plus, minus) / w.sum())


@dataclass(frozen=True, eq=False)
class Thresholds:
    """The thresholds of given scores that give different predictions, with the measures at each.

    A row is predicted positive if its score exceeds the threshold. There are m thresholds, in decreasing
    order: the first predicts no row positive, the last predicts all rows positive.

    Attributes
    ----------
    thresholds, accuracy : (m,) arrays
        The thresholds, each halfway between two scores, and the accuracy of their predictions.
    parts : (m, number of parts) array
        The parts of the measure (see `Metric.parts`), for each viewpoint.
    rates : (m, number of groups) array
        The positive rates of the groups, for each viewpoint.
    share : (m,) array
        The positive rate of all rows.

    """

    thresholds: Floats
    accuracy: Floats
    parts: Floats
    rates: Floats
    share: Floats

    def at(self, places: Any) -> "Thresholds":
        """Return some of the thresholds, given by their indices."""
        return Thresholds(*(values[places] for values in vars(self).values()))

    @property
    def at_zero(self) -> "Thresholds":
        """The threshold 0 alone, or the closest to it."""
        return self.at([int(np.abs(self.thresholds).argmin())])

    @property
    def distance(self) -> Floats:
        """The distance of the measure from its best value, (m,)."""
        return np.abs(self.parts).max(axis=1)

    def best(self, most: float, among: Bools, least: float = 0.0) -> int | None:
        """Return the index of the most accurate admissible threshold; None if there is none.

        A threshold is admissible if its distance is at least `least` and at most `most`, and if `among`,
        (m,), is True. Of equally accurate thresholds, the one closest to 0 is returned.
        """
        rounding = 8 * np.finfo(float).eps
        distance = self.distance
        found = np.flatnonzero((distance <= most + rounding) & (distance >= least) & among)
        if not len(found):
            return None
        top = found[self.accuracy[found] >= self.accuracy[found].max() - rounding]
        return int(top[np.abs(self.thresholds[top]).argmin()])


def thresholds(
    scores: Floats, y: Floats, groups: Sequence[Ints], metric: Metric, weight: Floats, views: Any = ()
) -> Thresholds:
    """Return the thresholds of the scores, with the measure and the accuracy at each.

    One sweep over the sorted scores computes all of them, in O(n log n) time. Scores that differ by rounding
    only count as equal, because no threshold separates them reliably.

    Parameters
    ----------
    scores, y, weight : (n,) arrays
        The scores, the labels -1 and +1, and the row weights, all positive.
    groups : sequence of (n,) arrays of int
        The group of each row, 0 .. k - 1, for each viewpoint.
    metric : Metric
        The measure. If it is no function of the positive rates by label and group, it is computed at 0 and
        at `SOME_THRESHOLDS` of the thresholds, and the others are left out.
    views : sequence of (n,) arrays
        The viewpoints as numbers, used only by measures of a numeric viewpoint.
    """
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    rounding = 1e-12 * max(abs(ranked[0]), abs(ranked[-1]))
    at = np.concatenate([[0], np.flatnonzero(-np.diff(ranked) > rounding) + 1, [len(ranked)]])
    above, below = np.append(np.inf, ranked[at[1:] - 1]), np.append(ranked[at[:-1]], -np.inf)
    cuts = above / 2 + below / 2
    cuts[0], cuts[-1] = below[0] + 1.0 + abs(below[0]), above[-1] - 1.0 - abs(above[-1])
    cuts[(below <= 0) & (above > 0)] = 0.0  # of the thresholds that predict as 0 does, take 0 itself

    def counted(rows: Floats) -> Floats:
        """Return the sums over the rows that each threshold predicts positive, (m, ...)."""
        sums = np.cumsum(rows[order], axis=0)
        return np.concatenate([np.zeros((1, *sums.shape[1:])), sums])[at]

    parts, rates = [], []
    for codes in groups:
        cells = np.zeros((len(y), codes.max() + 1, 2))
        cells[np.arange(len(y)), codes, (y > 0).astype(int)] = weight
        yes = counted(cells)
        total = yes[-1]
        shares = yes.sum(axis=2) / total.sum(axis=1)
        rates.append(shares)
        if not (metric.is_agreement or metric.best):
            continue
        for one, limit in metric.limits or ((metric, 0.0),):
            allowed = one.allowance(limit) if metric.limits else 1.0
            if one.best:
                highest = shares.max(axis=1)
                ratio = np.divide(shares.min(axis=1), highest, out=np.ones(len(cuts)), where=highest > 0)
                parts.append(np.copysign(1.0 - ratio, shares[:, -1] - shares[:, 0]) / allowed)
            else:
                parts += [_part_of_counts(name, yes, total) / allowed for name in one.weights]
    measured, groupwise = np.column_stack(parts or [cuts]), np.concatenate(rates, axis=1)
    negative, positive = yes.sum(axis=1).T
    accuracy = (positive - negative + negative[-1]) / weight.sum()
    table = Thresholds(cuts, accuracy, measured, groupwise, (positive + negative) / weight.sum())
    return table if parts else _at_some(table, scores, y, metric, weight, views)


SOME_THRESHOLDS = 1000


def _at_some(
    table: Thresholds, scores: Floats, y: Floats, metric: Metric, weight: Floats, views: Sequence[Floats]
) -> Thresholds:
    """Return some of the thresholds, with a measure that is computed from the rows.

    It serves measures that are no function of the positive rates by label and group. They are computed at 0
    and at `SOME_THRESHOLDS` of the thresholds.
    """
    some = np.unique(np.linspace(0, len(table.thresholds) - 1, SOME_THRESHOLDS).astype(int))
    some = np.union1d(some, np.flatnonzero(table.thresholds == 0))
    parts = [
        np.concatenate([metric.parts(y, scores - t, v, weight) for v in views])
        for t in table.thresholds[some].tolist()
    ]
    return replace(table.at(some), parts=np.array(parts))


def _part_of_counts(weights: str, yes: Floats, total: Floats) -> Floats:
    """Return one signed part of a measure at every threshold, (m,).

    `yes`, (m, k, 2), has the weight of the rows that are predicted positive, by group and label; `total`,
    (k, 2), that of all rows. With two groups the part is the weighted agreement of `Metric`; with more it is
    the largest difference between two of them.
    """
    if weights == "uniform":
        if total.shape[0] > 2:
            must = "C_sgn must be measured on two groups"
            do = "Compare one group with the rest, or use another measure"
            raise InvalidInputError(must, f"{total.shape[0]} groups", do)
        margins = 2 * yes.sum(axis=2) - total.sum(axis=1)
        return np.asarray(margins @ np.array([-1.0, 1.0])[-len(total) :] / total.sum())
    label = {"balanced": slice(None), "equal_opportunity": slice(1, 2), "predictive_equality": slice(1)}
    size = total[:, label[weights]].sum(axis=1)
    if len(size) < 2 or (size == 0).any():
        kind = {"balanced": "", "equal_opportunity": " with y = +1", "predictive_equality": " with y = -1"}
        must = f"each of two groups or more must have rows{kind[weights]} for the weights {weights!r}"
        do = "Add such rows of the other groups, or use another measure"
        got = f"them in {np.count_nonzero(size)} of {max(2, len(size))} groups"
        raise UndefinedMeasureError(must, got, do)
    rate = yes[:, :, label[weights]].sum(axis=2) / size
    return np.asarray(rate[:, 1] - rate[:, 0] if rate.shape[1] == 2 else np.ptp(rate, axis=1))


def best_threshold(
    scores: Any,
    y: Any,
    viewpoint: Any,
    limit: float,
    measure: Any = "calders_verwer_score",
    sample_weight: Any = None,
    *,
    keep: Any = 0.0,
) -> float:
    """Return the most accurate threshold of the scores within a limit on a measure.

    ``max over t of accuracy(f > t)  subject to  measure(f > t) within the limit, positive rates >= keep``

    All thresholds are compared, exactly: one sorted sweep in O(n log n) time. Rows with equal scores are
    never separated. Subtract the threshold from the scores, or from the intercept of a model.

    Parameters
    ----------
    scores, y, sample_weight : (n,) arrays
        The scores, the labels (two values, the larger is positive), and the row weights, 1 by default.
    viewpoint : (n,) array, or a dict or DataFrame of several
        The groups; for several viewpoints the worst measure counts. With more than two groups (strings or
        integers) a difference is the largest between any two groups.
    limit : float
        The largest absolute value of the measure; for "selection_rate_ratio" its smallest value.
    measure : str or callable
        As for `nerm.Problem.neutralize`.
    keep : float or array
        The least positive rate of every group, or one number per group in the order of their values.

    Raises
    ------
    NotNeutralError
        If no threshold is admissible.

    Examples
    --------
    >>> scores, y, v = [0.9, 0.8, 0.7, 0.3, 0.2, 0.1], [1, 1, 1, 1, -1, -1], [1, 1, 1, -1, -1, -1]
    >>> t = best_threshold(scores, y, v, 0.4, keep=0.1)
    >>> round(t, 6), round(calders_verwer_score(np.array(scores) - t, v), 4)
    (0.15, 0.3333)
    """
    f, w = _scored(scores, sample_weight, decide=False)
    metric, labels, used = as_metric(measure), _labels(y, len(f)), w > 0
    several = hasattr(viewpoint, "items") and np.ndim(viewpoint) != 1  # a dict or a table, not a Series
    views = [column for _, column in viewpoint.items()] if several else [viewpoint]
    groups = [group_codes(view, len(f), w)[used] for view in views]
    numbers = [sign(codes - 0.5) for codes in groups]
    found = thresholds(f[used], labels[used], groups, metric, w[used], numbers)
    kept = (found.rates >= keep).all(axis=1)
    best = found.best(metric.allowance(limit), kept)
    if best is None:
        nearest = found.distance[kept].min(initial=np.inf)
        failed = f"No threshold gives {metric.condition(limit)} and keeps the positive rates"
        closest = f"The closest distance of {metric.name} from {metric.best:g} is {nearest:.4g}"
        raise NotNeutralError(failed, closest, (("limit", "change"), ("keep", "lower")))
    return float(found.thresholds[best])


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
            words = METRICS[name].words
            note = self.undefined.get(name, "" if words.lower() == name else words)
            shown = "undefined" if name in self.undefined else f"{value:9.4f}"
            lines.append(f"  {name:<31}{shown:>9}  {note}".rstrip())
        return "\n".join(lines)


def report(y: Any, scores: Any, viewpoint: Any, sample_weight: Any = None) -> Report:
    """Return accuracy, AUC and every neutrality measure of these scores; all arguments are (n,).

    Labels and viewpoint have two values each; of more groups, measure each against the rest.
    The scores of a regression have other measures: `mean_difference`, `correlation` and `ks_distance`.

    Examples
    --------
    >>> report([1, 1, -1, -1], [0.5, 2.0, -1.0, 0.5], [1, 1, -1, -1])
    Report on 4 rows
      accuracy                          0.7500
      auc                               0.8750
      normalized_mutual_information     0.3456  mutual information of prediction and label
      neutrality_risk                   0.5000  C_sgn
      neutrality_risk_if_independent    0.0000  what C_sgn would be under independence
      calders_verwer_score              0.5000  difference in positive rates
      selection_rate_ratio              0.5000  ratio of positive rates
      normalized_prejudice_index        0.3456  mutual information of decision and group
      equal_opportunity_difference   undefined  some row must have viewpoint -1 and y = +1
      predictive_equality_difference undefined  some row must have viewpoint +1 and y = -1
      equalized_odds_difference      undefined  some row must have viewpoint -1 and y = +1
    """
    values = distinct(as_values(y, np.size(scores), "y", "label"), "y")
    if len(values) > 2:
        do = "Pass y == value; for a regression use mean_difference, correlation or ks_distance"
        raise InvalidInputError("'y' must hold exactly two classes", f"{len(values)} values", do)
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


def _scored(scores: Any, sample_weight: Any, *, decide: bool = True) -> tuple[Floats, Floats]:
    """Check scores and weights, and return them as vectors, (n,) each.

    With `decide`, the sign of a score is the prediction. Then warn if the scores may be probabilities: if
    none is negative, they differ, and some are neither 0 nor 1.
    """
    f = as_scores(scores)
    if decide and 0 <= f.min() < f.max() and not np.isin(f, (0, 1)).all():
        text = f"'scores' has no negative entry, so that {np.mean(f > 0):.0%} of the predictions are +1. "
        cure = "Subtract the threshold: probabilities become scores - 0.5."
        warnings.warn(text + cure, UserWarning, stacklevel=4)
    return f, as_weights(sample_weight, len(f), "sample_weight")


def _aligned(scores: Any, viewpoint: Any, sample_weight: Any) -> tuple[Floats, Floats, Floats]:
    """Check scores, viewpoint and weights, and return them, (n,) each.

    The viewpoint is -1 or +1.
    """
    f, w = _scored(scores, sample_weight)
    return f, as_sides(viewpoint, len(f), w > 0), w


def group_codes(viewpoint: Any, n: int, weight: Floats) -> Ints:
    """Return the group of each row as a number 0 .. k - 1, (n,).

    More than two strings or integers are as many groups, in sorted order. Everything else is two groups
    (`nerm.viewpoint.as_sides`). Only rows of positive weight define groups; others get the number 0.
    """
    values = as_values(viewpoint, n, "viewpoint")
    seen = distinct(values[weight > 0], "viewpoint")
    if len(seen) > 2 and np.array(seen.tolist()).dtype.kind != "f":
        codes = np.searchsorted(seen, values).clip(max=len(seen) - 1)
    else:
        codes = (as_sides(viewpoint, n, weight > 0) > 0).astype(int)
    _, codes = np.unique(np.where(weight > 0, codes, codes[weight > 0][0]), return_inverse=True)
    return codes


def _labels(y: Any, n: int) -> Floats:
    """Return labels as -1 and +1, (n,).

    Labels that are already -1 or +1 may all be of one class, which happens in small folds.
    """
    labels = np.asarray(y)
    if labels.dtype.kind in "iuf" and labels.shape == (n,) and np.isin(labels, (-1, 1)).all():
        return labels.astype(float)
    return as_labels(y, n)[0]


def _rate_difference(weights: str, y: Any, scores: Any, viewpoint: Any, sample_weight: Any) -> float:
    """Return the difference of positive rates that `agreement` computes for these named weights."""
    f, v, w = _aligned(scores, viewpoint, sample_weight)
    labels = None if y is None else _labels(y, len(f))
    return agreement(weights, labels, f, v, w)


def _normalized_information(a: Bools, b: Bools, w: Floats) -> float:
    """Return I(A; B) / sqrt(H(A) H(B)) of two binary variables, 0 when either is constant."""
    table = np.array([[w[(a == i) & (b == j)].sum() for j in (False, True)] for i in (False, True)]) / w.sum()
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    scale = np.sqrt(entr(rows).sum() * entr(columns).sum())
    if scale == 0:
        return 0.0
    # Clip to [0, 1], because rounding may give a value slightly outside.
    return float(np.clip(rel_entr(table, np.outer(rows, columns)).sum() / scale, 0.0, 1.0))
