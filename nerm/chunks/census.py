"""The first pass over chunks: counts of labels and groups, fingerprints, and a sample of the rows.

The counts fix the coding of every later chunk: the class and the group that are +1, and the neutrality
weights (`nerm.weights` depends on the sizes of groups, not on single rows). The fingerprint of each chunk is
compared in every pass, because a certificate is wrong if a chunk changes between two passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Number
from typing import Any

import joblib
import numpy as np
import pandas as pd
import scipy.sparse as sp

from nerm.chunks.pieces import ChunkRows, row_bytes
from nerm.errors import InvalidInputError
from nerm.typing import Array, Floats
from nerm.validation import as_matrix, as_values, as_vector, as_weights
from nerm.viewpoint import MOST_VALUES


def stacked(parts: list[Any]) -> Any:
    """Stack dense arrays, sparse matrices or DataFrames vertically."""
    if hasattr(parts[0], "iloc"):
        return pd.concat(parts, ignore_index=True)
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def checked(rows: ChunkRows) -> ChunkRows:
    """Validate X, y, viewpoints and weights of a chunk; an error names the chunk."""
    try:
        X: Any = rows.X if rows.is_table else as_matrix(rows.X)
        n, s = X.shape[0], rows.sample_weight
        views = {name: _values(v, n, name) for name, v in rows.viewpoints.items()}
        weight = np.ones(n) if s is None else as_vector(s, n, "sample_weight")
        if weight.any():
            weight = as_weights(weight, n, "sample_weight")
        return replace(rows, X=X, y=_values(rows.y, n, "y"), viewpoints=views, sample_weight=weight)
    except InvalidInputError as error:
        must, got, do = error.parts
        raise InvalidInputError(f"in {rows.name}, {must}", got, do) from None


def _values(given: Any, n: int, name: str) -> Array:
    """Return labels or groups as an (n,) array of numbers or strings; raise an error if one is missing."""
    values = as_values(given, n, name)
    if values.dtype.kind == "O":
        types = set(map(type, values.tolist()))
        if len({issubclass(one, Number | np.bool_) for one in types}) > 1:
            got = f"mixed types, first {values[0]!r}"
            raise InvalidInputError(f"{name!r} must hold values of one type", got, "Convert them")
        values = np.array(values.tolist())
    return values


def fingerprint(rows: ChunkRows) -> str:
    """Return a hash of all values of a validated chunk, to detect changes between passes."""
    is_frame = hasattr(rows.X, "iloc")
    X = pd.util.hash_pandas_object(rows.X, index=False).to_numpy() if is_frame else rows.X
    return str(joblib.hash((X, rows.y, dict(rows.viewpoints), rows.sample_weight), hash_name="sha1"))


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
    fingerprints: Mapping[str, str]
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
        pairs = {name: [one, other.counts[name]] for name, one in self.counts.items()}
        counts = {name: _counted(pd.concat(pair).reset_index()) for name, pair in pairs.items()}
        check_labels(counts[""], f"{mine} to {theirs}")
        size, a, b = min(self.size, other.size), self.sample, other.sample
        keys = np.append(self.keys, other.keys)
        kept = np.sort(np.argsort(keys)[:size])
        views = {name: np.append(v, b.viewpoints[name]) for name, v in a.viewpoints.items()}
        y, weight = np.append(a.y, b.y), np.append(a.sample_weight, b.sample_weight)
        sample = replace(a, X=stacked([a.X, b.X]), y=y, viewpoints=views, sample_weight=weight)
        marks = {**self.fingerprints, **other.fingerprints}
        levels = {name: _few(words, other.levels[name]) for name, words in self.levels.items()}
        return Census(self.n + other.n, self.form, counts, marks, keys[kept], sample.at(kept), size, levels)


def _shown(one: tuple[Any, ...], other: tuple[Any, ...]) -> str:
    """Return text with the values of `one` that `other` does not have.

    If there are none, the text has all values of `one`.
    """
    apart = [value for value in one if value not in other] or list(one)
    return ", ".join(map(str, apart[:3])) + (", …" if len(apart) > 3 else "") if apart else "none"


def check_labels(counts: pd.DataFrame, where: str) -> None:
    """Raise an error if there are more than two labels, before the counts of real numbers fill the memory."""
    labels = counts.index.levels[0].tolist()
    if len(labels) > 2:
        must = f"in {where}, 'y' must hold at most two classes"
        do = "Select or merge classes so that two remain"
        raise InvalidInputError(must, f"{len(labels)} classes, first {labels[:3]}", do)


def _few(*words: set[str] | None) -> set[str] | None:
    """Return the union of sets of column values; None if there are too many.

    A column of numbers usually has too many.
    """
    found = set().union(*(some for some in words if some is not None))
    return None if None in words or len(found) > MOST_VALUES else found


def _counted(rows: pd.DataFrame) -> pd.DataFrame:
    """Return sums of the columns "rows" and "weight" by (label, value).

    If there are too many different numbers, the sums are by (label, sign of the value).
    """
    values = rows["value"]
    if values.dtype.kind == "f" and (np.isinf(values).any() or values.nunique() > MOST_VALUES):
        rows = rows.assign(value=np.where(values > 0, np.inf, -np.inf))
    return rows.groupby(["label", "value"]).sum()


def count(raw: ChunkRows, size: int, memory: int, most: int, *, real: bool = False) -> Census:
    """Return the census of one chunk; the first pass adds up the results.

    Parameters
    ----------
    raw : ChunkRows
        The chunk as it was read.
    size, memory : int
        The largest number of rows of the sample, and its largest size in bytes.
    most : int
        The largest number of rows per chunk in the sample, to limit the network traffic of many chunks.
    real : bool
        Whether y is the real target of a regression, which is not counted: its label is 0.

    """
    rows = checked(raw)
    given = {"": np.zeros(rows.n, dtype=int), **rows.viewpoints}
    label = np.zeros(rows.n) if real else rows.y
    ones = pd.DataFrame({"label": label, "rows": 1, "weight": rows.sample_weight})
    counts = {name: _counted(ones.assign(value=v)) for name, v in given.items()}
    check_labels(counts[""], raw.name)
    names = [f"{rows.X.shape[1]} columns"] if not hasattr(raw.X, "columns") else map(repr, raw.X.columns)
    matrix = [] if raw.is_table else ["a sparse matrix" if sp.issparse(rows.X) else "a dense matrix"]
    kinds = {"labels": rows.y, **rows.viewpoints}
    words = (f"{name}: {'words' if v.dtype.kind in 'OU' else 'numbers'}" for name, v in kinds.items())
    columns, viewpoints = (*names, *matrix), tuple(sorted(rows.viewpoints))
    form = {"columns": columns, "viewpoints": viewpoints, "kinds of values": tuple(words)}
    size = max(1, min(size, memory // row_bytes(rows.X)))
    keys = np.random.default_rng([0, *raw.name.encode()]).random(rows.n)
    kept = np.sort(np.argsort(keys)[: min(most, size)])
    levels = {name: _few(set(pd.unique(rows.X[name]))) for name in (rows.X.columns if raw.is_table else ())}
    marks = {raw.name: fingerprint(rows)}
    return Census(rows.n, form, counts, marks, keys[kept], rows.at(kept), size, levels)
