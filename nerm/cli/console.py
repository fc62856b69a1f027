"""What every command shares: results on standard output, notes on standard error, errors in one sentence."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import secrets
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nerm.errors import InvalidInputError, NermError, NotNeutralError, NotSolvedError, advice_sentence
from nerm.files import write_atomically

if TYPE_CHECKING:
    from rich.table import Table

BAD_INPUT, NOT_CERTIFIED, COLLAPSED, NOT_NEUTRAL, INTERRUPTED = 2, 3, 4, 5, 130
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a disk, a quota, or what a process may write
HINTS = {"report": " (open it in a browser and click a point)"}
WIDTH = 110  # of tables that go to a file or a pipe
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # all but tabs and line ends


def ended(command: click.Command, arguments: Sequence[str] | None) -> int:
    """Run a command and return its exit code; expected errors become one sentence on standard error."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: _say(f"note: {message}")
        try:
            code = command.main(args=arguments, prog_name="nerm", standalone_mode=False)
            sys.stdout.flush()
            return code if isinstance(code, int) else 0
        except click.exceptions.NoArgsIsHelpError as error:
            print(error.format_message(), file=sys.stderr)
            return BAD_INPUT
        except (click.ClickException, NermError) as error:
            said = error.format_message() if isinstance(error, click.ClickException) else str(error)
            ctx = getattr(error, "ctx", None)  # of an option or argument that cannot be used
            if isinstance(error, NotNeutralError):
                failed, closest, _ = error.parts
                said = in_words(f"{failed}. {closest}. {advice_sentence(error.advice, OPTIONS)}.")
            _say(
                " ".join(said.split())
                + (f" Try 'nerm {ctx.info_name} --help'." if ctx and ctx.parent else "")
            )
            codes = {NotNeutralError: NOT_NEUTRAL, NotSolvedError: NOT_CERTIFIED}
            return next((code for kind, code in codes.items() if isinstance(error, kind)), BAD_INPUT)
        except (click.Abort, KeyboardInterrupt):
            _say("Interrupted.")
            return INTERRUPTED
        except BrokenPipeError:  # the reader, such as head, has seen enough
            _leave_stdout()
            return 0
        except OSError as error:
            if error.errno not in FULL:
                raise
            where = f" for {error.filename!r}" if error.filename else ""
            _say(f"the disk must have space. Got {error.strerror}{where}. Free some, or write elsewhere.")
            _leave_stdout()
            return BAD_INPUT


def _leave_stdout() -> None:
    """Send nowhere what is still on its way to standard output: Python would try again when it ends."""
    with suppress(OSError, ValueError):  # a test's standard output has no number
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


#: By parameter of the library, the option of the command; other parameters have none.
OPTIONS = {
    "limit": "--limit",
    "lam": "--lam",
    "surrogate": "--surrogate",
    "class_weight": "--class-weight",
    "confidence": "--confidence",
    "rows": "rows",
}


def in_words(text: str) -> str:
    """Return a sentence of the library with the measures named in words.

    >>> in_words("the calders_verwer_score of new rows")
    'the difference in positive rates of new rows'
    """
    from nerm.metrics import limitable

    for name, metric in limitable().items():
        text = text.replace(name, metric.words)
    return text


def _say(text: str) -> None:
    with suppress(OSError):  # nowhere left to complain
        print(f"nerm: {escaped(text)}", file=sys.stderr, flush=True)


def escaped(text: str) -> str:
    r"""Return a text whose control characters, which could steer a terminal, are written out as in JSON.

    >>> print(escaped("a\x1b[31mred\x9b2J"))
    a\u001b[31mred\u009b2J
    """
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@dataclass(frozen=True)
class Console:
    """Where a command speaks: `as_json` and `quiet` are its options."""

    as_json: bool = False
    quiet: bool = False

    def note(self, text: str) -> None:
        """Say something on standard error that is not the result."""
        if not self.quiet:
            _say(text)

    def notes(self, texts: Sequence[str], most: int = 12) -> None:
        """Say several things, and how many more there would be."""
        for text in texts[:most]:
            self.note(text)
        if len(texts) > most:
            self.note(f"and {len(texts) - most} more such notes (all of them with --json)")

    def result(
        self, plain: Mapping[str, Any], *shown: Table | str, files: Mapping[str, str | None] | None = None
    ) -> None:
        """Print the result: tables and sentences for people, or one JSON object for machines.

        Parameters
        ----------
        plain, shown
            The two forms of the result.
        files
            What was written, by kind; None marks what was not.
        """
        if files is not None:
            written = {kind: path for kind, path in files.items() if path is not None}
            plain = {**plain, "files": written}
            shown = (
                *shown,
                *(f"{kind.capitalize()}: {path}{HINTS.get(kind, '')}" for kind, path in written.items()),
            )
        if self.as_json:
            narrow = (
                not (sys.stdout.encoding or "utf-8").lower().startswith("utf")
            )  # would lose letters: \u escapes
            print(escaped(json.dumps(jsonable(plain), ensure_ascii=narrow, indent=2, allow_nan=False)))
            return
        from rich.console import Console as Rich

        class Terminal(Rich):
            def on_broken_pipe(self) -> None:  # rich would exit with code 1; `ended` knows better
                raise BrokenPipeError

        width = None if sys.stdout.isatty() else WIDTH
        terminal = Terminal(width=width, highlight=False, markup=False, emoji=False)
        for thing in shown:
            terminal.print(escaped(thing) if isinstance(thing, str) else thing)

    def text(self, text: str) -> None:
        """Write a part of a result that is a file of text: as it is, but for what would steer a terminal."""
        if sys.stdout.isatty():
            text = escaped(text)
        try:
            text.encode(sys.stdout.encoding or "utf-8")
        except UnicodeEncodeError:
            self.note(
                "standard output has no way to write some letters, so they are '?'; --out writes them all"
            )
        click.echo(text, nl=False)

    @contextmanager
    def progress(self, title: str) -> Iterator[Callable[[str], None]]:
        """Show on a terminal's standard error what is being done; say nothing elsewhere."""
        if self.quiet or not sys.stderr.isatty():
            yield lambda _: None
            return
        from rich.console import Console as Rich
        from rich.text import Text

        with Rich(stderr=True).status(Text(title)) as status:
            yield lambda text: status.update(Text(f"{title}: {text}"))

    def code(self, statuses: Mapping[str, str], *, collapsed: bool = False) -> int:
        """Return the exit code of answers with these statuses, and name those that were not certified.

        Parameters
        ----------
        statuses
            By the answer's name.
        collapsed
            Whether the answer is a model that is nearly constant, or whose positive rate collapsed.
        """
        bad = [
            f"{name} ({status})"
            for name, status in statuses.items()
            if status not in ("optimal", "stationary")
        ]
        if bad:
            self.note(f"not certified: {', '.join(bad)}")
        return NOT_CERTIFIED if bad else COLLAPSED if collapsed else 0


def jsonable(thing: Any) -> Any:
    """Return a thing made of what JSON knows; numbers that are not finite become null.

    >>> jsonable({"a": float("nan"), "b": (1, 2.5)})
    {'a': None, 'b': [1, 2.5]}
    """
    if isinstance(thing, Mapping):
        return {str(key): jsonable(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [jsonable(value) for value in thing]
    if hasattr(thing, "item") and getattr(thing, "ndim", 1) == 0:
        thing = thing.item()
    if isinstance(thing, float):
        return thing if math.isfinite(thing) else None
    return thing


def make_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> Table:
    """Return a rich table whose first `left` columns are words and the others numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    # Text, never str: rich would read [markup] in the names of people's columns
    table = Table(
        title=Text(escaped(title), style="bold"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for j, column in enumerate(columns):
        table.add_column(Text(escaped(column)), justify="left" if j < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(escaped(cell)) for cell in row))
    return table


def number(value: float, digits: int = 3) -> str:
    """Return a number for a table; a dash where it is not defined."""
    return f"{value:.{digits}f}" if math.isfinite(value) else "–"


def check_writable(path: str | os.PathLike[str] | None, option: str) -> None:
    """Refuse a place that cannot be written, before any work is done for it."""
    if path is None:
        return
    target = Path(path)
    if target.is_dir():
        raise InvalidInputError(
            f"{option} must name a file", f"the folder {str(path)!r}", "Add a file name to it"
        )
    folder = target.parent
    if not folder.is_dir():
        must = f"{option} must be in a folder that exists"
        raise InvalidInputError(must, f"no folder {str(folder)!r}", "Make it, or choose another")
    probe = folder / f".nerm-{secrets.token_hex(6)}.tmp"
    with refusing_unwritable(path, option):
        probe.touch(exist_ok=False)
        probe.unlink()


def check_places(inputs: Mapping[str, str | None], outputs: Mapping[str, str | None]) -> None:
    """Refuse outputs that cannot be written, or that are an input or another output."""
    taken = {os.path.realpath(path): name for name, path in inputs.items() if path is not None}
    for option, path in outputs.items():
        check_writable(path, option)
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in taken:
            must = f"{option} must be another file than {taken[place]}"
            raise InvalidInputError(must, f"{path!r} for both", "Choose another place")
        taken[place] = option


def write_text(path: str | os.PathLike[str], text: str, option: str = "--out") -> None:
    """Write a text file, all of it or nothing."""
    with (
        refusing_unwritable(path, option),
        write_atomically(path, "w", encoding="utf-8", newline="") as stream,
    ):
        stream.write(text)


@contextmanager
def refusing_unwritable(path: str | os.PathLike[str], option: str) -> Iterator[None]:
    """Say in one sentence that a place, named by an option, cannot be written."""
    try:
        yield
    except OSError as error:
        must = f"{option} must be a file that can be written"
        raise InvalidInputError(
            must, f"{error.strerror or error} for {str(path)!r}", "Choose another place"
        ) from None
