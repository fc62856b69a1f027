"""Write a cvxpy expression of one margin as LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nerm.atoms.formula import kind, number
from nerm.atoms.functions import NoRuleError

SUM, PRODUCT, WHOLE = range(3)  # how tightly a text binds: a sum, a product, anything else
SIGNS = ("-", "+", r"\pm", r"\mp")


def latex(tree: Any, variable: Any, m: str, minus_m: str) -> str:
    r"""Return the LaTeX of a cvxpy expression; NoRuleError names an atom without a rule.

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
        name, inner = kind(node), node.args
        if node is variable:
            return m, SUM if m.startswith(SIGNS) else PRODUCT if " " in m else WHOLE
        if node.is_constant():
            shown = f"{number(node) + 0.0:g}"
            return shown, SUM if shown.startswith("-") else WHOLE
        if name in ("promote", "reshape", "broadcast_to"):
            return written_as(inner[0])
        if name == "negexpression":
            return minus_m if inner[0] is variable else f"-{text(inner[0], PRODUCT)}", SUM
        if name == "addexpression":
            return _joined([shown for shown in map(text, inner) if shown != "0"]), SUM
        first, *others = sorted(inner, key=lambda part: not part.is_constant())
        if name in ("mulexpression", "multiply"):
            factor, rest = text(first), text(others[0], PRODUCT)
            product = rf"{factor}\,{rest}", SUM if factor.startswith("-") else PRODUCT
            return written_as(others[0]) if factor == "1" else product
        if name in ("maximum", "minimum"):
            terms = r",\ ".join(map(text, (first, *others)))
            return rf"\{name[:3]}({terms})", WHOLE
        if name == "power":
            return rf"{text(first, WHOLE)}^{{{number(node.p):g}}}", PRODUCT
        if name == "pnorm" and type(first).__name__ == "Vstack" and number(node.p) == 2:
            squares = [f"{text(term, WHOLE)}^{{2}}" for term in first.args]
            return rf"\sqrt{{{_joined(squares)}}}", WHOLE
        if name in WRITTEN:
            return WRITTEN[name](node, *map(text, inner)), WHOLE
        raise NoRuleError(f"cvxpy.{type(node).__name__}")

    return text(tree, PRODUCT)


def _joined(terms: list[str]) -> str:
    """Return a sum as LaTeX; before a term that begins with its sign there is no plus."""
    signed = (term if term.startswith(SIGNS) else f"+ {term}" for term in terms)
    spaced = (f"- {term[1:].lstrip()}" if term.startswith("-") else term for term in signed)
    return " ".join(spaced).removeprefix("+ ")


WRITTEN: dict[str, Callable[..., str]] = {
    "divexpression": lambda node, one, two: rf"\frac{{{one}}}{{{two}}}",
    "abs": lambda node, x: rf"\left|{x}\right|",
    "exp": lambda node, x: f"e^{{{x}}}",
    "logistic": lambda node, x: rf"\log\left(1 + e^{{{x}}}\right)",
    "huber": lambda node, x: rf"\operatorname{{huber}}_{{{number(node.M):g}}}\left({x}\right)",
}
