"""The namespace's ``random`` over CuPy: CuPy's own, except where a stream is captured."""

import sys
from types import SimpleNamespace

import fake_cupy
import numpy as np
import pytest

import gridstride as gs
from gridstride.namespace import captured, cupy_random


@pytest.fixture
def cupy(monkeypatch):
    module = fake_cupy.make_module()
    module.random = SimpleNamespace(
        rand=lambda *size, dtype=float: ("rand", size, dtype),
        random=lambda size=None, dtype=float: ("random", size, dtype),
        poisson=lambda *args: ("poisson", *args),
    )
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setenv("GRIDSTRIDE_BACKEND", "cupy")
    monkeypatch.setattr("gridstride.namespace.forwarding.get_backend", lambda: "cupy")
    cupy_random._captured_array.cache_clear()
    yield module
    cupy_random._captured_array.cache_clear()


@pytest.fixture
def drawn(monkeypatch):
    calls = []
    capture = SimpleNamespace(stream="stream")
    monkeypatch.setattr(captured, "current_capture", lambda: capture)
    monkeypatch.setattr(captured, "draw", lambda *call: calls.append(call[:3]))
    return calls


def test_outside_captures_it_is_cupys(cupy):
    assert gs.random.rand(2, 3, dtype="f4") == ("rand", (2, 3), "f4")
    assert gs.random.random(5) == ("random", 5, float)
    assert gs.random.poisson(1, 2) == ("poisson", 1, 2)
    assert {"poisson", "rand"} <= set(dir(cupy_random))


def test_in_a_capture_shapes_are_read_as_cupy_does(cupy, drawn):
    gs.random.rand(2, 3, dtype="f4")
    gs.random.rand()
    gs.random.randn(4)
    gs.random.random((5, 6))
    gs.random.random(7)
    gs.random.standard_normal(size=8, dtype=np.float32)
    assert drawn == [
        ("uniform", (2, 3), "f4"),
        ("uniform", (), float),
        ("normal", (4,), float),
        ("uniform", (5, 6), float),
        ("uniform", (7,), float),
        ("normal", (8,), np.float32),
    ]
