"""Render the report as one HTML file, which needs no network, and the paragraph about proofs as text."""

import platform
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from nerm.bounds.guarantee import Statement
from nerm.report.chart import distributions_svg, front_svg, render
from nerm.report.fitting import Training
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


def proof(study: Study, tol: float = 0.02) -> str:
    """Return a paragraph about the trade-off curve on the training rows of a study.

    The curve is `nerm.Problem.frontier` of the objective of the study: P is its regularised risk, C its
    relaxed neutrality risk. Every bound is rounded to the side on which it still holds.
    """
    settings, training = study.settings, Training(study.task.rows(study.train), study.settings)
    task, X, linear = training.task, training.coded[1], settings.kernel == "linear"
    weight = compute_sample_weight(settings.class_weights(task.y), task.y)
    kernel = None if linear else settings.kernel
    problem = settings.objective().on(X, task.y, viewpoint=task.v, kernel=kernel, sample_weight=weight)
    front = problem.frontier(tol)
    half = _up(0.5 * (front.inner[0, 0] + front.inner[-1, 0]))
    found, placed = front.find(neutrality=float(half)).objective, None
    if study.recommended is not None and study.recommended.model is not None and linear:
        solution = study.recommended.model.solution
        placed = front.place((solution.coef, solution.intercept))
    text = render(
        "proof.txt.j2",
        front=front,
        task=task,
        objective=repr(problem.objective),
        weighted=(weight != 1).any(),
        kind=settings.kernel,
        half=half,
        least=front.outer(float(half)),
        known=found.risk + found.regularization,
        label=placed and study.recommended and study.recommended.label,
        placed=placed,
        up=_up,
        down=_down,
    )
    return " ".join(text.split())


def _down(value: float) -> Decimal:
    """Round down to four decimals."""
    return Decimal(float(value)).quantize(Decimal("0.0001"), ROUND_FLOOR)


def _up(value: float) -> Decimal:
    """Round up to four decimals."""
    return Decimal(float(value)).quantize(Decimal("0.0001"), ROUND_CEILING)
