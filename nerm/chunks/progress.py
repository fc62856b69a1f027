"""The state of a fit on chunks after each pass, and the checkpoint file from which it continues."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nerm.chunks.pieces import UNREADABLE
from nerm.errors import InvalidInputError
from nerm.files import write_atomically
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.chunks.chunked_problem import ChunkedProblem

Hypothesis = tuple[Floats, float]


@dataclass(frozen=True, eq=False)
class Progress:
    """After some passes: the next hypothesis, the best one with its value, the bound and theta behind it.

    Attributes
    ----------
    at : (coef, intercept)
        Where the next pass looks.
    best : (coef, intercept) or None
        The hypothesis of the least value so far.
    value, bound : float
        That value, and the lower bound on all.
    thetas : (K,) array
        Of the terms of two sides, at the last solve.
    passes, kept : int
        Passes so far without the first, which counts; rows of the last small problem.

    """

    at: Hypothesis
    thetas: Floats
    best: Hypothesis | None = None
    value: float = np.inf
    bound: float = -np.inf
    passes: int = 0
    kept: int = 0
    values: Floats = field(default_factory=lambda: np.zeros(0))
    decisions: Floats = field(default_factory=lambda: np.zeros((0, 4, 2)))


@dataclass(frozen=True)
class Method:
    """A way to solve on chunks: a pass at the next hypothesis, and where to look after it.

    Attributes
    ----------
    pass_over : callable
        From (problem, state) to the sums of a pass at ``state.at``.
    next_state : callable
        From (problem, state, sums, tol) to the state with a bound and the next hypothesis.

    """

    pass_over: Callable[[ChunkedProblem, Progress], Any]
    next_state: Callable[[ChunkedProblem, Progress, Any, float], Progress]


def fingerprint(problem: ChunkedProblem, tol: float) -> str:
    """Return the mark of a fit: a hash of the objective, the tolerance and the chunks."""
    terms, coding = problem.terms, problem.terms.coding
    chunks = sorted((name, mark.rows, f"{mark.checksum:.9e}") for name, mark in coding.fingerprints.items())
    objective = [(repr(t.term), float(t.weight).hex()) for t in problem.frame.objective.terms]
    told = [objective, _tried(problem), tol, problem.frame.intercept, terms.weighted, terms.class_weight,
            str(coding.classes), chunks]  # fmt: skip
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _tried(problem: ChunkedProblem) -> list[str]:
    """Return values of all functions at some points: two of one's own may have one name."""
    margins, coef = np.linspace(-2.3, 3.1, 7), np.linspace(-1.0, 1.3, problem.frame.hypothesis.size)
    values = [np.asarray(atom.value(margins)) for atom, _, _ in problem.layout]
    values += [np.array([omega.value(coef)]) for _, omega in problem.frame.regularizers]
    return [f"{x:.12e}" for each in values for x in each.tolist()]


def numbered(path: Any, number: int) -> Any:
    """Return the checkpoint of one of several solves: "fit.npz" becomes "fit-3.npz"; None stays None."""
    return None if path is None else Path(path).with_stem(f"{Path(path).stem}-{number}")


def save(path: Any, state: Progress, mark: str) -> None:
    """Write the state, whole or not at all."""
    best = state.best or state.at
    with write_atomically(path) as file:
        numbers = np.array([state.at[1], best[1], state.value, state.bound, state.passes, state.kept])
        sums: dict[str, Any] = {"values": state.values, "decisions": state.decisions, "thetas": state.thetas}
        np.savez(file, mark=np.array(mark), coef=state.at[0], best=best[0], numbers=numbers, **sums)


def resume(path: Any, mark: str) -> Progress | None:
    """Return the state that a checkpoint holds; None where there is no file."""
    if path is None or not Path(path).exists():
        return None
    must = "a checkpoint must be of the same objective, tolerance and chunks"
    do = "Remove the file to start anew"
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            parts = {key: file[key] for key in file.files}
        if str(parts["mark"]) != mark:
            raise InvalidInputError(must, f"{str(path)!r} of another fit", do)
        at, best, value, bound, passes, kept = parts["numbers"].tolist()
        known = (parts["best"], best) if np.isfinite(value) else None
        numbers = value, bound, int(passes), int(kept)
        sums = parts["values"], parts["decisions"]
        return Progress((parts["coef"], at), parts["thetas"], known, *numbers, *sums)
    except UNREADABLE as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(must, f"{str(path)!r}, which cannot be read ({error})", do) from None
