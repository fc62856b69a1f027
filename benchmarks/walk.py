"""Print the files of nerm that one solve enters, in the order of the first call, and their number.

    python benchmarks/walk.py                 a neutral SVM, 200 x 4, hinge
    python benchmarks/walk.py --solver smo    the same with a solver by name
    python benchmarks/walk.py --most 28       exit with 1 if more files are entered

A file counts when one of its functions is called during ``objective.on(X, y, viewpoint=v).solve()``; code that
runs while a module is imported does not count, so the same solve runs once before. Functions that numba has
compiled are called through their dispatcher: they count by the file of the Python function behind it, where a
caller in nerm names the dispatcher as a global variable and its code is visible to the profiler.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import nerm

ROOT = Path(nerm.__file__).resolve().parent


def solve(solver: str) -> Any:
    """Bind and solve one small neutral SVM."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(200) > 0, 1, -1)
    v = np.where(X[:, 1] + X[:, 0] > 0, 1, -1)
    objective = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    return objective.on(X, y, viewpoint=v).solve(solver=solver)


def file_of(code: Any) -> str | None:
    """Return the path of a code object inside the package, None for code elsewhere and for module bodies."""
    path = Path(code.co_filename)
    if code.co_name == "<module>" or ROOT not in path.parents:
        return None
    return str(path.relative_to(ROOT))


def compiled_globals(frame: FrameType) -> list[Any]:
    """Return the code of the numba functions that a function names."""
    found = [frame.f_globals.get(name) for name in frame.f_code.co_names]
    return [each.py_func.__code__ for each in found if hasattr(each, "py_func")]


def walk(solver: str) -> dict[str, str]:
    """Return the first function that is called in each file, in the order of these calls."""
    entered: dict[str, str] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        own = file_of(frame.f_code)
        if own is None:
            return
        entered.setdefault(own, frame.f_code.co_name)
        for code in compiled_globals(frame):
            compiled = file_of(code)
            if compiled is not None:
                entered.setdefault(compiled, f"{code.co_name} (compiled)")

    solve(solver)  # imports and compiles
    sys.setprofile(watch)
    try:
        solution = solve(solver)
    finally:
        sys.setprofile(None)
    assert solution.status.success, solution.status
    return entered


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--most", type=int, help="exit with 1 if more files are entered")
    chosen = parser.parse_args()
    entered = walk(chosen.solver)
    for number, (path, function) in enumerate(entered.items(), start=1):
        print(f"{number:3d}  {path:45s} {function}")
    print(f"{len(entered)} files")
    return int(chosen.most is not None and len(entered) > chosen.most)


if __name__ == "__main__":
    sys.exit(main())
