"""The solver "interior-point": a primal-dual method for linear problems."""
