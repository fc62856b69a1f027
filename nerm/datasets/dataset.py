"""The `Dataset` that ``load`` returns, and the error for data that are not available."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nerm.errors import InvalidInputError
from nerm.typing import Floats


class DataUnavailableError(InvalidInputError, FileNotFoundError):
    """The data are neither on this machine nor to be downloaded; the message says where to put them.

    A FileNotFoundError too.

    >>> from nerm.datasets import load
    >>> try:
    ...     load("dutch", path="nowhere.arff")
    ... except FileNotFoundError as error:
    ...     print(error)
    'path' must name the ARFF file of the Dutch census, which cannot be downloaded. Got no file at
    nowhere.arff. Get dutch_census_2001.arff ...
    """


@dataclass(frozen=True, repr=False, eq=False)
class Dataset:
    """Inputs, labels and viewpoint of one data set.

    Attributes
    ----------
    X
        (n, d), never with the target or the viewpoint: a frame (raw), a frame of codes with NaN for missing
        (nominal), or a CSR matrix (one-hot). Of news, the sentences whose outlet has a side.
    y
        (n,): +1 for the desired outcome, else -1.
    viewpoint
        (n,): +1 for the favoured group, else -1.
    feature_names
        Of the columns of X.
    name, coding, description, source, licence
        What it is, how X is coded, where it came from and on which terms.
    frame
        The whole published table, target and viewpoint included, where there is one.
    categories
        What the nominal codes stand for.
    details
        For instance the true weights of synthetic data.

    Examples
    --------
    >>> from nerm.datasets import load
    >>> data = load("diabetes")
    >>> data
    Dataset('diabetes', coding='raw': 442 rows, 9 columns, 50.0% desired outcomes, 46.8% favoured)
    >>> "sex" in data.feature_names, "sex" in data.frame.columns
    (False, True)
    """

    X: Any
    y: Floats
    viewpoint: Floats
    feature_names: list[str]
    name: str
    coding: str
    description: str
    source: str
    licence: str
    frame: Any = None
    categories: Mapping[str, list[str]] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        return (
            f"Dataset({self.name!r}, coding={self.coding!r}: {rows} rows, {columns} columns, "
            f"{(self.y > 0).mean():.1%} desired outcomes, {(self.viewpoint > 0).mean():.1%} favoured)"
        )
