"""Tables and JSON of what studies and audits found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from nerm.cli.console import make_table, number

if TYPE_CHECKING:
    from rich.table import Table

    from nerm.report.people import Group
    from nerm.report.study import Promise, Study

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


def front_table(study: Study) -> Table:
    """Return the trade-off, one row a weight; the chosen one is marked."""
    rows = []
    for k, point in enumerate(study.points):
        m = point.measures
        rows.append(
            [
                "→" if k == study.chosen else "",
                f"{point.eta:g}",
                number(m["auc"]),
                number(m["accuracy"]),
                number(m["neutrality_risk"]),
                f"{m['calders_verwer_score']:+.3f}",
                f"{point.relative_gap:.0e}",
            ]
        )
    for rival in study.rivals:
        m = rival.measures
        cells = [number(m["auc"]), number(m["accuracy"]), number(m["neutrality_risk"])]
        rows.append(["", rival.name, *cells, f"{m['calders_verwer_score']:+.3f}", "–"])
    columns = ["", "η", "AUC", "accuracy", "C_sgn", "CV score", "certified gap"]
    task = study.task
    title = f"{task.target.column} = {task.target.positive}, neutral to {task.viewpoint.column} ({study.how_measured})"
    return make_table(title, columns, rows, left=2)


def measures_table(title: str, measures: dict[str, float], undefined: dict[str, str]) -> Table:
    """Return every measure with what it means."""
    rows = [[words, undefined.get(name) or number(measures[name], 4)] for name, words in MEASURES.items()]
    return make_table(title, ["measure", "value"], rows)


def groups_table(groups: Sequence[Group], target: str) -> Table:
    """Return the rates of each group."""
    columns = ["group", "rows", f"{target}", "decided so", "true positive", "false positive", "accuracy"]
    rows = []
    for g in groups:
        rates = (g.base_rate, g.positive_rate, g.true_positive_rate, g.false_positive_rate, g.accuracy)
        rows.append([g.name, f"{g.rows:,}", *(number(rate) for rate in rates)])
    return make_table("Rates by group", columns, rows)


def promises_table(promises: Sequence[Promise], delta: float) -> Table:
    """Return the bounds, and which of them say nothing."""
    rows = [
        [
            p.quantity,
            p.source,
            p.note,
            number(p.on_sample, 4),
            number(p.bound, 4) + (" vacuous" if p.vacuous and p.bound == p.bound else ""),
        ]
        for p in promises
    ]
    title = f"Bounds, each with probability {1 - delta:g}"
    return make_table(title, ["quantity", "by", "note", "on these rows", "bound"], rows, left=3)


def statuses_of(study: Study) -> dict[str, str]:
    """Return the status of the model at every weight."""
    return {f"η = {point.eta:g}": point.status for point in study.points}


def study_json(study: Study) -> dict[str, Any]:
    """Return a study as plain data."""
    return {
        "rows": len(study.task),
        "target": asdict(study.task.target),
        "viewpoint": asdict(study.task.viewpoint),
        "recipe": study.recipe.summary(),
        "objective": study.formula,
        "settings": asdict(study.settings),
        "measured": study.how_measured,
        "chosen": study.points[study.chosen].eta,
        "sentence": study.sentence(),
        "points": [
            {
                "eta": p.eta,
                **p.measures,
                "training": p.training,
                "certified_gap": p.relative_gap,
                "status": p.status,
                "solver": p.solver,
                "groups": [asdict(g) for g in p.groups],
                "per_1000": {**asdict(p.people), "changed": p.people.changed},
                "bounds": [asdict(b) for b in p.promises],
            }
            for p in study.points
        ],
        "others": [{"method": rival.name, **rival.measures} for rival in study.rivals],
        "notes": list(study.notes),
        "seconds": study.seconds,
    }
