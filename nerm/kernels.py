"""The public names of `nerm.model.kernels`."""

from nerm.model.kernels import *  # noqa: F403
from nerm.model.kernels import __all__ as __all__
