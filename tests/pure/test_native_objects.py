"""The runtime's objects in C: records, shortcuts and what they stand on, compiled and as the stand-in."""

import asyncio
import ctypes
import gc
import inspect
import os
import subprocess
import sys
import threading
import tracemalloc
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
@pytest.mark.parametrize(("mode", "are_on"), [("0", False), ("off", False), ("1", True), ("verify", True)])
def test_the_environment_switches_shortcuts_off(mode, are_on):
    command = [sys.executable, "-c", "from gridstride import _native; print(_native.use_shortcuts(True))"]
    environment = {**os.environ, "GRIDSTRIDE_NATIVE": mode, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == str(are_on)


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


# ---- events ----


def test_events_that_were_never_made_are_no_crash(fake):
    event = cuda.Event.__new__(cuda.Event)
    with pytest.raises(AttributeError):
        event.record(cuda.Stream())
    with pytest.raises(AttributeError):
        cuda.Stream().wait_event(event)
    del event
    gc.collect()
    assert not fake.made("destroy_event")


def test_an_event_that_the_target_refuses_is_not_destroyed(fake):
    fake.create_event = lambda flags: (_ for _ in ()).throw(OSError("no more"))
    for _ in range(2):
        with pytest.raises(OSError, match="no more"):
            cuda.Event()
    gc.collect()
    assert not fake.made("destroy_event")


def test_derived_events_with_their_own_methods(fake):
    class Named(cuda.Event):
        def __init__(self, name):
            super().__init__(disable_timing=True)
            self.name = name

        def record(self, stream=None):
            super().record(stream)
            return self

    class Plain(cuda.Event):
        pass

    assert Named("a").record().name == "a"
    plain = Plain()
    plain.more = 1
    plain.record()
    cuda.Stream().wait_event(plain)
    assert len(fake.made("record_event")) == 2
    assert fake.made("wait_event")[-1][2] == plain.ptr
    del plain
    assert len(fake.made("destroy_event")) == 2


def test_wrong_arguments_get_the_errors_of_the_definitions(fake):
    event, stream, pool, graph = cuda.Event(), cuda.Stream(), cuda.MemoryPool(), cuda.Graph()
    for call in (
        lambda: event.record(1, 2),
        lambda: event.record(other=1),
        lambda: event.record("stream"),
        stream.wait_event,
        lambda: cuda.Event(1, 2, 3, 4),
        lambda: cuda.get_current_stream(1, 2, 3),
        pool.malloc,
        lambda: pool.malloc(1, 2),
        lambda: pool.malloc("1"),
        lambda: pool.malloc(1.5),
        lambda: graph.launch(1, 2),
        lambda: cuda.MemoryAsyncPool().malloc(None),
    ):
        with pytest.raises(TypeError):
            call()
    for call in (lambda: pool.malloc(-1), lambda: cuda.MemoryAsyncPool().malloc(-5)):
        with pytest.raises(ValueError, match="negative"):
            call()
    event.record(stream=stream)
    assert pool.malloc(size=5).size == pool.malloc(True + 4).size == 5
    assert pool.malloc(0).size == 0


@compiled
def test_methods_refuse_other_objects(fake):
    for method, other in (
        (cuda.Event.record, cuda.Stream()),
        (cuda.Stream.wait_event, cuda.Event()),
        (cuda.Device.__enter__, cuda.Event()),
        (cuda.Graph.launch, None),
    ):
        with pytest.raises(TypeError):
            method(other)


# ---- pools ----


def test_blocks_of_several_sizes_come_back_without_the_books(fake):
    pool = cuda.MemoryPool()
    sizes = (100, 1000, 5000, 100, 40_000)
    first = [pool.malloc(size) for size in sizes]
    addresses = sorted(pointer.ptr for pointer in first)
    for _ in range(3):
        del first
        first = [pool.malloc(size) for size in reversed(sizes)]
        assert [pointer.size for pointer in first] == list(reversed(sizes))
        assert sorted(pointer.ptr for pointer in first) == addresses
    assert pool.used_bytes() == sum(pointer.mem.size for pointer in first)
    assert len(fake.memory) == len(sizes)


def test_memory_is_given_back_once(fake):
    for pool in (cuda.MemoryPool(), cuda.MemoryAsyncPool()):
        pointer = pool.malloc(100)
        memory = pointer.mem
        pool.free(pointer)
        with pytest.raises(ValueError, match="given back"):
            pool.free(memory)
        memory.__del__()
        del pointer, memory
        assert pool.used_bytes() == 0


def test_what_a_target_cannot_free_is_told_once(fake):
    pool, told = cuda.MemoryAsyncPool(), []
    pointer = pool.malloc(100)
    fake.free_async = lambda *_: (_ for _ in ()).throw(OSError("gone"))
    hook, sys.unraisablehook = sys.unraisablehook, lambda args: told.append(args.exc_type)
    try:
        del pointer
    finally:
        sys.unraisablehook = hook
    assert told == [OSError]


def test_threads_hammer_both_pools(fake):
    pools = [cuda.MemoryPool(), cuda.MemoryAsyncPool()]
    failures = []

    def use(seed):
        try:
            held = []
            for step in range(400):
                held.append(pools[(step + seed) % 2].malloc(512 * (1 + (seed * step) % 5)))
                if step % 3 == 0:
                    held.pop(step % len(held))
            addresses = [pointer.ptr for pointer in held]
            assert len(set(addresses)) == len(addresses)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    del threads
    gc.collect()
    assert [pool.used_bytes() for pool in pools] == [0, 0]
    pools[0].free_all_blocks()
    assert pools[0].total_bytes() == 0


# ---- all of them ----


def test_the_usual_calls_keep_nothing(fake):
    fake.allocate_from_pool = lambda size, pool, stream: 1 << 40  # which the target keeps no books of
    fake.free_async = fake.record_event = lambda address, stream: None
    stream, event, pools = cuda.Stream(), cuda.Event(), [cuda.MemoryPool(), cuda.MemoryAsyncPool()]
    graph = cuda.Graph()
    graph.begin_capture(stream)
    graph.end_capture()

    def use(times):
        for _ in range(times):
            event.record(stream)
            event.record()
            stream.wait_event(event)
            cuda.Event().record(stream)
            graph.launch(stream)
            graph.launch()
            for pool in pools:
                pool.malloc(1000)
            fake.calls.clear()  # at every turn: Python keeps some thousand tuples for later

    use(10)
    gc.collect()
    counted = (fake, stream, event, graph, *pools)
    before = [sys.getrefcount(each) for each in counted]
    tracemalloc.start()
    try:
        use(10)
        size = tracemalloc.get_traced_memory()[0]
        use(300)
        grown = tracemalloc.get_traced_memory()[0] - size
    finally:
        tracemalloc.stop()
    gc.collect()
    assert [sys.getrefcount(each) for each in counted] == before
    assert grown < 3000


@compiled
def test_fields_that_somebody_broke_are_no_crash(fake):
    stream, device, pool = cuda.Stream(), cuda.Device(0), cuda.MemoryPool()
    for one in (stream, device):
        entries = one._entries
        one._entries = 5
        with pytest.raises(AttributeError):
            one.__enter__()
        with pytest.raises(AttributeError):
            one.__exit__(None, None, None)
        one._entries = entries
    stream._entries.push("no")
    with pytest.raises(ValueError, match="unpack"):
        stream.__exit__(None, None, None)
    pointer = pool.malloc(10)
    pointer.mem._block, block = "no block", pointer.mem._block
    del pointer
    assert pool._devices[0].returned == ["no block"]
    pool._devices[0].returned[:] = [block]
    assert pool.malloc(10).mem.size == 512
    del pool.target
    try:
        with pytest.raises(AttributeError):
            pool.malloc(10)
    finally:
        pool.target = fake
