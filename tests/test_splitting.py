from __future__ import annotations

import numpy as np
import pytest

from nerm.splitting import assign_folds, hold_out, seed_sequence


def test_folds_are_balanced_in_every_cell_and_overall():
    rng = np.random.default_rng(0)
    for n, folds in ((23, 5), (100, 3), (7, 7)):
        y, v = rng.choice([-1, 1], n), rng.choice([-1, 1], n, p=[0.1, 0.9])
        fold = assign_folds([y, v], folds, seed_sequence(1, "a", n))
        sizes = np.bincount(fold, minlength=folds)
        assert sizes.sum() == n
        assert np.ptp(sizes) <= 1
        for a in (-1, 1):
            for b in (-1, 1):
                assert np.ptp(np.bincount(fold[(y == a) & (v == b)], minlength=folds)) <= 1


def test_folds_differ_by_repetition_and_repeat_by_seed():
    strata = [np.zeros(50)]
    one, again, other = (assign_folds(strata, 5, seed_sequence(0, "german", r)) for r in (0, 0, 1))
    assert (one == again).all()
    assert (one != other).any()


def test_seeds_do_not_collide():
    labels = [(s, d, r, k) for s in (0, 1) for d in ("german", "adult") for r in range(4) for k in range(4)]
    assert len({int(seed_sequence(*each).generate_state(1, np.uint64)[0]) for each in labels}) == len(labels)


@pytest.mark.parametrize(
    ("folds", "text"),
    [
        (1, "'folds' must be a whole number, at least 2. Got 1."),
        (9, "'folds' must be at most the number of rows, 4. Got 9."),
    ],
)
def test_bad_folds(folds, text):
    with pytest.raises(ValueError, match=text):
        assign_folds([np.zeros(4)], folds, seed_sequence(0))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.5, 1.0])
def test_the_share_of_every_cell_is_held_out(share):
    rng = np.random.default_rng(0)
    y, v = rng.choice([-1, 1], 97), rng.choice([-1, 1], 97, p=[0.1, 0.9])
    held = hold_out([y, v], share, 3)
    for a in (-1, 1):
        for b in (-1, 1):
            cell = (y == a) & (v == b)
            assert held[cell].sum() == round(share * cell.sum())
    assert (held == hold_out([y, v], share, 3)).all()


def test_other_seeds_hold_out_other_rows():
    y = np.ones(40)
    assert (hold_out([y], 0.5, 0) != hold_out([y], 0.5, 1)).any()


def test_every_row_of_a_stratum_can_be_held_out_and_come_first():
    y = np.repeat([-1, 1], 6)
    held = np.array([hold_out([y], 0.5, seed) for seed in range(60)])
    assert (held.any(axis=0) & ~held.all(axis=0)).all()
    first = np.array([assign_folds([y], 3, seed) for seed in range(60)])
    assert all(set(column) == {0, 1, 2} for column in first.T)
