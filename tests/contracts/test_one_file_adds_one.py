"""A new loss, regularizer, solver, neutrality weight or metric is one new file or function: nothing else is edited.

Each test copies the package, adds the one thing, and asks a fresh interpreter whether all that should know it
does: the registry, `nerm` itself where it is a public name, and the list of the contract suite.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nerm

pytestmark = pytest.mark.long
ROOT = Path(nerm.__file__).parents[1]


@pytest.fixture
def copied(tmp_path):
    """Copy the package; return where it is, and a function that runs code with it."""
    package = tmp_path / "nerm"
    for folder in ("nerm", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))

    def run(code):
        made = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(tmp_path),
                "PYTHONDONTWRITEBYTECODE": "1",
                "NUMBA_DISABLE_JIT": "1",
            },
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert made.returncode == 0, made.stderr
        return made.stdout

    return package, run


LOSS = '''
"""The unhinged loss, rounded."""
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from nerm.atoms.margin import Facts, MarginFunction

@dataclass(frozen=True)
class SoftPlus(MarginFunction):
    """phi(m) = sqrt(1 + m^2) - m: smooth, decreasing, with a curvature."""
    name: ClassVar[str] = "soft-plus"

    @property
    def facts(self):
        return Facts(at_zero=1.0, slopes=(-2.0, 0.0), smoothness=1.0)

    def value(self, m):
        return np.hypot(1.0, m) - np.asarray(m, dtype=float)

    def subgradient(self, m):
        slope = np.asarray(m, dtype=float) / np.hypot(1.0, m) - 1.0
        return slope, slope

    def curvature(self, m):
        return np.hypot(1.0, m) ** -3.0

    def expression(self, m):
        import cvxpy as cp
        ones = cp.Constant(np.ones(m.shape))
        return cp.norm(cp.vstack([ones, m]), 2, axis=0) - m

    def latex(self, m, minus_m):
        return "softplus"
'''


def test_a_loss(copied):
    package, run = copied
    (package / "atoms" / "soft_plus.py").write_text(LOSS)
    said = run(
        "import numpy as np, nerm\n"
        "from nerm.atoms import SoftPlus, margin_functions\n"
        "assert nerm.SoftPlus is SoftPlus is margin_functions()['soft-plus'] and 'SoftPlus' in nerm.atoms.__all__\n"
        "from tests.contracts.test_every_margin_function import INSTANCES\n"
        "assert SoftPlus() in INSTANCES and hasattr(nerm, 'SoftPlus')\n"
        "nerm.testing.check_margin_function(SoftPlus(), tol=1e-6)\n"
        "rng = np.random.default_rng(0)\n"
        "X, y, v = rng.normal(size=(60, 3)), np.tile([-1, 1], 30), np.repeat([-1, 1], 30)\n"
        "objective = nerm.Risk(SoftPlus()) + 0.1 * nerm.SquaredL2() + nerm.Neutrality(nerm.Hinge())\n"
        "problem = objective.on(X, y, viewpoint=v)\n"
        "print(problem.solve('clarabel').status, problem.solve().stats.solver)\n"
        "nerm.NERMClassifier(loss='soft-plus', eta=0.0).fit(X, y)\n"
    )
    assert said.split() == ["optimal", "interior-point"]


REGULARIZER = '''
"""Twice the l1 norm."""
from dataclasses import dataclass
from typing import ClassVar
from nerm.atoms.regularizer import L1, Structure

@dataclass(frozen=True)
class DoubleL1(L1):
    """Omega(w) = 2 ||w||_1."""
    name: ClassVar[str] = "double-l1"

    def structure(self, d):
        mu, (group,), _ = super().structure(d)
        return Structure(mu, (group._replace(weights=2 * group.weights),))
'''


def test_a_regularizer(copied):
    package, run = copied
    (package / "atoms" / "double_l1.py").write_text(REGULARIZER)
    run(
        "import nerm\n"
        "assert nerm.DoubleL1 is nerm.atoms.regularizers()['double-l1']\n"
        "from tests.contracts.test_every_regularizer import INSTANCES\n"
        "assert nerm.DoubleL1() in INSTANCES and hasattr(nerm, 'DoubleL1')\n"
        "nerm.testing.check_regularizer(nerm.DoubleL1())\n"
        "objective = nerm.Risk(nerm.Hinge()) + 0.1 * nerm.DoubleL1()\n"
        "problem = objective.on([[0.0], [1.0], [3.0]], [-1, 1, 1])\n"
        "solutions = [problem.solve(name) for name in ('clarabel', 'interior-point')]\n"
        "assert [solution.status for solution in solutions] == ['optimal', 'optimal'], solutions\n"
    )


def test_a_solver(copied):
    """The solver of the guide, put into the package as the guide says."""
    package, run = copied
    block = (ROOT / "docs" / "howto" / "solver.md").read_text("utf-8").split("```python\n")[1].split("```")[0]
    code = re.sub(r"^(>>>|\.\.\.) ?", "", block, flags=re.MULTILINE)
    (package / "solvers" / "l_bfgs.py").write_text(f"{code}\nSOLVERS = (LBFGS(),)\n")
    said = run(
        "import nerm, sys\n"
        "assert nerm.solvers.available()['l-bfgs'].requirements()\n"
        "problem = (nerm.Risk(nerm.Logistic()) + 0.1 * nerm.SquaredL2()).on([[0.0], [1.0], [3.0]], [-1, 1, 1])\n"
        "assert problem.solve('l-bfgs').status == 'optimal'\n"
        "from tests.contracts.test_every_solver import NAMES\n"
        "assert 'l-bfgs' in NAMES\n"
        "from nerm.cli import main\n"
        "sys.argv = ['nerm', 'solvers']\n"
        "main()\n"
    )
    assert "l-bfgs" in said


def test_a_neutrality_weight(copied):
    package, run = copied
    file = package / "weights.py"
    marker = "def resolve("
    code = file.read_text()
    assert code.count(marker) == 1
    added = (
        "def positives_weights(y: Any) -> Floats:\n"
        '    """Return 2 where y = +1."""\n'
        "    return 1.0 + np.asarray(y)\n\n\n"
    )
    file.write_text(code.replace(marker, added + marker))
    run(
        "import nerm\n"
        "from nerm import weights\n"
        "assert 'positives' in weights.NAMES and 'positives_weights' in weights.__all__\n"
        "assert weights.resolve('positives', [1, -1], [1, -1]).tolist() == [2.0, 0.0]\n"
        "X, y, v = [[0.0], [1.0], [3.0], [2.0]], [-1, 1, 1, -1], [1, -1, 1, -1]\n"
        "term = nerm.Neutrality(nerm.Hinge(), weights='positives')\n"
        "objective = nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + term\n"
        "assert objective.on(X, y, viewpoint=v).solve('clarabel').status == 'optimal'\n"
        "nerm.NeutralSVC(eta=1.0, weights='positives').fit(X, y, viewpoint=v)\n"
    )


def test_a_metric(copied):
    package, run = copied
    file = package / "metrics.py"
    marker = "def relaxed_neutrality_risk("
    code = file.read_text()
    assert code.count(marker) == 1
    added = (
        '@measure("twice the parity")\n'
        "def double_parity(scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:\n"
        '    """Return twice the Calders-Verwer score."""\n'
        "    return 2 * calders_verwer_score(scores, viewpoint, sample_weight)\n\n\n"
    )
    file.write_text(code.replace(marker, added + marker))
    run(
        "from nerm import metrics\n"
        "made = metrics.report([1, -1, 1, -1], [1.0, 1.0, -1.0, 1.0], [1, 1, -1, -1])\n"
        "assert made.double_parity == 2 * made.calders_verwer_score == made.as_dict()['double_parity'] == 1.0\n"
        "assert 'twice the parity' in repr(made) and 'double_parity' in metrics.__all__\n"
        "metrics.make_neutrality_scorer('double_parity')\n"
    )
