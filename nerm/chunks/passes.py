"""The state of a fit on chunks, the sums of a pass, and the checkpoint from which a fit continues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np

from nerm.chunks.census import ChunkRows
from nerm.chunks.coding import Terms
from nerm.chunks.pieces import UNREADABLE
from nerm.errors import InvalidInputError
from nerm.files import write_atomically
from nerm.signs import sign
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.chunks.chunked_problem import ChunkedProblem

Hypothesis = tuple[Floats, float]


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of a pass: values of the blocks, (J,), and rows by viewpoint, kind, decision, (1 + K, 4, 2)."""

    values: Floats
    decisions: Floats
    rows: int

    def __add__(self, other: Any) -> Any:
        pairs = [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        sums: list[Any] = [None if mine is None else mine + theirs for mine, theirs in pairs]
        return type(self)(*sums)


def decisions(terms: Terms, rows: ChunkRows, scores: Floats) -> Floats:
    """Return the weight of rows by viewpoint (first without any), kind (label, viewpoint) and decision."""
    weight = rows.sample_weight if terms.weighted else np.ones(rows.n)
    found = np.zeros((1 + len(rows.viewpoints), 4, 2))
    for k, v in enumerate([-np.ones(rows.n), *rows.viewpoints.values()]):
        cell = (4 * (rows.y > 0) + 2 * (sign(v) > 0) + (scores > 0)).astype(int)
        found[k] = np.bincount(cell, weight, minlength=8).reshape(4, 2)
    return found


@dataclass(frozen=True, eq=False)
class Progress:
    """After some passes: the next hypothesis, the best one with its value, the bound and theta behind it.

    Attributes
    ----------
    coef, intercept
        The hypothesis of the next pass.
    thetas : (K,) array
        Of the terms of two sides, at the last solve.
    best_coef, best_intercept
        The hypothesis of the least value so far.
    value, bound : float
        That value, infinite before the first pass, and the lower bound.
    passes, kept : int
        Passes so far without the first, which counts; rows of the last small problem.
    values, decisions : arrays
        The sums of the pass at the best hypothesis.

    """

    coef: Floats
    intercept: float
    thetas: Floats
    best_coef: Floats
    best_intercept: float
    value: float = np.inf
    bound: float = -np.inf
    passes: int = 0
    kept: int = 0
    values: Floats = field(default_factory=lambda: np.zeros(0))
    decisions: Floats = field(default_factory=lambda: np.zeros((0, 4, 2)))

    @property
    def at(self) -> Hypothesis:
        """The hypothesis of the next pass."""
        return self.coef, self.intercept

    @property
    def best(self) -> Hypothesis:
        """The best hypothesis so far; before the first pass that of the next one."""
        return self.best_coef, self.best_intercept


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
    """Return the mark of a fit: a hash of the objective, the tolerance and the chunks.

    Two functions of a user may have one name: their values at some points tell them apart.
    """
    terms, frame = problem.terms, problem.frame
    margins, coef = np.linspace(-3.0, 3.0, 7), np.linspace(-1.0, 1.0, frame.hypothesis.size)
    values = [atom.value(margins) for atom, _, _ in problem.layout]
    values += [omega.value(coef) for _, omega in frame.regularizers]
    objective = [(repr(t.term), t.weight) for t in frame.objective.terms]
    options = tol, frame.intercept, terms.weighted, terms.class_weight, str(frame.classes)
    return str(joblib.hash((objective, values, options, dict(terms.coding.fingerprints))))


def numbered(path: Any, number: int) -> Any:
    """Return the checkpoint of one of several solves: "fit.npz" becomes "fit-3.npz"; None stays None."""
    return None if path is None else Path(path).with_stem(f"{Path(path).stem}-{number}")


def save(path: Any, state: Progress, mark: str) -> None:
    """Write the state, whole or not at all."""
    with write_atomically(path) as file:
        np.savez(file, mark=np.array(mark), **vars(state))


def resume(path: Any, mark: str) -> Progress | None:
    """Return the state that a checkpoint holds; None where there is no file."""
    if path is None or not Path(path).exists():
        return None
    must = "a checkpoint must be of the same objective, tolerance and chunks"
    do = "Remove the file to start anew"
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            parts = {key: file[key] if file[key].ndim else file[key].item() for key in file.files}
        found = parts.pop("mark")
        state = Progress(**parts)
    except (*UNREADABLE, TypeError) as error:
        raise InvalidInputError(must, f"{str(path)!r}, which cannot be read ({error})", do) from None
    if found != mark:
        raise InvalidInputError(must, f"{str(path)!r} of another fit", do)
    return state
