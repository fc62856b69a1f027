"""The settings of a fit to a table: target levels and the model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy.special import expit

from nerm.defaults import COMMAND_LINE, DEFAULTS, LIMITS
from nerm.metrics import Metric, as_metric, moved_by
from nerm.model.expressions import Neutrality, Risk
from nerm.tables.values import MISSING
from nerm.typing import Array, Floats, Matrix


@dataclass(frozen=True)
class Level:
    """The target of a fit: a limit on the measure, a weight of neutrality, or neither (the plain model).

    >>> Level(limit=0.02).label, Level(eta=0.5).option, Level().label
    ('limit 0.02', '--eta 0.5', 'no limit')
    """

    limit: float | None = None
    eta: float | None = None

    @property
    def label(self) -> str:
        """Its name in tables."""
        if self.limit is not None:
            return f"limit {self.limit:g}"
        return "no limit" if self.eta is None else f"η = {self.eta:g}"

    @property
    def key(self) -> str:
        """Its name in the address of a page: "limit=0.02", "eta=0.5", "limit=none"."""
        if self.eta is not None:
            return f"eta={self.eta:g}"
        return "limit=none" if self.limit is None else f"limit={self.limit:g}"

    @property
    def option(self) -> str:
        """The option of `nerm fit`."""
        return f"--limit {self.limit:g}" if self.limit is not None else f"--eta {self.eta or 0:g}"


@dataclass(frozen=True)
class Settings:
    """The model and its measurement; lam and eta in mean form. The defaults are those of `nerm.defaults`.

    Attributes
    ----------
    limits
        The limits of a trade-off; the model without any is always there.
    etas
        If there are any: the neutrality weights of a trade-off, in place of limits.
    measure, confidence
        The measure that is limited, a name in `nerm.metrics.METRICS`, and the probability with which the
        limit is to hold on new rows.
    lam, loss, surrogate, regularizer, kernel, weights, solver, tol
        As in `nerm.NERMClassifier`.
    class_weight
        "balanced": both classes count the same; "root": the square roots of these weights, so that a rare
        class counts more; None: every row the same.
    seed
        Of every split.
    delta
        Probability with which a bound may fail.
    budget
        How much AUC neutrality may cost on held-out rows.
    nominal, missing
        Columns to take as words, and the words for "missing".
    """

    limits: tuple[float, ...] = LIMITS
    etas: tuple[float, ...] = ()
    measure: str = COMMAND_LINE.measure
    confidence: float | None = None
    lam: float = COMMAND_LINE.lam
    loss: str = COMMAND_LINE.loss
    surrogate: str = COMMAND_LINE.surrogate
    regularizer: str = COMMAND_LINE.regularizer
    kernel: str = COMMAND_LINE.kernel
    weights: str = COMMAND_LINE.weights
    class_weight: str | None = COMMAND_LINE.class_weight
    solver: str = COMMAND_LINE.solver
    tol: float = COMMAND_LINE.tol
    seed: int = 0
    delta: float = COMMAND_LINE.delta
    budget: float = 0.03
    nominal: tuple[str, ...] = ()
    missing: tuple[str, ...] = MISSING

    @property
    def aim(self) -> Metric:
        """The measure that is limited, or the one that the weights of the neutrality term move."""
        return moved_by(self.weights) if self.etas else as_metric(self.measure)

    @property
    def levels(self) -> tuple[Level, ...]:
        """What a trade-off asks for, from the plain model on."""
        if self.etas:
            return tuple(Level(eta=eta) for eta in sorted({0.0, *self.etas}))
        return (Level(), *(Level(limit) for limit in sorted(set(self.limits), reverse=True)))

    def class_weights(self, y: Array) -> dict[float, float] | None:
        """Return the weights of the two classes, None where they are the same."""
        if self.class_weight in (None, "none"):
            return None
        power = {"balanced": 1.0, "root": 0.5}[str(self.class_weight)]
        return {side: float((0.5 / np.mean(y == side)) ** power) for side in (-1.0, 1.0)}

    def probability(self, scores: Floats, y: Array) -> Floats | None:
        """Return the probability that a score stands for, None where the loss is not logistic.

        Class weights w shift the log-odds of a logistic model by log(w_+ / w_-), which is taken back.
        """
        if self.loss != "logistic":
            return None
        weights = self.class_weights(y) or {-1.0: 1.0, 1.0: 1.0}
        return np.asarray(expit(scores - np.log(weights[1.0] / weights[-1.0])))

    def objective(self, terms: Sequence[str] = ()) -> Any:
        """Return the objective with neutrality weight 1 for each term."""
        from nerm.estimators.parameters import as_atom

        surrogate = as_atom(DEFAULTS.surrogate if self.surrogate == "auto" else self.surrogate, "surrogate")
        regularizer = self.lam * as_atom(self.regularizer, "regularizer")
        neutral = [Neutrality(surrogate, to, self.weights) for to in (terms if len(terms) > 1 else (None,))]
        return reduce(add, neutral, Risk(as_atom(self.loss, "loss")) + regularizer)

    def problem(self, X: Matrix, y: Floats, terms: Mapping[str, Floats]) -> Any:
        """Return the objective on coded rows, neutral to all terms."""
        weights = self.class_weights(y)
        weight = None if weights is None else np.where(y > 0, weights[1.0], weights[-1.0])
        viewpoint = dict(terms) if len(terms) > 1 else next(iter(terms.values()))
        kernel = None if self.kernel == "linear" else self.kernel
        return self.objective(tuple(terms)).on(X, y, viewpoint=viewpoint, kernel=kernel, sample_weight=weight)
