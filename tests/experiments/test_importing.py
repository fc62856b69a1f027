from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.long
def test_importing_the_experiments_imports_nothing_heavy():
    heavy = "('sklearn', 'pandas', 'matplotlib', 'joblib', 'rich', 'distributed', 'cvxpy')"
    code = f"import sys, nerm.experiments, nerm.plots; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
