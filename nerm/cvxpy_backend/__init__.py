"""From a problem to cvxpy and back, and the solvers behind cvxpy."""
