"""nerm: neutralized empirical risk minimization.

A classifier f that is accurate and does not follow a second opinion g: objectives as algebra, solved with a
certificate of optimality.

>>> import numpy as np, nerm
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(80, 3)); y = np.sign(X[:, 0] + 0.3 * rng.normal(size=80)); v = np.sign(X[:, 0] + X[:, 1])
>>> objective = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
>>> solution = objective.on(X, y, viewpoint=v).solve()
>>> str(solution.status), bool(solution.certificate.relative_gap < 1e-6)
('optimal', True)
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.2.0"

# Names are found when first asked for, so that `import nerm` costs nothing and `nerm --help` is quick. Which
# there are, and where each lives, is written once, in the imports of __init__.pyi; losses and regularizers
# come from nerm.atoms.
_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8"))
_HOMES = {
    alias.name: str(node.module)
    for node in _STUB.body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
_ROOMS = tuple(name for name, home in _HOMES.items() if home == __name__)
_LAZY = {name: home for name, home in _HOMES.items() if home.startswith(f"{__name__}.")}


def _atoms() -> dict[str, Any]:
    atoms = import_module("nerm.atoms")
    found = (atoms.margin_functions(), atoms.dc_functions(), atoms.regularizers())
    return {cls.__name__: cls for classes in found for cls in classes.values()}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name in _LAZY:
        value = getattr(import_module(_LAZY[name]), name)
    elif name == "__all__":
        value = sorted({*_ROOMS, *_LAZY, *_atoms()})
    elif name.startswith("_") or (value := _atoms().get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOMS, *_LAZY, *_atoms()})
