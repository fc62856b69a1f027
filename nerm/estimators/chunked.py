"""Classifiers on chunks of rows: fitted in a few passes, predicting chunk by chunk and lazily, as dask-ml's do."""

import warnings
from typing import Any

import numpy as np

from nerm.chunks.chunked_problem import bind_chunks
from nerm.chunks.source import Chunks
from nerm.errors import InvalidInputError, NearlyConstantWarning
from nerm.estimators.design import insist, kept
from nerm.estimators.limits import Asked
from nerm.metrics import as_metric
from nerm.neutralize.collapse import collapse
from nerm.signs import sign


def fit_on_chunks(model: Any, X: Any, y: Any, viewpoint: Any, sample_weight: Any) -> Any:
    """Fit a classifier of two classes, linear, in a few passes over the chunks, and return it."""
    chunks = _as_chunks(X, y, viewpoint, sample_weight)
    coding = chunks.coding(groups=True)
    sample = coding.coded(chunks.sample)
    totals = np.array(
        [sum(w for (c, _), w in chunks.census.weights[""].items() if c == k) for k in coding.classes]
    )
    class_weight = model._class_weights(coding.classes, np.arange(2), totals)
    design = model._design(sample.X, sample.sample_weight, list(coding.groups))
    asked = Asked.of(model)
    if design.kernel is not None or (asked is not None and asked.confidence is not None):
        must = "a classifier on chunks must be linear, without a promise"
        got = f"kernel={model.kernel!r}" if design.kernel is not None else f"confidence={model.confidence!r}"
        raise InvalidInputError(must, got, "Drop it, or use rows in memory")
    objective = design.objective(design.lam / design.own_form(coding.total))
    problem = bind_chunks(objective, chunks, intercept=design.intercept, groups=True, weighted=True,
                          class_weight=(float(class_weight[0]), float(class_weight[1])))  # fmt: skip
    for name in (
        "solutions_",
        "eta_",
        "neutrality_",
        "trace_",
        "promise_",
    ):  # a refusal leaves no model behind
        model.__dict__.pop(name, None)
    model._weights, model._features = None, chunks.features
    if asked is None:
        solution = problem.solve(design.tol)
    else:
        surrogate = None if isinstance(asked.surrogate, str) else asked.surrogate
        options = {"tol": design.tol, "surrogate": surrogate, "keep": asked.keep}
        found = problem.neutralize(asked.limit, asked.measure, **options)
        solution, model.eta_, model.neutrality_, model.trace_ = (
            found.solution,
            found.eta,
            found.value,
            found.trace,
        )
        model._weights = as_metric(asked.measure).weights * len(coding.groups)
    insist(solution)
    model.classes_, model.dropped_columns_, model.n_features_in_ = coding.classes, (), sample.X.shape[1]
    weights = zip(coding.classes.tolist(), class_weight.tolist(), strict=True)
    model.class_weight_ = {} if model.class_weight is None else dict(weights)
    model.kernel_, model.total_weight_ = None, coding.total
    model.coef_, model.intercept_ = solution.coef[None, :].copy(), np.array([solution.intercept])
    model.n_iter_, model._facts = solution.stats.iterations or 1, [{}]
    model.certificate_ = solution.certificate.times(design.own_form(coding.total))
    model.solutions_ = (kept(solution, design, model._weights),)
    model.collapse_ = collapse(
        sample.X @ solution.coef + solution.intercept,
        (sample.y > 0).astype(int),
        [f"class {label!r}" for label in coding.classes.tolist()],
        {f"{name} {side:+d}": sign(v) == side for name, v in sample.viewpoints.items() for side in (1, -1)},
        weight=sample.sample_weight,
    )
    if model.collapse_ is not None:
        warnings.warn(f"{model.collapse_} Try another eta or lam.", NearlyConstantWarning, stacklevel=3)
    return model


def _as_chunks(X: Any, y: Any, viewpoint: Any, sample_weight: Any) -> Chunks:
    given = {"y": y, "viewpoint": viewpoint, "sample_weight": sample_weight}
    given = {name: value for name, value in given.items() if value is not None}
    if not isinstance(X, Chunks):
        return Chunks({"X": X, **given})
    if given:
        must = "chunks must bring y, viewpoint and sample_weight themselves"
        raise InvalidInputError(must, f"{next(iter(given))!r} beside chunks", "Leave it out")
    return X
