"""The registry of measures: `METRICS` maps each name to a `Metric`, a function with its properties."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nerm import weights as neutrality_weights
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.signs import sign
from nerm.typing import Floats


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

    >>> from nerm.metrics import METRICS
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

    >>> from nerm.metrics import as_metric
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
    known = limitable()
    if measure not in known:
        raise UnknownNameError("'measure'", measure, known, "Use one of these names, or a function")
    return known[measure]


def moved_by(weights: str) -> Metric:
    """Return the measure that a neutrality term with these named weights reduces.

    >>> from nerm.metrics import moved_by
    >>> moved_by("predictive_equality").name
    'predictive_equality_difference'
    """
    found = {metric.weights[0]: metric for metric in reversed(METRICS.values()) if len(metric.weights) == 1}
    if weights not in found:
        raise UnknownNameError("'weights'", weights, found)
    return found[weights]


def _agreement(weights: Any, y: Floats, scores: Floats, v: Floats, s: Floats) -> float:
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
