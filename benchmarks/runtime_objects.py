"""Host cost of the runtime's objects on a GPU, beside CuPy's and, for graphs, the driver's own."""

from __future__ import annotations

import ctypes
import gc
import itertools
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy
from measure import save, table

import gridstride as gs

BURST, ROUNDS = 300, 31
SIZE = 64 << 10
#: Microseconds; of the stream switch: over CuPy's own; of the graph: times the driver's floor.
GOALS = {
    "pool malloc + free": 1.0,
    "asynchronous pool malloc + free": 2.0,
    "event record": 0.5,
    "event create": 0.9,
    "event wait": 0.5,
    "with stream": 0.5,
    "with device": 0.5,
    "current stream": 0.1,
    "graph launch of 10 kernels": 1.1,
}

CODE = r"""
extern "C" __global__ void step(float* x) { x[threadIdx.x] += 1; }
"""

FLOOR = r"""
extern "C" int burst(int (*launch)(void *, void *), void *graph, void *stream, int count) {
    for (int k = 0; k < count; ++k) {
        int code = launch(graph, stream);
        if (code) return code;
    }
    return 0;
}
"""


def main() -> None:
    ours, theirs = cases_of(gs.cuda), cases_of(cupy.cuda)
    graphs = graph_cases()
    times = time_bursts(
        {
            **{f"ours {name}": case for name, case in ours.items()},
            **{f"CuPy {name}": case for name, case in theirs.items()},
            **graphs,
        }
    )
    rows = []
    for name in ours:
        own, peer = times[f"ours {name}"], times[f"CuPy {name}"]
        goal = GOALS[name] + (peer if name == "with stream" else 0)
        rows.append({"id": f"cuda.runtime.{name}", "ours": own, "CuPy": peer, "goal": goal})
    floor = times["graph floor"]
    rows.append(
        {"id": "cuda.runtime.graph launch of 10 kernels", "ours": times["graph ours"], "CuPy": times["graph CuPy"],
         "goal": floor * GOALS["graph launch of 10 kernels"]}
    )  # fmt: skip
    print(table(rows))
    print("driver's floor of a graph launch:", round(floor, 3), "microseconds")
    print("written to", save("runtime-objects", rows))


def cases_of(cuda: Any) -> dict[str, Callable[[], Any]]:
    pool, asynchronous = cuda.MemoryPool(), cuda.MemoryAsyncPool()
    stream, device, event = cuda.Stream(non_blocking=True), cuda.Device(0), cuda.Event()
    event.record(stream)

    def switch() -> None:
        with stream:
            pass

    def on_device() -> None:
        with device:
            pass

    return {
        "pool malloc + free": lambda: pool.malloc(SIZE),
        "asynchronous pool malloc + free": lambda: asynchronous.malloc(SIZE),
        "event record": lambda: event.record(stream),
        "event create": cuda.Event,
        "event wait": lambda: stream.wait_event(event),
        "with stream": switch,
        "with device": on_device,
        "current stream": cuda.get_current_stream,
    }


def graph_cases() -> dict[str, Callable[[], Any]]:
    x = cupy.zeros(32, cupy.float32)
    stream = gs.cuda.Stream(non_blocking=True)
    kernel, theirs = gs.RawKernel(CODE, "step"), cupy.RawKernel(CODE, "step")
    kernel((1,), (32,), (x,), stream=stream)
    theirs((1,), (32,), (x,))
    stream.synchronize()
    cupy.cuda.runtime.deviceSynchronize()
    graph = gs.cuda.Graph()
    graph.begin_capture(stream)
    for _ in range(10):
        kernel((1,), (32,), (x,), stream=stream)
    graph.end_capture(stream)
    peer_stream = cupy.cuda.Stream(non_blocking=True)
    with peer_stream:
        peer_stream.begin_capture()
        for _ in range(10):
            theirs((1,), (32,), (x,))
        peer_graph = peer_stream.end_capture()
    before = float(x[0])
    graph.launch(stream)
    peer_graph.launch(peer_stream)
    cupy.cuda.runtime.deviceSynchronize()
    assert float(x[0]) == before + 20
    return {
        "graph ours": lambda: graph.launch(stream),
        "graph CuPy": lambda: peer_graph.launch(peer_stream),
        "graph floor": floor(peer_graph, peer_stream),
    }


def floor(graph: Any, stream: Any) -> Callable[[], None]:
    """Return one call that launches a graph `BURST` times from C."""
    library = Path(tempfile.mkdtemp()) / "floor.so"
    source = library.with_suffix(".cpp")
    source.write_text(FLOOR)
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    loop = ctypes.CDLL(str(library)).burst
    launch = ctypes.cast(ctypes.CDLL("libcuda.so.1").cuGraphLaunch, ctypes.c_void_p)
    handles = ctypes.c_void_p(graph.graphExec), ctypes.c_void_p(stream.ptr)

    def run() -> None:
        assert loop(launch, *handles, BURST) == 0

    run.is_burst = True  # type: ignore[attr-defined]
    return run


def time_bursts(cases: dict[str, Callable[[], Any]]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in cases}
    gc.disable()
    for round_ in range(ROUNDS + 3):
        for name, case in cases.items():
            cupy.cuda.runtime.deviceSynchronize()
            start = time.perf_counter()
            if getattr(case, "is_burst", False):
                case()
            else:
                for _ in itertools.repeat(None, BURST):
                    case()
            elapsed = time.perf_counter() - start
            cupy.cuda.runtime.deviceSynchronize()
            if round_ >= 3:
                times[name].append(elapsed / BURST * 1e6)
    gc.enable()
    return {name: sorted(values)[len(values) // 2] for name, values in times.items()}


if __name__ == "__main__":
    main()
