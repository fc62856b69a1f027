"""The certified trade-off between regularised risk P = R_n + Omega and relaxed neutrality risk C.

A solve at weight eta has a dual bound D, so P(f) + eta C(f) >= D for *every* hypothesis f. The outer curve is
the largest of these bounds, max_j D_j - eta_j c, as a function of c. The inner curve is the lower convex hull
of the points (C(f_j), P(f_j)). P and C are convex, so the mixture s f_1 + (1 - s) f_2 of two hypotheses has
values on or below the chord between their points. So no hypothesis lies below the outer curve, and for every
point of the inner curve there is a mixture with at most these values of C and P.

Both curves are about relaxed risks on the training rows, not about counts of decisions or new rows. The
dual bounds include bounds on rounding errors, with the limits that `nerm.certify.certificate` states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nerm.certify.certificate import Slack, from_bounds
from nerm.certify.solution import Solution, Stats, certify_bounds
from nerm.chunks.chunked_problem import ChunkedProblem
from nerm.errors import InvalidInputError, NotSolvedError, UnsupportedProblemError
from nerm.model.blocks import EPS, ObjectiveValue, by_side, objective_value, one_sided, sum_error
from nerm.model.expressions import Neutrality
from nerm.model.problem import Problem, check_hypothesis
from nerm.solvers.progress import print_solve
from nerm.solvers.registry import SolverPool
from nerm.typing import Floats
from nerm.validation import as_finite, as_nonnegative, as_positive, as_vector

if TYPE_CHECKING:
    import pandas as pd

AnyProblem = Problem | ChunkedProblem


def frontier(
    problem: AnyProblem,
    tol: float = 0.01,
    eta_range: tuple[float, float] | None = None,
    verbose: bool = False,
) -> Frontier:
    """Enclose the trade-off curve by certified solves; `Problem.frontier` explains the parameters.

    Let p(eta) be the optimum of P + eta C, a concave function. Solves at eta_j bound it from below by linear
    interpolation of the D_j, and evaluated points bound it from above by min_j P_j + eta C_j. The points are
    the solutions, the midpoints of adjacent solutions, and f = 0 if the curve covers all weights. The two
    bounds differ most, relative to the ranges of P and C (`Frontier.gap`), at some weight between two solved
    ones. The next weight is minus the slope of the chord between the points of these two solutions; if no
    atom has a kink, it is the geometric mean of this number and the weight where the bounds differ most.
    """
    tol = as_positive(tol, "tol")
    base = problem.with_neutrality(1.0)
    small = base.sample if isinstance(base, ChunkedProblem) else base
    if not small.is_convex:
        must = "a frontier needs a convex objective"
        raise UnsupportedProblemError(must, repr(small.objective), "Use margin functions without ramps")
    solve = _solves(base, verbose)
    zero = np.zeros(small.hypothesis.size)
    at_zero = base.evaluate(zero, 0.0)
    floor = _floor(small, at_zero, base.n)
    whole = eta_range is None
    if eta_range is None:
        if one_sided(small) or small.violation(zero, 0.0):
            must = "a frontier over all weights needs two-sided neutrality terms and a feasible f = 0"
            raise InvalidInputError(must, repr(small.objective), "Pass eta_range=(0, 10), for instance")
        low, high = 0.0, np.inf
    else:
        low, high = (as_nonnegative(one, "eta_range") for one in eta_range)
        if not low < high:
            do = "Pass the smaller weight first"
            raise InvalidInputError("'eta_range' must be two different weights", repr(eta_range), do)
    fine = min(1e-6, tol / 100)
    smooth = not any(block.atom.facts.kinks for block in small.blocks)
    solutions = [solve(eta, fine) for eta in ([low] if whole else [low, high])]
    others = [Point(zero, 0.0, at_zero)] if whole else []
    while (found := Frontier(base, tol, tuple(solutions), tuple(others), floor, whole)).gap > tol:
        eta = found._widest()[1]
        if any(abs(eta - one) <= 1e-9 * (1 + eta) for one in found.etas):
            break  # the solves themselves are not accurate enough
        place = int(np.searchsorted(found.etas, eta))
        ends: list[Any] = [*solutions, *others[:1]][place - 1 : place + 1]  # beyond all weights is f = 0
        (c, p), (d, q) = (found._pair(one.objective) for one in ends)
        slope = (q - p) / (c - d) if c > d else eta  # of the chord between the adjacent points
        if found.etas[place - 1] < slope < np.append(found.etas, np.inf)[place]:
            eta = float(np.sqrt(eta * slope) if smooth and eta > 0 else slope)
        # the width of the band, which may be far less than P + eta C, sets the accuracy
        (c, p), (d, q) = found.inner[0], found.inner[-1]
        band = abs(p - q) + eta * abs(c - d)
        new = solve(eta, min(fine, tol / 10 * band / max(abs(p) + eta * abs(c), 1e-300)))
        for one in ends:
            half = 0.5 * (one.coef + new.coef), 0.5 * (one.intercept + new.intercept)
            others.append(Point(*half, base.evaluate(*half)))
        solutions.insert(place, new)
    return found


class Point(NamedTuple):
    """A hypothesis and its objective value."""

    coef: Floats
    intercept: float
    objective: ObjectiveValue


def _solves(base: AnyProblem, verbose: bool) -> Callable[[float, float], Solution]:
    """Return a function that solves at a weight eta to a tolerance, warm-started from the solves before."""
    pool, last = SolverPool(), list[Solution]()

    def solve(eta: float, tol: float) -> Solution:
        if isinstance(base, ChunkedProblem):
            near = min(last, key=lambda one: abs(float(one.problem.etas.sum()) - eta), default=None)
            start = None if near is None else (near.coef, near.intercept)
            found = base.with_neutrality(eta).solve(tol=tol, start=start, checkpoint=None)
        else:
            found = pool.solve(base.with_neutrality(eta), tol)
        if not np.isfinite(found.certificate.relative_gap):
            why = f"The solve at eta = {eta:g} has no dual bound: {found.certificate.reason}."
            raise NotSolvedError(f"{why} Add SquaredL2() to the objective.")
        last.append(found)
        if verbose:
            print_solve(found, f"eta {eta:.4g}")
        return found

    return solve


def _floor(problem: Problem, value: ObjectiveValue, n: int) -> float:
    """Return a lower bound on C(f) over all f, from the objective `value` at f = 0.

    It is psi(0) mean(u) for a two-sided term, by convexity, and 0 for a one-sided term with psi >= 0.
    """
    total = 0.0
    for weighted, term in zip(problem.objective.terms, value.terms, strict=True):
        if isinstance(weighted.term, Neutrality) and weighted.weight:
            least = 0.0 if weighted.term.surrogate.facts.minimum >= 0 else -np.inf
            total += weighted.weight * (least if term.plus is None else term.value)
    return total - sum_error(n) * abs(total)


def _hull(x: Floats, y: Floats) -> list[int]:
    """Return the indices of the lower convex hull of points (x, y), from the smallest x to the largest."""
    kept: list[int] = []
    for i in np.lexsort((y, x)):
        if kept and x[i] == x[kept[-1]]:
            continue
        while len(kept) > 1:
            a, b = kept[-2:]
            if (y[b] - y[a]) * (x[i] - x[b]) < (y[i] - y[b]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(int(i))
    return kept


@dataclass(frozen=True)
class Placement:
    """The place of a model relative to a `Frontier`.

    Attributes
    ----------
    risk, neutrality : float
        P and C of the model. If only scores are known, Omega is unknown, and P is the risk without Omega.
    verdict : {"improvable", "undecided", "refuted"}
        "improvable": `better` has at most this neutrality and a smaller P. "undecided": the model is between
        the curves. "refuted": no hypothesis of the class has at most this C and a regularised risk of at most
        `risk`. A hypothesis may have the same scores, because `risk` of scores leaves out Omega.
    margin : float
        If "improvable", P of the model minus P of `better`. Otherwise P of the model minus the outer curve:
        no hypothesis of the class with at most this C has a P smaller by more than `margin`.
    better : Solution or None
        The better hypothesis.

    >>> import nerm
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2() + nerm.Neutrality(nerm.Hinge())
    >>> front = objective.on(X, y, viewpoint=v).frontier()
    >>> placed = front.place(([-0.5], 0.0))  # it predicts the wrong class
    >>> placed.verdict, round(placed.risk, 4), placed.better.coef.round(4).tolist()
    ('improvable', 1.8125, [0.5])

    """

    risk: float
    neutrality: float
    verdict: str
    margin: float
    better: Solution | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Frontier:
    """An enclosure of the trade-off curve between P = R_n + Omega and C, from `Problem.frontier`.

    Attributes
    ----------
    problem : Problem or ChunkedProblem
        The problem, with neutrality weights that add up to 1. If it has several neutrality terms, C is their
        weighted sum.
    tol : float
        The target of `gap`.
    solutions : tuple of Solution
        The certified solves, by increasing eta.
    floor : float
        A lower bound on C of every hypothesis.
    others : tuple of Point
        The other evaluated hypotheses: mixtures of solutions. If `whole`, the first is f = 0, which has the
        smallest C.
    whole : bool
        Whether the curve covers all weights eta >= 0, not only those of a given range.

    >>> import numpy as np, nerm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3)); y = np.sign(X[:, 0] + rng.normal(size=200)); v = np.sign(X[:, 0])
    >>> logistic = nerm.Logistic()
    >>> objective = nerm.Risk(logistic) + 0.01 * nerm.SquaredL2() + nerm.Neutrality(logistic)
    >>> front = objective.on(X, y, viewpoint=v).frontier(tol=0.01)
    >>> bool(front.gap <= 0.01)
    True
    >>> front.refutes(risk=0.5, neutrality=0.70), front.refutes(risk=0.69, neutrality=0.70)
    (True, False)
    >>> found = front.find(neutrality=0.70)
    >>> bool(found.objective.terms[-1].value <= 0.70)
    True
    >>> front.place(([0.0, 1.0, 0.0], 0.0)).verdict
    'improvable'

    """

    problem: AnyProblem
    tol: float
    solutions: tuple[Solution, ...]
    others: tuple[Point, ...]
    floor: float
    whole: bool

    # ---- the two curves

    def _pair(self, value: ObjectiveValue) -> tuple[float, float]:
        """Return (C, P) of an objective value."""
        terms = zip(self._small.objective.terms, value.terms, strict=True)
        c = sum(w.weight * t.value for w, t in terms if t.kind == "neutrality" and w.weight)
        return float(c), value.risk + value.regularization

    @property
    def _small(self) -> Problem:
        """The problem itself; for rows in chunks, the problem on a sample of the rows."""
        return self.problem.sample if isinstance(self.problem, ChunkedProblem) else self.problem

    @cached_property
    def etas(self) -> Floats:
        """The weight eta of each solve."""
        return np.array([one.problem.etas.sum() for one in self.solutions])

    @cached_property
    def bounds(self) -> Floats:
        """The lower bound on P + eta C at each solve: its dual bound minus the slack for rounding."""
        found = np.array([one.certificate.dual - one.certificate.slack for one in self.solutions])
        return found - 4 * EPS * np.abs(found)

    @cached_property
    def points(self) -> Floats:
        """The pairs (C, P) of all evaluated hypotheses, (number, 2): the solutions, then the others."""
        known: list[Any] = [*self.solutions, *self.others]
        return np.array([self._pair(one.objective) for one in known])

    @cached_property
    def inner(self) -> Floats:
        """The vertices (C, P) of the inner curve, by increasing C and decreasing P, (k, 2)."""
        return self.points[self._vertices]

    @cached_property
    def _vertices(self) -> list[int]:
        kept = _hull(self.points[:, 0], self.points[:, 1])
        return kept[: int(np.argmin(self.points[kept, 1])) + 1]

    def outer(self, neutrality: Any) -> Floats:
        """Return the outer curve at values of C: no hypothesis with at most this C has a smaller P.

        It is +inf below `floor`, where no hypothesis exists.
        """
        c = np.asarray(neutrality, dtype=float)[..., None]
        lines = self.bounds - self.etas * c - 4 * EPS * np.abs(self.etas * c)
        return np.where(c[..., 0] < self.floor, np.inf, lines.max(axis=-1))

    def _lower(self, eta: Floats) -> Floats:
        """Return the lower bound on p(eta) = min P + eta C, by concavity, for eta >= the smallest weight."""
        hull = _hull(self.etas, -self.bounds)
        known, bounds = self.etas[hull], self.bounds[hull]
        beyond = np.maximum(eta - known[-1], 0.0)
        return np.interp(eta, known, bounds) + (beyond * self.floor if beyond.any() else 0.0)

    def _widest(self) -> tuple[float, float]:
        """Return the largest gap and the weight eta where it occurs."""
        extents = np.ptp(self.points[: len(self.solutions)], axis=0)
        c, p = self.inner.T
        with np.errstate(divide="ignore", over="ignore"):
            chords = (p[:-1] - p[1:]) / np.diff(c)
        low, high = self.etas[0], 1e300 if self.whole else self.etas[-1]
        etas = np.concatenate([self.etas, chords[(chords > low) & (chords < high)]])
        upper = (p + etas[:, None] * c).min(axis=1)
        size = extents[1] + etas * extents[0]
        if not size.all():  # one point only: the plain solution is also the most neutral one
            size = size + np.abs(upper)
        gaps = (upper - self._lower(etas)) / size
        worst = int(np.argmax(gaps))
        return max(float(gaps[worst]), 0.0), float(etas[worst])

    @property
    def gap(self) -> float:
        """The width of the band between the two curves, relative to the ranges of P and C.

        For every hypothesis f of the class there is a mixture of solutions whose C exceeds C(f) by at most
        `gap` times the range of C over the solves, and whose P exceeds P(f) by at most `gap` times the range
        of P. With a given `eta_range` less is proved: for each eta in it, P + eta C of some mixture exceeds
        the optimum by at most `gap` times (range of P + eta times range of C). If rounding errors are larger
        than the target, `gap` stays above `tol`.
        """
        return self._widest()[0]

    # ---- what they prove

    def refutes(self, *, risk: float, neutrality: float) -> bool:
        """Return whether it is proved that no hypothesis has P <= `risk` and C <= `neutrality`.

        P = R_n + Omega and C are relaxed risks on the training rows, and the proof is about the hypotheses of
        this problem only. False means that these solves do not refute it.
        """
        return bool(self.outer(as_finite(neutrality, "neutrality")) > as_finite(risk, "risk"))

    def find(self, *, neutrality: float) -> Solution:
        """Return a hypothesis with C <= `neutrality` and a small P, certified.

        It is a mixture of the hypotheses at two adjacent vertices of the inner curve. The eta of the returned
        solution's `problem` is minus the slope of the chord between them. The certificate is about P + eta C;
        its dual bound is the interpolation of the bounds of the solves. The solution has no multipliers.
        """
        limit = as_finite(neutrality, "neutrality")
        c, p = self.inner.T
        if limit < c[0]:
            must = f"'neutrality' must be at least {c[0]:.10g}, the smallest neutrality of a solution"
            do = "No hypothesis has less" if limit < self.floor else "Pass a larger eta_range to frontier()"
            raise InvalidInputError(must, f"{limit:.10g}", do)
        if limit >= self.points[0, 0] and self._vertices[-1] == 0:
            return self.solutions[0]
        right = min(int(np.searchsorted(c, limit, side="right")), len(c) - 1)
        left = max(right - 1, 0)
        width = float(c[right] - c[left])
        slope = max((p[left] - p[right]) / width, self.etas[0]) if width else self.etas[0]
        share = (limit - sum_error(self.problem.n) * abs(limit) - c[left]) / width if width else 0.0
        ends: list[Any] = [(*self.solutions, *self.others)[self._vertices[k]] for k in (left, right)]
        near = self.solutions[min(int(np.searchsorted(self.etas, slope)), len(self.solutions) - 1)]
        for mixed in (min(max(share, 0.0), 1.0), 0.0):  # rounding may violate the limit by a last digit
            coef = (1 - mixed) * ends[0].coef + mixed * ends[1].coef
            intercept = (1 - mixed) * ends[0].intercept + mixed * ends[1].intercept
            value = self.problem.with_neutrality(slope).evaluate(coef, intercept)
            if self._pair(value)[0] <= limit:
                break
        bound, small = float(self._lower(np.array([slope]))[0]), self._small.with_neutrality(slope)
        error, violation = Slack(small, coef, intercept).primal, small.violation(coef, intercept)
        certificate = from_bounds(value.total, bound, near.certificate.scale, error, violation)
        problem = near.problem.with_neutrality(slope)
        stats = Stats("mixture", details={"share": mixed})
        return certify_bounds(problem, (coef, intercept), value, None, certificate, stats, self.tol)

    def place(self, model: Any) -> Placement:
        """Compare a model from any source with the curves.

        Parameters
        ----------
        model : Solution, (coef, intercept), fitted linear model, or (n,) array
            A hypothesis of this problem, or the scores of any model on the training rows (decisions -1 and +1
            are scores too). Scores have no Omega: their P is the risk alone.

        Returns
        -------
        Placement

        Raises
        ------
        NotSolvedError
            If a hypothesis of the class lies below the outer curve, which is impossible: then a solve or the
            given problem is wrong.

        """
        if hasattr(model, "coef_"):
            model = (np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]))
        elif hasattr(model, "coef"):
            model = (model.coef, model.intercept)
        small, in_class, error = self._small, False, 0.0
        if isinstance(model, tuple) and len(model) == 2:
            value = self.problem.evaluate(*model)
            pair = check_hypothesis(small, *model)
            in_class, error = not small.violation(*pair), Slack(small, *pair).primal
        elif isinstance(self.problem, ChunkedProblem):
            must = "a model on chunks must be a Solution or (coef, intercept)"
            raise InvalidInputError(must, type(model).__name__, "Pass its coefficients")
        elif hasattr(model, "predict"):
            do = "Pass its scores on the training rows, for instance model.predict_proba(X)[:, 1] - 0.5"
            raise InvalidInputError("'model' must be linear", type(model).__name__, do)
        else:
            scores = as_vector(model, small.n, "scores", "rows")
            sums = by_side(small.blocks, (block.total(scores) / small.divisor for block in small.blocks))
            value = objective_value(small.objective, sums, lambda omega: 0.0)
        c, p = self._pair(value)
        bound = float(self.outer(c + error))
        if p + error < bound and not in_class:
            return Placement(p, c, "refuted", p - bound)
        if p + error < bound:
            raise NotSolvedError(
                f"The hypothesis has risk {p:.10g} at neutrality {c:.10g}, below the proved bound "
                f"{bound:.10g}. A certificate is wrong: please report this problem."
            )
        if c >= self.inner[0, 0] and np.interp(c, *self.inner.T) < p:
            better = self.find(neutrality=c)
            if (gain := p - self._pair(better.objective)[1]) > 0:
                return Placement(p, c, "improvable", gain, better)
        return Placement(p, c, "undecided", max(p - bound, 0.0))

    # ---- shown

    def table(self) -> pd.DataFrame:
        """Return one row per solve: eta, neutrality C, risk P, the bound on P + eta C, the relative gap."""
        import pandas as pd

        c, p = self.points[: len(self.solutions)].T
        gaps = [one.certificate.relative_gap for one in self.solutions]
        columns = {"eta": self.etas, "neutrality": c, "risk": p, "bound": self.bounds, "relative_gap": gaps}
        return pd.DataFrame(columns)

    def plot(self, models: Any = None, ax: Any = None) -> Any:
        """Draw both curves and the band between them; `models`, a dict of models by name, become points."""
        from nerm.plots import frontier as draw

        return draw(self, models, ax)

    def __repr__(self) -> str:
        c, p = self.inner.T
        return (
            f"<Frontier: {len(self.solutions)} solves, gap {self.gap:.2g}; neutrality {c[0]:.6g} to "
            f"{c[-1]:.6g}, risk {p[0]:.6g} to {p[-1]:.6g}>"
        )
