"""Write a cvxpy expression of one margin as LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SUM, PRODUCT, WHOLE = range(3)  # how tightly a text binds: a sum, a product, anything else


def latex(tree: Any, variable: Any, m: str, minus_m: str) -> str:
    r"""Return the LaTeX of a cvxpy expression; NotImplementedError names an atom without a rule.

    A sum is put in parentheses, so the result can be a factor.
    `m` and `minus_m` are the LaTeX of the variable and of its negative.

    >>> import cvxpy as cp
    >>> x = cp.Variable(3)
    >>> latex(cp.square(cp.pos(1 - x)) / 2, x, "m", "- m")
    '\\frac{\\max(0,\\ 1 - m)^{2}}{2}'
    """

    def text(node: Any, least: int = SUM) -> str:
        """Return the text of a node, in parentheses if it binds less than `least`."""
        written, binds = written_as(node)
        return written if binds >= least else rf"\left({written}\right)"

    def written_as(node: Any) -> tuple[str, int]:
        if node is variable:
            return m, SUM if m.startswith(("-", "+", r"\pm", r"\mp")) else PRODUCT if " " in m else WHOLE
        if node.is_constant():
            number = _number(node) + 0.0
            return f"{number:g}", SUM if number < 0 else WHOLE
        kind, inner = type(node).__name__.removesuffix("Approx").lower(), node.args
        if kind in ("promote", "reshape", "broadcast_to"):
            return written_as(inner[0])
        if kind == "negexpression":
            return minus_m if inner[0] is variable else f"-{text(inner[0], PRODUCT)}", SUM
        if kind == "addexpression":
            return _joined([shown for shown in map(text, inner) if shown != "0"]), SUM
        if kind in ("mulexpression", "multiply"):
            first, second = sorted(inner, key=lambda factor: not factor.is_constant())
            factor, rest = text(first), text(second, PRODUCT)
            if factor == "1":
                return written_as(second)
            return rf"{factor}\,{rest}", SUM if factor.startswith("-") else PRODUCT
        if kind in ("maximum", "minimum"):
            terms = r",\ ".join(map(text, sorted(inner, key=lambda term: not term.is_constant())))
            return rf"\{kind[:3]}({terms})", WHOLE
        if kind == "power":
            return rf"{text(inner[0], WHOLE)}^{{{_number(node.p):g}}}", PRODUCT
        if kind == "pnorm" and type(inner[0]).__name__ == "Vstack" and _number(node.p) == 2:
            squares = [f"{text(term, WHOLE)}^{{2}}" for term in inner[0].args]
            return rf"\sqrt{{{_joined(squares)}}}", WHOLE
        if kind in WRITTEN:
            return WRITTEN[kind](node, *map(text, inner)), WHOLE
        raise NotImplementedError(f"cvxpy.{type(node).__name__}")

    return text(tree, PRODUCT)


def _joined(terms: list[str]) -> str:
    """Return a sum; a term that begins with its sign needs no plus."""
    signed = (term if term.startswith(("-", "+", r"\pm", r"\mp")) else f"+ {term}" for term in terms)
    spaced = (f"- {term[1:].lstrip()}" if term.startswith("-") else term for term in signed)
    return " ".join(spaced).removeprefix("+ ")


def _number(parameter: Any) -> float:
    value = getattr(parameter, "value", parameter)
    return float(np.ravel(value.toarray() if hasattr(value, "toarray") else value)[0])


WRITTEN: dict[str, Callable[..., str]] = {
    "divexpression": lambda node, one, two: rf"\frac{{{one}}}{{{two}}}",
    "abs": lambda node, x: rf"\left|{x}\right|",
    "exp": lambda node, x: f"e^{{{x}}}",
    "logistic": lambda node, x: rf"\log\left(1 + e^{{{x}}}\right)",
    "huber": lambda node, x: rf"\operatorname{{huber}}_{{{_number(node.M):g}}}\left({x}\right)",
    "log": lambda node, x: rf"\log\left({x}\right)",
    "log1p": lambda node, x: rf"\log\left(1 + {x}\right)",
    "entr": lambda node, x: rf"\operatorname{{entr}}\left({x}\right)",
}
