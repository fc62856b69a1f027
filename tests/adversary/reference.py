"""A reference that shares no code with nerm: the objective in long doubles, and a minimum found by cvxpy.

A solution of status optimal is wrong if the reference knows a hypothesis that is better by more than the
tolerance, or if the lower bound exceeds the value of some hypothesis.
"""

from __future__ import annotations

import warnings
from fractions import Fraction

import cvxpy as cp
import numpy as np

from tests.adversary.problems import Case

L = np.longdouble
NEGLIGIBLE = L(1e-8)  # of the objective of f = 0: what counts as 0, as in nerm


def _exact(number) -> Fraction:
    return number if isinstance(number, Fraction) else Fraction(*number.as_integer_ratio())


def _rounded(number: Fraction):
    """Return a fraction as a long double, by its float and the float of what that lacks."""
    head = float(number)
    return L(head) + L(float(number - Fraction(head)))


def _hinge(m):
    return np.maximum(0, 1 - m)


MARGIN = {
    "hinge": _hinge,
    "squared-hinge": lambda m: _hinge(m) ** 2,
    "logistic": lambda m: np.log1p(np.exp(-np.abs(m))) + np.maximum(0, -m),
    "squared": lambda m: (1 - m) ** 2,
    "exponential": lambda m: np.exp(-m),
    "identity": lambda m: m,
    "modified-huber": lambda m: np.where(m < -1, -4 * m, _hinge(m) ** 2),
    "pinball": lambda m: np.maximum(1 - m, (m - 1) / 2),
    "smooth-hinge": lambda m: np.where(m > 0, _hinge(m) ** 2 / 2, L(0.5) - m),
    "huberized-hinge": lambda m: np.where(m > L(0.5), np.maximum(0, L(1.5) - m) ** 2 / 2, 1 - m),
}
EXPRESSION = {
    "hinge": lambda m: cp.pos(1 - m),
    "squared-hinge": lambda m: cp.square(cp.pos(1 - m)),
    "logistic": lambda m: cp.logistic(-m),
    "squared": lambda m: cp.square(1 - m),
    "exponential": lambda m: cp.exp(-m),
    "identity": lambda m: m,
    "modified-huber": lambda m: cp.huber(cp.pos(1 - m), 2),
    "pinball": lambda m: cp.maximum(1 - m, (m - 1) / 2),
    "smooth-hinge": lambda m: cp.huber(cp.pos(1 - m), 1) / 2,
    "huberized-hinge": lambda m: cp.huber(cp.pos(1.5 - m), 1) / 2,
}


def omega(case: Case, name: str, w):
    """Return a regularizer of coefficients, numbers or a cvxpy expression."""
    exact, groups = isinstance(w, np.ndarray), np.array(case.groups)
    if name == "group-l2":
        parts = [w[np.flatnonzero(groups == g)] for g in np.unique(groups)]
        return sum(np.sqrt((part**2).sum()) if exact else cp.norm(part, 2) for part in parts)
    square = (w**2).sum() / 2 if exact else cp.sum_squares(w) / 2
    absolute = np.abs(w).sum() if exact else cp.norm(w, 1)
    if name == "elastic-net":
        return absolute / 2 + square / 2
    return {"squared-l2": square, "l1": absolute, "l-inf": np.abs(w).max() if exact else cp.norm(w, "inf")}[
        name
    ]


class Reference:
    """One case, in long doubles."""

    def __init__(self, case: Case) -> None:
        self.case = case
        dense = case.X.toarray() if hasattr(case.X, "toarray") else case.X
        self.X = dense.astype(L)
        self.centre = self.X.mean(axis=0)
        self.K = None
        if case.gamma is not None:
            square = sum(
                np.subtract.outer(x, x) ** 2 for x in self.X.T
            )  # never rows x rows x columns at once
            self.K = np.exp(-L(case.gamma) * square)
        self.s = np.ones(len(case.y)) if case.s is None else case.s

    def value(self, coef, intercept):
        """Return the objective, and a bound on its rounding error in long doubles."""
        case, coef, b = self.case, np.asarray(coef, dtype=L), self._level(coef, intercept)
        with np.errstate(over="ignore", invalid="ignore"):
            features = self.X - self.centre if self.K is None else self.K
            f = features @ coef + b
            blur = np.finfo(L).eps * len(coef) * (np.abs(features) @ np.abs(coef) + abs(b))
            total, hidden = self._risk(f), self._blurred(f, blur)
            if self.K is None:
                total += sum(L(weight) * omega(case, name, coef) for name, weight in case.omegas)
            else:
                total += L(case.omegas[0][1]) * (coef @ self.K @ coef) / 2
        return total, hidden + 100 * np.finfo(L).eps * abs(total)

    def _level(self, coef, intercept):
        """Return centre.w + b in fractions, so that nothing cancels; b may have more digits than a float."""
        b = _exact(intercept) + _exact(getattr(intercept, "rest", 0.0))
        if self.K is None:
            b += sum(_exact(c) * _exact(w) for c, w in zip(self.centre, coef, strict=True))
        return _rounded(b)

    def _risk(self, f):
        case, n = self.case, L(len(self.case.y))
        total = (self.s * MARGIN[case.loss](case.y * f)).sum() / n
        if case.eta:
            plus, minus = (MARGIN[case.surrogate](side * case.v * f).sum() / n for side in (1, -1))
            total += L(case.eta) * np.maximum(plus, minus)
        return total

    def _blurred(self, f, blur):
        """Return a bound on the change of the risk if each score changes by at most this much."""
        case, n = self.case, L(len(self.case.y))

        def change(name, targets):
            here = MARGIN[name](targets * f)
            return np.maximum(*(np.abs(MARGIN[name](targets * (f + side * blur)) - here) for side in (1, -1)))

        total = (self.s * change(case.loss, case.y)).sum() / n
        sides = (change(case.surrogate, side * case.v).sum() / n for side in (1, -1))
        return total + L(case.eta) * sum(sides)

    def competitors(self):
        """Yield hypotheses that a solution must not be worse than: f = 0, and the minimum of a cvxpy model."""
        size = self.X.shape[1] if self.K is None else len(self.case.y)
        yield np.zeros(size), 0.0
        found = self._solved()
        if found is not None:
            yield found

    def _solved(self):
        """Solve a cvxpy model in centred and scaled columns; None where that fails."""
        case = self.case
        if self.K is None:
            centre = self.centre if case.intercept else np.zeros(self.X.shape[1])
            scale = np.abs(self.X - centre).max(axis=0).astype(float)
            scale[scale == 0] = 1.0
            Z, back = ((self.X - centre) / scale).astype(float), np.diag(1 / scale)
        else:
            values, vectors = np.linalg.eigh(self.K.astype(float))
            kept = values > 1e-13 * values[-1]
            roots, centre = np.sqrt(values[kept]), None
            Z, back = vectors[:, kept] * roots, vectors[:, kept] / roots
        z, b, f = cp.Variable(Z.shape[1]), cp.Variable(), cp.Variable(len(case.y))
        cost = (self.s / len(case.y)) @ EXPRESSION[case.loss](cp.multiply(case.y, f))
        ties = [f == Z @ z + b] + ([] if case.intercept else [b == 0])
        if case.eta:
            t = cp.Variable()
            cost += case.eta * t
            sides = (
                cp.sum(EXPRESSION[case.surrogate](side * cp.multiply(case.v, f))) / len(case.y)
                for side in (1, -1)
            )
            ties += [mean <= t for mean in sides]
        w = back @ z if self.K is None else z
        cost += cp.sum([weight * omega(case, name, w) for name, weight in case.omegas])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                cp.Problem(cp.Minimize(cost), ties).solve(
                    solver="CLARABEL", tol_gap_abs=1e-13, tol_gap_rel=1e-11, tol_feas=1e-11
                )
            except (cp.error.SolverError, ValueError, ArithmeticError):
                return None
        if z.value is None or not np.isfinite(z.value).all():
            return None
        coef, level = back @ z.value, _exact(float(b.value) if case.intercept else 0.0)
        if centre is None:
            return coef, level
        return coef, level - sum(_exact(c) * _exact(w) for c, w in zip(centre, coef, strict=True))
