"""Fits that share what they can: rows that are bound once, an engine or a factor, and the last solution as a start."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import joblib

from nerm.estimators.design import Design, TrainingRows
from nerm.model.problem import Problem
from nerm.solvers.registry import SolverPool
from nerm.validation import as_positive


@dataclass
class SharedRows:
    """Rows on which several problems are solved: other classes, other weights of the terms, other atoms."""

    relatives: SolverPool
    like: Problem | None = field(default=None)

    def problem(self, design: Design, rows: TrainingRows, positive: int) -> Problem:
        """Return the problem of one class against the rest on these rows, which are bound the first time only."""
        self.like = design.problem(rows, positive, like=self.like)
        return self.like


_open: ContextVar[tuple[OrderedDict[str, SharedRows], int] | None] = ContextVar("nerm_sharing", default=None)


@contextmanager
def sharing(most: int = 12) -> Iterator[None]:
    """Let classifiers that are fitted on the same rows share the bound rows, the engine and the start.

    A grid search fits the same folds again and again: within this context each fit of a fold starts from the
    last one's solution. Answers are certified as ever, and agree with those of separate fits within the
    tolerance, not to the last bit. It holds in this thread: other processes (``n_jobs``) share nothing.
    Limits are searched as ever.

    Parameters
    ----------
    most : int
        How many sets of rows are remembered: at least the number of folds. Each keeps its rows in memory.

    Examples
    --------
    >>> import nerm
    >>> from sklearn.model_selection import GridSearchCV
    >>> d = nerm.datasets.load("synthetic", n=200, random_state=0)
    >>> search = GridSearchCV(nerm.NeutralSVC(), {"lam": [1.0, 10.0]}, cv=3)
    >>> with nerm.sharing():
    ...     search.fit(d.X, d.y).best_params_["lam"] in (1.0, 10.0)
    True
    """
    token = _open.set((OrderedDict(), int(as_positive(most, "most"))))
    try:
        yield
    finally:
        _open.reset(token)


def shared_rows(design: Design, rows: TrainingRows) -> SharedRows:
    """Return what earlier fits on equal rows have left, within `sharing`; else a beginning."""
    fresh, held = SharedRows(SolverPool(design.solver)), _open.get()
    if held is None:
        return fresh
    known, most = held
    given = rows.X, rows.codes, dict(rows.viewpoints), rows.sample_weight, rows.risk_weight
    key = joblib.hash((given, repr(design.kernel), design.intercept, design.solver))
    shared = known.setdefault(key, fresh)
    known.move_to_end(key)
    while len(known) > most:
        known.popitem(last=False)
    return shared
