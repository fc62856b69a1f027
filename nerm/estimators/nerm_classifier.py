"""Neutralized empirical risk minimization with any atoms, as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any, ClassVar

from nerm.defaults import DEFAULTS
from nerm.estimators.base import NeutralClassifier
from nerm.estimators.design import Design
from nerm.estimators.parameters import as_atom, as_eta, as_kernel, as_weights_name
from nerm.typing import Floats, Matrix
from nerm.validation import as_nonnegative, as_positive


class NERMClassifier(NeutralClassifier):
    """NERM in mean form, the mean taken by sample weight, S = sum_i s_i.

    ::

        min  (1/S) sum_i s_i phi(y_i f_i) + lam Omega(f) + eta max_+- (1/S) sum_i s_i u_i psi(+- v_i f_i)

    With hinges and SquaredL2 it is `NeutralSVC` with S times this lam and the same eta.

    Parameters of atoms can be searched: `set_params(loss__width=0.1)`. All else is as in `NeutralSVC`; `certificate_`
    is of the mean form.

    Parameters
    ----------
    loss, surrogate : MarginFunction or str
        phi and psi, or their names ("hinge", "logistic", see `nerm.atoms.margin_functions()`).
    regularizer : Regularizer or str
        Omega, or its name (see `nerm.atoms.regularizers()`); with a kernel it must be SquaredL2.
    lam : float
        Weight of the regularizer, in this mean form.
    eta : float or dict
        Weight of neutrality, or a dict by viewpoint.
    kernel, gamma, degree, coef0, weights, class_weight, fit_intercept, solver, tol
        As in `NeutralSVC`.

    >>> import numpy as np, nerm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3)); y = X[:, 0] > 0; v = X[:, 0] + X[:, 1] > 0
    >>> model = NERMClassifier(loss=nerm.SmoothHinge(0.5), regularizer="l1", lam=0.02, eta=0.5).fit(X, y, viewpoint=v)
    >>> bool(model.certificate_.relative_gap < 1e-6)
    True
    >>> model.set_params(loss__width=0.1).loss
    SmoothHinge(width=0.1)
    """

    sum_form: ClassVar[bool] = False

    def __init__(
        self,
        loss: Any = DEFAULTS.loss,
        regularizer: Any = DEFAULTS.regularizer,
        surrogate: Any = DEFAULTS.surrogate,
        lam: Any = DEFAULTS.lam,
        eta: Any = DEFAULTS.eta,
        kernel: Any = DEFAULTS.kernel,
        *,
        gamma: Any = DEFAULTS.gamma,
        degree: int = DEFAULTS.degree,
        coef0: float = DEFAULTS.coef0,
        weights: str = DEFAULTS.weights,
        class_weight: Any = None,
        fit_intercept: bool = True,
        solver: str = DEFAULTS.solver,
        tol: float = DEFAULTS.tol,
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

    def _design(self, X: Matrix, weight: Floats, names: list[str]) -> Design:
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
            sum_form=self.sum_form,
        )
