"""A limit on measured neutrality on chunks: the search of `nerm.neutralize`, each of its solves a few passes.

The measure is taken on all rows, from the decisions that a pass counts. Accuracy, AUC and positive rates of
the trace are those of the sample, on which the first weight and the surrogate are found too.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nerm.atoms.hinge import Hinge
from nerm.atoms.logistic import Logistic
from nerm.certify.solution import Solution
from nerm.chunks import second_order
from nerm.chunks.chunk_coding import LABELS, VIEWS
from nerm.chunks.progress import numbered
from nerm.errors import InvalidInputError, NotNeutralError
from nerm.model.algebra import Objective, WeightedTerm
from nerm.model.bind import bind
from nerm.model.objective import Neutrality
from nerm.neutralize.neutralizing import measured_on, viewpoints_of
from nerm.neutralize.search import Search
from nerm.neutralize.surrogates import ROUGH_TOL, surrogates_of
from nerm.neutralize.target import Neutralized, Target
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.chunks.chunked_problem import ChunkedProblem


class ChunkedSearch(Search):
    """A search whose solves use all rows, while its problem in memory holds the sample."""

    whole: ChunkedProblem

    def objective(self, surrogate: Any, etas: Sequence[float], sides: Sequence[str]) -> Objective:
        """Return the objective with a one-sided term for each part; neutrality weights have names."""
        plain = self.plain_objective()
        parts = [(name, weights) for name in self.viewpoints for weights in self.metric.weights]
        several = len(self.whole.terms.coding.groups) > 1
        terms = [
            WeightedTerm(float(eta), Neutrality(surrogate, name if several else None, weights, side))
            for (name, weights), eta, side in zip(parts, etas, sides, strict=True)
        ]
        return replace(plain, terms=(*plain.terms, *terms))

    def solution(self, objective: Objective, start: Solution | None = None) -> Solution:
        """Solve on all rows."""
        number = len(self.history.candidates)
        return self.whole.with_objective(objective).solve(
            tol=self.target.tol,
            start=None if start is None else (start.coef, start.intercept),
            checkpoint=numbered(self.whole.chunks.checkpoint, number),
        )

    def scores(self, solution: Solution) -> Floats:
        """Return the scores of the sample."""
        return np.asarray(self.whole.sample.X @ solution.coef + solution.intercept)

    def measured_on_all_rows(self, solution: Solution) -> Floats:
        """Return the signed parts of the measure from the decisions about all rows."""
        names, decisions = list(self.whole.terms.coding.groups), solution.stats.details["decisions"]
        y, v, f = np.repeat(LABELS, 2), np.repeat(VIEWS, 2), np.tile([-1.0, 1.0], 4)
        found = []
        for name in self.viewpoints:
            weight = decisions[1 + names.index(name)].ravel()
            there = weight > 0
            found += self.metric.parts(y[there], f[there], v[there], weight[there])
        return np.array(found)


def neutralize_chunks(
    problem: ChunkedProblem, limit: float, measure: Any, *, on: Any, surrogate: Any, **options: Any
) -> Neutralized:
    """Return the solution whose measured neutrality on all rows is within a limit."""
    if isinstance(surrogate, str) and surrogate == "auto":
        surrogate = Logistic() if problem.method is second_order.METHOD else Hinge()
    surrogates = surrogates_of(surrogate)
    target = Target(limit, measure, surrogate=surrogates, **options)
    if target.metric.is_custom:
        must = "a measure on chunks must be one of nerm.metrics"
        raise InvalidInputError(must, repr(target.metric.name), "Use 'calders_verwer_score', for instance")
    frame, sample = problem.frame, problem.sample
    if not frame.viewpoints:
        must = "chunks must bring a viewpoint to be neutral to"
        raise InvalidInputError(must, "none", "Yield (X, y, viewpoint)")
    small = bind(frame.objective, sample.X, sample.y, viewpoint=dict(sample.viewpoints),
                 sample_weight=sample.sample_weight, intercept=frame.intercept)  # fmt: skip
    first = None
    with suppress(NotNeutralError):  # the search on all rows will fail too
        rough = {**options, "tol": max(ROUGH_TOL, target.tol), "surrogate": surrogates}
        found = small.neutralize(limit, measure, **rough)
        surrogates = [found.surrogate]
        first = found.eta if isinstance(found.eta, float) and found.eta > 0 else None
    search = ChunkedSearch(small, target, viewpoints_of(frame), np.ones(small.n), first=first)
    search.whole = problem
    elsewhere = measured_on(on, frame, search.metric, search.viewpoints)
    search.measured = elsewhere or search.measured_on_all_rows
    candidate = search.find(surrogates[0])
    if candidate is None:
        raise search.error(surrogates)
    return search.answer(candidate, surrogates[0], pd.DataFrame())
