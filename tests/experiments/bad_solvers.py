"""Bad solvers, to be told from good ones: they raise, hang, answer NaN, lie, crash, devour memory."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nerm.solvers.base import Answer, Session, Solver


@dataclass(frozen=True)
class Bad(Solver, Session):
    """Claims to be installed and to take everything."""

    name: str
    package: str = "numpy"

    def requirements(self) -> str:
        return "anything"

    def why_unsupported(self, problem: Any) -> str | None:
        return None

    def open(self, problem: Any) -> Session:
        return self

    def answer(self, problem: Any, accuracy: float, options: dict[str, Any]) -> Answer:
        return getattr(self, f"_{self.name}")(problem)

    def _broken(self, problem: Any) -> Answer:
        raise ImportError("libbroken.so.1: cannot open shared object file")

    def _hangs(self, problem: Any) -> Answer:
        while True:
            time.sleep(0.01)

    def _nan(self, problem: Any) -> Answer:
        return Answer(np.full(problem.hypothesis.size, np.nan), 0.0, claim="optimal")

    def _lies(self, problem: Any) -> Answer:
        return Answer(np.ones(problem.hypothesis.size), 0.0, claim="optimal")

    def _dies(self, problem: Any) -> Answer:
        faulthandler.disable()
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError

    def _exits(self, problem: Any) -> Answer:
        os._exit(3)

    def _crooked(self, problem: Any) -> Answer:
        return Answer(np.ones(problem.hypothesis.size + 1), 0.0, claim="optimal")

    def _infeasible(self, problem: Any) -> Answer:
        return Answer(None, 0.0, claim="infeasible")

    def _hungry(self, problem: Any) -> Answer:
        block = np.ones(8_000_000)  # 64 MB
        return Answer(np.zeros(problem.hypothesis.size), float(block[0]) - 1.0, claim="")

    def _devours(self, problem: Any) -> Answer:
        return Answer(np.ones(10**9), 0.0)  # 8 GB


@dataclass(frozen=True)
class Missing(Bad):
    """Is not where its package says."""

    package: str = "nerm_no_such_package"


@dataclass(frozen=True)
class Counting(Bad):
    """Solves with Clarabel and leaves a mark for every call."""

    marks: str = ""

    def answer(self, problem: Any, accuracy: float, options: dict[str, Any]) -> Answer:
        with open(Path(self.marks), "a") as file:
            file.write("x")
        solution = problem.solve(solver="clarabel", tol=accuracy)
        return Answer(solution.coef, solution.intercept, solution.multipliers, claim="optimal")
