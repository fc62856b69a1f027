"""`python -m nerm` is the command `nerm`; the examples' data live here too."""

from __future__ import annotations

import numpy as np

import nerm


def synthetic(n: int = 400, seed: int = 7) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the paper's synthetic data (section 7.1): label and viewpoint share their first weight."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 10))
    label_weights, viewpoint_weights = rng.uniform(-1, 1, size=(2, 10))
    viewpoint_weights[0] = label_weights[0]
    return X, nerm.signs.sign(X @ label_weights), nerm.signs.sign(X @ viewpoint_weights)


if __name__ == "__main__":
    from nerm.cli import main

    main()
