"""Bind an objective to data: validate everything once, then build the `Problem`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nerm.atoms.difference import DCFunction
from nerm.atoms.penalties import SquaredL2
from nerm.atoms.regularizer import Regularizer
from nerm.errors import InvalidInputError
from nerm.model import hypothesis as hypotheses
from nerm.model import kernels
from nerm.model import viewpoint as viewpoint_inputs
from nerm.model.blocks import Block, make_blocks
from nerm.model.constraints import Polyhedron, polyhedron
from nerm.model.expressions import Limit, Neutrality, Objective, Risk
from nerm.model.problem import Problem
from nerm.typing import Floats
from nerm.validation import as_labels, as_matrix, as_weights, is_lazy, own


def on(
    objective: Objective, X: Any, y: Any = None, *, kernel: Any = None, intercept: bool = True, **given: Any
) -> Any:
    """Bind an objective to rows in memory, or to chunks of rows."""
    if not is_lazy(X):
        return bind(objective, X, y, kernel=kernel, intercept=intercept, **given)
    from nerm.chunks.chunked_problem import bind_chunks
    from nerm.chunks.source import Chunks

    if kernel is not None:
        must = "a problem on chunks must be linear"
        raise InvalidInputError(must, f"kernel={kernel!r}", "Drop the kernel, or map the features first")
    if isinstance(X, Chunks):
        if y is not None or any(value is not None for value in given.values()):
            must = "chunks must bring y, viewpoint and sample_weight themselves"
            raise InvalidInputError(must, "these beside chunks", "Leave them out")
        return bind_chunks(objective, X, intercept=_flag(intercept))
    source = {"X": X, "y": y, **{name: value for name, value in given.items() if value is not None}}
    return bind_chunks(objective, Chunks(source), intercept=_flag(intercept))


def bind(
    objective: Objective,
    X: Any,
    y: Any,
    *,
    viewpoint: Any = None,
    kernel: Any = None,
    intercept: bool = True,
    sample_weight: Any = None,
    divisor: float | None = None,
    checked: bool = False,
) -> Problem:
    """Validate everything once, copy it, and return the problem (the work behind `Objective.on`).

    The estimators pass a `divisor` of the sums other than the number of rows, and X and y that are known to
    be a finite float matrix, dense or CSR, and a vector of both -1 and +1 (`checked`).
    """
    _check_terms(objective)
    matrix = hypotheses.sorted_csr(X if checked else as_matrix(X))
    n = matrix.shape[0]
    resolved = None if kernel is None else kernels.resolve(kernel).fitted(matrix)
    y, classes = (y, np.array([-1.0, 1.0])) if checked else as_labels(y, n)
    y = own(y)
    views = {name: own(v) for name, v in viewpoint_inputs.resolve(viewpoint, X, n).items()}
    _check_viewpoints(objective, views)
    sample_weight = own(as_weights(sample_weight, n, "sample_weight"))
    intercept = _flag(intercept)
    hypothesis = hypotheses.make(matrix, resolved)
    _check_regularizers(objective, hypothesis)
    blocks = make_blocks(objective, y, views, sample_weight)
    divisor = float(n if divisor is None else divisor)
    _check_limits(objective, blocks, divisor)
    return Problem(
        objective=objective,
        hypothesis=hypothesis,
        y=y,
        classes=classes,
        viewpoints=views,
        sample_weight=sample_weight,
        intercept=intercept,
        divisor=divisor,
        blocks=blocks,
        region=_region(objective, hypothesis, X),
    )


def _flag(intercept: Any) -> bool:
    if not isinstance(intercept, bool | np.bool_):
        raise InvalidInputError("'intercept' must be True or False", repr(intercept), "Pass one of the two")
    return bool(intercept)


def _check_terms(objective: Objective) -> None:
    if not any(isinstance(t.term, Risk) for t in objective.terms):
        raise InvalidInputError(
            "an objective must contain a risk", repr(objective), "Add Risk(Hinge()), for instance"
        )


def _check_viewpoints(objective: Objective, viewpoints: Mapping[str, Floats]) -> None:
    limits = [c for c in objective.constraints if isinstance(c, Limit)]
    if not viewpoints and (limits or any(isinstance(t.term, Neutrality) for t in objective.terms)):
        must = "'viewpoint' must be given when the objective has a neutrality term"
        raise InvalidInputError(must, "None", "Pass viewpoint=..., or drop the term")


def _region(objective: Objective, hypothesis: hypotheses.Hypothesis, X: Any) -> Polyhedron | None:
    """Return the linear constraints on w, by the names of X's columns if it has some."""
    columns = getattr(X, "columns", None)
    names = None if columns is None else [str(name) for name in columns]
    linear = any(not isinstance(c, Limit) for c in objective.constraints)
    if linear and isinstance(hypothesis, hypotheses.KernelHypothesis):
        must = "coefficients can be constrained on a linear problem only"
        raise InvalidInputError(must, "a kernel", "Pass kernel=None, or drop these constraints")
    return polyhedron(objective, hypothesis.size, names)


def _check_limits(objective: Objective, blocks: Sequence[Block], divisor: float) -> None:
    """Refuse a limit below the least value of its term.

    That is psi(0) mean u for two sides, by convexity, and inf psi mean u for one.
    """
    first = len(objective.terms)
    limits = [c for c in objective.constraints if isinstance(c, Limit)]
    for block in blocks:
        if block.term < first:
            continue
        limit, facts = limits[block.term - first], block.atom.facts
        if isinstance(block.atom, DCFunction):
            do = "Add the term to the objective with a weight instead"
            raise InvalidInputError("a limit must be convex", repr(limit), do)
        least = facts.at_zero if block.side else facts.minimum
        least *= float(block.weights.sum()) / divisor
        if limit.bound < least:
            must = f"the limit on {limit.term!r} must be at least {least:g}, its least value"
            raise InvalidInputError(must, f"<= {limit.bound:g}", "Raise the limit")


def _check_regularizers(objective: Objective, hypothesis: hypotheses.Hypothesis) -> None:
    is_kernel = isinstance(hypothesis, hypotheses.KernelHypothesis)
    for omega in (t.term for t in objective.terms if isinstance(t.term, Regularizer)):
        if is_kernel and not isinstance(omega, SquaredL2):
            must = "a kernel problem must be regularised by SquaredL2, the norm of its function space"
            do = "For a norm of the coefficients c, pass the Gram matrix as X with kernel=None"
            raise InvalidInputError(must, repr(omega), do)
        omega.check(hypothesis.size)
