"""Render the report: one HTML file with style and script inside, which needs no network."""

import platform
from functools import partial
from typing import Any

import numpy as np

from nerm.report.chart import NARROW, WIDE, front_svg
from nerm.report.measuring import Group, Point, groups_of
from nerm.report.study import Study
from nerm.report.template import file_text, per, render
from nerm.tables.roles import MOST_SHOWN


def render_page(study: Study, command: str = "") -> str:
    """Return the report as HTML.

    Parameters
    ----------
    study
        To show.
    command
        That made it.
    """
    from markupsafe import Markup

    from nerm import __version__

    return render(
        "report.html.j2",
        study=study,
        task=study.task,
        settings=study.settings,
        plain=study.points[0],
        charts=[Markup(front_svg(study, clickable=True, frame=f)) for f in (WIDE, NARROW)],  # escaped inside
        style=Markup(file_text("front.css") + file_text("report.css")),
        script=Markup(file_text("report.js")),
        coefficients=[_coefficients(study, point) for point in study.points],
        sentences=[decision_sentences(study, point) for point in study.points],
        before=_before(study),
        short=partial(_short, study),
        everyone=groups_of(study.task, study.task.y),
        command=command,
        version=__version__,
        machine=f"Python {platform.python_version()}, numpy {np.__version__}, {platform.system()}",
    )


def _coefficients(study: Study, point: Point) -> list[dict[str, Any]]:
    """Return the coefficients that changed most from the plain model, with bar ends in percent."""
    names = () if study.recipe is None else study.recipe.feature_names
    plain, now = (
        dict(zip(names, () if p.model is None else p.model.coef.tolist(), strict=False))
        for p in (study.points[0], point)
    )
    same = point is study.points[0]
    top = sorted(now, key=lambda name: -abs(now[name] - (0.0 if same else plain[name])))[:MOST_SHOWN]
    widest = max([abs(value) for name in top for value in (plain[name], now[name])], default=1.0) or 1.0
    return [
        {
            "name": name,
            "plain": plain[name],
            "now": now[name],
            "plain_at": 50 + 48 * plain[name] / widest,
            "now_at": 50 + 48 * now[name] / widest,
        }
        for name in top
    ]


def decision_sentences(study: Study, point: Point) -> list[str]:
    """Return what a choice costs and buys, in decisions per 1,000 people.

    Parameters
    ----------
    study, point
        The study, and one of its points.
    """
    plain, target, now, before = study.points[0], study.task.target, point.decisions, _before(study)
    decision = f"“{target.column} = {target.positive}”"
    few = len(point.groups) == 2  # bars show more groups
    if point is plain:
        first = f"This is the model {before}. Of 1,000 people, {now.positive:.0f} get {decision}; "
        first += f"{now.correct:.0f} decisions are right."
        return [first, *(f"{_group_sentence(group, decision)}." for group in point.groups if few)]
    lost = round(now.correct) - round(plain.decisions.correct)
    price = "as many as" if lost == 0 else f"{abs(lost)} {'fewer' if lost < 0 else 'more'} than"
    rates = [[group.positive_rate for group in p.groups if not group.few] or [0.0] for p in (point, plain)]
    gap = [1000 * (max(of) - min(of)) for of in rates]
    return [
        f"Of 1,000 people, {now.changed:.0f} get another decision than {before}: "
        f"{now.to_positive:.0f} now get {decision}, {now.to_negative:.0f} no longer do.",
        f"{now.correct:.0f} of 1,000 decisions are right, {price} {before}.",
        *(
            f"{_group_sentence(group, decision)}; {before} {per(other.positive_rate)}."
            for group, other in zip(point.groups, plain.groups, strict=True)
            if few
        ),
        f"The groups differ by {gap[0]:.0f} decisions per 1,000, instead of {gap[1]:.0f}.",
    ]


def _short(study: Study, name: str) -> str:
    """Return the name of a group without its column, where there are several and all of one column."""
    groups, prefix = study.task.groups, f"{study.task.viewpoint.column} = "
    return (
        name.removeprefix(prefix) if len(groups) > 2 and all(g.startswith(prefix) for g in groups) else name
    )


def _before(study: Study) -> str:
    """Return the words for the first model, with which all are compared."""
    return "without neutrality"


def _group_sentence(group: Group, decision: str) -> str:
    return f"Per 1,000 people with {group.name}, {per(group.positive_rate)} get {decision}"
