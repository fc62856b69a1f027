"""The trade-off front as SVG: the same drawing stands alone as a figure and, with its points to click, in the page."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from nerm.report.fitting import NEUTRAL
from nerm.report.study import Study
from nerm.report.template import file_text, render

WIDTH, HEIGHT = 680, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 40, 56
#: Marks of the other methods, as steps from their middle: diamond, triangle, square, triangle on its tip.
SHAPES = ("m0 -7 l7 7 l-7 7 l-7 -7", "m0 -7 l7 12 h-14", "m-5.5 -5.5 h11 v11 h-11", "m0 7 l7 -12 h-14")
NARROWEST = 0.02  # an axis shows at least this much, so that noise does not look like a difference
#: Where a name may stand beside its point, the better places first.
BESIDE = ((13, 5), (11, 18), (-13, 5), (-11, -9), (11, -9), (-11, 18), (0, -13), (0, 24))
Spot = tuple[float, float]
Box = tuple[float, float, float, float]


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


def axis(values: Sequence[float], start: float, end: float, *, from_zero: bool = False) -> Axis:
    """Return an axis that shows all values with a margin, on round ticks.

    Parameters
    ----------
    values
        What it must show.
    start, end
        In pixels.
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
    raw = span / 5
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


def place_labels(names: Sequence[str], places: Sequence[Spot], order: Sequence[int], joined: int) -> list[Label | None]:
    """Return a place for each name beside its point, None where every place is taken.

    Parameters
    ----------
    names, places
        The names and their points.
    order
        Who chooses first.
    joined
        The first so many points are joined by the front's line, which names should not cross.
    """
    obstacles = list(places)
    for (ax, ay), (bx, by) in pairwise(places[:joined]):
        steps = max(1, int(math.hypot(bx - ax, by - ay) / 4))
        obstacles += [(ax + (bx - ax) * t / steps, ay + (by - ay) * t / steps) for t in range(steps + 1)]
    labels: list[Label | None] = [None] * len(names)
    for k in order:
        taken = [label.box for label in labels if label]
        free = (label for label in _candidates(names[k], *places[k]) if _is_free(label.box, obstacles, taken))
        labels[k] = next(free, None)
    return labels


def _candidates(name: str, cx: float, cy: float) -> Iterator[Label]:
    """Yield places around a point, the better ones first."""
    wide = 7.2 * len(name)
    for dx, dy in BESIDE:
        anchor = "middle" if dx == 0 else "start" if dx > 0 else "end"
        left = cx + dx - {"middle": wide / 2, "start": 0.0, "end": wide}[anchor]
        yield Label(cx + dx, cy + dy, anchor, (left, cy + dy - 11, left + wide, cy + dy + 3))


def _is_free(box: Box, obstacles: Sequence[Spot], taken: Sequence[Box]) -> bool:
    """Say whether a box is inside the plot and touches neither points and lines nor other names."""
    left, top, right, bottom = box
    return (
        left > LEFT
        and right < WIDTH - 2
        and top > 26
        and bottom < HEIGHT - BOTTOM
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


def front_svg(study: Study, *, clickable: bool) -> str:
    """Return the front: AUC to the right, the neutrality measure upwards; right and down is better.

    Parameters
    ----------
    study
        What to draw.
    clickable
        Make each point a radio button of the page; otherwise the drawing brings its own style.
    """
    from markupsafe import Markup

    measure, n = study.settings.aim[0], len(study.points)
    shown = [p.measures for p in study.points] + [o.measures for o in study.others]
    x = axis([m["auc"] for m in shown], LEFT, WIDTH - RIGHT)
    y = axis([abs(m[measure]) for m in shown], HEIGHT - BOTTOM, TOP, from_zero=True)
    places = [(x.at(m["auc"]), y.at(abs(m[measure]))) for m in shown]
    names = [p.label for p in study.points] + [""] * len(study.others)
    labels = place_labels(names, places, [*dict.fromkeys([study.chosen, 0, n - 1, *range(n)])], n)
    methods = [NEUTRAL, *dict.fromkeys(other.method for other in study.others)]
    widths = (46 + 6.4 * len(name) for name in methods)
    return render(
        "front.svg.j2",
        study=study,
        style=Markup(style()),
        width=WIDTH,
        height=HEIGHT,
        shapes=SHAPES,
        clickable=clickable,
        x=x,
        y=y,
        methods=methods[1:],
        legend=list(zip(methods, accumulate(widths, initial=LEFT), strict=False)),
        dots=list(zip(study.points, places, labels, strict=False)),
        marks=list(zip(study.others, places[n:], strict=True)),
        beside=lambda place: next(_candidates("", *place)),
    )
