"""The import order in CONTRIBUTING.md is an allow-list for every import of the package.

A module imports only packages that stand before its own in this order, wherever in its code the import stands.
Functions that import a later package when they are called are listed here by name. Imports for type checkers
alone do not run and do not count.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import nerm

PACKAGE = Path(nerm.__file__).parent
CONTRIBUTING = PACKAGE.parent / "CONTRIBUTING.md"
RESEARCH = {"baselines", "datasets", "experiments", "plots", "proofs"}
PRODUCT = {"tables", "report", "cli"}

#: Functions that import a later package when they are called, and one base class: a regularizer is a term.
DEFERRED = {
    "atoms.regularizer": "model",
    "certify.solution.Solution.decision_function": "chunks",
    "certify.solution.Solution.predict": "chunks",
    "certify.solution.Solution.fit_facts": "bounds",
    "certify.solution.Solution.save": "io",
    "certify.solution.Solution.leave_one_out": "proofs",
    "certify.solution.Solution.without": "proofs",
    "certify.solution.Solution.with_rows": "proofs",
    "certify.solution.Solution.reweighted": "proofs",
    "certify.solution.Solution.sensitivity": "proofs",
    "chunks.source.Chunks._frames": "tables",
    "chunks.source.Chunks._files": "tables",
    "chunks.source.Chunks.features": "tables",
    "estimators.base.NeutralModel.save": "io",
    "experiments.compare.figure": "plots",
    "io.load": "tables",
    "model.problem.on": "chunks",
    "model.problem.Problem.certify": "certify",
    "model.problem.Problem.convexified": "solvers",
    "model.problem.Problem.to_cvxpy": "cvxpy_backend",
    "model.problem.Problem._solve_all": "solvers",
    "model.problem.Problem._neutralize": "neutralize",
    "model.problem.SolveMethods.frontier": "proofs",
    "proofs.frontier.Frontier.plot": "plots",
}

#: Packages and modules that may import cvxpy, and functions of atoms that write or read an expression.
CVXPY = ("cvxpy_backend", "svm", "testing", "atoms.cvx", "baselines")
CVXPY_FUNCTIONS = (
    "formula.derive",
    "formula.evaluated",
    ".expression",
    "._check_expression",
    ".expressed",
    "._is_convex",
)


class Import(NamedTuple):
    """One import statement: the module and function where it stands, and the module that it names."""

    place: str  # "model.problem.Problem.solve", without "nerm."
    target: str  # "solvers.registry", "cvxpy"

    @property
    def package(self) -> str:
        return self.place.split(".")[0]

    @property
    def target_package(self) -> str:
        return self.target.split(".")[0]


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
            targets = (
                [f"nerm.{alias.name}" for alias in node.names] if node.module == "nerm" else [node.module]
            )
            yield from (Import(name, str(target).removeprefix("nerm.")) for target in targets)


def packages() -> list[str]:
    """Return the packages in import order, from the indented block below its heading."""
    below = CONTRIBUTING.read_text("utf-8").split("## Import order\n")[1]
    block = re.search(r"(?:^    .+\n)+", below, re.MULTILINE)[0]
    return re.findall(r"\w+", re.sub(r"\([^)]*\)", "", block))


def goes_back(found: Import, order: list[str]) -> bool:
    """Return whether an import goes to its own package or to an earlier one."""
    return found.target_package not in order or order.index(found.target_package) <= order.index(
        found.package
    )


@pytest.fixture(scope="module")
def found() -> list[Import]:
    return [one for name, code in modules() for one in imports(name, code)]


def test_import_order_has_every_package_once():
    assert sorted(packages()) == sorted({name.split(".")[0] for name, _ in modules()})


def test_imports_follow_the_import_order(found):
    order = packages()
    wrong = [one for one in found if not goes_back(one, order)]
    assert [
        f"{one.place}: {one.target}" for one in wrong if DEFERRED.get(one.place) != one.target_package
    ] == []
    assert set(DEFERRED.items()) <= {(one.place, one.target_package) for one in wrong}


def test_core_research_and_product_are_layers(found):
    core = [one for one in found if one.package not in RESEARCH | PRODUCT | {"__main__"}]
    outward = [one for one in core if one.target_package in RESEARCH | PRODUCT]
    assert [one for one in outward if one.place not in DEFERRED] == []
    assert [one for one in found if one.package in RESEARCH and one.target_package in PRODUCT] == []


def test_cvxpy_is_imported_where_models_are_built(found):
    elsewhere = [
        one.place
        for one in found
        if one.target_package == "cvxpy"
        and not one.place.startswith(CVXPY)
        and not one.place.endswith(CVXPY_FUNCTIONS)
    ]
    assert elsewhere == []


def test_reference_svm_imports_nothing_of_nerm_but_errors(found):
    allowed = {"numpy", "scipy", "cvxpy", "errors", "svm", *sys.stdlib_module_names}
    assert {one.target_package for one in found if one.package == "svm"} <= allowed


def test_wrong_import_is_noticed():
    code = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from nerm.cli import main\n"
    code += "class A:\n    def f(self):\n        from nerm.solvers.base import Answer\n        import cvxpy as cp\n"
    made = list(imports("problem", ast.parse(code)))
    assert made == [
        Import("problem", "typing"),
        Import("problem.A.f", "solvers.base"),
        Import("problem.A.f", "cvxpy"),
    ]
    assert [goes_back(one, ["problem", "solvers"]) for one in made] == [True, False, True]
    assert goes_back(Import("solvers.base", "problem"), ["problem", "solvers"])
