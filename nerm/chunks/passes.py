"""The state of a fit on chunks, its checkpoint file, and the sums of a pass."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nerm.chunks.coding import Terms
from nerm.chunks.pieces import UNREADABLE, ChunkRows
from nerm.errors import InvalidInputError
from nerm.files import write_atomically
from nerm.model.blocks import Block
from nerm.typing import Floats, Matrix

if TYPE_CHECKING:
    from nerm.chunks.chunked_problem import ChunkedProblem


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the rows of a pass; `+` combines two of them.

    Attributes
    ----------
    values : (J,) array
        The sums sum_i weights_i atom(targets_i f_i) of the J blocks.
    decisions : (1 + K, 4, 2) array
        The total weight of the rows by viewpoint, kind and decision, for K viewpoints. Entry 0 of the first
        axis is for no viewpoint. The four kinds are the signs of (label, viewpoint) as in
        `nerm.chunks.coding`; the two decisions are score <= 0 and score > 0.
    rows : int
        The number of rows.
    """

    values: Floats
    decisions: Floats
    rows: int

    def __add__(self, other: Any) -> Any:
        pairs = [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        return type(self)(*(mine + theirs for mine, theirs in pairs))


def evaluated(
    raw: ChunkRows, terms: Terms, at: Floats
) -> tuple[ChunkRows, tuple[Block, ...], Floats, tuple[Floats, Floats, int]]:
    """Code a raw chunk and evaluate it at a hypothesis.

    Return its rows, its blocks, its scores, (n,), and the fields of `Sums`.
    """
    rows = terms.coding.read(raw)
    blocks, scores = terms.blocks(rows), rows.X @ at[:-1] + at[-1]
    weight = rows.sample_weight if terms.weighted else np.ones(rows.n)
    decisions = np.zeros((1 + len(rows.viewpoints), 4, 2))
    for k, v in enumerate([-np.ones(rows.n), *rows.viewpoints.values()]):
        cell = (4 * (rows.y > 0) + 2 * (v > 0) + (scores > 0)).astype(int)
        decisions[k] = np.bincount(cell, weight, minlength=8).reshape(4, 2)
    values = np.array([block.total(scores) for block in blocks])
    return rows, blocks, scores, (values, decisions, rows.n)


def sums_of(X: Matrix, c: Floats) -> Floats:
    """Return sum_i c_i (x_i, 1), (..., d + 1), for c of shape (..., n)."""
    flat = c.reshape(-1, c.shape[-1])
    linear = np.asarray(X.T @ flat.T).T
    return np.column_stack([linear, flat.sum(axis=1)]).reshape(*c.shape[:-1], -1)


def sums_at(raw: ChunkRows, terms: Terms, at: Floats) -> Sums:
    """Return the sums of a raw chunk at a hypothesis."""
    return Sums(*evaluated(raw, terms, at)[-1])


@dataclass(frozen=True, eq=False)
class ScoreCounts(Sums):
    """The weight of rows by interval of scores, label and signs of the viewpoints, in `values`.

    The shape of `values` is (number of edges + 1, 2, 2^K) for K viewpoints.
    """


def counted(raw: ChunkRows, terms: Terms, at: Floats, edges: Floats) -> ScoreCounts:
    """Count the rows of a raw chunk between edges of scores; interval j is where j edges are below f."""
    rows = terms.coding.read(raw)
    weight = rows.sample_weight if terms.weighted else np.ones(rows.n)
    interval = np.searchsorted(edges, rows.X @ at[:-1] + at[-1], side="left")
    shape = len(edges) + 1, 2, 2 ** len(rows.viewpoints)
    cell = np.ravel_multi_index((interval, (rows.y > 0).astype(int), signs_of(rows.viewpoints)), shape)
    counts = np.bincount(cell, weight, int(np.prod(shape))).astype(float)
    return ScoreCounts(counts.reshape(shape), np.zeros(0), rows.n)


def signs_of(viewpoints: Any) -> Any:
    """Return the signs of several viewpoints as one number per row, (n,): bit k is set where v_k > 0."""
    return np.sum([2**k * (v > 0) for k, v in enumerate(viewpoints.values())], axis=0).astype(int)


@dataclass(frozen=True, eq=False)
class Progress:
    """The state of a fit after some passes.

    Attributes
    ----------
    at : (d + 1,) array
        The hypothesis of the next pass, h = (w, b).
    thetas : (K,) array
        The theta of each two-sided term, from the latest solve.
    best : (d + 1,) array
        The hypothesis with the smallest objective so far; before the first pass equal to `at`.
    value, bound : float
        The objective at `best`, infinite before the first pass, and the lower bound on the optimum.
    passes, kept : int
        The number of passes so far, without the counting pass, and the number of rows of the latest small
        problem (`nerm.chunks.kinks`).
    values, decisions : arrays
        The sums of the pass at the best hypothesis.
    keeps_all : bool
        Whether the next pass keeps all rows (`nerm.chunks.kinks`).
    gap : float
        The gap that the next one is compared with: after the previous pass, or at the previous centre.
    centres, taus : (K, d + 1) and (K,) arrays
        The hypotheses that define the centre (`nerm.chunks.proximal`), and the widths of the smoothing with
        which their multipliers are computed. The first one only starts the method.
    tau : float
        The width of the smoothing in the next pass; 0 before the first pass of `nerm.chunks.proximal`.
    base, level : (d + 1,) array and float
        The hypothesis from which the last step was taken, and the smoothed objective there. `level` is
        infinite if the next hypothesis is accepted in any case.
    failed : bool
        Whether the last step was too long.

    """

    at: Floats
    thetas: Floats
    best: Floats
    value: float = np.inf
    bound: float = -np.inf
    passes: int = 0
    kept: int = 0
    values: Floats = field(default_factory=lambda: np.zeros(0))
    decisions: Floats = field(default_factory=lambda: np.zeros((0, 4, 2)))
    keeps_all: bool = False
    gap: float = np.inf
    centres: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    taus: Floats = field(default_factory=lambda: np.zeros(0))
    tau: float = 0.0
    base: Floats = field(default_factory=lambda: np.zeros(0))
    level: float = np.inf
    failed: bool = False


def mark_of(problem: ChunkedProblem) -> str:
    """Return a string that identifies a fit, to recognize its checkpoint.

    It holds the weights of the terms, the objective at a fixed hypothesis on the sample, and the
    fingerprints.
    """
    weights = [float(t.weight).hex() for t in problem.terms.objective.terms]
    probe = np.linspace(-1.0, 1.0, problem.sample.hypothesis.size)
    value = problem.sample.evaluate(probe, float(problem.sample.intercept)).total
    fingerprints = sorted(problem.terms.coding.fingerprints.items())
    return repr((weights, f"{value:.9e}", problem.sample.intercept, fingerprints))


def save_state(path: Any, state: Progress, mark: str) -> None:
    """Write the state to a checkpoint file atomically."""
    arrays = {f.name: getattr(state, f.name) for f in fields(state)}
    with write_atomically(path) as file:
        np.savez(file, mark=mark, **arrays)


def saved_state(path: Any, mark: str) -> Progress | None:
    """Return the state in a checkpoint file, or None if there is no file.

    Raise an error if the file is of another fit, as its `mark` says (`mark_of`).
    """
    if path is None or not Path(path).exists():
        return None
    must, do = "a checkpoint must be of the same objective and chunks", "Remove the file to start again"
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            parts = {name: file[name] if np.ndim(file[name]) else file[name].item() for name in file.files}
    except UNREADABLE as error:
        raise InvalidInputError(must, f"{str(path)!r}, which cannot be read ({error})", do) from None
    if parts.pop("mark", None) != mark:
        raise InvalidInputError(must, f"{str(path)!r} of another fit", do)
    return Progress(**parts)


def numbered(path: Any, number: int) -> Any:
    """Return the checkpoint path of solve `number`; None stays None.

    For number 3, "fit.npz" becomes "fit-3.npz".
    """
    return None if path is None else Path(path).with_stem(f"{Path(path).stem}-{number}")
