"""The public names of `nerm.model.weights`."""

from nerm.model.weights import *  # noqa: F403
from nerm.model.weights import __all__ as __all__
