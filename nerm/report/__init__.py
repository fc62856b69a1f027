"""The trade-off between quality and neutrality on a table, as numbers, as a figure and as a page to read and click."""

from nerm.report.chart import figure_svg
from nerm.report.page import render_page
from nerm.report.study import Settings, Study, run_study

__all__ = ["Settings", "Study", "figure_svg", "render_page", "run_study"]
