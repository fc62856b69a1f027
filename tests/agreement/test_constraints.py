"""Problems with constraints against cvxpy models written by hand, and multipliers that must never be believed."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import nerm
from nerm import Coefficients, Neutrality
from nerm.certify.certificate import infeasibility
from nerm.errors import InvalidInputError, UnknownNameError
from tests.conftest import make_data

PHI = {
    "hinge": lambda m: cp.pos(1 - m),
    "squared-hinge": lambda m: cp.square(cp.pos(1 - m)),
    "logistic": lambda m: cp.logistic(-m),
    "squared": lambda m: cp.square(1 - m),
    "exponential": lambda m: cp.exp(-m),
    "absolute": lambda m: cp.abs(1 - m),
    "smooth-hinge": lambda m: 0.5 * cp.huber(cp.pos(1 - m), 1),
    "huberized-hinge": lambda m: 0.5 * cp.huber(cp.pos(1.5 - m), 1),
    "modified-huber": lambda m: cp.huber(cp.pos(1 - m), 2),
    "identity": lambda m: m,
}
ATOMS = {
    "hinge": nerm.Hinge(),
    "squared-hinge": nerm.SquaredHinge(),
    "logistic": nerm.Logistic(),
    "squared": nerm.Squared(),
    "exponential": nerm.Exponential(),
    "absolute": nerm.Pinball(tau=1.0),
    "smooth-hinge": nerm.SmoothHinge(1.0),
    "huberized-hinge": nerm.HuberizedHinge(0.5),
    "modified-huber": nerm.ModifiedHuber(),
    "identity": nerm.Identity(),
}
OMEGA = {
    "l2": (nerm.SquaredL2(), lambda w: 0.5 * cp.sum_squares(w)),
    "l1": (nerm.L1(), lambda w: cp.norm1(w)),
    "linf": (nerm.LInf(), lambda w: cp.norm_inf(w)),
    "elastic-net": (nerm.ElasticNet(0.5), lambda w: 0.5 * cp.norm1(w) + 0.25 * cp.sum_squares(w)),
    "group": (nerm.GroupL2([0, 0, 1, 1, 1]), lambda w: cp.norm2(w[:2]) + cp.norm2(w[2:])),
}


class Case:
    """A random problem twice: nerm's, and a cvxpy model that shares nothing with it."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(20, 60))
        self.phi, self.omega = rng.choice(list(ATOMS)[:-1]), rng.choice(["l2", *OMEGA])
        d = 5 if self.omega == "group" else int(rng.integers(2, 6))
        X, y, v = make_data(seed, n, d, real_viewpoint=bool(rng.random() < 0.2))
        mu = 10 ** rng.uniform(-2, 0)
        w, b, f = cp.Variable(d), cp.Variable(), cp.Variable(n)
        self.objective = nerm.Risk(ATOMS[self.phi]) + mu * OMEGA[self.omega][0]
        self.value = cp.sum(PHI[self.phi](cp.multiply(y, f))) / n + mu * OMEGA[self.omega][1](w)
        if self.omega != "l2" or rng.random() < 0.2:
            self.objective, self.value = (
                self.objective + 0.01 * nerm.SquaredL2(),
                self.value + 0.005 * cp.sum_squares(w),
            )
        point = rng.normal(size=d) * (rng.random() < 0.7)  # feasible for all linear constraints; often 0
        self.given, self.constraints = [f == X @ w + b], []
        for _ in range(int(rng.integers(1, 4))):
            kind = rng.choice(["limit", "limit", "bounds", "rows", "equal"])
            getattr(self, kind)(rng, X, y, v, w, f, point)
        data = sp.csr_matrix(X) if rng.random() < 0.5 else X
        self.problem = self.objective.subject_to(*self.constraints).on(data, y, viewpoint=v)
        self.model = cp.Problem(cp.Minimize(self.value), self.given)

    def limit(self, rng, X, y, v, w, f, point):
        psi, side, n = rng.choice(list(ATOMS)), rng.choice(["both", "both", "agreement"]), len(y)
        side = "both" if psi == "identity" else side  # one side of a line has no least value
        u = np.ones(n)
        weights = "uniform"
        if rng.random() < 0.5:
            weights = "balanced"
            u = np.where(v > 0, n / 2 / (v > 0).sum(), n / 2 / (v <= 0).sum())
        # slack at `point`, so that the problem is feasible
        value = {"hinge": lambda m: np.maximum(0, 1 - m), "squared-hinge": lambda m: np.maximum(0, 1 - m) ** 2,
                 "logistic": lambda m: np.logaddexp(0, -m), "squared": lambda m: (1 - m) ** 2,
                 "exponential": lambda m: np.exp(-m), "absolute": lambda m: abs(1 - m), "identity": lambda m: m,
                 "smooth-hinge": lambda m: np.where(m < 0, 0.5 - m, np.maximum(0, 1 - m) ** 2 / 2),
                 "huberized-hinge": lambda m: np.where(m < 0.5, 1 - m, np.maximum(0, 1.5 - m) ** 2 / 2),
                 "modified-huber": lambda m: np.where(m < -1, -4 * m, np.maximum(0, 1 - m) ** 2)}[psi]  # fmt: skip
        signs = (1, -1) if side == "both" else (-1,)
        t = (
            max(u @ value(sign * v * (X @ point)) / n for sign in signs) * (1 + 10 ** rng.uniform(-2, -0.5))
            + 1e-3
        )
        self.constraints.append(Neutrality(ATOMS[psi], weights=weights, side=str(side)) <= t)
        self.given += [u @ PHI[psi](cp.multiply(sign * v, f)) / n <= t for sign in signs]

    def bounds(self, rng, X, y, v, w, f, point):
        columns = rng.permutation(len(point))[: int(rng.integers(1, len(point) + 1))]
        slack = rng.random() * 0.2
        if rng.random() < 0.5:
            self.constraints.append(Coefficients(*columns.tolist()) >= point[columns] - slack)
            self.given.append(w[columns] >= point[columns] - slack)
        else:
            self.constraints.append(Coefficients(*columns.tolist()) <= point[columns] + slack)
            self.given.append(w[columns] <= point[columns] + slack)

    def rows(self, rng, X, y, v, w, f, point):
        A = rng.normal(size=(int(rng.integers(1, 4)), len(point)))
        b = A @ point + 0.3 * rng.random(len(A))
        if rng.random() < 0.5:
            self.constraints.append(Coefficients().apply(A) <= b)
        else:
            self.constraints.append(Coefficients().apply(-A) >= -b)
        self.given.append(A @ w <= b)

    def equal(self, rng, X, y, v, w, f, point):
        A = rng.normal(size=(1, len(point)))
        self.constraints.append(Coefficients().apply(A) == A @ point)
        self.given.append(A @ w == A @ point)


def check(seed):
    case = Case(seed)
    solution = case.problem.solve()
    assert solution.status == "optimal", (
        f"seed {seed}: {case.problem.objective!r} {solution!r} {solution.stats}"
    )
    assert solution.certificate.violation == 0
    fine = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
    for solver, options in (("CLARABEL", fine), ("CLARABEL", {}), ("ECOS", {}), ("SCS", {"eps": 1e-9})):
        try:  # a general solver fails now and then; the first that does not is the oracle
            case.model.solve(solver=solver, **options)
            break
        except (cp.error.SolverError, UserWarning):
            continue
    optimum = case.model.value
    assert solution.objective.total == pytest.approx(optimum, rel=2e-6, abs=1e-9)
    return case, solution, optimum


@pytest.mark.parametrize("seed", range(24))
def test_the_optimum_by_hand(seed):
    check(seed)


def test_equations_that_leave_only_zero():
    """The coefficients are 0, not rounding of which a share violates the equations."""
    check(278)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 500, 20))
def test_the_optimum_by_hand_400_times(first):
    for seed in range(first, first + 20):
        check(seed)


@pytest.mark.parametrize("seed", range(30, 36))
def test_multipliers_are_never_believed_beyond_the_optimum(seed):
    case, solution, optimum = check(seed)
    rng, known = np.random.default_rng(seed), solution.multipliers
    assert solution.certificate.dual <= optimum + 1e-7 * abs(optimum)
    for _ in range(20):
        wrong = replace(
            known,
            rows=known.rows + rng.normal(size=known.rows.shape) * 10 ** rng.uniform(-6, 1),
            thetas=known.thetas + rng.normal(size=known.thetas.shape) * rng.random(),
            limits=known.limits + rng.normal(size=known.limits.shape) * 10 ** rng.uniform(-4, 1),
            linear=known.linear + rng.normal(size=known.linear.shape) * 10 ** rng.uniform(-4, 1),
        )
        for multipliers in (wrong, replace(wrong, limits=-known.limits, linear=-known.linear)):
            certificate = case.problem.certify(solution.coef, solution.intercept, multipliers)
            assert certificate.dual <= optimum + 1e-7 * abs(optimum)


def data():
    X, y, v = make_data(3, 50, 3)
    return pd.DataFrame(X, columns=["age", "priors", "income"]), y, v


PLAIN = nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2()


def test_a_hypothesis_outside_is_no_answer():
    X, y, v = data()
    problem = PLAIN.subject_to(Coefficients("age") <= 0.1, Neutrality(nerm.Hinge()) <= 1.01).on(
        X, y, viewpoint=v
    )
    inside = problem.certify([0.0, 0.0, 0.0])
    assert inside.violation == 0
    assert inside.primal == pytest.approx(1.0)
    outside = problem.certify([0.35, 0.0, 0.0])
    assert outside.violation == pytest.approx(0.25)
    assert outside.relative_gap == np.inf
    assert "a constraint is violated by 0.25" in str(outside)


@pytest.mark.parametrize("solver", ["interior-point", "smo", "clarabel"])
def test_a_limit_is_met_and_tight_with_every_solver(solver):
    X, y, v = data()
    problem = PLAIN.subject_to(Neutrality(nerm.Hinge()) <= 1.02).on(X, y, viewpoint=v)
    solution = problem.solve(solver)
    assert solution.status == "optimal"
    f = X.to_numpy() @ solution.coef + solution.intercept
    sides = [np.maximum(0, 1 - sign * v * f).mean() for sign in (1, -1)]
    assert 1.02 - 1e-4 <= max(sides) <= 1.02 + 1e-12
    eta = float(solution.multipliers.limits[0])
    free = (PLAIN + eta * Neutrality(nerm.Hinge())).on(X, y, viewpoint=v).solve(tol=1e-8)
    assert free.objective.total - eta * 1.02 == pytest.approx(solution.objective.total, rel=1e-5)


def test_a_loose_limit_changes_nothing():
    X, y, v = data()
    solution = PLAIN.subject_to(Neutrality(nerm.Hinge()) <= 100).on(X, y, viewpoint=v).solve()
    assert solution.objective.total == pytest.approx(PLAIN.on(X, y).solve().objective.total, rel=2e-6)
    assert solution.multipliers.limits == pytest.approx([0.0])


def test_the_tightest_limit_leaves_those_who_are_certainly_neutral():
    X, y, v = data()
    solution = PLAIN.subject_to(Neutrality(nerm.Logistic()) <= np.log(2)).on(X, y, viewpoint=v).solve()
    assert solution.certificate.primal <= 1.0 + 1e-9  # f = 0 is allowed
    assert solution.certificate.violation <= 1e-9


def test_a_kernel_problem_takes_a_limit():
    X, y, v = make_data(5, 40, 3)
    problem = PLAIN.subject_to(Neutrality(nerm.Hinge()) <= 1.05).on(X, y, viewpoint=v, kernel="rbf")
    values = [problem.solve(solver) for solver in ("smo", "augmented-lagrangian", "clarabel")]
    assert [s.status for s in values] == ["optimal"] * 3
    assert [s.objective.total for s in values] == pytest.approx([values[0].objective.total] * 3, rel=2e-6)


def test_a_limit_of_nothing_is_an_equation():
    """The covariance limited to 0, where no f lies strictly inside."""
    X, y, v = data()
    X = X.to_numpy()
    problem = PLAIN.subject_to(Neutrality(nerm.Identity()) <= 0).on(X, y, viewpoint=v)
    w, b = cp.Variable(3), cp.Variable()
    f = X @ w + b
    model = cp.Problem(
        cp.Minimize(cp.sum(cp.pos(1 - cp.multiply(y, f))) / 50 + 0.05 * cp.sum_squares(w)), [v @ f == 0]
    )
    model.solve(solver="CLARABEL")
    solution = problem.solve()
    assert solution.status == "optimal"
    assert solution.objective.total == pytest.approx(model.value, rel=2e-6)
    known = problem.solve("clarabel").multipliers
    for eta in (
        1e10,
        1e20,
        1e200,
        np.inf,
    ):  # so large that nothing is left of the risk's share when weighted dual variables cancel
        for thetas in (known.thetas, np.array([0.5])):
            wrong = replace(known, rows=np.ones_like(known.rows), thetas=thetas, limits=np.array([eta]))
            assert not problem.certify(solution.coef, solution.intercept, wrong).dual > model.value * (
                1 + 1e-8
            )


INFEASIBLE = {
    "both sides": [Neutrality(nerm.Hinge(), side=side) <= 0.4 for side in ("agreement", "disagreement")],
    "a large coefficient": [Coefficients("age") == 5, Neutrality(nerm.Hinge()) <= 1.01],
    "large ones": [
        Coefficients("age", "priors").apply([[1.0, 2.0]]) >= 9,
        Neutrality(nerm.Logistic()) <= 0.7,
    ],
}


@pytest.mark.parametrize("name", INFEASIBLE)
@pytest.mark.parametrize("solver", ["clarabel", "scs"])
def test_constraints_that_contradict_each_other_are_certified_to_do_so(solver, name):
    X, y, v = data()
    solution = PLAIN.subject_to(*INFEASIBLE[name]).on(X, y, viewpoint=v).solve(solver)
    if solver == "scs" and solution.status == "inaccurate":
        return  # it may stop before it has proved it; what it must never say is optimal
    assert solution.status == "infeasible", solution
    assert solution.certificate.dual == np.inf
    assert "every hypothesis exceeds some limit by" in solution.certificate.reason
    assert solution.certificate.violation > 0


def test_auto_says_so_too():
    X, y, v = data()
    problem = PLAIN.subject_to(Neutrality(nerm.Hinge(), side="agreement") <= 0).on(X, y, viewpoint=v)
    assert problem.solve().status == "infeasible"
    with pytest.raises(nerm.NotSolvedError, match="Loosen a constraint"):
        problem.solve(strict=True)


@pytest.mark.parametrize("seed", range(40, 46))
def test_feasible_problems_are_never_called_infeasible(seed):
    case, solution, _ = check(seed)
    rng, known = np.random.default_rng(seed), solution.multipliers
    for _ in range(20):
        wrong = replace(
            known,
            rows=known.rows + rng.normal(size=known.rows.shape) * 10 ** rng.uniform(-6, 1),
            limits=known.limits + rng.exponential(size=known.limits.shape),
            linear=known.linear + rng.normal(size=known.linear.shape),
        )
        assert infeasibility(case.problem, wrong) <= 1e-9


def test_text():
    objective = PLAIN.subject_to(Neutrality(nerm.Hinge()) <= 1.05, Coefficients("age") >= 0)
    assert repr(objective).endswith(".subject_to(Neutrality(Hinge()) <= 1.05, Coefficients('age') >= 0)")
    assert str(objective).endswith("subject to max(mean hinge(v f), mean hinge(-v f)) ≤ 1.05, w[age] ≥ 0")
    assert r"\text{subject to}" in objective._repr_latex_()
    assert (2 * objective + nerm.L1()).constraints == objective.constraints
    assert (2 * Neutrality(nerm.Hinge()) <= 3).bound == 1.5
    X, y, v = data()
    solution = objective.on(X, y, viewpoint=v).solve()
    assert f"Neutrality(Hinge()) <= 1.05: 1.05, multiplier {solution.multipliers.limits[0]:.3g}" in repr(
        solution
    )
    assert "<= 1.05" not in repr(solution.without_rows())


def test_saved_with_its_constraints(tmp_path):
    X, y, v = data()
    objective = PLAIN.subject_to(Neutrality(nerm.Hinge()) <= 1.05, Coefficients("age").apply([[2.0]]) <= 0.1)
    solution = objective.on(X, y, viewpoint=v).solve()
    solution.save(tmp_path / "s.nerm")
    loaded = nerm.load(tmp_path / "s.nerm")
    assert repr(loaded.problem.objective) == repr(solution.problem.objective)
    assert loaded.problem.certify(loaded.coef, loaded.intercept, loaded.multipliers).relative_gap <= 1e-6


BAD = {
    "'t' must be a finite number, at least 0. Got nan": lambda: Neutrality(nerm.Hinge()) <= np.nan,
    "'t' must be a finite number, at least 0. Got -1": lambda: Neutrality(nerm.Hinge()) <= -1,
    "a neutrality term must be limited from above: a limit from below is not convex": lambda: (
        Neutrality(nerm.Hinge()) >= 1
    ),
    "only a neutrality term can be limited. Got Risk": lambda: nerm.Risk(nerm.Hinge()) <= 1,
    "only a neutrality term can be limited. Got Risk(Hinge()) >= ...": lambda: nerm.Risk(nerm.Hinge()) >= 1,
    "a constraint must be a comparison. Got Neutrality": lambda: PLAIN.subject_to(Neutrality(nerm.Hinge())),
    "a column must be given by its name or its number. Got 1.5": lambda: Coefficients(1.5),
    "only a neutrality term can be limited. Got Neutrality(Hinge(), weights='equal_opportunity') +": lambda: (
        nerm.equalized_odds(nerm.Hinge()) <= 1
    ),
    "for a difference write apply([[1, -1]])": lambda: Coefficients("age") <= Coefficients("priors"),
    "'bound' must be finite. Got nan": lambda: Coefficients() <= np.nan,
    "'bound' must be finite. Got -inf": lambda: Coefficients() <= -np.inf,
    "'bound' must be a number or a vector. Got shape": lambda: Coefficients() <= np.ones((2, 2)),
    "'A' must be finite. Got inf": lambda: Coefficients().apply([[np.inf]]),
}


@pytest.mark.parametrize("text", BAD)
def test_bad_constraints_are_named_at_once(text):
    with pytest.raises(InvalidInputError) as caught:
        BAD[text]()
    assert text in str(caught.value)


BAD_ON_DATA = {
    "a column of X must be one of 'age', 'income', 'priors'. Got 'wealth'": Coefficients("wealth") >= 0,
    "a column must be one of 0 to 2. Got 3": Coefficients(3) >= 0,
    "'A' must have one column for each of the 3 coefficients. Got shape (1, 2)": Coefficients().apply(
        [[1, 1]]
    )
    >= 0,
    "'bound' must have one entry for each of the 3 rows": Coefficients() >= [0, 1],
    "the limit on Neutrality(Hinge()) must be at least 1": Neutrality(nerm.Hinge()) <= 0.9,
    "some coefficients must satisfy all constraints. Got Coefficients() == 1": Coefficients() == 1,
}


@pytest.mark.parametrize("text", BAD_ON_DATA)
def test_constraints_that_do_not_fit_the_data(text):
    X, y, v = data()
    objective = PLAIN.subject_to(BAD_ON_DATA[text], Coefficients(0) <= 0)
    with pytest.raises(InvalidInputError) as caught:
        objective.on(X, y, viewpoint=v)
    assert text in str(caught.value)


def test_more_that_cannot_be():
    X, y, v = data()
    with pytest.raises(InvalidInputError, match="a column can be named only if X has column names"):
        PLAIN.subject_to(Coefficients("age") >= 0).on(X.to_numpy(), y)
    with pytest.raises(InvalidInputError, match="coefficients can be constrained on a linear problem only"):
        PLAIN.subject_to(Coefficients() >= 0).on(X, y, kernel="rbf")
    with pytest.raises(InvalidInputError, match="'viewpoint' must be given"):
        PLAIN.subject_to(Neutrality(nerm.Hinge()) <= 2).on(X, y)
    with pytest.raises(UnknownNameError, match="'to' of a neutrality term"):
        PLAIN.subject_to(Neutrality(nerm.Hinge(), to="sex") <= 2).on(X, y, viewpoint={"race": v})
    with pytest.raises(TypeError, match="a constraint has no truth value"):
        0 <= Coefficients() <= 1  # noqa: B015
    constrained = PLAIN.subject_to(Coefficients() >= 0).on(X, y)
    with pytest.raises(nerm.UnsupportedProblemError, match="a problem with constraints on coefficients"):
        constrained.solve("interior-point")
