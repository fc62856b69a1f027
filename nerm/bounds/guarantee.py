"""All that can be said about one fitted model, with what each statement assumes and when it is empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nerm.bounds.checks import as_delta, as_size, largest
from nerm.bounds.complexity import rademacher_population
from nerm.bounds.holdout import holdout_neutrality_bound, holdout_parity_bound
from nerm.bounds.radius import intercept_radius, norm_radius, radius_from_data
from nerm.bounds.theorems import neutrality_bound, optimal_neutrality_bound, risk_bound
from nerm.errors import InvalidInputError
from nerm.metrics import calders_verwer_score, neutrality_risk, relaxed_neutrality_risk
from nerm.problem import Problem
from nerm.validation import as_nonnegative, as_vector, as_weights


@dataclass(frozen=True)
class FitFacts:
    """What the bounds need to know of a fitted model, as plain arrays and numbers.

    scores, y, viewpoint
        On the training rows; y holds -1 and +1.
    loss, surrogate
        phi and psi, margin functions.
    eta
        The weight of the neutrality term, in mean form.
    coef_norm, intercept
        ||w|| (for kernels sqrt(c'Kc)) and b.
    diagonal
        k(x_i, x_i): ||x_i||^2 for linear models.
    lam
        With Omega = (lam / 2n) ||w||^2; None for another regularizer, which gives no radius in advance.
    gap
        Certified, primal minus dual, in mean form.
    fit_intercept
        Whether b was free.
    sample_weight, neutrality_weights
        If any were used.
    learned
        What of the class was learned from the same rows (a kernel's width, a coding of columns), in words: the
        theorems are about a class fixed before the data, so every statement names it as treated as fixed.

    scores, y, viewpoint, diagonal and the weights are (n,). `Solution.fit_facts()` and the classifiers' make it:

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


@dataclass(frozen=True)
class Statement:
    """One promise: `quantity <= bound`, by which theorem, assuming what; `note` says why it is empty.

    `on_sample` is the quantity on the training (or held-out) rows; a statement is vacuous when its bound is no better
    than the largest possible value, and its bound is nan when it cannot be made.

    >>> print(Statement("C_sgn", "hold-out", 0.02, 0.0472, "10000 i.i.d. rows that the fit has not seen"))
    C_sgn <= 0.0472   (hold-out; on the sample 0.0200)
        assumes 10000 i.i.d. rows that the fit has not seen
    >>> Statement("C_sgn", "hold-out", 0.02, float("nan"), "", note="no hold-out given").holds
    False
    """

    quantity: str
    source: str
    on_sample: float
    bound: float
    assumes: str
    vacuous: bool = False
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the statement could be made at all."""
        return bool(np.isfinite(self.bound))

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

    Four rows promise nothing beyond the corollary, which always holds: C_n,psi <= psi(0) + (phi(0) + gap) / eta.

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

    `model` is a :class:`FitFacts`, or anything with a method `fit_facts()` that returns one: that is how a
    solution or an estimator joins in. `holdout` is (scores, viewpoint) on rows that the fit has not seen.
    Give `input_radius` (R, with k(x, x) <= R^2) and `viewpoint_bound` (G) when they are known of all
    inputs; otherwise the largest of the sample stand in, and the statement says so.

    The radius is taken in two ways: from (lam, n) in advance, for Theorem 3, and from the solution by a
    union over radii, for Theorems 1 and 2. A statement about a relaxed risk is called vacuous when it
    promises no more than the largest value that the risk of any hypothesis of this size can take.

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
    facts = model if isinstance(model, FitFacts) else _facts_of(model)
    delta = as_delta(delta)
    n = int(np.size(facts.scores))
    v = as_vector(facts.viewpoint, n, "viewpoint")
    diagonal = as_vector(facts.diagonal, n, "diagonal")
    R, known_R = _bound(input_radius, np.sqrt(diagonal.max()), "input_radius", "||x||")
    G, known_G = _bound(viewpoint_bound, np.abs(v).max(), "viewpoint_bound", "|v|")
    stand_in = [] if known_R else [f"||x|| <= {R:.4g} for all inputs, the largest of the sample"]
    stand_in += [] if known_G else [f"|v| <= {G:.4g} for all inputs, the largest of the sample"]
    stand_in += [f"{part}, learned from these rows and treated as fixed" for part in facts.learned]
    setting = _Setting(facts, n, v, R, G, delta, "; ".join(["i.i.d. rows", *stand_in]))
    stated = [
        _or_missing(make, setting, quantity, source)
        for make, quantity, source in (
            (_risk, "risk", "Theorem 1"),
            (_neutrality, "C_psi", "Theorem 2"),
            (_corollary, "C_n,psi", "corollary"),
            (_optimal, "C_psi", "Theorem 3"),
            (_through_psi, "C_sgn", "through psi"),
        )
    ]
    return Guarantee(delta, (*stated, *_held_out(setting, holdout)))


def _or_missing(make: Callable[[_Setting], Statement], setting: _Setting, quantity: str, source: str) -> Statement:
    """Return the statement, or that it cannot be made and why: one that fails must not silence the others."""
    try:
        return make(setting)
    except InvalidInputError as error:
        return _missing(quantity, source, float("nan"), str(error))


@dataclass(frozen=True)
class _Setting:
    """The facts, checked, and the bounds R and G on the inputs."""

    facts: FitFacts
    n: int
    v: np.ndarray
    R: float
    G: float
    delta: float
    assumes: str

    @property
    def size(self) -> float:
        """The largest `|f|` of a hypothesis of this norm and intercept."""
        return float(self.facts.coef_norm) * self.R + abs(float(self.facts.intercept))

    def from_data(self) -> tuple[float, float, float]:
        """Return (B, beta, share of delta) on the grids of radii."""
        B, share = radius_from_data(self.facts.coef_norm, self.delta)
        if not self.facts.fit_intercept:
            return B, 0.0, share
        beta, share = radius_from_data(abs(self.facts.intercept), share)
        return B, beta, share

    def weighted(self, name: str) -> np.ndarray:
        return as_weights(getattr(self.facts, name), self.n, name)

    def sample_neutrality(self) -> float:
        """Return C_n,psi as the objective has it: (1/n) sum u psi, with weights as given."""
        u = self.weighted("neutrality_weights")
        return relaxed_neutrality_risk(self.facts.scores, self.v, self.facts.surrogate, u) * float(u.mean())


def _risk(s: _Setting) -> Statement:
    """Theorem 1 for the class of the data's own radius."""
    facts, weights = s.facts, s.weighted("sample_weight")
    y = as_vector(facts.y, s.n, "y")
    on_sample = float(np.mean(weights * facts.loss.value(y * np.asarray(facts.scores, dtype=float))))
    source = "Theorem 1, radius from the data"
    if not _uniform(weights):
        return _missing("risk", source, on_sample, "Theorem 1 is about the plain mean; the rows were weighted")
    B, beta, share = s.from_data()
    M = B * s.R + beta
    bound = risk_bound(
        y,
        facts.scores,
        facts.loss,
        complexity=rademacher_population(s.n, B, s.R, intercept_radius=beta),
        margin_bound=M,
        delta=share,
    )
    return _statement("risk", source, on_sample, bound, s.assumes, largest(facts.loss, s.size, "loss"))


def _neutrality(s: _Setting) -> Statement:
    """Theorem 2 for the class of the data's own radius."""
    source, on_sample = "Theorem 2, radius from the data", s.sample_neutrality()
    if not _uniform(s.weighted("neutrality_weights")):
        return _missing("C_psi", source, on_sample, _WEIGHTED)
    B, beta, share = s.from_data()
    bound = neutrality_bound(
        s.facts.scores,
        s.v,
        s.facts.surrogate,
        complexity=rademacher_population(s.n, B, s.R, intercept_radius=beta, viewpoint_bound=s.G),
        margin_bound=s.G * (B * s.R + beta),
        delta=share,
    )
    trivial = largest(s.facts.surrogate, s.G * s.size, "surrogate")
    return _statement("C_psi", source, on_sample, bound, s.assumes, trivial)


def _corollary(s: _Setting) -> Statement:
    """Bound the risk on the sample itself: no probability in it."""
    source, on_sample = "corollary, always", s.sample_neutrality()
    if not as_nonnegative(s.facts.eta, "eta") > 0:
        return _missing("C_n,psi", source, on_sample, "eta = 0: the problem has no neutrality term")
    bound = _corollary_value(s)
    trivial = largest(s.facts.surrogate, s.G * s.size, "surrogate")
    return _statement("C_n,psi", source, on_sample, bound, f"the certified gap {s.facts.gap:.3g}", trivial)


def _corollary_value(s: _Setting) -> float:
    """Return psi(0) mean(u) + (phi(0) mean(s) + gap) / eta; weights of mean 1 leave it as printed."""
    facts = s.facts
    printed = optimal_neutrality_bound(facts.loss, facts.surrogate, facts.eta, gap=facts.gap)
    extra = float(facts.surrogate.facts.at_zero) * (s.weighted("neutrality_weights").mean() - 1.0)
    extra += float(facts.loss.facts.at_zero) * (s.weighted("sample_weight").mean() - 1.0) / facts.eta
    return printed + float(extra)


def _optimal(s: _Setting) -> Statement:
    """Theorem 3 for the class that is known before the data."""
    facts, source, on_sample = s.facts, "Theorem 3, radius from lam", s.sample_neutrality()

    def missing(why: str) -> Statement:
        return _missing("C_psi", source, on_sample, why)

    if not facts.eta > 0:
        return missing("eta = 0: the problem has no neutrality term")
    if facts.lam is None or not facts.lam > 0:
        return missing("the regularizer is not (lam / 2n) ||w||^2 with lam > 0: no radius before the data")
    if not (_uniform(s.weighted("sample_weight")) and _uniform(s.weighted("neutrality_weights"))):
        return missing(_WEIGHTED)
    B = norm_radius(facts.lam, s.n, facts.loss.facts.at_zero)
    beta, smallest = 0.0, float(np.abs(s.v).min())
    if facts.fit_intercept:
        flat = [x for x in (_flat_from(facts.loss), _flat_from(facts.surrogate)) if x is not None]
        if len(flat) < 2 or smallest == 0:
            return missing("the intercept has no radius before the data (it has for hinges and v = ±1)")
        beta = intercept_radius(B, s.R, flat_from=max(flat), smallest_viewpoint=smallest)
    if facts.coef_norm > B * (1 + 1e-9) or abs(facts.intercept) > beta * (1 + 1e-9) + 1e-12:
        return missing(
            f"the solution is outside of its class (||w|| <= {B:.4g}, |b| <= {beta:.4g}): solve it to a smaller gap"
        )
    margin = s.G * (B * s.R + beta)
    bound = optimal_neutrality_bound(
        facts.loss,
        facts.surrogate,
        facts.eta,
        gap=facts.gap,
        n=s.n,
        complexity=rademacher_population(s.n, B, s.R, intercept_radius=beta, viewpoint_bound=s.G),
        margin_bound=margin,
        delta=s.delta,
    )
    trivial = largest(facts.surrogate, s.G * s.size, "surrogate")
    assumes = f"{s.assumes}; lam chosen before the data; the certified gap {facts.gap:.3g}"
    if facts.fit_intercept and smallest < 1:
        assumes += f"; |v| >= {smallest:.4g} for all inputs, the smallest of the sample"
    return _statement("C_psi", source, on_sample, bound, assumes, trivial)


def _through_psi(s: _Setting) -> Statement:
    """Proposition 1 applied to C_psi, which can never say anything."""
    on_sample = neutrality_risk(s.facts.scores, s.v)
    zero = float(s.facts.surrogate.facts.at_zero)
    if zero > 0:
        why = (
            f"vacuous for every f: C_psi >= psi(0) = {zero:.4g}, so 2 C_psi / psi(0) - 1 >= 1. "
            "A bound on C_psi is none on C_sgn; use a hold-out"
        )
    else:
        why = "psi(0) = 0 dominates no indicator: a bound on C_psi is none on C_sgn; use a hold-out"
    return Statement("C_sgn", "through psi", on_sample, float("nan"), "", vacuous=True, note=why)


def _held_out(s: _Setting, holdout: tuple[Any, Any] | None) -> list[Statement]:
    """Return the hold-out bounds, the ones that speak about predictions."""
    if holdout is None:
        on_sample = neutrality_risk(s.facts.scores, s.v)
        return [
            _missing(
                "C_sgn",
                "hold-out",
                on_sample,
                "no hold-out given; the value on the training rows is no guarantee",
            )
        ]
    scores, viewpoint = holdout
    assumes = f"{np.size(scores)} i.i.d. rows that neither the fit nor any choice of model has seen"
    risk = neutrality_risk(scores, viewpoint)
    bound = holdout_neutrality_bound(scores, viewpoint, delta=s.delta)
    statements = [_statement("C_sgn", "hold-out", risk, bound, assumes, 1.0)]
    try:
        parity = abs(calders_verwer_score(scores, viewpoint))
    except InvalidInputError as error:
        return [*statements, _missing("|CV score|", "hold-out", float("nan"), str(error))]
    bound = holdout_parity_bound(scores, viewpoint, delta=s.delta)
    return [*statements, _statement("|CV score|", "hold-out", parity, bound, assumes, 1.0)]


_WEIGHTED = "the theorem is about the plain mean, not about weights estimated from the sample; use a hold-out"


def _statement(quantity: str, source: str, on_sample: float, bound: float, assumes: str, trivial: float) -> Statement:
    vacuous = bound >= trivial
    note = f"no better than the largest possible value, {trivial:.4g}" if vacuous else ""
    return Statement(quantity, source, on_sample, bound, assumes, vacuous, note)


def _missing(quantity: str, source: str, on_sample: float, why: str) -> Statement:
    return Statement(quantity, source, on_sample, float("nan"), "", note=why)


def _facts_of(model: Any) -> FitFacts:
    """Ask a fitted model for its facts."""
    if isinstance(model, Problem):
        model = model.solve()
    method = getattr(model, "fit_facts", None)
    facts = method() if callable(method) else None
    if not isinstance(facts, FitFacts):
        raise InvalidInputError(
            "'model' must be a nerm.bounds.FitFacts or have a method fit_facts() that returns one",
            type(model).__name__,
            "Pass a fitted nerm model, or build FitFacts from arrays",
        )
    return facts


def _bound(given: float | None, seen: Any, name: str, what: str) -> tuple[float, bool]:
    """Return a bound on all inputs and whether it was given; a given one must hold on the sample."""
    if given is None:
        return float(seen), False
    bound = as_size(given, name, "Give a bound that holds for every input, or None to use the sample's")
    if seen > bound * (1 + 1e-9):
        raise InvalidInputError(
            f"{name!r} must bound {what} of every row", f"{bound:g} but {seen:g} in the sample", "Raise it"
        )
    return bound, True


def _uniform(weights: np.ndarray) -> bool:
    return bool((weights == 1.0).all())


def _flat_from(function: Any) -> float | None:
    """Return where a margin function that never increases becomes constant, None if it is no such."""
    facts = function.facts
    if facts.monotone != "decreasing" or not facts.breakpoints:
        return None
    last = max(facts.breakpoints)
    return float(last) if float(function.value(last)) == facts.minimum else None
