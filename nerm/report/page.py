"""Render the report as one HTML file that contains its style and script and needs no network."""

import platform
from collections.abc import Iterable
from typing import Any

import numpy as np

from nerm.bounds.guarantee import Statement
from nerm.report.chart import distributions_svg, front_svg, per, render
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
    sentences = decision_sentences if study.task.numbers is None else prediction_sentences
    return render(
        "report.html.j2",
        study=study,
        chart=front_svg(study, clickable=True),
        pictures=[] if study.task.numbers is None else [distributions_svg(point) for point in study.points],
        coefficients=[_coefficients(study, point) for point in study.points],
        sentences=[sentences(study, point) for point in study.points],
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


def decision_sentences(study: Study, point: Point) -> list[str]:
    """Return sentences that compare a point with the plain model, in decisions per 1,000 people.

    Parameters
    ----------
    study, point
        The study, and one of its points.
    """
    plain, now, usual = study.points[0], point.decisions, reference(study)
    decision, groups = f"“{study.task.target.group(1)}”", []
    if len(point.groups) == 2:
        positive = [[per(group.rates["positive_rate"]) for group in p.groups] for p in (point, plain)]
        names = [f"Per 1,000 people with {group.name}" for group in point.groups]
        groups = list(zip(names, *positive, strict=True))
    if point is plain:
        subject = "These are the decisions" if study.audited else "This is the model"
        counts = f"{now['positive']:.0f} get {decision}; {now['correct']:.0f} decisions are right."
        first = f"{subject} {usual}. Of 1,000 people, {counts}"
        return [first, *(f"{name}, {rate} get {decision}." for name, rate, _ in groups)]
    lost = round(now["correct"]) - round(plain.decisions["correct"])
    price = "as many as" if lost == 0 else f"{abs(lost)} {'fewer' if lost < 0 else 'more'} than"
    rates = [[g.rates["positive_rate"] for g in p.groups if not g.few] or [0.0] for p in (point, plain)]
    gap = [1000 * (max(of) - min(of)) for of in rates]
    return [
        f"Of 1,000 people, {now['changed']:.0f} get another decision than {usual}: "
        f"{now['to_positive']:.0f} now get {decision}, {now['to_negative']:.0f} no longer do.",
        f"{now['correct']:.0f} of 1,000 decisions are right, {price} {usual}.",
        *(f"{name}, {rate} get {decision}; {usual} {before}." for name, rate, before in groups),
        f"The groups differ by {gap[0]:.0f} decisions per 1,000, instead of {gap[1]:.0f}.",
    ]


def prediction_sentences(study: Study, point: Point) -> list[str]:
    """Return the same for a regression: the squared error of a point, and how it follows the groups."""
    plain, usual, m = study.points[0], reference(study), point.measures
    mean, correlation = (
        study.display.text(p.measures[name], name)
        for name, p in (("mean_difference", plain), ("correlation", point))
    )
    constant = float(np.var(np.asarray(point.task.numbers)))  # the squared error of the mean
    text = f"The mean squared error is {m['rmse'] ** 2:.3g}; "
    text += "" if point is plain else f"{usual} it is {plain.measures['rmse'] ** 2:.3g}, and "
    worst = max(point.differences, key=lambda d: np.nan_to_num(abs(d.value), nan=-1.0))
    apart = f"{'above' if worst.value > 0 else 'below'} that of {worst.other}"
    before = "" if point is plain else f", {usual} the difference is {mean}"
    return [
        f"{text}a constant prediction, the mean of these rows, has {constant:.3g}. So R² is {m['r2']:.3f}.",
        f"The mean prediction of {worst.one} is {abs(worst.value):.3g} {apart}{before}.",
        f"The correlation of prediction and group is {correlation}; 0 means no linear relation.",
        f"KS distance {m['ks_distance']:.3f}: for some value of {study.task.target.column}, the shares of "
        f"predictions below it differ by this much between the groups; 0 if the distributions are equal.",
    ]


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
