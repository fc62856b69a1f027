"""Small experiments that the tests share; the bundled diabetes data need no download."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SMALL = {
    "datasets": "diabetes",
    "repetitions": 1,
    "folds": 3,
    "lam": 10.0,
    "etas": {"neutral-svm": [0.0, 0.5, 5.0]},
}
FOLDER = Path(os.environ.get("NERM_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")


@pytest.fixture
def small():
    return {**SMALL, "methods": ["neutral-svm", "cv2nb", "lr"]}


@pytest.fixture(scope="session")
def real_data() -> Path:
    if not (FOLDER / "adult").is_dir():
        pytest.skip(f"needs the UCI files: none in {FOLDER} (set NERM_DATA)")
    return FOLDER
