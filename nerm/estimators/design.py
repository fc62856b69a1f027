"""Read the parameters of a classifier, solve its binary problems, and reduce the solutions that it stores."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nerm import atoms
from nerm.atoms.margin import MarginFunction
from nerm.atoms.regularizer import Regularizer
from nerm.certify.solution import Solution, Status, recertified
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.model.blocks import ObjectiveValue
from nerm.model.expressions import Neutrality, Objective, Risk
from nerm.model.kernels import Kernel
from nerm.model.problem import Problem, with_terms
from nerm.neutralize.search import with_named_weights
from nerm.solvers.registry import SolverPool
from nerm.typing import Floats, Ints, Matrix
from nerm.validation import as_nonnegative


def as_atom(value: Any, name: str, *, residual: bool = False) -> Any:
    """Return the atom that a parameter specifies: an atom, or the name of one.

    `name` is the parameter: "regularizer" needs a regularizer, "loss" with `residual` a residual function,
    and every other name a margin function.

    >>> as_atom("hinge", "loss"), as_atom("ramp(2)", "surrogate")
    (Hinge(), Ramp(width=2.0))
    """
    kind: Any = MarginFunction
    known: dict[str, Any] = {**atoms.margin_functions(), **atoms.dc_functions()}
    what, example = "a margin function", "Hinge()"
    if name == "regularizer":
        kind, known, what, example = Regularizer, atoms.regularizers(), "a regularizer", "L1()"
    if residual:
        known, what, example = atoms.residual_functions(), "a residual function", "AbsoluteError()"
    if isinstance(value, str):
        plain, _, argument = value.removesuffix(")").partition("(")
        try:
            made, arguments = known[plain], [float(argument)] if argument else []
        except (KeyError, ValueError):
            raise UnknownNameError(f"{name!r}", value, known) from None
        return made(*arguments)
    if not isinstance(value, kind) or residual is not getattr(value, "of_residual", False):
        must = f"{name!r} must be {what} or its name"
        raise InvalidInputError(must, repr(value), f"Pass nerm.{example}, for instance")
    return value


def atom_name(atom: Any) -> str:
    """Return the name of an atom, from which `as_atom` makes an equal atom.

    The name includes the atom's parameter unless it has the default value.

    >>> from nerm import Hinge, Ramp
    >>> atom_name(Hinge()), atom_name(Ramp(2.0))
    ('hinge', 'ramp(2)')
    """
    parameters = dataclasses.astuple(atom)
    return str(atom.name) if atom == type(atom)() else f"{atom.name}({parameters[0]:g})"


def as_viewpoint(viewpoint: Any, sensitive_features: Any) -> Any:
    """Return the viewpoint given to `fit` as `viewpoint` or as `sensitive_features`, not both.

    >>> as_viewpoint(None, [1, -1])
    [1, -1]
    """
    if viewpoint is not None and sensitive_features is not None:
        must = "'viewpoint' and 'sensitive_features' are two names of one argument"
        raise InvalidInputError(must, "both", "Pass one of them")
    return sensitive_features if viewpoint is None else viewpoint


def as_eta(eta: Any, names: list[str]) -> dict[str, float]:
    """Return a dict with the weight eta of each neutrality term.

    `names` are the names of the terms. `eta` is one number for all, or a dict by name. A viewpoint with more
    than two groups has one term per group, named "race=a", "race=b", ...; the key "race" applies to all of
    them.
    """
    if not isinstance(eta, Mapping):
        number = as_nonnegative(eta, "eta")
        if number > 0 and not names:
            must = "'viewpoint' must be given when eta > 0"
            raise InvalidInputError(must, "None", "Call fit(X, y, viewpoint=...), or set eta=0")
        return dict.fromkeys(names, number)
    found, used = {}, set[Any]()
    for name in names:
        keys = [key for key in eta if name == key or name.startswith(f"{key}=")]
        used.update(keys)
        if not keys:
            must = "'eta' must have an entry for each viewpoint"
            raise InvalidInputError(must, f"none for {name!r}", "Add it; 0 switches the term off")
        key = max(keys, key=len)  # the key "race=a" takes precedence over "race"
        found[name] = as_nonnegative(eta[key], f"eta[{key!r}]")
    for key in eta:
        if key not in used:
            raise UnknownNameError("a key of 'eta'", key, names, "Name a viewpoint that was given to fit")
    return found


def parameters_of(value: Any) -> list[str]:
    """Return the names of the parameters of an atom or a kernel; none for any other value.

    >>> parameters_of(atoms.SmoothHinge(0.5)), parameters_of(1.0)
    (['width'], [])
    """
    known = isinstance(value, MarginFunction | Regularizer | Kernel) and dataclasses.is_dataclass(value)
    return [field.name for field in dataclasses.fields(value)] if known else []


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The validated training rows of positive weight.

    Attributes
    ----------
    X : (n, d) matrix
        The features, or the (n, n) Gram matrix of a precomputed kernel.
    codes : (n,) array of int
        The index of each row's class.
    viewpoints : mapping
        One (n,) array per neutrality term, by name.
    sample_weight, risk_weight : (n,) arrays
        The sample weights s_i, and s_i times the weight of the row's class.
    pairwise : bool
        Whether X is a Gram matrix.

    """

    X: Matrix
    codes: Any
    viewpoints: Mapping[str, Floats]
    sample_weight: Floats
    risk_weight: Floats
    pairwise: bool = False

    def check_viewpoints(self) -> None:
        """Raise an error if there is no viewpoint, which a limit needs."""
        if not self.viewpoints:
            must = "'viewpoint' must be given with a limit"
            raise InvalidInputError(must, "None", "Call fit(X, y, viewpoint=...), or set limit=None")

    def check_equal_weights(self, must: str, do: str = "Leave them out") -> None:
        """Raise an error with the sentence `must` and the advice `do` if the sample weights differ."""
        if np.ptp(self.sample_weight) > 0:
            raise InvalidInputError(must, "sample weights that differ", do)

    def at(self, places: Ints, against: Ints | None = None) -> TrainingRows:
        """Return the rows with the indices `places`, which are sorted and distinct.

        For a Gram matrix, `against` are the indices of its columns; by default they are `places`.
        """
        if len(places) == len(self.codes):
            return self
        X = self.X[places]
        if self.pairwise:
            X = X[:, places if against is None else against]
        views = {name: v[places] for name, v in self.viewpoints.items()}
        weights = self.sample_weight[places], self.risk_weight[places]
        return TrainingRows(X, self.codes[places], views, *weights, self.pairwise)


def solved(problem: Problem, tol: float, pool: SolverPool) -> Solution:
    """Solve a problem without its terms of weight 0, and return a solution of the given problem.

    The returned solution reports the values of all terms, including those of weight 0.
    """
    terms = problem.objective.terms
    acting = Objective(tuple(t for t in terms if t.weight or isinstance(t.term, Risk)))
    whole = len(acting.terms) == len(terms)
    solution = pool.solve(problem if whole else with_terms(problem, acting), tol)
    if problem.is_kernel and solution.status is not Status.FAILED:
        solution = pruned(solution)
    if whole:
        return solution
    known = iter(solution.objective.thetas)
    two_sided = (t for t in terms if isinstance(t.term, Neutrality) and t.term.theta is None)
    thetas = [next(known) if t.weight else np.nan for t in two_sided]
    value = problem.evaluate(solution.coef, solution.intercept).with_thetas(thetas)
    return replace(solution, problem=problem, objective=value)


def pruned(solution: Solution) -> Solution:
    """Set the smallest kernel coefficients to zero, where the certificate allows it.

    An interior-point method returns small nonzero coefficients where the optimum has zeros, and only support
    vectors should be stored. The primal value may grow by at most a tenth of the tolerance (relative), and
    the relative gap must not exceed the tolerance, or its old value if this was larger.
    """
    size = float(np.abs(solution.coef).max(initial=0.0))
    primal, most = solution.certificate.primal, max(solution.tol, solution.certificate.relative_gap)
    for share in 10.0 ** -np.arange(3, 9):
        coef = np.where(np.abs(solution.coef) > share * size, solution.coef, 0.0)
        found = recertified(solution, coef)
        small = found.certificate.primal <= primal + 0.1 * solution.tol * abs(primal)
        if small and found.certificate.relative_gap <= most:
            return found
    return solution


def kept(solution: Solution, weights: Sequence[str]) -> Solution:
    """Return the solution that a classifier stores: without the training rows.

    The arrays of neutrality weights are replaced by the names `weights`, one per neutrality term.
    """
    shown = with_named_weights(solution.problem.objective, weights)
    pairs = zip(solution.objective.terms, shown.terms, strict=True)
    terms = tuple(replace(value, label=repr(weighted.term)) for value, weighted in pairs)
    small = solution.without_rows()
    problem = replace(small.problem, objective=shown)
    return replace(small, problem=problem, objective=ObjectiveValue(solution.objective.total, terms))
