"""Translate a problem to cvxpy, solve it with a solver of cvxpy, and read the solution back."""
