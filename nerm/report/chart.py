"""Draw the trade-off front as SVG, for a figure file or as a clickable chart; fill in templates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from nerm.report.measuring import absolute_interval
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


def axis(values: Sequence[float], start: float, end: float) -> Axis:
    """Return an axis that shows all values on about five round ticks, and spans at least 0.02.

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
    span = max(max(values) - min(values), 0.02)  # so that noise does not look like a difference
    low = max(0.0, (max(values) + min(values) - span) / 2)
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = power * next(m for m in (1, 2, 5, 10) if m * power >= span / 4)
    first, last = math.floor(low / step), math.ceil((low + span) / step)
    return Axis(tuple(round(k * step, 10) for k in range(first, last + 1)), start, end)


def figure_svg(study: Study) -> str:
    """Return the figure of a study as the text of an SVG file."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{front_svg(study, clickable=False)}\n'


def front_svg(study: Study, *, clickable: bool) -> str:
    """Return the trade-off front as SVG; AUC is on the x axis, the neutrality measure on the y axis.

    Parameters
    ----------
    study
        The study to draw.
    clickable
        True for the chart of the page: each point is a radio button and the limit a slider. False for a
        figure file, which contains its own style.
    """
    name, shown = study.settings.aim.name, [*study.points, *study.others]
    x = axis([point.measures["auc"] for point in shown], 84, 640)
    y = axis([0.0, *map(study.aim, shown)], 366, 48)
    places = [(x.at(point.measures["auc"]), y.at(study.aim(point))) for point in shown]
    spans = [absolute_interval(p.intervals.get(name, (study.aim(p), study.aim(p)))) for p in study.points]
    return render(
        "front.svg.j2",
        study=study,
        clickable=clickable,
        x=x,
        y=y,
        dots=list(zip(study.points, places, spans, _named(places, study), strict=False)),
        marks=list(zip(study.others, places[len(study.points) :], strict=True)),
        limit=math.ceil(1000 * study.aim(study.points[study.chosen])) / 1000,
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
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, autoescape=True, loader=loader)
    environment.undefined = jinja2.StrictUndefined
    environment.filters.update(fixed=fixed, per=per, signed=signed)
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
