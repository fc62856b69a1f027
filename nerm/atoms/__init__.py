"""phi, psi and Omega: pure mathematics, one function a file; no data, no weights.

Margin functions phi and psi are vectorised over margins m of any shape; regularizers Omega take coefficients
w, (d,). Each comes with its subgradients, its conjugate, its prox, its cvxpy expression and what is known of
it. Every class of this folder is found by itself: a new atom is one new file.

>>> from nerm.atoms import Hinge, SquaredL2
>>> low, high = Hinge().subgradient([0.0, 1.0, 2.0])
>>> low.tolist(), high.tolist()
([-1.0, -1.0, 0.0], [-1.0, 0.0, 0.0])
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nerm.atoms.custom import margin_function as margin_function
from nerm.atoms.difference import DCFunction as DCFunction
from nerm.atoms.difference import dc_function as dc_function
from nerm.atoms.margin import Facts as Facts
from nerm.atoms.margin import MarginFunction as MarginFunction
from nerm.atoms.regularizer import Regularizer as Regularizer

_CLASSES: dict[str, Any] = {
    name: cls
    for module in pkgutil.iter_modules(__path__)
    for name, cls in vars(import_module(f"{__name__}.{module.name}")).items()
    if isinstance(cls, type) and issubclass(cls, MarginFunction | Regularizer)
    if cls.__module__ == f"{__name__}.{module.name}" and not name.startswith("_")
}
globals().update(_CLASSES)

__all__ = sorted(
    {*_CLASSES, "Facts", "dc_function", "dc_functions", "margin_function", "margin_functions", "regularizers"}
)


if TYPE_CHECKING:  # which classes were found above, no type checker can know
    __getattr__: Callable[[str], Any]


def _by_name(base: Any) -> dict[str, Any]:
    """Return the classes below `base` that have a name and can be made, by that name."""
    classes = [
        cls for cls in _CLASSES.values() if issubclass(cls, base) and cls.name and not inspect.isabstract(cls)
    ]
    return {cls.name: cls for cls in sorted(classes, key=lambda cls: str(cls.name))}


def margin_functions() -> dict[str, type[MarginFunction]]:
    """Return the built-in convex margin functions by name, derived from the classes.

    Returns
    -------
    dict
        Classes by name; each can be made without arguments.

    Examples
    --------
    >>> float(margin_functions()["squared-hinge"]().value(-1.0))
    4.0
    """
    return {name: cls for name, cls in _by_name(MarginFunction).items() if not issubclass(cls, DCFunction)}


def dc_functions() -> dict[str, type[DCFunction]]:
    """Return the built-in differences of convex functions by name, derived from the classes.

    Returns
    -------
    dict
        Classes by name; each can be made without arguments.

    Examples
    --------
    >>> float(dc_functions()["ramp"]().value(0.0))
    0.5
    """
    return _by_name(DCFunction)


def regularizers() -> dict[str, type[Regularizer]]:
    """Return the built-in regularizers by name, derived from the classes.

    Returns
    -------
    dict
        Classes by name; each can be made without arguments.

    Examples
    --------
    >>> "squared-l2" in regularizers()
    True
    """
    return _by_name(Regularizer)
