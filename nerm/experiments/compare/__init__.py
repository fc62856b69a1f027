"""Which solver for which problem: every solver on seeded problems, each run in a process that may be killed.

`compare_solvers` runs and returns a table, `summarize`, `exponents` and `profile` read it,
`performance_profile` and `time_against_n` draw it (`figure` both).
"""

from nerm.experiments.compare.cases import Case as Case
from nerm.experiments.compare.cases import default_cases as default_cases
from nerm.experiments.compare.cases import quick_cases as quick_cases
from nerm.experiments.compare.comparison import compare_solvers as compare_solvers
from nerm.experiments.compare.summary import exponents as exponents
from nerm.experiments.compare.summary import figure as figure
from nerm.experiments.compare.summary import performance_profile as performance_profile
from nerm.experiments.compare.summary import profile as profile
from nerm.experiments.compare.summary import summarize as summarize
from nerm.experiments.compare.summary import time_against_n as time_against_n
from nerm.public import public_names

__all__ = public_names(globals())
