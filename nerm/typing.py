"""Short names for the types of arrays."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.intp]
Bools: TypeAlias = NDArray[np.bool_]
Array: TypeAlias = NDArray[Any]  # of labels, names or objects
Matrix: TypeAlias = Any  # floats, a dense array or scipy.sparse.csr_matrix
