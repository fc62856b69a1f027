"""Margin functions phi and psi, and regularizers Omega: mathematics without data and without weights.

Margin functions are vectorised over margins m of any shape; regularizers take coefficients w, (d,). Each has
its subgradients, its conjugate, its prox, its cvxpy expression and known facts. A new atom is one new class
with a name, in a file of this folder: it is found and exported by itself.

>>> from nerm.atoms import Hinge, SquaredL2
>>> low, high = Hinge().subgradient([0.0, 1.0, 2.0])
>>> low.tolist(), high.tolist()
([-1.0, -1.0, 0.0], [-1.0, 0.0, 0.0])
"""

import inspect
import pkgutil
from importlib import import_module
from typing import Any

from nerm.atoms.custom import CustomMarginFunction as CustomMarginFunction
from nerm.atoms.custom import margin_function as margin_function
from nerm.atoms.custom_regularizer import CustomRegularizer as CustomRegularizer
from nerm.atoms.difference import CustomDCFunction as CustomDCFunction
from nerm.atoms.difference import DCFunction as DCFunction
from nerm.atoms.difference import Ramp as Ramp
from nerm.atoms.difference import dc_function as dc_function
from nerm.atoms.hinges import Hinge as Hinge
from nerm.atoms.hinges import HingeLike as HingeLike
from nerm.atoms.hinges import HuberizedHinge as HuberizedHinge
from nerm.atoms.hinges import Identity as Identity
from nerm.atoms.hinges import ModifiedHuber as ModifiedHuber
from nerm.atoms.hinges import Pinball as Pinball
from nerm.atoms.hinges import SmoothHinge as SmoothHinge
from nerm.atoms.hinges import Squared as Squared
from nerm.atoms.hinges import SquaredHinge as SquaredHinge
from nerm.atoms.margin import Facts as Facts
from nerm.atoms.margin import MarginFunction as MarginFunction
from nerm.atoms.penalties import L1 as L1
from nerm.atoms.penalties import ElasticNet as ElasticNet
from nerm.atoms.penalties import GroupL2 as GroupL2
from nerm.atoms.penalties import LInf as LInf
from nerm.atoms.penalties import SquaredL2 as SquaredL2
from nerm.atoms.regularizer import Norm as Norm
from nerm.atoms.regularizer import Regularizer as Regularizer
from nerm.atoms.smooth import Exponential as Exponential
from nerm.atoms.smooth import Logistic as Logistic

_NAMED: dict[str, Any] = {
    name: cls
    for module in pkgutil.iter_modules(__path__)
    for name, cls in vars(import_module(f"{__name__}.{module.name}")).items()
    if isinstance(cls, type) and issubclass(cls, MarginFunction | Regularizer) and cls.name
    if cls.__module__ == f"{__name__}.{module.name}" and not inspect.isabstract(cls)
}
globals().update(_NAMED)

__all__ = sorted(
    name for name in globals() if not name.startswith("_") and name[0].isupper() and name != "Any"
)
__all__ += ["dc_function", "dc_functions", "margin_function", "margin_functions", "regularizers"]


def _by_name(base: type) -> dict[str, Any]:
    """Return the classes below `base` by their names."""
    classes = sorted((cls.name, cls) for cls in _NAMED.values() if issubclass(cls, base))
    return dict(classes)


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
