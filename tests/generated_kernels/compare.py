"""Run many generated kernels in several ways at once and tell where they differ.

    PYTHONPATH=src:tests python -m generated_kernels.compare --kernels 2000 --ways plain fastest cuda

A process for each core takes batches of both families. What contracts is compared with what contracts, the rest
with the rest, each way with the first of its kind.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from itertools import product
from multiprocessing import get_context
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
    "fused plain": ("cpu", {"tier": "fibers", "options": ("-O1",)}),
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


def compare(job: Job) -> Report:
    """Run a batch in every way and compare with the first."""
    try:
        batch, results = _results(job)
    except Exception as error:
        return Report(0, Counter({"failed": job.count}), [f"{job}: {type(error).__name__}: {error}"[:4000]])
    differing: Counter[str] = Counter()
    examples = []
    for first, way in _pairs(results):
        for kernel, one, other in zip(batch.kernels, results[first], results[way], strict=True):
            if (different := difference(kernel, one, other)) is not None:
                differing[f"{way} from {first}"] += 1
                examples.append(f"{way} from {first}, grid {batch.grid}, block {batch.block}: {different}")
    return Report(len(batch.kernels), differing, examples)


def _pairs(ways: Iterable[str]) -> Iterator[tuple[str, str]]:
    for is_fused in (False, True):
        first, *others = [way for way in ways if way.startswith("fused") == is_fused] or [""]
        yield from ((first, way) for way in others)


def _results(job: Job) -> tuple[Batch, dict[str, list[Outputs]]]:
    results = {}
    if job.family == "cooperating":
        made = generate_cooperating(job.seed, job.count)
        batch, results["model"] = made.batch, list(made.expected())
    else:
        batch = generate_batch(job.seed, job.count, has_math=not any("cuda" in way for way in job.ways))
    for way in job.ways:
        target, how = WAYS[way]
        with gs.use_target(target):
            xp = np if target == "cpu" else import_module("cupy")
            results[way] = list(run_batch(gs.RawModule(code=batch.text, **how), batch, xp))
    return batch, results


def jobs_of(kernels: int, ways: Iterable[str], first_seed: int, size: int = 20) -> Iterator[Job]:
    seeds = range(first_seed, first_seed + -(-kernels // size))
    for seed, family in product(seeds, FAMILIES):
        yield Job(family, seed, size, tuple(ways))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernels", type=int, default=2000, help="of each family")
    parser.add_argument("--ways", nargs="+", default=["plain", "fastest"], choices=WAYS)
    parser.add_argument("--seed", type=int, default=1000, help="of the first batch")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=3600, help="begin no batch after this time")
    parser.add_argument("--output", help="a file for every difference with its kernel")
    given = parser.parse_args()
    start, totals, examples = time.monotonic(), {family: Counter() for family in FAMILIES}, []
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        running = {job: pool.submit(compare, job) for job in jobs_of(given.kernels, given.ways, given.seed)}
        for job, future in running.items():
            if time.monotonic() - start > given.seconds:
                future.cancel()
            if future.cancelled():
                continue
            report = future.result()
            totals[job.family].update(kernels=report.kernels)
            totals[job.family].update(report.differing)
            examples += report.examples
    _show(totals, examples, time.monotonic() - start, given.output)
    return 1 if examples else 0


def _show(totals: dict[str, Counter[str]], examples: list[str], seconds: float, output: str | None) -> None:
    for family, total in totals.items():
        print(f"{family}: " + ", ".join(f"{count} {name}" for name, count in total.items()))
    print(f"{seconds:.0f} s; targets: {', '.join(registry.names())}")
    for example in sorted(examples, key=len)[:5]:
        print(example[:3000])
    if output:
        with open(output, "w") as file:
            file.write("\n".join(examples))


if __name__ == "__main__":
    sys.exit(main())
