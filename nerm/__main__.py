"""`python -m nerm`: solve one neutral SVM and show its terms and its certificate."""

from __future__ import annotations

import numpy as np

import nerm


def synthetic(n: int = 400, seed: int = 7) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the paper's synthetic data (section 7.1): label and viewpoint share their first weight."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 10))
    label_weights, viewpoint_weights = rng.uniform(-1, 1, size=(2, 10))
    viewpoint_weights[0] = label_weights[0]
    return X, nerm.signs.sign(X @ label_weights), nerm.signs.sign(X @ viewpoint_weights)


def main() -> None:
    """Solve the neutral SVM on synthetic data for a few neutrality weights and print what came out."""
    X, y, v = synthetic()
    objective = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    problem = objective.on(X, y, viewpoint=v)
    print(f"{objective}\n")
    print(f"{'eta':>6}  {'accuracy':>8}  {'C_sgn':>6}  {'certified gap':>13}")
    for solution in problem.path([0.0, 0.1, 1.0, 10.0]):
        eta = solution.problem.neutralities[0].weight
        accuracy = float(np.mean(solution.predict(X) == y))
        neutrality = nerm.metrics.neutrality_risk(solution.decision_function(X), v)
        print(f"{eta:6g}  {accuracy:8.3f}  {neutrality:6.3f}  {solution.certificate.relative_gap:13.1e}")
    print(f"\nAt eta = 1:\n{problem.solve()}")


if __name__ == "__main__":
    main()
