"""The problems on which solvers are compared: seeded, named, made afresh from a few numbers wherever they are needed.

Every family varies one thing and holds the others: size, shape, density, conditioning, the neutrality weight
eta, the regularization lambda, the atoms, the kernel. Real data join where the folder in ``NERM_DATA`` has
them.
"""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.typing import Floats, Matrix
from nerm.validation import check_known

#: Raised whenever the problems behind the names change, so that old results files are refused.
EDITION = 1
REAL = ("german", "bank", "adult")


@dataclass(frozen=True)
class Case:
    """A problem in a few numbers: ``case.problem()`` draws it, the same one every time.

    Attributes
    ----------
    name, family
        What the tables call it, and what it has in common with its siblings.
    n, d
        Rows and columns (of real data: at most n rows, and d is what the coding gives).
    density, condition
        Share of nonzero entries (below 1: a sparse matrix), and the ratio of the largest column scale to the
        smallest.
    lam, eta
        The weights of regularizer and neutrality term, in mean form.
    loss, surrogate, regularizer, kernel
        Names of atoms and of a kernel ("" for a linear hypothesis).
    dataset
        "" for drawn data, or a name that `nerm.datasets.load` knows.
    seed
        Of what is drawn.

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
        from nerm.model.objective import Neutrality, Risk

        X, y, v = self._real() if self.dataset else self._drawn()
        regularizer = (
            GroupL2(_pairs(X.shape[1])) if self.regularizer == "GroupL2" else _atom(self.regularizer)
        )
        objective = (
            Risk(_atom(self.loss)) + self.lam * regularizer + self.eta * Neutrality(_atom(self.surrogate))
        )
        return objective.on(X, y, viewpoint=v, kernel=self.kernel or None)

    def _drawn(self) -> tuple[Matrix, Floats, Floats]:
        """Return X, and y and v that follow two directions at about 60 degrees, a tenth of them flipped."""
        import scipy.sparse as sp

        rng = np.random.default_rng([self.seed, self.n, self.d])
        X = rng.standard_normal((self.n, self.d))
        if self.density < 1:
            X *= rng.random(X.shape) < self.density
        w = rng.standard_normal(self.d) / np.sqrt(self.density * self.d)
        u = 0.5 * w + np.sqrt(0.75) * rng.standard_normal(self.d) / np.sqrt(self.density * self.d)
        noise = np.where(rng.random((2, self.n)) < 0.1, -1.0, 1.0)
        y, v = (
            np.where(X @ direction > 0, 1.0, -1.0) * flip
            for direction, flip in zip((w, u), noise, strict=True)
        )
        for labels in (y, v):  # both classes, however few the rows
            labels[:2] = 1.0, -1.0
        X = X * np.geomspace(1.0, 1.0 / self.condition, self.d)
        return (sp.csr_array(X) if self.density < 1 else X), y, v

    def _real(self) -> tuple[Matrix, Floats, Floats]:
        from nerm.datasets import load

        data = load(self.dataset, coding="one-hot")
        rows = np.random.default_rng(self.seed).permutation(len(data.y))[: self.n]
        return data.X[rows], data.y[rows], data.viewpoint[rows]


def default_cases() -> list[Case]:
    """Return the full set: 60 drawn problems, diabetes, and german, bank and adult where ``NERM_DATA`` has them.

    >>> len(default_cases()) >= 60
    True
    """
    pair = "atoms-{loss}-{surrogate}"
    return [
        *_cases("size-n{n}", n=[60, 120, 250, 500, 1000, 2000, 4000, 8000]),
        *_cases("shape-{n}x{d}", n=[100, 1000, 400, 200, 100, 60], d=[2, 2, 100, 200, 300, 1000]),
        *_cases("density-{density:g}", n=500, density=[0.3, 0.1, 0.03, 0.01], d=[100, 200, 400, 1000]),
        *_cases("condition-{condition:.0e}", condition=[1e1, 1e2, 1e3, 1e4, 1e6]),
        *_cases("eta-{eta:g}", eta=[0.0, 1e-3, 1e-1, 0.5, 2.0, 10.0, 1e3]),
        *_cases("lambda-{lam:g}", lam=[1e-6, 1e-5, 1e-4, 1e-3, 1e-1, 1.0, 1e2]),
        *_cases(
            pair, n=250, d=10, loss=["SquaredHinge", "HuberizedHinge", "Logistic", "Exponential", "Squared"]
        ),
        *_cases(pair, n=250, d=10, loss=["Logistic", "Hinge"], surrogate="Logistic"),
        *_cases(
            pair, n=250, d=10, loss=["SquaredHinge", "SmoothHinge"], surrogate=["SquaredHinge", "SmoothHinge"]
        ),
        *_cases("atoms-{loss}-{regularizer}", n=250, regularizer=["L1", "ElasticNet", "GroupL2", "LInf"]),
        *_cases("atoms-{loss}-{regularizer}", n=250, loss=["Logistic"], regularizer="L1"),
        *_cases("kernel-{kernel}-n{n}", n=[60, 120, 240, 480], d=4, kernel="rbf"),
        *_cases("kernel-{kernel}", n=120, d=4, kernel=["linear", "poly"]),
        *_cases("kernel-{kernel}-d{d}", n=120, d=[20], kernel="rbf"),
        *_cases("kernel-{kernel}-lambda-{lam:g}", n=120, d=4, kernel="rbf", lam=[1e-5]),
        *_cases("kernel-{kernel}-{loss}", n=120, d=4, kernel="rbf", loss=["Logistic"]),
        *_real_cases(),
    ]


def quick_cases() -> list[Case]:
    """Return a small set, one or a few problems a family, for tests and first looks.

    >>> sorted({case.family for case in quick_cases()})
    ['atoms', 'condition', 'eta', 'kernel', 'lambda', 'size']
    """
    return [
        *_cases("quick-n{n}", "size", d=5, n=[50, 150, 450, 1350]),
        *_cases("quick-condition-{condition:.0e}", "condition", n=100, d=5, condition=[1e4]),
        *_cases("quick-eta-{eta:g}", "eta", n=100, d=5, eta=[100.0]),
        *_cases("quick-lambda-{lam:g}", "lambda", n=100, d=5, lam=[1e-5]),
        *_cases("quick-{loss}", "atoms", n=100, d=5, loss=["Logistic"], surrogate="Logistic"),
        *_cases("quick-{regularizer}", "atoms", n=100, d=5, regularizer=["L1"]),
        *_cases("quick-{kernel}", "kernel", n=80, d=5, kernel=["rbf"]),
    ]


def _cases(name: str, family: str = "", **settings: Any) -> list[Case]:
    """Return cases that differ in the settings that are lists; `name` is a template of their fields."""
    count = next(len(values) for values in settings.values() if isinstance(values, list))
    columns = {
        key: values if isinstance(values, list) else [values] * count for key, values in settings.items()
    }
    made = [
        Case("", family or name.partition("-")[0], **dict(zip(columns, row, strict=True)))
        for row in zip(*columns.values(), strict=True)
    ]
    return [replace(case, name=name.format(**asdict(case)).lower()) for case in made]


def _real_cases() -> list[Case]:
    """Return the diabetes data, which need no download, and the UCI files that are here."""
    folder = os.environ.get("NERM_DATA")
    here = [name for name in REAL if folder and (Path(folder) / name).is_dir()]
    return [
        Case(f"real-{name}-{eta:g}", "real", n=2000, eta=eta, lam=1e-3, dataset=name)
        for name in ["diabetes", *here]
        for eta in (0.1, 1.0)
    ]


SETS = {"default": default_cases, "quick": quick_cases}


def chosen(problems: str | Sequence[Case]) -> list[Case]:
    """Return the cases of a set by its name, or those given, with names that tell them apart."""
    if isinstance(problems, str):
        check_known(problems, "'problems'", SETS)
        return SETS[problems]()
    cases = list(problems)
    if not cases or not all(isinstance(case, Case) for case in cases):
        must = "'problems' must be the name of a set or a nonempty list of Case"
        raise InvalidInputError(must, repr(problems)[:60], "Use 'quick'")
    twice = [name for name, count in Counter(case.name for case in cases).items() if count > 1]
    if twice:
        raise InvalidInputError(
            "the names of 'problems' must differ", f"{twice[0]!r} twice", "Rename one of them"
        )
    return cases


def _atom(name: str) -> Any:
    import nerm.atoms

    return getattr(nerm.atoms, name)()


def _pairs(d: int) -> list[list[int]]:
    """Return groups of two neighbours (and a last one of three where d is odd)."""
    return [group.tolist() for group in np.split(np.arange(d), range(2, d - 1, 2))]
