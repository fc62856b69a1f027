"""What a release rests on: one version, a light installation, files that agree, archives that hold what they should."""

from __future__ import annotations

import json
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
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("w*.yml"))
#: What conda-forge calls differently: there, these names come without solvers and without a window system.
CONDA = {"cvxpy": "cvxpy-base", "matplotlib": "matplotlib-base"}


def parsed(path: Path):
    yaml = pytest.importorskip("yaml", reason="PyYAML, which the extra 'docs' brings, is not installed")
    found = yaml.safe_load(path.read_text("utf-8"))
    return {
        ("on" if key is True else key): value for key, value in found.items()
    }  # YAML 1.1 reads `on` as true


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


def test_what_only_some_people_need_is_an_extra():
    core = {requirement(one)[0] for one in PROJECT["project"]["dependencies"]}
    extras = PROJECT["project"]["optional-dependencies"]
    for extra in ("plots", "tables", "skops", "dask", "solvers", "compare"):
        assert core.isdisjoint({requirement(one)[0] for one in extras[extra]})
    assert all(requirement(one)[1].startswith(">=") for one in PROJECT["project"]["dependencies"])


def test_the_command_does_not_import_what_an_extra_brings():
    heavy = "{'matplotlib', 'pyarrow', 'openpyxl', 'dask', 'skops', 'polars', 'numpy', 'sklearn'}"
    code = f"import sys, nerm.cli; print(sorted({heavy} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_a_figure_without_matplotlib_is_refused_with_one_sentence_before_any_work(monkeypatch):
    from click.testing import CliRunner

    from nerm.cli import cli
    from nerm.plots.style import axes_or_new

    for module in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, module, None)
    said = r"needs the package 'matplotlib'. It is not installed. Install it with: pip install 'nerm-learn\[plots\]'\."
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


def test_workflows_test_every_python_and_system_that_is_promised():
    matrix = parsed(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    classifiers = PROJECT["project"]["classifiers"]
    assert matrix["python"] == re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))
    assert f">={matrix['python'][0]}" == PROJECT["project"]["requires-python"]
    assert {system.split("-")[0] for system in matrix["os"]} == {"ubuntu", "macos", "windows"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_whole(path):
    """What actionlint looks at first: keys, steps, names of jobs, expressions, scripts that exist, few permissions."""
    flow = parsed(path)
    assert set(flow) <= {"name", "on", "permissions", "concurrency", "env", "jobs"}
    assert flow["permissions"] == {"contents": "read"}
    for job in flow["jobs"].values():
        known = {
            "name",
            "if",
            "needs",
            "runs-on",
            "timeout-minutes",
            "strategy",
            "permissions",
            "environment",
            "steps",
        }
        assert set(job) <= known
        needs = job.get("needs", [])
        assert {needs} if isinstance(needs, str) else set(needs) <= set(flow["jobs"])
        for step in job["steps"]:
            assert set(step) <= {"name", "id", "uses", "with", "run", "if", "env"}
            assert ("uses" in step) != ("run" in step)
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@(v\d+|release/v\d+)", step.get("uses", "a/b@v1"))
            for script in re.findall(r"\.ci/\w+", step.get("run", "")):
                assert (ROOT / script).is_file()
    text = path.read_text("utf-8")
    contexts = re.findall(r"\$\{\{ (\w+)\.[\w.]+ \}\}", text)
    assert len(contexts) == text.count("${{")
    assert set(contexts) <= {"github", "matrix", "steps"}
    assert "secrets." not in text


def test_a_release_is_published_from_a_tag_without_a_token():
    flow = parsed(ROOT / ".github" / "workflows" / "release.yml")
    assert flow["on"] == {"push": {"tags": ["v*"]}}
    publish = flow["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["needs"] == "build"
    assert any(step["uses"].startswith("pypa/gh-action-pypi-publish@") for step in publish["steps"])
    assert "id-token" not in json.dumps(flow["jobs"]["build"])


def test_the_site_is_built_by_the_command_of_contributing():
    flow = parsed(ROOT / ".github" / "workflows" / "docs.yml")
    command = next(step["run"] for step in flow["jobs"]["build"]["steps"] if "sphinx" in step.get("run", ""))
    assert f"`{command}`" in (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_forms_for_issues_are_whole():
    assert len(FORMS) >= 2
    for path in FORMS:
        form = parsed(path)
        assert (
            {"name", "description", "body"} <= set(form) <= {"name", "description", "body", "labels", "title"}
        )
        assert {part["type"] for part in form["body"]} <= {
            "textarea",
            "input",
            "dropdown",
            "checkboxes",
            "markdown",
        }
        assert len({part["id"] for part in form["body"]}) == len(form["body"])
        assert all(part["attributes"]["label"] for part in form["body"])


def test_a_commit_is_checked_as_the_gate_checks():
    hooks = parsed(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    entries = " ".join(hook["entry"] for hook in hooks)
    for tool in ("ruff check", "ruff format --check", "mypy"):
        assert tool in entries
        assert tool in (ROOT / "README.md").read_text("utf-8")
    for test in re.findall(r"tests/\w+\.py", entries):
        assert (ROOT / test).is_file()


# --- the paper --------------------------------------------------------------------------------------


def test_the_paper_cites_what_its_bibliography_has_and_shows_figures_that_are_there():
    text = (ROOT / "paper" / "paper.md").read_text("utf-8")
    bibliography = (ROOT / "paper" / "paper.bib").read_text("utf-8")
    head, body = text.split("---\n", 2)[1:]
    cited = set(re.findall(r"(?<![\w.])@([A-Za-z][\w-]*)", body))
    entries = re.findall(r"^@\w+\{([^,]+),", bibliography, re.MULTILINE)
    assert cited == set(entries)
    assert len(entries) == len(set(entries))
    for entry in re.split(r"^@", bibliography, flags=re.MULTILINE)[1:]:
        assert all(
            re.search(rf"^  {field}\s*= ", entry, re.MULTILINE) for field in ("author", "title", "year")
        ), entry
        assert entry.count("{") == entry.count("}")
    for field in ("title", "tags", "authors", "affiliations", "date", "bibliography"):
        assert re.search(rf"^{field}:", head, re.MULTILINE)
    for section in ("Summary", "Statement of need", "What is new", "References"):
        assert f"\n# {section}\n" in body
    figures = re.findall(r"!\[[^\n]*\]\((\S+)\)", body)
    drawn = (ROOT / "paper" / "figures.py").read_text("utf-8")
    assert figures
    for figure in figures:
        assert (ROOT / "paper" / figure).is_file()
        assert Path(figure).name in drawn
    assert set(re.findall(r"\\autoref\{([^}]+)\}", body)) == set(re.findall(r"\\label\{([^}]+)\}", body))


# --- archives ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_wheel_and_sdist_are_built_and_hold_the_package_and_nothing_else(tmp_path):
    pytest.importorskip("build", reason="the package 'build' of the extra 'test' is not installed")
    pytest.importorskip("twine", reason="the package 'twine' of the extra 'test' is not installed")
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
