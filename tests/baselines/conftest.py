"""Adult as the baselines take it."""

from __future__ import annotations

import pytest

from nerm.datasets import load
from tests.datasets.conftest import real_data

__all__ = ["adult", "real_data"]


@pytest.fixture(scope="session")
def adult(real_data):
    """Discretised Adult, nominal and one-hot."""
    return load("adult", "nominal", data_home=real_data), load("adult", "one-hot", data_home=real_data)
