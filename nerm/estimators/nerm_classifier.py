"""Neutralized empirical risk minimization with any atoms, as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from nerm.estimators.base import NeutralClassifier
from nerm.estimators.binary_fit import Design
from nerm.estimators.parameters import as_atom, as_eta, as_kernel, as_weights_name
from nerm.validation import as_nonnegative, as_positive


class NERMClassifier(NeutralClassifier):
    """NERM in mean form, the mean taken by sample weight, S = sum_i s_i.

    ::

        min  (1/S) sum_i s_i phi(y_i f_i) + lam Omega(f) + eta max_+- (1/S) sum_i s_i u_i psi(+- v_i f_i)

    With hinges and SquaredL2 it is `NeutralSVC` with S times this lam and the same eta.

    loss, surrogate
        phi and psi: margin functions, or their names ("hinge", "logistic", see `nerm.atoms.margin_functions()`).
    regularizer
        Omega, or its name (see `nerm.atoms.regularizers()`); with a kernel it must be SquaredL2.
    lam, eta
        Weights of the regularizer and of neutrality; eta may be a dict by viewpoint.

    Parameters of atoms can be searched: `set_params(loss__width=0.1)`. All else is as in `NeutralSVC`; `certificate_`
    is of the mean form.

    >>> import numpy as np, nerm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3)); y = X[:, 0] > 0; v = X[:, 0] + X[:, 1] > 0
    >>> model = NERMClassifier(loss=nerm.SmoothHinge(0.5), regularizer="l1", lam=0.02, eta=0.5).fit(X, y, viewpoint=v)
    >>> bool(model.certificate_.relative_gap < 1e-6)
    True
    >>> model.set_params(loss__width=0.1).loss
    SmoothHinge(width=0.1)
    """

    def __init__(
        self,
        loss: Any = "hinge",
        regularizer: Any = "squared-l2",
        surrogate: Any = "hinge",
        lam: Any = 0.05,
        eta: Any = 0.0,
        kernel: Any = "linear",
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        weights: str = "uniform",
        class_weight: Any = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-6,
    ) -> None:
        self.loss = loss
        self.regularizer = regularizer
        self.surrogate = surrogate
        self.lam = lam
        self.eta = eta
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.weights = weights
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol

    def _design(self, X: Any, weight: np.ndarray, names: list[str]) -> Design:
        options = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        return Design(
            loss=as_atom(self.loss, "loss"),
            regularizer=as_atom(self.regularizer, "regularizer"),
            surrogate=as_atom(self.surrogate, "surrogate"),
            lam=as_nonnegative(self.lam, "lam"),
            eta=as_eta(self.eta, names),
            weights=as_weights_name(self.weights),
            kernel=as_kernel(self.kernel, options, X, weight),
            intercept=bool(self.fit_intercept),
            solver=self.solver,
            tol=as_positive(self.tol, "tol"),
            sum_form=False,
        )
