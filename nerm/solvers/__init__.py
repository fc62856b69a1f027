"""The solvers: which are available, and the classes to write another one.

Names are imported when they are first used, so that a part of this package can be imported without the rest.

>>> import nerm
>>> "clarabel" in nerm.solvers.available()
True
"""

import lazy_loader

_NAMES = ("available", "choose", "known")
_BASE = ("Answer", "NermSolver", "OwnSolver", "Session", "Solver")

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"registry": [*_NAMES], "base": [*_BASE]}
)
