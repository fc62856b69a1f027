"""Predictors of tables: the model that `nerm fit` writes, and the predictions that `nerm audit` reads."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from nerm import io as saving
from nerm.errors import InvalidInputError
from nerm.estimators.regressor import NeutralRegressor
from nerm.tables.reading import PART_CELLS, TextTable, table_of
from nerm.tables.recipe import Guesses, Recipe, SavedModel
from nerm.tables.roles import Role, TableTask
from nerm.typing import Array, Floats, Matrix


@dataclass(frozen=True, eq=False)
class TableModel:
    r"""A fitted classifier for tables: DataFrames of pandas, polars or pyarrow.

    A table must have the input columns that the model was fitted on; others are ignored.

    Attributes
    ----------
    recipe
        The coding of the input columns.
    estimator
        The fitted classifier of coded rows.
    target, viewpoint
        The roles of target and viewpoint: column, positive and negative value.
    facts
        Plain data about the fit: target limit or eta ("asked"), measure, its value ("reached"), promise,
        weights, objective, rows, seed, solver, status, relative_gap, seconds, warning, notes and some others
        (`nerm.cli.fit` writes them).

    Examples
    --------
    >>> import nerm
    >>> from nerm.tables import learn_recipe, make_task, parse_table
    >>> text = "age,sex,income\n20,f,low\n30,m,low\n50,f,high\n60,m,high\n60,f,high\n"
    >>> task = make_task(parse_table(text, "census.csv"), "income", "sex", positive="high")
    >>> recipe, _ = learn_recipe(task.table, task.inputs)
    >>> svc = nerm.NeutralSVC(lam=0.1).fit(recipe.transform(task.table)[0], task.y)
    >>> model = TableModel(recipe, svc, task.target, task.viewpoint)
    >>> scores, guessed = model.scores(parse_table("name,age\nAnn,19\nBob,\nCy,60\n", "new.csv"))
    >>> model.labels(scores).tolist(), recipe.imputation_notes(guessed)
    (['low', 'high', 'high'], ("'age': 1 missing values replaced by 50",))
    >>> import pandas as pd
    >>> model.predict(pd.DataFrame({"age": [19, 60]})).tolist()
    ['low', 'high']
    """

    recipe: Recipe
    estimator: Any
    target: Role
    viewpoint: Role
    facts: Mapping[str, Any] = field(default_factory=dict)

    def decision_function(self, X: Any) -> Floats:
        """Return the score f(x) of each row of a DataFrame, (n,).

        A warning counts the imputed values.
        """
        scores, guessed = self.scores(X if isinstance(X, TextTable) else table_of(X))
        if notes := self.recipe.imputation_notes(guessed):
            warnings.warn("; ".join(notes), UserWarning, stacklevel=2)
        return scores

    def predict(self, X: Any) -> Array:
        """Return the predicted value of the target for each row of a DataFrame, (n,)."""
        return self.labels(self.decision_function(X))

    @property
    def is_regression(self) -> bool:
        """Whether the target is a number."""
        return isinstance(self.estimator, NeutralRegressor)

    @property
    def classes_(self) -> Array:
        """The negative and the positive value of the target, (2,)."""
        return np.array([self.target.negative, self.target.positive], dtype=object)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each of `classes_`, (n, 2).

        Raise an error if the loss defines no probability.
        """
        return np.asarray(self.estimator.predict_proba(self.recipe.transform(table_of(X))[0]))

    def scores(self, table: TextTable) -> tuple[Floats, Guesses]:
        """Return the score f(x) of each row, (n,), and how many values were imputed per column."""
        matrix, guessed = self.recipe.transform(table)
        step = 1 + PART_CELLS // max(1, len(getattr(self.estimator, "support_", ())))
        parts = [scores_of(self.estimator, matrix[i : i + step]) for i in range(0, len(table), step)]
        return np.concatenate(parts), guessed

    def labels(self, scores: Floats) -> Array:
        """Return the predicted values of the target, (n,), for given scores.

        It is the positive value for scores above 0, else the negative one. For a regression the scores are
        returned.
        """
        if self.is_regression:
            return scores
        return np.where(scores > 0, self.target.positive, self.target.negative)

    def to_dict(self) -> dict[str, Any]:
        """Return the model as a dictionary of plain data and the estimator; `model_of` restores it."""
        return {
            "kind": "table model",
            "recipe": self.recipe.to_dict(),
            "estimator": self.estimator,
            "target": asdict(self.target),
            "viewpoint": asdict(self.viewpoint),
            "facts": dict(self.facts),
        }

    def save(self, path: Any) -> None:
        """Write the model to one file, without pickle; a failure leaves no partial file."""
        saving.save(self.to_dict(), path)


def scores_of(estimator: Any, matrix: Matrix) -> Floats:
    """Return the scores f(x) of coded rows, (n, d), by a classifier, as an (n,) array.

    For a regressor these are the predictions.
    """
    score = getattr(estimator, "decision_function", estimator.predict)
    return np.asarray(score(matrix))


def load_model(path: Any, trusted: Sequence[str] = ()) -> TableModel:
    r"""Read a model that `TableModel.save` wrote.

    Parameters
    ----------
    path
        Path of the file.
    trusted
        Names of types that skops may load, beside those that it trusts itself, if the model has a base model.

    Returns
    -------
    TableModel

    Examples
    --------
    >>> import tempfile, nerm
    >>> from nerm.tables import learn_recipe, make_task, parse_table
    >>> text = "age,sex,income\n20,f,low\n30,m,low\n50,f,high\n60,m,high\n60,f,high\n"
    >>> task = make_task(parse_table(text, "census.csv"), "income", "sex", positive="high")
    >>> recipe, _ = learn_recipe(task.table, task.inputs)
    >>> svc = nerm.NeutralSVC(lam=0.1).fit(recipe.transform(task.table)[0], task.y)
    >>> model = TableModel(recipe, svc, task.target, task.viewpoint)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.nerm")
    ...     again = load_model(f"{folder}/model.nerm")
    >>> bool((again.scores(task.table)[0] == model.scores(task.table)[0]).all()), again.target.positive
    (True, 'high')
    """
    do = "Write one with nerm fit --out"
    if not Path(path).is_file():
        raise InvalidInputError("the model file must exist", f"no file {str(path)!r}", do)
    model = saving.load(path)
    if not isinstance(model, TableModel):
        got = f"a saved {type(model).__name__} without the recipe of its columns"
        raise InvalidInputError(f"{str(path)!r} must be a model written by nerm fit", got, do)
    if isinstance(model.recipe.base, SavedModel):
        base = replace(model.recipe.base, trusted=tuple(trusted))
        return replace(model, recipe=replace(model.recipe, base=base))
    return model


def model_of(content: Mapping[str, Any], path: Any) -> TableModel:
    """Return the model from a dictionary of `TableModel.to_dict`.

    `path` names the file in errors.
    """
    try:
        target, viewpoint = (Role(**content[name]) for name in ("target", "viewpoint"))
        recipe = Recipe.from_dict(content["recipe"])
        return TableModel(recipe, content["estimator"], target, viewpoint, content["facts"])
    except (KeyError, TypeError, AttributeError) as error:
        must = f"{str(path)!r} must hold a recipe, an estimator and the roles of its columns"
        got = f"a file that lacks {error}" if isinstance(error, KeyError) else f"a damaged part ({error})"
        raise InvalidInputError(must, got, "Fit it again with nerm fit --out") from None


def score_column(task: TableTask, column: str, threshold: float | None) -> Floats:
    """Return the scores in a column minus the threshold, (n,).

    Without a threshold it is 0; then an error is raised if no score is negative, because such scores may be
    probabilities. For a regression the column holds predictions, and nothing is subtracted.
    """
    numbers = task.table.numbers(column)
    must = f"the score {column!r} must be a number in every row"
    do = "Correct it, or use --prediction for decisions in words"
    task.table.refuse(column, np.isnan(numbers), must, do)
    least, most = numbers.min(), numbers.max()
    unclear = task.numbers is None and threshold is None and 0 <= least < most
    if unclear and not np.isin(numbers, (0, 1)).all():
        must = f"--threshold must be given if no score in {column!r} is negative"
        do = "Use --threshold 0.5 for probabilities, or --threshold 0 if every score above 0 means yes"
        raise InvalidInputError(must, f"scores from {least:g} to {most:g}", do)
    return numbers - (threshold or 0.0)


def decision_column(task: TableTask, column: str) -> Floats:
    """Return the decisions in a column as +1 or -1, (n,).

    The column holds values of the target.
    """
    target, table = task.target, task.table
    known = [target.positive, target.negative, *table.categories(target.column, role=True)[0]]
    decided = table.matched(column, known, role=True)
    must = f"the decision {column!r} must be a value of {target.column!r}"
    do = "Use the words of the target, or --score for numbers"
    table.refuse(column, ~np.isin(decided, known), must, do)
    return target.signs(decided)
