"""Every notebook runs clean from top to bottom, and is kept with the outputs and figures of such a run."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.long

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
SECONDS = 300  # for a whole notebook on a busy machine; on a quiet one each takes well under two minutes


def outputs(notebook):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def test_it_runs_clean(notebook, monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONWARNINGS", "default")
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    monkeypatch.setenv("IPYTHONDIR", os.fspath(tmp_path / "ipython"))
    client = NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": os.fspath(tmp_path)}})
    client.execute()
    said = [
        output.text
        for output in outputs(notebook)
        if output.output_type == "stream" and output.name == "stderr"
    ]
    assert said == []


def test_it_is_kept_with_its_outputs_and_figures(notebook):
    first = notebook.cells[0]
    question = first.source.splitlines()[0]
    assert first.cell_type == "markdown"
    assert question.startswith("# ")
    assert question.endswith("?")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert all(output.output_type != "error" for output in outputs(notebook))
    assert all(getattr(output, "name", "") != "stderr" for output in outputs(notebook))
    assert any("image/png" in output.get("data", {}) for output in outputs(notebook))
