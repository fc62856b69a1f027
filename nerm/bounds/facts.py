"""From a solution to what the bounds need to know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nerm import weights as neutrality_weights
from nerm.atoms.squared_l2 import SquaredL2
from nerm.blocks import viewpoint_of
from nerm.bounds.guarantee import FitFacts
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.objective import Neutrality, Risk

if TYPE_CHECKING:
    from nerm.problem import Problem
    from nerm.solution import Solution


def facts_of(solution: Solution, to: str | None = None) -> FitFacts:
    """Return the facts of a solution about its neutrality to one viewpoint.

    to
        The name of the viewpoint; it can be left out when the problem has one neutrality term.

    The objective is divided by the weight of its risk, so that eta, lam and the gap are those of the theorems. With
    several neutrality terms eta (C_k - psi_k(0)) <= phi(0) + gap still holds for each, since no C_k is below
    psi_k(0).

    >>> import nerm
    >>> X, y, v = np.array([[1.0], [2.0], [-1.0], [-2.0]]), [1, 1, -1, -1], [1, -1, 1, -1]
    >>> objective = 2 * nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2() + 4 * nerm.Neutrality(nerm.Hinge())
    >>> facts = facts_of(objective.on(X, y, viewpoint=v).solve())
    >>> facts.eta, facts.lam
    (2.0, 1.0)
    """
    problem = solution.problem
    risks = [(t.weight, t.term) for t in problem.objective.terms if isinstance(t.term, Risk)]
    if len(risks) != 1 or not risks[0][0] > 0:
        raise InvalidInputError(
            "a guarantee must be about one risk of positive weight",
            f"{len(risks)} risk terms",
            "Use an objective with a single Risk",
        )
    ((weight, risk),) = risks
    eta, term = _term(problem, to)
    v = problem.viewpoints[viewpoint_of(term, problem.viewpoints)]
    weights = neutrality_weights.resolve(term.weights, problem.y, v)
    coef, intercept = problem.checked(solution.coef, solution.intercept)
    return FitFacts(
        scores=solution.training_scores(),
        y=problem.y,
        viewpoint=v,
        loss=risk.loss,
        surrogate=term.surrogate,
        eta=eta / weight,
        coef_norm=float(np.sqrt(problem.hypothesis.squared_norm(coef))),
        intercept=intercept,
        diagonal=problem.rows.spread(problem.hypothesis.squared_row_norms()),
        lam=_lam(problem, weight),
        gap=max(solution.certificate.gap, 0.0) / weight,
        fit_intercept=problem.intercept,
        sample_weight=None if (problem.sample_weight == 1).all() else problem.sample_weight,
        neutrality_weights=None if (weights == 1).all() else weights,
    )


def _term(problem: Problem, to: str | None) -> tuple[float, Neutrality]:
    """Return the neutrality term of this viewpoint and its weight."""
    terms = [(t.weight, t.term) for t in problem.objective.terms if isinstance(t.term, Neutrality)]
    if not terms:
        raise InvalidInputError(
            "a guarantee about neutrality must have a viewpoint",
            "a problem without a neutrality term",
            "Add Neutrality(...), or pass viewpoint= to fit",
        )
    if to is None:
        if len(terms) > 1:
            raise InvalidInputError(
                "a guarantee must be about one viewpoint",
                f"{len(terms)} neutrality terms",
                f"Choose one: fit_facts(to={next(iter(problem.viewpoints))!r})",
            )
        return terms[0]
    if to not in problem.viewpoints:
        raise UnknownNameError("'to'", to, problem.viewpoints, "Name a viewpoint that was given")
    for weight, term in terms:
        if viewpoint_of(term, problem.viewpoints) == to:
            return weight, term
    raise InvalidInputError(
        "'to' must name the viewpoint of a neutrality term", repr(to), "Add Neutrality(..., to=...) to the objective"
    )


def _lam(problem: Problem, weight: float) -> float | None:
    """Return lam = n mu for Omega = (mu/2)||w||^2, None where no radius follows from it.

    The radius of a free intercept rests on the viewpoint of every term; with several, FitFacts shows only one of them.
    """
    if not all(isinstance(omega, SquaredL2) for _, omega in problem.regularizers):
        return None
    if problem.intercept and (problem.etas > 0).sum() > 1:
        return None
    return problem.divisor * sum(mu for mu, _ in problem.regularizers) / weight
