"""Neutralized empirical risk minimization on Adult: a quadratic and an exponential-cone program.

A classifier f = X w + b predicts the label y and is kept from following the viewpoint v by the larger of two risks:

    minimize  mean phi(y f) + (lam / 2) ||w||^2 + eta max(mean phi(v f), mean phi(-v f)).

The maximum is attained by both sides at the optimum, so the problem does not split into two plain ones. Fukuchi and Sakuma, Neutralized empirical risk
minimization with generalization neutrality bound, ECML PKDD 2014.
"""

from __future__ import annotations

import cvxpy as cp
from solver_benchmarks.data.adult import adult_rows
from solver_benchmarks.problems import register_problem


def neutral_problem(seed: int, rows: int, phi) -> cp.Problem:
    X, y, v = adult_rows(seed, rows)
    w, b, f = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable(rows)

    def risk(target):
        return cp.sum(phi(cp.multiply(target, f))) / rows

    objective = risk(y) + 0.5e-2 * cp.sum_squares(w) + cp.maximum(risk(v), risk(-v))
    return cp.Problem(cp.Minimize(objective), [f == X @ w + b])


@register_problem(
    "qp/neutral_svm_adult",
    tags=["qp", "medium", "adult"],
    description="Support vector machine that is neutral to sex, on 5,000 rows of Adult",
)
def neutral_svm_adult(seed: int = 0) -> cp.Problem:
    return neutral_problem(seed, 5000, lambda margin: cp.pos(1 - margin))


@register_problem(
    "ecp/neutral_logistic_adult",
    tags=["ecp", "medium", "adult"],
    description="Logistic regression that is neutral to sex, on 2,000 rows of Adult",
)
def neutral_logistic_adult(seed: int = 0) -> cp.Problem:
    return neutral_problem(seed, 2000, lambda margin: cp.logistic(-margin))
