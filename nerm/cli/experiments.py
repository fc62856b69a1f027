"""The door to nerm.experiments, opened only by the commands that need it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nerm.errors import MissingPackageError


def experiment(name: str, room: str = "nerm.experiments") -> Callable[..., Any]:
    """Return a function of nerm.experiments (or nerm.plots); where this installation has none, say so."""
    try:
        from importlib import import_module

        found = getattr(import_module(room), name, None)
    except ModuleNotFoundError as error:
        if error.name == room:
            found = None
        else:
            raise MissingPackageError(
                f"{room} needs the package {error.name!r}. It is not installed. Install it and try again."
            ) from None
    if found is None:
        raise MissingPackageError(
            f"this command needs {room}.{name}. This installation has none. Install a nerm that has it."
        )
    return found
