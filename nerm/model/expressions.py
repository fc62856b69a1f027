"""Expressions: terms, weights and constraints, and the `Objective` that they form.

``Risk(Hinge()) + 0.05 * SquaredL2() + 1.0 * Neutrality(Hinge())`` is an `Objective`: a sum of weighted terms
without data. Risks, neutrality terms and regularizers derive from `Term`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nerm.errors import InvalidInputError, InvalidTypeError
from nerm.typing import Floats
from nerm.validation import as_finite, as_floats, as_nonnegative, as_positive, check_known, own
from nerm.weights import NAMES

if TYPE_CHECKING:
    from nerm.atoms.margin import MarginFunction

#: The theta of theta C+ + (1 - theta) C- for each `side` of a neutrality term; None stands for max(C+, C-).
SIDES = {"both": None, "agreement": 0.0, "disagreement": 1.0}


class Algebra(ABC):
    """The arithmetic of terms and objectives: +, * and / by numbers, <= by a limit."""

    @abstractmethod
    def _objective(self) -> Objective:
        """Return this expression as an objective."""

    def __add__(self, other: Any) -> Objective:
        if isinstance(other, type) and issubclass(other, Algebra):
            must, do = "a term must be an instance", f"Write {other.__name__}(...)"
            raise InvalidTypeError(must, f"the class {other.__name__}", do)
        if not isinstance(other, Algebra):
            return NotImplemented
        one, two = self._objective(), other._objective()
        return Objective(one.terms + two.terms, one.constraints + two.constraints)

    def __radd__(self, other: Any) -> Objective:
        # sum([...]) starts from 0
        return self._objective() if isinstance(other, int) and other == 0 else NotImplemented

    def __mul__(self, weight: Any) -> Objective:
        if isinstance(weight, Algebra):
            must, do = "a term must be weighted by a number", "Add terms with +, weight them with numbers"
            raise InvalidInputError(must, "the product of two terms", do)
        factor = as_nonnegative(weight, "weight", "A negative weight would make the objective non-convex")
        weights = [factor * t.weight for t in self._objective().terms]
        as_nonnegative(max(weights), "weight", "Use a smaller weight")  # it may overflow
        return self._objective().with_weights(weights)

    __rmul__ = __mul__
    __array_ufunc__ = None  # numpy numbers are weights; numpy arrays are not

    def __truediv__(self, divisor: Any) -> Objective:
        return self * (1.0 / as_positive(divisor, "divisor", "Divide by a positive number"))

    def __neg__(self) -> Objective:
        return self * -1.0

    def __sub__(self, other: Any) -> Objective:
        return self + -other if isinstance(other, Algebra) else NotImplemented

    def __le__(self, bound: Any) -> Limit:
        weighted = self._limitable("<=")
        negative = weighted.term.surrogate.facts.minimum < 0  # type: ignore[attr-defined]
        least = "A neutrality risk is at least psi(0) times the mean of its weights"
        t = as_finite(bound, "t") if negative else as_nonnegative(bound, "t", least)
        return Limit(weighted.term, t / weighted.weight)

    def __ge__(self, bound: Any) -> Limit:
        self._limitable(">=")
        must = "a neutrality term must be limited from above: a limit from below is not convex"
        raise InvalidInputError(must, f"{self!r} >= {bound!r}", "Write Neutrality(...) <= t")

    def _limitable(self, sense: str) -> WeightedTerm:
        """Return the neutrality term of which this expression consists.

        Raise an error if the expression is anything else, or if its weight is not positive.
        """
        weighted, *others = self._objective().terms
        if others or weighted.term.kind != "neutrality" or not weighted.weight > 0:
            do = "Write Neutrality(...) <= t for each term of its own; a risk or a regularizer has a weight"
            raise InvalidInputError("only a neutrality term can be limited", f"{self!r} {sense} ...", do)
        return weighted

    def subject_to(self, *constraints: Constraint) -> Objective:
        """Return the objective with constraints such as ``Neutrality(...) <= t``.

        >>> from nerm import Coefficients, Hinge, Neutrality, Risk, SquaredL2
        >>> limits = Neutrality(Hinge()) <= 1.05, Coefficients() >= 0
        >>> print((Risk(Hinge()) + 0.1 * SquaredL2()).subject_to(*limits))
        minimise mean hinge(y f) + 0.1 ½‖w‖² subject to max(mean hinge(v f), mean hinge(-v f)) ≤ 1.05, w ≥ 0
        """
        for constraint in constraints:
            if not isinstance(constraint, Constraint):
                do = "Write Neutrality(...) <= t or Coefficients(...) >= 0"
                raise InvalidInputError("a constraint must be a comparison", repr(constraint), do)
        objective = self._objective()
        return replace(objective, constraints=objective.constraints + constraints)

    def on(
        self,
        X: Any,
        y: Any = None,
        *,
        viewpoint: Any = None,
        kernel: Any = None,
        intercept: bool = True,
        sample_weight: Any = None,
    ) -> Any:
        """Bind the objective to data, validate it, and return a `nerm.Problem`.

        X
            (n, d), dense or scipy sparse; with ``kernel="precomputed"`` the (n, n) Gram matrix. For a dask
            array (with y and viewpoint of the same rows) or `nerm.Chunks` (which contain y and viewpoint) the
            result is a `nerm.chunks.ChunkedProblem`.
        y
            (n,) labels with two distinct values; the larger value is the class +1.
        viewpoint
            (n,) real numbers v_i = g(x_i); or a table or a dict with one such column per viewpoint; or a
            callable g; or a fitted estimator.
        kernel
            None for the linear hypothesis f = X w + b; a name, a callable or a `nerm.kernels.Kernel` for f =
            K c + b.
        intercept
            Whether b is free (and never regularised). To regularise it, append a column of ones and pass
            False.
        sample_weight
            (n,) weights s_i >= 0 of the risk. Neutrality terms have their own weights u_i.
        """
        from nerm.model.problem import on

        rows = {"viewpoint": viewpoint, "sample_weight": sample_weight}
        return on(self._objective(), X, y, kernel=kernel, intercept=intercept, **rows)


class Term(Algebra):
    """One summand of an objective, without its weight.

    `kind` is "risk", "neutrality" or "regularizer".
    """

    kind: ClassVar[str]

    def _objective(self) -> Objective:
        return Objective((WeightedTerm(1.0, self),))

    @abstractmethod
    def formula(self, mean: str = "mean", latex: bool = False) -> str:
        """Return the term as mathematics, text or LaTeX.

        `mean` is the word for a mean over rows in text.
        """


@dataclass(frozen=True)
class WeightedTerm:
    """A term with its nonnegative weight."""

    weight: float
    term: Term


class Constraint(ABC):
    """A condition on the hypothesis."""

    @abstractmethod
    def formula(self, mean: str = "mean", latex: bool = False) -> str:
        """Return the constraint as mathematics, text or LaTeX."""

    def __bool__(self) -> bool:
        # Python evaluates a <= x <= b as (a <= x) and (x <= b), which would drop the first constraint
        must = "a constraint has no truth value"
        raise InvalidTypeError(must, f"bool({self!r})", "Write a <= x <= b as two constraints")


@dataclass(frozen=True)
class Limit(Constraint):
    """C(f) <= t for a neutrality term C: ``Neutrality(...) <= t``."""

    term: Term
    bound: float

    def __repr__(self) -> str:
        return f"{self.term!r} <= {self.bound:g}"

    def formula(self, mean: str = "mean", latex: bool = False) -> str:
        """Return the limit as text or LaTeX."""
        sign = r"\le" if latex else "≤"
        return f"{self.term.formula(mean, latex)} {sign} {self.bound:g}"


@dataclass(frozen=True, repr=False)
class Objective(Algebra):
    """A weighted sum of terms, without data.

    `repr` returns Python code, `print` shows the formula, and a notebook shows LaTeX. Terms are added with +
    and weighted with * or / by nonnegative numbers; a negative weight is an error.

    >>> from nerm import Hinge, Neutrality, Risk, SquaredL2
    >>> objective = Risk(Hinge()) + 0.1 * (SquaredL2() + 5 * Neutrality(Hinge(), to="sex"))
    >>> objective
    Risk(Hinge()) + 0.1 * SquaredL2() + 0.5 * Neutrality(Hinge(), to='sex')
    >>> print(objective)
    minimise mean hinge(y f) + 0.1 ½‖w‖² + 0.5 max(mean hinge(sex f), mean hinge(-sex f))
    >>> [term.weight for term in objective.terms]
    [1.0, 0.1, 0.5]
    """

    terms: tuple[WeightedTerm, ...]
    constraints: tuple[Constraint, ...] = ()

    def _objective(self) -> Objective:
        return self

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits C_k(f) <= t_k among the constraints."""
        return tuple(c for c in self.constraints if isinstance(c, Limit))

    @property
    def every_term(self) -> list[Term]:
        """The terms of the objective, then those of the limits.

        `Block.term` is an index into this list.
        """
        return [*(weighted.term for weighted in self.terms), *(limit.term for limit in self.limits)]

    @property
    def is_regression(self) -> bool:
        """Whether the risks are of residuals y - f with a real y; an error if only some of them are.

        >>> from nerm import AbsoluteError, Hinge, Risk
        >>> (Risk(AbsoluteError()) + Risk(Hinge())).is_regression
        Traceback (most recent call last):
            ...
        nerm.errors.InvalidInputError: a risk of residuals cannot be added to a risk of margins. Got ...
        """
        kinds = {t.term.loss.of_residual for t in self.terms if isinstance(t.term, Risk)}
        if len(kinds) > 1:
            must = "a risk of residuals cannot be added to a risk of margins"
            raise InvalidInputError(must, repr(self), "Use risks of one kind")
        return True in kinds

    def with_weights(self, weights: Iterable[float]) -> Objective:
        """Return the objective with these weights of its terms, in their order."""
        terms = (replace(t, weight=float(w)) for t, w in zip(self.terms, weights, strict=True))
        return replace(self, terms=tuple(terms))

    def with_total(self, kind: str, total: float) -> Objective:
        """Return the objective with the weights of all terms of one kind rescaled to the sum `total`.

        The weights keep their ratios. If all of them are 0, they become equal.

        >>> from nerm import L1, Hinge, Risk, SquaredL2
        >>> (Risk(Hinge()) + 1.0 * SquaredL2() + 3.0 * L1()).with_total("regularizer", 0.4)
        Risk(Hinge()) + 0.1 * SquaredL2() + 0.3 * L1()
        """
        old = [t.weight for t in self.terms if t.term.kind == kind]
        new = iter([total * (w / sum(old) if sum(old) else 1 / len(old)) for w in old])
        return self.with_weights([next(new) if t.term.kind == kind else t.weight for t in self.terms])

    def __repr__(self) -> str:
        terms = " + ".join(_scaled(t.weight, repr(t.term), " * ") for t in self.terms)
        subject = ", ".join(map(repr, self.constraints))
        return f"({terms}).subject_to({subject})" if subject else terms

    def __str__(self) -> str:
        return self.formula()

    def formula(self, mean: str = "mean", latex: bool = False) -> str:
        """Return the objective as text or LaTeX.

        `mean` is the word for a mean over rows in the text.
        """
        times, comma = (r"\, ", r",\ ") if latex else (" ", ", ")
        terms = " + ".join(_scaled(t.weight, t.term.formula(mean, latex), times) for t in self.terms)
        subject = comma.join(c.formula(mean, latex) for c in self.constraints)
        given = r"\quad\text{subject to}\quad " if latex else " subject to "
        return (r"\min_{f}\ " if latex else "minimise ") + terms + (given + subject if subject else "")

    def _repr_html_(self) -> str:
        return f"<div>{escape(self._repr_latex_())}</div><div><code>{escape(repr(self))}</code></div>"

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle {self.formula(latex=True)}$"


def _scaled(weight: float, text: str, times: str) -> str:
    """Return weight, `times` and text as one string; a weight of 1 is left out."""
    return text if weight == 1 else f"{weight:g}{times}{text}"


def _check_margin_function(atom: Any, where: str) -> None:
    from nerm.atoms.margin import MarginFunction  # atoms import this module

    if not isinstance(atom, MarginFunction):
        name = atom.__name__ if isinstance(atom, type) else "Hinge"
        raise InvalidInputError(f"{where} needs a margin function", repr(atom), f"Write {where}({name}())")


@dataclass(frozen=True)
class Risk(Term):
    """The empirical risk R_n(f) = (1/n) sum_i s_i c_i phi(y_i f(x_i)) (the paper, section 3).

    loss
        The margin function phi; it must be bounded below. With a residual function (`SquaredError`,
        `AbsoluteError`, ...) the risk is (1/n) sum_i s_i phi(y_i - f(x_i)), and y is real: a regression.
    positive, negative
        The cost c_i of rows with y = +1 and with y = -1, at least 0. With ``positive=2`` the loss of a row
        with y = +1 counts twice. Two risks with a cost of 0 give each class a loss of its own.

    The labels y and the sample weights s, both (n,), come with the data. The hypothesis f = 0 has the risk
    phi(0):

    >>> from nerm import Hinge, Logistic
    >>> print(1.0 * Risk(Hinge()))
    minimise mean hinge(y f)
    >>> round(float(Risk(Logistic()).on([[1.0], [2.0]], [-1, 1]).evaluate([0.0])), 4)  # log 2
    0.6931
    >>> print(1.0 * Risk(Hinge(), positive=2.0))
    minimise mean (2 if y > 0 else 1) hinge(y f)
    >>> Risk(Hinge(), negative=0.0) + Risk(Logistic(), positive=0.0)  # hinge for y = +1, logistic for y = -1
    Risk(Hinge(), negative=0) + Risk(Logistic(), positive=0)
    """

    kind: ClassVar[str] = "risk"
    loss: MarginFunction
    positive: float = 1.0
    negative: float = 1.0

    def __post_init__(self) -> None:
        _check_margin_function(self.loss, "Risk")
        if self.loss.facts.surrogate_only:
            do = f"Use it as a surrogate: Neutrality({self.loss!r})"
            raise InvalidInputError("a loss must be bounded below", repr(self.loss), do)
        for name, cost in (("positive", self.positive), ("negative", self.negative)):
            object.__setattr__(self, name, as_nonnegative(cost, name, "A cost per class is at least 0"))
        if self.loss.of_residual and not self.positive == self.negative == 1:
            must = "'positive' and 'negative' need a margin function: a regression has no classes"
            raise InvalidInputError(must, repr(self.loss), "Drop them, or pass sample_weight to on()")
        if self.positive == self.negative == 0:
            must = "'positive' or 'negative' of a risk must be above 0"
            raise InvalidInputError(must, "0 for both", "Leave out the risk")

    def row_weights(self, y: Floats, sample_weight: Floats) -> Floats:
        """Return s_i c_i, (n,): the sample weights s times the cost of each row's class."""
        if self.positive == self.negative == 1:
            return sample_weight
        return sample_weight * np.where(y > 0, self.positive, self.negative)

    def __repr__(self) -> str:
        costs = {"positive": self.positive, "negative": self.negative}
        shown = "".join(f", {name}={cost:g}" for name, cost in costs.items() if cost != 1)
        return f"Risk({self.loss!r}{shown})"

    def formula(self, mean: str = "mean", latex: bool = False) -> str:
        """Return the term as text or LaTeX."""
        cases = r"\begin{cases} %g & y_i = +1 \\ %g & y_i = -1 \end{cases}\, "
        costs = (cases if latex else "(%g if y > 0 else %g) ") % (self.positive, self.negative)
        costs = "" if self.positive == self.negative == 1 else costs
        residual = self.loss.of_residual
        if not latex:
            return f"{mean} {costs}{_label(self.loss)}({'y - f' if residual else 'y f'})"
        margins = ("y_i - f(x_i)", "f(x_i) - y_i") if residual else ("y_i f(x_i)", "- y_i f(x_i)")
        return rf"\frac1n\sum_i {costs}{self.loss.latex(*margins)}"


@dataclass(frozen=True, eq=False)
class Neutrality(Term):
    """The relaxed neutrality risk max(C+, C-) (the paper, definitions 3 and 4).

    ::

        C+- = (1/n) sum_i u_i psi(+- v_i f(x_i))

    surrogate
        The margin function psi.
    to
        The name of the viewpoint; required if the problem has several viewpoints.
    weights
        The weights u: ``"uniform"`` (the paper), ``"balanced"`` (demographic parity),
        ``"equal_opportunity"``, ``"predictive_equality"``, or an (n,) array.
    side
        ``"both"`` is the paper's max(C+, C-). ``"agreement"`` is C- alone, which penalises only agreement
        with the viewpoint; ``"disagreement"`` is C+ alone, which penalises only disagreement. A one-sided
        term is a risk with the labels -v or v. As its weight grows, the correlation of f with the viewpoint
        changes its sign, so every level of neutrality in between is attained. With an increasing psi
        (`Identity`) agreement and disagreement are exchanged.

    >>> from nerm import Hinge, Identity, Risk
    >>> 2 * Neutrality(Hinge(), to="sex")
    2 * Neutrality(Hinge(), to='sex')
    >>> print(2 * Neutrality(Hinge(), side="agreement"))
    minimise 2 mean hinge(-v f)

    With the surrogate `Identity` the term is the covariance criterion `|mean(v f)|`:

    >>> problem = (Risk(Hinge()) + Neutrality(Identity())).on([[1.0], [3.0]], [-1, 1], viewpoint=[1, -1])
    >>> problem.evaluate([1.0]).neutrality  # |1 - 3| / 2
    1.0
    """

    surrogate: MarginFunction
    to: str | None = None
    weights: Any = "uniform"
    side: str = "both"
    kind: ClassVar[str] = "neutrality"

    def __post_init__(self) -> None:
        _check_margin_function(self.surrogate, "Neutrality")
        if self.surrogate.of_residual:
            must = "Neutrality needs a function of the margin v f, not of a residual"
            raise InvalidInputError(must, repr(self.surrogate), "Use Identity() or Hinge(), for instance")
        if isinstance(self.weights, str):
            do = "Use one of these names, or an array of weights"
            check_known(self.weights, "'weights' of a neutrality term", NAMES, do)
        else:
            weights = as_floats(self.weights, "weights", "Pass one number per row")
            object.__setattr__(self, "weights", own(weights))
        if self.to is not None and not isinstance(self.to, str):
            raise InvalidInputError("'to' must be the name of a viewpoint", repr(self.to), "Pass a string")
        check_known(self.side, "'side' of a neutrality term", tuple(SIDES))

    def _key(self) -> tuple[object, ...]:
        weights = self.weights if isinstance(self.weights, str) else self.weights.tobytes()
        return self.surrogate, self.to, weights, self.side

    @property
    def _weights_name(self) -> str:
        return self.weights if isinstance(self.weights, str) else "array"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Neutrality) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        to = "" if self.to is None else f", to={self.to!r}"
        weights = "" if self._weights_name == "uniform" else f", weights={self._weights_name!r}"
        side = "" if self.side == "both" else f", side={self.side!r}"
        return f"Neutrality({self.surrogate!r}{to}{weights}{side})"

    @property
    def theta(self) -> float | None:
        """The weight of C+: 0 or 1 for a one-sided term, None for max(C+, C-)."""
        return SIDES[self.side]

    def formula(self, mean: str = "mean", latex: bool = False) -> str:
        """Return the term as text or LaTeX."""
        uniform = self._weights_name == "uniform"
        if latex:
            v = "v_i" if self.to is None else rf"v^{{\mathrm{{{self.to}}}}}_i"
            signs = {None: (r"\pm ", r"\mp "), 0.0: ("- ", "+ "), 1.0: ("", "- ")}[self.theta]
            psi = self.surrogate.latex(*(f"{sign}{v} f(x_i)" for sign in signs))
            larger = r"\max_{\pm}\ " if self.theta is None else ""
            return rf"{larger}\frac1n\sum_i {'' if uniform else 'u_i '}{psi}"
        psi = f"{'' if uniform else 'weighted '}{mean} {_label(self.surrogate)}"
        to = self.to or "v"
        to = to if to.partition("[")[0].isidentifier() else f"v[{to}]"
        plus, minus = (f"{psi}({sign}{to} f)" for sign in ("", "-"))
        return {None: f"max({plus}, {minus})", 0.0: minus, 1.0: plus}[self.theta]


def equalized_odds(surrogate: MarginFunction, to: str | None = None, side: str = "both") -> Objective:
    """Return the sum of two neutrality terms for equalized odds, each with weight 1.

    The first is neutrality among the rows with y = +1 (equal opportunity: equal true positive rates), the
    second among the rows with y = -1 (predictive equality: equal false positive rates).

    >>> from nerm import Hinge
    >>> equalized_odds(Hinge())
    Neutrality(Hinge(), weights='equal_opportunity') + Neutrality(Hinge(), weights='predictive_equality')
    """
    positives = Neutrality(surrogate, to, "equal_opportunity", side)
    return positives + Neutrality(surrogate, to, "predictive_equality", side)


def viewpoint_of(term: Neutrality, viewpoints: Mapping[str, Any]) -> str:
    """Return the name of the viewpoint of a neutrality term.

    Raise an error if it is unknown or ambiguous.
    """
    if term.to is None and len(viewpoints) != 1:
        must = "a neutrality term must name its viewpoint when there are several"
        got = f"Neutrality without 'to' and the viewpoints {', '.join(map(repr, viewpoints))}"
        raise InvalidInputError(must, got, f"Write Neutrality(..., to={next(iter(viewpoints))!r})")
    name = next(iter(viewpoints)) if term.to is None else term.to
    check_known(name, "'to' of a neutrality term", viewpoints, "Name a given viewpoint")
    return name


def _label(atom: MarginFunction) -> str:
    return getattr(atom, "label", "") or atom.name
