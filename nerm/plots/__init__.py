"""Draw the paper's figures, models at target levels, and paths of neutrality weights.

Every function draws on the matplotlib Axes it is given, or on new ones, and returns them. The colours of
Okabe and Ito can be told apart by colour-blind readers. Markers and dashes differ too, so that curves can be
told apart in grey.
"""

from nerm.plots.figures import (
    DASHES,
    MARKERS,
    OKABE_ITO,
    atom,
    convergence_panel,
    eta_path,
    figure_1,
    figure_2,
    figure_levels,
    frontier,
    level_panel,
    tradeoff_panel,
)

__all__ = [
    "DASHES", "MARKERS", "OKABE_ITO", "atom", "convergence_panel", "eta_path", "figure_1",
    "figure_2", "figure_levels", "frontier", "level_panel", "tradeoff_panel",
]  # fmt: skip
