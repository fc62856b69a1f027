"""Bounds from data that the fit has not seen: no class, no complexity, and they speak about C_sgn itself."""

from typing import Any

import numpy as np

from nerm.bounds.checks import as_delta
from nerm.metrics import calders_verwer_score, neutrality_risk
from nerm.signs import sign


def holdout_neutrality_bound(scores: Any, viewpoint: Any, *, delta: float = 0.05) -> float:
    """Return C_m,sgn + sqrt(2 ln(2/delta) / m): above C_sgn with probability 1 - delta.

    scores and viewpoint are (m,). The m rows must be i.i.d. and unseen: neither fitting nor choosing among models
    may have used them. Hoeffding's inequality, two-sided, for the m values sign f sign v in {-1, +1}.

    Examples
    --------
    >>> round(holdout_neutrality_bound([1.0, -1.0] * 5000, [1.0, 1.0] * 5000, delta=0.05), 4)
    0.0272
    """
    risk = neutrality_risk(scores, viewpoint)
    return risk + float(np.sqrt(2.0 * np.log(2.0 / as_delta(delta)) / np.size(scores)))


def holdout_parity_bound(scores: Any, viewpoint: Any, *, delta: float = 0.05) -> float:
    """Return `|CV_m| + sqrt(ln(2/delta) / 2 (1/m_+ + 1/m_-))`: above the absolute Calders-Verwer score.

    scores and viewpoint are (m,), `m_+` and `m_-` the rows of each viewpoint. Given the viewpoints, the score is a
    difference of two means of independent values in [0, 1]: Hoeffding's inequality, two-sided, with ranges `1/m_+`
    and `1/m_-`. Assumptions as for :func:`holdout_neutrality_bound`.

    Examples
    --------
    >>> round(holdout_parity_bound([1.0, -1.0] * 5000, [1.0, 1.0, -1.0, -1.0] * 2500, delta=0.05), 4)
    0.0272
    """
    score = abs(calders_verwer_score(scores, viewpoint))
    v = sign(np.ravel(viewpoint))
    inverse_sizes = 1.0 / (v > 0).sum() + 1.0 / (v <= 0).sum()
    return score + float(np.sqrt(np.log(2.0 / as_delta(delta)) / 2.0 * inverse_sizes))


#: What rows that the fit has not seen bound, and how: the quantity, its measure and its bound.
HELD_OUT = (
    ("C_sgn", neutrality_risk, holdout_neutrality_bound),
    ("|difference in positive rates|", calders_verwer_score, holdout_parity_bound),
)
