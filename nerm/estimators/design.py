"""From the parameters of a classifier to its problems, one per class, and to the solutions it keeps.

Both classifiers minimise, over training rows i with sample weights s_i and class weights c_i, S = sum_i s_i,

::

    (1/S) sum_i s_i c_i phi(y_i f_i) + lam Omega(f) + sum_k eta_k max( (1/S) sum_i s_i u_ki psi(+- v_ki f_i)
    ).

`NERMClassifier` speaks of this mean form; `NeutralSVC` of S times it, the paper's sum form, with its own lam
S times the one here. A row of weight 2 is two rows, so both are the same problem to the last bit.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nerm.atoms.margin import MarginFunction
from nerm.atoms.regularizer import Regularizer
from nerm.certify.solution import Solution, Status, recertified
from nerm.errors import NotSolvedError
from nerm.model import weights as neutrality_weights
from nerm.model.bind import bind
from nerm.model.blocks import ObjectiveValue
from nerm.model.expressions import Neutrality, Objective, Risk, WeightedTerm
from nerm.model.problem import Problem, with_terms
from nerm.model.viewpoint import DEFAULT
from nerm.neutralize.search import with_named_weights
from nerm.solvers.registry import SolverPool
from nerm.typing import Floats, Ints, Matrix


@dataclass(frozen=True)
class Design:
    """The parameters of a classifier, checked; lam is of the classifier's own form."""

    loss: MarginFunction
    regularizer: Regularizer
    surrogate: MarginFunction
    lam: float
    eta: Mapping[str, float]
    weights: str
    kernel: Any
    intercept: bool
    solver: str
    tol: float
    sum_form: bool

    def own_form(self, total_weight: float) -> float:
        """Return the factor of the mean form: S for the sum form, else 1."""
        return total_weight if self.sum_form else 1.0

    def objective(self, lam: float | None = None, u: Mapping[str, Any] | None = None) -> Objective:
        """Return Risk + lam Omega + sum_k eta_k Neutrality_k, with weights by name or, given u, as arrays."""
        omega = WeightedTerm(self.lam if lam is None else lam, self.regularizer)
        terms = [WeightedTerm(1.0, Risk(self.loss)), omega]
        for name, eta in self.eta.items():
            to = None if list(self.eta) == [DEFAULT] else name
            weights = self.weights if u is None else u[name]
            terms.append(WeightedTerm(eta, Neutrality(self.surrogate, to=to, weights=weights)))
        return Objective(tuple(terms))

    def problem(self, rows: TrainingRows, positive: int, like: Problem | None = None) -> Problem:
        """Return the problem of one class against the rest; `like` shares its rows and Gram matrix."""
        y, s = np.where(rows.codes == positive, 1.0, -1.0), rows.sample_weight
        u = {k: s * neutrality_weights.resolve(self.weights, y, v, s) for k, v in rows.viewpoints.items()}
        S = float(s.sum())
        objective = self.objective(self.lam / self.own_form(S), u)
        if like is not None:
            return with_terms(like, objective, y, rows.risk_weight)
        return bind(
            objective,
            rows.X,
            y,
            viewpoint=dict(rows.viewpoints) or None,
            kernel=self.kernel,
            intercept=self.intercept,
            sample_weight=rows.risk_weight,
            divisor=S,
            checked=True,
        )


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows of positive weight: checked X, class numbers, viewpoints, s_i, s_i times the class weight."""

    X: Matrix
    codes: Any
    viewpoints: Mapping[str, Floats]
    sample_weight: Floats
    risk_weight: Floats

    def at(self, places: Ints, pairwise: bool) -> TrainingRows:
        """Return some of the rows; `pairwise` where X is a Gram matrix."""
        X = self.X[places][:, places] if pairwise else self.X[places]
        views = {name: v[places] for name, v in self.viewpoints.items()}
        weights = self.sample_weight[places], self.risk_weight[places]
        return TrainingRows(X, self.codes[places], views, *weights)


def solved(problem: Problem, design: Design, pool: SolverPool) -> Solution:
    """Solve, leaving out the terms of weight 0, and return the solution of the whole problem."""
    terms = problem.objective.terms
    acting = Objective(tuple(t for t in terms if t.weight or isinstance(t.term, Risk)))
    whole = len(acting.terms) == len(terms)
    solution = pool.solve(problem if whole else with_terms(problem, acting), design.tol)
    insist(solution)
    solution = pruned(solution) if problem.is_kernel else solution
    if whole:
        return solution
    known = iter(solution.objective.thetas)
    two_sided = (t for t in terms if isinstance(t.term, Neutrality) and t.term.theta is None)
    thetas = [next(known) if t.weight else np.nan for t in two_sided]
    value = problem.evaluate(solution.coef, solution.intercept).with_thetas(thetas)
    return replace(solution, problem=problem, objective=value)


def plain_scores(problem: Problem, design: Design) -> Floats | None:
    """Return the training scores of the same model without neutrality, (n,); None where it is not solved."""
    terms = tuple(t for t in problem.objective.terms if not isinstance(t.term, Neutrality))
    solution = with_terms(problem, Objective(terms)).solve(design.solver, design.tol)
    return None if solution.status is Status.FAILED else solution.training_scores()


def insist(solution: Solution) -> None:
    """Refuse a solver that found nothing, and warn of an answer that is not certified."""
    if solution.status is Status.FAILED:
        raise NotSolvedError(
            f"{solution.status.sentence} Solver {solution.stats.solver!r} claims {solution.stats.claim!r}. "
            "Scale the features, raise lam, or try another solver."
        )
    if not solution.status.success:
        from sklearn.exceptions import ConvergenceWarning

        gap = f"Certified relative gap {solution.certificate.relative_gap:.2e}, tolerance {solution.tol:g}"
        advice = "Scale the features, raise lam or tol, or try another solver."
        warnings.warn(f"{solution.status.sentence} {gap}. {advice}", ConvergenceWarning, stacklevel=4)


def pruned(solution: Solution) -> Solution:
    """Set the smallest kernel coefficients to zero while the gap grows by at most a tenth of tol.

    An interior-point method leaves small numbers where the optimum has zeros; only support vectors should be
    kept.
    """
    size = float(np.abs(solution.coef).max(initial=0.0))
    primal, most = solution.certificate.primal, max(solution.tol, solution.certificate.relative_gap)
    for share in 10.0 ** -np.arange(3, 9):
        coef = np.where(np.abs(solution.coef) > share * size, solution.coef, 0.0)
        found = recertified(solution, coef)
        small = found.certificate.primal <= primal + 0.1 * solution.tol * abs(primal)
        if small and found.certificate.relative_gap <= most:
            return found
    return solution


def kept(solution: Solution, design: Design, names: Sequence[str] | None = None) -> Solution:
    """Return the solution that a classifier keeps: without rows, its neutrality weights by name."""
    if names is None:
        shown = design.objective(solution.problem.regularizers[0][0])
    else:
        shown = with_named_weights(solution.problem.objective, names)
    pairs = zip(solution.objective.terms, shown.terms, strict=True)
    terms = tuple(replace(value, label=repr(weighted.term)) for value, weighted in pairs)
    small = solution.without_rows()
    problem = replace(small.problem, objective=shown)
    return replace(small, problem=problem, objective=ObjectiveValue(solution.objective.total, terms))
