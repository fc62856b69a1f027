"""The certificate: a lower bound D on the optimum, and the duality gap P - D.

A hypothesis has coefficients w and an intercept b, and the score f_i = w.x_i + b on row x_i. Its objective
is P::

    P      = (1/n) sum_i s_i phi(y_i f_i) + Omega(w) + sum_k eta_k max(C_k^+, C_k^-),
    C_k^+- = (1/n) sum_i u_ki psi(+-v_ki f_i)

Here y_i are the labels, v_ki the viewpoints, s_i and u_ki the row weights, phi the loss, psi the surrogate
and Omega the weighted sum of the regularizers. A function with an asterisk, such as phi*, is the conjugate. A
one-sided neutrality term is treated as a further risk.

With max(a, b) = max over theta in [0, 1] of theta a + (1 - theta) b, multipliers alpha_i in -dom phi*,
beta_ki^+- in -dom psi* and theta_k in [0, 1] give a bound D <= optimum. If the intercept is free, they must
also satisfy sum_i c_i = 0. The definitions are::

    c_i = s_i alpha_i y_i + sum_k eta_k u_ki v_ki (theta_k beta_ki^+ - (1 - theta_k) beta_ki^-),
    q   = (1/n) sum_i c_i x_i,
    D   = -(1/n) sum_i s_i phi*(-alpha_i)
          -(1/n) sum_ki eta_k u_ki [theta_k psi*(-beta_ki^+) + (1 - theta_k) psi*(-beta_ki^-)] - Omega*(q).

So gap = P - D certifies any hypothesis, whichever solver computed it. This package imports no solver of
`nerm.solvers`. The multipliers of a solver are made feasible first (`nerm.certify.multipliers`). If the
solver gives none, they are computed from the scores. `nerm.certify.conjugates` bounds Omega* from above, and
`Slack` bounds the rounding errors. For custom regularizers, and for some sums of regularizers, Omega* is
computed by small cvxpy programs (`nerm.atoms.custom_regularizer`). Any split of q among the regularizers
gives a valid bound, and the values of these programs are rounded up.

The slack bounds rounding errors and errors of hand-written atoms (`Slack`). The computed score of row i has
an error of at most e_i (`Hypothesis.score_errors`), with a probability close to 1
(`nerm.model.blocks.sum_error`). The error of the objective is at most the mean over rows of the slope of the
loss times e_i. The dual bound D depends on the scores f_i of the optimum through (1/n) sum_i c_i f_i, where
c_i is the weighted dual of row i (`nerm.certify.certificate`). So the error of D is at most (1/n) sum_i of
the absolute terms of c_i times e_i. The rounding errors of the losses and conjugates themselves are added.

The optimum is not known, but e_i depends on its norm. This norm is estimated by the larger of the norms of w
and of q / mu. Here q = (1/n) sum_i c_i x_i, mu is the weight of the squared l2 norm, and q / mu are the
coefficients that correspond to the multipliers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from nerm.certify.conjugates import NEGLIGIBLE, conjugate_of_sum, parts_of, square_weight, unpunished
from nerm.certify.multipliers import (
    LOST,
    NO_CENTRE,
    NOT_ATTAINED,
    Multipliers,
    candidates,
    dual_factors,
    lost,
    moved,
    repaired,
    runs_away,
    separable,
    towards_centre,
    with_linear,
)
from nerm.errors import InvalidInputError
from nerm.model.blocks import (
    EPS,
    Block,
    ObjectiveValue,
    scaled_weights,
    sum_error,
    term_weights,
    two_sided,
    value_at_zero,
    weigh,
    weighted_duals,
)
from nerm.model.hypothesis import KernelHypothesis
from nerm.model.problem import Problem, constraints_only, relaxed_problem
from nerm.typing import Floats


class DualPoint(NamedTuple):
    """A lower bound D on the optimum, and the multipliers that give it.

    Attributes
    ----------
    bound : float
        D; -inf if there is no bound.
    multipliers : Multipliers or None
        The feasible multipliers that give D.
    reason : str
        Why there is no bound, or why it is loose; "" if there is nothing to report.
    q : (d,) array or None
        The vector at which the conjugate Omega* of the regularizer was evaluated. It equals
        (1/n) sum_i c_i x_i - A'z up to rounding, for linear constraints A w <= b with multipliers z.
    q_error : float
        The Euclidean norm of the difference between these two vectors; 0 in exact arithmetic.
    conjugates : float
        The sum over blocks and rows of the absolute weighted conjugates in D.

    """

    bound: float
    multipliers: Multipliers | None
    reason: str = ""
    q: Floats | None = None
    q_error: float = 0.0
    conjugates: float = 0.0


@dataclass(frozen=True, eq=False)
class Slack:
    """Bounds on the errors in the certificate of one hypothesis, (coef, intercept)."""

    problem: Problem
    coef: Floats
    intercept: float

    @property
    def level(self) -> float:
        """The part of the scores that is equal for all rows (`LinearHypothesis.level`)."""
        return self.problem.hypothesis.level(self.coef, self.intercept)

    @cached_property
    def mu(self) -> float:
        """The weight of the squared l2 norm (mu/2) ||w||^2."""
        return square_weight(self.problem.regularizers)

    @cached_property
    def scores(self) -> Floats:
        """The scores of the hypothesis, (n,)."""
        return self.problem.hypothesis.scores(self.coef, self.intercept)

    @cached_property
    def primal(self) -> float:
        """A bound on the rounding error of the objective at the hypothesis."""
        problem, hypothesis = self.problem, self.problem.hypothesis
        errors = hypothesis.score_errors(hypothesis.extent(self.coef), self.level)
        errors = errors + hypothesis.level_error(self.coef, self.intercept)
        total = self.mu * hypothesis.norm_error(self.coef) / 2
        with np.errstate(over="ignore", invalid="ignore"):
            for factor, block in zip(term_weights(problem), problem.blocks, strict=True):
                if factor:
                    error = np.nan_to_num(self._value_errors(block, errors))
                    total += factor * weigh(block.weights, error) / problem.divisor
        if problem.is_kernel:
            return total
        others = (weight * omega.value(self.coef) for weight, omega in problem.regularizers if weight)
        return total + sum_error(len(self.coef)) * sum(others, start=0.0)

    def _value_errors(self, block: Block, errors: Floats) -> Floats:
        """Return a bound on the error of the block's atom in each row, (n,).

        Two errors are added: the effect of the `errors` of the scores, (n,), and the rounding error of the
        atom itself. The slopes next to the margins are computed only if the largest slope between the
        smallest and the largest margin does not bound the effect well enough.
        """
        margins = block.margins(self.scores)
        width = np.abs(block.targets) * errors + EPS * (np.abs(margins) + 2 * np.abs(block.offsets))
        values, ends = np.abs(block.atom.value(margins)), width.max() * np.array([-1.0, 1.0])
        steepest = np.abs(block.atom.subgradient(np.array([margins.min(), margins.max()]) + ends)).max()
        if not steepest * width.max() <= 1e-4 * NEGLIGIBLE * values.mean():
            low = block.atom.subgradient(margins - width)[0]
            steepest = np.maximum(np.abs(low), np.abs(block.atom.subgradient(margins + width)[1]))
        return np.asarray(steepest * width + 4 * EPS * values)

    def _by_hand(self, block: Block, row: Floats) -> Floats:
        """Return the errors of a user's own value and conjugate at the dual variables of each row, (n,).

        A class may define `value` or `conjugate` itself, and these may be wrong. So they are compared with
        those that the formula gives (`MarginFunction.derived`).
        """
        margins, atom = block.margins(self.scores), block.atom
        with np.errstate(invalid="ignore"):
            apart = np.abs(atom.value(margins) - atom.derived.jet(margins).value)
            deficit = np.maximum(atom.derived.conjugate(-row) - atom.conjugate(-row), 0.0)
        return np.nan_to_num(apart) + np.nan_to_num(deficit)

    def of(self, point: DualPoint) -> float:
        """Return a bound on the errors of the primal value and of the dual bound of `point`.

        They are rounding errors, and the errors of values and conjugates that a user's class defines by hand.
        The result is 0 if `point` has no dual bound.
        """
        at, problem, hypothesis = point.multipliers, self.problem, self.problem.hypothesis
        if at is None or point.q is None or not np.isfinite(point.bound):
            return 0.0
        if problem.limits:
            problem = relaxed_problem(problem, at.limits)
        optimum = point.q / self.mu if self.mu > 0 else 0.0 * point.q
        extent = max(hypothesis.extent(self.coef), hypothesis.extent(optimum))
        own, wrong = point.conjugates, 0.0
        weights_of_blocks = scaled_weights(problem, at.thetas)
        rows = zip(term_weights(problem), weights_of_blocks, problem.blocks, at.rows, strict=True)
        for factor, weights, block, row in rows:
            own += weigh(weights, (2 + np.abs(block.offsets)) * np.abs(row))
            if block.atom.by_hand:
                wrong += factor * weigh(block.weights, self._by_hand(block, row))
        errors = hypothesis.score_errors(extent, self.level) + 2 * EPS * np.abs(self.scores)
        moments = dual_factors(problem, at.thetas) * at.rows
        sums = weigh(np.abs(moments).sum(axis=0), errors) + 4 * EPS * own + wrong
        sums += abs(float(moments.sum())) * abs(self.level) if problem.intercept else 0.0
        if problem.region is not None:
            bounds = np.abs(problem.region.bound) + np.abs(problem.region.matrix @ self.coef)
            sums += EPS * problem.divisor * float(np.abs(at.linear) @ bounds)
        size = max(float(np.linalg.norm(self.coef)), float(np.linalg.norm(optimum)))
        return self.primal + sums / problem.divisor + point.q_error * size


def rounding_of_sums(sample: Problem, coef: Floats, intercept: float, rows: int, values: float) -> float:
    """Estimate the rounding errors of a primal value and a dual bound on chunks.

    Parameters
    ----------
    sample : Problem
        A problem on a sample of the rows. The effect of rounding errors of the scores is estimated from it.
    coef, intercept
        The hypothesis.
    rows : int
        The number of all rows. The summation adds a relative error of `sum_error(rows)`.
    values : float
        A bound on the size of the sums.

    """
    return 2 * Slack(sample, coef, intercept).primal + sum_error(rows) * values


NOT_CONVEX = "the objective is not convex, so nothing bounds it from below"
ADVICE = "centre and scale the columns of X, or regularise more"
HIDDEN = f"rounding may hide {{:.1g}} of it: {ADVICE}"
SUMS = ("primal", "dual", "scale", "slack")  # the numbers of a certificate that add up over problems
FEW_DIGITS = f"in doubles this kernel keeps too few digits here: {ADVICE}"


def one_reason(*reasons: str) -> str:
    """Return the reasons that are not empty, each of them once, as one text."""
    return "; ".join(dict.fromkeys(filter(None, reasons)))


@dataclass(frozen=True)
class Certificate:
    """Two bounds on the optimum, computed by nerm: primal >= optimum >= dual.

    Attributes
    ----------
    primal : float
        The objective at the hypothesis.
    dual : float
        A lower bound on the objective of every hypothesis.
    scale : float
        The objective at f = 0, or 1 if it is 0. The relative gap divides by at least 1e-8 times this value.
    reason : str
        Why there is no bound, or why it may be loose; empty if there is nothing to report.
    violation : float
        The largest violation of a constraint; if it is positive, the relative gap is infinite.
    slack : float
        A bound on the sum of the rounding errors of primal and dual, plus the errors of hand-written values
        and conjugates of atoms. The relative gap includes it.
    saved : bool
        Whether the certificate was read from a file without the rows, so that it cannot be computed again.

    For (1/n) sum max(0, 1 - y f) + ¼ w^2 on two rows x = ±1 the optimum is w = 1, where primal and dual are
    equal. At w = 0 the primal value is 1, and the bound is the same:

    >>> import nerm
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2()
    >>> problem = objective.on([[1.0], [-1.0]], [1, -1], intercept=False)
    >>> problem.certify([1.0])
    Certificate(primal=0.25, dual=0.25, scale=1.0)
    >>> print(problem.certify([0.0]))
    primal 1, dual bound 0.25, relative gap 7.50e-01

    """

    primal: float
    dual: float
    scale: float = 0.0
    reason: str = field(default="", repr=False)
    violation: float = field(default=0.0, repr=False)
    slack: float = field(default=0.0, repr=False)
    saved: bool = field(default=False, repr=False, compare=False)

    @property
    def size(self) -> float:
        """The divisor of the relative gap: `|primal|`, but at least 1e-8 * `scale`."""
        return max(abs(self.primal), NEGLIGIBLE * self.scale)

    @property
    def gap(self) -> float:
        """The duality gap primal - dual; no hypothesis is better than `primal` by more."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """`(gap + slack) / size`; infinite without a bound, or if a constraint is violated.

        If the dual bound exceeds the primal value by more than a relative 1e-8, a conjugate is wrong or the
        problem is not convex, and the relative gap is infinite too.
        """
        contradicts = -self.gap > NEGLIGIBLE * max(abs(self.primal), abs(self.dual))
        if self.violation or not np.isfinite(self.gap) or contradicts:
            return np.inf
        claimed = max(self.gap + self.slack, 0.0)
        return float(claimed / self.size) if self.size else 0.0 if claimed <= 0 else np.inf

    def times(self, factor: float) -> Certificate:
        """Return the certificate of the objective multiplied by `factor` > 0."""
        return replace(self, **{name: factor * getattr(self, name) for name in SUMS})

    def __add__(self, other: Certificate) -> Certificate:
        """Return the certificate of the sum of two problems that share no variables."""
        return Certificate(
            **{name: getattr(self, name) + getattr(other, name) for name in SUMS},
            reason=one_reason(self.reason, other.reason),
            violation=max(self.violation, other.violation),
            saved=self.saved or other.saved,
        )

    def __str__(self) -> str:
        numbers = f"primal {self.primal:.10g}, dual bound {self.dual:.10g}"
        numbers += f", relative gap {self.relative_gap:.2e}"
        violated = f"a constraint is violated by {self.violation:.2g}" if self.violation else ""
        words = one_reason(violated, self.reason, "as saved" if self.saved else "")
        return f"{numbers} ({words})" if words else numbers


def certify(
    problem: Problem, coef: Floats, intercept: float, multipliers: Multipliers | None = None
) -> Certificate:
    """Return the certificate of a hypothesis.

    The bound comes from `multipliers`, made feasible; if they are None, multipliers are computed from the
    scores of the hypothesis.
    """
    expected = (len(problem.blocks), problem.n), (len(two_sided(problem)),)
    if multipliers is not None and (multipliers.rows.shape, multipliers.thetas.shape) != expected:
        must = f"'multipliers' must have rows of shape {expected[0]} and thetas of shape {expected[1]}"
        got = f"{multipliers.rows.shape} and {multipliers.thetas.shape}"
        do = "Pass multipliers of a problem with the same terms and rows"
        raise InvalidInputError(must, got, do)
    return best_certificate(problem, coef, intercept, multipliers).certificate


class Certified(NamedTuple):
    """The value of a hypothesis, its certificate, and the multipliers that give the dual bound.

    The multipliers are feasible; they are None if there is no bound.
    """

    value: ObjectiveValue
    certificate: Certificate
    multipliers: Multipliers | None


def from_bounds(
    primal: float, dual: float, scale: float, slack: float, violation: float = 0.0
) -> Certificate:
    """Return the certificate for a given primal value and dual bound.

    `nerm.chunks` computes both as sums over chunks of rows. `scale` is the objective at f = 0. `slack` bounds
    the rounding errors of `primal` and `dual` (`nerm.certify.certificate.rounding_of_sums`).
    """
    return Certificate(primal, dual, scale, violation=violation, slack=slack)


def best_certificate(
    problem: Problem,
    coef: Floats,
    intercept: float,
    multipliers: Multipliers | None,
    tol: float | None = None,
) -> Certified:
    """Return the value of a hypothesis and its certificate with the best bound found.

    Parameters
    ----------
    problem : Problem
        The problem.
    coef, intercept
        The hypothesis.
    multipliers : Multipliers or None
        Multipliers of a solver. If None, multipliers are computed from the scores.
    tol : float, optional
        The target of the relative gap. If the gap of the given multipliers is larger, multipliers are also
        computed from the scores. Without `tol` only the given ones are used.

    Returns
    -------
    Certified
        The value, the certificate, and the feasible multipliers that give the bound.

    """
    value = problem.evaluate(coef, intercept)
    violation = problem.violation(coef, intercept)
    scale = value_at_zero(problem) or 1.0
    best = Certificate(value.total, -np.inf, scale, violation=violation)
    if not problem.is_convex:
        return Certified(value, replace(best, reason=NOT_CONVEX), None)
    wanted = np.inf if tol is None else best.primal - tol * best.size
    slack = Slack(problem, coef, intercept)
    behind: Multipliers | None = None
    given = [] if multipliers is None else [with_linear(problem, multipliers, coef)]
    computed = candidates(problem, coef, intercept) if tol is not None or not given else ()
    for candidate in chain(given, computed):
        point = dual_point(problem, candidate, wanted)
        hidden = slack.of(point)
        if behind is None or point.bound - hidden > best.dual - best.slack:
            best = replace(best, dual=point.bound, reason=point.reason, slack=hidden)
            behind = point.multipliers
        if tol is not None and best.relative_gap <= tol:
            break
    if best.relative_gap <= (tol or 0.0):
        reason = ""
    elif not problem.objective.constraints and runs_away(problem, coef, intercept, value.total):
        reason = NOT_ATTAINED
    else:
        reason = best.reason if tol is None else _reason(problem, best, tol)
    return Certified(value, replace(best, reason=reason), behind)


def _reason(problem: Problem, best: Certificate, tol: float) -> str:
    """Return why there is no bound or why it is loose; "" if no reason is known."""
    if best.slack > 0.5 * tol * best.size and np.isfinite(best.relative_gap):
        return HIDDEN.format(best.slack)
    kernel = problem.hypothesis
    if isinstance(kernel, KernelHypothesis) and kernel.blur(square_weight(problem.regularizers)) > tol:
        return one_reason(best.reason, FEW_DIGITS)
    return best.reason


def dual_bound(problem: Problem, multipliers: Multipliers) -> float:
    """Return the bound D of given multipliers, after they are made feasible.

    D is defined at the top of this module. It is -inf if the multipliers cannot be made feasible.
    """
    return dual_point(problem, multipliers).bound


def infeasibility(problem: Problem, multipliers: Multipliers) -> float:
    """Return a lower bound on the smallest violation of the limits C_k <= t_k.

    The violation of a hypothesis f is max_k (C_k(f) - t_k). If the bound is positive, no hypothesis satisfies
    all limits.

    For weights eta_k >= 0 with sum 1, max_k (C_k(f) - t_k) >= sum_k eta_k (C_k(f) - t_k). The minimum of the
    right-hand side over f, under the linear constraints, has a dual bound, which is returned. The eta_k are
    the multipliers of the limits, divided by their sum.
    """
    total = float(np.maximum(multipliers.limits, 0.0).sum())
    if not total > 0:
        return 0.0
    shares = replace(multipliers, limits=multipliers.limits / total, linear=multipliers.linear / total)
    return dual_bound(constraints_only(problem), shares)


def dual_point(problem: Problem, multipliers: Multipliers, wanted: float = np.inf) -> DualPoint:
    """Make multipliers feasible and return the dual bound that they give.

    The symbols are those of this module: q = (1/n) sum_i c_i x_i, and Omega* is the conjugate of the
    regularizer. If Omega*(q) is infinite, the multipliers are shrunk towards the centre, where c = 0
    (`towards_centre`), until Omega* is finite. If the resulting bound is below `wanted`, the multipliers are
    also shifted so that q becomes a nearby point where Omega* is finite. The better of the two bounds is
    returned.

    A limit C <= t with multiplier eta adds the term eta (C - t) to the objective. Linear constraints
    A w <= b with multipliers z replace Omega*(q) by Omega*(q - A'z) + b.z.
    """
    if problem.limits:
        weights = np.maximum(np.nan_to_num(multipliers.limits, posinf=0.0), 0.0)
        offset = float(weights @ [c.bound for c in problem.limits]) * (1 + LOST)
        point = dual_point(relaxed_problem(problem, weights), multipliers, wanted + offset)
        behind = None if point.multipliers is None else replace(point.multipliers, limits=weights)
        return point._replace(bound=point.bound - offset, multipliers=behind)
    parts, free, region = parts_of(problem.regularizers), unpunished(problem), problem.region
    z = np.zeros(0) if region is None else region.signed(multipliers.linear)
    linear_term = np.zeros(problem.hypothesis.size) if region is None else z @ region.matrix
    feasible, reason = repaired(problem, multipliers, free, linear_term)
    if feasible is None:
        return DualPoint(-np.inf, None, reason)
    if reason:  # the multipliers were replaced by the centre, c = 0
        z, linear_term = 0.0 * z, 0.0 * linear_term

    def bound(
        at: Multipliers, omega: float, z: Floats, q: Floats, q_error: float, reason: str = ""
    ) -> DualPoint:
        offset = 0.0 if region is None else float(z @ region.bound)
        conjugates, size = separable(problem, at)
        value = -conjugates - omega - offset - lost(problem, at)
        behind = replace(at, linear=z)
        return DualPoint(-np.inf if np.isnan(value) else value, behind, reason, q, q_error, size)

    def dual_vector(at: Multipliers) -> Floats:
        """Return (1/n) sum_i c_i x_i - A'z."""
        c = weighted_duals(problem, at.rows, at.thetas)
        return problem.hypothesis.adjoint(c, balanced=problem.intercept) / problem.divisor - linear_term

    def shrunk(t: float, omega: float) -> DualPoint:
        at = feasible if t == 1 else towards_centre(problem, feasible, t)
        if at is None:
            return DualPoint(-np.inf, None, f"{reason}; {NO_CENTRE}")
        return bound(at, omega, t * z, t * q, t * q_error, reason)

    q = dual_vector(feasible)
    if not np.isfinite(q).all():
        return DualPoint(-np.inf, None, "sum c x overflows")
    rest = free @ (free.T @ q)  # 0 in exact arithmetic
    q, q_error = q - rest, float(np.linalg.norm(rest))
    omega = conjugate_of_sum(parts, q, problem.hypothesis.squared_norm)
    reason = reason or omega.reason

    point = shrunk(omega.shrink, omega.value)
    if point.bound < wanted and omega.value > 0:
        # D(t) >= (1 - t) D(0) + t (D(1) + Omega*(q)) - t^2 Omega*(q) if Omega is the squared l2 norm
        rise = point.bound + omega.value - shrunk(0.0, 0.0).bound
        t = omega.shrink * float(np.clip(rise / (2 * omega.value), 0.0, 1.0))
        if t < omega.shrink:
            less = conjugate_of_sum(parts, t * q, problem.hypothesis.squared_norm)
            point = max(point, shrunk(t * less.shrink, less.value), key=lambda one: one.bound)
    if point.bound < wanted and omega.nearest is not None:
        near = moved(problem, feasible, omega.nearest - q)
        if near is not None:
            q_error = float(np.linalg.norm(dual_vector(near) - omega.nearest))
            other = bound(near, omega.nearest_value, z, omega.nearest, q_error)
            point = max(point, other, key=lambda one: one.bound)
    return point
