"""One binary problem behind a classifier: built on canonical rows, solved, and summed up without its data.

Both classifiers are the sum form over training rows i with sample weights s_i and class weights c_i,

::

    sum_i s_i c_i phi(y_i f_i) + lam_total Omega(f) + sum_k eta_k max( sum_i s_i u_ki psi(+- v_ki f_i) ),

with lam_total = lam for `NeutralSVC` and lam sum_i s_i for `NERMClassifier`, whose own form is this one divided by
sum_i s_i. A `Problem` on m merged rows is this one divided by m.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nerm import weights as neutrality_weights
from nerm.algebra import Objective, WeightedTerm
from nerm.atoms.margin import MarginFunction
from nerm.atoms.regularizer import Regularizer
from nerm.certificate import Certificate
from nerm.errors import NotSolvedError
from nerm.estimators.rows import Rows
from nerm.objective import Neutrality, Risk
from nerm.problem import Problem
from nerm.solution import Solution, Stats, Status
from nerm.value import ObjectiveValue
from nerm.viewpoint import DEFAULT

PRUNING = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)  # relative sizes below which kernel coefficients are tried as zeros


@dataclass(frozen=True)
class Design:
    """The parameters of a classifier, checked."""

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

    def objective(self, u: Mapping[str, Any] | None = None, lam: float | None = None) -> Objective:
        """Return Risk + lam Omega + sum_k eta_k Neutrality_k, with weights by name or, given u, as arrays."""
        terms = [WeightedTerm(1.0, Risk(self.loss)), WeightedTerm(self.lam if lam is None else lam, self.regularizer)]
        for name, eta in self.eta.items():
            to = None if list(self.eta) == [DEFAULT] else name
            weights = self.weights if u is None else u[name]
            terms.append(WeightedTerm(eta, Neutrality(self.surrogate, to=to, weights=weights)))
        return Objective(tuple(terms))


@dataclass(frozen=True, eq=False)
class BinaryFit:
    """What a classifier remembers of one binary problem: everything but the training rows.

    label
        The class that counts as +1.
    formula, value, certificate
        Of the classifier's own form: a sum for `NeutralSVC`, a mean for `NERMClassifier`.
    mean
        What turns a sum of that form into a mean over the training rows.
    thetas
        By viewpoint, the weight of C+ in max(C+, C-); nan where eta is 0 or no multipliers are known.
    facts
        By viewpoint, for `nerm.bounds`; not saved.

    >>> import nerm
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], ["no", "no", "yes", "yes"], [1, -1, 1, -1]
    >>> (fit,) = nerm.NeutralSVC(lam=2.0, eta=1.0).fit(X, y, viewpoint=v).fits_
    >>> str(fit.label), fit.formula
    ('yes', 'minimise sum hinge(y f) + 2 ½‖w‖² + max(sum hinge(v f), sum hinge(-v f))')
    >>> round(fit.value.total, 4), round(fit.mean * fit.value.total, 4)  # the sum form, and its mean over four rows
    (5.25, 1.3125)
    """

    label: Any
    formula: str
    value: ObjectiveValue
    certificate: Certificate
    mean: float
    thetas: dict[str, float]
    status: Status
    stats: Stats
    coef_norm: float
    facts: dict[str, Any] = field(default_factory=dict, repr=False)


def problem_of(
    design: Design,
    X: Any,
    y: np.ndarray,
    rows: Rows,
    viewpoints: Mapping[str, np.ndarray],
    class_weight: np.ndarray,
    like: Problem | None = None,
) -> tuple[Problem, dict[str, np.ndarray]]:
    """Return the problem on merged rows and the neutrality weights u_k, not yet multiplied by the sample weights.

    like
        A problem on the same rows with other labels: it lends its checked data, Gram matrix included.
    """
    total = design.lam if design.sum_form else design.lam * float(rows.weight.sum())
    u = {name: neutrality_weights.resolve(design.weights, y, v, rows.weight) for name, v in viewpoints.items()}
    objective = design.objective({name: rows.weight * factor for name, factor in u.items()}, total / len(y))
    s = rows.weight * class_weight
    if like is not None:
        return like.with_labels(y, objective, s), u
    v = dict(viewpoints) or None
    return objective.on(X, y, viewpoint=v, kernel=design.kernel, intercept=design.intercept, sample_weight=s), u


def solve_binary(problem: Problem, design: Design) -> Solution:
    """Solve, leaving out the terms of weight 0, and return the solution of the whole problem."""
    active = Objective(tuple(t for t in problem.objective.terms if t.weight or isinstance(t.term, Risk)))
    solution = problem.with_labels(problem.y, active, problem.sample_weight).solve(design.solver, design.tol)
    gap = f"Certified relative gap {solution.certificate.relative_gap:.2e}, tolerance {design.tol:g}"
    if solution.status is Status.FAILED:
        raise NotSolvedError(
            f"{solution.status.sentence} Solver {solution.stats.solver!r} claims {solution.stats.claim!r}. "
            "Scale the features, raise lam, or try another solver."
        )
    if solution.status is not Status.OPTIMAL:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"{solution.status.sentence} {gap}. Scale the features, raise lam or tol, or try another solver.",
            ConvergenceWarning,
            stacklevel=4,
        )
    solution = replace(solution, problem=problem)
    return pruned(solution) if problem.is_kernel else solution


def pruned(solution: Solution) -> Solution:
    """Set the smallest kernel coefficients to zero, as long as the certified gap grows by at most a tenth of tol.

    An interior-point method leaves small numbers where the optimum has zeros; only support vectors should be kept.
    """
    size = float(np.abs(solution.coef).max(initial=0.0))
    primal = solution.certificate.primal
    for share in PRUNING:
        coef = np.where(np.abs(solution.coef) > share * size, solution.coef, 0.0)
        total = solution.problem.evaluate(coef, solution.intercept).total
        if total <= primal + 0.1 * solution.tol * abs(primal):
            return replace(solution, coef=coef, certificate=replace(solution.certificate, primal=total))
    return solution


def summed_up(
    solution: Solution, design: Design, rows: Rows, u: Mapping[str, np.ndarray], label: Any, weights: Any
) -> BinaryFit:
    """Return what to remember; weights are (s_i, s_i c_i) of the kept training rows."""
    problem, sum_of_weights = solution.problem, float(rows.weight.sum())
    own = problem.n if design.sum_form else problem.n / sum_of_weights
    shown = design.objective()
    value = problem.evaluate(solution.coef, solution.intercept)
    terms = []
    for term, weighted in zip(value.terms, shown.terms, strict=True):
        sides: dict[str, Any] = {}
        if term.plus is not None and term.minus is not None:
            sides = {"plus": own * term.plus, "minus": own * term.minus}
        size = term.value if term.kind == "regularizer" else own * term.value
        terms.append(replace(term, label=repr(weighted.term), weight=weighted.weight, value=size, **sides))
    return BinaryFit(
        label=label,
        formula=str(shown).replace("mean", "sum") if design.sum_form else str(shown),
        value=ObjectiveValue(own * value.total, tuple(terms)),
        certificate=solution.certificate.times(own),
        mean=1.0 / sum_of_weights if design.sum_form else 1.0,
        thetas=_thetas(solution, design),
        status=solution.status,
        stats=solution.stats,
        coef_norm=float(np.sqrt(problem.hypothesis.squared_norm(problem.checked(solution.coef, 0.0)[0]))),
        facts={name: _facts(solution, rows, name, u[name], *weights) for name in u},
    )


def _thetas(solution: Solution, design: Design) -> dict[str, float]:
    """Return theta by viewpoint; the multipliers know the terms of positive weight only."""
    known = iter(() if solution.multipliers is None else solution.multipliers.thetas)
    return {name: float(next(known, np.nan)) if eta > 0 else float("nan") for name, eta in design.eta.items()}


def _facts(solution: Solution, rows: Rows, name: str, u: np.ndarray, s: np.ndarray, risk: np.ndarray) -> Any:
    """Return facts about the training rows themselves, in mean form over these n rows instead of the m merged ones."""
    facts, expand = solution.fit_facts(name), rows.merged
    neutrality = s * u[expand]
    return replace(
        facts,
        scores=facts.scores[expand],
        y=facts.y[expand],
        viewpoint=facts.viewpoint[expand],
        diagonal=facts.diagonal[expand],
        gap=facts.gap * solution.problem.n / len(expand),
        sample_weight=None if (risk == 1).all() else risk,
        neutrality_weights=None if (neutrality == 1).all() else neutrality,
    )
