"""The semismooth Newton augmented Lagrangian solver.

It is made for wide or sparse data and for kernels.
"""
