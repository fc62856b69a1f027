"""An objective bound to data: everything that can be asked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nerm import hypothesis as hypotheses
from nerm import viewpoint as viewpoints
from nerm import weights as neutrality_weights
from nerm.algebra import Objective, WeightedTerm
from nerm.atoms.margin import MarginFunction
from nerm.atoms.regularizer import Regularizer
from nerm.atoms.squared_l2 import SquaredL2
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.objective import Neutrality, Risk
from nerm.validation import as_finite, as_labels, as_nonnegative, as_vector, as_weights

if TYPE_CHECKING:
    from nerm.certificate import Certificate
    from nerm.multipliers import Multipliers
    from nerm.solution import Solution
    from nerm.solvers.base import Solver


@dataclass(frozen=True, eq=False)
class BoundRisk:
    """weight * (1/n) sum_i s_i phi(y_i f_i)."""

    weight: float
    loss: MarginFunction
    targets: np.ndarray
    sample_weight: np.ndarray
    label: str

    def value(self, scores: np.ndarray) -> float:
        """Return the risk without its weight."""
        return weighted_mean(self.sample_weight, self.loss, self.targets * scores)


@dataclass(frozen=True, eq=False)
class BoundNeutrality:
    """weight * max(C+, C-), C+- = (1/n) sum_i u_i psi(+-v_i f_i)."""

    weight: float
    surrogate: MarginFunction
    viewpoint: np.ndarray
    sample_weight: np.ndarray
    label: str

    def sides(self, scores: np.ndarray) -> tuple[float, float]:
        """Return (C+, C-) without the weight."""
        margins = self.viewpoint * scores
        return tuple(weighted_mean(self.sample_weight, self.surrogate, side) for side in (margins, -margins))  # type: ignore[return-value]


def weighted_mean(weights: np.ndarray, atom: MarginFunction, margins: np.ndarray) -> float:
    """Return (1/n) sum_i weights_i atom(margins_i); a weight of 0 silences even an infinite value."""
    counted = weights > 0
    if counted.all():
        return float(weights @ atom.value(margins)) / len(margins)
    return float(weights[counted] @ atom.value(margins[counted])) / len(margins)


@dataclass(frozen=True)
class TermValue:
    """One term at a hypothesis: its weight, its value without the weight, and C+ and C- if it is a neutrality term."""

    label: str
    kind: str
    weight: float
    value: float
    plus: float | None = None
    minus: float | None = None


@dataclass(frozen=True, repr=False)
class ObjectiveValue:
    """The objective at a hypothesis: the total and its terms. `float(value)` is the total."""

    total: float
    terms: tuple[TermValue, ...]

    def __float__(self) -> float:
        return self.total

    def _sum(self, kind: str) -> float:
        return sum(t.weight * t.value for t in self.terms if t.kind == kind)

    @property
    def risk(self) -> float:
        """The weighted risk terms."""
        return self._sum("risk")

    @property
    def regularization(self) -> float:
        """The weighted regularizers."""
        return self._sum("regularizer")

    @property
    def neutrality(self) -> float:
        """The weighted neutrality terms."""
        return self._sum("neutrality")

    def __repr__(self) -> str:
        width = max(len(t.label) for t in self.terms)
        lines = []
        for t in self.terms:
            sides = "" if t.plus is None else f"   (C+ {t.plus:.6g}, C- {t.minus:.6g})"
            lines.append(f"{t.label:<{width}}  {t.weight:>8.4g} × {t.value:<12.8g}{sides}".rstrip())
        return "\n".join([*lines, f"{'total':<{width}}  {'':>8}   {self.total:.10g}"])


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """An `Objective` on validated data, in mean form. Made by ``objective.on(X, y, ...)``.

    ::

        min over f   (1/n) sum_i s_i phi(y_i f_i) + Omega(f) + sum_k eta_k max(C_k^+, C_k^-)
        C_k^+-  =    (1/n) sum_i u_ki psi_k(+-v_ki f_i)

    with f = X w + b, or f = K c + b on a kernel problem (the paper, section 4.4). `y` is (n,) in -1/+1, `classes` the
    two labels behind it, `viewpoints` maps names to (n,) arrays, `sample_weight` is s, (n,).

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
    hypothesis: hypotheses.Hypothesis
    y: np.ndarray
    classes: np.ndarray
    viewpoints: Mapping[str, np.ndarray]
    sample_weight: np.ndarray
    intercept: bool

    def __repr__(self) -> str:
        kind = "linear" if isinstance(self.hypothesis, hypotheses.Linear) else f"kernel {self.hypothesis.kernel!r}"
        return f"<Problem: {self.objective!r} on {self.n} rows, {self.hypothesis.size} coefficients, {kind}>"

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def is_kernel(self) -> bool:
        """Whether the hypothesis is f = K c + b."""
        return isinstance(self.hypothesis, hypotheses.Kernelized)

    @cached_property
    def risks(self) -> tuple[BoundRisk, ...]:
        """The risk terms with their data."""
        return tuple(
            BoundRisk(t.weight, t.term.loss, self.y, self.sample_weight, repr(t.term))
            for t in self.objective.terms
            if isinstance(t.term, Risk)
        )

    @cached_property
    def neutralities(self) -> tuple[BoundNeutrality, ...]:
        """The neutrality terms with their data."""
        return tuple(self._bound_neutrality(t) for t in self.objective.terms if isinstance(t.term, Neutrality))

    @cached_property
    def regularizers(self) -> tuple[tuple[float, Regularizer], ...]:
        """The regularizers with their weights."""
        return tuple((t.weight, t.term) for t in self.objective.terms if isinstance(t.term, Regularizer))

    def _bound_neutrality(self, weighted: WeightedTerm) -> BoundNeutrality:
        term = weighted.term
        assert isinstance(term, Neutrality)
        if term.to is None and len(self.viewpoints) != 1:
            raise InvalidInputError(
                "a neutrality term must name its viewpoint when there are several",
                f"Neutrality without 'to' and the viewpoints {', '.join(map(repr, self.viewpoints))}",
                f"Write Neutrality(..., to={next(iter(self.viewpoints))!r})",
            )
        name = next(iter(self.viewpoints)) if term.to is None else term.to
        if name not in self.viewpoints:
            raise UnknownNameError(
                "'to' of a neutrality term", name, self.viewpoints, "Name a viewpoint that was given"
            )
        v = self.viewpoints[name]
        u = neutrality_weights.resolve(term.weights, self.y, v)
        return BoundNeutrality(weighted.weight, term.surrogate, v, u, repr(term))

    def evaluate(self, coef: Any, intercept: float = 0.0) -> ObjectiveValue:
        """Return the objective at (coef, intercept), in total and by term; numpy only.

        coef
            (d,) the weights w of a linear hypothesis, or (n,) the coefficients c of a kernel one.
        """
        w = self._checked_coef(coef)
        scores = self.hypothesis.scores(w, self._checked_intercept(intercept))
        terms = [TermValue(r.label, "risk", r.weight, r.value(scores)) for r in self.risks]
        terms += [
            TermValue(repr(omega), "regularizer", mu, self.regularizer_value(omega, w))
            for mu, omega in self.regularizers
        ]
        for term in self.neutralities:
            plus, minus = term.sides(scores)
            terms.append(TermValue(term.label, "neutrality", term.weight, max(plus, minus), plus, minus))
        # A weight of 0 switches a term off, also where its value overflows.
        total = sum(t.weight * t.value for t in terms if t.weight)
        return ObjectiveValue(float(total), tuple(terms))

    def value_at_zero(self) -> float:
        """Return the objective of f = 0, from the atoms' values at 0."""
        risks = sum(r.weight * float(r.sample_weight.mean()) * r.loss.facts.at_zero for r in self.risks)
        terms = sum(t.weight * float(t.sample_weight.mean()) * t.surrogate.facts.at_zero for t in self.neutralities)
        return risks + terms

    def _checked_intercept(self, intercept: Any) -> float:
        """Return a finite number, which must be 0 on a problem without intercept."""
        number = as_finite(intercept, "intercept")
        if number != 0 and not self.intercept:
            raise InvalidInputError(
                "'intercept' must be 0 on a problem without an intercept",
                f"{number:g}",
                "Bind the data with intercept=True",
            )
        return number

    def _checked_coef(self, coef: Any) -> np.ndarray:
        return as_vector(coef, self.hypothesis.size, "coef", "coefficients")

    def regularizer_value(self, omega: Regularizer, coef: np.ndarray) -> float:
        """Return Omega(w), with 1/2 ||w||^2 read as 1/2 c' K c on a kernel problem."""
        if isinstance(omega, SquaredL2):
            return 0.5 * self.hypothesis.squared_norm(coef)
        return omega.value(coef)

    def with_neutrality(self, eta: float) -> Problem:
        """Return the same problem with neutrality weight eta, sharing all data.

        Several terms keep their ratios and their weights add up to eta; if all are zero they share it equally.
        """
        eta = as_nonnegative(eta, "eta")
        if not self.neutralities:
            raise InvalidInputError(
                "the objective must have a neutrality term to weight by eta",
                repr(self.objective),
                "Add Neutrality(...) to it",
            )
        total = sum(t.weight for t in self.neutralities)
        share = 1.0 / len(self.neutralities)
        terms = tuple(
            replace(t, weight=eta * (t.weight / total if total else share)) if isinstance(t.term, Neutrality) else t
            for t in self.objective.terms
        )
        return replace(self, objective=Objective(terms))

    # The doors: each imports its room when called, so that nerm imports neither cvxpy nor a solver by itself.

    def certify(self, coef: Any, intercept: float = 0.0, multipliers: Multipliers | None = None) -> Certificate:
        """Return the certificate of any hypothesis, whoever computed it.

        coef
            (d,) for a linear hypothesis, (n,) for a kernel one.
        multipliers
            Those that bound the optimum from below, after they are made feasible; without any they are found from the
            hypothesis' own scores.
        """
        from nerm.certificate import certify

        return certify(self, self._checked_coef(coef), self._checked_intercept(intercept), multipliers)

    def to_cvxpy(self) -> Any:
        """Return the problem as a `cvxpy.Problem`, with the weight of each term as a nonnegative Parameter (DPP).

        The scores are a variable (n,) of their own, tied to X w + b by an equality.
        """
        from nerm.modelling import build

        return build(self).problem

    def solve(
        self, solver: str | Solver = "auto", tol: float = 1e-6, *, strict: bool = False, **options: Any
    ) -> Solution:
        """Solve and return a `Solution` that is called optimal only if its certified relative gap is at most `tol`.

        solver
            ``"auto"``, a name from `nerm.solvers.available()`, or a `nerm.solvers.Solver` of your own.
        strict
            Raise `NotSolvedError` instead of returning a solution that is not optimal.
        options
            Passed to the solver.
        """
        from nerm.solvers import solve

        return solve(self, solver, tol, strict=strict, **options)

    def path(
        self, eta: Sequence[float], solver: str | Solver = "auto", tol: float = 1e-6, **options: Any
    ) -> list[Solution]:
        """Solve for every neutrality weight in `eta`, a list, and return one `Solution` each; the model is built once.

        Several neutrality terms keep their ratios and their weights add up to eta.
        """
        from nerm.solvers import path

        return path(self, eta, solver, tol, **options)


def bind(
    objective: Objective, X: Any, y: Any, *, viewpoint: Any, kernel: Any, intercept: bool, sample_weight: Any
) -> Problem:
    """Check everything once and return the problem (the work behind `Objective.on`)."""
    _check_terms(objective)
    hypothesis = hypotheses.make(X, kernel)
    labels, classes = as_labels(y, hypothesis.n)
    problem = Problem(
        objective=objective,
        hypothesis=hypothesis,
        y=_own(labels),
        classes=classes,
        viewpoints={name: _own(v) for name, v in viewpoints.resolve(viewpoint, X, hypothesis.n).items()},
        sample_weight=_own(as_weights(sample_weight, hypothesis.n, "sample_weight")),
        intercept=_flag(intercept),
    )
    _check_viewpoints(problem)
    _check_regularizers(problem)
    return problem


def _flag(intercept: Any) -> bool:
    if not isinstance(intercept, bool | np.bool_):
        raise InvalidInputError("'intercept' must be True or False", repr(intercept), "Pass one of the two")
    return bool(intercept)


def _own(values: np.ndarray) -> np.ndarray:
    """Return a copy that nobody can change: what was validated stays what is solved."""
    copy = np.array(values, dtype=float)
    copy.setflags(write=False)
    return copy


def _check_terms(objective: Objective) -> None:
    if not any(isinstance(t.term, Risk) for t in objective.terms):
        raise InvalidInputError("an objective must contain a risk", repr(objective), "Add Risk(Hinge()), for instance")


def _check_viewpoints(problem: Problem) -> None:
    has_term = any(isinstance(t.term, Neutrality) for t in problem.objective.terms)
    if has_term and not problem.viewpoints:
        raise InvalidInputError(
            "'viewpoint' must be given when the objective has a neutrality term",
            "None",
            "Pass viewpoint=..., or drop the term",
        )
    _ = problem.neutralities  # resolves names and weights now


def _check_regularizers(problem: Problem) -> None:
    for _, omega in problem.regularizers:
        if problem.is_kernel and not isinstance(omega, SquaredL2):
            raise InvalidInputError(
                "a kernel problem must be regularised by SquaredL2, the norm of its function space",
                repr(omega),
                "For a norm of the coefficients c, pass the Gram matrix as X with kernel=None",
            )
        omega.check(problem.hypothesis.size)
