"""Hostile problems in three tiers, each made from one seed: unusual data and weights, and worse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import nerm
from nerm import atoms

TIERS = ("tame", "moderate", "extreme")
LOSSES = sorted(set(atoms.margin_functions()) - {"identity"})
SURROGATES = sorted(atoms.margin_functions())


@dataclass(frozen=True)
class Case:
    """One problem: its terms by name and weight, its data, and how they are bound.

    `omegas` are pairs (name, weight); `gamma` is the width of an RBF kernel, None for a linear hypothesis.
    """

    tier: str
    seed: int
    loss: str
    surrogate: str
    eta: float
    omegas: tuple[tuple[str, float], ...]
    groups: list[int]
    X: Any
    y: np.ndarray
    v: np.ndarray
    s: np.ndarray | None
    intercept: bool
    gamma: float | None

    @property
    def kind(self) -> str:
        """The class under which its outcome is counted."""
        return "kernel" if self.gamma is not None else "+".join(sorted(name for name, _ in self.omegas))

    def problem(self) -> nerm.Problem:
        """Bind it."""
        margin, omega = atoms.margin_functions(), atoms.regularizers()
        objective: Any = nerm.Risk(margin[self.loss]())
        for name, weight in self.omegas:
            made = omega[name](self.groups) if name == "group-l2" else omega[name]()
            objective = objective + weight * made
        if self.eta:
            objective = objective + self.eta * nerm.Neutrality(margin[self.surrogate]())
        kernel = None if self.gamma is None else nerm.kernels.RBF(gamma=self.gamma)
        viewpoint = self.v if self.eta else None
        return objective.on(
            self.X, self.y, viewpoint=viewpoint, kernel=kernel, intercept=self.intercept, sample_weight=self.s
        )


def case(tier: str, seed: int, *, largest: int = 40) -> Case:
    """Return the problem of this tier and seed, of at most so many rows."""
    rng = np.random.default_rng([TIERS.index(tier), seed])
    span = {"tame": 1.5, "moderate": 4.0, "extreme": 9.0}[tier]
    n, d = int(rng.integers(3, largest + 1)), int(rng.integers(1, 7))
    X = _columns(rng, tier, n, d)
    y = np.where(rng.random(n) < rng.choice([0.5, 0.5, 0.1]), 1.0, -1.0)
    if rng.random() < 0.6:  # labels that depend on the rows
        y = np.where(X[:, 0] - np.median(X[:, 0]) + 1e-300 > 0, 1.0, -1.0) * np.where(
            rng.random(n) < 0.1, -1, 1
        )
    y[:2] = 1.0, -1.0
    v = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    if tier != "tame" and rng.random() < 0.3:
        v = rng.normal(size=n) * 10.0 ** rng.uniform(-span / 3, span / 3)
    s = rng.integers(0, 4, size=n).astype(float) + 1e-3 if tier != "tame" and rng.random() < 0.2 else None
    names = ["squared-l2"] * 4 + ["l1", "elastic-net", "group-l2", "l-inf"]
    chosen = dict.fromkeys(rng.choice(names, size=rng.choice([1, 1, 1, 2, 3])).tolist())
    gamma = None
    if rng.random() < 0.2:
        spread = float(np.ptp(X, axis=0).max()) or 1.0
        chosen, gamma = {"squared-l2": None}, float(10.0 ** rng.uniform(-span / 3, span / 3) / spread**2)
    if gamma is None and tier != "tame" and rng.random() < 0.15:
        X = sp.csr_matrix(np.where(rng.random(X.shape) < 0.5, X, 0.0))
    lam = 10.0 ** rng.uniform(-span, span / 2 - 0.5)
    return Case(
        tier=tier,
        seed=seed,
        loss=str(rng.choice(LOSSES)),
        surrogate=str(rng.choice(SURROGATES)),
        eta=0.0 if rng.random() < 0.3 else float(10.0 ** rng.uniform(-2, span / 2)),
        omegas=tuple((name, float(lam * 10.0 ** rng.uniform(-1, 1))) for name in chosen),
        groups=[j // 2 for j in range(d)],
        X=X,
        y=y,
        v=v,
        s=s,
        intercept=bool(rng.random() < 0.8),
        gamma=gamma,
    )


def _columns(rng: np.random.Generator, tier: str, n: int, d: int) -> np.ndarray:
    """Return normal rows; in the worse tiers shifted, scaled, repeated, constant or integer ones too."""
    X = rng.normal(size=(n, d))
    if tier == "tame":
        return X
    worst = 3.0 if tier == "moderate" else 8.0
    if rng.random() < 0.4:
        X = X * 10.0 ** rng.uniform(-worst / 2, worst / 2, size=d)
    if rng.random() < 0.4:
        X = X + np.abs(X).max(axis=0) * 10.0 ** rng.uniform(0, worst)
    if rng.random() < 0.2:
        X = X[rng.integers(0, max(2, n // 3), size=n)]
    if rng.random() < 0.2:
        X[:, -1] = rng.choice([0.0, 1.0, 1e3])
    if rng.random() < 0.15:
        X = np.round(X)
    if tier == "extreme" and rng.random() < 0.1:
        X = (2**60 + rng.integers(-3, 4, size=(n, d)) * 2**9).astype(float)
    return X
