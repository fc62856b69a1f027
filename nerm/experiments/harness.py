"""Describe methods and data, and fit a method over its grid of settings.

- `Method` describes a method: ``method.fit(fold, lam, grid)`` yields one `Fit` per setting of its grid.
- `sweep` fits one method over its grid, for one split into training and test rows.
- `nerm.experiments.cross_validate` calls `sweep` for data sets, repetitions and folds.

`sweep` takes the data as `CodedData`, or any object with ``y`` and ``viewpoint``, (n,) in -1/+1, and a method
``parts(coding, train, test)``. This method returns the features of the training and of the test rows, in a
coding that may be learned on the training rows.
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
    """Return all step * 10^k for k = first, ..., last, sorted by k.

    >>> decades((1, 3), -1, 0)
    (0.1, 0.3, 1.0, 3.0)
    """
    return tuple(float(f"{step}e{k}") for k in range(first, last + 1) for step in steps)


#: Attributes of `Method` that are columns of the result tables.
FACTS = ("sees_group", "randomised", "level")


@dataclass(frozen=True, eq=False)
class Fold:
    """The training rows of one fold, and its test rows without labels, so that no method can use them.

    Attributes
    ----------
    X, X_test
        Training rows, (n, d), and test rows, (m, d), in the method's coding.
    y, viewpoint
        Labels and viewpoints of the training rows, (n,), in -1/+1.
    viewpoint_test
        Viewpoints of the test rows, (m,).
    seed
        Random seed, for a method that draws random numbers.

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
    """The result of fitting a method at one setting; a failed fit has no scores but a reason.

    Attributes
    ----------
    scores
        Scores of the test rows, (m,), or None if the fit failed.
    seconds
        Time of the fit.
    reason
        Why there are no scores, or the message of a solver that stopped early.
    status
        "ok", "not converged" or "failed"; in the experiment `levels` also "collapsed" or "not reached".

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
        Its name in tables, and its name in figures.
    coding
        Coding of the rows that it takes: "one-hot" or "nominal".
    etas
        Its grid of neutrality weights or limits; empty if it has none.
    tuning
        Name of the family of methods that share one tuned lambda; None if the method has no lambda.
    fit
        ``fit(fold, lam, etas)`` yields one `Fit` per eta, or a single one if the method has no eta.
    plain
        A function like `fit` for the method without neutrality, called with ``etas=(0.0,)`` to tune lambda.
    details
        Text that distinguishes methods of the same name; part of an experiment's settings.
    sees_group, randomised
        Whether predictions use the viewpoint, and whether they are random.
    level
        How the method reaches a given level of measured neutrality: "asked" (the level is a parameter),
        "grid" (a search over its weights), or "none" (it cannot).

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
    """One data set, either coded once on all rows or coded anew on the training rows of each fold.

    Attributes
    ----------
    name
        Name of the data set.
    y, viewpoint
        Labels and viewpoints, (n,), in -1/+1.
    coded
        The features, (n, d), by name of the coding; empty if each fold codes `raw`.
    raw
        The DataFrame that each fold codes; None if the data are coded once.
    digest
        Checksum of the content.
    """

    name: str
    y: Floats
    viewpoint: Floats
    coded: Mapping[str, Matrix]
    raw: Any = None
    digest: str = ""

    def parts(self, coding: str, train: Ints, test: Ints) -> tuple[Matrix, Matrix]:
        """Return the features of the training and of the test rows, (n, d) and (m, d), in this coding.

        `train` and `test` are row indices.
        """
        if self.raw is None:
            rows = self.coded[coding]
            return rows[train], rows[test]
        coder = _coder("raw", coding).fit(self.raw.iloc[train])
        X, X_test = (_as_matrix(coder.transform(self.raw.iloc[part])) for part in (train, test))
        return X, X_test


def _coder(given: str, coding: str) -> Any:
    """Return a scikit-learn transformer from the coding `given` ("raw" or "nominal") to `coding`."""
    from sklearn.pipeline import make_pipeline

    first = nerm.datasets.Discretize() if given == "raw" else "passthrough"
    return make_pipeline(first, nerm.datasets.OneHot() if coding == "one-hot" else "passthrough")


def _as_matrix(X: Any) -> Matrix:
    return sp.csr_matrix(X) if sp.issparse(X) else np.asarray(X, dtype=float)


def coded_data(datasets: Any, discretize: str, codings: set[str], data_home: Any) -> dict[str, CodedData]:
    """Load and code data sets; return a dictionary from data set name to `CodedData`.

    Parameters
    ----------
    datasets
        One or several names or `Dataset` objects.
    discretize
        "all rows" or "training folds": the rows on which the discretization is learned.
    codings
        The codings that the methods need.
    data_home
        Folder with the data files, as for `nerm.datasets.load`.
    """
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
    """Fit a method on training rows at every setting of its grid, and score test rows.

    Parameters
    ----------
    method
        One of `METHODS`, or made by `from_objective` or `from_estimator`.
    rows
        All rows: an object with ``y``, ``viewpoint`` and ``parts(coding, train, test)``.
    train, test
        Indices of the rows to fit on and of the rows to score.
    lam
        The regularization weight lambda in sum form, so C = 1/lambda. In mean form it is lambda/n for n
        training rows.
    seed
        Random seed, for a method that draws random numbers.

    Yields
    ------
    Fit
        One per value in ``method.etas``, or a single one if there are none.

    >>> from nerm.experiments import METHODS
    >>> data = coded_data("diabetes", "all rows", {"one-hot"}, None)["diabetes"]
    >>> fits = list(sweep(METHODS["neutral-svm"], data, np.arange(300), np.arange(300, 442), lam=10.0))
    >>> len(fits), fits[0].scores.shape
    (10, (142,))
    """
    X, X_test = rows.parts(method.coding, train, test)
    fold = Fold(X, rows.y[train], rows.viewpoint[train], X_test, rows.viewpoint[test], seed)
    return method.fit(fold, lam, method.etas)
