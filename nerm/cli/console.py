"""Output of all commands: results on standard output, notes on standard error, errors in one sentence.

Results are tables and sentences for readers, or JSON for programs.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

import nerm.report
from nerm.errors import InvalidInputError, NermError, NotNeutralError, NotSolvedError, advice_sentence
from nerm.files import write_atomically

BAD_INPUT, NOT_CERTIFIED, COLLAPSED, NOT_NEUTRAL, INTERRUPTED = 2, 3, 4, 5, 130
WIDTH = 110  # of help, and of tables that go to a file or a pipe
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # all but tabs and line ends
#: By parameter of the library, the name that messages of the commands use for it.
OPTIONS = {name: f"--{name}" for name in ("limit", "lam", "surrogate", "confidence")}
OPTIONS |= {"class_weight": "--class-weight", "rows": "rows"}


class _Notes(logging.Handler):
    """Print the messages that nerm logs as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        _say(f"note: {record.getMessage()}")


_NOTES = _Notes()  # the same object in every call: a logger keeps it once


def ended(command: click.Command, arguments: Sequence[str] | None) -> int:
    """Run a command and return its exit code; expected errors become one sentence on standard error."""
    logging.getLogger("nerm").addHandler(_NOTES)
    logging.getLogger("nerm").setLevel(logging.INFO)
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: _say(f"note: {message}")
        try:
            code = command.main(args=arguments, prog_name="nerm", standalone_mode=False)
            sys.stdout.flush()
            return code if isinstance(code, int) else 0
        except click.exceptions.NoArgsIsHelpError as error:
            print(error.format_message(), file=sys.stderr)
            return BAD_INPUT
        except click.ClickException as error:
            ctx = getattr(error, "ctx", None)  # of an option or argument that cannot be used
            more = f" Try 'nerm {ctx.info_name} --help'." if ctx and ctx.parent else ""
            _say(" ".join(error.format_message().split()) + more)
            return BAD_INPUT
        except NotNeutralError as error:
            failed, closest, _ = error.parts
            _say(in_words(f"{failed}. {closest}. {advice_sentence(error.advice, OPTIONS)}."))
            return NOT_NEUTRAL
        except NermError as error:
            _say(" ".join(str(error).split()))
            return NOT_CERTIFIED if isinstance(error, NotSolvedError) else BAD_INPUT
        except (click.Abort, KeyboardInterrupt):
            _say("Interrupted.")
            return INTERRUPTED
        except BrokenPipeError:  # the reader, such as head, has seen enough
            _leave_stdout()
            return 0
        except OSError as error:
            where = f"{error.filename!r}" if error.filename else "the output"
            _say(f"{where} must be a file that can be written. Got {error.strerror}. Choose another place.")
            _leave_stdout()
            return BAD_INPUT


def _leave_stdout() -> None:
    """Redirect standard output to the null device, so that Python does not fail when it flushes at exit."""
    with suppress(OSError, ValueError):  # standard output may have no file descriptor, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def in_words(text: str) -> str:
    """Return a sentence of the library with the names of measures replaced by words.

    >>> in_words("the calders_verwer_score of new rows")
    'the difference in positive rates of new rows'
    """
    for metric in (*nerm.metrics.limitable().values(), nerm.report.fitting.MEAN_DIFFERENCE):
        text = text.replace(metric.name, metric.words)
    return text


def _say(text: str) -> None:
    with suppress(OSError):  # standard error cannot be written
        print(f"nerm: {escaped(text)}", file=sys.stderr, flush=True)


def escaped(text: str) -> str:
    r"""Return a text with control characters, which could change a terminal, escaped as in JSON.

    >>> print(escaped("a\x1b[31mred\x9b2J"))
    a\u001b[31mred\u009b2J
    """
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@dataclass(frozen=True)
class Console:
    """A printer of the results and notes of a command.

    `as_json` and `quiet` are the options --json and --quiet of the command.
    """

    as_json: bool = False
    quiet: bool = False

    def note(self, text: str) -> None:
        """Print a note on standard error, unless --quiet is given."""
        if not self.quiet:
            _say(text)

    def notes(self, texts: Sequence[str], most: int = 12) -> None:
        """Print the first `most` notes, and how many more there are."""
        for text in texts[:most]:
            self.note(text)
        if len(texts) > most:
            self.note(f"and {len(texts) - most} more such notes (all of them with --json)")

    def result(
        self, plain: dict[str, Any], *shown: Any, files: Mapping[str, str | None] | None = None
    ) -> None:
        """Print the result: tables and sentences for readers, or one JSON object for programs.

        Parameters
        ----------
        plain
            The result as plain data, for JSON.
        shown
            The result as tables and sentences; None is left out.
        files
            By kind ("report", "figure", ...), the path of each written file; None if it was not written.
        """
        if files is not None:
            written = {kind: path for kind, path in files.items() if path is not None}
            plain = {**plain, "files": written}
            hints = {"report": " (open it in a browser and click a point)"}
            told = (f"{kind.capitalize()}: {path}{hints.get(kind, '')}" for kind, path in written.items())
            shown = (*shown, *told)
        if self.as_json:
            text = json.dumps(plain, default=lambda scalar: scalar.item())  # of numpy
            finite = json.loads(text, parse_constant=lambda _: None)  # null for nan and infinity
            print(escaped(json.dumps(finite, indent=2)))
            return
        from rich.console import Console as Rich

        class Terminal(Rich):
            def on_broken_pipe(self) -> None:  # rich would exit with code 1; `ended` handles it
                raise BrokenPipeError

        width = None if sys.stdout.isatty() else WIDTH
        terminal = Terminal(width=width, highlight=False, markup=False, emoji=False)
        for thing in shown:
            if thing is not None:
                terminal.print(escaped(thing) if isinstance(thing, str) else thing)

    def text(self, text: str) -> None:
        """Write a part of a text result to standard output; escape control characters on a terminal."""
        click.echo(escaped(text) if sys.stdout.isatty() else text, nl=False)

    @contextmanager
    def progress(self, title: str) -> Iterator[Callable[[str], None]]:
        """Yield a function that shows the current step on standard error, if that is a terminal."""
        if self.quiet or not sys.stderr.isatty():
            yield lambda _: None
            return
        from rich.console import Console as Rich
        from rich.text import Text

        with Rich(stderr=True).status(Text(title)) as status:
            yield lambda text: status.update(Text(f"{title}: {text}"))

    def code(self, points: Sequence[nerm.report.Point], *, collapsed: bool) -> int:
        """Return the exit code for these points; a note names the models that were not certified.

        Parameters
        ----------
        points
            The points of a study.
        collapsed
            Whether the result is a model that is nearly constant or whose positive rate collapsed.
        """
        statuses = [(point.label, point.model.solution.status.value) for point in points if point.model]
        bad = [f"{label} ({status})" for label, status in statuses if status not in ("optimal", "stationary")]
        if bad:
            self.note(f"not certified: {', '.join(bad)}")
        return NOT_CERTIFIED if bad else COLLAPSED if collapsed else 0

    def study(self, study: nerm.report.Study, command: str, files: Mapping[str, str | None]) -> int:
        """Write the figure and the report of a study, print its results, and return the exit code.

        Parameters
        ----------
        study
            The study.
        command
            The command that the report names as its source.
        files
            Paths by kind of file; "figure" and "report" are written here, unless they are None.
        """
        if files["figure"] is not None:
            write_text(files["figure"], nerm.report.figure_svg(study))
        if files["report"] is not None:
            write_text(files["report"], nerm.report.render_page(study, command))
        again = None if study.recommended is None else f"This model again: {study.recommended.command}"
        legend = nerm.report.render("legend.txt.j2", study=study, compared=_compared(study.task))
        shown = study.warning(), _front_table(study), legend, "", nerm.report.sentence(study), again
        self.result(_study_json(study), *shown, files=files)
        return self.code(study.points, collapsed=study.recommended is None)


def make_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> Any:
    """Return a rich table whose first `left` columns are words and the others numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    # Text, never str: rich would interpret [markup] in the column names of a table
    heading = Text(escaped(title), style="bold")
    narrow: dict[str, Any] = {"pad_edge": False, "padding": (0, 1, 0, 0), "show_edge": False}
    table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, **narrow)
    for j, column in enumerate(columns):
        table.add_column(Text(escaped(column)), justify="left" if j < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(escaped(cell)) for cell in row))
    return table


def check_places(inputs: Mapping[str, str | None], outputs: Mapping[str, str | None]) -> None:
    """Raise an error if an output cannot be written, or is the same file as an input or another output.

    `inputs` and `outputs` are paths by the name that the error uses, None for files that are not used.
    """
    taken = {os.path.realpath(path): name for name, path in inputs.items() if path is not None}
    for option, path in outputs.items():
        if path is None:
            continue
        place, folder = os.path.realpath(path), Path(path).parent
        wrong = {
            f"be another file than {taken.get(place)}": place in taken,
            "name a file, no folder": Path(path).is_dir(),
            f"be in a folder that exists (there is no folder {str(folder)!r})": not folder.is_dir(),
            "be in a folder that can be written": not os.access(folder, os.W_OK),
        }
        for must, found in wrong.items():
            if found:
                raise InvalidInputError(f"{option} must {must}", repr(path), "Choose another place")
        taken[place] = option


def write_text(path: str, text: str) -> None:
    """Write a text file; a failure leaves no partial file."""
    with write_atomically(path, "w", encoding="utf-8", newline="") as stream:
        stream.write(text)


def _groups_json(point: nerm.report.Point) -> dict[str, Any]:
    groups = [
        {"name": g.name, "rows": g.rows, **g.rates, "intervals": g.intervals, "few": g.few}
        for g in point.groups
    ]
    return {"groups": groups, "differences": [asdict(difference) for difference in point.differences]}


def measured(point: nerm.report.Point, rows: str) -> tuple[dict[str, Any], list[Any]]:
    """Return a point's measures, its rates by group and differences, as plain data and as tables.

    Parameters
    ----------
    point
        The scores with their measures.
    rows
        Description of the rows, for the title.
    """
    task, display = point.task, point.display
    lines = []
    for name, words in display.measures.items():
        words += f" (one decision for all: {point.of_one_decision:.4f})" if name == "accuracy" else ""
        value = point.undefined.get(name) or display.text(point.measures[name], digits=4)
        lines.append([words, value, _interval(display, point.intervals.get(name))])
    title = f"{task.outcome} by {task.viewpoint.column}: {rows}; {_compared(task)}"
    tables = [make_table(title, ["measure", "value", "95 % interval"], lines)]
    lines = []
    for g in point.groups:
        rates = [f"{display.text(r)}\n{_interval(display, g.intervals[n], 2)}" for n, r in g.rates.items()]
        lines.append([g.name, f"{g.rows:,}" + _few(g.few), *rates])
    title = f"{display.averages} by group, with 95 % intervals"
    tables.append(make_table(title, ["group", "rows", *display.heads(task)], lines))
    if len(point.differences) > 1:
        lines = []
        for d in point.differences:
            value = display.text(d.value, display.difference) + _few(d.few)
            lines.append([d.one, d.other, value, _interval(display, d.interval)])
        title = f"Differences in {display.compared}; the last is the largest between two groups"
        tables.append(make_table(title, ["", "against", "difference", "95 % interval"], lines, left=2))
    if any(g.few for g in point.groups):
        doubts = {d.few for d in point.differences}
        worst = "; so may the measures above" if doubts == {True} else ""
        worst = "; the measures above leave such groups out" if len(doubts) > 1 else worst
        tables.append(f"(few): below {nerm.tables.roles.FEW_ROWS} rows, so it may be chance{worst}.")
    plain = {"target": asdict(task.target), "viewpoint": asdict(task.viewpoint), "measures": point.measures}
    plain |= {"intervals": point.intervals, "undefined": point.undefined, **_groups_json(point)}
    return plain, tables


def impact_table(ratios: Sequence[Mapping[str, Any]]) -> Any:
    """Return the table of selection rates and impact ratios, as New York's Local Law 144 has it."""
    lines = []
    for r in ratios:
        shares = [f"{r[name]:.3f}" for name in ("rate", "impact_ratio")]
        lines.append([r["name"], f"{r['rows']:,}{_few(r['few'])}", f"{r['selected']:,}", *shares])
    title = "Impact ratios: positive rate divided by the highest"
    if not any(r["few"] and r["impact_ratio"] == 1 for r in ratios):
        title += "; groups of few rows are no reference"
    return make_table(title, ["group", "rows", "decided so", "rate", "impact ratio"], lines)


def _few(is_few: bool) -> str:
    """Return the mark that tables show for a group with few rows; "" for others."""
    return " (few)" if is_few else ""


def _compared(task: nerm.tables.TableTask) -> str:
    """Return which group has v = +1, in words."""
    if len(task.terms) == 1:
        return f"v = +1 is {task.viewpoint.group(1)}"
    return "each group is v = +1 once, and the least neutral value is shown"


def _interval(display: nerm.report.Display, ends: tuple[float, float] | None, digits: int = 3) -> str:
    """Format an interval for a table; "" if there is none."""
    return "" if ends is None else " … ".join(display.text(end, digits=digits) for end in ends)


def stated(statements: Iterable[nerm.bounds.Statement], delta: float) -> tuple[list[Any], list[Any]]:
    """Return bounds as plain data, and as a table and one line about those without content.

    Parameters
    ----------
    statements
        The bounds.
    delta
        Probability with which each may fail.
    """
    every = list(statements)
    names = ("quantity", "source", "on_sample", "bound", "vacuous", "holds")
    plain = [{**{name: getattr(s, name) for name in names}, "note": s.remark} for s in every]
    filled, empty = nerm.report.page.with_content(every)
    fixed = nerm.report.fixed
    rows = [[s.quantity, s.source, s.remark, fixed(s.on_sample, 4), fixed(s.bound, 4)] for s in filled]
    title = f"Bounds, each with probability {1 - delta:g}"
    table = make_table(title, ["quantity", "by", "note", "on these rows", "bound"], rows, left=3)
    return plain, [table if rows else None, empty]


def _front_table(study: nerm.report.Study) -> Any:
    """Return the trade-off table, one row per model; recommended and collapsed models are marked."""
    aim, display, rows = study.settings.aim, study.display, list[list[str]]()
    columns = {**display.columns, aim.name: display.columns.get(aim.name, aim.words)}
    heads = [words.removesuffix(f" in {display.compared}") for words in columns.values()]  # explained below
    at = len(display.columns)
    for p in (*study.points, *study.others):
        mark = "→" if p is study.recommended else "×" if p.collapse and p.model else ""
        cells = [display.text(p.measures[name]) for name in columns]
        cells.insert(at, _interval(display, p.intervals.get(display.difference), 2))
        rows.append([f"{mark:1} {p.label}", *cells, p.certified.replace("stationary", "local")])
    heads.insert(at, "95 % interval")
    title = f"{study.task.outcome}, neutral to {study.task.viewpoint.column}"
    return make_table(title, ["  model", *heads, "gap"], rows)


def _study_json(study: nerm.report.Study) -> dict[str, Any]:
    """Return a study as plain data."""
    best = study.recommended
    return {
        "rows": len(study.task),
        "target": asdict(study.task.target),
        "viewpoint": asdict(study.task.viewpoint),
        "recipe": study.recipe.summary(),
        "objective": study.formula,
        "settings": asdict(study.settings),
        "lam_form": "mean",
        "measured": study.how_measured,
        "aim": study.settings.aim.name,
        "chosen": None if best is None else best.label,
        "command": None if best is None else best.command,
        "warning": study.warning(),
        "sentence": nerm.report.sentence(study),
        "points": [point_json(study, point) for point in study.points],
        "others": [{"method": o.label, **o.measures, "intervals": o.intervals} for o in study.others],
        "notes": list(study.notes),
        "seconds": study.seconds,
    }


def point_json(study: nerm.report.Study, p: nerm.report.Point) -> dict[str, Any]:
    """Return one point of a study as plain data; fields of the model are None if it has no model."""
    model, solution = p.model, None if p.model is None else p.model.solution
    return {
        "label": p.label,
        "limit": model and model.level.limit,
        "eta": model and model.eta,
        **p.measures,
        "intervals": p.intervals,
        "collapse": p.collapse,
        "training": p.training,
        "certified_gap": solution and solution.certificate.relative_gap,
        "status": solution and solution.status.value,
        "solver": solution and solution.stats.solver,
        **_groups_json(p),
        "per_1000": p.decisions,
        "bounds": stated(study.statements(p), study.settings.delta)[0],
        "command": p.command or None,
    }
