"""Write the generated pages of the site: one per public module, docstrings as RST, copies of the notebooks.

All lists come from `__all__` and from the folders; a name that is added to nerm is in the reference at the
next build.
"""

from __future__ import annotations

import inspect
import json
import os
import re
from base64 import b64decode
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from docstrings import inline, numpydoc
from inventory import described_in, homes, known, modules, names, thing_at

from nerm.cli import cli

#: Base classes whose methods are not nerm's to explain.
FOREIGN_BASES = ("object", "ABC", "str", "dict", "tuple", "BaseException", "BaseEstimator", "ClassifierMixin")
FOREIGN_BASES += ("TransformerMixin", "OneToOneFeatureMixin", "MetadataRequest", "_MetadataRequester")


def process_docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Rewrite a docstring in place, as autodoc asks for it."""
    parents = [name.rsplit(".", k)[0] for k in range(name.count(".") + 1)]
    lines[:] = numpydoc(list(lines), parents)


def process_signature(
    app: Any, what: str, name: str, thing: Any, options: Any, signature: Any, returns: Any
) -> Any:
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


def module_page(module: ModuleType) -> str:
    """Return the page of a module: what it is for, its names in a table, then each in full."""
    title = module.__name__
    page = [title, "=" * len(title), "", f".. py:module:: {title}", ""]
    page += [*numpydoc((inspect.getdoc(module) or "").splitlines(), [title]), ""]
    listed = [name for name in names(module) if not inspect.ismodule(getattr(module, name))]
    page += [".. list-table::", "   :widths: 30 70", ""]
    for name in listed:
        home = homes()[f"{title}.{name}"]
        said = constant_comment(module, name) or first_sentence(getattr(module, name))
        page += [f"   * - :py:obj:`{name} <{home}>`", f"     - {inline(said, [title]) or '–'}"]
    for home in described_in(module):
        page += ["", *entry(module, home)]
    return "\n".join([*page, ""])


def entry(module: ModuleType, home: str) -> list[str]:
    """Return the directive that describes one name in full."""
    thing = thing_at(home)
    if inspect.isclass(thing):
        if issubclass(thing, BaseException):
            return [f".. autoexception:: {home}", "   :show-inheritance:"]
        return [f".. autoclass:: {home}"]
    if inspect.isroutine(thing):
        return [f".. autofunction:: {home}"]
    name = home.rsplit(".", 1)[1]
    said = constant_comment(module, name)
    return [f".. py:data:: {name}", "", f"   {inline(said, [module.__name__])}"]


def constant_comment(module: ModuleType, name: str) -> str:
    """Return the ``#:`` comment above the assignment of a constant; '' for classes and functions."""
    thing = getattr(module, name)
    if inspect.isclass(thing) or inspect.isroutine(thing) or not getattr(module, "__file__", None):
        return ""
    folder = Path(module.__file__)
    files = (
        sorted(folder.parent.rglob("*.py"))
        if hasattr(module, "__path__")
        else [folder, *folder.parent.glob("*.py")]
    )
    for file in files:
        found = re.search(
            rf"((?:^#:.*\n)+)(?:^#.*\n)*{name}\b[^=\n]*=", file.read_text("utf-8"), re.MULTILINE
        )
        if found:
            return " ".join(line.removeprefix("#:").strip() for line in found[1].splitlines())
    return ""


def index_page() -> str:
    """Return the front page of the reference."""
    page = ["Reference", "=========", "", "Every public name, described by its own docstring.", ""]
    page += [".. list-table::", "   :widths: 25 75", ""]
    for module in modules():
        page += [
            f"   * - :py:mod:`{module.__name__}`",
            f"     - {inline(first_sentence(module), [module.__name__]) or '–'}",
        ]
    page += ["   * - :doc:`nerm … <command>`", f"     - {inline(str(cli.help))}"]
    page += [
        "",
        ".. toctree::",
        "   :hidden:",
        "",
        *(f"   {module.__name__}" for module in modules()),
        "   command",
    ]
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
            source = re.sub(
                r"\]\(\.\./(CONTRIBUTING|CHANGELOG)\.md", lambda m: f"](../{m[1].lower()}.md", source
            )
            source = source.replace("](../README.md", "](../index.md")
            # Jupyter draws a formula between lines of a paragraph; MyST wants blank lines around it.
            source = re.sub(r"^\$\$(.+?)\$\$ *$", r"\n$$\1$$\n", source, flags=re.MULTILINE | re.DOTALL)
            cell["source"] = re.sub(
                r"(?<!!)\[([^\]]+)\]\(\.\./[^)]+\.(?:py|png|css|toml|csv)\)", r"\1", source
            )
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "text/html" in data:  # Jupyter draws what stands between dollars, the site what has this class
                data["text/html"] = re.sub(
                    r"<div>\$(.+?)\$</div>",
                    r'<div class="math notranslate nohighlight">\\(\1\\)</div>',
                    "".join(data["text/html"]),
                )
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def gallery(notebooks: dict[str, str]) -> dict[str, bytes]:
    """Return the gallery of the notebooks, a list of figures to include, and the pictures that it shows.

    Each notebook shows the first picture that it drew, above its question; a notebook without one is left
    out.
    """
    files: dict[str, bytes] = {}
    page: list[str] = []
    for name, text in sorted(notebooks.items()):
        cells = json.loads(text)["cells"]
        outputs = (output.get("data", {}) for cell in cells for output in cell.get("outputs", []))
        picture = next((data["image/png"] for data in outputs if "image/png" in data), None)
        if picture is None:
            continue
        stem = Path(name).stem
        question = "".join(cells[0]["source"]).splitlines()[0].lstrip("# ")
        files[f"{stem}.png"] = b64decode("".join(picture))
        page += [f"```{{figure}} notebooks/{stem}.png", f":alt: The first picture of notebook {stem[:2]}"]
        page += [f":target: notebooks/{stem}.html", "", question, "```", ""]
    return files | {"gallery.txt": "\n".join(page).encode()}


# --- writing ----------------------------------------------------------------------------------------


def write(docs: Path) -> None:
    """Write ``api/`` and ``notebooks/``; a file that would not change is not touched."""
    api = {"index.rst": index_page(), "command.rst": command_page()} | {
        f"{module.__name__}.rst": module_page(module) for module in modules()
    }
    copies = {
        file.name: notebook_page(file.read_text("utf-8"))
        for file in (docs.parent / "notebooks").glob("*.ipynb")
    }
    reference = {name: text.encode() for name, text in api.items()}
    shown = {name: text.encode() for name, text in copies.items()} | gallery(copies)
    for folder, files in ((docs / "api", reference), (docs / "notebooks", shown)):
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            if old.is_file() and old.name not in files and not old.name.startswith("."):
                old.unlink(missing_ok=True)
        for name, content in files.items():
            _write(folder / name, content)


def _write(path: Path, content: bytes) -> None:
    """Write in one step, so that two builds at the same time do not disturb each other."""
    if path.exists() and path.read_bytes() == content:
        return
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(path)
