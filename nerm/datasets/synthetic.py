"""The paper's synthetic data (section 7.1), with the corrected label noise."""

from typing import Any

import numpy as np

from nerm.signs import sign
from nerm.splitting import as_count
from nerm.typing import Floats

FEATURES = 10


def synthetic(n: int = 1000, random_state: Any = None) -> dict[str, Any]:
    """Draw n samples: inputs and two true weight vectors uniform on [-1, 1]^10 that share their first entry.

    ``y = sign(w_y.x)`` and ``v = sign(w_v.x)``, each flipped with probability ``1 / (1 + exp(+100 |w.x|))``.
    The print has -100, which flips 99.5 % of the labels instead of 0.45 %.

    Parameters
    ----------
    n
        How many samples.
    random_state
        A seed, or a legacy ``RandomState``. The weights are drawn before the samples and samples one after
        the other, so with the same integer seed the data of a small n are the first rows of those of a larger
        n.

    Returns
    -------
    dict
        ``X`` (n, 10), ``y`` and ``viewpoint`` (n,), and ``details``: the true weights ``w_y`` and ``w_v``.
    """
    as_count(n, "n", do="Give the number of samples to draw")
    if isinstance(random_state, np.random.RandomState):
        uniform = random_state.uniform
    else:
        uniform = np.random.default_rng(random_state).uniform
    w_y = uniform(-1.0, 1.0, FEATURES)
    w_v = uniform(-1.0, 1.0, FEATURES)
    w_v[0] = w_y[0]
    draws = uniform(-1.0, 1.0, (n, FEATURES + 2))
    X, chance = draws[:, :FEATURES], (draws[:, FEATURES:] + 1.0) / 2.0
    return {
        "X": X,
        "y": noisy_sign(X @ w_y, chance[:, 0]),
        "viewpoint": noisy_sign(X @ w_v, chance[:, 1]),
        "details": {"w_y": w_y, "w_v": w_v},
    }


def noisy_sign(margins: Floats, chance: Floats) -> Floats:
    """Return sign(margin), flipped where the uniform chance falls below ``1 / (1 + exp(100 |margin|))``."""
    # exp(-100 |m|) / (1 + exp(-100 |m|)) is the same probability and cannot overflow.
    decay = np.exp(-100.0 * np.abs(margins))
    return np.asarray(np.where(chance < decay / (1.0 + decay), -1.0, 1.0) * sign(margins))
