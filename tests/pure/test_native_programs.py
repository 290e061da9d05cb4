"""Random programs over the runtime's objects do the same with shortcuts as by the definitions alone."""

import itertools

import pytest
from fake_target import FakeTarget, make_default
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridstride import _native, cuda
from gridstride.errors import CUDAError

pytestmark = pytest.mark.skipif(not _native.is_compiled(), reason="the extension is not built")

#: Calls of the target that a program may let fail.
FALLIBLE = (
    "current_device", "set_device", "create_event", "record_event", "wait_event", "destroy_event",
    "allocate_from_pool", "allocate_async", "free_async", "launch_graph",
)  # fmt: skip
SIZES = (1, 512, 513, 2000)


class Told(FakeTarget):
    """Tell of all calls, and let those fail that are asked to."""

    def __init__(self, features):
        super().__init__()
        self.features = frozenset(features)
        self.failing = {}
        self._addresses = itertools.count(1)
        for name in FALLIBLE:
            setattr(self, name, self._told(name, getattr(self, name)))

    def _told(self, name, call):
        def tell(*values):
            self.calls.append((name, *map(int, values)))
            code = self.failing.pop(name, None)
            if code is not None:
                raise CUDAError(f"{name} fails", name="CUDA_ERROR", code=code, call=name)
            return call(*values)

        return tell

    def allocate(self, size, device):  # the same addresses in every program
        self.memory[address := next(self._addresses) << 20] = bytearray(size)
        return address

    def free(self, address, device):
        self.memory.pop(address, None)


class Run:
    """Do the steps of a program, and keep what can be seen of each."""

    def __init__(self, target):
        self.target = target
        self.devices = [cuda.Device(0), cuda.Device(1)]
        self.streams = [
            cuda.Stream(null=True),
            cuda.Stream(ptds=True),
            cuda.Stream(),
            cuda.ExternalStream(77, 1),
        ]
        self.events = [cuda.Event(), cuda.Event(disable_timing=True)]
        self.pools = [cuda.MemoryPool(), cuda.MemoryAsyncPool(), cuda.MemoryAsyncPool("current")]
        self.graphs = [cuda.Graph(), cuda.Graph()]
        self.graphs[0].begin_capture(self.streams[2])
        self.graphs[0].end_capture()
        self.blocks, self.memory, self.seen = [], [], []

    def enter(self, which, _):
        block = [*self.devices, *self.streams][which % 6]
        block.__enter__()
        self.blocks.append(block)

    def leave(self, which, _):
        if self.blocks:
            error = KeyError() if which % 3 == 0 else None
            kind = None if error is None else KeyError
            self.blocks.pop().__exit__(kind, error, None)

    def set_device(self, which, _):
        self.target.set_device(which % 2)

    def current(self, which, _):
        return cuda.get_current_stream(which % 2).ptr, cuda.get_current_stream().ptr

    def create(self, which, _):
        self.events.append(cuda.Event() if which % 2 else cuda.Event(block=True))
        return self.events[-1].ptr, self.events[-1].device_id

    def destroy(self, which, _):
        if len(self.events) > 1:
            self.events.pop(which % len(self.events))

    def record(self, which, other):
        event = self.events[which % len(self.events)]
        try:
            event.record([*self.streams, None, 5][other % 6])
        finally:
            self.seen.append(event._recorded)

    def wait(self, which, other):
        self.streams[which % 4].wait_event(self.events[other % len(self.events)])

    def take(self, which, other):
        pointer = self.pools[which % 3].malloc(SIZES[other % 4])
        self.memory.append(pointer)
        return pointer.ptr, pointer.size, pointer.mem.size, pointer.mem.device_id, pointer.owner

    def drop(self, which, _):
        if self.memory:
            del self.memory[which % len(self.memory)]

    def give_back(self, which, _):
        if self.memory:
            pointer = self.memory.pop(which % len(self.memory))
            self.pools[which % 3].free(pointer)

    def limit(self, which, other):
        self.pools[which % 3].set_limit([0, 10**9][other % 2])

    def numbers(self, which, _):
        pool = self.pools[which % 3]
        return pool.used_bytes(), pool.total_bytes(), pool.get_limit()

    def launch(self, which, other):
        self.graphs[which % 2].launch([*self.streams, None, 5][other % 6])

    def fail(self, which, other):
        self.target.failing[FALLIBLE[which % len(FALLIBLE)]] = (2, 700)[other % 2]

    def do(self, step, which, other):
        try:
            result = getattr(self, step)(which, other)
        except Exception as error:
            result = type(error), str(error)
        self.seen.append((step, result, *self.target.calls))
        self.target.calls.clear()

    def end(self):
        self.target.failing.clear()
        while self.blocks:
            self.do("leave", 1, 0)
        self.do("current", 0, 0)
        self.memory.clear()
        for which in range(3):
            self.do("numbers", which, 0)
        self.events.clear()
        self.seen.append(tuple(self.target.calls))
        return self.seen


STEPS = [name for name in vars(Run) if not name.startswith("_") and name not in ("do", "end")]
PROGRAM = st.lists(
    st.tuples(st.sampled_from(STEPS), st.integers(0, 11), st.integers(0, 11)), min_size=1, max_size=40
)


def outcome(program, features, has_shortcuts):
    before = _native.use_shortcuts(has_shortcuts)
    try:
        with pytest.MonkeyPatch.context() as patch:
            target = Told(features)
            make_default(patch, target)
            run = Run(target)
            target.calls.clear()
            for step in program:
                run.do(*step)
            return run.end()
    finally:
        _native.use_shortcuts(before)


def differences(expected, got):
    """Return the calls that only one of two programs made; how often it asks for the current device is its own."""

    def relevant(seen):
        return [
            tuple(part for part in each if part != ("current_device",)) if isinstance(each, tuple) else each
            for each in seen
        ]

    return [
        (one, other) for one, other in zip(relevant(expected), relevant(got), strict=True) if one != other
    ]


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(PROGRAM, st.sampled_from([(), ("asynchronous",)]))
def test_programs_do_the_same_both_ways(program, features):
    program = [
        step for step in program if step[0] != "fail" or FALLIBLE[step[1] % len(FALLIBLE)] != "current_device"
    ]
    assert not differences(outcome(program, features, False), outcome(program, features, True))


def test_the_comparison_sees_a_difference():
    program = [("record", 0, 4), ("record", 0, 5)]
    expected = outcome(program, (), False)
    assert differences(expected, outcome([("record", 0, 4), ("record", 1, 5)], (), True))


def test_programs_may_switch_between_the_two_ways():
    program = [
        ("enter", 2, 0),
        ("enter", 4, 0),
        ("take", 0, 0),
        ("take", 1, 1),
        ("create", 1, 0),
        ("drop", 0, 0),
    ]
    rest = [
        ("leave", 1, 0),
        ("leave", 1, 0),
        ("take", 0, 0),
        ("destroy", 2, 0),
        ("drop", 0, 0),
        ("drop", 0, 0),
    ]

    def run(first, second):
        before = _native.use_shortcuts(first)
        try:
            with pytest.MonkeyPatch.context() as patch:
                target = Told(())
                make_default(patch, target)
                run = Run(target)
                for step in program:
                    run.do(*step)
                _native.use_shortcuts(second)
                for step in rest:
                    run.do(*step)
                return run.end()
        finally:
            _native.use_shortcuts(before)

    expected = run(False, False)
    assert not differences(expected, run(False, True))
    assert not differences(expected, run(True, False))
