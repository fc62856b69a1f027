"""Draw margin functions."""

from typing import Any

import numpy as np

from nerm.plots.style import OKABE_ITO, finish, grid
from nerm.typing import Array


def atom(function: Any, axes: Any = None) -> Array:
    """Draw value, slope and conjugate of a margin function, each on Axes of its own.

    Parameters
    ----------
    function : MarginFunction
        A margin function, built-in or your own.
    axes : array of three Axes, optional
        New ones by default.

    Returns
    -------
    array of Axes
        Value and slope over the margin m, and the conjugate over its dual variable u.

    Examples
    --------
    >>> import nerm
    >>> [ax.get_title() for ax in nerm.plots.atom(nerm.Hinge())]
    ['value of Hinge()', 'slope of Hinge()', 'conjugate of Hinge()']
    """
    axes = grid(axes, 3, 3, (3.4, 2.8))
    special = np.array([0.0, 1.0, *function.facts.breakpoints])
    m = np.unique([*np.linspace(special.min() - 2.0, special.max() + 2.0, 801), *special])
    low, high = function.subgradient(m)
    first, last = np.clip(function.facts.slopes, np.nanmin(low), np.nanmax(high)).tolist()
    u = np.linspace(first, last, 401)
    color = OKABE_ITO[0]
    axes[0].plot(m, function.value(m), color=color)
    axes[1].plot(np.repeat(m, 2), np.column_stack([low, high]).ravel(), color=color)
    axes[2].plot(u, function.conjugate(u), color=color)
    for ax, label, x in zip(axes, ("value", "slope", "conjugate"), "mmu", strict=True):
        ax.set_xlabel(x)
        ax.set_title(f"{label} of {getattr(function, 'label', repr(function))}", fontsize=9)
        finish(ax, show_legend=False)
    for kink in function.facts.kinks:
        axes[0].axvline(kink, color="0.6", linewidth=0.8, linestyle=":")
    return axes
