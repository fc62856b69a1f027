"""One threshold per group on the scores of any classifier; the unprocessing of Cruz and Hardt (2024)."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from nerm import metrics
from nerm.baselines.base import GroupClassifier, base_classifier, scores_of, viewpoint_for
from nerm.errors import InvalidInputError
from nerm.typing import Bools, Floats, Ints
from nerm.validation import check_known
from nerm.weights import resolve


class Cuts(NamedTuple):
    """All thresholds of one group that give different predictions, in decreasing order.

    The arrays have one entry per threshold. The first threshold accepts no row (predicts the desired outcome
    for none), the last accepts all rows.
    """

    thresholds: Floats
    hits: Ints  #: number of correctly predicted rows, up to an additive constant
    statistics: list[Floats]  #: one nondecreasing array per neutrality weight u: sum of u_i sign(f_i - t)


def cuts(scores: Floats, positive: Bools, weights: list[Floats]) -> Cuts:
    """Return the cuts of one group; rows with equal scores are never separated.

    Scores, the mask of the desired outcome and each of the neutrality weights are (n,). Weights are constant
    on the rows with the desired outcome, and on the others.
    """
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    accepted = np.concatenate([[0], np.flatnonzero(np.diff(ranked)) + 1, [len(ranked)]])
    wanted = np.concatenate([[0], np.cumsum(positive[order])])[accepted]
    unwanted = accepted - wanted
    edges = np.concatenate([[ranked[0] + 1.0], ranked[accepted[:-1]], [ranked[-1] - 1.0]])
    middle = edges[:-1] / 2 + edges[1:] / 2
    sums = [u[positive][0] * wanted + u[~positive][0] * unwanted for u in weights]
    thresholds = np.where(middle < edges[:-1], middle, edges[1:])
    return Cuts(thresholds, wanted - unwanted, [2 * total - total[-1] for total in sums])


@dataclass(eq=False, repr=False)
class GroupThresholds(GroupClassifier):
    """The most accurate pair of thresholds, one per group, within a limit on the training rows.

    ``max over (t_0, t_1) of accuracy(f(x_i) > t_{v_i})  subject to  |measure| <= limit``

    The optimum over all pairs of thresholds is exact and takes O(n log n) time. A measure is a weighted
    agreement of predictions and groups (see `nerm.weights`): the difference of a statistic between the
    groups, which is monotone in the threshold. So for each threshold of one group, the allowed thresholds of
    the other form an interval, and a table gives the most accurate one of the interval. Predictions are
    deterministic, unlike those of randomised thresholds (Hardt, Price and Srebro, 2016), and they need the
    viewpoint.

    ``decision_function`` is f(x) - t_v.

    Parameters
    ----------
    estimator : classifier, optional
        The classifier whose scores are thresholded; logistic regression by default. A fitted classifier (or a
        `Solution`) is used unchanged; an unfitted one is cloned and fitted.
    limit : float
        The limit on the absolute value of the measure; ``math.inf`` for none.
    measure : str
        A measure of `nerm.metrics`: ``"calders_verwer_score"`` (parity), ``"neutrality_risk"`` (C_sgn),
        ``"equal_opportunity_difference"``, ``"predictive_equality_difference"`` or
        ``"equalized_odds_difference"``.

    Attributes
    ----------
    thresholds_ : array of shape (2,)
        The thresholds, in the order of ``groups_``; each is halfway between two scores.
    neutrality_, objective_ : float
        The measure and the accuracy on the training rows.
    model_ : classifier
        The fitted classifier whose scores are thresholded.
    n_iter_, converged_ : int, bool
        Always 1 and True: the method is not iterative.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = np.repeat([-1, 1], 100); X = rng.normal(size=(200, 2)) + 0.5 * s[:, None]
    >>> y = X.sum(axis=1) + rng.normal(size=200) > 0
    >>> equal = GroupThresholds().fit(X, y, viewpoint=s)
    >>> near = GroupThresholds(limit=0.1).fit(X, y, viewpoint=s)
    >>> equal.neutrality_, abs(near.neutrality_) <= 0.1, near.objective_ >= equal.objective_
    (0.0, True, True)
    """

    estimator: Any = None
    limit: float = 0.0
    measure: str = "calders_verwer_score"

    sees_group: ClassVar[bool] = True
    level: ClassVar[str] = "asked"

    def _fit(self, X: Any, y: Any, viewpoint: Any) -> None:
        """Fit the classifier if it is not fitted, then find the best pair of thresholds."""
        known = {name: metric for name, metric in metrics.limitable().items() if metric.is_agreement}
        check_known(self.measure, "'measure'", known)
        if not self.limit >= 0:
            must = "'limit' must be at least 0"
            raise InvalidInputError(must, repr(self.limit), "Use math.inf for no limit")
        _, positive, favoured = self._prepare(X, y, viewpoint)
        self.model_ = self._fitted(X, y, viewpoint)
        scores = scores_of(self.model_, X, viewpoint)
        labels, sides = np.where(positive, 1, -1), np.where(favoured, 1, -1)
        weights = [resolve(name, labels, sides) / len(sides) for name in known[self.measure].weights]
        groups = [cuts(scores[g], positive[g], [u[g] for u in weights]) for g in (~favoured, favoured)]
        self.thresholds_ = np.array(self._best(*groups))
        report = metrics.report(labels, self._scores(scores, favoured), sides)
        self.neutrality_, self.objective_ = report[self.measure], report.accuracy
        self.n_iter_, self.converged_ = 1, True

    def decision_function(self, X: Any, *, viewpoint: Any = None) -> Floats:
        """Return the score of each row minus the threshold of its group, (n,)."""
        _, favoured = self._known(X, viewpoint)
        return self._scores(scores_of(self.model_, X, viewpoint), favoured)

    def _scores(self, rows: Floats, favoured: Bools) -> Floats:
        """Return the scores `rows` of the classifier minus the thresholds, (n,)."""
        return rows - self.thresholds_[favoured.astype(int)]

    def _fitted(self, X: Any, y: Any, viewpoint: Any) -> Any:
        """Return the fitted classifier whose scores are thresholded."""
        if self.estimator is not None:
            if not hasattr(self.estimator, "get_params"):
                return self.estimator
            with suppress(NotFittedError):
                check_is_fitted(self.estimator)
                return self.estimator
        model = base_classifier(self.estimator)
        return model.fit(X, y, **viewpoint_for(model.fit, viewpoint))

    def _best(self, first: Cuts, second: Cuts) -> tuple[float, float]:
        """Return the most accurate pair of thresholds within the limit, one per group."""
        pairs = list(zip(first.statistics, second.statistics, strict=True))
        within = self.limit + 8 * np.finfo(float).eps  # allow for rounding errors of the statistics
        low = np.max([np.searchsorted(b, a - within, side="left") for a, b in pairs], axis=0)
        high = np.min([np.searchsorted(b, a + within, side="right") for a, b in pairs], axis=0)
        allowed = np.flatnonzero(low < high)
        if len(allowed) == 0:
            a, b = pairs[0]
            above = np.searchsorted(b, a).clip(1, len(b) - 1)
            least = min(np.abs(b[above] - a).min(), np.abs(b[above - 1] - a).min())
            must = f"'limit' must be at least {least:.3g}, the smallest {self.measure} of these scores"
            raise InvalidInputError(must, repr(self.limit), "Raise the limit")
        low, high = low[allowed], high[allowed]
        best = int(np.argmax(first.hits[allowed] + largest(second.hits, low, high)))
        partner = low[best] + np.argmax(second.hits[low[best] : high[best]])
        return first.thresholds[allowed[best]], second.thresholds[partner]


def largest(values: Ints, low: Ints, high: Ints) -> Ints:
    """Return max(values[low:high]) for many nonempty intervals, (number of intervals,).

    Each interval is the union of two intervals of length 2^k, whose maxima are tabulated.
    """
    found, table, span = np.empty_like(low), values, 1
    while True:
        rows = high - low >= span  # longer intervals are overwritten at a longer span
        found[rows] = np.maximum(table[low[rows]], table[high[rows] - span])
        if 2 * span > len(values):
            return found
        table, span = np.maximum(table[:-span], table[span:]), 2 * span


@dataclass(eq=False, repr=False)
class Unprocessed(GroupThresholds):
    """The most accurate pair of thresholds on a fitted model's scores, without a limit.

    Post-processing finds the most accurate thresholds, one per group, within a limit. Unprocessing is the
    same search without a limit (``limit=math.inf``). Cruz and Hardt ("Unprocessing seven years of algorithmic
    fairness", ICLR 2024) use it to compare methods. First, every model is unprocessed:
    ``Unprocessed(model)``. Second, the most accurate of the unprocessed models is post-processed to a limit:
    ``Unprocessed(model, limit=0.02)``. If the result is as good as a model that was trained with this limit,
    the training had no advantage over thresholds. Cruz and Hardt allow randomised thresholds, which are no
    better without a limit; here thresholds are deterministic.

    Predictions need the viewpoint. Unprocessing therefore measures the information in a model's scores, and
    is no alternative to methods whose predictions must not depend on the group.

    Parameters and attributes are those of `GroupThresholds`.

    Examples
    --------
    >>> from nerm.baselines import EtaNeutralLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> s = np.repeat([-1, 1], 100); X = rng.normal(size=(200, 2)) + 0.5 * s[:, None]
    >>> y = X.sum(axis=1) + rng.normal(size=200) > 0
    >>> neutral = EtaNeutralLogisticRegression(eta=0.0).fit(X, y, viewpoint=s)
    >>> Unprocessed(neutral).fit(X, y, viewpoint=s).objective_ >= neutral.score(X, y)
    True
    """

    limit: float = np.inf
