"""Measure what `nerm.proofs` proves: solves for a band, refutations, planted alternatives, deletions.

    python benchmarks/proofs.py front          adult, bank and acs: solves for a band of 1e-3, 500 hypotheses
    python benchmarks/proofs.py wishes         200 wishes on 1,500 rows of adult against Clarabel; 100 planted models
    python benchmarks/proofs.py deletions      60,420 one-hot rows: bound, truth and processor time beside a cold solve

Times are processor seconds, side by side in one run.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from neutral import acs_income
from sklearn.linear_model import LogisticRegression
from tasks import one_hot

import nerm
from nerm.datasets import load

LAM = 1e-3


def table(name: str, rows: int = 60_000) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return rows, labels and viewpoint of a data set, one-hot; at most `rows` rows, drawn at random."""
    data = acs_income("sex") if name == "acs" else load(name, coding="one-hot")
    some = np.random.default_rng(0).permutation(len(data.y))[:rows]
    return sp.csr_matrix(data.X)[some], np.asarray(data.y)[some], np.asarray(data.viewpoint)[some]


def bound_to(atom: Any, X: Any, y: np.ndarray, v: np.ndarray, eta: float = 1.0, lam: float = LAM) -> Any:
    """Return the problem with one atom as loss and surrogate."""
    return (nerm.Risk(atom) + lam * nerm.SquaredL2() + eta * nerm.Neutrality(atom)).on(X, y, viewpoint=v)


def front() -> None:
    for name in ("adult", "bank", "acs"):
        X, y, v = table(name)
        for atom in (nerm.Logistic(), nerm.Hinge()):
            problem, start = bound_to(atom, X, y, v), time.process_time()
            curves = problem.frontier(1e-3)
            seconds, below, verdicts = time.process_time() - start, 0, []
            rng = np.random.default_rng(1)
            plain = [LogisticRegression(C=c, max_iter=300).fit(X, y) for c in 10.0 ** np.arange(-4, 1.0)]
            known = [(m.coef_[0], m.intercept_[0]) for m in plain]
            known += [(s.coef, s.intercept) for s in curves.solutions]
            for k in range(500):
                w, b = known[k % len(known)]
                w = w + 10.0 ** rng.uniform(-5, -0.5) * rng.normal(size=len(w)) * (k >= len(known))
                placed = curves.place((w, b))  # it raises an error below the outer curve
                below += placed.risk < curves.outer(placed.neutrality)
                verdicts.append(placed.verdict)
            counts = {one: verdicts.count(one) for one in sorted(set(verdicts))}
            print(f"{name:6} {len(y):,} rows {atom!r:11} {len(curves.solutions)} solves, gap {curves.gap:.1e}, "
                  f"{seconds:.1f} s; below the outer curve {below} of 500; {counts}", flush=True)  # fmt: skip


def wishes() -> None:
    X, y, v = table("adult", 1_500)
    for atom, psi in ((nerm.Logistic(), lambda m: cp.logistic(-m)), (nerm.Hinge(), lambda m: cp.pos(1 - m))):
        curves = bound_to(atom, X, y, v, lam=0.01).frontier(1e-3)
        limit, (n, d) = cp.Parameter(), X.shape
        w, b, f = cp.Variable(d), cp.Variable(), cp.Variable(n)
        risk, plus, minus = (cp.sum(psi(cp.multiply(t, f))) / n for t in (y, v, -v))
        goal = cp.Minimize(risk + 0.005 * cp.sum_squares(w))
        program = cp.Problem(goal, [f == X @ w + b, plus <= limit, minus <= limit])
        rng, right, wrong = np.random.default_rng(2), 0, 0
        (low, high), extent = curves.inner[[0, -1], 0], np.ptp(curves.inner[:, 1])
        for c in rng.uniform(low, high, 20):
            limit.value = c
            optimum = program.solve(solver="CLARABEL")
            found = curves.find(neutrality=c)
            assert found.objective.terms[2].value <= c
            for wish in optimum + extent * rng.normal(scale=0.02, size=10):
                if curves.refutes(risk=wish, neutrality=c):
                    right, wrong = right + (wish < optimum + 1e-7), wrong + (wish >= optimum + 1e-7)
        planted, done = 0, 0
        while done < 100:
            one = curves.solutions[rng.integers(len(curves.solutions))]
            worse = one.coef + 0.1 * rng.normal(size=d)
            here, there = (curves._pair(curves.problem.evaluate(x, one.intercept)) for x in (one.coef, worse))
            if (np.array(there) > np.array(here) + 2e-3 * np.ptp(curves.inner, axis=0)).all():
                done += 1
                planted += curves.place((worse, one.intercept)).verdict == "improvable"
        print(f"{atom!r:11} 200 wishes: {right} refuted and confirmed, {wrong} refuted wrongly; "
              f"planted alternatives found: {planted} of {done}", flush=True)  # fmt: skip


def deletions() -> None:
    X, y, v = one_hot(60_420)
    rng = np.random.default_rng(3)
    for atom in (nerm.Logistic(), nerm.SquaredHinge(), nerm.Hinge()):
        bound_to(atom, X[:999], y[:999], v[:999]).solve().without([0])  # compiles
        for lam, eta in ((1e-3, 0.0), (1e-3, 1.0), (1e-1, 1.0)):
            solution, figures = bound_to(atom, X, y, v, eta, lam).solve(), []
            for share in (0.001, 0.01, 0.05):
                out = rng.choice(len(y), int(share * len(y)), replace=False)
                keep = np.setdiff1d(np.arange(len(y)), out)
                rest, times = (X[keep], y[keep], v[keep]), [time.process_time()]
                bound = solution.without(out)
                times.append(time.process_time())
                tight = solution.without(out, tol=1e-8)
                times.append(time.process_time())
                bound_to(atom, *rest, eta, lam).solve()
                times.append(time.process_time())
                truth = bound_to(atom, *rest, eta, lam).solve(tol=1e-10)
                change = np.linalg.norm(truth.coef - solution.coef)
                error = np.sqrt(2 * max(truth.certificate.gap, 0.0) / lam)
                held = change <= min(bound.coefficients, tight.coefficients) + error
                seconds = np.diff(times)
                figures.append(
                    (
                        bound.coefficients / change,
                        tight.coefficients / change,
                        *seconds[:2] / seconds[2],
                        held,
                    )
                )
            loose, tight_loose, ratio, tight_ratio, held = np.median(figures, axis=0)
            print(f"{atom!r:15} lam {lam:g} eta {eta:g}: bound / truth {loose:.2f} (with tol=1e-8 {tight_loose:.2f}), time / cold "
                  f"solve {ratio:.2f}, first {figures[0][2]:.2f} (with tol=1e-8 {tight_ratio:.2f}), held {bool(held)}", flush=True)  # fmt: skip


if __name__ == "__main__":
    for part in sys.argv[1:] or ["front", "wishes", "deletions"]:
        {"front": front, "wishes": wishes, "deletions": deletions}[part]()
