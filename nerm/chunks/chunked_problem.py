"""An objective on chunks, `objective.on(nerm.Chunks(...))`: solve, path and the search for a target level."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nerm.atoms.difference import DCFunction
from nerm.atoms.hinges import Hinge
from nerm.atoms.smooth import Logistic
from nerm.certify.certificate import Certificate, from_bounds
from nerm.certify.multipliers import Multipliers
from nerm.certify.rounding import rounding_of_sums
from nerm.certify.solution import Solution, Stats, certify_bounds
from nerm.chunks.census import ChunkRows
from nerm.chunks.coding import LABELS, VIEWS, Terms
from nerm.chunks.kinks import FEW_ROWS, few_rows, on_rows
from nerm.chunks.newton import NEWTON
from nerm.chunks.passes import Method, Progress, mark_of, numbered, save_state, saved_state
from nerm.chunks.pieces import row_bytes
from nerm.chunks.source import Chunks
from nerm.errors import InvalidInputError, NotNeutralError, NotSolvedError, UnsupportedProblemError
from nerm.model.blocks import ObjectiveValue, objective_value, one_sided
from nerm.model.expressions import Limit, Neutrality, Objective, Risk
from nerm.model.hypothesis import LinearHypothesis
from nerm.model.problem import Problem, check_hypothesis
from nerm.neutralize.neutralizing import answers, measured_on, search_for
from nerm.neutralize.search import Search, with_named_weights
from nerm.neutralize.surrogates import surrogates_of
from nerm.neutralize.target import History, Neutralized, Target
from nerm.solvers import clock
from nerm.typing import Floats
from nerm.validation import as_positive, check_known

if TYPE_CHECKING:
    from nerm.solvers.base import Solver

MOST_PASSES = 50


@dataclass(frozen=True, eq=False)
class ChunkedProblem:
    """An `Objective` on rows that are read chunk by chunk: solve, path, neutralize, evaluate, certify.

    If the atoms are piecewise linear (hinge, identity ...), small problems on the rows near a kink are solved
    (`nerm.chunks.kinks`); if they are smooth, Newton steps are used (`nerm.chunks.newton`). Every solution is
    certified on all rows. The `slack` of the certificate, for rounding errors, is estimated from a sample
    here.

    Attributes
    ----------
    chunks : Chunks
        The rows.
    terms : Terms
        The objective and the coding, which make the blocks of a chunk.
    frame : Problem
        The problem without rows: its objective, classes and number of columns.
    sample : ChunkRows
        The rows sampled in the first pass; a fit starts from the solution on these rows.

    >>> import numpy as np, nerm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3)); v = np.sign(X[:, 0]); y = np.sign(X.sum(axis=1))
    >>> logistic = nerm.Logistic()
    >>> objective = nerm.Risk(logistic) + 0.1 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(logistic)
    >>> problem = objective.on(nerm.Chunks((X, y, v)))
    >>> [str(solution.status) for solution in problem.path([0.0, 1.0])]
    ['optimal', 'optimal']
    >>> bool(problem.evaluate([0.0, 0.0, 0.0]).total > problem.certify([0.0, 0.0, 0.0]).dual)
    True

    """

    chunks: Chunks
    terms: Terms
    frame: Problem
    sample: ChunkRows

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.terms.coding.n

    def __repr__(self) -> str:
        size = self.frame.hypothesis.size
        rows = f"{self.n} rows in {len(self.chunks.pieces)} pieces"
        return f"<ChunkedProblem: {self.frame.objective!r} on {rows}, {size} coefficients>"

    @cached_property
    def layout(self) -> list[tuple[Any, int, int]]:
        """The tuple (atom, term, side) of each block; see `nerm.model.blocks.Block`."""
        return [(b.atom, b.term, b.side) for b in self.terms.blocks(self.sample)]

    @cached_property
    def term_weights(self) -> Floats:
        """The weight of each block's term, (number of blocks,)."""
        return np.array([self.frame.objective.terms[term].weight for _, term, _ in self.layout])

    @cached_property
    def rows_limit(self) -> int:
        """The largest number of rows that may be kept between passes."""
        return max(self.sample.n, self.chunks.limit // row_bytes(self.sample.X))

    @cached_property
    def method(self) -> Method:
        """The solution method, chosen by the atoms: `FEW_ROWS` (rows near kinks) or `NEWTON`."""
        atoms = [atom for atom, _, _ in self.layout]
        curved = [a for a in atoms if np.isfinite(a.facts.smoothness) and a.facts.bend is None]
        kinked = [a for a in atoms if not np.isfinite(a.facts.smoothness)]
        if curved and kinked:
            must = "the functions of an objective on chunks must be all smooth, or all straight between kinks"
            got = f"{curved[0]!r} beside {kinked[0]!r}"
            raise UnsupportedProblemError(must, got, "Use one of the two for loss and surrogate")
        return FEW_ROWS if kinked else NEWTON

    def with_neutrality(self, eta: float) -> ChunkedProblem:
        """Return the same problem with neutrality weight eta; several terms keep their ratios."""
        return self.with_objective(self.frame.with_neutrality(eta).objective)

    def with_objective(self, objective: Objective) -> ChunkedProblem:
        """Return the problem with another objective on the same chunks."""
        frame, terms = replace(self.frame, objective=objective), replace(self.terms, objective=objective)
        return replace(self, frame=frame, terms=terms)

    def neutralize(
        self,
        limit: float,
        measure: Any = "calders_verwer_score",
        *,
        tol: float = 1e-6,
        on: Any = None,
        surrogate: Any = "auto",
        prefer: Any = "accuracy",
        keep: float = 0.5,
        random_state: int = 0,
    ) -> Neutralized:
        """Return the best solution whose measured neutrality on all rows is within a limit.

        The first neutrality weight and the best of several surrogates are found on the sample.

        Parameters
        ----------
        limit, measure, tol, on, prefer, keep, random_state
            As for `nerm.Problem.neutralize`; `measure` is one of `nerm.metrics`.
        surrogate : "auto", MarginFunction, or a list of these
            psi; "auto" is the hinge if the loss is piecewise linear, and the logistic function if it is
            smooth.

        Returns
        -------
        Neutralized
            The accuracy, AUC and positive rates in its trace are computed on the sample; its measure is
            computed on all rows. With ``Chunks(checkpoint="fit.npz")`` the solves write fit-0.npz, fit-1.npz
            and so on.

        """
        if isinstance(surrogate, str) and surrogate == "auto":
            surrogate = Logistic() if self.method is NEWTON else Hinge()
        surrogates = surrogates_of(surrogate)
        target = Target(limit, measure, tol, surrogates, prefer, keep, random_state)
        if target.metric.is_custom:
            must = "a measure on chunks must be one of nerm.metrics"
            raise InvalidInputError(
                must, repr(target.metric.name), "Use 'calders_verwer_score', for instance"
            )
        frame, sample = self.frame, self.sample
        if not frame.viewpoints:
            must = "chunks must bring a viewpoint to be neutral to"
            raise InvalidInputError(must, "none", "Yield (X, y, viewpoint)")
        options_on: dict[str, Any] = {"sample_weight": sample.sample_weight, "intercept": frame.intercept}
        small = frame.objective.on(sample.X, sample.y, viewpoint=dict(sample.viewpoints), **options_on)
        rough, first = search_for(small, replace(target, tol=target.rough_tol)), None
        with suppress(NotNeutralError):  # the search on all rows will fail too
            (found,) = answers([rough])
            surrogates = [found.surrogate]
            first = found.eta if isinstance(found.eta, float) and found.eta > 0 else None
        history = History(rows=rough.history.rows)
        given = small, target, rough.viewpoints, rough.row_weight, rough.used
        search = ChunkedSearch(*given, first=first, history=history, whole=self)
        elsewhere = measured_on(on, frame, search.metric, search.viewpoints)
        search.measured = elsewhere or search.measured_on_all_rows
        candidate = search.find(surrogates[0])
        if candidate is None:
            raise search.error(surrogates)
        return search.answer(candidate, surrogates[0], pd.DataFrame())

    def sweep(self, work: Callable[[Any], Any]) -> Any:
        """Do one pass: return the sum of work(chunk) over all chunks; raise if the number of rows changed."""
        found = self.chunks.sweep(work)
        if found.rows != self.n:
            must = "chunks must not change between passes"
            got = f"{found.rows} rows, {self.n} before"
            raise InvalidInputError(must, got, "Read from files that nobody writes to")
        return found

    def value(self, sums: Floats, coef: Floats) -> ObjectiveValue:
        """Return the objective value at `coef` from the sum of each block, (number of blocks,)."""
        blocks = zip(self.layout, sums / self.terms.divisor, strict=True)
        means = {(term, side): mean for (_, term, side), mean in blocks}
        return objective_value(self.frame.objective, means, lambda omega: omega.value(coef))

    def evaluate(self, coef: Any, intercept: float = 0.0) -> ObjectiveValue:
        """Return the objective at (coef, intercept), in total and by term, after one pass."""
        state = self._state(coef, intercept)
        return self.value(self.sweep(self.method.work(self, state)).values, state.at[0])

    def certify(self, coef: Any, intercept: float = 0.0, tol: float = 1e-6) -> Certificate:
        """Return the certificate of a hypothesis: its value on all rows, and a lower bound."""
        return self._certificate(self._after_pass(self._state(coef, intercept), tol))

    def _state(self, coef: Any, intercept: float) -> Progress:
        """Return the state before a pass at this hypothesis, with theta = 1/2 for every two-sided term."""
        at = check_hypothesis(self.frame, coef, intercept)
        return Progress(at, np.full(sum(side == 1 for _, _, side in self.layout), 0.5), at)

    def _after_pass(self, state: Progress, tol: float) -> Progress:
        """Do a pass at `state.at`; return the state with the new best value, bound and next hypothesis."""
        work = self.method.work(self, state)
        found = self.sweep(work)
        value = self.value(found.values, state.at[0]).total
        state = replace(state, passes=state.passes + 1)
        if value < state.value:
            sums = {"values": found.values, "decisions": found.decisions}
            state = replace(state, best=state.at, value=value, **sums)
        return state if self._done(state, tol) else self.method.next_state(self, state, work, found, tol)

    def _done(self, state: Progress, tol: float) -> bool:
        """Whether the certified relative gap of the best hypothesis is at most `tol`."""
        return np.isfinite(state.value) and self._certificate(state).relative_gap <= tol

    def _certificate(self, state: Progress) -> Certificate:
        """Return the certificate of the best hypothesis so far, from sums over all rows."""
        sizes = abs(state.value) + (abs(state.bound) if np.isfinite(state.bound) else 0.0) + self.scale
        slack = rounding_of_sums(self.sample_problem, *state.best, self.n, sizes)
        return from_bounds(state.value, state.bound, self.scale, slack)

    @cached_property
    def sample_problem(self) -> Problem:
        """The problem on the sample of rows that is kept in memory."""
        rows = few_rows(self.sample.X, self.terms.blocks(self.sample), np.arange(self.sample.n))
        return replace(on_rows(self, rows), divisor=self.terms.divisor * self.sample.n / self.n)

    @cached_property
    def scale(self) -> float:
        """The objective at f = 0, computed without a pass because neutrality weights have mean 1."""
        risk, neutrality = self.terms.coding.total, self.terms.divisor
        terms = [self.frame.objective.terms[term].term for _, term, _ in self.layout]
        totals = [neutrality if isinstance(term, Neutrality) else risk for term in terms]
        at_zero = np.array([atom.facts.at_zero for atom, _, _ in self.layout])
        return self.value(at_zero * totals, np.zeros(self.frame.hypothesis.size)).total

    def solve(
        self,
        solver: str | Solver = "auto",
        tol: float = 1e-6,
        *,
        strict: bool = False,
        time_limit: float | None = None,
        **options: Any,
    ) -> Solution:
        """Solve and return a `Solution`, optimal only if the gap certified on all rows is at most `tol`.

        Parameters
        ----------
        solver : str
            Must be ``"auto"``; the atoms determine the method.
        tol : float
            The relative duality gap.
        strict : bool
            Raise `NotSolvedError` instead of returning a solution that is not optimal.
        time_limit : float, optional
            Seconds after which no further pass is started.
        options
            ``start``: (coef, intercept) of the first pass, by default the solution on the sample.
            ``max_passes``: the largest number of passes. ``checkpoint``: a file that is written atomically
            after each pass, by default the checkpoint of `nerm.Chunks`; if it exists, the fit continues from
            it.

        Returns
        -------
        Solution
            It has no multipliers per row; ``stats.details`` has the number of passes and of kept rows.

        """
        if solver != "auto":
            must = "the solver of a problem on chunks must be 'auto'"
            raise UnsupportedProblemError(must, repr(solver), "Leave it out, or bind rows in memory")
        for name in options:
            check_known(name, "an option of a problem on chunks", ("start", "max_passes", "checkpoint"))
        start, max_passes = options.get("start"), options.get("max_passes", MOST_PASSES)
        started, deadline, tol = time.perf_counter(), clock.after(time_limit), as_positive(tol, "tol")
        checkpoint = options.get("checkpoint", self.chunks.checkpoint)
        mark = "" if checkpoint is None else mark_of(self)
        state = saved_state(checkpoint, mark) or self._begin(start, tol)
        while not self._done(state, tol):
            if state.passes and (state.passes >= max_passes or clock.is_up(deadline)):
                break
            state = self._after_pass(state, tol)
            if checkpoint is not None:
                save_state(checkpoint, state, mark)
        solution = self._solution(state, tol, time.perf_counter() - started, timed_out=clock.is_up(deadline))
        if strict and not solution.status.success:
            raise NotSolvedError(f"{solution.status.sentence} {solution.certificate}.")
        return solution

    def _begin(self, start: tuple[Any, float] | None, tol: float) -> Progress:
        """Return the state before the first pass: at a given start, or at the solution on the sample."""
        if start is not None:
            return self._state(*start)
        found = self.sample_problem.solve("auto", max(tol, tol ** (2 / 3)))
        state = self._state(found.coef, float(found.intercept))
        return state if found.multipliers is None else replace(state, thetas=found.multipliers.thetas)

    def _solution(self, state: Progress, tol: float, seconds: float, *, timed_out: bool) -> Solution:
        value = self.value(state.values, state.best[0])
        details = {"passes": state.passes, "rows": self.n, "kept": state.kept, "decisions": state.decisions}
        told: dict[str, Any] = {"solve_seconds": seconds, "details": details, "timed_out": timed_out}
        stats = Stats("chunks", iterations=state.passes, **told)
        none = Multipliers(np.zeros((len(self.layout), 0)), state.thetas, one_sided(self.frame))
        return certify_bounds(self.frame, state.best, value, none, self._certificate(state), stats, tol)

    def path(
        self,
        eta: Sequence[float],
        solver: str | Solver = "auto",
        tol: float = 1e-6,
        *,
        strict: bool = False,
        time_limit: float | None = None,
        **options: Any,
    ) -> list[Solution]:
        """Solve for every neutrality weight in `eta`, each warm-started from the previous solution.

        Return one `Solution` per weight. `time_limit`, in seconds, applies to the whole path. With
        ``checkpoint="fit.npz"`` the solves write fit-0.npz, fit-1.npz and so on; other options as for
        `solve`.
        """
        deadline, found = clock.after(time_limit), list[Solution]()
        checkpoint = options.get("checkpoint", self.chunks.checkpoint)
        for number, one in enumerate(eta):
            left = None if time_limit is None else clock.left(deadline)
            options["checkpoint"] = numbered(checkpoint, number)
            at = self.with_neutrality(one)
            found.append(at.solve(solver, tol, strict=strict, time_limit=left, **options))
            options["start"] = (found[-1].coef, found[-1].intercept)
        return found


def bind_chunks(
    objective: Objective,
    chunks: Chunks,
    *,
    intercept: bool = True,
    groups: bool = False,
    weighted: bool = False,
    class_weight: tuple[float, float] = (1.0, 1.0),
) -> ChunkedProblem:
    """Bind an objective to chunks and do the first pass; `Objective.on` calls this function.

    Estimators set three more parameters, as they do for rows in memory: `groups` reads viewpoints as groups,
    `weighted` multiplies the neutrality weights by the sample weights, and `class_weight` multiplies the risk
    of the classes (-1, +1).
    """
    _check(objective)
    coding = chunks.coding(groups=groups)
    sample = coding.coded(chunks.census.sample)
    terms = Terms(objective, coding, weighted, class_weight)
    if not coding.groups and any(isinstance(t.term, Neutrality) for t in objective.terms):
        must = "chunks must bring a viewpoint when the objective has a neutrality term"
        raise InvalidInputError(must, "none", "Yield (X, y, viewpoint), or drop the term")
    none = np.zeros(0)
    frame = Problem(
        objective=objective,
        hypothesis=LinearHypothesis(np.zeros((0, sample.X.shape[1]))),
        y=none,
        classes=coding.classes,
        viewpoints=dict.fromkeys(coding.groups, none),
        sample_weight=none,
        intercept=bool(intercept),
        divisor=terms.divisor,
        blocks=(),
    )
    for _, omega in frame.regularizers:
        omega.check(frame.hypothesis.size)
    problem = ChunkedProblem(chunks, terms, frame, sample)
    _ = problem.method, problem.scale  # both raise an error if the problem cannot be solved
    return problem


def _check(objective: Objective) -> None:
    if not any(isinstance(t.term, Risk) for t in objective.terms):
        do = "Add Risk(Hinge()), for instance"
        raise InvalidInputError("an objective must contain a risk", repr(objective), do)
    if objective.constraints:
        kind = "limit" if any(isinstance(c, Limit) for c in objective.constraints) else "constraint"
        must = "an objective on chunks must have no constraints"
        raise UnsupportedProblemError(must, f"a {kind}", "Use neutralize(limit), or rows in memory")
    for t in objective.terms:
        atom = getattr(t.term, "loss", getattr(t.term, "surrogate", None))
        if isinstance(atom, DCFunction):
            must = "an objective on chunks must be convex"
            raise UnsupportedProblemError(must, repr(atom), "Use a margin function, or rows in memory")


# --- a limit on measured neutrality -------------------------------------------------------------------


@dataclass(eq=False)
class ChunkedSearch(Search):
    """A search for the neutrality weight that solves on all rows; its problem in memory holds the sample."""

    whole: Any = None

    def objective(self, surrogate: Any, weights: Floats) -> Objective:
        """Return the objective with one one-sided term per part of the measure.

        The neutrality weights of its terms are names, because an array would fit the rows of the sample only.
        """
        objective = super().objective(surrogate, weights)
        names = list(self.metric.weights) * len(self.viewpoints)
        return with_named_weights(objective, names)

    def solution(self, objective: Objective, start: Solution | None = None) -> Solution:
        """Solve on all rows."""
        at = None if start is None else (start.coef, start.intercept)
        whole = self.whole.with_objective(objective)
        checkpoint = numbered(self.whole.chunks.checkpoint, len(self.history.candidates))
        return whole.solve(tol=self.target.tol, start=at, checkpoint=checkpoint)

    def scores(self, solution: Solution) -> Floats:
        """Return the scores of the sample."""
        return np.asarray(self.whole.sample.X @ solution.coef + solution.intercept)

    def measured_on_all_rows(self, solution: Solution) -> Floats:
        """Return the signed parts of the measure, computed from the counted decisions on all rows."""
        names, decisions = list(self.whole.terms.coding.groups), solution.stats.details["decisions"]
        y, v, f = np.repeat(LABELS, 2), np.repeat(VIEWS, 2), np.tile([-1.0, 1.0], 4)
        found = []
        for name in self.viewpoints:
            weight = decisions[1 + names.index(name)].ravel()
            there = weight > 0
            found += self.metric.parts(y[there], f[there], v[there], weight[there])
        return np.array(found)
