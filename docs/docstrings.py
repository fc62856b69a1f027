"""Docstrings, plain text with numpydoc's sections, as reStructuredText with links to the public names in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from textwrap import dedent

from inventory import known

_SPAN = re.compile(
    r"(``.+?``|(?::\w+:)?`[^`]+`|(?<![\w*)\]])\*{1,2}\w(?:[^*\n]*\w)?\*{1,2}(?!\w))", re.DOTALL
)


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


_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_ENTRY = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?:( : .*))?$")


def numpydoc(lines: list[str], places: Iterable[str] = ()) -> list[str]:
    r"""Return a docstring with numpydoc's sections as RST: what stands before them, then each below a small heading.

    >>> print("\n".join(numpydoc(["Solve", "", "Parameters", "----------", "coef_ : array", "    w.", "", "Not `y`."])))
    Solve
    <BLANKLINE>
    .. rubric:: Parameters
    <BLANKLINE>
    ``coef_`` : array
        w.
    <BLANKLINE>
    Not ``y``.
    """
    first, *rest = _SECTION.split("\n".join(lines))
    out = as_rst(first.split("\n"), places)
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        text = body.strip("\n").split("\n")
        prose = title in ("Examples", "Notes", "References", "See Also")
        out += ["", f".. rubric:: {title}", "", *(as_rst(text, places) if prose else _entries(text, places))]
    return _squeezed(out)


def _entries(lines: list[str], places: Iterable[str]) -> list[str]:
    """Return the entries of a section as definitions; what follows them without a heading is prose again."""
    out: list[str] = []
    while lines:
        head, body = lines[0], list(takewhile(lambda line: not line or line[0] == " ", lines[1:]))
        named = _ENTRY.match(head)
        if head.startswith(">>>") or not (named or "".join(body)):
            return [*out, "", *as_rst(lines, places)]
        term = ", ".join(f"``{name}``" for name in named[1].split(", ")) if named else inline(head, places)
        out += ["", term + inline(named[2] or "", places) if named else term]
        out += [f"    {line}".rstrip() for line in as_rst(dedent("\n".join(body)).split("\n"), places)]
        lines = lines[1 + len(body) :]
    return [*out, ""]
