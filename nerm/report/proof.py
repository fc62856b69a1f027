"""Say in words what the certified trade-off curve of a study proves, and what it does not."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from sklearn.utils.class_weight import compute_sample_weight

from nerm.report.chart import render
from nerm.report.fitting import Training
from nerm.report.study import Study


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
