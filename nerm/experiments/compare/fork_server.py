"""A process that has everything imported and compiled, and forks a fresh child for each run.

The child can hang, crash or eat memory: it is killed from here, and costs its own row only. Started as
``python -m nerm.experiments.compare.fork_server`` by `ForkServer`, which speaks to it through its standard
input and output. The child makes one problem, and one solver solves it at one accuracy. It says where it is
("solving", "judging", "done") so that the server can hold it to its time, and what it has found so far, so
that nothing is lost when it is killed.
"""

import contextlib
import importlib
import math
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from nerm.errors import UnsupportedProblemError

PREPARING = 120.0  # seconds to make the problem
JUDGING = 120.0  # seconds for nerm's own certificate
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "1",
)
LOST = "the process that watches over the runs died (out of memory?)"
Facts = dict[str, Any]
Say = Callable[..., None]


class ForkServer:
    """The caller's side; the process is started when it is first needed."""

    def __init__(self) -> None:
        self._process: Any = None

    def run(self, solver: Any, case: Any, tol: float, limit: float, memory: float) -> Facts:
        """Run one solver in a process of its own and return what became of it.

        Parameters
        ----------
        solver
            A name of the registry, or an object that can be pickled.
        case, tol
            The problem and the accuracy.
        limit, memory
            Seconds for the solver, and megabytes of address space that it may add.
        """
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "nerm.experiments.compare.fork_server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
                start_new_session=True,  # an interrupt from the keyboard is the caller's business
            )
        process = self._process
        try:
            pickle.dump((pickle.dumps((solver, case, tol)), limit, memory), process.stdin)
            process.stdin.flush()
            return dict(pickle.load(process.stdout))
        except (BrokenPipeError, EOFError, ValueError, pickle.UnpicklingError):
            self.close()
            return {"status": "crashed", "reason": LOST}

    def close(self) -> None:
        """End the server and whatever runs in it; may be called from another thread."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(BrokenPipeError, ValueError):
                    stream.close()


def main() -> None:
    """Serve runs until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what solvers print is nobody's answer
    warnings.simplefilter("ignore")
    warm_up()
    with contextlib.suppress(EOFError):
        while True:
            pickle.dump(watch(*pickle.load(sys.stdin.buffer)), answers)
            answers.flush()


def warm_up() -> None:
    """Import cvxpy and compile the numba kernels here, so that no child's time has them in it."""
    from nerm.experiments.compare.cases import Case

    for kernel, density in (("", 1.0), ("", 0.5), ("rbf", 1.0)):
        problem = Case("warm", "warm", n=20, d=3, density=density, kernel=kernel).problem()
        for solver in ("clarabel", "smo", "low-rank" if kernel else "interior-point"):
            problem.solve(solver=solver)


def watch(payload: bytes, limit: float, memory: float) -> Facts:
    """Fork a child for one run, hold it to its time, and return what it said or why it could not."""
    receiver, sender = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        receiver.close()
        _be_child(payload, memory, sender)
    sender.close()
    signal.signal(signal.SIGTERM, lambda *_: _end(child))
    with receiver:
        facts, verdict = _listen(receiver, limit)
    _kill(child)  # and whatever it has started
    _, code, usage = os.wait4(child, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    start = facts.pop("start_mb", None)
    facts |= {"status": "crashed", "reason": _death(code)} if verdict is None else verdict
    if start is not None and facts["status"] in ("time limit", "crashed"):
        facts["peak_mb"] = in_megabytes(usage.ru_maxrss) - start
    return facts


def _listen(receiver: Connection, limit: float) -> tuple[Facts, Facts | None]:
    """Collect the child's facts until it is done (verdict {}), late (the verdict says so) or dead (None)."""
    facts: Facts = {}
    phase, began, spent = "preparing", time.monotonic(), 0.0
    caller = sys.stdin.fileno()
    while True:
        allowed = {"preparing": PREPARING, "solving": limit - spent}.get(phase, JUDGING)
        ready = wait([receiver, caller], max(began + allowed - time.monotonic(), 0.0))
        if caller in ready:  # nothing is sent during a run: the caller is gone
            return facts, {"status": "crashed", "reason": "the comparison was ended"}
        if not ready:
            return facts, _lateness(phase, limit)
        now = time.monotonic()
        spent += now - began if phase == "solving" else 0.0
        began = now
        try:
            phase, news = receiver.recv()
        except EOFError:
            return facts | {"seconds": spent}, None
        facts |= news
        if phase == "done":
            return {"seconds": spent} | facts, {}


def _lateness(phase: str, limit: float) -> Facts:
    if phase == "solving":
        return {"status": "time limit", "seconds": limit, "reason": f"killed after {limit:g} s"}
    what, most = (
        ("making the problem", PREPARING) if phase == "preparing" else ("nerm's certificate", JUDGING)
    )
    return {"status": "error", "reason": f"{what} took more than {most:g} s"}


def _death(code: int) -> str:
    if os.WIFSIGNALED(code):
        name = signal.Signals(os.WTERMSIG(code)).name
        hint = " (which is how compiled code often ends at the memory limit)" if name == "SIGABRT" else ""
        return f"it died of {name}{hint}"
    return f"it ended the process with code {os.WEXITSTATUS(code)} and no answer"


def _kill(child: int) -> None:
    """Kill a child that leads a process group, and the group."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            kill(child, signal.SIGKILL)


def _end(child: int) -> None:
    """End the server with its child."""
    _kill(child)
    os._exit(1)


def _limit_memory(megabytes: float) -> None:
    """Let allocations fail beyond this much more than the process has: a hungry solver must not starve the machine."""
    if sys.platform.startswith("linux"):
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + int(megabytes * 2**20),) * 2)


def _be_child(payload: bytes, memory: float, sender: Connection) -> None:
    """Run in the child; never returns."""

    def say(phase: str, **facts: Any) -> None:
        sender.send((phase, facts))

    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _limit_memory(memory)
        run(payload, say)
    except BaseException as error:
        say("done", status="error", reason=f"{type(error).__name__}: {error}")
    finally:
        os._exit(0)


def run(payload: bytes, say: Say) -> None:
    """Make the problem, solve it, judge the answers; everything that is known goes through ``say(phase, **facts)``."""
    reference, case, tol = pickle.loads(payload)
    from nerm.solvers.registry import known

    problem = case.problem()
    say("preparing", n=problem.n, d=int(problem.hypothesis.X.shape[1]))
    try:
        solver = known()[reference] if isinstance(reference, str) else reference
        obstacle = solver.why_unsupported(problem)
        if obstacle is not None:
            say("done", status="not taken", reason=obstacle)
            return
        importlib.import_module(solver.module)  # not a part of solving
        _solve(solver, problem, tol, say)
    except UnsupportedProblemError as error:
        say("done", status="not taken", reason=str(error))
    except BaseException as error:
        say("done", status="error", reason=f"{type(error).__name__}: {error}")


def _solve(solver: Any, problem: Any, tol: float, say: Say) -> None:
    """Ask for an answer, and for finer ones while nerm's certificate is not content, as `Problem.solve` does."""
    session, spent, gap = None, 0.0, math.nan
    start = peak_megabytes()
    for accuracy in solver.accuracies(tol):
        say("solving", start_mb=start)
        started = time.perf_counter()
        session = session or solver.open(problem)
        answer = session.answer(problem, accuracy, {})
        spent += time.perf_counter() - started
        claim = str(answer.claim)
        say("judging", seconds=spent, peak_mb=peak_megabytes() - start, claim=claim)
        found, complaint = _judged(problem, answer, tol)
        gap = found if math.isnan(gap) else min(gap, found) if not math.isnan(found) else gap
        if gap <= tol:
            say("done", status="solved", certified_gap=gap, reason="")
            return
        status = "no answer" if math.isnan(gap) else "inaccurate"
        say("judged", status=status, certified_gap=gap, reason=complaint)
    say("done")


def _judged(problem: Any, answer: Any, tol: float) -> tuple[float, str]:
    """Return the relative gap that nerm certifies, recomputed from the numbers alone, and what is wrong with it."""
    from nerm.certify.certificate import best_certificate

    if answer.coef is None:
        return math.nan, "it returned no hypothesis"
    coef = np.asarray(answer.coef, dtype=float)
    if coef.shape != (problem.hypothesis.size,):
        return math.nan, f"it returned coefficients of shape {coef.shape}"
    if not (np.isfinite(coef).all() and math.isfinite(answer.intercept)):
        return math.nan, "it returned numbers that are not finite"
    _, certificate, _ = best_certificate(problem, coef, float(answer.intercept), answer.multipliers, tol)
    gap = certificate.relative_gap
    return gap, f"nerm certifies a relative gap of {gap:.1e} only"


def peak_megabytes() -> float:
    """Return the most memory that this process has held at any time."""
    return in_megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def in_megabytes(maxrss: float) -> float:
    """Return what `resource` calls ru_maxrss in megabytes: it counts kilobytes, on macOS bytes."""
    return maxrss / (2**20 if sys.platform == "darwin" else 2**10)


if __name__ == "__main__":
    main()
