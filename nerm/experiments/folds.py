"""Which rows are tested when: folds and seeds that depend on names and numbers, never on workers or order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from nerm.errors import InvalidInputError


def seed_sequence(seed: int, *labels: object) -> np.random.SeedSequence:
    """Return the seed of one piece of an experiment, derived from the experiment's seed and its labels.

    Words enter through a hash, so that another data set, repetition or fold is another, independent stream whatever
    else is run beside it.

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


def assign_folds(strata: Sequence[np.ndarray], folds: int, seed: np.random.SeedSequence) -> np.ndarray:
    """Return the fold of each row, 0 .. folds - 1, drawn at random: sizes differ by at most one.

    `strata` holds vectors of length n (labels, viewpoints); within each combination of their values the folds' counts
    differ by at most one too. ``[np.zeros(n)]`` stratifies by nothing.

    >>> y = np.array([1, 1, 1, -1, -1, -1])
    >>> fold = assign_folds([y], 3, seed_sequence(0))
    >>> [sorted(y[fold == k].tolist()) for k in range(3)]
    [[-1, 1], [-1, 1], [-1, 1]]
    """
    n = len(strata[0])
    as_count(folds, "folds", 2)
    if folds > n:
        raise InvalidInputError(
            f"'folds' must be at most the number of rows, {n}", repr(folds), "Use fewer folds, or more rows"
        )
    order = np.random.default_rng(seed).permutation(n)
    # lexsort is stable: rows of one stratum stay in random order, and dealing them out like cards balances every one.
    order = order[np.lexsort([np.asarray(s)[order] for s in strata])]
    fold = np.empty(n, dtype=np.int64)
    fold[order] = np.arange(n) % folds
    return fold


def as_count(value: object, name: str, at_least: int = 1) -> int:
    """Return a whole number, checked."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < at_least:
        raise InvalidInputError(
            f"{name!r} must be a whole number, at least {at_least}", repr(value), f"Give {name}={max(at_least, 5)}"
        )
    return int(value)
