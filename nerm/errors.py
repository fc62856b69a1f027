"""The errors and warnings of nerm: one sentence each, and a Python type that is usual for the case.

The parts are *what must hold, what was given, where, what to do*:

>>> must, got = "'viewpoint' must be finite", "nan at index 17 (and 2 more)"
>>> raise InvalidInputError(must, got, "Drop or impute these rows")
Traceback (most recent call last):
    ...
nerm.errors.InvalidInputError: 'viewpoint' must be finite. Got nan at index 17 (and 2 more). Drop or impute
these rows.
"""

from collections.abc import Mapping, Sequence
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
    """A value that cannot be used: what must hold, what was given and where, what to do.

    A ValueError too. `parts` holds the three parts of the sentence.

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
        """Pickle by parts, so that the error survives the trip back from a worker process."""
        return type(self), self.parts


class InvalidTypeError(InvalidInputError, TypeError):
    """A value of a type that cannot be used; a TypeError too.

    >>> import nerm
    >>> try:
    ...     nerm.Risk(nerm.Hinge()) + nerm.SquaredL2
    ... except TypeError as error:
    ...     print(error)
    a term must be an instance. Got the class SquaredL2. Write SquaredL2(...).
    """


class UnknownNameError(InvalidInputError):
    """An unknown name of a solver, kernel, viewpoint or the like; the message lists the known ones.

    >>> print(UnknownNameError("'coding'", "gray", ("raw", "nominal", "one-hot")))
    'coding' must be one of 'nominal', 'one-hot', 'raw'. Got 'gray'. Use one of these names.
    """

    def __init__(self, what: str, name: object, known: object, do: str = "Use one of these names") -> None:
        names = ", ".join(repr(k) for k in sorted(str(k) for k in known))  # type: ignore[attr-defined]
        super().__init__(f"{what} must be one of {names}", repr(name), do)

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        """Pickle as the parent class, which has the same message."""
        return InvalidInputError, self.parts


class UnsupportedProblemError(InvalidInputError):
    """A solver was given a problem that it does not support; the message names the part.

    >>> import nerm
    >>> problem = (nerm.Risk(nerm.Logistic()) + nerm.SquaredL2()).on([[0.0], [1.0]], [-1, 1])
    >>> problem.solve("osqp")
    Traceback (most recent call last):
        ...
    nerm.errors.UnsupportedProblemError: solver 'osqp' must be given a problem that it can take (quadratic
    programs: ...
    """


class MissingPackageError(NermError, ImportError):
    """An optional package is not installed; an ImportError too.

    >>> try:
    ...     raise MissingPackageError("solver 'piqp' needs the package 'piqp'. Install it.")
    ... except ImportError as error:
    ...     print(error)
    solver 'piqp' needs the package 'piqp'. Install it.
    """


class NotNeutralError(InvalidInputError, RuntimeError):
    """No model is within the limit on measured neutrality.

    Attributes
    ----------
    best : Neutralized or None
        The closest model that was found.
    advice : tuple of (str, str)
        The parameters that may help, each with what to do with it: ("limit", "raise").

    >>> import numpy as np, nerm
    >>> X, y = np.arange(8.0).reshape(-1, 1), np.repeat([-1, 1], 4)
    >>> problem = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2()).on(X, y, viewpoint=y)
    >>> try:
    ...     problem.neutralize(0.01, surrogate=nerm.Hinge())
    ... except nerm.NotNeutralError as error:
    ...     print(error)
    No non-constant model reaches |calders_verwer_score| <= 0.01. The closest, with Hinge() at ...
    """

    best: object = None

    def __init__(self, failed: str, closest: str, advice: Sequence[tuple[str, str]]) -> None:
        do = advice_sentence(advice)
        Exception.__init__(self, f"{failed}. {closest}. {do}.")
        self.parts = (failed, closest, do)
        self.advice = tuple(advice)

    def __reduce__(self) -> tuple[type, Any]:
        """Pickle by parts, with the advice as pairs."""
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
    """No model is promised to stay within the limit on new rows; the message says how many rows are needed.

    >>> issubclass(NoPromiseError, NotNeutralError)
    True
    """


class NotSolvedError(NermError, RuntimeError):
    """The solution is not certified; raised only with ``strict=True``.

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


class NearlyConstantWarning(UserWarning):
    """A fitted model is (nearly) constant, or its positive rate collapsed.

    >>> import warnings, nerm
    >>> X, y = [[0.0]] * 30, [0] * 20 + [1] * 10  # nothing to learn from
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = nerm.NeutralSVC().fit(X, y)
    >>> [warning.category.__name__ for warning in caught], "constant" in model.collapse_
    (['NearlyConstantWarning'], True)
    """
