"""Host cost of the runtime's objects on a GPU, beside CuPy's and the driver's own."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import tempfile
import time
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

import cupy
from measure import save, table

import gridstride as gs

GRAPH, REPLAY = "graph launch of 10 kernels", "graph replay of 10 kernels, to its end"
BURST, ROUNDS = 300, 31
SIZE = 64 << 10
#: Microseconds; of the stream switch: over CuPy's own; of graphs: times the driver's floor.
GOALS = {
    "pool malloc + free": 1.0,
    "asynchronous pool malloc + free": 2.0,
    "event record": 0.5,
    "event record, with time": 0.5,
    "event create": 0.9,
    "event wait": 0.5,
    "with stream": 0.5,
    "with device": 0.5,
    "current stream": 0.1,
    GRAPH: 1.1,
    REPLAY: 1.1,
}

CODE = r"""
extern "C" __global__ void step(float* x) { x[threadIdx.x] += 1; }
"""

#: By row, the function of runtime_floors.cpp that makes the driver's calls which the row needs.
FLOORS = {
    "pool malloc + free": "current_context",
    "asynchronous pool malloc + free": "allocate_and_free",
    "event record": "record_event",
    "event record, with time": "record_event_with_time",
    "event create": "create_event",
    "event wait": "wait_event",
    "with stream": "current_context",
    "with device": "switch_context",
    "current stream": "current_context",
    GRAPH: "launch_graph",
    REPLAY: "launch_graph",
}
#: What else is timed, to see where the time of a launch goes.
BESIDE = {
    "the driver's launch where the GIL is given up": "launch_graph_without_lock",
    "the driver's launch of CuPy's graph": "launch_peer_graph",
}


def main() -> None:
    ours, theirs = cases_of(gs.cuda), cases_of(cupy.cuda)
    graph, peer_graph, floors = graph_cases()
    for name in (GRAPH, REPLAY):
        ours[name], theirs[name] = graph, peer_graph
    times = time_bursts(
        {
            **{f"ours {name}": case for name, case in ours.items()},
            **{f"CuPy {name}": case for name, case in theirs.items()},
            **{f"floor {name}": floors[call] for name, call in FLOORS.items()},
            **{name: floors[call] for name, call in BESIDE.items()},
        }
    )
    rows = []
    for name in ours:
        own, peer, floor = (times[f"{who} {name}"] for who in ("ours", "CuPy", "floor"))
        goal = floor * GOALS[name] if name in (GRAPH, REPLAY) else GOALS[name]
        goal += peer if name == "with stream" else 0
        rows.append({"id": f"cuda.runtime.{name}", "ours": own, "CuPy": peer, "floor": floor, "goal": goal})
    print(table(rows))
    print("floor: the driver's own calls in a C loop, of graphs with the same graph; microseconds")
    for name in BESIDE:
        print(f"{name}: {times[name]:.4g}")
    print("written to", save("runtime-objects", rows))


def cases_of(cuda: Any) -> dict[str, Callable[[], Any]]:
    """Return bursts by row; each is a loop of its own, so that no row pays for a call of the benchmark's."""
    pool, asynchronous = cuda.MemoryPool(), cuda.MemoryAsyncPool()
    stream, device = cuda.Stream(non_blocking=True), cuda.Device(0)
    event, timed = cuda.Event(disable_timing=True), cuda.Event()
    event.record(stream)

    def switch() -> None:
        for _ in repeat(None, BURST):
            with stream:
                pass

    def on_device() -> None:
        for _ in repeat(None, BURST):
            with device:
                pass

    def record(event: Any) -> Callable[[], None]:
        def run() -> None:
            for _ in repeat(None, BURST):
                event.record(stream)

        return run

    def wait() -> None:
        for _ in repeat(None, BURST):
            stream.wait_event(event)

    def of_pool(pool: Any) -> Callable[[], None]:
        def run() -> None:
            for _ in repeat(None, BURST):
                pool.malloc(SIZE)

        return run

    return {
        "pool malloc + free": of_pool(pool),
        "asynchronous pool malloc + free": of_pool(asynchronous),
        "event record": record(event),
        "event record, with time": record(timed),
        "event create": calls(cuda.Event),
        "event wait": wait,
        "with stream": switch,
        "with device": on_device,
        "current stream": calls(cuda.get_current_stream),
    }


def calls(function: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        for _ in repeat(None, BURST):
            function()

    return run


def launches(graph: Any, stream: Any) -> Callable[[], None]:
    def run() -> None:
        for _ in repeat(None, BURST):
            graph.launch(stream)

    return run


def graph_cases() -> tuple[Callable[[], Any], Callable[[], Any], dict[str, Callable[[], Any]]]:
    """Return a launch of our graph, one of CuPy's, and the driver's floors by name."""
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
    return (
        launches(graph, stream),
        launches(peer_graph, peer_stream),
        floor_cases((graph._content.executable, stream.ptr), (peer_graph.graphExec, peer_stream.ptr)),
    )


def floor_cases(own: tuple[int, int], peer: tuple[int, int]) -> dict[str, Callable[[], Any]]:
    """Return for each function of runtime_floors.cpp one call that makes the driver's calls `BURST` times.

    Parameters
    ----------
    own, peer : tuple of int
        Executable graph and stream, ours and CuPy's.
    """
    library = Path(tempfile.mkdtemp()) / "floors.so"
    source = Path(__file__).with_name("runtime_floors.cpp")
    command = ["g++", "-std=c++17", "-O2", "-shared", "-fPIC", str(source), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True)
    floors, with_lock = ctypes.CDLL(str(library)), ctypes.PyDLL(str(library))
    pool, event, timed = ctypes.c_void_p(), cupy.cuda.Event(disable_timing=True), cupy.cuda.Event()
    assert floors.create_pool(ctypes.byref(pool)) == 0
    launch, peer_launch = (tuple(map(ctypes.c_void_p, each)) for each in (own, peer))
    handle = launch[1]
    marker, timed_marker = ctypes.c_void_p(event.ptr), ctypes.c_void_p(timed.ptr)
    arguments = {
        "current_context": (),
        "switch_context": (),
        "create_event": (),
        "record_event": (marker, handle),
        "record_event_with_time": (timed_marker, handle),
        "wait_event": (marker, handle),
        "allocate_and_free": (pool, handle, ctypes.c_size_t(SIZE)),
        "launch_graph": launch,
    }
    functions = {name: getattr(floors, name.removesuffix("_with_time")) for name in arguments}
    return {
        **{name: burst(functions[name], (event, timed), *rest) for name, rest in arguments.items()},
        "launch_graph_without_lock": burst(with_lock.launch_graph_without_lock, (), *launch),
        "launch_peer_graph": burst(floors.launch_graph, (), *peer_launch),
    }


def burst(function: Any, kept: object, *arguments: Any) -> Callable[[], None]:
    def run() -> None:
        assert function(BURST, *arguments) == 0, kept

    return run


def time_bursts(cases: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median microseconds of a call of each burst: until the last call returned, or to the work's end."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    gc.disable()
    for round_ in range(ROUNDS + 3):
        for name, case in cases.items():
            cupy.cuda.runtime.deviceSynchronize()
            start = time.perf_counter()
            case()
            if name.endswith(REPLAY):
                cupy.cuda.runtime.deviceSynchronize()
            elapsed = time.perf_counter() - start
            cupy.cuda.runtime.deviceSynchronize()
            if round_ >= 3:
                times[name].append(elapsed / BURST * 1e6)
    gc.enable()
    return {name: sorted(values)[len(values) // 2] for name, values in times.items()}


if __name__ == "__main__":
    main()
