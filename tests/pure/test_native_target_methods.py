"""Methods of targets that are functions of a driver, which the shortcuts call without a detour."""

import ctypes
import gc
import sys

import pytest
from fake_target import FakeTarget, make_default

from gridstride import _native, cuda
from gridstride.targets import registry

Values = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint64] * 5)
#: With how many values each is called, and whether it writes a result.
METHODS = {
    "create_event": (1, True),
    "destroy_event": (1, False),
    "record_event": (2, False),
    "wait_event": (2, False),
    "allocate_async": (2, True),
    "allocate_from_pool": (3, True),
    "free_async": (2, False),
}


class DriverTarget(FakeTarget):
    """Have methods that are functions of C, as the CUDA target has.

    Attributes
    ----------
    told : list
        What they were called with.
    code : int
        What they return.
    """

    def __init__(self):
        super().__init__()
        self.told, self.code, self.functions, self._numbers = [], 0, [], iter(range(1 << 32, 1 << 33, 16))
        for name, (count, has_result) in METHODS.items():
            setattr(self, name, self._method(name, count, has_result))

    def _method(self, name, count, has_result):
        def called(*values):
            self.told.append((name, *values[has_result:][:count]))
            if has_result and not self.code:
                ctypes.c_uint64.from_address(values[0]).value = next(self._numbers)
            return self.code

        self.functions.append(Values(called))
        address = ctypes.cast(self.functions[-1], ctypes.c_void_p).value
        return _native.DriverFunction(address, has_result, self._fail).call

    def _fail(self, code):
        raise OSError(code, "the driver failed")

    def names(self):
        return [name for name, *_ in self.told]


@pytest.fixture
def driver(monkeypatch):
    target = DriverTarget()
    make_default(monkeypatch, target)
    yield target
    gc.collect()


@pytest.fixture
def plain(monkeypatch):
    target = FakeTarget()
    target.name = "plain"
    monkeypatch.setitem(registry._targets, "plain", target)
    return target


def test_events_go_to_the_driver(driver):
    stream, other = cuda.Stream(), cuda.Stream()
    for _ in range(2):
        event = cuda.Event()
        handle = event.ptr
        event.record(stream)
        event.record()
        other.wait_event(event)
        del event
        assert driver.told == [
            ("create_event", 0),
            ("record_event", handle, stream.ptr),
            ("record_event", handle, 0),
            ("wait_event", other.ptr, handle),
            ("destroy_event", handle),
        ]
        driver.told.clear()


def test_asynchronous_memory_goes_to_the_driver(driver):
    stream, pool = cuda.Stream(), cuda.MemoryAsyncPool()
    with stream:
        for _ in range(2):
            pointer = pool.malloc(1000)
            address = pointer.ptr
            del pointer
            (name, size, *_, order), freed = driver.told
            assert name in ("allocate_async", "allocate_from_pool")
            assert (size, order) == (1000, stream.ptr)
            assert freed == ("free_async", address, stream.ptr)
            driver.told.clear()


def test_targets_take_turns(driver, plain):
    """What is remembered of one target is not done on another."""
    for _ in range(3):
        event = cuda.Event()
        event.record()
        assert driver.names() == ["create_event", "record_event"]
        with registry.use_target("plain"):
            other = cuda.Event()
            other.record()
            assert [call[0] for call in plain.calls if "event" in call[0]] == ["record_event"]
        another = DriverTarget()
        third = cuda.Event(target=another)
        third.record(cuda.Stream(target=another))
        assert another.names() == ["create_event", "record_event"]
        del event, other, third
        assert driver.names()[-1] == another.names()[-1] == plain.calls[-1][0] == "destroy_event"
        driver.told.clear()
        plain.calls.clear()


def test_failures_pass_through(driver):
    event, stream, pool = cuda.Event(), cuda.Stream(), cuda.MemoryAsyncPool()
    event.record(stream)
    driver.code = 700
    for call in (event.record, lambda: stream.wait_event(event), cuda.Event, lambda: pool.malloc(5)):
        with pytest.raises(OSError, match="the driver failed"):
            call()
    driver.code = 0
    event.record(stream)
    assert pool.malloc(5).size == 5


def test_what_is_missing_on_a_target_is_an_attribute_error(driver, plain):
    event = cuda.Event(target=plain)
    stream = cuda.Stream(target=plain)
    plain.record_event = None
    with pytest.raises(TypeError, match="not callable"):
        event.record(stream)


@pytest.mark.skipif(not _native.is_compiled(), reason="the extension is not built")
def test_memory_whose_address_somebody_took_is_no_crash(driver):
    told, hook = [], sys.unraisablehook
    pointer = cuda.MemoryAsyncPool().malloc(100)
    del pointer.mem.ptr
    sys.unraisablehook = lambda args: told.append(args.exc_type)
    try:
        del pointer
    finally:
        sys.unraisablehook = hook
    assert told == [AttributeError]
