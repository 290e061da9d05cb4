"""Fixtures and rules of the whole suite: the targets, their array library, the GPU's lock, a cache of its own."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import fake_cupy
import optimization
import precompiled
import pytest
from native_support import Recorder

from gridstride import _native
from gridstride._array_pipeline import usual_folds
from gridstride._compilation import functions
from gridstride.errors import TargetUnavailable
from gridstride.targets import registry
from gridstride.targets.base import Target
from gridstride.targets.block_loops import writers

_HOST_ARRAYS = 1
MOST_ALONE = usual_folds._MOST_ALONE


@pytest.fixture
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Target:
    """Each target that runs kernels on this machine, as the default one also for threads and subprocesses."""
    monkeypatch.setenv("GRIDSTRIDE_TARGET", request.param)
    return registry.get(request.param)


@pytest.fixture
def xp(target: Target) -> ModuleType:
    """The array library whose arrays the target runs on."""
    return import_module("numpy" if _HOST_ARRAYS in target.device_types else "cupy")


@pytest.fixture
def loaded_texts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What has been compiled, or loaded from the cache, since the test began."""
    loaded: list[object] = []
    load = functions._load
    monkeypatch.setattr(functions, "_load", lambda *what: loaded.append(what[2]) or load(*what))
    return loaded


@pytest.fixture(autouse=True)
def _folds_in_texts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no fold wait for all that are usual to be compiled, whatever other tests called the same kernel with."""
    monkeypatch.setattr(usual_folds, "_MOST_ALONE", 1 << 30)


@pytest.fixture
def usual_folds_in_one_text(_folds_in_texts_of_their_own: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile the usual folds of a kernel that has many in one text, as outside of tests."""
    monkeypatch.setattr(usual_folds, "_MOST_ALONE", MOST_ALONE)


@pytest.fixture
def folds_of_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give folds of little the loops of folds that read much."""
    monkeypatch.setattr(writers, "reads_little", lambda *_: False)


@pytest.fixture
def optimized(monkeypatch: pytest.MonkeyPatch) -> None:
    """Optimize texts as users' are: of tests with many elements, or with structures that take much of a stack."""
    monkeypatch.setattr(optimization, "are_all_optimized", True)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """A target that tells who asked it to launch, as the default one."""
    target = Recorder()
    monkeypatch.setitem(registry._targets, target.name, target)
    monkeypatch.setattr(registry, "_found", {})
    monkeypatch.setenv("GRIDSTRIDE_TARGET", target.name)
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "1")
    return target


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What stands for CuPy, whose arrays the C code has met."""
    module = fake_cupy.make_module()
    monkeypatch.setitem(sys.modules, "cupy", module)
    if _native.is_compiled():
        from gridstride._native import recognition

        # A class is looked at once in a process, which may have been while none was CuPy's.
        if not recognition._met.get(module.ndarray):
            recognition._met.pop(module.ndarray, None)
    _native.meet()
    return module


@pytest.fixture(params=["shortcuts", "definitions"])
def each_way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test with the shortcuts of the compiled extension, and without."""
    if request.param == "shortcuts" and not _native.is_compiled():
        pytest.skip("the extension is not built")
    before = _native.use_shortcuts(request.param == "shortcuts")
    yield
    _native.use_shortcuts(before)


@pytest.fixture(autouse=True, scope="module")
def _others_objects() -> None:
    """Leave what other modules' tests made out of the garbage collections of a module's, which ask for many."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _gpu_lock(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let one test at a time use the GPU, also between the workers of a parallel run."""
    if request.node.get_closest_marker("gpu") is None:
        yield
        return
    with open(Path(tempfile.gettempdir()) / f"gridstride-gpu-{os.getuid()}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-target",
        action="append",
        default=[],
        metavar="NAME",
        help="stop with an error where this target cannot be used, instead of leaving its tests out",
    )
    parser.addoption(
        "--optimize-all",
        action="store_true",
        help="optimize the texts of all array kernels as users' are, where otherwise a sample is",
    )


def pytest_configure(config: pytest.Config) -> None:
    _use_a_cache_of_the_session(config)
    if not config.getoption("--optimize-all"):
        optimization.optimize_less()
        precompiled.precompile(Path(os.environ["GRIDSTRIDE_CACHE_DIR"]).with_name("headers"))
    for name in config.getoption("--require-target"):
        try:
            registry.get(name)
        except (TargetUnavailable, ValueError) as error:
            raise pytest.UsageError(f"--require-target {name}: {error}") from error


def pytest_report_header(config: pytest.Config) -> list[str]:
    return ["gridstride targets:", *(f"  {name}: {_state(name)}" for name in registry.names())]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" in metafunc.fixturenames:
        parameters = [
            pytest.param(name, marks=[pytest.mark.gpu] if _has_gpu(name) else [])
            for name in _wanted_names()
            if _state(name) == "available"
        ]
        metafunc.parametrize("target", parameters, indirect=True)


def pytest_collection_finish() -> None:
    """Leave what is there now out of later garbage collections: many tests ask for one, and look at their own."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if any(_has_gpu(name) for name in registry.candidates()):
        return
    for item in items:
        if item.get_closest_marker("gpu") is not None:
            item.add_marker(pytest.mark.skip(reason="no target with a GPU answers"))


def _use_a_cache_of_the_session(session: pytest.Config) -> None:
    """Make an empty cache that the workers of a parallel run share; the user's own is never touched."""
    if hasattr(session, "workerinput"):
        return
    directory = tempfile.mkdtemp(prefix="gridstride-test-cache-")
    os.environ["GRIDSTRIDE_CACHE_DIR"] = str(Path(directory, "cache"))
    session.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))


def _wanted_names() -> list[str]:
    chosen = os.environ.get("GRIDSTRIDE_TARGET")
    return [chosen] if chosen else list(registry.candidates())


def _state(name: str) -> str:
    try:
        registry.get(name)
    except TargetUnavailable as error:
        return f"not available: {error.reason}"
    return "available"


def _has_gpu(name: str) -> bool:
    return _state(name) == "available" and "gpu" in registry.get(name).features
