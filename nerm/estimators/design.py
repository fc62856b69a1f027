"""Build the binary problems of a classifier from its parameters, and the solutions it stores.

Both classifiers minimise, over training rows i with sample weights s_i, class weights c_i and S = sum_i s_i,

::

    (1/S) sum_i s_i c_i phi(y_i f_i) + lam Omega(f) + sum_k eta_k max( (1/S) sum_i s_i u_ki psi(+- v_ki f_i)
    ).

Here k counts the viewpoints v_k, and u_ki are the neutrality weights. `NERMClassifier` uses this mean form.
`NeutralSVC` uses the paper's sum form: S times this objective, so its lam is S times the lam here. A row of
weight 2 counts as two rows.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nerm import atoms
from nerm import weights as neutrality_weights
from nerm.atoms.margin import MarginFunction
from nerm.atoms.regularizer import Regularizer
from nerm.certify.solution import Solution, Status, recertified
from nerm.errors import InvalidInputError, NotSolvedError, UnknownNameError
from nerm.model import kernels
from nerm.model.bind import bind
from nerm.model.blocks import ObjectiveValue
from nerm.model.expressions import Neutrality, Objective, Risk, WeightedTerm
from nerm.model.problem import Problem, with_terms
from nerm.neutralize.search import with_named_weights
from nerm.solvers.registry import SolverPool
from nerm.typing import Floats, Ints, Matrix
from nerm.validation import as_nonnegative
from nerm.viewpoint import DEFAULT
from nerm.weights import NAMES

KINDS = (MarginFunction, Regularizer, kernels.Kernel)


def as_atom(value: Any, name: str) -> Any:
    """Return the atom that a parameter specifies: an atom, or the name of one.

    `name` is the parameter: "regularizer" needs a regularizer, every other name a margin function.

    >>> as_atom("hinge", "loss"), as_atom("ramp(2)", "surrogate")
    (Hinge(), Ramp(width=2.0))
    """
    kind: Any = Regularizer if name == "regularizer" else MarginFunction
    if isinstance(value, str):
        known: dict[str, Any] = {**atoms.margin_functions(), **atoms.dc_functions()}
        if kind is Regularizer:
            known = dict(atoms.regularizers())
        plain, _, argument = value.removesuffix(")").partition("(")
        if plain not in known or (argument and not _is_number(argument)):
            raise UnknownNameError(f"{name!r}", value, known)
        return known[plain](float(argument)) if argument else known[plain]()
    if not isinstance(value, kind):
        what = "a regularizer" if name == "regularizer" else "a margin function"
        hint = "L1()" if name == "regularizer" else "Hinge()"
        must = f"{name!r} must be {what} or its name"
        raise InvalidInputError(must, repr(value), f"Pass nerm.{hint}, for instance")
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


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_weights_name(value: Any) -> str:
    """Check that `value` is a name in `nerm.weights.NAMES`, and return it.

    Arrays are refused: a parameter of a classifier must not depend on the training rows.
    """
    if not isinstance(value, str) or value not in NAMES:
        raise UnknownNameError("'weights'", value if isinstance(value, str) else type(value).__name__, NAMES)
    return value


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
    found = {}
    for name in names:
        keys = [key for key in eta if name == key or name.startswith(f"{key}=")]
        if not keys:
            must = "'eta' must have an entry for each viewpoint"
            raise InvalidInputError(must, f"none for {name!r}", "Add it; 0 switches the term off")
        key = max(keys, key=len)  # the key "race=a" takes precedence over "race"
        found[name] = as_nonnegative(eta[key], f"eta[{key!r}]")
    for key in eta:
        if not any(name == key or name.startswith(f"{key}=") for name in names):
            raise UnknownNameError("a key of 'eta'", key, names, "Name a viewpoint that was given to fit")
    return found


def as_kernel(kernel: Any, options: Mapping[str, Any], X: Any, weight: np.ndarray) -> kernels.Kernel | None:
    """Return the kernel with its parameters computed from the data; None for the linear kernel.

    `options` are gamma, degree and coef0, used if the kernel is given by name. The rows of `X` are weighted
    by `weight`.
    """
    if isinstance(kernel, str) and kernel == "linear":
        return None
    if isinstance(kernel, str) and kernel in kernels.names():
        cls = kernels.names()[kernel]
        fields = {f.name: options[f.name] for f in dataclasses.fields(cls) if f.name in options}
        resolved = cls(**fields)
    else:
        resolved = kernels.resolve(kernel)
    if isinstance(resolved, kernels.Linear):
        return None
    return resolved.fitted(X, weight)


def nested(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the atoms and kernels in `params`, with keys as in scikit-learn.

    >>> nested({"loss": atoms.SmoothHinge(0.5), "lam": 1.0})
    {'loss__width': 0.5}
    """
    return {
        f"{name}__{field.name}": getattr(value, field.name)
        for name, value in params.items()
        if isinstance(value, KINDS) and dataclasses.is_dataclass(value)
        for field in dataclasses.fields(value)
    }


def with_parameter(value: Any, name: str, parameter: str, new: Any) -> Any:
    """Return an atom or kernel, given itself or by name, with one parameter changed.

    `name` is the classifier's parameter that holds it, such as "loss"; `new` is the new value of `parameter`.

    >>> with_parameter("smooth-hinge", "loss", "width", 0.1)
    SmoothHinge(width=0.1)
    """
    if isinstance(value, str):
        value = kernels.resolve(value) if name == "kernel" else as_atom(value, name)
    known = [f.name for f in dataclasses.fields(value)] if isinstance(value, KINDS) else []  # type: ignore[arg-type]
    if parameter not in known:
        must = f"a parameter of {name!r} must be one of {known}"
        raise InvalidInputError(must, repr(parameter), f"{value!r} has no other parameters")
    return dataclasses.replace(value, **{parameter: new})


@dataclass(frozen=True)
class Design:
    """The validated parameters of a classifier.

    `lam` is the weight in the classifier's own form: the sum form if `sum_form` is true, else the mean form.
    """

    loss: MarginFunction
    regularizer: Regularizer
    surrogate: MarginFunction
    lam: float
    eta: Mapping[str, float]
    weights: str
    kernel: Any
    intercept: bool
    solver: str
    tol: float
    sum_form: bool

    def own_form(self, total_weight: float) -> float:
        """Return the factor from the mean form to the classifier's form: S for the sum form, else 1."""
        return total_weight if self.sum_form else 1.0

    def objective(self, lam: float | None = None, u: Mapping[str, Any] | None = None) -> Objective:
        """Return the objective Risk + lam Omega + sum_k eta_k Neutrality_k.

        `lam` replaces the weight of the regularizer. `u` gives the neutrality weights as one (n,) array per
        viewpoint; without it, the terms contain the name of the weights.
        """
        omega = WeightedTerm(self.lam if lam is None else lam, self.regularizer)
        terms = [WeightedTerm(1.0, Risk(self.loss)), omega]
        for name, eta in self.eta.items():
            to = None if list(self.eta) == [DEFAULT] else name
            weights = self.weights if u is None else u[name]
            terms.append(WeightedTerm(eta, Neutrality(self.surrogate, to=to, weights=weights)))
        return Objective(tuple(terms))

    def problem(self, rows: TrainingRows, positive: int, like: Problem | None = None) -> Problem:
        """Return the binary problem of the class with index `positive` against the rest.

        If `like`, a problem on the same rows, is given, its matrix X or Gram matrix is reused.
        """
        y, s = np.where(rows.codes == positive, 1.0, -1.0), rows.sample_weight
        u = {k: s * neutrality_weights.resolve(self.weights, y, v, s) for k, v in rows.viewpoints.items()}
        S = float(s.sum())
        objective = self.objective(self.lam / self.own_form(S), u)
        if like is not None:
            return with_terms(like, objective, y, rows.risk_weight)
        return bind(
            objective,
            rows.X,
            y,
            viewpoint=dict(rows.viewpoints) or None,
            kernel=self.kernel,
            intercept=self.intercept,
            sample_weight=rows.risk_weight,
            divisor=S,
            checked=True,
        )


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

    """

    X: Matrix
    codes: Any
    viewpoints: Mapping[str, Floats]
    sample_weight: Floats
    risk_weight: Floats

    def at(self, places: Ints, pairwise: bool) -> TrainingRows:
        """Return the rows with the indices `places`; `pairwise` says that X is a Gram matrix."""
        X = self.X[places][:, places] if pairwise else self.X[places]
        views = {name: v[places] for name, v in self.viewpoints.items()}
        weights = self.sample_weight[places], self.risk_weight[places]
        return TrainingRows(X, self.codes[places], views, *weights)


def solved(problem: Problem, design: Design, pool: SolverPool) -> Solution:
    """Solve a problem without its terms of weight 0, and return a solution of the given problem.

    The returned solution reports the values of all terms, including those of weight 0.
    """
    terms = problem.objective.terms
    acting = Objective(tuple(t for t in terms if t.weight or isinstance(t.term, Risk)))
    whole = len(acting.terms) == len(terms)
    solution = pool.solve(problem if whole else with_terms(problem, acting), design.tol)
    insist(solution)
    solution = pruned(solution) if problem.is_kernel else solution
    if whole:
        return solution
    known = iter(solution.objective.thetas)
    two_sided = (t for t in terms if isinstance(t.term, Neutrality) and t.term.theta is None)
    thetas = [next(known) if t.weight else np.nan for t in two_sided]
    value = problem.evaluate(solution.coef, solution.intercept).with_thetas(thetas)
    return replace(solution, problem=problem, objective=value)


def plain_scores(problem: Problem, design: Design) -> Floats | None:
    """Return the training scores, (n,), of the same model without neutrality; None if the solver fails."""
    terms = tuple(t for t in problem.objective.terms if not isinstance(t.term, Neutrality))
    solution = with_terms(problem, Objective(terms)).solve(design.solver, design.tol)
    return None if solution.status is Status.FAILED else solution.training_scores()


def insist(solution: Solution) -> None:
    """Raise an error if the solver failed; warn if the solution is not certified."""
    if solution.status is Status.FAILED:
        raise NotSolvedError(
            f"{solution.status.sentence} Solver {solution.stats.solver!r} claims {solution.stats.claim!r}. "
            "Scale the features, raise lam, or try another solver."
        )
    if not solution.status.success:
        from sklearn.exceptions import ConvergenceWarning

        gap = f"Certified relative gap {solution.certificate.relative_gap:.2e}, tolerance {solution.tol:g}"
        advice = "Scale the features, raise lam or tol, or try another solver."
        warnings.warn(f"{solution.status.sentence} {gap}. {advice}", ConvergenceWarning, stacklevel=4)


def pruned(solution: Solution) -> Solution:
    """Set the smallest kernel coefficients to zero, where the certificate allows it.

    The primal value may grow by at most a tenth of the tolerance (relative), and the relative gap must not
    exceed the larger of the tolerance and its present value. An interior-point method returns small nonzero
    coefficients where the optimum has zeros, and only support vectors should be stored.
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


def kept(solution: Solution, design: Design, names: Sequence[str] | None = None) -> Solution:
    """Return the solution that a classifier stores: without the training rows.

    The arrays of neutrality weights are replaced by their names: those in `names`, or `design.weights`.
    """
    if names is None:
        shown = design.objective(solution.problem.regularizers[0][0])
    else:
        shown = with_named_weights(solution.problem.objective, names)
    pairs = zip(solution.objective.terms, shown.terms, strict=True)
    terms = tuple(replace(value, label=repr(weighted.term)) for value, weighted in pairs)
    small = solution.without_rows()
    problem = replace(small.problem, objective=shown)
    return replace(small, problem=problem, objective=ObjectiveValue(solution.objective.total, terms))
