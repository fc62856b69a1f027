"""The real files: in NERM_DATA, or in ``../shared/data`` beside the repository; else a visible skip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("NERM_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")


@pytest.fixture(scope="session")
def real_data() -> Path:
    if not (FOLDER / "adult").is_dir():
        pytest.skip(f"needs the UCI files: none in {FOLDER} (set NERM_DATA)")
    return FOLDER


@pytest.fixture(scope="session")
def adult(real_data):
    """Discretised Adult, nominal and one-hot."""
    from nerm.datasets import load

    return load("adult", "nominal", data_home=real_data), load("adult", "one-hot", data_home=real_data)
