"""nerm's own engine as a solver: a linear problem with squared l2, read as arrays and handed to `nerm.engine`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nerm.atoms.exponential import Exponential
from nerm.atoms.logistic import Logistic
from nerm.atoms.margin import MarginFunction
from nerm.atoms.squared_l2 import SquaredL2
from nerm.errors import UnknownNameError
from nerm.multipliers import Multipliers
from nerm.problem import Problem
from nerm.solution import Answer
from nerm.solvers.base import OwnSolver
from nerm.validation import as_positive

OPTIONS = ("max_iterations", "merge")
LARGEST_SYSTEM = 5000  # the Newton system is dense and min(rows, columns) wide: 200 MB at this size


@dataclass(frozen=True)
class InteriorPoint(OwnSolver):
    """The engine: a primal-dual interior-point method on n scalars and a Newton system as wide as the data."""

    name: str = "interior-point"

    def needs(self) -> str:
        """One phrase: what a problem must be like."""
        return (
            "a linear problem with squared l2 of positive weight, atoms that are hinge-like (facts.quadratic), "
            f"logistic or exponential, and at most {LARGEST_SYSTEM} rows or columns, whichever are fewer"
        )

    def obstacle(self, problem: Problem) -> str | None:
        """Name the first thing that the engine does not take."""
        if problem.is_kernel:
            return "a kernel"
        for _, omega in problem.regularizers:
            if not isinstance(omega, SquaredL2):
                return repr(omega)
        if not sum(weight for weight, _ in problem.regularizers) > 0:
            return "no squared l2 regularizer of positive weight"
        for block in problem.blocks:
            if not is_known(block.atom):
                return repr(block.atom)
        rows, columns = problem.hypothesis.n, problem.hypothesis.size
        if min(rows, columns) > LARGEST_SYSTEM:
            return f"{rows} rows and {columns} columns"
        return None

    def answer(self, problem: Problem, accuracy: float, options: dict[str, Any]) -> Answer:
        """Solve one problem."""
        return next(self.answers([problem], accuracy, options))

    def answers(self, problems: Sequence[Problem], accuracy: float, options: dict[str, Any]) -> Iterator[Answer]:
        """Solve relatives that differ in neutrality weight, from the smallest to the largest, each from the last."""
        from nerm.engine import solve, solve_path

        for name in options:
            if name not in OPTIONS:
                raise UnknownNameError("an option of 'interior-point'", name, OPTIONS)
        if "max_iterations" in options:
            options = {**options, "max_iterations": int(as_positive(options["max_iterations"], "max_iterations"))}
        started = time.perf_counter()
        order, scales, model = _relatives(problems)
        build_seconds = time.perf_counter() - started
        if options or len(problems) == 1:
            results = [solve(_model(problems[i]), 0.9 * accuracy, **options) for i in order]
        else:
            results = solve_path(model, scales, 0.9 * accuracy)
        share = 1.0 / len(problems)
        solve_seconds = time.perf_counter() - started - build_seconds
        found = dict(zip(order, results, strict=True))
        for i in range(len(problems)):
            yield Answer(
                coef=found[i].coef,
                intercept=float(found[i].intercept),
                multipliers=multipliers_of(found[i]),
                claim="converged" if found[i].converged else "stopped early",
                iterations=found[i].iterations,
                build_seconds=share * build_seconds,
                solve_seconds=share * solve_seconds,
                details={"merged_rows": found[i].rows},
            )


def _relatives(problems: Sequence[Problem]) -> tuple[list[int], list[float], Any]:
    """Return the order by neutrality weight, the weights relative to the largest, and the model with the largest."""
    totals = [float(problem.etas.sum()) for problem in problems]
    order = sorted(range(len(problems)), key=totals.__getitem__)
    largest = totals[order[-1]]
    return order, [totals[i] / largest if largest else 0.0 for i in order], _model(problems[order[-1]])


def is_known(atom: MarginFunction) -> bool:
    """Tell whether the engine has this atom."""
    return atom.facts.quadratic is not None or isinstance(atom, Logistic | Exponential)


def margin(atom: MarginFunction) -> Any:
    """Return the engine's own form of an atom."""
    from nerm.engine import EXPONENTIAL, LOGISTIC, QuadraticConjugate

    if atom.facts.quadratic is not None:
        linear, quadratic = atom.facts.quadratic
        return QuadraticConjugate(linear, quadratic, *atom.facts.slopes)
    return LOGISTIC if isinstance(atom, Logistic) else EXPONENTIAL


def _model(problem: Problem) -> Any:
    """Return the problem as the engine's arrays."""
    from nerm.engine import LinearModel, LossTerm, NeutralityTerm

    up = problem.hypothesis.n / problem.divisor  # the engine divides by its rows
    pairs = list(zip(problem.factors, problem.blocks, strict=True))
    return LinearModel(
        X=problem.hypothesis.X,
        y=problem.blocks[0].targets,
        losses=tuple(LossTerm(margin(b.atom), up * f * b.weights) for f, b in pairs if b.side == 0),
        mu=float(sum(weight for weight, _ in problem.regularizers)),
        neutralities=tuple(
            NeutralityTerm(margin(b.atom), f, b.targets, up * b.weights) for f, b in pairs if b.side == 1
        ),
        intercept=problem.intercept,
    )


def multipliers_of(found: Any) -> Multipliers:
    """Return the engine's multipliers in the order of the blocks."""
    sides = np.stack([found.beta_plus, found.beta_minus], axis=1).reshape(-1, found.alpha.shape[1])
    return Multipliers(np.vstack([found.alpha, sides]), found.theta)


SOLVERS = (InteriorPoint(),)
