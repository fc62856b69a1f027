"""The paper's two figures, levels that were asked for, and paths of neutrality weights: Axes in, Axes out.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; markers and dashes differ too,
so nothing is lost in grey.
"""

from nerm.plots.level_panels import figure_levels as figure_levels
from nerm.plots.level_panels import level_panel as level_panel
from nerm.plots.paper_figures import convergence_panel as convergence_panel
from nerm.plots.paper_figures import figure_1 as figure_1
from nerm.plots.paper_figures import figure_2 as figure_2
from nerm.plots.paper_figures import tradeoff_panel as tradeoff_panel
from nerm.plots.style import DASHES, MARKERS, OKABE_ITO
from nerm.plots.weight_paths import coefficient_path as coefficient_path
from nerm.plots.weight_paths import eta_path as eta_path

__all__ = [
    "DASHES",
    "MARKERS",
    "OKABE_ITO",
    "coefficient_path",
    "convergence_panel",
    "eta_path",
    "figure_1",
    "figure_2",
    "figure_levels",
    "level_panel",
    "tradeoff_panel",
]
