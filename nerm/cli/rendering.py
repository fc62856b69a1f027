"""Tables and JSON of what fits, studies and audits found."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple
from typing import Any

from rich.table import Table

from nerm import metrics
from nerm.bounds.guarantee import Statement
from nerm.cli.console import Console, make_table, number, write_text
from nerm.report import Study, figure_svg, render_page
from nerm.report.decisions import Group, groups_of
from nerm.tables import TableTask
from nerm.typing import Floats

MEASURES = {
    "accuracy": "accuracy",
    "auc": "AUC",
    "neutrality_risk": "C_sgn = |mean(sign f · sign v)|, the paper's measure",
    "neutrality_risk_if_independent": "  … what it would be if f and v were independent",
    "calders_verwer_score": "difference in positive rates (demographic parity)",
    "normalized_prejudice_index": "mutual information of decision and viewpoint (NPI)",
    "equal_opportunity_difference": "difference in true positive rates (equal opportunity)",
    "equalized_odds_difference": "largest difference in error rates (equalized odds)",
}


def measured(task: TableTask, scores: Floats, rows: str) -> tuple[dict[str, Any], list[Table]]:
    """Return the measures and the rates by group of some rows, as JSON and as tables.

    Parameters
    ----------
    task, scores
        The rows and f of each, (n,).
    rows
        What the title calls them.
    """
    found, groups = metrics.report(task.y, scores, task.v), groups_of(task, scores)
    target = f"{task.target.column} = {task.target.positive}"
    plain = {
        "target": asdict(task.target),
        "viewpoint": asdict(task.viewpoint),
        "measures": found.as_dict(),
        "undefined": dict(found.undefined),
        "groups": [asdict(group) for group in groups],
    }
    values, undefined = found.as_dict(), found.undefined
    lines = [[words, undefined.get(name) or number(values[name], 4)] for name, words in MEASURES.items()]
    title = f"{target}, neutral to {task.viewpoint.column}: {rows}"
    return plain, [make_table(title, ["measure", "value"], lines), _groups_table(groups, target)]


def _groups_table(groups: Sequence[Group], target: str) -> Table:
    columns = ["group", "rows", target, "decided so", "true positive", "false positive", "accuracy"]
    rows = [[g.name, f"{g.rows:,}", *(number(rate) for rate in astuple(g)[2:])] for g in groups]
    return make_table("Rates by group", columns, rows)


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
    console.result(_study_json(study), *first, _front_table(study), study.sentence(), files=files)
    return console.code(statuses_of(study), collapsed=study.recommended is None)


def statuses_of(study: Study) -> dict[str, str]:
    """Return the status of the model at every weight."""
    return {f"η = {point.eta:g}": point.model.solution.status.value for point in study.points}


def _front_table(study: Study) -> Table:
    """Return the trade-off, one row a weight; the recommended one is marked, and those that collapsed."""
    rows = []
    for k, p in enumerate(study.points):
        mark = "×" if p.collapse else "→" if k == study.recommended else ""
        rows.append([mark, f"{p.eta:g}", *_front_cells(p.measures), f"{p.model.relative_gap:.0e}"])
    rows += [["", other.name, *_front_cells(other.measures), "–"] for other in study.others]
    columns = ["", "η", "AUC", "accuracy", "C_sgn", "CV score", "certified gap"]
    task = study.task
    title = f"{task.target.column} = {task.target.positive}, neutral to {task.viewpoint.column} ({study.how_measured})"
    return make_table(title, columns, rows, left=2)


def _front_cells(measures: Mapping[str, float]) -> list[str]:
    cells = [number(measures[name]) for name in ("auc", "accuracy", "neutrality_risk")]
    return [*cells, f"{measures['calders_verwer_score']:+.3f}"]


def _study_json(study: Study) -> dict[str, Any]:
    """Return a study as plain data."""
    return {
        "rows": len(study.task),
        "target": asdict(study.task.target),
        "viewpoint": asdict(study.task.viewpoint),
        "recipe": study.recipe.summary(),
        "objective": study.formula,
        "settings": asdict(study.settings),
        "lam_form": "mean",
        "measured": study.how_measured,
        "chosen": None if study.recommended is None else study.points[study.recommended].eta,
        "warning": study.warning(),
        "sentence": study.sentence(),
        "points": [
            {
                "eta": p.eta,
                **p.measures,
                "collapse": p.collapse,
                "training": p.training,
                "certified_gap": p.model.relative_gap,
                "status": p.model.solution.status.value,
                "solver": p.model.solution.stats.solver,
                "groups": [asdict(group) for group in p.groups],
                "per_1000": {**asdict(p.decisions), "changed": p.decisions.changed},
                "bounds": statements_json(p.statements),
            }
            for p in study.points
        ],
        "others": [{"method": other.name, **other.measures} for other in study.others],
        "notes": list(study.notes),
        "seconds": study.seconds,
    }
