"""A full disk under every output of every command: one sentence, nothing by half, and no success.

What a command writes is found from the command line itself, so that a new output cannot be forgotten here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module

import click
import pytest

from nerm.cli import cli
from nerm.cli.console import ended
from tests.cli.conftest import ROLES
from tests.cli.test_bad_input import refused

#: What stands for the value of an option in its help: files and folders, and what is none.
FILES = ("FILE", "MODEL", "FOLDER")
NO_FILES = {
    None, "COLUMN", "VALUE", "TEXT", "NAMES", "NAME", "NUMBERS", "WHERE", "ADDRESS"
}  # fmt: skip
INPUTS = {
    ("audit", "--model"),
    ("fit", "--head"),
    ("reproduce", "--data-home"),
}  # files and folders that are only read

CONVERGENCE = ("reproduce", "convergence", "--n", "40", "--repetitions", 1, "--folds", 2, "--jobs", 1)
COMPARISON = ("solvers", "--compare", "--quick")
#: A quick run of every command, with TABLE and MODEL for files that are there.
QUICK = {
    "fit": ("fit", "TABLE", *ROLES, "--eta", 0.5),
    "predict": ("predict", "MODEL", "TABLE"),
    "audit": ("audit", "TABLE", *ROLES, "--score", "hours", "--threshold", 40),
    "tradeoff": ("tradeoff", "TABLE", *ROLES, "--budget", "1", "--etas", "0,1"),
    "bound": ("bound", "TABLE", *ROLES),
    "solvers": ("solvers",),
    "reproduce": CONVERGENCE,
    "demo": ("demo",),
}
ENDINGS = {
    "--out": "m.nerm",
    "--save": "m.nerm",
    "--results": "r.csv",
    "--figure": "f.svg",
    "--report": "r.html",
}
LONG = {"demo", "solvers", "reproduce"}


def outputs():
    """Return (command, option) for every option that names a file or a folder to write."""
    found = []
    for command in cli.commands.values():
        for option in command.params:
            if isinstance(option, click.Option) and not option.is_flag:
                kind = (command.name, option.opts[0])
                named = option.metavar is not None and option.metavar.startswith(FILES)
                assert named or option.metavar in NO_FILES, (
                    f"say whether {kind} names a file: {option.metavar!r}"
                )
                found += [kind] if named and kind not in INPUTS else []
    return found


def marked(command, *more):
    return pytest.param(command, *more, marks=[pytest.mark.long] * (command in LONG))


OUTPUTS = [marked(*output) for output in outputs()]


@pytest.fixture
def small_comparison(monkeypatch):
    """Make --compare --quick run one solver on one small problem, and the demo fit one limit."""
    from nerm import solvers
    from nerm.experiments import compare

    smo = solvers.known()["smo"]
    monkeypatch.setattr(compare, "cases", lambda which: [compare.Case("tiny", "size", n=20, d=2)])
    monkeypatch.setattr("nerm.solvers.available", lambda: {"smo": smo})
    monkeypatch.setattr(import_module("nerm.cli.fit"), "LIMITS", (0.1, 0.05))


@pytest.fixture
def arguments(nerm, data, tmp_path):
    """Return a function that puts the files that are needed in the place of their names."""
    files = {"TABLE": data, "MODEL": tmp_path / "given.nerm"}

    def made(command, option=None, folder=None):
        if command == "predict":
            assert nerm(*made("fit"), "--out", files["MODEL"], "-q").code == 0
        words = COMPARISON if command == "solvers" and option else QUICK[command]
        given = (
            [] if option is None else [option, folder if option == "--folder" else folder / ENDINGS[option]]
        )
        return [str(files.get(word, word)) for word in (*words, *given)]

    return made


def test_all_commands_and_outputs_are_here():
    assert set(QUICK) == set(cli.commands)
    assert {option for _, option in outputs()} == {*ENDINGS, "--folder"}


@pytest.mark.usefixtures("small_comparison")
@pytest.mark.parametrize(("command", "option"), OUTPUTS)
def test_an_output_on_a_full_disk(nerm, arguments, tmp_path, monkeypatch, command, option):
    """Nothing reaches the disk; an older file stays as it was (of results, which are gone on from, there is none)."""

    def full(number):
        raise OSError(28, "No space left on device")

    folder = tmp_path / "out"
    folder.mkdir()
    words = arguments(command, option, folder)
    old = (
        {"f.svg": "old", "m.nerm": "old", "r.html": "old"} if option not in ("--folder", "--results") else {}
    )
    for name, text in old.items():
        (folder / name).write_text(text)
    monkeypatch.setattr(os, "fsync", full)
    refused(nerm(*words, "-q"), "No space left on device")
    assert {path.name: path.read_text() for path in folder.iterdir()} == old


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.usefixtures("small_comparison")
@pytest.mark.parametrize(
    ("command", "more"),
    [marked(command, ()) for command in sorted(QUICK)]
    + [marked(command, ("--json",)) for command in ("fit", "audit", "tradeoff", "solvers")],
)
def test_standard_output_on_a_full_disk(arguments, tmp_path, monkeypatch, capsys, command, more):
    monkeypatch.chdir(tmp_path)
    words = [*arguments(command), *more, "-q"]
    capsys.readouterr()
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        code = ended(cli, words)
    disk_is_full(code, capsys.readouterr().err)


LIMITED = """
import resource, sys
from nerm.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
main(sys.argv[1:])
"""


def disk_is_full(code, err):
    """Hold an ended command against what is promised: one sentence, and no success."""
    said = err.strip().splitlines()
    assert code == 2, err
    assert len(said) == 1, err
    assert said[0].startswith("nerm: ")
    assert "Traceback" not in err
    assert "File too large" in err or "No space left" in err


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="how a full disk is feigned here")
@pytest.mark.parametrize(("command", "option"), [output for output in outputs() if output[0] != "solvers"])
def test_the_same_in_a_process_that_may_write_a_hundred_bytes(arguments, tmp_path, command, option):
    """No write is replaced here: the system refuses them."""
    folder = tmp_path / "out"
    folder.mkdir()
    line = [sys.executable, "-c", LIMITED, *arguments(command, option, folder), "-q"]
    environment = {**os.environ, "MPLCONFIGDIR": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "none")}
    ran = subprocess.run(line, capture_output=True, env=environment, check=False)
    disk_is_full(ran.returncode, ran.stderr.decode())
    assert list(folder.iterdir()) == []


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("words", [("solvers",), ("--help",)], ids=" ".join)
def test_a_process_whose_standard_output_is_full(words):
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "nerm", *words], stdout=full, stderr=subprocess.PIPE, check=False
        )
    disk_is_full(ran.returncode, ran.stderr.decode())
