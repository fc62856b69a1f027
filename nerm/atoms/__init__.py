"""Margin functions phi and psi, and regularizers Omega: mathematics without data and without weights.

Margin functions are vectorised over margins m of any shape; regularizers take coefficients w of shape (d,).
Each has subgradients, a conjugate, a prox and a cvxpy expression. To add an atom, write a class with a `name`
in a file of this folder: this module finds and exports it.

>>> from nerm.atoms import Hinge, SquaredL2
>>> low, high = Hinge().subgradient([0.0, 1.0, 2.0])
>>> low.tolist(), high.tolist()
([-1.0, -1.0, 0.0], [-1.0, 0.0, 0.0])
"""

import inspect
import pkgutil
from importlib import import_module
from typing import Any

from nerm.atoms.custom import margin_function, maximum
from nerm.atoms.difference import DCFunction, dc_function
from nerm.atoms.margin import Facts, MarginFunction
from nerm.atoms.regularizer import Regularizer
from nerm.atoms.residuals import ResidualFunction, residual_function

_ATOMS: dict[str, Any] = {
    name: cls
    for module in pkgutil.iter_modules(__path__)
    for name, cls in vars(import_module(f"{__name__}.{module.name}")).items()
    if isinstance(cls, type) and issubclass(cls, MarginFunction | Regularizer)
    if cls.__module__ == f"{__name__}.{module.name}"
}
globals().update(_ATOMS)

__all__ = [*_ATOMS, "Facts", "dc_function", "dc_functions"]
__all__ += ["margin_function", "margin_functions", "maximum", "regularizers"]
__all__ += ["residual_function", "residual_functions"]


def _by_name(base: type) -> dict[str, Any]:
    """Return the concrete subclasses of `base` that have a name, as a dict sorted by name."""
    named = (cls for cls in _ATOMS.values() if issubclass(cls, base) and cls.name)
    return dict(sorted((cls.name, cls) for cls in named if not inspect.isabstract(cls)))


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
    special = (DCFunction, ResidualFunction)
    return {name: cls for name, cls in _by_name(MarginFunction).items() if not issubclass(cls, special)}


def residual_functions() -> dict[str, type[ResidualFunction]]:
    """Return the built-in residual functions by name, derived from the classes.

    Returns
    -------
    dict
        Classes by name; each can be made without arguments.

    Examples
    --------
    >>> float(residual_functions()["squared-error"]().value(-3.0))
    9.0
    """
    return _by_name(ResidualFunction)


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
