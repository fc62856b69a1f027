"""Naive Bayes on nominal tables: the plain model, and CV2NB of Calders and Verwer (2010)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import validate_data

from nerm.baselines.base import GroupClassifier
from nerm.datasets.coding import Levels, as_frame
from nerm.splitting import as_count
from nerm.typing import Bools, Floats, Ints
from nerm.validation import as_labels


class NominalCodes:
    """Integer codes for the values of all attributes of a nominal table.

    Different attributes have different codes. Attribute j, with V_j values in the training rows, has
    ``V_j + 2`` consecutive codes: one per value, one for values not seen in fit, and one for missing entries.
    """

    def __init__(self, X: Any) -> None:
        self.levels = [Levels.seen(column) for _, column in as_frame(X).items()]
        self.sizes = np.array([len(levels.values) for levels in self.levels])
        self.starts = np.concatenate([[0], np.cumsum(self.sizes + 2)])

    def codes(self, X: Any) -> Ints:
        """Return the codes of a table, (n, d)."""
        frame = as_frame(X)
        pairs = zip(self.levels, frame.items(), strict=True)
        places = np.column_stack([levels.codes(column) for levels, (_, column) in pairs])
        numbers = np.where(frame.isna(), self.sizes + 1, np.where(places < 0, self.sizes, places))
        return self.starts[:-1] + numbers

    def log_odds(self, codes: Ints, positive: Bools) -> Floats:
        """Return the contribution of each code to the log-odds of the positive class, (number of codes,).

        It is ``log P(x_j | 1) - log P(x_j | 0)`` with ``P(x_j | y) = (n(y, x_j) + 1/V_j) / (n_j(y) + 1)``.
        Here n(y, x_j) is the number of rows of class y with value x_j, and n_j(y) the number of rows of class
        y in which attribute j is not missing. An unseen value has n(y, x_j) = 0; a missing entry contributes
        0.
        """
        missing = self.starts[1:] - 1
        smooth = np.repeat(1.0 / np.maximum(self.sizes, 1), self.sizes + 2)

        def log_chances(chosen: Bools) -> Floats:
            counts = np.bincount(codes[chosen].ravel(), minlength=int(self.starts[-1]))
            present = np.repeat(chosen.sum() - counts[missing], self.sizes + 2)
            return np.asarray(np.log(counts + smooth) - np.log(present + 1.0))

        odds = log_chances(positive) - log_chances(~positive)
        odds[missing] = 0.0
        return odds


class NominalNaiveBayes(GroupClassifier):
    """Naive Bayes with the smoothing of Calders and Verwer (2010); the viewpoint is not used.

    ``P(y|x) ~ (N[y] + 1/2) prod_j (n(y, x_j) + 1/V_j) / (n_j(y) + 1)``

    Here N[y] is the number of rows of class y, n(y, x_j) the number of those with value x_j, n_j(y) the
    number of those in which attribute j is not missing, and V_j the number of values of attribute j in the
    training rows. Missing entries (NaN, None) are skipped; a value not seen in fit has n(y, x_j) = 0.

    Attributes
    ----------
    counts_ : array of shape (2,)
        The number of rows N[y] of each class.
    objective_ : float
        The negative log-likelihood of the training labels.
    n_iter_, converged_ : int, bool
        Always 0 and True: the method only counts rows.

    Examples
    --------
    >>> model = NominalNaiveBayes().fit([[0], [0], [1], [1]], [-1, -1, 1, -1])
    >>> model.predict([[0], [1], [float("nan")]])
    array([-1, -1, -1])
    """

    level: ClassVar[str] = "none"

    def _fit(self, X: Any, y: Any, viewpoint: Any) -> None:
        """Count the rows by class and value."""
        self._nominal = NominalCodes(X)
        codes = self._rows(X)
        labels, self.classes_ = as_labels(y, len(codes))
        validate_data(self, X, skip_check_array=True)
        self.counts_ = np.bincount(labels > 0, minlength=2).astype(float)
        self._odds = self._nominal.log_odds(codes, labels > 0)[None]
        scores = self._scores(codes, np.zeros(len(codes), dtype=bool))
        self.objective_ = float(np.logaddexp(0.0, -labels * scores).sum())
        self.n_iter_, self.converged_ = 0, True

    def _rows(self, X: Any) -> Ints:
        """Return the codes of a table, (n, d)."""
        return self._nominal.codes(X)

    def _scores(self, rows: Ints, favoured: Bools) -> Floats:
        """Return the log-odds of the desired outcome, (n,), from the codes of the rows."""
        s = favoured.astype(int)
        return self._odds[s[:, None], rows].sum(axis=1) + np.atleast_1d(log_prior(self.counts_))[s]


def log_prior(counts: Floats) -> Floats:
    """Return the log-odds of the class counts in the rows of an array (two, ...)."""
    return np.asarray(np.log(counts[1] + 0.5) - np.log(counts[0] + 0.5))


@dataclass(eq=False, repr=False)
class CV2NB(NominalNaiveBayes):
    """One naive Bayes model per group, with class counts changed until both groups have equal rates.

    ``P(y|x,s) ~ (N[y,s] + 1/2) prod_j (n_s(y, x_j) + 1/V_j) / (n_sj(y) + 1)``

    The counts are as in `NominalNaiveBayes`, but among the rows of group s. Then N is changed in a loop. Let
    disc = P(yhat=1|s=1) - P(yhat=1|s=0) be the discrimination, and numpos the number of positive predictions,
    both from the predicted classes yhat of the training rows::

        while disc > 0:
            if numpos < number of positive labels: d = 0.01 N[0,1];  N[1,0] += d;  N[0,0] -= d
            else:                                  d = 0.01 N[1,0];  N[0,1] += d;  N[1,1] -= d
            (undo the step and stop when an entry would turn negative)

    Here s = 1 is the group with the higher positive rate in the unmodified model (``favoured_``). Only N
    changes, so the log-odds of the features are computed and sorted once. An iteration then needs only one
    binary search per group.

    Parameters
    ----------
    max_iter : int, optional
        Maximal number of iterations; 0 leaves the two naive Bayes models unchanged.

    Attributes
    ----------
    counts_ : array of shape (2, 2)
        The final N: rows in the order of ``classes_``, columns in that of ``groups_``.
    favoured_ : object
        The group with the higher positive rate in the unmodified model.
    trace_ : dict of arrays
        ``counts``, ``discrimination`` and ``positives``, one entry per iteration; the first entry is before
        any change.
    objective_ : float
        The final discrimination, which the loop decreases until it is at most 0.
    n_iter_, converged_ : int, bool
        Number of iterations, and whether the discrimination is at most 0.

    Examples
    --------
    >>> X = [[0], [0], [0], [1], [1], [1], [0], [1]] * 5
    >>> s, y = [-1, -1, -1, -1, 1, 1, 1, 1] * 5, [-1, -1, 1, -1, 1, 1, -1, 1] * 5
    >>> two = CV2NB(max_iter=0).fit(X, y, viewpoint=s)
    >>> two.objective_, two.counts_.tolist()
    (0.75, [[15.0, 5.0], [5.0, 15.0]])
    >>> model = CV2NB().fit(X, y, viewpoint=s)
    >>> model.objective_, model.converged_
    (0.0, True)
    >>> model.counts_.sum(axis=0).round(6).tolist()  # the groups keep their sizes
    [20.0, 20.0]
    """

    max_iter: int | None = None

    sees_group: ClassVar[bool] = True
    level: ClassVar[str] = "asked"  # the target level is always 0

    def _fit(self, X: Any, y: Any, viewpoint: Any) -> None:
        """Count the rows, then change the class counts until the discrimination is at most 0."""
        if self.max_iter is not None:
            as_count(self.max_iter, "max_iter", 0, do="Use None for no limit")
        self._nominal = NominalCodes(X)
        codes, positive, favoured = self._prepare(X, y, viewpoint)
        groups = (~favoured, favoured)
        self._odds = np.stack([self._nominal.log_odds(codes[rows], positive[rows]) for rows in groups])
        odds = self._odds[favoured.astype(int)[:, None], codes].sum(axis=1)
        counts = np.bincount(2 * positive + favoured, minlength=4).reshape(2, 2)
        self._balance([np.sort(odds[rows]) for rows in groups], counts.astype(float), int(positive.sum()))
        left = f"the discrimination is still {self.objective_:.3g}"
        reached = f"{left} and the next step would make a count negative"
        stopped = self.objective_ <= 0 or self.n_iter_ == self.max_iter  # max_iter reached: no warning
        self._conclude(stopped, reached, "The trace in trace_ shows how it fell")
        self.converged_ = self.objective_ <= 0

    def _balance(self, features: list[Floats], counts: Floats, positives: int) -> None:
        """Run the loop and set the fitted attributes.

        Parameters
        ----------
        features : list of two arrays
            For each group, the sorted log-odds of the rows without the prior.
        counts : (2, 2) array
            The initial N: one row per class, one column per group.
        positives : int
            The number of positive labels.
        """
        sizes = np.array([len(f) for f in features])

        def predicted(N: Floats) -> Floats:
            """Return the number of positive predictions per group, (2,): log-odds + prior > 0."""
            pairs = zip(features, log_prior(N), strict=True)
            below = [np.searchsorted(f, -t, side="right") for f, t in pairs]
            return sizes - np.array(below)

        N, trace = counts.copy(), []
        low, top = np.argsort(predicted(N) / sizes, kind="stable")  # the columns of N for s = 0 and s = 1
        self.favoured_ = self.groups_[top]
        while True:
            hits = predicted(N)
            disc = float(hits[top] / sizes[top] - hits[low] / sizes[low])
            trace.append({"counts": N.copy(), "discrimination": disc, "positives": int(hits.sum())})
            if disc <= 0 or len(trace) - 1 == self.max_iter:
                break
            if hits.sum() < positives:
                N[:, low] += 0.01 * N[0, top] * np.array([-1.0, 1.0])
            else:
                N[:, top] += 0.01 * N[1, low] * np.array([1.0, -1.0])
            if N.min() < 0:
                break
        self.trace_ = {name: np.array([step[name] for step in trace]) for name in trace[0]}
        self.counts_ = self.trace_["counts"][-1]
        self.objective_, self.n_iter_ = disc, len(trace) - 1
