"""Read a margin function from its formula: exact values, slopes, conjugate and prox from a cvxpy expression.

The expression is a tree of elementwise cvxpy atoms with one leaf, the margin m. `RULES` says for each cvxpy
atom how it acts on functions of m, given by their jets (`nerm.atoms.jets`). A tree that stays piecewise
quadratic is known exactly (`nerm.atoms.piecewise`). To support another cvxpy atom, add one entry to `RULES`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from scipy.special import entr, expit

from nerm.atoms.jets import Jet, JetFunction
from nerm.atoms.piecewise import HingeSum, Pieces, inside
from nerm.errors import InvalidInputError
from nerm.typing import Floats

Function: TypeAlias = HingeSum | JetFunction
Pointwise: TypeAlias = Callable[[Floats], Floats]
SECANT = 1e-6  # relative step of slopes of an atom without a rule
GRID = np.sinh(np.linspace(-15.0, 15.0, 3001))  # margins up to 1.6e6, dense around 0


@dataclass(frozen=True, eq=False)
class Node(JetFunction):
    """A function of m at one place of the tree.

    `degree` is 1 or 2 if the function is piecewise linear or piecewise quadratic, else 3.
    """

    degree: int = 3

    def __add__(self, other: Any) -> Node:
        return add(self, as_node(other))

    def __mul__(self, other: Any) -> Node:
        return product(self, as_node(other))

    def __rsub__(self, other: Any) -> Node:
        return as_node(other) + self * -1.0

    def __sub__(self, other: Any) -> Node:
        return self + as_node(other) * -1.0

    def __neg__(self) -> Node:
        return self * -1.0

    def __truediv__(self, number: float) -> Node:
        return self * (1.0 / number)

    __radd__ = __add__
    __rmul__ = __mul__

    @cached_property
    def line(self) -> tuple[float, float] | None:
        """Slope and level of a function that is one straight line, else None."""
        if self.degree > 1 or len(self.breaks):
            return None
        value, slope, *_ = self.jet(np.zeros(1))
        return float(slope[0]), float(value[0])

    @property
    def number(self) -> float | None:
        """The value of a constant, else None."""
        return self.line[1] if self.line and not self.line[0] else None

    @property
    def exact(self) -> Node:
        """The function by its pieces, if it is piecewise quadratic: no digits are lost far from 0."""
        if self.degree > 2:
            return self
        f = Pieces(self)
        return Node(f.value, f.jet, f.breaks, f.smoothness, degree=2 if f.pieces[:, 1].any() else 1)


def straight(slope: float, level: float) -> Node:
    """Return slope m + level."""

    def jet(m: Floats) -> Jet:
        slopes = np.full(m.shape, slope)
        return Jet(slope * m + level, slopes, slopes, np.zeros(m.shape))

    return Node(lambda m: slope * m + level, jet, np.zeros(0), 0.0, degree=1)


def as_node(given: Any) -> Node:
    """Convert a number to a node."""
    return given if isinstance(given, Node) else straight(0.0, float(given))


#: The margin itself. A formula of nerm's own atoms applied to it gives its function without cvxpy.
MARGIN = straight(1.0, 0.0)


def add(one: Node, two: Node) -> Node:
    """Return the sum."""
    if one.line and two.line:
        return straight(one.line[0] + two.line[0], one.line[1] + two.line[1])

    def jet(m: Floats) -> Jet:
        return Jet(*(a + b for a, b in zip(one.jet(m), two.jet(m), strict=True)))

    return Node(
        lambda m: one.value(m) + two.value(m),
        jet,
        np.union1d(one.breaks, two.breaks),
        one.smoothness + two.smoothness,
        star=_plus_line(one, two) or _plus_line(two, one),
        degree=max(one.degree, two.degree),
    ).exact


def _plus_line(node: Node, other: Node) -> Pointwise | None:
    """Return the conjugate of the sum of a function with known conjugate and a line."""
    star, line = node.star, other.line
    return None if star is None or line is None else lambda u: star(u - line[0]) - line[1]


def scale(node: Node, factor: float) -> Node:
    """Return a multiple."""
    if node.line:
        return straight(factor * node.line[0], factor * node.line[1])

    def jet(m: Floats) -> Jet:
        return Jet(*(factor * part for part in node.jet(m)))

    known = node.star if factor > 0 else None
    star = None if known is None else lambda u: factor * known(u / factor)
    most = abs(factor) * node.smoothness if factor else 0.0
    return Node(lambda m: factor * node.value(m), jet, node.breaks, most, star=star, degree=node.degree)


def product(one: Node, two: Node) -> Node:
    """Return the product with a constant."""
    if one.number is not None:
        return scale(two, one.number)
    if two.number is not None:
        return scale(one, two.number)
    raise NotImplementedError


def maximum(one: Node, two: Node) -> Node:
    """Return the larger of two functions."""

    def jet(m: Floats) -> Jet:
        a, b = one.jet(m), two.jet(m)
        equal = a.value == b.value
        larger = np.where(equal, a.curvature > b.curvature, a.value > b.value)
        chosen = [np.where(larger, x, y) for x, y in zip(a, b, strict=True)]
        low, high = np.minimum(a.low, b.low), np.maximum(a.high, b.high)
        return Jet(chosen[0], np.where(equal, low, chosen[1]), np.where(equal, high, chosen[2]), chosen[3])

    breaks, degree = np.union1d(one.breaks, two.breaks), max(one.degree, two.degree)
    cross = roots if degree < 3 else crossings
    breaks = np.union1d(breaks, cross(add(one, scale(two, -1.0)), breaks))
    return Node(lambda m: np.maximum(one.value(m), two.value(m)), jet, breaks, degree=degree).exact


def roots(difference: Node, breaks: Floats) -> Floats:
    """Return the points at which a piecewise quadratic function with given breakpoints changes its sign."""
    found = list[float]()
    points = inside(breaks)
    jet = difference.jet(points)
    pieces = zip(points, 0.5 * jet.curvature, jet.low, jet.value, strict=True)
    for (low, high), (x, a, b, c) in zip(pairwise([-np.inf, *breaks, np.inf]), pieces, strict=True):
        if a == 0:
            moves = [-c / b] if b else []
        else:
            discriminant = b * b - 4 * a * c
            q = -0.5 * (b + np.copysign(np.sqrt(max(discriminant, 0.0)), b))
            moves = [q / a, c / q] if discriminant > 0 else []
        found += [_short(x + move) for move in moves if low < x + move < high]
    return np.array(found)


def _short(number: float) -> float:
    """Replace a number by a decimal of 14 digits if both are equal up to rounding: -0.6, say."""
    short = float(f"{number:.14g}")
    return short if abs(short - number) <= 8 * np.finfo(float).eps * abs(number) else float(number)


def crossings(difference: Node, breaks: Floats) -> Floats:
    """Return the points at which a function with given breakpoints changes its sign, by bisection."""
    near = np.geomspace(1e-9, 1e-2, 15)  # next to a kink it may change its sign twice
    points = np.unique([*GRID, *breaks, *np.add.outer(breaks, [*-near, *near]).ravel()])
    with np.errstate(all="ignore"):
        signs = np.sign(difference.value(points))
        known = np.flatnonzero(np.abs(signs) == 1)  # the function may be 0 at single points or on intervals
        change = np.flatnonzero(signs[known[1:]] != signs[known[:-1]])
        low, high, left = points[known[change]], points[known[change + 1]], signs[known[change]]
        for _ in range(80):
            middle = 0.5 * (low + high)
            same = np.sign(difference.value(middle)) == left
            low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.asarray(high)


def outer(
    g: Pointwise,
    slope: Pointwise,
    curvature: Pointwise,
    most: float = np.inf,
    singular: float | None = None,
    star: Pointwise | None = None,
) -> Callable[[Node], Node]:
    """Return the composition with a function g, given its first and second derivative.

    `most` bounds the absolute curvature of g, and at `singular` this curvature is infinite or jumps. `star`
    is the conjugate of g, if it is known: that of g(a m + b) is star(u / a) - b u / a.
    """

    def rule(node: Node) -> Node:
        line = node.line

        def value(m: Floats) -> Floats:
            with np.errstate(all="ignore"):
                return np.asarray(g(node.value(m)))

        def jet(m: Floats) -> Jet:
            inner = node.jet(m)
            with np.errstate(all="ignore"):
                first, second = slope(inner.value), curvature(inner.value)
                if line is not None:
                    low = high = first * line[0]
                    return Jet(np.asarray(g(inner.value)), low, high, second * line[0] ** 2)
                low, high = (np.where(side != 0, first * side, 0.0) for side in inner[1:3])
                middle = 0.5 * (inner.low + inner.high)
                bent = np.where(middle != 0, second * middle**2, 0.0)
                bent += np.where(inner.curvature != 0, first * inner.curvature, 0.0)
                return Jet(np.asarray(g(inner.value)), low, high, bent)

        breaks = node.breaks if singular is None else maximum(node, straight(0.0, singular)).breaks
        if line is None or not line[0]:
            return Node(value, jet, breaks)
        a, b = line
        known = None if star is None else lambda u: star(u / a) - b * (u / a)
        return Node(value, jet, breaks, most * a**2, star=known)

    return rule


def power(node: Node, p: float) -> Node:
    """Return x^p."""
    if node.number is not None:
        return straight(0.0, float(np.power(node.number, p)))
    if p in (0, 1):
        return straight(0.0, 1.0) if p == 0 else node
    even = p == int(p) and int(p) % 2 == 0

    def of(q: float) -> Pointwise:
        return lambda x: np.where((x >= 0) | even, np.power(x, q), np.nan)

    most, singular = 2.0 if p == 2 else np.inf, 0.0 if p < 2 else None
    bent = outer(of(p), lambda x: p * of(p - 1)(x), lambda x: p * (p - 1) * of(p - 2)(x), most, singular)
    found = bent(node)
    return replace(found, degree=2).exact if p == 2 and node.degree == 1 else found


def huber(node: Node, M: float) -> Node:
    """Return x^2 for |x| <= M and 2 M |x| - M^2 beyond: x^2 - max(|x| - M, 0)^2."""
    return power(node, 2.0) - power(maximum(absolute(node) - M, as_node(0.0)), 2.0)


def absolute(node: Node) -> Node:
    """Return |x|."""
    return maximum(node, -node)


def minimum(one: Node, two: Node) -> Node:
    """Return the smaller of two functions."""
    return -maximum(-one, -two)


def length(atom: Any, stacked: list[Node]) -> Node:
    """Return sqrt(x_1^2 + x_2^2 + ...), from cp.norm(cp.vstack([x_1, x_2, ...]), 2, axis=0)."""
    if _number(atom.p) != 2 or atom.axis != 0:
        raise NotImplementedError("another norm than cp.norm(..., 2, axis=0)")
    return power(reduce(add, (power(node, 2.0) for node in stacked)), 0.5)


def _number(parameter: Any) -> float:
    return float(np.ravel(getattr(parameter, "value", parameter))[0])


def _negative_entropy(u: Floats) -> Floats:
    return np.where((u >= 0) & (u <= 1), -entr(u) - entr(1 - u), np.inf)


exponential = outer(np.exp, np.exp, np.exp, star=lambda u: np.where(u >= 0, -entr(u) - u, np.inf))
logistic = outer(
    lambda x: np.logaddexp(0.0, x), expit, lambda x: expit(x) * expit(-x), 0.25, star=_negative_entropy
)

#: How each cvxpy atom, by the name of its class, acts on the nodes of its arguments.
RULES: dict[str, Callable[..., Any]] = {
    "AddExpression": lambda atom, *nodes: reduce(add, nodes),
    "NegExpression": lambda atom, node: -node,
    "MulExpression": lambda atom, one, two: product(one, two),
    "multiply": lambda atom, one, two: product(one, two),
    "DivExpression": lambda atom, one, two: product(one, power(two, -1.0)),
    "Promote": lambda atom, node: node,
    "reshape": lambda atom, node: node,
    "abs": lambda atom, node: absolute(node),
    "maximum": lambda atom, *nodes: reduce(maximum, nodes),
    "minimum": lambda atom, *nodes: reduce(minimum, nodes),
    "power": lambda atom, node: power(node, _number(atom.p)),
    "Power": lambda atom, node: power(node, _number(atom.p)),
    "huber": lambda atom, node: huber(node, _number(atom.M)),
    "Vstack": lambda atom, *nodes: list(nodes),
    "Pnorm": length,
    "exp": lambda atom, node: exponential(node),
    "logistic": lambda atom, node: logistic(node),
    "log": lambda atom, node: outer(np.log, lambda x: 1 / x, lambda x: -1 / x**2)(node),
    "log1p": lambda atom, node: outer(np.log1p, lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2)(node),
    "entr": lambda atom, node: outer(entr, lambda x: -np.log(x) - 1, lambda x: -1 / x)(node),
    "xexp": lambda atom, node: outer(
        lambda x: x * np.exp(x), lambda x: (1 + x) * np.exp(x), lambda x: (2 + x) * np.exp(x)
    )(node),
}


def read(expression: Any, variable: Any) -> Node:
    """Return the node of a cvxpy expression of one variable; NotImplementedError names an unknown atom."""
    if expression is variable:
        return MARGIN
    if expression.is_constant():
        values = np.unique(np.asarray(_dense(expression.value), dtype=float))
        if len(values) != 1:
            raise NotImplementedError("a constant that differs between entries")
        return straight(0.0, float(values[0]))
    names = [cls.__name__ for cls in type(expression).__mro__]
    rule = next((RULES[name] for name in names if name in RULES), None)
    if rule is None:
        raise NotImplementedError(f"cvxpy.{names[0]}")
    return rule(expression, *(read(argument, variable) for argument in expression.args))


def _dense(value: Any) -> Any:
    return value.toarray() if hasattr(value, "toarray") else value


def derive(expression: Callable[[Any], Any], label: str) -> Function:
    """Return the function of a formula; raise an error unless it is elementwise, convex and finite.

    cvxpy's rules must call it convex, unless it is piecewise quadratic: then its slopes show it. A formula
    with a cvxpy atom that has no rule is evaluated by cvxpy, with slopes from secants, and a warning.
    """
    import cvxpy as cp

    what = f"'expression' of {label!r} must"
    m = cp.Variable(3)
    try:
        tree = expression(m)
        convex, shape = tree.is_convex(), tree.shape
    except Exception as error:
        must = f"{what} map a cvxpy expression to a cvxpy expression"
        do = "Use cvxpy functions inside it, for instance lambda m: cp.pos(1 - m)"
        raise InvalidInputError(must, f"{type(error).__name__}: {error}", do) from error
    if shape != (3,):
        got = f"shape {shape} for an input of shape (3,)"
        raise InvalidInputError(f"{what} work elementwise", got, "Do not sum inside it")
    try:
        node = read(tree, m)
    except (NotImplementedError, AttributeError) as missing:
        node = _numeric(expression, label, str(missing))
    function = finished(node)
    if isinstance(function, HingeSum):
        convex = function.is_convex
    if not convex:
        do = "Use cvxpy's convex functions (cp.pos, cp.logistic …), or write two parts with dc_function"
        got = f"an expression of curvature {tree.curvature}"
        raise InvalidInputError(f"{what} be convex by cvxpy's rules", got, do)
    if function.end_slopes == (0.0, 0.0):
        raise InvalidInputError(f"{what} depend on its argument", "a constant", "Write a formula of m")
    at = GRID[np.abs(GRID) < 30]
    values = function.value(at)
    wrong = np.isnan(values) | ((np.abs(at) <= 2) & np.isinf(values))  # far out it may overflow
    if wrong.any():
        got = f"{values[wrong][0]:g} at {at[wrong][0]:.3g}"
        do = "Use a function that is defined everywhere, for instance cp.logistic instead of -cp.log"
        raise InvalidInputError(f"{what} be finite on all real numbers", got, do)
    return function


def finished(node: Node) -> Function:
    """Return the function of a node that is the whole formula."""
    return HingeSum(node) if node.degree < 3 else node


def evaluated(expression: Callable[[Any], Any], m: Floats) -> Floats:
    """Return phi(m), in the shape of m, as cvxpy evaluates the expression."""
    import cvxpy as cp

    if m.size == 0:  # cvxpy 1.7 cannot make a Constant from an empty array
        return np.zeros(m.shape)
    with np.errstate(all="ignore"):
        values = np.asarray(expression(cp.Constant(m.ravel())).value, dtype=float)
    # if all of m is 0, cvxpy 1.7 evaluates 1 + m to the number 1: broadcast it
    return np.array(np.broadcast_to(values, m.size)).reshape(m.shape)


def _numeric(expression: Callable[[Any], Any], label: str, missing: str) -> Node:
    """Return a function whose values come from cvxpy and whose slopes come from secants."""
    points = np.array([-2.0, 0.3, 1.7])
    if not np.allclose(evaluated(expression, points), [evaluated(expression, p) for p in points]):
        must = f"'expression' of {label!r} must work elementwise"
        raise InvalidInputError(must, "entries that depend on each other", "Use elementwise functions only")
    message = f"nerm has no rule for {missing}: slopes and conjugate of {label!r} are computed numerically"
    warnings.warn(message, UserWarning, stacklevel=4)

    def value(m: Floats) -> Floats:
        return evaluated(expression, m)

    def jet(m: Floats) -> Jet:
        step = SECANT * np.maximum(1.0, np.abs(m))
        here, before, after = value(m), value(m - step), value(m + step)
        with np.errstate(all="ignore"):
            low, high = (here - before) / step, (after - here) / step
            # rounded to single precision: on a straight line all slopes are equal
            low, high = low.astype(np.float32).astype(float), high.astype(np.float32).astype(float)
            return Jet(here, low, high, (high - low) / step)

    return Node(value, jet, np.zeros(0), numeric=True)
