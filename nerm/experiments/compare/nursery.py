"""A process that has everything imported and compiled, and forks a fresh child for each run.

The child can hang, crash or eat memory: it is killed from here, and costs its own row only. Started as
``python -m nerm.experiments.compare.nursery`` by `Nursery`, which speaks to it through its standard input and output.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import resource
import select
import signal
import subprocess
import sys
import time
import warnings
from typing import Any, BinaryIO

from nerm.experiments.compare.one_run import in_megabytes, run

PREPARING = 120.0  # seconds to make the problem
JUDGING = 120.0  # seconds for nerm's own certificate
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
LOST = "the process that watches over the runs died (out of memory?)"


class Nursery:
    """The parent's side, a context: ``nursery.run(solver, case, tol, limit, memory)`` returns what became of a run."""

    def __init__(self) -> None:
        self._process: Any = None

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def run(self, solver: Any, case: Any, tol: float, limit: float, memory: float) -> dict[str, Any]:
        """Run one solver (a name of the registry, or an object that can be pickled) in a process of its own."""
        payload = pickle.dumps((solver, case, tol))
        process = self._started()
        try:
            process.stdin.write(_line(limit=limit, memory=memory, size=len(payload)) + payload)
            process.stdin.flush()
            line = process.stdout.readline()
        except (BrokenPipeError, ValueError):
            line = b""
        if not line:
            self.close()
            return {"status": "crashed", "reason": LOST}
        return dict(json.loads(line))

    def close(self) -> None:
        """End the nursery and whatever runs in it; may be called from another thread."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(BrokenPipeError, ValueError):
                    stream.close()

    def _started(self) -> Any:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "nerm.experiments.compare.nursery"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
                start_new_session=True,  # an interrupt from the keyboard is the parent's business
            )
        return self._process


def main() -> None:
    """Serve runs until standard input ends."""
    tasks, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)  # what solvers print is nobody's answer
    warnings.simplefilter("ignore")
    warm_up()
    while line := tasks.readline():
        order = json.loads(line)
        row = watch(tasks.read(order["size"]), order["limit"], order["memory"], tasks)
        answers.write(_line(**row))
        answers.flush()


def warm_up() -> None:
    """Import cvxpy and compile the numba kernels here, so that no child's time has them in it."""
    from nerm.experiments.compare.cases import Case

    for kernel, matrix in (("", 1.0), ("", 0.5), ("rbf", 1.0)):
        problem = Case("warm", "warm", n=20, d=3, density=matrix, kernel=kernel).problem()
        for solver in ("clarabel", "smo", "low-rank" if kernel else "interior-point"):
            problem.solve(solver=solver)
    Case("warm", "warm", n=20, d=3, regularizer="L1").problem().solve(solver="l1")


def watch(payload: bytes, limit: float, memory: float, tasks: BinaryIO) -> dict[str, Any]:
    """Fork a child for one run, hold it to its time, and return what it said or why it could not."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_child(payload, memory, writing)
    os.close(writing)
    signal.signal(signal.SIGTERM, lambda *_: _end(child))
    facts, verdict = _listen(reading, limit, tasks)
    os.close(reading)
    _kill(child)  # and whatever it has started
    _, code, usage = os.wait4(child, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    start = facts.pop("start_mb", None)
    facts |= {"status": "crashed", "reason": _death(code)} if verdict is None else verdict
    if start is not None and facts["status"] in ("time limit", "crashed"):
        facts["peak_mb"] = in_megabytes(usage.ru_maxrss) - start
    return facts


def _listen(reading: int, limit: float, tasks: BinaryIO) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Collect the child's facts until it is done (verdict {}), late (the verdict says so) or dead (None)."""
    facts: dict[str, Any] = {}
    phase, began, left, buffer = "preparing", time.monotonic(), limit, b""
    while True:
        allowed = {"preparing": PREPARING, "solving": left}.get(phase, JUDGING)
        wait = began + allowed - time.monotonic()
        ready = select.select([reading, tasks.fileno()], [], [], max(wait, 0.0))[0]
        if tasks.fileno() in ready:  # nothing is sent during a run: the parent is gone
            return facts, {"status": "crashed", "reason": "the comparison was ended"}
        if not ready:
            return facts, _lateness(phase, limit)
        piece = os.read(reading, 65536)
        *lines, buffer = (buffer + piece).split(b"\n")
        for line in lines:
            if phase == "solving":
                left -= time.monotonic() - began
            news = json.loads(line)
            phase, began = news.pop("phase"), time.monotonic()
            facts |= news
            if phase == "done":
                facts.setdefault("seconds", limit - left)
                return facts, {}
        if not piece:
            facts["seconds"] = limit - left + (time.monotonic() - began if phase == "solving" else 0.0)
            return facts, None


def _lateness(phase: str, limit: float) -> dict[str, Any]:
    if phase == "solving":
        return {"status": "time limit", "seconds": limit, "reason": f"killed after {limit:g} s"}
    if phase == "preparing":
        return {"status": "error", "reason": f"making the problem took more than {PREPARING:g} s"}
    return {"status": "error", "reason": f"nerm's certificate took more than {JUDGING:g} s"}


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
    """End the nursery with its child."""
    _kill(child)
    os._exit(1)


def _limit_memory(megabytes: float) -> None:
    """Let allocations fail beyond this much more than the process has: a hungry solver must not starve the machine."""
    if sys.platform.startswith("linux"):
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + int(megabytes * 2**20),) * 2)


def _line(**facts: Any) -> bytes:
    return json.dumps(facts).encode() + b"\n"


def _be_child(payload: bytes, memory: float, writing: int) -> None:
    """Run in the child; never returns."""

    def say(phase: str, **facts: Any) -> None:
        os.write(writing, _line(phase=phase, **facts))

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


if __name__ == "__main__":
    main()
