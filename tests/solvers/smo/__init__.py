"""The SMO's parts."""

import nerm


def neutral_svm(X, y, v, lam, eta):
    """Return the neutral SVM of the paper's (lam, eta) as a problem."""
    objective = (
        nerm.Risk(nerm.Hinge()) + (lam / len(y)) * nerm.SquaredL2() + eta * nerm.Neutrality(nerm.Hinge())
    )
    return objective.on(X, y, viewpoint=v)
