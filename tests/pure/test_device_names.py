"""The table of device names: complete, decided, tested, and told in the documentation."""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from device_cases import sections

from gridstride.targets.cpu import device_names

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests" / "every_target"
#: Where the names of a section are used that do more than give a value.
USED_IN = {
    "variables": ["test_device_language.py"], "runtime": ["test_device_language.py"],
    "atomics": ["test_device_atomics.py", "test_device_memory.py"], "memory": ["test_device_memory.py"],
    "warp": ["test_device_warp.py"], "barriers": ["test_device_barriers.py"],
    "groups": ["test_device_groups.py", "../cpu/test_headers.py"],
    "complex": ["test_device_complex.py"], "half": ["test_device_half.py", "test_device_warp.py"],
    "curand": ["../device_cases/random_numbers.py"],
    "bfloat16": ["test_device_half.py", "test_device_warp.py"],
}  # fmt: skip


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_nine_of_ten_names_of_a_supported_section_are_there():
    for section in device_names.sections():
        if not section.reason:
            assert len(section.supported()) >= 0.9 * len(section.names), section.key


def test_refused_names_are_names_of_their_sections():
    for section in device_names.sections():
        assert set(section.refused) <= set(section.names), section.key
        assert set(section.absent_on_cuda) - {"*"} <= set(section.names), section.key
        assert len(set(section.names)) == len(section.names), section.key


@pytest.mark.parametrize("section", [s for s in device_names.sections() if not s.reason], ids=lambda s: s.key)
def test_every_supported_name_has_a_test(section):
    cases = {case.name for case in sections.VALUES.get(section.key, ("", []))[1]}
    text = "".join((TESTS / name).read_text() for name in USED_IN.get(section.key, ()))
    used = set(re.findall(r"[A-Za-z_]\w*", text))
    if '"_block", "_system"' in text:  # put to the names
        used |= {name + scope for name in used for scope in ("_block", "_system")}
    others = [name.rpartition("::")[2] for name in section.supported() if name not in cases]
    missing = [name for name in others if not (name in used or (name[:8] == "operator" and name[8:] in text))]
    assert not missing


def test_every_case_is_about_a_name_of_its_section():
    for key, (_, cases) in sections.VALUES.items():
        assert {case.name for case in cases} <= set(sections.names_of(key)), key


def test_the_page_is_current():
    page = tool("device_names_page")
    assert page.PAGE.read_text() == page.page()


def test_the_names_are_those_of_the_headers():
    """Of the headers that the tests install; those of cuRAND come in a wheel of their own."""
    extractor = tool("device_names")
    places = find_spec("nvidia").submodule_search_locations
    folder = next(Path(place) / "cu13" / "include" for place in places if (Path(place) / "cu13").is_dir())
    headers = extractor.read([folder])
    assert len(headers) > 30
    found = extractor.sort(headers)
    for section in device_names.sections():
        known = set(section.names)
        assert set(found.get(section.key, ())) <= known, section.key
