"""The trade-off front as SVG: the same drawing stands alone as a figure and, with its points to click, in the page."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nerm.intervals import Interval
from nerm.report.fitting import NEUTRAL
from nerm.report.points import OtherMethod, Point
from nerm.report.study import Study
from nerm.report.template import file_text, render

#: Marks of the other methods, as steps from their middle: diamond, triangle, square, triangle on its tip.
SHAPES = ("m0 -7 l7 7 l-7 7 l-7 -7", "m0 -7 l7 12 h-14", "m-5.5 -5.5 h11 v11 h-11", "m0 7 l7 -12 h-14")
NARROWEST = 0.02  # an axis shows at least this much, so that noise does not look like a difference
#: Where a name may stand beside its point, the better places first.
BESIDE = ((13, 5), (11, 18), (-13, 5), (-11, -9), (11, -9), (-11, 18), (0, -13), (0, 24))
Spot = tuple[float, float]
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Frame:
    """The size of a drawing in its own pixels, its margins, and how many steps its axes take."""

    width: float
    height: float
    left: float = 54
    right: float = 26
    top: float = 40
    bottom: float = 54
    steps: int = 5


#: Text has 13 of these pixels, so a page that is narrower than a drawing shrinks it: a phone gets one of its own.
WIDE, NARROW = Frame(680, 420), Frame(340, 360, right=22, steps=3)


@dataclass(frozen=True)
class Axis:
    """A linear axis from the value `low` at pixel `start` to `high` at `end`, with round ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return where a value is, in pixels."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def axis(
    values: Sequence[float], start: float, end: float, *, steps: int = 5, from_zero: bool = False
) -> Axis:
    """Return an axis that shows all values with a margin, on round ticks.

    Parameters
    ----------
    values
        What it must show.
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
    span = max(high - low, NARROWEST)
    spare = (span - (high - low)) / 2
    low, high = (0.0, high + 2 * spare) if from_zero else (low - spare, high + spare)
    raw = span / steps
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(m for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first = 0 if from_zero else math.floor((low - 0.06 * span) / step)
    last = math.ceil((high + 0.06 * span) / step)
    ticks = tuple(round(k * step, 10) for k in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks, start, end)


@dataclass(frozen=True)
class Label:
    """Where a name stands, and the box that it fills."""

    x: float
    y: float
    anchor: str
    box: Box


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
        Who chooses first.
    joined
        The first so many points are joined by the front's line, which names should not cross.
    frame, rule
        They stay inside, and off the height of a line across.
    """
    obstacles = [*places, *((float(x), rule) for x in range(0, int(frame.width), 4))]
    for (ax, ay), (bx, by) in pairwise(places[:joined]):
        steps = max(1, int(math.hypot(bx - ax, by - ay) / 4))
        obstacles += [(ax + (bx - ax) * t / steps, ay + (by - ay) * t / steps) for t in range(steps + 1)]
    labels: list[Label | None] = [None] * len(names)
    for k in order:
        taken = [label.box for label in labels if label]
        free = (
            label
            for label in _candidates(names[k], *places[k])
            if _is_free(label.box, frame, obstacles, taken)
        )
        labels[k] = next(free, None)
    return labels


def _candidates(name: str, cx: float, cy: float) -> Iterator[Label]:
    """Yield places around a point, the better ones first."""
    wide = 7.2 * len(name)
    for dx, dy in BESIDE:
        anchor = "middle" if dx == 0 else "start" if dx > 0 else "end"
        left = cx + dx - {"middle": wide / 2, "start": 0.0, "end": wide}[anchor]
        yield Label(cx + dx, cy + dy, anchor, (left, cy + dy - 11, left + wide, cy + dy + 3))


def _is_free(box: Box, frame: Frame, obstacles: Sequence[Spot], taken: Sequence[Box]) -> bool:
    """Say whether a box is inside the plot and touches neither points and lines nor other names."""
    left, top, right, bottom = box
    return (
        left > frame.left
        and right < frame.width - 2
        and top > 26
        and bottom < frame.height - frame.bottom
        and not any(left - 4 < px < right + 4 and top - 3 < py < bottom + 3 for px, py in obstacles)
        and not any(left < b[2] + 3 and b[0] < right + 3 and top < b[3] and b[1] < bottom for b in taken)
    )


def style() -> str:
    """Return the style of the front."""
    return file_text("front.css")


def figure_svg(study: Study) -> str:
    """Return the figure as a file of its own.

    Parameters
    ----------
    study
        What to draw.
    """
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{front_svg(study, clickable=False)}\n'


def front_svg(study: Study, *, clickable: bool, frame: Frame = WIDE) -> str:
    """Return the front: AUC to the right, the neutrality measure upwards; right and down is better.

    Parameters
    ----------
    study
        What to draw.
    clickable
        Make each point a radio button of the page and the limit a slider; otherwise the drawing brings its
        own style.
    frame
        Its size.
    """
    from markupsafe import Markup

    measure, n = study.settings.aim[0], len(study.points)
    shown: list[Point | OtherMethod] = [*study.points, *study.others]
    sizes = [abs(one.measures[measure]) for one in shown]
    spans = [_span(one.intervals.get(measure), size) for one, size in zip(shown, sizes, strict=True)]
    x = axis([one.measures["auc"] for one in shown], frame.left, frame.width - frame.right, steps=frame.steps)
    y = axis(sizes, frame.height - frame.bottom, frame.top, from_zero=True)
    places = [(x.at(one.measures["auc"]), y.at(size)) for one, size in zip(shown, sizes, strict=True)]
    names = [point.label for point in study.points] + [""] * len(study.others)
    limit = math.ceil(1000 * sizes[study.chosen]) / 1000
    order = [*dict.fromkeys([study.chosen, 0, n - 1, *range(n)])]
    labels = place_labels(
        names, places, order, 0 if study.audited else n, frame, y.at(limit) if clickable else -1
    )
    methods = [
        "a model" if study.audited else NEUTRAL,
        *dict.fromkeys(other.method for other in study.others),
    ]
    legend = _legend(methods, frame)
    return render(
        "front.svg.j2",
        study=study,
        style=Markup(style()),
        frame=frame,
        height=legend[-1][2] + 14,
        shapes=SHAPES,
        clickable=clickable,
        x=x,
        y=y,
        methods=methods[1:],
        legend=legend,
        dots=list(zip(study.points, places, labels, spans, strict=False)),
        marks=list(zip(study.others, places[n:], strict=True)),
        beside=lambda place: _inside(place, frame),
        limit=limit,
    )


def _span(interval: Interval | None, size: float) -> Spot:
    """Return between which sizes a signed measure may be."""
    if interval is None or not all(map(math.isfinite, interval)):
        return size, size
    low, high = sorted(map(abs, interval))
    return (0.0 if interval[0] < 0 < interval[1] else low), high


def _legend(names: Sequence[str], frame: Frame) -> list[tuple[str, float, float]]:
    """Return each name with its place below the axis, as many in a line as fit."""
    at, line, placed = frame.left, frame.height + 8, []
    for name in names:
        wide = 32 + 6.6 * len(name)
        if at > frame.left and at + wide > frame.width:
            at, line = frame.left, line + 22
        placed.append((name, at, line))
        at += wide
    return placed


def _inside(place: Spot, frame: Frame) -> Label:
    """Return the first place beside a point, on the side where there is room for a name."""
    right = place[0] < frame.width / 2
    return Label(place[0] + (13 if right else -13), place[1] + 5, "start" if right else "end", (0, 0, 0, 0))
