"""The coding of chunks: the map from their values to numbers.

It maps labels, viewpoints and weights in the same way in every pass.

The first pass over chunks is a census: counts of labels and groups, fingerprints, and a sample of the rows.
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

from nerm import weights as neutrality_weights
from nerm.chunks.pieces import ChunkRows, row_bytes
from nerm.errors import InvalidInputError
from nerm.model.blocks import Block, make_blocks
from nerm.model.expressions import Neutrality, Objective, viewpoint_of
from nerm.model.problem import Problem
from nerm.typing import Array, Floats
from nerm.validation import as_labels, as_matrix, as_values, as_vector, as_weights
from nerm.viewpoint import MOST_VALUES, positive_values


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
    """Return labels or groups as an (n,) array of numbers or strings.

    Raise an error if one is missing.
    """
    values = as_values(given, n, name)
    if values.dtype.kind == "O":
        types = set(map(type, values.tolist()))
        if len({issubclass(one, Number | np.bool_) for one in types}) > 1:
            got = f"mixed types, first {values[0]!r}"
            raise InvalidInputError(f"{name!r} must hold values of one type", got, "Use str or numbers only")
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
                raise InvalidInputError(must, got, "Write all chunks with the same columns and types")
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
    """Return the values of `one` that `other` does not have, as text.

    If there are none, return all values of `one`.
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
    """Return the union of sets of column values; None if there are too many values.

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


# The label and the sign of the viewpoint of the four kinds of rows (-, -), (-, +), (+, -), (+, +).
LABELS = np.array([-1.0, -1.0, 1.0, 1.0])
VIEWS = np.array([-1.0, 1.0, -1.0, 1.0])


@dataclass(frozen=True, eq=False)
class Coding:
    """The map from the values of a chunk to numbers.

    Attributes
    ----------
    n : int
        The number of all rows.
    total : float
        The sum of the sample weights of all rows.
    classes : (2,) array
        The labels; the second is +1. Empty for a regression.
    groups : dict
        For each viewpoint, by name, the pair (column it is read from, value that is +1); the value is None if
        the numbers of the column are used unchanged.
    kinds : dict of DataFrame
        For each viewpoint, the number of rows and the sample weight of each of the four kinds of rows.
    fingerprints : dict
        The fingerprint of each chunk in the first pass, by name.
    recipe : Recipe, optional
        The map from the columns of a table to features.

    """

    n: int
    total: float
    classes: Array
    groups: Mapping[str, tuple[str, Any]]
    kinds: Mapping[str, pd.DataFrame]
    fingerprints: Mapping[str, str]
    recipe: Any = None

    def read(self, raw: ChunkRows) -> ChunkRows:
        """Return a raw chunk coded as numbers.

        Raise an error if the chunk changed since the first pass.
        """
        rows, before = checked(raw), self.fingerprints.get(raw.name)
        if before != fingerprint(rows):
            new = f"{raw.name} with {rows.n} rows, which was not there"
            got = new if before is None else f"other values in {raw.name}"
            do = "Read from files that nobody writes to, and run again"
            raise InvalidInputError("chunks must not change between passes", got, do)
        return self.coded(rows)

    def coded(self, chunk: ChunkRows) -> ChunkRows:
        """Return a validated chunk coded as numbers."""
        X = chunk.X if self.recipe is None else self.recipe(chunk.X)
        real = not len(self.classes)
        y = as_vector(chunk.y, chunk.n, "y") if real else np.where(chunk.y == self.classes[1], 1.0, -1.0)
        views = {}
        for name, (column, value) in self.groups.items():
            v = chunk.viewpoints[column]
            views[name] = as_vector(v, chunk.n, name) if value is None else np.where(v == value, 1.0, -1.0)
        return replace(chunk, X=X, y=y, viewpoints=views, is_table=False)


def learn(census: Census, recipe: Any = None, *, groups: bool, real: bool = False) -> Coding:
    """Return the coding of all chunks, computed from the counts of the first pass.

    Parameters
    ----------
    census : Census
        The result of the first pass over all chunks.
    recipe : callable, optional
        Maps a DataFrame to a matrix; its method `in_order` sorts two labels so that the positive one is last.
    groups : bool
        Whether a viewpoint of more than two strings or integers has one term per value, as in the estimators.
    real : bool
        Whether y is the real target of a regression.

    """
    labels = census.counts[""].index.levels[0].tolist()
    classes = np.zeros(0) if real else as_labels(np.array(labels), len(labels))[1]
    classes = classes if recipe is None or real else np.array(recipe.in_order(classes.tolist()))
    positive = None if real else classes[1]
    total = float(census.counts[""]["weight"].sum())
    if total <= 0:
        must = "'sample_weight' must have a positive entry"
        raise InvalidInputError(must, "only zeros in all chunks", "Give some row a positive weight")
    views: dict[str, tuple[str, Any]] = {}
    for name in census.form["viewpoints"]:
        views |= _viewpoints(name, census.counts[name].index.levels[1].tolist(), groups=groups)
    kinds = {name: _kinds(census.counts[at], value, positive) for name, (at, value) in views.items()}
    return Coding(census.n, total, classes, views, kinds, census.fingerprints, recipe)


def _viewpoints(name: str, values: list[Any], *, groups: bool) -> dict[str, tuple[str, Any]]:
    """Return the viewpoints of a column: name -> (column, value that is +1).

    `values` are the distinct values of the column. Numbers are one viewpoint, with None in place of a value.
    Two groups are one viewpoint of -1 and +1. More groups are one viewpoint per value.
    """
    real = isinstance(values[0], float) and np.isinf(values[0])  # the signs of very many numbers
    terms = {name: None} if real else positive_values(name, np.array(values), name, several=groups)
    return {term: (name, value) for term, value in terms.items()}


def _kinds(counts: pd.DataFrame, value: Any, positive: Any) -> pd.DataFrame:
    """Return the number and the weight of the rows of each of the four kinds.

    The kinds are the signs of (label, viewpoint), in the order of `LABELS` and `VIEWS`. `value` is the value
    of the viewpoint that is +1, or None for numbers; `positive` is the label that is +1 (None: no row).
    """
    labels, values = (counts.index.get_level_values(level) for level in (0, 1))
    kind = 2 * (labels == positive) + (values > 0 if value is None else values == value)
    return counts.groupby(kind).sum().reindex(range(4), fill_value=0.0)


@dataclass(frozen=True, eq=False)
class Terms:
    """An objective and a coding, which make the blocks of any chunk.

    Attributes
    ----------
    objective : Objective
        Its neutrality weights must be names, not arrays.
    coding : Coding
        The map from the values of a chunk to numbers.
    weighted : bool
        Whether sample weights apply to neutrality too (a row of weight 2 counts as two rows), as in the
        estimators.
    class_weight : (2,) array, optional
        The factors of the risk of the classes -1 and +1.

    """

    objective: Objective
    coding: Coding
    weighted: bool = False
    class_weight: tuple[float, float] = (1.0, 1.0)

    @property
    def divisor(self) -> float:
        """The divisor of the sums in the objective.

        It is the total sample weight if `weighted`, else the number of rows.
        """
        return self.coding.total if self.weighted else float(self.coding.n)

    def kinds_weights(self, term: Neutrality, name: str) -> Floats:
        """Return the neutrality weight of each of the four kinds of rows, (4,)."""
        sizes = self.coding.kinds[name]["weight" if self.weighted else "rows"].to_numpy(dtype=float)
        if not isinstance(term.weights, str):
            must = "the neutrality weights of a problem on chunks must be given by name"
            raise InvalidInputError(must, "an array", f"Use one of {', '.join(neutrality_weights.NAMES)}")
        if term.weights == "conditional" and not len(self.coding.classes):
            must = "a regression on chunks cannot have weights within bins of y"
            raise InvalidInputError(must, "'conditional'", "Use 'balanced', or rows in memory")
        return neutrality_weights.resolve(term.weights, LABELS, VIEWS, sizes)

    def blocks(self, rows: ChunkRows | Problem) -> tuple[Block, ...]:
        """Return the blocks of the objective on a coded chunk or on a problem."""
        terms = []
        for t in self.objective.terms:
            if isinstance(t.term, Neutrality):
                name = viewpoint_of(t.term, rows.viewpoints)
                label = rows.y > 0 if len(self.coding.classes) else 0
                kind = (2 * label + (rows.viewpoints[name] > 0)).astype(int)
                u = self.kinds_weights(t.term, name)[kind]
                t = replace(t, term=replace(t.term, weights=u * rows.sample_weight if self.weighted else u))
            terms.append(t)
        risk = rows.sample_weight * np.where(rows.y > 0, self.class_weight[1], self.class_weight[0])
        objective = replace(self.objective, terms=tuple(terms))
        return make_blocks(objective, rows.y, rows.viewpoints, risk)
