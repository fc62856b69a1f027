"""phi, psi and Omega: pure mathematics, one function a file; no data, no weights.

Margin functions phi and psi are vectorised over margins m of any shape; regularizers Omega take coefficients w, (d,).
Each comes with its subgradients, its conjugate, its prox, its cvxpy expression and what is known of it.

>>> from nerm.atoms import Hinge, SquaredL2
>>> low, high = Hinge().subgradient([0.0, 1.0, 2.0])
>>> low.tolist(), high.tolist()
([-1.0, -1.0, 0.0], [-1.0, 0.0, 0.0])
"""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from nerm.atoms.custom import CustomMarginFunction, margin_function
from nerm.atoms.elastic_net import ElasticNet
from nerm.atoms.exponential import Exponential
from nerm.atoms.group_l2 import GroupL2
from nerm.atoms.hinge import Hinge
from nerm.atoms.huberized_hinge import HuberizedHinge
from nerm.atoms.identity import Identity
from nerm.atoms.l1 import L1
from nerm.atoms.linf import LInf
from nerm.atoms.logistic import Logistic
from nerm.atoms.margin import Facts, MarginFunction
from nerm.atoms.modified_huber import ModifiedHuber
from nerm.atoms.pinball import Pinball
from nerm.atoms.regularizer import Norm, Regularizer
from nerm.atoms.smooth_hinge import SmoothHinge
from nerm.atoms.squared import Squared
from nerm.atoms.squared_hinge import SquaredHinge
from nerm.atoms.squared_l2 import SquaredL2

__all__ = [
    "L1",
    "CustomMarginFunction",
    "ElasticNet",
    "Exponential",
    "Facts",
    "GroupL2",
    "Hinge",
    "HuberizedHinge",
    "Identity",
    "LInf",
    "Logistic",
    "MarginFunction",
    "ModifiedHuber",
    "Norm",
    "Pinball",
    "Regularizer",
    "SmoothHinge",
    "Squared",
    "SquaredHinge",
    "SquaredL2",
    "margin_function",
    "margin_functions",
    "regularizers",
]

_Atom = TypeVar("_Atom")


def _concrete(base: type[_Atom]) -> dict[str, type[_Atom]]:
    """Return every built-in class below `base` that can be made without arguments, by its name."""
    found: dict[str, type[_Atom]] = {}
    for cls in base.__subclasses__():
        named: Any = cls
        if cls.__module__.startswith(__name__) and not inspect.isabstract(cls) and named.name:
            found[named.name] = cls
        found.update(_concrete(cls))
    return dict(sorted(found.items()))


def margin_functions() -> dict[str, type[MarginFunction]]:
    """Return the built-in margin functions by name, derived from the classes.

    >>> float(margin_functions()["squared-hinge"]().value(-1.0))
    4.0
    """
    return _concrete(MarginFunction)  # type: ignore[type-abstract]


def regularizers() -> dict[str, type[Regularizer]]:
    """Return the built-in regularizers by name, derived from the classes.

    >>> sorted(regularizers())
    ['elastic-net', 'group-l2', 'l-inf', 'l1', 'squared-l2']
    """
    return _concrete(Regularizer)  # type: ignore[type-abstract]
