"""The CPU runtime: barriers, warps, failures, stops, threads; with every host compiler that is here."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import execution_support as support
import numpy as np
import pytest
from execution_support import Machine

SEGMENTATION, BUS, ARITHMETIC, ILLEGAL, STACK_OVERFLOW, DIVERGENCE, ASSERTION, TRAP = range(1, 9)
TIMEOUT, INTERRUPTED, TOO_MANY_BLOCKS, OUT_OF_MEMORY, UNSUPPORTED = range(9, 14)
#: Machine of an ELF file.
EM_AARCH64 = 183


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What each compiler built; filled on demand."""
    return {"": tmp_path_factory.mktemp("execution")}


@pytest.fixture(params=sorted(support.compilers()))
def folder(request: pytest.FixtureRequest, folders: dict[str, Path]) -> Path:
    """A folder with the runtime and the kernels, built by each compiler in turn."""
    if request.param not in folders:
        folders[request.param] = folders[""] / request.param
        folders[request.param].mkdir()
        support.build(support.compilers()[request.param], folders[request.param])
    return folders[request.param]


@pytest.fixture
def machine(folder: Path) -> Machine:
    """A runtime with two threads."""
    machine = Machine(folder)
    machine.runtime.gridstride_set_num_threads(2)
    machine.runtime.gridstride_set_launch_timeout(60.0)
    return machine


def ints(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int32)


# ---- indices and barriers ----


def test_indices(machine: Machine) -> None:
    grid, block = (3, 2, 2), (5, 3, 2)
    thread, place, rank = np.zeros((12, 30, 3), np.uint32), np.zeros((12, 30, 3), np.uint32), ints(12, 30)
    machine.run("indices", grid, block, thread, place, rank)
    expected = np.stack(np.unravel_index(np.arange(30), block[::-1])[::-1], axis=1)
    blocks = np.stack(np.unravel_index(np.arange(12), grid[::-1])[::-1], axis=1)
    np.testing.assert_array_equal(thread, np.broadcast_to(expected, (12, 30, 3)))
    np.testing.assert_array_equal(place, np.broadcast_to(blocks[:, None], (12, 30, 3)))
    np.testing.assert_array_equal(rank, np.broadcast_to(np.arange(30), (12, 30)))


@pytest.mark.parametrize("threads", [1, 2, 31, 32, 33, 100, 256, 1000, 1024])
def test_barriers_in_a_loop(machine: Machine, threads: int) -> None:
    values = np.random.default_rng(threads).integers(0, 1000, (9, threads), np.int32)
    out = np.zeros_like(values)
    machine.run("rotate", 9, threads, values, out, np.int32(7))
    np.testing.assert_array_equal(out, np.roll(values, -7, axis=1))


def test_a_block_shape_of_three_dimensions_after_another(machine: Machine) -> None:
    values = np.arange(4 * 96, dtype=np.int32).reshape(4, 96)
    for shape in ((96,), (8, 6, 2), (2, 48), (96,)):
        out = np.zeros_like(values)
        machine.run("rotate", 4, shape, values, out, np.int32(3))
        np.testing.assert_array_equal(out, np.roll(values, -3, axis=1))


@pytest.mark.parametrize("limit", [1, 17, 64, 100, 256])
def test_threads_that_have_exited_count_as_arrived(machine: Machine, limit: int) -> None:
    out = ints(20)
    machine.run("sum_of_first", 20, 256, out, np.int32(limit), shared_mem=1024)
    np.testing.assert_array_equal(out, limit * (limit - 1) // 2)


@pytest.mark.parametrize("limit", [1, 40, 128])
def test_votes_of_a_block(machine: Machine, limit: int) -> None:
    predicate = np.random.default_rng(limit).integers(1, 4, 128, np.int32)
    out = ints(3, limit)
    machine.run("block_votes", 1, 128, predicate, out, np.int32(limit))
    for round_ in range(3):
        true = predicate[:limit] > round_
        np.testing.assert_array_equal(out[round_], 4 * true.sum() + 2 * true.all() + true.any())


# ---- warps ----


def shuffle_model(values: np.ndarray, mask: int, argument: int, width: int, exited: int) -> np.ndarray:
    """What the PTX manual says a shuffle does, with 0 from lanes that do not take part."""
    n = len(values)
    out = np.zeros((4, n), values.dtype)
    segment = (32 - width) & 31
    takes_part = [t >= exited and bool(mask >> t % 32 & 1) for t in range(n)]
    for t in np.flatnonzero(takes_part):
        lane, first = t % 32, t // 32 * 32
        end = (lane & segment) | (31 & ~segment)
        up, down, xor = lane - (argument & 31), lane + (argument & 31), lane ^ (argument & 31)
        sources = (
            (lane & segment) | (argument & 31 & ~segment),
            up if up >= lane & segment else lane,
            down if down <= end else lane,
            xor if xor <= end else lane,
        )
        for row, source in enumerate(sources):
            there = first + source
            out[row, t] = values[there] if there < n and takes_part[there] else 0
    return out


@pytest.mark.parametrize("width", [32, 16, 8, 2, 1])
@pytest.mark.parametrize("kernel", ["shuffles<int>", "shuffles<double>"])
def test_shuffles(machine: Machine, kernel: str, width: int) -> None:
    dtype = np.int32 if kernel == "shuffles<int>" else np.float64
    values = np.random.default_rng(width).integers(1, 1000, 80).astype(dtype)
    for mask, exited in ((0xFFFFFFFF, 0), (0xFFFFFFFF, 5), (0x0000FFFF, 0), (0x5555AAAA, 3)):
        for argument in (0, 1, 3, 15, 31, 33):
            out = np.zeros((4, 80), dtype)
            machine.run(
                kernel,
                1,
                80,
                values,
                out,
                np.uint32(mask),
                np.int32(argument),
                np.int32(width),
                np.int32(exited),
            )
            expected = shuffle_model(values, mask, argument, width, exited)
            np.testing.assert_array_equal(out, expected, f"{mask:x} {exited} {argument}")


def test_a_shuffle_of_sixteen_bytes(machine: Machine) -> None:
    pairs = np.zeros(64, np.dtype([("first", "f8"), ("second", "i4"), ("padding", "i4")]))
    pairs["first"], pairs["second"] = np.arange(64) / 7, np.arange(64)
    out = np.zeros_like(pairs)
    machine.run("shuffle_pairs", 1, 64, pairs, out)
    source = np.arange(64) // 32 * 32 + (np.arange(64) + 1) % 32
    np.testing.assert_array_equal(out[["first", "second"]], pairs[source][["first", "second"]])


@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0xF0F0F0F0, 0x00000001])
def test_votes_matches_and_reductions_of_a_warp(machine: Machine, mask: int) -> None:
    n = 72
    values = np.random.default_rng(mask % 97).integers(0, 9, n, np.int32)
    out = np.zeros((14, n), np.uint32)
    machine.run("warp_votes", 1, n, values, out, np.uint32(mask))
    for first in range(0, n, 32):
        lanes = [lane for lane in range(32) if first + lane < n and mask >> lane & 1]
        v = values[[first + lane for lane in lanes]]

        def bits(chosen: np.ndarray, lanes: list[int] = lanes) -> int:
            return sum(1 << lane for lane, is_chosen in zip(lanes, chosen, strict=True) if is_chosen)

        everyone = bits(np.ones(len(lanes), bool))
        for lane, own in zip(lanes, v, strict=True):
            expected = [
                bits(v % 2 == 1), (v > 5).any(), True, True, bits(v == own), everyone * (v == own).all(), everyone,
                v.sum(), v.min(), v.max(), np.bitwise_and.reduce(v), np.bitwise_or.reduce(v),
                np.bitwise_xor.reduce(v), 1,
            ]  # fmt: skip
            np.testing.assert_array_equal(out[:, first + lane], np.array(expected, np.uint32))


def test_collectives_of_groups_that_overlap_in_time(machine: Machine) -> None:
    out, rounds = ints(256), 20
    machine.run("overlapping_groups", 1, 256, out, np.int32(rounds))
    values, lanes = np.arange(256), np.arange(256)
    for _ in range(rounds):
        for i in range(4):
            values = np.where(lanes // 2 % 4 >= i, values[lanes ^ 1] + 1, values)
        values = values + values[lanes ^ 7]
    np.testing.assert_array_equal(out, values.astype(np.uint64).astype(np.uint32).view(np.int32))


def test_active_lanes_are_those_at_the_same_place(machine: Machine) -> None:
    n = 50
    out = np.zeros((2, n), np.uint32)
    machine.run("active_lanes", 1, n, out)
    t = np.arange(n)
    for warp in (t[:32], t[32:]):
        thirds = np.array([sum(1 << int(i) % 32 for i in warp if i % 3 == k) for k in range(3)])
        np.testing.assert_array_equal(out[0, warp], np.where(warp % 3 == 0, thirds[0], thirds[1] + thirds[2]))
        stayed = warp[warp % 3 != 1]
        np.testing.assert_array_equal(out[1, stayed], thirds[0] + thirds[2])


# ---- failures ----


def test_threads_that_wait_at_different_places(machine: Machine) -> None:
    assert machine.launch("diverge", 1, 64, np.int32(0)) == DIVERGENCE
    failure = machine.failure()
    message = failure.message.decode()
    assert "kernel `diverge`: no thread of block (0, 0, 0) can go on" in message
    assert re.search(
        r"39 threads waiting at __syncthreads, \S+\.cpp:\d+: \(0, 0, 0\) to \(4, 0, 0\), \(6, 0, 0\)", message
    )
    assert re.search(r"1 thread exited: \(5, 0, 0\)", message)
    assert re.search(
        r"24 threads waiting in __syncwarp with mask 0xffffffff, \S+: \(40, 0, 0\) to \(63, 0, 0\)", message
    )
    assert not failure.has_thread


def test_lanes_that_wait_with_different_masks(machine: Machine) -> None:
    assert machine.launch("diverge", (2, 3), 8, np.int32(1)) == DIVERGENCE
    message = machine.failure().message.decode()
    assert "waiting in __ballot_sync with mask 0xff" in message
    assert "__shfl_sync" not in message  # that one completes


def test_a_mask_without_the_calling_lane(machine: Machine) -> None:
    assert machine.launch("diverge", 1, 2, np.int32(2)) == DIVERGENCE
    failure = machine.failure()
    assert (
        "__shfl_sync was called with mask 0x1, which does not name the calling lane 1"
        in failure.message.decode()
    )
    assert failure.has_thread
    assert list(failure.thread) == [1, 0, 0]


@pytest.mark.parametrize("address", [0, 0x5000, 0x8000_0000_0000_0000])
def test_a_fault_is_a_failure_wherever_it_happens(machine: Machine, address: int) -> None:
    for block in (0, 5, 399):
        done = ints(1)
        arguments = (np.uint64(address), np.uint32(block), np.uint32(37), done)
        assert machine.launch("store_at", 400, 64, *arguments) == SEGMENTATION
        failure = machine.failure()
        assert list(failure.block) == [block, 0, 0]
        assert list(failure.thread) == [37, 0, 0]
        if address < 1 << 63:
            assert failure.has_address
            assert failure.address == address
            assert f"at address {address:#x}" in failure.message.decode()
        assert f"block ({block}, 0, 0), thread (37, 0, 0)" in failure.message.decode()
        assert "memory of this process may be damaged" in failure.message.decode()
        assert done[0] < 400
        assert ("null pointer" in failure.message.decode()) == (address == 0)
    test_barriers_in_a_loop(machine, 256)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors give 0")
def test_an_integer_division_by_zero(machine: Machine) -> None:
    divisor = np.arange(-2, 6, dtype=np.int32)
    assert machine.launch("divide", 1, 8, divisor, ints(8)) == ARITHMETIC
    assert list(machine.failure().thread) == [2, 0, 0]
    assert "division by zero" in machine.failure().message.decode()


def test_a_stack_that_is_used_up(machine: Machine) -> None:
    assert machine.launch("overflow_stack", 3, 8, ints(8)) == STACK_OVERFLOW
    assert "used up its stack of 192 KiB" in machine.failure().message.decode()
    assert list(machine.failure().thread) == [3, 0, 0]


@pytest.mark.parametrize(
    ("how", "code", "text"),
    [
        (0, TRAP, "__trap()"),
        (1, TRAP, "__brkpt()"),
        (2, ILLEGAL, "illegal instruction"),
        (3, ASSERTION, 'assertion `how < 0 && "told to"` failed at '),
    ],
)
def test_stops_that_the_kernel_asks_for(machine: Machine, how: int, code: int, text: str) -> None:
    assert machine.launch("stop", 4, 64, np.int32(how), np.int32(33)) == code
    assert text in machine.failure().message.decode()
    assert list(machine.failure().thread) == [33, 0, 0]


def test_a_block_that_is_too_large(machine: Machine) -> None:
    assert machine.launch("stop", 1, (32, 32, 2), np.int32(0), np.int32(0)) == UNSUPPORTED
    assert "1024" in machine.failure().message.decode()


def test_each_thread_has_its_own_last_failure(machine: Machine) -> None:
    machine.launch("stop", 1, 1, np.int32(0), np.int32(0))
    codes = []
    thread = threading.Thread(target=lambda: codes.append(machine.failure().code))
    thread.start()
    thread.join()
    assert codes == [0]
    assert machine.failure().code == TRAP


# ---- output ----


def test_printf(machine: Machine, capfd: pytest.CaptureFixture[str]) -> None:
    counts = ints(300)
    machine.run("print", 3, 100, ctypes.c_char_p(b"%d: %.1f %s\n"), counts)
    lines = capfd.readouterr().out.splitlines()
    assert sorted(lines) == sorted([*(f"{t}: {t / 2:.1f} text" for t in range(300)), "no arguments"])
    np.testing.assert_array_equal(counts, 3)
    machine.run("print", 1, 1, ctypes.c_char_p(b"%d" + b"x" * 5000 + b"\n"), counts)
    assert capfd.readouterr().out == "0" + "x" * 5000 + "\nno arguments\n"


def test_a_null_format(machine: Machine) -> None:
    counts = ints(1)
    machine.run("print", 1, 1, np.uint64(0), counts)
    assert counts[0] == -1


# ---- progress ----


def test_a_lock_within_a_block(machine: Machine) -> None:
    lock, count = ints(1), ints(1)
    machine.run("count_locked", 1, 256, lock, count, np.int32(5))
    assert count[0] == 5 * 256


def test_threads_that_poll_without_a_hint_are_preempted(machine: Machine) -> None:
    flags = ints(5)
    machine.run("volatile_chain", 1, 5, flags)
    np.testing.assert_array_equal(flags, 1)


@pytest.mark.parametrize("threads", [1, 2])
def test_blocks_that_wait_for_later_blocks(machine: Machine, threads: int) -> None:
    machine.runtime.gridstride_set_num_threads(threads)
    flags = ints(30)
    machine.run("chain_of_blocks", 30, 40, flags)
    np.testing.assert_array_equal(flags, 1)


@pytest.mark.parametrize(("blocks", "threads"), [(1, 64), (7, 100), (500, 32)])
def test_synchronizing_the_grid(machine: Machine, blocks: int, threads: int) -> None:
    values = np.arange(blocks * threads, dtype=np.int32)
    machine.run("grid_rotate", blocks, threads, values, np.int32(5), cooperative=True)
    np.testing.assert_array_equal(values, np.roll(np.arange(blocks * threads), -5))


def test_the_grid_cannot_synchronize_in_an_ordinary_launch(machine: Machine) -> None:
    assert machine.launch("grid_rotate", 2, 32, ints(64), np.int32(1)) == UNSUPPORTED
    assert "cooperative" in machine.failure().message.decode()


def test_blocks_that_end_without_synchronizing_the_grid(machine: Machine) -> None:
    assert machine.launch("grid_sync_of_some", 6, 32, np.int32(0), cooperative=True) == DIVERGENCE
    assert (
        "5 blocks wait for the grid to synchronize, but 1 blocks have ended"
        in machine.failure().message.decode()
    )


def test_a_cooperative_launch_of_too_many_blocks(machine: Machine) -> None:
    most = machine.runtime.gridstride_max_resident_blocks(256, 0)
    assert most >= 100
    assert (
        machine.launch("grid_rotate", most + 1, 256, ints(1), np.int32(0), cooperative=True)
        == TOO_MANY_BLOCKS
    )
    message = machine.failure().message.decode()
    assert "of blocks with 256 threads and" in message
    assert f"at most {most}, not {most + 1}" in message
    assert machine.runtime.gridstride_max_resident_blocks(32, 0) >= 4096


# ---- threads and processes ----


def test_launches_of_several_threads_at_once(machine: Machine) -> None:
    values = np.random.default_rng(1).integers(0, 1000, (200, 64), np.int32)
    wrong = []

    def work(rounds: int) -> None:
        for _ in range(20):
            out = np.zeros_like(values)
            machine.run("rotate", 200, 64, values, out, np.int32(rounds))
            if not np.array_equal(out, np.roll(values, -rounds, axis=1)):
                wrong.append(rounds)
            if machine.launch("stop", 9, 32, np.int32(0), np.int32(rounds)) != TRAP:
                wrong.append(-rounds)

    threads = [threading.Thread(target=work, args=(rounds,)) for rounds in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_launch_from_inside_a_kernel(machine: Machine) -> None:
    values, codes = ints(1000), ints(3)
    inner = support.pack((values, np.int32(1000)))
    configuration = support.configure(10, 100)
    call = np.array(
        [
            ctypes.cast(machine.runtime.gridstride_cpu_launch, ctypes.c_void_p).value,
            ctypes.addressof(machine.functions["add_one"]),
            ctypes.addressof(configuration),
            ctypes.cast(inner, ctypes.c_void_p).value,
        ],
        np.uint64,
    )
    machine.runtime.gridstride_set_num_threads(1)
    machine.run("launch_inside", 3, 1, call.view([("call", "u8", 4)])[0], codes)
    np.testing.assert_array_equal(values, 3)
    np.testing.assert_array_equal(codes, 0)


def test_the_number_of_threads(machine: Machine) -> None:
    machine.runtime.gridstride_set_num_threads(3)
    assert machine.runtime.gridstride_get_num_threads() == 3
    machine.runtime.gridstride_set_num_threads(0)
    assert machine.runtime.gridstride_get_num_threads() == 1


def test_a_grid_of_size_zero_runs_nothing(machine: Machine) -> None:
    machine.run("store_at", 0, 32, np.uint64(0), np.uint32(0), np.uint32(0), ints(1))


def in_subprocess(folder: Path, script: str, *, interrupt_at: str | None = None) -> tuple[int, str]:
    """Run a script that has a machine, with Ctrl-C at some lines; return its exit status and what it printed."""
    start = f"""
        import os, signal, sys, threading, time
        import numpy as np
        from execution_support import Machine
        from pathlib import Path
        machine = Machine(Path({str(folder)!r}))
        machine.runtime.gridstride_set_num_threads(2)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us with it ignored
        ints = lambda n: np.zeros(n, np.int32)
    """
    text = textwrap.dedent(start) + textwrap.dedent(script)
    environment = {**os.environ, "PYTHONPATH": str(Path(support.__file__).parent)}
    command = [sys.executable, "-u", "-c", text]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        try:
            output = ""
            for line in process.stdout or ():
                output += line
                if line == interrupt_at:
                    process.send_signal(signal.SIGINT)
            process.wait(timeout=60)
        except BaseException:
            process.kill()
            raise
    return process.returncode, output


@pytest.mark.parametrize(
    "launch",
    [
        "'spin_for_ever', 50, 64, ints(1)",
        "'spin_for_ever', 1, 1, ints(1)",
        "'wait_for_ever', 3, 64, ints(1)",
        "'grid_rotate', 9, 64, ints(9 * 64), np.int32(2**31 - 1), cooperative=True",
    ],
)
def test_an_interrupt_ends_a_launch(folder: Path, launch: str) -> None:
    script = f"""
        for _ in range(2):
            threading.Timer(0.3, print, ["running"]).start()
            try:
                machine.launch({launch})
                time.sleep(5)  # Python's own handler runs now
            except KeyboardInterrupt:
                print("interrupted", machine.failure().code, machine.failure().message.decode())
        values = ints(10)
        machine.run("add_one", 1, 10, values, np.int32(10))
        print(values.sum())
    """
    begin = time.monotonic()
    status, output = in_subprocess(folder, script, interrupt_at="running\n")
    assert status == 0, output
    assert output.count(f"interrupted {INTERRUPTED} kernel `") == 2
    assert output.endswith("10\n")
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("kernel", ["spin_for_ever", "wait_for_ever"])
def test_the_launch_timeout(machine: Machine, kernel: str) -> None:
    machine.runtime.gridstride_set_launch_timeout(0.3)
    assert machine.launch(kernel, 4, 64, ints(1)) == TIMEOUT
    message = machine.failure().message.decode()
    assert "launch time-out" in message
    if kernel == "wait_for_ever":
        assert re.search(
            r"63 threads waiting at __syncthreads, \S+\.cpp:\d+: \(1, 0, 0\) to \(63, 0, 0\)", message
        )
        assert "1 thread running: (0, 0, 0)" in message
    test_barriers_in_a_loop(machine, 64)


def test_long_launches_do_not_time_out_while_blocks_finish(machine: Machine) -> None:
    machine.runtime.gridstride_set_launch_timeout(0.5)
    values = np.zeros((4000, 256), np.int32)
    begin = time.monotonic()
    while time.monotonic() - begin < 1.0:
        machine.run("rotate", 4000, 256, values, values.copy(), np.int32(1))


def test_slow_blocks_that_wait_for_nobody_do_not_time_out(machine: Machine) -> None:
    machine.runtime.gridstride_set_num_threads(1)
    rounds, seconds = 10_000_000, 0.0
    while seconds < 0.25:  # slow enough for blocks to be taken off the processor
        rounds = rounds * 3 // 2
        begin = time.monotonic()
        machine.run("count_slowly", 1, 1, np.int64(rounds), ints(1))
        seconds = time.monotonic() - begin
    # Where all had turns alike none would finish before the last; so a block takes twice its time.
    machine.runtime.gridstride_set_launch_timeout(6 * seconds)
    is_done = ints(24)
    machine.run("count_slowly", 24, 1, np.int64(rounds), is_done)
    assert is_done.all()


def test_a_forked_child_launches(folder: Path) -> None:
    script = """
        values = ints(100_000)
        machine.run("add_one", 1000, 100, values, np.int32(100_000))
        child = os.fork()
        machine.run("add_one", 1000, 100, values, np.int32(100_000))
        assert machine.launch("stop", 100, 64, np.int32(0), np.int32(1)) == 8
        assert (values == 2).all()
        if child == 0:
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert in_subprocess(folder, script) == (0, "7\n")


def test_a_fault_outside_of_kernels_still_ends_the_process(folder: Path) -> None:
    crash = "import ctypes; ctypes.string_at(0)"
    run = "machine.run('add_one', 1, 10, ints(10), np.int32(10))"
    status, _ = in_subprocess(folder, f"{run}\n{crash}")
    assert status == -signal.SIGSEGV
    for enable_first in (True, False):
        enable = "import faulthandler; faulthandler.enable()"
        script = "\n".join([enable, run, run] if enable_first else [run, enable, run])
        status, output = in_subprocess(folder, f"{script}\n{crash}")
        assert status == -signal.SIGSEGV
        assert output.count("Fatal Python error: Segmentation fault") in (1, 2)
        assert "most recent call first" in output


@pytest.mark.parametrize("standard", ["gnu++14", "gnu++20"])
@pytest.mark.parametrize("compiler", sorted(support.compilers()))
def test_other_standards(tmp_path: Path, compiler: str, standard: str) -> None:
    command = [*support.compilers()[compiler], "-w", *support.FLAGS, f"-std={standard}", "-O0"]
    done = subprocess.run(
        [*command, str(support.KERNELS), "-o", str(tmp_path / "kernels.so")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["__shfl(1, 2)", "__shfl_up(1, 2)", "__any(1)", "__all(1)", "__ballot(1)"])
@pytest.mark.parametrize("compiler", sorted(support.compilers()))
def test_functions_that_were_removed(tmp_path: Path, compiler: str, name: str) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text(f"#include <gridstride_cpu/warp.h>\nvoid f() {{ {name}; }}\n")
    command = [
        *support.compilers()[compiler],
        *support.FLAGS,
        "-O1",
        str(source),
        "-o",
        str(tmp_path / "kernel.so"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"{name.partition('(')[0]} does not exist on compute capability 7.0 and later" in done.stderr


def test_aarch64_is_built_by_the_packaged_compiler(tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    for compiled in support.build_for_aarch64(tmp_path):
        assert int.from_bytes(compiled.read_bytes()[18:20], "little") == EM_AARCH64


@pytest.mark.skipif(not support.can_emulate_aarch64(), reason="needs aarch64-linux-gnu-g++ and qemu-aarch64")
def test_aarch64_under_emulation(tmp_path: Path) -> None:
    output = support.run_emulated_driver(tmp_path)
    assert output.split("\n") == [
        "rotate 0", "shuffles<int> 0", "grid_rotate 0", "volatile_chain 0",
        f"store_at {SEGMENTATION}", f"overflow_stack {STACK_OVERFLOW}", f"diverge {DIVERGENCE}", f"stop {ILLEGAL}",
        f"wait_for_ever {TIMEOUT}", "rotate 0", "",
    ]  # fmt: skip
