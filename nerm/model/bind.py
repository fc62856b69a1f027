"""Bind an objective to data: validate everything once, then build the `Problem`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nerm.atoms.difference import DCFunction
from nerm.atoms.regularizer import Regularizer, SquaredL2
from nerm.errors import InvalidInputError
from nerm.model import hypothesis as hypotheses
from nerm.model import kernels
from nerm.model.blocks import Block, make_blocks
from nerm.model.constraints import LinearConstraint, polyhedron
from nerm.model.expressions import Neutrality, Objective, Risk
from nerm.model.problem import Problem
from nerm.validation import as_labels, as_matrix, as_real, as_weights, check_order, is_lazy, own
from nerm.viewpoint import Viewpoints, resolve


def on(objective: Objective, X: Any, y: Any, *, kernel: Any, intercept: bool, **given: Any) -> Any:
    """Bind an objective to data: return a `Problem`, or a `ChunkedProblem` if X comes in chunks."""
    if not isinstance(intercept, bool | np.bool_):
        raise InvalidInputError("'intercept' must be True or False", repr(intercept), "Pass one of the two")
    if not is_lazy(X):
        return bind(objective, X, y, kernel=kernel, intercept=bool(intercept), **given)
    from nerm.chunks.chunked_problem import bind_chunks
    from nerm.chunks.source import as_chunks

    if kernel is not None:
        must = "a problem on chunks must be linear"
        raise InvalidInputError(must, f"kernel={kernel!r}", "Drop the kernel, or map the features first")
    return bind_chunks(objective, as_chunks(X, y, **given), intercept=bool(intercept))


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
    """Validate and copy the data and return the `Problem`; `Objective.on` calls this function.

    The parameters of `Objective.on` are explained there. The estimators use two more: `divisor` divides all
    sums (by default the number of rows), and `checked=True` says that X and y are already validated. Then X
    must be a finite float matrix, dense or CSR, and y a vector with both labels -1 and +1, or of finite
    numbers for a regression. A viewpoint that
    is a `Viewpoints` object is taken as it is.
    """
    if not any(isinstance(t.term, Risk) for t in objective.terms):
        must, do = "an objective must contain a risk", "Add Risk(Hinge()), for instance"
        raise InvalidInputError(must, repr(objective), do)
    matrix = hypotheses.sorted_csr(X if checked else as_matrix(X))
    n = matrix.shape[0]
    resolved = None if kernel is None else kernels.resolve(kernel).fitted(matrix)
    for name, values in {"y": y, "sample_weight": sample_weight}.items():
        check_order(X, values, name)
    if objective.is_regression:
        labels, classes = y if checked else as_real(y, n), np.zeros(0)
    else:
        labels, classes = (y, np.array([-1.0, 1.0])) if checked else as_labels(y, n)
    labels = own(labels)
    read = viewpoint if isinstance(viewpoint, Viewpoints) else resolve(viewpoint, X, n)
    viewpoints = {name: own(v) for name, v in read.items()}
    if not viewpoints and any(isinstance(term, Neutrality) for term in objective.every_term):
        must = "'viewpoint' must be given when the objective has a neutrality term"
        raise InvalidInputError(must, "None", "Pass viewpoint=..., or drop the term")
    weights = own(as_weights(sample_weight, n, "sample_weight"))
    hypothesis = hypotheses.make(matrix, resolved)
    linear = [c for c in objective.constraints if isinstance(c, LinearConstraint)]
    _check_coefficients(objective, hypothesis, linear)
    blocks = make_blocks(objective, labels, viewpoints, weights)
    divisor = float(n if divisor is None else divisor)
    _check_limits(objective, blocks, divisor)
    return Problem(
        objective=objective,
        hypothesis=hypothesis,
        y=labels,
        classes=classes,
        viewpoints=viewpoints,
        groups=read.groups,
        sample_weight=weights,
        intercept=intercept,
        divisor=divisor,
        blocks=blocks,
        region=polyhedron(linear, hypothesis.size, getattr(X, "columns", None)) if linear else None,
    )


def _check_coefficients(
    objective: Objective, hypothesis: hypotheses.Hypothesis, linear: Sequence[LinearConstraint]
) -> None:
    """Raise an error if a regularizer or a linear constraint does not fit the hypothesis."""
    is_kernel = isinstance(hypothesis, hypotheses.KernelHypothesis)
    if linear and is_kernel:
        must = "coefficients can be constrained on a linear problem only"
        raise InvalidInputError(must, "a kernel", "Pass kernel=None, or drop these constraints")
    for omega in (t.term for t in objective.terms if isinstance(t.term, Regularizer)):
        if is_kernel and not isinstance(omega, SquaredL2):
            must = "a kernel problem must be regularised by SquaredL2, the norm of its function space"
            do = "For a norm of the coefficients c, pass the Gram matrix as X with kernel=None"
            raise InvalidInputError(must, repr(omega), do)
        omega.check(hypothesis.size)


def _check_limits(objective: Objective, blocks: Sequence[Block], divisor: float) -> None:
    """Raise an error if a limit is below the smallest possible value of its neutrality term.

    Let psi be the surrogate and u the weights of the term. The smallest value is psi(0) mean(u) for a
    two-sided term, by convexity, and (inf psi) mean(u) for a one-sided term.
    """
    first = len(objective.terms)
    for block in (block for block in blocks if block.term >= first):
        limit, facts = objective.limits[block.term - first], block.atom.facts
        if isinstance(block.atom, DCFunction):
            do = "Add the term to the objective with a weight instead"
            raise InvalidInputError("a limit must be convex", repr(limit), do)
        least = (facts.at_zero if block.side else facts.minimum) * float(block.weights.sum()) / divisor
        if limit.bound < least:
            must = f"the limit on {limit.term!r} must be at least {least:g}, its least value"
            raise InvalidInputError(must, f"<= {limit.bound:g}", "Raise the limit")
