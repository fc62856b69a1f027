"""The facts about a fitted model that bounds need."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nerm.atoms.regularizer import SquaredL2
from nerm.certify.solution import Solution
from nerm.errors import InvalidInputError
from nerm.model import weights as neutrality_weights
from nerm.model.blocks import one_sided
from nerm.model.expressions import Neutrality, Risk, viewpoint_of
from nerm.model.problem import Problem, check_hypothesis
from nerm.validation import check_known


@dataclass(frozen=True)
class FitFacts:
    """The facts about a fitted model that bounds need, as plain arrays and numbers.

    `Solution.fit_facts()` and the classifiers' make it.

    Attributes
    ----------
    scores, y, viewpoint : array of shape (n,)
        On the training rows; y holds -1 and +1.
    loss, surrogate : MarginFunction
        phi and psi.
    eta : float
        The weight of the neutrality term, in mean form.
    coef_norm, intercept : float
        ||w|| (for kernels sqrt(c'Kc)) and b.
    diagonal : array of shape (n,)
        k(x_i, x_i): ||x_i||^2 for linear models.
    lam : float or None
        With Omega = (lam / 2n) ||w||^2; None for another regularizer, which gives no radius in advance.
    gap : float
        Certified, primal minus dual, in mean form.
    fit_intercept : bool
        Whether b was free.
    sample_weight, neutrality_weights : array of shape (n,) or None
        If any were used.
    learned : tuple of str
        What of the class was learned from the same rows (a kernel's width, a coding of columns), in words:
        the theorems are about a class fixed before the data, so every statement names it as treated as fixed.
    one_sided : bool
        Whether the neutrality term has one side: such a C_n,psi can fall below psi(0), and no bound on it
        follows.

    Examples
    --------
    >>> import nerm
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    >>> facts = objective.on(X, y, viewpoint=v).solve().fit_facts()
    >>> facts.eta, facts.lam, facts.diagonal.tolist(), round(facts.coef_norm, 4)
    (1.0, 2.0, [1.0, 4.0, 1.0, 4.0], 0.5)
    """

    scores: Any
    y: Any
    viewpoint: Any
    loss: Any
    surrogate: Any
    eta: float
    coef_norm: float
    intercept: float
    diagonal: Any
    lam: float | None = None
    gap: float = 0.0
    fit_intercept: bool = True
    sample_weight: Any = None
    neutrality_weights: Any = None
    learned: tuple[str, ...] = ()
    one_sided: bool = False


def facts_of(solution: Solution, to: str | None = None) -> FitFacts:
    """Return the facts of a solution about its neutrality to one viewpoint.

    The objective is divided by the weight of its risk, so that eta, lam and the gap are those of the
    theorems. With several neutrality terms eta (C_k - psi_k(0)) <= phi(0) + gap still holds for each, since
    no C_k is below psi_k(0).

    Parameters
    ----------
    solution : Solution
        Of a problem with one risk.
    to : str, optional
        The name of the viewpoint; it can be left out when the problem has one neutrality term.
    """
    problem = solution.problem
    risks = [(t.weight, t.term) for t in problem.objective.terms if isinstance(t.term, Risk)]
    if len(risks) != 1 or not risks[0][0] > 0:
        must = "a guarantee must be about one risk of positive weight"
        raise InvalidInputError(must, f"{len(risks)} risk terms", "Use an objective with a single Risk")
    ((weight, risk),) = risks
    eta, term = _term(problem, to)
    v = problem.viewpoints[viewpoint_of(term, problem.viewpoints)]
    weights = neutrality_weights.resolve(term.weights, problem.y, v)
    coef, intercept = check_hypothesis(problem, solution.coef, solution.intercept)
    return FitFacts(
        scores=solution.training_scores(),
        y=problem.y,
        viewpoint=v,
        loss=risk.loss,
        surrogate=term.surrogate,
        eta=eta / weight,
        coef_norm=float(np.sqrt(problem.hypothesis.squared_norm(coef))),
        intercept=intercept,
        diagonal=problem.hypothesis.squared_row_norms(),
        lam=_lam(problem, weight),
        gap=max(solution.certificate.gap, 0.0) * problem.divisor / (problem.n * weight),
        fit_intercept=problem.intercept,
        sample_weight=None if (problem.sample_weight == 1).all() else problem.sample_weight,
        neutrality_weights=None if (weights == 1).all() else weights,
        one_sided=term.theta is not None,
    )


def _term(problem: Problem, to: str | None) -> tuple[float, Neutrality]:
    """Return the neutrality term of this viewpoint and its weight."""
    terms = [(t.weight, t.term) for t in problem.objective.terms if isinstance(t.term, Neutrality)]
    if not terms:
        must = "a guarantee about neutrality must have a viewpoint"
        got = "a problem without a neutrality term"
        raise InvalidInputError(must, got, "Add Neutrality(...), or pass viewpoint= to fit")
    if to is None and len(terms) > 1:
        do = f"Choose one: fit_facts(to={next(iter(problem.viewpoints))!r})"
        raise InvalidInputError(
            "a guarantee must be about one viewpoint", f"{len(terms)} neutrality terms", do
        )
    names = [viewpoint_of(term, problem.viewpoints) for _, term in terms]
    check_known(to or names[0], "'to'", names, "Name the viewpoint of a neutrality term")
    return terms[names.index(to or names[0])]


def _lam(problem: Problem, weight: float) -> float | None:
    """Return lam = n mu for Omega = (mu/2)||w||^2, None where no radius follows from it.

    The radius of a free intercept rests on the viewpoint of every term; with several, FitFacts shows only one
    of them. One side of a neutrality term can fall below psi(0), so with such a term none follows.
    """
    if not all(isinstance(omega, SquaredL2) for _, omega in problem.regularizers):
        return None
    if one_sided(problem) or (problem.intercept and (problem.etas > 0).sum() > 1):
        return None
    return problem.divisor * sum(mu for mu, _ in problem.regularizers) / weight
