"""Figures of the paper, of target levels and of paths of neutrality weights: Axes in, Axes out.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; markers and dashes differ too,
so that nothing is lost in grey.
"""

from nerm.plots.paper_figures import (
    convergence_panel,
    figure_1,
    figure_2,
    figure_levels,
    level_panel,
    tradeoff_panel,
)
from nerm.plots.style import DASHES, MARKERS, OKABE_ITO
from nerm.plots.weight_paths import coefficient_path, eta_path

__all__ = [
    "DASHES", "MARKERS", "OKABE_ITO", "coefficient_path", "convergence_panel", "eta_path", "figure_1",
    "figure_2", "figure_levels", "level_panel", "tradeoff_panel",
]  # fmt: skip
