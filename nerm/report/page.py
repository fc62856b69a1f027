"""Render a study: the report as one HTML file, which needs no network, its pictures as SVG, and sentences."""

import math
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import cache
from typing import Any

import numpy as np

from nerm.bounds.guarantee import Statement
from nerm.report.fitting import Training
from nerm.report.measuring import Point, absolute_interval, counted_terms, groups_of, rounded
from nerm.report.study import GROUP_THRESHOLDS, Study
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
        short=lambda name: name.removeprefix(prefix),
        columns=study.display.columns | study.display.more,
        text=lambda *shown: study.display.text(*shown).replace("-", "−"),
        reference="as given" if study.audited else "without neutrality",
        command=command,
        version=__version__,
        machine=f"Python {platform.python_version()}, numpy {np.__version__}, {platform.system()}",
    )


def largest_coefficients(study: Study, point: Point) -> list[dict[str, Any]]:
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
    """Return the bounds that are not vacuous, and one line about the vacuous ones.

    The line is None if there are none.
    """
    every = list(statements)
    stated = [each for each in every if each.holds and not each.vacuous]
    reasons: dict[str, list[str]] = {}
    for each in every:
        if each not in stated:
            word = "vacuous" if each.holds else "does not apply"
            reasons.setdefault(f"{word}: {each.remark}", []).append(f"{each.quantity} by {each.source}")
    told = "; ".join(f"{', '.join(names)} ({why})" for why, names in reasons.items())
    return stated, f"Bounds without content: {told}." if told else None


def proof(study: Study, tol: float = 0.02) -> str:
    """Return a paragraph about the trade-off curve on the training rows of a study.

    The curve is `nerm.Problem.frontier` of the objective of the study: P is its regularised risk, C its
    relaxed neutrality risk. Every bound is rounded to the side on which it still holds.
    """
    training, placed = Training(study.task.rows(study.train), study.settings), None
    problem = training.problem(np.ones(len(study.train), dtype=bool))
    front = problem.frontier(tol)
    half = _up(0.5 * (front.inner[0, 0] + front.inner[-1, 0]))
    if study.recommended is not None and study.recommended.model is not None and not problem.is_kernel:
        solution = study.recommended.model.solution
        placed = front.place((solution.coef, solution.intercept))
    known = front.find(neutrality=float(half)).objective
    given = {"study": study, "problem": problem, "front": front, "half": half, "known": known}
    return paragraph("proof.txt.j2", placed=placed, up=_up, down=_down, **given)


def _down(value: float) -> Decimal:
    """Round down to four decimals."""
    return Decimal(float(value)).quantize(Decimal("0.0001"), ROUND_FLOOR)


def _up(value: float) -> Decimal:
    """Round up to four decimals."""
    return Decimal(float(value)).quantize(Decimal("0.0001"), ROUND_CEILING)


@dataclass(frozen=True)
class Axis:
    """A linear axis: its first tick is at pixel `start`, its last tick at pixel `end`."""

    ticks: tuple[float, ...]
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the position of a value, in pixels."""
        low, high = self.ticks[0], self.ticks[-1]
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def axis(values: Sequence[float], start: float, end: float, least: float = 0.02) -> Axis:
    """Return an axis that shows all values on about five round ticks, and spans at least `least`.

    Parameters
    ----------
    values
        The values that the axis must contain.
    start, end
        Positions of the two ends, in pixels.

    Examples
    --------
    >>> axis([0.71, 0.78], 0, 100).ticks
    (0.7, 0.72, 0.74, 0.76, 0.78)
    """
    span = max(max(values) - min(values), least)  # so that noise does not look like a difference
    low = max(min(0.0, *values), (max(values) + min(values) - span) / 2)
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = power * next(m for m in (1, 2, 5, 10) if m * power >= span / 4)
    first, last = math.floor(low / step), math.ceil((low + span) / step)
    return Axis(tuple(float(f"{k * step:.10g}") for k in range(first, last + 1)), start, end)


def figure_svg(study: Study) -> str:
    """Return the figure of a study as the text of an SVG file."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{front_svg(study, clickable=False)}\n'


def front_svg(study: Study, *, clickable: bool) -> str:
    """Return the trade-off front as SVG; quality is on the x axis, the neutrality measure on the y axis.

    Parameters
    ----------
    study
        The study to draw.
    clickable
        True for the chart of the page: each point is a radio button and the limit a slider. False for a
        figure file, which contains its own style.
    """
    name, shown = study.settings.aim.name, [*study.points, *study.others]
    quality, numbers = study.display.quality[0], study.task.numbers
    x = axis([point.measures[quality] for point in shown], 84, 640)
    y = axis([0.0, *map(study.aim, shown)], 366, 48, 0.02 * (1.0 if numbers is None else numbers.std()))
    places = [(x.at(point.measures[quality]), y.at(study.aim(point))) for point in shown]
    digits = 3 if numbers is None else 2 - math.floor(math.log10(y.ticks[-1]))  # of a limit
    spans = [absolute_interval(p.intervals.get(name, (study.aim(p), study.aim(p)))) for p in study.points]
    dots = list(zip(study.points, places, spans, _named(places, study), strict=False))
    marks = list(zip(study.others, places[len(study.points) :], strict=True))
    limit = math.ceil(10.0**digits * study.aim(study.points[study.chosen])) / 10.0**digits
    given = {"study": study, "clickable": clickable, "x": x, "y": y, "limit": limit, "digits": digits}
    return render("front.svg.j2", dots=dots, marks=marks, **given)


def distributions_svg(point: Point) -> str:
    """Return two pictures of a regression as SVG: quantiles of the errors, and of the predictions, by group.

    The second has the distribution functions of the predictions, and the largest gap between those of a group
    and of the rest, which is the KS distance.
    """
    task, f, y = point.task, point.scores, np.asarray(point.task.numbers)
    groups, errors = {name: among for name, among in task.groups.items() if among.any()}, f - y
    boxes = {
        name: np.quantile(errors[among], (0.05, 0.25, 0.5, 0.75, 0.95)) for name, among in groups.items()
    }
    shares, places = np.linspace(0, 1, 101), np.unique(f)
    below = {
        name: [np.searchsorted(np.sort(f[side]), places, "right") / side.sum() for side in (v > 0, v < 0)]
        for name, v in counted_terms(task).items()
        if len(np.unique(v)) > 1
    }
    worst, sides = max(below.items(), key=lambda pair: np.abs(np.subtract(*pair[1])).max())
    if len(groups) > 2:
        groups["the rest"] = task.terms[worst] < 0
    at = int(np.abs(np.subtract(*sides)).argmax())
    least = 0.02 * float(y.std()) or 1.0
    return render(
        "distributions.svg.j2",
        point=point,
        boxes=boxes,
        curves={name: np.quantile(f[among], shares) for name, among in groups.items()},
        shares=shares,
        gap=(worst, float(places[at]), float(sides[0][at]), float(sides[1][at])),
        error=axis([0.0, *np.concatenate([*boxes.values()]).tolist()], 24, 656, least),
        x=axis([float(f.min()), float(f.max())], 84, 640, least),
        share=axis([0.0, 1.0], 306, 40),
    )


def _named(places: Sequence[tuple[float, float]], study: Study) -> list[bool]:
    """Return for each point whether its name is written in the figure.

    Names must not overlap vertically. The chosen point comes first, then the points in their order.
    """
    lines: dict[int, float] = {}
    for k in (study.chosen, *range(len(study.points))):
        if all(abs(places[k][1] - line) > 14 for line in lines.values()):  # letters are 13 pixels high
            lines[k] = places[k][1]
    return [k in lines for k in range(len(study.points))]


def render(name: str, **values: Any) -> str:
    """Fill in a template of the report and return the text.

    Parameters
    ----------
    name
        File name of the template.
    values
        The variables of the template.
    """
    return str(_environment().get_template(name).render(**values))


def paragraph(name: str, **values: Any) -> str:
    """Fill in a template, as `render` does, and return the text in one line."""
    return " ".join(render(name, **values).split())


def sentence(study: Study) -> str:
    """Return the chosen trade-off, or how the audited scores compare with an alternative, in words."""
    return paragraph("sentence.txt.j2", study=study, group_thresholds=GROUP_THRESHOLDS)


@cache
def _environment() -> Any:
    import jinja2

    loader = jinja2.PackageLoader("nerm.report", ".")
    escaped = jinja2.select_autoescape(["html.j2", "svg.j2"])
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, autoescape=escaped, loader=loader)
    environment.undefined = jinja2.StrictUndefined
    environment.filters.update(fixed=fixed, number=rounded)
    functions = front_svg, distributions_svg, groups_of, largest_coefficients, sentence, with_content
    environment.globals.update({function.__name__: function for function in functions})
    return environment


def fixed(value: float, digits: int = 3) -> str:
    """Format a number with this many decimals; a dash if it is not finite."""
    return f"{value:.{digits}f}" if math.isfinite(value) else "–"
