"""Do the tests notice when the code is wrong? Run `python -m tests.mutants --seconds 1800 [--seed 0] [--only kernels]`.

A mutant is the package with one operator, comparison or number changed, in a copy of the project. The quick
tests of its area run on it. One that passes them all survives: kill it with a test, or list it in EQUIVALENT
with a word why.

A seed names a list of mutants, files in proportion to their lines. With `--log FILE` every fate is added to
the file as it comes, and what is there is not run again. With `--again` only what the log calls survivors is:
on the code and the tests of today, found by what was changed.
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
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parent.parent
MOST_MEMORY = 4_000_000_000  # bytes for the tests of one mutant
CLAIMS = ["tests/test_certificate.py", "tests/test_slack.py", "tests/test_lost_digits.py"]
JUDGE = [*CLAIMS, "tests/test_feasibility.py", "tests/test_conjugates.py"]
RECOVERY = "tests/test_recovery.py"
AREAS = {
    "atoms/*": [
        "tests/contracts/test_every_margin_function.py",
        "tests/contracts/test_every_regularizer.py",
        "tests/atoms",
    ],
    "blocks": ["tests/test_problem.py", *CLAIMS],
    "certificate": [RECOVERY, *JUDGE],
    "slack": CLAIMS,
    "rounding": ["nerm/rounding.py", "tests/test_kernels.py", *CLAIMS],
    "recovery": [RECOVERY, *CLAIMS],
    "feasibility": JUDGE,
    "conjugates": JUDGE,
    "weights": ["tests/test_weights.py"],
    "metrics": ["tests/test_metrics.py"],
    "bounds/*": ["tests/bounds"],
    "baselines/*": ["tests/baselines"],
    "kernels": ["tests/test_kernels.py"],
    "gaussian_values": ["tests/test_kernels.py"],
    "engine/*": ["tests/engine"],
    "neutralize/*": ["tests/neutralize"],
}
NEAREST = {
    "norms": "tests/contracts/test_norms_engine.py"
}  # tests of a module that are not in the folder of its area
SWAPS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
EQUIVALENT: dict[
    tuple[str, str, str], str
] = {  # (module, the changed line as it was, the change): one word why
    (
        "feasibility.py",
        "thetas = np.clip(np.nan_to_num(multipliers.thetas, nan=0.5), 0.0, 1.0)",
        "0.5 -> 1.0",
    ): "start",  # any theta
    (
        "conjugates.py",
        "STEPS = 500  # of projected gradients on the split among norms",
        "500 -> 1000",
    ): "effort",
    (
        "atoms/custom_regularizer.py",
        "good = np.isfinite(values) & (values >= -1e-9) & (abs(values[0]) <= 1e-9)",
        "1e-09 -> 2e-09",
    ): "tolerance",
    (
        "atoms/custom_regularizer.py",
        "good = np.isfinite(values) & (values >= -1e-9) & (abs(values[0]) <= 1e-9)",
        "values >= -1e-09 -> values > -1e-09",
    ): "tolerance",
    (
        "atoms/custom_regularizer.py",
        "good = np.isfinite(values) & (values >= -1e-9) & (abs(values[0]) <= 1e-9)",
        "abs(values[0]) <= 1e-09 -> abs(values[0]) < 1e-09",
    ): "tolerance",
    (
        "atoms/custom.py",
        "[[-2.0, 0.3, 1.7], np.linspace(-60.0, 60.0, 481), *np.multiply.outer([1.0, -1.0], [1e2, 3e2, 1e3])]",
        "0.3 -> 0.6",
    ): "sample",
    (
        "atoms/custom.py",
        "[[-2.0, 0.3, 1.7], np.linspace(-60.0, 60.0, 481), *np.multiply.outer([1.0, -1.0], [1e2, 3e2, 1e3])]",
        "1.0 -> 2.0",
    ): "sample",
    (
        "atoms/custom.py",
        "points = np.array([-2.0, 0.3, 1.7])",
        "2.0 -> 4.0",
    ): "sample",
    (
        "atoms/modified_huber.py",
        "return np.where(m < -1, -4.0 * m, np.clip(1.0 - m, 0.0, 2.0) ** 2)",
        "2.0 -> 4.0",
    ): "guard",
    (
        "atoms/regularizer.py",
        "for t in (*(1 - 10.0**-k for k in (20, 12, 9, 6, 3)), *(0.5**k for k in range(1, 40))):",
        "20 -> 40",
    ): "same",  # 1 - 1e-20 is 1, and so is 1 - 1e-40
    (
        "atoms/custom.py",
        "holds = np.abs(value + conjugate - u * m) <= 1e-4 * (1.0 + np.abs(value))",
        "np.abs(value + conjugate - u * m) <= 0.0001 * (1.0 + np.abs(value)) -> "
        "np.abs(value + conjugate - u * m) < 0.0001 * (1.0 + np.abs(value))",
    ): "tolerance",
    (
        "atoms/custom_regularizer.py",
        "return 0.0 if self._gauge(q) <= 1.0 + 1e-12 else np.inf",
        "1e-12 -> 2e-12",
    ): "tolerance",
    (
        "atoms/custom_regularizer.py",
        "INSIDE = 1e-8  # how far inside the dual ball what is computed is put: more than the error of a small solve",
        "1e-08 -> 2e-08",
    ): "tolerance",
    (
        "atoms/difference.py",
        "near, far = (self.value(reach * np.array([-1.0, 1.0])) for reach in FAR)",
        "1.0 -> 2.0",
    ): "sample",
    (
        "baselines/prejudice_remover.py",
        "scores = [X @ w for X, w in zip(self.X, weights.reshape(2, -1), strict=True)]",
        "1 -> 2",
    ): "spelling",  # any negative number stands for what is left
    (
        "baselines/eta_neutral.py",
        "found = minimise(problem, np.zeros(d + 1), tol, FEASIBLE / 10, int(self.max_iter), self.verbose)",
        "10 -> 20",
    ): "tolerance",
    (
        "baselines/base.py",
        "return groups > 0",
        "groups > 0 -> groups >= 0",
    ): "same",  # they are -1 and +1
    (
        "bounds/theorems.py",
        "if abs(values[i]) > limit * (1 + 1e-9) + 1e-12:",
        "1e-12 -> 2e-12",
    ): "tolerance",
    (
        "bounds/theorems.py",
        "if abs(values[i]) > limit * (1 + 1e-9) + 1e-12:",
        "1e-09 -> 2e-09",
    ): "tolerance",
    (
        "bounds/theorems.py",
        "if abs(values[i]) > limit * (1 + 1e-9) + 1e-12:",
        "limit * (1 + 1e-09) + 1e-12 -> limit * (1 + 1e-09) - 1e-12",
    ): "tolerance",
    (
        "bounds/theorems.py",
        "if abs(values[i]) > limit * (1 + 1e-9) + 1e-12:",
        "abs(values[i]) > limit * (1 + 1e-09) + 1e-12 -> abs(values[i]) >= limit * (1 + 1e-09) + 1e-12",
    ): "tolerance",
    (
        "metrics.py",
        "return np.where(v == groups[1], 1.0, -1.0)",
        "v == groups[1] -> v != groups[1]",
    ): "absolute",  # of a scorer only |measure| is left
    (
        "metrics.py",
        "return np.where(v == groups[1], 1.0, -1.0)",
        "1.0 -> 2.0",
    ): "sign",  # only the side counts
    (
        "slack.py",
        "places = np.unique(np.linspace(0, len(u) - 1, SAMPLE).astype(int)) if len(u) else np.zeros(0, dtype=int)",
        "1 -> 2",
    ): "sample",
    (
        "bounds/guarantee.py",
        "if seen > bound * (1 + 1e-9):",
        "1e-09 -> 2e-09",
    ): "tolerance",
    (
        "bounds/guarantee.py",
        "if seen > bound * (1 + 1e-9):",
        "seen > bound * (1 + 1e-09) -> seen >= bound * (1 + 1e-09)",
    ): "tolerance",
    (
        "neutralize/classes.py",
        "limit = self.studies[0].limit",
        "0 -> 1",
    ): "same",  # all classes have one limit
    (
        "neutralize/trial.py",
        "found.append([float(s[v == g] @ positive[v == g]) / max(float(s[v == g].sum()), 1e-300) for g in (-1, 1)])",
        "1e-300 -> 2e-300",
    ): "guard",
    (
        "engine/tuning.py",
        "barrier_range: tuple[float, float] = (0.005, 0.1)",
        "0.005 -> 0.01",
    ): "speed",
    (
        "engine/tuning.py",
        "barrier_range: tuple[float, float] = (0.005, 0.1)",
        "0.1 -> 0.2",
    ): "speed",
    (
        "engine/coordinates.py",
        "ROUNDING = 1e-13  # relative residual at which pivoted Cholesky has found the whole row space",
        "1e-13 -> 2e-13",
    ): "tolerance",
    ("engine/passes.py", "C = max(u[i] - lo, TINY) if has_lo else 1.0", "1.0 -> 2.0"): "unread",
    (
        "engine/predictor_corrector.py",
        "if best.converged or not np.isfinite(gap) or 0 <= best.primal <= tuning.vanished * first_value:",
        "0 <= best.primal <= tuning.vanished * first_value -> 0 < best.primal <= tuning.vanished * first_value",
    ): "boundary",
    ("engine/predictor_corrector.py", "target = max((1 - affine) ** 3, 1e-3) * mu", "3 -> 6"): "effort",
    ("engine/tuning.py", "settling: float = 0.1", "0.1 -> 0.2"): "speed",
    (
        "neutralize/attempts.py",
        'point.scores[used], (p.y[used] > 0).astype(int), ("no", "yes"),',
        "p.y[used] > 0 -> p.y[used] >= 0",
    ): "labels",
    ("neutralize/classes.py", "STEP = 0.2  # of a weight, to learn what it moves", "0.2 -> 0.4"): "effort",
    ("neutralize/neutralizing.py", "random_state: int = 0", "0 -> 1"): "any",
    (
        "neutralize/search.py",
        "jacobian += np.outer(point.parts - at.parts - jacobian @ step, step) / max(float(step @ step), 1e-300)",
        "1e-300 -> 2e-300",
    ): "guard",
    (
        "neutralize/search.py",
        "share = float(np.clip(over / (over + under), 0.05, 0.95)) if over + under > 0 else 0.5",
        "0.05 -> 0.1",
    ): "effort",
    (
        "neutralize/trial.py",
        "ranked, yes = scores[order], y[order] > 0",
        "y[order] > 0 -> y[order] >= 0",
    ): "labels",
    (
        "recovery.py",
        "direction = np.where(free, a + 0.01 * np.resize([1.0, -1.0, 0.5], a.shape), 0.0)",
        "0.01 * np.resize([1.0, -1.0, 0.5], a.shape) -> 0.01 / np.resize([1.0, -1.0, 0.5], a.shape)",
    ): "start",
    (
        "recovery.py",
        "theta_steps = np.array([1.0 / (parts * bend) if bend > 1e-200 else 0.0 for bend in bends])",
        "bend > 1e-200 -> bend >= 1e-200",
    ): "boundary",
    (
        "recovery.py",
        "uphill = float(np.vdot(a * slope, new - rows)) + float(gradient @ (new_thetas - thetas)) > 0",
        "float(np.vdot(a * slope, new - rows)) + float(gradient @ (new_thetas - thetas)) -> "
        "float(np.vdot(a * slope, new - rows)) - float(gradient @ (new_thetas - thetas))",
    ): "effort",
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


def mutated(source: str, place: int) -> tuple[str, int, str]:
    """Return the source with one place changed, the line of it, and the change in words."""
    tree = ast.parse(source)
    node, what = places(tree)[place]
    was = ast.unparse(node)
    if what == "ops":
        node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[attr-defined]
    elif what == "op":
        node.op = SWAPS[type(node.op)]()  # type: ignore[attr-defined]
    else:
        node.value = 2 * node.value if node.value else 1  # type: ignore[attr-defined]
    return ast.unparse(tree), node.lineno, f"{was} -> {ast.unparse(node)}"  # type: ignore[attr-defined]


def drawn(sources: dict[str, str], seed: int) -> Iterator[tuple[str, int]]:
    """Draw (module, place) for ever: modules by their number of lines, and no place twice."""
    chance, seen = random.Random(seed), set()
    sizes = {
        name: (len(source.splitlines()), len(places(ast.parse(source)))) for name, source in sources.items()
    }
    names = [name for name, (_, count) in sizes.items() if count]
    total = sum(sizes[name][1] for name in names)
    while len(seen) < total:
        name = chance.choices(names, [sizes[name][0] for name in names])[0]
        mutant = name, chance.randrange(sizes[name][1])
        if mutant not in seen:
            seen.add(mutant)
            yield mutant


def survives(copy: Path, tests: list[str], seconds: float) -> bool:
    """Run the tests of an area on the copy; one that takes for ever, or too much memory, is noticed too.

    They run in a fork of this process, which has imported what nerm needs, but not nerm.
    """
    child = os.fork()
    if not child:
        try:
            os._exit(_tested(copy, tests, seconds))
        finally:  # whatever happens here, nobody goes on from here
            os._exit(1)
    until = time.monotonic() + 10 * seconds  # of the clock: others may be using the machine
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _tested(copy: Path, tests: list[str], seconds: float) -> int:
    """Run tests in the copy, in silence, and return pytest's code; after so many processor seconds it is ended."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
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
    """Return the tests of an area, first the module's examples and those in the file that is named after it."""
    own = [file for area in tests for file in (ROOT / area).glob(f"test_{path.stem}.py")]
    near = [NEAREST[path.stem]] if path.stem in NEAREST else []
    return [str(path.relative_to(ROOT)), *(str(file.relative_to(ROOT)) for file in own), *near, *tests]


@contextmanager
def exchanged(module: Path, source: str) -> Iterator[None]:
    """Exchange the source of a module, and put its folder back as it was, with what had been compiled from it.

    Compiled code holds the numbers of the modules that it imports, so none is kept beside a compiled module.
    """
    with TemporaryDirectory() as folder:
        kept = shutil.copytree(module.parent, Path(folder) / "kept")
        if "numba" in source:
            for compiled in module.parent.glob("__pycache__/*.nbi"):
                compiled.unlink()
        module.write_text(source)
        yield
        shutil.rmtree(module.parent)
        shutil.copytree(kept, module.parent)


class Log:
    """The fates so far, and a file that gets every new one: fate, number in the list, place, change and line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        rows = [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []
        self.rows = {number: (fate, *rest) for fate, number, *rest in rows}  # the last word counts

    def add(self, number: str, *row: str) -> None:
        """Print and keep a fate."""
        self.rows[number] = row
        line = "\t".join([row[0], number, *row[1:]])
        print(line, flush=True)
        with self.path.open("a") as file:
            file.write(f"{line}\n")

    def survivors(self, sources: dict[str, str]) -> Iterator[tuple[str, str, int]]:
        """Return number, module and place of today of what survived; what is no longer in the code is gone."""
        for number, (fate, where, change, was) in list(self.rows.items()):
            if fate == "survives":
                name = where.split(":")[0]
                same = [
                    place
                    for place in range(len(places(ast.parse(sources[name]))))
                    if (was, change) == described(sources[name], place)
                ]
                if same:
                    yield number, name, same[0]
                else:
                    self.add(number, "gone", where, change, was)


def described(source: str, place: int) -> tuple[str, str]:
    """Return the line of a place as it is, and what would be changed there."""
    _, line, change = mutated(source, place)
    return source.splitlines()[line - 1].strip(), change


def stale(sources: dict[str, str]) -> list[tuple[str, str, str]]:
    """Return what EQUIVALENT lists of these modules and is no mutant of theirs any more."""
    listed = {name for name, _, _ in EQUIVALENT} & sources.keys()
    there = {
        (name, *described(sources[name], k))
        for name in listed
        for k in range(len(places(ast.parse(sources[name]))))
    }
    return [entry for entry in EQUIVALENT if entry[0] in listed and entry not in there]


def main() -> None:
    """Make mutants until time is up, and print which survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1_000_000, help="how many mutants of the list")
    parser.add_argument("--only", action="append", help="an area, such as kernels or engine/*")
    parser.add_argument(
        "--each", type=float, default=300.0, help="processor seconds for the tests of one mutant"
    )
    parser.add_argument("--log", type=Path, default=Path(os.devnull))
    parser.add_argument("--again", action="store_true", help="run what the log says has survived")
    asked = parser.parse_args()
    for needed in ("cvxpy", "numba", "pandas", "scipy.optimize", "scipy.sparse.linalg", "sklearn.svm"):
        importlib.import_module(needed)
    until, log = time.monotonic() + asked.seconds, Log(asked.log)
    tests = {
        path: AREAS[area] for area in asked.only or AREAS for path in sorted(ROOT.glob(f"nerm/{area}.py"))
    }
    sources = {str(path.relative_to(ROOT / "nerm")): path.read_text() for path in tests}
    tests_of = dict(zip(sources, [ordered(path, area) for path, area in tests.items()], strict=True))
    fresh = (
        (str(number), *mutant)
        for number, mutant in enumerate(islice(drawn(sources, asked.seed), asked.count))
    )
    todo = (
        log.survivors(sources) if asked.again else (mutant for mutant in fresh if mutant[0] not in log.rows)
    )
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        shutil.copytree(
            ROOT, copy, ignore=shutil.ignore_patterns(".git", "notebooks", "docs", "benchmarks", "build")
        )
        for number, name, place in todo:
            if time.monotonic() > until:
                break
            changed, line, change = mutated(sources[name], place)
            with exchanged(copy / "nerm" / name, changed):
                lives, was = survives(copy, tests_of[name], asked.each), described(sources[name], place)[0]
            fate = "noticed" if not lives else "listed" if (name, was, change) in EQUIVALENT else "survives"
            log.add(number, fate, f"{name}:{line}", change, was)
    counts = Counter(row[0] for row in log.rows.values())
    for entry in stale(sources):
        print("listed, and no mutant any more:", *entry, sep="\t")
    print(
        f"{counts['survives']} of {counts.total()} survive, and {counts['listed']} that are listed as equivalent"
    )


if __name__ == "__main__":
    main()
