"""Semismooth Newton augmented Lagrangian: for wide and sparse data, and for kernels."""
