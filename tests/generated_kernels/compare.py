"""Run many generated kernels in several ways at once and tell where they differ.

    PYTHONPATH=src:tests python -m generated_kernels.compare --kernels 2000 --ways plain fastest cuda

A process for each core takes batches of both families. What contracts is compared with what contracts, the rest
with the rest, each way with the first of its kind.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import product
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

import numpy as np

import gridstride as gs
from generated_kernels.cooperating import generate_cooperating
from generated_kernels.kernels import Batch, generate_batch
from generated_kernels.running import Outputs, difference, run_batch
from gridstride.targets import registry

#: Ways to run kernels: the target and what a module is made with. "model" is what cooperating kernels mean.
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("cpu", {"tier": "fibers", "options": ("--fmad=false", "-O1")}),
    "fastest": ("cpu", {"options": ("--fmad=false",)}),
    "fused": ("cpu", {}),
    "fused plain": ("cpu", {"tier": "fibers"}),
    "cuda": ("cuda", {"options": ("--fmad=false",)}),
    "fused cuda": ("cuda", {}),
}
FAMILIES = ("straight", "cooperating")


class Job(NamedTuple):
    """A batch to run, and in which ways."""

    family: str
    seed: int
    count: int
    ways: tuple[str, ...]


class Report(NamedTuple):
    """What came of a batch: kernels that ran, how many differ by the way, and the first of them in words."""

    kernels: int
    differing: Counter[str]
    examples: list[str]


def compare(job: Job, tell: Callable[[str], None] = lambda way: None) -> Report:
    """Run a batch in every way and compare each with the first of its kind; tell which way comes next."""
    try:
        batch, results = _results(job, tell)
    except Exception as error:
        return failed(job, f"{type(error).__name__}: {error}"[:4000])
    differing: Counter[str] = Counter()
    examples = []
    for first, way in _pairs(results):
        for kernel, one, other in zip(batch.kernels, results[first], results[way], strict=True):
            if (different := difference(kernel, one, other)) is not None:
                differing[f"{way} from {first}"] += 1
                examples.append(f"{way} from {first}, grid {batch.grid}, block {batch.block}: {different}")
    return Report(len(batch.kernels), differing, examples)


def failed(job: Job, why: str) -> Report:
    return Report(0, Counter({"failed": job.count}), [f"{job}: {why}"])


def _pairs(ways: Iterable[str]) -> Iterator[tuple[str, str]]:
    for is_fused in (False, True):
        first, *others = [way for way in ways if way.startswith("fused") == is_fused] or [""]
        yield from ((first, way) for way in others)


def _results(job: Job, tell: Callable[[str], None]) -> tuple[Batch, dict[str, list[Outputs]]]:
    results = {}
    if job.family == "cooperating":
        made = generate_cooperating(job.seed, job.count)
        batch, results["model"] = made.batch, list(made.expected())
    else:
        batch = generate_batch(job.seed, job.count, has_math=not any("cuda" in way for way in job.ways))
    for way in job.ways:
        tell(way)
        target, how = WAYS[way]
        with gs.use_target(target):
            xp = np if target == "cpu" else import_module("cupy")
            results[way] = list(run_batch(gs.RawModule(code=batch.text, **how), batch, xp))
    return batch, results


def jobs_of(
    kernels: int, families: Iterable[str], ways: Iterable[str], first_seed: int, size: int
) -> Iterator[Job]:
    seeds = range(first_seed, first_seed + -(-kernels // size))
    for seed, family in product(seeds, families):
        yield Job(family, seed, size, tuple(ways))


class Pool:
    """Processes that compare; one that dies takes its batch with it and is replaced."""

    def __init__(self, jobs: Iterable[Job], processes: int, seconds: float) -> None:
        self.reports: list[tuple[Job, Report]] = []
        self._end = time.monotonic() + seconds
        self._waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in jobs:
            self._waiting.put(job)
        threads = [threading.Thread(target=self._own_a_process) for _ in range(processes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _own_a_process(self) -> None:
        context = get_context("spawn")
        while self._waiting.qsize() and time.monotonic() < self._end:
            here, there = context.Pipe()
            process = context.Process(target=serve, args=(there,), daemon=True)
            process.start()
            there.close()
            self._feed(here, process)
            here.close()
            process.join()

    def _feed(self, pipe: Connection, process: BaseProcess) -> None:
        while time.monotonic() < self._end:
            try:
                job = self._waiting.get_nowait()
            except queue.Empty:
                return
            way = "start"
            try:
                pipe.send(job)
                while isinstance(answer := pipe.recv(), str):
                    way = answer
            except (EOFError, OSError):
                process.join()
                self.reports.append(
                    (job, failed(job, f"the process ended at {way!r} with {process.exitcode}"))
                )
                return
            self.reports.append((job, answer))


def serve(pipe: Connection) -> None:
    """Compare what comes through a pipe until it is closed."""
    faulthandler.enable()
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        pipe.send(compare(job, pipe.send))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernels", type=int, default=2000, help="of each family")
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=FAMILIES)
    parser.add_argument("--ways", nargs="+", default=["plain", "fastest"], choices=WAYS)
    parser.add_argument("--seed", type=int, default=1000, help="of the first batch")
    parser.add_argument("--size", type=int, default=20, help="kernels of a batch")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=3600, help="begin no batch after this time")
    parser.add_argument("--output", help="a file for every difference with its kernel")
    given = parser.parse_args()
    start = time.monotonic()
    pool = Pool(
        jobs_of(given.kernels, given.families, given.ways, given.seed, given.size), given.jobs, given.seconds
    )
    examples = [example for _, report in pool.reports for example in report.examples]
    _show(pool.reports, examples, time.monotonic() - start, given.output)
    return 1 if examples else 0


def _show(reports: list[tuple[Job, Report]], examples: list[str], seconds: float, output: str | None) -> None:
    for family in FAMILIES:
        total: Counter[str] = Counter()
        for job, report in reports:
            if job.family == family:
                total.update(report.differing | Counter(kernels=report.kernels))
        print(f"{family}: " + ", ".join(f"{count} {name}" for name, count in total.items()))
    print(f"{seconds:.0f} s; targets: {', '.join(registry.names())}")
    for example in sorted(examples, key=len)[:5]:
        print(example[:3000])
    if output:
        with open(output, "w") as file:
            file.write("\n".join(examples))


if __name__ == "__main__":
    sys.exit(main())
