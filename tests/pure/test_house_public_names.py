"""The public surface is a list, and the list is true."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
from pathlib import Path

import pytest

import gridstride

SOURCE = Path(gridstride.__file__)
DOCUMENTS = Path(__file__).parents[2] / "docs"


def test_the_list_is_sorted_and_has_no_repetition() -> None:
    assert gridstride.__all__ == sorted(set(gridstride.__all__))


@pytest.mark.parametrize("name", gridstride.__all__)
def test_every_public_name_can_be_imported_and_is_documented(name: str) -> None:
    value = getattr(gridstride, name)
    assert inspect.getdoc(value)
    if not inspect.ismodule(value):
        assert value.__module__ == "gridstride"


def test_case_p109_names_are_the_same_on_all_targets_and_say_what_they_do() -> None:
    """No name is made for one target alone; what a target cannot do is refused when it is called."""
    undocumented, counted = [], 0
    for module, names in ((gridstride, gridstride.__all__), (gridstride.cuda, gridstride.cuda.__all__)):
        for name in names:
            value = getattr(module, name)
            members = vars(value) if isinstance(value, type) else {}
            for member, attribute in members.items():
                if not member.startswith("_") and (callable(attribute) or isinstance(attribute, property)):
                    counted += 1
                    undocumented += [] if inspect.getdoc(getattr(value, member)) else [f"{name}.{member}"]
            undocumented += [] if inspect.getdoc(value) else [name]
    assert undocumented == []
    assert counted > 100
    for source in (SOURCE.parent / "cuda").glob("*.py"):
        conditional = [node for node in ast.parse(source.read_text()).body if isinstance(node, ast.Try)]
        assert conditional == [], f"{source.name} has names that depend on the machine"


def test_type_checkers_see_the_same_names() -> None:
    imported = {
        alias.name
        for block in ast.parse(SOURCE.read_text()).body
        for node in (block.body if isinstance(block, ast.If) else [block])
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gridstride")
        for alias in node.names
    }
    assert imported == set(gridstride.__all__)


def test_every_submodule_without_underscore_can_be_imported_from_the_package() -> None:
    """Else ``from gridstride import config`` would first ask the array library for that name."""
    rooms = {
        path.stem
        for path in SOURCE.parent.iterdir()
        if (path / "__init__.py").exists() or path.suffix == ".py"
    }
    assert {name for name in rooms if not name.startswith("_")} == set(gridstride._SUBMODULES)


def test_dir_shows_the_public_names() -> None:
    assert set(gridstride.__all__) <= set(dir(gridstride))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        gridstride.no_such_name  # noqa: B018
    with pytest.raises(AttributeError, match="_no_such_name"):
        gridstride._no_such_name  # noqa: B018


def test_kernels_and_errors_are_pickled_under_the_public_name() -> None:
    for value in (
        gridstride.RawKernel("__global__ void k() {}", "k"),
        gridstride.CompileError("no", name="k"),
    ):
        data = pickle.dumps(value)
        assert b"gridstride.families" not in data
        assert type(pickle.loads(data)) is type(value)


def test_the_version_is_that_of_the_package() -> None:
    written = re.search(r'^version = "(.+)"$', (SOURCE.parents[2] / "pyproject.toml").read_text(), re.M)
    assert written is not None
    assert gridstride.__version__ == written[1]
