"""Say in words what the certified trade-off curve of a study proves, and what it does not."""

from __future__ import annotations

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from nerm.report.fitting import Training
from nerm.report.study import Study


def proof(study: Study, tol: float = 0.02) -> str:
    """Return a paragraph about the trade-off curve on the training rows of a study.

    The curve is `nerm.Problem.frontier` of the objective of the study: P is its regularised risk, C its
    relaxed neutrality risk.
    """
    settings, training = study.settings, Training(study.task.rows(study.train), study.settings)
    task, X, linear = training.task, training.coded[1], settings.kernel == "linear"
    weight = compute_sample_weight(settings.class_weights(task.y), task.y)
    kernel = None if linear else settings.kernel
    problem = settings.objective().on(X, task.y, viewpoint=task.v, kernel=kernel, sample_weight=weight)
    front, kind = problem.frontier(tol), "linear" if linear else settings.kernel
    (low, _), (high, plain) = front.inner[[0, -1]]
    half = 0.5 * (low + high)
    known = float(np.interp(half, *front.inner.T))
    text = (
        f"Proof, from {len(front.solutions)} certified solves on {len(task):,} training rows: let P be the "
        f"regularised risk and C the relaxed neutrality risk of {problem.objective!r}. No {kind} model of "
        f"these columns has C below {front.floor:.4f}. Every one with C at most {half:.4f} has P of at least "
        f"{float(front.outer(half)):.4f}, and one with P of at most {known:.4f} is known; without a limit on "
        f"C the least P is {plain:.4f} up to {tol:g} of the range."
    )
    if study.recommended is not None and study.recommended.model is not None and linear:
        solution = study.recommended.model.solution
        placed = front.place((solution.coef, solution.intercept))
        saves = "a known one saves" if placed.verdict == "improvable" else "none saves more than"
        text += (
            f" “{study.recommended.label}” has C = {placed.neutrality:.4f} and P = {placed.risk:.4f}; of the "
            f"models with at most the same C, {saves} {placed.margin:.4f} of P."
        )
    return (
        f"{text} Not proved: anything about counted decisions (positive rates, C_sgn), about other people "
        "than these rows, or about other kinds of models or other columns."
    )
