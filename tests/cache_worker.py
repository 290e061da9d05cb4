"""Use some kernels in a process of its own: compile each, launch it where there is a device, tell when it is done.

Arguments: target, number of kernels, seed of their order, how (plain, threads or fork), stub of libcuda or nothing.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import sys
import threading

import numpy as np

import gridstride as gs
from gridstride.targets import registry

#: The status of a child that told of an error.
SAID = 3
TEXT = """
extern "C" __global__ void add_%d(int* x) {
    __shared__ int tile[32];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[31 - threadIdx.x] + %d;
}
"""


def use(number: int, *, launch: bool) -> None:
    kernel = gs.RawKernel(TEXT % (number, number), f"add_{number}")
    if launch:
        x = gs.asarray(np.arange(32, dtype=np.int32))
        kernel((1,), (32,), (x,))
        assert np.array_equal(gs.asnumpy(x), np.arange(32)[::-1] + number), x
    else:
        kernel.compile()
    os.write(1, f"used {number}\n".encode())  # a stream's own lock may be held at a fork


def in_threads(numbers: list[int], *, launch: bool) -> None:
    problems: list[BaseException] = []

    def work(order: list[int]) -> None:
        try:
            for number in order:
                use(number, launch=launch)
        except BaseException as error:
            problems.append(error)

    orders = [random.sample(numbers, len(numbers)) for _ in range(10)]
    threads = [threading.Thread(target=work, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


def forked(numbers: list[int], *, launch: bool) -> None:
    """Fork after use, and while another thread compiles; use the same and other kernels in the children."""
    use(numbers[0], launch=launch)
    compiling = threading.Thread(target=use, args=(numbers[1],), kwargs={"launch": launch})
    compiling.start()
    children = []
    for number in numbers[2:]:
        child = os.fork()
        if child == 0:
            status = 1
            signal.alarm(20)
            try:
                use(numbers[0], launch=launch)
                use(numbers[1], launch=launch)
                use(number, launch=launch)
                status = 0
            except Exception as error:
                os.write(1, f"{type(error).__name__}: {error}\n".encode())
                status = SAID
            finally:
                os._exit(status)
        children.append(child)
    compiling.join()
    # NVIDIA's driver does not work in a child of a process that used it: an error there is enough.
    allowed = {0, SAID} if launch and "gpu" in registry.default().features else {0}
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in allowed
    for number in numbers[1:]:
        use(number, launch=launch)


def main(name: str, count: str, seed: str, how: str, stub: str) -> None:
    os.environ["GRIDSTRIDE_TARGET"] = name
    if stub:
        from gridstride.targets import cuda

        registry._targets["cuda"] = cuda.create(stub)
    faulthandler.register(signal.SIGALRM, all_threads=True, chain=True)  # a hang says where
    numbers = list(range(int(count)))
    random.seed(int(seed))
    random.shuffle(numbers)
    launch = not stub
    compiled = []
    target = registry.get(name)
    compile_ = target.compile
    target.compile = lambda *args: (compiled.append(args), compile_(*args))[1]  # type: ignore[method-assign]
    try:
        if how == "plain":
            for number in numbers:
                use(number, launch=launch)
        else:
            {"threads": in_threads, "fork": forked}[how](numbers, launch=launch)
    except gs.GridstrideError as error:
        print(f"{type(error).__name__}: {error}")
        sys.exit(3)
    print(f"compiled {len(compiled)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
