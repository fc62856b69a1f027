"""`nerm fit`: a model from a table, evaluated on rows it has not seen, in one file with the coding of its columns."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from nerm.cli.console import Console, check_places, write_text
from nerm.cli.options import (
    common,
    input_options,
    inputs_of,
    model_options,
    report_option,
    role_options,
    seed_option,
    settings_of,
    table_options,
    task_of,
)
from nerm.errors import NermError

if TYPE_CHECKING:
    from nerm.report.study import Promise, Settings
    from nerm.tables import TableModel, TableTask

EPILOG = """\b
Examples:
  nerm fit people.csv --target income --viewpoint sex --out model.nerm
  nerm fit people.csv --target income --viewpoint sex --positive '>50K' --eta 0.5 --bounds
  nerm fit adult.test.gz --columns @adult --skip-lines 1 --target class --viewpoint sex
  nerm fit german.data.gz --columns @german --target class --positive 1 --viewpoint foreign_worker
  nerm fit bank-full.csv.gz --target y --viewpoint loan --report bank.html
"""


@click.command(epilog=EPILOG)
@click.argument("data", metavar="DATA.csv")
@role_options
@click.option("--eta", type=float, default=1.0, show_default=True, help="Weight of neutrality; 0 is the plain model.")
@click.option("--out", metavar="MODEL.nerm", help="Write the model here.")
@click.option("--test", type=click.FloatRange(0, 0.9), default=0.25, show_default=True, help="Share to hold out.")
@click.option("--bounds", is_flag=True, help="Show what is guaranteed beyond these rows.")
@click.option("--delta", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.05, show_default=True)
@report_option
@model_options
@input_options
@table_options
@seed_option
@common
def fit(console: Console, data: str, eta: float, out: str | None, test: float, bounds: bool, **options: Any) -> int:
    """Fit a neutral classifier to a table.

    Numbers are scaled, words coded as 0/1 columns, missing values kept as a value of their own; what was done is told
    on standard error. The viewpoint is not an input unless you ask. A quarter of the rows is held out to measure; the
    saved model is the one that was measured.
    """
    check_places(inputs_of(data, options), {"--out": out, "--report": options["report"]})
    task, recipe = task_of(data, options)
    report, seed, delta = options.pop("report"), options.pop("seed"), options.pop("delta")
    settings = settings_of(options, recipe, seed=seed, delta=delta)
    with console.progress("Fitting"):
        found = fitted(task, settings, eta, test)
    model, holdout = found.pop("model"), found.pop("holdout")
    statuses = {found["solver"]: found["status"]}
    console.notes([*task.notes, *found["notes"]])
    if out is not None:
        _save(model, out)
    if report is not None:
        from nerm.cli.showing import statuses_of
        from nerm.report import render_page, run_study

        with console.progress("Trade-off") as progress:
            study = run_study(task, settings, choose=eta, progress=progress)
        write_text(report, render_page(study, f"nerm fit {data} … --eta {eta:g}"), "--report")
        statuses |= statuses_of(study)
    promises: list[Promise] = []
    if bounds:
        try:
            promises = promises_of(model, holdout, delta)
        except NermError as error:  # the fit stands, whatever can be promised about it
            found["no_bounds"] = str(error)
    _show(console, task, found, {"model": out, "report": report}, promises, delta)
    return console.code(statuses)


def fitted(task: TableTask, settings: Settings, eta: float, test: float) -> dict[str, Any]:
    """Fit on the training rows and measure on the others; the model is among what comes back."""
    import numpy as np

    from nerm import metrics
    from nerm.estimators import NERMClassifier
    from nerm.report.people import groups_of
    from nerm.report.study import same_decisions
    from nerm.tables import TableModel, learn_recipe
    from nerm.tables.roles import split

    everything = np.arange(len(task))
    train, held = split(task, test, settings.seed) if test > 0 else (everything, everything)
    part = task.rows(train)
    recipe, notes = learn_recipe(part.table, task.inputs, nominal=settings.nominal, missing=settings.missing)
    X, _ = recipe.transform(part.table)
    names = ("loss", "surrogate", "regularizer", "kernel", "lam", "weights", "class_weight", "solver", "tol")
    classifier = NERMClassifier(eta=eta, **{name: getattr(settings, name) for name in names})
    with warnings.catch_warnings():  # the status says it, and so does the exit code
        warnings.filterwarnings("ignore", category=UserWarning, module="nerm")
        classifier.fit(X, part.y, viewpoint=part.v)
    judged = task.rows(held)
    X_held, held_notes = recipe.transform(judged.table)
    scores = classifier.decision_function(X_held)
    measured = metrics.report(judged.y, scores, judged.v)
    binary = classifier.fits_[0]
    facts = {
        "eta": eta,
        "lam": settings.lam,
        "weights": settings.weights,
        "objective": binary.formula,
        "rows": len(train),
        "seed": settings.seed,
        "relative_gap": float(classifier.certificate_.relative_gap),
        "solver": binary.stats.solver,
    }
    return {
        "model": TableModel(recipe, classifier, task.target, task.viewpoint, facts),
        "holdout": (scores, judged.v) if test > 0 else None,
        **facts,
        "recipe": recipe.summary(),
        "status": binary.status.value,
        "iterations": int(classifier.n_iter_),
        "seconds": binary.stats.build_seconds + binary.stats.solve_seconds + binary.stats.certify_seconds,
        "measured_on": f"{len(held):,} held-out rows" if test > 0 else f"the {len(train):,} training rows",
        "measures": measured.as_dict(),
        "undefined": dict(measured.undefined),
        "groups": groups_of(judged, scores),
        "notes": [*notes, *held_notes, *same_decisions(1000 * float((scores > 0).mean()))],
    }


def _with_coding(facts: Any) -> Any:
    """Add to the facts that the columns were coded with means, scales and levels of the same rows."""
    return dataclasses.replace(facts, learned=(*facts.learned, "the coding of the columns"))


def promises_of(model: TableModel, holdout: Any, delta: float) -> list[Promise]:
    """Return every bound on a model that was just fitted."""
    from nerm.bounds import guarantee
    from nerm.report.study import Promise

    return [
        Promise(s.quantity, s.source, s.on_sample, s.bound, s.vacuous, s.note or f"assumes {s.assumes}")
        for s in guarantee(_with_coding(model.estimator.fit_facts()), delta=delta, holdout=holdout)
    ]


def _save(model: Any, out: str) -> None:
    from nerm.errors import InvalidInputError

    try:
        model.save(out)
    except OSError as error:
        raise InvalidInputError(
            "--out must be a file that can be written", f"{error.strerror} for {out!r}", "Choose another place"
        ) from None


def _show(
    console: Console,
    task: TableTask,
    found: dict[str, Any],
    files: dict[str, Any],
    promises: list[Promise],
    delta: float,
) -> None:
    from nerm.cli.showing import groups_table, measures_table, promises_table

    plain = {**found, "groups": [asdict(g) for g in found["groups"]], "bounds": [asdict(p) for p in promises]}
    plain |= {"target": asdict(task.target), "viewpoint": asdict(task.viewpoint), "task_notes": list(task.notes)}
    plain["files"] = {name: path for name, path in files.items() if path}
    target = f"{task.target.column} = {task.target.positive}"
    shown: list[Any] = [
        f"{found['objective']}\n{found['status']} by {found['solver']} in {found['seconds']:.2f} s on "
        f"{found['rows']:,} rows; certified relative gap {found['relative_gap']:.1e}\n{found['recipe']}",
        measures_table(
            f"{target}, neutral to {task.viewpoint.column}: {found['measured_on']}",
            found["measures"],
            found["undefined"],
        ),
        groups_table(found["groups"], target),
    ]
    if "no_bounds" in found:
        shown.append(f"No bounds: {found['no_bounds']}")
    if promises:
        shown.append(promises_table(promises, delta))
    shown += [f"{name.capitalize()}: {path}" for name, path in files.items() if path]
    console.result(plain, *shown)
