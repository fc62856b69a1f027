"""The commands of the README and of the guide run as they are written."""

from __future__ import annotations

import re
import shlex
from importlib import resources
from pathlib import Path

import pytest

from nerm.cli import cli

ROOT = Path(__file__).parents[2]
COMMANDS = ("tradeoff", "fit", "predict", "audit")
PAGES = ("README.md", "docs/howto/table.md", *(f"docs/commands/{name}.md" for name in COMMANDS))


def commands(page: str) -> list[list[str]]:
    """Return the words of the `nerm` commands in the shell blocks of a page."""
    blocks = re.findall(r"```bash\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("nerm ")]


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_understood(page):
    assert commands(page)
    for name, *words in commands(page):
        cli.commands[name].make_context(name, words)  # an unknown option or a missing one raises


@pytest.mark.slow
def test_commands_run_as_they_are_written(nerm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("nerm-demo.csv").write_bytes(resources.files("nerm.cli").joinpath("demo.csv").read_bytes())
    for words in dict.fromkeys(tuple(words) for page in PAGES for words in commands(page)):
        ran = nerm(*words)
        assert ran.code == 0, (words, ran.err)
    assert {path.name for path in tmp_path.iterdir()} >= {"front.html", "model.nerm", "scored.csv"}
