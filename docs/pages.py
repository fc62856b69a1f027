"""What the site makes of the code: a page for every room of nerm, its docstrings as RST, and the notebooks' copies.

All lists come from `__all__` and from the folders; a name that is added to nerm is in the reference at the next build.
"""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import nerm
from nerm.cli import cli

#: Base classes whose methods are not nerm's to explain.
FOREIGN_BASES = ("object", "ABC", "str", "dict", "tuple", "BaseException", "BaseEstimator", "ClassifierMixin")
FOREIGN_BASES += ("TransformerMixin", "OneToOneFeatureMixin", "MetadataRequest", "_MetadataRequester")


# --- what there is ----------------------------------------------------------------------------------


def rooms() -> list[ModuleType]:
    """Return nerm and its public modules.

    >>> [room.__name__ for room in rooms()][:2]
    ['nerm', 'nerm.atoms']
    """
    return [nerm, *(import_module(f"nerm.{room}") for room in nerm._ROOMS)]


def names(room: ModuleType) -> list[str]:
    """Return the public names of a room: `__all__`, or what it defines without an underscore."""
    if hasattr(room, "__all__"):
        return sorted(room.__all__, key=str.lower)
    here = {name for name, thing in vars(room).items() if getattr(thing, "__module__", None) == room.__name__}
    return sorted((name for name in here if not name.startswith("_")), key=str.lower)


@cache
def homes() -> dict[str, str]:
    """Return where every public name is documented, once: ``nerm.atoms.Hinge`` is ``nerm.Hinge``, say.

    >>> homes()["nerm.atoms.Hinge"], homes()["nerm.atoms.Facts"]
    ('nerm.Hinge', 'nerm.atoms.Facts')
    """
    found: dict[str, str] = {}
    short = {name: getattr(nerm, name) for name in names(nerm)}
    for room in rooms():
        for name in names(room):
            same = name in short and short[name] is getattr(room, name)
            found[f"{room.__name__}.{name}"] = f"nerm.{name}" if same else f"{room.__name__}.{name}"
    return found


def described_in(room: ModuleType) -> list[str]:
    """Return the names whose full description stands on a room's page.

    >>> "nerm.Hinge" in described_in(nerm), "nerm.Hinge" in described_in(nerm.atoms)
    (False, True)
    """
    mine = [homes()[f"{room.__name__}.{name}"] for name in names(room)]
    if room is nerm:
        elsewhere = {homes()[f"{r.__name__}.{name}"] for r in rooms()[1:] for name in names(r)}
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
    found = {room.__name__: room.__name__ for room in rooms()} | homes()
    for name, home in list(homes().items()):
        thing = thing_at(name)
        if inspect.isclass(thing):
            for base in thing.__mro__:
                if base.__module__.startswith("nerm"):
                    members = [key for key, value in vars(base).items() if key[0] != "_" and inspect.getdoc(value)]
                    own = [k for k in members if callable(vars(base)[k]) or hasattr(vars(base)[k], "__get__")]
                    found.update({f"{name}.{key}": f"{home}.{key}" for key in own})
    return found


# --- docstrings -------------------------------------------------------------------------------------

_SPAN = re.compile(r"(``.+?``|(?::\w+:)?`[^`]+`|(?<![\w*)\]])\*{1,2}\w(?:[^*\n]*\w)?\*{1,2}(?!\w))", re.DOTALL)


_BULLET = re.compile(r" *(?:[-*]|\d+\.) +(?=\S)")


def inline(text: str, places: Iterable[str] = ()) -> str:
    r"""Return a piece of plain prose as RST: code stays code, public names become links, all else is literal.

    >>> print(inline("phi*(u), |w| and coef_ of `Hinge`, :func:`load`, not *this* `x_`"))
    phi\*(u), \|w\| and coef\_ of :py:obj:`Hinge <nerm.Hinge>`, :py:obj:`load <nerm.load>`, not *this* ``x_``
    """
    parts = _SPAN.split(text)
    for i, part in enumerate(parts):
        if i % 2 == 0:
            part = re.sub(r"([*|`])", r"\\\1", part.replace("\\", r"\\"))
            parts[i] = re.sub(r"(?<=\w)_(?![^\W_])", r"\\_", part)
        elif part[0] in "`:" and part[1] != "`":
            parts[i] = _link(" ".join(part.split("`")[1].split()), places)
    return "".join(parts)


def _link(code: str, places: Iterable[str]) -> str:
    """Return code as a link to its entry, looked for in the given places first; plain code if there is none."""
    name = re.sub(r"\(.*\)$", "", code)
    for place in (*places, "nerm", ""):
        full = f"{place}.{name}".lstrip(".")
        if full in known():
            return f":py:obj:`{code} <{known()[full]}>`"
    return f"``{code}``"


def as_rst(lines: list[str], places: Iterable[str] = ()) -> list[str]:
    r"""Return a docstring as RST.

    The style of docstrings is plain text, read like this:

    - a block that is indented after a blank line is a formula, hence literal;
    - a line followed at once by an indented one is a term and its explanation;
    - examples start with ``>>>``, items with ``-``; everything else is prose.

    >>> print("\n".join(as_rst(["Solve", "", "    min |x|", "", "tol", "    The `x`."])))
    Solve
    <BLANKLINE>
    ::
    <BLANKLINE>
        min |x|
    <BLANKLINE>
    tol
        The ``x``.
    """
    out: list[str] = []
    levels = [0]  # the indentations at which prose may stand
    announced = False  # the last paragraph ended in "::"
    for block in _blocks(lines):
        indent = _indent(block[0])
        if block[0].lstrip().startswith((">>>", "...")):
            out += ["", *block, ""]
            continue
        levels = [level for level in levels if level <= indent] or [indent]
        if indent > levels[-1]:
            out += ["", *([] if announced else [" " * levels[-1] + "::", ""]), *block, ""]
            continue
        announced = block[-1].endswith("::")
        for i, line in enumerate(block):
            if _indent(line) > levels[-1]:
                levels.append(_indent(line))
            bullet = _BULLET.match(line)
            if bullet and (i == 0 or _BULLET.match(block[0])):
                levels.append(len(bullet[0]))
        text = "\n".join(block)
        head = _BULLET.match(text)
        start = head[0] if head else ""
        out += ["", *(start + inline(text[len(start) :], places)).split("\n"), ""]
    return _squeezed(out)


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Yield runs of lines between blank ones; an example, a list, a formula in mid-sentence are runs too."""
    run: list[str] = []
    for line in [*lines, ""]:
        example = line.lstrip().startswith(">>>")
        if run and (not line.strip() or (example and not run[0].lstrip().startswith(">>>"))):
            yield from _parts(run)
            run = []
        if line.strip():
            run.append(line.rstrip())


def _parts(run: list[str]) -> Iterator[list[str]]:
    """Cut a run before a list that follows a colon, and around what is indented below two lines or more of prose."""
    listed = _BULLET.match(run[0])
    prose = 0  # lines of prose, one below the other, up to here
    for i, line in enumerate(run):
        inside = _indent(line) > _indent(run[0])
        if listed or line.lstrip().startswith((">>>", "...")):
            break
        if i and _BULLET.match(line) and run[i - 1].endswith(":"):
            yield from (run[:i], run[i:])
            return
        if inside and prose > 1:
            back = next((k for k in range(i, len(run)) if _indent(run[k]) <= _indent(run[0])), len(run))
            yield from (run[:i], run[i:back])
            yield from _parts(run[back:]) if back < len(run) else ()
            return
        prose = 0 if inside else prose + 1
    yield run


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _squeezed(lines: list[str]) -> list[str]:
    """Return lines without repeated blank ones."""
    kept = [line for i, line in enumerate(lines) if line or (i and lines[i - 1])]
    return kept[:-1] if kept and not kept[-1] else kept


def process_docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Rewrite a docstring in place, as autodoc asks for it."""
    parents = [name.rsplit(".", k)[0] for k in range(name.count(".") + 1)]
    lines[:] = as_rst(list(lines), parents)


def process_signature(app: Any, what: str, name: str, thing: Any, options: Any, signature: Any, returns: Any) -> Any:
    """Write a default that is made afresh each time as an ellipsis: ``<factory>`` is no Python."""
    return signature and signature.replace("<factory>", "..."), returns


def skip_member(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the requests of scikit-learn's metadata routing, which it writes into every class."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def trim_code(app: Any, doctree: Any) -> None:
    """Take away the empty last line of a code block, which doctest wants and a reader does not."""
    from docutils import nodes

    for block in doctree.findall(nodes.literal_block):
        if len(block) == 1 and block.astext().endswith("\n"):
            block.rawsource = block.astext().rstrip("\n")
            block[:] = [nodes.Text(block.rawsource)]


def link_code(app: Any, doctree: Any) -> None:
    """Make code in prose a link where it names something here: `Problem.solve`, `docs/errata.md`."""
    from docutils import nodes
    from sphinx import addnodes

    linked = (nodes.reference, nodes.title, addnodes.pending_xref, addnodes.desc)
    for code in list(doctree.findall(nodes.literal)):
        above = code.parent
        while above is not None and not isinstance(above, linked):
            above = above.parent
        name = re.sub(r"\(.*\)$", "", code.astext())
        full = name if name.startswith("nerm.") else f"nerm.{name}" if name[:1].isupper() else ""
        page = page_of(name, app.env.found_docs)
        if above is not None:
            continue
        if full in known():
            target = {"refdomain": "py", "reftype": "obj", "reftarget": known()[full], "refexplicit": True}
            link = addnodes.pending_xref("", code.deepcopy(), refdoc=app.env.docname, refwarn=True, **target)
            code.replace_self(link)
        elif page and page != app.env.docname:
            address = app.builder.get_relative_uri(app.env.docname, page)
            code.replace_self(nodes.reference("", "", code.deepcopy(), internal=True, refuri=address))


def page_of(file: str, pages: Iterable[str]) -> str | None:
    """Return the page that is made of a file of the project, if it is one of these.

    >>> pages = {"errata", "notebooks/01_start"}
    >>> page_of("docs/errata.md", pages), page_of("01_start", pages), page_of("errata", pages)
    ('errata', 'notebooks/01_start', None)
    """
    stem = re.sub(r"\.(md|ipynb)$", "", file)
    if stem == file and not re.fullmatch(r"\d\d_\w+", file):
        return None
    places = (stem.removeprefix("docs/"), f"notebooks/{stem.removeprefix('notebooks/')}", stem.lower())
    return next((place for place in places if place in pages), None)


# --- pages ------------------------------------------------------------------------------------------


def first_sentence(thing: Any) -> str:
    """Return the first sentence of a docstring.

    >>> first_sentence(first_sentence)
    'Return the first sentence of a docstring.'
    """
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s+(?=[A-Z`])", text)[0].rstrip(":")


def room_page(room: ModuleType) -> str:
    """Return the page of a room: what it is for, its names in a table, then each in full."""
    title = room.__name__
    page = [title, "=" * len(title), "", f".. py:module:: {title}", ""]
    page += [*as_rst((inspect.getdoc(room) or "").splitlines(), [title]), ""]
    listed = [name for name in names(room) if not inspect.ismodule(getattr(room, name))]
    page += [".. list-table::", "   :widths: 30 70", ""]
    for name in listed:
        home = homes()[f"{title}.{name}"]
        said = constant_comment(room, name) or first_sentence(getattr(room, name))
        page += [f"   * - :py:obj:`{name} <{home}>`", f"     - {inline(said, [title]) or '–'}"]
    for home in described_in(room):
        page += ["", *entry(room, home)]
    return "\n".join([*page, ""])


def entry(room: ModuleType, home: str) -> list[str]:
    """Return the directive that describes one name in full."""
    thing = thing_at(home)
    if inspect.isclass(thing):
        if issubclass(thing, BaseException):
            return [f".. autoexception:: {home}", "   :show-inheritance:"]
        return [f".. autoclass:: {home}"]
    if inspect.isroutine(thing):
        return [f".. autofunction:: {home}"]
    name = home.rsplit(".", 1)[1]
    said = constant_comment(room, name)
    return [f".. py:data:: {name}", "", f"   {inline(said, [room.__name__])}"]


def constant_comment(room: ModuleType, name: str) -> str:
    """Return the ``#:`` comment above the assignment of a constant; '' for classes and functions."""
    thing = getattr(room, name)
    if inspect.isclass(thing) or inspect.isroutine(thing) or not getattr(room, "__file__", None):
        return ""
    folder = Path(room.__file__)
    files = sorted(folder.parent.rglob("*.py")) if hasattr(room, "__path__") else [folder]
    for file in files:
        found = re.search(rf"((?:^#:.*\n)+)(?:^#.*\n)*{name}\b[^=\n]*=", file.read_text("utf-8"), re.MULTILINE)
        if found:
            return " ".join(line.removeprefix("#:").strip() for line in found[1].splitlines())
    return ""


def index_page() -> str:
    """Return the front page of the reference."""
    page = ["Reference", "=========", "", "Every public name, described by its own docstring.", ""]
    page += [".. list-table::", "   :widths: 25 75", ""]
    for room in rooms():
        page += [f"   * - :py:mod:`{room.__name__}`", f"     - {inline(first_sentence(room), [room.__name__]) or '–'}"]
    page += ["   * - :doc:`nerm … <command>`", f"     - {inline(str(cli.help))}"]
    page += ["", ".. toctree::", "   :hidden:", "", *(f"   {room.__name__}" for room in rooms()), "   command"]
    return "\n".join([*page, ""])


def command_page() -> str:
    """Return the help of the command line, in its own words."""
    width = {"terminal_width": 100, "max_content_width": 100}
    top = cli.make_context("nerm", [], resilient_parsing=True, **width)
    page = ["The command", "===========", "", *_literal(cli.get_help(top))]
    for name in cli.list_commands(top):
        command = cli.get_command(top, name)
        context = command.make_context(name, [], parent=top, resilient_parsing=True, **width)
        page += [f"nerm {name}", "-" * len(f"nerm {name}"), "", *_literal(command.get_help(context))]
    return "\n".join(page)


def _literal(text: str) -> list[str]:
    return ["::", "", *(f"   {line}".rstrip() for line in text.splitlines()), ""]


# --- notebooks --------------------------------------------------------------------------------------


def notebook_page(text: str) -> str:
    """Return a notebook whose links to files of the project lead to pages of the site, or are plain text.

    >>> cell = {"cell_type": "markdown", "source": ["See [errata](../docs/errata.md), [code](../nerm/problem.py)."]}
    >>> json.loads(notebook_page(json.dumps({"cells": [cell]})))["cells"][0]["source"]
    'See [errata](../errata.md), code.'
    """
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            source = "".join(cell["source"]).replace("](../docs/", "](../").replace("](docs/", "](../")
            source = re.sub(r"\]\(\.\./(CONTRIBUTING|CHANGELOG)\.md", lambda m: f"](../{m[1].lower()}.md", source)
            source = source.replace("](../README.md", "](../index.md")
            cell["source"] = re.sub(r"\[([^\]]+)\]\(\.\./[^)]+\.(?:py|png|css|toml|csv)\)", r"\1", source)
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


# --- writing ----------------------------------------------------------------------------------------


def write(docs: Path) -> None:
    """Write ``api/`` and ``notebooks/``; a file that would not change is not touched."""
    api = {"index.rst": index_page(), "command.rst": command_page()} | {
        f"{room.__name__}.rst": room_page(room) for room in rooms()
    }
    copies = {file.name: notebook_page(file.read_text("utf-8")) for file in (docs.parent / "notebooks").glob("*.ipynb")}
    for folder, files in ((docs / "api", api), (docs / "notebooks", copies)):
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            if old.is_file() and old.name not in files and not old.name.startswith("."):
                old.unlink(missing_ok=True)
        for name, text in files.items():
            _write(folder / name, text)


def _write(path: Path, text: str) -> None:
    """Write in one step, so that two builds at the same time do not disturb each other."""
    if path.exists() and path.read_text("utf-8") == text:
        return
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
