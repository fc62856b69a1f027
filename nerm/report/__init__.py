"""The trade-off between quality and neutrality on a table, as numbers, as a figure and as a page to read and click."""

from nerm.report.auditing import audit_study
from nerm.report.chart import figure_svg
from nerm.report.fitting import TableFit, fit_table
from nerm.report.page import render_page
from nerm.report.settings import Level, Settings
from nerm.report.study import Study, run_study

__all__ = [
    "Level",
    "Settings",
    "Study",
    "TableFit",
    "audit_study",
    "figure_svg",
    "fit_table",
    "render_page",
    "run_study",
]
