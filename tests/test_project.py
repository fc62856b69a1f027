"""The project's own promises: the gate runs the README's commands, and importing nerm imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nerm

ROOT = Path(nerm.__file__).parent.parent


def test_the_readme_has_the_two_commands_that_the_gate_reads():
    readme = (ROOT / "README.md").read_text()
    for name in ("main", "tests"):
        mark = f"<!-- command: {name} -->\n```bash\n"
        assert mark in readme
        assert readme.split(mark)[1].split("\n```")[0].strip()
    assert "command_of" in (ROOT / ".ci" / "run").read_text()


def test_importing_nerm_imports_no_cvxpy_and_no_solver():
    heavy = {"cvxpy", "clarabel", "scipy", "sklearn", "numba", "pandas", "matplotlib"}
    code = f"import sys, nerm; print(sorted({heavy} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
