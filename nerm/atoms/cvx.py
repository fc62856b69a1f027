"""The functions of cvxpy for the formulas of nerm's own atoms.

cvxpy takes a second to load, so it is imported when a formula is first applied to a cvxpy expression. Applied
to a `nerm.atoms.functions.Function`, it is the method of the same name, and cvxpy is not needed.
"""

from typing import Any

from nerm.atoms.functions import Function


def __getattr__(name: str) -> Any:
    def function(x: Any, *others: Any) -> Any:
        if isinstance(x, Function):
            return getattr(x, name)(*others)
        import cvxpy

        return getattr(cvxpy, name)(x, *others)

    if name in vars(Function):
        return function
    import cvxpy

    return getattr(cvxpy, name)
