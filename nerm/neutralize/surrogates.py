"""Which surrogate serves best: all of them, roughly, on most rows, judged on the others."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from nerm.atoms.difference import DCFunction
from nerm.atoms.hinge import Hinge
from nerm.atoms.identity import Identity
from nerm.atoms.logistic import Logistic
from nerm.atoms.margin import MarginFunction
from nerm.atoms.ramp import Ramp
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.neutralize.attempts import Attempts
from nerm.neutralize.boundedness import largest_weight
from nerm.neutralize.trial import Trial
from nerm.signs import sign
from nerm.solvers.registry import SolverPool
from nerm.splitting import hold_out
from nerm.typing import Bools, Floats

#: What "auto" compares: a smooth one, the paper's, the covariance, and ramps, which spare the ranking of sure cases.
AUTO: tuple[MarginFunction | DCFunction, ...] = (Logistic(), Hinge(), Identity(), Ramp(1.0), Ramp(2.0))
INNER_SHARE = 0.3  # of the rows, on which candidates are compared
TIED = 2.0  # standard errors of a difference that do not count
INNER_TOL = 1e-4  # the relative gap of solves that serve the comparison only
Prefer = str | Callable[[Floats, Floats], float]
Judge = Callable[[Trial, Floats, Bools], Floats]


def compared(
    trial: Trial, candidates: Sequence[Any], limit: float, keep: float, judge: Judge, seed: int
) -> pd.DataFrame:
    """Search with each surrogate on most rows, roughly, and judge it on the others; the best first.

    One that is worth less by no more than two standard errors of the difference is as good, and the ranking
    decides.
    """
    p, rows = trial.problem, []
    apart = hold_out([p.y, *(sign(p.viewpoints[name]) for name in trial.viewpoints)], INNER_SHARE, seed)
    if len(np.unique(p.y[apart])) < 2:  # too few rows to compare anything: the order in which they were given
        return pd.DataFrame({"surrogate": [repr(c) for c in candidates], "worth": np.nan})
    inner = replace(
        trial, used=~apart, tol=max(trial.tol, INNER_TOL), relatives=SolverPool(trial.relatives.solver)
    )
    study = Attempts(inner, limit, keep)
    worths: dict[int, Floats] = {}
    for i, candidate in enumerate(candidates):
        row: dict[str, Any] = {"surrogate": repr(candidate), "worth": -np.inf}
        found = study.of(candidate)
        if found is not None:
            worths[i] = judge(inner, found.scores, apart)
            row |= {
                "worth": float(worths[i].mean()),
                **inner.quality(found.scores, apart),
                "eta": max(found.etas),
            }
            with suppress(InvalidInputError):  # a group of one row is not seen there
                row["measure"] = float(np.abs(inner.measured(found.scores, apart)).max())
        rows.append(row)
    frame = pd.DataFrame(rows)
    frame["tied"] = False
    if worths:
        best = worths[int(frame["worth"].idxmax())]
        for i, worth in worths.items():
            lost = best - worth
            frame.loc[i, "tied"] = lost.mean() <= TIED * lost.std() / np.sqrt(len(lost))
        return frame.assign(ranking=frame["auc"].where(frame["tied"])).sort_values(
            ["tied", "ranking", "worth"], ascending=False, kind="stable"
        ).drop(columns="ranking")  # fmt: skip
    return frame


def judge_of(prefer: Prefer) -> Judge:
    """Return what a model is worth on rows: who is judged rightly, one by one; its AUC; a function of (y, scores)."""
    if callable(prefer):
        return lambda trial, scores, rows: np.array([float(prefer(trial.problem.y[rows], scores[rows]))])
    if prefer not in ("accuracy", "auc"):
        raise UnknownNameError(
            "'prefer'", prefer, ("accuracy", "auc"), "Use one of these, or a function (y, scores)"
        )
    if prefer == "auc":
        return lambda trial, scores, rows: np.array([trial.quality(scores, rows)["auc"]])

    def right(trial: Trial, scores: Floats, rows: Bools) -> Floats:
        weight = trial.row_weight[rows] / trial.row_weight[rows].mean()
        return weight * (sign(scores[rows]) == trial.problem.y[rows])

    return right


def candidates_of(surrogate: Any, study: Attempts | None = None) -> list[Any]:
    """Return the surrogates to compare; of those of "auto" the ones whose terms leave the study's problem bounded."""
    if isinstance(surrogate, str) and surrogate == "auto":
        return [
            atom for atom in AUTO if study is None or largest_weight(study.trial, atom, study.plain.parts) > 0
        ]
    given = list(surrogate) if isinstance(surrogate, list | tuple) else [surrogate]
    if not given or not all(isinstance(atom, MarginFunction | DCFunction) for atom in given):
        must = "'surrogate' must be 'auto', a margin function or a list of them"
        raise InvalidInputError(must, repr(surrogate), "Pass nerm.Logistic(), for instance")
    return given
