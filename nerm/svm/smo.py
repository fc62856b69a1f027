"""A reference SMO for the neutral SVM's exact dual, and for the published one.

At a fixed nu^+ the exact dual is an SVM dual in 3n box variables gamma = (alpha, beta^+, beta^-) with targets
t = (y, v, -v) and upper bounds (s, nu^+ u, nu^- u). Its value D(nu^+) is concave with slope C^+ - C^-. Pair
steps solve the box problem, warm started, inside a safeguarded search for a zero of that slope. The published
dual is one box problem in (alpha, r). This code is written to be read; `problem.solve("smo")` is faster.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nerm.svm.data import EPS, Boxes, Floats, NeutralSVM, neutral_svm, number, require
from nerm.svm.result import Result, result_of


def smo(
    X: Any,
    y: Any,
    viewpoint: Any,
    lam: float,
    eta: float,
    kernel: Any = "rbf",
    variant: str = "exact",
    tol: float = 1e-6,
    sample_weight: Any = None,
    neutrality_weight: Any = None,
    callback: Callable[[dict[str, float]], object] | None = None,
    cache_mb: float = 500.0,
    warm_start: Any = None,
    max_iter: int = 1_000_000,
) -> Result:
    """Solve the neutral SVM's dual by two-variable steps until the relative duality gap is at most tol.

    Parameters
    ----------
    X : (n, d) matrix
        Dense or sparse; the (n, n) Gram matrix with ``kernel="precomputed"``.
    y, viewpoint : (n,) arrays
        Labels -1/+1 (or any two values), and v.
    lam, eta : float
        In sum form.
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable
        With "linear" the result's `coef` is w, else c = a / lambda.
    variant : {"exact", "published"}
        "published" solves the printed dual, which is that of a shrinkage problem, kept for research
        (docs/errata.md).
    tol : float
        The relative duality gap.
    sample_weight, neutrality_weight : (n,) arrays, optional
        s and u.
    callback : callable, optional
        Gets a dict (iterations, outer_iterations, primal, dual, gap, violation, values in mean form) after
        every run of pair steps; returning False stops the search.
    cache_mb : float
        Memory that the Gram matrix may take, in MiB. A larger one is an error.
    warm_start : Result, optional
        An earlier one on the same rows, for instance of another eta or lambda.
    max_iter : int
        The limit of pair steps.

    Returns
    -------
    Result
        With its duality gap in mean form.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2)); y = np.sign(X[:, 0]); v = np.sign(X[:, 0] + X[:, 1])
    >>> cold = smo(X, y, v, lam=1.0, eta=1.0)
    >>> cold.status, bool(cold.certificate.relative_gap < 1e-6)
    ('optimal', True)
    >>> warm = smo(X, y, v, lam=1.0, eta=1.1, warm_start=cold)
    >>> bool(cold.certificate.dual <= warm.certificate.primal)  # the optimum does not fall with eta
    True

    """
    settings = {"kernel": kernel, "variant": variant}
    weights = {"sample_weight": sample_weight, "neutrality_weight": neutrality_weight}
    data = neutral_svm(X, y, viewpoint, lam, eta, **settings, **weights)
    size = 8 * len(data.y) ** 2 / 2**20
    must = f"the Gram matrix must fit into cache_mb = {cache_mb} MiB"
    fits = size <= number(cache_mb, "cache_mb", positive=True)
    require(fits, must, f"{size:.0f} MiB", "Raise cache_mb, or use problem.solve('smo')")
    steps = int(number(max_iter, "max_iter", positive=True))
    search = _Search(data, number(tol, "tol"), steps, callback)
    return search.run(*_start(data, warm_start))


def _start(data: NeutralSVM, warm_start: Any) -> tuple[Floats, float]:
    """Return shares of the upper bounds, one row per block, and nu^+."""
    n = len(data.y)
    if warm_start is None:
        return np.zeros(data.boxes(0.0).high.shape), data.eta / 2
    given = warm_start.multipliers
    got = f"a result on {len(given.alpha)} rows"
    require(len(given.alpha) == n, f"'warm_start' must belong to the same {n} rows", got, "Start without it")
    if not data.exact:
        return np.array([given.alpha, given.beta_plus - given.beta_minus]), 0.0
    theta = given.theta if np.isfinite(given.theta) else 0.5
    return np.array([given.alpha, given.beta_plus, given.beta_minus]), theta * data.eta


@dataclass
class _Search:
    """The search over nu^+, and the pair steps at a fixed one."""

    data: NeutralSVM
    tol: float
    max_iter: int
    callback: Callable[[dict[str, float]], object] | None
    steps: int = 0
    outer: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    claim: str = ""

    def run(self, share: Floats, nu: float) -> Result:
        """Search nu^+: try the ends of [0, eta], then halve the bracket and take secant steps in turn."""
        low, high = 0.0, self.data.eta
        slope_low = slope_high = None
        while True:
            self.outer += 1
            boxes = self.data.boxes(nu)
            gamma, slope = self.solve_boxes(boxes, share * boxes.high)
            if slope > 0:
                low, slope_low = nu, slope
            else:
                high, slope_high = nu, slope
            if not self.claim and (not self.data.exact or high - low <= EPS * self.data.eta):
                self.claim = "not converged: rounding errors prevent further progress"
            if self.claim:
                break
            share = np.divide(gamma, boxes.high, out=share, where=boxes.high > 0)
            if slope_low is None or slope_high is None:
                nu = low if slope_low is None else high
            elif self.outer % 2:
                nu = (low + high) / 2
            else:
                nu = low + (high - low) * slope_low / (slope_low - slope_high)
        details: dict[str, Any] = {"iterations": self.steps, "outer_iterations": self.outer}
        details["history"] = tuple(self.history)
        return result_of(self.data, gamma, nu, self.tol, self.claim, **details)

    def solve_boxes(self, boxes: Boxes, gamma: Floats) -> tuple[Floats, float]:
        """Solve the dual at a fixed nu^+ until its gap is far below tol; return gamma and C^+ - C^-."""
        data = self.data
        gamma = boxes.balanced(gamma, data.gram @ boxes.a(gamma) / data.lam)
        violation = 1.0
        while True:
            gamma, scores, ends = self.pair_steps(boxes, gamma, violation / 10)
            violation = max(ends[0] - ends[1], 0.0)
            known = [end for end in ends if np.isfinite(end)]
            f = scores + (sum(known) / len(known) if known else 0.0)
            squared_norm = float(boxes.a(gamma) @ scores)  # lambda ||w||^2
            inner_gap = boxes.loss(f) + squared_norm - float((boxes.gain * gamma).sum())
            primal = self.record(boxes, gamma, scores, violation)
            if self.claim or violation == 0 or inner_gap <= self.tol / 8 * primal:
                return gamma, float(np.subtract(*data.sides(f)))

    def pair_steps(
        self, boxes: Boxes, gamma: Floats, tol: float
    ) -> tuple[Floats, Floats, tuple[float, float]]:
        """Take two-variable steps until m - M <= tol; return gamma, the scores without intercept and (m, M).

        Raising a_i by delta and lowering a_j by delta raises the dual by (F_i - F_j) delta - A_ij delta^2 / 2
        with F = gain / t - K a / lambda and A_ij = (K_ii - 2 K_ij + K_jj) / lambda. The pair is chosen by the
        second-order rule of LIBSVM. A_ij is 0 within a sample and between equal rows: step to the bound.
        """
        data = self.data
        gram = data.gram / data.lam
        diagonal = gram.diagonal()
        n = len(diagonal)
        gamma = gamma.copy()
        levels = boxes.levels(gram @ boxes.a(gamma))
        rise, fall = boxes.slack(gamma)
        least = EPS * diagonal.max()
        floor = 16 * EPS * np.abs(levels[rise + fall > 0]).max(initial=0.0)
        while True:
            up = np.where(rise > 0, levels, -np.inf)
            down = np.where(fall > 0, levels, np.inf)
            i = int(up.argmax())
            best, worst = float(up.flat[i]), float(down.min())
            if best - worst <= max(tol, floor) or self.steps == self.max_iter:
                break
            self.steps += 1
            curvature = np.maximum(diagonal[i % n] + diagonal - 2 * gram[i % n], least)
            j = int((np.maximum(best - down, 0.0) ** 2 / curvature).argmax())
            move = min((best - down.flat[j]) / curvature[j % n], rise.flat[i], fall.flat[j])
            for k, sign in ((i, 1.0), (j, -1.0)):
                rise.flat[k] -= sign * move
                fall.flat[k] += sign * move
                gamma.flat[k] += sign * move / boxes.target.flat[k]
            levels -= move * (gram[i % n] - gram[j % n])
        if best - worst <= floor:
            worst = best  # as far as rounding allows
        if self.steps == self.max_iter:
            self.claim = f"not converged: the limit of {self.max_iter} pair steps was reached"
        return gamma, gram @ boxes.a(gamma), (best, worst)

    def record(self, boxes: Boxes, gamma: Floats, scores: Floats, violation: float) -> float:
        """Compute both values, tell the callback, and set the claim where the search is over; return P."""
        data = self.data
        a = boxes.a(gamma)
        n = len(a)
        primal = float(data.loss(scores + data.best_intercept(scores)) + a @ scores / 2)
        dual = data.dual(boxes, gamma)
        entry = {"iterations": self.steps, "outer_iterations": self.outer, "primal": primal / n}
        entry |= {"dual": dual / n, "gap": (primal - dual) / n, "violation": violation}
        self.history.append(entry)
        stop = self.callback is not None and self.callback(dict(entry)) is False
        if primal - dual <= self.tol * primal:
            self.claim = "optimal: the duality gap is within the tolerance"
        elif stop:
            self.claim = "stopped: the callback asked for it"
        return primal
