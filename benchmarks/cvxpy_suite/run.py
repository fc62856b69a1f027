"""Solve the problems of this folder as cvxpy/solver-benchmarks does, and print status, value and seconds per solver.

    python benchmarks/cvxpy_suite/run.py                         # CLARABEL, and others that are installed
    python benchmarks/cvxpy_suite/run.py --solvers CLARABEL MOREAU --seed 1

The package `solver_benchmarks` is not needed: its decorator is imitated here.
"""

import argparse
import sys
import time
import types
from pathlib import Path

import cvxpy as cp

REGISTERED = {}


def register_problem(name, *, tags, description):
    """Remember a problem by its name, as the decorator of cvxpy/solver-benchmarks does."""
    assert tags[0] == name.split("/")[0]
    assert {"small", "medium", "large"} & set(tags)

    def decorate(factory):
        REGISTERED[name] = factory
        return factory

    return decorate


def main() -> None:
    """Read the options, build the problems and solve them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--solvers", nargs="+", default=["CLARABEL", "MOREAU", "ECOS", "SCS", "OSQP", "PIQP", "QOCO"]
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folder = Path(__file__).parent / "solver_benchmarks"
    for name, inside in (("", folder), (".data", folder / "data"), (".problems", folder / "problems")):
        package = types.ModuleType("solver_benchmarks" + name)
        package.__path__ = [str(inside)]
        package.register_problem = register_problem
        sys.modules[package.__name__] = package
    __import__("solver_benchmarks.problems.neutral")
    for name, factory in REGISTERED.items():
        for solver in options.solvers:
            problem = factory(options.seed)
            started = time.process_time()
            try:
                problem.solve(solver=solver)
                outcome = f"{problem.status:20} {problem.value:.8f}"
            except cp.SolverError as error:
                outcome = f"not solved: {str(error).splitlines()[0][:60]}"
            print(f"{name:28} {solver:9} {outcome}  {time.process_time() - started:6.2f} s", flush=True)


if __name__ == "__main__":
    main()
