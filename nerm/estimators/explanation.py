"""A fitted classifier in words and numbers: terms of the objective, neutrality, certificate, largest coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from nerm.certificate import Certificate


@dataclass(frozen=True)
class TermLine:
    """One term of the objective: weight times value; C+ and C- are means over the rows, theta the weight of C+."""

    label: str
    weight: float
    value: float
    plus: float | None = None
    minus: float | None = None
    theta: float | None = None


@dataclass(frozen=True)
class BinaryExplanation:
    """One binary problem: the class against the rest, its formula, terms, certificate and largest coefficients."""

    label: Any
    formula: str
    terms: tuple[TermLine, ...]
    total: float
    certificate: Certificate
    solved: str
    coef_norm: float
    intercept: float
    coefficients: tuple[tuple[str, float], ...]
    others: int


@dataclass(frozen=True, repr=False)
class Explanation:
    """What `explain()` returns: prints as text, shows as tables in a notebook.

    `problems` holds one entry a binary problem: its formula, terms (with C+ and C- as means over the rows, and theta),
    certificate and largest coefficients.

    >>> import nerm
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [-1, -1, 1, 1], [1, -1, 1, -1]
    >>> model = nerm.NeutralSVC(lam=2.0, eta=1.0).fit(X, y, viewpoint=v)
    >>> (problem,) = model.explain().problems
    >>> [(term.label, round(term.weight * term.value, 3)) for term in problem.terms]
    [('Risk(Hinge())', 1.0), ('SquaredL2()', 0.25), ('Neutrality(Hinge())', 4.0)]
    >>> [(name, round(value, 3)) for name, value in problem.coefficients]
    [('x0', -0.5)]
    """

    model: str
    problems: tuple[BinaryExplanation, ...]

    def __repr__(self) -> str:
        return "\n\n".join([self.model, *(_text(p) for p in self.problems)])

    def _repr_html_(self) -> str:
        return f"<div><p><code>{escape(self.model)}</code></p>{''.join(_html(p) for p in self.problems)}</div>"


def explanation_of(model: Any, top: int) -> Explanation:
    """Return the explanation of a fitted classifier, with this many coefficients a problem."""
    linear = model.kernel_ is None
    table = model.coef_ if linear else model.dual_coef_
    names = _names(model) if linear else [f"row {i}" for i in model.support_.tolist()]
    problems = []
    for fit, coef, intercept in zip(model.fits_, table, model.intercept_, strict=True):
        order = [int(j) for j in np.argsort(-np.abs(coef), kind="stable") if coef[j] != 0]
        thetas = iter(fit.thetas.values())
        terms = tuple(
            TermLine(t.label, t.weight, t.value)
            if t.plus is None
            else TermLine(t.label, t.weight, t.value, fit.mean * t.plus, fit.mean * t.minus, next(thetas))
            for t in fit.value.terms
        )
        iterations = "" if fit.stats.iterations is None else f" in {fit.stats.iterations} iterations"
        problems.append(
            BinaryExplanation(
                label=fit.label,
                formula=fit.formula,
                terms=terms,
                total=fit.value.total,
                certificate=fit.certificate,
                solved=f"{fit.status.value} by {fit.stats.solver}{iterations}",
                coef_norm=fit.coef_norm,
                intercept=float(intercept),
                coefficients=tuple((names[j], float(coef[j])) for j in order[:top]),
                others=max(0, len(order) - top),
            )
        )
    return Explanation(repr(model), tuple(problems))


def _names(model: Any) -> list[str]:
    given = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if given is None else [str(name) for name in given]


def _neutrality(line: TermLine) -> str:
    if line.plus is None:
        return ""
    theta = "" if line.theta is None or np.isnan(line.theta) else f", theta {line.theta:.3f}"
    return f"C+ {line.plus:.6g}, C- {line.minus:.6g}{theta}"


def _text(problem: BinaryExplanation) -> str:
    width = max(len(t.label) for t in problem.terms)
    lines = [f"class {problem.label}: {problem.formula}"]
    for t in problem.terms:
        lines.append(f"  {t.label:<{width}}  {t.weight:>8.4g} × {t.value:<12.8g} {_neutrality(t)}".rstrip())
    lines.append(f"  {'total':<{width}}  {'':>8}   {problem.total:.10g}")
    lines.append(f"  {problem.solved}; {problem.certificate}")
    lines.append(f"  norm {problem.coef_norm:.6g}, intercept {problem.intercept:.6g}, largest coefficients:")
    lines += [f"    {value:>+12.6g}  {name}" for name, value in problem.coefficients]
    lines += [f"    and {problem.others} smaller ones"] if problem.others else []
    return "\n".join(lines)


def _html(problem: BinaryExplanation) -> str:
    terms = "".join(
        f"<tr><td style='text-align:left'>{escape(t.label)}</td><td>{t.weight:.4g}</td><td>{t.value:.8g}</td>"
        f"<td style='text-align:left'>{_neutrality(t)}</td></tr>"
        for t in problem.terms
    )
    coefficients = "".join(
        f"<tr><td style='text-align:left'>{escape(name)}</td><td>{value:+.6g}</td></tr>"
        for name, value in problem.coefficients
    )
    more = f"<p>and {problem.others} smaller ones</p>" if problem.others else ""
    return (
        f"<p><b>class {escape(str(problem.label))}</b>: {escape(problem.formula)}</p>"
        f"<table><tr><th>term</th><th>weight</th><th>value</th><th>neutrality</th></tr>{terms}</table>"
        f"<p>total {problem.total:.10g}; {escape(problem.solved)}; {escape(str(problem.certificate))}</p>"
        f"<p>norm {problem.coef_norm:.6g}, intercept {problem.intercept:.6g}, largest coefficients:</p>"
        f"<table>{coefficients}</table>{more}"
    )
