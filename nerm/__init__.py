"""nerm: neutralized empirical risk minimization."""
