"""From a problem to cvxpy and back."""

from nerm.modelling.builder import Model, build

__all__ = ["Model", "build"]
