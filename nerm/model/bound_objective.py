"""What an objective bound to data consists of: its facts, its values, and the same with other weights or labels.

What people ask of it, to be solved first of all, is in `problem.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from nerm.atoms.difference import DCFunction
from nerm.atoms.penalties import SquaredL2
from nerm.atoms.regularizer import Regularizer
from nerm.errors import InvalidInputError
from nerm.model import hypothesis as hypotheses
from nerm.model.algebra import Limit, Objective, WeightedTerm
from nerm.model.blocks import Block, make_blocks
from nerm.model.constraints import ROUNDING, Polyhedron
from nerm.model.objective import Neutrality
from nerm.model.value import ObjectiveValue, objective_value
from nerm.typing import Array, Floats
from nerm.validation import as_finite, as_nonnegative, as_vector, own


@dataclass(frozen=True, eq=False, repr=False)
class BoundObjective:
    """An objective and the data it was bound to, of which a `Problem` is made; its attributes are described there."""

    objective: Objective
    hypothesis: hypotheses.Hypothesis
    y: Floats
    classes: Array
    viewpoints: Mapping[str, Floats]
    sample_weight: Floats
    intercept: bool
    divisor: float
    blocks: tuple[Block, ...]
    region: Polyhedron | None = None

    def __repr__(self) -> str:
        hypothesis = self.hypothesis
        kind = (
            "linear"
            if isinstance(hypothesis, hypotheses.LinearHypothesis)
            else f"kernel {hypothesis.kernel!r}"
        )
        return f"<Problem: {self.objective!r} on {self.n} rows, {hypothesis.size} coefficients, {kind}>"

    @property
    def n(self) -> int:
        """Number of given rows."""
        return len(self.y)

    @property
    def data(self) -> tuple[Floats, Mapping[str, Floats], Floats]:
        """Labels, viewpoints and sample weights on the given rows."""
        return self.y, self.viewpoints, self.sample_weight

    @property
    def is_kernel(self) -> bool:
        """Whether the hypothesis is f = K c + b."""
        return isinstance(self.hypothesis, hypotheses.KernelHypothesis)

    @cached_property
    def is_convex(self) -> bool:
        """Whether no atom is a difference of convex functions."""
        return not any(isinstance(block.atom, DCFunction) for block in self.blocks)

    @cached_property
    def factors(self) -> Floats:
        """The weight of each block's term, (number of blocks,); 0 for a limit, which is not a term."""
        weights = [t.weight for t in self.objective.terms] + [0.0] * len(self.limits)
        return np.array([weights[block.term] for block in self.blocks])

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits C_k(f) <= t_k among the constraints."""
        return tuple(c for c in self.objective.constraints if isinstance(c, Limit))

    def limited(self, scores: Floats) -> Floats:
        """Return C_k of each limit at the scores."""
        first = len(self.objective.terms)
        values = np.full(len(self.limits), -np.inf)
        for block in self.blocks:
            if block.term >= first:
                k = block.term - first
                values[k] = max(values[k], block.total(scores) / self.divisor)
        return values

    def violation(self, coef: Floats, intercept: float) -> float:
        """Return by how much a hypothesis misses the worst of its constraints; 0 where all hold."""
        worst = 0.0 if self.region is None else self.region.violation(coef)
        if self.limits:
            bounds = np.array([c.bound for c in self.limits])
            over = self.limited(self.hypothesis.scores(coef, intercept)) - bounds
            worst = max(worst, float(np.max(np.where(over <= ROUNDING * np.maximum(bounds, 1.0), 0.0, over))))
        return worst

    @cached_property
    def etas(self) -> Floats:
        """The weights of the neutrality terms, in their order."""
        return np.array([t.weight for t in self.objective.terms if isinstance(t.term, Neutrality)])

    @cached_property
    def two_sided(self) -> Floats:
        """The weights of the terms of two sides, one theta each, in their order."""
        return self.factors[[block.side == 1 for block in self.blocks]]

    @property
    def one_sided(self) -> int:
        """How many neutrality terms are one block alone."""
        kinds = [t.term.kind for t in self.objective.terms] + ["neutrality"] * len(self.limits)
        return sum(block.side == 0 and kinds[block.term] == "neutrality" for block in self.blocks)

    @cached_property
    def regularizers(self) -> tuple[tuple[float, Regularizer], ...]:
        """The regularizers with their weights."""
        return tuple((t.weight, t.term) for t in self.objective.terms if isinstance(t.term, Regularizer))

    def checked(self, coef: Any, intercept: Any) -> tuple[Floats, float]:
        """Validate (coef, intercept)."""
        w = as_vector(coef, self.hypothesis.size, "coef", "coefficients")
        b = as_finite(intercept, "intercept")
        if b != 0 and not self.intercept:
            must = "'intercept' must be 0 on a problem without an intercept"
            raise InvalidInputError(must, f"{b:g}", "Bind the data with intercept=True")
        return w, b

    def evaluate(self, coef: Any, intercept: float = 0.0) -> ObjectiveValue:
        """Return the objective at (coef, intercept), in total and by term; numpy only.

        Parameters
        ----------
        coef : array
            (d,) the weights w of a linear hypothesis, or (n,) the coefficients c of a kernel one.
        intercept : float
            b.

        Returns
        -------
        ObjectiveValue

        """
        coef, intercept = self.checked(coef, intercept)
        if not self.blocks:
            must = "an objective must have rows to be evaluated on"
            got = "a problem whose rows were left behind"
            raise InvalidInputError(must, got, "Bind the objective to data again: objective.on(X, y, ...)")
        scores = self.hypothesis.scores(coef, intercept)
        sums = {(block.term, block.side): block.total(scores) / self.divisor for block in self.blocks}
        return objective_value(self.objective, sums, lambda omega: self.regularizer_value(omega, coef))

    def value_at_zero(self) -> float:
        """Return the objective of f = 0, from the atoms' values at 0."""
        blocks = zip(self.factors, self.blocks, strict=True)  # both sides of a term are equal there
        total = sum(f * float(b.weights.sum()) * b.atom.facts.at_zero for f, b in blocks if b.side >= 0)
        return float(total) / self.divisor

    def regularizer_value(self, omega: Regularizer, coef: Floats) -> float:
        """Return Omega(w), with 1/2 ||w||^2 read as 1/2 c' K c on a kernel problem."""
        if isinstance(omega, SquaredL2):
            return 0.5 * self.hypothesis.squared_norm(coef)
        return omega.value(coef)

    # The same data with other weights, labels or rows.

    def relaxed(self, weights: Any) -> Self:
        """Return the problem in which each limit is a term with a weight instead: its Lagrangian, without - eta t.

        Its blocks are the same, so a solver's session can go from one to the other.
        """
        terms = (WeightedTerm(float(weight), c.term) for weight, c in zip(weights, self.limits, strict=True))
        others = tuple(c for c in self.objective.constraints if not isinstance(c, Limit))
        return replace(self, objective=Objective((*self.objective.terms, *terms), others))

    def weightless(self) -> Self:
        """Return the problem with the weight 0 for every term: what is left are its constraints."""
        terms = tuple(replace(t, weight=0.0) for t in self.objective.terms)
        return replace(self, objective=replace(self.objective, terms=terms))

    def with_neutrality(self, eta: float) -> Self:
        """Return the same problem with neutrality weight eta, sharing all data.

        Several terms keep their ratios and their weights add up to eta; if all are zero they share it
        equally.
        """
        eta = as_nonnegative(eta, "eta")
        if not len(self.etas):
            must = "the objective must have a neutrality term to weight by eta"
            raise InvalidInputError(must, repr(self.objective), "Add Neutrality(...) to it")
        return replace(self, objective=self.objective.with_total("neutrality", eta))

    def with_regularization(self, lam: float) -> Self:
        """Return the same problem with regularization weight lam, in mean form, sharing all data.

        Several regularizers keep their ratios and their weights add up to lam; if all are zero they share it
        equally.
        """
        lam = as_nonnegative(lam, "lam")
        if not self.regularizers:
            must = "the objective must have a regularizer to weight by lam"
            raise InvalidInputError(must, repr(self.objective), "Add SquaredL2() to it, for instance")
        return replace(self, objective=self.objective.with_total("regularizer", lam))

    def with_labels(self, y: Floats, objective: Objective, sample_weight: Floats) -> Self:
        """Return a problem with other labels -1/+1 and weights on the same rows; it shares the hypothesis."""
        blocks = make_blocks(objective, y, self.viewpoints, sample_weight)
        return replace(self, objective=objective, y=own(y), sample_weight=own(sample_weight), blocks=blocks)

    def without_rows(self) -> Self:
        """Return what is left without the training rows: terms, classes, and a hypothesis that can still be linear."""
        none = np.zeros(0)
        return replace(
            self,
            hypothesis=replace(self.hypothesis, X=self.hypothesis.X[:0].copy()),
            y=none,
            viewpoints=dict.fromkeys(self.viewpoints, none),
            sample_weight=none,
            blocks=(),
        )
