"""From a problem to cvxpy and back."""

from nerm.cvxpy_backend.builder import Model, build

__all__ = ["Model", "build"]
