"""The mathematical model: expressions, constraints, and the problem that binds them to data."""
