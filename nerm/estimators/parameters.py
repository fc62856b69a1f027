"""Parameters of the classifiers: atoms by name or as values, kernels, weights; and reaching into atoms."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from nerm import atoms
from nerm.atoms.margin import MarginFunction
from nerm.atoms.regularizer import Regularizer
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.model import kernels
from nerm.model.weights import NAMES
from nerm.validation import as_nonnegative

KINDS = (MarginFunction, Regularizer, kernels.Kernel)


def as_atom(value: Any, name: str) -> Any:
    """Return a margin function, or a regularizer for name "regularizer", from a value or its name.

    >>> as_atom("hinge", "loss"), as_atom("ramp(2)", "surrogate")
    (Hinge(), Ramp(width=2.0))
    """
    kind: Any = Regularizer if name == "regularizer" else MarginFunction
    if isinstance(value, str):
        known: dict[str, Any] = {**atoms.margin_functions(), **atoms.dc_functions()}
        if kind is Regularizer:
            known = dict(atoms.regularizers())
        plain, _, argument = value.removesuffix(")").partition("(")
        if plain not in known or (argument and not _is_number(argument)):
            raise UnknownNameError(f"{name!r}", value, known)
        return known[plain](float(argument)) if argument else known[plain]()
    if not isinstance(value, kind):
        what = "a regularizer" if name == "regularizer" else "a margin function"
        hint = "L1()" if name == "regularizer" else "Hinge()"
        must = f"{name!r} must be {what} or its name"
        raise InvalidInputError(must, repr(value), f"Pass nerm.{hint}, for instance")
    return value


def atom_name(atom: Any) -> str:
    """Return the name from which `as_atom` makes this atom, with a parameter that is not the default.

    >>> from nerm import Hinge, Ramp
    >>> atom_name(Hinge()), atom_name(Ramp(2.0))
    ('hinge', 'ramp(2)')
    """
    parameters = dataclasses.astuple(atom)
    return str(atom.name) if atom == type(atom)() else f"{atom.name}({parameters[0]:g})"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_weights_name(value: Any) -> str:
    """Return the name of a weighting; arrays belong to data, and data come to `fit`."""
    if not isinstance(value, str) or value not in NAMES:
        raise UnknownNameError("'weights'", value if isinstance(value, str) else type(value).__name__, NAMES)
    return value


def as_viewpoint(viewpoint: Any, sensitive_features: Any) -> Any:
    """Return the viewpoint, which `fit` takes under one of two names.

    >>> as_viewpoint(None, [1, -1])
    [1, -1]
    """
    if viewpoint is not None and sensitive_features is not None:
        must = "'viewpoint' and 'sensitive_features' are two names of one argument"
        raise InvalidInputError(must, "both", "Pass one of them")
    return sensitive_features if viewpoint is None else viewpoint


def as_eta(eta: Any, names: list[str]) -> dict[str, float]:
    """Return eta for each term: one number, or a dict by viewpoint ("race" stands for "race=...")."""
    if not isinstance(eta, Mapping):
        number = as_nonnegative(eta, "eta")
        if number > 0 and not names:
            must = "'viewpoint' must be given when eta > 0"
            raise InvalidInputError(must, "None", "Call fit(X, y, viewpoint=...), or set eta=0")
        return dict.fromkeys(names, number)
    found = {}
    for name in names:
        keys = [key for key in eta if name == key or name.startswith(f"{key}=")]
        if not keys:
            must = "'eta' must have an entry for each viewpoint"
            raise InvalidInputError(must, f"none for {name!r}", "Add it; 0 switches the term off")
        key = max(keys, key=len)  # "race=a" speaks for itself even where "race" speaks for all
        found[name] = as_nonnegative(eta[key], f"eta[{key!r}]")
    for key in eta:
        if not any(name == key or name.startswith(f"{key}=") for name in names):
            raise UnknownNameError("a key of 'eta'", key, names, "Name a viewpoint that was given to fit")
    return found


def as_kernel(kernel: Any, options: Mapping[str, Any], X: Any, weight: np.ndarray) -> kernels.Kernel | None:
    """Return the kernel with its parameters fixed on the data, None for the linear hypothesis.

    Rows are counted by their weights.
    """
    if isinstance(kernel, str) and kernel == "linear":
        return None
    if isinstance(kernel, str) and kernel in kernels.names():
        cls = kernels.names()[kernel]
        fields = {f.name: options[f.name] for f in dataclasses.fields(cls) if f.name in options}
        resolved = cls(**fields)
    else:
        resolved = kernels.resolve(kernel)
    if isinstance(resolved, kernels.Linear):
        return None
    return resolved.fitted(X, weight)


def nested(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of atoms and kernels among these parameters, as scikit-learn spells them.

    >>> nested({"loss": atoms.SmoothHinge(0.5), "lam": 1.0})
    {'loss__width': 0.5}
    """
    return {
        f"{name}__{field.name}": getattr(value, field.name)
        for name, value in params.items()
        if isinstance(value, KINDS) and dataclasses.is_dataclass(value)
        for field in dataclasses.fields(value)
    }


def with_parameter(value: Any, name: str, parameter: str, new: Any) -> Any:
    """Return an atom or kernel (or the one of this name) with one parameter changed.

    >>> with_parameter("smooth-hinge", "loss", "width", 0.1)
    SmoothHinge(width=0.1)
    """
    if isinstance(value, str):
        value = kernels.resolve(value) if name == "kernel" else as_atom(value, name)
    known = [f.name for f in dataclasses.fields(value)] if isinstance(value, KINDS) else []  # type: ignore[arg-type]
    if parameter not in known:
        must = f"a parameter of {name!r} must be one of {known}"
        raise InvalidInputError(must, repr(parameter), f"{value!r} has no other parameters")
    return dataclasses.replace(value, **{parameter: new})
