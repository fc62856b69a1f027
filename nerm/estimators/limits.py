"""Fit classifiers within limits on measured neutrality, and prove that the limits hold on new rows.

The proof (`Promise`) uses a hold-out: rows that are not used to fit the k candidates, each a ranking with
its threshold. Every measure is made of rates P(event | A), where A is a condition such as v > 0. An upper
bound of Clopper and Pearson on each rate gives a bound on the measure of new rows. A measure that is the
largest of several parts (pairs of groups, signs, classes) is bounded by the largest bound of a part: which
part is the largest on new rows does not depend on the hold-out, so delta is not divided among the parts. It
is divided among the candidates and the measures (Bonferroni), so that the bounds of all measures hold
together for the candidate that is chosen: the first one, in order of decreasing limits, whose bounds are
within the limits. If there is none, `NoPromiseError` is raised.

The bound on a rate needs the hold-out rows in A to be i.i.d. draws given A, independent of the rows used to
fit f. If the rows (x, y, v) are i.i.d. and the hold-out is drawn within strata, this holds, conditionally on
the strata of all rows, if every A lies within one stratum. If a stratum boundary divides A, the proportions
of the strata in the hold-out depend on the rows used to fit f, and the bound does not hold. The strata are
therefore conditions of the measures: label and viewpoint if all rates are given the label, else the
viewpoint. There are no strata for C_sgn, for an accuracy, for several viewpoints, for rates given the label
with more than two classes, or with a shift.

With a `shift`, new rows may have other shares of the groups (of the combinations of all viewpoints, which are
cells): the distribution within each cell is the same, and the share of each cell differs by at most the shift
from its share among the rows given to `fit`. Each rate is bounded in each cell, and the worst mixture of the
cells is a linear program (`nerm.bounds.worst_mixture`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any

import numpy as np

from nerm.bounds import holdout_rate_bound, worst_mixture
from nerm.errors import InvalidInputError, NearlyConstantWarning, NoPromiseError, NotNeutralError
from nerm.estimators.design import TrainingRows, as_atom
from nerm.metrics import METRICS, Metric
from nerm.neutralize import Neutralized, Target
from nerm.neutralize.groups import Groups
from nerm.neutralize.neutralizing import answers, predicted, search_for, target_groups
from nerm.neutralize.search import Search
from nerm.signs import sign
from nerm.splitting import HOLD_OUT, hold_out
from nerm.typing import Bools, Floats, Ints

TIGHTENED = tuple(0.5**k for k in range(1, 5))  # limits of candidates, as fractions of the limit


@dataclass(frozen=True)
class Promise:
    """The statement that the measure on new rows is at most `bound`, with probability `confidence`.

    Attributes
    ----------
    measure, limit
        The name of the measure, and its limit.
    bound, measured : float
        The bound on the measure of new rows, within `limit`, and the measure on the hold-out.
    confidence : float
        The probability that the user set.
    rows, candidates : int
        The number of rows in the hold-out, and the number of models compared on them.
    shift : float
        The statement also holds for new rows in which the share of each group differs by at most this number.
    also : tuple of Promise
        The statements about other measures: all hold together with probability `confidence`.

    """

    measure: str
    limit: float
    bound: float
    measured: float
    confidence: float
    rows: int
    candidates: int
    shift: float = 0.0
    also: tuple[Promise, ...] = ()

    def __str__(self) -> str:
        ratios = {name for name, metric in METRICS.items() if metric.best}
        parts = [
            f"the {one.measure} of new rows is at {'least' if one.measure in ratios else 'most'} "
            f"{one.bound:.4f} (limit {one.limit:g}; measured {one.measured:.4f} on {one.rows} held-out rows; "
            f"bound corrected for {one.candidates} models)"
            for one in (self, *self.also)
        ]
        shifted = f", also if the share of a group differs by {self.shift:g}" if self.shift else ""
        return f"with probability {self.confidence:g} {' and '.join(parts)}{shifted}"


def target_of(model: Any) -> Target | None:
    """Return the validated target from a classifier's parameters; None if it has no limit."""
    for name, needed in (("confidence", "limit"), ("shift", "confidence")):
        if getattr(model, name) and getattr(model, needed) is None:
            must = f"{name!r} must come with a {needed}"
            raise InvalidInputError(must, f"{getattr(model, name)!r} and no {needed}", f"Pass {needed}=")
    if model.limit is None:
        return None
    surrogate = model.surrogate
    if not (isinstance(surrogate, str) and surrogate == "auto"):
        surrogate = as_atom(surrogate, "surrogate")
    names = ("limit", "measure", "tol", "prefer", "keep", "groups", "confidence", "shift", "verbose")
    return Target(surrogate=surrogate, **{name: getattr(model, name) for name in names})


def rows_to_learn_from(rows: TrainingRows, target: Target | None) -> Ints:
    """Return the indices of the training rows: all, or with a confidence those not in the hold-out."""
    if target is None or target.confidence is None:
        return np.arange(len(rows.codes))
    learned = np.flatnonzero(~held_out(rows, target))
    if len(np.unique(rows.codes[learned])) < len(np.unique(rows.codes)):
        failed = "Every class must have rows that are not held out"
        raise NoPromiseError(failed, "All rows of one class are held out", [("rows", "use more")])
    return learned


def neutralized(
    model: Any, rows: TrainingRows, classes: Sequence[int], target: Target, learned: Ints
) -> tuple[list[Neutralized], Promise | None]:
    """Search for models within the limit; return one result per binary problem, and the promise.

    Parameters
    ----------
    model, rows
        The classifier, and all rows including the hold-out.
    classes : sequence of int
        The index of the positive class of each binary problem.
    target : Target
        The limit, the measure and the options of the search.
    learned : array of int
        Indices of the rows used for training; the others are the hold-out.

    Returns
    -------
    results : list of Neutralized
        One per binary problem.
    promise : Promise or None
        None if the target has no confidence.
    """
    rows.check_viewpoints()
    if target.metric.is_custom:
        must = "with a measure of your own all rows must have equal weight"
        rows.check_equal_weights(must, "Name a measure of nerm.metrics, or leave the weights out")
    if target.confidence is None:
        try:
            return answers(_searches(model, rows, classes, [target] * len(classes))), None
        except NotNeutralError as error:
            if not model.nearest or error.best is None:
                raise
            warnings.warn(". ".join(error.parts[:2]), NearlyConstantWarning, stacklevel=5)
            return error.best if isinstance(error.best, list) else [error.best], None
    held = HeldOut.of(rows, np.setdiff1d(np.arange(len(rows.codes)), learned), learned, target)
    m, stated, bounds = len(held.rows.codes), target.statements, []
    for metric, _ in stated:  # before the search: is the measure defined on the hold-out?
        held.bound(metric, classes, np.ones((m, len(classes))), 0.5)
    candidates = _tightened(model, rows.at(learned), classes, target)
    delta = (1 - target.confidence) / (len(candidates) * len(stated))
    for found in candidates:
        scores = np.column_stack([one.solution.decision_function(held.rows.X) for one in found])
        shown = predicted(scores) if len(classes) > 1 else scores
        bounds.append(np.array([held.bound(metric, classes, shown, delta) for metric, _ in stated]))
        if (bounds[-1][:, 0] <= [metric.allowance(limit) for metric, limit in stated]).all():
            about = target.confidence, m, len(candidates), target.shift
            promises = []
            for (metric, limit), ends in zip(stated, bounds[-1], strict=True):
                bound, value = np.abs(metric.best - ends).tolist()
                promises.append(Promise(metric.name, limit, bound, value, *about))
            return found, replace(promises[0], also=tuple(promises[1:]))
    raise no_promise(target, bounds, m)


def _searches(
    model: Any, rows: TrainingRows, classes: Sequence[int], targets: Sequence[Target]
) -> list[Search]:
    """Return one search per binary problem."""
    problem, found = None, []
    for k, target in zip(classes, targets, strict=True):
        problem = model._problem(rows, k, problem)
        options = {"first": float(problem.etas.max()) or None, "one_of_several": len(classes) > 1}
        found.append(search_for(problem, target, rows.sample_weight, solver=model.solver, **options))
    return found


def _tightened(
    model: Any, rows: TrainingRows, classes: Sequence[int], target: Target
) -> list[list[Neutralized]]:
    """Return the candidates: models within ever smaller fractions (`TIGHTENED`) of the limit.

    Each candidate is a list with one result, a ranking and a threshold, per binary problem. The list ends at
    the first limit that no model meets, and equal candidates appear once. For each class, the
    surrogate chosen at the first limit is used at all limits.
    """
    found: dict[Any, list[Neutralized]] = {}
    surrogates = [target.surrogate] * len(classes)
    for share in TIGHTENED:
        try:
            targets = [replace(target.tightened(share), surrogate=surrogate) for surrogate in surrogates]
            new = answers(_searches(model, rows, classes, targets))
        except NotNeutralError as error:
            if not found:
                failed = f"No model within {share:g} of {target.condition} leaves a margin for new rows"
                raise NoPromiseError(failed, ". ".join(error.parts[:2]), error.advice) from error
            break
        found.setdefault(tuple((one.eta, one.threshold) for one in new), new)
        surrogates = [one.surrogate for one in new]
    return list(found.values())


def held_out(rows: TrainingRows, target: Target) -> Bools:
    """Return which rows are in the hold-out, (n,) bool.

    The hold-out is stratified by the conditions of the measure (see the docstring of this module).
    """
    rows.check_equal_weights("a promise needs rows of equal weight")
    strata, asked = [np.zeros(len(rows.codes))], [metric for metric, _ in target.statements]
    given_groups = all(metric.weights and "uniform" not in metric.weights for metric in asked)
    if len(rows.viewpoints) == 1 and given_groups and not target.shift:
        (v,) = rows.viewpoints.values()
        if not all("y" in metric.arguments for metric in asked):
            strata = [sign(v)]
        elif len(np.unique(rows.codes)) == 2:  # with more, a one-vs-rest label -1 spans several strata
            strata = [rows.codes, sign(v)]
    return hold_out(strata, HOLD_OUT, 0)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The rows held out, m in number, in k cells whose shares may shift.

    Attributes
    ----------
    rows, groups
        The rows, and the groups that are compared.
    cells : (m,) array of int
        The cell of each row; all rows are in one cell if there is no shift.
    low, high : (k,) arrays
        The smallest and the largest share of all rows that each cell may have.

    """

    rows: TrainingRows
    groups: tuple[Groups, ...]
    cells: Ints
    low: Floats
    high: Floats

    @classmethod
    def of(cls, rows: TrainingRows, places: Ints, learned: Ints, target: Target) -> HeldOut:
        """Return the rows with the indices `places`; shares of cells are those of all rows."""
        for metric, _ in target.statements:
            if metric.is_custom or not (metric.is_agreement or metric.best):
                must = "'confidence' needs a measure with a known bound on new rows"
                do = "Use 'calders_verwer_score', 'neutrality_risk' or another measure made of rates, or "
                raise InvalidInputError(must, f"{metric.name!r}", f"{do}leave confidence out")
        cells = np.zeros(len(rows.codes), dtype=int)
        if target.shift:
            signs = np.column_stack([sign(v) for v in rows.viewpoints.values()])
            cells = np.unique(signs, axis=0, return_inverse=True)[1].ravel()
        shares = np.bincount(cells) / len(cells)
        if len(np.unique(cells[places])) < len(shares):
            failed = "Every combination of the groups must have held-out rows"
            raise NoPromiseError(failed, "One has none", [("rows", "use more"), ("shift", "leave out")])
        groups = tuple(one.at(places) for one in target_groups(rows.viewpoints, target))
        spread = np.clip(shares - target.shift, 0, 1), np.clip(shares + target.shift, 0, 1)
        return cls(rows.at(places, against=learned), groups, cells[places], *spread)

    def upper(self, event: Bools, among: Bools, delta: float, labels: Bools | None = None) -> float:
        """Return an upper bound on P(event | among, labels), which holds with probability 1 - delta.

        `among` is made of whole cells, if there are several; `labels` are the rows with a label, or None. The
        weight of a cell is its share, times its rate of the label.
        """
        rows = among if labels is None else among & labels
        cells = np.unique(self.cells[among])
        tail = delta / (len(cells) if labels is None or len(cells) == 1 else 3 * len(cells))
        sizes = [np.bincount(self.cells[of], minlength=len(self.low)) for of in (rows & event, rows, among)]
        hits, tries, every = (size[cells].tolist() for size in sizes)
        rates = [holdout_rate_bound(*pair, delta=tail) for pair in zip(hits, tries, strict=True)]
        if len(cells) == 1:
            return rates[0]
        low, high, out = self.low[cells], self.high[cells], np.delete(np.arange(len(self.low)), cells)
        total = 1 - self.high[out].sum(), 1 - self.low[out].sum()
        if labels is not None:
            pairs, total = list(zip(tries, every, strict=True)), (0.0, np.inf)
            high = high * [holdout_rate_bound(k, m, delta=tail) for k, m in pairs]
            low = low * [1 - holdout_rate_bound(m - k, m, delta=tail) for k, m in pairs]
        return worst_mixture(rates, low, high, total)

    def bound(self, metric: Metric, classes: Sequence[int], scores: Floats, delta: float) -> Floats:
        """Return a bound on the distance of a measure from its best value, and the distance here, (2,).

        The bound holds for new rows with probability 1 - delta. `scores` has one column per class; the labels
        are +1 for the class and -1 for the rest.
        """
        everyone, codes = np.ones(len(scores), dtype=bool), self.rows.codes
        if not metric.weights:  # the accuracy
            wrong = (scores.argmax(axis=1) if len(classes) > 1 else scores[:, 0] > 0) != codes
            return np.array([self.upper(wrong, everyone, delta), wrong.mean()])
        found = []
        for (k, f), groups, weights in product(
            zip(classes, scores.T, strict=True), self.groups, metric.weights
        ):
            y, positive = codes == k, f > 0
            if weights == "uniform":
                agree = positive == (sign(next(iter(groups.views.values()))) > 0)
                found += [(2 * self.upper(e, everyone, delta) - 1, 2 * e.mean() - 1) for e in (agree, ~agree)]
                continue
            labels = {"equal_opportunity": y, "predictive_equality": ~y}.get(weights)
            members = [groups.codes == j for j in range(len(groups.names))]
            cells = [of if labels is None else of & labels for of in members]
            missing = [name for name, cell in zip(groups.names, cells, strict=True) if not cell.any()]
            if missing or len(cells) < 2:
                failed = "Every group must have held-out rows with the label of the measure"
                advice = [("rows", "use more"), ("confidence", "leave out")]
                raise NoPromiseError(failed, f"None is in {', '.join(missing) or 'another group'}", advice)
            highs = [self.upper(positive, of, delta / 2, labels) for of in members]
            lows = [1 - self.upper(~positive, of, delta / 2, labels) for of in members]
            rates = [positive[cell].mean() for cell in cells]
            for i, j in permutations(range(len(cells)), 2):
                found.append((metric.apart(highs[i], lows[j]), metric.apart(rates[i], rates[j])))
        return np.max(found, axis=0)


def no_promise(target: Target, bounds: Sequence[Floats], rows: int) -> NoPromiseError:
    """Return the error with the closest candidate and the number of rows that would suffice.

    A bound is value + width. With t times as many rows, each width is divided by about sqrt(t), so the limits
    are met for t = max ((width / (limit - value))^2) over the measures. `bounds` has one (number of measures,
    2) array per candidate, with columns (bound, value); `rows` is the number of rows in the hold-out.
    """
    limits = np.array([metric.allowance(limit) for metric, limit in target.statements])
    closest = min(bounds, key=lambda found: float((found[:, 0] / limits).max()))
    number = int((closest[:, 0] / limits).argmax())
    metric = target.statements[number][0]
    bound, value = np.abs(metric.best - closest[number])
    rows_needed = "use many more"
    within = [found for found in bounds if (found[:, 1] < limits).all()]
    if within:
        times = min(float(((b[:, 0] - b[:, 1]) / (limits - b[:, 1])).max()) ** 2 for b in within)
        more = int(np.ceil(rows * (times - 1) / HOLD_OUT))
        rows_needed = f"use about {more} more"
    failed = f"No model has {target.condition} on new rows with probability {target.confidence:g}"
    best = (
        f"The best of {len(bounds)} has a bound of {bound:.4f} (measured {value:.4f} on {rows} held-out rows)"
    )
    best = best if len(limits) == 1 else f"{best} for {metric.name}"
    return NoPromiseError(failed, best, [("limit", "raise"), ("rows", rows_needed)])
