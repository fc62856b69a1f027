"""Solvers without a clock of their own: each solve in a process, which is ended when time is up."""

import multiprocessing
import pickle
import signal
import sys
import time
import warnings
from multiprocessing.connection import Connection
from typing import Any

from nerm.certify.solution import Answer
from nerm.errors import InvalidInputError
from nerm.model.problem import Problem
from nerm.solvers import clock
from nerm.solvers.base import Session, Solver
from nerm.solvers.limited import open_session

# A fork needs neither a second import of everything nor a problem that pickles, but is only safe on Linux.
# Should the child hang because another thread held a lock at the fork, it hangs no longer than the limit.
METHOD = "fork" if sys.platform == "linux" else "spawn"


class OutsideSession(Session):
    """A solver that nobody can stop but from outside: nothing is kept between its solves."""

    def __init__(self, solver: Solver) -> None:
        self._solver = solver

    def answer(
        self, problem: Problem, accuracy: float, options: dict[str, Any], until: float = clock.NEVER
    ) -> Answer:
        """Solve in a process of its own; without an answer if that takes too long, or if the process dies."""
        started = time.perf_counter()
        context: Any = multiprocessing.get_context(METHOD)
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(
            target=_work, args=(sender, self._solver, problem, accuracy, options), daemon=True
        )
        try:
            _start(process)
            sender.close()
            found = receiver.recv() if receiver.poll(clock.left(until)) else Answer(None, 0.0, timed_out=True)
        except EOFError:
            process.join()
            found = Answer(None, 0.0, claim=f"error: its process ended with code {process.exitcode}")
        finally:  # also after an interrupt from the keyboard
            if process.pid is not None:
                process.kill()
                process.join()
            receiver.close()
        if isinstance(found, Exception):
            raise found
        if found.timed_out:
            return Answer(
                None,
                0.0,
                claim="stopped: time is up",
                solve_seconds=time.perf_counter() - started,
                timed_out=True,
            )
        return found


def _start(process: Any) -> None:
    """Start a process, or say what cannot be sent to it."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message=".*fork.*", category=DeprecationWarning
            )  # of threads; see above
            process.start()
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        must = (
            "'time_limit' with a solver that has no clock must be given solver, atoms and options that pickle"
        )
        raise InvalidInputError(must, str(error), "Define them in a module, or use another solver") from error


def _work(
    sender: Connection, solver: Solver, problem: Problem, accuracy: float, options: dict[str, Any]
) -> None:
    """Solve, in the process, and send the answer or the error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the keyboard speaks to the caller
    try:
        sender.send(open_session(solver, problem).answer(problem, accuracy, options))
    except Exception as error:
        sender.send(error)
