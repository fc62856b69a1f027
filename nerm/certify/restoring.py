"""A hypothesis made feasible: what a solver returns misses its constraints by a little.

Coefficients are projected on the linear constraints. A limit that is still missed is met on the way to a
hypothesis inside: C is convex, so C(s f + (1 - s) f_0) <= s C(f) + (1 - s) C(f_0). f_0 = 0, with C = psi(0)
mean u, the least that two sides can have, serves unless the linear constraints forbid it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.model.problem import Problem

SAFETY = (0.0, 1e-15, 1e-13, 1e-11, 1e-9)  # how much nearer to the inside, until the limits hold as computed


def restored(
    problem: Problem, coef: Floats, intercept: float, inside: tuple[Floats, float] | None = None
) -> tuple[Floats, float]:
    """Return a hypothesis near the given one that satisfies the constraints as computed, or else as nearly as possible.

    Parameters
    ----------
    problem : Problem
    coef, intercept
        The hypothesis.
    inside
        One that satisfies the linear constraints and has room in all limits; by default f = 0, where that is
        one.

    """
    if problem.region is not None:
        coef = problem.region.project(coef)
    bounds = np.array([limit.bound for limit in problem.limits])
    scores = problem.hypothesis.scores(coef, intercept)
    values = problem.limited(scores)
    if (values <= bounds).all():
        return coef, intercept
    w, b = (np.zeros_like(coef), 0.0) if inside is None else inside
    if problem.region is not None and problem.region.violation(w):
        return coef, intercept
    centre = problem.hypothesis.scores(w, b)
    least, missed = problem.limited(centre), values > bounds
    if (least[missed] >= bounds[missed]).any():
        return coef, intercept
    share = float(np.min((bounds - least)[missed] / (values - least)[missed]))
    for safety in SAFETY:
        s = share * (1 - safety)
        if (problem.limited(s * scores + (1 - s) * centre) <= bounds).all():
            break
    return s * coef + (1 - s) * w, s * intercept + (1 - s) * b
