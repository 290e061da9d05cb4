"""The runtime's objects in C: records, shortcuts and what they stand on, compiled and as the stand-in."""

import asyncio
import ctypes
import gc
import inspect
import sys
import threading
import weakref

import pytest
from fake_target import FakeTarget, make_default

from gridstride import _native, cuda
from gridstride._native import stand_in
from gridstride.targets import registry

compiled = pytest.mark.skipif(not _native.is_compiled(), reason="the extension is not built")
EITHER = pytest.mark.parametrize("surface", [_native, stand_in], ids=["compiled", "stand-in"])


@pytest.fixture
def fake(monkeypatch):
    target = FakeTarget()
    make_default(monkeypatch, target)
    return target


# ---- shortcuts ----


@compiled
def test_a_shortcut_shows_what_its_definition_says():
    definition = _native.definition_of("BaseStream.__enter__")
    assert inspect.isfunction(definition)
    assert inspect.isfunction(_native.definition_of("get_current_stream"))
    assert cuda.get_current_stream.__doc__ == _native.definition_of("get_current_stream").__doc__
    with pytest.raises(KeyError, match="there is no shortcut for nothing"):
        _native.definition_of("nothing")
    with pytest.raises(KeyError, match="there is no shortcut for"):
        _native.shortcut(lambda: None)


def test_without_the_extension_a_definition_is_its_own_shortcut():
    def f():
        pass

    assert stand_in.shortcut(f) is f
    assert stand_in.use_shortcuts(True) is False
    with pytest.raises(KeyError, match="there is no shortcut for f"):
        stand_in.definition_of("f")


@compiled
def test_the_setting_switches_shortcuts_off(fake):
    before = _native.use_shortcuts(False)
    try:
        asked = []
        fake.current_device = lambda: asked.append(1) or 0
        with cuda.Stream():
            cuda.get_current_stream()
        assert len(asked) > 1
    finally:
        assert _native.use_shortcuts(before) is False


@compiled
@pytest.mark.parametrize("kind", [cuda.Device, cuda.Stream, cuda.ExternalStream])
def test_an_object_that_was_never_made_is_no_crash(kind):
    empty = kind.__new__(kind)
    with pytest.raises(AttributeError):
        empty.__enter__()
    with pytest.raises(AttributeError):
        empty.__exit__(None, None, None)
    with pytest.raises(AttributeError):
        _ = empty.target


def test_leaving_what_was_not_entered_is_an_error(fake):
    for one in (cuda.Device(0), cuda.Stream()):
        with pytest.raises(RuntimeError, match="not inside a block"):
            one.__exit__(None, None, None)


def test_methods_of_derived_classes_come_first(fake):
    told = []

    class Told(cuda.Stream):
        def __enter__(self):
            told.append("enter")
            return super().__enter__()

        def __exit__(self, *how):
            told.append("exit")
            return super().__exit__(*how)

    with Told() as stream:
        assert cuda.get_current_stream() is stream
    assert told == ["enter", "exit"]
    assert cuda.get_current_stream() == cuda.Stream.null


# ---- the default target ----


def test_the_default_target_follows_the_environment(monkeypatch):
    one, other = FakeTarget(), FakeTarget()
    other.name = "other"
    make_default(monkeypatch, other)
    make_default(monkeypatch, one)
    for _ in range(2):
        monkeypatch.setenv("GRIDSTRIDE_TARGET", "other")
        assert registry.default() is registry.default() is other
        assert cuda.get_current_stream().target is other
        monkeypatch.setenv("GRIDSTRIDE_TARGET", "fake")
        assert registry.default() is registry.default() is one
        assert cuda.get_current_stream().target is one


def test_the_default_target_follows_blocks_and_their_contexts(fake, monkeypatch):
    other = FakeTarget()
    other.name = "other"
    monkeypatch.setitem(registry._targets, "other", other)

    async def choose():
        seen = []
        go = asyncio.Event()

        async def wait():
            await go.wait()
            seen.append(registry.default())

        with registry.use_target("other"):
            assert registry.default() is other
            assert cuda.get_current_stream().target is other
            inside = asyncio.create_task(wait())
        assert registry.default() is registry.default() is fake
        go.set()
        await inside  # its context is a copy of that of the block, which has ended
        assert seen == [other]
        assert registry.default() is fake

    asyncio.run(choose())


def test_forgotten_targets_are_asked_for_again(fake, monkeypatch):
    assert registry.default() is registry.default() is fake
    another = FakeTarget()
    monkeypatch.setattr(registry, "_targets", {"fake": another})
    monkeypatch.setattr(registry, "_found", {})
    assert registry.default() is another


# ---- entries ----


@EITHER
def test_entries_come_back_in_reverse_for_each_thread(surface):
    entries = surface.Entries()
    entries.push("a")
    entries.push("b")
    failures = []

    def use():
        entries.push("c")
        for number in range(100):
            entries.push(number)
        got = [entries.pop() for _ in range(101)]
        if got != [*range(99, -1, -1), "c"]:
            failures.append(got)
        with pytest.raises(RuntimeError, match="not inside a block"):
            entries.pop()

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [entries.pop(), entries.pop()] == ["b", "a"]
    with pytest.raises(RuntimeError, match="not inside a block"):
        entries.pop()


@compiled
def test_entries_and_records_in_cycles_are_collected(fake):
    class Value:
        pass

    stream, device, value = cuda.Stream(), cuda.Device(0), Value()
    stream.itself, value.device = stream, device
    stream._entries.push((stream, value))
    device._entries.push(value)
    gone = weakref.ref(stream), weakref.ref(value)
    del stream, device, value
    gc.collect()
    assert [each() for each in gone] == [None, None]


# ---- contexts ----

Get = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))
Set = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class FakeDriver:
    """Keep a current context, and count how often another one is made current."""

    def __init__(self):
        self.context, self.switches, self.code = 0, 0, 0
        self.functions = Get(self.get), Set(self.set)
        self.addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in self.functions]

    def get(self, place):
        place[0] = self.context
        return 0

    def set(self, context):
        if not self.code:
            self.context = context or 0
            self.switches += 1
        return self.code


@EITHER
def test_known_contexts_need_no_python(surface):
    driver = FakeDriver()
    contexts = surface.Contexts(*driver.addresses, pytest.fail, pytest.fail)
    contexts.know(0, 0x100)
    contexts.know(3, 0x300)
    for device, context in ((3, 0x300), (0, 0x100), (3, 0x300)):
        assert contexts.set_device(device) is None
        assert (driver.context, contexts.current_device()) == (context, device)
    assert driver.switches == 3
    contexts.set_device(3)
    assert driver.switches == 3


@EITHER
def test_unknown_contexts_and_refusals_go_to_python(surface):
    driver, entered = FakeDriver(), []

    def enter(device):
        entered.append(device)
        if device == 9:
            raise KeyError(device)

    contexts = surface.Contexts(*driver.addresses, lambda: 7, enter)
    contexts.know(1, 0x100)
    assert contexts.current_device() == 7  # none is current
    driver.context = 0x999
    assert contexts.current_device() == 7
    for device in (0, -1, 2, 10**30):
        contexts.set_device(device)
    driver.code = 3
    contexts.set_device(1)
    with pytest.raises(KeyError, match="9"):
        contexts.set_device(9)
    assert entered == [0, -1, 2, 10**30, 1, 9]
    assert driver.context == 0x999


# ---- streams ----


def test_threads_that_end_let_go_of_their_streams(fake):
    gone = []

    def use():
        stream = cuda.Stream()
        stream.use()
        assert cuda.get_current_stream() is stream
        gone.append(weakref.ref(stream))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    del thread
    gc.collect()
    assert gone[0]() is None
    assert cuda.get_current_stream() == cuda.Stream.null


def test_a_default_stream_stands_for_the_current_device(fake):
    null, stream = cuda.Stream(null=True), cuda.Stream()
    with stream, null:
        assert cuda.get_current_stream() is null
        with cuda.Device(1):
            assert cuda.get_current_stream() is not null
    with cuda.Device(1), null:
        fake.set_device(0)
        assert cuda.get_current_stream() is not null
        fake.set_device(1)
        assert cuda.get_current_stream() is null
    assert cuda.get_current_stream() is cuda.Stream.null


def test_failures_of_a_target_leave_what_was_current(fake):
    def fail(*_):
        raise OSError("gone")

    device, ask, switch = cuda.Device(1), fake.current_device, fake.set_device
    fake.current_device = fail
    with pytest.raises(OSError, match="gone"):
        device.__enter__()
    with cuda.ExternalStream(5, 0, target=fake), pytest.raises(OSError, match="gone"):
        cuda.get_current_stream()
    fake.current_device, fake.set_device = ask, fail
    with pytest.raises(OSError, match="gone"):
        device.__enter__()
    with pytest.raises(OSError, match="gone"), cuda.Device(0):
        pass
    fake.set_device = switch
    with device:
        assert fake.current_device() == 1
    assert fake.current_device() == 0
    assert cuda.get_current_stream() == cuda.Stream.null


def test_blocks_keep_no_references(fake):
    stream, device = cuda.Stream(), cuda.Device(1)
    counted = stream, device, fake

    def use(times):
        for _ in range(times):
            with device, stream:
                assert cuda.get_current_stream(0) is stream
            cuda.get_current_stream()
            with pytest.raises(KeyError), stream:
                raise KeyError

    use(2)  # the target is a key of what is remembered
    before = [sys.getrefcount(each) for each in counted]
    use(1000)
    assert [sys.getrefcount(each) for each in counted] == before
