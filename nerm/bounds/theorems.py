"""Theorems 1, 2 and 3 of the paper, its corollary, and bounds from held-out rows.

The bounds from held-out rows need no class and no complexity, and they bound C_sgn itself, not C_psi.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import linprog, minimize_scalar

from nerm import weights as neutrality_weights
from nerm.atoms.difference import DCFunction
from nerm.atoms.regularizer import SquaredL2
from nerm.bounds.complexity import as_delta, as_rows
from nerm.certify.solution import Solution
from nerm.errors import InvalidInputError
from nerm.metrics import calders_verwer_score, neutrality_risk, relaxed_neutrality_risk
from nerm.model.blocks import one_sided
from nerm.model.expressions import Neutrality, Risk, viewpoint_of
from nerm.model.problem import Problem, check_hypothesis
from nerm.typing import Floats
from nerm.validation import as_nonnegative, as_positive, as_scores, as_signs, check_known
from nerm.viewpoint import as_numbers, as_sides


@dataclass(frozen=True)
class FitFacts:
    """The facts about a fitted model that bounds need, as plain arrays and numbers.

    `Solution.fit_facts()` and the method `fit_facts()` of the classifiers return this object.

    Attributes
    ----------
    scores, y, viewpoint : array of shape (n,)
        Scores, labels (-1 and +1) and viewpoint of the training rows.
    loss, surrogate : MarginFunction
        phi and psi.
    eta : float
        The weight of the neutrality term, in mean form.
    coef_norm, intercept : float
        ||w|| (for kernels sqrt(c'Kc)) and b.
    diagonal : array of shape (n,)
        k(x_i, x_i): ||x_i||^2 for linear models.
    lam : float or None
        lam of Omega = (lam / 2n) ||w||^2; None for other regularizers, for which no radius is known in
        advance.
    gap : float
        The certified gap, primal minus dual, in mean form.
    fit_intercept : bool
        Whether b was free.
    sample_weight, neutrality_weights : array of shape (n,) or None
        The row weights of the risk and of the neutrality term; None if all are 1.
    learned : tuple of str
        The properties of the class that were learned from the same rows, in words, such as the width of a
        kernel or the encoding of columns. The theorems assume a class fixed before the data, so every
        statement lists these properties as "treated as fixed".
    one_sided : bool
        Whether the neutrality term is one-sided. Then C_n,psi can be below psi(0), and the corollary and
        Theorem 3 give no bound.

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
    """Return the `FitFacts` of a solution for one viewpoint.

    The theorems are about an objective whose risk has weight 1. So the objective, and with it eta, lam and
    the gap, is divided by the weight of the risk. With several neutrality terms C_k of weights eta_k, the
    corollary eta_k (C_k - psi_k(0)) <= phi(0) + gap still holds for each k, because no C_k is below psi_k(0).
    Here phi is the loss and psi_k the surrogate.

    Parameters
    ----------
    solution : Solution
        The solution of a problem with one risk.
    to : str, optional
        The name of the viewpoint; it can be left out if the problem has one neutrality term.
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
    s = risk.row_weights(problem.y, problem.sample_weight)
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
        sample_weight=None if (s == 1).all() else s,
        neutrality_weights=None if (weights == 1).all() else weights,
        one_sided=term.theta is not None,
    )


def _term(problem: Problem, to: str | None) -> tuple[float, Neutrality]:
    """Return the weight and the neutrality term of the viewpoint `to`."""
    terms = [(t.weight, t.term) for t in problem.objective.terms if isinstance(t.term, Neutrality)]
    if not terms:
        must = "a guarantee about neutrality must have a viewpoint"
        got = "a problem without a neutrality term"
        raise InvalidInputError(must, got, "Add Neutrality(...), or pass viewpoint= to fit")
    if to is None and len(terms) > 1:
        must, got = "a guarantee must be about one viewpoint", f"{len(terms)} neutrality terms"
        do = f"Choose one: fit_facts(to={next(iter(problem.viewpoints))!r})"
        raise InvalidInputError(must, got, do)
    names = [viewpoint_of(term, problem.viewpoints) for _, term in terms]
    check_known(to or names[0], "'to'", names, "Name the viewpoint of a neutrality term")
    return terms[names.index(to or names[0])]


def _lam(problem: Problem, weight: float) -> float | None:
    """Return lam = n mu for the regularizer Omega = (mu/2)||w||^2, divided by the weight of the risk.

    `weight` is the weight of the risk. The result is None if lam gives no bound on ||w|| or `|b|`. This is so
    for other regularizers, and in two more cases. With a free intercept and several neutrality terms, the
    bound on `|b|` needs all viewpoints, but FitFacts has only one. With a one-sided neutrality term, C can be
    below psi(0).
    """
    if not all(isinstance(omega, SquaredL2) for _, omega in problem.regularizers):
        return None
    if one_sided(problem) or (problem.intercept and (problem.etas > 0).sum() > 1):
        return None
    return problem.divisor * sum(mu for mu, _ in problem.regularizers) / weight


def risk_bound(
    y: Any,
    scores: Any,
    loss: Any,
    *,
    complexity: float,
    margin_bound: float,
    delta: float = 0.05,
    kind: str = "population",
) -> float:
    """Return the upper bound on the expected risk R of Theorem 1.

    With probability 1 - delta, R <= R_n + 2 L R_n(F) + c sqrt(ln(2/delta) / 2n) for all f in the class F
    simultaneously. R_n is the empirical risk and R_n(F) the Rademacher complexity; L and c are the Lipschitz
    constant and the range of phi on [-M, M], the interval of the values of f.

    Parameters
    ----------
    y, scores : array-like of shape (n,)
        Labels -1 and +1, and the scores f(x_i).
    loss : MarginFunction
        phi.
    complexity : float
        A bound on R_n(F) for kind "population" (:func:`rademacher_population`), or on the empirical
        complexity Rhat_n(F) for kind "empirical" (the other functions).
    margin_bound : float
        M, a bound on `|f|` for all f in F.
    delta : float
        The probability that the bound fails.
    kind : {"population", "empirical"}
        The kind of complexity; with "empirical" the factor c becomes 3c.

    Examples
    --------
    >>> from nerm.atoms import Hinge
    >>> round(risk_bound([1, -1] * 50, [1, -1] * 50, Hinge(), complexity=0.1, margin_bound=1.0), 4)
    0.4716
    """
    f = as_scores(scores)
    empirical = float(np.mean(loss.value(as_signs(y, len(f)) * f)))
    return empirical + _excess(loss, "loss", len(f), f, complexity, margin_bound, delta, kind)


def neutrality_bound(
    scores: Any,
    viewpoint: Any,
    surrogate: Any,
    *,
    complexity: float,
    margin_bound: float,
    delta: float = 0.05,
    kind: str = "population",
) -> float:
    """Return the upper bound on the expected relaxed neutrality risk C_psi of Theorem 2.

    With probability 1 - delta, C_psi <= C_n,psi + 2 L R_n(vF) + c sqrt(ln(2/delta) / 2n) for all f in the
    class F simultaneously. C_n,psi is the value on the sample and R_n(vF) the Rademacher complexity; L and c
    are the Lipschitz constant and the range of psi on [-GM, GM], the interval of the values v f (hinge: 1,
    and 1 + GM if GM >= 1).

    The bound says nothing about C_sgn; use :func:`holdout_neutrality_bound` for C_sgn.

    Parameters
    ----------
    scores, viewpoint : array-like of shape (n,)
        f(x_i) and v_i.
    surrogate : MarginFunction
        psi.
    complexity : float
        A bound on R_n(vF) for kind "population", or on the empirical complexity Rhat_n(vF) for "empirical".
    margin_bound : float
        GM, a bound on `|v f|` for all f in F.
    delta : float
        The probability that the bound fails.
    kind : {"population", "empirical"}
        The kind of complexity; with "empirical" the last term is 3 c sqrt(ln(4/delta) / 2n).

    Examples
    --------
    >>> from nerm.atoms import Hinge
    >>> v = [1, -1] * 50
    >>> round(neutrality_bound([0.0] * 100, v, Hinge(), complexity=0.1, margin_bound=1.0), 4)
    1.4716
    """
    f = as_scores(scores)
    v = as_numbers(viewpoint, len(f))
    excess = _excess(surrogate, "surrogate", len(f), v * f, complexity, margin_bound, delta, kind)
    return relaxed_neutrality_risk(f, v, surrogate) + excess


def optimal_neutrality_bound(
    loss: Any,
    surrogate: Any,
    eta: float,
    *,
    gap: float = 0.0,
    n: int | None = None,
    complexity: float | None = None,
    margin_bound: float | None = None,
    delta: float = 0.05,
    kind: str = "population",
) -> float:
    """Return the upper bound on C_n,psi of the corollary, or on C_psi of Theorem 3, for an optimum.

    The corollary is C_n,psi <= psi(0) + (phi(0) + gap) / eta. It holds with certainty for every solution
    whose objective is within `gap` (mean form, as in the certificate) of the optimum, if eta > 0, phi >= 0,
    Omega >= 0 and Omega(0) = 0. With several viewpoints it holds for each with its own eta.

    Theorem 3 bounds C_psi on unseen data with probability 1 - delta. Its bound is returned if `n`,
    `complexity` and `margin_bound` are given, as in :func:`neutrality_bound`. They must belong to a class
    that contains the solution and was fixed before the data were seen.

    Examples
    --------
    >>> from nerm.atoms import Hinge
    >>> optimal_neutrality_bound(Hinge(), Hinge(), eta=4.0)
    1.25
    """
    if loss.facts.minimum < 0:  # the comparison with f = 0 needs R_n >= 0
        got = f"{loss!r}, which goes down to {loss.facts.minimum:g}"
        raise InvalidInputError("'loss' must be nonnegative", got, "Use the hinge, for instance")
    weight = as_positive(eta, "eta", "The corollary needs a neutrality term: use eta > 0")
    gap = as_nonnegative(gap, "gap", "Pass the certified gap, primal minus dual, in mean form")
    value = float(surrogate.facts.at_zero) + (float(loss.facts.at_zero) + gap) / weight
    given = [x is not None for x in (n, complexity, margin_bound)]
    if not any(given):
        return value
    if not all(given):
        must = "Theorem 3 must have all of 'n', 'complexity' and 'margin_bound'"
        got = f"{sum(given)} of 3"
        raise InvalidInputError(must, got, "Give all three, or none for the corollary about the sample")
    of_class = as_rows(n), np.zeros(1), complexity, margin_bound
    return value + _excess(surrogate, "surrogate", *of_class, delta, kind)


def _excess(
    function: Any, name: str, n: int, margins: Floats, complexity: Any, bound: Any, delta: Any, kind: str
) -> float:
    """Return the bound of a theorem minus the value on the sample.

    For a population complexity R, or an empirical complexity Rhat, it is::

        2 L R    +   c sqrt(ln(2/delta) / 2n)             kind "population"
        2 L Rhat + 3 c sqrt(ln(2 events/delta) / 2n)      kind "empirical"

    L and c are the Lipschitz constant and the range of `function` on [-bound, bound], where `bound` is the
    `margin_bound`; an error is raised if a margin exceeds it by more than rounding. `events` is 1 for the
    risk (`name` is "loss") and 2 for neutrality, which is a maximum of two risks. With the empirical
    complexity each of these risks needs a second deviation inequality, which bounds R by Rhat.
    """
    what, events = ("|f_i|", 1) if name == "loss" else ("|v_i f_i|", 2)
    do = "The values of the class must be bounded: bound ||w||, |b|, x and v"
    limit = as_nonnegative(bound, "margin_bound", do)
    i = int(np.abs(margins).argmax())
    if abs(margins[i]) > limit * (1 + 1e-9) + 1e-12:
        must = f"{what} must not exceed 'margin_bound', {limit:g}, for f to be in the class"
        do = "Use the bound (B R + beta, times G for neutrality) of a class that contains f"
        raise InvalidInputError(must, f"{abs(margins[i]):g} at index {i}", do)
    check_known(kind, "'kind'", ("population", "empirical"))
    do = "The class must have finite complexity: bound ||w|| and |b|"
    size = as_nonnegative(complexity, "complexity", do)
    slope, width = slope_and_range(function, limit, name)
    factor, count = (1.0, 2.0) if kind == "population" else (3.0, 2.0 * events)
    deviation = float(np.sqrt(np.log(count / as_delta(delta)) / (2.0 * n)))
    return 2.0 * slope * size + factor * width * deviation


def holdout_neutrality_bound(scores: Any, viewpoint: Any, *, delta: float = 0.05) -> float:
    """Return an upper bound on C_sgn from held-out rows, valid with probability 1 - delta.

    It is C_m,sgn + sqrt(2 ln(2/delta) / m), where C_m,sgn is C_sgn on the m held-out rows. scores and
    viewpoint are (m,). The rows must be i.i.d. and unseen: neither the fit nor the choice of a model may have
    used them. The bound is Hoeffding's two-sided inequality for the m values sign f sign v in {-1, +1}.

    Examples
    --------
    >>> round(holdout_neutrality_bound([1.0, -1.0] * 5000, [1.0, 1.0] * 5000, delta=0.05), 4)
    0.0272
    """
    risk = neutrality_risk(scores, viewpoint)
    return risk + float(np.sqrt(2.0 * np.log(2.0 / as_delta(delta)) / np.size(scores)))


def holdout_parity_bound(scores: Any, viewpoint: Any, *, delta: float = 0.05) -> float:
    """Return an upper bound on the absolute Calders-Verwer score from held-out rows.

    It is `|CV_m| + sqrt((ln(2/delta) / 2) (1/m_+ + 1/m_-))` and holds with probability 1 - delta. CV_m is the
    score on the held-out rows, and `m_+` and `m_-` are the numbers of rows with each sign of the viewpoint.
    scores and viewpoint are (m,). Given the viewpoints, the score is a difference of two means of independent
    values in [0, 1], and the bound is Hoeffding's two-sided inequality. The assumptions are those of
    :func:`holdout_neutrality_bound`.

    Examples
    --------
    >>> round(holdout_parity_bound([1.0, -1.0] * 5000, [1.0, 1.0, -1.0, -1.0] * 2500, delta=0.05), 4)
    0.0272
    """
    score = abs(calders_verwer_score(scores, viewpoint))
    favoured = as_sides(viewpoint, np.size(scores)) > 0
    inverse_sizes = 1.0 / favoured.sum() + 1.0 / (~favoured).sum()
    return score + float(np.sqrt(np.log(2.0 / as_delta(delta)) / 2.0 * inverse_sizes))


def holdout_rate_bound(hits: int, rows: int, *, delta: float = 0.05) -> float:
    """Return an upper bound on a probability, given how often its event was seen on held-out rows.

    This is the bound of Clopper and Pearson: the largest p for which at most `hits` events among `rows`
    independent rows have probability delta. It holds with probability 1 - delta. For a lower bound, subtract
    the upper bound for the complement from 1.

    Examples
    --------
    >>> round(holdout_rate_bound(200, 1000), 4), round(1 - holdout_rate_bound(800, 1000), 4)
    (0.222, 0.1794)
    """
    share = as_delta(delta)
    return 1.0 if hits >= rows else float(stats.beta.ppf(1.0 - share, hits + 1, rows - hits))


def worst_mixture(values: Any, low: Any, high: Any, total: tuple[float, float] = (0.0, np.inf)) -> float:
    """Return the largest mean of values over all mixtures whose shares are in given ranges.

    ::

        max  sum_c q_c values_c / sum_c q_c   subject to  low_c <= q_c <= high_c,  sum_c q_c in total

    This is a linear program in q / sum(q) and 1 / sum(q) (Charnes and Cooper). values, low and high are (k,).

    Examples
    --------
    >>> round(worst_mixture([0.1, 0.5], [0.4, 0.4], [0.6, 0.6], total=(1.0, 1.0)), 6)
    0.34
    """
    v, lower, upper = (np.asarray(given, dtype=float) for given in (values, low, high))
    eye, (least, most) = np.eye(len(v)), total
    found = linprog(
        np.append(-v, 0.0),
        A_ub=np.block([[eye, -upper[:, None]], [-eye, lower[:, None]]]),
        b_ub=np.zeros(2 * len(v)),
        A_eq=np.append(np.ones(len(v)), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * len(v) + [(1 / most, 1 / least if least > 0 else None)],
    )
    return float(v.max()) if found.fun is None else float(-found.fun)


#: The bounds from held-out rows: the name of the quantity, the function that measures it, and its bound.
HELD_OUT = (
    ("C_sgn", neutrality_risk, holdout_neutrality_bound),
    ("|difference in positive rates|", calders_verwer_score, holdout_parity_bound),
)


def slope_and_range(function: Any, bound: float, name: str) -> tuple[float, float]:
    """Return bounds on the Lipschitz constant L and the range c of a margin function.

    Both are taken on [-bound, bound], and c = max - min. The paper assumes psi: R -> [0, c], but a convex
    function that is bounded on all of R is constant. Therefore both constants are computed on the interval of
    margins that the class can take. By convexity the steepest slope is at an end of the interval. For a
    difference of convex functions, L is the sum of the constants of both functions.
    """
    if isinstance(function, DCFunction):
        slope = sum(slope_and_range(part, bound, name)[0] for part in function.parts[:2])
    else:
        slope = float(np.abs(function.subgradient(np.array([-bound, bound]))).max())
    low, high = extremes(function, bound, name)
    return min(slope, float(function.facts.lipschitz)), high - low


def extremes(function: Any, bound: float, name: str) -> tuple[float, float]:
    """Return the minimum and the maximum of a margin function on [-bound, bound].

    A convex or monotone function has its maximum at an end of the interval; a monotone function also has its
    minimum there. For a difference of convex functions, bounds on both are returned.
    """
    if isinstance(function, DCFunction) and not function.facts.monotone:
        (low, high), (least, most) = (extremes(part, bound, name) for part in function.parts[:2])
        return low - most, high - least
    low, high = sorted(_values(function, np.array([-bound, bound]), name).tolist())
    if not function.facts.monotone:
        inside = {"bounds": (-bound, bound), "method": "bounded", "options": {"xatol": 1e-12}}
        low = min(low, float(minimize_scalar(lambda m: float(function.value(m)), **inside).fun))
    return low, high


def _values(function: Any, points: Floats, name: str) -> Floats:
    values = np.asarray(function.value(points), dtype=float)
    if not np.isfinite(values).all():
        must = f"{name!r} must be finite on the values of the class"
        got = f"{function!r}, infinite on [{points[0]:g}, {points[-1]:g}]"
        raise InvalidInputError(must, got, "Use a smaller class, or a Lipschitz function such as the hinge")
    return values
