"""The two terms that meet the data: the risk of f and its neutrality to a viewpoint."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nerm.atoms.margin import MarginFunction
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.model import weights as neutrality_weights
from nerm.model.algebra import Objective, Term, WeightedTerm
from nerm.model.weights import NAMES
from nerm.typing import Floats
from nerm.validation import as_floats

__all__ = ["Neutrality", "Objective", "Risk", "Term", "WeightedTerm", "equalized_odds"]

#: What a neutrality term punishes, and theta, the weight of C+ in theta C+ + (1 - theta) C-, where it is fixed.
SIDES = {"both": None, "agreement": 0.0, "disagreement": 1.0}


def _check_margin_function(atom: Any, where: str) -> None:
    if not isinstance(atom, MarginFunction):
        hint = (
            f"Write {where}({atom.__name__}())"
            if isinstance(atom, type)
            else f"Write {where}(Hinge()), for instance"
        )
        raise InvalidInputError(f"{where} must be given a margin function", repr(atom), hint)


@dataclass(frozen=True)
class Risk(Term):
    """The empirical risk R_n(f) = (1/n) sum_i s_i phi(y_i f(x_i)) (the paper, section 3).

    loss
        The margin function phi; it must be bounded below.

    The labels y and the sample weights s, both (n,), come with the data. The hypothesis f = 0 has the risk
    phi(0):

    >>> from nerm import Hinge, Logistic
    >>> print(1.0 * Risk(Hinge()))
    minimise mean hinge(y f)
    >>> round(float(Risk(Logistic()).on([[1.0], [2.0]], [-1, 1]).evaluate([0.0])), 4)  # log 2
    0.6931
    """

    kind: ClassVar[str] = "risk"
    loss: MarginFunction

    def __post_init__(self) -> None:
        _check_margin_function(self.loss, "Risk")
        if self.loss.facts.surrogate_only:
            must = "a loss must be bounded below"
            raise InvalidInputError(
                must, f"{self.loss!r}, which is not", "Use it as a surrogate: Neutrality(...)"
            )

    def __repr__(self) -> str:
        return f"Risk({self.loss!r})"

    def sums(self, y: Floats, viewpoints: Mapping[str, Floats], sample_weight: Floats) -> tuple[Any, ...]:
        """Return the one sum that it is."""
        return ((self.loss, sample_weight, y, 0),)

    def formula(self, mean: str = "mean") -> str:
        """Return the term as text."""
        return f"{mean} {_label(self.loss)}(y f)"

    def latex_formula(self) -> str:
        """Return the term as LaTeX."""
        return r"\frac1n\sum_i " + self.loss.latex(r"y_i f(x_i)", r"- y_i f(x_i)")


@dataclass(frozen=True, eq=False)
class Neutrality(Term):
    """The relaxed neutrality risk max(C+, C-), C+- = (1/n) sum_i u_i psi(+- v_i f(x_i)) (the paper, definitions 3-4).

    surrogate
        The margin function psi.
    to
        The name of the viewpoint, needed when a problem has several.
    weights
        u: ``"uniform"`` (the paper), ``"balanced"`` (demographic parity), ``"equal_opportunity"``,
        ``"predictive_equality"``, or an (n,) array.
    side
        ``"both"``, the paper's max; ``"agreement"``, C- alone, punishes only following the viewpoint;
        ``"disagreement"``, C+ alone, only opposing it. One side is a risk with labels -v or v: as its weight
        grows, f passes neutrality and ends on the other side, so every level of neutrality can be had. Of a
        psi that increases (`Identity`) the sides do the opposite of their names.

    >>> from nerm import Hinge, Identity, Risk
    >>> 2 * Neutrality(Hinge(), to="sex")
    2 * Neutrality(Hinge(), to='sex')
    >>> print(2 * Neutrality(Hinge(), side="agreement"))
    minimise 2 mean hinge(-v f)

    With the identity it is the covariance criterion `|mean(v f)|`:

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
        if isinstance(self.weights, str):
            if self.weights not in NAMES:
                raise UnknownNameError(
                    "'weights' of a neutrality term", self.weights, NAMES, "Or pass an array of weights"
                )
        else:
            weights = (
                "uniform"
                if self.weights is None
                else as_floats(self.weights, "weights", "Pass numbers").copy()
            )
            object.__setattr__(self, "weights", weights)
            if isinstance(weights, np.ndarray):
                weights.setflags(write=False)
        if self.to is not None and not isinstance(self.to, str):
            raise InvalidInputError("'to' must be the name of a viewpoint", repr(self.to), "Pass a string")
        if not isinstance(self.side, str) or self.side not in SIDES:
            raise UnknownNameError("'side' of a neutrality term", self.side, SIDES)

    def _key(self) -> tuple[object, ...]:
        weights = self.weights if isinstance(self.weights, str) else self.weights.tobytes()
        return type(self), self.surrogate, self.to, weights, self.side

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Neutrality) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        to = "" if self.to is None else f", to={self.to!r}"
        weights = self.weights if isinstance(self.weights, str) else "array"
        weights = "" if weights == "uniform" else f", weights={weights!r}"
        side = "" if self.side == "both" else f", side={self.side!r}"
        return f"Neutrality({self.surrogate!r}{to}{weights}{side})"

    @property
    def theta(self) -> float | None:
        """The weight of C+ where the side fixes it; None where the larger of both sides counts."""
        return SIDES[self.side]

    def sums(self, y: Floats, viewpoints: Mapping[str, Floats], sample_weight: Floats) -> tuple[Any, ...]:
        """Return its two sides, or the one that it is."""
        v = viewpoints[viewpoint_of(self, viewpoints)]
        u = neutrality_weights.resolve(self.weights, y, v)
        if self.theta is not None:
            return ((self.surrogate, u, (2 * self.theta - 1) * v, 0),)
        return tuple((self.surrogate, u, side * v, side) for side in (1, -1))

    def formula(self, mean: str = "mean") -> str:
        """Return the term as text."""
        v = "v" if self.to is None else self.to
        mean = mean if isinstance(self.weights, str) and self.weights == "uniform" else f"weighted {mean}"
        psi = _label(self.surrogate)
        if self.theta is not None:
            return f"{mean} {psi}({'' if self.theta else '-'}{v} f)"
        return f"max({mean} {psi}({v} f), {mean} {psi}(-{v} f))"

    def latex_formula(self) -> str:
        """Return the term as LaTeX."""
        v = "v_i" if self.to is None else rf"v^{{\mathrm{{{self.to}}}}}_i"
        u = "" if isinstance(self.weights, str) and self.weights == "uniform" else r"u_i "
        larger = r"\max_{\pm}\ " if self.theta is None else ""
        signs = {None: (r"\pm ", r"\mp "), 0.0: ("- ", "+ "), 1.0: ("", "- ")}[self.theta]
        margins = [f"{sign}{v} f(x_i)" for sign in signs]
        return larger + r"\frac1n\sum_i " + u + self.surrogate.latex(*margins)


def equalized_odds(surrogate: MarginFunction, to: str | None = None, side: str = "both") -> Objective:
    """Return the two terms of equalized odds: neutral among y = +1 and among y = -1.

    Equal true positive rates are equal opportunity, equal false positive rates predictive equality; each term
    has the weight 1.

    >>> from nerm import Hinge
    >>> equalized_odds(Hinge())
    Neutrality(Hinge(), weights='equal_opportunity') + Neutrality(Hinge(), weights='predictive_equality')
    """
    return Neutrality(surrogate, to, "equal_opportunity", side) + Neutrality(
        surrogate, to, "predictive_equality", side
    )


def viewpoint_of(term: Neutrality, viewpoints: Mapping[str, Any]) -> str:
    """Return the name of the viewpoint that a neutrality term is about."""
    if term.to is None and len(viewpoints) != 1:
        must = "a neutrality term must name its viewpoint when there are several"
        got = f"Neutrality without 'to' and the viewpoints {', '.join(map(repr, viewpoints))}"
        raise InvalidInputError(must, got, f"Write Neutrality(..., to={next(iter(viewpoints))!r})")
    name = next(iter(viewpoints)) if term.to is None else term.to
    if name not in viewpoints:
        raise UnknownNameError(
            "'to' of a neutrality term", name, viewpoints, "Name a viewpoint that was given"
        )
    return name


def _label(atom: MarginFunction) -> str:
    return getattr(atom, "label", "") or atom.name
