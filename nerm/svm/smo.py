"""A reference SMO for the exact and the published dual of the neutral SVM.

At a fixed nu^+ the exact dual is an SVM dual in 3n box variables gamma = (alpha, beta^+, beta^-) with targets
t = (y, v, -v) and upper bounds (s, nu^+ u, nu^- u), written here in z = t gamma. Its optimal value D(nu^+) is
concave with slope C^+ - C^-. The outer loop searches for a zero of this slope by bisection and secant steps;
the inner loop solves the box problem by pair steps from a warm start. The published dual is one box problem
in (alpha, r), with r = beta^+ - beta^-. This code is written to be read;
`problem.solve("smo")` is faster.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nerm.svm.data import EPS, Boxes, Floats, NeutralSVM, Result, neutral_svm, number, result_of


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
    max_iter: int = 1_000_000,
) -> Result:
    """Solve the dual of the neutral SVM by SMO until the relative duality gap is at most `tol`.

    Parameters
    ----------
    X : (n, d) matrix
        Dense or sparse; the (n, n) Gram matrix with ``kernel="precomputed"``.
    y, viewpoint : (n,) arrays
        Labels -1/+1 (or any two values), and v.
    lam, eta : float
        In sum form.
    kernel : {"linear", "rbf", "precomputed"} or callable
        With "linear" the result's `coef` is w, else c = a / lambda. The Gram matrix is kept in memory.
    variant : {"exact", "published"}
        "published" solves the dual as printed in the paper, which belongs to a different problem
        (docs/errata.md); it is kept for research.
    tol : float
        The relative duality gap.
    sample_weight, neutrality_weight : (n,) arrays, optional
        The row weights s of the risk and u of the neutrality term; ones by default.
    max_iter : int
        The maximal number of pair steps.

    Returns
    -------
    Result
        Hypothesis, dual variables and duality gap in mean form; ``history`` records the gap at some steps.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2)); y = np.sign(X[:, 0]); v = np.sign(X[:, 0] + X[:, 1])
    >>> result = smo(X, y, v, lam=1.0, eta=1.0)
    >>> result.status, bool(result.certificate.relative_gap < 1e-6)
    ('optimal', True)

    """
    settings = {"kernel": kernel, "variant": variant}
    weights = {"sample_weight": sample_weight, "neutrality_weight": neutrality_weight}
    data = neutral_svm(X, y, viewpoint, lam, eta, **settings, **weights)
    steps = int(number(max_iter, "max_iter", positive=True))
    return _Search(data, data.gram / data.lam, number(tol, "tol"), steps).run()


@dataclass
class _Search:
    """The search over nu^+, and the pair steps at a fixed nu^+; `K` is the Gram matrix divided by lambda."""

    data: NeutralSVM
    K: Floats
    tol: float
    max_iter: int
    steps: int = 0
    outer: int = 0
    history: list[dict[str, float]] = field(default_factory=list)

    def run(self) -> Result:
        """Search the optimal nu^+ in [0, eta] and return the result.

        After eta / 2, an end of the interval is tried, then bisection and secant steps alternate.
        """
        low, nu, high = 0.0, self.data.eta / 2, self.data.eta
        slope_low = slope_high = None
        z = np.zeros_like(self.data.boxes(nu).low)
        while True:
            self.outer += 1
            z, slope, found = self.solve_boxes(nu, z)
            if slope > 0:
                low, slope_low = nu, slope
            else:
                high, slope_high = nu, slope
            claim = "not converged: rounding errors prevent further progress"
            if found.status == "optimal":
                claim = "optimal: the duality gap is within the tolerance"
            elif self.steps == self.max_iter:
                claim = f"not converged: the limit of {self.max_iter} pair steps was reached"
            elif self.data.exact and high - low > EPS * self.data.eta:
                if slope_low is None or slope_high is None:
                    nu = low if slope_low is None else high
                elif self.outer % 2:
                    nu = (low + high) / 2
                else:
                    nu = low + (high - low) * slope_low / (slope_low - slope_high)
                continue
            details: dict[str, Any] = {"iterations": self.steps, "outer_iterations": self.outer}
            return replace(found, claim=claim, history=tuple(self.history), **details)

    def solve_boxes(self, nu: float, z: Floats) -> tuple[Floats, float, Result]:
        """Solve the dual at a fixed nu^+, starting from z, until its relative gap is at most tol / 8.

        Return z, the slope C^+ - C^-, and the `Result` at z.
        """
        boxes = self.data.boxes(nu)
        z = boxes.feasible(z, self.K @ z.sum(axis=0))
        violation = 1.0
        while True:
            z, ends = self.pair_steps(boxes, z, violation / 10)
            violation = max(ends[0] - ends[1], 0.0)
            found = result_of(self.data, z, nu, self.tol)
            self.history.append(found.certificate.entry(self.steps))
            known = [end for end in ends if np.isfinite(end)]
            a, scores = z.sum(axis=0), self.K @ z.sum(axis=0)
            f = scores + (sum(known) / len(known) if known else 0.0)
            inner_gap = boxes.loss(f) + a @ scores - boxes.constant - (boxes.gain * z).sum()
            small = inner_gap <= self.tol / 8 * len(a) * found.certificate.primal
            if small or violation == 0 or found.status == "optimal" or self.steps == self.max_iter:
                return z, float(np.subtract(*self.data.sides(f))), found

    def pair_steps(self, boxes: Boxes, z: Floats, tol: float) -> tuple[Floats, tuple[float, float]]:
        """Take two-variable steps until m - M <= tol; return z and (m, M).

        Here F = gain - K a / lambda is the gradient of the dual, m is its maximum over the entries of z that
        can increase, and M its minimum over those that can decrease. Increasing z_i by delta and decreasing
        z_j by delta increases the dual by (F_i - F_j) delta - A_ij delta^2 / 2, where
        A_ij = (K_ii - 2 K_ij + K_jj) / lambda. The second-order rule of LIBSVM chooses the pair. If A_ij = 0
        (same sample or equal rows), the step goes to the bound.
        """
        diagonal = self.K.diagonal()
        n = len(diagonal)
        F = boxes.gain - self.K @ z.sum(axis=0)
        least = 4 * EPS * (boxes.high - boxes.low)  # an entry of z closer to a bound counts as at the bound
        rise, fall = (np.where(gap > least, gap, 0.0) for gap in (boxes.high - z, z - boxes.low))
        floor = 16 * EPS * np.abs(F[rise + fall > 0]).max(initial=0.0)
        while True:
            up, down = np.where(rise > 0, F, -np.inf), np.where(fall > 0, F, np.inf)
            i = int(up.argmax())
            best, worst = float(up.flat[i]), float(down.min())
            if best - worst <= max(tol, floor) or self.steps == self.max_iter:
                break
            self.steps += 1
            curvature = np.maximum(diagonal[i % n] + diagonal - 2 * self.K[i % n], EPS * diagonal.max())
            j = int((np.maximum(best - down, 0.0) ** 2 / curvature).argmax())
            move = min((best - down.flat[j]) / curvature[j % n], rise.flat[i], fall.flat[j])
            for k, delta in ((i, move), (j, -move)):
                rise.flat[k] -= delta
                fall.flat[k] += delta
            F -= move * (self.K[i % n] - self.K[j % n])
        if best - worst <= floor:
            worst = best  # the difference is rounding error
        return np.clip(np.where(fall > 0, boxes.high - rise, boxes.low), boxes.low, boxes.high), (best, worst)
