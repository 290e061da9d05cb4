"""Random programs over streams, events and graphs give what the same steps give one after the other.

The machine issues steps to several streams of two devices. Where the stream order checker refuses a
step, the machine orders it behind the other streams and issues it again; the checker must let it pass
then. In deferred mode an order that the checker wrongly thinks is there shows as a wrong value.
"""

import gc
import random
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import gridstride as gs
from gridstride._runtime import tracking
from gridstride._runtime.device import Device
from gridstride._runtime.event import Event
from gridstride._runtime.graph import Graph
from gridstride._runtime.memory import Memory
from gridstride._runtime.order import StreamOrderChecker
from gridstride._runtime.pointer import MemoryPointer
from gridstride._runtime.stream import Stream
from gridstride.errors import StreamOrderError
from gridstride.targets import registry
from gridstride.targets.null import NullTarget
from tests.long_runs import count_step, in_parts, share, until_steps

SIZE, BUFFERS, DEVICES = 8, 4, 2
ADD = gs.RawKernel(
    'extern "C" __global__ void add(unsigned char* x, const unsigned char* y) { x[threadIdx.x] += y[threadIdx.x]; }',
    "add",
)
buffers = st.integers(0, BUFFERS - 1)
numbers = st.integers(0, 100)
values = st.integers(0, 255)


class Streams(RuleBasedStateMachine):
    """Drive a target; `contents` holds what its buffers must come to."""

    devices = DEVICES

    def make_target(self):
        return NullTarget()

    @initialize(seed=st.none() | st.integers(1, 1000))
    def start(self, seed):
        self.target = self.make_target()
        self.begin(seed)
        self.checker = StreamOrderChecker()
        tracking.watch(self.checker)
        self.contents = np.zeros((BUFFERS, SIZE), np.uint8)
        self.memory = []
        for number in range(BUFFERS):
            with Device(number % self.devices, target=self.target):
                self.memory.append(MemoryPointer(Memory(SIZE, target=self.target), 0))
                self.memory[-1].memset(0)
        self.streams = [Stream(null=True, target=self.target)]
        self.events = []
        self.graphs = []
        self.add_stream(0, False)
        self.add_stream(self.devices - 1, True)

    def begin(self, seed):
        """Prepare the target."""

    def end(self):
        """Undo `begin`."""

    def teardown(self):
        if not hasattr(self, "checker"):
            return
        if sys.exc_info()[0] is None:
            self.compare()
        tracking.unwatch(self.checker)
        self.end()

    # steps: what they do to the target, and to the model

    def fill(self, stream, buffer, value):
        self.memory[buffer].memset_async(value, stream=stream)

    def copy(self, stream, buffer, other):
        self.memory[buffer].copy_from_device_async(self.memory[other], stream=stream)

    def add(self, stream, buffer, other):
        self.copy(stream, buffer, other)

    def beside(self, buffer, other):
        """Return the other buffer, or its neighbor on the first one's device: a kernel takes no memory of two."""
        return other - (other - buffer) % self.devices

    def model(self, step, buffer, operand):
        if step == "fill":
            self.contents[buffer] = operand
        elif step == "add" and self.add.__func__ is not Streams.add:
            self.contents[buffer] += self.contents[self.beside(buffer, operand)]
        else:
            self.contents[buffer] = self.contents[operand]

    def issue(self, step, stream, buffer, operand):
        try:
            getattr(self, step)(stream, buffer, operand)
        except StreamOrderError:
            self.order_behind_all(stream, self.memory[buffer].device)
            getattr(self, step)(stream, buffer, operand)

    def order_behind_all(self, stream, device):
        events = []
        for number in range(self.devices):  # each has a default stream of its own
            with Device(number, target=self.target):
                events += [other.record() for other in self.streams]
        with device:
            for event in events:
                stream.wait_event(event)

    def stream(self, number):
        return self.streams[number % len(self.streams)]

    # rules

    @rule(device=st.integers(0, DEVICES - 1), non_blocking=st.booleans())
    def add_stream(self, device, non_blocking):
        if len(self.streams) < 7:
            with Device(device % self.devices, target=self.target):
                self.streams.append(Stream(non_blocking=non_blocking, target=self.target))

    @precondition(lambda self: len(self.streams) > 3)
    @rule(number=numbers)
    def drop_stream(self, number):
        stream = self.streams.pop(1 + number % (len(self.streams) - 1))
        self.streams[0].wait_event(stream.record())  # else nobody could order anything behind its work

    @rule(number=numbers, buffer=buffers, value=values)
    def issue_fill(self, number, buffer, value):
        self.issue("fill", self.stream(number), buffer, value)
        self.model("fill", buffer, value)

    @rule(number=numbers, buffer=buffers, other=buffers, step=st.sampled_from(["copy", "add"]))
    def issue_copy(self, number, buffer, other, step):
        self.issue(step, self.stream(number), buffer, other)
        self.model(step, buffer, other)

    @rule(number=numbers)
    def record(self, number):
        if len(self.events) < 5:
            self.events.append(Event(target=self.target))
        stream = self.stream(number)
        event = self.events[number % len(self.events)]
        if event.device_id == stream.device_id:
            event.record(stream)

    @precondition(lambda self: self.events)
    @rule(number=numbers, which=numbers)
    def wait(self, number, which):
        self.stream(number).wait_event(self.events[which % len(self.events)])

    @rule(number=numbers, how=st.sampled_from(["synchronize", "done", "event", "device"]))
    def synchronize(self, number, how):
        stream = self.stream(number)
        if how == "synchronize":
            stream.synchronize()
        elif how == "done":
            stream.done  # noqa: B018
        elif how == "event":
            stream.record().synchronize()
        else:
            Device(number % self.devices, target=self.target).synchronize()

    @rule(
        number=numbers,
        joined=st.booleans(),
        steps=st.lists(st.tuples(st.sampled_from(["fill", "copy", "add"]), buffers, buffers), max_size=6),
        fails=st.booleans(),
    )
    def capture(self, number, joined, steps, fails):
        streams = [Stream(non_blocking=True, target=self.target) for _ in range(1 + joined)]
        graph, issued = Graph(target=self.target), []
        try:
            with streams[0], graph:
                if joined:
                    streams[1].wait_event(streams[0].record())
                for step, buffer, operand in steps:
                    stream = streams[len(issued) % len(streams)]
                    try:
                        getattr(self, step)(stream, buffer, operand)
                    except StreamOrderError:
                        stream.wait_event(streams[len(issued) % len(streams) - 1].record())
                        getattr(self, step)(stream, buffer, operand)
                    issued.append((step, buffer, operand))
                if joined:
                    streams[0].wait_event(streams[1].record())
                if fails:
                    raise KeyError
        except KeyError:
            assert not any(stream.is_capturing() for stream in streams)
            return
        self.graphs = [*self.graphs[-2:], (graph, issued)]

    @precondition(lambda self: self.graphs)
    @rule(number=numbers, which=numbers)
    def launch(self, number, which):
        graph, steps = self.graphs[which % len(self.graphs)]
        stream = self.stream(number)
        try:
            graph.launch(stream)
        except StreamOrderError:
            self.order_behind_all(stream, Device(0, target=self.target))
            graph.launch(stream)
        for step in steps:
            self.model(*step)

    @rule()
    def compare(self):
        for number in range(self.devices):
            Device(number, target=self.target).synchronize()

    @invariant()
    def no_capture_goes_on(self):
        count_step(type(self))
        if hasattr(self, "streams"):
            assert not any(stream.is_capturing() for stream in self.streams)


class StreamsOfNull(Streams):
    """The books alone: the null target runs nothing."""

    devices = 1

    def teardown(self):
        super().teardown()
        if hasattr(self, "target") and sys.exc_info()[0] is None:
            target = self.target
            self.__dict__.clear()
            gc.collect()
            made = [call[0] for call in target.calls]
            assert made.count("instantiate") == made.count("destroy_executable")
            assert made.count("begin_capture") == made.count("end_capture") == made.count("destroy_graph")
            assert made.count("allocate") == made.count("free")
            assert not target._captures


class StreamsOfCpu(Streams):
    """Values too, at once and deferred."""

    def make_target(self):
        return registry.get("cpu")

    def begin(self, seed):
        self.mode_before = self.target.defer(seed)
        self.alive_before = self.alive()

    def end(self):
        target, before, alive = self.target, self.mode_before, self.alive_before
        target.defer(before)
        self.__dict__.clear()
        gc.collect()
        self.target = target
        if sys.exc_info()[0] is None:
            assert self.alive() == alive

    def alive(self):
        gc.collect()
        target = self.target
        known = (
            target._events,
            target._graphs,
            target._executables,
            target._queues._streams,
            target._memory._sizes,
        )
        return [len(each) for each in known]

    def add(self, stream, buffer, other):
        memory = self.memory[buffer]
        with memory.device:
            ADD(1, SIZE, (memory, self.memory[self.beside(buffer, other)]), stream=stream)

    @rule()
    def compare(self):
        super().compare()
        found = []
        for pointer in self.memory:
            out = np.empty(SIZE, np.uint8)
            pointer.copy_to_host(out)
            found.append(out)
        np.testing.assert_array_equal(found, self.contents)


MACHINES = [StreamsOfNull, StreamsOfCpu]


def run(machine, examples, steps, *, derandomize=True):
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=derandomize,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.fixture(autouse=True)
def _two_devices(monkeypatch):
    monkeypatch.setenv("GRIDSTRIDE_CPU_DEVICES", str(DEVICES))


@pytest.mark.parametrize("machine", MACHINES)
def test_random_programs(machine):
    run(machine, examples=25, steps=40)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@in_parts
@pytest.mark.parametrize("machine", MACHINES)
def test_many_random_programs(machine, part):
    for _ in until_steps(machine, share(20_000)):
        run(machine, examples=5, steps=100, derandomize=False)


def test_the_programs_would_find_a_missing_order(monkeypatch):
    """A checker that sees nothing lets programs through that go wrong, and the machine notices."""

    class Blind(StreamOrderChecker):
        def issuing(self, work):
            pass

    monkeypatch.setattr(f"{__name__}.StreamOrderChecker", Blind)
    random.seed(0)
    with pytest.raises(AssertionError):
        run(StreamsOfCpu, examples=99, steps=40)
    registry.get("cpu").defer(None)
