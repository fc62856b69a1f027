"""The classifiers: the paper's neutral SVM, and neutralized empirical risk minimization with any atoms."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils.metaestimators import available_if

from nerm.atoms.hinges import Hinge
from nerm.atoms.margin import MarginFunction
from nerm.atoms.regularizer import Regularizer, SquaredL2
from nerm.atoms.smooth import Logistic
from nerm.chunks.pieces import lazily
from nerm.defaults import DEFAULTS
from nerm.estimators.base import NeutralClassifier
from nerm.estimators.design import as_atom
from nerm.typing import Floats
from nerm.validation import as_nonnegative, as_positive, is_lazy


@dataclass(eq=False, repr=False, kw_only=True)
class SharedParameters:
    """The keyword parameters of both classifiers."""

    gamma: Any = DEFAULTS.gamma
    degree: int = DEFAULTS.degree
    coef0: float = DEFAULTS.coef0
    weights: str = DEFAULTS.weights
    class_weight: Any = None
    fit_intercept: bool = True
    solver: str = DEFAULTS.solver
    tol: float = DEFAULTS.tol
    limit: float | None = None
    measure: Any = DEFAULTS.measure
    confidence: float | None = None
    prefer: Any = DEFAULTS.prefer
    keep: float = DEFAULTS.keep


@dataclass(eq=False, repr=False)
class NeutralSVC(NeutralClassifier, SharedParameters):
    """The neutral SVM, in the paper's sum form (section 6.1); C = 1 / lam in the words of other SVMs.

    ::

        min  sum_i s_i max(0, 1 - y_i f_i) + (lam/2) ||w||^2 + eta max_+- sum_i s_i u_i max(0, 1 -+ v_i f_i)

    with f = X w + b, or f = K c + b and ||w||^2 = c'Kc. The intercept is free and not regularised.

    Parameters
    ----------
    lam : float
        Weight of the regularizer, in this sum form.
    eta : float or dict
        Weight of neutrality: a number for every neutrality term, or a dict by viewpoint. eta > 0 needs a
        viewpoint in `fit`.
    kernel, gamma, degree, coef0
        As in scikit-learn's SVC: "linear", "rbf", "poly", "sigmoid", "precomputed", a callable, or a
        `nerm.kernels.Kernel`, which has its own gamma, degree and coef0.
    weights : str
        u: "uniform" (the paper), "balanced" (demographic parity), "equal_opportunity" or
        "predictive_equality".
    class_weight : dict, "balanced" or None
        Multiplies the risk only.
    fit_intercept : bool
        Whether b is free; otherwise it is 0.
    solver : str
        See `nerm.Problem.solve`.
    tol : float
        The relative duality gap that nerm certifies. Missing it is a ConvergenceWarning.
    limit : float, optional
        The largest size of the measured neutrality on the training rows: then the weight of one-sided
        neutrality terms is searched (`nerm.Problem.neutralize`), beginning with eta if that is positive, and
        `weights` follow from the measure. `NotNeutralError` where nothing that could be used is within the
        limit. Beyond two classes it is about the predicted class, the one of the largest score.
    measure : str or callable
        What is limited: "calders_verwer_score" (equal positive rates), "neutrality_risk" (C_sgn),
        "equal_opportunity_difference", "equalized_odds_difference" …, or ``(y, scores, viewpoint) -> signed
        float``.
    confidence : float, optional
        With 0.95 the measure is within the limit on *new* rows with that probability, by rows that are held
        out, or `NoPromiseError` is raised. What else was learned or chosen must not have seen these
        rows.
    prefer : "accuracy", "auc" or callable
        By what surrogates are compared on rows that are set apart.
    keep : float
        The share of the plain model's positive rate that must be left in every group.

    Attributes
    ----------
    classes_ : array
        The labels. Two classes are P = 1 problem, more are one problem per class.
    coef_ : (P, d) array
        For the linear kernel; 0 for columns that the viewpoint dropped.
    dual_coef_, support_, support_vectors_
        For other kernels: (P, number of support vectors), their places in the training set, and themselves.
    intercept_ : (P,) array
        b.
    certificate_ : Certificate
        Of the sum form; of the sum over classes beyond two.
    solutions_ : tuple of Solution
        One per binary problem, in mean form (divided by `total_weight_`, the sum of sample weights), without
        its rows.
    eta_, neutrality_, trace_
        With a limit: the weight that was found, the measure on the training rows, and a table of every solve.
    promise_ : Promise
        With confidence: what holds on new rows.
    class_weight_ : dict
        By class; empty if none was asked for.
    collapse_ : str or None
        Says that the model is nearly constant or that its positive rate collapsed
        (`nerm.NearlyConstantWarning`).
    n_iter_, n_features_in_, feature_names_in_
        As in scikit-learn.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3)); y = X[:, 0] > 0; v = X[:, 0] + X[:, 1] > 0
    >>> model = NeutralSVC(lam=4.0, eta=1.0, weights="balanced").fit(X, y, viewpoint=v)
    >>> model.predict(X[:3]).tolist() == (model.decision_function(X[:3]) > 0).tolist()
    True
    >>> bool(model.certificate_.relative_gap < 1e-6)
    True
    """

    sum_form: ClassVar[bool] = True
    lam: Any = DEFAULTS.lam_sum
    eta: Any = DEFAULTS.eta
    kernel: Any = DEFAULTS.kernel

    def _atoms(self) -> tuple[MarginFunction, Regularizer, MarginFunction, float]:
        return Hinge(), SquaredL2(), Hinge(), as_positive(self.lam, "lam")


def _is_logistic(model: "NERMClassifier") -> bool:
    """Whether scores are log-odds."""
    return isinstance(as_atom(model.loss, "loss"), Logistic)


@dataclass(eq=False, repr=False)
class NERMClassifier(NeutralClassifier, SharedParameters):
    """NERM in mean form, the mean taken by sample weight, S = sum_i s_i.

    ::

        min  (1/S) sum_i s_i phi(y_i f_i) + lam Omega(f) + eta max_+- (1/S) sum_i s_i u_i psi(+- v_i f_i)

    With hinges and SquaredL2 it is `NeutralSVC` with S times this lam and the same eta.

    Parameters of atoms can be searched: `set_params(loss__width=0.1)`. All else is as in `NeutralSVC`;
    `certificate_` is of the mean form.

    Parameters
    ----------
    loss, surrogate : MarginFunction or str
        phi and psi, or their names ("hinge", "logistic", see `nerm.atoms.margin_functions()`). The surrogate
        "auto" is the paper's hinge, or with a limit the one that does best on rows that are set apart.
    regularizer : Regularizer or str
        Omega, or its name (see `nerm.atoms.regularizers()`); with a kernel it must be SquaredL2.
    lam : float
        Weight of the regularizer, in this mean form.
    eta : float or dict
        Weight of neutrality, or a dict by viewpoint.
    kernel, gamma, degree, coef0, weights, class_weight, fit_intercept, solver, tol
        As in `NeutralSVC`.
    limit, measure, confidence, prefer, keep
        As in `NeutralSVC`.

    >>> import numpy as np, nerm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3)); y = X[:, 0] > 0; v = X[:, 0] + X[:, 1] > 0
    >>> model = NERMClassifier(loss=nerm.SmoothHinge(0.5), regularizer="l1", lam=0.02, eta=0.5)
    >>> model = model.fit(X, y, viewpoint=v)
    >>> bool(model.certificate_.relative_gap < 1e-6)
    True
    >>> model.set_params(loss__width=0.1).loss
    SmoothHinge(width=0.1)
    >>> NERMClassifier(loss="logistic").fit(X, y).predict_proba(X[:3]).sum(axis=1).round(12).tolist()
    [1.0, 1.0, 1.0]
    >>> hasattr(model, "predict_proba")
    False
    """

    sum_form: ClassVar[bool] = False
    loss: Any = DEFAULTS.loss
    regularizer: Any = DEFAULTS.regularizer
    surrogate: Any = "auto"
    lam: Any = DEFAULTS.lam
    eta: Any = DEFAULTS.eta
    kernel: Any = DEFAULTS.kernel

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes, (n, number of classes); for the logistic loss only.

        P(y | x) = 1 / (1 + exp(-y f(x))): what the logistic loss estimates, as far as regularizer and
        neutrality let it; class weights shift it. Beyond two classes, those of each class against the rest,
        scaled to the sum 1.
        """
        if is_lazy(X):
            return lazily(X, self.predict_proba, float, self._features, self.classes_.tolist())
        scores = self.decision_function(X)
        yes = np.asarray(expit(scores))
        if yes.ndim == 1:
            return np.column_stack([expit(-scores), yes])
        total = yes.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(yes, total, out=np.full_like(yes, 1 / yes.shape[1]), where=total > 0))

    def _atoms(self) -> tuple[MarginFunction, Regularizer, MarginFunction, float]:
        automatic = isinstance(self.surrogate, str) and self.surrogate == "auto"
        loss = as_atom(self.loss, "loss")
        surrogate = as_atom(DEFAULTS.surrogate if automatic else self.surrogate, "surrogate")
        return loss, as_atom(self.regularizer, "regularizer"), surrogate, as_nonnegative(self.lam, "lam")
