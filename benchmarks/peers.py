"""The contestants, nerm first. Each is a generator: it yields None once it is ready, then answers, ever more accurate.

It is asked no more after the first answer that is accurate enough, and only that answer's time counts: nobody
pays for having been asked too much or too little. `timed` takes the median of 5 runs where one takes less
than a second.

Settings. The cvxpy models tie the scores f = Xw + b by an equality; for kernels the exact dual is given as an
explicit QP (`nerm.svm.dual_qp`), which suits them better than the kernel primal. Compiling is part of the
time: a user pays for it too. Tolerances are the asked accuracy times 10, 1, 0.1 and 0.01, in the options of
SETTINGS; iteration limits are so high that only the clock stops a solver. LIBLINEAR and ReHLine know no free
intercept: they get a column of 10s, whose weight is part of their norm. LIBLINEAR, LogisticRegression and SVC
know no neutrality: they solve the easier problem of eta = 0. SVC runs at its default tolerance only, with as
much cache as nerm's SMO.
"""

from __future__ import annotations

import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from tasks import Task, hinge, size

CONSTANT = 10.0  # the column that stands for an intercept
CACHE = 500.0  # megabytes of kernel rows
REPEATS = 5
TIGHTER = (10.0, 1.0, 0.1, 0.01)
SETTINGS: dict[str, Callable[[float], dict[str, Any]]] = {
    "clarabel": lambda eps: {"tol_gap_abs": eps, "tol_gap_rel": eps, "tol_feas": eps, "max_iter": 1000},
    "piqp": lambda eps: {
        "eps_abs": eps, "eps_rel": eps, "eps_duality_gap_abs": eps, "eps_duality_gap_rel": eps, "max_iter": 1000,
    },
    "osqp": lambda eps: {"eps_abs": eps, "eps_rel": eps, "max_iter": 10**7, "polishing": True},
    "ecos": lambda eps: {"abstol": eps, "reltol": eps, "feastol": eps, "max_iters": 1000},
    "scs": lambda eps: {"eps_abs": eps, "eps_rel": eps, "max_iters": 10**7},
}  # fmt: skip
CVXPY = tuple(SETTINGS)
PLAIN = ("liblinear", "sklearn", "svc")  # they solve eta = 0


@dataclass
class Answer:
    """A hypothesis with the seconds it took; what else is known of the run goes to `facts`."""

    seconds: float
    coef: np.ndarray
    intercept: float
    note: str
    facts: dict[str, Any] = field(default_factory=dict)


Answers = Iterator[Answer | None]


def timed(call: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """Return the median time of 5 calls, or that of one if it takes a second or more, and what it returned."""
    times: list[float] = []
    while len(times) < repeats and (not times or times[0] < 1.0):
        started = time.perf_counter()
        found = call()
        times.append(time.perf_counter() - started)
    return float(np.median(times)), found


def small(task: Task) -> Task:
    """Return a tiny sibling, which loads and compiles what is loaded and compiled once."""
    return replace(task, n=200)


def peak() -> float:
    """Return the most mebibytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


# ---------------------------------------------------------------- nerm


def problem(task: Task, X: Any, y: np.ndarray, v: np.ndarray) -> Any:
    import nerm

    atom = nerm.Logistic() if task.is_logistic else nerm.Hinge()
    objective = nerm.Risk(atom) + task.lam / task.n * nerm.SquaredL2() + task.eta * nerm.Neutrality(atom)
    return objective.on(X, y, viewpoint=v, kernel="rbf" if task.is_kernel else None)


def engine(bound: Any) -> Any:
    """Prepare the engine on the rows of a problem."""
    from nerm.solvers.interior_point.engine import Engine

    return Engine(bound)


def relative_gap(answer: Any) -> float:
    return float((answer.details["primal"] - answer.details["dual"]) / abs(answer.details["primal"]))


def nerm_engine(task: Task, X: Any, y: np.ndarray, v: np.ndarray) -> Answers:
    """Bind the data and run the engine itself; its bound is recomputed here from its multipliers."""

    def solve(task: Task, *data: Any) -> tuple[Any, Any]:
        bound = problem(task, *data)
        return bound, engine(bound).answer(bound, task.accuracy, {})

    solve(small(task), *small(task).data())
    yield None
    seconds, (bound, found) = timed(lambda: solve(task, X, y, v))
    facts = {"peak": peak(), "data": size(X)}
    given = found.multipliers
    facts["bound"] = task.dual_bound(X, y, v, (given.alpha, given.beta_plus, given.beta_minus, given.theta))
    note = f"{found.iterations} iterations, {found.details['passes']} passes, {bound.hypothesis.n} rows"
    yield Answer(seconds, found.coef, found.intercept, note, facts)


def nerm_kernel(task: Task, X: Any, y: np.ndarray, v: np.ndarray) -> Answers:
    """Solve the problem as a user does, `solver="auto"`, nerm's certificate included."""
    problem(small(task), *small(task).data()).solve(tol=task.accuracy)
    yield None
    seconds, found = timed(
        lambda: problem(task, X, y, v).solve(tol=task.accuracy)
    )  # a fresh one: it keeps its matrix
    facts, m = {"peak": peak(), "data": size(X)}, found.multipliers
    facts["bound"] = task.dual_bound(X, y, v, (m.alpha, m.beta_plus, m.beta_minus, m.theta))
    note = f"{found.stats.solver}, {found.stats.certify_seconds:.3f} s of it for the certificate"
    yield Answer(seconds, found.coef, found.intercept, note, facts)


def nerm(task: Task, *data: Any) -> Answers:
    return nerm_kernel(task, *data) if task.is_kernel else nerm_engine(task, *data)


def path(task: Task, X: Any, y: np.ndarray, v: np.ndarray) -> Answers:
    """Time a path of 20 values of eta, then each of them alone and cold; the answer is the last one's."""
    etas = [0.0, *np.geomspace(0.01, 100, 19)]
    tiny = problem(small(task), *small(task).data())
    engine(tiny).answer(tiny, 1e-6, {})
    bound = problem(task, X, y, v)
    points = [bound.with_neutrality(eta) for eta in etas]
    yield None
    seconds, results = timed(lambda: list(engine(bound).answers(points, task.accuracy, {})))
    alone = [timed(lambda point=point: engine(bound).answer(point, task.accuracy, {})) for point in points]
    facts = {
        "cold": [t for t, _ in alone],
        "worst_gap": max(map(relative_gap, results)),
        "worst_cold_gap": max(relative_gap(found) for _, found in alone),
        "iterations": [found.iterations for found in results],
        "cold_iterations": [found.iterations for _, found in alone],
        "passes": sum(found.details["passes"] for found in results),
    }
    yield Answer(seconds, results[-1].coef, results[-1].intercept, "", facts)


def kernel_path(task: Task, X: Any, y: np.ndarray, v: np.ndarray) -> Answers:
    """Time a path of 20 values of eta with a kernel, then each of them alone and cold, certificates included."""
    etas = [0.0, *np.geomspace(0.01, 100, 19)]
    problem(small(task), *small(task).data()).path(etas[:2], tol=task.accuracy)
    yield None
    seconds, results = timed(lambda: problem(task, X, y, v).path(etas, tol=task.accuracy))

    def cold(eta: float) -> Any:
        return problem(replace(task, eta=eta), X, y, v).solve(tol=task.accuracy)

    alone = [timed(partial(cold, eta), 1) for eta in etas]
    facts = {
        "cold": [t for t, _ in alone],
        "worst_gap": max(found.certificate.relative_gap for found in results),
        "worst_cold_gap": max(found.certificate.relative_gap for _, found in alone),
        "iterations": [found.stats.iterations for found in results],
        "cold_iterations": [found.stats.iterations for _, found in alone],
        "passes": round(sum(found.stats.details.get("passes", 0) for found in results)),
    }
    yield Answer(seconds, results[-1].coef, results[-1].intercept, results[-1].stats.solver, facts)


# ---------------------------------------------------------------- through cvxpy


def by_cvxpy(solver: str, task: Task, *data: Any) -> Answers:
    solve = solved_dual if task.is_kernel else solved_primal
    solve(small(task), small(task).data(), solver, 1e-3)
    yield None
    for times in TIGHTER:
        tol = times * task.accuracy
        seconds, (coef, intercept, status) = timed(lambda tol=tol: solve(task, data, solver, tol))
        yield Answer(seconds, coef, intercept, f"{status}, tol {tol:g}", {"peak": peak()})


def solved_primal(task: Task, data: Any, solver: str, tol: float) -> tuple[np.ndarray, float, str]:
    import cvxpy as cp

    X, y, v = data
    w, b, f = cp.Variable(task.d), cp.Variable(), cp.Variable(task.n)
    atom = cp.logistic if task.is_logistic else (lambda m: cp.pos(1 + m))
    value = cp.sum(atom(-cp.multiply(y, f))) + task.lam / 2 * cp.sum_squares(w)
    if task.eta:
        value += task.eta * cp.maximum(*(cp.sum(atom(-cp.multiply(sign * v, f))) for sign in (1.0, -1.0)))
    problem = cp.Problem(cp.Minimize(value), [f == X @ w + b])
    problem.solve(solver=solver.upper(), **SETTINGS[solver](tol))
    if w.value is None:
        return np.full(task.d, np.nan), np.nan, problem.status
    return w.value, float(b.value), problem.status


def solved_dual(task: Task, data: Any, solver: str, tol: float) -> tuple[np.ndarray, float, str]:
    """Solve the kernel dual, its matrices handed over through cvxpy."""
    from nerm.svm import dual_qp

    found = dual_qp(*data, task.lam, task.eta, kernel="rbf").solve(solver, **SETTINGS[solver](tol))
    if found.model is None:
        return np.full(task.n, np.nan), np.nan, found.status
    return found.model.coef, float(found.model.intercept), found.status


# ---------------------------------------------------------------- without neutrality


def liblinear(task: Task, X: Any, y: np.ndarray, v: np.ndarray) -> Answers:
    from sklearn.svm import LinearSVC

    yield None
    for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5):
        settings = {
            "loss": "hinge",
            "dual": True,
            "intercept_scaling": CONSTANT,
            "max_iter": 10**6,
            "random_state": 0,
        }
        machine = LinearSVC(C=1 / task.lam, tol=tol, **settings)
        seconds, _ = timed(lambda machine=machine: machine.fit(X, y))
        yield Answer(seconds, machine.coef_[0], float(machine.intercept_[0]), f"eta = 0, tol {tol:g}")


def sklearn(task: Task, X: Any, y: np.ndarray, v: np.ndarray) -> Answers:
    from sklearn.linear_model import LogisticRegression

    yield None
    for tol in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7):
        machine = LogisticRegression(C=1 / task.lam, tol=tol, max_iter=10**5)
        seconds, _ = timed(lambda machine=machine: machine.fit(X, y))
        yield Answer(seconds, machine.coef_[0], float(machine.intercept_[0]), f"eta = 0, lbfgs, tol {tol:g}")


def svc(task: Task, X: Any, y: np.ndarray, v: np.ndarray) -> Answers:
    from sklearn.svm import SVC

    yield None
    machine = SVC(C=1 / task.lam, cache_size=CACHE)
    seconds, _ = timed(lambda: machine.fit(X, y))
    coef = np.zeros(task.n)
    coef[machine.support_] = machine.dual_coef_[0]
    yield Answer(seconds, coef, float(machine.intercept_[0]), "eta = 0, default tol")


# ---------------------------------------------------------------- ReHLine


def rehline(task: Task, X: Any, y: np.ndarray, v: np.ndarray) -> Answers:
    """Maximise over theta in [0, 1] the concave F(theta), one ReHLine run on 3 n hinges a value.

    ReHLine knows no maximum; max(C+, C-) is that of theta C+ + (1 - theta) C-, and F' = eta (C+ - C-) at the
    minimiser. Its zero is found by the Illinois rule (regula falsi that halves an end kept twice). Each run
    starts from the last one's multipliers and is as accurate as the gap so far deserves. Between two ends
    with F' of both signs, the point at which C+ = C- by interpolation is tried as well: it is nearly always
    better than either.
    """
    from rehline import ReHLine_solver

    column = np.full((task.n, 1), CONSTANT)
    wide = sp.hstack([X, sp.csr_matrix(column)], format="csr") if sp.issparse(X) else np.hstack([X, column])
    yield None
    best, gap, tol, theta, multipliers = (np.inf, None), np.inf, 1e-3, 0.5, None
    ends: dict[bool, list[Any]] = {}  # slope > 0 or not: theta, solution, slope, slope for the Illinois rule
    last, spent = None, 0.0

    def objective_at(beta: np.ndarray) -> float:
        return task.objective(X, y, v, beta[:-1], CONSTANT * beta[-1])

    for run in range(1, 61):
        started = time.perf_counter()
        weights = np.array([1.0, task.eta * theta, task.eta * (1 - theta)]) / task.lam
        U = np.vstack([-weights[0] * y, -weights[1] * v, weights[2] * v])
        V = np.repeat(weights[:, None], task.n, axis=1)
        found = ReHLine_solver(wide, U, V, Lambda=multipliers, max_iter=10**6, tol=tol, verbose=0)
        multipliers, tried = found.Lambda, [found.beta]
        f = wide @ found.beta
        slope = float(hinge(v * f).mean() - hinge(-v * f).mean())
        up = slope > 0
        if last == up and (not up) in ends:
            ends[not up][3] *= 0.5
        ends[up], last = [theta, found.beta, slope, slope], up
        if len(ends) == 2:
            low, high = ends[True], ends[False]
            share = low[2] / (low[2] - high[2])
            tried.append((1 - share) * low[1] + share * high[1])
        best = min(best, *((objective_at(beta), beta) for beta in tried), key=lambda pair: pair[0])
        before, gap = gap, task.gap(best[0])
        tol = max(0.1 * task.accuracy, min(0.1 * gap, tol if gap < 0.5 * before else 0.1 * tol))
        if len(ends) == 2:
            share = low[3] / (low[3] - high[3])
            theta = low[0] + min(max(share, 0.02), 0.98) * (high[0] - low[0])
        else:  # both ends of [0, 1] are ordinary optima: go there if the middle does not have the sign yet
            edge = 1.0 if up else 0.0
            theta = 0.5 * (theta + edge) if run < 3 else edge
        spent += time.perf_counter() - started
        beta = best[1]
        yield Answer(spent, beta[:-1], CONSTANT * beta[-1], f"{run} values of theta", {"partial": True})


CONTESTANTS: dict[str, Callable[..., Answers]] = {
    "nerm": nerm,
    "path": path,
    "kernel-path": kernel_path,
    "liblinear": liblinear,
    "sklearn": sklearn,
    "svc": svc,
    "rehline": rehline,
    **{solver: partial(by_cvxpy, solver) for solver in CVXPY},
}


def contest(name: str, task: Task, pipe: Any) -> None:
    """Run one contestant, here and now; send (word, row) as it goes: "ready", "answer", "partial", "end"."""
    warnings.simplefilter("ignore")  # an inaccurate answer is told by its gap
    try:
        data = task.data()
        for answer in CONTESTANTS[name](task, *data):
            if answer is None:
                pipe.send(("ready", {}))
                continue
            facts = {"peak": peak(), **answer.facts}  # before the objective takes memory of its own
            objective = np.nan
            if np.isfinite(answer.coef).all():
                objective = task.objective(*data, answer.coef, answer.intercept)
            pipe.send(
                (
                    "partial" if facts.pop("partial", False) else "answer",
                    {"seconds": answer.seconds, "objective": objective, "note": answer.note, **facts},
                )
            )
            if task.gap(objective) <= task.accuracy:
                break
    except Exception as error:
        pipe.send(("end", {"note": f"{type(error).__name__}: {error}".split("\n")[0][:70]}))
    else:
        pipe.send(("end", {}))
