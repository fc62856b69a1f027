"""Base models: boosted trees saved as numbers, and scikit-learn classifiers saved with skops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier

from nerm.errors import InvalidInputError, MissingPackageError
from nerm.features import base_scores, check_unseen, cross_fitted
from nerm.tables.reading import TextTable
from nerm.tables.roles import TableTask
from nerm.tables.values import key_of
from nerm.typing import Array, Floats, Ints, Matrix


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A classifier of two classes that a skops file contains; its score is (s(x) - mean) / scale.

    s is the decision function, or the logit of the probability, of the class that is the target's positive
    value.

    Attributes
    ----------
    content
        The bytes of the skops file, as an array of uint8.
    names, words
        The columns that the model takes, and those of them that hold words.
    positive
        The index of the positive class, 0 or 1.
    trusted
        Names of types that skops may load beside those that it trusts itself. It is not saved: the user who
        loads a file decides which types to trust.
    mean, scale
        The mean and the standard deviation of the scores of the training rows of a head.
    """

    content: Array
    names: tuple[str, ...]
    words: tuple[str, ...]
    positive: int
    trusted: tuple[str, ...] = ()
    mean: float = 0.0
    scale: float = 1.0

    @classmethod
    def read(cls, path: str, task: TableTask, trusted: Sequence[str]) -> Self:
        """Read a skops file; columns in which each known value is a number become numbers."""
        try:
            content = np.frombuffer(Path(path).read_bytes(), dtype=np.uint8)
        except OSError as error:
            do = "Write one with skops.io.dump"
            raise InvalidInputError("the model file must be readable", f"{path!r}: {error}", do) from None
        found = cls(content, (), (), 1, tuple(trusted))
        names = tuple(map(str, getattr(found.model, "feature_names_in_", task.inputs)))
        table = task.table
        words = (name for name in names if (np.isnan(table.numbers(name)) & ~table.unknown(name)).any())
        classes = [str(label) for label in getattr(found.model, "classes_", ())]
        positive = [k for k, label in enumerate(classes) if key_of(label) == key_of(task.target.positive)]
        if len(classes) != 2 or len(positive) != 1:
            must = f"the model must tell {task.target.positive!r} from another class"
            got = f"a model of {', '.join(classes) or 'no classes'}"
            raise InvalidInputError(must, got, "Use --positive, or another model")
        return replace(found, names=names, words=tuple(words), positive=positive[0])

    @cached_property
    def model(self) -> Any:
        """The classifier, loaded by skops, which loads only trusted types."""
        io, data = _skops(), self.content.tobytes()
        try:
            unknown = sorted(set(io.get_untrusted_types(data=data)) - set(self.trusted))
        except Exception as error:  # bytes of another kind can make skops raise anything
            must = "the model must be a file written by skops.io.dump"
            raise InvalidInputError(must, str(error), "Save it again") from None
        if unknown:
            do = f"If you trust its author, add --trust {' --trust '.join(unknown)}"
            raise InvalidInputError("a saved model must be made of trusted types", ", ".join(unknown), do)
        return io.loads(data, trusted=list(self.trusted))

    def head(self, task: TableTask, unseen: bool) -> tuple[Self, Floats]:
        """Return the base model of a head, and scores of the rows, (n,), that have not seen their labels.

        The classifier is fitted again on the rows, and scores them by cross-fitting. With `unseen`, which
        states that it was fitted on other rows, it is kept and scores them itself.
        """
        strange = sorted(set(self.names) - set(task.inputs))
        if strange:
            must = "the model of --head must take input columns only"
            do = "Fit it without target and viewpoint, or add --keep-viewpoint for a viewpoint"
            raise InvalidInputError(must, f"one that takes {strange[0]!r}", do)
        labels = self.model.classes_[np.where(task.y > 0, self.positive, 1 - self.positive)]
        frame, folds = self._frame(task.table), min(5, *np.unique(task.y, return_counts=True)[1])
        made = self
        if unseen:
            scores = base_scores(self.model, frame)
            check_unseen(self.model, frame, labels, scores)
        else:
            scores = cross_fitted(self.model, frame, labels, folds)
            content = _skops().dumps(clone(self.model).fit(frame, labels))
            made = replace(self, content=np.frombuffer(content, dtype=np.uint8))
        signed = self._signed(scores)
        mean, scale = float(signed.mean()), float(signed.std()) or 1.0
        return replace(made, mean=mean, scale=scale), (signed - mean) / scale

    def score(self, table: TextTable) -> Floats:
        """Return the score of each row, (n,)."""
        scores = base_scores(self.model, self._frame(table))
        return (self._signed(scores) - self.mean) / self.scale

    def _signed(self, scores: Floats) -> Floats:
        return scores[:, 0] if self.positive else -scores[:, 0]

    def _frame(self, table: TextTable) -> Any:
        """Return the columns of the model as a DataFrame, with missing values as nan."""
        frame = table.frame[list(self.names)].copy()
        for name in self.names:
            word = name in self.words
            frame[name] = frame[name].mask(table.unknown(name)) if word else table.numbers(name)
        return frame


def _skops() -> Any:
    try:
        from skops import io
    except ImportError:
        text = "A saved model needs the package skops. Install it: pip install 'nerm-learn[skops]'."
        raise MissingPackageError(text) from None
    return io


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
