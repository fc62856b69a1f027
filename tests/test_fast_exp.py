"""Compiled exponentials against numpy's."""

import numpy as np

from nerm.model.fast_exp import exp_in_place, exp_in_place_32


def test_agrees_with_numpy():
    rng = np.random.default_rng(0)
    values = -np.abs(
        np.concatenate([rng.normal(size=3000) * 10.0 ** rng.integers(-20, 3, 3000), [0.0, -0.0, 707.9]])
    )
    found = values.reshape(-1, 3).copy()
    exp_in_place(found)
    np.testing.assert_allclose(found.ravel(), np.exp(values), rtol=1e-15)


def test_ends():
    values = np.array([[1e-9, 3.0, -1e5, -np.inf]])
    exp_in_place(values)
    assert values[0, :2].tolist() == [1.0, 1.0]
    assert (values[0, 2:] < 1e-307).all()


def test_single_precision():
    values = -np.abs(
        np.random.default_rng(1).normal(size=3000) * 10.0 ** np.random.default_rng(2).integers(-9, 2, 3000)
    )
    found = np.maximum(values, -86.0).astype(np.float32).reshape(-1, 3)
    expected = np.exp(found.astype(float))
    exp_in_place_32(found)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    ends = np.array([[1e-9, 3.0, -1e5, -np.inf]], dtype=np.float32)
    exp_in_place_32(ends)
    assert ends[0, :2].tolist() == [1.0, 1.0]
    assert (ends[0, 2:] < 1e-37).all()
