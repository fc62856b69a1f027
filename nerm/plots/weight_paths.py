"""Draw terms, measures and coefficients of solutions along a path of neutrality weights."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.plots.paper_figures import AXIS
from nerm.plots.style import axes_or_new, finish, grid, style
from nerm.typing import Floats


def eta_path(
    solutions: Sequence[Any], y: Any = None, viewpoint: Any = None, X: Any = None, axes: Any = None
) -> Any:
    """Draw the terms of the objective, C+ and C-, and theta against the neutrality weight eta.

    The first panel shows the terms without their weights, the second the two sides C+ and C- of the first
    neutrality term. The third shows theta, the dual weight of C+ in
    max(C+, C-) = max over theta in [0, 1] of theta C+ + (1 - theta) C-. The axis of eta is linear from 0 to
    the smallest positive weight, and logarithmic from there.

    Parameters
    ----------
    solutions
        The result of `Problem.path`.
    y, viewpoint, X
        Optional rows, for instance test rows. If they are given, a fourth panel shows the accuracy, the AUC
        and the absolute values of C_sgn and of the Calders-Verwer score on them.
    axes
        Three or four Axes to draw on; new ones by default.

    Returns
    -------
    ndarray of Axes

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import nerm
    >>> from nerm.datasets import load
    >>> d = load("synthetic", n=60, random_state=0)
    >>> goal = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + nerm.Neutrality(nerm.Hinge())
    >>> path = goal.on(d.X, d.y, viewpoint=d.viewpoint).path([0, 0.1, 1])
    >>> [ax.get_ylabel() for ax in eta_path(path)]
    ['term, unweighted', 'side of the neutrality term', 'θ, weight of $C^+$']
    """
    etas = _etas(solutions)
    given = [name for name, part in {"X": X, "y": y, "viewpoint": viewpoint}.items() if part is not None]
    if len(given) not in (0, 3):
        must = "'X', 'y' and 'viewpoint' must be given together"
        raise InvalidInputError(must, ", ".join(given), "Give all three for the panel of measures, or none")
    axes = grid(axes, 4 if given else 3, 2 if given else 3, (4.0, 3.0))
    terms = [solution.objective.terms for solution in solutions]
    labels = {"risk": "risk", "regularizer": "regularizer Ω", "neutrality": "neutrality, max($C^+$, $C^-$)"}
    curves = [(labels[t.kind], [each[j].value for each in terms]) for j, t in enumerate(terms[0])]
    _curves(axes[0], etas, curves, "term, unweighted")
    first = next(j for j, t in enumerate(terms[0]) if t.kind == "neutrality")
    neutrality = [each[first] for each in terms]
    sides = [("$C^+$", [t.plus for t in neutrality]), ("$C^-$", [t.minus for t in neutrality])]
    _curves(axes[1], etas, sides, "side of the neutrality term")
    # At eta = 0 every theta is optimal, so none is shown.
    theta = [
        np.nan if s.multipliers is None or eta == 0 else float(s.multipliers.thetas[0])
        for s, eta in zip(solutions, etas, strict=True)
    ]
    _curves(axes[2], etas, [("θ", theta)], "θ, weight of $C^+$")
    axes[2].set(ylim=(-0.05, 1.05), xlim=axes[1].get_xlim())
    if given:
        from nerm.metrics import report

        reports = [report(y, solution.decision_function(X), viewpoint) for solution in solutions]
        shown = ("accuracy", "auc", "neutrality_risk", "calders_verwer_score")
        _curves(axes[3], etas, [(AXIS[name], [abs(r[name]) for r in reports]) for name in shown], "measure")
        axes[3].set_ylim(-0.02, 1.02)
    return axes


def coefficient_path(
    solutions: Sequence[Any], names: Sequence[str] | None = None, ax: Any = None, top: int = 7
) -> Any:
    """Draw the coefficients w_j against the neutrality weight eta.

    Parameters
    ----------
    solutions
        The result of `Problem.path` for a linear hypothesis.
    names
        The names of the coefficients; w0, w1, … by default.
    ax
        Axes to draw on; new ones by default.
    top
        Number of coefficients with the largest range that are coloured and named; the others are grey.

    Returns
    -------
    Axes

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import nerm
    >>> from nerm.datasets import load
    >>> d = load("synthetic", n=60, random_state=0)
    >>> goal = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + nerm.Neutrality(nerm.Hinge())
    >>> path = goal.on(d.X, d.y, viewpoint=d.viewpoint).path([0, 0.1, 1])
    >>> len(coefficient_path(path, d.feature_names).lines)
    11
    """
    etas = _etas(solutions)
    coefs = np.array([solution.coef for solution in solutions])
    d = coefs.shape[1]
    labels = [f"w{j}" for j in range(d)] if names is None else [str(name) for name in names]
    if len(labels) != d:
        must = f"'names' must have one entry for each of the {d} coefficients"
        raise InvalidInputError(must, f"{len(labels)}", "Pass feature_names")
    ax = axes_or_new(ax)
    moved = np.argsort(-np.ptp(coefs, axis=0), kind="stable")
    for j in moved[top:]:
        ax.plot(etas, coefs[:, j], color="0.8", linewidth=0.8, zorder=0)
    ax.axhline(0.0, color="0.5", linewidth=0.8, zorder=0)
    _curves(ax, etas, [(labels[j], coefs[:, j]) for j in moved[:top]], "coefficient", legend="outside")
    return ax


def _etas(solutions: Sequence[Any]) -> Floats:
    """Return the total weight of the neutrality terms of each solution, (number of solutions,)."""
    terms = [getattr(getattr(s, "objective", None), "terms", ()) for s in solutions]
    weights = [[t.weight for t in each if t.kind == "neutrality"] for each in terms]
    if not weights or not all(weights):
        must = "'solutions' must be a path of solutions with a neutrality term"
        raise InvalidInputError(must, repr(solutions)[:60], "Use problem.path([0, 1])")
    return np.array([sum(each) for each in weights])


def _curves(
    ax: Any, etas: Floats, curves: Sequence[tuple[str, Any]], label: str, legend: str = "inside"
) -> None:
    order = np.argsort(etas, kind="stable")
    for k, (name, values) in enumerate(curves):
        ordered = np.asarray(values, dtype=float)[order]
        ax.plot(etas[order], ordered, **style(k), markersize=3.5, linewidth=1.2, label=name)
    ax.set_xscale("symlog", linthresh=min(etas[etas > 0], default=1.0))
    ax.set(xlabel="neutrality weight η", ylabel=label)
    finish(ax, legend, show_legend=len(curves) > 1)
