"""Tables and JSON of what fits, studies and audits found."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from nerm.bounds.guarantee import Statement
from nerm.cli.console import Console, make_table, number, write_text
from nerm.metrics import METRICS
from nerm.report.chart import figure_svg
from nerm.report.measuring import (
    Difference,
    Group,
    Interval,
    OtherMethod,
    Point,
    differences_of,
    groups_of,
    measures_of,
)
from nerm.report.page import render_page
from nerm.report.study import Study
from nerm.tables import TableTask
from nerm.tables.roles import FEW_ROWS
from nerm.typing import Floats


def measured(task: TableTask, scores: Floats, rows: str) -> tuple[dict[str, Any], list[Table]]:
    """Return the measures and the rates by group of some rows, as JSON and as tables.

    Parameters
    ----------
    task, scores
        The rows and f of each, (n,).
    rows
        What the title calls them.
    """
    found, groups, differences = (
        measures_of(task, scores),
        groups_of(task, scores),
        differences_of(task, scores),
    )
    target = f"{task.target.column} = {task.target.positive}"
    plain = {
        "target": asdict(task.target),
        "viewpoint": asdict(task.viewpoint),
        "measures": found.values,
        "intervals": found.intervals,
        "undefined": found.undefined,
        "groups": [group_json(group) for group in groups],
        "differences": [asdict(difference) for difference in differences],
    }
    lines = []
    for name, metric in METRICS.items():
        note = f" ({metric.note})" if metric.note not in ("", metric.words) else ""
        value = found.undefined.get(name) or number(found.values[name], 4)
        lines.append([metric.words + note, value, interval(found.intervals.get(name))])
    title = f"{target}, neutral to {task.viewpoint.column}: {rows}"
    tables = [make_table(title, ["measure", "value", "95 % interval"], lines), _groups_table(groups, target)]
    if len(differences) > 1:
        tables.append(_differences_table(differences))
    return plain, tables


def group_json(group: Group) -> dict[str, Any]:
    """Return a group as plain data."""
    return {**asdict(group), "few": group.few}


def interval(ends: Interval | None, digits: int = 3) -> str:
    """Return an interval for a table; nothing where there is none."""
    return "" if ends is None else f"{ends[0]:.{digits}f} … {ends[1]:.{digits}f}"


def _groups_table(groups: Sequence[Group], target: str) -> Table:
    columns = ["group", "rows", target, "decided so", "true positive", "false positive", "accuracy"]
    rows = []
    for g in groups:
        rates = [f"{number(rate)}\n{interval(g.intervals[name], 2)}" for name, rate in g.rates.items()]
        rows.append([g.name, f"{g.rows:,}" + (" (few)" if g.few else ""), *rates])
    few = f"; (few): below {FEW_ROWS} rows" if any(g.few for g in groups) else ""
    return make_table(f"Rates by group, with 95 % intervals{few}", columns, rows)


def _differences_table(differences: Sequence[Difference]) -> Table:
    rows = [
        [d.one, d.other, f"{d.value:+.3f}" + (" (few)" if d.few else ""), interval(d.interval)]
        for d in differences
    ]
    title = "Differences in positive rates; the last is the largest between two groups"
    return make_table(title, ["", "against", "difference", "95 % interval"], rows, left=2)


def statements_table(statements: Iterable[Statement], delta: float) -> Table:
    """Return the bounds, and which of them say nothing.

    Parameters
    ----------
    statements
        The bounds.
    delta
        Probability with which each may fail.
    """
    rows = []
    for s in statements:
        bound = number(s.bound, 4) + (" vacuous" if s.vacuous and s.holds else "")
        rows.append([s.quantity, s.source, s.remark, number(s.on_sample, 4), bound])
    title = f"Bounds, each with probability {1 - delta:g}"
    return make_table(title, ["quantity", "by", "note", "on these rows", "bound"], rows, left=3)


def statements_json(statements: Iterable[Statement]) -> list[dict[str, Any]]:
    """Return the bounds as plain data."""
    names = ("quantity", "source", "on_sample", "bound", "vacuous")
    return [{**{name: getattr(s, name) for name in names}, "note": s.remark} for s in statements]


def show_study(
    console: Console, study: Study, command: str, files: Mapping[str, str | None], option: str | None = None
) -> int:
    """Write the figure and the page of a study, print it, and return the exit code.

    Parameters
    ----------
    console, study
        Where to, and what.
    command
        What the page says it was made by.
    files
        Where "figure" and "report" go, None for nowhere.
    option
        That named the places, if not --figure and --report.
    """
    if files["figure"] is not None:
        write_text(files["figure"], figure_svg(study), option or "--figure")
    if files["report"] is not None:
        write_text(files["report"], render_page(study, command), option or "--report")
    first = filter(None, [study.warning()])
    said = [study.sentence()]
    if study.recommended is not None and study.points[study.recommended].command:
        said.append(f"This model again: {study.points[study.recommended].command}")
    console.result(_study_json(study), *first, _front_table(study), *said, files=files)
    return console.code(statuses_of(study), collapsed=study.recommended is None)


def statuses_of(study: Study) -> dict[str, str]:
    """Return the status of every model."""
    return {
        point.label: point.model.solution.status.value for point in study.points if point.model is not None
    }


def _front_table(study: Study) -> Table:
    """Return the trade-off, one row a model; the recommended one is marked, and those that collapsed."""
    rows = []
    for k, p in enumerate(study.points):
        mark = "×" if p.collapse else "→" if k == study.recommended else ""
        rows.append([mark, p.label, *_front_cells(p, study), p.certified])
    rows += [["", other.name, *_front_cells(other, study), "–"] for other in study.others]
    columns = ["", "model", "AUC", "accuracy", "C_sgn", "difference in positive rates", "95 % interval"]
    if study.settings.aim.name not in ("neutrality_risk", "calders_verwer_score"):
        columns += [study.settings.aim.words]
    task = study.task
    title = f"{task.target.group(1)}, neutral to {task.viewpoint.column} ({study.how_measured})"
    return make_table(title, [*columns, "certified gap"], rows, left=2)


def _front_cells(row: Point | OtherMethod, study: Study) -> list[str]:
    cells = [number(row.measures[name]) for name in ("auc", "accuracy", "neutrality_risk")]
    cells += [
        f"{row.measures['calders_verwer_score']:+.3f}",
        interval(row.intervals.get("calders_verwer_score")),
    ]
    aim = study.settings.aim.name
    return (
        cells if aim in ("neutrality_risk", "calders_verwer_score") else [*cells, number(row.measures[aim])]
    )


def _study_json(study: Study) -> dict[str, Any]:
    """Return a study as plain data."""
    return {
        "rows": len(study.task),
        "target": asdict(study.task.target),
        "viewpoint": asdict(study.task.viewpoint),
        "recipe": None if study.recipe is None else study.recipe.summary(),
        "objective": study.formula,
        "settings": asdict(study.settings),
        "lam_form": "mean",
        "measured": study.how_measured,
        "aim": study.settings.aim.name,
        "chosen": None if study.recommended is None else study.points[study.recommended].label,
        "command": None if study.recommended is None else study.points[study.recommended].command,
        "warning": study.warning(),
        "sentence": study.sentence(),
        "points": [point_json(point) for point in study.points],
        "others": [{"method": o.name, **o.measures, "intervals": o.intervals} for o in study.others],
        "notes": list(study.notes),
        "seconds": study.seconds,
    }


def point_json(p: Point) -> dict[str, Any]:
    """Return one model of a study as plain data."""
    solution = None if p.model is None else p.model.solution
    return {
        "label": p.label,
        "limit": p.level.limit,
        "eta": p.eta,
        **p.measures,
        "intervals": p.intervals,
        "collapse": p.collapse,
        "training": p.training,
        "certified_gap": None if p.model is None else p.model.relative_gap,
        "status": None if solution is None else solution.status.value,
        "solver": None if solution is None else solution.stats.solver,
        "groups": [group_json(group) for group in p.groups],
        "differences": [asdict(difference) for difference in p.differences],
        "calibration": [asdict(group) for group in p.calibration],
        "per_1000": {**asdict(p.decisions), "changed": p.decisions.changed},
        "bounds": statements_json(p.statements),
        "command": p.command or None,
    }
