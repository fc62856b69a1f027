"""The commands `fit`, `tradeoff` and `audit` for a table whose target is a number (regression)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import nerm.report
from nerm.cli import options as shared
from nerm.cli.console import Console
from nerm.defaults import LIMITS
from nerm.errors import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

    from nerm.tables import TableTask
    from nerm.typing import Floats

FEW = 10  # a target of more different numbers is read as a regression
SHARES = (*(10 * limit for limit in LIMITS), LIMITS[1], 0.0)  # limits in standard deviations of y


def or_regression(run: Callable[[], int], otherwise: Callable[[], int], task: str) -> int:
    """Run a command as classification, or as regression if the target is a number with many values.

    With task="auto" classification is tried first; if the target has more than two values and is a number,
    the regression is run.
    """
    if task == "regression":
        return otherwise()
    try:
        return run()
    except InvalidInputError as error:
        if task != "auto" or not error.parts[0].startswith("the target must have two values"):
            raise
        try:
            return otherwise()
        except NotANumberError:
            raise error from None


class NotANumberError(InvalidInputError):
    """Raised if a target cannot be read as a number, or has too few different numbers."""


def real_task(path: str, options: dict[str, Any]) -> tuple[TableTask, Floats, tuple[str, ...]]:
    """Read a table with a real target; return the task, y of its rows, and the words for "missing".

    Inputs and groups are determined as in classification, with the target split at its median.
    """
    missing = (*nerm.tables.values.MISSING, *options["missing"])
    table, target = nerm.tables.read_table(path, **shared.reading_of(options)), options["target"]
    unknown = nerm.tables.values.missing_in(table[target], missing)
    y = np.full(len(table), np.nan)
    y[~unknown] = table.rows(~unknown).numbers(target)
    bad, count = np.isnan(y) & ~unknown, len(np.unique(y[~np.isnan(y)]))
    if bad.any() or (count <= FEW and options["task"] == "auto") or count < 2:
        got = f"{table[target][bad][0]!r} in {target!r}" if bad.any() else f"{count} different numbers"
        do = "Pass --task classification, or a column of numbers"
        raise NotANumberError("the target of a regression must be a number in every row", got, do)
    words = np.where(unknown, table[target], np.where(y > np.nanmedian(y), "above", "below"))
    cut = replace(table, frame=table.frame.assign(**{target: words}))
    names = ("target", "favoured", "intersect", "bins", "keep_viewpoint", "leave_out")
    roles = {name: options[name] for name in names if options.get(name) is not None}
    given = options["viewpoint"]
    views = [given] if given in table.names else [name.strip() for name in given.split(",")]
    task = nerm.tables.make_task(cut, viewpoint=views, **roles, positive="above", missing=missing)
    return task, y[np.searchsorted(table.places, task.table.places)], missing


def viewpoint_of(task: TableTask) -> Any:
    """Return the groups of the rows: one array of words per viewpoint column, by name."""
    found: dict[str, Any] = {}
    for name, among in task.groups.items():
        column, _, value = name.partition(" = ")
        words = found.setdefault(column, np.full(len(task), "others", dtype=object))
        words[among] = value
    return found or {task.viewpoint.column: task.v}


def measured(y: Floats, f: Floats, groups: dict[str, Any]) -> dict[str, float]:
    """Return errors and neutrality measures of predictions; of several viewpoints, the largest measure."""
    found = {
        "rmse": float(np.sqrt(np.mean((y - f) ** 2))),
        "mean_absolute_error": float(np.abs(y - f).mean()),
    }
    found["r2"] = 1 - float(np.mean((y - f) ** 2) / y.var())
    for name in ("mean_difference", "ks_distance"):
        values = [nerm.metrics.SCORE_METRICS[name](f, words) for words in groups.values()]
        found[name] = max(values, key=abs)
    return found


def study(
    console: Console,
    data: str,
    options: dict[str, Any],
    given: Sequence[float] | None,
    shares: Sequence[float],
) -> tuple[list[Any], pd.DataFrame, Any]:
    """Fit a model without a limit and one per limit, and measure each on held-out rows.

    If no limits are `given`, they are `shares` times the standard deviation of y.
    """
    import pandas as pd

    from nerm.splitting import hold_out

    task, y, missing = real_task(data, options)
    unused = [name for name in ("report", "eta", "etas") if options.get(name)]
    based = options["features"] == "trees" or options.get("head")
    if unused or based or options.get("measure", "parity") != "parity":
        must = "a regression has no --report, --figure, --bounds, --proof, --eta, --measure or base model"
        raise InvalidInputError(must, "one of them", "Leave it out, or use nerm.NeutralRegressor in Python")
    limits = given or [float(f"{share * y.std():.3g}") for share in shares]
    if given is None:
        shown = ", ".join(f"{limit:g}" for limit in limits)
        console.note(f"limits by default, {', '.join(map(str, shares))} standard deviations of y: {shown}")
    task = nerm.tables.survey(task, nominal=options["nominal"], numeric=options["numeric"], missing=missing)
    test = hold_out(task.strata, options.get("test") or 0.25, options["seed"])
    more = {"missing": missing, "kinds": task.kinds, "splines": options["features"] == "splines"}
    recipe, notes = nerm.tables.learn_recipe(task.table.rows(~test), task.inputs, **more)
    console.notes((*task.notes, *notes, f"{options['target']!r} is read as a number: a regression"))
    groups, X = viewpoint_of(task), recipe.transform(task.table)[0]
    train = {name: words[~test] for name, words in groups.items()}
    models, rows = [], []
    for limit in (None, *limits):
        model = nerm.NeutralRegressor(lam=options.get("lam") or 0.001, limit=limit)
        if limit is not None:
            model.set_params(confidence=options.get("confidence"))
        models.append(model.fit(X[~test], y[~test], viewpoint=train))
        held = {name: words[test] for name, words in groups.items()}
        row = {"limit": np.inf if limit is None else limit, **measured(y[test], model.predict(X[test]), held)}
        rows.append({**row, "certified_gap": model.certificate_.relative_gap})
    facts = {"rows": len(y), "held_out": int(test.sum()), "spread": float(y.std())}
    saved = [nerm.tables.TableModel(recipe, model, task.target, task.viewpoint, facts) for model in models]
    return saved, pd.DataFrame(rows), facts


def fit(console: Console, data: str, out: str | None, options: dict[str, Any]) -> int:
    """Fit a neutral regressor to a table, and a model without a limit to compare with."""
    given = None if options["limit"] is None else [options["limit"]]
    return _told(console, study(console, data, options, given, SHARES[3:4]), out)


def tradeoff(console: Console, data: str, save: str | None, options: dict[str, Any]) -> int:
    """Show error and neutrality of a regression for several limits."""
    return _told(console, study(console, data, options, options["limits"], SHARES), save)


def _told(console: Console, found: tuple[list[Any], pd.DataFrame, Any], path: str | None) -> int:
    """Save the model with the last limit, and print the measures of all models."""
    models, table, facts = found
    if path is not None:
        models[-1].save(path)
    plain = {**facts, "task": "regression", "measures": table.to_dict("records")}
    console.result(plain, _shown(table), files={"model": path})
    return 0


def audit(console: Console, data: str, options: dict[str, Any]) -> int:
    """Measure given predictions of a real target."""
    task, y, _ = real_task(data, options)
    if options["score"] is None or options["report"]:
        must = "an audit of a regression needs a column of predictions and has no report"
        raise InvalidInputError(must, "other options", "Pass --score COLUMN alone")
    import pandas as pd

    found = measured(y, task.table.numbers(options["score"]), viewpoint_of(task))
    console.result({"task": "regression", "rows": len(y), **found}, _shown(pd.DataFrame([found])))
    return 0


def _shown(found: pd.DataFrame) -> str:
    """Return a table of measures as text."""
    return found.to_string(index=False, float_format=lambda x: f"{x:.4g}")
