"""Show the results of fits, studies and audits as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import nerm.report
from nerm.cli.console import Console, make_table, write_text


def measured_json(point: nerm.report.Point) -> dict[str, Any]:
    """Return the measures of a point and its rates by group as plain data."""
    return {
        "target": asdict(point.task.target),
        "viewpoint": asdict(point.task.viewpoint),
        "measures": point.measures,
        "intervals": point.intervals,
        "undefined": point.undefined,
        **_groups_json(point),
    }


def _groups_json(point: nerm.report.Point) -> dict[str, Any]:
    groups = [
        {"name": g.name, "rows": g.rows, **g.rates, "intervals": g.intervals, "few": g.few}
        for g in point.groups
    ]
    return {"groups": groups, "differences": [asdict(difference) for difference in point.differences]}


def measured_tables(point: nerm.report.Point, rows: str) -> list[Any]:
    """Return tables of a point's measures, of its rates by group and, if there are several, of differences.

    Parameters
    ----------
    point
        The scores with their measures.
    rows
        Description of the rows, for the title.
    """
    task, display = point.task, point.display
    lines = []
    for name, words in display.measures.items():
        words += f" (one decision for all: {point.of_one_decision:.4f})" if name == "accuracy" else ""
        value = point.undefined.get(name) or display.text(point.measures[name], digits=4)
        lines.append([words, value, interval(display, point.intervals.get(name))])
    title = f"{task.asked} by {task.viewpoint.column}: {rows}; {_compared(task)}"
    tables = [make_table(title, ["measure", "value", "95 % interval"], lines)]
    lines = []
    for g in point.groups:
        rates = [f"{display.text(r)}\n{interval(display, g.intervals[n], 2)}" for n, r in g.rates.items()]
        lines.append([g.name, f"{g.rows:,}" + few(g.few), *rates])
    title = f"{display.averages} by group, with 95 % intervals"
    tables.append(make_table(title, ["group", "rows", *display.heads(task)], lines))
    if len(point.differences) > 1:
        lines = []
        for d in point.differences:
            value = display.text(d.value, display.difference) + few(d.few)
            lines.append([d.one, d.other, value, interval(display, d.interval)])
        title = f"Differences in {display.compared}; the last is the largest between two groups"
        tables.append(make_table(title, ["", "against", "difference", "95 % interval"], lines, left=2))
    if any(g.few for g in point.groups):
        doubts = {d.few for d in point.differences}
        worst = "; so may the measures above" if doubts == {True} else ""
        worst = "; the measures above leave such groups out" if len(doubts) > 1 else worst
        tables.append(f"(few): below {nerm.tables.roles.FEW_ROWS} rows, so it may be chance{worst}.")
    return tables


def impact_table(ratios: Sequence[Mapping[str, Any]]) -> Any:
    """Return the table of selection rates and impact ratios, as New York's Local Law 144 has it."""
    lines = []
    for r in ratios:
        shares = [f"{r[name]:.3f}" for name in ("rate", "impact_ratio")]
        lines.append([r["name"], f"{r['rows']:,}{few(r['few'])}", f"{r['selected']:,}", *shares])
    title = "Impact ratios: the positive rate by the highest one"
    if not any(r["few"] and r["impact_ratio"] == 1 for r in ratios):
        title += "; groups of few rows are no reference"
    return make_table(title, ["group", "rows", "decided so", "rate", "impact ratio"], lines)


def few(is_few: bool) -> str:
    """Return the mark of groups with few rows."""
    return " (few)" if is_few else ""


def _compared(task: nerm.tables.TableTask) -> str:
    """Return which group has v = +1, in words."""
    if len(task.terms) == 1:
        return f"v = +1 is {task.viewpoint.group(1)}"
    return "each group is v = +1 once, and the least neutral value is shown"


def interval(display: nerm.report.Display, ends: tuple[float, float] | None, digits: int = 3) -> str:
    """Format an interval for a table; "" if there is none."""
    return "" if ends is None else " … ".join(display.text(end, digits=digits) for end in ends)


def statements_shown(statements: Iterable[nerm.bounds.Statement], delta: float) -> list[Any]:
    """Return a table of the bounds, and one line about those that are vacuous or do not apply.

    Parameters
    ----------
    statements
        The bounds.
    delta
        Probability with which each may fail.
    """
    stated, empty = nerm.report.page.with_content(statements)
    fixed = nerm.report.fixed
    rows = [[s.quantity, s.source, s.remark, fixed(s.on_sample, 4), fixed(s.bound, 4)] for s in stated]
    title = f"Bounds, each with probability {1 - delta:g}"
    table = make_table(title, ["quantity", "by", "note", "on these rows", "bound"], rows, left=3)
    return [table if rows else None, empty]


def statements_json(statements: Iterable[nerm.bounds.Statement]) -> list[dict[str, Any]]:
    """Return the bounds as plain data."""
    names = ("quantity", "source", "on_sample", "bound", "vacuous", "holds")
    return [{**{name: getattr(s, name) for name in names}, "note": s.remark} for s in statements]


def show_study(
    console: Console, study: nerm.report.Study, command: str, files: Mapping[str, str | None]
) -> int:
    """Write the figure and the report of a study, print its results, and return the exit code.

    Parameters
    ----------
    console, study
        The console to print to, and the study.
    command
        The command that the report names as its source.
    files
        Paths by kind of file; "figure" and "report" are written here, unless they are None.
    """
    if files["figure"] is not None:
        write_text(files["figure"], nerm.report.figure_svg(study))
    if files["report"] is not None:
        write_text(files["report"], nerm.report.render_page(study, command))
    again = None if study.recommended is None else f"This model again: {study.recommended.command}"
    legend = nerm.report.chart.render("legend.txt.j2", study=study, compared=_compared(study.task))
    shown = study.warning(), _front_table(study), legend, "", study.sentence(), again
    console.result(_study_json(study), *shown, files=files)
    return console.code(study.points, collapsed=study.recommended is None)


def _front_table(study: nerm.report.Study) -> Any:
    """Return the trade-off table, one row per model; recommended and collapsed models are marked."""
    aim, display, rows = study.settings.aim, study.display, list[list[str]]()
    columns = [*display.columns, *({aim.name} - display.columns.keys())]
    heads = [display.columns.get(name, aim.words) for name in columns]
    heads = [head.removesuffix(f" in {display.compared}") for head in heads]  # short: explained below
    at = len(display.columns)
    for p in (*study.points, *study.others):
        mark = "→" if p is study.recommended else "×" if p.collapse and p.model else ""
        cells = [display.text(p.measures[name]) for name in columns]
        cells.insert(at, interval(display, p.intervals.get(display.difference), 2))
        rows.append([f"{mark:1} {p.label}", *cells, p.certified.replace("stationary", "local")])
    heads.insert(at, "95 % interval")
    title = f"{study.task.asked}, neutral to {study.task.viewpoint.column}"
    return make_table(title, ["  model", *heads, "gap"], rows)


def _study_json(study: nerm.report.Study) -> dict[str, Any]:
    """Return a study as plain data."""
    best = study.recommended
    return {
        "rows": len(study.task),
        "target": asdict(study.task.target),
        "viewpoint": asdict(study.task.viewpoint),
        "recipe": study.recipe.summary(),
        "objective": study.formula,
        "settings": asdict(study.settings),
        "lam_form": "mean",
        "measured": study.how_measured,
        "aim": study.settings.aim.name,
        "chosen": None if best is None else best.label,
        "command": None if best is None else best.command,
        "warning": study.warning(),
        "sentence": study.sentence(),
        "points": [point_json(study, point) for point in study.points],
        "others": [{"method": o.label, **o.measures, "intervals": o.intervals} for o in study.others],
        "notes": list(study.notes),
        "seconds": study.seconds,
    }


def point_json(study: nerm.report.Study, p: nerm.report.Point) -> dict[str, Any]:
    """Return one point of a study as plain data; fields of the model are None if it has no model."""
    model, solution = p.model, None if p.model is None else p.model.solution
    return {
        "label": p.label,
        "limit": model and model.level.limit,
        "eta": model and model.eta,
        **p.measures,
        "intervals": p.intervals,
        "collapse": p.collapse,
        "training": p.training,
        "certified_gap": solution and solution.certificate.relative_gap,
        "status": solution and solution.status.value,
        "solver": solution and solution.stats.solver,
        **_groups_json(p),
        "per_1000": p.decisions,
        "bounds": statements_json(study.statements(p)),
        "command": p.command or None,
    }
