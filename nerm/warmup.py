"""Compile all numba functions of nerm ahead: `python -m nerm.warmup`.

numba keeps the compiled code on disk, and later processes load it. Run this module when you build a container
image, or once before the jobs of a cluster; an installation from the source does so itself (hatch_build.py).
"""

import numpy as np


def warm_up() -> None:
    """Solve small problems that call all compiled functions with all types of arguments."""
    import scipy.sparse as sp

    import nerm

    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    y, viewpoint = np.sign(X[:, 0] + 0.5 * rng.normal(size=(2, len(X))))
    cases = (
        (len(X), X, "interior-point", None),  # enough rows to condense the problem
        (200, sp.csr_array(X), "interior-point", None),
        (200, sp.csr_array(X), "augmented-lagrangian", None),
        (200, X[:200] @ X[:200].T, "smo", "precomputed"),
    )
    for atom in (nerm.Hinge(), nerm.SquaredHinge()):
        objective = nerm.Risk(atom) + 0.1 * nerm.SquaredL2() + nerm.Neutrality(atom)
        for n, features, solver, kernel in cases:
            problem = objective.on(features[:n], y[:n], viewpoint=viewpoint[:n], kernel=kernel)
            problem.solve(solver=solver)


if __name__ == "__main__":
    warm_up()
