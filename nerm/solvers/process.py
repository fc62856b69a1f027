"""Run a function in a process that is killed at a deadline, for solvers that do not check the time."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nerm.certify.solution import Answer
from nerm.errors import InvalidInputError
from nerm.model.problem import Problem
from nerm.solvers import clock
from nerm.solvers.base import Session, Solver
from nerm.solvers.linalg.merging import open_session

# A fork needs neither a second import of everything nor arguments that pickle, but is only safe on Linux.
# A child that hangs because another thread held a lock at the fork is killed at the deadline.
START_METHOD = "fork" if sys.platform == "linux" else "spawn"


@dataclass
class Outcome:
    """How a run in a process ended.

    Attributes
    ----------
    result : object
        The value that the function returned; None if it raised an error or its process was killed or died.
    error : Exception or None
        The exception that the function raised.
    timed_out : bool
        Whether the process was killed at its deadline.
    exit_code : int or None
        The exit code of a process that ended without a result: minus the number of the signal that killed it.
    seconds : float
        How long the process ran.
    """

    result: Any = None
    error: Exception | None = None
    timed_out: bool = False
    exit_code: int | None = None
    seconds: float = 0.0


def run_with_deadline(
    function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float, *, memory: float | None = None
) -> Outcome:
    """Call function(*arguments) in a process; kill it and its child processes after `seconds`.

    Parameters
    ----------
    function, arguments
        The function and its arguments; they must pickle on platforms that do not fork.
    seconds : float
        The time limit; it may be infinite.
    memory : float, optional
        Megabytes of address space that the process may add to that of its parent (Linux).

    Returns
    -------
    Outcome

    >>> run_with_deadline(divmod, (7, 2), 60.0).result
    (3, 1)
    """
    started = time.perf_counter()
    deadline = clock.after(seconds)
    context: Any = multiprocessing.get_context(START_METHOD)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, function, arguments, memory), daemon=True)
    outcome = Outcome()
    try:
        _start(process)
        sender.close()
        outcome.timed_out = not receiver.poll(None if deadline == clock.NEVER else clock.left(deadline))
        if not outcome.timed_out:
            kind, content = receiver.recv()
            setattr(outcome, kind, content)
    except EOFError:  # the process ended without a result
        process.join()
        outcome.exit_code = process.exitcode
    finally:  # also after an interrupt from the keyboard
        if process.pid is not None:
            _kill(process)
        receiver.close()
    outcome.seconds = time.perf_counter() - started
    return outcome


def _start(process: Any) -> None:
    """Start a process; raise an `InvalidInputError` if its arguments do not pickle."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
            process.start()
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        must = (
            "with 'time_limit', a solver that does not check the time, its atoms and its options must be "
            "picklable"
        )
        raise InvalidInputError(must, str(error), "Define them in a module, or use another solver") from error


def _kill(process: Any) -> None:
    """Kill a process and, where it leads a group of its own, the processes that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError, AttributeError):  # Windows has no killpg
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def _work(
    sender: Any, function: Callable[..., Any], arguments: tuple[Any, ...], memory: float | None
) -> None:
    """Call the function inside the new process, and send its result or its exception."""
    if hasattr(os, "setsid"):
        os.setsid()  # an interrupt from the keyboard goes to the caller only
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _limit_memory(memory)
        sender.send(("result", function(*arguments)))
    except Exception as error:
        sender.send(("error", error))


def _limit_memory(megabytes: float | None) -> None:
    """Limit the memory of this process to its current size plus `megabytes` (on Linux)."""
    if megabytes is not None and sys.platform == "linux":
        import resource

        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + int(megabytes * 2**20),) * 2)


class ProcessSession(Session):
    """A session of a solver that does not check the time.

    Each solve runs in a process of its own, which is killed at the deadline.
    """

    def __init__(self, solver: Solver) -> None:
        self._solver = solver

    def answer(
        self, problem: Problem, accuracy: float, options: dict[str, Any], deadline: float = clock.NEVER
    ) -> Answer:
        """Solve in a process.

        The answer has no hypothesis if the deadline passes or the process dies.
        """
        arguments = self._solver, problem, accuracy, options
        outcome = run_with_deadline(_answer, arguments, clock.left(deadline))
        if outcome.error is not None:
            raise outcome.error
        if isinstance(outcome.result, Answer):
            return outcome.result
        ended = f"error: its process ended with code {outcome.exit_code}"
        claim = "stopped: time is up" if outcome.timed_out else ended
        return Answer(None, 0.0, claim=claim, solve_seconds=outcome.seconds, timed_out=outcome.timed_out)


def _answer(solver: Solver, problem: Problem, accuracy: float, options: dict[str, Any]) -> Answer:
    return open_session(solver, problem).answer(problem, accuracy, options)
