"""What a release rests on: one version, a light installation, files that agree, archives that hold what they should."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import nerm

ROOT = Path(nerm.__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
#: What conda-forge calls differently: there, these names come without solvers and without a window system.
CONDA = {"cvxpy": "cvxpy-base", "matplotlib": "matplotlib-base"}


def requirement(text: str) -> tuple[str, str, str]:
    """Return name, bound and marker.

    >>> requirement("ecos>=2.0; python_version < '3.13'")
    ('ecos', '>=2.0', "python_version < '3.13'")
    """
    wanted, _, marker = text.partition(";")
    name = re.match(r"[\w.-]+", wanted)[0]
    return name, wanted[len(name) :].strip(), marker.strip()


# --- one version ------------------------------------------------------------------------------------


def test_the_version_is_written_once_and_everything_else_agrees():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "nerm/__init__.py"
    assert f"\nversion: {nerm.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f'set version = "{nerm.__version__}"' in (ROOT / "recipe" / "meta.yaml").read_text("utf-8")


def test_the_changelog_has_the_version_below_what_is_unreleased():
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(nerm.__version__)} - \d{{4}}-\d\d-\d\d", headings[1])
    assert len(set(headings)) == len(headings)


# --- a light installation ---------------------------------------------------------------------------


def test_packages_that_few_users_need_are_extras():
    core = {requirement(one)[0] for one in PROJECT["project"]["dependencies"]}
    extras = PROJECT["project"]["optional-dependencies"]
    for extra in ("plots", "tables", "dask", "solvers", "compare"):
        assert core.isdisjoint({requirement(one)[0] for one in extras[extra]})
    assert all(requirement(one)[1].startswith(">=") for one in PROJECT["project"]["dependencies"])


def test_the_command_does_not_import_what_an_extra_brings():
    heavy = "{'matplotlib', 'pyarrow', 'openpyxl', 'dask', 'polars', 'numpy', 'sklearn'}"
    code = f"import sys, nerm.cli; print(sorted({heavy} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_a_figure_without_matplotlib_is_refused_with_one_sentence_before_any_work(monkeypatch):
    from click.testing import CliRunner

    from nerm.cli import cli
    from nerm.plots import axes_or_new

    for module in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, module, None)
    said = r"needs the package 'matplotlib', which cannot be imported .*\. Install it: pip install 'nerm-learn\[plots\]'\."
    with pytest.raises(nerm.errors.MissingPackageError, match=said):
        axes_or_new(None)
    refused = CliRunner().invoke(cli, ["reproduce", "figure2", "--figure", "x.png"])
    assert isinstance(refused.exception, nerm.errors.MissingPackageError)
    assert re.search(said, str(refused.exception))


# --- files that agree -------------------------------------------------------------------------------


def test_the_recipe_asks_for_what_pyproject_asks_for():
    text = (ROOT / "recipe" / "meta.yaml").read_text("utf-8")
    run = re.search(r"  run:\n((?:    .*\n)+)", text)[1]
    optional = re.search(r"  run_constrained:\n((?:    .*\n)+)", text)[1]
    asked = {tuple(line.split(None, 2)[1:]) for line in run.splitlines()}
    constrained = {tuple(line.split(None, 2)[1:]) for line in optional.splitlines() if "#" not in line}
    wanted = [requirement(one) for one in PROJECT["project"]["dependencies"]]
    always = {(CONDA.get(name, name), bound) for name, bound, marker in wanted if not marker}
    sometimes = {(CONDA.get(name, name), bound) for name, bound, marker in wanted if marker}
    plots = {(CONDA[name], bound) for name, bound, _ in map(requirement, extra("plots"))}
    assert asked == always | {("python", ">={{ python_min }}")}
    assert constrained == sometimes | plots
    (command,) = PROJECT["project"]["scripts"].items()
    assert f"- {command[0]} = {command[1]}\n" in text
    assert PROJECT["project"]["description"] in text
    assert f"license: {PROJECT['project']['license']}\n" in text


def extra(name: str) -> list[str]:
    return PROJECT["project"]["optional-dependencies"][name]


# --- archives ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_wheel_and_sdist_are_built_and_hold_the_package_and_nothing_else(tmp_path):
    pytest.importorskip("build", reason="the package 'build' of the extra 'release' is not installed")
    pytest.importorskip("twine", reason="the package 'twine' of the extra 'release' is not installed")
    run("-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(ROOT))
    (wheel,), (sdist,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    run("-m", "twine", "check", "--strict", str(wheel), str(sdist))
    assert wheel.name == f"nerm_learn-{nerm.__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < 2e6
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if not name.endswith("/")}
    kept = {name for name in tracked() if name.startswith("nerm/")}
    assert {name for name in inside if ".dist-info/" not in name} == kept
    assert {"nerm/py.typed", "nerm/__init__.pyi", "nerm/cli/demo.csv"} <= kept
    assert {name for name in kept if name.endswith((".csv", ".npz", ".parquet", ".data"))} == {
        "nerm/cli/demo.csv"
    }
    assert any(name.endswith("licenses/LICENSE") for name in inside)
    with tarfile.open(sdist) as archive:
        unpacked = {name.partition("/")[2] for name in archive.getnames()}
    beside = {
        "pyproject.toml",
        "hatch_build.py",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CITATION.cff",
        "PKG-INFO",
        ".gitignore",
    }
    assert unpacked == kept | beside


def run(*arguments: str) -> None:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def tracked() -> set[str]:
    """Return the files of the package in this tree; caches of Python and of numba are none."""
    files = (
        path for path in (ROOT / "nerm").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    return {path.relative_to(ROOT).as_posix() for path in files}


@pytest.mark.slow
def test_a_stranger_gets_it_to_work_from_the_wheel():
    """Needs an index of packages to install from."""
    done = subprocess.run(["bash", str(ROOT / ".ci" / "wheel")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "demo, import, README and pip check are fine" in done.stdout
