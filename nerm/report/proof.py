"""Say in words what the certified trade-off curve of a study proves, and what it does not."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from sklearn.utils.class_weight import compute_sample_weight

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
    front, kind = problem.frontier(tol), "linear" if linear else settings.kernel
    (low, _), (high, plain) = front.inner[[0, -1]]
    half, weighted = _up(0.5 * (low + high)), "" if (weight == 1).all() else ", rows weighted by class"
    found = front.find(neutrality=float(half)).objective
    text = (
        f"Proof, from {len(front.solutions)} certified solves on {len(task):,} training rows: let P be the "
        f"regularised risk and C the relaxed neutrality risk of {problem.objective!r} for "
        f"{task.viewpoint.group(1)} against {task.viewpoint.group(-1)}{weighted}. No {kind} model of the "
        f"coded columns has C below {_down(front.floor)}. Every one with C at most {half} has P of at least "
        f"{_down(float(front.outer(float(half))))}, and one with at most this C and P of at most "
        f"{_up(found.risk + found.regularization)} is known. Without a limit on C the least P is between "
        f"{_down(float(front.bounds[0]))} and {_up(plain)}."
    )
    if study.recommended is not None and study.recommended.model is not None and linear:
        solution = study.recommended.model.solution
        placed = front.place((solution.coef, solution.intercept))
        saves = f"a known one has a P that is smaller by {_down(placed.margin)} or more"
        if placed.verdict != "improvable":
            saves = f"none has a P that is smaller by more than {_up(placed.margin)}"
        text += (
            f" “{study.recommended.label}” has C = {placed.neutrality:.4f} and P = {placed.risk:.4f}; of the "
            f"models with at most the same C, {saves}."
        )
    return (
        f"{text} The bounds include rounding errors, estimated with a probability close to 1. Not proved: "
        "anything about the risk without the regularizer, about counted decisions (positive rates, C_sgn), "
        "about other people than these rows, or about other kinds of models or other columns."
    )


def _down(value: float) -> Decimal:
    """Round down to four decimals."""
    return Decimal(value).quantize(Decimal("0.0001"), ROUND_FLOOR)


def _up(value: float) -> Decimal:
    """Round up to four decimals."""
    return Decimal(value).quantize(Decimal("0.0001"), ROUND_CEILING)
