"""What can be limited: measures of neutrality, signed, and the weights that make a neutrality term move each.

With neutrality weights u of mean 1 the weighted agreement ``(1/n) sum_i u_i sign f_i sign v_i`` *is* a
measure: C_sgn for uniform weights, the Calders-Verwer score for balanced ones, the differences of true and of
false positive rates for those of equal opportunity and predictive equality. A one-sided term with the same
weights pushes it down or up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nerm import metrics
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.model import weights as neutrality_weights
from nerm.signs import sign
from nerm.typing import Floats


@dataclass(frozen=True)
class Measure:
    """A measure of neutrality to one viewpoint.

    Attributes
    ----------
    name : str
        That of the function in `nerm.metrics`, or of the callable.
    weights : tuple of str or array
        Which neutrality weights move it: one signed part each.
    function : callable, optional
        A measure of one's own, ``(y, scores, viewpoint) -> signed float``.

    """

    name: str
    weights: tuple[Any, ...]
    function: Callable[..., float] | None = None

    def parts(self, y: Floats, scores: Floats, viewpoint: Floats, row_weight: Floats) -> list[float]:
        """Return the signed parts: positive where f follows the viewpoint. The measure is the largest in size."""
        if self.function is not None:
            value = float(self.function(y, scores, viewpoint))
            if not np.isfinite(value):
                must, do = (
                    f"the measure {self.name!r} must return a finite number",
                    "Check it on these scores",
                )
                raise InvalidInputError(must, f"{value:g}", do)
            return [value]
        v, signed = sign(viewpoint), []
        for name in self.weights:
            u = neutrality_weights.resolve(name, y, viewpoint, row_weight)
            if name == "uniform":
                signed.append(float(row_weight @ (sign(scores) * v) / row_weight.sum()))
            else:  # the same as a difference of rates, as `nerm.metrics` has it: 0 where they are equal
                groups = [(u > 0) & (v == side) for side in (1, -1)]
                one, other = (row_weight[g & (scores > 0)].sum() / row_weight[g].sum() for g in groups)
                signed.append(float(one - other))
        if self.name == "normalized_prejudice_index":
            size = metrics.normalized_prejudice_index(scores, viewpoint, row_weight)
            return [float(np.copysign(size, signed[0]))]
        return signed


def as_measure(measure: Any) -> Measure:
    """Return a measure from its name in `nerm.metrics` or from a callable.

    >>> as_measure("equalized_odds_difference").weights
    ('equal_opportunity', 'predictive_equality')
    """
    if callable(measure):
        return Measure(getattr(measure, "__name__", repr(measure)), ("balanced",), measure)
    if not isinstance(measure, str):
        must = "'measure' must be the name of a measure or a function (y, scores, viewpoint) -> signed float"
        raise InvalidInputError(must, repr(measure), "Pass 'calders_verwer_score', for instance")
    if measure not in metrics.MOVED_BY:
        raise UnknownNameError(
            "'measure'", measure, metrics.MOVED_BY, "Use one of these names, or a function"
        )
    return Measure(measure, metrics.MOVED_BY[measure])
