"""Up to which weight a one-sided term leaves a problem bounded below: a straight line may outrun the risk."""

import numpy as np

from nerm.atoms.difference import DCFunction
from nerm.atoms.margin import MarginFunction
from nerm.atoms.regularizer import Regularizer
from nerm.atoms.squared_l2 import SquaredL2
from nerm.model.algebra import WeightedTerm
from nerm.model.objective import Risk
from nerm.neutralize.trial import Trial
from nerm.typing import Floats

ROUNDING = 1e-9  # a sum that is this small, relative to the sizes of what it adds, is 0


def largest_weight(trial: Trial, surrogate: MarginFunction | DCFunction, ways: Floats) -> float:
    """Return the weight up to which terms of this surrogate leave the problem bounded; 0 where none surely does.

    With a psi that has an infimum every weight does. The identity is a straight line: a term that punishes
    following the viewpoint is ``eta mean(u v f) = eta (w.q + b c)`` with ``c = mean(u v)``. A squared norm
    outgrows w.q. The intercept is held by the risk alone, which rises along b by the weight of those whose
    label b denies (times the slope of the loss), and so up to ``eta |c| =`` that share. Where weights balance
    two groups v = -1 and +1, as those of parity and of rates among labels do, c is 0; for C_sgn it is not,
    and at the largest weight f is a constant that opposes the larger group: every level of the measure lies
    before.

    Parameters
    ----------
    trial, surrogate
        The problem, and psi.
    ways : (number of parts,) array
        Positive where following the viewpoint is to be punished, negative where opposing it is.

    """
    if surrogate.facts.minimum != -np.inf:
        return np.inf
    terms = trial.problem.objective.terms
    if not any(_has_squared_norm(t) for t in terms):
        return 0.0
    pulls = np.array(
        [way * (u @ v) / np.abs(u * v).sum() for way, (u, v) in zip(ways, trial.pushed(), strict=True)]
    )
    if not trial.problem.intercept or (np.abs(pulls) <= ROUNDING * np.abs(ways)).all():
        return np.inf
    if len(pulls) > 1:
        return 0.0  # they pull together or against each other
    ((u, v),) = trial.pushed()
    p, toward = trial.problem, -np.sign(pulls[0])
    rises = np.zeros(p.n)
    for t in terms:
        if isinstance(t.term, Risk):
            low, high = t.term.loss.facts.slopes
            rises += t.weight * np.where(toward * p.y > 0, high, -low)
    return float(p.sample_weight[trial.used] @ rises[trial.used] / abs(u @ v))


def _has_squared_norm(term: WeightedTerm) -> bool:
    omega = term.term
    return isinstance(omega, Regularizer) and any(
        isinstance(part, SquaredL2) and term.weight * weight > 0 for weight, part in omega.parts()
    )
