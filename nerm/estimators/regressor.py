"""The regressor `NeutralRegressor`: a real target, and predictions that are neutral to a viewpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from nerm.certify.solution import Solution
from nerm.defaults import DEFAULTS
from nerm.errors import InvalidInputError, NoPromiseError, NotNeutralError
from nerm.estimators import design, score_limits
from nerm.estimators.base import NeutralModel
from nerm.estimators.design import TrainingRows, as_atom
from nerm.estimators.limits import TIGHTENED, Promise
from nerm.metrics import SCORE_METRICS
from nerm.solvers.registry import SolverPool
from nerm.splitting import HOLD_OUT, hold_out
from nerm.typing import Array, Floats
from nerm.validation import as_nonnegative, as_real, check_known


@dataclass(eq=False, repr=False)
class NeutralRegressor(RegressorMixin, NeutralModel):
    """Neutral regression: empirical risk of residuals, in mean form.

    ::

        min  (1/S) sum_i s_i phi(y_i - f_i) + lam Omega(f) + eta max_+- (1/S) sum_i s_i u_i psi(+- v_i f_i)

    Here s_i are the sample weights, S = sum_i s_i, v_i is the viewpoint (centred if it is real-valued) and
    u_i are the neutrality weights. With the surrogate psi = `Identity` and balanced weights the neutrality
    term is half of the absolute difference between the mean predictions of two groups.

    Parameters
    ----------
    loss : ResidualFunction or str
        phi: "squared-error", "absolute-error", "huber-error", "pinball-error(0.9)", ...
    regularizer : Regularizer or str
        Omega; with a kernel it must be SquaredL2.
    lam, eta : float
        The weights of the regularizer and of neutrality. eta > 0 needs a viewpoint in `fit`.
    surrogate : MarginFunction or str
        psi.
    kernel, gamma, degree, coef0, fit_intercept, solver, tol, verbose
        As in `nerm.NeutralSVC`.
    weights : str
        The neutrality weights: "balanced", "uniform", or "conditional" (balanced within quantile bins of y).
    limit : float, optional
        The largest absolute value of `measure` on the training rows; eta is not used then. A limit on
        "mean_difference" is a convex constraint, so the model is the certified optimum among all models
        within the limit. For "correlation" and "ks_distance" a search tightens a convex constraint, on the
        covariance or on the differences of the group means, until the measure is within the limit.
    measure : str
        "mean_difference", "correlation" or "ks_distance" (`nerm.metrics`).
    quantiles : int or sequence of float, optional
        Cut each real-valued viewpoint into groups at these quantiles, as in `nerm.NeutralSVC`; not used for
        a limit on "correlation".
    confidence : float, optional
        The probability with which the measure is within the limit on *new* rows. It is proved on held-out
        rows: by Hoeffding's inequality for "mean_difference", with predictions clipped to the range of y, and
        by the Dvoretzky-Kiefer-Wolfowitz inequality for "ks_distance". `NoPromiseError` is raised if it
        cannot be proved. It needs groups, and a limit on one of these two measures.

    Attributes
    ----------
    coef_, dual_coef_, support_, support_vectors_, intercept_
        As in `nerm.NeutralSVC`, with P = 1; `coef_` is (1, d).
    certificate_, solutions_, n_iter_, n_features_in_, feature_names_in_
        As in `nerm.NeutralSVC`.
    neutrality_, trace_
        With a limit only: the measure on the training rows, and a table with one row per solve.
    promise_ : Promise
        With a confidence only.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3)); group = np.where(X[:, 0] > 0, "a", "b")
    >>> y = X @ [2.0, 1.0, 0.0] + rng.normal(size=200)
    >>> model = NeutralRegressor(limit=0.1).fit(X, y, viewpoint=group)
    >>> round(abs(model.neutrality_), 6), bool(model.certificate_.relative_gap < 1e-6)
    (0.1, True)
    """

    loss: Any = "squared-error"
    regularizer: Any = DEFAULTS.regularizer
    surrogate: Any = "identity"
    lam: Any = DEFAULTS.lam
    eta: Any = 0.0
    kernel: Any = DEFAULTS.kernel
    gamma: Any = "scale"
    degree: int = 3
    coef0: float = 0.0
    weights: str = "balanced"
    fit_intercept: bool = True
    solver: str = DEFAULTS.solver
    tol: float = DEFAULTS.tol
    limit: float | None = None
    measure: str = "mean_difference"
    quantiles: Any = None
    confidence: float | None = None
    verbose: bool = False

    def _atoms(self) -> Any:
        loss, surrogate = as_atom(self.loss, "loss", residual=True), as_atom(self.surrogate, "surrogate")
        return loss, as_atom(self.regularizer, "regularizer"), surrogate, as_nonnegative(self.lam, "lam")

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        viewpoint: Any = None,
        sample_weight: Any = None,
        sensitive_features: Any = None,
    ) -> Any:
        """Fit on (X, y) with a real y, neutral to the viewpoint.

        Parameters
        ----------
        X : (n, d) matrix
            Dense, sparse or a DataFrame; with kernel="precomputed" the (n, n) Gram matrix.
        y : (n,) array
            Real numbers.
        viewpoint, sample_weight, sensitive_features : optional
            As in `nerm.NeutralSVC.fit`; real-valued viewpoints are centred here.

        Returns
        -------
        self
        """
        viewpoint = design.as_viewpoint(viewpoint, sensitive_features)
        check_known(self.measure, "'measure'", SCORE_METRICS)
        unproved = self.limit is None or self.measure == "correlation" or self.quantiles is not None
        if self.confidence is not None and unproved:
            must = "'confidence' needs a limit on the mean_difference or ks_distance of groups"
            got = f"limit={self.limit!r}, measure={self.measure!r}, quantiles={self.quantiles!r}"
            raise InvalidInputError(must, got, "Limit one of these, or leave confidence out")
        self._forget()
        rows, places = self._training_rows(X, y, viewpoint, sample_weight, centre=True)
        learned = np.arange(len(places))
        if self.limit is not None:
            rows.check_viewpoints()
        if self.confidence is not None:
            rows.check_equal_weights("a promise needs rows of equal weight")
            groups = list(score_limits.groups_of(self, rows).values())
            learned = np.flatnonzero(~hold_out(groups, HOLD_OUT, 0))
        learning = rows.at(learned)
        self._set_kernel(learning.X, learning.sample_weight, float(learning.sample_weight.sum()))
        pool = SolverPool(self.solver, self.verbose)
        if self.limit is None:
            solution = design.solved(self._problem(learning), self.tol, pool)
        elif self.confidence is None:
            solution = score_limits.within(self, learning, pool)
        else:
            held = rows.at(np.setdiff1d(np.arange(len(places)), learned), against=learned)
            solution = self._promised(learning, held, pool)
        self._keep_solutions(learning, places[learned], [solution], (self.weights,))
        return self

    def _codes(self, y: Array, s: Floats) -> Array:
        return as_real(y, len(y))

    def predict(self, X: Any) -> Array:
        """Return the predictions f(x) of the rows of X, (n,)."""
        scores = self._scores(X)[:, 0]
        return np.clip(scores, *self.range_) if hasattr(self, "range_") else scores

    def _promised(self, learning: TrainingRows, held: TrainingRows, pool: SolverPool) -> Solution:
        """Return the first solution whose measure on new rows is proved to be within the limit.

        The model learns from the rows `learning`; the proof uses the rows `held`, which are held out.
        """
        ends = float(learning.codes.min()), float(learning.codes.max())
        groups = score_limits.groups_of(self, held).values()
        limit, confidence = as_nonnegative(self.limit, "limit"), float(self.confidence or 0.0)
        statements = len(TIGHTENED) * sum(int(codes.max()) + 1 for codes in groups)
        delta = (1 - confidence) / statements
        width = max(
            sum(sorted(np.sqrt(np.log(2 / delta) / (2 * np.bincount(codes))), reverse=True)[:2])
            for codes in groups
        )
        width *= ends[1] - ends[0] if self.measure == "mean_difference" else 1.0
        closest = np.inf
        for share in TIGHTENED:
            try:
                solution = score_limits.within(self, learning, pool, share)
            except NotNeutralError:
                break
            scores = np.clip(solution.decision_function(held.X), *ends)
            value = abs(score_limits.measured(self, held, scores))
            closest = min(closest, value + width)
            if value + width <= limit:
                self.range_ = ends
                about = confidence, len(held.codes), len(TIGHTENED)
                self.promise_ = Promise(self.measure, limit, value + width, value, *about)
                return solution
        failed = f"No model has |{self.measure}| <= {limit:g} on new rows with probability {confidence:g}"
        chance = f"{width:.4g} of it is the uncertainty of {len(held.codes)} held-out rows"
        best = f"The smallest bound is {closest:.4g}; {chance}"
        raise NoPromiseError(failed, best, [("limit", "raise"), ("rows", "use many more")])
