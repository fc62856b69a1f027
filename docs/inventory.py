"""List the public modules of nerm and the public names in each, from `__all__`."""

from __future__ import annotations

import inspect
from functools import cache
from types import ModuleType
from typing import Any

import nerm


def modules() -> list[ModuleType]:
    """Return nerm and its public modules.

    >>> [module.__name__ for module in modules()][:2]
    ['nerm', 'nerm.atoms']
    """
    public = [getattr(nerm, name) for name in nerm.__all__]
    return [nerm, *(thing for thing in public if inspect.ismodule(thing))]


def names(module: ModuleType) -> list[str]:
    """Return the public names of a module: `__all__`, or what it defines without an underscore."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__, key=str.lower)
    here = {
        name for name, thing in vars(module).items() if getattr(thing, "__module__", None) == module.__name__
    }
    return sorted((name for name in here if not name.startswith("_")), key=str.lower)


@cache
def homes() -> dict[str, str]:
    """Return where every public name is documented, once: ``nerm.atoms.Hinge`` is ``nerm.Hinge``, say.

    >>> homes()["nerm.atoms.Hinge"], homes()["nerm.atoms.Facts"]
    ('nerm.Hinge', 'nerm.atoms.Facts')
    """
    found: dict[str, str] = {}
    short = {name: getattr(nerm, name) for name in names(nerm)}
    for module in modules():
        for name in names(module):
            same = name in short and short[name] is getattr(module, name)
            found[f"{module.__name__}.{name}"] = f"nerm.{name}" if same else f"{module.__name__}.{name}"
    return found


def described_in(module: ModuleType) -> list[str]:
    """Return the names whose full description stands on a module's page.

    >>> "nerm.Hinge" in described_in(nerm), "nerm.Hinge" in described_in(nerm.atoms)
    (False, True)
    """
    mine = [homes()[f"{module.__name__}.{name}"] for name in names(module)]
    if module is nerm:
        elsewhere = {homes()[f"{r.__name__}.{name}"] for r in modules()[1:] for name in names(r)}
        return [name for name in mine if name not in elsewhere and not inspect.ismodule(thing_at(name))]
    return mine


def thing_at(name: str) -> Any:
    """Return the object of a dotted name in nerm."""
    thing: Any = nerm
    for part in name.split(".")[1:]:
        thing = getattr(thing, part)
    return thing


@cache
def known() -> dict[str, str]:
    """Return every name that the reference has an entry for, methods included, with the name of the entry."""
    found = {module.__name__: module.__name__ for module in modules()} | homes()
    for name, home in list(homes().items()):
        thing = thing_at(name)
        for key, member in members(thing).items() if inspect.isclass(thing) else ():
            if key[0] != "_" and inspect.getdoc(member) and (callable(member) or hasattr(member, "__get__")):
                found[f"{name}.{key}"] = f"{home}.{key}"
    return found


def members(cls: type) -> dict[str, Any]:
    """Return what a class has from nerm, as its nearest base defines it."""
    ours = [base for base in reversed(cls.__mro__) if base.__module__.startswith("nerm")]
    return {key: value for base in ours for key, value in vars(base).items()}
