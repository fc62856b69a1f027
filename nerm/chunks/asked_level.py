"""A limit on measured neutrality on chunks: the search of `nerm.neutralize`, each of its solves a few passes.

The measure is taken on all rows, from the decisions that a pass counts. Accuracy, AUC and positive rates of
the trace are those of the sample, on which the first weight is found too.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
from nerm.metrics import as_metric
from nerm.model.algebra import Objective, WeightedTerm
from nerm.model.bind import bind
from nerm.model.objective import Neutrality, viewpoint_of
from nerm.neutralize.attempts import Attempts
from nerm.neutralize.result import Neutralized
from nerm.neutralize.trial import Trial
from nerm.typing import Floats
from nerm.validation import as_nonnegative

if TYPE_CHECKING:
    from nerm.chunks.chunked_problem import ChunkedProblem

DECISIONS = np.array([-1.0, 1.0])


@dataclass(frozen=True, eq=False)
class ChunkedTrial(Trial):
    """A trial whose solutions are those of all rows; its own problem is that of the sample."""

    whole: Any = None
    checkpoint: Any = None
    solved: list[int] = field(default_factory=list)

    def solve(
        self, surrogate: Any, etas: Sequence[float], sides: Sequence[str], start: Solution | None = None
    ) -> Solution:
        """Solve on all rows with a one-sided term of this weight for each part."""
        several = len(self.whole.terms.coding.groups) > 1
        terms = list(_plain(self.whole.frame.objective).terms)
        for part, eta, side in zip(self.parts, etas, sides, strict=True):
            term = Neutrality(surrogate, part.viewpoint if several else None, part.weights, side)
            terms.append(WeightedTerm(float(eta), term))
        return self._solved(Objective(tuple(terms)), start)

    def plain(self) -> Solution:
        """Return the solution on all rows without any neutrality."""
        return self._solved(_plain(self.whole.frame.objective), None)

    def _solved(self, objective: Objective, start: Solution | None) -> Solution:
        problem = self.whole.with_objective(objective)
        at, file = (
            None if start is None else (start.coef, start.intercept),
            numbered(self.checkpoint, len(self.solved)),
        )
        self.solved.append(1)
        found: Solution = problem.solve(self.tol, start=at, checkpoint=file)
        return found

    def scores(self, solution: Solution) -> Floats:
        """Return the scores of the sample."""
        return np.asarray(self.whole.sample.X @ solution.coef + solution.intercept)

    def on_all_rows(self, solution: Solution) -> Floats:
        """Return the signed parts of the measure from the decisions about all rows."""
        names, decisions = list(self.whole.terms.coding.groups), solution.stats.details["decisions"]
        y, v, f = np.repeat(LABELS, 2), np.repeat(VIEWS, 2), np.tile(DECISIONS, 4)
        found = []
        for name in self.viewpoints:
            weight = decisions[1 + names.index(name)].ravel()
            there = weight > 0
            found += self.measure.parts(y[there], f[there], v[there], weight[there])
        return np.array(found)


def neutralize_chunks(
    problem: ChunkedProblem, limit: float, measure: Any = "calders_verwer_score", *, tol: float = 1e-6,
    surrogate: Any = None, keep: float = 0.5, checkpoint: Any = None,
) -> Neutralized:  # fmt: skip
    """Return the solution whose measured neutrality on all rows is within a limit."""
    chosen = surrogate or (Logistic() if problem.method is second_order else Hinge())
    limit, keep, measured = as_nonnegative(limit, "limit"), as_nonnegative(keep, "keep"), as_metric(measure)
    if measured.is_custom:
        must = "a measure on chunks must be one of nerm.metrics"
        raise InvalidInputError(must, repr(measured.name), "Use 'calders_verwer_score', for instance")
    frame, sample = problem.frame, problem.sample
    named = [t.term for t in frame.objective.terms if isinstance(t.term, Neutrality)]
    views = tuple(dict.fromkeys(viewpoint_of(term, frame.viewpoints) for term in named)) or tuple(
        frame.viewpoints
    )
    if not views:
        must = "chunks must bring a viewpoint to be neutral to"
        raise InvalidInputError(must, "none", "Yield (X, y, viewpoint)")
    small = bind(_plain(frame.objective), sample.X, sample.y, viewpoint=dict(sample.viewpoints),
                 sample_weight=sample.sample_weight, intercept=frame.intercept)  # fmt: skip
    first = None
    with suppress(NotNeutralError):  # then all rows will say so
        eta = small.neutralize(limit, measure, tol=1e-4, surrogate=chosen, keep=keep).eta
        first = eta if isinstance(eta, float) and eta > 0 else None
    ones, everybody = np.ones(small.n), np.ones(small.n, dtype=bool)
    trial = ChunkedTrial(small, measured, views, ones, everybody, tol, whole=problem, checkpoint=checkpoint)
    study = Attempts(trial, limit, keep, trial.on_all_rows, first)
    found = study.of(chosen)
    if found is None:
        raise study.refusal()
    return study.answer(chosen, found, pd.DataFrame())


def _plain(objective: Objective) -> Objective:
    """Return an objective without its neutrality terms."""
    return replace(objective, terms=tuple(t for t in objective.terms if not isinstance(t.term, Neutrality)))
