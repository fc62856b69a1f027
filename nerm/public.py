"""What a room offers, derived from its code: nobody keeps a list of names beside the names."""

from collections.abc import Mapping
from typing import Any


def public_names(room: Mapping[str, Any]) -> list[str]:
    """Return the classes and functions in a module's globals() that it defines, or hands on from its own files."""
    own = (
        name for name, value in room.items() if getattr(value, "__module__", "").startswith(room["__name__"])
    )
    return sorted(name for name in own if not name.startswith("_"))
