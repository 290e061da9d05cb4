"""The reference pages list what there is, and nothing else."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path

import pytest

import gridstride
from gridstride import cli, config
from gridstride.targets.base import FunctionAttributes
from gridstride.targets.options import CompileOptions, parse_options

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
DESIGN = ROOT / "docs" / "design"


def first_cells(page: Path) -> list[str]:
    """Return the names in code style in the first column of a page's tables."""
    rows = [line.split("|")[1] for line in page.read_text().splitlines() if line.startswith("| `")]
    return [name for cell in rows for name in re.findall(r"`([^`]+)`", cell)]


def test_every_environment_variable_stands_with_its_meaning() -> None:
    rows = re.findall(r"^\| `(GRIDSTRIDE_\w+)` \| (.+) \|$", (REFERENCE / "environment.md").read_text(), re.M)
    assert dict(rows) == config.VARIABLES


def test_every_name_of_the_runtime_stands_on_its_page() -> None:
    named = " ".join(first_cells(REFERENCE / "cuda.md"))
    assert set(re.findall(r"\w+(?=\(|\b)", named)) >= set(gridstride.cuda.__all__)


@pytest.mark.parametrize(
    ("guide", "call"),
    [
        ("raw-kernels", inspect.signature(gridstride.RawKernel('extern "C" __global__ void k() {}', "k"))),
        ("elementwise", inspect.signature(gridstride.ElementwiseKernel("T x", "T y", "y = x"))),
        ("reductions", inspect.signature(gridstride.ReductionKernel("T x", "T y", "x", "a + b"))),
    ],
    ids=str,
)
def test_p124_every_parameter_of_a_launch_has_an_example_that_runs(
    guide: str, call: inspect.Signature
) -> None:
    page = (ROOT / "docs" / "guides" / f"{guide}.md").read_text()
    examples = "".join(re.findall(r"^```python\n(.*?)^```", page, re.M | re.S))
    options = [name for name, one in call.parameters.items() if one.default is not inspect.Parameter.empty]
    assert "stream" in options
    assert [name for name in options if name != "args" and f"{name}=" not in examples] == []


def test_every_exception_stands_with_its_attributes() -> None:
    page = (REFERENCE / "exceptions.md").read_text()
    errors = {name for name in gridstride.__all__ if isinstance(getattr(gridstride, name), type(Exception))}
    errors = {name for name in errors if issubclass(getattr(gridstride, name), Exception)}
    assert set(first_cells(REFERENCE / "exceptions.md")) == errors
    for name in errors:
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}`"))
        documented = re.findall(r"`(\w+)`", row.split("|")[4])
        for attribute in documented:
            example = gridstride.TargetUnavailable("t", "r", "e") if name == "TargetUnavailable" else None
            assert hasattr(example or getattr(gridstride, name)("message"), attribute)


@pytest.mark.parametrize("option", first_cells(REFERENCE / "options.md"))
def test_every_option_on_the_page_is_known(option: str) -> None:
    written = option.replace("=VALUE", "=1").replace("=N", "=32").replace("FOLDER", "folder")
    assert isinstance(parse_options((written,), target="any"), CompileOptions)


def test_every_option_stands_on_the_page() -> None:
    with pytest.raises(ValueError, match="known are") as caught:
        parse_options(("--unknown",), target="any")
    known = re.findall(r"(?<!\S)-[-\w]+", str(caught.value).partition("known are")[2])
    page = (REFERENCE / "options.md").read_text()
    assert known
    assert not [option for option in known if option not in page]


def test_every_function_attribute_stands_on_the_page() -> None:
    fields = set(FunctionAttributes._fields)
    assert fields <= set(first_cells(REFERENCE / "raw.md"))


def test_every_public_name_stands_in_the_reference() -> None:
    pages = "".join(page.read_text() for page in REFERENCE.glob("*.md"))
    pages += (ROOT / "docs" / "concepts" / "streams.md").read_text()
    assert not [name for name in gridstride.__all__ if not re.search(rf"`[^`\n]*\b{name}\b", pages)]


def test_every_command_stands_on_the_page() -> None:
    page = (REFERENCE / "command-line.md").read_text()
    assert not [command for command in cli.COMMANDS if f"`gridstride {command}" not in page]


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert set(re.findall(r"[\w/.-]+\.md", navigation)) == pages


def test_every_design_note_is_in_the_index() -> None:
    notes = {page.name for page in DESIGN.glob("[0-9]*.md")}
    assert set(re.findall(r"\(([\w-]+\.md)\)", (DESIGN / "index.md").read_text())) == notes


def test_every_dependency_has_a_reason_and_a_licence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lists = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
    ]
    packages = {re.match(r"[\w.-]+", entry)[0] for entries in lists for entry in entries}  # type: ignore[index]
    note = (DESIGN / "0002-dependencies.md").read_text()
    assert not [package for package in packages if f"`{package}`" not in note]


def test_changelog_fragments_are_named_by_kind() -> None:
    fragments = [path for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md"]
    assert all(re.fullmatch(r"[\w-]+\.(added|changed|fixed|removed)\.md", path.name) for path in fragments)
