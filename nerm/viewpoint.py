"""The public names of `nerm.model.viewpoint`."""

from nerm.model.viewpoint import *  # noqa: F403
from nerm.model.viewpoint import __all__ as __all__
