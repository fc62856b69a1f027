"""Only nerm.certify creates certificates and sets statuses, by the syntax trees of the package."""

import ast
from pathlib import Path

import pytest

import nerm

PACKAGE = Path(nerm.__file__).parent
CERTIFICATE_FIELDS = {"primal", "dual", "slack", "violation", "saved"}
SOLUTION_FIELDS = {"certificate", "status"}


def makers(source):
    """Return the lines that create or change a Certificate, or set the status of a Solution."""
    found = []
    # solvers have iterates with a primal and a dual value of their own
    fields = CERTIFICATE_FIELDS | SOLUTION_FIELDS if "Certificate" in source else SOLUTION_FIELDS
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            keywords = {keyword.arg for keyword in node.keywords}
            if (
                name in ("Certificate", "Solution")
                or (name in ("replace", "_replace") and keywords & fields)
                or (
                    name in ("setattr", "__setattr__")
                    and any(isinstance(a, ast.Constant) and a.value in SOLUTION_FIELDS for a in node.args)
                )
                or (name == "replace" and any("certificate" in ast.unparse(a) for a in node.args))
                or any(_is_status(keyword.value) for keyword in node.keywords)
            ):
                found.append(node.lineno)
    return sorted(set(found))


def _is_status(node):
    """Whether an expression can be a member of Status: `Status.OPTIMAL`, also behind a condition."""
    if isinstance(node, ast.IfExp):
        return _is_status(node.body) or _is_status(node.orelse)
    return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "Status"


def test_certificates_have_one_maker():
    offenders = {
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        if path.parent != PACKAGE / "certify"
        for line in makers(path.read_text(encoding="utf-8"))
    }
    assert offenders == set()


@pytest.mark.parametrize(
    "source",
    [
        "Certificate(1.0, 0.5)",
        "nerm.Certificate(primal=1.0, dual=0.5)",
        "replace(solution, status=Status.OPTIMAL)",
        "dataclasses.replace(solution, certificate=again)",
        "replace(solution.certificate, reason='')",
        "def f(found: Certificate): return replace(found, primal=0.0)",
        "Solution(problem, status, coef)",
        "object.__setattr__(solution, 'status', Status.OPTIMAL)",
        "make(solution, outcome=Status.OPTIMAL if good else Status.INACCURATE)",
    ],
)
def test_one_maker_notices(source):
    assert makers(source) == [1]


@pytest.mark.parametrize(
    "source", ["replace(solution, stats=stats)", "solution.status is Status.FAILED", "f(status=1)"]
)
def test_one_maker_accepts_readers(source):
    assert makers(source) == []
