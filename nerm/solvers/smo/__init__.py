"""The SMO: pair steps on the dual of problems whose atoms are two straight lines each.

The paper's appendix, corrected: pair steps at fixed theta (`nerm.solvers.smo.fixed_theta`) inside a
one-dimensional search over theta (`nerm.solvers.smo.theta_search`), stopped by the true duality gap.
"""
