"""The constants are one frozen value, each said what it is."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError, fields

import pytest

from nerm.solvers.interior_point import Tuning


def test_nobody_changes_the_constants():
    with pytest.raises(FrozenInstanceError):
        Tuning().share = 0.5


def test_every_constant_is_explained():
    attributes = inspect.cleandoc(Tuning.__doc__).split("----------")[1]
    lines = [line for line in attributes.splitlines() if line.strip() and not line.startswith(" ")]
    heads = {name for line in lines for name in line.strip().split(", ")}
    assert heads == {field.name for field in fields(Tuning)}
