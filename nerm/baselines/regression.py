"""Published methods for fair regression: a real target, and a viewpoint of two groups or of numbers.

Each has ``fit(X, y, viewpoint=v)`` and ``predict(X, viewpoint=v)``; `sees_group` says whether `predict` uses
the viewpoint.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_is_fitted

from nerm.baselines.adapters import INSTALL
from nerm.baselines.base import dense
from nerm.errors import import_optional
from nerm.estimators.design import as_viewpoint
from nerm.typing import Floats
from nerm.validation import as_matrix, as_nonnegative, as_real
from nerm.viewpoint import as_numbers


@dataclass
class GroupRegressor(RegressorMixin, BaseEstimator, ABC):
    """Base class of the methods of fair regression, which fit a ridge regression.

    The viewpoint has two groups, or real values.

    Parameters
    ----------
    lam : float
        Weight of (1/2) ||w||^2 beside the mean of squared errors.
    """

    sees_group: ClassVar[bool] = True
    lam: float = 1e-3

    def fit(self, X: Any, y: Any, *, viewpoint: Any = None, sensitive_features: Any = None) -> Self:
        """Fit the method; X is (n, d), y and viewpoint are (n,).

        `sensitive_features` is another name of `viewpoint`.
        """
        matrix = dense(as_matrix(X))
        n, self.n_features_in_ = matrix.shape
        v, ridge = as_viewpoint(viewpoint, sensitive_features), Ridge(as_nonnegative(self.lam, "lam") * n / 2)
        self._fit(matrix, as_real(y, n), as_numbers(v, n), ridge)
        return self

    def predict(self, X: Any, *, viewpoint: Any = None) -> Floats:
        """Return the predictions, (n,); a method that sees the group needs the viewpoint."""
        check_is_fitted(self, "model_")
        matrix = dense(as_matrix(X))
        return self._predict(matrix, as_numbers(viewpoint, len(matrix)) if self.sees_group else None)

    @abstractmethod
    def _fit(self, X: Floats, y: Floats, v: Floats, ridge: Ridge) -> None:
        """Fit on checked arrays; `ridge` is the unfitted ridge regression."""

    @abstractmethod
    def _predict(self, X: Floats, v: Any) -> Floats:
        """Return the predictions on checked arrays."""


@dataclass
class ResidualisedRidge(GroupRegressor):
    """Ridge regression on the columns of X without their linear part in the viewpoint.

    Each column x becomes x - E[x] - cov(x, v) / var(v) (v - E[v]), which is uncorrelated with v on the
    training rows, and so is every prediction.

    Parameters
    ----------
    lam : float
        As in `GroupRegressor`.

    Examples
    --------
    >>> X, v = np.array([[1.0], [2.0], [3.0], [5.0]]), np.array([-1, -1, 1, 1])
    >>> f = ResidualisedRidge(0.1).fit(X, [1.0, 2.0, 3.0, 4.0], viewpoint=v).predict(X, viewpoint=v)
    >>> abs(float(f[2:].mean() - f[:2].mean())) < 1e-12
    True
    """

    def _fit(self, X: Floats, y: Floats, v: Floats, ridge: Ridge) -> None:
        self._means = X.mean(axis=0), float(v.mean())
        w = v - self._means[1]
        self._slopes = (w @ (X - self._means[0])) / max(float(w @ w), np.finfo(float).tiny)
        self.model_ = ridge.fit(self._residuals(X, v), y)

    def _residuals(self, X: Floats, v: Floats) -> Floats:
        return X - self._means[0] - np.outer(v - self._means[1], self._slopes)

    def _predict(self, X: Floats, v: Any) -> Floats:
        return np.asarray(self.model_.predict(self._residuals(X, v)))


@dataclass
class FairRidge(ResidualisedRidge):
    """The fair ridge regression of Scutari, Panero and Proissl (2022), R's ``fairml::frrm``.

    f = v a + u.b + c with the residualised columns u of X. b is the ridge estimate; a is shrunk by a ridge of
    its own until v a explains at most the share `unfairness` of the variance of f.

    Parameters
    ----------
    lam : float
        As in `GroupRegressor`.
    unfairness : float
        Between 0 and 1: the largest share of var(f) that v explains.

    Examples
    --------
    >>> X, v = np.array([[1.0], [2.0], [3.0], [5.0]]), np.array([-1, -1, 1, 1])
    >>> f = FairRidge(0.1, 0.2).fit(X, [1.0, 2.0, 3.0, 4.0], viewpoint=v).predict(X, viewpoint=v)
    >>> round(float(np.corrcoef(f, v)[0, 1] ** 2), 6)
    0.2
    """

    unfairness: float = 0.05

    def _fit(self, X: Floats, y: Floats, v: Floats, ridge: Ridge) -> None:
        super()._fit(X, y, v, ridge)
        rest, w = self.model_.predict(self._residuals(X, v)), v - self._means[1]
        full = float(w @ y) / float(w @ w)
        share = as_nonnegative(self.unfairness, "unfairness")
        most = np.sqrt(share / (1 - share) * rest.var() / w.var()) if share < 1 else np.inf
        self.slope_ = float(np.sign(full) * min(abs(full), most))

    def _predict(self, X: Floats, v: Any) -> Floats:
        return np.asarray(super()._predict(X, v) + self.slope_ * (v - self._means[1]))


@dataclass
class WassersteinBarycentre(GroupRegressor):
    """Group-wise quantiles of a ridge regression moved to their mean (Chzhen et al. 2020).

    f(x, s) = sum over groups g of p_g Q_g(F_s(f0(x))), where F_s and Q_s are the distribution and quantile
    functions of f0 in group s on the training rows, and p_g the shares of the groups. The predictions of both
    groups then have the same distribution.

    Parameters
    ----------
    lam : float
        As in `GroupRegressor`.

    Examples
    --------
    >>> X, v = np.array([[1.0], [2.0], [3.0], [5.0]]), np.array([-1, -1, 1, 1])
    >>> WassersteinBarycentre(0.0).fit(X, X[:, 0], viewpoint=v).predict(X, viewpoint=v).round(6).tolist()
    [2.0, 3.5, 2.0, 3.5]
    """

    def _fit(self, X: Floats, y: Floats, v: Floats, ridge: Ridge) -> None:
        self.model_ = ridge.fit(X, y)
        scores = self.model_.predict(X)
        self._sorted = {g: np.sort(scores[v == g]) for g in np.unique(v)}

    def _predict(self, X: Floats, v: Any) -> Floats:
        scores, found = self.model_.predict(X), np.zeros(len(X))
        total = sum(len(known) for known in self._sorted.values())
        for group, known in self._sorted.items():
            mine = v == group
            level = np.interp(scores[mine], known, np.linspace(0, 1, len(known)))
            for other in self._sorted.values():
                found[mine] += len(other) / total * np.quantile(other, level)
        return found


@dataclass
class BoundedGroupLoss(GroupRegressor):
    """fairlearn's reduction: the worst squared error of a group is bounded (Agarwal et al. 2019).

    Parameters
    ----------
    lam : float
        As in `GroupRegressor`.
    bound : float
        The largest mean squared error of a group; y must lie in [0, 1].

    Examples
    --------
    >>> BoundedGroupLoss(bound=0.05).sees_group
    False
    """

    sees_group: ClassVar[bool] = False
    bound: float = 0.02

    def _fit(self, X: Floats, y: Floats, v: Floats, ridge: Ridge) -> None:
        reductions = import_optional("fairlearn.reductions", "BoundedGroupLoss", INSTALL)
        loss = reductions.BoundedGroupLoss(reductions.SquareLoss(0, 1), upper_bound=self.bound)
        self.model_ = reductions.GridSearch(ridge, loss, grid_size=20)
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            self.model_.fit(X, y, sensitive_features=v)

    def _predict(self, X: Floats, v: Any) -> Floats:
        return np.asarray(self.model_.predict(X), dtype=float)
