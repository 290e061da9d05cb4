"""A pool driven by random programs keeps its books right, hands out no byte twice, and loses none."""

import itertools

import pytest
from fake_target import SmallTarget
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from gridstride import _native, cuda
from gridstride._runtime import tracking
from gridstride.errors import OutOfMemoryError
from tests.long_runs import count_step, in_parts, share, until_steps

UNIT = 512
CAPACITY = 256 * UNIT
STREAMS = (0, 5, 6)


class PoolProgram(RuleBasedStateMachine):
    """Compare a pool with a list of what is in use."""

    @initialize(
        is_asynchronous=st.booleans(),
        limit=st.sampled_from([0, 120 * UNIT, 200 * UNIT]),
        is_fast=st.booleans(),
    )
    def start(self, is_asynchronous, limit, is_fast):
        self.was_fast = _native.use_shortcuts(is_fast)
        self.target = SmallTarget(CAPACITY, features={"asynchronous"} if is_asynchronous else ())
        self.pool = cuda.MemoryPool(target=self.target)
        self.pool.set_limit(limit)
        self.bound = limit or CAPACITY
        self.held = []

    @rule(size=st.integers(1, 24 * UNIT), stream=st.sampled_from(STREAMS))
    def take(self, size, stream):
        before = self.pool.used_bytes()
        try:
            with cuda.ExternalStream(stream, target=self.target):
                pointer = self.pool.malloc(size)
        except OutOfMemoryError:
            # What is in use, and free blocks beside it, are all that may keep a pool from growing.
            assert self.pool.used_bytes() == before
            assert self.pool.fragmentation().releasable_bytes == 0
            assert self.pool.total_bytes() + -(-size // UNIT) * UNIT > self.bound
            return
        assert pointer.size == size <= pointer.mem.size
        self.held.append(pointer)

    @rule(which=st.integers(0, 1000))
    def drop(self, which):
        if self.held:
            self.held.pop(which % len(self.held))

    @rule(which=st.integers(0, 1000))
    def give_back(self, which):
        if self.held:
            self.pool.free(self.held.pop(which % len(self.held)))

    @rule()
    def release(self):
        self.pool.free_all_blocks()
        assert self.pool.fragmentation().releasable_bytes == 0

    @rule(stream=st.sampled_from(STREAMS[1:]), is_done=st.booleans())
    def destroy(self, stream, is_done):
        self.target.unfinished = set() if is_done else set(range(10**6))
        tracking.destroy_stream(self.target, 0, stream)

    @invariant()
    def books_are_right(self):
        count_step(PoolProgram)
        if not hasattr(self, "pool"):
            return
        used = sum(pointer.mem.size for pointer in self.held)
        assert self.pool.used_bytes() == used
        assert self.pool.total_bytes() == sum(map(len, self.target.memory.values())) <= self.bound
        assert self.pool.free_bytes() == self.pool.total_bytes() - used
        report = self.pool.fragmentation()
        assert report.segments == len(self.target.memory)
        assert report.largest_free <= report.free_bytes
        ranges = sorted((pointer.mem.ptr, pointer.mem.ptr + pointer.mem.size) for pointer in self.held)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ranges))

    def teardown(self):
        if hasattr(self, "pool"):
            _native.use_shortcuts(self.was_fast)
            self.held.clear()
            self.pool.free_all_blocks()
            assert self.pool.total_bytes() == self.pool.used_bytes() == self.pool.n_free_blocks() == 0
            assert not self.target.memory


def run(examples, steps, *, derandomize=True):
    run_state_machine_as_test(
        PoolProgram,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=derandomize,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_random_programs():
    run(examples=25, steps=30)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@in_parts
def test_many_random_programs(part):
    for _ in until_steps(PoolProgram, share(20_000)):
        run(examples=5, steps=100, derandomize=False)
