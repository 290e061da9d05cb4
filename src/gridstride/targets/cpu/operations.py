"""Pieces of work of the CPU target that wait for one another: which of them are needed, and running them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gridstride import _forks
from gridstride.targets.cpu import host

Run = Callable[[], object]


@dataclass(eq=False, slots=True)
class Operation:
    """Hold a piece of work until it has run.

    Attributes
    ----------
    label : str
        For pictures of graphs.
    run : callable
    after : tuple of Operation
        What has to run before.
    kept : object
        Kept alive until the work has run.
    """

    label: str
    run: Run
    after: tuple[Operation, ...] = ()
    kept: object = None
    done: bool = False

    def perform(self) -> None:
        """Run the work and let go of all that was needed for it, whatever it raises."""
        run = self.run
        try:
            run()
        finally:
            self.done, self.run, self.after, self.kept = True, _nothing, (), None


class Execution:
    """Run operations, one at a time."""

    def __init__(self) -> None:
        self._lock = _forks.RLock()
        self._is_running = False

    def perform(self, operations: Iterable[Operation]) -> None:
        """Run all operations, whatever one raises; afterwards raise the first failure."""
        failures: list[Exception] = []
        with self._lock:
            if self._is_running:
                message = "work in a stream, such as a callback, cannot wait for streams"
                raise host.device_error("CUDA_ERROR_NOT_PERMITTED", message, "synchronize")
            self._is_running = True
            try:
                for operation in operations:
                    if not operation.done:  # else another thread was faster
                        try:
                            operation.perform()
                        except Exception as error:
                            failures.append(error)
            finally:
                self._is_running = False
        if failures:
            for other in failures[1:]:
                failures[0].add_note(f"Also failed: {other}")
            raise failures[0]


def needed_for(wanted: Iterable[Operation]) -> list[Operation]:
    """Return the operations that have not run among those wanted and all in front of them, first ones first."""
    found: dict[Operation, None] = {}
    path = [(operation, False) for operation in wanted]
    while path:
        operation, has_its_needs = path.pop()
        if has_its_needs:
            found[operation] = None
        elif not operation.done and operation not in found:
            path.append((operation, True))
            path.extend((before, False) for before in operation.after)
    return list(found)


def in_random_order(operations: Sequence[Operation], order: random.Random) -> Iterator[Operation]:
    """Yield operations in a random order in which each comes after those it waits for."""
    followers: dict[Operation, list[Operation]] = {operation: [] for operation in operations}
    missing = {}
    for operation in operations:
        before = [other for other in operation.after if other in followers]
        missing[operation] = len(before)
        for other in before:
            followers[other].append(operation)
    ready = [operation for operation in operations if not missing[operation]]
    while ready:
        chosen = ready.pop(order.randrange(len(ready)))
        yield chosen
        for follower in followers[chosen]:
            missing[follower] -= 1
            if not missing[follower]:
                ready.append(follower)


def unfinished(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """Return those that have not run."""
    return tuple(operation for operation in operations if not operation.done)


def _nothing() -> None:
    pass
