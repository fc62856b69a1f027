"""nerm: neutralized empirical risk minimization.

nerm trains classifiers and regressors f that are accurate and neutral to a viewpoint g, such as a group. An
objective is written as a sum of terms, and every solution has a certificate of optimality.

>>> import numpy as np, nerm
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(80, 3))
>>> y = np.sign(X[:, 0] + 0.3 * rng.normal(size=80))
>>> v = np.sign(X[:, 0] + X[:, 1])
>>> objective = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
>>> solution = objective.on(X, y, viewpoint=v).solve()
>>> str(solution.status), bool(solution.certificate.relative_gap < 1e-6)
('optimal', True)
"""

from importlib import import_module
from typing import Any

import lazy_loader

__version__ = "0.2.0"

# Names are imported when they are first used, so that `import nerm` and `nerm --help` are quick.
# __init__.pyi lists them.
_from_stub, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    try:
        return _from_stub(name)
    except AttributeError:
        if name.startswith("_"):
            raise
        atoms = import_module("nerm.atoms")  # a new atom needs no line in the stub
        if name not in atoms.__all__:
            raise
        return getattr(atoms, name)
