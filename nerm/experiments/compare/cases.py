"""The problems on which solvers are compared: seeded, named, made afresh from a few numbers wherever they are needed.

Every family varies one thing and holds the others: size, shape, density, conditioning, the neutrality weight eta, the
regularization lambda, the atoms, the kernel. Real data join where the folder in ``NERM_DATA`` has them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError, UnknownNameError

#: Raised whenever the problems behind the names change, so that old results files are refused.
EDITION = 1
REAL = ("german", "bank", "adult")


@dataclass(frozen=True)
class Case:
    """A problem in a few numbers: ``case.problem()`` draws it, the same one every time.

    name, family
        What the tables call it, and what it has in common with its siblings.
    n, d
        Rows and columns (of real data: at most n rows, and d is what the coding gives).
    density, condition
        Share of nonzero entries (below 1: a sparse matrix), and the ratio of the largest column scale to the smallest.
    lam, eta
        The weights of regularizer and neutrality term, in mean form.
    loss, surrogate, regularizer, kernel
        Names of atoms and of a kernel ("" for a linear hypothesis).
    dataset
        "" for drawn data, or a name that `nerm.datasets.load` knows.

    >>> case = Case("mine", "size", n=40, d=3)
    >>> case.problem()
    <Problem: ... on 40 rows, 3 coefficients, linear>
    """

    name: str
    family: str
    n: int = 300
    d: int = 20
    density: float = 1.0
    condition: float = 1.0
    lam: float = 0.01
    eta: float = 1.0
    loss: str = "Hinge"
    surrogate: str = "Hinge"
    regularizer: str = "SquaredL2"
    kernel: str = ""
    dataset: str = ""
    seed: int = 0

    def problem(self) -> Any:
        """Draw or load the data and bind the objective to them."""
        from nerm.atoms import GroupL2
        from nerm.objective import Neutrality, Risk

        X, y, v = self._real() if self.dataset else self._drawn()
        regularizer = GroupL2(_pairs(X.shape[1])) if self.regularizer == "GroupL2" else _atom(self.regularizer)
        objective = Risk(_atom(self.loss)) + self.lam * regularizer + self.eta * Neutrality(_atom(self.surrogate))
        return objective.on(X, y, viewpoint=v, kernel=self.kernel or None)

    def _drawn(self) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return X, and y and v that follow two directions at about 60 degrees, a tenth of them flipped."""
        import scipy.sparse as sp

        rng = np.random.default_rng([self.seed, self.n, self.d])
        X = rng.standard_normal((self.n, self.d))
        if self.density < 1:
            X *= rng.random(X.shape) < self.density
        w = rng.standard_normal(self.d) / np.sqrt(self.density * self.d)
        u = 0.5 * w + np.sqrt(0.75) * rng.standard_normal(self.d) / np.sqrt(self.density * self.d)
        noise = np.where(rng.random((2, self.n)) < 0.1, -1.0, 1.0)
        y, v = (np.where(X @ direction > 0, 1.0, -1.0) * flip for direction, flip in zip((w, u), noise, strict=True))
        for labels in (y, v):  # both classes, however few the rows
            labels[:2] = 1.0, -1.0
        X = X * np.geomspace(1.0, 1.0 / self.condition, self.d)
        return (sp.csr_array(X) if self.density < 1 else X), y, v

    def _real(self) -> tuple[Any, np.ndarray, np.ndarray]:
        from nerm.datasets import load

        data = load(self.dataset, coding="one-hot")
        rows = np.random.default_rng(self.seed).permutation(len(data.y))[: self.n]
        return data.X[rows], data.y[rows], data.viewpoint[rows]


def default_cases() -> list[Case]:
    """Return the full set: 60 drawn problems, diabetes, and german, bank and adult where ``NERM_DATA`` has them.

    >>> len(default_cases()) >= 60
    True
    """
    base = Case("", "")
    sizes = [60, 120, 250, 500, 1000, 2000, 4000, 8000]
    cases = [replace(base, family="size", name=f"size-n{n}", n=n) for n in sizes]
    shapes = [(100, 2), (1000, 2), (400, 100), (200, 200), (100, 300), (60, 1000)]
    cases += [replace(base, family="shape", name=f"shape-{n}x{d}", n=n, d=d) for n, d in shapes]
    densities = [(0.3, 100), (0.1, 200), (0.03, 400), (0.01, 1000)]
    cases += [
        replace(base, family="density", name=f"density-{share:g}", n=500, d=d, density=share) for share, d in densities
    ]
    conditions = [1e1, 1e2, 1e3, 1e4, 1e6]
    cases += [replace(base, family="condition", name=f"condition-{c:.0e}", condition=c) for c in conditions]
    etas = [0.0, 1e-3, 1e-1, 0.5, 2.0, 10.0, 1e3]
    cases += [replace(base, family="eta", name=f"eta-{eta:g}", eta=eta) for eta in etas]
    lams = [1e-6, 1e-5, 1e-4, 1e-3, 1e-1, 1.0, 1e2]
    cases += [replace(base, family="lambda", name=f"lambda-{lam:g}", lam=lam) for lam in lams]
    cases += _atoms(base) + _kernels(base)
    return [*cases, *_real_cases()]


def quick_cases() -> list[Case]:
    """Return a small set, one or a few problems a family, for tests and first looks.

    >>> sorted({case.family for case in quick_cases()})
    ['atoms', 'condition', 'eta', 'kernel', 'lambda', 'size']
    """
    base = Case("", "", d=5)
    return [
        *(replace(base, family="size", name=f"quick-n{n}", n=n) for n in (50, 150, 450, 1350)),
        replace(base, family="condition", name="quick-condition-1e+04", n=100, condition=1e4),
        replace(base, family="eta", name="quick-eta-100", n=100, eta=100.0),
        replace(base, family="lambda", name="quick-lambda-1e-05", n=100, lam=1e-5),
        replace(base, family="atoms", name="quick-logistic", n=100, loss="Logistic", surrogate="Logistic"),
        replace(base, family="atoms", name="quick-l1", n=100, regularizer="L1"),
        replace(base, family="kernel", name="quick-rbf", n=80, kernel="rbf"),
    ]


SETS = {"default": default_cases, "quick": quick_cases}


def chosen(problems: str | Sequence[Case]) -> list[Case]:
    """Return the cases of a set by its name, or those given, with names that tell them apart."""
    if isinstance(problems, str):
        if problems not in SETS:
            raise UnknownNameError("'problems'", problems, SETS)
        return SETS[problems]()
    cases = list(problems)
    if not cases or not all(isinstance(case, Case) for case in cases):
        raise InvalidInputError(
            "'problems' must be the name of a set or a nonempty list of Case", repr(problems)[:60], "Use 'quick'"
        )
    names = [case.name for case in cases]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError("the names of 'problems' must differ", f"{name!r} twice", "Rename one of them")
    return cases


def _atoms(base: Case) -> list[Case]:
    pairs = [
        ("SquaredHinge", "Hinge"),
        ("SquaredHinge", "SquaredHinge"),
        ("SmoothHinge", "SmoothHinge"),
        ("HuberizedHinge", "Hinge"),
        ("Logistic", "Hinge"),
        ("Logistic", "Logistic"),
        ("Exponential", "Hinge"),
        ("Squared", "Hinge"),
        ("Hinge", "Logistic"),
    ]
    cases = [
        replace(base, family="atoms", name=f"atoms-{a}-{b}".lower(), n=250, d=10, loss=a, surrogate=b) for a, b in pairs
    ]
    others = [("Hinge", "L1"), ("Logistic", "L1"), ("Hinge", "ElasticNet"), ("Hinge", "GroupL2"), ("Hinge", "LInf")]
    cases += [
        replace(base, family="atoms", name=f"atoms-{a}-{omega}".lower(), n=250, d=20, loss=a, regularizer=omega)
        for a, omega in others
    ]
    return cases


def _kernels(base: Case) -> list[Case]:
    cases = [
        replace(base, family="kernel", name=f"kernel-rbf-n{n}", n=n, d=4, kernel="rbf") for n in (60, 120, 240, 480)
    ]
    cases += [
        replace(base, family="kernel", name=f"kernel-{kernel}", n=120, d=4, kernel=kernel)
        for kernel in ("linear", "poly")
    ]
    cases.append(replace(base, family="kernel", name="kernel-rbf-d20", n=120, d=20, kernel="rbf"))
    cases.append(replace(base, family="kernel", name="kernel-rbf-lambda-1e-05", n=120, d=4, kernel="rbf", lam=1e-5))
    cases.append(replace(base, family="kernel", name="kernel-rbf-logistic", n=120, d=4, kernel="rbf", loss="Logistic"))
    return cases


def _real_cases() -> list[Case]:
    """Return the diabetes data, which need no download, and the UCI files that are here."""
    folder = os.environ.get("NERM_DATA")
    here = [name for name in REAL if folder and (Path(folder) / name).is_dir()]
    return [
        Case(f"real-{name}-{eta:g}", "real", n=2000, eta=eta, lam=1e-3, dataset=name)
        for name in ["diabetes", *here]
        for eta in (0.1, 1.0)
    ]


def _atom(name: str) -> Any:
    import nerm.atoms

    return getattr(nerm.atoms, name)()


def _pairs(d: int) -> list[list[int]]:
    """Return groups of two neighbours (and a last one of three where d is odd)."""
    edges = list(range(0, d - 1, 2))
    return [list(range(start, d if start == edges[-1] else start + 2)) for start in edges]
