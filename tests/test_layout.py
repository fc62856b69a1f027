"""The order of the house: the map in CONTRIBUTING.md is an allow-list for every import of the package.

A module imports only what stands before its own room on the map, wherever in its code the import stands.
Doors, which open a later room when they are called, are listed here by name. Imports for type checkers alone
do not run and do not count.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import nerm

PACKAGE = Path(nerm.__file__).parent
CONTRIBUTING = PACKAGE.parent / "CONTRIBUTING.md"

#: What opens a later room when it is called.
DOORS = {
    "algebra.Algebra.on": "bind",
    "bind.on": "chunks",
    "chunks.source.Chunks._files": "tables",
    "chunks.source.Chunks._frames": "tables",
    "chunks.source.Chunks.features": "tables",
    "chunks.source.Chunks.coding": "tables",
    "problem.Problem.solve": "solvers",
    "problem.Problem.path": "solvers",
    "problem.Problem.grid": "solvers",
    "problem.Problem.certify": "certificate",
    "problem.Problem.convexified": "convexify",
    "problem.Problem.to_cvxpy": "modelling",
    "problem.Problem.neutralize": "neutralize",
    "solution.Solution.save": "saving",
    "solution.Solution.fit_facts": "bounds",
    "estimators.base.NeutralClassifier.save": "saving",
    "saving.load": "tables",
}

#: Where cvxpy may be imported: in these rooms and files, where an atom writes its expression, and where one is read.
CVXPY = (
    "modelling",
    "cvxpy_driver",
    "small_solves",
    "svm.qp",
    "solvers.through_cvxpy",
    "testing",
    "baselines.sklego_parity",
)
CVXPY_FUNCTIONS = (
    ".expression",
    "atoms.custom._check_expression",
    "atoms.custom._evaluated",
    "atoms.difference._is_convex",
)

#: One name, one thing; but a public face may have the name of what it shows, and each folder of classes a base.
FACES = {
    "base": "the base classes of a folder",
    "smo": "the room, its solver, and its face in the paper's terms",
    "subgradient": "the method, and its solver",
    "solvers": "the room, and the command that lists it",
    "tradeoff": "the experiment, and the command that runs it on a table",
}


class Import(NamedTuple):
    """One import statement: the module and function where it stands, and the module that it names."""

    place: str  # "problem.Problem.solve", without "nerm."
    target: str  # "solvers", "cvxpy"

    @property
    def room(self) -> str:
        return self.place.split(".")[0]


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield the name of every module, without "nerm.", and its code."""
    for file in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(file.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        if name:
            yield name, ast.parse(file.read_text("utf-8"))


def imports(name: str, code: ast.AST) -> Iterator[Import]:
    """Yield what a module imports, in its functions too, but not for type checkers alone."""
    for node in ast.iter_child_nodes(code):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        yield from imports(f"{name}.{node.name}" if named else name, node)
        if isinstance(node, ast.Import):
            yield from (Import(name, alias.name.removeprefix("nerm.")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: a relative import"
            found = (
                [f"nerm.{alias.name}" for alias in node.names]
                if node.module == "nerm"
                else [str(node.module)]
            )
            yield from (Import(name, target.removeprefix("nerm.")) for target in found)


def rooms() -> list[str]:
    """Return the rooms in the order of the map, which is the indented block below its heading."""
    below = CONTRIBUTING.read_text("utf-8").split("## The map\n")[1]
    block = re.search(r"(?:^    .+\n)+", below, re.MULTILINE)[0]
    return re.findall(r"\w+", re.sub(r"\([^)]*\)", "", block))


def upwards(found: Import, order: list[str]) -> bool:
    """Whether an import goes to its own room, or to one before it."""
    target = found.target.split(".")[0]
    return target not in order or order.index(target) <= order.index(found.room)


@pytest.fixture(scope="module")
def found() -> list[Import]:
    return [one for name, code in modules() for one in imports(name, code)]


def test_the_map_shows_every_room_once():
    there = {name.split(".")[0] for name, _ in modules()}
    assert sorted(rooms()) == sorted(there)


def test_every_import_goes_up_the_map(found):
    order = rooms()
    wrong = [
        one for one in found if not upwards(one, order) and DOORS.get(one.place) != one.target.split(".")[0]
    ]
    assert [f"{one.place} imports {one.target}" for one in wrong] == []
    assert [f"{one.place} imports the whole package" for one in found if one.target == "nerm"] == []


def test_every_door_is_used(found):
    opened = {(one.place, one.target.split(".")[0]) for one in found if not upwards(one, rooms())}
    assert sorted(set(DOORS.items()) - opened) == []


def test_cvxpy_is_imported_where_models_are_built(found):
    elsewhere = [
        one.place
        for one in found
        if one.target.split(".")[0] == "cvxpy"
        and not one.place.startswith(CVXPY)
        and not one.place.endswith(CVXPY_FUNCTIONS)
    ]
    assert elsewhere == []


def test_the_neutral_svm_does_not_know_the_builder(found):
    """Two derivations that check each other must not share code."""
    assert [
        one for one in found if one.room == "svm" and one.target.split(".")[0] in ("modelling", "engine")
    ] == []


def test_no_two_things_share_a_name():
    named = defaultdict(set)
    for name, code in modules():
        named[name.split(".")[-1]].add(name)
        for node in ast.walk(code):
            if isinstance(node, ast.ClassDef):
                named[node.name.strip("_")].add(name)
    shared = {name: places for name, places in named.items() if len(places) > 1}
    assert {name: places for name, places in shared.items() if name not in FACES} == {}
    assert set(FACES) <= set(shared)


def test_a_wrong_import_is_noticed():
    code = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from nerm.cli import main\n"
    code += "class A:\n    def f(self):\n        from nerm.solvers.base import Answer\n        import cvxpy as cp\n"
    made = list(imports("problem", ast.parse(code)))
    assert made == [
        Import("problem", "typing"),
        Import("problem.A.f", "solvers.base"),
        Import("problem.A.f", "cvxpy"),
    ]
    assert [upwards(one, ["problem", "solvers"]) for one in made] == [True, False, True]
    assert upwards(Import("solvers.base", "problem"), ["problem", "solvers"])
    assert list(imports("a", ast.parse("from nerm import atoms, metrics"))) == [
        Import("a", "atoms"),
        Import("a", "metrics"),
    ]
