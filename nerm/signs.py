"""The sign of a score, with 0 as -1."""

import numpy as np
from numpy.typing import ArrayLike

from nerm.typing import Floats

__all__ = ["sign"]


def sign(scores: ArrayLike) -> Floats:
    """Return +1 where the score is positive and -1 elsewhere; a score of 0 is -1.

    Used for predictions and for viewpoints alike, as in section 3 of the paper
    ("y = 1 if f(x) > 0; otherwise y = -1").

    Examples
    --------
    >>> sign([-2.0, 0.0, 0.5])
    array([-1., -1.,  1.])
    """
    return np.where(np.asarray(scores, dtype=float) > 0, 1.0, -1.0)
