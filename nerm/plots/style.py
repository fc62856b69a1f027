"""The common style of all figures: colours, markers and dashes, axes and legends.

The colours of Okabe and Ito can be told apart by colour-blind readers. Markers and dashes differ too, so that
curves can be told apart in grey.
"""

from importlib import import_module
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError, MissingPackageError
from nerm.typing import Array

#: Okabe and Ito's colours without the yellow, which is too pale for lines on white.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: One marker per colour, so that curves can be told apart in grey.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: One dash pattern per colour, for the same reason.
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 3)), (0, (1, 1)))


def style(k: int) -> dict[str, Any]:
    """Return colour, marker and dashes of the k-th curve, as options of ``Axes.plot``."""
    turn, place = divmod(k, len(OKABE_ITO))
    other = (place + turn) % len(OKABE_ITO)  # when colours repeat, combine them with other dashes and markers
    return {"color": OKABE_ITO[place], "marker": MARKERS[other], "linestyle": DASHES[other]}


def pyplot() -> Any:
    """Import and return matplotlib.pyplot, which the extra "plots" installs."""
    try:
        return import_module("matplotlib.pyplot")
    except ImportError:
        raise MissingPackageError(
            "Drawing figures needs the package 'matplotlib'. It is not installed. "
            "Install it with: pip install 'nerm-learn[plots]'."
        ) from None


def axes_or_new(ax: Any) -> Any:
    """Return `ax`, or new Axes if it is None."""
    return grid(ax, 1, 1, (4.2, 3.4))[0]


def grid(axes: Any, count: int, columns: int, size: tuple[float, float]) -> Array:
    """Return `count` Axes as a flat array: the given ones, or new ones in rows of `columns` Axes.

    `size` is the (width, height) of one new Axes in inches.
    """
    if axes is None:
        rows = -(-count // columns)
        whole = (size[0] * columns, size[1] * rows)
        figure, made = pyplot().subplots(rows, columns, figsize=whole, layout="constrained", squeeze=False)
        for spare in made.ravel()[count:]:
            figure.delaxes(spare)
        axes = made.ravel()[:count]
    flat: Array = np.asarray(axes, dtype=object).ravel()
    if len(flat) != count:
        must, do = f"'axes' must hold {count} Axes", f"Make plt.subplots(1, {count})"
        raise InvalidInputError(must, f"{len(flat)}", do)
    return flat


def finish(ax: Any, legend: str = "inside", show_legend: bool = True) -> None:
    """Apply the common style to Axes; `legend` is "inside" or "outside" of them."""
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)
    if show_legend:
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if legend == "outside" else {}
        ax.legend(frameon=False, fontsize=8, handlelength=2.6, **place)
