"""Functions that numba compiles: what they call, their cache, and the message when one is compiled."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest

from nerm.solvers.interior_point import matrices, passes
from nerm.solvers.linalg import compiled as module
from nerm.solvers.linalg.compiled import MESSAGE, _Announcement, _copy_cache, compiled
from nerm.solvers.newton_alm import rows, smoothing
from nerm.solvers.smo import fixed_theta

USERS = (passes, matrices, rows, smoothing, fixed_theta)


def compiled_functions():
    return [
        f.py_func
        for user in USERS
        for f in vars(user).values()
        if hasattr(f, "py_func") and f.py_func.__module__ == user.__name__
    ]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="numba is disabled")
def test_compiled_functions_call_only_compiled_functions_of_their_own_module():
    functions = compiled_functions()
    assert len(functions) >= 20
    for function in functions:
        called = [function.__globals__.get(name) for name in function.__code__.co_names]
        elsewhere = [
            f for f in called if hasattr(f, "py_func") and f.py_func.__module__ != function.__module__
        ]
        assert elsewhere == [], function.__name__


def started(name: str) -> SimpleNamespace:
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__=name))})


def test_first_compilation_is_logged_once(caplog):
    caplog.set_level(logging.INFO, logger="nerm")
    made = _Announcement()
    made.on_start(started("elsewhere.passes"))
    assert caplog.messages == []
    made.on_start(started("nerm.solvers.a"))
    made.on_start(started("nerm.solvers.b"))
    made.on_end(started("nerm.solvers.b"))
    assert caplog.messages == [MESSAGE]


def test_commands_print_what_is_logged(capsys):
    import click

    from nerm.cli.console import ended

    @click.command()
    def quiet():
        logging.getLogger("nerm").info("compiling")

    assert [ended(quiet, []), ended(quiet, [])] == [0, 0]
    assert capsys.readouterr().err == "nerm: note: compiling\n" * 2


def test_cache_beside_the_source_is_copied_unless_the_other_is_newer(tmp_path, monkeypatch):
    beside, other = tmp_path / "__pycache__", tmp_path / "other"
    beside.mkdir()
    other.mkdir()
    for name in ("a.f-3.py311.nbi", "a.f-3.py311.1.nbc", "a.ff-9.py311.nbi", "a.f-3.py311.pyc"):
        (beside / name).write_text("new")
    (other / "a.f-3.py311.nbi").write_text("old")
    function = SimpleNamespace(__code__=SimpleNamespace(co_filename=str(tmp_path / "a.py")), __qualname__="f")
    os.utime(beside / "a.f-3.py311.nbi", (1, 1))
    _copy_cache(function, other)
    assert {file.name: file.read_text() for file in other.iterdir()} == {
        "a.f-3.py311.nbi": "old",
        "a.f-3.py311.1.nbc": "new",
    }
    os.utime(other / "a.f-3.py311.nbi", (0, 0))
    _copy_cache(function, other)
    assert (other / "a.f-3.py311.nbi").read_text() == "new"


def test_without_a_folder_to_write_functions_are_compiled_without_cache(monkeypatch):
    asked = []

    def njit(cache=False, **options):
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(module.numba, "njit", njit)
    assert compiled()(len) is len
    assert asked == [True, False]


SOLVES = """
import gc, sys
import numpy as np, scipy.sparse as sp, nerm
from numba.core.dispatcher import Dispatcher
rng = np.random.default_rng(3)
X = rng.normal(size=(2500, 5))
y, v = np.sign(X[:, 0] + 0.4 * rng.normal(size=(2, 2500)))
wide = sp.random(150, 900, density=0.05, format="csr", random_state=1)
for loss, surrogate in ((nerm.Hinge(), nerm.Hinge()), (nerm.Logistic(), nerm.Hinge()), (nerm.Hinge(), nerm.SquaredHinge())):
    objective = nerm.Risk(loss) + 0.05 * nerm.SquaredL2() + nerm.Neutrality(surrogate)
    for rows, kernel in ((X, None), (sp.csr_array(X), None), (X.astype(np.float32), None), (np.asfortranarray(X), None), (X[:150], "rbf"), (wide, None)):
        n = rows.shape[0]
        objective.on(rows, y[:n], viewpoint=v[:n], kernel=kernel).path([0.1, 1.0])
    (nerm.Risk(loss) + 0.05 * nerm.L1() + nerm.Neutrality(surrogate, side="agreement")).on(X, y, viewpoint=v, intercept=False).solve()
ours = [f for f in gc.get_objects() if isinstance(f, Dispatcher) and f.py_func.__module__.startswith("nerm.")]
print([f"{f.py_func.__name__}{s}" for f in ours for s in f.stats.cache_misses])
"""


#: As in the environment that builds a wheel: it has only the packages that hatch_build.py names.
WARMUP = """
import sys
for name in ("sklearn", "cvxpy", "pandas", "click", "jinja2"):
    sys.modules[name] = None
from nerm.warmup import warm_up
warm_up()
"""


@pytest.mark.long
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="numba is disabled")
def test_after_warmup_nothing_is_compiled(tmp_path):
    places = [str(Path(module.__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(places)}
    for arguments in (["-c", WARMUP], ["-c", SOLVES]):
        done = subprocess.run(
            [sys.executable, *arguments], env=variables, capture_output=True, text=True, check=True
        )
    assert done.stdout.strip() == "[]"
