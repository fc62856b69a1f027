"""The semismooth Newton augmented Lagrangian solver, for wide or sparse data and for kernels."""
