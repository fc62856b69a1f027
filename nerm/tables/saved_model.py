"""Scikit-learn classifiers saved with skops: one that is audited, and the base model of a head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from nerm.errors import InvalidInputError, MissingPackageError
from nerm.features import base_scores, check_unseen, cross_fitted
from nerm.tables.reading import TextTable
from nerm.tables.roles import TableTask
from nerm.tables.values import key_of
from nerm.typing import Array, Floats


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
        Names of types that skops may load beside those that it trusts itself. It is not saved: whoever loads
        a file decides which types to trust.
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
