"""Sequential minimal optimization (SMO) for piecewise quadratic atoms.

An atom with several kinks or parabolas is first split into atoms with one of them each
(`nerm.solvers.linalg.merging`). This is the corrected version of the algorithm in the paper's appendix. Pair
steps on the dual at fixed theta (`nerm.solvers.smo.fixed_theta`) run inside a one-dimensional search over
theta (`nerm.solvers.smo.theta_search`), which stops by the duality gap of the whole problem. Here
max(C+, C-) is the maximum over theta in [0, 1] of theta C+ + (1 - theta) C-.
"""
