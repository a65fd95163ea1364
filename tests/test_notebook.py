"""notebooks/benchmark.ipynb runs from a clean checkout: with the real model, without shared data, without a network."""

import ast
import base64
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

nbformat = pytest.importorskip("nbformat", reason="the extra `notebook` is not installed")
nbclient = pytest.importorskip("nbclient", reason="the extra `notebook` is not installed")
pytest.importorskip("ipykernel", reason="the extra `notebook` is not installed")
pytest.importorskip("matplotlib", reason="the extra `notebook` is not installed")

REPOSITORY: Final = Path(__file__).resolve().parent.parent
NOTEBOOK: Final = REPOSITORY / "notebooks" / "benchmark.ipynb"
LOGIC: Final = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.For, ast.While, ast.If, ast.IfExp, ast.Try,
    ast.With, ast.comprehension, ast.BinOp, ast.BoolOp, ast.Compare,
)  # fmt: skip

Cells = list[Any]


def code_of(cells: Cells) -> Cells:
    return [cell for cell in cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def stored() -> Cells:
    return code_of(nbformat.read(NOTEBOOK, as_version=4).cells)


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cells]:
    """Code cells with what they put out; a cell that fails ends the run with its traceback."""
    folder = tmp_path_factory.mktemp("jupyter")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
        for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR", "RECALL_SHARED"):
            patch.setenv(name, str(folder / name.lower()))
        for name in ("http_proxy", "https_proxy"):
            patch.setenv(name, "http://127.0.0.1:9")  # the port that answers nobody
        client = nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(NOTEBOOK.parent)}})
        yield code_of(client.execute().cells)


def text(cell: Any) -> str:
    """All that a cell printed and gave."""
    outputs = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return "".join(outputs)


def asked(cells: Cells, words: str) -> str:
    """What the cells said in which these words stand."""
    return "".join(text(cell) for cell in cells if words in cell.source)


def test_no_output_is_stored(stored: Cells) -> None:
    assert [cell.source for cell in stored if cell.outputs or cell.execution_count] == []


def test_cells_hold_imports_and_calls_and_no_logic(stored: Cells) -> None:
    sources = [re.sub(r"^%.*$", "", cell.source, flags=re.MULTILINE) for cell in stored]
    nodes = [node for source in sources for node in ast.walk(ast.parse(source))]
    assert any(isinstance(node, ast.Call) for node in nodes)
    assert [ast.unparse(node) for node in nodes if isinstance(node, LOGIC)] == []


def test_it_shows_every_picture_that_can_be_drawn(stored: Cells) -> None:
    from bench import charts

    drawn = [name for name in vars(charts) if re.fullmatch(r"[a-z]+(_[a-z]+)+", name) and callable(vars(charts)[name])]
    own = [name for name in drawn if vars(charts)[name].__module__ == "bench.charts"]
    called = re.findall(r"^charts\.(\w+)\(\)$", "\n".join(cell.source for cell in stored), re.MULTILINE)
    assert sorted(called) == sorted(own)
    assert own


@pytest.mark.model
@pytest.mark.timeout(300)
class TestExecuted:
    def test_every_cell_runs_and_none_complains(self, executed: Cells) -> None:
        assert all(cell.execution_count for cell in executed)
        complaints = [output for cell in executed for output in cell.outputs if output.get("name") == "stderr"]
        assert complaints == []

    def test_every_call_of_a_chart_becomes_a_picture(self, executed: Cells) -> None:
        charts = [cell for cell in executed if cell.source.startswith("charts.")]
        pictures = [
            base64.b64decode(output.data["image/png"])
            for cell in charts
            for output in cell.outputs
            if "image/png" in output.get("data", {})
        ]
        assert len(pictures) == len(charts) > 0
        assert all(picture.startswith(b"\x89PNG") and len(picture) > 10_000 for picture in pictures)

    def test_questions_in_both_languages_find_the_note_that_answers(self, executed: Cells) -> None:
        assert "feedback_real_database_in_tests.md" in asked(executed, "mock the database")
        assert "Vaccines alarm outside" in asked(executed, "疫苗")
        assert "nearest part" in asked(executed, "Flutter")

    def test_a_question_that_nothing_fits_is_answered_by_silence_with_its_reason(self, executed: Cells) -> None:
        found = asked(executed, "晚饭")
        assert found.startswith("()")
        assert "no topic" in found
