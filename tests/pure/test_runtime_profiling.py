"""Profiler, ranges for it, and the namespaces that are CuPy's."""

import sys
import threading
from types import ModuleType, SimpleNamespace

import fake_cupy
import pytest
from fake_target import FakeTarget, make_default

from gridstride import cuda
from gridstride.cuda import nvtx
from gridstride.errors import TargetUnavailable


@pytest.fixture
def fake(monkeypatch):
    target = FakeTarget()
    make_default(monkeypatch, target)
    return target


@pytest.fixture
def library(monkeypatch):
    calls = []
    module = ModuleType("nvtx")
    for name in ("push_range", "pop_range", "mark"):
        setattr(module, name, lambda *args, _name=name, **kwargs: calls.append((_name, *args, kwargs)))
    monkeypatch.setitem(sys.modules, "nvtx", module)
    nvtx._library.cache_clear()
    yield calls
    nvtx._library.cache_clear()


@pytest.fixture
def no_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "nvtx", None)
    nvtx._library.cache_clear()
    yield
    nvtx._library.cache_clear()


def test_the_profiler_collects_inside_a_block(fake):
    with pytest.raises(KeyError), cuda.profiler.collect():
        raise KeyError
    assert fake.calls == [("start_profiler",), ("stop_profiler",)]


def test_profile_is_deprecated_and_works(fake):
    with pytest.warns(DeprecationWarning, match=r"profiler\.collect") as caught, cuda.profile():
        pass
    assert fake.calls == [("start_profiler",), ("stop_profiler",)]
    assert caught[0].filename == __file__


def test_ranges_nest_without_the_library(no_library):
    assert nvtx.RangePush("outer") == 0
    with nvtx.range("inner", 3):
        assert nvtx.open_ranges() == ("outer", "inner")
        seen = []
        thread = threading.Thread(target=lambda: seen.append(nvtx.open_ranges()))
        thread.start()
        thread.join()
        assert seen == [()]
    nvtx.Mark("moment")
    assert nvtx.RangePop() == 0
    with pytest.raises(RuntimeError, match="without RangePush"):
        nvtx.RangePop()


def test_ranges_go_to_the_library(library):
    with nvtx.range("work"):
        nvtx.Mark("moment", 1)
    assert library == [
        ("push_range", "work", {}),
        ("mark", "moment", {"color": "blue"}),
        ("pop_range", {}),
    ]


@pytest.mark.parametrize("name", ["cublas", "curand", "cusolver", "cusparse"])
def test_namespaces_of_cupy(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(TargetUnavailable, match=f"{name} is CuPy's"):
        getattr(cuda, name).create  # noqa: B018
    cupy = fake_cupy.make_module()
    setattr(cupy.cuda, name, SimpleNamespace(create=5))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert getattr(cuda, name).create == 5
