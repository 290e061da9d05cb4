"""The rules of the house that import contracts cannot say."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import gridstride
from gridstride.errors import CUDAError
from gridstride.families.rehearsal import rehearse_raw_kernels
from gridstride.targets import registry
from gridstride.targets.null import NullTarget
from gridstride.targets.null import create as create_null

PACKAGE = Path(gridstride.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
#: Array libraries and frameworks, with the rooms that may import them, lazily.
FOREIGN = {"cupy", "torch", "jax", "dask", "ml_dtypes"}
FOREIGN_ROOMS = {"arrays", "interop", "_dtypes.py"}
#: May name targets: they make them, show them, or explain how to choose one.
NAMING_ROOMS = {"targets", "cli", "config.py"}
#: May hold names that are also a device type's in the vocabulary of an array library.
SPEAKING_ROOMS = {"arrays", "interop"}


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


def outside(rooms: set[str]) -> list[Path]:
    return [path for path in FILES if room(path) not in rooms]


def identify(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_nobody_above_the_seam_asks_which_target_it_has() -> None:
    found = [
        f"{identify(path)}:{node.lineno}: {ast.unparse(node)[:80]}"
        for path in outside(NAMING_ROOMS | SPEAKING_ROOMS)
        for node in ast.walk(parse(path))
        if decides_by_target_name(node)
    ]
    assert not found, "ask for limits or features instead:\n" + "\n".join(found)


def test_nobody_above_the_seam_imports_a_target() -> None:
    concrete = tuple(f"gridstride.targets.{name}" for name in registry.names())
    found = [
        f"{identify(path)} imports {module}"
        for path in outside({"targets"})
        for module, _ in imports(path)
        if module in concrete or module.startswith(tuple(f"{target}." for target in concrete))
    ]
    assert not found


@pytest.mark.parametrize(
    ("text", "guilty"),
    [
        ("if target.name == 'cuda': pass", True),
        ("if target.name in ('cpu', 'null'): pass", True),
        ("match target.name:\n    case 'cpu': pass", True),
        ("match target.name:\n    case 'x' | 'cuda': pass", True),
        ("{'cuda': 1}[target.name]", True),
        ("sizes['cpu']", True),
        ("sizes.get('cpu')", True),
        ("registry.get('cuda')", True),
        ("target.name.startswith('cuda')", True),
        ("'gpu' in target.features", False),
        ("limits.warp_size == 32", False),
        ("print('cuda')", False),
    ],
)
def test_the_rule_finds_decisions_by_name(text: str, guilty: bool) -> None:
    assert any(map(decides_by_target_name, ast.walk(ast.parse(text)))) is guilty


def test_foreign_libraries_are_imported_by_adapters_alone_and_lazily() -> None:
    found = [
        f"{identify(path)} imports {module}"
        for path in FILES
        for module, lazily in imports(path)
        if module.partition(".")[0] in FOREIGN and not (lazily and room(path) in FOREIGN_ROOMS)
    ]
    assert not found


def test_an_adapter_imports_its_own_library_alone() -> None:
    for path in (PACKAGE / "arrays").glob("_*.py"):
        foreign = {module.partition(".")[0] for module, _ in imports(path)} & FOREIGN
        assert foreign <= {path.stem.removeprefix("_")}, identify(path)


def test_locks_are_free_in_forked_children() -> None:
    """Else a child waits for a thread that it does not have."""
    made = re.compile(r"\bthreading\.(?:R?Lock|Condition)\(|\bfrom threading import .*(?:Lock|Condition)")
    assert [identify(path) for path in FILES if made.search(path.read_text())] == ["_forks.py"]


def test_every_module_says_what_it_is_for() -> None:
    silent = [identify(path) for path in FILES if parse(path).body and not ast.get_docstring(parse(path))]
    assert not silent


def test_the_files_of_the_package_are_found() -> None:
    """Else the tests above would silently test nothing."""
    assert {"_pipeline.py", "targets/base.py", "arrays/_torch.py"} <= set(map(identify, FILES))


def test_importing_the_package_imports_nothing_slow() -> None:
    loaded = modules_after("import numpy", "import gridstride")
    slow = {
        "cupy",
        "dataclasses",
        "hashlib",
        "json",
        "torch",
        "jax",
        "dask",
        "tree_sitter",
        "ml_dtypes",
        "pathlib",
        "subprocess",
        "tempfile",
        "urllib",
    }
    assert not slow & {name.partition(".")[0] for name in loaded}
    assert not {name for name in loaded if name.startswith(("gridstride.targets.c", "gridstride.cuda"))}


def test_every_public_name_together_imports_no_array_library_but_numpy() -> None:
    loaded = modules_after(
        "import gridstride",
        "[getattr(gridstride, name) for name in gridstride.__all__]; gridstride.cuda.Device()",
    )
    heavy = {"cupy", "torch", "jax", "dask", "tree_sitter", "ml_dtypes"}
    assert not heavy & {name.partition(".")[0] for name in loaded}


def modules_after(first: str, then: str) -> list[str]:
    """Return the modules that a fresh process loads by the second statement, in their order."""
    code = f"import sys\n{first}\nbefore = set(sys.modules)\n{then}\nprint(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return sorted(done.stdout.split())


def decides_by_target_name(node: ast.AST) -> bool:
    """Return whether a node compares with, matches, looks up or keys on the name of a target."""
    match node:
        case ast.Compare(left=left, comparators=comparators):
            places = [left, *comparators]
        case ast.MatchValue(value=value):
            places = [value]
        case ast.Dict(keys=keys):
            places = [key for key in keys if key is not None]
        case ast.Subscript(slice=index):
            places = [index]
        case ast.Call(
            func=ast.Attribute(attr="get" | "pop" | "setdefault" | "startswith" | "endswith"), args=args
        ):
            places = args[:1]
        case _:
            return False
    names = registry.names()
    return any(
        isinstance(inner, ast.Constant) and inner.value in names
        for place in places
        for inner in ast.walk(place)
    )


@cache
def imports(path: Path) -> list[tuple[str, bool]]:
    """Return the modules that a file imports, each with whether that happens inside a function only."""
    return list(imports_below(parse(path), lazily=False))


def imports_below(node: ast.AST, lazily: bool) -> Iterator[tuple[str, bool]]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                yield from ((alias.name, lazily) for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield module, lazily
                yield from ((f"{module}.{alias.name}", lazily) for alias in names)
            case ast.stmt() | ast.ExceptHandler() | ast.match_case():
                deferred = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or is_for_type_checkers(
                    child
                )
                yield from imports_below(child, lazily or deferred)


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def test_targets_are_anticipated_only_where_their_driver_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    created: list[str] = []
    monkeypatch.setattr(registry, "serving", lambda device_type: None)
    monkeypatch.setattr(registry, "get", lambda name: created.append(name) or create_null())
    monkeypatch.setattr(registry, "IDLE", "none to rehearse on")
    monkeypatch.setattr(registry, "_DRIVERS", {"absent": ("libnobody-has-this.so.7", "f")})
    registry.anticipate()
    assert not created
    monkeypatch.setattr(
        registry, "_DRIVERS", {"idle": ("libc.so.6", "getpid"), "used": ("libc.so.6", "sched_yield")}
    )
    (rehearsal,) = registry.anticipate()
    assert created == ["used", registry.IDLE], "getpid() gives no 0, sched_yield() does"
    assert rehearsal.name == "null"


def test_what_is_rehearsed_on_stays_what_it_was() -> None:
    null = registry.get("null")
    for target, name in ((null, "null"), (create_null(), "null")):
        with registry.rehearsing(target):
            assert registry.get(name) is target
        assert registry.get(name) is null


def test_an_import_is_not_stopped_by_a_device_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Exclusive(NullTarget):
        def warm_up(self) -> None:
            raise CUDAError("in use by another process", name="CUDA_ERROR_DEVICE_UNAVAILABLE", code=46)

    monkeypatch.setattr(registry, "get", lambda name: Exclusive())
    monkeypatch.setattr(registry, "_DRIVERS", {"used": ("libc.so.6", "sched_yield")})
    assert registry.anticipate() == []


def test_a_rehearsal_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(tmp_path))
    target = create_null()
    target.name = "nobody"
    rehearse_raw_kernels(target)
    assert [call for call in target.calls if call[0] == "launch"]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert registry.default() is not target
    assert target not in (*registry.created(), *registry._found.values())
    with pytest.raises(ValueError, match="unknown target"):
        registry.get("nobody")


def test_a_rehearsal_raises_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import shall not raise what only a launch is about."""
    monkeypatch.setenv("GRIDSTRIDE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("GRIDSTRIDE_FORBID_COMPILATION", "1")
    target = create_null()
    rehearse_raw_kernels(target)
    assert not target.calls
