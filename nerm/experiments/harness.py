"""Methods, the rows that they are fitted on, and sweeps over their grids of settings.

- `Method` describes a method: ``method.fit(fold, lam, grid)`` yields one `Fit` per setting of its grid.
- `sweep` fits one method over its grid on one pair of training and test rows.
- `nerm.experiments.cross_validate` sweeps over data sets, repetitions and folds.

The rows may be any object with ``y`` and ``viewpoint``, (n,) in -1/+1, and ``parts(coding, train, test)``,
which returns training and test rows in a coding that is learned on the training rows, such as `CodedData`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import nerm
from nerm.errors import InvalidInputError
from nerm.typing import Array, Floats, Ints, Matrix
from nerm.validation import check_known


def decades(steps: Sequence[int], first: int, last: int) -> tuple[float, ...]:
    """Return step * 10^k for k = first .. last.

    >>> decades((1, 3), -1, 0)
    (0.1, 0.3, 1.0, 3.0)
    """
    return tuple(float(f"{step}e{k}") for k in range(first, last + 1) for step in steps)


#: The columns that describe a method; they are attributes of `Method`.
FACTS = ("sees_group", "randomised", "level")


@dataclass(frozen=True, eq=False)
class Fold:
    """The training rows of one fold, and its test rows without their labels, which no method may see.

    Attributes
    ----------
    X, X_test
        Training rows, (n, d), and test rows, (m, d), in the method's coding.
    y, viewpoint
        Labels and viewpoints of the training rows, (n,), in -1/+1.
    viewpoint_test
        Viewpoints of the test rows, (m,).
    seed
        For a method that draws random numbers.

    >>> from dataclasses import fields
    >>> [field.name for field in fields(Fold)]
    ['X', 'y', 'viewpoint', 'X_test', 'viewpoint_test', 'seed']

    """

    X: Matrix
    y: Array
    viewpoint: Array
    X_test: Matrix
    viewpoint_test: Array
    seed: int


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of one setting; a failure is a fit without scores and with a reason.

    Attributes
    ----------
    scores
        Of the test rows, (m,), or None.
    seconds
        The time of the fit.
    reason
        Why there are no scores, or the message of a solver that stopped early.
    status
        In tables: "ok", "not converged" or "failed"; at a limit also "collapsed" or "not reached".

    >>> from nerm.experiments import METHODS
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> fold = Fold(np.zeros((4, 1)), y, y, np.zeros((2, 1)), np.array([-1.0, 1.0]), seed=0)
    >>> (fit,) = METHODS["lr"].fit(fold, -1.0, ())
    >>> fit.scores is None, fit.status, fit.reason.split(":")[0]
    (True, 'failed', 'InvalidParameterError')

    """

    scores: Floats | None
    seconds: float
    reason: str = ""
    status: str = "ok"


FitGrid = Callable[[Fold, float, Sequence[float]], Iterator[Fit]]


@dataclass(frozen=True, eq=False)
class Method:
    """A method: its name, the coding of its rows, its grid of settings, and the function that fits it.

    Attributes
    ----------
    name, label
        In tables, and in figures.
    coding
        Of its rows: "one-hot" or "nominal".
    etas
        Its grid, of neutrality weights or limits; empty for a method without.
    tuning
        The family that shares one lambda; None for a method without lambda.
    fit
        ``fit(fold, lam, etas)`` yields one `Fit` per eta, or a single one where there is no eta.
    plain
        The same for the method without neutrality (``etas=(0.0,)``), by which lambda is tuned.
    details
        Anything else that tells this method from another of its name; part of an experiment's settings.
    sees_group, randomised, level
        Whether predictions use the viewpoint, whether they are drawn at random, and how a level of measured
        neutrality is reached: "asked" for, found by a "grid", or "none".

    >>> from nerm.experiments import METHODS
    >>> X, y, v = np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([1, 1, -1, -1]), np.array([1, -1, 1, -1])
    >>> fold = Fold(X, y, v, X_test=np.array([[1.0]]), viewpoint_test=np.array([1]), seed=0)
    >>> fits = METHODS["neutral-svm"].fit(fold, 2.0, [0.0, 1.0])
    >>> [fit.scores.round(3).tolist() for fit in fits]
    [[1.0], [0.5]]

    """

    name: str
    label: str
    coding: str
    etas: tuple[float, ...]
    tuning: str | None
    fit: FitGrid
    plain: FitGrid | None = None
    details: str = ""
    sees_group: bool = False
    randomised: bool = False
    level: str = "grid"


@dataclass(frozen=True, eq=False)
class CodedData:
    """One data set: all rows in the codings that are needed, or a raw frame that each fold codes by itself.

    Attributes
    ----------
    name
        Of the data set.
    y, viewpoint
        (n,), -1/+1.
    coded
        Rows by coding; empty where the folds code `raw`.
    raw
        A frame, or None.
    digest
        A checksum of the content.
    """

    name: str
    y: Floats
    viewpoint: Floats
    coded: Mapping[str, Matrix]
    raw: Any = None
    digest: str = ""

    def parts(self, coding: str, train: Ints, test: Ints) -> tuple[Matrix, Matrix]:
        """Return training and test rows in a method's coding."""
        if self.raw is None:
            rows = self.coded[coding]
            return rows[train], rows[test]
        coder = _coder("raw", coding).fit(self.raw.iloc[train])
        X, X_test = (_as_matrix(coder.transform(self.raw.iloc[part])) for part in (train, test))
        return X, X_test


def _coder(given: str, coding: str) -> Any:
    """Return the transformer of a table from one coding to another."""
    from sklearn.pipeline import make_pipeline

    first = nerm.datasets.Discretize() if given == "raw" else "passthrough"
    return make_pipeline(first, nerm.datasets.OneHot() if coding == "one-hot" else "passthrough")


def _as_matrix(X: Any) -> Matrix:
    return sp.csr_matrix(X) if sp.issparse(X) else np.asarray(X, dtype=float)


def coded_data(datasets: Any, discretize: str, codings: set[str], data_home: Any) -> dict[str, CodedData]:
    """Return data sets, given by name or as `Dataset`, by name and in these codings."""
    check_known(discretize, "'discretize'", ("all rows", "training folds"))
    several = [datasets] if isinstance(datasets, str | nerm.datasets.Dataset) else list(datasets)
    coded = [_coded(data, discretize, codings, data_home) for data in several]
    if not coded:
        must = "'datasets' must name at least one data set"
        raise InvalidInputError(must, "none", "Give datasets=('german',)")
    names = [data.name for data in coded]
    if len(set(names)) < len(names):
        raise InvalidInputError("each of 'datasets' must have its own name", repr(names), "Rename one")
    return dict(zip(names, coded, strict=True))


def _coded(data: Any, discretize: str, codings: set[str], data_home: Any) -> CodedData:
    import joblib
    import pandas as pd

    from nerm.datasets.coding import as_frame

    if not isinstance(data, nerm.datasets.Dataset):
        data = nerm.datasets.load(data, random_state=0 if data == "synthetic" else None, data_home=data_home)
    y, viewpoint = np.asarray(data.y, dtype=float), np.asarray(data.viewpoint, dtype=float)
    one_hot = data.coding == "one-hot"
    if one_hot and "nominal" in codings:
        must = f"the data set {data.name!r} must be raw or nominal for the methods that need nominal codes"
        do = "Load it with coding='raw', or leave those methods out"
        raise InvalidInputError(must, "coding 'one-hot'", do)
    X = _as_matrix(data.X) if one_hot else as_frame(data.X)
    content = X if one_hot else pd.util.hash_pandas_object(X, index=False).to_numpy()
    digest = str(joblib.hash((y, viewpoint, content)))[:16]
    if data.coding == "raw" and discretize == "training folds":
        return CodedData(data.name, y, viewpoint, {}, X, digest)
    coded = {c: X if one_hot else _as_matrix(_coder(data.coding, c).fit_transform(X)) for c in codings}
    return CodedData(data.name, y, viewpoint, coded, None, digest)


def sweep(method: Method, rows: Any, train: Ints, test: Ints, lam: float, seed: int = 0) -> Iterator[Fit]:
    """Fit a method at every setting of its grid on some rows, and score other rows.

    Parameters
    ----------
    method
        One of `METHODS`, or made by `from_objective` or `from_estimator`.
    rows
        All rows: an object with ``y``, ``viewpoint`` and ``parts(coding, train, test)``.
    train, test
        Numbers of the rows to fit on and to score.
    lam
        The regularization weight in sum form: lambda, C = 1/lambda; in mean form lambda/n on n training rows.
    seed
        For a method that draws random numbers.

    Yields
    ------
    Fit
        One for each of ``method.etas``, or a single one where it has none.

    >>> from nerm.experiments import METHODS
    >>> data = coded_data("diabetes", "all rows", {"one-hot"}, None)["diabetes"]
    >>> fits = list(sweep(METHODS["neutral-svm"], data, np.arange(300), np.arange(300, 442), lam=10.0))
    >>> len(fits), fits[0].scores.shape
    (10, (142,))
    """
    X, X_test = rows.parts(method.coding, train, test)
    fold = Fold(X, rows.y[train], rows.viewpoint[train], X_test, rows.viewpoint[test], seed)
    return method.fit(fold, lam, method.etas)
