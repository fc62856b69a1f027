"""The regressor `NeutralRegressor`: a real target, and predictions that are neutral to a viewpoint."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import RegressorMixin

from nerm import viewpoint as viewpoints
from nerm.atoms.losses import Identity
from nerm.certify.solution import Solution
from nerm.defaults import DEFAULTS
from nerm.errors import InvalidInputError, NoPromiseError, NotNeutralError
from nerm.estimators import design
from nerm.estimators.base import NeutralModel
from nerm.estimators.design import TrainingRows, as_atom
from nerm.estimators.limits import TIGHTENED, Promise
from nerm.metrics import SCORE_METRICS, quantile_codes
from nerm.model.blocks import limit_values
from nerm.model.expressions import Neutrality, Objective, Risk
from nerm.model.problem import Problem
from nerm.solvers.registry import SolverPool
from nerm.splitting import HOLD_OUT, hold_out
from nerm.typing import Array, Floats, Ints
from nerm.validation import as_nonnegative, as_pandas, as_real, as_weights, check_known


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
        The quantile groups of a real-valued viewpoint, for a limit on "mean_difference" or "ks_distance".
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
    eta: Any = DEFAULTS.eta
    kernel: Any = DEFAULTS.kernel
    gamma: Any = DEFAULTS.gamma
    degree: int = DEFAULTS.degree
    coef0: float = DEFAULTS.coef0
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
            must = "a promise needs a limit on mean_difference or ks_distance of given groups"
            got = f"limit={self.limit!r}, measure={self.measure!r}, quantiles={self.quantiles!r}"
            raise InvalidInputError(must, got, "Set these, or leave confidence out")
        self._forget()
        X = as_pandas(X)
        self.dropped_columns_ = viewpoints.dropped_columns(viewpoint, X)
        matrix, target = self._matrix(X, y)
        target = as_real(target, len(target))
        s = as_weights(sample_weight, len(target), "sample_weight")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # real viewpoints are centred below
            terms = viewpoints.resolve_terms(viewpoint, X, len(target), s > 0)
        places = np.flatnonzero(s > 0)
        rows = TrainingRows(matrix, target, terms, s, s, self._pairwise()).at(places)
        views = {name: _centred(v, rows.sample_weight) for name, v in rows.viewpoints.items()}
        rows = replace(rows, viewpoints=views)
        learned = np.arange(len(places))
        if self.limit is not None and not terms:
            must = "'viewpoint' must be given when a limit is"
            raise InvalidInputError(must, "None", "Call fit(X, y, viewpoint=...), or set limit=None")
        if self.confidence is not None:
            learned = np.flatnonzero(~hold_out(self._groups(rows), HOLD_OUT, 0))
        learning = rows.at(learned)
        total = float(learning.sample_weight.sum())
        self._set_kernel(learning.X, learning.sample_weight, total)
        pool = SolverPool(self.solver, self.verbose)
        if self.limit is None:
            objective = self._objective(self._neutrality_weights(learning, learning.codes))
            views = viewpoints.Viewpoints(learning.viewpoints)
            solution = design.solved(self._bind(objective, learning, learning.codes, views), self.tol, pool)
        elif self.confidence is None:
            solution = self._within(learning, as_nonnegative(self.limit, "limit"), pool)
        else:
            solution = self._promised(rows, learned, as_nonnegative(self.limit, "limit"), pool)
        self._keep_solutions(learning, places[learned], [solution])
        self.solutions_ = (solution.without_rows(),)
        return self

    def predict(self, X: Any) -> Array:
        """Return the predictions f(x) of the rows of X, (n,)."""
        scores = self._scores(X)[:, 0]
        return np.clip(scores, *self.range_) if hasattr(self, "range_") else scores

    def _groups(self, rows: TrainingRows) -> list[Ints]:
        """Return the group of each row, one array per viewpoint."""
        by_name: dict[str, list[Floats]] = {}
        for name, v in rows.viewpoints.items():
            by_name.setdefault(name.partition("=")[0], []).append(v)
        found = []
        for name, terms in by_name.items():
            if len(terms) > 1:
                found.append(np.argmax(np.stack(terms), axis=0))
            elif len(np.unique(terms[0])) <= 2 and self.quantiles is None:
                found.append((terms[0] > 0).astype(int))
            elif self.quantiles is not None:
                found.append(quantile_codes(terms[0], self.quantiles, rows.sample_weight))
            else:
                must = f"a limit on {self.measure} of the real-valued viewpoint {name!r} needs groups"
                raise InvalidInputError(must, "none", "Pass quantiles=4, or use measure='correlation'")
        return found

    def _measured(self, rows: TrainingRows, scores: Floats) -> float:
        """Return the measure of scores with its sign, of the viewpoint where it is largest in size."""
        views: Any = rows.viewpoints.values() if self.measure == "correlation" else self._groups(rows)
        values = [SCORE_METRICS[self.measure](scores, v, rows.sample_weight) for v in views]
        return float(max(values, key=abs))

    def _limited(self, rows: TrainingRows, bound: float) -> Problem:
        """Return the problem with convex limits: on the covariance, or on all differences of group means."""
        s, views, weights = rows.sample_weight, dict[str, Floats](), dict[str, Floats]()
        if self.measure == "correlation":
            views = {name: v - np.average(v, weights=s) for name, v in rows.viewpoints.items()}
            weights = dict.fromkeys(views, s)
        else:
            for number, codes in enumerate(self._groups(rows)):
                for one, other in combinations(range(int(codes.max()) + 1), 2):
                    name = f"{number}: {one}, {other}"
                    views[name] = np.where(codes == other, 1.0, np.where(codes == one, -1.0, 0.0))
                    sizes = np.bincount(codes, s)
                    weights[name] = np.where(views[name] != 0, s * s.sum() / sizes[codes], 0.0)
        loss, regularizer, _, lam = self._atoms()
        objective = Risk(loss) + lam * regularizer
        terms = [Neutrality(Identity(), to=name, weights=weights[name]) for name in views]
        limited = objective.subject_to(*(term <= bound for term in terms))
        return self._bind(limited, rows, rows.codes, viewpoints.Viewpoints(views))

    def _within(self, rows: TrainingRows, limit: float, pool: SolverPool) -> Solution:
        """Return the certified optimum within a limit on the measure of the training rows."""
        trace = list[dict[str, Any]]()

        def solved(bound: float) -> tuple[Solution, float]:
            solution = pool.solve(self._limited(rows, bound), self.tol)
            value = self._measured(rows, solution.training_scores())
            gap = solution.certificate.relative_gap
            trace.append({"bound": bound, self.measure: value, "status": str(solution.status), "gap": gap})
            return solution, value

        if self.measure == "mean_difference":
            solution, value = solved(limit * (1 - 1e-9))
        else:
            solution, value = self._searched(rows, limit, solved)
        self.trace_, self.neutrality_ = pd.DataFrame(trace), value
        if abs(value) > limit + 1e-9 * (1 + limit):
            failed = f"No model within the convex limits reaches |{self.measure}| <= {limit:g}"
            raise NotNeutralError(failed, f"The closest has {value:.4f}", [("limit", "raise")])
        return solution

    def _searched(
        self, rows: TrainingRows, limit: float, solved: Callable[[float], tuple[Solution, float]]
    ) -> tuple[Solution, float]:
        """Bisect for a large convex limit whose solution is within the limit on the measure."""
        limited = self._limited(rows, 0.0)
        plain = replace(limited, objective=Objective(limited.objective.terms), blocks=limited.blocks[:1])
        scores = SolverPool(self.solver, self.verbose).solve(plain, self.tol).training_scores()
        high = float(limit_values(limited, scores).max())
        low = 1e-6 * high  # at 0 a hypothesis would miss the limit by rounding
        best, value = solved(high)
        if abs(value) <= limit:
            return best, value
        best, value = solved(low)
        if abs(value) > limit:
            return best, value
        while abs(value) < 0.95 * limit and high > 1.01 * low:
            middle = 0.5 * (low + high)
            found, measured = solved(middle)
            if abs(measured) <= limit:
                best, value, low = found, measured, middle
            else:
                high = middle
        return best, value

    def _promised(self, rows: TrainingRows, learned: Ints, limit: float, pool: SolverPool) -> Solution:
        """Return the first solution whose measure on new rows is proved to be within the limit."""
        held = rows.at(np.setdiff1d(np.arange(len(rows.codes)), learned), against=learned)
        if np.ptp(rows.sample_weight) > 0:
            must = "a promise must rest on rows that count the same"
            raise InvalidInputError(must, "sample weights that differ", "Leave them out")
        learning = rows.at(learned)
        ends = float(learning.codes.min()), float(learning.codes.max())
        groups = self._groups(held)
        statements = len(TIGHTENED) * sum(int(codes.max()) + 1 for codes in groups)
        delta = (1 - float(self.confidence or 0.0)) / statements
        width = max(
            sum(sorted(np.sqrt(np.log(2 / delta) / (2 * np.bincount(codes))), reverse=True)[:2])
            for codes in groups
        )
        width *= ends[1] - ends[0] if self.measure == "mean_difference" else 1.0
        closest = np.inf
        for share in TIGHTENED:
            try:
                solution = self._within(learning, share * limit, pool)
            except NotNeutralError:
                break
            scores = np.clip(solution.decision_function(held.X), *ends)
            value = abs(self._measured(held, scores))
            closest = min(closest, value + width)
            if value + width <= limit:
                self.range_ = ends
                given = limit, value + width, value, float(self.confidence or 0.0)
                self.promise_ = Promise(self.measure, *given, len(held.codes), len(TIGHTENED))
                return solution
        failed = (
            f"No model has |{self.measure}| <= {limit:g} on new rows with probability {self.confidence:g}"
        )
        best = f"The best bound is {closest:.4f}, of which {width:.4f} is for {len(held.codes)} rows held out"
        raise NoPromiseError(failed, best, [("limit", "raise"), ("rows", "use many more")])


def _centred(v: Floats, s: Floats) -> Floats:
    """Return a real-valued viewpoint minus its weighted mean; two groups stay -1 and +1."""
    return v if len(np.unique(v)) <= 2 else v - np.average(v, weights=s)
