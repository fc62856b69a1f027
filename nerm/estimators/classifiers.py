"""The classifiers: `NeutralSVC`, the paper's neutral SVM, and `NERMClassifier`, NERM with any atoms."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils.metaestimators import available_if

from nerm.atoms.losses import Hinge, Logistic
from nerm.atoms.margin import MarginFunction
from nerm.atoms.regularizer import Regularizer, SquaredL2
from nerm.chunks.pieces import lazily
from nerm.defaults import DEFAULTS
from nerm.estimators.base import NeutralClassifier
from nerm.estimators.design import as_atom
from nerm.typing import Floats
from nerm.validation import as_nonnegative, as_positive, is_lazy


@dataclass(eq=False, repr=False, kw_only=True)
class SharedParameters:
    """The keyword parameters of both classifiers."""

    gamma: Any = "scale"
    degree: int = 3
    coef0: float = 0.0
    weights: str = DEFAULTS.weights
    class_weight: Any = None
    fit_intercept: bool = True
    solver: str = DEFAULTS.solver
    tol: float = DEFAULTS.tol
    limit: Any = None
    measure: Any = DEFAULTS.measure
    quantiles: Any = None
    confidence: float | None = None
    shift: float = 0.0
    prefer: Any = "accuracy"
    keep: float = DEFAULTS.keep
    groups: str = "each"
    nearest: bool = False
    verbose: bool = False


@dataclass(eq=False, repr=False)
class NeutralSVC(NeutralClassifier, SharedParameters):
    """The neutral SVM, in the paper's sum form (section 6.1).

    ::

        min  sum_i s_i max(0, 1 - y_i f_i) + (lam/2) ||w||^2 + eta max_+- sum_i s_i u_i max(0, 1 -+ v_i f_i)

    with f = X w + b, or with a kernel f = K c + b and ||w||^2 = c'Kc. Here s_i are the sample weights, v_i
    the viewpoint and u_i the neutrality weights (see `weights`). The intercept b is not regularized. The
    parameter C of other SVMs is 1 / lam.

    Parameters
    ----------
    lam : float
        Weight of the regularizer, in this sum form.
    eta : float or dict
        Weight of neutrality: one number for all neutrality terms, or a dict with one number per viewpoint.
        eta > 0 needs a viewpoint in `fit`.
    kernel, gamma, degree, coef0
        As in scikit-learn's SVC: "linear", "rbf", "poly", "sigmoid", "precomputed", a callable, or a
        `nerm.kernels.Kernel`, which has its own gamma, degree and coef0.
    weights : str
        Name of the neutrality weights u_i: "uniform" (the paper), "balanced" (demographic parity),
        "equal_opportunity" or "predictive_equality".
    class_weight : dict, "balanced" or None
        Weights of the classes in the risk; neutrality does not use them.
    fit_intercept : bool
        Whether to fit b; otherwise b = 0.
    solver : str
        See `nerm.Problem.solve`.
    tol : float
        Tolerance on the certified relative duality gap. A larger gap gives a ConvergenceWarning.
    limit : float or dict, optional
        Upper limit on the absolute value of `measure` on the training rows; a dict has the limits of several
        measures by name, and of "accuracy" the least value. If it is given,
        `nerm.Problem.neutralize` searches the weight of one-sided neutrality terms, starting at eta if
        eta > 0, and the best threshold; the measure then determines the neutrality weights, and `weights` is
        ignored. If no usable model is within the limit, `NotNeutralError` is raised. With more than two
        classes, the measure is computed for the predicted class, which has the largest score.
    measure : str or callable
        The measure that is limited: "calders_verwer_score" (equal positive rates), "neutrality_risk" (C_sgn),
        "equal_opportunity_difference", "equalized_odds_difference" …, or ``(y, scores, viewpoint) -> signed
        float``. "correlation", "mean_difference" and "ks_distance" are measures of the scores; a limit on one
        of them is met by a convex constraint, as in `nerm.NeutralRegressor`.
    quantiles : int or sequence of float, optional
        Cut each real-valued viewpoint, such as an age, into groups at these quantiles, for instance 4. The
        measure is then the largest difference between any two groups.
    confidence : float, optional
        Probability with which the measure must be within the limit on *new* rows, for instance 0.95. It is
        proved on a hold-out of the rows given to `fit`; if it cannot be proved, `NoPromiseError` is raised.
        The proof assumes that no other step (scaling, feature selection, choice of lam) has used these rows.
    shift : float
        With a confidence: the promise also holds for new rows in which the share of every group (of every
        combination of the viewpoints) is another one, by at most this number.
    prefer : "accuracy", "auc" or callable
        Criterion that compares surrogates on a validation set; a callable is ``(y, scores) -> float``.
    keep : float
        Least allowed ratio, in every group, of the positive rate to that of the plain model (eta = 0).
    groups : "each" or "intersect"
        With a limit and several viewpoints: compare the groups of each viewpoint, or all combinations of
        their groups. The measure is the largest difference between any two groups.
    nearest : bool
        With a limit: if no usable model is within it, fit the nearest one and warn, in place of the error.
    verbose : bool
        Print one line per solve (see `nerm.Problem.solve`).
    surrogate : MarginFunction or str
        psi of the neutrality term, the paper's hinge by default. With a limit, "auto" also tries a ramp,
        which is not convex: the result is then a stationary point, and `explain()` says so first.

    Attributes
    ----------
    classes_ : array
        The class labels. The number P of binary problems is 1 for two classes and the number of classes
        otherwise.
    coef_ : (P, d) array
        Coefficients w, for the linear kernel only; 0 for columns that were dropped as the viewpoint.
    dual_coef_ : (P, number of support vectors) array
        Kernel coefficients c of the support vectors, for other kernels only.
    support_, support_vectors_
        Indices of the support vectors in the training set, and their rows, for other kernels only.
    intercept_ : (P,) array
        Intercepts b.
    certificate_ : Certificate
        Certificate of the objective in sum form; with P > 1, of the sum of the P objectives.
    solutions_ : tuple of Solution
        One per binary problem, without the training rows. Their objectives are in mean form: the sum form
        divided by `total_weight_`, the sum of the sample weights.
    eta_, neutrality_, trace_
        With a limit only: the weight found, the measure on the training rows, and a table with one row per
        solve.
    promise_ : Promise
        With a confidence only: the bound on the measure of new rows.
    class_weight_ : dict
        One weight per class; empty if class_weight is None.
    collapse_ : str or None
        The text of the `nerm.NearlyConstantWarning` if the model is nearly constant or its positive rate
        collapsed, else None.
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
    lam: Any = 1.0
    eta: Any = 0.0
    kernel: Any = DEFAULTS.kernel
    surrogate: Any = DEFAULTS.surrogate

    def _atoms(self) -> tuple[MarginFunction, Regularizer, MarginFunction, float]:
        return Hinge(), SquaredL2(), _surrogate(self.surrogate), as_positive(self.lam, "lam")


@dataclass(eq=False, repr=False)
class NERMClassifier(NeutralClassifier, SharedParameters):
    """Neutralized empirical risk minimization with any atoms, in mean form.

    ::

        min  (1/S) sum_i s_i phi(y_i f_i) + lam Omega(f) + eta max_+- (1/S) sum_i s_i u_i psi(+- v_i f_i)

    Here s_i are the sample weights, S = sum_i s_i, v_i is the viewpoint and u_i are the neutrality weights.
    With hinges and SquaredL2 this is `NeutralSVC` with the parameter lam multiplied by S and the same eta.

    Parameters of atoms can be tuned, for instance with `set_params(loss__width=0.1)`. The fitted attributes
    are those of `NeutralSVC`, except that `certificate_` is about the mean form.

    Parameters
    ----------
    loss, surrogate : MarginFunction or str
        phi and psi, or their names ("hinge", "logistic", see `nerm.atoms.margin_functions()`). The surrogate
        "auto" is the paper's hinge; with a limit it is the best of several on a validation set (`prefer`).
    regularizer : Regularizer or str
        Omega, or its name (see `nerm.atoms.regularizers()`); with a kernel it must be SquaredL2.
    lam : float
        Weight of the regularizer, in this mean form.
    eta : float or dict
        Weight of neutrality: one number, or a dict with one number per viewpoint.
    kernel, gamma, degree, coef0, weights, class_weight, fit_intercept, solver, tol
        As in `NeutralSVC`.
    limit, measure, quantiles, confidence, shift, prefer, keep, groups, nearest, verbose
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
    eta: Any = 0.0
    kernel: Any = DEFAULTS.kernel

    @available_if(lambda self: isinstance(as_atom(self.loss, "loss"), Logistic))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the class probabilities, (n, number of classes); for the logistic loss only.

        With two classes coded as y = -1 and +1, P(y | x) = 1 / (1 + exp(-y f(x))). Regularizer, neutrality
        and class weights bias this estimate. With more classes, the one-vs-rest probabilities of each row are
        divided by their sum.
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
        loss, regularizer = as_atom(self.loss, "loss"), as_atom(self.regularizer, "regularizer")
        return loss, regularizer, _surrogate(self.surrogate), as_nonnegative(self.lam, "lam")


def _surrogate(given: Any) -> MarginFunction:
    """Return the surrogate of a fit without a limit; "auto" is the paper's hinge."""
    automatic = isinstance(given, str) and given == "auto"
    return as_atom(DEFAULTS.surrogate if automatic else given, "surrogate")
