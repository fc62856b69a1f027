"""The project's own promises: the gate runs the README's commands, modules import only upwards, no cvxpy at import."""

from __future__ import annotations

import ast
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
    code = "import sys, nerm; print(sorted({'cvxpy', 'clarabel', 'sklearn', 'numba', 'pandas'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def top_level_imports(path):
    """Return the nerm modules that a file imports when it is imported itself (not inside functions)."""
    tree = ast.parse(path.read_text())
    found = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("nerm"):
            found.append(node.module)
    return found


def test_the_core_does_not_look_down():
    """What stands lower in the house is never imported by what stands above it."""
    lower = ("nerm.modelling", "nerm.solvers", "nerm.svm", "nerm.engine", "nerm.estimators", "nerm.baselines")
    upper = [*(ROOT / "nerm" / "atoms").glob("*.py")]
    upper += [
        ROOT / "nerm" / f"{m}.py" for m in ("algebra", "objective", "hypothesis", "problem", "certificate", "recovery")
    ]
    for path in upper:
        assert not [m for m in top_level_imports(path) if m.startswith(lower)], path.name
    for path in (ROOT / "nerm" / "svm").glob("*.py"):
        assert not [m for m in top_level_imports(path) if m.startswith("nerm.modelling")], path.name


def test_version_is_stated_once_in_effect():
    pyproject = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{nerm.__version__}"' in pyproject
    assert f"version: {nerm.__version__}" in (ROOT / "CITATION.cff").read_text()
