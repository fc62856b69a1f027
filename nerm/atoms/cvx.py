"""The functions of cvxpy, imported when the first one is used: cvxpy takes a second to load."""

from typing import Any


def __getattr__(name: str) -> Any:
    import cvxpy

    return getattr(cvxpy, name)
