"""Compare solvers on seeded problems; nerm's certificate decides which runs succeeded.

Each run is a separate process, killed at the time limit. `compare_solvers` returns a table of the runs,
`summarize` summarizes this table and `figure` draws it.
"""

import importlib
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import nerm
from nerm.certify.solution import Status
from nerm.errors import InvalidInputError, UnsupportedProblemError
from nerm.experiments.running import Job, Row, as_grid, check_columns, reason_of, run_jobs
from nerm.model.problem import Problem
from nerm.typing import Floats, Matrix
from nerm.validation import as_positive, check_known
from nerm.warmup import warm_up


@dataclass(frozen=True)
class Case:
    """The description of one test problem; ``case.problem()`` builds the same problem every time.

    Attributes
    ----------
    name, family
        Name of the case in tables, and name of the group of cases that vary the same setting.
    n, d
        Number of rows and of columns. For real data, n is the largest number of rows and d is not used.
    density, condition
        Share of nonzero entries (below 1 gives a sparse matrix), and ratio of the largest to the smallest
        column scale.
    lam, eta
        Weights of the regularizer and of the neutrality term, in mean form.
    loss, surrogate, regularizer, kernel
        Names of atoms in `nerm`, and of a kernel ("" for a linear hypothesis).
    dataset
        "" for random data, or a name that `nerm.datasets.load` knows.
    seed
        Seed of the random data, or of the choice of rows from a data set.

    >>> case = Case("mine", "size", n=40, d=3)
    >>> case.problem()
    <Problem: ... on 40 rows, 3 coefficients, linear>
    """

    name: str
    family: str
    n: int = 300
    d: int = 20
    density: float = 1.0
    condition: float = 1.0
    lam: float = 0.01
    eta: float = 1.0
    loss: str = "Hinge"
    surrogate: str = "Hinge"
    regularizer: str = "SquaredL2"
    kernel: str = ""
    dataset: str = ""
    seed: int = 0

    def problem(self) -> Any:
        """Generate or load the data; return the `Problem` of this case."""
        X, y, v = self._real() if self.dataset else self._drawn()
        d = X.shape[1]
        # The groups of GroupL2 are pairs of adjacent columns; if d is odd, one group has three.
        groups = [group.tolist() for group in np.array_split(np.arange(d), max(d // 2, 1))]
        grouped = self.regularizer == "GroupL2"
        regularizer = nerm.GroupL2(groups) if grouped else getattr(nerm, self.regularizer)()
        loss, surrogate = (getattr(nerm, name)() for name in (self.loss, self.surrogate))
        objective = nerm.Risk(loss) + self.lam * regularizer + self.eta * nerm.Neutrality(surrogate)
        return objective.on(X, y, viewpoint=v, kernel=self.kernel or None)

    def _drawn(self) -> tuple[Matrix, Floats, Floats]:
        """Return random X, (n, d), with labels y and viewpoints v, (n,).

        y and v are the signs of two linear functions of X at an angle of about 60 degrees; each sign is
        flipped with probability 0.1.
        """
        import scipy.sparse as sp

        rng = np.random.default_rng([self.seed, self.n, self.d])
        X = rng.standard_normal((self.n, self.d))
        if self.density < 1:
            X *= rng.random(X.shape) < self.density
        w = rng.standard_normal(self.d) / np.sqrt(self.density * self.d)
        u = 0.5 * w + np.sqrt(0.75) * rng.standard_normal(self.d) / np.sqrt(self.density * self.d)
        noise = np.where(rng.random((2, self.n)) < 0.1, -1.0, 1.0)
        y, v = np.where(X @ np.stack([w, u], axis=1) > 0, 1.0, -1.0).T * noise
        for labels in (y, v):  # so that both classes occur
            labels[:2] = 1.0, -1.0
        X = X * np.geomspace(1.0, 1.0 / self.condition, self.d)
        return (sp.csr_array(X) if self.density < 1 else X), y, v

    def _real(self) -> tuple[Matrix, Floats, Floats]:
        data = nerm.datasets.load(self.dataset, coding="one-hot")
        rows = np.random.default_rng(self.seed).permutation(len(data.y))[: self.n]
        return data.X[rows], data.y[rows], data.viewpoint[rows]


def cases(which: str) -> list[Case]:
    """Return the problems of the set "default" or "quick"; ``cases.csv`` has one line per problem.

    UCI data sets are left out unless they are in the folder ``NERM_DATA``.

    >>> sorted({case.family for case in cases("quick")})
    ['atoms', 'condition', 'eta', 'kernel', 'lambda', 'size']
    """
    import pandas as pd

    table = pd.read_csv(Path(__file__).with_name("cases.csv"), keep_default_na=False)
    check_known(which, "'problems'", set(table["set"]))
    folder = Path(os.environ.get("NERM_DATA") or os.devnull)
    here = table["dataset"].map(lambda name: name in ("", "diabetes") or (folder / name).is_dir())
    rows = table[(table["set"] == which) & here].drop(columns="set")
    return [Case(**row) for row in rows.to_dict("records")]


def compare_solvers(
    problems: str | Problem | Sequence[Problem | Case] = "default",
    solvers: Sequence[Any] | None = None,
    *,
    tols: Sequence[float] = (1e-3, 1e-5, 1e-7),
    time_limit: float = 10.0,
    **options: Any,
) -> Any:
    """Run every solver on every problem at every accuracy; return a table with one row per run.

    Parameters
    ----------
    problems
        "default" (at least 60), "quick", a `nerm.Problem` of your own, or a list of problems and of `Case`.
    solvers
        Names of `nerm.solvers.available()` (default: all of them), or `Solver` objects that can be pickled.
    tols
        Relative duality gaps that nerm is to certify.
    time_limit
        Seconds after which the process of a run is killed. If a solver was killed at one accuracy, it is not
        run at a finer one on that problem; the row of the finer accuracy says so.
    options
        n_jobs, results and progress, as for `nerm.experiments.cross_validate`: the number of runs at the same
        time, each on one thread; a .csv file; whether to show a progress bar. A call with other problems,
        solvers or accuracies adds to the file, and the returned table has all rows of the file. A file from
        another version of nerm, or with another time limit, is refused.

    Returns
    -------
    DataFrame
        One row per run, with the columns

        - problem, family, n, d, solver, version, tol;
        - `seconds`: time of the solver, including the building of its model, without nerm's certificate;
        - `peak_mb`: growth of the process's memory, in megabytes (nan if it was killed or died);
        - `claim`: the solver's own status;
        - `status`: "solved" (the only success), "inaccurate", "no answer", "error", "crashed", "time limit",
          or "not taken" (the solver does not support the problem, which is no failure);
        - `certified_gap`: the relative gap that nerm certified;
        - `correct_claim`: 1 or 0 if the solver claims success, 0 if it claims "infeasible" or "unbounded"
          (every problem must have an optimum), else nan;
        - `reason`: why the run failed;
        - `case`: a checksum of the problem and its data.

        ``table.attrs`` has the time limit.

    >>> table = compare_solvers([Case("tiny", "size", n=20, d=2)], ["clarabel"], tols=[1e-5])
    >>> table[["problem", "solver", "status", "correct_claim"]].values.tolist()
    [['tiny', 'clarabel', 'solved', 1]]
    >>> mine = (nerm.Risk(nerm.Hinge()) + nerm.SquaredL2()).on([[0.0], [1.0], [3.0]], [0, 1, 1])
    >>> compare_solvers(mine, ["interior-point"], tols=[1e-5])["status"].tolist()
    ['solved']
    """
    limit = as_positive(time_limit, "time_limit")
    accuracies = as_grid(tols, "tols")[::-1]
    here = nerm.solvers.available()
    jobs = []
    given: Any = cases(problems) if isinstance(problems, str) else problems
    for number, case in enumerate([given] if isinstance(given, Problem) else given):
        if not isinstance(case, Problem | Case):
            raise InvalidInputError("'problems' must be Problems or Cases", repr(case)[:60], "Use 'quick'")
        if isinstance(case, Case):
            name, family, problem = case.name, case.family, case.problem()
        else:
            name, family, problem = f"given-{number}", "given", case
        of_case = {"problem": name, "family": family, "case": _digest(problem)}
        for solver in sorted(here) if solvers is None else solvers:
            if not isinstance(solver, nerm.solvers.Solver):
                check_known(solver, "'solvers'", here)
                solver = here[solver]
            place = {**of_case, "solver": solver.name, "version": solver.version()}
            places = tuple({**place, "tol": tol} for tol in accuracies)
            jobs.append(Job(places, partial(_series, problem, solver, limit)))
    if not jobs:
        must = "'problems' and 'solvers' must not be empty"
        raise InvalidInputError(must, "nothing to run", "Remove empty arguments to use the defaults")
    settings: Row = {"experiment": "compare_solvers", "nerm": nerm.__version__, "time_limit": limit}
    measured = ("n", "d", "peak_mb", "claim", "status", "certified_gap", "correct_claim", "reason")
    table = run_jobs(jobs, measured, settings, **options)
    table.attrs["time_limit"] = limit
    return table


def _digest(problem: Problem) -> str:
    """Return a checksum of a problem with its data."""
    from joblib import hash

    blocks = [(block.weights, block.targets) for block in problem.blocks]
    return str(hash((repr(problem), problem.hypothesis.X, blocks)))[:8]


def _series(problem: Any, solver: Any, limit: float, places: Sequence[Row]) -> Iterator[Row]:
    """Run one solver on one problem at each accuracy, coarsest first; yield one row per accuracy.

    Each run is a process of its own, whose allocations fail beyond 4 GB of memory (on Linux).
    """
    from nerm.solvers.process import run_with_deadline

    _warm_up()
    size = {"n": problem.n, "d": int(problem.hypothesis.X.shape[1])}
    slow = None
    for tol in (place["tol"] for place in places):
        if slow is None:
            outcome = run_with_deadline(_run, (problem, solver, tol), limit, memory=4096.0)
            found = outcome.result or _failure(outcome, limit)
            slow = tol if outcome.timed_out else None
        else:
            reason = f"not tried: the time was up at tol {slow:g} already"
            found = {"status": "time limit", "seconds": limit, "reason": reason}
        row: Row = {"claim": "", **size, **found, "reason": found.get("reason", "")[:300]}
        yield row | {"correct_claim": correct_claim(row["claim"], row["status"] == "solved")}


@cache
def _warm_up() -> None:
    """Import cvxpy and compile the numba functions, so that no measured time includes this."""
    warm_up()
    Case("warm", "warm", n=20, d=3).problem().solve(solver="clarabel")


def _failure(outcome: Any, limit: float) -> Row:
    """Return the columns status, reason and seconds of a run whose process returned no result."""
    if outcome.timed_out:
        return {"status": "time limit", "seconds": limit, "reason": f"killed after {limit:g} s"}
    if outcome.error is None:
        reason = f"its process ended with code {outcome.exit_code} and no answer"
        return {"status": "crashed", "reason": reason, "seconds": outcome.seconds}
    refused = isinstance(outcome.error, UnsupportedProblemError)
    return {"status": "not taken" if refused else "error", "reason": reason_of(outcome.error)}


def _run(problem: Problem, solver: Any, tol: float) -> Row:
    """Solve one problem inside its process; return the measured columns of its row."""
    threading.Thread(target=_exit_without_parent, args=(os.getppid(),), daemon=True).start()
    importlib.import_module(solver.package)  # the import is not measured
    before, started = _peak_megabytes(), time.perf_counter()
    solution = problem.solve(solver, tol)
    seconds = time.perf_counter() - started - solution.stats.certify_seconds
    peak, claim = round(_peak_megabytes() - before, 2), str(solution.stats.claim)
    row: Row = {"seconds": seconds, "peak_mb": peak, "claim": claim}
    if solution.status is Status.FAILED:
        return row | {"status": "no answer", "reason": solution.status.sentence}
    row["certified_gap"] = gap = solution.certificate.relative_gap
    if solution.status is Status.OPTIMAL:
        return row | {"status": "solved"}
    return row | {"status": "inaccurate", "reason": f"nerm certifies a relative gap of {gap:.1e} only"}


def _exit_without_parent(parent: int) -> None:
    """End this process when the process `parent` has ended."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _peak_megabytes() -> float:
    """Return the peak memory of this process in megabytes; nan on Windows.

    ru_maxrss is in kilobytes, on macOS in bytes.
    """
    try:
        import resource
    except ImportError:  # on Windows
        return np.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def correct_claim(claim: str, solved: bool) -> float:
    """Return 1 if a solver's own status is correct, 0 if it is wrong, nan if it claims nothing.

    A claim of "infeasible" or "unbounded" is wrong, because all test problems have an optimum. An inaccurate
    solution and an error are no claims.

    >>> [correct_claim(claim, True) for claim in ("optimal", "optimal_inaccurate", "infeasible_inaccurate")]
    [1, nan, 0]
    """
    if re.match(r"(optimal|solved|converged)\b(?!.*(inaccurate|; but))", claim, re.IGNORECASE):
        return int(solved)
    return 0 if re.match("(?!error).*(infeasible|unbounded)", claim, re.IGNORECASE) else np.nan


def summarize(table: Any, shift: float = 0.01) -> Any:
    """Return success rate, mean time and memory, one row per solver and accuracy.

    Parameters
    ----------
    table
        From `compare_solvers`.
    shift
        Shift of the geometric means, in seconds.

    Returns
    -------
    DataFrame
        With the columns

        - solver, tol;
        - taken: number of problems that the solver supports;
        - solved: share of these on which nerm certified the accuracy;
        - claims: number of runs in which the solver claimed success, infeasibility or unboundedness;
        - correct: share of these claims that the certificate confirms; nan without a claim;
        - mean_seconds: the shifted geometric mean exp(mean log(t + shift)) - shift of the times t over the
          problems taken. A failure counts as the time limit (``table.attrs["time_limit"]``; without it, the
          longest time in the table);
        - times_best: the geometric mean of (t + shift) / (best + shift) over the problems that this solver
          takes and at least one solver solved. Here best is the time of the fastest solver on that problem.
          Use this column to compare solvers that take different problems;
        - median_gap: median of the certified gaps;
        - peak_mb: largest growth of the process's memory, in megabytes.

    >>> import pandas as pd
    >>> rows = [["a", 1.0, "solved", 1, 1e-4], ["b", 4.0, "inaccurate", 0, 1e-1]]
    >>> names = ["solver", "seconds", "status", "correct_claim", "certified_gap"]
    >>> table = pd.DataFrame(rows, columns=names).assign(problem="p", tol=1e-3, peak_mb=2.0)
    >>> summarize(table)[["solver", "solved", "correct", "mean_seconds"]].round(3)
      solver  solved  correct  mean_seconds
    0      a     1.0      1.0           1.0
    1      b     0.0      0.0           4.0
    """
    ran = _ran(table)
    limit = float(ran.attrs.get("time_limit", ran["seconds"].max()))
    log_time = np.log(ran["seconds"].where(ran["solved"], limit) + shift)
    rows = ran.assign(log_time=log_time, log_ratio=log_time - np.log(ran["best"] + shift))
    found = rows.groupby(["solver", "tol"], sort=False, as_index=False).agg(
        taken=("solved", "size"),
        solved=("solved", "mean"),
        claims=("correct_claim", "count"),
        correct=("correct_claim", "mean"),
        mean_seconds=("log_time", "mean"),
        times_best=("log_ratio", "mean"),
        median_gap=("certified_gap", "median"),
        peak_mb=("peak_mb", "max"),
    )
    found["mean_seconds"] = np.exp(found["mean_seconds"]) - shift
    found["times_best"] = np.exp(found["times_best"])
    order = ["tol", "solved", "mean_seconds"]
    return found.sort_values(order, ascending=[False, False, True], ignore_index=True)


def labelled(table: Any) -> Any:
    """Make names unique.

    A solver that occurs with several versions gets its version added to its name, and a problem that occurs
    with several checksums gets its checksum added.

    >>> import pandas as pd
    >>> labelled(pd.DataFrame({"solver": ["a", "a", "b"], "version": ["1", "2", "1"]}))["solver"].tolist()
    ['a 1', 'a 2', 'b']
    """
    table = table.copy()
    for name, detail in (("solver", "version"), ("problem", "case")):
        if detail in table:
            several = table.groupby(name)[detail].transform("nunique") > 1
            table[name] = table[name].where(~several, table[name] + " " + table[detail])
    return table


def _ran(table: Any) -> Any:
    """Select the runs on problems that the solver supports, and add two columns.

    `solved` says whether the run succeeded. `best` is the shortest time of all solved runs on the same
    problem at the same accuracy; nan if there is none.
    """
    check_columns(table, ["problem", "solver", "tol", "status", "seconds"], "compare_solvers")
    ran = labelled(table)[table["status"] != "not taken"]
    solved = ran["status"] == "solved"
    best = ran["seconds"].where(solved).groupby([ran["tol"], ran["problem"]]).transform("min")
    return ran.assign(solved=solved, best=best)


def figure(table: Any, tol: float, axes: Any = None) -> Any:
    """Draw the performance profile, and seconds against the number of rows in the family "size".

    The left panel is the profile of Dolan and Moré (2002): the share of problems on which a solver takes at
    most a given factor times the time of the fastest solver. At factor 1 it is the share on which the solver
    was fastest, at the right edge the share that it solved. Shares are relative to the problems that at least
    one solver solved; a problem that a solver does not support counts as not solved. Solvers are sorted by
    the area under their curve.

    The right panel is log-log. Its legend has the exponent p of seconds = c n^p, fitted by least squares in
    logarithms to the solved runs of a solver on at least three sizes. p says little if a fixed cost per solve
    dominates the times (a few hundredths of a second through cvxpy).

    Parameters
    ----------
    table
        From `compare_solvers`.
    tol
        One of the accuracies in the table.
    axes
        Two Axes to draw on; by default a new figure is made.

    Returns
    -------
    ndarray of two Axes
    """
    from nerm.plots import finish, grid, style  # nerm.plots imports nerm.experiments

    ran = _ran(table)
    own = ran[ran["tol"] == tol]
    if own.empty:
        there = ", ".join(f"{t:g}" for t in sorted(set(table["tol"])))
        raise InvalidInputError(f"'tol' must be one in the table: {there}", f"{tol:g}", "Use one of them")
    solved = own[own["solved"]]
    if solved.empty:
        raise InvalidInputError("'table' must have a solved run", "none", "Look at its column 'reason'")
    left, right = axes = grid(axes, 2, 2, (5.75, 4.2))
    styles = {name: style(k) for k, name in enumerate(sorted(set(labelled(table)["solver"])))}
    ratios = (own["seconds"] / own["best"]).where(own["solved"]).groupby(own["solver"])
    curves = {name: np.sort(ratio.dropna()) for name, ratio in ratios}
    total, most = solved["problem"].nunique(), ratios.max().max()
    for solver in sorted(curves, key=lambda name: -np.log(2 * most / curves[name]).sum()):
        r = curves[solver]
        heights = np.concatenate([[0], np.arange(1, len(r) + 1), [len(r)]]) / total
        look = {**styles[solver], "markersize": 4, "markevery": [-1], "linewidth": 1.3, "label": solver}
        left.step(np.concatenate([[1.0], r, [1.3 * most]]), heights, where="post", **look)
    left.set(xscale="log", xlim=(1.0, 1.3 * most), ylim=(0.0, 1.02), title=f"tol {tol:g}")
    left.set(xlabel="time, as a multiple of the fastest solver's", ylabel=f"share of {total} problems solved")
    sizes = solved[solved["family"] == "size"].sort_values("n")
    for solver in sizes.groupby("solver")["seconds"].max().sort_values(ascending=False).index:
        n, seconds = sizes[sizes["solver"] == solver][["n", "seconds"]].to_numpy(dtype=float).T
        p = np.polyfit(np.log(n), np.log(seconds), 1)[0] if len(set(n)) >= 3 else None
        label = solver if p is None else f"{solver}  $n^{{{p:.2f}}}$"
        right.plot(n, seconds, **styles[solver], markersize=4, linewidth=1.2, label=label)
    right.set(xscale="log", yscale="log", xlabel="rows n", ylabel="seconds", title=f"tol {tol:g}")
    for ax in axes:
        finish(ax, "outside")
    return axes
