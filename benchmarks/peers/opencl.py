"""PoCL: the same kernels in OpenCL C, on the host's memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyopencl as cl
from workloads import BLOCK, BLOCKS, BODIES, MATRIX, WIDTH, A, Arrays, N

_SOURCE = Path(__file__).parents[1] / "kernels" / "opencl.cl"
_NO_COUNTERPART = frozenset({"shuffle_sum"})  # this PoCL has no sub-groups
_ALL = (BLOCKS * BLOCK,)


def case(name: str, arrays: Arrays) -> Callable[[], object] | None:
    """Return the call for a workload."""
    if name in _NO_COUNTERPART:
        return None
    queue, program = _QUEUE, _PROGRAM
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    buffers = {key: cl.Buffer(queue.context, flags, hostbuf=array) for key, array in arrays.items()}
    n, width = np.int32(N), np.int32(WIDTH)
    extents: tuple[tuple[int, ...], tuple[int, ...], tuple[object, ...]]
    match name:
        case "axpy":
            extents = _ALL, (BLOCK,), (A, buffers["x"], buffers["y"], n)
        case "grid_stride_axpy":
            extents = (64 * BLOCK,), (BLOCK,), (A, buffers["x"], buffers["y"], n)
        case "gray_scott":
            extents = (WIDTH, WIDTH), (32, 8), (*buffers.values(), width, width)
        case "n_body":
            extents = (BODIES,), (BLOCK,), (*buffers.values(), np.int32(BODIES))
        case "matmul":
            extents = (MATRIX, MATRIX), (16, 16), (*buffers.values(), np.int32(MATRIX))
        case "tree_sum":
            extents = _ALL, (BLOCK,), (*buffers.values(), n, cl.LocalMemory(4 * BLOCK))
        case _:
            extents = _ALL, (BLOCK,), (*buffers.values(), n)
    kernel = cl.Kernel(program, name)
    kernel.set_args(*extents[2])

    def run() -> None:
        if name == "histogram":
            arrays["counts"].fill(0)
        cl.enqueue_nd_range_kernel(queue, kernel, extents[0], extents[1])
        queue.finish()

    return run


def _built() -> tuple[cl.CommandQueue, cl.Program]:
    platforms = [each for each in cl.get_platforms() if "Portable" in each.name]
    if not platforms:
        raise ImportError("there is no platform of PoCL")
    context = cl.Context(platforms[0].get_devices())
    try:
        return cl.CommandQueue(context), cl.Program(context, _SOURCE.read_text()).build()
    except cl.RuntimeError as error:  # a processor that is newer than PoCL's compiler
        raise ImportError(str(error).strip().splitlines()[-2]) from error


_QUEUE, _PROGRAM = _built()
