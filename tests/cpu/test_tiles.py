"""Tiles of the CPU target: each way in which elements are come by, with results in the caches and past them."""

from __future__ import annotations

import re
import threading
from itertools import permutations
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gridstride as gs
from gridstride.targets import registry
from gridstride.targets.cpu import compiler, tiles
from gridstride.targets.options import CompileOptions
from gridstride.targets.values import Program
from gridstride.targets.walks import ElementWalk, Ints, Walked
from tests.cpu.test_boxes import permuted_walk
from tests.crosses import in_soak, in_turns

SHAPES = [(331, 157), (1000, 3), (3, 1000), (7, 33, 65), (5, 3, 200, 4), (33, 4, 2, 40), (2, 3, 5, 7, 61)]
DTYPES = ["int8", "float16", "float32", "float64", "complex64", "complex128"]
#: Elements that no vector holds whole.
RECORDS = [np.dtype("u1,u2"), np.dtype("u4,u4,u4")]


@pytest.fixture(params=[False, True], ids=["kept", "streamed"], autouse=True)
def streamed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "_is_streamed", lambda *_: request.param)


def add() -> gs.ElementwiseKernel:
    """Return a kernel that has not met any layout yet."""
    return gs.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    return np.random.default_rng(len(shape)).integers(-60, 60, shape).astype(dtype)


def orders(ndim: int) -> list[tuple[int, ...]]:
    """Return orders of axes, not more than a handful."""
    found = list(permutations(range(ndim)))
    return found[:: max(1, len(found) // 6)]


@pytest.mark.parametrize(("shape", "dtype"), in_turns(SHAPES, DTYPES, 2))
def test_axes_in_any_order(shape: tuple[int, ...], dtype: str) -> None:
    kernel = add()
    for order in orders(len(shape)):
        x = numbers(shape, dtype).transpose(order)
        for other in (x.copy(), numbers(shape, dtype)[::-1].transpose(order)):
            out = np.empty(x.shape, dtype)
            np.testing.assert_array_equal(kernel(x, other, out), x + other)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    in_turns(
        [*SHAPES[3:], (40, 40, 40), (20, 4, 3000), (3, 3, 900, 5), (2, 70, 33, 17)],
        ["int8", "float32", "complex128"],
    ),
)
def test_inputs_in_several_orders(shape: tuple[int, ...], dtype: str) -> None:
    kernel = add()
    ways = orders(len(shape))
    for each in zip(ways, ways[1:] + ways[:1], ways[::-1], strict=True):
        lying = [
            numbers(tuple(shape[k] for k in order), dtype).transpose(np.argsort(order)) for order in each
        ]
        x, y, out = lying
        for other in (y, y[::-1], y[:, :1], y[..., :1], y[:1]):
            np.testing.assert_array_equal(kernel(x, other, out), x + other)
        inner = tuple(slice(1, n + 1) for n in shape)
        memory, expected = (np.zeros(tuple(n + 3 for n in shape), dtype) for _ in range(2))
        kernel(x, y, memory[inner])
        expected[inner] = x + y
        np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize(
    ("shape", "dtype"), in_turns([*SHAPES, (20, 4, 3000), (300, 7, 9)], ["int8", "float32", "complex128"])
)
def test_results_in_several_orders(shape: tuple[int, ...], dtype: str) -> None:
    kernel = gs.ElementwiseKernel("T x", "T y, T z, T w", "y = x; z = x + x; w += x", "three")
    ways, x, inner = orders(len(shape)), numbers(shape, dtype), tuple(slice(1, n + 1) for n in shape)
    for each in zip(ways, ways[1:] + ways[:1], ways[::-1], strict=True):
        memory = [
            numbers(tuple(shape[k] + 3 for k in order), dtype).transpose(np.argsort(order)) for order in each
        ]
        expected = [array.copy() for array in memory]
        kernel(x, *(array[inner] for array in memory))
        for array, values in zip(expected, (x, x + x, expected[2][inner] + x), strict=True):
            array[inner] = values
        for array, values in zip(memory, expected, strict=True):
            np.testing.assert_array_equal(array, values)


@pytest.mark.parametrize("dtype", ["int8", "complex128"])
def test_results_a_few_elements_apart_beside_others_in_rows(dtype: str) -> None:
    x, y = numbers((20, 3, 4), dtype).T, np.empty((4, 3, 20), dtype)
    z = np.empty((3, 20, 4), dtype).transpose(2, 0, 1)
    gs.ElementwiseKernel("T x", "T y, T z", "y = x; z = x + x", "two")(x, y, z)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(z, x + x)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_broadcast_axes(shape: tuple[int, ...]) -> None:
    kernel = add()
    x = numbers(shape, "float32")
    for axis in range(len(shape)):
        y = numbers(tuple(n if k == axis else 1 for k, n in enumerate(shape)), "float32")
        np.testing.assert_array_equal(kernel(x, y), x + y)
        np.testing.assert_array_equal(kernel(np.broadcast_to(y, shape), y), np.broadcast_to(y + y, shape))


@pytest.mark.parametrize(
    "dtype", ["int8", "float16", "float32", "complex64", *in_soak("float64", "complex128")]
)
def test_short_rows_of_broadcast_operands(dtype: str) -> None:
    kernel = add()
    for shape, others in {
        (700, 3): [(700, 1), (1, 3)],
        (90, 65): [(90, 1), (1, 65)],
        (20, 64, 49): [(64, 1), (64, 49), (20, 1, 49), (20, 64, 1), (20, 1, 1)],
        (3, 400, 50): [(400, 1), (3, 400, 1), (1, 50)],
        (300, 7, 9): [(300, 7, 1), (300, 1, 9), (7, 1), (9,)],
        (2, 3, 9, 5, 7): [(3, 1, 5, 1), (2, 1, 9, 1, 7), (9, 1, 1), (3, 9, 1, 7)],
    }.items():
        # Whole rows, and the last of rows that are cut; of memory in order, and of every second element.
        x = numbers(shape, dtype)
        for other in others:
            y = numbers((*other[:-1], 2 * other[-1]), dtype)
            for each in (y[..., ::2], y[..., : other[-1]], y[..., ::2].copy()):
                np.testing.assert_array_equal(kernel(x, each), x + each)
            for another in others:
                z = numbers(another, dtype)[::-1]
                expected = y[..., ::2] + z
                np.testing.assert_array_equal(kernel(y[..., ::2], z), expected)
                np.testing.assert_array_equal(kernel(z, y[..., ::2]), expected)


@pytest.mark.parametrize(
    "dtype", ["int8", "float16", "float32", "complex128", *in_soak("float64", "complex64")]
)
def test_results_in_short_pieces(dtype: str) -> None:
    kernel = gs.ElementwiseKernel("T x, T y", "T z, T w", "z = x + y; w += z", "sums")
    for shape in ((901, 3), (1000, 13), (50, 20, 7), (3, 400, 5, 2)):
        x, y = numbers(shape, dtype), numbers((*shape[:-1], 1), dtype)
        for inner in (tuple(slice(0, n) for n in shape), tuple(slice(1, n + 1) for n in shape)):
            wider = tuple(n + 4 for n in shape)
            z, w = numbers(wider, dtype), numbers(wider, dtype)
            expected_z, expected_w = z.copy(), w.copy()
            expected_z[inner] = x + y
            expected_w[inner] += x + y
            kernel(x, y, z[inner], w[inner])
            np.testing.assert_array_equal(z, expected_z)
            np.testing.assert_array_equal(w, expected_w)
            kernel(z[inner], y, z[inner], w[inner][..., ::-1])
            expected_w[inner][..., ::-1] += expected_z[inner] + y
            expected_z[inner] += y
            np.testing.assert_array_equal(z, expected_z)
            np.testing.assert_array_equal(w, expected_w)


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
def test_what_lies_between_results_is_never_written(dtype: str) -> None:
    pixels, rounds = numbers((50_000, 3), dtype), 40
    images = np.zeros((50_000, 4), dtype)
    kernel, others = add(), images[:, 3]
    kernel(pixels, pixels, images[:, :3])
    call = threading.Thread(target=lambda: [kernel(pixels, pixels, images[:, :3]) for _ in range(rounds)])
    call.start()
    for _ in range(rounds):
        np.add(others, 1, others)
    call.join()
    assert (others == rounds).all()
    np.testing.assert_array_equal(images[:, :3], pixels + pixels)


def test_periods_of_all_lengths() -> None:
    kernel = add()
    for length in (2, 5, 63, 64, 65, 1000, 1023, 1025, 3000):
        for repeated in (1, 3, 10):
            x, y = numbers((7, length, repeated), "int16"), numbers((length, 1), "int16")
            for row in (x, x[:, ::-1], x[:, : length - 1]):
                each = y[: row.shape[1]]
                np.testing.assert_array_equal(kernel(row, each), row + each)


@pytest.mark.parametrize("step", [-4, -3, -2, -1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_steps(step: int, dtype: str) -> None:
    kernel = add()
    x, out = numbers((40_001,), dtype), np.zeros(40_001, dtype)
    some = x[::step]
    np.testing.assert_array_equal(kernel(some, some[::-1]), some + some[::-1])
    np.testing.assert_array_equal(kernel(some, some, out[::step]), some + some)
    assert np.count_nonzero(out) <= some.size


@pytest.mark.parametrize("first", range(0, 17, 3))
@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128"])
def test_starts_between_lines(first: int, dtype: str) -> None:
    kernel = add()
    x, out = numbers((9_000,), dtype), np.zeros(9_000, dtype)
    kernel(x[1:-20], x[7:-14], out[first : first + 8_979])
    np.testing.assert_array_equal(out[first : first + 8_979], x[1:-20] + x[7:-14])
    assert not out[:first].any()
    assert not out[first + 8_979 :].any()


@pytest.mark.parametrize("first", [0, 5, 16, 63])
@pytest.mark.parametrize("gap", [0, 1, 16])
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
def test_pieces_of_rows_between_lines(first: int, gap: int, dtype: str) -> None:
    kernel = add()
    x, y = numbers((1100, 90), dtype), numbers((90, 1100), dtype)
    memory = np.zeros(first + 90 * (1100 + gap) + 20, dtype)
    expected = memory.copy()
    for values, array in ((0, memory), (x.T + y, expected)):
        rows = array[first : first + 90 * (1100 + gap)].reshape(90, 1100 + gap)[:, :1100]
        rows[...] = values
        if array is memory:
            kernel(x.T, y, rows)
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize("dtype", ["int8", "float64"])
def test_stacks_of_tiles(dtype: str) -> None:
    kernel = gs.ElementwiseKernel("T x, T y", "T z, T w", "z = x + y; w = x - y + i % 3", "stacks")
    x, y = numbers((2, 1100, 700), dtype), numbers((2, 1, 1100), dtype)
    memory = np.full((2, 2, 700, 1105), 99, dtype)
    z, w = memory[..., 3:-2]
    kernel(x.transpose(0, 2, 1), y, z, w)
    turned = x.transpose(0, 2, 1)
    np.testing.assert_array_equal(z, turned + y)
    places = np.arange(turned.size).reshape(turned.shape) % 3
    np.testing.assert_array_equal(w, (turned - y + places).astype(dtype))
    memory[..., 3:-2] = 99
    assert (memory == 99).all()


@pytest.mark.parametrize(("itemsize", "row"), [(1, 512), (2, 512), (4, 256), (8, 256)])
def test_choices(itemsize: int, row: int) -> None:
    def tile(shape: Ints, order: Ints) -> tuple[int, int, bool]:
        walk = permuted_walk(shape, order, 1 << 25, itemsize)
        tiling = tiles.tiling_of(walk, registry.get("cpu").limits(0))
        # Elements whose numbers nobody asks for.
        unnumbered = walk._replace(numbers=tuple(0 for _ in walk.numbers))
        other = tiles.tiling_of(unnumbered, registry.get("cpu").limits(0))
        assert (other.row_axes, other.width, other.height) == (tiling.row_axes, tiling.width, tiling.height)
        return tiling.width, tiling.height, bool(tiles.turned_axes(walk))

    # Whole chunks of memory, where these are tiles; short axes too, unless elements are picked out of vectors.
    assert tile((1, 33, 35), (0, 2, 1)) == (33, 35, True)
    assert tile((1, 5, 7, 9, 11), (0, 4, 2, 1, 3)) == (315, 11, True)
    assert tile((1, 5, 7, 9, 3), (0, 4, 2, 1, 3)) == (315, 3, True)
    assert tile((13, 1, 11), (2, 1, 0)) == (row // 13 * 13, 11, True)
    assert tile((1, 7), (1, 0)) == (row, 7, True)
    assert not tile((1, 5), (1, 0))[2]
    # Rows of chunks that are permuted whole.
    for shape in ((1, 2, 2), (1, 3, 17), (1, 8, 8)):
        chunk = shape[1] * shape[2]
        assert tile(shape, (0, 2, 1))[0] == (16384 // chunk * chunk if chunk * itemsize <= 384 else shape[1])
    assert not tile((1, 9, 5, 40), (0, 2, 1, 3))[2]


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1, 8), (1, 1, 1, 1, 1, 1, 1, 8), (1, 2, 4, 8)], ids=str)
def test_columns_of_all_operands_have_room(sizes: Ints) -> None:
    n, largest = 3000, max(sizes)
    turned = (Walked(0, size, (size * n, size)) for size in sizes)
    walk = ElementWalk((n, n), (0, 0), (*turned, Walked(0, largest, (largest, largest * n), written=True)))
    width = tiles.tiling_of(walk, registry.get("cpu").limits(0)).width
    assert 1024 - len(sizes) < width * len(sizes) <= 1024


@pytest.mark.parametrize(
    ("itemsize", "row", "inputs", "apart", "is_alone"),
    [
        (4, 64, 1, 66, True),
        (4, 63, 1, 65, False),
        (4, 32, 4, 34, True),
        (4, 32, 3, 34, False),
        (8, 32, 2, 63, True),
        (4, 128, 1, 256, False),  # too far
        (4, 100, 2, 0, False),
        (4, 128, 2, 0, True),
        (4, 128, 1, 128, False),  # not apart
    ],
)
def test_long_pieces_of_inputs_are_rows(
    itemsize: int, row: int, inputs: int, apart: int, is_alone: bool
) -> None:
    shape = row, 50, 60
    steps = itemsize, apart * itemsize, (apart or row) * 50 * itemsize
    out = Walked(0, itemsize, (itemsize, row * itemsize, row * 50 * itemsize), written=True)
    walk = ElementWalk(shape, (0, 0, 0), (*(Walked(0, itemsize, steps) for _ in range(inputs)), out))
    tiling = tiles.tiling_of(walk, registry.get("cpu").limits(0))
    assert (tiling.row_axes == 1) is is_alone


def test_rows_end_where_chunks_of_repeated_elements_would_be_long() -> None:
    pixels, out = Walked(0, 4, (4, 0, 12, 0, 576)), Walked(0, 4, (4, 12, 24, 1152, 2304), written=True)
    walk = ElementWalk((3, 2, 48, 2, 1000), (0,) * 5, (pixels, out))
    assert tiles.tiling_of(walk, registry.get("cpu").limits(0)).row_axes == 3


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("side", [20, 40, 70])
def test_neighbors_in_a_volume(dtype: str, side: int) -> None:
    x, inner = numbers((5, side, side), dtype) // 4, slice(1, -1)
    operands = [x[inner, inner, inner], x[:-2, inner, inner], x[inner, 2:, inner], x[inner, inner, :-2]]
    total = gs.ElementwiseKernel("T x, T y, T v, T w", "T z", "z = x + y + v + w", "sum_of_four")
    np.testing.assert_array_equal(total(*operands), sum(operands[1:]) + operands[0])


@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128"])
@pytest.mark.parametrize("width", [5, 48, 200])
def test_pieces_of_several_axes(dtype: str, width: int) -> None:
    copy = gs.ElementwiseKernel("T x", "T z", "z = x", "copy_of_pieces")
    pixels = numbers((7, 9, 1, width, 1, 3), dtype)
    out = np.zeros((7, 9, 2, width, 2, 3), dtype)
    copy(pixels, out)
    np.testing.assert_array_equal(out, np.broadcast_to(pixels, out.shape))
    apart = numbers((7, 9, 4, width, 3, 5), dtype)[:, :, 1:, :, :2, 1:]
    np.testing.assert_array_equal(copy(apart), apart)


def test_tiles_have_layers_where_operands_lie_along_two_other_axes() -> None:
    shape, orders = (40, 40, 40, 500), ((1600, 1, 40, 64000), (40, 1600, 1, 64000), (1, 40, 1600, 64000))
    x, y, z = (Walked(0, 1, strides) for strides in orders)

    def tile(*operands: Walked) -> tuple[Ints, int, int, int]:
        walk = ElementWalk(shape, (0,) * 4, operands)
        tiling = tiles.tiling_of(walk, registry.get("cpu").limits(0))
        return tiles.turned_axes(walk), tiling.width, tiling.height, tiling.depth

    assert tile(x, y, z._replace(written=True)) == ((1, 2), 40, 40, 40)
    assert tile(z, x._replace(written=True), y._replace(written=True)) == ((1, 2), 40, 40, 40)
    assert tile(x, z._replace(written=True))[0] == (1,)


@pytest.mark.parametrize(
    ("address", "row", "apart", "expected"),
    [
        (0, 4096, 4096, True),  # one after another
        (64, 512, 640, True),  # lines of the caches
        (4, 516, 524, False), (0, 512, 516, False), (4, 512, 640, False), (0, 500, 640, False),  # others
        (4, 8196, 8204, True),
        (0, 128, 192, False),
    ],
)  # fmt: skip
def test_long_rows_are_stored_past_the_caches(
    monkeypatch: pytest.MonkeyPatch, address: int, row: int, apart: int, expected: bool
) -> None:
    """Rows beside which a margin is left, as of a halo, have two lines each that are stored the usual way."""
    monkeypatch.undo()
    shape = row // 4, (1 << 28) // row
    walk = ElementWalk(shape, (0, 0), (Walked(0, 4, (4, row)), Walked(address, 4, (4, apart), written=True)))
    assert tiles.tiling_of(walk, registry.get("cpu").limits(0)).is_streamed is expected


@pytest.mark.parametrize("side", [16384, 16381])
def test_results_of_turned_rows_are_stored_past_the_caches(
    monkeypatch: pytest.MonkeyPatch, side: int
) -> None:
    """Rows of a tile are short, but the next tile goes on where they end."""
    monkeypatch.undo()
    row, column = (4, 4 * side), (4 * side, 4)
    walk = ElementWalk((side, side), (0, 0), (Walked(0, 4, column), Walked(0, 4, row, written=True)))
    assert tiles.tiling_of(walk, registry.get("cpu").limits(0)).is_streamed


def test_rows_are_fetched_ahead() -> None:
    # g++ removes calls of functions that do nothing else.
    kernel = add()
    kernel(numbers((3, 3), "float32"), numbers((3, 3), "float32"))
    includes = ("gridstride_cpu/loops.h",)
    program = Program(kernel.cached_code, "add", CompileOptions(), ("add_elementwise",), includes=includes)
    listing = compiler.list_program(program, "assembly")
    assert re.search(r"(call|bl)\s+\S*fetch_row_ahead", listing)


@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16", "float32"])
def test_choices_keep_all_bits(dtype: str) -> None:
    kernel = gs.ElementwiseKernel("bool c, T x, T y", "T z", "z = c ? x : y", "choose")
    every = np.arange(1 << 16, dtype="u2").view(getattr(ml_dtypes, dtype, dtype))
    chosen = np.random.default_rng(1).integers(0, 2, every.size).astype(bool)
    result = kernel(chosen, every, every[::-1])
    np.testing.assert_array_equal(result.view("u1"), np.where(chosen, every, every[::-1]).view("u1"))


def test_starts_within_an_element() -> None:
    kernel = add()
    memory = np.zeros(4 * 5_000 + 1, "u1")
    x, out = numbers((50, 100), "float32"), memory[1:].view("float32").reshape(50, 100)
    np.testing.assert_array_equal(kernel(x, x, out), x + x)
    np.testing.assert_array_equal(kernel(x.T, out.T), x.T + out.T)
    np.testing.assert_array_equal(kernel(x, out.T.reshape(50, 100)), x + out.T.reshape(50, 100))


def test_results_in_place() -> None:
    kernel = add()
    x, y = numbers((300, 200), "float32"), numbers((200, 300), "float32")
    expected = x + y.T
    kernel(x, y.T, x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", RECORDS, ids=str)
def test_records(dtype: np.dtype[Any]) -> None:
    assign = gs.ElementwiseKernel("T x", "T y", "y = x", "assign")
    memory = np.arange(60 * 70 * dtype.itemsize) % 251
    x = memory.astype("u1").view(dtype).reshape(60, 70)
    for array in (x, x.T, x[::-1, ::2], x.reshape(30, 2, 70).transpose(1, 2, 0)):
        np.testing.assert_array_equal(assign(array), array)


def test_operands_of_several_sizes() -> None:
    kernel = gs.ElementwiseKernel("X x, Y y, Z z", "Y u, X v", "u = x + y + z; v = x", "several")
    x, y, z = numbers((90, 130), "int8"), numbers((130, 90), "float64"), numbers((130, 90), "int16")
    u, v = kernel(x, y.T, z.T)
    np.testing.assert_array_equal(u, x + y.T + z.T)
    np.testing.assert_array_equal(v, x)


def test_elements_are_numbered() -> None:
    kernel = gs.ElementwiseKernel("T x", "T z", "z = x + i", "number")
    for shape in SHAPES:
        for order in orders(len(shape)):
            x = np.zeros(shape, "float64").transpose(order)
            np.testing.assert_array_equal(kernel(x).ravel(), np.arange(x.size))
            out = np.empty(x.shape)
            np.testing.assert_array_equal(kernel(x, out).ravel(), np.arange(x.size))
            out = np.empty(tuple(n + 1 for n in x.shape))[tuple(slice(n) for n in x.shape)]
            np.testing.assert_array_equal(kernel(x, out).ravel(), np.arange(x.size))


def test_more_turned_operands_than_there_is_memory_for() -> None:
    names = [f"x{k}" for k in range(20)]
    kernel = gs.ElementwiseKernel(
        ", ".join(f"T {name}" for name in names), "T z", f"z = {' + '.join(names)}", "sum_of_many"
    )
    arrays = [numbers((64, 200), "complex128") + k for k in range(20)]
    out = np.empty((200, 64), "complex128")
    np.testing.assert_array_equal(kernel(*(each.T for each in arrays), out), sum(arrays).T)
