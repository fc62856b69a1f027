"""The first pass: what must be known of all rows before any of them can be weighed, and a sample of them.

Labels and groups are counted, so that later passes give every chunk the same meaning: which class is +1, which group,
and with which neutrality weight (`nerm.weights` depends on the sizes of groups, not on single rows). A fingerprint of
each chunk is kept, since a chunk that changes between two passes would make a certificate a lie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from nerm.chunks.pieces import Raw
from nerm.errors import InvalidInputError
from nerm.signs import sign
from nerm.typing import Array, Floats
from nerm.validation import as_matrix, as_vector, as_weights

MOST_LEVELS = 200  # words of a column of a table that are kept
MOST_VALUES = 50  # of a viewpoint: beyond, it is real and only its signs are counted


@dataclass(frozen=True, eq=False)
class Checked:
    """A chunk whose parts are valid by themselves: a float matrix, labels, viewpoints, weights of one length."""

    X: Any
    y: Array
    viewpoints: Mapping[str, Array]
    sample_weight: Floats
    name: str

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    def at(self, rows: Any) -> Checked:
        """Return some of the rows."""
        X = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
        views = {name: v[rows] for name, v in self.viewpoints.items()}
        return Checked(X, self.y[rows], views, self.sample_weight[rows], self.name)

    @property
    def fingerprint(self) -> tuple[int, float, float]:
        """The number of rows, and two sums that hardly stay when a row changes."""
        if hasattr(self.X, "iloc"):
            hashed = pd.util.hash_pandas_object(self.X, index=False).to_numpy()
            return self.n, float(hashed.sum(dtype=np.uint64)), float(self.sample_weight.sum())
        entries = np.asarray(self.X.data if sp.issparse(self.X) else self.X)
        views = sum(float(pd.util.hash_array(v)[:: max(1, self.n // 1000)].sum()) for v in self.viewpoints.values())
        places = float(self.X.indices.sum(dtype=np.int64)) if sp.issparse(self.X) else 0.0
        return self.n, float(entries.sum()) + places, views + float(self.sample_weight.sum())


def stacked(parts: list[Any]) -> Any:
    """Return rows of dense arrays, sparse matrices or frames, one under the other."""
    if hasattr(parts[0], "iloc"):
        return pd.concat(parts, ignore_index=True)
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def together(parts: list[Checked]) -> Checked:
    """Return chunks as one."""
    views = {name: np.concatenate([p.viewpoints[name] for p in parts]) for name in parts[0].viewpoints}
    weight = np.concatenate([p.sample_weight for p in parts])
    return Checked(stacked([p.X for p in parts]), np.concatenate([p.y for p in parts]), views, weight, "the sample")


def checked(raw: Raw) -> Checked:
    """Check the parts of a chunk by themselves; the error says which chunk it is."""
    try:
        X: Any = raw.X if hasattr(raw.X, "iloc") else as_matrix(raw.X)
        n = X.shape[0]
        y = _values(raw.y, n, "y")
        views = {name: _values(v, n, name) for name, v in raw.viewpoints.items()}
        weight = np.ones(n) if raw.sample_weight is None else as_vector(raw.sample_weight, n, "sample_weight")
        if weight.any():
            weight = as_weights(weight, n, "sample_weight")
    except InvalidInputError as error:
        must, got, do = error.parts
        raise InvalidInputError(f"in {raw.name}, {must}", got, do) from None
    return Checked(X, y, views, weight, raw.name)


def _values(given: Any, n: int, name: str) -> Array:
    """Return labels or groups, numbers or words, one a row, none missing."""
    values = np.asarray(given)
    if values.dtype.kind in "fiub" and values.ndim:
        values = as_vector(values, n, name) if values.dtype.kind == "f" else values
    if values.shape != (n,):
        must = f"{name!r} must have one entry for each of the {n} rows"
        raise InvalidInputError(must, f"shape {values.shape}", f"Pass a vector of length {n}")
    if values.dtype.kind == "O":
        missing = np.asarray(pd.isna(values))
        if missing.any():
            got = f"{values[missing][0]} at index {int(missing.argmax())}"
            raise InvalidInputError(f"{name!r} must not be missing", got, "Drop these rows or give them a value")
    return values


@dataclass(frozen=True, eq=False)
class Census:
    """What the first pass knows of the rows that it has seen; censuses of parts add up.

    Attributes
    ----------
    n, columns : int
        Rows and features (0 for a table, whose features are learned from the sample).
    counts : dict
        By viewpoint (and "" for none): the number of rows and their weight, by (label, value of the viewpoint).
    fingerprints : dict
        By chunk.
    levels : dict of sets
        The words of each column of a table; None for many.
    sample : list of (keys, Checked)
        The rows with the smallest random keys, so that any order of chunks gives the same sample.

    """

    n: int
    columns: tuple[Any, ...]
    counts: Mapping[str, Counter[Any]]
    weights: Mapping[str, Counter[Any]]
    fingerprints: Mapping[str, tuple[int, float, float]]
    sample: list[tuple[Floats, Checked]] = field(repr=False)
    size: int
    levels: Mapping[str, set[str] | None] = field(default_factory=dict)

    def __add__(self, other: Census) -> Census:
        if self.columns != other.columns or set(self.counts) != set(other.counts):
            mine, theirs = next(iter(self.fingerprints)), next(iter(other.fingerprints))
            must = f"every chunk must have the same columns and viewpoints as {mine}"
            raise InvalidInputError(must, f"others in {theirs}", "Write all chunks in one way")
        if both := self.fingerprints.keys() & other.fingerprints.keys():
            must = "every chunk must have a name of its own"
            raise InvalidInputError(must, f"{sorted(both)[0]} twice", "Give each file once")
        real = {name for name in self.counts if name and (_is_real(self.counts[name]) or _is_real(other.counts[name]))}
        counts = {k: _tally(self.counts[k], k in real) + _tally(other.counts[k], k in real) for k in self.counts}
        weights = {k: _tally(self.weights[k], k in real) + _tally(other.weights[k], k in real) for k in self.counts}
        merged = _smallest([*self.sample, *other.sample], self.size)
        levels = {name: _few(words, other.levels[name]) for name, words in self.levels.items()}
        marks = {**self.fingerprints, **other.fingerprints}
        return replace(self, n=self.n + other.n, counts=counts, weights=weights, fingerprints=marks, sample=merged,
                       levels=levels)  # fmt: skip


def _few(*words: set[str] | None) -> set[str] | None:
    """Return the words of a column of a table; None for more than can be levels: numbers, or names of rows."""
    found = set().union(*(some for some in words if some is not None))
    return None if None in words or len(found) > MOST_LEVELS else found


def _is_real(counts: Counter[Any]) -> bool:
    """Whether a viewpoint was seen with so many values that only signs are counted."""
    return any(isinstance(value, str) and value in ("v < 0", "v > 0") for _, value in counts)


def _tally(counts: Counter[Any], real: bool) -> Counter[Any]:
    """Return counts by the sign of the viewpoint where it is real."""
    if not real or _is_real(counts):
        return counts
    by_sign: Counter[Any] = Counter()
    for (label, value), count in counts.items():
        by_sign[label, "v > 0" if value > 0 else "v < 0"] += count
    return by_sign


def _smallest(sample: list[tuple[Floats, Checked]], size: int) -> list[tuple[Floats, Checked]]:
    """Keep the rows with the smallest keys, when enough have gathered."""
    if sum(len(keys) for keys, _ in sample) <= 2 * size and len(sample) < 64:
        return sample
    keys = np.concatenate([keys for keys, _ in sample])
    kept = np.sort(np.argpartition(keys, size - 1)[:size]) if len(keys) > size else np.arange(len(keys))
    return [(keys[kept], together([rows for _, rows in sample]).at(kept))]


@dataclass(frozen=True)
class CountRows:
    """The work of the first pass on one chunk."""

    size: int
    seed: int = 0

    def __call__(self, raw: Raw) -> Census:
        """Return the census of one chunk."""
        chunk = checked(raw)
        counts, weights = {}, {}
        for name, values in {"": np.zeros(chunk.n, dtype=int), **chunk.viewpoints}.items():
            counts[name], weights[name] = _counted(chunk.y, values, chunk.sample_weight)
        rng = np.random.default_rng([self.seed, *raw.name.encode()])
        keys = rng.random(chunk.n)
        kept = np.arange(chunk.n) if chunk.n <= self.size else np.sort(np.argpartition(keys, self.size)[: self.size])
        table = hasattr(chunk.X, "iloc")
        columns = tuple(chunk.X.columns) if table else (chunk.X.shape[1], sp.issparse(chunk.X))
        levels = {name: _few(set(pd.unique(chunk.X[name]))) for name in chunk.X.columns} if table else {}
        return Census(chunk.n, columns, counts, weights, {raw.name: chunk.fingerprint},
                      [(keys[kept], chunk.at(kept))], self.size, levels)  # fmt: skip


def _counted(y: Array, values: Array, weight: Floats) -> tuple[Counter[Any], Counter[Any]]:
    """Return rows and their weight by (label, value); by sign for a viewpoint of many values."""
    labels, which = np.unique(y, return_inverse=True)
    groups, member = np.unique(values, return_inverse=True)
    if values.dtype.kind == "f" and len(groups) > MOST_VALUES:
        groups, member = np.array(["v < 0", "v > 0"]), (sign(values) > 0).astype(int)
    pair = which * len(groups) + member
    size = len(labels) * len(groups)
    rows, weights = np.bincount(pair, minlength=size), np.bincount(pair, weight, minlength=size)
    keys = [(label, group) for label in labels.tolist() for group in groups.tolist()]
    seen = [i for i in range(size) if rows[i]]
    return Counter({keys[i]: int(rows[i]) for i in seen}), Counter({keys[i]: float(weights[i]) for i in seen})
