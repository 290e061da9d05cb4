"""Measure rows in a process of their own: one that fails, hangs or kills it costs itself alone, and is named."""

from __future__ import annotations

import faulthandler
import multiprocessing
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib import import_module
from typing import Any, NamedTuple

from measure import Record

_PROCESSES = multiprocessing.get_context("spawn")  # a fork would share the parent's device


class Plan(NamedTuple):
    """What is measured.

    Attributes
    ----------
    machine : str
        A module with `begin()`, which returns the first lines, `cases(dtype, plan)`, `line(case)`, `shown(line)` and
        `clean()`, which raises where nothing more can be measured in this process.
    families, dtypes : sequence of str
    rows : sequence of str or None
        Patterns of ids without target and dtype.
    with_peers : bool
    ends : float
        On the monotonic clock: rows that would begin later are left out. Each dtype has its share of the time.
    row_seconds : float
        A row that takes longer is given up.
    ahead : str
        A module whose `compile_ahead(dtype)` runs for all dtypes at once before: peers that compile at run time would
        take most of the time in turn.
    """

    machine: str
    families: Sequence[str]
    dtypes: Sequence[str]
    rows: Sequence[str] | None = None
    with_peers: bool = True
    ends: float = float("inf")
    row_seconds: float = 60
    ahead: str = ""

    def wants(self, case: Any, dtype: str) -> bool:
        """Return whether a case is among the rows asked for."""
        return self.wants_row(case.id.removesuffix(f".{dtype}").partition(".")[2])

    def wants_row(self, name: str) -> bool:
        """Return whether a row is asked for, by its id without target and dtype."""
        return self.rows is None or any(fnmatch(name, pattern) for pattern in self.rows)


@dataclass
class Outcome:
    """What became of the rows, by id."""

    planned: list[str] = field(default_factory=list)
    measured: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    begun_dtypes: list[str] = field(default_factory=list)
    is_over: bool = False

    @property
    def left_out(self) -> list[str]:
        """Rows that were neither measured nor failed."""
        ended = {*self.measured, *self.failed}
        return [each for each in self.planned if each not in ended]

    def lines(self, plan: Plan) -> Iterator[str]:
        """Yield the last words."""
        yield f"{len(self.measured)} rows measured, {len(self.failed)} failed, {len(self.left_out)} not run"
        yield from (f"failed: {row}: {why}" for row, why in self.failed.items())
        if self.left_out:
            yield f"not run: {' '.join(self.left_out)}"
        unseen = [dtype for dtype in plan.dtypes if dtype not in self.begun_dtypes]
        if unseen:
            yield f"not begun: {' '.join(unseen)}"


def measure(plan: Plan, record: Record) -> Outcome:
    """Measure what a plan says; every row is in the record, and in its file, as soon as it is known."""
    outcome = Outcome()
    previous = signal.signal(signal.SIGTERM, _raise_exit)
    try:
        _compile_ahead(plan)
        while not outcome.is_over:
            _supervise(plan, record, outcome)
    finally:
        signal.signal(signal.SIGTERM, previous)
        for line in outcome.lines(plan):
            print(line, flush=True)
    return outcome


def _raise_exit(number: int, _: Any) -> None:
    raise SystemExit(f"stopped by {signal.Signals(number).name}")


def _compile_ahead(plan: Plan) -> None:
    if not plan.with_peers or not plan.ahead:
        return
    start = time.monotonic()
    with ProcessPoolExecutor(len(plan.dtypes), mp_context=_PROCESSES) as pool:
        futures = {dtype: pool.submit(_compile_one, plan.ahead, dtype) for dtype in plan.dtypes}
        for dtype, future in futures.items():
            error = future.exception()
            if error is not None:
                print(f"compiling the peers of {dtype} ahead failed: {_described(error)}", flush=True)
    print(f"peers were compiled in {time.monotonic() - start:.0f} s", flush=True)


def _compile_one(module: str, dtype: str) -> None:
    import_module(module).compile_ahead(dtype)


def _supervise(plan: Plan, record: Record, outcome: Outcome) -> None:
    """Follow one measuring process to its end."""
    done = frozenset([*outcome.measured, *outcome.failed])
    messages, theirs = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=_work, args=(theirs, plan, done))
    process.start()
    theirs.close()
    current, why = "", ""
    try:
        while messages.poll(plan.row_seconds):
            kind, *rest = messages.recv()
            current = rest[0] if kind == "begin" else current
            _take(kind, rest, record, outcome)
        why = f"no end after {plan.row_seconds:g} s"
    except EOFError:
        process.join()
    finally:
        if process.is_alive():
            process.kill()
            process.join()
    outcome.is_over = process.exitcode == 0
    if outcome.is_over:
        return
    why = why or _ending(process.exitcode)
    print(f"the measuring process ended at {current or 'its start'}: {why}", flush=True)
    if current and current not in (*outcome.measured, *outcome.failed):
        outcome.failed[current] = why
    outcome.is_over = not current  # it would end there again


def _take(kind: str, rest: list[Any], record: Record, outcome: Outcome) -> None:
    if kind == "planned":
        dtype, ids = rest
        outcome.begun_dtypes.append(dtype)
        outcome.planned += [each for each in ids if each not in outcome.planned]
    elif kind in ("first", "row"):
        line, shown = rest
        record.add(line)
        print(shown, flush=True)
        if kind == "row":
            outcome.measured.append(line["id"])
    elif kind == "failed":
        row, why = rest
        outcome.failed[row] = why
        print(f"{row}: {why}", flush=True)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit status {code}"


def _work(messages: Any, plan: Plan, done: frozenset[str]) -> None:
    """Measure, in the process of its own, and tell the parent of every step."""
    faulthandler.enable()
    machine = import_module(plan.machine)
    for line in machine.begin():
        messages.send(("first", line, machine.shown(line)))
    for position, dtype in enumerate(plan.dtypes):
        cases = [case for case in machine.cases(dtype, plan) if plan.wants(case, dtype)]
        messages.send(("planned", dtype, [case.id for case in cases]))
        now = time.monotonic()
        ends = now + (plan.ends - now) / (len(plan.dtypes) - position)
        for case in cases:
            if case.id in done or time.monotonic() > ends:
                continue
            messages.send(("begin", case.id))
            messages.send(_measured(machine, case if plan.with_peers else case._replace(peers={})))
            machine.clean()
        del cases
        machine.clean()
    sys.stdout.flush()


def _measured(machine: Any, case: Any) -> tuple[Any, ...]:
    try:
        line = machine.line(case)
    except Exception as error:
        traceback.print_exc()
        return "failed", case.id, _described(error)
    return "row", line, machine.shown(line)


def _described(error: BaseException) -> str:
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"
