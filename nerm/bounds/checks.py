"""The assumptions that all bounds share, each checked in one place."""

from typing import Any

import numpy as np

from nerm.atoms.difference import DCFunction
from nerm.errors import InvalidInputError
from nerm.splitting import as_count
from nerm.typing import Floats
from nerm.validation import as_nonnegative, as_vector


def as_delta(delta: Any) -> float:
    """Return a confidence parameter strictly between 0 and 1."""
    if not isinstance(delta, float | int | np.floating) or not 0.0 < delta < 1.0:
        must = "'delta' must be strictly between 0 and 1"
        raise InvalidInputError(
            must, repr(delta), "The bound holds with probability 1 - delta: use 0.05, for instance"
        )
    return float(delta)


def as_rows(n: Any) -> int:
    """Return n, the number of rows."""
    return as_count(n, "n", do="Pass the number of rows")


def as_radii(radius: Any, intercept_radius: Any) -> tuple[float, float]:
    """Return B and beta, the bounds on ||w|| and `|b|`."""
    do = "The class must have finite complexity: bound"
    B = as_nonnegative(radius, "radius", f"{do} ||w||, see nerm.bounds.norm_radius")
    return B, as_nonnegative(
        intercept_radius, "intercept_radius", f"{do} |b|, see nerm.bounds.intercept_radius"
    )


def as_margin_bound(bound: Any) -> float:
    """Return the largest `|f|`, or `|v f|`, of the class."""
    return as_nonnegative(
        bound, "margin_bound", "The values of the class must be bounded: bound ||w||, |b|, x and v"
    )


def as_viewpoint(viewpoint: Any, n: int) -> Floats:
    """Return the viewpoint, or ones (the class F itself) for None."""
    return np.ones(n) if viewpoint is None else as_vector(viewpoint, n, "viewpoint")


def slope_and_range(function: Any, bound: float, name: str) -> tuple[float, float]:
    """Return the Lipschitz constant L and the width c = max - min of a margin function on [-bound, bound].

    The paper asks for psi: R -> [0, c]; convex and bounded on all of R means constant, so both constants are
    those of the values that the class can take. By convexity the steepest slope is at an end; the secant that
    reaches a little beyond it is at least as steep, which keeps L an upper bound.
    """
    if isinstance(function, DCFunction):  # at most that of both parts, and exactly known where it is monotone
        slopes, widths = zip(
            *(slope_and_range(part, bound, name) for part in function.parts[:2]), strict=True
        )
        ends = _values(function, np.array([-bound, bound]), name)
        width = abs(float(ends[1] - ends[0])) if function.facts.monotone else sum(widths)
        return min(sum(slopes), float(function.facts.lipschitz)), width
    step = 1e-6 * max(1.0, bound)
    ends = _values(function, np.array([-bound - step, -bound, bound, bound + step]), name)
    rounding = 4.0 * np.finfo(float).eps * max(1.0, bound, float(np.abs(ends).max()))
    slope = float((max(abs(ends[1] - ends[0]), abs(ends[3] - ends[2])) + rounding) / step)
    slope = min(slope, float(function.facts.lipschitz))
    width = float(max(ends[1], ends[2])) - _minimum(function, bound, name)
    return slope, max(width, 0.0)


def largest(function: Any, bound: float, name: str) -> float:
    """Return the maximum on [-bound, bound]: at an end of a convex function, else an upper bound."""
    if isinstance(function, DCFunction) and not function.facts.monotone:
        return largest(function.parts.convex, bound, name) - _minimum(function.parts.subtracted, bound, name)
    return float(_values(function, np.array([-bound, bound]), name).max())


def check_nonnegative(function: Any, name: str) -> None:
    """Refuse a loss that takes negative values (the identity): the comparison with f = 0 needs R_n >= 0."""
    values = np.asarray(function.value(np.array([-100.0, -10.0, -1.0, 0.0, 1.0, 10.0, 100.0])), dtype=float)
    lowest = min(float(values.min()), float(getattr(function.facts, "minimum", 0.0)))
    if lowest < 0:
        must = f"{name!r} must be nonnegative"
        raise InvalidInputError(
            must, f"{function!r}, which goes down to {lowest:g}", "Use the hinge, for instance"
        )


def _values(function: Any, points: Floats, name: str) -> Floats:
    values = np.asarray(function.value(points), dtype=float)
    if not np.isfinite(values).all():
        must = f"{name!r} must be finite on the values of the class"
        got = f"{function!r}, infinite on [{points[0]:g}, {points[-1]:g}]"
        raise InvalidInputError(must, got, "Use a smaller class, or a Lipschitz function such as the hinge")
    return values


def _minimum(function: Any, bound: float, name: str) -> float:
    """Return the minimum on [-bound, bound] by ternary search, which convexity makes exact."""
    low, high = -bound, bound
    for _ in range(200):
        third = (high - low) / 3.0
        left, right = _values(function, np.array([low + third, high - third]), name)
        if left <= right:
            high -= third
        if right <= left:
            low += third
    return float(_values(function, np.array([-bound, (low + high) / 2.0, bound]), name).min())
