"""An objective on chunks, `objective.on(nerm.Chunks(...))`.

It has the methods solve, path, and neutralize, which searches for a model within a limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nerm.atoms.losses import Hinge, Logistic
from nerm.atoms.regularizer import Regularizer
from nerm.certify.certificate import Certificate, from_bounds, rounding_of_sums
from nerm.certify.multipliers import Multipliers
from nerm.certify.solution import Solution, Stats, certify_bounds
from nerm.chunks import kinks, proximal
from nerm.chunks.coding import Terms
from nerm.chunks.pieces import row_bytes
from nerm.chunks.proximal import (
    Progress,
    counted,
    mark_of,
    numbered,
    save_state,
    saved_state,
    signs_of,
    sums_at,
)
from nerm.chunks.source import Chunks
from nerm.errors import InvalidInputError, NotNeutralError, NotSolvedError, UnsupportedProblemError
from nerm.metrics import SOME_THRESHOLDS, Thresholds, thresholds
from nerm.model.blocks import ObjectiveValue, by_side, objective_value, two_sided
from nerm.model.expressions import Neutrality, Objective, Risk
from nerm.model.hypothesis import LinearHypothesis, sorted_csr
from nerm.model.problem import Problem, SolveMethods, check_hypothesis, without_rows
from nerm.neutralize.neutralizing import answers, measured_on, search_for
from nerm.neutralize.search import Search, surrogates_of, with_named_weights
from nerm.neutralize.target import Neutralized, Target
from nerm.signs import sign
from nerm.solvers import clock
from nerm.solvers.progress import print_line
from nerm.typing import Floats
from nerm.validation import as_positive, check_known
from nerm.viewpoint import shown_groups, warn_of_numbers

if TYPE_CHECKING:
    from nerm.solvers.base import Solver

MOST_PASSES = 50


@dataclass(frozen=True, eq=False)
class ChunkedProblem(SolveMethods):
    """An `Objective` on rows that are read chunk by chunk.

    If the atoms are piecewise linear (hinge, identity ...), small problems on the rows near a kink are solved
    first (`nerm.chunks.kinks`). If that does not halve the gap in every pass, or for other atoms, all rows
    are solved together if they fit into memory, and else by proximal points (`nerm.chunks.proximal`). Every
    solution is certified on all rows. The `slack` of the certificate, for rounding errors, is estimated from
    a sample here.

    The solver must be ``"auto"``. The options of `solve` and `path` are ``start``, the (coef, intercept) of
    the first pass, by default the solution on the sample; ``max_passes``; and ``checkpoint``, a file that is
    written atomically after each pass, by default the checkpoint of `nerm.Chunks`. If it exists, the fit
    continues from it. Solutions have no multipliers per row; ``stats.details`` has the number of passes and
    of kept rows. With ``checkpoint="fit.npz"`` the solves of a path and of `neutralize` write fit-0.npz,
    fit-1.npz and so on.

    `neutralize` finds the first neutrality weight and the best of several surrogates on the sample. Its
    surrogate "auto" is the hinge if the loss is piecewise linear, and the logistic function if it is smooth.
    Accuracy, AUC and positive rates in its trace are those of the sample; the measure is that of all rows.

    Attributes
    ----------
    chunks : Chunks
        The rows.
    terms : Terms
        The objective and the coding, which make the blocks of a chunk.
    sample : Problem
        The problem on the rows that were sampled in the first pass; a fit starts from its solution.

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
    sample: Problem

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.terms.coding.n

    @property
    def groups(self) -> Mapping[str, tuple[Any, Any]]:
        """The values that became -1 and +1, for each viewpoint of two different values."""
        return self.sample.groups

    def __repr__(self) -> str:
        rows, size = f"{self.n} rows in {len(self.chunks.pieces)} pieces", self.sample.hypothesis.size
        read = shown_groups({"y": tuple(self.sample.classes.tolist()), **self.groups})
        parts = [f"{self.terms.objective!r} on {rows}, {size} coefficients", read]
        return f"<ChunkedProblem: {'; '.join(filter(None, parts))}>"

    @property
    def objective(self) -> Objective:  # type: ignore[override]
        """The objective."""
        return self.terms.objective

    def with_objective(self, objective: Objective) -> ChunkedProblem:
        """Return the problem with another objective on the same chunks."""
        terms = replace(self.terms, objective=objective)
        sample = replace(self.sample, objective=objective, blocks=terms.blocks(self.sample))
        return replace(self, terms=terms, sample=sample)

    _reweighted = with_objective

    def _solve_all(
        self,
        solver: str | Solver,
        verbose: bool,
        problems: list[ChunkedProblem],
        tol: float,
        strict: bool,
        time_limit: float | None,
        options: dict[str, Any],
    ) -> list[Solution]:
        """Solve problems on the same chunks, each from the solution of the previous one.

        Several problems have one checkpoint each. The options are those of `ChunkedProblem`.
        """
        if solver != "auto":
            must = "the solver of a problem on chunks must be 'auto'"
            raise UnsupportedProblemError(must, repr(solver), "Remove solver=..., or pass rows in memory")
        for name in options:
            check_known(name, "an option of a problem on chunks", ("start", "max_passes", "checkpoint"))
        deadline, found, tol = clock.after(time_limit), list[Solution](), as_positive(tol, "tol")
        checkpoint = options.pop("checkpoint", problems[0].chunks.checkpoint)
        for number, problem in enumerate(problems):
            options["checkpoint"] = checkpoint if len(problems) == 1 else numbered(checkpoint, number)
            found.append(problem._fit(tol, verbose, deadline, options))
            options["start"] = (found[-1].coef, found[-1].intercept)
            if strict and not found[-1].status.success:
                raise NotSolvedError(f"{found[-1].status.sentence} {found[-1].certificate}.")
        return found

    def _neutralize(self, limit: float, measure: Any, **options: Any) -> Neutralized:
        return neutralize(self, limit, measure, **options)

    @cached_property
    def is_straight(self) -> bool:
        """Whether all atoms are piecewise linear."""
        quadratics = [part.facts.quadratic for block in self.sample.blocks for part in block.atom.parts]
        unsplit = any(not block.atom.parts for block in self.sample.blocks)
        return not unsplit and all(one is not None and one[1] == 0 for one in quadratics)

    def method(self, state: Progress) -> Any:
        """Return the module for the next pass: `kinks`, or `proximal` once there is a centre.

        Each of the two modules has two functions. `work(problem, state)` returns a function of a raw chunk;
        the pass at ``state.at`` applies it to every chunk and adds up the results. `next_state(problem,
        state, work, sums, tol)` returns the state with a new bound and the next hypothesis.
        """
        return proximal if state.tau else kinks

    def sweep(self, work: Callable[[Any], Any]) -> Any:
        """Do one pass: return the sum of work(chunk) over all chunks.

        Raise an error if the number of rows changed since the first pass.
        """
        found = self.chunks.sweep(work)
        rows = 0 if found is None else found["rows"]
        if rows != self.n:
            must, got = "chunks must not change between passes", f"{rows} rows now, {self.n} before"
            do = "Read files that nobody writes to, and let a callable make a new iterator at every call"
            raise InvalidInputError(must, got, do)
        return found

    def value(self, sums: Floats, coef: Floats) -> ObjectiveValue:
        """Return the objective value at `coef` from the sum of each block, (number of blocks,)."""
        means = by_side(self.sample.blocks, (sums / self.terms.divisor).tolist())
        return objective_value(self.terms.objective, means, lambda omega: omega.value(coef))

    def evaluate(self, coef: Any, intercept: float = 0.0) -> ObjectiveValue:
        """Return the objective at (coef, intercept), in total and by term, after one pass."""
        at = np.append(*check_hypothesis(self.sample, coef, intercept))
        return self.value(self.sweep(partial(sums_at, terms=self.terms, at=at))["values"], at[:-1])

    def certify(self, coef: Any, intercept: float = 0.0, tol: float = 1e-6) -> Certificate:
        """Return the certificate of a hypothesis: its value on all rows, and a lower bound."""
        return self._certificate(self._after_pass(self._state(coef, intercept), tol))

    def _state(self, coef: Any, intercept: float) -> Progress:
        """Return the state before a pass at this hypothesis.

        Every two-sided term has theta = 1/2.
        """
        at = np.append(*check_hypothesis(self.sample, coef, intercept))
        state = Progress(at, np.full(len(two_sided(self.sample)), 0.5), at)
        return state if self.is_straight else self._with_next_method(state)

    def _with_next_method(self, state: Progress) -> Progress:
        """Return the state before the next pass, by another method than the passes before.

        The next pass keeps all rows if they fit into memory; otherwise `proximal` begins. If the Hessians of
        `proximal` do not fit either, the next passes keep more and more rows near a kink.
        """
        bytes_of_rows = self.n * row_bytes(self.sample.hypothesis.X)
        if not state.keeps_all and 3 * bytes_of_rows <= self.chunks.memory:
            return replace(state, keeps_all=True, gap=np.inf)
        hessians = 8 * len(self.sample.blocks) * self.sample.hypothesis.size**2
        fits = 3 * hessians <= self.chunks.limit or not self.is_straight
        return proximal.begin(state) if fits else state

    def _after_pass(self, state: Progress, tol: float) -> Progress:
        """Do a pass at `state.at` and return the next state.

        It has the new best value, the new bound and the next hypothesis.
        """
        method = self.method(state)
        work = method.work(self, state)
        found = self.sweep(work)
        value = self.value(found["values"], state.at[:-1]).total
        state = replace(state, passes=state.passes + 1)
        if value < state.value:
            sums = {name: found[name] for name in ("values", "decisions")}
            state = replace(state, best=state.at, value=value, **sums)
        if self._done(state, tol):
            return state
        before, state = state.gap, method.next_state(self, state, work, found, tol)
        if method is proximal:
            return state
        gap = state.value - state.bound
        return replace(state, gap=gap) if gap <= 0.5 * before else self._with_next_method(state)

    def _done(self, state: Progress, tol: float) -> bool:
        """Whether the certified relative gap of the best hypothesis is at most `tol`."""
        return np.isfinite(state.value) and self._certificate(state).relative_gap <= tol

    def _certificate(self, state: Progress) -> Certificate:
        """Return the certificate of the best hypothesis so far, from sums over all rows."""
        sizes = abs(state.value) + (abs(state.bound) if np.isfinite(state.bound) else 0.0) + self.scale
        slack = rounding_of_sums(self.sample, state.best[:-1], float(state.best[-1]), self.n, sizes)
        return from_bounds(state.value, state.bound, self.scale, slack)

    @cached_property
    def scale(self) -> float:
        """The objective at f = 0.

        For a classification it is computed without a pass over the chunks, because the neutrality weights
        have mean 1. A regression needs one pass.
        """
        if self.terms.objective.is_regression:
            return self.evaluate(np.zeros(self.sample.hypothesis.size)).total
        totals = {"risk": self.terms.coding.total, "neutrality": self.terms.divisor}
        kinds = [term.kind for term in self.terms.objective.every_term]
        sums = [block.atom.facts.at_zero * totals[kinds[block.term]] for block in self.sample.blocks]
        return self.value(np.array(sums), np.zeros(self.sample.hypothesis.size)).total

    def _begin(self, start: tuple[Any, float] | None, tol: float) -> Progress:
        """Return the state before the first pass.

        It is at the given start (coef, intercept), or at the solution on the sample.
        """
        if start is not None:
            return self._state(*start)
        found = self.sample.solve("auto", max(tol, tol ** (2 / 3)))
        state = self._state(found.coef, float(found.intercept))
        return state if found.multipliers is None else replace(state, thetas=found.multipliers.thetas)

    def _fit(self, tol: float, verbose: bool, deadline: float, options: Mapping[str, Any]) -> Solution:
        """Do passes until the certified relative gap is at most `tol`.

        The options are those of `solve`.
        """
        started, checkpoint = time.perf_counter(), options["checkpoint"]
        mark = "" if checkpoint is None else mark_of(self)
        state = saved_state(checkpoint, mark) or self._begin(options.get("start"), tol)
        most = options.get("max_passes", MOST_PASSES)
        while not self._done(state, tol):
            if state.passes and (state.passes >= most or clock.is_up(deadline)):
                break
            state = self._after_pass(state, tol)
            if verbose:
                gap, spent = self._certificate(state).relative_gap, time.perf_counter() - started
                print_line("chunks", self.n, state.value, gap, spent, f"pass {state.passes}")
            if checkpoint is not None:
                save_state(checkpoint, state, mark)
        spent, late = time.perf_counter() - started, clock.is_up(deadline)
        details = {"passes": state.passes, "rows": self.n, "kept": state.kept, "decisions": state.decisions}
        stats = Stats("chunks", iterations=state.passes, solve_seconds=spent, details=details, timed_out=late)
        multipliers = Multipliers(np.zeros((len(state.values), 0)), state.thetas)
        problem = replace(without_rows(self.sample), divisor=self.terms.divisor)
        best, certificate = (state.best[:-1], float(state.best[-1])), self._certificate(state)
        value = self.value(state.values, best[0])
        return certify_bounds(problem, best, value, multipliers, certificate, stats, tol)


def bind_chunks(
    objective: Objective,
    chunks: Chunks,
    *,
    intercept: bool = True,
    groups: bool = False,
    weighted: bool = False,
    class_weight: tuple[float, float] = (1.0, 1.0),
) -> ChunkedProblem:
    """Bind an objective to chunks and do the first pass.

    `Objective.on` calls this function. Estimators set three more parameters, as they do for rows in memory:
    `groups` reads viewpoints as groups, `weighted` multiplies the neutrality weights by the sample weights,
    and `class_weight` multiplies the risk of the classes (-1, +1).
    """
    if not any(isinstance(t.term, Risk) for t in objective.terms):
        raise InvalidInputError("an objective must contain a risk", repr(objective), "Add Risk(Hinge())")
    if objective.constraints:
        must = "an objective on chunks must have no constraints"
        got = "a limit" if objective.limits else "a constraint"
        raise UnsupportedProblemError(must, got, "Use neutralize(limit), or rows in memory")
    if objective.is_regression:
        chunks = chunks.with_real_y()
    coding = chunks.coding(groups=groups)
    if not coding.groups and any(isinstance(t.term, Neutrality) for t in objective.terms):
        must = "chunks must contain a viewpoint if the objective has a neutrality term"
        raise InvalidInputError(must, "none", "Yield (X, y, viewpoint), or drop the term")
    rows, terms = coding.coded(chunks.census.sample), Terms(objective, coding, weighted, class_weight)
    pairs = {}
    for name, (column, value) in coding.groups.items():
        if value is None:
            warn_of_numbers(name, rows.viewpoints[name], 5)
        elif name == column:
            pairs[name] = tuple(chunks.census.counts[name].index.levels[1].tolist())
    sample = Problem(
        objective=objective,
        hypothesis=LinearHypothesis(sorted_csr(rows.X)),
        y=rows.y,
        classes=coding.classes,
        viewpoints=rows.viewpoints,
        sample_weight=rows.sample_weight,
        intercept=bool(intercept),
        divisor=terms.divisor * rows.n / coding.n,
        blocks=terms.blocks(rows),
        groups=pairs,
    )
    if not sample.is_convex:
        must, do = (
            "an objective on chunks must be convex",
            "Use convex functions, not a ramp, or rows in memory",
        )
        raise UnsupportedProblemError(must, repr(objective), do)
    for omega in (t.term for t in objective.terms if isinstance(t.term, Regularizer)):
        omega.check(sample.hypothesis.size)
    problem = ChunkedProblem(chunks, terms, sample)
    _ = problem.scale  # raises an error if y is not finite at f = 0
    return problem


# --- a limit on measured neutrality -------------------------------------------------------------------


def neutralize(
    problem: ChunkedProblem,
    limit: float,
    measure: Any,
    *,
    surrogate: Any = "auto",
    on: Any = None,
    **options: Any,
) -> Neutralized:
    """Return a solution whose measured neutrality on all rows is within a limit (`ChunkedProblem`)."""
    if isinstance(surrogate, str) and surrogate == "auto":
        surrogate = Hinge() if problem.is_straight else Logistic()
    surrogates, first = surrogates_of(surrogate, problem.sample), None
    target = Target(limit, measure, surrogate=surrogates, **options)
    if target.groups != "each":
        must = "a limit on chunks must be about the groups of each viewpoint"
        raise UnsupportedProblemError(must, f"groups={target.groups!r}", "Code them as one viewpoint")
    if target.metric.is_custom:
        must = "a measure on chunks must be one of nerm.metrics"
        raise InvalidInputError(must, repr(target.metric.name), "Use a name of nerm.metrics")
    if not problem.sample.viewpoints:
        raise InvalidInputError("chunks must contain a viewpoint", "none", "Yield (X, y, viewpoint)")
    small = replace(problem.sample, divisor=float(problem.sample.n))
    rough = search_for(small, replace(target, tol=target.rough_tol))
    with suppress(NotNeutralError):  # the search on all rows will fail too
        (found,) = answers([rough])
        surrogates = [found.surrogate]
        first = found.eta if isinstance(found.eta, float) and found.eta > 0 else None
    given = rough.problem, replace(target, surrogate=surrogates[0]), rough.groups, rough.row_weight
    search = ChunkedSearch(*given, first=first, rows=rough.rows, whole=problem)
    search.on = measured_on(on, small, target)
    return answers([search])[0]


@dataclass(eq=False)
class ChunkedSearch(Search):
    """A search for the neutrality weight in which every solve uses all rows.

    The problem of the base class, which is in memory, holds the sample.
    """

    whole: Any = None

    def objective(self, surrogate: Any, weights: Floats) -> Objective:
        """Return the objective with the one-sided terms.

        The neutrality weights of its terms are names, because an array would fit the rows of the sample only.
        """
        return with_named_weights(super().objective(surrogate, weights), [kind for _, kind, _ in self.terms])

    def solution(self, objective: Objective, tol: float, near: Any = None, steps: int = 1) -> Solution:
        """Solve the problem with this objective on all rows."""
        file = numbered(self.whole.chunks.checkpoint, len(self.candidates))
        return self.whole.with_objective(objective).solve(tol=tol, start=near, checkpoint=file)

    def scores(self, solution: Solution) -> Floats:
        """Return the scores of the rows of the sample."""
        return self.problem.hypothesis.scores(solution.coef, solution.intercept)

    def table(self, solution: Solution, scores: Floats) -> Thresholds:
        """Return thresholds with their measures on all rows, after one pass.

        The thresholds are 0 and those halfway between some scores of the sample.
        """
        if self.on is not None:
            return super().table(solution, scores)
        cuts = np.unique(np.quantile(scores, np.linspace(0, 1, SOME_THRESHOLDS)))
        edges = np.union1d(0.5 * (cuts[1:] + cuts[:-1]), 0.0)
        whole, at = self.whole, np.append(solution.coef, solution.intercept)
        counts = whole.sweep(partial(counted, terms=whole.terms, at=at, edges=edges))["counts"]
        interval, label, signs = np.nonzero(counts)
        beyond = 1e3 * (1.0 + np.abs(scores).max())
        ends = np.concatenate([[-beyond], edges, [beyond]])
        codes = []
        for groups in self.groups:
            group = np.full(counts.shape[2], groups.codes[-1])
            group[signs_of(whole.sample.viewpoints)] = groups.codes
            codes.append(group[signs])
        weight, y = counts[interval, label, signs], (2 * label - 1).astype(float)
        names = list(whole.sample.viewpoints)
        views = [sign((signs >> names.index(name)) % 2 - 0.5) for g in self.groups for name in g.views]
        # every row gets the upper end of its interval as its score, and a threshold becomes the end below it
        found = thresholds(ends[interval + 1], y, codes, self.target.metric, weight, views)
        below = np.searchsorted(ends, found.thresholds, side="right") - 1
        return replace(found, thresholds=ends[np.maximum(below, 0)])
