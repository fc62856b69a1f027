"""Bounds on unseen data: the paper's theorems as functions, with checked assumptions.

The theorems assume that the n rows (x, y, v) of inputs, labels and viewpoints are i.i.d., that `|v| <= G`,
and that k(x, x) <= R^2; for linear models k(x, x) is ||x||^2. The class
`F = { x -> w.x + b : ||w|| <= B, |b| <= beta }` must be fixed before the data are seen. Then
`|f| <= M = B R + beta` and `|v f| <= G M` for every f in F. The class vF consists of the functions v f. The
loss is phi and the surrogate psi. R_n is the empirical risk, C_psi and C_n,psi are the expected and the
empirical relaxed neutrality risk, and C_sgn is the neutrality risk of the predictions.

A bound is computed in three steps:

1. the radii B and beta: :func:`norm_radius`, :func:`intercept_radius`, :func:`radius_from_data`;
2. the Rademacher complexity of the class: :func:`rademacher_linear`, :func:`rademacher_kernel`,
   :func:`rademacher_population`, :func:`rademacher_monte_carlo`;
3. the bound: :func:`risk_bound`, :func:`neutrality_bound`, :func:`optimal_neutrality_bound`.

:func:`holdout_neutrality_bound` and :func:`holdout_parity_bound` need only rows that the fit has not seen.
:func:`guarantee` computes all bounds for a fitted model, and says which of them are vacuous.
"""

from nerm.bounds.complexity import MonteCarloComplexity as MonteCarloComplexity
from nerm.bounds.complexity import intercept_radius as intercept_radius
from nerm.bounds.complexity import norm_radius as norm_radius
from nerm.bounds.complexity import rademacher_kernel as rademacher_kernel
from nerm.bounds.complexity import rademacher_linear as rademacher_linear
from nerm.bounds.complexity import rademacher_monte_carlo as rademacher_monte_carlo
from nerm.bounds.complexity import rademacher_population as rademacher_population
from nerm.bounds.complexity import radius_from_data as radius_from_data
from nerm.bounds.guarantee import Guarantee as Guarantee
from nerm.bounds.guarantee import Statement as Statement
from nerm.bounds.guarantee import guarantee as guarantee
from nerm.bounds.theorems import FitFacts as FitFacts
from nerm.bounds.theorems import holdout_neutrality_bound as holdout_neutrality_bound
from nerm.bounds.theorems import holdout_parity_bound as holdout_parity_bound
from nerm.bounds.theorems import holdout_rate_bound as holdout_rate_bound
from nerm.bounds.theorems import neutrality_bound as neutrality_bound
from nerm.bounds.theorems import optimal_neutrality_bound as optimal_neutrality_bound
from nerm.bounds.theorems import risk_bound as risk_bound
from nerm.bounds.theorems import worst_mixture as worst_mixture

__all__ = sorted(
    name for name, one in globals().items() if getattr(one, "__module__", "").startswith(__name__)
)
