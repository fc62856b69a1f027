"""The first pass over chunks: counts of labels and groups, fingerprints, and a sample of the rows.

The counts fix the coding of every later chunk: the class and the group that are +1, and the neutrality
weights (`nerm.weights` depends on the sizes of groups, not on single rows). The fingerprint of each chunk is
compared in every pass, because a certificate is wrong if a chunk changes between two passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Number
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
import scipy.sparse as sp

from nerm.chunks.pieces import Raw, row_bytes, rows_of
from nerm.errors import InvalidInputError
from nerm.typing import Array, Floats
from nerm.validation import as_matrix, as_vector, as_weights, check_present, flat
from nerm.viewpoint import MOST_VALUES


@dataclass(frozen=True, eq=False)
class ChunkRows:
    """A validated chunk of n rows, with values as given or coded as numbers (`nerm.chunks.coding`)."""

    X: Any
    y: Array
    viewpoints: Mapping[str, Array]
    sample_weight: Floats
    name: str

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    def at(self, rows: Any) -> ChunkRows:
        """Return the chunk restricted to the given rows (indices or a mask)."""
        views = {name: v[rows] for name, v in self.viewpoints.items()}
        return ChunkRows(rows_of(self.X, rows), self.y[rows], views, self.sample_weight[rows], self.name)

    @property
    def fingerprint(self) -> Fingerprint:
        """The number of rows and a hash of all values."""
        is_frame = hasattr(self.X, "iloc")
        X = pd.util.hash_pandas_object(self.X, index=False).to_numpy() if is_frame else self.X
        parts = X, self.y, dict(self.viewpoints), self.sample_weight
        return Fingerprint(self.n, str(joblib.hash(parts, hash_name="sha1")))


class Fingerprint(NamedTuple):
    """The number of rows and a hash of the values, to detect a chunk that changed between passes."""

    rows: int
    values: str


def stacked(parts: list[Any]) -> Any:
    """Stack dense arrays, sparse matrices or DataFrames vertically."""
    if hasattr(parts[0], "iloc"):
        return pd.concat(parts, ignore_index=True)
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def together(parts: list[ChunkRows]) -> ChunkRows:
    """Concatenate chunks into one."""
    views = {name: np.concatenate([p.viewpoints[name] for p in parts]) for name in parts[0].viewpoints}
    y = np.concatenate([p.y for p in parts])
    weight = np.concatenate([p.sample_weight for p in parts])
    return ChunkRows(stacked([p.X for p in parts]), y, views, weight, "the sample")


def checked(raw: Raw) -> ChunkRows:
    """Validate X, y, viewpoints and weights of a chunk; an error names the chunk."""
    try:
        X: Any = raw.X if raw.is_table else as_matrix(raw.X)
        n = X.shape[0]
        y = _values(raw.y, n, "y")
        views = {name: _values(v, n, name) for name, v in raw.viewpoints.items()}
        weight = np.ones(n) if raw.sample_weight is None else as_vector(raw.sample_weight, n, "sample_weight")
        if weight.any():
            weight = as_weights(weight, n, "sample_weight")
    except InvalidInputError as error:
        must, got, do = error.parts
        raise InvalidInputError(f"in {raw.name}, {must}", got, do) from None
    return ChunkRows(X, y, views, weight, raw.name)


def _values(given: Any, n: int, name: str) -> Array:
    """Return labels or groups as an (n,) array of numbers or strings; raise an error if one is missing."""
    values = flat(given, n, name, f"entry for each of the {n} rows")
    check_present(values, name)
    if values.dtype.kind == "f":
        return as_vector(values, n, name)
    if values.dtype.kind == "O":
        kinds = {type(value) for value in values.tolist()}
        numbers = Number | np.number | np.bool_
        if len({issubclass(kind, numbers) for kind in kinds}) > 1:
            got = f"mixed types, first {values[0]!r}"
            raise InvalidInputError(f"{name!r} must hold values of one type", got, "Convert them")
        values = np.array(values.tolist())
    return values


@dataclass(frozen=True, eq=False)
class Census:
    """Counts, fingerprints and a sample of the rows of one or more chunks; `+` combines two of them.

    Attributes
    ----------
    n : int
        Number of rows.
    form : dict of tuples
        The columns, viewpoints and types of values, which must be equal in all chunks.
    counts : dict of DataFrame
        For each viewpoint (and "" for no viewpoint), the number and the weight of the rows for each label and
        value of the viewpoint. If a viewpoint has very many numbers, only their signs are counted, as -inf
        and inf.
    fingerprints : dict
        The fingerprint of each chunk, by its name.
    keys, sample : (m,) array and ChunkRows
        The sampled rows and their random keys. The rows with the smallest keys are kept, so the sample does
        not depend on the order of the chunks.
    size : int
        The largest number of rows of the sample.
    levels : dict of sets
        The distinct values of each column of a table; None if there are too many.

    """

    n: int
    form: Mapping[str, tuple[str, ...]]
    counts: Mapping[str, pd.DataFrame]
    fingerprints: Mapping[str, Fingerprint]
    keys: Floats = field(repr=False)
    sample: ChunkRows = field(repr=False)
    size: int
    levels: Mapping[str, set[str] | None]

    def __add__(self, other: Census) -> Census:
        mine, theirs = next(iter(self.fingerprints)), next(iter(other.fingerprints))
        for words, one in self.form.items():
            if one != (another := other.form[words]):
                must = f"every chunk must have the {words} of {mine}, {_shown(one, another)}"
                got = f"{_shown(another, one)} in {theirs}"
                raise InvalidInputError(must, got, "Write all chunks in one way")
        if both := self.fingerprints.keys() & other.fingerprints.keys():
            must = "every chunk must have a name of its own"
            raise InvalidInputError(must, f"{sorted(both)[0]} twice", "Give each file once")
        counts = {name: _counted(pd.concat([one, other.counts[name]])) for name, one in self.counts.items()}
        check_labels(counts[""], f"{mine} to {theirs}")
        size = min(self.size, other.size)
        keys, sample = np.append(self.keys, other.keys), together([self.sample, other.sample])
        kept = np.sort(np.argsort(keys)[:size])
        return Census(
            n=self.n + other.n,
            form=self.form,
            counts=counts,
            fingerprints={**self.fingerprints, **other.fingerprints},
            keys=keys[kept],
            sample=sample.at(kept),
            size=size,
            levels={name: _few(words, other.levels[name]) for name, words in self.levels.items()},
        )


def _shown(one: tuple[Any, ...], other: tuple[Any, ...]) -> str:
    """Return text with the values of `one` that `other` does not have, or all values if there are none."""
    apart = [value for value in one if value not in other] or list(one)
    return ", ".join(map(str, apart[:3])) + (", …" if len(apart) > 3 else "") if apart else "none"


def labels_of(counts: pd.DataFrame) -> list[Any]:
    """Return the sorted list of the labels that were counted."""
    return sorted(set(counts.index.get_level_values("label").tolist()))


def values_of(counts: pd.DataFrame) -> list[Any]:
    """Return the sorted list of the values of a viewpoint that were counted."""
    return sorted(set(counts.index.get_level_values("value").tolist()))


def check_labels(counts: pd.DataFrame, where: str) -> None:
    """Raise an error if there are more than two labels, before the counts of real numbers fill the memory."""
    labels = labels_of(counts)
    if len(labels) > 2:
        shown = ", ".join(map(repr, labels[:5])) + (", …" if len(labels) > 5 else "")
        must = f"in {where}, 'y' must hold at most two classes"
        do = "Select or merge classes so that two remain"
        raise InvalidInputError(must, f"{len(labels)} classes: {shown}", do)


def _few(*words: set[str] | None) -> set[str] | None:
    """Return the union of sets of column values; None if there are too many, as for numbers."""
    found = set().union(*(some for some in words if some is not None))
    return None if None in words or len(found) > MOST_VALUES else found


def _counted(rows: pd.DataFrame) -> pd.DataFrame:
    """Return sums by (label, value), or by (label, sign of the value) if there are too many numbers."""
    values = rows.index.get_level_values("value")
    if values.dtype.kind == "f" and (np.isinf(values).any() or len(values.unique()) > MOST_VALUES):
        signs = np.where(values > 0, np.inf, -np.inf)
        rows = rows.set_index(pd.MultiIndex.from_arrays([rows.index.get_level_values("label"), signs]))
    return rows.groupby(level=[0, 1]).sum().rename_axis(index=["label", "value"])


@dataclass(frozen=True)
class CountRows:
    """The function of the first pass: it maps a raw chunk to its `Census`.

    Attributes
    ----------
    size, memory : int
        The largest number of rows of the sample, and of its bytes.
    most : int
        The largest number of rows per chunk in the sample, to limit the network traffic of many chunks.

    """

    size: int
    memory: int
    most: int

    def __call__(self, raw: Raw) -> Census:
        """Return the census of one chunk."""
        chunk = checked(raw)
        given = {"": np.zeros(chunk.n, dtype=int), **chunk.viewpoints}
        ones = pd.DataFrame({"rows": 1, "weight": chunk.sample_weight})
        pairs = {
            name: pd.MultiIndex.from_arrays([chunk.y, v], names=["label", "value"])
            for name, v in given.items()
        }
        counts = {name: _counted(ones.set_index(pair)) for name, pair in pairs.items()}
        check_labels(counts[""], raw.name)
        kinds = {"labels": chunk.y, **chunk.viewpoints}
        words = (f"{name}: {'words' if v.dtype.kind in 'OU' else 'numbers'}" for name, v in kinds.items())
        form = {
            "columns": raw.columns(chunk.X),
            "viewpoints": tuple(sorted(chunk.viewpoints)),
            "kinds of values": tuple(words),
        }
        size = max(1, min(self.size, self.memory // row_bytes(chunk.X)))
        keys = np.random.default_rng([0, *raw.name.encode()]).random(chunk.n)
        kept = np.sort(np.argsort(keys)[: min(self.most, size)])
        columns = chunk.X.columns if raw.is_table else ()
        levels = {name: _few(set(pd.unique(chunk.X[name]))) for name in columns}
        marks = {raw.name: chunk.fingerprint}
        return Census(chunk.n, form, counts, marks, keys[kept], chunk.at(kept), size, levels)
