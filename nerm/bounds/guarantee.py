"""All bounds that can be computed for a fitted model, as `Statement` objects."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from nerm.bounds import complexity, theorems
from nerm.bounds.theorems import FitFacts
from nerm.errors import InvalidInputError, UndefinedMeasureError
from nerm.metrics import neutrality_risk, relaxed_neutrality_risk
from nerm.model.problem import Problem
from nerm.validation import as_nonnegative, as_signs, as_vector, as_weights
from nerm.viewpoint import as_numbers


@dataclass(frozen=True)
class Statement:
    """One statement `quantity <= bound`, with its source and its assumptions.

    Attributes
    ----------
    quantity : str
        The name of the bounded quantity.
    source : str
        The theorem or method that gives the bound.
    on_sample : float
        The quantity on the training (or held-out) rows.
    bound : float
        The bound; nan if none can be given.
    assumes : str
        The assumptions of the bound.
    vacuous : bool
        Whether the bound is no better than the largest possible value of the quantity.
    note : str
        Why there is no bound, or why it is vacuous; "" otherwise.

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
        """Whether there is a finite bound."""
        return bool(np.isfinite(self.bound))

    @property
    def remark(self) -> str:
        """The note, if there is one; otherwise the assumptions."""
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
    """All statements about one model; each by itself holds with probability 1 - delta.

    Attributes
    ----------
    delta : float
        Each statement fails with at most this probability.
    statements : tuple of Statement
        In the order of the paper; those from held-out rows are last.

    Examples
    --------
    With only four rows, the corollary C_n,psi <= psi(0) + (phi(0) + gap) / eta is the only statement that is
    not vacuous. It holds with certainty:

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
        all_hold = max(0.0, 1 - count * self.delta)
        head = (
            f"Guarantee at delta = {self.delta:g}: each statement by itself holds with probability "
            f"{1 - self.delta:g}, all {count} probabilistic ones together with {all_hold:g}"
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
    """Return every bound for a fitted model, with its value and its assumptions.

    The radii of the class bound ||w|| and `|b|` (`nerm.bounds`). For Theorem 3 they come from the
    regularization weight lam and the number n of rows, before the data are seen. For Theorems 1 and 2 they
    come from the solution, by a union bound over radii. A bound on the risk or on C_psi is called vacuous
    if it is at least the largest value that any hypothesis with this norm and intercept can have.

    Parameters
    ----------
    model : FitFacts, Problem, Solution or fitted classifier
        Any object with a method `fit_facts()` that returns :class:`FitFacts` is accepted.
    delta : float
        Each statement by itself holds with probability 1 - delta.
    holdout : tuple of arrays, optional
        (scores, viewpoint) on rows that the fit has not seen.
    input_radius, viewpoint_bound : float, optional
        R and G with k(x, x) <= R^2 and `|v| <= G` for all inputs, if they are known. Otherwise the largest
        values in the sample are used, and the statement lists this as an assumption.

    Returns
    -------
    Guarantee
        The statements. If a bound cannot be given, its statement has the bound nan, and its `note` says why.

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
    n = np.size(facts.scores)
    vectors: dict[str, Any] = {"scores": np.ravel(np.asarray(facts.scores, dtype=float))}
    vectors["y"], vectors["viewpoint"] = as_signs(facts.y, n), as_numbers(facts.viewpoint, n)
    vectors["diagonal"] = as_vector(facts.diagonal, n, "diagonal")
    for name in ("sample_weight", "neutrality_weights"):
        vectors[name] = as_weights(getattr(facts, name), n, name)
    facts = replace(facts, **vectors)
    R, of_inputs = _bound(input_radius, np.sqrt(facts.diagonal.max()), "input_radius", "||x||")
    G, of_viewpoints = _bound(viewpoint_bound, np.abs(facts.viewpoint).max(), "viewpoint_bound", "|v|")
    learned = [f"{part}, learned from these rows and treated as fixed" for part in facts.learned]
    assumes = "; ".join(["i.i.d. rows", *of_inputs, *of_viewpoints, *learned])
    s = _Setting(facts, R, G, complexity.as_delta(delta), assumes)
    stated = [
        _stated(s, "risk", "Theorem 1, radius from the data", _theorem_1),
        _stated(s, "C_psi", "Theorem 2, radius from the data", _theorem_2),
        _stated(s, "C_n,psi", "corollary, always", _corollary),
        _stated(s, "C_psi", "Theorem 3, radius from lam", _theorem_3),
    ]
    return Guarantee(s.delta, (*stated, _through_psi(facts), *_held_out(s, holdout)))


class _Setting(NamedTuple):
    """The checked facts about a model, and the settings of the bounds.

    Attributes
    ----------
    facts : FitFacts
        The facts.
    R, G : float
        Bounds on ||x|| and on `|v|` for all inputs x and viewpoints v.
    delta : float
        The probability that a bound may fail.
    assumes : str
        The assumptions in words.
    """

    facts: FitFacts
    R: float
    G: float
    delta: float
    assumes: str

    def class_of_radius(self, B: float, beta: float, G: float) -> dict[str, Any]:
        """Return complexity and margin bound of a class with given radii, as keywords.

        The class is vF with ||w|| <= B, `|b| <= beta` and `|v| <= G` (`nerm.bounds`). The margin bound is
        G (B R + beta), a bound on `|v f|`. The result is passed to a function of `nerm.bounds.theorems`.
        """
        n = len(self.facts.scores)
        size = complexity.rademacher_population(n, B, self.R, intercept_radius=beta, viewpoint_bound=G)
        return {"complexity": size, "margin_bound": G * (B * self.R + beta)}

    def class_from_data(self, G: float) -> dict[str, Any]:
        """Return complexity, margin bound and delta of a class with radii from the data.

        The hypothesis class is {||w|| <= B, `|b|` <= beta}. B and beta are `||w||` and `|b|` of the solution,
        rounded up to a grid that is fixed in advance (`radius_from_data`). A union bound divides `self.delta`
        equally among the grid points; the returned delta is the share of one point. The class is one of
        products v f with `|v|` <= `G`. The risk needs f itself: for it, G is 1.
        """
        B, share = complexity.radius_from_data(self.facts.coef_norm, self.delta)
        beta = 0.0
        if self.facts.fit_intercept:
            beta, share = complexity.radius_from_data(abs(self.facts.intercept), share)
        return {**self.class_of_radius(B, beta, G), "delta": share}


#: The value of a bound and its assumptions; or nan and the reason why there is no bound.
Bound = tuple[float, str]

_WEIGHTED = "the theorem is about the plain mean, not about weights estimated from the sample; use a hold-out"


def _no_neutrality(facts: FitFacts) -> str:
    """Return the reason why the objective does not bound neutrality; "" if it does.

    The bounds on the optimum need max(C+, C-) >= psi(0), which only a two-sided term guarantees.
    """
    if facts.one_sided:
        return "the objective has one side of neutrality, which bounds no max(C+, C-); use a hold-out"
    if as_nonnegative(facts.eta, "eta") == 0:
        return "eta = 0: neutrality has no weight in the objective, and nothing bounds it before the data"
    return ""


def _stated(s: _Setting, quantity: str, source: str, theorem: Callable[[_Setting], Bound]) -> Statement:
    """Return the statement of one theorem.

    If there is no bound, the statement has the reason as its note; an error in one theorem must not prevent
    the other statements. The value on the sample is computed with the row weights of the objective. The bound
    is vacuous if it is at least the largest value for a hypothesis with this norm and intercept.
    """
    facts, size = s.facts, float(s.facts.coef_norm) * s.R + abs(float(s.facts.intercept))
    if quantity == "risk":
        seen = float(np.mean(facts.sample_weight * facts.loss.value(facts.y * facts.scores)))
        largest = facts.loss, size, "loss"
    else:
        u = facts.neutrality_weights
        seen = relaxed_neutrality_risk(facts.scores, facts.viewpoint, facts.surrogate, u) * float(u.mean())
        largest = facts.surrogate, s.G * size, "surrogate"
    try:
        bound, text = theorem(s)
        if np.isnan(bound):
            return Statement(quantity, source, seen, note=text)
        return _statement(quantity, source, seen, bound, text, theorems.extremes(*largest)[1])
    except InvalidInputError as error:
        return Statement(quantity, source, seen, note=str(error))


def _theorem_1(s: _Setting) -> Bound:
    """Bound the risk by Theorem 1; the radius comes from the solution."""
    if (s.facts.sample_weight != 1).any():
        return np.nan, "Theorem 1 is about the plain mean; the rows were weighted"
    of_class = s.class_from_data(1.0)
    return theorems.risk_bound(s.facts.y, s.facts.scores, s.facts.loss, **of_class), s.assumes


def _theorem_2(s: _Setting) -> Bound:
    """Bound C_psi by Theorem 2; the radius comes from the solution."""
    facts = s.facts
    if (facts.neutrality_weights != 1).any():
        return np.nan, _WEIGHTED
    of_class = s.class_from_data(s.G)
    return theorems.neutrality_bound(facts.scores, facts.viewpoint, facts.surrogate, **of_class), s.assumes


def _corollary(s: _Setting) -> Bound:
    """Bound C_n,psi by psi(0) mean(u) + (phi(0) mean(s) + gap) / eta.

    s and u are the row weights of the risk and of the neutrality term, and gap is the certified gap.
    """
    facts = s.facts
    if why := _no_neutrality(facts):
        return np.nan, why
    printed = theorems.optimal_neutrality_bound(facts.loss, facts.surrogate, facts.eta, gap=facts.gap)
    extra = float(facts.surrogate.facts.at_zero) * (facts.neutrality_weights.mean() - 1.0)
    extra += float(facts.loss.facts.at_zero) * (facts.sample_weight.mean() - 1.0) / facts.eta
    return printed + float(extra), f"the certified gap {facts.gap:.3g}"


def _theorem_3(s: _Setting) -> Bound:
    """Bound C_psi of the optimum by Theorem 3.

    The class is known before the data: its radii come from lam and n.
    """
    facts, n = s.facts, len(s.facts.scores)
    if why := _no_neutrality(facts):
        return np.nan, why
    if facts.lam is None or not facts.lam > 0:
        return np.nan, "the regularizer is not (lam / 2n) ||w||^2, lam > 0: no radius before the data"
    if (facts.sample_weight != 1).any() or (facts.neutrality_weights != 1).any():
        return np.nan, _WEIGHTED
    B = complexity.norm_radius(facts.lam, n, facts.loss.facts.at_zero)
    beta, smallest = 0.0, float(np.abs(facts.viewpoint).min())
    if facts.fit_intercept:
        flat = [x for x in (_flat_from(facts.loss), _flat_from(facts.surrogate)) if x is not None]
        if len(flat) < 2 or smallest == 0:
            return np.nan, "the intercept has no radius before the data (it has for hinges and v = ±1)"
        beta = complexity.intercept_radius(B, s.R, flat_from=max(flat), smallest_viewpoint=smallest)
    if facts.coef_norm > B * (1 + 1e-9) or abs(facts.intercept) > beta * (1 + 1e-9) + 1e-12:
        radii = f"||w|| <= {B:.4g}, |b| <= {beta:.4g}"
        return np.nan, f"the solution is outside of its class ({radii}): solve it to a smaller gap"
    of_class = {"n": n, "delta": s.delta, "gap": facts.gap, **s.class_of_radius(B, beta, s.G)}
    bound = theorems.optimal_neutrality_bound(facts.loss, facts.surrogate, facts.eta, **of_class)
    assumes = f"{s.assumes}; lam chosen before the data; the certified gap {facts.gap:.3g}"
    if facts.fit_intercept and smallest < 1:
        assumes += f"; |v| >= {smallest:.4g} for all inputs, the smallest of the sample"
    return bound, assumes


def _through_psi(facts: FitFacts) -> Statement:
    """Return the statement on C_sgn that Proposition 1 derives from a bound on C_psi.

    It is always vacuous.
    """
    zero = float(facts.surrogate.facts.at_zero)
    why = "psi(0) = 0 dominates no indicator: a bound on C_psi is none on C_sgn; use a hold-out"
    if zero > 0:
        why = f"vacuous for every f: C_psi >= psi(0) = {zero:.4g}, so 2 C_psi / psi(0) - 1 >= 1. "
        why += "A bound on C_psi is none on C_sgn; use a hold-out"
    seen = neutrality_risk(facts.scores, facts.viewpoint)
    return Statement("C_sgn", "through psi", seen, vacuous=True, note=why)


def _held_out(s: _Setting, holdout: tuple[Any, Any] | None) -> list[Statement]:
    """Return the statements from held-out rows.

    They bound measures of the predictions, not C_psi. `holdout` is (scores, viewpoint), or None.
    """
    if holdout is None:
        why = "no hold-out given; the value on the training rows is no guarantee"
        seen = neutrality_risk(s.facts.scores, s.facts.viewpoint)
        return [Statement("C_sgn", "hold-out", seen, note=why)]
    assumes = f"{np.size(holdout[0])} i.i.d. rows that neither the fit nor any choice of model has seen"
    found = []
    for quantity, measure, bound in theorems.HELD_OUT:
        try:
            size, value = abs(measure(*holdout)), bound(*holdout, delta=s.delta)
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


def _bound(given: float | None, seen: Any, name: str, what: str) -> tuple[float, list[str]]:
    """Return a bound on a quantity for all inputs, and the assumptions that it needs.

    A given bound is checked on the sample and needs no assumption. Without one, the largest value `seen` in
    the sample is returned, with the assumption that it is a bound.
    """
    if given is None:
        return float(seen), [f"{what} <= {seen:.4g} for all inputs, the largest of the sample"]
    do = "Give a bound that holds for every input, or None to use the sample's"
    bound = as_nonnegative(given, name, do)
    if seen > bound * (1 + 1e-9):
        must = f"{name!r} must bound {what} of every row"
        raise InvalidInputError(must, f"{bound:g} but {seen:g} in the sample", "Pass a larger bound")
    return bound, []


def _flat_from(function: Any) -> float | None:
    """Return the margin from which a nonincreasing margin function is constant.

    Return None if there is none.
    """
    facts = function.facts
    if facts.monotone != "decreasing" or not facts.breakpoints:
        return None
    last = max(facts.breakpoints)
    return float(last) if float(function.value(last)) == facts.minimum else None
