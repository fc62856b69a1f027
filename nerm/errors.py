"""The errors and warnings of nerm: one sentence each, and a Python type that is usual for the case.

The parts are *what must hold, what was given, where, what to do*:

>>> must, got = "'viewpoint' must be finite", "nan at index 17 (and 2 more)"
>>> raise InvalidInputError(must, got, "Drop or impute these rows")
Traceback (most recent call last):
    ...
nerm.errors.InvalidInputError: 'viewpoint' must be finite. Got nan at index 17 (and 2 more). Drop or impute
these rows.
"""

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any


class NermError(Exception):
    """The base class of the errors of nerm.

    >>> import nerm
    >>> try:
    ...     nerm.kernels.resolve("gauss")
    ... except nerm.NermError as error:
    ...     print(error)
    'kernel' must be one of 'linear', 'poly', 'polynomial', 'precomputed', 'rbf', 'sigmoid'. Got 'gauss'. Use
    one ...
    """


class InvalidInputError(NermError, ValueError):
    """Raised if a given value cannot be used; it is also a ValueError.

    `parts` holds the three parts of the message: what must hold, what was given and where, what to do.

    >>> import nerm
    >>> try:
    ...     -1.0 * nerm.SquaredL2()
    ... except ValueError as error:
    ...     error.parts
    ("'weight' must be a finite number, at least 0", '-1.0', 'A negative weight would make the objective
    non-convex')
    """

    def __init__(self, must: str, got: str, do: str) -> None:
        super().__init__(f"{must}. Got {got}. {do}.")
        self.parts = (must, got, do)

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        """Pickle the parts of the message, so that the error can be sent back from a worker process."""
        return type(self), self.parts


class InvalidTypeError(InvalidInputError, TypeError):
    """Raised if a given value has a type that cannot be used; it is also a TypeError.

    >>> import nerm
    >>> try:
    ...     nerm.Risk(nerm.Hinge()) + nerm.SquaredL2
    ... except TypeError as error:
    ...     print(error)
    a term must be an instance. Got the class SquaredL2. Write SquaredL2(...).
    """


class UnknownNameError(InvalidInputError):
    """Raised for an unknown name, such as that of a solver or kernel; the message lists the known names.

    >>> print(UnknownNameError("'coding'", "gray", ("raw", "nominal", "one-hot")))
    'coding' must be one of 'nominal', 'one-hot', 'raw'. Got 'gray'. Use one of these names.
    """

    def __init__(self, what: str, name: object, known: object, do: str = "Use one of these names") -> None:
        words = sorted(str(k) for k in known)  # type: ignore[attr-defined]
        close = get_close_matches(str(name).casefold(), [word.casefold() for word in words], 1)
        meant = [f"Did you mean {word!r}? " for word in words if [word.casefold()] == close]
        names = ", ".join(map(repr, words))
        super().__init__(f"{what} must be one of {names}", repr(name), "".join(meant[:1]) + do)

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        """Pickle as the parent class, which has the same message."""
        return InvalidInputError, self.parts


def check_known(name: Any, what: str, known: Collection[Any], do: str = "Use one of these names") -> None:
    """Raise an `UnknownNameError` if `name` is not in `known`."""
    if name not in known:
        raise UnknownNameError(what, name, known, do)


class UndefinedMeasureError(InvalidInputError):
    """Raised if a measure is not defined on the data, as for an empty group; a report shows "undefined"."""


class UnsupportedProblemError(InvalidInputError):
    """Raised if a solver does not support the problem; the message names the unsupported part.

    >>> import nerm
    >>> problem = (nerm.Risk(nerm.Logistic()) + nerm.SquaredL2()).on([[0.0], [1.0]], [-1, 1])
    >>> problem.solve("osqp")
    Traceback (most recent call last):
        ...
    nerm.errors.UnsupportedProblemError: solver 'osqp' must be given a problem that it can take (quadratic
    programs: ...
    """


class MissingPackageError(NermError, ImportError):
    """Raised if an optional package is not installed; it is also an ImportError.

    >>> try:
    ...     raise MissingPackageError("solver 'piqp' needs the package 'piqp'. Install it.")
    ... except ImportError as error:
    ...     print(error)
    solver 'piqp' needs the package 'piqp'. Install it.
    """


def import_optional(module: str, what: str, install: str) -> Any:
    """Return a module of an optional package.

    If it cannot be imported, the error says that `what` needs the package, and how pip installs it.

    >>> import_optional("math", "This example", "nothing").sqrt(4.0)
    2.0
    """
    try:
        return import_module(module)
    except ImportError as error:
        missing = f"the package {module.partition('.')[0]!r}, which cannot be imported ({error})"
        raise MissingPackageError(f"{what} needs {missing}. Install it: pip install {install}.") from error


class NotNeutralError(InvalidInputError, RuntimeError):
    """Raised if no model is within the limit on measured neutrality.

    Attributes
    ----------
    best : Neutralized, list of these or None
        The closest model that was found; with several classes, one per class.
    advice : tuple of (str, str)
        Pairs (parameter, change) that may help, such as ("limit", "raise").

    >>> import numpy as np, nerm
    >>> X, y = np.arange(8.0).reshape(-1, 1), np.repeat([-1, 1], 4)
    >>> problem = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2()).on(X, y, viewpoint=y)
    >>> try:
    ...     problem.neutralize(0.01, surrogate=nerm.Hinge())
    ... except nerm.NotNeutralError as error:
    ...     print(error)
    No non-constant model satisfies |calders_verwer_score| <= 0.01. The closest, with Hinge() at ...
    """

    best: Any = None

    def __init__(self, failed: str, closest: str, advice: Sequence[tuple[str, str]]) -> None:
        do = advice_sentence(advice)
        Exception.__init__(self, f"{failed}. {closest}. {do}.")
        self.parts = (failed, closest, do)
        self.advice = tuple(advice)

    def __reduce__(self) -> tuple[type, Any]:
        """Pickle the parts of the message, with the advice as pairs."""
        return type(self), (*self.parts[:2], self.advice)


def advice_sentence(advice: Sequence[tuple[str, str]], names: Mapping[str, str] | None = None) -> str:
    """Join advice about parameters into one sentence.

    `names` maps parameters to the names to show; a parameter that is not in `names` is left out.

    >>> advice = [("limit", "raise"), ("keep", "lower"), ("lam", "change")]
    >>> advice_sentence(advice), advice_sentence(advice, {"limit": "--limit", "lam": "--lam"})
    ('Raise limit, lower keep or change lam', 'Raise --limit or change --lam')
    """
    known = [(name, action) for name, action in advice if names is None or name in names]
    steps = [f"{action} {name if names is None else names[name]}" for name, action in known]
    text = " or ".join(part for part in (", ".join(steps[:-1]), *steps[-1:]) if part)
    return text[:1].upper() + text[1:]


class NoPromiseError(NotNeutralError):
    """Raised if no model is proved to be within the limit on new rows.

    The message says how many rows are needed.

    >>> issubclass(NoPromiseError, NotNeutralError)
    True
    """


class NotSolvedError(NermError, RuntimeError):
    """Raised with ``strict=True`` if the solution is not certified as optimal.

    >>> import nerm
    >>> problem = (nerm.Risk(nerm.Hinge()) + nerm.SquaredL2()).on([[0.0], [1.0], [3.0]], [-1, 1, -1])
    >>> str(problem.solve("smo", max_iter=1).status)
    'inaccurate'
    >>> problem.solve("smo", max_iter=1, strict=True)
    Traceback (most recent call last):
        ...
    nerm.errors.NotSolvedError: The solver returned a hypothesis whose certified relative gap exceeds the
    tolerance. ...
    """


class Degenerate(NermError, ArithmeticError):  # noqa: N818
    """Raised if a solution has no derivative: a row is at a kink, and no multiplier holds it there.

    >>> import nerm
    >>> objective = nerm.Risk(nerm.Hinge()) + 1.0 * nerm.SquaredL2()
    >>> solution = objective.on([[1.0], [-1.0]], [1, -1], intercept=False).solve()  # w = 1
    >>> solution.sensitivity("lam")
    Traceback (most recent call last):
        ...
    nerm.errors.Degenerate: row 0 is at a kink, and its multiplier is at an end of its interval
    """


class NearlyConstantWarning(UserWarning):
    """Warns that a fitted model is nearly constant, or that the positive rate of a group collapsed.

    The positive rate of a group collapsed if the model predicts less than half as many positives there as the
    plain model (without neutrality term) does; `nerm.neutralize.target` has the exact rule.

    >>> import warnings, nerm
    >>> X, y = [[0.0]] * 30, [0] * 20 + [1] * 10  # nothing to learn from
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = nerm.NeutralSVC().fit(X, y)
    >>> [warning.category.__name__ for warning in caught], "constant" in model.collapse_
    (['NearlyConstantWarning'], True)
    """
