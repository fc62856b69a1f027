"""CV2NB: Calders and Verwer's two naive Bayes models (Data Mining and Knowledge Discovery 21, 2010)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nerm.baselines.base import GroupClassifier
from nerm.baselines.naive_bayes import NominalCodes
from nerm.errors import InvalidInputError
from nerm.typing import Floats

STEP = 0.01
PROMOTION = np.array([-1.0, 1.0])  # of one row: a negative less, a positive more


@dataclass(eq=False, repr=False)
class CV2NB(GroupClassifier):
    """One naive Bayes model a group, whose class counts are moved until the groups fare alike.

    ``P(y|x,s) ~ (N[y,s] + 1/2) prod_j (n_s(y, x_j) + 1/V_j) / (n_sj(y) + 1)``, n_sj(y) the rows of (y, s) in
    which attribute j is not missing; missing entries (NaN, None) are skipped and a value not seen in fit
    counts as seen 0 times. Then, with disc = P(yhat=1|s=1) - P(yhat=1|s=0) and numpos the number of positive
    predictions, both from hard predictions on the training rows::

        while disc > 0:
            if numpos < number of positive labels: d = 0.01 N[0,1];  N[1,0] += d;  N[0,0] -= d
            else:                                  d = 0.01 N[1,0];  N[0,1] += d;  N[1,1] -= d
            (undo the step and stop when an entry would turn negative)

    Here s = 1 is the group that the unmodified model favours: ``favoured_`` names it. Only N changes, so the
    log-odds of the features are computed and sorted once and each turn is a search for two thresholds.

    Parameters
    ----------
    max_iter : int, optional
        At most so many turns; 0 leaves the two naive Bayes models as they are.

    Attributes
    ----------
    counts_ : array of shape (2, 2)
        The final N: rows in the order of ``classes_``, columns in that of ``groups_``.
    favoured_ : object
        The group that the unmodified model favours.
    trace_ : dict of arrays
        ``counts``, ``discrimination`` and ``positives``, one entry a turn, the first before any change.
    objective_ : float
        The last discrimination, which the loop drives to 0.
    n_iter_, converged_ : int, bool
        How many turns, and whether it got there.

    Examples
    --------
    >>> X = [[0], [0], [0], [1], [1], [1], [0], [1]] * 5
    >>> s, y = [-1, -1, -1, -1, 1, 1, 1, 1] * 5, [-1, -1, 1, -1, 1, 1, -1, 1] * 5
    >>> two = CV2NB(max_iter=0).fit(X, y, viewpoint=s)
    >>> two.objective_, two.counts_.tolist()
    (0.75, [[15.0, 5.0], [5.0, 15.0]])
    >>> model = CV2NB().fit(X, y, viewpoint=s)
    >>> model.objective_, model.converged_, model.counts_.sum(axis=0).round(6).tolist()  # the groups keep their sizes
    (0.0, True, [20.0, 20.0])
    """

    max_iter: int | None = None

    sees_group: ClassVar[bool] = True
    level: ClassVar[str] = "asked"  # always 0

    def fit(self, X: Any, y: Any, *, viewpoint: Any = None) -> Self:
        """Count, then move counts between the classes until the discrimination is gone.

        Parameters
        ----------
        X : array or DataFrame of shape (n, d)
            A nominal table: codes, strings or pandas categories; NaN and None are missing.
        y, viewpoint : array-like of shape (n,)
            Two values each; the larger is the desired outcome, the favoured group.
        """
        if self.max_iter is not None and (int(self.max_iter) != self.max_iter or self.max_iter < 0):
            must = "'max_iter' must be None or a whole number, at least 0"
            raise InvalidInputError(must, repr(self.max_iter), "Use None for no limit")
        self._nominal = NominalCodes(X)
        codes = self._nominal.codes(X)
        positive, favoured = self._fit_cells(X, y, viewpoint, len(codes))
        self._odds = [self._nominal.log_odds(codes[rows], positive[rows]) for rows in (~favoured, favoured)]
        features = [self._odds[s][codes[favoured == bool(s)]].sum(axis=1) for s in (0, 1)]
        counts = np.array(
            [[(positive == bool(c))[favoured == bool(s)].sum() for s in (0, 1)] for c in (0, 1)]
        )
        self._balance([np.sort(f) for f in features], counts.astype(float), int(positive.sum()))
        reached = (
            f"the discrimination is still {self.objective_:.3g} and the next step would make a count negative"
        )
        stopped = self.objective_ <= 0 or self.n_iter_ == self.max_iter  # as it was asked to
        self._conclude(stopped, reached, "The trace in trace_ shows how it fell")
        self.converged_ = self.objective_ <= 0
        return self

    def _balance(self, features: list[Floats], counts: Floats, positives: int) -> None:
        """Run the loop on the sorted feature log-odds of the groups."""
        sizes = np.array([len(f) for f in features])

        def predicted(N: Floats) -> Floats:
            """Count the positive predictions a group: feature log-odds above minus the prior's."""
            prior = np.log(N[1] + 0.5) - np.log(N[0] + 0.5)
            below = [np.searchsorted(f, -t, side="right") for f, t in zip(features, prior, strict=True)]
            return sizes - np.array(below)

        rates = predicted(counts) / sizes
        top = 1 if rates[1] >= rates[0] else 0  # columns of N in the algorithm's roles: s = 1 is `top`
        low = 1 - top
        self.favoured_ = self.groups_[top]
        N = counts.copy()
        trace: list[tuple[Floats, float, int]] = []
        while True:
            hits = predicted(N)
            disc = float(hits[top] / sizes[top] - hits[low] / sizes[low])
            trace.append((N.copy(), disc, int(hits.sum())))
            if disc <= 0 or len(trace) - 1 == self.max_iter:
                break
            if hits.sum() < positives:
                N[:, low] += STEP * N[0, top] * PROMOTION
            else:
                N[:, top] -= STEP * N[1, low] * PROMOTION
            if N.min() < 0:
                break
        names = ("counts", "discrimination", "positives")
        self.trace_ = {
            name: np.array(values) for name, values in zip(names, zip(*trace, strict=True), strict=True)
        }
        self.counts_ = self.trace_["counts"][-1]
        self.objective_, self.n_iter_ = disc, len(trace) - 1

    def decision_function(self, X: Any, *, viewpoint: Any = None) -> Floats:
        """Return the log-odds of the desired outcome with the final counts."""
        check_is_fitted(self)
        self._check_columns(X)
        codes = self._nominal.codes(X)
        favoured = self._known_groups(viewpoint, len(codes))
        prior = np.log(self.counts_[1] + 0.5) - np.log(self.counts_[0] + 0.5)
        scores = np.empty(len(codes))
        for s, rows in enumerate((~favoured, favoured)):
            scores[rows] = self._odds[s][codes[rows]].sum(axis=1) + prior[s]
        return scores
