"""Compiled passes that find equal rows by hashing (see `nerm.model.rows`)."""

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def _mixed(h, bits):  # type: ignore[no-untyped-def]
    """Stir 64 bits into a hash (the finaliser of splitmix64)."""
    h = (h ^ bits) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@numba.njit(cache=True, nogil=True)
def hashes(indptr, indices, bits, extra):  # type: ignore[no-untyped-def]
    """Hash every row: its values, each with its column, and its entries of `extra`.

    The values' hashes are added up, so that none waits for the one before: twice as fast as a chain of them.
    """
    n = indptr.shape[0] - 1
    out = np.empty(n, np.uint64)
    for i in range(n):
        h = np.uint64(0)
        for p in range(indptr[i], indptr[i + 1]):
            column = np.uint64(indices[p] if indices.size > 0 else p - indptr[i])
            h += _mixed(column * np.uint64(0x9E3779B97F4A7C15), bits[p])
        for k in range(extra.shape[0]):
            h = _mixed(h, extra[k, i])
        out[i] = h
    return out


@numba.njit(cache=True, nogil=True)
def _same(indptr, indices, bits, extra, i, j):  # type: ignore[no-untyped-def]
    """Compare two rows word by word."""
    length = indptr[i + 1] - indptr[i]
    if length != indptr[j + 1] - indptr[j]:
        return False
    for p in range(length):
        if bits[indptr[i] + p] != bits[indptr[j] + p]:
            return False
        if indices.size > 0 and indices[indptr[i] + p] != indices[indptr[j] + p]:
            return False
    for k in range(extra.shape[0]):  # noqa: SIM110 (compiled code knows no generators)
        if extra[k, i] != extra[k, j]:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def groups(keys, indptr, indices, bits, extra):  # type: ignore[no-untyped-def]
    """Give each distinct row a number by an open-addressing table; equality is checked, a hash alone proves nothing.

    The third array has the numbers as they stand in the table, whose places are the highest bits of the keys:
    nearly in the order of the keys.
    """
    n = keys.shape[0]
    bits_of_place = 1
    while 1 << bits_of_place < 2 * n:
        bits_of_place += 1
    size = 1 << bits_of_place
    table = np.full(size, -1, np.int64)
    group = np.empty(n, np.int64)
    first = np.empty(n, np.int64)
    count = 0
    for i in range(n):
        slot = np.int64(keys[i] >> np.uint64(64 - bits_of_place))
        while True:
            g = table[slot]
            if g < 0:
                table[slot] = count
                group[i] = count
                first[count] = i
                count += 1
                break
            j = first[g]
            if keys[i] == keys[j] and _same(indptr, indices, bits, extra, i, j):
                group[i] = g
                break
            slot = (slot + 1) & (size - 1)
    placed = np.empty(size, np.int64)
    seen = 0
    for g in table:
        placed[seen] = g
        seen += int(g >= 0)
    return group, first[:count].copy(), placed[:count]
