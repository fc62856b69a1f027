"""The functions of cvxpy for the formulas of nerm's own atoms.

cvxpy takes a second to load, so it is imported when a formula is first applied to a cvxpy expression. Applied
to a `nerm.atoms.formula.Node`, a function acts by the rule of its atom, without cvxpy.
"""

from typing import Any

from nerm.atoms import formula

OWN: dict[str, Any] = {
    "pos": lambda x: formula.maximum(x, formula.as_node(0.0)),
    "maximum": lambda x, y: formula.maximum(formula.as_node(x), formula.as_node(y)),
    "square": lambda x: formula.power(x, 2.0),
    "huber": formula.huber,
    "exp": formula.exponential,
    "logistic": formula.logistic,
}


def __getattr__(name: str) -> Any:
    def function(*arguments: Any) -> Any:
        if any(isinstance(argument, formula.Node) for argument in arguments):
            return OWN[name](*arguments)
        import cvxpy

        return getattr(cvxpy, name)(*arguments)

    if name in OWN:
        return function
    import cvxpy

    return getattr(cvxpy, name)
