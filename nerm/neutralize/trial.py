"""A problem with one-sided neutrality terms of any weights, on some of its rows, and what solutions do to people."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nerm import metrics
from nerm.atoms.margin import MarginFunction
from nerm.certify.solution import Solution
from nerm.metrics import Metric
from nerm.model import weights as neutrality_weights
from nerm.model.algebra import Objective, WeightedTerm
from nerm.model.objective import Neutrality
from nerm.model.problem import Problem
from nerm.signs import sign
from nerm.solvers.registry import SolverPool
from nerm.typing import Bools, Floats

AGREEMENT, DISAGREEMENT = "agreement", "disagreement"


@dataclass(frozen=True)
class Part:
    """One signed part of the measure: the viewpoint it is about and the weights of the term that moves it."""

    viewpoint: str
    weights: Any


@dataclass(frozen=True, eq=False)
class Trial:
    """The plain problem, on the rows where `used`, to which terms are added.

    Attributes
    ----------
    problem : Problem
        Its risk, regularizers and constraints are kept, its neutrality terms are replaced.
    measure : Metric
    viewpoints : tuple of str
        Those to be neutral to.
    row_weight : (n,) array
        How much each row counts in the measure and in neutrality terms.
    used : (n,) array of bool
        The rows to learn from; the others have the weight 0.
    tol : float
    relatives : SolverPool
        Solves one after the other in one session.

    """

    problem: Problem
    measure: Metric
    viewpoints: tuple[str, ...]
    row_weight: Floats
    used: Bools
    tol: float
    relatives: SolverPool = field(default_factory=SolverPool)

    @property
    def parts(self) -> list[Part]:
        """What must be within the limit."""
        return [Part(name, weights) for name in self.viewpoints for weights in self.measure.weights]

    def pushed(self) -> list[tuple[Floats, Floats]]:
        """Return for each part how much every row counts in its term, and the viewpoint."""
        p, s = self.problem, self.row_weight * self.used
        views = [(part.weights, p.viewpoints[part.viewpoint]) for part in self.parts]
        return [(s * neutrality_weights.resolve(weights, p.y, v, s), v) for weights, v in views]

    def solve(
        self,
        surrogate: MarginFunction,
        etas: Sequence[float],
        sides: Sequence[str],
        start: Solution | None = None,
    ) -> Solution:
        """Solve with a one-sided term of this weight for each part."""
        p, s = self.problem, self.row_weight * self.used
        terms = [t for t in p.objective.terms if not isinstance(t.term, Neutrality)]
        for part, (u, _), eta, side in zip(self.parts, self.pushed(), etas, sides, strict=True):
            to = None if len(p.viewpoints) == 1 else part.viewpoint
            terms.append(WeightedTerm(float(eta), Neutrality(surrogate, to, u, side)))
        objective = Objective(tuple(terms), p.objective.constraints)
        weighted = p.with_labels(p.y, objective, p.sample_weight * self.used)
        share = float(s.sum() / self.row_weight.sum())
        options = {} if start is None or weighted.is_convex else {"start": (start.coef, start.intercept)}
        return self.relatives.solve(replace(weighted, divisor=p.divisor * share), self.tol, **options)

    def plain(self) -> Solution:
        """Return the solution without any neutrality."""
        p = self.problem
        terms = tuple(t for t in p.objective.terms if not isinstance(t.term, Neutrality))
        weighted = p.with_labels(p.y, replace(p.objective, terms=terms), p.sample_weight * self.used)
        share = float((self.row_weight * self.used).sum() / self.row_weight.sum())
        return self.relatives.solve(replace(weighted, divisor=p.divisor * share), self.tol)

    def scores(self, solution: Solution) -> Floats:
        """Return the scores of a solution on the given rows."""
        return solution.training_scores()

    def measured(self, scores: Floats, on: Bools | None = None) -> Floats:
        """Return the signed parts of the measure, in the order of `parts`, on rows (by default those that are used)."""
        rows = self.used if on is None else on
        y, s = self.problem.y[rows], self.row_weight[rows]
        found = [
            self.measure.parts(y, scores[rows], self.problem.viewpoints[v][rows], s) for v in self.viewpoints
        ]
        return np.concatenate(found)

    def rates(self, scores: Floats, on: Bools | None = None) -> Floats:
        """Return the share of positive predictions in each group, (number of viewpoints, 2): v <= 0, v > 0."""
        rows = self.used if on is None else on
        s, positive, found = self.row_weight[rows], scores[rows] > 0, []
        for name in self.viewpoints:
            v = sign(self.problem.viewpoints[name][rows])
            found.append(
                [float(s[v == g] @ positive[v == g]) / max(float(s[v == g].sum()), 1e-300) for g in (-1, 1)]
            )
        return np.array(found)

    def quality(self, scores: Floats, on: Bools | None = None) -> dict[str, float]:
        """Return accuracy and AUC on rows."""
        rows = self.used if on is None else on
        y, f, s = self.problem.y[rows], scores[rows], self.row_weight[rows]
        one_class = (y > 0).all() == (y > 0).any()
        area = float("nan") if one_class else metrics.auc(y, f, s)
        return {"accuracy": float(s @ (sign(f) == y) / s.sum()), "auc": area}
