"""The neutral SVM's primal and dual as quadratic programmes in cvxpy."""

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import cvxpy as cp
import numpy as np

from nerm.errors import InvalidInputError, UnknownNameError
from nerm.svm.data import NeutralSVM, Result, number

OPTIMAL_GAP = 1e-6  # the result of a QP solver counts as optimal at this relative duality gap
ACCURACY = {  # the options that set a solver's accuracy; other solvers run at their default accuracy
    "clarabel": ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
    "ecos": ("abstol", "reltol", "feastol"),
    "osqp": ("eps_abs", "eps_rel"),
    "scs": ("eps_abs", "eps_rel"),
}


@dataclass(frozen=True)
class QPSolution:
    """The solution of a QP: the solver's objective and status, and a hypothesis.

    Attributes
    ----------
    value : float
        The objective at the solver's point, which may be slightly infeasible; in sum form.
    status, solver : str
        The status that the solver reports, and its name.
    model : Result or None
        The hypothesis with feasible dual variables and duality gap; None if the solver returned no point.

    Examples
    --------
    >>> from nerm.svm import primal_qp
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> solution = primal_qp(X, y, v, lam=2.0, eta=1.0).solve("clarabel")
    >>> round(solution.value, 4), round(4 * solution.model.certificate.primal, 4), solution.model.status
    (5.25, 5.25, 'optimal')

    """

    value: float
    status: str
    solver: str
    model: Result | None


@dataclass(frozen=True, eq=False)
class QP:
    """A quadratic programme of the neutral SVM.

    Attributes
    ----------
    problem : cvxpy.Problem
        The problem; ``problem.get_problem_data("OSQP")`` returns its matrices.
    variables : dict of cvxpy.Variable
        The variables, by name as in the example; an intercept that is not free is the constant 0.
    constraints : dict of cvxpy constraints
        The constraints, by the names of their dual variables.

    Examples
    --------
    >>> from nerm.svm import primal_qp
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> qp = primal_qp(X, y, v, lam=2.0, eta=1.0)
    >>> list(qp.variables)
    ['coef', 'intercept', 'scores', 'xi', 'xi_plus', 'xi_minus', 'zeta']
    >>> round(qp.solve(tol=1e-9).value, 4), qp.variables["coef"].value.round(3)
    (5.25, array([0.5]))

    """

    problem: cp.Problem
    variables: dict[str, Any]
    constraints: dict[str, Any]
    _data: NeutralSVM = field(repr=False)
    _rows: Any = field(repr=False)

    def solve(self, solver: str = "osqp", tol: float = 1e-8, **options: Any) -> QPSolution:
        """Solve the QP with a solver of cvxpy.

        Parameters
        ----------
        solver : str
            The name of an installed QP solver of cvxpy.
        tol : float
            The value of the solver's accuracy options.
        options : dict
            Further options of the solver.

        Returns
        -------
        QPSolution
            Trust ``model.certificate.relative_gap``, not the solver's status.

        """
        name = solver.lower()
        known = [installed.lower() for installed in cp.installed_solvers()]
        if name not in known:
            raise UnknownNameError("'solver'", solver, known, "Use an installed solver")
        defaults: dict[str, Any] = dict.fromkeys(ACCURACY.get(name, ()), number(tol, "tol", positive=True))
        if name == "osqp":
            defaults |= {"max_iter": 50_000, "polishing": True}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about inaccurate solutions: the duality gap shows the accuracy
            try:
                self.problem.solve(solver=name.upper(), **{**defaults, **options})
                status = str(self.problem.status)
            except cp.SolverError as error:
                status = f"failed: {error}"
            except (TypeError, AttributeError, KeyError, ValueError) as error:
                if not options:  # this is how cvxpy reports an option that the solver does not know
                    raise
                must = f"every option must be one of {name}'s own"
                raise InvalidInputError(must, f"{sorted(options)} ({error})", "See its settings") from error
        found = {key: constraint.dual_value for key, constraint in self.constraints.items()}
        found |= {key: variable.value for key, variable in self.variables.items()}
        is_known = all(part is not None and np.isfinite(part).all() for part in found.values())
        if status.startswith("failed") or not is_known:
            return QPSolution(np.nan, status, name, None)
        # the multipliers are dual values of the constraints of the primal, and variables of the dual
        data, gamma = self._data, np.zeros_like(self._data.targets)
        gamma[0] = found["alpha"]
        if "beta_plus" in found:
            gamma[1:, self._rows] = found["beta_plus"], found["beta_minus"]
        nu = found.get("nu", (found.get("nu_plus", 0.0), found.get("nu_minus", 0.0)))
        plus, minus = np.maximum(nu, 0.0)
        nu_plus = data.eta * (plus / (plus + minus) if plus + minus > 0 else 0.5)
        hypothesis = (found["coef"], float(found["intercept"])) if "coef" in found else None
        model = data.result(data.targets * gamma, nu_plus, OPTIMAL_GAP, hypothesis)
        return QPSolution(float(self.problem.objective.value), status, name, replace(model, claim=status))


def primal_qp(
    X: Any,
    y: Any,
    viewpoint: Any,
    lam: float,
    eta: float,
    intercept: bool = True,
    sample_weight: Any = None,
    neutrality_weight: Any = None,
) -> QP:
    """Return the primal QP in (w, b, f, xi, xi^+, xi^-, zeta).

    ::

        minimise    sum_i s_i xi_i + (lambda/2) ||w||^2 + eta zeta
        subject to  f = X w + b,   1 - y_i f_i <= xi_i,   1 - v_i f_i <= xi_i^+,   1 + v_i f_i <= xi_i^-,
                    sum_i u_i xi_i^+ <= zeta,   sum_i u_i xi_i^- <= zeta,   xi, xi^+, xi^- >= 0.

    Here s and u are the row weights and v is the viewpoint. Samples with u_i = 0 have no xi_i^+ and xi_i^-,
    because no constraint would determine them. If eta = 0, no sample has them.

    Parameters
    ----------
    X : (n, d) matrix
        Dense or sparse.
    y, viewpoint : (n,) arrays
        Labels -1/+1 (or any two values), and v.
    lam, eta : float
        lambda and eta in sum form. The same problem in mean form has lam / n and the same eta, and its value
        is that of the sum form divided by n.
    intercept : bool
        Whether b is free; otherwise b = 0.
    sample_weight, neutrality_weight : (n,) arrays, optional
        s and u; ones by default.

    Returns
    -------
    QP
        Its value is in sum form.

    Examples
    --------
    >>> import nerm
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> value = primal_qp(X, y, v, lam=2.0, eta=1.0).solve().value
    >>> hinges = nerm.Risk(nerm.Hinge()) + 1.0 * nerm.Neutrality(nerm.Hinge())
    >>> problem = (hinges + (2.0 / 4) * nerm.SquaredL2()).on(X, y, viewpoint=v)
    >>> bool(abs(value - 4 * problem.solve().objective.total) < 1e-4)
    True

    """
    data = NeutralSVM(X, y, viewpoint, lam, eta, sample_weight, neutrality_weight, intercept)
    n, d = data.X.shape
    w, f, xi = cp.Variable(d), cp.Variable(n), cp.Variable(n, nonneg=True)
    b = cp.Variable() if intercept else cp.Constant(0.0)
    variables = {"coef": w, "intercept": b, "scores": f, "xi": xi}
    constraints = {"scores": f == data.X @ w + b, "alpha": 1 - cp.multiply(data.y, f) <= xi}
    cost = data.s @ xi + data.lam / 2 * cp.sum_squares(w)
    seen = np.flatnonzero(data.eta * data.u > 0)
    if len(seen):
        plus, minus = cp.Variable(len(seen), nonneg=True), cp.Variable(len(seen), nonneg=True)
        zeta = cp.Variable()
        variables |= {"xi_plus": plus, "xi_minus": minus, "zeta": zeta}
        vf = cp.multiply(data.v[seen], f[seen])
        constraints |= {"beta_plus": 1 - vf <= plus, "beta_minus": 1 + vf <= minus}
        constraints |= {"nu_plus": data.u[seen] @ plus <= zeta, "nu_minus": data.u[seen] @ minus <= zeta}
        cost += data.eta * zeta
    problem = cp.Problem(cp.Minimize(cost), list(constraints.values()))
    return QP(problem, variables, constraints, data, seen)


def dual_qp(
    X_or_gram: Any,
    y: Any,
    viewpoint: Any,
    lam: float,
    eta: float,
    kernel: Any = "linear",
    variant: str = "exact",
    sample_weight: Any = None,
    neutrality_weight: Any = None,
    intercept: bool = True,
) -> QP:
    """Return the dual as a minimisation QP in (a, alpha, beta^+, beta^-, nu).

    Its value is minus the value of the dual. The exact variant, scaled so that the optimal values of dual and
    primal are equal (docs/errata.md, erratum 1), is::

        minimise    (1 / 2 lambda) a'K a - sum_i (alpha_i + beta_i^+ + beta_i^-)
        subject to  a_i = alpha_i y_i + (beta_i^+ - beta_i^-) v_i,   sum_i a_i = 0,   0 <= alpha_i <= s_i,
                    0 <= beta_i^{+-} <= u_i nu^{+-},   nu^+ + nu^- <= eta.

    The published variant, as printed in section 6.2 and the appendix of the paper, has no nu. Its constraints
    on beta are 0 <= beta^{+-} and beta_i^+ + beta_i^- <= eta u_i, so each sample may favour C^+ or C^-. It is
    the dual of another problem, which penalises the size of all scores (`nerm.svm.data`), and is kept for
    research.

    Parameters
    ----------
    X_or_gram : (n, d) matrix
        Or the (n, n) Gram matrix with ``kernel="precomputed"``.
    y, viewpoint : (n,) arrays
        Labels -1/+1 (or any two values), and v.
    lam, eta : float
        In sum form.
    kernel : {"linear", "rbf", "precomputed"} or callable
        With "linear" the `coef` of the result is w.
    variant : {"exact", "published"}
        "published" has no variable nu.
    sample_weight, neutrality_weight : (n,) arrays, optional
        s and u; ones by default.
    intercept : bool
        Without it the constraint sum_i a_i = 0 is left out.

    Returns
    -------
    QP
        Its value is in sum form.

    Examples
    --------
    The exact dual has the value of the primal, 5.25 here. The published dual has a larger value, so weak
    duality fails. For v = +-1 and eta >= 1 the solution of the published dual is w = 0:

    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> for variant in ("exact", "published"):
    ...     solution = dual_qp(X, y, v, lam=2.0, eta=1.0, variant=variant).solve()
    ...     print(variant, round(-solution.value, 4), abs(solution.model.coef).round(4))
    exact 5.25 [0.5]
    published 8.0 [0.]
    """
    given = X_or_gram, y, viewpoint, lam, eta, sample_weight, neutrality_weight
    data = NeutralSVM(*given, intercept, kernel, variant)
    n = len(data.y)
    a = cp.Variable(n)
    alpha, plus, minus = (cp.Variable(n, nonneg=True) for _ in range(3))
    variables = {"a": a, "alpha": alpha, "beta_plus": plus, "beta_minus": minus}
    constraints = {"scores": a == cp.multiply(data.y, alpha) + cp.multiply(data.v, plus - minus)}
    constraints["alpha"] = alpha <= data.s
    if intercept:
        constraints["intercept"] = cp.sum(a) == 0
    if variant == "exact":
        variables["nu"] = nu = cp.Variable(2, nonneg=True)
        constraints |= {"beta_plus": plus <= data.u * nu[0], "beta_minus": minus <= data.u * nu[1]}
        constraints["nu"] = cp.sum(nu) <= data.eta
    else:
        constraints["beta"] = plus + minus <= data.eta * data.u
    cost = cp.quad_form(a, cp.psd_wrap(data.gram / data.lam)) / 2 - cp.sum(alpha + plus + minus)
    problem = cp.Problem(cp.Minimize(cost), list(constraints.values()))
    return QP(problem, variables, constraints, data, slice(None))
