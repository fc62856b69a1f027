"""The trade-off front as SVG: the same drawing stands alone as a figure and, with its points to click, in the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from nerm.report.study import Study

WIDTH, HEIGHT = 680, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 40, 56
RADIUS = 7.0
#: Marks of the other methods, as steps from their middle: diamond, triangle, square, triangle on its tip.
SHAPES = (
    "m0 -7 l7 7 l-7 7 l-7 -7",
    "m0 -7 l7 12 h-14",
    "m-5.5 -5.5 h11 v11 h-11",
    "m0 7 l7 -12 h-14",
)
NARROWEST = 0.02  # an axis shows at least this much, so that noise does not look like a difference

STYLE = """
svg.front { --ink: #1b1f24; --soft: #5a6270; --line: #d9dde3; --front: #1f5fa8; --mark: #b3400f; --paper: #ffffff;
  font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
@media (prefers-color-scheme: dark) {
  svg.front { --ink: #e8eaed; --soft: #a9b1bd; --line: #3a414b; --front: #82b5f2; --mark: #f0915f; --paper: #15181c; } }
@media print {
  svg.front { --ink: #000; --soft: #444; --line: #ccc; --front: #1f5fa8; --mark: #b3400f; --paper: #fff; } }
svg.front .paper { fill: var(--paper); }
svg.front .grid { stroke: var(--line); stroke-width: 1; }
svg.front text { fill: var(--soft); }
svg.front .title { fill: var(--ink); }
svg.front .path { fill: none; stroke: var(--front); stroke-width: 2; }
svg.front .dot { fill: var(--paper); stroke: var(--front); stroke-width: 2.5; }
svg.front .rival { fill: var(--soft); }
svg.front .beside { fill: none; stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 4 4; }
svg.front .name { fill: var(--ink); paint-order: stroke; stroke: var(--paper); stroke-width: 4px;
  stroke-linejoin: round; }
svg.front [aria-checked="true"] .dot, svg.front .chosen .dot { fill: var(--mark); stroke: var(--mark); }
svg.front [aria-checked="true"] .name, svg.front .chosen .name { fill: var(--mark); font-weight: 700; }
"""


@dataclass(frozen=True)
class Axis:
    """A linear axis with round ticks."""

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
    box: tuple[float, float, float, float]


def place_labels(
    names: Sequence[str], places: Sequence[tuple[float, float]], order: Sequence[int], joined: int
) -> list[Label | None]:
    """Return a place for each name beside its point, None where every place is taken.

    order
        Who chooses first.
    joined
        The first so many points are joined by the front's line, which names should not cross.
    """
    obstacles = [(cx, cy) for cx, cy in places]
    for (ax, ay), (bx, by) in pairwise(places[:joined]):
        steps = max(1, int(math.hypot(bx - ax, by - ay) / 4))
        obstacles += [(ax + (bx - ax) * t / steps, ay + (by - ay) * t / steps) for t in range(steps + 1)]
    labels: list[Label | None] = [None] * len(names)
    for k in order:
        for label in _candidates(names[k], *places[k]):
            left, top, right, bottom = label.box
            inside = left > LEFT and right < WIDTH - 2 and top > 26 and bottom < HEIGHT - BOTTOM
            free = not any(left - 4 < px < right + 4 and top - 3 < py < bottom + 3 for px, py in obstacles)
            apart = not any(o and _overlap(label.box, o.box) for o in labels)
            if inside and free and apart:
                labels[k] = label
                break
    return labels


def _candidates(name: str, cx: float, cy: float) -> Iterator[Label]:
    """Yield places around a point, the better ones first."""
    wide = 7.2 * len(name)
    for dx, dy in (
        (13, 5),
        (11, 18),
        (-13, 5),
        (-11, -9),
        (11, -9),
        (-11, 18),
        (0, -13),
        (0, 24),
    ):
        anchor = "middle" if dx == 0 else "start" if dx > 0 else "end"
        left = cx + dx - {"middle": wide / 2, "start": 0.0, "end": wide}[anchor]
        yield Label(cx + dx, cy + dy, anchor, (left, cy + dy - 11, left + wide, cy + dy + 3))


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] + 3 and b[0] < a[2] + 3 and a[1] < b[3] and b[1] < a[3]


def figure_svg(study: Study) -> str:
    """Return the figure as a file of its own."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{front_svg(study, clickable=False)}\n'


def front_svg(study: Study, *, clickable: bool) -> str:
    """Return the front: AUC to the right, the neutrality measure upwards; right and down is better.

    clickable
        Make each point a radio button of the page; otherwise the drawing brings its own style.
    """
    points = [(p.measures["auc"], p.aim(study.settings)) for p in study.points]
    rivals = [(r.measures["auc"], abs(r.measures[study.settings.aim[0]]), r.method) for r in study.rivals]
    x = axis([*(a for a, _ in points), *(a for a, _, _ in rivals)], LEFT, WIDTH - RIGHT)
    y = axis([*(b for _, b in points), *(b for _, b, _ in rivals)], HEIGHT - BOTTOM, TOP, from_zero=True)
    parts = [*_axes(x, y, study), _path(points, x, y)]
    places = [(x.at(a), y.at(b)) for a, b in points] + [(x.at(a), y.at(b)) for a, b, _ in rivals]
    names = [f"η = {p.eta:g}" for p in study.points] + [""] * len(rivals)
    order = [*dict.fromkeys([study.chosen, 0, len(points) - 1, *range(len(points))])]
    labels = place_labels(names, places, order, len(points))
    methods = [*dict.fromkeys(name for _, _, name in rivals)]
    parts += [*_legend(methods), *_rivals(study, places[len(points) :], methods)]
    dots = [_dot(study, k, *places[k], labels[k], clickable) for k in range(len(points))]
    label = f"Trade-off: AUC against {study.settings.aim[1]} for {len(points)} neutrality weights"
    role = (
        f'role="radiogroup" aria-label="{escape(label)}"' if clickable else f'role="img" aria-label="{escape(label)}"'
    )
    style = "" if clickable else f"<style>{STYLE}</style>"
    return (
        f'<svg class="front" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {role}>{style}'
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>{"".join(parts)}{"".join(dots)}</svg>'
    )


def _axes(x: Axis, y: Axis, study: Study) -> list[str]:
    parts = ['<g aria-hidden="true">']
    for tick in x.ticks:
        at = x.at(tick)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{y.start:.1f}" y2="{y.end:.1f}"/>')
        parts.append(f'<text x="{at:.1f}" y="{y.start + 18:.1f}" text-anchor="middle">{tick:g}</text>')
    for tick in y.ticks:
        at = y.at(tick)
        parts.append(f'<line class="grid" x1="{x.start:.1f}" x2="{x.end:.1f}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{x.start - 8:.1f}" y="{at + 4:.1f}" text-anchor="end">{tick:g}</text>')
    middle = (y.start + y.end) / 2
    title = escape(study.settings.aim[1])
    parts += [
        f'<text class="title" x="{(x.start + x.end) / 2:.1f}" y="{HEIGHT - 12}" text-anchor="middle">'
        "AUC on held-out rows, better to the right →</text>",
        f'<text class="title" transform="translate(18 {middle:.1f}) rotate(-90)" text-anchor="middle">'
        f"← more neutral downwards: {title}</text>",
        "</g>",
    ]
    return parts


def _path(points: Sequence[tuple[float, float]], x: Axis, y: Axis) -> str:
    steps = " L".join(f"{x.at(a):.1f} {y.at(b):.1f}" for a, b in points)
    return f'<path class="path" d="M{steps}" aria-hidden="true"/>'


def _rivals(study: Study, places: Sequence[tuple[float, float]], methods: Sequence[str]) -> list[str]:
    """Draw the other methods: a shape each, their weights joined by a dashed line."""
    lines, marks = [], []
    for k, (rival, (cx, cy)) in enumerate(zip(study.rivals, places, strict=True)):
        if k and study.rivals[k - 1].method == rival.method:
            ax, ay = places[k - 1]
            lines.append(f'<path class="beside" d="M{ax:.1f} {ay:.1f} L{cx:.1f} {cy:.1f}" aria-hidden="true"/>')
        words = f"{rival.name}: AUC {rival.measures['auc']:.3f}"
        marks.append(_shape(methods.index(rival.method), cx, cy, f"<title>{escape(words)}</title>"))
    return [*lines, *marks]


def _shape(k: int, cx: float, cy: float, inside: str = "") -> str:
    steps = SHAPES[k % len(SHAPES)]
    return f'<path class="rival" d="M{cx:.1f} {cy:.1f} {steps} z">{inside}</path>'


def _legend(methods: Sequence[str]) -> list[str]:
    """Draw what the marks stand for, above the plot."""
    parts, at = ['<g aria-hidden="true">'], float(LEFT)
    parts.append(f'<circle class="dot" cx="{at + 7:.1f}" cy="16" r="6"/>')
    for k, name in enumerate(["neutral model", *methods]):
        if k:
            parts.append(_shape(k - 1, at + 7, 16.0))
        parts.append(f'<text class="title" x="{at + 19:.1f}" y="20">{escape(name)}</text>')
        at += 46 + 6.4 * len(name)
    return [*parts, "</g>"]


def _text(label: Label, words: str, extra: str = "") -> str:
    return (
        f'<text class="name" x="{label.x:.1f}" y="{label.y:.1f}" text-anchor="{label.anchor}"{extra}>'
        f"{escape(words)}</text>"
    )


def _dot(study: Study, k: int, cx: float, cy: float, label: Label | None, clickable: bool) -> str:
    point = study.points[k]
    words = (
        f"η = {point.eta:g}: AUC {point.measures['auc']:.3f}, {study.settings.aim[1]} {point.aim(study.settings):.3f}"
    )
    dot = f'<circle class="dot" cx="{cx:.1f}" cy="{cy:.1f}" r="{RADIUS:g}"/>'
    name = "" if label is None else _text(label, f"η = {point.eta:g}")
    if label is None and clickable:  # shown while its point is looked at
        name = _text(next(_candidates("", cx, cy)), f"η = {point.eta:g}", ' data-extra=""')
    if not clickable:
        chosen = ' class="chosen"' if k == study.chosen else ""
        return f"<g{chosen}><title>{escape(words)}</title>{dot}{name}</g>"
    checked = k == study.chosen
    return (
        f'<g class="point" role="radio" data-k="{k}" data-eta="{point.eta:g}" aria-checked="{str(checked).lower()}" '
        f'tabindex="{0 if checked else -1}" aria-label="{escape(words)}">'
        f'<circle class="target" cx="{cx:.1f}" cy="{cy:.1f}" r="16"/><circle class="ring" cx="{cx:.1f}" cy="{cy:.1f}" '
        f'r="12"/>{dot}{name}</g>'
    )
