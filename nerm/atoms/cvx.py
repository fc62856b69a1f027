"""The functions of cvxpy for the formulas of nerm's own atoms.

cvxpy takes a second to load, so it is imported when a formula is first applied to a cvxpy expression. Applied
to a `nerm.atoms.functions.Function`, a function acts by the rule of its atom, without cvxpy.
"""

from typing import Any

from nerm.atoms import formula
from nerm.atoms.functions import Function

OWN: dict[str, Any] = {
    "pos": lambda x: x.maximum(0.0),
    "maximum": Function.maximum,
    "square": lambda x: formula.power(x, 2),
    "huber": formula.huber,
    "exp": formula.exp,
    "logistic": formula.logistic,
}


def __getattr__(name: str) -> Any:
    def function(*arguments: Any) -> Any:
        if isinstance(arguments[0], Function):
            return OWN[name](*arguments)
        import cvxpy

        return getattr(cvxpy, name)(*arguments)

    if name in OWN:
        return function
    import cvxpy

    return getattr(cvxpy, name)
