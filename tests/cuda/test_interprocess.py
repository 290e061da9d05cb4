"""Memory and events of other processes: against the stub, and between real processes on a device."""

import subprocess
import sys

import numpy as np
import pytest

from gridstride import cuda as gs_cuda
from gridstride._runtime.event import Event
from gridstride._runtime.interprocess import InterprocessMemory
from gridstride._runtime.memory import ManagedMemory, Memory, MemoryAsync
from gridstride._runtime.pointer import MemoryPointer
from gridstride.targets import registry

SIZE = 4 << 20

#: Adds one to memory of its parent once the parent's event allows it, and records an event of its own.
CHILD = """
import sys
import gridstride as gs
from gridstride import cuda
handle, ready, size = bytes.fromhex(sys.argv[1]), bytes.fromhex(sys.argv[2]), int(sys.argv[3])
increase = gs.RawKernel(
    'extern "C" __global__ void increase(int* x, int n)'
    '{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += 1; }', "increase")
event, memory = cuda.Event.open_handle(ready), cuda.InterprocessMemory(handle, size)
stream = cuda.Stream()
stream.wait_event(event)
increase(size // 1024, 256, (cuda.MemoryPointer(memory, 0), size // 4), stream=stream)
stream.synchronize()
del memory, event
print("done")
"""


def test_an_event(cuda, stub):
    event = Event(disable_timing=True, interprocess=True, target=cuda)
    assert stub.calls("cuEventCreate")[0]["flags"] == 2 | 4
    opened = Event.open_handle(event.ipc_handle, target=cuda)
    opened.synchronize()
    assert len(event.ipc_handle) == 64


def test_memory(cuda, stub):
    memory = Memory(8, target=cuda)
    opened = InterprocessMemory(memory.ipc_handle, 8, target=cuda)
    assert (opened.ptr, opened.size, opened.device_id) == (memory.ptr, 8, 0)
    assert stub.calls("cuIpcOpenMemHandle_v2")[0]["flags"] == 1
    MemoryPointer(opened, 0).memset(7)
    del opened
    assert stub.calls("cuIpcCloseMemHandle")[0]["address"] == memory.ptr


def test_memory_that_did_not_open_is_not_closed(cuda, stub):
    with pytest.raises(ValueError, match=r"has 64 bytes, got 63: pass its `ipc_handle`"):
        InterprocessMemory(bytes(63), 8, target=cuda)
    with pytest.raises(ValueError, match="has 64 bytes, got 0"):
        Event.open_handle(b"", target=cuda)
    assert not {"cuIpcOpenMemHandle_v2", "cuIpcCloseMemHandle", "cuIpcOpenEventHandle"} & set(stub.names())


@pytest.mark.parametrize("kind", [ManagedMemory, MemoryAsync])
def test_what_cannot_be_shared_says_so(cuda, stub, kind):
    with pytest.raises(NotImplementedError, match=rf"{kind.__name__} cannot be opened .*Memory\(8\)"):
        kind(8, target=cuda).ipc_handle  # noqa: B018
    assert "cuIpcGetMemHandle" not in stub.names()


@pytest.mark.gpu
def test_another_process_works_on_our_memory():
    registry.get("cuda")
    memory, stream = gs_cuda.Memory(SIZE), gs_cuda.Stream()
    pointer, values = gs_cuda.MemoryPointer(memory, 0), np.arange(SIZE // 4, dtype=np.int32)
    ready = gs_cuda.Event(disable_timing=True, interprocess=True)
    pointer.copy_from_host_async(values, stream=stream)
    ready.record(stream)
    child = subprocess.run(
        [sys.executable, "-c", CHILD, memory.ipc_handle.hex(), ready.ipc_handle.hex(), str(SIZE)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (child.stdout, child.stderr, child.returncode) == ("done\n", "", 0)
    seen = np.empty_like(values)
    pointer.copy_to_host(seen)
    np.testing.assert_array_equal(seen, values + 1)
