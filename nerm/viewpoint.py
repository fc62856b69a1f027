"""Where the viewpoint v_i = g(x_i) comes from: an array, several by name, a callable, a fitted estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.validation import as_vector

DEFAULT = "viewpoint"


def resolve(viewpoint: Any, X: Any, n: int) -> dict[str, np.ndarray]:
    """Return every viewpoint by name as a float vector of length n; a single one is called "viewpoint".

    >>> resolve(lambda X: X[:, 0], np.array([[2.0], [-1.0]]), 2)
    {'viewpoint': array([ 2., -1.])}
    """
    if viewpoint is None:
        return {}
    if isinstance(viewpoint, Mapping):
        if not viewpoint:
            raise InvalidInputError(
                "'viewpoint' must name at least one viewpoint", "an empty dict", "Pass None instead"
            )
        return {str(name): _one(values, X, n, f"viewpoint[{name!r}]") for name, values in viewpoint.items()}
    return {DEFAULT: _one(viewpoint, X, n, DEFAULT)}


def _one(viewpoint: Any, X: Any, n: int, name: str) -> np.ndarray:
    """Return one viewpoint as numbers: evaluate it first if it is a hypothesis g."""
    if isinstance(viewpoint, type):
        raise InvalidInputError(
            f"{name!r} must be an array, a callable or a fitted estimator",
            f"the class {viewpoint.__name__}",
            "Make an instance and fit it",
        )
    if hasattr(viewpoint, "predict"):
        return as_vector(_estimated(viewpoint, X, name), n, name)
    if callable(viewpoint):
        return as_vector(viewpoint(X), n, f"{name}(X)")
    return as_vector(viewpoint, n, name)


def _estimated(estimator: Any, X: Any, name: str) -> Any:
    """Return g(x) of a fitted scikit-learn estimator: its decision function, else 2 P(+1) - 1, else its prediction."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except NotFittedError:
        raise InvalidInputError(
            f"{name!r} must be a fitted estimator",
            f"{type(estimator).__name__} that is not fitted",
            "Call its fit(X, viewpoint_labels) first",
        ) from None
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X))
    elif hasattr(estimator, "predict_proba"):
        probabilities = np.asarray(estimator.predict_proba(X))
        scores = 2 * probabilities[:, 1] - 1 if probabilities.shape[1] == 2 else probabilities
    else:
        scores = np.asarray(estimator.predict(X))
    if scores.ndim != 1:
        raise InvalidInputError(
            f"{name!r} must predict two classes",
            f"an estimator with {scores.shape[1]} classes",
            "Pass one viewpoint a class",
        )
    return scores
