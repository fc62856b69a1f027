"""The report: one HTML file with everything inside, no network, that someone who was not there can read and click."""

from __future__ import annotations

import math
import platform
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from nerm.report.chart import STYLE, front_svg
from nerm.report.study import Point, Study

MOST_COEFFICIENTS = 12


def render_page(study: Study, command: str = "") -> str:
    """Return the report as HTML."""
    from markupsafe import Markup

    from nerm import __version__

    return str(
        _template().render(
            study=study,
            task=study.task,
            settings=study.settings,
            plain=study.points[0],
            chart=Markup(front_svg(study, clickable=True)),  # built by nerm, its texts escaped
            style=Markup(STYLE + _file("report.css")),
            script=Markup(_file("report.js")),
            coefficients=[_coefficients(study, point) for point in study.points],
            sentences=[people_sentences(study, point) for point in study.points],
            base=study.points[0].groups,
            balance=_balance(study),
            command=command,
            version=__version__,
            machine=f"Python {platform.python_version()}, numpy {np.__version__}, {platform.system()}",
        )
    )


@cache
def _template() -> Any:
    """Return the template; every text that enters it is escaped."""
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters.update(fixed=_fixed, per=_per, signed=_signed)
    return environment.from_string(_file("report.html.j2"))


def _file(name: str) -> str:
    return resources.files("nerm.report").joinpath(name).read_text(encoding="utf-8")


def _fixed(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "–"


def _signed(value: float, digits: int = 3) -> str:
    return f"{value:+.{digits}f}".replace("-", "−") if math.isfinite(value) else "–"


def _per(rate: float) -> str:
    return f"{1000 * rate:.0f}" if math.isfinite(rate) else "–"


def _balance(study: Study) -> list[tuple[str, int, float]]:
    """Return the groups in all rows: name, size, share of the target."""
    task = study.task
    groups = []
    for sign in (1, -1):
        among = (task.v > 0) == (sign > 0)
        groups.append((task.viewpoint.group(sign), int(among.sum()), float((task.y[among] > 0).mean())))
    return groups


def _coefficients(study: Study, point: Point) -> list[dict[str, Any]]:
    """Return the coefficients that moved most from the plain model's, with bar ends in percent of the widest."""
    plain = dict(study.points[0].coefficients)
    now = dict(point.coefficients)
    by_change = sorted(now, key=lambda name: -abs(now[name] - plain[name]))
    if point.eta == study.points[0].eta:
        by_change = sorted(now, key=lambda name: -abs(now[name]))
    top = by_change[:MOST_COEFFICIENTS]
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


def people_sentences(study: Study, point: Point) -> list[str]:
    """Say in people what a choice costs and buys, against the model without neutrality."""
    plain, target = study.points[0], study.task.target
    decision = f"“{target.column} = {target.positive}”"
    if point.eta == plain.eta:
        return [
            f"This is the model without neutrality. Of 1,000 people, {point.people.positive:.0f} get "
            f"{decision}; {point.people.correct:.0f} decisions are right.",
            *(f"{_group_sentence(g, decision)}." for g in point.groups),
        ]
    lost = round(point.people.correct) - round(plain.people.correct)
    price = "as many as" if lost == 0 else f"{abs(lost)} {'fewer' if lost < 0 else 'more'} than"
    sentences = [
        f"Of 1,000 people, {point.people.changed:.0f} get another decision than without neutrality: "
        f"{point.people.to_positive:.0f} now get {decision}, {point.people.to_negative:.0f} no longer do.",
        f"{point.people.correct:.0f} of 1,000 decisions are right, {price} without neutrality.",
    ]
    for now, before in zip(point.groups, plain.groups, strict=True):
        sentences.append(f"{_group_sentence(now, decision)}; without neutrality {_per(before.positive_rate)}.")
    gap = [1000 * abs(p.groups[0].positive_rate - p.groups[1].positive_rate) for p in (point, plain)]
    sentences.append(f"The two groups differ by {gap[0]:.0f} decisions per 1,000, instead of {gap[1]:.0f}.")
    return sentences


def _group_sentence(group: Any, decision: str) -> str:
    return f"Per 1,000 people with {group.name}, {_per(group.positive_rate)} get {decision}"
