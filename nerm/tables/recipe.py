"""Code columns of strings as numbers by a recipe that is learned on training rows and saved with the model.

- Numbers are centred and scaled. A missing number becomes the median; if training rows have missing values, a
  second column marks them.
- A date becomes three numbers: year, month, and days since 1970.
- With splines, B-splines of scikit-learn follow each number that has at least three different quartiles.
- A nominal value becomes one 0/1 column per level. "missing" is a level if training rows have missing values.
- The score of a base model is a column: boosted trees saved as numbers, or a classifier saved with skops.

A recipe is saved as strings and numbers, never as code.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.preprocessing import SplineTransformer

from nerm.chunks.pieces import ChunkRows
from nerm.datasets.coding import Levels
from nerm.errors import InvalidInputError, import_optional
from nerm.features import base_scores, check_unseen, cross_fitted
from nerm.tables.reading import PART_CELLS, TextTable, read_parts, table_of
from nerm.tables.roles import NUMBERS, WORDS, TableTask, kind_of, values_of
from nerm.tables.values import MISSING, ORDERS, date_orders, key_of, positive_of, written
from nerm.typing import Array, Floats, Ints, Matrix

MOST_LEVELS = 100  # a nominal column with more values keeps the most frequent ones and pools the others
OTHER, MISSING_LEVEL = "(other)", "(missing)"
Guesses = Counter[tuple[str, str]]  # by column and text of a note, in which {} stands for it: how many


@dataclass(frozen=True)
class Numeric:
    """The coding of a column of numbers, or of one component of a column of dates: (x - mean) / scale.

    A missing value is replaced by the median.

    Attributes
    ----------
    name
        Name of the column.
    mean, scale, median
        Mean, standard deviation and median of the known numbers in the training rows.
    indicator
        Whether a second column marks missing values.
    holds
        The kind of the column's values, as returned by `nerm.tables.roles.kind_of`.
    part
        The component of a date: "year", "month" or "days"; "" for numbers.
    knots
        The knots of cubic B-splines of the scaled number, which are further columns; none without splines.
        Beyond the outer knots the B-splines are constant, so a linear model is linear there.
    """

    name: str
    mean: float
    scale: float
    median: float
    indicator: bool
    holds: str = NUMBERS
    part: str = ""
    knots: tuple[float, ...] = ()

    @classmethod
    def learn(
        cls, name: str, numbers: Floats, indicator: bool, holds: str, part: str, splines: bool = False
    ) -> Self:
        """Learn the coding of a column from its known numbers; with `splines`, the quartiles are knots."""
        unit = float(np.abs(numbers).max()) or 1.0  # against overflow
        mean, scale = unit * float((numbers / unit).mean()), unit * float((numbers / unit).std())
        scale = scale or 1.0
        knots = np.unique(np.quantile((numbers - mean) / scale, np.linspace(0, 1, 5))).tolist()
        knots = tuple(knots) if splines and len(knots) > 2 else ()
        return cls(name, mean, scale, float(np.median(numbers)), indicator, holds, part, knots)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the coded columns."""
        own = f"{self.name} ({self.part})" if self.part else self.name
        splines = [f"{own} (spline {k + 1})" for k in range(len(self.knots) + 1 if self.knots else 0)]
        return (own, *splines, *[f"{self.name} {MISSING_LEVEL}"] * self.indicator)

    def code(self, table: TextTable, guesses: Guesses) -> Matrix:
        """Return the coded column of a table, (n, features), and count the guesses.

        A guess is a missing value, if no indicator column marks it, or a date that could be read in another
        order than in fit.
        """
        numbers, unknown = values_of(table, self.name, self.holds)[self.part], table.unknown(self.name)
        what = f"dates ({self.holds})" if self.part else "numbers"
        must = f"column {self.name!r} of {table.source!r} must hold {what}, as the model was fitted on"
        do = "Correct it, or leave the field empty"
        table.refuse(self.name, np.isnan(numbers) & ~unknown, must, do)
        if not self.indicator:
            guesses[self.features[0], f"{{}} missing values replaced by {self.median:g}"] += unknown.sum()
        known = table.known(self.name) if self.part == "days" else ()
        if known and date_orders(known) != [self.holds]:
            guesses[self.name, f"dates read as in fit ({self.holds}), though they can be read otherwise"] += 1
        columns = [(np.where(unknown, self.median, numbers) - self.mean) / self.scale]
        if self.knots:
            knots = np.array(self.knots)[:, None]
            splines = SplineTransformer(knots=knots, include_bias=False).fit(knots)
            columns.append(splines.transform(columns[0][:, None]))
        return np.column_stack([*columns, unknown] if self.indicator else columns)


@dataclass(frozen=True)
class Nominal:
    """The coding of a nominal column: one 0/1 column per level, or a single column for two levels.

    Attributes
    ----------
    name
        Name of the column.
    levels
        The values of the column; then "(other)" if rare values are pooled, and "(missing)" if some were
        missing in the training rows.
    pooled
        Whether all values that are no level are coded as "(other)".
    """

    name: str
    levels: tuple[str, ...]
    pooled: bool

    @classmethod
    def learn(cls, name: str, known: Array, indicator: bool) -> Self:
        """Learn the coding of a column from its known values; with `indicator`, "missing" is a level."""
        values, counts = np.unique(known.astype(str), return_counts=True)
        pooled = len(values) > MOST_LEVELS
        if pooled:
            values = values[np.sort(np.argsort(-counts, kind="stable")[: MOST_LEVELS - 1])]
        return cls(name, (*values.tolist(), *[OTHER] * pooled, *[MISSING_LEVEL] * indicator), pooled)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the coded columns."""
        return tuple(f"{self.name} = {level}" for level in Levels(self.levels).shown)

    def code(self, table: TextTable, guesses: Guesses) -> Matrix:
        """Return the coded column of a table, (n, features), and count the guesses.

        A value that differs from one level only by case, blanks or accents is that level, unless the table is
        `exact`. The guesses are such values and those that are no level.
        """
        levels, words = Levels(self.levels), table.matched(self.name, self.levels)
        unknown = table.unknown(self.name)
        codes = levels.codes(np.where(unknown, MISSING_LEVEL, words))
        if self.pooled:
            codes[(codes < 0) & ~unknown] = self.levels.index(OTHER)
        guesses[self.name, "{} values not seen in fit, coded as none of the known ones"] += (codes < 0).sum()
        alike = "{} values read as the values of fit that differ only by case, blanks or accents"
        guesses[self.name, f"{alike}; --exact keeps them apart"] += (words != table[self.name]).sum()
        return levels.matrix(codes, unknown=0.5)


CODINGS: dict[str, Any] = {"Numeric": Numeric, "Nominal": Nominal}


#: The orders of dates by their names in files of 0.2.
ORDERS_0_2 = dict(zip(("ymd", "dmy", "mdy", "named", "ym"), ORDERS, strict=True)) | {"my": "year-month"}


def _restored(kind: str, **fields: Any) -> Iterator[Numeric | Nominal]:
    """Yield the codings that were saved with these fields.

    Version 0.2 saved the three components of a date as one coding.
    """
    if kind != "Dates":
        yield CODINGS[kind](**fields)
        return
    name, holds, parts = fields["name"], ORDERS_0_2[fields["order"]], fields["parts"]
    for part, mean, scale, median in parts:
        indicator = fields["indicator"] and part == parts[-1][0]
        yield Numeric(name, mean, scale, median, indicator, holds, part)


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
            must = f"the model must have the class {task.target.positive!r} and one other"
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
        """Return the base model of a head, and scores of the rows, (n,), made without their labels.

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
    return import_optional("skops.io", "A saved model", "'nerm-learn[skops]'")


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
        """Fit trees on rows X, (n, d), with labels y, (n,).

        Return the trees, and scores of the same rows, (n,). Each of these scores is by trees that were fitted
        on other rows (`nerm.features.cross_fitted`).
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


@dataclass(frozen=True)
class Recipe:
    r"""The coding of all input columns of a table, learned by `learn_recipe`.

    Attributes
    ----------
    columns
        The codings, in the order of the coded columns.
    left_out
        By name of each dropped column, the reason.
    missing
        The strings that mean "missing".
    usual
        The decimal mark of most columns that Python's float() would misread; None if there were none.
    base
        The base model of a head, whose score is the last column: boosted trees on the coded columns, or a
        scikit-learn model on the columns of the table.

    Examples
    --------
    >>> from nerm.tables import parse_table
    >>> table = parse_table("age,job,land\n20,a,NL\n?,b,NL\n40,c,NL\n", "census.csv")
    >>> recipe, notes = learn_recipe(table, table.names)
    >>> recipe.feature_names
    ['age', 'age (missing)', 'job = a', 'job = b', 'job = c']
    >>> recipe.left_out
    {'land': 'the same value in every row'}
    >>> recipe.transform(table)[0].toarray()  # age is centred and scaled, a missing one is the median
    array([[-1.,  0.,  1.,  0.,  0.],
           [ 0.,  1.,  0.,  1.,  0.],
           [ 1.,  0.,  0.,  0.,  1.]])
    >>> Recipe.from_dict(recipe.to_dict()) == recipe
    True
    """

    columns: tuple[Numeric | Nominal, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = MISSING
    usual: str | None = None
    base: Trees | SavedModel | None = None

    @property
    def feature_names(self) -> list[str]:
        """The names of the coded columns."""
        names = [feature for column in self.columns for feature in column.features]
        return names if self.base is None else [*names, "score of the base model"]

    def imputation_notes(self, guesses: Guesses) -> tuple[str, ...]:
        """Return notes on the guesses that `transform` counted: imputed or corrected values."""
        return tuple(f"{name!r}: {text.format(n)}" for (name, text), n in guesses.items() if n)

    def transform(self, table: TextTable) -> tuple[Matrix, Guesses]:
        """Code a table; return the matrix, (n, features), and the numbers of guesses.

        The matrix is CSR if more than half of its entries are 0, else dense. A guess is a value that is
        missing, unknown or unclear, so that another value is used.
        """
        absent = dict.fromkeys(column.name for column in self.columns if column.name not in table.names)
        if absent:
            must = f"{table.source!r} must have the columns that the model was fitted on"
            more = f" (and {len(absent) - 1} more missing)" if len(absent) > 1 else ""
            do = "Use a table like the one given to fit"
            raise InvalidInputError(must, f"no column {next(iter(absent))!r}{more}", do)
        table = replace(table, missing=(*self.missing, *table.missing))  # of fit, and of this table
        guesses: Guesses = Counter()
        coded = [sp.csr_matrix(column.code(table, guesses)) for column in self.columns]
        matrix = sp.hstack(coded, format="csr")
        sparse = 2 * matrix.nnz < matrix.shape[0] * matrix.shape[1]
        matrix = matrix if sparse else matrix.toarray()
        if self.base is not None:
            seen = table if isinstance(self.base, SavedModel) else matrix
            matrix = with_column(matrix, self.base.score(seen))
        return matrix, guesses

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as plain data (strings, numbers, arrays), from which `from_dict` restores it."""
        columns = [{"kind": type(column).__name__, **asdict(column)} for column in self.columns]
        plain = {"columns": columns, "left_out": dict(self.left_out), "missing": list(self.missing)}
        base = None if self.base is None else {"kind": type(self.base).__name__, **asdict(self.base)}
        return plain | {"usual": self.usual, "base": base}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the recipe that `to_dict` saved as `plain`."""
        columns = tuple(coding for column in plain["columns"] for coding in _restored(**column))
        base = dict(plain.get("base") or {})
        base.pop("trusted", None)  # whoever loads a file decides which types to trust
        made = {"Trees": Trees, "SavedModel": SavedModel}[base.pop("kind")](**base) if base else None
        return cls(columns, dict(plain["left_out"]), tuple(plain["missing"]), plain.get("usual"), made)

    def summary(self) -> str:
        """Return one line with the number of input columns and of coded columns."""
        text = f"{len({column.name for column in self.columns})} columns, {len(self.feature_names)} features"
        return text if self.base is None else f"{text}, one of them the score of a base model"


def learn_recipe(
    table: TextTable,
    inputs: Sequence[str],
    *,
    kinds: Mapping[str, str] | None = None,
    splines: bool = False,
) -> tuple[Recipe, tuple[str, ...]]:
    r"""Learn how to code the input columns; return the recipe and notes.

    The notes are about missing values and about columns that were left out.

    Parameters
    ----------
    table
        The training rows.
    inputs
        Names of the columns to code.
    kinds
        By column name, the kind of its values, as found by `survey` on more rows, or "words" for codes that
        look like numbers. For other columns the kind is found from the table.
    splines
        Whether numbers get B-splines as further columns.

    Examples
    --------
    >>> from nerm.tables import parse_table
    >>> table = parse_table("age,area\n20,1011\n?,1012\n40,1013\n", "census.csv")
    >>> recipe, notes = learn_recipe(table, ["age", "area"], kinds={"area": "words"})
    >>> notes
    ("'age': 1 values missing (33 %, written '?')",)
    >>> recipe.summary()
    '2 columns, 5 features'
    """
    columns, left_out, notes = list[Numeric | Nominal](), dict[str, str](), list[str]()
    for name in inputs:
        unknown, distinct = table.unknown(name), len(table.known(name))
        some = bool(unknown.any())
        if distinct + some < 2:
            left_out[name] = "the same value in every row" if distinct else "no values"
            continue
        if some:
            how = f"({100 * unknown.mean():.2g} %{written(table[name][unknown])})"
            notes.append(f"{name!r}: {int(unknown.sum())} values missing {how}")
        kind = (kinds or {}).get(name) or kind_of(name, table)
        if kind != WORDS:
            *parts, last = values_of(table.rows(~unknown), name, kind).items()
            varying = [(part, numbers) for part, numbers in parts if np.ptp(numbers) > 0]
            columns += [Numeric.learn(name, numbers, False, kind, part, splines) for part, numbers in varying]
            columns.append(Numeric.learn(name, last[1], some, kind, last[0], splines))
        elif distinct == (~unknown).sum() > MOST_LEVELS:
            left_out[name] = "another word in every row, so it was treated as a row identifier"
        else:
            spelled, merged = table.rows(~unknown).categories(name)
            notes += merged
            if distinct > MOST_LEVELS:
                text = f"the {MOST_LEVELS - 1} most frequent are kept and the others are one value"
                notes.append(f"{name!r} has {distinct} different words: {text}")
            columns.append(Nominal.learn(name, spelled, some))
    if not columns:
        must = f"{table.source!r} must have an input column with more than one value"
        got = "; ".join(f"{name!r}: {why}" for name, why in left_out.items())
        raise InvalidInputError(must, got, "Add columns to learn from")
    notes += [f"{name!r} left out: {why}" for name, why in left_out.items()]
    recipe = Recipe(tuple(columns), left_out, table.missing, table.main_decimal)
    if (features := len(recipe.feature_names)) > max(MOST_LEVELS, len(table) / 2):
        more = "a larger --lam or fewer columns may serve new rows better"
        notes.append(f"{features} features for {len(table)} rows, so a model can overfit them: {more}")
    return recipe, tuple(notes)


@dataclass(frozen=True, eq=False)
class TablePiece:
    """A source of training rows: a table file that is read in parts, or a DataFrame.

    Rows whose target, viewpoint or weight is missing are left out.

    Attributes
    ----------
    source : str or DataFrame
        The path of the file, or the DataFrame.
    target : str
        The column with the labels.
    viewpoints : tuple of str
        The columns with the viewpoints. Target, viewpoints and weights are not features.
    sample_weight : str, optional
        The column with the row weights.
    name : str
        Name of the source in errors.
    limit : int
        Largest size of a part of a file, in bytes.

    """

    source: Any
    target: str
    viewpoints: tuple[str, ...]
    sample_weight: str | None
    name: str
    limit: int = 0

    def chunks(self) -> Iterator[ChunkRows]:
        """Yield the parts that have at least one complete row."""
        weight, is_file = self.sample_weight, isinstance(self.source, str)
        roles = [self.target, *self.viewpoints, *([weight] if weight else [])]
        cells = max(1, min(PART_CELLS, self.limit // sys.getsizeof("")))
        parts = read_parts(self.source, cells=cells) if is_file else [table_of(self.source, self.name)]
        for number, part in enumerate(parts):
            table = part.rows(~np.any([part.unknown(role) for role in roles], axis=0))
            if not len(table):
                continue
            frame = table.frame.drop(columns=roles).reset_index(drop=True)
            for column in set(frame) & table.marks.keys():  # a DataFrame has no decimal marks
                numbers = table.numbers(column)
                written = np.array([repr(x) for x in numbers.tolist()])
                frame[column] = np.where(np.isnan(numbers), table[column], written)
            views = {view: table[view].astype(str) for view in self.viewpoints}
            weights = table.numbers(weight) if weight else None
            name = f"part {number} of {self.name}" if is_file else self.name
            yield ChunkRows(frame, table[self.target].astype(str), views, weights, name, is_table=True)


@dataclass(frozen=True)
class TableFeatures:
    """A function that codes a DataFrame of strings by `recipe` as a CSR matrix of features."""

    recipe: Recipe

    def __call__(self, frame: Any) -> Matrix:
        """Return the features of the rows of a DataFrame, (n, features)."""
        return sp.csr_matrix(self.recipe.transform(table_of(frame, exact=True))[0])

    def in_order(self, classes: list[Any]) -> list[Any]:
        """Return two class labels, the positive one last if they are a known pair such as no/yes."""
        if len(classes) == 2 and positive_of(*map(str, classes)) == str(classes[0]):
            return classes[::-1]
        return classes


def learn_features(sample: Any, levels: Mapping[str, set[str] | None]) -> TableFeatures:
    """Learn the coding of a table from a sample of its rows.

    Parameters
    ----------
    sample
        A DataFrame of strings.
    levels
        For each column name, all values in the whole table, or None if there are too many to list. For each
        listed value that is not in the sample, a copy of the sample's first row, with this value in the
        column, is added before the coding is learned.
    """
    copies = []
    for name, words in levels.items():
        unseen = sorted((words or set()).difference(sample[name]))
        copies += [sample.iloc[[0]].assign(**{name: word}) for word in unseen]
    rows = table_of(pd.concat([sample, *copies], ignore_index=True), exact=True)
    recipe, _ = learn_recipe(rows, list(sample.columns))
    return TableFeatures(recipe)
