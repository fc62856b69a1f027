"""Random, stratified splits that depend on the seed and labels only, never on workers or order."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.typing import Array, Bools, Ints

Seed = int | np.random.SeedSequence
HOLD_OUT = 0.3  # the share of rows to hold out where none is given


def seed_sequence(seed: int, *labels: object) -> np.random.SeedSequence:
    """Return the seed of one piece of an experiment, derived from the experiment's seed and its labels.

    Words enter through a hash, so that another data set, repetition or fold is another, independent stream
    whatever else is run beside it.

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
    """Return the fold of each row, 0 .. folds - 1, drawn at random: sizes differ by at most one.

    Parameters
    ----------
    strata
        Vectors of length n (labels, viewpoints). Within each combination of their values the folds' counts
        differ by at most one too, however few rows it has. ``[np.zeros(n)]`` stratifies by nothing.
    folds
        How many, at least 2.
    seed
        A number or a `seed_sequence`.

    Returns
    -------
    ndarray of shape (n,)

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
    fold = np.empty(n, dtype=np.intp)
    # Rows of one stratum stand together in random order: dealing them out like cards balances every one.
    fold[_by_stratum(strata, seed)] = np.arange(n) % folds
    return fold


def hold_out(strata: Sequence[Array], share: float, seed: Seed) -> Bools:
    """Return True for the rows to hold out: this share, rounded, of every combination of strata.

    Parameters
    ----------
    strata, seed
        As for `assign_folds`.
    share
        Between 0 and 1.

    Returns
    -------
    ndarray of shape (n,)

    >>> y = np.array([1, 1, 1, 1, -1, -1])
    >>> held = hold_out([y], 0.5, 0)
    >>> sorted(y[held].tolist())
    [-1, 1, 1]

    """
    order = _by_stratum(strata, seed)
    cells = np.unique(np.stack([np.asarray(s)[order] for s in strata]), axis=1, return_inverse=True)[
        1
    ].ravel()
    held = np.zeros(len(order), dtype=bool)
    for cell in np.unique(cells):
        rows = order[cells == cell]
        held[rows[: round(share * len(rows))]] = True
    return held


def _by_stratum(strata: Sequence[Array], seed: Seed) -> Ints:
    """Return all rows, sorted by stratum and in random order within each."""
    order = np.random.default_rng(seed).permutation(len(strata[0]))
    return order[np.lexsort([np.asarray(s)[order] for s in strata])]  # lexsort is stable


def as_count(value: Any, name: str, at_least: int = 1, do: str = "") -> int:
    """Return a whole number, checked."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < at_least:
        must = f"{name!r} must be a whole number, at least {at_least}"
        raise InvalidInputError(must, repr(value), do or f"Give {name}={max(at_least, 5)}")
    return int(value)
