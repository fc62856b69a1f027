"""The registry of measures: a `Metric` is a function with all that its users must know about it."""

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
    """A measure with all that the library, the command and the report need to know about it.

    With neutrality weights u of mean 1 the weighted agreement ``(1/n) sum_i u_i sign f_i sign v_i`` *is* a
    measure: C_sgn for uniform weights, the Calders-Verwer score for balanced ones, the differences of true
    and of false positive rates for those of equal opportunity and predictive equality.

    Attributes
    ----------
    name : str
        That of the function.
    function : callable
        Of some of y, scores, viewpoint and sample_weight.
    note : str
        Its definition, in one line.
    weights : tuple of str or array
        The neutrality weights of the one-sided terms that move it: one signed part each. Empty where no term
        does.
    option : str
        Its name on the command line.
    words : str
        Its name in a report for lay readers.
    best : float
        The value of a perfect or perfectly neutral model.
    is_agreement : bool
        Whether the parts are weighted agreements, that is C_sgn or differences of rates, for which
        Hoeffding's inequality gives a bound. Otherwise the agreement gives only the sign.
    is_custom : bool
        Whether the function is a user's own, ``(y, scores, viewpoint) -> signed float``.

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
        """Whether the labels are among its arguments."""
        return "y" in self.arguments

    def value(self, **given: Any) -> float:
        """Return the value, from those of y, scores, viewpoint and sample_weight that the function takes."""
        return self.function(**{name: given[name] for name in self.arguments})

    def parts(self, y: Floats, scores: Floats, viewpoint: Floats, sample_weight: Floats) -> list[float]:
        """Return the signed parts of the measure, positive where f follows the viewpoint.

        The measure is the part of largest absolute value.
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
    """Return the measures that a neutrality term moves, by name: `Problem.neutralize` can limit these."""
    return {name: metric for name, metric in METRICS.items() if metric.weights}


def as_metric(measure: Any) -> Metric:
    """Return a measure that can be limited, from its name or a callable.

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
    """Return the measure that a neutrality term with weights of this name moves.

    >>> from nerm.metrics import moved_by
    >>> moved_by("predictive_equality").name
    'predictive_equality_difference'
    """
    found = {metric.weights[0]: metric for metric in reversed(METRICS.values()) if len(metric.weights) == 1}
    if weights not in found:
        raise UnknownNameError("'weights'", weights, found)
    return found[weights]


def _agreement(weights: Any, y: Floats, scores: Floats, v: Floats, s: Floats) -> float:
    """Return (1/n) sum_i u_i sign f_i v_i for v of -1/+1, as a difference of rates where u balances groups.

    As such it is exactly 0 where the rates are equal.
    """
    u = neutrality_weights.resolve(weights, y, v, s)
    if isinstance(weights, str) and weights == "uniform":
        return float(s @ (sign(scores) * v) / s.sum())
    groups = [(u > 0) & (v == side) for side in (1, -1)]
    one, other = (s[group & (scores > 0)].sum() / s[group].sum() for group in groups)
    return float(one - other)
