"""The facts about a fitted model that bounds need, and every statement that follows from them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nerm.atoms.penalties import SquaredL2
from nerm.bounds import complexity, theorems
from nerm.certify.solution import Solution
from nerm.errors import InvalidInputError
from nerm.metrics import UndefinedMeasureError, neutrality_risk, relaxed_neutrality_risk
from nerm.model import weights as neutrality_weights
from nerm.model.blocks import one_sided
from nerm.model.expressions import Neutrality, Risk, viewpoint_of
from nerm.model.problem import Problem, check_hypothesis
from nerm.typing import Floats
from nerm.validation import as_nonnegative, as_vector, as_weights, check_known


@dataclass(frozen=True)
class FitFacts:
    """The facts about a fitted model that bounds need, as plain arrays and numbers.

    `Solution.fit_facts()` and the classifiers' make it.

    Attributes
    ----------
    scores, y, viewpoint : array of shape (n,)
        On the training rows; y holds -1 and +1.
    loss, surrogate : MarginFunction
        phi and psi.
    eta : float
        The weight of the neutrality term, in mean form.
    coef_norm, intercept : float
        ||w|| (for kernels sqrt(c'Kc)) and b.
    diagonal : array of shape (n,)
        k(x_i, x_i): ||x_i||^2 for linear models.
    lam : float or None
        With Omega = (lam / 2n) ||w||^2; None for another regularizer, which gives no radius in advance.
    gap : float
        Certified, primal minus dual, in mean form.
    fit_intercept : bool
        Whether b was free.
    sample_weight, neutrality_weights : array of shape (n,) or None
        If any were used.
    learned : tuple of str
        What of the class was learned from the same rows (a kernel's width, a coding of columns), in words:
        the theorems are about a class fixed before the data, so every statement names it as treated as fixed.
    one_sided : bool
        Whether the neutrality term has one side: such a C_n,psi can fall below psi(0), and no bound on it
        follows.

    Examples
    --------
    >>> import nerm
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    >>> facts = objective.on(X, y, viewpoint=v).solve().fit_facts()
    >>> facts.eta, facts.lam, facts.diagonal.tolist(), round(facts.coef_norm, 4)
    (1.0, 2.0, [1.0, 4.0, 1.0, 4.0], 0.5)
    """

    scores: Any
    y: Any
    viewpoint: Any
    loss: Any
    surrogate: Any
    eta: float
    coef_norm: float
    intercept: float
    diagonal: Any
    lam: float | None = None
    gap: float = 0.0
    fit_intercept: bool = True
    sample_weight: Any = None
    neutrality_weights: Any = None
    learned: tuple[str, ...] = ()
    one_sided: bool = False


def facts_of(solution: Solution, to: str | None = None) -> FitFacts:
    """Return the facts of a solution about its neutrality to one viewpoint.

    The objective is divided by the weight of its risk, so that eta, lam and the gap are those of the
    theorems. With several neutrality terms eta (C_k - psi_k(0)) <= phi(0) + gap still holds for each, since
    no C_k is below psi_k(0).

    Parameters
    ----------
    solution : Solution
        Of a problem with one risk.
    to : str, optional
        The name of the viewpoint; it can be left out when the problem has one neutrality term.

    Examples
    --------
    >>> import nerm
    >>> X, y, v = np.array([[1.0], [2.0], [-1.0], [-2.0]]), [1, 1, -1, -1], [1, -1, 1, -1]
    >>> objective = 2 * nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2() + 4 * nerm.Neutrality(nerm.Hinge())
    >>> facts = facts_of(objective.on(X, y, viewpoint=v).solve())
    >>> facts.eta, facts.lam
    (2.0, 1.0)
    """
    problem = solution.problem
    risks = [(t.weight, t.term) for t in problem.objective.terms if isinstance(t.term, Risk)]
    if len(risks) != 1 or not risks[0][0] > 0:
        must = "a guarantee must be about one risk of positive weight"
        raise InvalidInputError(must, f"{len(risks)} risk terms", "Use an objective with a single Risk")
    ((weight, risk),) = risks
    eta, term = _term(problem, to)
    v = problem.viewpoints[viewpoint_of(term, problem.viewpoints)]
    weights = neutrality_weights.resolve(term.weights, problem.y, v)
    coef, intercept = check_hypothesis(problem, solution.coef, solution.intercept)
    return FitFacts(
        scores=solution.training_scores(),
        y=problem.y,
        viewpoint=v,
        loss=risk.loss,
        surrogate=term.surrogate,
        eta=eta / weight,
        coef_norm=float(np.sqrt(problem.hypothesis.squared_norm(coef))),
        intercept=intercept,
        diagonal=problem.hypothesis.squared_row_norms(),
        lam=_lam(problem, weight),
        gap=max(solution.certificate.gap, 0.0) * problem.divisor / (problem.n * weight),
        fit_intercept=problem.intercept,
        sample_weight=None if (problem.sample_weight == 1).all() else problem.sample_weight,
        neutrality_weights=None if (weights == 1).all() else weights,
        one_sided=term.theta is not None,
    )


def _term(problem: Problem, to: str | None) -> tuple[float, Neutrality]:
    """Return the neutrality term of this viewpoint and its weight."""
    terms = [(t.weight, t.term) for t in problem.objective.terms if isinstance(t.term, Neutrality)]
    if not terms:
        must = "a guarantee about neutrality must have a viewpoint"
        got = "a problem without a neutrality term"
        raise InvalidInputError(must, got, "Add Neutrality(...), or pass viewpoint= to fit")
    if to is None:
        if len(terms) > 1:
            do = f"Choose one: fit_facts(to={next(iter(problem.viewpoints))!r})"
            must = "a guarantee must be about one viewpoint"
            raise InvalidInputError(must, f"{len(terms)} neutrality terms", do)
        return terms[0]
    check_known(to, "'to'", problem.viewpoints, "Name a viewpoint that was given")
    for weight, term in terms:
        if viewpoint_of(term, problem.viewpoints) == to:
            return weight, term
    must = "'to' must name the viewpoint of a neutrality term"
    raise InvalidInputError(must, repr(to), "Add Neutrality(..., to=...) to the objective")


def _lam(problem: Problem, weight: float) -> float | None:
    """Return lam = n mu for Omega = (mu/2)||w||^2, None where no radius follows from it.

    The radius of a free intercept rests on the viewpoint of every term; with several, FitFacts shows only one
    of them. One side of a neutrality term can fall below psi(0), so with such a term none follows.
    """
    if not all(isinstance(omega, SquaredL2) for _, omega in problem.regularizers):
        return None
    if one_sided(problem) or (problem.intercept and (problem.etas > 0).sum() > 1):
        return None
    return problem.divisor * sum(mu for mu, _ in problem.regularizers) / weight


@dataclass(frozen=True)
class Statement:
    """One promise: `quantity <= bound`, by which theorem, assuming what; `note` says why it is empty.

    Attributes
    ----------
    quantity, source : str
        What is bounded, and by which argument.
    on_sample : float
        The quantity on the training (or held-out) rows.
    bound : float
        nan when the statement cannot be made.
    assumes, note : str
        What it assumes; why it is empty.
    vacuous : bool
        Its bound is no better than the largest possible value.

    Examples
    --------
    >>> print(Statement("C_sgn", "hold-out", 0.02, 0.0472, "10000 i.i.d. rows that the fit has not seen"))
    C_sgn <= 0.0472   (hold-out; on the sample 0.0200)
        assumes 10000 i.i.d. rows that the fit has not seen
    >>> Statement("C_sgn", "hold-out", 0.02, float("nan"), "", note="no hold-out given").holds
    False
    """

    quantity: str
    source: str
    on_sample: float
    bound: float = float("nan")
    assumes: str = ""
    vacuous: bool = False
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the statement could be made at all."""
        return bool(np.isfinite(self.bound))

    @property
    def remark(self) -> str:
        """What a reader must know: why it is empty, or what it assumes."""
        return self.note or f"assumes {self.assumes}"

    def __str__(self) -> str:
        head = f"{self.quantity} <= {self.bound:.4f}" if self.holds else f"{self.quantity}: no bound"
        word = "  VACUOUS" if self.vacuous else ""
        lines = [f"{head}{word}   ({self.source}; on the sample {self.on_sample:.4f})"]
        lines += [f"    assumes {self.assumes}"] if self.holds else []
        lines += [f"    {self.note}"] if self.note else []
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class Guarantee:
    """The statements about one model. Each holds with probability 1 - delta by itself; prints as a list.

    Four rows promise nothing beyond the corollary, which always holds: C_n,psi <= psi(0) + (phi(0) + gap) /
    eta.

    Attributes
    ----------
    delta : float
        Each statement fails with at most this probability.
    statements : tuple of Statement
        In the order of the paper, the hold-out's last.

    Examples
    --------
    >>> import nerm
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2() + 4.0 * nerm.Neutrality(nerm.Hinge())
    >>> promised = guarantee(objective.on(X, y, viewpoint=v).solve())
    >>> [(s.source, round(s.bound, 2)) for s in promised if s.holds and not s.vacuous]
    [('corollary, always', 1.25)]
    """

    delta: float
    statements: tuple[Statement, ...]

    def __iter__(self) -> Iterator[Statement]:
        return iter(self.statements)

    def __repr__(self) -> str:
        count = sum(s.holds and "always" not in s.source for s in self.statements)
        together = max(0.0, 1 - count * self.delta)
        head = (
            f"Guarantee at delta = {self.delta:g}: each statement by itself holds with probability "
            f"{1 - self.delta:g}, all {count} probabilistic ones together with {together:g}"
        )
        return "\n".join([head, *(str(s) for s in self.statements)])


def guarantee(
    model: Any,
    *,
    delta: float = 0.05,
    holdout: tuple[Any, Any] | None = None,
    input_radius: float | None = None,
    viewpoint_bound: float | None = None,
) -> Guarantee:
    """Return every bound on a fitted model, with its value, what it assumes, and whether it is vacuous.

    The radius is taken in two ways: from (lam, n) in advance, for Theorem 3, and from the solution by a
    union over radii, for Theorems 1 and 2. A statement about a relaxed risk is called vacuous when it
    promises no more than the largest value that the risk of any hypothesis of this size can take.

    Parameters
    ----------
    model : FitFacts, Problem, Solution or fitted classifier
        Anything with a method `fit_facts()` that returns :class:`FitFacts` will do.
    delta : float
        Each statement by itself holds with probability 1 - delta.
    holdout : tuple of arrays, optional
        (scores, viewpoint) on rows that the fit has not seen.
    input_radius, viewpoint_bound : float, optional
        R, with k(x, x) <= R^2, and G, with `|v| <= G`, when they are known of all inputs; otherwise the
        largest of the sample stand in, and the statement says so.

    Returns
    -------
    Guarantee
        The statements, those that cannot be made with the reason.

    Examples
    --------
    >>> from nerm.atoms import Hinge
    >>> v = np.array([1.0, -1.0] * 5000)
    >>> facts = FitFacts(
    ...     scores=np.zeros(10000), y=v, viewpoint=v, loss=Hinge(), surrogate=Hinge(), eta=10.0,
    ...     coef_norm=0.0, intercept=0.0, diagonal=np.ones(10000), lam=500.0, fit_intercept=False,
    ... )
    >>> for statement in guarantee(facts, input_radius=1.0, viewpoint_bound=1.0):
    ...     print(f"{statement.quantity}: {statement.bound:.3f} {statement.source}")
    risk: 1.050 Theorem 1, radius from the data
    C_psi: 1.050 Theorem 2, radius from the data
    C_n,psi: 1.100 corollary, always
    C_psi: 1.264 Theorem 3, radius from lam
    C_sgn: nan through psi
    C_sgn: nan hold-out
    """
    facts = model.solve() if isinstance(model, Problem) else model
    if callable(getattr(facts, "fit_facts", None)):
        facts = facts.fit_facts()
    if not isinstance(facts, FitFacts):
        must = "'model' must be a nerm.bounds.FitFacts or have a method fit_facts() that returns one"
        do = "Pass a fitted nerm model, or build FitFacts from arrays"
        raise InvalidInputError(must, type(model).__name__, do)
    n = int(np.size(facts.scores))
    v = as_vector(facts.viewpoint, n, "viewpoint")
    diagonal = as_vector(facts.diagonal, n, "diagonal")
    R = _bound(input_radius, np.sqrt(diagonal.max()), "input_radius", "||x||")
    G = _bound(viewpoint_bound, np.abs(v).max(), "viewpoint_bound", "|v|")
    stand_in = [
        f"{what} <= {size:.4g} for all inputs, the largest of the sample"
        for what, size, given in (("||x||", R, input_radius), ("|v|", G, viewpoint_bound))
        if given is None
    ]
    stand_in += [f"{part}, learned from these rows and treated as fixed" for part in facts.learned]
    s = _Setting(facts, n, v, R, G, complexity.as_delta(delta), "; ".join(["i.i.d. rows", *stand_in]))
    risk = s.sample_risk, s.largest_risk
    neutrality = s.sample_neutrality, s.largest_neutrality
    stated = (
        _stated(s, "risk", "Theorem 1, radius from the data", _theorem_1, *risk),
        _stated(s, "C_psi", "Theorem 2, radius from the data", _theorem_2, *neutrality),
        _stated(s, "C_n,psi", "corollary, always", _corollary, *neutrality),
        _stated(s, "C_psi", "Theorem 3, radius from lam", _theorem_3, *neutrality),
        _through_psi(s),
    )
    return Guarantee(s.delta, (*stated, *_held_out(s, holdout)))


@dataclass(frozen=True)
class _Setting:
    """The facts, checked, and the bounds R and G on the inputs."""

    facts: FitFacts
    n: int
    v: Floats
    R: float
    G: float
    delta: float
    assumes: str

    def weights(self, name: str) -> Floats:
        return as_weights(getattr(self.facts, name), self.n, name)

    def require_uniform(self, why: str, *names: str) -> None:
        """Refuse weights of these names that are not all 1."""
        if any((self.weights(name) != 1.0).any() for name in names):
            raise _NoBoundError(why)

    def require_neutrality(self) -> None:
        """Refuse a term without max(C+, C-) >= psi(0), on which the bound of the optimum rests."""
        if self.facts.one_sided:
            raise _NoBoundError(_ONE_SIDED)
        if not as_nonnegative(self.facts.eta, "eta") > 0:
            raise _NoBoundError(_NO_WEIGHT)

    def sample_risk(self) -> float:
        """Return R_n as the objective has it: (1/n) sum s phi, with weights as given."""
        margins = as_vector(self.facts.y, self.n, "y") * np.asarray(self.facts.scores, dtype=float)
        return float(np.mean(self.weights("sample_weight") * self.facts.loss.value(margins)))

    def sample_neutrality(self) -> float:
        """Return C_n,psi as the objective has it: (1/n) sum u psi, with weights as given."""
        u = self.weights("neutrality_weights")
        return relaxed_neutrality_risk(self.facts.scores, self.v, self.facts.surrogate, u) * float(u.mean())

    def largest_risk(self) -> float:
        """Return the largest loss that a hypothesis of this norm and intercept can have."""
        return theorems.largest(self.facts.loss, self._size(), "loss")

    def largest_neutrality(self) -> float:
        """Return the largest C_psi that a hypothesis of this norm and intercept can have."""
        return theorems.largest(self.facts.surrogate, self.G * self._size(), "surrogate")

    def _size(self) -> float:
        return float(self.facts.coef_norm) * self.R + abs(float(self.facts.intercept))

    def class_of_radius(self, B: float, beta: float, G: float) -> dict[str, Any]:
        """Return the complexity of v F and its largest value, where `|v| <= G`."""
        size = complexity.rademacher_population(self.n, B, self.R, intercept_radius=beta, viewpoint_bound=G)
        return {"complexity": size, "margin_bound": G * (B * self.R + beta)}

    def class_from_data(self, G: float) -> dict[str, Any]:
        """Return the same for the radii on the grids that hold the solution, and their share of delta."""
        B, share = complexity.radius_from_data(self.facts.coef_norm, self.delta)
        beta = 0.0
        if self.facts.fit_intercept:
            beta, share = complexity.radius_from_data(abs(self.facts.intercept), share)
        return {**self.class_of_radius(B, beta, G), "delta": share}


Bound = Callable[[_Setting], tuple[float, str]]  # its value, and what it assumes
Size = Callable[[], float]


class _NoBoundError(Exception):
    """A statement that cannot be made, and why."""


_WEIGHTED = "the theorem is about the plain mean, not about weights estimated from the sample; use a hold-out"
_NO_WEIGHT = "eta = 0: neutrality has no weight in the objective, and nothing bounds it before the data"
_ONE_SIDED = "the objective has one side of neutrality, which bounds no max(C+, C-); use a hold-out"


def _stated(
    s: _Setting, quantity: str, source: str, bound: Bound, on_sample: Size, trivial: Size
) -> Statement:
    """Return the statement, or that it cannot be made and why: one that fails must not silence the others."""
    seen = float("nan")
    try:
        seen = on_sample()
        value, assumes = bound(s)
        return _statement(quantity, source, seen, value, assumes, trivial())
    except (InvalidInputError, _NoBoundError) as error:
        return Statement(quantity, source, seen, note=str(error))


def _theorem_1(s: _Setting) -> tuple[float, str]:
    """Bound the risk, for the class of the data's own radius."""
    s.require_uniform("Theorem 1 is about the plain mean; the rows were weighted", "sample_weight")
    y = as_vector(s.facts.y, s.n, "y")
    return theorems.risk_bound(y, s.facts.scores, s.facts.loss, **s.class_from_data(1.0)), s.assumes


def _theorem_2(s: _Setting) -> tuple[float, str]:
    """Bound the neutrality risk, for the class of the data's own radius."""
    s.require_uniform(_WEIGHTED, "neutrality_weights")
    known = s.class_from_data(s.G)
    return theorems.neutrality_bound(s.facts.scores, s.v, s.facts.surrogate, **known), s.assumes


def _corollary(s: _Setting) -> tuple[float, str]:
    """Bound C_n,psi of the sample by psi(0) mean(u) + (phi(0) mean(s) + gap) / eta."""
    facts = s.facts
    s.require_neutrality()
    printed = theorems.optimal_neutrality_bound(facts.loss, facts.surrogate, facts.eta, gap=facts.gap)
    extra = float(facts.surrogate.facts.at_zero) * (s.weights("neutrality_weights").mean() - 1.0)
    extra += float(facts.loss.facts.at_zero) * (s.weights("sample_weight").mean() - 1.0) / facts.eta
    return printed + float(extra), f"the certified gap {facts.gap:.3g}"


def _theorem_3(s: _Setting) -> tuple[float, str]:
    """Bound the neutrality risk of the optimum, for the class that is known before the data."""
    facts = s.facts
    s.require_neutrality()
    if facts.lam is None or not facts.lam > 0:
        raise _NoBoundError("the regularizer is not (lam / 2n) ||w||^2, lam > 0: no radius before the data")
    s.require_uniform(_WEIGHTED, "sample_weight", "neutrality_weights")
    B = complexity.norm_radius(facts.lam, s.n, facts.loss.facts.at_zero)
    beta, smallest = 0.0, float(np.abs(s.v).min())
    if facts.fit_intercept:
        flat = [x for x in (_flat_from(facts.loss), _flat_from(facts.surrogate)) if x is not None]
        if len(flat) < 2 or smallest == 0:
            raise _NoBoundError("the intercept has no radius before the data (it has for hinges and v = ±1)")
        beta = complexity.intercept_radius(B, s.R, flat_from=max(flat), smallest_viewpoint=smallest)
    if facts.coef_norm > B * (1 + 1e-9) or abs(facts.intercept) > beta * (1 + 1e-9) + 1e-12:
        radii = f"||w|| <= {B:.4g}, |b| <= {beta:.4g}"
        raise _NoBoundError(f"the solution is outside of its class ({radii}): solve it to a smaller gap")
    known = {"n": s.n, "delta": s.delta, **s.class_of_radius(B, beta, s.G)}
    bound = theorems.optimal_neutrality_bound(facts.loss, facts.surrogate, facts.eta, gap=facts.gap, **known)
    assumes = f"{s.assumes}; lam chosen before the data; the certified gap {facts.gap:.3g}"
    if facts.fit_intercept and smallest < 1:
        assumes += f"; |v| >= {smallest:.4g} for all inputs, the smallest of the sample"
    return bound, assumes


def _through_psi(s: _Setting) -> Statement:
    """Proposition 1 applied to C_psi, which can never say anything."""
    zero = float(s.facts.surrogate.facts.at_zero)
    why = (
        f"vacuous for every f: C_psi >= psi(0) = {zero:.4g}, so 2 C_psi / psi(0) - 1 >= 1. "
        "A bound on C_psi is none on C_sgn; use a hold-out"
        if zero > 0
        else "psi(0) = 0 dominates no indicator: a bound on C_psi is none on C_sgn; use a hold-out"
    )
    return Statement("C_sgn", "through psi", neutrality_risk(s.facts.scores, s.v), vacuous=True, note=why)


def _held_out(s: _Setting, holdout: tuple[Any, Any] | None) -> list[Statement]:
    """Return the hold-out bounds, the ones that speak about predictions."""
    if holdout is None:
        why = "no hold-out given; the value on the training rows is no guarantee"
        return [Statement("C_sgn", "hold-out", neutrality_risk(s.facts.scores, s.v), note=why)]
    scores, viewpoint = holdout
    assumes = f"{np.size(scores)} i.i.d. rows that neither the fit nor any choice of model has seen"
    found = []
    for quantity, measure, bound in theorems.HELD_OUT:
        try:
            size = abs(measure(scores, viewpoint))
            value = bound(scores, viewpoint, delta=s.delta)
            found.append(_statement(quantity, "hold-out", size, value, assumes, 1.0))
        except UndefinedMeasureError as error:
            found.append(Statement(quantity, "hold-out", float("nan"), note=str(error)))
    return found


def _statement(
    quantity: str, source: str, on_sample: float, bound: float, assumes: str, trivial: float
) -> Statement:
    vacuous = bound >= trivial
    note = f"no better than the largest possible value, {trivial:.4g}" if vacuous else ""
    return Statement(quantity, source, on_sample, bound, assumes, vacuous, note)


def _bound(given: float | None, seen: Any, name: str, what: str) -> float:
    """Return a bound on all inputs: the given one, which must hold on the sample, or the sample's own."""
    if given is None:
        return float(seen)
    do = "Give a bound that holds for every input, or None to use the sample's"
    bound = as_nonnegative(given, name, do)
    if seen > bound * (1 + 1e-9):
        must = f"{name!r} must bound {what} of every row"
        raise InvalidInputError(must, f"{bound:g} but {seen:g} in the sample", "Raise it")
    return bound


def _flat_from(function: Any) -> float | None:
    """Return where a margin function that never increases becomes constant, None if it is no such."""
    facts = function.facts
    if facts.monotone != "decreasing" or not facts.breakpoints:
        return None
    last = max(facts.breakpoints)
    return float(last) if float(function.value(last)) == facts.minimum else None
