"""Other methods on the same rows: plain logistic regression always, the published neutral ones when asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nerm.tables.reading import missing_in
from nerm.tables.roles import TableTask

if TYPE_CHECKING:
    from nerm.report.study import Settings

#: Weights of the neutral methods, a few of the paper's: enough to see their fronts.
WEIGHTS: dict[str, tuple[float, ...]] = {
    "cv2nb": (),
    "pr": (0.0, 1.0, 5.0, 10.0, 50.0),
    "eta-lr": (0.0, 0.01, 0.1, 0.5),
}


@dataclass(frozen=True)
class Rival:
    """Another method at one weight (or without one), measured on the same held-out rows."""

    method: str
    eta: float | None
    measures: dict[str, float]

    @property
    def name(self) -> str:
        """The method with its weight."""
        return self.method if self.eta is None else f"{self.method}, η = {self.eta:g}"


Key = tuple[str, float | None]


def logistic_regression(X: Any, y: np.ndarray, X_test: Any, settings: Settings) -> np.ndarray:
    """Score held-out rows by plain logistic regression with the same regularisation in mean form."""
    from sklearn.linear_model import LogisticRegression

    C = 1.0 / (max(settings.lam, 1e-6) * len(y))
    model = LogisticRegression(C=C, max_iter=1000, class_weight=settings.class_weight).fit(X, y)
    return np.asarray(model.decision_function(X_test))


def rival_scores(
    train: TableTask, test: TableTask, X: Any, X_test: Any, settings: Settings, *, every_method: bool
) -> tuple[dict[Key, np.ndarray], list[str]]:
    """Return the scores of the held-out rows by method and weight, and notes on methods that failed."""
    scores: dict[Key, np.ndarray] = {("logistic regression", None): logistic_regression(X, train.y, X_test, settings)}
    notes: list[str] = []
    if not every_method:
        return scores, notes
    from nerm.experiments.methods import METHODS, Fold

    for name, weights in WEIGHTS.items():
        method = METHODS[name]
        inputs = _nominal(train, test, settings) if method.coding == "nominal" else (X, X_test)
        fold = Fold(inputs[0], train.y, train.v, inputs[1], test.v, settings.seed)
        fits = list(method.fit(fold, settings.lam * len(train), weights))
        for eta, fit in zip(weights or (None,), fits, strict=True):
            if fit.scores is None:
                notes.append(f"{method.label} failed: {fit.reason}")
            else:
                scores[method.label, eta] = fit.scores
    return scores, notes


def _nominal(train: TableTask, test: TableTask, settings: Settings) -> tuple[Any, Any]:
    """Return the paper's discretisation, learned on the training rows."""
    from nerm.datasets import Discretize

    coder = Discretize().fit(_frame(train, settings))
    return coder.transform(_frame(train, settings)), coder.transform(_frame(test, settings))


def _frame(task: TableTask, settings: Settings) -> Any:
    """Return the inputs as a frame of numbers and words."""
    import pandas as pd

    columns = {}
    for name in task.inputs:
        values = task.table[name].copy()
        values[missing_in(values, settings.missing) if settings.missing else missing_in(values)] = np.nan
        columns[name] = values if name in settings.nominal else values.astype(float)
    return pd.DataFrame(columns)
