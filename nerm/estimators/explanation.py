"""The explanation of a fitted model: terms, neutrality, certificate, largest coefficients."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nerm.atoms.difference import DCFunction
from nerm.certify.certificate import Certificate
from nerm.errors import InvalidInputError
from nerm.model.blocks import TermValue
from nerm.validation import check_known
from nerm.viewpoint import shown_groups


@dataclass(frozen=True)
class ClassExplanation:
    """The explanation of one binary problem or of a regression.

    With more than two classes, a binary problem is one class against the rest. Values are in the model's own
    form: the sum form for `NeutralSVC`, else the mean form.

    Attributes
    ----------
    label : object
        The class that counts as +1; None for a regressor.
    formula : str
        The objective that was minimised.
    terms : tuple of TermValue
        Weight and value of each term; C+ and C- are means over the rows in both forms.
    total : float
        The value of the objective: the sum of weight times value.
    certificate : Certificate
        The certificate of this objective.
    solved : str
        The status, the name of the solver and the number of iterations.
    coef_norm, intercept : float
        ||w|| (for kernels sqrt(c'Kc)) and b.
    coefficients : tuple of (str, float)
        The largest coefficients in absolute value, as (name, value).
    others : int
        Number of nonzero coefficients that are not shown.
    class_weights : dict
        One weight per class; empty if class_weight is None.
    """

    label: Any
    formula: str
    terms: tuple[TermValue, ...]
    total: float
    certificate: Certificate
    solved: str
    coef_norm: float
    intercept: float
    coefficients: tuple[tuple[str, float], ...]
    others: int
    class_weights: dict[Any, float]


@dataclass(frozen=True, repr=False)
class Explanation:
    """The result of `explain()`; printing it shows a text.

    Attributes
    ----------
    model : str
        The model and its parameters.
    problems : tuple of ClassExplanation
        One for two classes or a regression; with more classes, one per class.
    collapse : str or None
        A warning if the model is nearly constant or its positive rate collapsed; it is printed first.
    groups : str
        Which value of each viewpoint is -1 and which is +1, empty if they are -1 and +1 themselves; then the
        groups that were pooled to meet a limit.
    nonconvex : str
        A sentence, printed before everything else, if the objective is not convex; else empty.

    ``explanation[label]`` is the `ClassExplanation` of a class.

    >>> import nerm
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [-1, -1, 1, 1], [1, -1, 1, -1]
    >>> model = nerm.NeutralSVC(lam=2.0, eta=1.0).fit(X, y, viewpoint=v)
    >>> (problem,) = model.explain().problems
    >>> [(term.label, round(term.weight * term.value, 3)) for term in problem.terms]
    [('Risk(Hinge())', 1.0), ('SquaredL2()', 0.25), ('Neutrality(Hinge())', 4.0)]
    >>> [(name, round(value, 3)) for name, value in model.explain()[1].coefficients]
    [('x0', -0.5)]
    """

    model: str
    problems: tuple[ClassExplanation, ...]
    collapse: str | None = None
    groups: str = ""
    nonconvex: str = ""

    def __getitem__(self, label: Any) -> ClassExplanation:
        labels = list(self)
        check_known(label, "a class of the explanation", labels)
        return self.problems[labels.index(label)]

    def __iter__(self) -> Iterator[Any]:
        return (problem.label for problem in self.problems)

    def __repr__(self) -> str:
        head = self.nonconvex, self.collapse, self.model, self.groups
        return "\n\n".join(filter(None, [*head, *(_text(p) for p in self.problems)]))


def explanation_of(model: Any, top: int, feature_names: Sequence[str] | None) -> Explanation:
    """Return the explanation of a fitted model, with the `top` largest coefficients per class."""
    linear, own = model.kernel_ is None, model._scale
    table = model.coef_ if linear else model.dual_coef_
    names = _names(model, feature_names) if linear else [f"row {i}" for i in model.support_.tolist()]
    classes = getattr(model, "classes_", (None,))
    positives, problems = classes[-len(model.solutions_) :], []
    for label, solution, coef in zip(positives, model.solutions_, table, strict=True):
        stats, objective = solution.stats, solution.problem.objective
        terms = tuple(
            replace(t, weight=own * t.weight) if t.kind == "regularizer" else replace(t, value=own * t.value)
            for t in solution.objective.terms
        )
        pairs = zip(objective.terms, terms, strict=True)
        weighted = tuple(replace(t, weight=value.weight) for t, value in pairs)
        nonzero = [pair for pair in zip(names, coef.tolist(), strict=True) if pair[1]]
        norm = np.linalg.norm(solution.coef)
        if not linear:  # Omega is half the squared norm
            norm = np.sqrt(2 * sum(t.value for t in terms if t.kind == "regularizer"))
        moved = f"; threshold {solution.threshold:.6g} subtracted from the intercept, after the certificate"
        moved = moved if solution.threshold else ""
        word = "iteration" if stats.iterations == 1 else "iterations"
        iterations = "" if stats.iterations is None else f" in {stats.iterations} {word}"
        problems.append(
            ClassExplanation(
                label=label,
                formula=replace(objective, terms=weighted).formula("sum" if model.sum_form else "mean"),
                terms=terms,
                total=own * solution.objective.total,
                certificate=solution.certificate.times(own),
                solved=f"{solution.status.value} by {stats.solver}{iterations}{moved}",
                coef_norm=float(norm),
                intercept=float(solution.intercept),
                coefficients=tuple(sorted(nonzero, key=lambda pair: -abs(pair[1]))[:top]),
                others=max(0, len(nonzero) - top),
                class_weights=getattr(model, "class_weight_", {}),
            )
        )
    groups = shown_groups(getattr(model, "groups_", {}))  # absent in old files, as is collapse_
    groups = "\n".join(filter(None, [groups, *(f"pooled: {names}" for names in pooled_groups(model))]))
    nonconvex, every = "", [t.term for one in model.solutions_ for t in one.problem.objective.terms]
    atoms = [getattr(term, name, None) for term in every for name in ("loss", "surrogate")]
    if any(isinstance(atom, DCFunction) for atom in atoms):
        nonconvex = (
            "The objective is not convex: the model is a stationary point of the convex-concave procedure, "
            "whose convex steps were certified one by one."
        )
    return Explanation(repr(model), tuple(problems), getattr(model, "collapse_", None), groups, nonconvex)


def pooled_groups(model: Any) -> list[str]:
    """Return the names of the groups that were pooled from small groups to meet a limit."""
    columns = getattr(model, "trace_", ())  # of a search; it has one positive rate per group
    start = "positive rate, pooled: "
    return [name.removeprefix(start) for name in columns if name.startswith(start)]


def _names(model: Any, given: Sequence[str] | None) -> list[str]:
    known = getattr(model, "feature_names_in_", None) if given is None else given
    names = [f"x{j}" for j in range(model.n_features_in_)] if known is None else [str(name) for name in known]
    if len(names) != model.n_features_in_:
        must = f"'feature_names' must name the {model.n_features_in_} columns seen in fit"
        do = "In a pipeline pass pipe[:-1].get_feature_names_out()"
        raise InvalidInputError(must, f"{len(names)} names", do)
    return names


def _text(problem: ClassExplanation) -> str:
    width = max(len(t.label) for t in problem.terms)
    lines = [problem.formula if problem.label is None else f"class {problem.label}: {problem.formula}"]
    if problem.class_weights:
        weights = (f"{label} × {weight:.4g}" for label, weight in problem.class_weights.items())
        lines.append(f"class weights: {', '.join(weights)}")
    for t in problem.terms:
        sides = "" if t.theta is None else "C+ alone" if t.theta else "C- alone"
        if t.plus is not None:
            theta = "" if t.theta is None or np.isnan(t.theta) else f", theta {t.theta:.3f}"
            sides = f"C+ {t.plus:.6g}, C- {t.minus:.6g}{theta}"
        lines.append(f"{t.label:<{width}}  {t.weight:>8.4g} × {t.value:<12.8g} {sides}".rstrip())
    lines.append(f"{'total':<{width}}  {'':>8}   {problem.total:.10g}")
    lines.append(f"{problem.solved}; {problem.certificate}")
    lines.append(f"norm {problem.coef_norm:.6g}, intercept {problem.intercept:.6g}, largest coefficients:")
    lines += [f"  {value:>+12.6g}  {name}" for name, value in problem.coefficients]
    lines += [f"  and {problem.others} smaller ones"] if problem.others else []
    return "\n  ".join(lines)
