"""Do the tests notice when the code is wrong? Run `python -m tests.mutants --seconds 1800 [--seed 0] [--only kernels]`.

A mutant is the package with one operator, comparison or number changed, in a copy of the project. The quick tests of
its area run on it. One that passes them all survives: kill it with a test, or list it in EQUIVALENT with a word why.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import random
import resource
import shutil
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parent.parent
MOST_MEMORY = 4_000_000_000  # bytes for the tests of one mutant
JUDGE = ["tests/test_certificate.py", "tests/test_feasibility.py", "tests/test_conjugates.py"]
AREAS = {
    "atoms/*": [
        "tests/contracts/test_every_margin_function.py",
        "tests/contracts/test_every_regularizer.py",
        "tests/atoms",
    ],
    "blocks": ["tests/test_problem.py", *JUDGE[:1]],
    "certificate": JUDGE,
    "slack": JUDGE[:1],
    "rounding": ["nerm/rounding.py", "tests/test_kernels.py", *JUDGE[:1]],
    "recovery": JUDGE[:1],
    "feasibility": JUDGE,
    "conjugates": JUDGE,
    "weights": ["tests/test_weights.py"],
    "metrics": ["tests/test_metrics.py"],
    "bounds/*": ["tests/bounds"],
    "baselines/*": ["tests/baselines"],
    "kernels": ["tests/test_kernels.py"],
    "engine/*": ["tests/engine"],
    "neutralize/*": ["tests/neutralize"],
}
SWAPS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
EQUIVALENT = {  # (module, the changed line as it was): one word why
    ("feasibility.py", "thetas = np.clip(np.nan_to_num(multipliers.thetas, nan=0.5), 0.0, 1.0)"): "start",  # any theta
    ("conjugates.py", "STEPS = 500  # of projected gradients on the split among norms"): "effort",
    (
        "atoms/custom_regularizer.py",
        "good = np.isfinite(values) & (values >= -1e-9) & (abs(values[0]) <= 1e-9)",
    ): "tolerance",
    ("metrics.py", "return np.where(v == groups[1], 1.0, -1.0)"): "absolute",  # of a scorer only |measure| is left
    (
        "slack.py",
        "places = np.unique(np.linspace(0, len(u) - 1, SAMPLE).astype(int)) if len(u) else np.zeros(0, dtype=int)",
    ): "sample",
    ("bounds/guarantee.py", "if seen > bound * (1 + 1e-9):"): "tolerance",
    ("neutralize/classes.py", "limit = self.studies[0].limit"): "same",  # all classes have one limit
    ("neutralize/classes.py", "if certified and (point.rates >= least).all():"): "boundary",
    (
        "neutralize/search.py",
        "rest = at.parts - np.clip(at.parts, -FILLED * limit, FILLED * limit)",
    ): "effort",  # how much of a limit a step aims to leave
    (
        "neutralize/trial.py",
        "found.append([float(s[v == g] @ positive[v == g]) / max(float(s[v == g].sum()), 1e-300) for g in (-1, 1)])",
    ): "guard",
    ("engine/tuning.py", "barrier_range: tuple[float, float] = (0.005, 0.1)"): "speed",
}


def places(tree: ast.Module) -> list[tuple[ast.AST, str]]:
    """Return what can be changed: comparisons, operators, numbers and signs outside annotations and messages."""
    skipped = set()
    for node in ast.walk(tree):
        parts = [getattr(node, name, None) for name in ("annotation", "returns")]
        parts += [node] if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom) else []
        skipped |= {id(inner) for part in parts if part is not None for inner in ast.walk(part)}
    found: list[tuple[ast.AST, str]] = []
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            found.append((node, "ops"))
        elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
            found.append((node, "op"))
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            found.append((node, "value"))
    return found


def mutated(source: str, chance: random.Random) -> tuple[str, int]:
    """Return the source with one change, and the line of it."""
    tree = ast.parse(source)
    node, what = chance.choice(places(tree))
    if what == "ops":
        node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[attr-defined]
    elif what == "op":
        node.op = SWAPS[type(node.op)]()  # type: ignore[attr-defined]
    else:
        node.value = 2 * node.value if node.value else 1  # type: ignore[attr-defined]
    return ast.unparse(tree), node.lineno  # type: ignore[attr-defined]


def survives(copy: Path, tests: list[str], seconds: float) -> bool:
    """Run the tests of an area on the copy; one that takes for ever, or too much memory, is noticed too.

    They run in a fork of this process, which has imported what nerm needs, but not nerm.
    """
    child = os.fork()
    if not child:
        try:
            os._exit(_tested(copy, tests))
        finally:  # whatever happens here, nobody goes on from here
            os._exit(1)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _tested(copy: Path, tests: list[str]) -> int:
    """Run tests in the copy, in silence, and return pytest's code."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy)
    sys.path[:] = [str(copy), *(path for path in sys.path if path not in ("", str(ROOT)))]
    for name in [name for name in sys.modules if name.split(".")[0] in ("nerm", "tests")]:
        del sys.modules[name]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    options = ["-q", "-x", "-m", "not slow and not long", "-p", "no:cacheprovider", "--no-header"]
    return int(pytest.main([*options, *tests]))


def ordered(path: Path, tests: list[str]) -> list[str]:
    """Return the tests of an area, first those in the file that is named after the module."""
    own = [file for area in tests for file in (ROOT / area).glob(f"test_{path.stem}.py")]
    return [*(str(file.relative_to(ROOT)) for file in own), *tests]


def main() -> None:
    """Make mutants until time is up, and print which survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="an area, such as kernels or engine/*")
    parser.add_argument("--each", type=float, default=300.0, help="seconds for the tests of one mutant")
    asked = parser.parse_args()
    for needed in ("cvxpy", "numba", "pandas", "scipy.optimize", "scipy.sparse.linalg", "sklearn.svm"):
        importlib.import_module(needed)
    chance, until, counts = random.Random(asked.seed), time.monotonic() + asked.seconds, [0, 0]
    areas = {path: AREAS[area] for area in asked.only or AREAS for path in sorted(ROOT.glob(f"nerm/{area}.py"))}
    areas = {path: ordered(path, tests) for path, tests in areas.items() if places(ast.parse(path.read_text()))}
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", "notebooks", "docs", "benchmarks", "build"))
        while time.monotonic() < until:
            path = chance.choice(list(areas))
            source, target = path.read_text(), copy / path.relative_to(ROOT)
            changed, line = mutated(source, chance)
            target.write_text(changed)
            lives, was = survives(copy, areas[path], asked.each), source.splitlines()[line - 1].strip()
            target.write_text(source)
            name = str(path.relative_to(ROOT / "nerm"))
            if lives and (name, was) in EQUIVALENT:
                continue
            counts[lives] += 1
            print("survives" if lives else "noticed ", f"{name}:{line}", was, flush=True)
    print(f"{counts[1]} of {sum(counts)} survive")


if __name__ == "__main__":
    main()
