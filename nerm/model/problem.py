"""An objective bound to data: `Problem`, and functions that make problems.

`bind` validates the data once and builds the `Problem`; others derive problems from a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from nerm.atoms.difference import DCFunction
from nerm.atoms.regularizer import Regularizer, SquaredL2
from nerm.errors import InvalidInputError
from nerm.model import kernels
from nerm.model.blocks import Block, ObjectiveValue, by_side, limit_values, make_blocks, objective_value
from nerm.model.constraints import ROUNDING, LinearConstraint, Polyhedron, polyhedron
from nerm.model.expressions import Limit, Neutrality, Objective, Risk, WeightedTerm
from nerm.model.hypothesis import Hypothesis, KernelHypothesis, make_hypothesis, sorted_csr
from nerm.typing import Array, Floats
from nerm.validation import (
    as_finite,
    as_labels,
    as_matrix,
    as_nonnegative,
    as_positive,
    as_real,
    as_vector,
    as_weights,
    check_order,
    is_lazy,
    own,
)
from nerm.viewpoint import Viewpoints, resolve, shown_groups

if TYPE_CHECKING:
    from nerm.certify.certificate import Certificate
    from nerm.certify.multipliers import Multipliers
    from nerm.certify.solution import Solution
    from nerm.neutralize import Neutralized
    from nerm.proofs.frontier import Frontier
    from nerm.solvers.base import Solver


class SolveMethods:
    """The methods of `Problem` that solve; a problem on chunks has the same.

    A subclass has an objective and the three methods below: `_reweighted` returns the problem with other
    weights of the same terms, `_solve_all` one solution per problem on the same rows for a solver, `verbose`
    and the arguments of `nerm.solvers.registry.SolverPool.solve_all`, and `_neutralize` searches for a
    solution within a limit.
    """

    objective: Objective
    _reweighted: Callable[[Objective], Any]
    _solve_all: Callable[..., list[Solution]]
    _neutralize: Callable[..., Neutralized]

    def with_neutrality(self, eta: float) -> Self:
        """Return the same problem with neutrality weight eta; both share all data.

        If there are several neutrality terms, their weights add up to eta and keep their ratios. If all their
        weights are 0, they become equal.
        """
        return self._with_total("neutrality", eta, "eta", "Add Neutrality(...) to it")

    def with_regularization(self, lam: float) -> Self:
        """Return the same problem with regularization weight lam, in mean form; both share all data.

        If there are several regularizers, their weights add up to lam and keep their ratios. If all their
        weights are 0, they become equal.
        """
        return self._with_total("regularizer", lam, "lam", "Add SquaredL2() to it, for instance")

    def _with_total(self, kind: str, total: float, name: str, do: str) -> Self:
        total = as_nonnegative(total, name)
        if not any(t.term.kind == kind for t in self.objective.terms):
            must = f"the objective must have a {kind} term to weight by {name}"
            raise InvalidInputError(must, repr(self.objective), do)
        return self._reweighted(self.objective.with_total(kind, total))

    def solve(
        self,
        solver: str | Solver = "auto",
        tol: float = 1e-6,
        *,
        strict: bool = False,
        time_limit: float | None = None,
        verbose: bool = False,
        **options: Any,
    ) -> Solution:
        """Solve the problem; its status is optimal only if the certified relative gap is at most `tol`.

        Parameters
        ----------
        solver : str or Solver
            ``"auto"``, a name from `nerm.solvers.available()`, or a `nerm.solvers.Solver` of your own.
        tol : float
            The relative duality gap that nerm itself certifies.
        strict : bool
            Raise `NotSolvedError` instead of returning a solution that is not optimal.
        time_limit : float, optional
            Seconds, for any solver. After this time the best hypothesis so far is certified and returned with
            `Status.TIME_LIMIT`, or as optimal if the certificate shows it. A solver stops after its current
            iteration; preparation and certification are not interrupted.
        verbose : bool
            Print one line per solve: solver, rows, objective, certified relative gap, seconds.
        options
            Passed to the solver. If the objective is not convex, two more options are accepted:
            ``start=(coef, intercept)``, the start of the convex-concave procedure (by default the solution of
            the convex relaxation), and ``max_steps``.

        Returns
        -------
        Solution

        """
        return self._solve_all(solver, verbose, [self], tol, strict, time_limit, options)[0]

    def neutralize(
        self,
        limit: float,
        measure: Any = "calders_verwer_score",
        *,
        tol: float = 1e-6,
        on: Any = None,
        surrogate: Any = "auto",
        prefer: Any = "accuracy",
        keep: float = 0.5,
        random_state: int = 0,
        groups: str = "each",
        verbose: bool = False,
    ) -> Neutralized:
        """Return the best solution whose *measured* neutrality is within a limit.

        The risk and the regularizers are kept. The neutrality terms are replaced by one-sided terms with
        different weights eta: as eta grows, the signed measure changes from its value without neutrality
        terms (the plain model) through 0. Every solve is certified and fixes a ranking of the rows. Its best
        threshold, the most accurate one within the limit, is then found exactly
        (`nerm.metrics.best_threshold`) and subtracted from the intercept. At most 40 convex problems are
        solved. With a ramp, which is not convex, the result is a stationary point. See `nerm.Neutralized`
        for an example.

        Parameters
        ----------
        limit : float
            The largest absolute value of the measure that is allowed, or the smallest value of
            "selection_rate_ratio". Each row counts once in the measure: sample weights apply to the risk
            only.
        measure : str or callable
            A function of `nerm.metrics` ("calders_verwer_score", "neutrality_risk",
            "equal_opportunity_difference", "predictive_equality_difference", "equalized_odds_difference",
            "selection_rate_ratio", "normalized_prejudice_index") or a function
            ``(y, scores, viewpoint) -> signed float``. For a function of your own the neutrality terms have
            balanced weights, or those of the problem's own neutrality term if they are an array
            (`nerm.weights.within`).
        tol : float
            The relative gap of every solve.
        on : (X, y, viewpoint), optional
            Other rows to measure on.
        surrogate : "auto", MarginFunction, or a list of these
            psi. From several surrogates, the best on rows that it was not fitted on is chosen. "auto"
            compares a convex one (`Logistic`, or `Hinge` if the loss is piecewise linear) and a ramp.
        prefer : "accuracy", "auc" or callable
            The criterion for "best"; a callable has the arguments (y, scores).
        keep : float
            The positive rate of every group must be at least this share of its rate under the plain model.
        random_state : int
            The seed that draws the held-out rows.
        groups : "each" or "intersect"
            With several viewpoints: compare the groups of each, or all combinations of their groups. With
            more than two groups the largest difference between any two is limited; groups of less than 50
            rows are pooled.
        verbose : bool
            Print one line per solve, with the surrogate, the weights and the measure.

        Returns
        -------
        Neutralized

        Raises
        ------
        NotNeutralError
            If no model within the limit ranks better than chance and keeps the positive rates; its `best`
            is the closest model.

        """
        chosen = {"surrogate": surrogate, "prefer": prefer, "keep": keep, "random_state": random_state}
        return self._neutralize(limit, measure, tol=tol, on=on, groups=groups, verbose=verbose, **chosen)

    def path(
        self,
        eta: Sequence[float],
        solver: str | Solver = "auto",
        tol: float = 1e-6,
        *,
        strict: bool = False,
        time_limit: float | None = None,
        verbose: bool = False,
        **options: Any,
    ) -> list[Solution]:
        """Solve for every neutrality weight in `eta` and return a list with one `Solution` per weight.

        The model is built once. The weights of several neutrality terms add up to eta and keep their ratios.
        `time_limit`, in seconds, applies to the whole path; the other options are those of `solve`.
        """
        problems = [self.with_neutrality(value) for value in _weights(eta, "eta", "neutrality")]
        return self._solve_all(solver, verbose, problems, tol, strict, time_limit, options)

    def grid(
        self,
        lam: Sequence[float] | None = None,
        eta: Sequence[float] | None = None,
        solver: str | Solver = "auto",
        tol: float = 1e-6,
        *,
        strict: bool = False,
        time_limit: float | None = None,
        verbose: bool = False,
        **options: Any,
    ) -> list[list[Solution]]:
        """Solve for every pair of weights; entry [i][j] of the result is for (lam[i], eta[j]).

        `lam` is in mean form, as in ``0.05 * SquaredL2()``; several regularizers keep their ratios. If `lam`
        or `eta` is None, this weight does not change. Every solve is warm-started from an adjacent pair; the
        other parameters are those of `path`.
        """
        if lam is None and eta is None:
            do = "Pass grid(lam=[...], eta=[...])"
            raise InvalidInputError("a grid must have weights", "neither lam nor eta", do)
        lams = [] if lam is None else [as_positive(w, "lam") for w in _weights(lam, "lam", "regularization")]
        rows = [self.with_regularization(w) for w in lams] or [self]
        etas = [] if eta is None else _weights(eta, "eta", "neutrality")
        problems = [row.with_neutrality(value) for row in rows for value in etas] or rows
        found = self._solve_all(solver, verbose, problems, tol, strict, time_limit, options)
        width = len(problems) // len(rows)
        return [found[i : i + width] for i in range(0, len(found), width)]

    def frontier(
        self, tol: float = 0.01, eta_range: tuple[float, float] | None = None, verbose: bool = False
    ) -> Frontier:
        """Enclose the trade-off between regularised risk and relaxed neutrality risk by certified solves.

        Parameters
        ----------
        tol : float
            The target width of the band between the proved bound and the attained curve, relative to the
            range of each risk.
        eta_range : (float, float), optional
            The smallest and largest neutrality weight. By default all weights from 0; a problem with
            one-sided neutrality terms needs a finite range.
        verbose : bool
            Print one line per solve.

        Returns
        -------
        Frontier
            With `refutes`, `find` and `place`; see `nerm.proofs.Frontier` for an example.

        """
        from nerm.proofs.frontier import frontier

        problem: Any = self
        return frontier(problem, tol, eta_range, verbose)


@dataclass(frozen=True, eq=False, repr=False)
class Problem(SolveMethods):
    """An `Objective` on validated data, in mean form. Made by ``objective.on(X, y, ...)``.

    ::

        min over f   (1/n) sum_i s_i phi(y_i f_i) + Omega(f) + sum_k eta_k max(C_k^+, C_k^-)
        C_k^+-  =    (1/n) sum_i u_ki psi_k(+-v_ki f_i)

    with f = X w + b, or f = K c + b on a kernel problem (the paper, section 4.4).

    Attributes
    ----------
    objective : Objective
        The weighted terms.
    hypothesis : LinearHypothesis or KernelHypothesis
        The map from coefficients to scores on the rows.
    blocks : tuple of Block
        The sums over rows in the objective and its limits. They do not depend on the weights of the terms, so
        the problems along a path share them.
    y, classes : (n,) and (2,) arrays
        The labels as -1 and +1, and the two original labels. For a regression, the real y and no classes.
    viewpoints : dict of (n,) arrays
        The viewpoints by name.
    groups : dict of tuples
        For each viewpoint that has two different values, the values that became -1 and +1.
    sample_weight : (n,) array
        s, the weights of the risk.
    intercept : bool
        Whether b is free.
    divisor : float
        The divisor of all sums, by default n.
    region : Polyhedron or None
        The linear constraints on w.

    >>> import nerm
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    >>> problem = objective.on(X, y, viewpoint=v)
    >>> problem.evaluate([0.5])
    Risk(Hinge())               1 × 0.25
    SquaredL2()               0.5 × 0.125
    Neutrality(Hinge())         1 × 1              (C+ 1, C- 1)
    total                           1.3125
    >>> problem.certify([0.5]).relative_gap < 1e-9  # nothing is better
    True
    >>> [round(solution.objective.total, 4) for solution in problem.path([0, 1, 2])]
    [0.25, 1.3125, 2.3125]
    >>> problem.to_cvxpy().is_dpp()
    True

    """

    objective: Objective
    hypothesis: Hypothesis
    y: Floats
    classes: Array
    viewpoints: Mapping[str, Floats]
    sample_weight: Floats
    intercept: bool
    divisor: float
    blocks: tuple[Block, ...]
    region: Polyhedron | None = None
    groups: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        hypothesis = self.hypothesis
        kind = f"kernel {hypothesis.kernel!r}" if isinstance(hypothesis, KernelHypothesis) else "linear"
        size = f"{self.n} rows, {hypothesis.size} coefficients"
        read = shown_groups({"y": tuple(self.classes.tolist()), **self.groups})
        parts = [f"{self.objective!r} on {size}, {kind}", read]
        return f"<Problem: {'; '.join(filter(None, parts))}>"

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def is_kernel(self) -> bool:
        """Whether the hypothesis is f = K c + b."""
        return isinstance(self.hypothesis, KernelHypothesis)

    @cached_property
    def is_convex(self) -> bool:
        """Whether no atom is a difference of convex functions."""
        return not any(isinstance(block.atom, DCFunction) for block in self.blocks)

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits C_k(f) <= t_k among the constraints."""
        return self.objective.limits

    @cached_property
    def etas(self) -> Floats:
        """The weights of the neutrality terms, in the order of the objective."""
        return np.array([t.weight for t in self.objective.terms if isinstance(t.term, Neutrality)])

    @cached_property
    def regularizers(self) -> tuple[tuple[float, Regularizer], ...]:
        """The pairs (weight, regularizer) of the objective, each split into its parts."""
        d = self.hypothesis.size
        terms = [(t.weight, t.term) for t in self.objective.terms if isinstance(t.term, Regularizer)]
        return tuple((weight * share, part) for weight, omega in terms for share, part in omega.parts(d))

    def evaluate(self, coef: Any, intercept: float = 0.0) -> ObjectiveValue:
        """Return the objective at (coef, intercept), in total and by term.

        Parameters
        ----------
        coef : array
            (d,) the weights w of a linear hypothesis, or (n,) the coefficients c of a kernel one.
        intercept : float
            b.

        Returns
        -------
        ObjectiveValue

        """
        coef, intercept = check_hypothesis(self, coef, intercept)
        if not self.blocks:
            must = "a problem needs rows to evaluate"
            do = "Bind the objective to data: objective.on(X, y, ...)"
            raise InvalidInputError(must, "the problem of a loaded or fitted model, without rows", do)
        scores = self.hypothesis.scores(coef, intercept)
        sums = by_side(self.blocks, (block.total(scores) / self.divisor for block in self.blocks))
        return objective_value(self.objective, sums, lambda omega: self._penalty(omega, coef))

    def violation(self, coef: Floats, intercept: float) -> float:
        """Return the largest violation of a constraint by a hypothesis; 0 if all constraints hold."""
        worst = 0.0 if self.region is None else self.region.violation(coef)
        if self.limits:
            bounds = np.array([c.bound for c in self.limits])
            over = limit_values(self, self.hypothesis.scores(coef, intercept)) - bounds
            worst = max(worst, float(np.max(np.where(over <= ROUNDING * np.maximum(bounds, 1.0), 0.0, over))))
        return worst

    # The next methods import cvxpy or a solver only when they are called, to keep `import nerm` fast.

    def certify(
        self, coef: Any, intercept: float = 0.0, multipliers: Multipliers | None = None
    ) -> Certificate:
        """Return the certificate of a hypothesis from any source.

        Parameters
        ----------
        coef : array
            (d,) for a linear hypothesis, (n,) for a kernel one.
        intercept : float
            b.
        multipliers : Multipliers, optional
            Dual variables for the lower bound; they are made feasible first. By default they are computed
            from the scores of the hypothesis.

        Returns
        -------
        Certificate

        """
        from nerm.certify.certificate import certify

        return certify(self, *check_hypothesis(self, coef, intercept), multipliers)

    def convexified(self, coef: Any = None, intercept: float = 0.0) -> Problem:
        """Return the convex problem of one step of the convex-concave procedure, at a hypothesis.

        In each difference of convex functions (`nerm.Ramp`, `nerm.dc_function`) the subtracted function is
        replaced by its tangent at (coef, intercept), by default at f = 0. The new objective equals the old
        one at this hypothesis and is nowhere below it. A convex problem is returned unchanged.

        >>> import nerm
        >>> objective = nerm.Risk(nerm.Ramp()) + 0.1 * nerm.SquaredL2()
        >>> step = objective.on([[0.0], [1.0], [9.0]], [-1, 1, -1]).convexified([1.0], -0.5)
        >>> str(step.solve().status), step.to_cvxpy().is_dcp()
        ('optimal', True)
        """
        from nerm.solvers.convex_concave import convexified

        zero = np.zeros(self.hypothesis.size)
        return convexified(self, *check_hypothesis(self, zero if coef is None else coef, intercept))

    def to_cvxpy(self) -> Any:
        """Return the problem as a `cvxpy.Problem`; the weight of each term is a Parameter (DPP).

        The scores f are a separate variable, (n,), with the constraint f = X w + b.
        """
        from nerm.cvxpy_backend.build import Model

        return Model(self).problem

    def _reweighted(self, objective: Objective) -> Self:
        return replace(self, objective=objective)

    def _solve_all(self, solver: str | Solver, verbose: bool, *given: Any) -> list[Solution]:
        from nerm.solvers.registry import SolverPool

        return SolverPool(solver, verbose).solve_all(*given)

    def _neutralize(self, limit: float, measure: Any, **options: Any) -> Neutralized:
        from nerm.neutralize import neutralize

        return neutralize(self, limit, measure, **options)

    def _penalty(self, omega: Regularizer, coef: Floats) -> float:
        """Return Omega(w); on a kernel problem 1/2 ||w||^2 is computed as 1/2 c' K c."""
        if isinstance(omega, SquaredL2):
            return 0.5 * self.hypothesis.squared_norm(coef)
        return omega.value(coef)


def _weights(values: Sequence[float], name: str, of: str) -> list[float]:
    """Return the weights as a list of floats.

    Raise an error unless all are nonnegative.
    """
    if np.ndim(values) != 1 or len(values) == 0:
        must = f"{name!r} must be a nonempty list of {of} weights"
        raise InvalidInputError(must, repr(values), "Pass [0.1, 1, 10], for instance")
    return [as_nonnegative(value, name) for value in values]


def check_hypothesis(problem: Problem, coef: Any, intercept: Any) -> tuple[Floats, float]:
    """Validate (coef, intercept) and return them as an array and a float."""
    w = as_vector(coef, problem.hypothesis.size, "coef", "coefficients")
    b = as_finite(intercept, "intercept")
    if b != 0 and not problem.intercept:
        must = "'intercept' must be 0 on a problem without an intercept"
        raise InvalidInputError(must, f"{b:g}", "Bind the data with intercept=True")
    return w, b


def relaxed_problem(problem: Problem, weights: Any) -> Problem:
    """Return the problem in which each limit C_k <= t_k is replaced by a term weights_k C_k.

    The new objective is the Lagrangian of the limits, without the constants - weights_k t_k. Both problems
    have the same blocks, so one session of a solver can solve both.
    """
    pairs = zip(weights, problem.limits, strict=True)
    terms = (WeightedTerm(float(weight), limit.term) for weight, limit in pairs)
    others = tuple(c for c in problem.objective.constraints if not isinstance(c, Limit))
    return replace(problem, objective=Objective((*problem.objective.terms, *terms), others))


def constraints_only(problem: Problem) -> Problem:
    """Return the problem with weight 0 for every term; its constraints are kept."""
    return replace(problem, objective=problem.objective.with_weights([0.0] * len(problem.objective.terms)))


def with_terms(
    problem: Problem, objective: Objective, y: Floats | None = None, sample_weight: Floats | None = None
) -> Problem:
    """Return a problem on the same rows with another objective.

    `y` and `sample_weight` replace the labels and the sample weights if they are given.
    """
    labels = problem.y if y is None else own(y)
    weights = problem.sample_weight if sample_weight is None else own(sample_weight)
    blocks = make_blocks(objective, labels, problem.viewpoints, weights)
    return replace(problem, objective=objective, y=labels, sample_weight=weights, blocks=blocks)


def without_rows(problem: Problem) -> Problem:
    """Return the problem without its rows.

    The terms, the classes and the number of columns are kept.
    """
    none = np.zeros(0)
    return replace(
        problem,
        hypothesis=replace(problem.hypothesis, X=problem.hypothesis.X[:0].copy()),
        y=none,
        viewpoints=dict.fromkeys(problem.viewpoints, none),
        sample_weight=none,
        blocks=(),
    )


def on(objective: Objective, X: Any, y: Any, *, kernel: Any, intercept: bool, **given: Any) -> Any:
    """Bind an objective to data: return a `Problem`, or a `ChunkedProblem` if X comes in chunks."""
    if not isinstance(intercept, bool | np.bool_):
        raise InvalidInputError("'intercept' must be True or False", repr(intercept), "Pass one of the two")
    if not is_lazy(X):
        return bind(objective, X, y, kernel=kernel, intercept=bool(intercept), **given)
    from nerm.chunks.chunked_problem import bind_chunks
    from nerm.chunks.source import as_chunks

    if kernel is not None:
        must = "a problem on chunks must be linear"
        raise InvalidInputError(must, f"kernel={kernel!r}", "Drop the kernel, or map the features first")
    return bind_chunks(objective, as_chunks(X, y, **given), intercept=bool(intercept))


def bind(
    objective: Objective,
    X: Any,
    y: Any,
    *,
    viewpoint: Any = None,
    kernel: Any = None,
    intercept: bool = True,
    sample_weight: Any = None,
    divisor: float | None = None,
    checked: bool = False,
) -> Problem:
    """Validate and copy the data and return the `Problem`; `Objective.on` calls this function.

    The parameters of `Objective.on` are explained there. The estimators use two more: `divisor` divides all
    sums (by default the number of rows), and `checked=True` says that X and y are already validated. Then X
    must be a finite float matrix, dense or CSR, and y a vector with both labels -1 and +1, or of finite
    numbers for a regression. A viewpoint that
    is a `Viewpoints` object is taken as it is.
    """
    if not any(isinstance(t.term, Risk) for t in objective.terms):
        must, do = "an objective must contain a risk", "Add Risk(Hinge()), for instance"
        raise InvalidInputError(must, repr(objective), do)
    matrix = sorted_csr(X if checked else as_matrix(X))
    n = matrix.shape[0]
    resolved = None if kernel is None else kernels.resolve(kernel).fitted(matrix)
    for name, values in {"y": y, "sample_weight": sample_weight}.items():
        check_order(X, values, name)
    if objective.is_regression:
        labels, classes = y if checked else as_real(y, n), np.zeros(0)
    else:
        labels, classes = (y, np.array([-1.0, 1.0])) if checked else as_labels(y, n)
    labels = own(labels)
    read = viewpoint if isinstance(viewpoint, Viewpoints) else resolve(viewpoint, X, n)
    viewpoints = {name: own(v) for name, v in read.items()}
    if not viewpoints and any(isinstance(term, Neutrality) for term in objective.every_term):
        must = "'viewpoint' must be given when the objective has a neutrality term"
        raise InvalidInputError(must, "None", "Pass viewpoint=..., or drop the term")
    weights = own(as_weights(sample_weight, n, "sample_weight"))
    hypothesis = make_hypothesis(matrix, resolved)
    linear = [c for c in objective.constraints if isinstance(c, LinearConstraint)]
    _check_coefficients(objective, hypothesis, linear)
    blocks = make_blocks(objective, labels, viewpoints, weights)
    divisor = float(n if divisor is None else divisor)
    _check_limits(objective, blocks, divisor)
    return Problem(
        objective=objective,
        hypothesis=hypothesis,
        y=labels,
        classes=classes,
        viewpoints=viewpoints,
        groups=read.groups,
        sample_weight=weights,
        intercept=intercept,
        divisor=divisor,
        blocks=blocks,
        region=polyhedron(linear, hypothesis.size, getattr(X, "columns", None)) if linear else None,
    )


def _check_coefficients(
    objective: Objective, hypothesis: Hypothesis, linear: Sequence[LinearConstraint]
) -> None:
    """Raise an error if a regularizer or a linear constraint does not fit the hypothesis."""
    is_kernel = isinstance(hypothesis, KernelHypothesis)
    if linear and is_kernel:
        must = "coefficients can be constrained on a linear problem only"
        raise InvalidInputError(must, "a kernel", "Pass kernel=None, or drop these constraints")
    for omega in (t.term for t in objective.terms if isinstance(t.term, Regularizer)):
        if is_kernel and not isinstance(omega, SquaredL2):
            must = "a kernel problem must be regularised by SquaredL2, the norm of its function space"
            do = "For a norm of the coefficients c, pass the Gram matrix as X with kernel=None"
            raise InvalidInputError(must, repr(omega), do)
        omega.check(hypothesis.size)


def _check_limits(objective: Objective, blocks: Sequence[Block], divisor: float) -> None:
    """Raise an error if a limit is below the smallest possible value of its neutrality term.

    Let psi be the surrogate and u the weights of the term. The smallest value is psi(0) mean(u) for a
    two-sided term, by convexity, and (inf psi) mean(u) for a one-sided term.
    """
    first = len(objective.terms)
    for block in (block for block in blocks if block.term >= first):
        limit, facts = objective.limits[block.term - first], block.atom.facts
        if isinstance(block.atom, DCFunction):
            do = "Add the term to the objective with a weight instead"
            raise InvalidInputError("a limit must be convex", repr(limit), do)
        least = (facts.at_zero if block.side else facts.minimum) * float(block.weights.sum()) / divisor
        if limit.bound < least:
            must = f"the limit on {limit.term!r} must be at least {least:g}, its least value"
            raise InvalidInputError(must, f"<= {limit.bound:g}", "Raise the limit")
