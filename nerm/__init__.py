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

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nerm import atoms, kernels, metrics, signs, solvers, weights
    from nerm.algebra import Objective
    from nerm.atoms import MarginFunction, Regularizer, margin_function
    from nerm.certificate import Certificate
    from nerm.errors import (
        InvalidInputError,
        MissingPackageError,
        NermError,
        NotSolvedError,
        UnknownNameError,
        UnsupportedProblemError,
    )
    from nerm.estimators import NERMClassifier, NeutralSVC
    from nerm.multipliers import Multipliers
    from nerm.objective import Neutrality, Risk
    from nerm.problem import Problem
    from nerm.saving import load
    from nerm.solution import Solution, Status

__version__ = "0.1.0.dev0"

# Found when first asked for, so that `import nerm` costs nothing and `nerm --help` is quick: where each name lives.
_HOMES = {
    "nerm.algebra": ("Objective",),
    "nerm.atoms": (
        "L1",
        "ElasticNet",
        "Exponential",
        "GroupL2",
        "Hinge",
        "HuberizedHinge",
        "Identity",
        "LInf",
        "Logistic",
        "MarginFunction",
        "ModifiedHuber",
        "Pinball",
        "Regularizer",
        "SmoothHinge",
        "Squared",
        "SquaredHinge",
        "SquaredL2",
        "margin_function",
    ),
    "nerm.certificate": ("Certificate",),
    "nerm.errors": (
        "InvalidInputError",
        "MissingPackageError",
        "NermError",
        "NotSolvedError",
        "UnknownNameError",
        "UnsupportedProblemError",
    ),
    "nerm.multipliers": ("Multipliers",),
    "nerm.objective": (
        "Neutrality",
        "Risk",
    ),
    "nerm.problem": ("Problem",),
    "nerm.solution": (
        "Solution",
        "Status",
    ),
    "nerm.estimators": (
        "NERMClassifier",
        "NeutralSVC",
    ),
    "nerm.saving": ("load",),
}
_LAZY = {name: home for home, names in _HOMES.items() for name in names}
_ROOMS = (
    "atoms",
    "baselines",
    "bounds",
    "datasets",
    "estimators",
    "experiments",
    "kernels",
    "metrics",
    "plots",
    "signs",
    "solvers",
    "svm",
    "tables",
    "testing",
    "viewpoint",
    "weights",
)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = globals()[name] = getattr(import_module(_LAZY[name]), name)
        return value
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_ROOMS})


__all__ = [
    "L1",
    "Certificate",
    "ElasticNet",
    "Exponential",
    "GroupL2",
    "Hinge",
    "HuberizedHinge",
    "Identity",
    "InvalidInputError",
    "LInf",
    "Logistic",
    "MarginFunction",
    "MissingPackageError",
    "ModifiedHuber",
    "Multipliers",
    "NERMClassifier",
    "NermError",
    "NeutralSVC",
    "Neutrality",
    "NotSolvedError",
    "Objective",
    "Pinball",
    "Problem",
    "Regularizer",
    "Risk",
    "SmoothHinge",
    "Solution",
    "Squared",
    "SquaredHinge",
    "SquaredL2",
    "Status",
    "UnknownNameError",
    "UnsupportedProblemError",
    "atoms",
    "kernels",
    "load",
    "margin_function",
    "metrics",
    "signs",
    "solvers",
    "weights",
]
