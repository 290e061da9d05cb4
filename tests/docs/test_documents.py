"""Every Python example in the Markdown files runs, prints what it shows, and holds for other sizes."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import io
import re
from pathlib import Path

import pytest
from sybil import Document, Example
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser

from gridstride.targets import registry

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_EXAMPLES = [path for path in DOCUMENTS if "```python" in path.read_text()]
_SIZE = re.compile(r"^n = 1000$", re.M)
WITH_SIZE = [path for path in WITH_EXAMPLES if _SIZE.search(path.read_text())]

run_python = PythonEvaluator()


@pytest.fixture(autouse=True)
def _as_on_a_machine_without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_TARGET", "cpu")
    monkeypatch.setenv("GRIDSTRIDE_BACKEND", "numpy")
    monkeypatch.setenv("GRIDSTRIDE_CPU_DEVICES", "1")  # so that what a page sets is put back
    registry.get("cpu")


def identify(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=identify)
def test_examples_run_and_print_what_is_shown(path: Path) -> None:
    gc.collect()  # arrays of other documents, which hooks would count when they are given back
    document = Document.parse(
        str(path), CodeBlockParser("python", run_and_capture), CodeBlockParser("text", compare_with_output)
    )
    for example in document.examples():
        example.evaluate()
    assert not printed(document.namespace), "the last output is not shown"


@pytest.mark.parametrize("size", [1, 10**6])
@pytest.mark.parametrize("path", WITH_SIZE, ids=identify)
def test_examples_hold_for_any_size(path: Path, size: int, tmp_path: Path) -> None:
    changed = tmp_path / path.name
    changed.write_text(_SIZE.sub(f"n = {size}", path.read_text()))
    for example in Document.parse(str(changed), CodeBlockParser("python", run_python)).examples():
        with contextlib.redirect_stdout(io.StringIO()):
            example.evaluate()


def test_launching_examples_have_a_size_that_can_be_changed() -> None:
    """Else the test above would silently test nothing."""
    assert {path.stem for path in WITH_SIZE} >= {
        "first-kernel",
        "raw-kernels",
        "templates",
        "shared-memory",
        "numbers",
    }


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "CONTRIBUTING.md"], ids=identify)
def test_links_lead_somewhere(path: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text()):
        assert (path.parent / link).exists(), f"{identify(path)} links to {link}"


def test_an_output_that_differs_is_found(tmp_path: Path) -> None:
    path = tmp_path / "wrong.md"
    path.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError):
        test_examples_run_and_print_what_is_shown(path)


def run_and_capture(example: Example) -> None:
    unseen = printed(example.namespace)
    assert not unseen, f"{example.path}:{example.line}: the output before is not shown: {unseen!r}"
    with contextlib.redirect_stdout(io.StringIO()) as output:
        run_python(example)
    example.namespace["__printed__"] = output.getvalue()


def compare_with_output(example: Example) -> None:
    """Compare a block of text with what the example before it printed; blocks after silence are prose."""
    output = example.namespace.pop("__printed__", "")
    if output:
        assert output.rstrip().splitlines() == example.parsed.rstrip().splitlines()


def printed(namespace: dict[str, object]) -> object:
    return namespace.get("__printed__", "")


def test_pictures_are_those_that_are_drawn() -> None:
    spec = importlib.util.spec_from_file_location("layout_pictures", ROOT / "tools" / "layout_pictures.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    drawn = {path.name: path.read_text() for path in tool.FOLDER.glob("*.svg")}
    assert drawn == tool.pictures()
    shown = {
        Path(name).name for path in DOCUMENTS for name in re.findall(r"\]\((.+\.svg)\)", path.read_text())
    }
    assert shown == set(drawn)
