"""Render the report as one HTML file that contains its style and script and needs no network."""

import platform
from collections.abc import Iterable
from typing import Any

import numpy as np

from nerm.bounds.guarantee import Statement
from nerm.report.chart import distributions_svg, front_svg, render
from nerm.report.measuring import Point, groups_of
from nerm.report.study import Study
from nerm.tables.roles import MOST_SHOWN


def render_page(study: Study, command: str = "") -> str:
    """Return the report as HTML.

    Parameters
    ----------
    study
        The study to show.
    command
        The command that made the report.
    """
    from nerm import __version__

    groups, prefix = study.task.groups, f"{study.task.viewpoint.column} = "
    if len(groups) <= 2 or not all(name.startswith(prefix) for name in groups):
        prefix = ""  # else the column is in the title
    return render(
        "report.html.j2",
        study=study,
        chart=front_svg(study, clickable=True),
        pictures=[] if study.task.numbers is None else [distributions_svg(point) for point in study.points],
        coefficients=[_coefficients(study, point) for point in study.points],
        with_content=with_content,
        short=lambda name: name.removeprefix(prefix),
        columns=study.display.columns | study.display.more,
        cards=study.display.cards,
        text=lambda *shown: study.display.text(*shown).replace("-", "−"),
        everyone=groups_of(study.task, study.task.y),
        reference=reference(study),
        command=command,
        version=__version__,
        machine=f"Python {platform.python_version()}, numpy {np.__version__}, {platform.system()}",
    )


def _coefficients(study: Study, point: Point) -> list[dict[str, Any]]:
    """Return the coefficients that differ most from the plain model's, and the largest in size."""
    if point.model is None or point.model.solution.problem.is_kernel:
        return []
    names, now, first = study.recipe.feature_names, point.model.solution.coef, study.points[0].model
    plain = np.zeros_like(now) if first is None else first.solution.coef  # audited scores have none
    moved = np.abs(now if first is point.model else now - plain)
    top = np.argsort(-moved, kind="stable")[:MOST_SHOWN]
    widest = np.abs([plain[top], now[top]]).max(initial=0.0) or 1.0
    return [{"name": names[j], "plain": plain[j], "now": now[j], "widest": widest} for j in top]


def with_content(statements: Iterable[Statement]) -> tuple[list[Statement], str | None]:
    """Return the bounds with content, and one line about the others; None if there are no others."""
    every = list(statements)
    stated = [each for each in every if each.holds and not each.vacuous]
    reasons: dict[str, list[str]] = {}
    for each in every:
        if each not in stated:
            word = "vacuous" if each.holds else "does not apply"
            reasons.setdefault(f"{word}: {each.remark}", []).append(f"{each.quantity} by {each.source}")
    told = "; ".join(f"{', '.join(names)} ({why})" for why, names in reasons.items())
    return stated, f"Bounds without content: {told}." if told else None


def reference(study: Study) -> str:
    """Return the phrase for the point with which the others are compared."""
    return "as given" if study.audited else "without neutrality"
