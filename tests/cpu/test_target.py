"""Devices, memory, streams and events of the CPU target."""

from __future__ import annotations

import ctypes
import os
import threading
from functools import partial

import pytest

from gridstride.cuda import Device
from gridstride.errors import CUDAError
from gridstride.targets.base import CopyDirection, EventFlags
from gridstride.targets.cpu import host
from gridstride.targets.cpu.target import CpuTarget


@pytest.fixture
def cpu_target() -> CpuTarget:
    """A target of the test's own, with no streams, events or memory yet."""
    return CpuTarget()


def _name_of(error: pytest.ExceptionInfo[CUDAError]) -> str:
    return error.value.name


def test_the_numbers_are_those_of_a_device(cpu_target: CpuTarget) -> None:
    limits = cpu_target.limits(0)
    assert (limits.warp_size, limits.max_threads_per_block) == (32, 1024)
    assert limits.max_grid == (2**31 - 1, 65535, 65535)
    assert limits.shared_memory_per_block == 49152 < limits.shared_memory_per_block_optin == 232448
    assert limits.multiprocessors == limits.attributes["MultiProcessorCount"] == cpu_target.num_threads()
    assert limits.total_memory == cpu_target.memory_info(0)[1] > 2**26
    assert limits.compute_capability == "9.0"


def test_devices_are_counted_and_current_by_thread(
    cpu_target: CpuTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRIDSTRIDE_CPU_DEVICES", "2")
    assert cpu_target.device_count() == 2
    cpu_target.set_device(1)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(cpu_target.current_device()))
    thread.start()
    thread.join()
    assert (cpu_target.current_device(), seen) == (1, [0])
    with pytest.raises(CUDAError, match="GRIDSTRIDE_CPU_DEVICES=3") as caught:
        cpu_target.set_device(2)
    assert _name_of(caught) == "CUDA_ERROR_INVALID_DEVICE"
    assert cpu_target.current_device() == 1


@pytest.mark.parametrize(("device", "needed"), [(-1, 2), (1, 2), (4, 5)])
def test_a_missing_device_is_told_with_what_shows_it(cpu_target: CpuTarget, device: int, needed: int) -> None:
    for call in (cpu_target.set_device, partial(Device, target=cpu_target)):
        with pytest.raises(CUDAError, match=f"GRIDSTRIDE_CPU_DEVICES={needed} makes more"):
            call(device)


def test_memory_outlives_the_showing_of_its_device(
    cpu_target: CpuTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRIDSTRIDE_CPU_DEVICES", "2")
    address = cpu_target.allocate(8, 1)
    monkeypatch.delenv("GRIDSTRIDE_CPU_DEVICES")
    cpu_target.free(address, 1)
    with pytest.raises(CUDAError):
        cpu_target.free(address, 1)


def test_memory_is_aligned_filled_and_copied(cpu_target: CpuTarget) -> None:
    first, second = cpu_target.allocate(1000, 0), cpu_target.allocate(1000, 0)
    assert first % 256 == second % 256 == 0
    cpu_target.fill(first, 7, 1000, None)
    cpu_target.copy(second, first, 1000, CopyDirection.DEVICE_TO_DEVICE, 0)
    assert ctypes.string_at(second, 1000) == b"\7" * 1000
    host_buffer = ctypes.create_string_buffer(bytes(range(100)), 100)
    address = ctypes.addressof(host_buffer)
    cpu_target.copy(address + 10, address, 50, CopyDirection.HOST_TO_DEVICE, None)
    assert host_buffer.raw[10:60] == bytes(range(50)), "overlapping ranges"
    cpu_target.free(first, 0)
    cpu_target.free(second, 0)


def test_no_memory_is_address_zero(cpu_target: CpuTarget) -> None:
    assert cpu_target.allocate(0, 0) == 0
    cpu_target.free(0, 0)
    cpu_target.copy(0, 0, 0, CopyDirection.DEVICE_TO_DEVICE, None)
    cpu_target.fill(0, 1, 0, None)


def test_memory_that_is_not_there_is_an_error(cpu_target: CpuTarget) -> None:
    with pytest.raises(CUDAError, match=str(1 << 60)) as caught:
        cpu_target.allocate(1 << 60, 0)
    assert _name_of(caught) == "CUDA_ERROR_OUT_OF_MEMORY"


def test_memory_is_freed_once(cpu_target: CpuTarget) -> None:
    address = cpu_target.allocate(16, 0)
    cpu_target.free(address, 0)
    for wrong in (address, 12345):
        with pytest.raises(CUDAError, match=hex(wrong)) as caught:
            cpu_target.free(wrong, 0)
        assert _name_of(caught) == "CUDA_ERROR_INVALID_VALUE"


def test_streams_are_known_until_destroyed(cpu_target: CpuTarget) -> None:
    stream = cpu_target.create_stream(non_blocking=True)
    assert cpu_target.stream_done(stream)
    cpu_target.synchronize_stream(stream)
    cpu_target.destroy_stream(stream)
    for use in (cpu_target.synchronize_stream, cpu_target.stream_done, cpu_target.destroy_stream):
        with pytest.raises(CUDAError, match="is no stream") as caught:
            use(stream)
        assert _name_of(caught) == "CUDA_ERROR_INVALID_HANDLE"
    with pytest.raises(CUDAError, match="is no stream"):
        cpu_target.fill(0, 0, 0, stream)


def test_the_standing_streams_need_no_creation(cpu_target: CpuTarget) -> None:
    assert all(cpu_target.stream_done(handle) for handle in (0, 1, 2))


def test_events_carry_times(cpu_target: CpuTarget) -> None:
    start, end = (cpu_target.create_event(0) for _ in range(2))
    stream = cpu_target.create_stream(non_blocking=False)
    cpu_target.record_event(start, 0)
    cpu_target.record_event(end, stream)
    cpu_target.wait_event(stream, start)
    cpu_target.synchronize_event(end)
    assert cpu_target.event_done(end)
    assert 0 <= cpu_target.elapsed(start, end) == -cpu_target.elapsed(end, start)


def test_times_that_do_not_exist_are_errors(cpu_target: CpuTarget) -> None:
    recorded, never, untimed = (cpu_target.create_event(flags) for flags in (0, 0, EventFlags.NO_TIMING))
    for event in (recorded, untimed):
        cpu_target.record_event(event, 0)
    with pytest.raises(CUDAError, match="end event was never recorded"):
        cpu_target.elapsed(recorded, never)
    with pytest.raises(CUDAError, match="start event was created without timing"):
        cpu_target.elapsed(untimed, recorded)
    cpu_target.destroy_event(never)
    with pytest.raises(CUDAError, match="is no event"):
        cpu_target.record_event(never, 0)


def test_the_number_of_threads_is_set_and_checked(cpu_target: CpuTarget) -> None:
    before = cpu_target.num_threads()
    try:
        cpu_target.set_num_threads(3)
        assert cpu_target.num_threads() == cpu_target.limits(0).multiprocessors == 3
        with pytest.raises(ValueError, match="at least 1, got 0"):
            cpu_target.set_num_threads(0)
    finally:
        cpu_target.set_num_threads(before)


def test_processors_are_those_this_process_may_use() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert host.usable_processors() == 1
    finally:
        os.sched_setaffinity(0, before)


def test_the_container_limits_memory_and_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/proc/meminfo": "MemTotal: 8000 kB\nMemAvailable: 6000 kB\n",
        "/sys/fs/cgroup/memory.max": "4096000\n",
        "/sys/fs/cgroup/memory.current": "1000000\n",
        "/sys/fs/cgroup/cpu.max": "150000 100000\n",
    }
    monkeypatch.setattr(host, "_read", lambda path, size=-1: files.get(path, ""))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    assert host.memory_info() == (3096000, 4096000)
    assert host.usable_processors() == 2


def test_code_for_other_devices_is_refused_with_the_remedy(cpu_target: CpuTarget) -> None:
    with pytest.raises(NotImplementedError, match=r"kernels\.cubin: .* source"):
        cpu_target.adopt(b"\x7fELF", "kernels.cubin")
