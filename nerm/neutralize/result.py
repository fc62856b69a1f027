"""What comes of asking for a level: a solution, how it was found and what else was tried."""

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from nerm.certify.solution import Solution


@dataclass(frozen=True, eq=False, repr=False)
class Neutralized:
    """A solution within an asked limit of measured neutrality.

    Attributes
    ----------
    solution : Solution
        Certified; of the problem with one-sided neutrality terms of the weights that were found.
    eta, side
        Weight and side of the term; a tuple each where there are several.
    surrogate : MarginFunction
        What the terms are made of.
    measure, limit, value
        What was asked for, and the measure of the solution, signed where it has one part.
    reached : bool
        Whether it is within the limit.
    trace : pandas.DataFrame
        Every solve: surrogate, weight, measure, accuracy, AUC, positive rates, status, certified gap; one is
        `chosen`.
    choice : pandas.DataFrame
        How the surrogates compared on rows that were set apart; empty where one was given.

    >>> import numpy as np, nerm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)); v = np.where(X[:, 0] + rng.normal(size=300) > 0, 1, -1)
    >>> y = np.where(X.sum(axis=1) > 0, 1, -1)
    >>> problem = (nerm.Risk(nerm.Logistic()) + 0.01 * nerm.SquaredL2()).on(X, y, viewpoint=v)
    >>> found = problem.neutralize(0.05, surrogate=nerm.Hinge())
    >>> found.side, found.reached, found.trace["status"].unique().tolist()
    ('agreement', True, ['optimal'])

    """

    solution: Solution
    eta: float | tuple[float, ...]
    side: str | tuple[str, ...]
    surrogate: Any
    measure: str
    limit: float
    value: float
    reached: bool
    trace: pd.DataFrame = field(repr=False)
    choice: pd.DataFrame = field(repr=False)

    def __repr__(self) -> str:
        eta = f"{self.eta:.4g}" if isinstance(self.eta, float) else ", ".join(f"{e:.4g}" for e in self.eta)
        chosen = self.trace[self.trace["chosen"]].iloc[0]
        return (
            f"{self.measure} {self.value:+.4f} (limit {self.limit:g}), by {self.surrogate!r} with eta {eta}: accuracy "
            f"{chosen['accuracy']:.4f}, AUC {chosen['auc']:.4f} on the training rows, {len(self.trace)} solves"
        )
