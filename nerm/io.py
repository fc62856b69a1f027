"""Save and load solutions and models: a zip file of a JSON header and arrays, without any code.

The header is a tree of numbers, strings and lists. All other objects are written with a tag: arrays with the
number of their file in the zip, atoms and kernels with their names in nerm's registries, and objects of a
fixed list of nerm's classes with the name of the class. Nothing else can be saved. In particular a custom
kernel cannot be saved, because it is code. For a custom atom only its name and some of its values are saved;
`load` takes the atom as an argument and compares its values with the saved ones.
"""

import dataclasses
import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from nerm import atoms
from nerm.atoms.custom import Maximum, Moved, WeightedSum
from nerm.atoms.margin import MarginFunction
from nerm.atoms.regularizer import Regularizer
from nerm.certify.certificate import Certificate
from nerm.certify.multipliers import Multipliers
from nerm.certify.solution import Solution, Stats, Status, recertified
from nerm.errors import InvalidInputError
from nerm.estimators import NERMClassifier, NeutralRegressor, NeutralSVC
from nerm.estimators.limits import Promise
from nerm.files import write_atomically
from nerm.model import kernels
from nerm.model.blocks import ObjectiveValue, TermValue, make_blocks
from nerm.model.constraints import LinearConstraint, Polyhedron
from nerm.model.expressions import Limit, Neutrality, Objective, Risk, WeightedTerm
from nerm.model.hypothesis import KernelHypothesis, LinearHypothesis
from nerm.model.problem import Problem
from nerm.validation import as_positive

FORMAT = "nerm"
VERSION = 3  # version 2 saved problems with equal rows merged
HEADER = "header.json"
UNPACKED_BYTES = 100_000_000  # every file may unpack to this size
UNPACKED_RATIO = 20  # every file may unpack to this multiple of its size; the header to 1/20 of the limit


class UnreadableFileError(InvalidInputError):
    """Raised if a file is damaged or was not written by nerm."""


class UnknownAtomError(InvalidInputError):
    """Raised if a custom atom of the file was not passed to `load`, or if its values have changed."""


def save(thing: Any, path: Any) -> None:
    """Write a `nerm.Solution` or a fitted estimator to the file `path`, atomically.

    For custom atoms only names and some values are written. Pass the atoms to `load` to read the file.
    """
    solutions = getattr(thing, "solutions_", (thing,))
    writer = _Writer(max(1, len(getattr(solutions[0], "coef", ()))))
    content = writer.encode(thing)
    header = {"format": FORMAT, "version": VERSION, "atoms": sorted(writer.own), "content": content}
    with write_atomically(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(HEADER, json.dumps(header, allow_nan=False))
        for number, array in enumerate(writer.arrays):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            archive.writestr(_member(number), buffer.getvalue())


def load(path: Any, atoms: Mapping[str, Any] | None = None, *, max_bytes: float | None = None) -> Any:
    """Read a `nerm.Solution`, a fitted estimator, or a model written by `nerm fit`.

    An array with numbers that are not finite raises an error. A solution that was saved with its rows is
    certified again. A model without rows keeps the saved certificate, which is marked as such (`saved`).

    Parameters
    ----------
    path : path
        The file.
    atoms : dict, optional
        The custom atoms of the file, by name. Their values, and the objective value of a solution, are
        compared with those in the file.
    max_bytes : float, optional
        The largest unpacked size that is accepted: by default 100 MB, or 20 times the size of the file if
        this is larger. The sizes stated in the file are checked before anything is unpacked.

    Returns
    -------
    Solution, classifier or TableModel

    >>> import tempfile, nerm
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nerm.NeutralSVC().fit(X, y).save(f"{folder}/model.nerm")
    ...     nerm.load(f"{folder}/model.nerm").predict([[5.0]])
    array([1])
    """
    with open(path, "rb") as stream:
        limit = max(UNPACKED_BYTES, UNPACKED_RATIO * os.fstat(stream.fileno()).st_size)
        if max_bytes is not None:
            limit = int(as_positive(max_bytes, "max_bytes", "Use a number of bytes"))
        try:
            with zipfile.ZipFile(stream) as archive:
                _check_size(path, archive, limit)
                found = _content(path, archive, {} if atoms is None else atoms)
        except (UnreadableFileError, UnknownAtomError):
            raise
        except zipfile.BadZipFile:
            raise _unreadable(path, "a file that is truncated, damaged or no nerm file") from None
        except Exception as error:  # one flipped bit can make zipfile, zlib, json or numpy raise anything
            raise _unreadable(path, f"a file without valid nerm content ({type(error).__name__})") from None
    if isinstance(found, dict) and found.get("kind") == "table model":
        from nerm.tables.table_model import model_of

        return model_of(found, path)
    if not isinstance(found, Solution | NeutralRegressor | NeutralSVC | NERMClassifier):
        raise _unreadable(path, "a file without a solution or a model in it")
    return found


def _check_size(path: Any, archive: zipfile.ZipFile, limit: int) -> None:
    """Raise an error if the file or its header is too large when it is unpacked.

    The file may have at most `limit` bytes and its header at most `limit` / 20. It is enough to read the
    sizes in the zip directory: `zipfile` unpacks no member beyond its stated size.
    """
    sizes = {member.filename: member.file_size for member in archive.infolist()}
    total, header, most = sum(sizes.values()), sizes.get(HEADER, 0), limit // UNPACKED_RATIO
    if total > limit or header > most:
        must = f"{str(path)!r} must unpack to at most {limit:,} bytes, its header to {most:,}"
        do = "If you trust it, pass a larger nerm.load(path, max_bytes=...)"
        raise UnreadableFileError(must, f"{total:,} and {header:,}", do)


def _content(path: Any, archive: zipfile.ZipFile, given: Mapping[str, Any]) -> Any:
    text = archive.read(HEADER)
    header = json.loads(text)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise KeyError(HEADER)
    if header["version"] not in (2, VERSION):
        got = f"version {header['version']!r} of the format, and this nerm reads 2 and {VERSION}"
        raise _unreadable(path, got)
    needed = [str(name) for name in header.get("atoms", ())]
    if not isinstance(given, Mapping) or not set(needed) <= set(given):
        must = f"'atoms' must hold the atoms of {str(path)!r}: {', '.join(map(repr, needed)) or 'none'}"
        got = ", ".join(map(repr, given)) if isinstance(given, Mapping) else repr(given)
        do = "Make them as before saving and pass them by name: nerm.load(path, atoms={name: atom})"
        raise UnknownAtomError(must, got or "none", do)
    reader = _Reader(archive, {name: given[name] for name in needed})
    return json.loads(text, object_hook=reader.decode)["content"]


def _unreadable(path: Any, got: str) -> UnreadableFileError:
    must = f"{str(path)!r} must be a file written by save() of this nerm"
    return UnreadableFileError(must, got, "Save it again, or copy it again whole")


def _values(atom: Any, size: int) -> np.ndarray:
    """Return some values of an atom, by which `load` recognizes it.

    A margin function is evaluated at 17 margins, a regularizer at three vectors of `size` coefficients.
    """
    if isinstance(atom, MarginFunction):
        return np.asarray(atom.value(np.linspace(-4.0, 4.0, 17)), dtype=float)
    points = np.sin(np.outer([1.0, 2.0, 3.0], np.arange(1, size + 1)))
    return np.array([atom.value(point) for point in points] if isinstance(atom, Regularizer) else [])


def _alike(values: Any, saved: Any) -> bool:
    return np.allclose(values, saved, rtol=1e-6, atol=1e-9, equal_nan=True)


def _another(*names: str) -> UnknownAtomError:
    must = f"'atoms' must hold the same functions as when the file was saved: {', '.join(map(repr, names))}"
    return UnknownAtomError(must, "one with other values", "Pass the atoms that it was saved with")


def _is_plain(thing: Any) -> bool:
    """Tell whether an object consists of numbers and strings only, possibly in lists, tuples and dicts."""
    if isinstance(thing, Mapping):
        return all(_is_plain(x) for pair in thing.items() for x in pair)
    if isinstance(thing, tuple | list):
        return all(map(_is_plain, thing))
    return isinstance(thing, str | int | float)


def _member(number: int) -> str:
    return f"arrays/{number}.npy"


@cache
def _classes() -> dict[str, Mapping[str, Any]]:
    """Return the classes that a file may name, by kind: atoms, kernels, records and estimators."""
    records = (Objective, WeightedTerm, Certificate, KernelHypothesis, LinearHypothesis, Multipliers)
    values = (Neutrality, Risk, ObjectiveValue, Problem, TermValue, Solution, Stats)
    constraints = (Limit, LinearConstraint, Polyhedron, Promise)
    combined = {cls.__name__: cls for cls in (Maximum, Moved, WeightedSum)}
    return {
        "margin": {
            **atoms.margin_functions(),
            **atoms.residual_functions(),
            **atoms.dc_functions(),
            **combined,
        },
        "regularizer": atoms.regularizers(),
        "kernel": kernels.names(),
        "record": {cls.__name__: cls for cls in (*records, *values, *constraints)} | {"Rows": dict},
        "estimator": {cls.__name__: cls for cls in (NeutralRegressor, NeutralSVC, NERMClassifier)},
    }


class _Writer:
    """An encoder of objects as JSON and a list of arrays.

    `own` collects custom atoms by name.
    """

    def __init__(self, size: int) -> None:
        self.arrays: list[np.ndarray] = []
        self.own: dict[str, Any] = {}
        self.size = size  # the number of coefficients, at which `_values` evaluates regularizers
        self._numbers: dict[int, int] = {}

    def encode(self, thing: Any) -> Any:
        """Return a tree of JSON types for an object, and append its arrays to `arrays`."""
        if thing is None or isinstance(thing, bool | int):
            return thing
        if isinstance(thing, float | np.floating):
            return float(thing) if np.isfinite(thing) else {"$float": repr(float(thing))}
        if isinstance(thing, np.generic):
            return self.encode(thing.item())
        if isinstance(thing, str):
            return {"$status": thing.value} if isinstance(thing, Status) else str(thing)
        if isinstance(thing, np.ndarray):
            return self._array(thing)
        if sp.issparse(thing):
            csr = thing.tocsr()
            parts = [self._array(a) for a in (csr.data, csr.indices, csr.indptr)]
            return {"$csr": parts, "shape": list(csr.shape)}
        if isinstance(thing, pd.DataFrame):
            return {"$frame": self.encode(thing.to_dict("list"))}
        if isinstance(thing, tuple):
            return {"$tuple": [self.encode(x) for x in thing]}
        if isinstance(thing, list):
            return [self.encode(x) for x in thing]
        if isinstance(thing, Mapping):
            return {"$dict": [[self.encode(key), self.encode(value)] for key, value in thing.items()]}
        return self._object(thing)

    def _array(self, array: np.ndarray) -> Any:
        if array.dtype.kind == "O":  # labels and column names; no pickle, so entry by entry
            return {"$objects": [self.encode(x) for x in array.ravel().tolist()], "shape": list(array.shape)}
        if id(array) not in self._numbers:
            self._numbers[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return {"$array": self._numbers[id(array)]}

    def _object(self, thing: Any) -> Any:
        for kind, known in _classes().items():
            for name, cls in known.items():
                if cls is type(thing):
                    content = self._estimator(thing) if kind == "estimator" else self._record(thing)
                    return {f"${kind}": name, **content}
        if isinstance(thing, MarginFunction | Regularizer):
            return self._own_atom(thing)
        must = "a saved object must consist of arrays, atoms and nerm's own kernels"
        got = f"{getattr(thing, '__name__', repr(thing))!r} ({type(thing).__name__}), which is code"
        do = "Keep the code that made it, and save its coefficients with numpy.savez"
        raise InvalidInputError(must, got, do)

    def _own_atom(self, atom: MarginFunction | Regularizer) -> Any:
        name = str(getattr(atom, "label", "") or vars(type(atom)).get("name") or type(atom).__name__)
        if self.own.setdefault(name, atom) != atom:
            must = "your own atoms in one file must have different names"
            raise InvalidInputError(must, f"two atoms named {name!r}", "Give one of them another name")
        return {"$own": name, "size": self.size, "values": self.encode(_values(atom, self.size).tolist())}

    def _record(self, record: Any) -> dict[str, Any]:
        values = {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
        if isinstance(record, Problem):
            del values["blocks"]  # the reader computes them from the other fields
        if isinstance(record, Stats):  # a solver may report any object; only numbers and strings are saved
            values["details"] = {k: v for k, v in values["details"].items() if _is_plain(v)}
        return {"fields": self._all(values)}

    def _estimator(self, model: Any) -> dict[str, Any]:
        params = model.get_params(deep=False)
        fitted = {k: v for k, v in vars(model).items() if k not in params and not k.startswith("_")}
        return {"params": self._all(params), "fitted": self._all(fitted)}

    def _all(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.encode(value) for name, value in values.items()}


class _Reader:
    """A decoder of the JSON tree and the arrays of a file.

    `own` has the custom atoms by name.
    """

    def __init__(self, archive: zipfile.ZipFile, own: Mapping[str, Any]) -> None:
        self._archive, self._own = archive, own
        self._arrays: dict[int, np.ndarray] = {}
        self._tags: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
            "$float": lambda body, _: float(body),
            "$longfloat": lambda body, _: float(body[0]),  # version 2: the second number has further digits
            "$status": lambda body, _: Status(body),
            "$array": lambda body, _: self._array(body),
            "$objects": lambda body, rest: self._objects(body, rest["shape"]),
            "$csr": lambda body, rest: self._csr(body, tuple(rest["shape"])),
            "$frame": lambda body, _: pd.DataFrame(body),
            "$tuple": lambda body, _: tuple(body),
            "$dict": lambda body, _: dict(body),
            "$own": lambda body, rest: self._own_atom(body, rest["size"], np.asarray(rest["values"])),
        }
        for kind, known in _classes().items():
            self._tags[f"${kind}"] = partial(self._estimator if kind == "estimator" else self._record, known)

    def decode(self, tree: dict[str, Any]) -> Any:
        """Return the object that a JSON object with a tag encodes.

        Its parts are decoded already.
        """
        tag = next((key for key in tree if key.startswith("$")), "")
        return self._tags[tag](tree[tag], tree) if tag else tree

    def _record(self, known: Mapping[str, Any], name: str, rest: dict[str, Any]) -> Any:
        fields = rest["fields"]
        if known[name] is Problem:
            if "rows" in fields:  # version 2: given row i is row index[i] of the distinct rows
                distinct, index = fields["hypothesis"], fields.pop("rows")["index"]
                linear = isinstance(distinct, LinearHypothesis)
                fields["hypothesis"] = LinearHypothesis(distinct.X[index]) if linear else distinct.some(index)
            names = ("objective", "y", "viewpoints", "sample_weight")
            fields["blocks"] = make_blocks(*(fields[name] for name in names)) if len(fields["y"]) else ()
        if known[name] is Certificate:
            fields["saved"] = True
        made = known[name](**fields)
        return self._recertified(made) if isinstance(made, Solution) else made

    def _own_atom(self, name: str, size: int, saved: np.ndarray) -> Any:
        """Return the custom atom with this name.

        Raise an error if its values differ from the saved ones.
        """
        values = _values(self._own[name], size)
        if values.shape != saved.shape or not _alike(values, saved):
            raise _another(name)
        return self._own[name]

    def _recertified(self, solution: Solution) -> Solution:
        """Return the solution with value and certificate computed again; unchanged if it has no rows.

        Raise an error if the value or the status differs from the saved one.
        """
        problem = solution.problem
        if not np.isfinite(solution.intercept):
            raise ValueError(solution.intercept)
        if not len(problem.y):
            return solution
        value = problem.evaluate(solution.coef, solution.intercept + solution.threshold)
        another = _another(*self._own) if self._own else ValueError("objective")
        if not _alike(*([term.value for term in v.terms] for v in (value, solution.objective))):
            raise another
        if solution.status not in (Status.OPTIMAL, Status.INACCURATE, Status.TIME_LIMIT):
            return solution
        again = recertified(solution)
        if again.status is not solution.status:
            raise another
        return again

    def _array(self, number: int) -> np.ndarray:
        if number not in self._arrays:
            with self._archive.open(_member(number)) as stream:
                array = np.lib.format.read_array(stream, allow_pickle=False)
                stream.read()  # zipfile compares the checksum at the end of the stream
            if array.dtype.kind in "fc" and not np.isfinite(array).all():
                raise ValueError(number)
            self._arrays[number] = array
        return self._arrays[number]

    def _csr(self, parts: list[Any], shape: tuple[int, ...]) -> Any:
        matrix = sp.csr_matrix(tuple(parts), shape=shape)
        matrix.check_format(full_check=True)  # an index out of range would read memory outside the arrays
        return matrix

    def _objects(self, items: list[Any], shape: list[int]) -> np.ndarray:
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape(shape)

    def _estimator(self, known: Mapping[str, Any], name: str, rest: dict[str, Any]) -> Any:
        model = known[name](**rest["params"])
        for fitted, value in rest["fitted"].items():
            if fitted.startswith("_") or not fitted.endswith("_"):
                raise KeyError(fitted)
            setattr(model, fitted, value)
        if not all(isinstance(solution, Solution) for solution in model.solutions_):
            raise KeyError("solutions_")
        return model
