"""The paper's neutral SVM as a scikit-learn classifier."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from nerm.atoms.hinge import Hinge
from nerm.atoms.margin import MarginFunction
from nerm.atoms.regularizer import Regularizer
from nerm.atoms.squared_l2 import SquaredL2
from nerm.defaults import DEFAULTS
from nerm.estimators.base import NeutralClassifier
from nerm.validation import as_positive


@dataclass(eq=False, repr=False)
class NeutralSVC(NeutralClassifier):
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
        limit. Beyond two classes it is about the sign of each class's score, not about `predict`, which takes
        the largest.
    measure : str or callable
        What is limited: "calders_verwer_score" (equal positive rates), "neutrality_risk" (C_sgn),
        "equal_opportunity_difference", "equalized_odds_difference" …, or ``(y, scores, viewpoint) -> signed
        float``.
    confidence : float, optional
        With 0.95 the measure is within the limit on *new* rows with that probability, judged by rows that are
        held out, or `NoPromiseError` is raised. What else was learned or chosen must not have seen these
        rows.
    prefer : "accuracy", "auc" or callable
        By what surrogates are compared on rows that are set apart.
    keep : float
        The share of the plain model's positive rate that must be left in every group.

    Attributes
    ----------
    classes_ : array
        The labels. Two classes are P = 1 problem, more are one problem a class.
    coef_ : (P, d) array
        For the linear kernel; 0 for columns that the viewpoint dropped.
    dual_coef_, support_, support_vectors_
        For other kernels: (P, number of support vectors), their places in the training set, and themselves.
    intercept_ : (P,) array
        b.
    certificate_ : Certificate
        Of the sum form; of the sum over classes beyond two.
    solutions_ : tuple of Solution
        One a binary problem, in mean form (divided by `total_weight_`, the sum of sample weights), without
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
    _: KW_ONLY
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

    def _atoms(self) -> tuple[MarginFunction, Regularizer, MarginFunction, float]:
        return Hinge(), SquaredL2(), Hinge(), as_positive(self.lam, "lam")
