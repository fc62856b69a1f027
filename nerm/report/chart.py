"""Draw the trade-off front as SVG: a figure, or a chart of the page with points to click."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nerm.report.measuring import Interval, OtherMethod, Point, absolute_interval
from nerm.report.study import Study
from nerm.report.template import file_text, render

#: Marks of the other methods, as steps from their middle: diamond, triangle, square, triangle on its tip.
SHAPES = ("m0 -7 l7 7 l-7 7 l-7 -7", "m0 -7 l7 12 h-14", "m-5.5 -5.5 h11 v11 h-11", "m0 7 l7 -12 h-14")
#: Places of a name beside its point, the better places first.
BESIDE = ((13, 5), (11, 18), (-13, 5), (-11, -9), (11, -9), (-11, 18), (0, -13), (0, 24))
Spot = tuple[float, float]
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Frame:
    """The size of a drawing in its own pixels, its margins, and the steps of its axes."""

    width: float
    height: float
    right: float
    steps: int
    left: float = 54
    top: float = 40
    bottom: float = 54


#: Text has 13 of these pixels, and a narrow page shrinks a drawing: a phone gets one of its own.
WIDE, NARROW = Frame(680, 420, 26, 5), Frame(340, 360, 22, 3)


@dataclass(frozen=True)
class Axis:
    """A linear axis from the value `low` at pixel `start` to `high` at `end`, with round ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the place of a value, in pixels."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True)
class Label:
    """The place of a name, and the box that it fills."""

    x: float
    y: float
    anchor: str
    box: Box


def axis(
    values: Sequence[float], start: float, end: float, *, steps: int = 5, from_zero: bool = False
) -> Axis:
    """Return an axis that shows all values with a margin, on round ticks, and spans at least 0.02.

    Parameters
    ----------
    values
        To be shown.
    start, end
        In pixels.
    steps
        About how many ticks the values span.
    from_zero
        Whether it starts at 0.

    Examples
    --------
    >>> axis([0.71, 0.78], 0, 100).ticks
    (0.7, 0.72, 0.74, 0.76, 0.78, 0.8)
    """
    low, high = (0.0 if from_zero else min(values)), max(values)
    span = max(high - low, 0.02)  # so that noise does not look like a difference
    low = 0.0 if from_zero else (low + high - span) / 2
    high = low + span
    raw = span / steps
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(m for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first = 0 if from_zero else math.floor((low - 0.06 * span) / step)
    last = math.ceil((high + 0.06 * span) / step)
    ticks = tuple(round(k * step, 10) for k in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks, start, end)


def place_labels(
    names: Sequence[str],
    places: Sequence[Spot],
    order: Sequence[int],
    joined: int,
    frame: Frame = WIDE,
    rule: float = -1,
) -> list[Label | None]:
    """Return a place for each name beside its point, None where every place is taken.

    Parameters
    ----------
    names, places
        The names and their points.
    order
        Of the names; an earlier one takes the better place.
    joined
        How many points are joined by the line of the front, which names should not cross.
    frame, rule
        Names stay inside the frame, and off the height of a horizontal line.
    """
    obstacles = [*places, *((float(x), rule) for x in range(0, int(frame.width), 4))]
    for (ax, ay), (bx, by) in pairwise(places[:joined]):
        steps = 2 + int(math.hypot(bx - ax, by - ay) / 4)
        obstacles += zip(np.linspace(ax, bx, steps), np.linspace(ay, by, steps), strict=True)
    labels: list[Label | None] = [None] * len(names)
    for k in order:
        taken = [label.box for label in labels if label]
        beside = [_label(names[k], places[k], *by) for by in BESIDE]
        labels[k] = next((label for label in beside if _is_free(label.box, frame, obstacles, taken)), None)
    return labels


def _label(name: str, place: Spot, dx: float, dy: float) -> Label:
    """Return the label of a point, moved by (dx, dy)."""
    wide = 7.2 * len(name)
    x, y = place[0] + dx, place[1] + dy
    anchor = "middle" if dx == 0 else "start" if dx > 0 else "end"
    left = x - {"middle": wide / 2, "start": 0.0, "end": wide}[anchor]
    return Label(x, y, anchor, (left, y - 11, left + wide, y + 3))


def _is_free(box: Box, frame: Frame, obstacles: Sequence[Spot], taken: Sequence[Box]) -> bool:
    """Whether a box is inside the plot and touches neither points and lines nor other names."""
    left, top, right, bottom = box
    inside = (
        left > frame.left and right < frame.width - 2 and top > 26 and bottom < frame.height - frame.bottom
    )
    return (
        inside
        and not any(left - 4 < x < right + 4 and top - 3 < y < bottom + 3 for x, y in obstacles)
        and not any(left < b[2] + 3 and b[0] < right + 3 and top < b[3] and b[1] < bottom for b in taken)
    )


def figure_svg(study: Study) -> str:
    """Return the figure of a study as a file of its own."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{front_svg(study, clickable=False)}\n'


def front_svg(study: Study, *, clickable: bool, frame: Frame = WIDE) -> str:
    """Return the front: AUC to the right, the neutrality measure upwards; right and down is better.

    Parameters
    ----------
    study
        To draw.
    clickable
        Make each point a radio button of the page and the limit a slider; otherwise the drawing brings its
        own style.
    frame
        Its size.
    """
    from markupsafe import Markup

    measure, n = study.settings.aim.name, len(study.points)
    shown: list[Point | OtherMethod] = [*study.points, *study.others]
    sizes = [abs(one.measures[measure]) for one in shown]
    aucs = [one.measures["auc"] for one in shown]
    x = axis(aucs, frame.left, frame.width - frame.right, steps=frame.steps)
    y = axis(sizes, frame.height - frame.bottom, frame.top, from_zero=True)
    places = [(x.at(auc), y.at(size)) for auc, size in zip(aucs, sizes, strict=True)]
    limit = math.ceil(1000 * sizes[study.chosen]) / 1000
    labels = place_labels(
        [point.label for point in study.points] + [""] * len(study.others),
        places,
        [*dict.fromkeys([study.chosen, 0, n - 1, *range(n)])],
        n,
        frame,
        y.at(limit) if clickable else -1,
    )
    spans = [_span(p.intervals.get(measure), size) for p, size in zip(study.points, sizes, strict=False)]
    methods = list(dict.fromkeys(other.method for other in study.others))
    legend = _legend(["neutral model", *methods], frame)
    return render(
        "front.svg.j2",
        study=study,
        style=Markup(file_text("front.css")),
        frame=frame,
        height=legend[-1][2] + 14,
        shapes=SHAPES,
        clickable=clickable,
        x=x,
        y=y,
        methods=methods,
        legend=legend,
        dots=list(zip(study.points, places, labels, spans, strict=False)),
        marks=list(zip(study.others, places[n:], strict=True)),
        beside=lambda place: _label("", place, *(BESIDE[0] if place[0] < frame.width / 2 else BESIDE[2])),
        limit=limit,
    )


def _span(interval: Interval | None, size: float) -> Spot:
    """Return the sizes between which a signed measure may be."""
    if interval is None or not all(map(math.isfinite, interval)):
        return size, size
    return absolute_interval(interval)


def _legend(names: Sequence[str], frame: Frame) -> list[tuple[str, float, float]]:
    """Return each name with its place below the axis, as many in a line as fit."""
    at, line = frame.left, frame.height + 8
    placed = []
    for name in names:
        wide = 32 + 6.6 * len(name)
        if at > frame.left and at + wide > frame.width:
            at, line = frame.left, line + 22
        placed.append((name, at, line))
        at += wide
    return placed
