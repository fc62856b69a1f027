# The names of nerm.report that the command uses; nerm/report/__init__.py loads each when it is first used.
from . import chart as chart
from . import fitting as fitting
from . import measuring as measuring
from . import page as page
from . import study as study
from .chart import figure_svg as figure_svg
from .chart import fixed as fixed
from .fitting import Level as Level
from .fitting import Settings as Settings
from .measuring import Display as Display
from .measuring import Point as Point
from .measuring import held_out_bounds as held_out_bounds
from .measuring import point_of as point_of
from .page import proof as proof
from .page import render_page as render_page
from .study import Study as Study
