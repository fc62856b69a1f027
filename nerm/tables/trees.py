"""Boosted trees whose score is one more column of a recipe; they are saved as numbers, not as code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier

from nerm.errors import InvalidInputError
from nerm.features import cross_fitted
from nerm.typing import Floats, Ints, Matrix


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees of scikit-learn as arrays: the score is (baseline + sum of the leaves' values) / scale.

    In a node a row goes left if its value of the feature is at most the threshold. A leaf leads to itself.

    Attributes
    ----------
    roots
        The node at which each tree starts, (number of trees,).
    thresholds, features, left, right, values
        By node of any tree, (number of nodes,).
    baseline, scale
        The score before any tree, minus the mean of the scores; their standard deviation.
    """

    roots: Ints
    thresholds: Floats
    features: Ints
    left: Ints
    right: Ints
    values: Floats
    baseline: float
    scale: float

    @classmethod
    def learn(cls, X: Matrix, y: Floats, seed: int) -> tuple[Self, Floats]:
        """Fit trees on rows X, (n, d), with labels y, (n,); return them and scores of the same rows, (n,).

        Each of these scores is by trees that were fitted on other rows (`nerm.features.cross_fitted`).
        """
        X, folds = _dense(X), min(5, int((y > 0).sum()), int((y <= 0).sum()))
        if folds < 2:
            do = "Use more rows, or --features splines"
            raise InvalidInputError("--features trees needs two rows of each class", f"{folds} of one", do)
        model: Any = HistGradientBoostingClassifier(random_state=seed).fit(X, y)
        scores = cross_fitted(model, X, y, folds)[:, 0]
        scale = float(scores.std()) or 1.0
        trees = [tree.nodes for (tree,) in model._predictors]
        nodes, starts = np.concatenate(trees), np.cumsum([0, *map(len, trees)])
        own, offset = np.arange(len(nodes)), np.repeat(starts[:-1], np.diff(starts))
        left, right = (np.where(nodes["is_leaf"], own, nodes[side] + offset) for side in ("left", "right"))
        baseline = float(model._baseline_prediction.item() - scores.mean())
        cuts, features = nodes["num_threshold"], nodes["feature_idx"].astype(np.int64)
        found = cls(starts[:-1], cuts, features, left, right, nodes["value"], baseline, scale)
        return found, (scores - scores.mean()) / scale

    def score(self, X: Matrix) -> Floats:
        """Return the score of each row of X, (n,)."""
        X = _dense(X)
        rows, total = np.arange(len(X)), np.full(len(X), self.baseline)
        for root in self.roots:
            at, before = np.full(len(X), root), np.full(len(X), -1)
            for _ in self.values:  # no path is longer, also in a damaged file
                if (at == before).all():
                    break
                goes_left = X[rows, self.features[at]] <= self.thresholds[at]
                at, before = np.where(goes_left, self.left[at], self.right[at]), at
            total += self.values[at]
        return total / self.scale


def with_column(X: Matrix, column: Floats) -> Matrix:
    """Return X, (n, d), with one more column."""
    if sp.issparse(X):
        return sp.hstack([X, sp.csr_matrix(column[:, None])], format="csr")
    return np.column_stack([X, column])


def _dense(X: Matrix) -> Floats:
    return X.toarray() if sp.issparse(X) else np.asarray(X)
