"""The first pass over chunks: counts of labels and groups, fingerprints, and a sample of the rows.

The counts fix the coding of every later chunk: the class and the group that are +1, and the neutrality
weights (`nerm.weights` depends on the sizes of groups, not on single rows). The fingerprint of each chunk is
compared in every pass, because a certificate is wrong if a chunk changes between two passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from nerm.chunks.pieces import Raw, row_bytes, rows_of
from nerm.errors import InvalidInputError
from nerm.model.viewpoint import MOST_VALUES
from nerm.signs import sign
from nerm.typing import Array, Floats, Ints
from nerm.validation import as_matrix, as_vector, as_weights, check_present, flat

MOST_LEVELS = 200  # words of a column of a table that are kept
BELOW = ("v <= 0",)  # of a viewpoint of more than MOST_VALUES numbers, signs are counted
ABOVE = ("v > 0",)
SAME = 1e-11  # of its mass: what a checksum may differ by on another processor


@dataclass(frozen=True, eq=False)
class ChunkRows:
    """A chunk with valid parts of one length, as given or coded as numbers (`nerm.chunks.coding`)."""

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
        """Return some of the rows."""
        views = {name: v[rows] for name, v in self.viewpoints.items()}
        return ChunkRows(rows_of(self.X, rows), self.y[rows], views, self.sample_weight[rows], self.name)

    @property
    def fingerprint(self) -> Fingerprint:
        """The number of rows, and sums of one number per row and part, weighted by position.

        A change that the sums do not show is too small to change the objective.
        """
        places = _spread(self.n)
        parts = [self.X, self.y, self.sample_weight, *self.viewpoints.values()]
        numbers = np.array([_numbers(part) for part in parts])
        checksum = np.arange(1, 1 + len(parts)) @ (numbers @ places)
        return Fingerprint(self.n, float(checksum), float((np.abs(numbers) @ places).sum()))


class Fingerprint(NamedTuple):
    """The numbers by which a chunk is recognised in every pass."""

    rows: int
    checksum: float
    mass: float

    def agrees(self, other: Fingerprint) -> bool:
        """Whether two are of the same rows."""
        error = SAME * max(self.mass, other.mass)
        return self.rows == other.rows and abs(self.checksum - other.checksum) <= error


def _spread(count: int) -> Floats:
    """Return numbers between 1 and 2, no two alike: multiples of the golden ratio without their integers."""
    return np.asarray(1.0 + (np.arange(count) * 0.6180339887498949) % 1.0)


def _numbers(part: Any) -> Floats:
    """Return one number per row: X r of a matrix, a vector of numbers as it is, hashes of words."""
    if hasattr(part, "iloc"):
        hashes = pd.util.hash_pandas_object(part, index=False).to_numpy()
    elif part.ndim == 2:
        return np.asarray(part @ _spread(part.shape[1]))
    elif part.dtype.kind in "fiub":
        return np.asarray(part, dtype=float)
    else:
        hashes = pd.util.hash_array(part.astype(object))
    return np.asarray(hashes / 2.0**64)


def stacked(parts: list[Any]) -> Any:
    """Return rows of dense arrays, sparse matrices or frames, one under the other."""
    if hasattr(parts[0], "iloc"):
        return pd.concat(parts, ignore_index=True)
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def together(parts: list[ChunkRows]) -> ChunkRows:
    """Return chunks as one."""
    views = {name: np.concatenate([p.viewpoints[name] for p in parts]) for name in parts[0].viewpoints}
    y = np.concatenate([p.y for p in parts])
    weight = np.concatenate([p.sample_weight for p in parts])
    return ChunkRows(stacked([p.X for p in parts]), y, views, weight, "the sample")


def checked(raw: Raw) -> ChunkRows:
    """Check the parts of a chunk by themselves; the error says which chunk it is."""
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
    """Return labels or groups, numbers or words, one per row, none missing."""
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
    """The counts, fingerprints and sample of the rows of some chunks; censuses add up.

    Attributes
    ----------
    n, columns : int
        Rows and features (0 for a table, whose features are learned from the sample).
    counts : dict
        By viewpoint (and "" for none): the number of rows and their weight, by (label, value of the
        viewpoint).
    fingerprints : dict
        By chunk.
    levels : dict of sets
        The words of each column of a table; None for many.
    sample : list of (keys, ChunkRows)
        The rows with the smallest random keys, so that any order of chunks gives the same sample.

    """

    n: int
    columns: tuple[Any, ...]
    counts: Mapping[str, Counter[Any]]
    weights: Mapping[str, Counter[Any]]
    fingerprints: Mapping[str, Fingerprint]
    sample: list[tuple[Floats, ChunkRows]] = field(repr=False)
    size: int
    levels: Mapping[str, set[str] | None] = field(default_factory=dict)

    def __add__(self, other: Census) -> Census:
        mine, theirs = next(iter(self.fingerprints)), next(iter(other.fingerprints))
        for what, words in (("columns", "columns"), ("views", "viewpoints"), ("kinds", "kinds of values")):
            if (one := getattr(self, what)) != (another := getattr(other, what)):
                must = f"every chunk must have the {words} of {mine}, {_shown(one, another)}"
                got = f"{_shown(another, one)} in {theirs}"
                raise InvalidInputError(must, got, "Write all chunks in one way")
        if both := self.fingerprints.keys() & other.fingerprints.keys():
            must = "every chunk must have a name of its own"
            raise InvalidInputError(must, f"{sorted(both)[0]} twice", "Give each file once")
        counts = {k: _tallied(self.counts[k] + other.counts[k]) for k in self.counts}
        weights = {k: _tallied(self.weights[k] + other.weights[k]) for k in self.counts}
        check_labels({label for label, _ in counts[""]}, f"{mine} to {theirs}")
        size = min(self.size, other.size)
        merged = [*self.sample, *other.sample]
        if sum(len(keys) for keys, _ in merged) > 2 * size or len(merged) >= 64:
            merged = [smallest(merged, size)]
        levels = {name: _few(words, other.levels[name]) for name, words in self.levels.items()}
        marks = {**self.fingerprints, **other.fingerprints}
        new: dict[str, Any] = {"counts": counts, "weights": weights, "sample": merged, "levels": levels}
        return replace(self, n=self.n + other.n, fingerprints=marks, size=size, **new)

    @property
    def views(self) -> tuple[str, ...]:
        """The names of the viewpoints."""
        return tuple(sorted(name for name in self.counts if name))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Whether labels and viewpoints are words or numbers."""
        found = [("labels", {label for label, _ in self.counts[""]})]
        found += [(name, {value for _, value in self.counts[name]}) for name in self.views]
        words = [(name, any(isinstance(v, str) for v in values)) for name, values in found]
        return tuple(f"{name}: {'words' if some else 'numbers'}" for name, some in words)


def _shown(one: tuple[Any, ...], other: tuple[Any, ...]) -> str:
    """Return what one of two lists has and the other does not; the whole of a short one."""
    apart = [value for value in one if value not in other] or list(one)
    return ", ".join(map(str, apart[:3])) + (", …" if len(apart) > 3 else "") if apart else "none"


def check_labels(labels: set[Any], where: str) -> None:
    """Refuse more than two labels as soon as they are seen: to count real numbers would take all memory."""
    if len(labels) > 2:
        shown = ", ".join(sorted(map(repr, labels))[:5]) + (", …" if len(labels) > 5 else "")
        must = f"in {where}, 'y' must hold at most two classes"
        do = "Select or merge classes so that two remain"
        raise InvalidInputError(must, f"{len(labels)} classes: {shown}", do)


def _few(*words: set[str] | None) -> set[str] | None:
    """Return the words of a column of a table; None for too many: numbers, or names of rows."""
    found = set().union(*(some for some in words if some is not None))
    return None if None in words or len(found) > MOST_LEVELS else found


def _tallied(counts: Counter[Any]) -> Counter[Any]:
    """Return the counts by sign where there are too many numbers, or signs among them already."""
    values = {value for _, value in counts}
    many = len(values) > MOST_VALUES and any(isinstance(value, float) for value in values)
    if not many and not any(isinstance(value, tuple) for value in values):
        return counts
    by_sign: Counter[Any] = Counter()
    for (label, value), count in counts.items():
        by_sign[label, value if isinstance(value, tuple) else ABOVE if value > 0 else BELOW] += count
    return by_sign


def _least(keys: Floats, size: int) -> Ints:
    """Return the places of the smallest keys, in order."""
    return np.arange(len(keys)) if len(keys) <= size else np.sort(np.argpartition(keys, size - 1)[:size])


def smallest(sample: list[tuple[Floats, ChunkRows]], size: int) -> tuple[Floats, ChunkRows]:
    """Return the rows with the smallest keys as one chunk."""
    keys = np.concatenate([keys for keys, _ in sample])
    kept = _least(keys, size)
    return keys[kept], together([rows for _, rows in sample]).at(kept)


@dataclass(frozen=True)
class CountRows:
    """The work of the first pass on one chunk.

    Attributes
    ----------
    size, memory : int
        Rows of the sample, and the bytes that they may take.
    most : int
        Rows that one chunk may bring, so that the samples of very many chunks do not have to travel whole.

    """

    size: int
    memory: int
    most: int

    def __call__(self, raw: Raw) -> Census:
        """Return the census of one chunk."""
        chunk = checked(raw)
        counts, weights = {}, {}
        for name, values in {"": np.zeros(chunk.n, dtype=int), **chunk.viewpoints}.items():
            counts[name], weights[name] = _counted(chunk.y, values, chunk.sample_weight)
        check_labels({label for label, _ in counts[""]}, raw.name)
        size = max(1, min(self.size, self.memory // row_bytes(chunk.X)))
        keys = np.random.default_rng([0, *raw.name.encode()]).random(chunk.n)
        kept = _least(keys, min(self.most, size))
        columns = chunk.X.columns if raw.is_table else ()
        levels = {name: _few(set(pd.unique(chunk.X[name]))) for name in columns}
        sample = [(keys[kept], chunk.at(kept))]
        fingerprints = {raw.name: chunk.fingerprint}
        found = raw.columns(chunk.X), counts, weights, fingerprints, sample
        return Census(chunk.n, *found, size, levels)


def _counted(y: Array, values: Array, weight: Floats) -> tuple[Counter[Any], Counter[Any]]:
    """Return rows and their weight by (label, value); by sign for a viewpoint of many numbers."""
    labels, which = np.unique(y, return_inverse=True)
    groups, member = np.unique(values, return_inverse=True)
    named = groups.tolist()
    if values.dtype.kind == "f" and len(groups) > MOST_VALUES:
        named, member = [BELOW, ABOVE], (sign(values) > 0).astype(int)
    pair = which * len(named) + member
    size = len(labels) * len(named)
    rows, weights = np.bincount(pair, minlength=size), np.bincount(pair, weight, minlength=size)
    keys = [(label, group) for label in labels[:MOST_VALUES].tolist() for group in named]
    seen = [i for i in range(len(keys)) if rows[i]]
    found = {keys[i]: int(rows[i]) for i in seen}
    return Counter(found), Counter({keys[i]: float(weights[i]) for i in seen})
