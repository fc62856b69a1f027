"""`nerm fit`: a model from a table, evaluated on rows it has not seen, in one file with the coding of its columns.

Examples
--------
  nerm fit people.csv --target income --viewpoint sex --out model.nerm
  nerm fit people.csv --target income --viewpoint sex --positive '>50K' --eta 0.5 --bounds
  nerm fit adult.test.gz --columns @adult --skip-lines 1 --target class --viewpoint sex
  nerm fit german.data.gz --columns @german --target class --positive 1 --viewpoint foreign_worker
  nerm fit bank-full.csv.gz --target y --viewpoint loan --report bank.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nerm.cli.console import Console, check_places, refusing_unwritable, write_text
from nerm.cli.options import epilog_of, fit_options, inputs_of, report_option, request_of, study_options
from nerm.errors import NermError

if TYPE_CHECKING:
    from nerm.report import TableFit

#: What a saved model remembers of its fit.
REMEMBERED = ("eta", "lam", "lam_form", "weights", "objective", "rows", "seed", "relative_gap", "solver")


@click.command(epilog=epilog_of(__doc__))
@click.argument("data", metavar="DATA.csv")
@fit_options
@click.option("--out", metavar="MODEL.nerm", help="Write the model here.")
@click.option("--bounds", is_flag=True, help="Show what is guaranteed beyond these rows.")
@report_option
@study_options
def fit(console: Console, data: str, out: str | None, bounds: bool, report: str | None, **options: Any) -> int:
    """Fit a neutral classifier to a table.

    Numbers are scaled, words coded as 0/1 columns, missing values kept as a value of their own; what was done is told
    on standard error. The viewpoint is not an input unless you ask. A quarter of the rows is held out to measure; the
    saved model is the one that was measured, and the one that --report shows among its neighbours.
    """
    check_places(inputs_of(data, options), {"--out": out, "--report": report})
    task, settings = request_of(data, options)
    from nerm.cli.rendering import measured, statements_json, statements_table, statuses_of
    from nerm.report import fit_table

    with console.progress("Fitting"):
        fitted = fit_table(task, settings, options["eta"], options["test"])
    found = fit_json(fitted)
    console.notes([*task.notes, *found["notes"]])
    statuses = {found["solver"]: found["status"]}
    if out is not None:
        _save(fitted, {name: found[name] for name in REMEMBERED}, out)
    if report is not None:
        from nerm.report import render_page, run_study

        with console.progress("Trade-off") as progress:
            study = run_study(task, settings, fit=fitted, progress=progress)
        write_text(report, render_page(study, f"nerm fit {data} … --eta {options['eta']:g}"), "--report")
        statuses |= statuses_of(study)
    plain, tables = measured(fitted.measured, fitted.scores, found["measured_on"])
    found |= {**plain, "task_notes": list(task.notes), "bounds": []}
    shown: list[Any] = [
        *filter(None, [found["warning"]]),
        f"{found['objective']}\n{found['status']} by {found['solver']} in {found['seconds']:.2f} s on "
        f"{found['rows']:,} rows; certified relative gap {found['relative_gap']:.1e}\n{found['recipe']}",
        *tables,
    ]
    if bounds:
        try:
            statements = statements_of(fitted)
            found["bounds"] = statements_json(statements)
            shown.append(statements_table(statements, settings.delta))
        except NermError as error:  # the fit stands, whatever can be promised about it
            found["no_bounds"] = str(error)
            shown.append(f"No bounds: {error}")
    console.result(found, *shown, files={"model": out, "report": report})
    return console.code(statuses, collapsed=fitted.collapse is not None)


def fit_json(fitted: TableFit) -> dict[str, Any]:
    """Return what there is to say about a fit, but for its measures, as plain data."""
    from nerm.report.decisions import ADVICE

    settings, solution, rows = fitted.rows.settings, fitted.model.solution, len(fitted.train)
    stats = solution.stats
    held_out = f"{len(fitted.test):,} held-out rows"
    return {
        "eta": fitted.model.eta,
        "lam": settings.lam,
        "lam_form": "mean",
        "weights": settings.weights,
        "objective": str(solution.problem.objective),
        "rows": rows,
        "seed": settings.seed,
        "relative_gap": fitted.model.relative_gap,
        "solver": stats.solver,
        "recipe": fitted.recipe.summary(),
        "status": solution.status.value,
        "iterations": stats.iterations or 1,
        "seconds": stats.build_seconds + stats.solve_seconds + stats.certify_seconds,
        "measured_on": f"the {rows:,} training rows" if fitted.holdout is None else held_out,
        "warning": None if fitted.collapse is None else f"{fitted.collapse} Not recommended: {ADVICE}.",
        "notes": list(fitted.notes),
    }


def statements_of(fitted: TableFit) -> list[Any]:
    """Return every bound on a model that was just fitted."""
    from nerm import bounds

    settings = fitted.rows.settings
    return list(bounds.guarantee(fitted.model.facts(), delta=settings.delta, holdout=fitted.holdout))


def _save(fitted: TableFit, facts: dict[str, Any], out: str) -> None:
    from nerm.tables import TableModel

    task = fitted.rows.task
    model = TableModel(fitted.recipe, fitted.model.classifier, task.target, task.viewpoint, facts)
    with refusing_unwritable(out, "--out"):
        model.save(out)
