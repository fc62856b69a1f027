"""Read a margin function from its formula, a cvxpy expression.

The expression is a tree of elementwise cvxpy atoms with one leaf, the margin m. `RULES` says for each cvxpy
atom how it acts on functions of m (`nerm.atoms.functions`). To support another cvxpy atom, add one entry.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.atoms.functions import (
    MARGIN,
    Curve,
    Function,
    Jet,
    NoRuleError,
    as_function,
    composed,
)
from nerm.errors import InvalidInputError
from nerm.typing import Floats

SECANT = 1e-7  # relative step of slopes of an atom without a rule
POINTS = np.sinh(np.linspace(-15.0, 15.0, 301))  # margins at which cvxpy evaluates a formula once


def _xexp(x: Function) -> Function:
    return x.map(composed(lambda x: Jet(x * np.exp(x), (1 + x) * np.exp(x), (2 + x) * np.exp(x))))


def _along(atom: Any, rows: list[Function], join: Callable[[Function, Function], Function]) -> Function:
    """Return the functions of the rows of a cp.vstack, joined along axis 0 by `join`."""
    if atom.axis != 0:
        raise NoRuleError(f"cvxpy.{type(atom).__name__} along another axis than 0")
    return reduce(join, rows)


def _length(atom: Any, rows: list[Function]) -> Function:
    squares = _along(atom, [x.power(2) for x in rows], add)
    if number(atom.p) != 2 or squares.conjugate(np.zeros(1))[0] >= 0:
        raise NoRuleError("another norm than a Euclidean one that is nowhere 0")
    return squares.map(composed(lambda x: Jet(x**0.5, 0.5 * x**-0.5, -0.25 * x**-1.5)))


def number(parameter: Any) -> float:
    """Return the value of a constant, or of a parameter of an atom: its first number."""
    value = getattr(parameter, "value", parameter)
    return float(np.ravel(value.toarray() if hasattr(value, "toarray") else value)[0])


def kind(expression: Any) -> str:
    """Return the class name of a cvxpy atom in lower case.

    cvxpy approximates some atoms by second-order cones; their kind is that of the exact atom.
    """
    return type(expression).__name__.removesuffix("Approx").lower()


#: How each cvxpy atom, by its `kind`, acts on the functions of its arguments.
RULES: dict[str, Callable[..., Any]] = {
    "addexpression": lambda atom, *x: reduce(add, x),
    "negexpression": lambda atom, x: -x,
    "mulexpression": lambda atom, x, y: x * y,
    "multiply": lambda atom, x, y: x * y,
    "divexpression": lambda atom, x, y: x / y.number,
    "promote": lambda atom, x: x,
    "reshape": lambda atom, x: x,
    "abs": lambda atom, x: abs(x),
    "maximum": lambda atom, *x: reduce(Function.maximum, x),
    "minimum": lambda atom, *x: -reduce(Function.maximum, (-one for one in x)),
    "power": lambda atom, x: x.power(number(atom.p)),
    "huber": lambda atom, x: x.huber(number(atom.M)),
    "exp": lambda atom, x: x.exp(),
    "logistic": lambda atom, x: x.logistic(),
    "xexp": lambda atom, x: _xexp(x),
}


#: The same for cvxpy atoms that combine the rows of a matrix; their rule takes the list of all rows.
RULES_FOR_ROWS: dict[str, Callable[..., Any]] = {
    "vstack": lambda atom, *x: list(x),
    "sum": lambda atom, x: _along(atom, x, add),
    "max": lambda atom, x: _along(atom, x, Function.maximum),
    "log_sum_exp": lambda atom, x: _along(atom, x, lambda one, two: two + (one - two).logistic()),
    "pnorm": _length,
    "norm1": lambda atom, x: _along(atom, list(map(abs, x)), add),
    "norm_inf": lambda atom, x: _along(atom, list(map(abs, x)), Function.maximum),
}


def read(expression: Any, variable: Any) -> Any:
    """Return a cvxpy expression of the margin `variable` as a `Function`.

    An expression with k > 1 rows gives a list of k functions, one per row. A NoRuleError is raised, with the
    name of the atom, if a cvxpy atom has no rule.
    """
    if expression is variable:
        return MARGIN
    if expression.is_constant():
        if expression.ndim == 2 and expression.shape[0] > 1:
            return [as_function(number(row)) for row in expression.value]
        return as_function(number(expression))
    name, given = kind(expression), [read(argument, variable) for argument in expression.args[1:]]
    first = expression.args[0]
    if name == "mulexpression" and first.is_constant() and first.ndim == 2:
        rows = given[0] if isinstance(given[0], list) else given
        matrix = np.asarray(sp.csr_array(first.value).todense())
        return [reduce(add, map(Function.__mul__, rows, weights)) for weights in matrix.tolist()]
    rule = RULES.get(name, RULES_FOR_ROWS.get(name))
    if rule is None:
        raise NoRuleError(f"cvxpy.{type(expression).__name__}")
    given = [read(first, variable), *given]
    sizes = [len(x) for x in given if isinstance(x, list)]
    if name in RULES_FOR_ROWS or not sizes:
        return rule(expression, *given)
    given = [x if isinstance(x, list) else [x] * sizes[0] for x in given]
    return [rule(expression, *row) for row in zip(*given, strict=True)]


def as_text(expression: Callable[[Any], Any], x: Any) -> str:
    """Return the expression of a cvxpy variable as text in the words of cvxpy: ``exp(1 - m) + m - 2``."""
    text = re.sub(r"Promote\(([^()]*), \(\d+,\)\)", r"\1", str(expression(x)).replace(", None, False", ""))
    text = re.sub(r"\.0\b", "", text).replace("+ -", "- ").replace("Approx", "").replace(" @ ", " * ")
    return text.lower()


def require(holds: Any, label: str, must: str, got: str, do: str) -> None:
    """Raise an error about the expression of an atom unless the condition holds."""
    if not holds:
        raise InvalidInputError(f"'expression' of {label!r} must {must}", got, do)


def tree_of(expression: Callable[[Any], Any], argument: Any, label: str, kind: str, do: str) -> Any:
    """Return the cvxpy expression that a user's function makes of its argument.

    Raise an error if it fails, or if the result is no expression.
    """
    try:
        tree = expression(argument)
        _ = tree.is_convex(), tree.shape, tree.parameters()
    except Exception as error:
        must = f"'expression' of {label!r} must map a cvxpy {kind} to a cvxpy expression"
        got = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(".")
        raise InvalidInputError(must, got, do) from error
    return tree


def derive(expression: Callable[[Any], Any], label: str) -> Function:
    """Return the function of a formula; raise an error unless it is elementwise, convex and finite.

    It is convex by cvxpy's rules or, if it is piecewise quadratic, by its slopes. A formula
    with a cvxpy atom that has no rule is evaluated by cvxpy, with slopes from secants, and a warning.
    """
    import cvxpy as cp

    m = cp.Variable(len(POINTS))
    do = "Use cvxpy functions inside it, for instance lambda m: cp.pos(1 - m)"
    tree = tree_of(expression, m, label, "expression", do)
    got = f"shape {tree.shape} for an input of shape {m.shape}"
    require(tree.shape == m.shape, label, "work elementwise", got, "Do not sum inside it")
    alone = all(other is m for other in (*tree.variables(), *tree.parameters()))
    do = "Write numbers into the formula, and make one function for each of them"
    require(alone, label, "have no parameter and no other variable", f"{tree}"[:80], do)
    values = values_of(tree, m, POINTS)
    usual = (np.abs(values) < 1e100) & (np.abs(POINTS) < 1e4)  # farther out, cvxpy's values lose digits
    function, missing = None, "this formula"
    try:
        found = read(tree, m)
        if np.allclose(found.jet(POINTS[usual]).value, values[usual], rtol=1e-9, atol=1e-9):
            function = found
    except (NoRuleError, AttributeError, TypeError) as error:  # or a rule that does not know this use
        missing = str(error) if isinstance(error, NoRuleError) else missing
    for k in (100, 155, 210) if function is None else ():
        same = np.allclose(
            values_of(tree, m, np.full(m.shape, POINTS[k])), values[k], rtol=1e-9, equal_nan=True
        )
        do = "Use elementwise functions only"
        require(same, label, "work elementwise", "entries that depend on each other", do)
    convex = tree.is_convex() or bool(function and function.is_quadratic and function.is_convex)
    got = f"an expression of curvature {tree.curvature}"
    do = "Use cvxpy's convex functions (cp.pos, cp.logistic …), or write two parts with dc_function"
    require(convex, label, "be convex by cvxpy's rules", got, do)
    m.value = POINTS
    outside = np.isnan(values) | ((np.abs(POINTS) <= 2) & np.isinf(values))  # far out it may overflow
    for constraint in tree.domain:
        outside |= np.ravel(constraint.violation() > 1e-9)
    at = POINTS[outside][-1:]
    got = "" if not len(at) else f"{values[outside][-1]:g} at {at[0]:.3g}"
    do = "Use a function that is defined everywhere, for instance cp.logistic instead of -cp.log"
    require(not len(at), label, "be finite on all real numbers", got, do)
    constant = np.ptp(values[np.isfinite(values)]) == 0
    require(not constant, label, "depend on its argument", "a constant", "Write a formula of m")
    if function is None:
        message = (
            f"nerm has no rule for {missing}: slopes and conjugate of {label!r} are computed numerically"
        )
        warnings.warn(message, UserWarning, stacklevel=4)
    return function or _numeric(expression)


def evaluated(expression: Callable[[Any], Any], m: Floats) -> Floats:
    """Return phi(m), in the shape of m, as cvxpy evaluates the expression; nan where it has no value."""
    import cvxpy as cp

    x = cp.Variable(max(m.size, 1))
    return values_of(expression(x), x, np.resize(m, x.shape))[: m.size].reshape(m.shape)


@np.errstate(all="ignore")
def values_of(tree: Any, x: Any, point: Floats) -> Floats:
    """Return the value of an expression of the variable x at a point; nan where it has none."""
    x.value = point
    return np.full(tree.shape, np.nan) if tree.value is None else np.array(tree.value, dtype=float)


def _numeric(expression: Callable[[Any], Any]) -> Function:
    """Return a function whose values come from cvxpy and whose slopes come from secants."""

    def jet(m: Floats) -> Jet:
        step = SECANT * np.maximum(1.0, np.abs(m))
        before, here, after = evaluated(expression, np.stack([m - step, m, m + step]))
        # rounded to single precision: on a straight line all slopes are equal
        low, high = ((rise / step).astype(np.float32).astype(float) for rise in (here - before, after - here))
        return Jet(here, 0.5 * (low + high), (high - low) / step)

    return Function((Curve(jet),), step=SECANT)
