"""A reference SMO for the exact and the published dual of the neutral SVM.

At a fixed nu^+ the exact dual is an SVM dual in 3n box variables gamma = (alpha, beta^+, beta^-) with targets
t = (y, v, -v) and upper bounds (s, nu^+ u, nu^- u), written here in z = t gamma. Its optimal value D(nu^+) is
concave with slope C^+ - C^-. The outer loop searches for a zero of this slope by bisection and secant steps;
each box problem is solved by pair steps from a warm start. The published dual is one box problem in
(alpha, r_+, r_-), with r = beta^+ - beta^- (see `nerm.svm.data`). This code is written to be read;
`problem.solve("smo")` is faster.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from nerm.svm.data import EPS, Floats, NeutralSVM, Result, number


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
    data = NeutralSVM(X, y, viewpoint, lam, eta, sample_weight, neutrality_weight, True, kernel, variant)
    tol, max_iter = number(tol, "tol"), int(number(max_iter, "max_iter", positive=True))
    K = data.gram / data.lam
    # the optimal nu^+ lies between the two ends; slopes are C^+ - C^- at the ends, nan while not known
    nu, ends, slopes = data.eta / 2, [0.0, data.eta], [np.nan, np.nan]
    z, violation = np.zeros((3, len(K))), 1.0
    steps, outer, history = 0, 1, list[dict[str, float]]()
    while True:
        low, high = data.boxes(nu)
        z, m, M, steps = pair_steps(K, data.gain, low, high, z, violation / 10, steps, max_iter)
        found = data.result(z, nu, tol)
        history.append({"iterations": steps, **found.certificate._asdict()})
        claim = "optimal: the duality gap is within the tolerance"
        if found.status == "optimal":
            break
        claim = f"not converged: the limit of {max_iter} pair steps was reached"
        if steps == max_iter:
            break
        # the gap of the box problem at the intercept (m + M) / 2; take more pair steps while it is too large
        scores, violation = K @ z.sum(axis=0), max(m - M, 0.0)
        f = scores + np.mean([end for end in (m, M) if np.isfinite(end)])
        inner_gap = np.maximum((high - z) * (data.gain - f), (low - z) * (data.gain - f)).sum()
        if violation > 0 and inner_gap > tol / 8 * len(f) * found.certificate.primal:
            continue
        # this nu^+ becomes an end; try the other end next, then bisection and secant steps in turn
        slope = float(np.subtract(*data.sides(f)))
        ends[slope <= 0], slopes[slope <= 0] = nu, slope
        claim = "not converged: rounding errors prevent further progress"
        if variant == "published" or ends[1] - ends[0] <= EPS * data.eta:
            break
        if np.isnan(slopes).any():
            nu = ends[np.isnan(slopes).argmax()]
        else:
            nu = ends[0] + (ends[1] - ends[0]) * (0.5 if outer % 2 else slopes[0] / (slopes[0] - slopes[1]))
        z, violation, outer = data.feasible(z, nu, scores), 1.0, outer + 1
    return replace(found, claim=claim, iterations=steps, outer_iterations=outer, history=tuple(history))


def pair_steps(
    K: Floats, gain: Floats, low: Floats, high: Floats, z: Floats, tol: float, steps: int, max_iter: int
) -> tuple[Floats, float, float, int]:
    """Take two-variable steps from z, (3, n), until m - M <= tol.

    Let F = gain - K a / lambda, (3, n), be the gradient of the dual; m is its maximum over the entries of z
    that can increase, and M its minimum over the entries that can decrease. A step increases z_i by delta and
    decreases z_j by delta. This increases the dual by (F_i - F_j) delta - A_ij delta^2 / 2, where A_ij =
    (K_ii - 2 K_ij + K_jj) / lambda. The second-order rule of LIBSVM chooses the pair. If A_ij = 0 (same
    sample or equal rows), the step goes to the bound. The argument `K` is already divided by lambda.

    Return z, m, M and the number of steps so far; `steps` is the number of steps before the call.
    """
    z, F, diagonal, n = z.copy(), gain - K @ z.sum(axis=0), K.diagonal(), len(K)
    least = 4 * EPS * (high - low)  # an entry of z closer to a bound counts as at the bound
    floor = 16 * EPS * np.abs(F[least > 0]).max(initial=0.0)
    while True:
        up, down = np.where(high - z > least, F, -np.inf), np.where(z - low > least, F, np.inf)
        i = int(up.argmax())
        m, M = float(up.flat[i]), float(down.min())
        if m - M <= max(tol, floor) or steps == max_iter:
            break
        steps += 1
        curvature = np.maximum(diagonal[i % n] + diagonal - 2 * K[i % n], EPS * diagonal.max())
        j = int((np.maximum(m - down, 0.0) ** 2 / curvature).argmax())
        delta = (m - down.flat[j]) / curvature[j % n]
        delta = min(delta, high.flat[i] - z.flat[i], z.flat[j] - low.flat[j])
        z.flat[i] += delta
        z.flat[j] -= delta
        F -= delta * (K[i % n] - K[j % n])
    if m - M <= floor:
        M = m  # the difference is rounding error
    return np.clip(z, low, high), m, M, steps
