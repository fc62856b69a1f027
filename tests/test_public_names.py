"""Every public name says what it means and shows it: derived from the code, so that a new name is asked too.

Public are the names in `__all__` of nerm and of its modules. A class or a function must carry an example, each
public method and property of a class a docstring of its own, and a constant a ``#:`` comment where it is
assigned.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import nerm

MODULES = [nerm, *(thing for name in nerm.__all__ if inspect.ismodule(thing := getattr(nerm, name)))]


def public() -> Iterator[tuple[str, ModuleType, Any]]:
    """Yield every public name with its module and its object."""
    for module in MODULES:
        for name in sorted(module.__all__):
            yield f"{module.__name__}.{name}", module, getattr(module, name)


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that a class has from nerm; what scikit-learn gives it is not ours."""
    for name in sorted({name for base in cls.__mro__ for name in vars(base) if not name.startswith("_")}):
        owner = next(base for base in cls.__mro__ if name in vars(base))
        member = vars(owner)[name]
        if isinstance(member, staticmethod | classmethod):
            member = member.__func__
        described = inspect.isfunction(member) or isinstance(member, property | cached_property)
        if (
            owner.__module__.split(".")[0] == "nerm"
            and described
            and getattr(member, "__name__", name) != "<lambda>"
        ):
            yield name, member


def described() -> Iterator[tuple[str, Any]]:
    """Yield modules, public names and members, once each, where they have a docstring."""
    found: dict[int, tuple[str, Any]] = {}
    for place, thing in [(module.__name__, module) for module in MODULES] + [
        (place, thing) for place, _, thing in public()
    ]:
        found.setdefault(id(thing), (place, thing))
        for name, member in members(thing) if inspect.isclass(thing) else ():
            found.setdefault(id(member), (f"{place}.{name}", member))
    kinds = (
        inspect.ismodule,
        inspect.isclass,
        inspect.isroutine,
        lambda x: isinstance(x, property | cached_property),
    )
    yield from (
        (place, thing)
        for place, thing in found.values()
        if any(kind(thing) for kind in kinds) and thing.__doc__
    )


def sources(module: ModuleType) -> str:
    """Return the code of a module, one file or all of its package, and of the modules whose names it hands on."""
    folder = Path(module.__file__).parent
    files = sorted(folder.glob("*.py")) if hasattr(module, "__path__") else [Path(module.__file__)]
    handed = {
        node.module
        for file in files
        for node in ast.parse(file.read_text("utf-8")).body
        if isinstance(node, ast.ImportFrom)
    }
    files += [
        Path(import_module(name).__file__)
        for name in sorted(filter(None, handed))
        if name.startswith("nerm.")
    ]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def announced(name: str, code: str) -> bool:
    """Whether a constant is assigned below a ``#:`` comment, or with one on its line."""
    above = rf"^#:.*\n(?:#.*\n)*{name}\b[^=\n]*="
    beside = rf"^{name}\b[^=\n]*=.*#:"
    return (
        re.search(above, code, re.MULTILINE) is not None or re.search(beside, code, re.MULTILINE) is not None
    )


def missing() -> Iterator[str]:
    """Yield what is missing, one sentence each."""
    for place, module, thing in public():
        if inspect.ismodule(thing):
            if not (thing.__doc__ or "").strip():
                yield f"{place}: a docstring"
        elif inspect.isclass(thing) or inspect.isroutine(thing):
            doc = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
            if not (doc or "").strip():
                yield f"{place}: a docstring"
            elif ">>> " not in doc:
                yield f"{place}: an example (>>>)"
            if inspect.isclass(thing):
                yield from (
                    f"{place}.{name}: a docstring"
                    for name, m in members(thing)
                    if not (m.__doc__ or "").strip()
                )
        elif not announced(place.rsplit(".", 1)[1], sources(module)):
            yield f"{place}: a #: comment where it is assigned"


def test_every_public_name_says_what_it_means_and_shows_it() -> None:
    found = list(dict.fromkeys(missing()))
    assert not found, f"{len(found)} public names lack something:\n  " + "\n  ".join(found)


def test_every_module_says_what_is_public() -> None:
    modules = [module.__name__ for module in MODULES if not hasattr(module, "__all__")]
    assert not modules, f"no __all__ in {', '.join(modules)}"
    doubled = [module.__name__ for module in MODULES if len(set(module.__all__)) < len(module.__all__)]
    assert not doubled, f"a name twice in __all__ of {', '.join(doubled)}"


def test_every_docstring_is_valid_markup() -> None:
    """Docstrings are rendered as reStructuredText, where a bare absolute value or a trailing underscore is an error."""
    core = pytest.importorskip("docutils.core")
    from docutils import nodes
    from docutils.parsers.rst import roles

    def literal(name: str, raw: str, text: str, *_: Any, **__: Any) -> Any:
        return [nodes.literal(raw, text)], []

    for role in ("func", "class", "meth", "mod"):  # Sphinx's own
        roles.register_local_role(role, literal)
    found = []
    for place, thing in described():
        said = io.StringIO()
        text = re.sub(
            r"_(?=(, \w+)*( :|$))", r"\\_", inspect.cleandoc(thing.__doc__), flags=re.MULTILINE
        )  # coef_ : array
        core.publish_doctree(text, settings_overrides={"warning_stream": said})
        found += [f"{place}: {line}" for line in said.getvalue().splitlines() if line.startswith("<string>")]
    assert not found, f"{len(found)} docstrings are no valid reStructuredText:\n  " + "\n  ".join(found)


def test_stub_names_every_atom() -> None:
    """Editors and type checkers know the names of the stub; `nerm` itself also finds an atom that it lacks."""
    registries = (nerm.atoms.margin_functions(), nerm.atoms.dc_functions(), nerm.atoms.regularizers())
    atoms = {cls.__name__ for found in registries for cls in found.values()}
    assert {"Hinge", "Logistic", "SquaredL2", "GroupL2", "Ramp"} <= atoms <= set(nerm.__all__)
    assert set(nerm.__all__) <= set(dir(nerm))
    with pytest.raises(AttributeError, match="No nerm attribute Hing"):
        nerm.Hing  # noqa: B018
