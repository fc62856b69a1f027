"""The convex-concave procedure: a stationary point of an objective with differences of convex functions.

The procedure starts from the convex relaxation (tangents at f = 0) or from a given hypothesis. Every step
minimises a convex function that is nowhere below the objective and equals it at the current hypothesis, so
the objective never increases. If it stops decreasing, rows may lie at kinks of the subtracted function, where
the tangent is not unique. Then one step uses tangents at slightly larger scores. If the objective still does
not decrease, the current hypothesis is returned as stationary.

The convex problem replaces a term with phi = A - G (`nerm.atoms.DCFunction`) by the same term with A and a
`Tangent` of -G. In a two-sided neutrality term both sides subtract the same function: max(A+ - G+, A- - G-) =
max(A+ + G-, A- + G+) - (G+ + G-).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nerm.atoms.difference import DCFunction
from nerm.atoms.losses import HingePiece
from nerm.atoms.margin import MarginFunction
from nerm.certify.solution import SECONDS, Solution, Status, stationary
from nerm.errors import InvalidInputError
from nerm.model.blocks import Block, in_order, weigh
from nerm.model.expressions import Risk, Term
from nerm.model.problem import Problem, check_hypothesis
from nerm.solvers import clock
from nerm.solvers.base import path_order
from nerm.typing import Floats
from nerm.validation import as_positive

BEYOND = 1.01  # factor of the scores at which tangents are taken when the objective stops decreasing
NO_STEP = (Status.FAILED, Status.INFEASIBLE)  # a step without a next one

Hypothesis = tuple[Floats, float]
Solve = Callable[[list[Problem], float], list[Solution]]  # convex problems, until a `nerm.solvers.clock` time


def stationary_points(
    problems: list[Problem],
    solve: Solve,
    tol: float,
    deadline: float,
    *,
    start: Any = None,
    max_steps: int = 100,
) -> list[Solution]:
    """Run the procedure on the problems along a path, each from the stationary point before it.

    The weights increase along the path. On the German credit data this gives lower objectives than decreasing
    weights, and than starting each problem from its relaxation. `start` is the (coef, intercept) of the first
    problem.
    """
    if start is not None and not (isinstance(start, tuple | list) and len(start) == 2):
        raise InvalidInputError("'start' must be a hypothesis", repr(start), "Pass (coef, intercept)")
    found, most = dict[int, Solution](), int(as_positive(max_steps, "max_steps"))
    for done, i in enumerate(path_order(problems)):
        own = clock.share(deadline, len(problems) - done)
        at = None if start is None else check_hypothesis(problems[i], *start)
        found[i] = _settle(problems[i], solve, tol, most, own, at)
        if found[i].status is Status.STATIONARY:
            start = found[i].coef, found[i].intercept
    return [found[i] for i in range(len(problems))]


def _settle(
    problem: Problem, solve: Solve, tol: float, max_steps: int, deadline: float, start: Hypothesis | None
) -> Solution:
    """Take convex-concave steps until the objective stops decreasing.

    Return the best hypothesis as a solution.
    """
    best = (np.zeros(problem.hypothesis.size), 0.0) if start is None else start
    lowest = np.inf if start is None else _height(problem, best)
    weights = [problem.objective.terms[block.term].weight for block in differences(problem)]
    beyond, settled, late = 1.0, False, False
    steps, trace = list[Solution](), list[dict[str, Any]]()
    while len(steps) < max_steps and not settled:
        [step] = solve([convexified(problem, beyond * best[0], beyond * best[1])], deadline)
        found = check_hypothesis(problem, step.coef, step.intercept)
        value = _height(problem, found)
        falls = lowest - value > 10 * tol * abs(value)
        if value < lowest or not np.isfinite(lowest):
            best, lowest = found, value
        steps.append(step)
        trace.append(_row(step, len(steps), lowest))
        late = clock.is_up(deadline)
        if step.status in NO_STEP or step.stats.timed_out or late or not any(weights):
            break
        settled = not falls and beyond > 1
        beyond = 1.0 if falls else BEYOND
    last = steps[-1]
    if any(weights) and (last.status not in NO_STEP or len(steps) > 1):
        last = stationary(problem, best, steps, settled=settled, late=late)
    objective = problem.evaluate(*best).with_thetas(last.objective.thetas)
    stats = replace(
        last.stats,
        iterations=len(steps),
        reason=f"each step of the convex-concave procedure: {last.stats.reason}",
        details={"trace": tuple(trace)},
        **{name: sum(getattr(step.stats, name) for step in steps) for name in SECONDS},
    )
    return replace(last, problem=problem, objective=objective, multipliers=None, stats=stats)


def _height(problem: Problem, at: Hypothesis) -> float:
    """Return the objective at a hypothesis; infinity if a constraint is violated."""
    violated = problem.objective.constraints and problem.violation(*at) > 0
    return np.inf if violated else float(problem.evaluate(*at))


def _row(step: Solution, number: int, value: float) -> dict[str, Any]:
    """Return the row of the trace for one step."""
    return {
        "step": number,
        "objective": value,
        "convex_objective": step.objective.total,
        "relative_gap": step.certificate.relative_gap,
        "solver": step.stats.solver,
        "seconds": sum(getattr(step.stats, name) for name in SECONDS),
    }


@dataclass(frozen=True, eq=False, repr=False)
class Tangent(Term):
    """The tangent of the subtracted part of a term, as a term of its own.

    It is (1/n) sum_i w_i (constant - slopes_i t_i f_i), with the weights w_i and targets t_i of the term.

    Attributes
    ----------
    term : Risk or Neutrality
        The term whose atom is a difference of convex functions.
    kind : {"risk", "neutrality"}
        The kind of this term.
    """

    term: Any
    kind: str  # type: ignore[misc]  # that of the term

    def __repr__(self) -> str:
        return f"Tangent({self.term!r})"

    def formula(self, mean: str = "mean", latex: bool = False) -> str:
        """Return the term as text or LaTeX."""
        return r"\frac1n\sum_i (a_i f(x_i) + c)" if latex else f"{mean} tangent(f)"


def differences(problem: Problem) -> list[Block]:
    """Return the blocks whose atom is a difference of convex functions.

    Of a two-sided term only the block of C+ is returned.
    """
    return [block for block in problem.blocks if block.side >= 0 and isinstance(block.atom, DCFunction)]


def convexified(problem: Problem, coef: Floats, intercept: float) -> Problem:
    """Return the convex problem that equals this one at a hypothesis and is nowhere below it."""
    scores = problem.hypothesis.scores(coef, intercept)
    terms, different = list(problem.objective.terms), differences(problem)
    first = len(terms)  # the blocks of limits are numbered after the terms
    blocks = [replace(b, term=b.term + len(different)) if b.term >= first else b for b in problem.blocks]
    for block in different:
        atom, tangent = _parts(block, scores)
        weighted = terms[block.term]
        term: Any = weighted.term
        name = "loss" if isinstance(term, Risk) else "surrogate"
        terms[block.term] = replace(weighted, term=replace(term, **{name: atom}))
        blocks = [replace(b, atom=atom) if b.term == block.term else b for b in blocks]
        blocks.append(replace(tangent, term=len(terms)))
        terms.append(replace(weighted, term=Tangent(term, term.kind)))
    objective = replace(problem.objective, terms=tuple(terms))
    return replace(problem, objective=objective, blocks=in_order(blocks, objective.every_term))


def _parts(block: Block, scores: Floats) -> tuple[MarginFunction, Block]:
    """Return the convex function of a difference, and the block of the tangent of the subtracted function."""
    assert isinstance(block.atom, DCFunction)
    parts, margins = block.atom.parts, block.margins(scores)
    slopes, offsets = _tangent(parts.subtracted, margins, block.weights)
    if block.side:
        others = _tangent(parts.subtracted, -margins, block.weights)
        slopes, offsets = slopes - others[0], offsets + others[1]
    constant = weigh(block.weights, offsets) / max(float(block.weights.sum()), np.finfo(float).tiny)
    line = HingePiece(-constant, 0.0, 1.0, 1.0)
    tangent = Block(line, block.weights, -slopes * block.targets, block.term, 0)
    return parts.two_sided if block.side else parts.convex, tangent


def _tangent(G: MarginFunction, margins: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the tangent g m - c of G at each margin as arrays (g, c), both (n,); 0 for rows of weight 0."""
    slopes = np.where(weights > 0, np.mean(G.subgradient(margins), axis=0), 0.0)
    return slopes, np.where(weights > 0, slopes * margins - G.value(margins), 0.0)
