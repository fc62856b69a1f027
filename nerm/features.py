"""Columns from fitted models, and a neutral last layer on them.

`LeafFeatures` makes one column per leaf of a tree ensemble, `ScoreFeatures` makes columns of a classifier's
scores. `NeutralHead` is a linear neutral model on such columns: its optimum is certified, the base model is
not.

A model fits its own training rows better than new rows. A last layer that learns from such scores gives them
too much weight. So the scores of training rows are cross-fitted: each row is scored by a model that was
fitted on the other folds.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedShuffleSplit, check_cv
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import (
    _check_feature_names_in,
    _is_fitted,
    _num_samples,
    check_array,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from nerm.defaults import DEFAULTS
from nerm.errors import InvalidInputError, NotNeutralError
from nerm.estimators import NERMClassifier
from nerm.estimators.design import as_viewpoint
from nerm.metrics import as_metric, thresholds
from nerm.typing import Array, Floats, Ints
from nerm.viewpoint import Column, resolve

__all__ = ["LeafFeatures", "NeutralHead", "ScoreFeatures", "neutral_head"]

CHANCES = 1e-6  # probabilities are kept this far from 0 and 1 before their logit is taken


def _check_columns(estimator: Any, X: Any, reset: bool = True) -> None:
    """Check that X is a table with the columns of `fit`; the base model checks the values."""
    if len(getattr(X, "shape", ())) == 1:
        check_array(X)  # raises scikit-learn's sentence
    validate_data(estimator, X, reset=reset, skip_check_array=True)


class _OnEstimator(MetaEstimatorMixin, BaseEstimator):
    """Base class of estimators around another one: they accept every X that it accepts."""

    estimator: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = copy.copy(self.estimator.__sklearn_tags__().input_tags)
        return tags


class LeafFeatures(TransformerMixin, _OnEstimator):
    """The leaves of a tree ensemble as columns: 1 if the row falls into the leaf, else 0.

    A linear model on these columns has one coefficient per leaf, so it can replace the last layer of the
    ensemble.

    Parameters
    ----------
    estimator : tree ensemble
        A forest, GradientBoosting or HistGradientBoosting of scikit-learn, or a model of LightGBM or XGBoost.
        A fitted ensemble is used unchanged; one that is not fitted is cloned and fitted on (X, y). A grid
        search calls `sklearn.base.clone`, so there the ensemble is always fitted again.

    Attributes
    ----------
    estimator_ : the fitted ensemble
    encoder_ : OneHotEncoder
        The leaves of each tree that occur in the rows given to `fit`. Other leaves become zeros.

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = np.arange(12.0).reshape(6, 2), [0, 0, 0, 1, 1, 1]
    >>> leaves = LeafFeatures(RandomForestClassifier(2, max_depth=1, random_state=0)).fit(X, y)
    >>> leaves.transform(X[:2]).toarray()
    array([[1., 0., 1., 0.],
           [1., 0., 1., 0.]])
    >>> leaves.get_feature_names_out()[0]
    'tree 0, leaf 1'

    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any = None) -> LeafFeatures:
        """Fit the ensemble on (X, y), unless it is fitted, and list its leaves."""
        if _is_fitted(self.estimator):
            self.estimator_ = self.estimator
        else:
            self.estimator_ = clone(self.estimator).fit(X, y)
        _check_columns(self, X)
        self.encoder_ = OneHotEncoder(handle_unknown="ignore", dtype=np.float64)
        self.encoder_.fit(leaf_numbers(self.estimator_, X))
        return self

    def transform(self, X: Any) -> Any:
        """Return the leaves of the rows of X as a sparse matrix, (n, number of leaves)."""
        check_is_fitted(self, "encoder_")
        _check_columns(self, X, reset=False)
        return self.encoder_.transform(leaf_numbers(self.estimator_, X))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return one name per leaf, such as 'tree 0, leaf 3'."""
        check_is_fitted(self, "encoder_")
        _check_feature_names_in(self, input_features)
        names = [
            f"tree {t}, leaf {leaf}" for t, seen in enumerate(self.encoder_.categories_) for leaf in seen
        ]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = not _is_fitted(self.estimator)
        return tags


def leaf_numbers(model: Any, X: Any) -> Ints:
    """Return the number of the leaf into which each row falls, (n, number of trees).

    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> X, y = np.arange(100.0)[:, None], np.arange(100) > 49
    >>> model = HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=2).fit(X, y)
    >>> leaf_numbers(model, X[[0, 99]]).tolist()
    [[1, 1, 1], [2, 2, 2]]
    """
    if hasattr(model, "apply"):
        leaves = model.apply(X)
    elif hasattr(model, "booster_"):
        leaves = model.predict(X, pred_leaf=True)
    elif hasattr(model, "_predict_iterations"):
        leaves = _histogram_leaves(model, X)
    else:
        do = "Pass a forest or a boosted ensemble of scikit-learn, LightGBM or XGBoost"
        raise InvalidInputError("'estimator' must be an ensemble of trees", repr(model), do)
    leaves = np.asarray(leaves)
    return leaves.reshape(len(leaves), -1).astype(np.int32)


def _histogram_leaves(model: Any, X: Any) -> Array:
    """Return the leaves of a HistGradientBoosting model, which has no method for them.

    A tree predicts the value of the leaf. In a copy of the tree, the value of each node is replaced by its
    number, so that the copy predicts the number of the leaf. scikit-learn handles missing values and
    categories.
    """
    X = model._preprocess_X(X, reset=False)
    found = []
    for tree in (tree for trees in model._predictors for tree in trees):
        numbered = copy.copy(tree)
        numbered.nodes = tree.nodes.copy()
        numbered.nodes["value"] = np.arange(len(tree.nodes))
        leaves = np.zeros((len(X), 1), dtype=np.float64, order="F")
        model._predict_iterations(X, [[numbered]], leaves, False, 1)
        found.append(leaves[:, 0])
    return np.column_stack(found)


def base_scores(model: Any, X: Any) -> Floats:
    """Return the scores of a classifier: its decision function, or the logits of its probabilities.

    The shape is (n, 1) for two classes and (n, number of classes) for more.
    """
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), dtype=float)
    else:
        scores = logit(np.clip(model.predict_proba(X), CHANCES, 1 - CHANCES))
        scores = scores[:, 1] if scores.shape[1] == 2 else scores
    return scores.reshape(len(scores), -1)


class ScoreFeatures(TransformerMixin, _OnEstimator):
    """The scores of a classifier as columns, cross-fitted on the rows that it learns from.

    `fit_transform`, which a pipeline calls on its training rows, scores each row by a clone that was fitted
    on the other folds. `transform` scores new rows by the classifier fitted on all rows. It warns if it gets
    the rows of `fit`, because the classifier was fitted on their labels.

    Parameters
    ----------
    estimator : classifier
        It has `decision_function` or `predict_proba`, and is cloned.
    cv : int or splitter
        The folds, as in scikit-learn.

    Attributes
    ----------
    estimator_ : the classifier fitted on all rows

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 1)), rng.integers(0, 2, 200)  # nothing can be learned here
    >>> scores = ScoreFeatures(DecisionTreeClassifier(random_state=0)).fit_transform(X, y)
    >>> round(float(np.mean((scores[:, 0] > 0) == y)), 1)
    0.5

    """

    def __init__(self, estimator: Any, cv: Any = 5) -> None:
        self.estimator = estimator
        self.cv = cv

    def fit(self, X: Any, y: Any) -> ScoreFeatures:
        """Fit the classifier on (X, y), and remember these rows by a hash."""
        self.estimator_ = clone(self.estimator).fit(X, y)
        _check_columns(self, X)
        self._rows = _hash(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Fit the classifier on (X, y), and return cross-fitted scores of these rows."""
        self.fit(X, y)
        return cross_fitted(self.estimator, X, y, self.cv)

    def transform(self, X: Any) -> Floats:
        """Return the scores of new rows, (n, 1) or (n, number of classes)."""
        check_is_fitted(self, "estimator_")
        _check_columns(self, X, reset=False)
        if _hash(X) == self._rows:
            text = "ScoreFeatures.transform got the rows of fit: these scores have seen their labels"
            warnings.warn(f"{text}. Use fit_transform, which cross-fits them.", UserWarning, stacklevel=2)
        return base_scores(self.estimator_, X)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return 'score', or one name per class."""
        check_is_fitted(self, "estimator_")
        _check_feature_names_in(self, input_features)
        classes = self.estimator_.classes_
        names = ["score"] if len(classes) == 2 else [f"score of {one}" for one in classes]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.non_deterministic = True  # fit_transform and transform differ on purpose
        return tags


def cross_fitted(estimator: Any, X: Any, y: Any, cv: Any) -> Floats:
    """Score each row by a model fitted on other rows.

    Return (n, 1) or (n, number of classes).
    """
    rows, scores = held_out_scores(estimator, X, y, cv)
    if not np.array_equal(rows, np.arange(_num_samples(X))):
        raise InvalidInputError("the folds of 'cv' must contain every row once", repr(cv), "Use cv=5")
    return scores


def held_out_scores(estimator: Any, X: Any, y: Any, cv: Any) -> tuple[Ints, Floats]:
    """Score the test rows of each split by a model fitted on its training rows.

    Return the indices of the scored rows in increasing order, (m,), and their scores.
    """
    (X,), y, rows, scores = indexable(X), np.asarray(y), list[Ints](), list[Floats]()
    for train, test in check_cv(cv, y, classifier=True).split(X, y):
        model = clone(estimator).fit(_safe_indexing(X, train), y[train])
        rows.append(test)
        scores.append(base_scores(model, _safe_indexing(X, test)))
        if scores[-1].shape != (len(test), scores[0].shape[1]) or len(model.classes_) < len(np.unique(y)):
            must, do = "every fold of 'cv' must have all classes", "Use fewer folds, or stratified ones"
            raise InvalidInputError(must, f"{len(model.classes_)} in one", do)
    order = np.argsort(np.concatenate(rows), kind="stable")
    return np.concatenate(rows)[order], np.concatenate(scores)[order]


def check_unseen(model: Any, X: Any, y: Any, scores: Floats) -> None:
    """Raise an error if a classifier was probably fitted on the rows of X.

    Two clones are refitted, each on one half of the rows, and score the other half. The classifier was
    probably fitted on these rows if its error rate is smaller than that of the clones by more than 0.02 and
    by more than four standard errors of the paired difference. `scores` are the classifier's scores of the
    rows.
    """
    both = scores, cross_fitted(model, X, y, 2)
    chosen = [(s[:, 0] > 0).astype(int) if s.shape[1] == 1 else s.argmax(axis=1) for s in both]
    wrong = [model.classes_[codes] != np.asarray(y) for codes in chosen]
    gain = wrong[1].astype(float) - wrong[0]
    if gain.mean() > max(0.02, 4 * gain.std() / np.sqrt(len(gain))):
        rates = [f"{one.mean():.3f}" for one in wrong]
        got = f"an error rate of {rates[0]}, and {rates[1]} of models that have not seen them"
        do = "Cross-fit its scores, or use rows that it was not fitted on"
        raise InvalidInputError("the base model must not have seen these rows", got, do)


def _hash(X: Any) -> str:
    import joblib

    return str(joblib.hash(X.to_numpy() if hasattr(X, "to_numpy") else X))


def input_columns() -> Any:
    """Return a transformer of a table: numbers imputed and scaled, categories one-hot.

    Categories are the columns that hold no numbers. Values that occur in fewer than 20 rows share a column.
    """
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    words = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=20)
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (words, make_column_selector(dtype_exclude="number")),
        sparse_threshold=1.0,
    )


class NeutralHead(ClassifierMixin, _OnEstimator):
    """A neutral last layer on a base model: linear in the base score and in further columns.

    ::

        f(x) = a s(x) + w'c(x) + b

    with the score s of the base model and columns c. `head` fits (a, w, b), neutral to the viewpoint; its
    certificate is about this problem with s and c fixed. The base model is not certified. Predictions use
    the group only if X contains it.

    Parameters
    ----------
    estimator : classifier
        The base model, fitted or not. It scores new rows, and clones of it score the training rows. A fitted
        model is kept unchanged.
    head : classifier, optional
        A neutral classifier; by default NERMClassifier(loss="logistic", surrogate="hinge", limit=0.02).
    columns : transformer or None
        c(x). By default the columns of X: numbers scaled, categories one-hot. `LeafFeatures(model)` and
        splines of scikit-learn are others.
    cv : int, splitter or "unseen"
        Folds for the scores of training rows. The head learns from the rows that the folds test; for one
        shuffle split these are a part of the rows. "unseen" states that the fitted base model was fitted on
        other rows; then it scores the training rows itself. An error is raised if it fits them much better
        than its clones do.
    viewpoint_score : bool
        Whether the head gets one more column: an estimate of P(favoured group | x), from a clone of the base
        model that is fitted to predict the viewpoint. Among classifiers that use x only, the most accurate
        neutral one depends on x only through P(label | x) and P(group | x), so this column can improve the
        accuracy. However, it infers the group of each person, which the law may restrict.

    Attributes
    ----------
    base_, head_, columns_, viewpoint_models_
        The fitted parts. `head_.certificate_`, `head_.neutrality_` and `head_.trace_` are those of the head.
    threshold_
        It is subtracted from the scores of the head; 0 unless the training rows need another one.

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3)); y = X[:, 0] * X[:, 1] + X[:, 2] > 0
    >>> v = X[:, 2] + rng.normal(size=400) > 0
    >>> forest = RandomForestClassifier(20, min_samples_leaf=20, random_state=0)
    >>> model = NeutralHead(forest).fit(X, y, viewpoint=v)
    >>> bool(abs(model.head_.neutrality_) <= 0.02)
    True

    """

    def __init__(
        self,
        estimator: Any,
        head: Any = None,
        columns: Any = "input",
        cv: Any = 5,
        viewpoint_score: bool = False,
    ) -> None:
        self.estimator = estimator
        self.head = head
        self.columns = columns
        self.cv = cv
        self.viewpoint_score = viewpoint_score

    def fit(self, X: Any, y: Any, *, viewpoint: Any = None, sensitive_features: Any = None) -> NeutralHead:
        """Fit the head, and the base model if it is not fitted; see `nerm.NERMClassifier.fit`."""
        viewpoint = as_viewpoint(viewpoint, sensitive_features)
        for given in viewpoint.values() if isinstance(viewpoint, Mapping) else [viewpoint]:
            if isinstance(given, Column | str | int):  # the base model would read it
                must = "the viewpoint of a neutral head must be an array, not a column of X"
                do = "Leave the column out of X, fit the base model without it, and pass the array"
                raise InvalidInputError(must, repr(getattr(given, "key", given)), do)
        _check_columns(self, X)
        known, y = _is_fitted(self.estimator), column_or_1d(y, warn=True)
        self.base_ = self.estimator if known else clone(self.estimator).fit(X, y)
        self.classes_ = self.base_.classes_
        rows, folds = np.arange(len(y)), 5 if isinstance(self.cv, str) else self.cv
        folds = list(check_cv(folds, y, classifier=True).split(*indexable(X, y)))
        if not isinstance(self.cv, str):
            rows, scores = held_out_scores(self.estimator, X, y, folds)
        elif self.cv == "unseen" and known:
            scores = base_scores(self.base_, X)
            check_unseen(self.base_, X, y, scores)
        else:
            got = repr(self.cv) if self.cv != "unseen" else "'unseen' and a base model that is not fitted"
            must = "'cv' must be folds, or 'unseen' for a fitted base model"
            raise InvalidInputError(must, got, "Use cv=5")
        terms = resolve(viewpoint, X, len(y), several=True)
        groups = [v > 0 for v in terms.values()] if self.viewpoint_score else []
        if groups and not all(np.isin(v, (-1, 0, 1)).all() for v in terms.values()):
            must = "with viewpoint_score=True, 'viewpoint' must hold groups"
            do = "Pass groups, for instance v > threshold, or viewpoint_score=False"
            raise InvalidInputError(must, "real numbers", do)
        self.viewpoint_models_ = [clone(self.estimator).fit(X, group) for group in groups]
        inferred = [expit(held_out_scores(self.estimator, X, group, folds)[1]) for group in groups]
        scores = np.hstack([scores, *inferred])
        self.scaler_ = StandardScaler().fit(scores)
        self.columns_ = self._columns(X).fit(X, y)
        self._fit_head(X, y, rows, scores, viewpoint, terms)
        return self

    def _scores(self, X: Any) -> Floats:
        """Return the scores of the base model, and the probability of each favoured group if it is used."""
        groups = [expit(base_scores(model, X)) for model in self.viewpoint_models_]
        return np.hstack([base_scores(self.base_, X), *groups])

    def _fit_head(
        self, X: Any, y: Any, rows: Ints, scores: Floats, viewpoint: Any, terms: dict[str, Floats]
    ) -> None:
        """Fit the head so that its measure is within the limit on held-out scores.

        `scores` are the held-out scores of the rows with the indices `rows`; the head learns from them.
        The base model's own scores of its training rows differ from these. So the head is also brought
        within the limit on the own scores of all training rows, if there are two classes and one
        neutrality term:

        1. The smallest threshold is subtracted from the output with which the measure is within the
           limit. In each group at least half of the positive and half of the negative predictions must
           remain.
        2. If this costs more than one standard error of accuracy on held-out scores, or if there is no
           such threshold, a second head is fitted. Its limit is lower by the difference of the first
           head's measures on own and on held-out scores. The more accurate head is kept.
        3. If neither head has a threshold, or if the base model overfits, the first head is kept without
           a threshold, and a warning is given. It overfits if the threshold costs more than three
           standard errors of accuracy on held-out scores, and if the base model itself is more accurate
           with own than with held-out scores by more than this cost.
        """
        plain = NERMClassifier("logistic", surrogate="hinge", limit=0.02) if self.head is None else self.head
        columns = self.columns_.transform(X)
        matrix = self._matrix(scores, _safe_indexing(columns, rows))
        views = viewpoint if len(rows) == len(y) else {name: v[rows] for name, v in terms.items()} or None
        self.head_, self.threshold_ = clone(plain).fit(matrix, y[rows], viewpoint=views), 0.0
        if plain.limit is None or len(self.classes_) > 2 or len(terms) != 1:
            return
        metric, labels = as_metric(plain.measure), np.where(y == self.classes_[1], 1.0, -1.0)
        seen_scores, (v,) = self._scores(X), terms.values()
        whole = self._matrix(seen_scores, columns)
        given = labels, [(v > 0).astype(int)], metric, np.ones(len(y)), [v]
        allowed, found, excess = metric.allowance(plain.limit), list[tuple[float, Any, float]](), 0.0

        def right(f: Floats) -> float:
            return float(np.mean((f > 0) == (labels[rows] > 0)))

        before = right(self.head_.decision_function(matrix))
        error = np.sqrt(before * (1 - before) / len(rows))
        for head in (self.head_, clone(plain)):
            if head is not self.head_:  # the limit is smaller by the excess, but not below a tenth of it
                share = 1 - 1.1 * (excess - abs(self.head_.neutrality_ - metric.best)) / allowed
                head.set_params(limit=metric.best + max(share, 0.1) * (plain.limit - metric.best))
                with suppress(NotNeutralError):
                    head.fit(matrix, y[rows], viewpoint=views)
                if not hasattr(head, "classes_"):
                    break
            table = thresholds(head.decision_function(whole), *given)
            plain_rates, rates = table.at_zero.rates, table.rates
            left = (rates >= DEFAULTS.keep * plain_rates) & (1 - rates >= DEFAULTS.keep * (1 - plain_rates))
            within = table.thresholds[left.all(axis=1) & (table.distance <= allowed)]
            excess = excess or float(table.at_zero.distance[0])
            if len(within):
                cut = float(within[np.abs(within).argmin()])
                found.append((right(head.decision_function(matrix) - cut), head, cut))
            if found and before - found[0][0] <= error:
                break
        accuracy, head, cut = max(found, key=lambda one: one[0], default=(-np.inf, None, 0.0))
        cost = before - accuracy
        if cost <= 3 * error or right(seen_scores[rows, 0]) - right(scores[:, 0]) <= cost < np.inf:
            self.head_, self.threshold_ = head, cut
            return
        met = f"the head meets its limit of {plain.limit:g} on {metric.name} with held-out scores"
        own = f"with the base model's own scores of its training rows it is {excess:.3g}"
        do = "Use a base model that overfits less, or set a smaller limit to leave a margin"
        warnings.warn(f"{met}, but {own}. {do}.", stacklevel=3)

    def _columns(self, X: Any) -> Any:
        """Return the transformer of the columns c(x), not fitted."""
        if self.columns is None:
            return ColumnTransformer([])
        if not isinstance(self.columns, str):
            return clone(self.columns) if not _is_fitted(self.columns) else self.columns
        if self.columns != "input":
            do = "Use 'input', a transformer or None"
            raise InvalidInputError("'columns' must be a transformer or 'input'", repr(self.columns), do)
        return input_columns() if hasattr(X, "iloc") else StandardScaler(with_mean=not sp.issparse(X))

    def _matrix(self, scores: Floats, rest: Any) -> Any:
        """Return the columns of the head: the scaled base scores, then the columns c(x)."""
        first = self.scaler_.transform(scores)
        if sp.issparse(rest):
            return sp.hstack([sp.csr_matrix(first), rest], format="csr")
        return np.hstack([first, np.asarray(rest, dtype=float)])

    def decision_function(self, X: Any) -> Floats:
        """Return the scores f(x) of the rows of X."""
        check_is_fitted(self, "head_")
        _check_columns(self, X, reset=False)
        matrix = self._matrix(self._scores(X), self.columns_.transform(X))
        return np.asarray(self.head_.decision_function(matrix) - self.threshold_)

    def predict(self, X: Any) -> Array:
        """Return the predicted class of each row, (n,)."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])


def neutral_head(
    model: Any,
    X: Any,
    y: Any,
    viewpoint: Any,
    limit: float = 0.02,
    *,
    cv: Any = None,
    columns: Any = "input",
    viewpoint_score: bool = False,
    **options: Any,
) -> NeutralHead:
    """Fit a certified neutral last layer on the scores of a fitted model.

    Parameters
    ----------
    model : fitted classifier
        The base model. It is kept unchanged, and clones of it score the rows below.
    X, y, viewpoint
        The training rows of the head; X has the columns that the model was fitted on, without the viewpoint.
    limit : float
        Upper limit on the measure on these rows, by default of the difference of positive rates.
    cv : int, splitter or "unseen", optional
        As in `NeutralHead`; by default 5 folds, 2 folds from 20,000 rows on, and from 100,000 rows on one
        split, whose 20 % of held-out rows the head learns from.
    columns, viewpoint_score
        As in `NeutralHead`.
    **options
        Further parameters of `nerm.NERMClassifier`, such as measure, lam, confidence.

    Returns
    -------
    NeutralHead

    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3)); y = X[:, 0] * X[:, 1] + X[:, 2] > 0; v = X[:, 2] > 0
    >>> model = GradientBoostingClassifier(n_estimators=10).fit(X, y)
    >>> head = neutral_head(model, X, y, v, limit=0.05)
    >>> bool(abs(head.head_.neutrality_) <= 0.05), head.base_ is model
    (True, True)
    """
    if not _is_fitted(model):
        do = "Call its fit(X, y), or use NeutralHead"
        raise InvalidInputError("'model' must be fitted", repr(model), do)
    given = {"loss": "logistic", "surrogate": "hinge", "lam": 1e-4, "limit": limit, **options}
    if cv is None:
        n, split = np.shape(X)[0], StratifiedShuffleSplit(1, test_size=0.2, random_state=0)
        cv = split if n >= 100_000 else 2 if n >= 20_000 else 5
    head = NeutralHead(model, NERMClassifier(**given), columns, cv, viewpoint_score)
    return head.fit(X, y, viewpoint=viewpoint)
