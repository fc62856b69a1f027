"""Draw the trade-off front as SVG, for a figure file or as a clickable chart; fill in templates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from nerm.report.measuring import Point, absolute_interval, counted_terms, rounded

if TYPE_CHECKING:
    from nerm.report.study import Study


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
    return render(
        "front.svg.j2",
        study=study,
        clickable=clickable,
        x=x,
        y=y,
        dots=list(zip(study.points, places, spans, _named(places, study), strict=False)),
        marks=list(zip(study.others, places[len(study.points) :], strict=True)),
        limit=math.ceil(10.0**digits * study.aim(study.points[study.chosen])) / 10.0**digits,
        digits=digits,
    )


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

    Names must not overlap vertically; the chosen point has priority, then the order of the points.
    """
    lines: dict[int, float] = {}
    for k in (study.chosen, *range(len(study.points))):
        if all(
            abs(places[k][1] - line) > 14 for line in lines.values()
        ):  # pixels; letters are 13 pixels high
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


@cache
def _environment() -> Any:
    import jinja2

    loader = jinja2.PackageLoader("nerm.report", ".")
    escaped = jinja2.select_autoescape(["html.j2", "svg.j2"])
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, autoescape=escaped, loader=loader)
    environment.undefined = jinja2.StrictUndefined
    environment.filters.update(fixed=fixed, per=per, signed=signed, number=rounded)
    return environment


def fixed(value: float, digits: int = 3) -> str:
    """Format a number with this many decimals; a dash if it is not finite."""
    return f"{value:.{digits}f}" if math.isfinite(value) else "–"


def signed(value: float, digits: int = 3) -> str:
    """Format a number with its sign and this many decimals; a dash if it is not finite."""
    return f"{value:+.{digits}f}".replace("-", "−") if math.isfinite(value) else "–"


def per(rate: float) -> str:
    """Format a rate as a whole number per 1,000."""
    return fixed(1000 * rate, 0)
