"""From a `LinearModel` to an `EngineResult`: prepare once, run, and give the rows back as they came."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from nerm.engine.bounds import dual_bound
from nerm.engine.coordinates import Coordinates, choose
from nerm.engine.interior_point import MAX_ITERATIONS, InteriorPoint, Outcome
from nerm.engine.margins import Margin
from nerm.engine.matrices import DenseFeatures, Features, SparseFeatures
from nerm.engine.model import EngineResult, LinearModel
from nerm.engine.pieces import Pieces
from nerm.engine.rows import equal_rows
from nerm.engine.threads import Blocks
from nerm.engine.working_set import optimum

WARM = 0.05  # barrier at a start from a neighbouring problem of unknown distance


@dataclass
class Prepared:
    """A model ready to run: merged rows, features in coordinates that suit them, pieces, and the terms that act."""

    model: LinearModel
    merged: tuple[np.ndarray, np.ndarray] | None
    features: Features
    pieces: Pieces
    coordinates: Coordinates
    acting: list[int]

    def engine(self, scale: float = 1.0) -> InteriorPoint:
        """Return the method for this model with every eta multiplied by `scale`."""
        self.pieces.eta = scale * np.array([self.model.neutralities[k].eta for k in self.acting])
        lam = self.model.mu * self.model.n_rows
        return InteriorPoint(self.pieces, self.features, lam, intercept=self.model.intercept)

    def result(self, outcome: Outcome, engine: InteriorPoint) -> EngineResult:
        """Expand an outcome to the rows and terms of the model."""
        model, n = self.model, self.model.n_rows
        if outcome.u is None or outcome.nu is None:
            outcome = _with_bound(outcome, engine)
        assert outcome.u is not None
        assert outcome.nu is not None
        coef, intercept = self.coordinates.outside(outcome.coef, outcome.intercept)
        scores = np.asarray(model.X @ coef) + intercept
        u = outcome.u if self.merged is None else outcome.u[:, self.merged[0]]
        R, K = len(model.losses), len(model.neutralities)
        alpha = np.empty((R, n))
        for r, loss in enumerate(model.losses):
            alpha[r] = -_where_weighted(loss.weights, u[r], loss.margin, model.y * scores)
        beta, theta = np.empty((2, K, n)), np.empty(K)
        for k, term in enumerate(model.neutralities):
            place = self.acting.index(k) if k in self.acting else None
            theta[k] = 0.5 if place is None else outcome.nu[place, 0] / outcome.nu[place].sum()
            for side, sign in enumerate((1.0, -1.0)):
                margins = sign * term.viewpoint * scores
                if place is None:
                    beta[side, k] = -term.margin.maximiser(margins)
                else:
                    beta[side, k] = -_where_weighted(term.weights, u[R + 2 * place + side], term.margin, margins)
        return EngineResult(
            coef=coef, intercept=intercept, alpha=alpha, beta_plus=beta[0], beta_minus=beta[1], theta=theta,
            primal=outcome.primal / n, dual=outcome.dual / n, iterations=outcome.iterations,
            converged=outcome.converged, rows=self.pieces.n_rows,
        )  # fmt: skip


def _where_weighted(weights: np.ndarray, u: np.ndarray, margin: Margin, margins: np.ndarray) -> np.ndarray:
    """Return u, and a subgradient where a row has no weight and so no multiplier."""
    return u if weights.all() else np.where(weights > 0, u, margin.maximiser(margins))


def _with_bound(outcome: Outcome, engine: InteriorPoint) -> Outcome:
    """Give an outcome that stopped short of any bound the best one its hypothesis allows."""
    at = engine.start(outcome.coef, outcome.intercept, 1e-6)
    nu = engine.pieces.of_each(at.nu)
    dual, u = dual_bound(engine.pieces, engine.features, engine.pieces.u, nu, engine.lam, intercept=engine.intercept)
    return replace(outcome, dual=dual, u=u, nu=at.nu)


@contextmanager
def prepared(model: LinearModel, *, merge: bool = True, workers: int | None = None) -> Iterator[Prepared]:
    """Merge equal rows and set up features and pieces; threads, one a core or `workers`, live as long as they do."""
    X = model.X
    if sp.issparse(X) and not (X.has_canonical_format and X.has_sorted_indices):
        X = X.copy()
        X.sum_duplicates()
    acting = model.acting()
    terms = tuple(model.neutralities[k] for k in acting)
    merged = equal_rows(X, np.vstack([model.y, *(term.viewpoint for term in terms)])) if merge else None
    if merged is not None:
        X = X[merged[1]]
    coordinates, X = choose(X, intercept=model.intercept)
    with Blocks(X.shape[0], X.shape[1], workers) as blocks:
        features: Features = SparseFeatures(X, blocks) if sp.issparse(X) else DenseFeatures(X, blocks)
        pieces = Pieces.of(replace(model, neutralities=terms), merged, blocks)
        yield Prepared(model, merged, features, pieces, coordinates, acting)


def solve(
    model: LinearModel,
    tol: float = 1e-6,
    *,
    start: tuple[np.ndarray, float] | None = None,
    max_iterations: int = MAX_ITERATIONS,
    merge: bool = True,
    workers: int | None = None,
) -> EngineResult:
    """Minimise P to the relative gap tol in at most `max_iterations`, on one thread a core or on `workers`.

    `start` is the (coef, intercept) of a neighbouring problem; `merge` puts equal rows together first.
    """
    with prepared(model, merge=merge, workers=workers) as ready:
        engine = ready.engine()
        outcome = None
        if start is not None:
            at = engine.warm(*ready.coordinates.inside(np.asarray(start[0], dtype=float), start[1]), WARM)
            outcome = optimum(engine, at, tol, max_iterations)
        if outcome is None:
            outcome = optimum(engine, engine.cold(), tol, max_iterations)
        elif not outcome.converged:
            outcome = outcome.then(optimum(engine, engine.cold(), tol, max_iterations - outcome.iterations), tol)
        return ready.result(outcome, engine)
