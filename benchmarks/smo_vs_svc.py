"""Time of nerm's SMO itself beside scikit-learn's SVC (`engine.py kernel` times `Problem.solve`), and its memory.

    python benchmarks/smo_vs_svc.py                # n = 2000, rbf, eta = 1: the ratio to plain SVC
    python benchmarks/smo_vs_svc.py --rows 20000 --no-svc --lam 1   # peak memory

SVC solves an easier problem (eta = 0, no search over nu) to its own default tolerance, which is not a duality
gap. Success of the SMO is its certified relative gap, recomputed from scratch at the end. Compilation by numba is
done beforehand and not counted; both times are the best of ``--repeat`` runs in this process.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np
from sklearn.svm import SVC
from tasks import synthetic

from nerm.svm import smo


def best_time(call, repeat):
    best, answer = np.inf, None
    for _ in range(repeat):
        start = time.perf_counter()
        answer = call()
        best = min(best, time.perf_counter() - start)
    return best, answer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--lam", type=float, nargs="+", default=[100.0, 1.0, 0.1])
    parser.add_argument("--eta", type=float, nargs="+", default=[1.0])
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-svc", action="store_true")
    parser.add_argument("--cache-mb", type=float, default=500.0)
    arguments = parser.parse_args()
    smo(*synthetic(60), 1.0, 1.0)  # compile
    smo(*synthetic(60), 1.0, 1.0, cache_mb=0.01)
    X, y, v = synthetic(arguments.rows)
    print(f"rbf, n = {arguments.rows}, d = {X.shape[1]}, tol = {arguments.tol:g}")
    print("   lam    eta  |  SVC s   SMO s  ratio  |  relative gap  pair steps  nu steps  converged")
    failures = 0
    for lam in arguments.lam:
        svc_time = np.nan
        if not arguments.no_svc:
            svc_time, _ = best_time(lambda lam=lam: SVC(C=1 / lam).fit(X, y), arguments.repeat)
        for eta in arguments.eta:
            smo_time, model = best_time(
                lambda lam=lam, eta=eta: smo(X, y, v, lam, eta, tol=arguments.tol, cache_mb=arguments.cache_mb),
                arguments.repeat if not arguments.no_svc else 1,
            )
            failures += not (model.relative_gap <= 2 * arguments.tol)
            print(
                f"{lam:6g} {eta:6g}  | {svc_time:6.3f}  {smo_time:6.3f} {smo_time / svc_time:6.1f}  |"
                f"  {model.relative_gap:12.1e}  {model.iterations:10d}  {model.outer_iterations:8d}  {model.converged}"
            )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak:.2f} GiB")
    return failures


if __name__ == "__main__":
    sys.exit(main())
