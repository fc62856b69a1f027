"""Random, stratified splits that depend only on the seed and the strata, not on parallel execution."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.typing import Array, Bools, Ints

Seed = int | np.random.SeedSequence
HOLD_OUT = 0.3  # the default share of rows to hold out


def seed_sequence(seed: int, *labels: object) -> np.random.SeedSequence:
    """Return the seed of one part of an experiment, derived from the experiment's seed and from labels.

    Labels, such as the data set, the repetition and the fold, are integers or other objects, whose text is
    hashed. Different labels give independent random streams, whichever other parts of the experiment run.

    >>> a, b = (np.random.default_rng(seed_sequence(0, "german", k)).random() for k in (0, 1))
    >>> a == np.random.default_rng(seed_sequence(0, "german", 0)).random(), a == b
    (True, False)
    """
    entropy = [int(seed)]
    for label in labels:
        if isinstance(label, int | np.integer):
            entropy.append(int(label))
        else:
            entropy.append(int.from_bytes(hashlib.sha256(str(label).encode()).digest()[:8], "little"))
    return np.random.SeedSequence(entropy)


def assign_folds(strata: Sequence[Array], folds: int, seed: Seed) -> Ints:
    """Assign each row to a random fold; the sizes of the folds differ by at most one.

    Parameters
    ----------
    strata
        Vectors of length n, such as labels and viewpoints. Each combination of their values is a stratum.
        Within every stratum, too, the numbers of rows per fold differ by at most one. ``[np.zeros(n)]``
        means no stratification.
    folds
        The number of folds, at least 2.
    seed
        A number or a `seed_sequence`.

    Returns
    -------
    ndarray of shape (n,)
        The fold of each row, 0 .. folds - 1.

    >>> y = np.array([1, 1, 1, -1, -1, -1])
    >>> fold = assign_folds([y], 3, seed_sequence(0))
    >>> [sorted(y[fold == k].tolist()) for k in range(3)]
    [[-1, 1], [-1, 1], [-1, 1]]

    """
    n = len(strata[0])
    as_count(folds, "folds", 2)
    if folds > n:
        must = f"'folds' must be at most the number of rows, {n}"
        raise InvalidInputError(must, repr(folds), "Use fewer folds, or more rows")
    order = np.random.default_rng(seed).permutation(n)
    order = order[np.lexsort([np.asarray(values)[order] for values in strata])]  # lexsort is stable
    fold = np.empty(n, dtype=np.intp)
    # The rows are sorted by stratum, in random order within each: assigning folds cyclically balances them.
    fold[order] = np.arange(n) % folds
    return fold


def hold_out(strata: Sequence[Array], share: float, seed: Seed) -> Bools:
    """Choose rows to hold out at random: the same share of every stratum.

    Parameters
    ----------
    strata, seed
        As for `assign_folds`.
    share
        Between 0 and 1. The number of rows per stratum is rounded.

    Returns
    -------
    ndarray of shape (n,)
        True for the rows to hold out.

    >>> y = np.array([1, 1, 1, 1, -1, -1])
    >>> held = hold_out([y], 0.5, 0)
    >>> sorted(y[held].tolist())
    [-1, 1, 1]

    """
    import pandas as pd

    order = np.random.default_rng(seed).permutation(len(strata[0]))
    table = pd.DataFrame({number: np.asarray(values)[order] for number, values in enumerate(strata)})
    cells = table.groupby(list(table.columns), sort=False, dropna=False)
    held = np.zeros(len(order), dtype=bool)
    held[order] = cells.cumcount() < (share * cells[0].transform("size")).round()
    return held


def as_count(value: Any, name: str, at_least: int = 1, do: str = "") -> int:
    """Check that a value is a whole number of at least `at_least`, and return it as an int.

    `name` and `do` are the name of the parameter and the advice in the error.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < at_least:
        must = f"{name!r} must be a whole number, at least {at_least}"
        raise InvalidInputError(must, repr(value), do or f"Give {name}={max(at_least, 5)}")
    return int(value)
