"""Which solver for which problem: every solver on seeded problems, each run in a process that may be killed.

`compare_solvers` runs and returns a table, `summarize`, `exponents` and `profile` read it, `performance_profile` and
`time_against_n` draw it (`figure` both).
"""

from nerm.experiments.compare.cases import Case, default_cases, quick_cases
from nerm.experiments.compare.comparison import compare_solvers
from nerm.experiments.compare.drawing import figure, performance_profile, time_against_n
from nerm.experiments.compare.summary import exponents, profile, summarize

__all__ = [
    "Case",
    "compare_solvers",
    "default_cases",
    "exponents",
    "figure",
    "performance_profile",
    "profile",
    "quick_cases",
    "summarize",
    "time_against_n",
]
