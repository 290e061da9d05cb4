"""What loops are told of the walks of folds."""

from __future__ import annotations

import struct
from math import prod

import pytest

from gridstride.targets import registry
from gridstride.targets.block_loops.fold_loops import counter_of
from gridstride.targets.block_loops.sizes import parts_that_fill
from gridstride.targets.block_loops.writers import BlockLoops
from gridstride.targets.walks import THREADS, FoldLoop, FoldWalk, Walked

pytestmark = pytest.mark.usefixtures("folds_of_much")


@pytest.mark.parametrize(
    ("fold", "positions", "counter"),
    [
        ((5,), (1,), "int"),
        ((1,), (0,), "int"),
        ((2**31 - 1,), (1,), "int"),
        ((2**31,), (1,), "long long"),
        ((4, 3), (1, 4), "int"),
        ((2**16, 2**15), (1, 2**16), "long long"),
        ((3, 4), (4, 1), "long long"),
    ],
)
def test_places_are_counted_in_the_smallest_type_that_holds_them(
    fold: tuple[int, ...], positions: tuple[int, ...], counter: str
) -> None:
    walk = FoldWalk((1,), fold, (1,), positions, positions, (1,), (), (), in_structures=True)
    assert counter_of(walk) == counter
    assert counter_of(walk._replace(in_structures=False)) == "long long"


def fold_of_rows(
    rows: int, width: int, itemsize: int, address: int = 0, in_structures: bool = False, **fields: bool
) -> FoldLoop:
    """Return the loop for a fold of each row of an array on a device of 132 multiprocessors."""
    array = Walked(address, itemsize, (width * itemsize,), (itemsize,))
    walk = FoldWalk(
        (rows,), (width,), (width,), (1,), (1,), (1,), (array,), (Walked(0, 8, (8,), written=True),), in_structures,
        **fields,
    )  # fmt: skip
    return BlockLoops().reduction(walk, registry.get("cpu").limits(0)._replace(multiprocessors=132))


@pytest.mark.parametrize(
    ("width", "itemsize", "address", "in_structures", "name"),
    [
        (100, 4, 0, False, "fold_lines"),
        (100, 4, 4, False, "fold_short"),
        (101, 4, 0, False, "fold_short"),
        (64, 4, 0, False, "fold_short"),
        (112, 1, 0, False, "fold_short"),
        (511, 2, 0, False, "fold_short"),
        (512, 2, 2, False, "fold_lines"),
        (255, 4, 0, False, "fold_short"),
        (256, 4, 4, False, "fold_lines"),
        (333, 4, 0, False, "fold_lines"),
        (251, 8, 0, False, "fold_short"),
        (511, 2, 0, True, "fold_lines"),
        (50, 8, 0, False, "fold_short"),
        (304, 1, 0, False, "fold_lines"),
        (304, 1, 0, True, "fold_short"),
    ],
)
def test_rows_of_many_small_elements_are_lines_where_they_are_whole_words(
    width: int, itemsize: int, address: int, in_structures: bool, name: str
) -> None:
    assert fold_of_rows(1 << 20, width, itemsize, address, in_structures).name.startswith(name)


@pytest.mark.parametrize(
    ("width", "itemsize", "address", "name"),
    [
        (100, 4, 0, "fold_short<false, 24576, true, 16>"),
        (100, 4, 8, "fold_short<true, 24576, true, 8>"),
        (96, 4, 0, "fold_short<true, 24576, true, 16>"),
        (100, 2, 0, "fold_short<false, 36864, true, 8>"),
        (77, 2, 0, "fold_short<false, 36864, true>"),
        (128, 4, 0, "fold_lines<4, int, true>"),
        (200, 4, 0, "fold_lines<7, int, true>"),
        (300, 4, 0, "fold_lines<5, int, true>"),
    ],
)
def test_rows_of_places_are_taken_by_the_words_of_which_they_are_made(
    width: int, itemsize: int, address: int, name: str
) -> None:
    loop = fold_of_rows(1 << 20, width, itemsize, address, True, has_identity=False, keeps_places=True)
    assert loop.name.split(":")[0] == name


@pytest.mark.parametrize(
    ("width", "itemsize", "turns"),
    [(127, 1, 4), (511, 1, 4), (73, 1, 2), (100, 1, 1), (145, 2, 2), (129, 2, 1)],
)
def test_how_many_threads_begin_at_different_words_of_their_rows(
    width: int, itemsize: int, turns: int
) -> None:
    loop = fold_of_rows(1 << 20, width, itemsize)
    assert loop.name.startswith("fold_short<false,")
    assert loop.name.split(":")[0].endswith("true>")
    assert struct.unpack_from("<i", loop.space, 44) == (turns,)


@pytest.mark.parametrize(
    ("rows", "width", "itemsize", "in_structures", "threads"),
    [
        (1 << 20, 176, 4, False, 4),  # of 8 a turn more would find nothing left
        (1 << 20, 400, 4, False, 16),
        (1 << 20, 400, 4, True, 8),
        (1 << 20, 700, 1, True, 2),
        (1000, 700, 1, True, 8),
        (1000, 176, 4, False, 8),
    ],
)
def test_how_many_threads_share_a_short_line(
    rows: int, width: int, itemsize: int, in_structures: bool, threads: int
) -> None:
    grid = fold_of_rows(rows, width, itemsize, in_structures=in_structures).configuration.grid
    assert grid == (-(-rows * threads // THREADS), 1, 1)


def loop_for(kept: tuple[int, ...], fold: tuple[int, ...], *inputs: Walked) -> FoldLoop:
    """Return the loop for results of four bytes, one after another."""
    numbers = tuple(range(len(kept))), tuple(range(len(fold)))
    strides = tuple(4 * prod(kept[:axis]) for axis in range(len(kept)))
    out = Walked(0, 4, strides, written=True)
    walk = FoldWalk(kept, fold, *numbers, numbers[1], tuple(each // 4 for each in strides), inputs, (out,))
    return BlockLoops().reduction(walk, registry.get("cpu").limits(0)._replace(multiprocessors=132))


@pytest.mark.parametrize(
    ("row", "step", "address", "start"),
    [
        (1 << 20, 4, 0, "fold_few_rows<4, 4, gridstride::few_words>"),
        (1 << 20, 4, 4, "fold_few_rows<4, 4, gridstride::few_into_words>"),
        ((1 << 20) + 1, 4, 0, "fold_few_rows<4, 4, gridstride::few_into_words>"),
        ((1 << 20) + 2, 4, 0, "fold_few_rows<2, 2, gridstride::few_words>"),
        (1 << 20, 12, 0, "fold_few_rows<4, 4, gridstride::few_elements>"),
    ],
)
def test_how_a_few_rows_are_loaded(row: int, step: int, address: int, start: str) -> None:
    assert loop_for((row,), (3,), Walked(address, 4, (step,), (row * 4,))).name.startswith(start)


@pytest.mark.parametrize(
    ("row", "weights", "start"),
    [
        (8192, (0, 4), "fold_columns<4, true, 0, long long, true>"),
        (8192, (4, 8192 * 4), "fold_columns<4, true, 0, long long, false>"),
        (8191, (0, 4), "fold_columns<4, true, 0, long long, true>"),
        (8191, (4, 8191 * 4), "fold_columns<4, false, 0, long long, false>"),
        (8192, (12, 8192 * 12), "fold_columns<4, false, 0, long long, false>"),
    ],
)
def test_one_weight_for_a_row_leaves_its_elements_in_words(
    row: int, weights: tuple[int, int], start: str
) -> None:
    x, w = Walked(0, 4, (4,), (row * 4,)), Walked(0, 4, weights[:1], weights[1:])
    assert loop_for((row,), (8192,), x, w).name.startswith(start)


@pytest.mark.parametrize(("length", "are_words"), [(1024, True), (1222, False), (1225, False)])
def test_lines_are_told_whether_all_are_words(length: int, are_words: bool) -> None:
    name = loop_for((100_000,), (length,), Walked(0, 2, (length * 2,), (2,))).name
    assert "lines<" in name
    assert name.endswith(f"{str(are_words).lower()}>")


@pytest.mark.parametrize(
    ("row", "apart", "start"),
    [
        (49, 51, "fold_rows<4, false, 1, "),
        (396, 408, "fold_rows<4, true, 1, "),
        (3, 5, "fold_rows<4, false, 1, "),
    ],
)
def test_parts_of_rows_are_rows_however_short(row: int, apart: int, start: str) -> None:
    x = Walked(0, 4, (apart * apart * 4,), (4, apart * 4))
    assert loop_for((10_000,), (row, row), x).name.startswith(start)


def loop_of(lengths: tuple[int, ...], kinds: str, itemsize: int, address: int = 0) -> FoldLoop:
    """Return the loop for an array in order, of axes that are kept or folded, innermost first; nothing is numbered."""
    steps = [prod(lengths[:k]) for k in range(len(lengths))]
    axes = {kind: [k for k, each in enumerate(kinds) if each == kind] for kind in "kf"}
    strides = {kind: tuple(steps[k] * itemsize for k in axes[kind]) for kind in "kf"}
    kept, fold = (tuple(lengths[k] for k in axes[kind]) for kind in "kf")
    results = tuple(prod(kept[:k]) for k in range(len(kept)))
    walk = FoldWalk(
        kept, fold, (0,) * len(kept), (0,) * len(fold), (0,) * len(fold), results,
        (Walked(address, itemsize, strides["k"], strides["f"]),),
        (Walked(0, 4, tuple(4 * each for each in results), written=True),),
    )  # fmt: skip
    return BlockLoops().reduction(walk, registry.get("cpu").limits(0)._replace(multiprocessors=132))


@pytest.mark.parametrize(
    ("lengths", "kinds", "itemsize", "name"),
    [
        ((9, 5, 6, 8, 90_000), "fkfkf", 1, "fold_boxes<16, 1, 4, true, 1>"),
        ((9, 5, 6, 8, 90_000), "fkfkk", 4, "fold_planes<27904, false, true, true, 9, 3, 2>"),
        ((9, 5, 6, 8, 90_000), "kfkfk", 2, "fold_planes<27904, false, true, false, 5, 3, 2>"),
        ((5, 6, 300_000, 8), "kfkf", 4, "fold_boxes<4, 1, 4, true, 1>"),
        ((6, 9_000, 40, 30), "kfkf", 8, "fold_boxes<2, 1, 4, true, 2>"),
        ((19, 17, 13, 9_000), "fkkf", 1, "fold_stacked<"),
        ((32, 17, 13, 9_000), "fkkf", 1, "fold_boxes<16, 1, 4, true, 1>"),
        ((3136, 64, 300), "fkf", 4, "fold_rows<"),
        ((3137, 64, 300), "fkf", 4, "fold_long_lines<"),
        ((333, 64, 300), "fkf", 2, "fold_short<"),
        ((333, 7, 30_000), "fkf", 2, "fold_rows<"),
        ((9_000, 64, 40), "kfk", 4, "fold_columns<"),
        ((7, 64, 90_000), "kfk", 4, "fold_planes<27904, true, true, false, 0, 2, 1>"),
        ((7, 5, 90_000), "kfk", 2, "fold_planes<27904, false, true, false, 5, 2, 1>"),
        ((7, 1000, 9_000), "kfk", 4, "fold_planes<45328, false, false, false, 0, 2, 1>"),
        ((7, 3000, 9_000), "kfk", 4, "fold_narrow<"),
    ],
)
def test_folded_axes_between_kept_ones(
    lengths: tuple[int, ...], kinds: str, itemsize: int, name: str
) -> None:
    assert loop_of(lengths, kinds, itemsize).name.startswith(name)


def test_boxes_are_the_same_wherever_memory_begins() -> None:
    one, other = (loop_of((9, 5, 6, 8, 90_000), "fkfkf", 1, address) for address in (0, 1))
    assert one.configuration == other.configuration
    assert one.name == "fold_boxes<16, 1, 4, true, 1>::fold"
    assert other.name == "fold_boxes<16, 1, 4, false, 1>::fold"


@pytest.mark.parametrize(
    ("blocks", "least_rounds", "parts"),
    [(1, 1, 660), (167, 1, 3), (400, 1, 3), (660, 1, 1), (800, 2, 2), (66, 2, 20), (5000, 1, 1)],
)
def test_parts_fill_what_a_device_holds_in_few_rounds(blocks: int, least_rounds: int, parts: int) -> None:
    assert parts_that_fill(blocks, 660, least_rounds) == parts


@pytest.mark.parametrize(
    ("rows", "in_structures", "has_identity", "start"),
    [
        (100, False, True, "fold_few_rows<"),
        (100, True, True, "fold_few_rows<"),
        (100, True, False, "fold_columns<"),
        (60, True, False, "fold_few_rows<"),
        (130, False, True, "fold_columns<"),
    ],
)
def test_threads_fold_rows_alone_where_there_are_enough(
    rows: int, in_structures: bool, has_identity: bool, start: str
) -> None:
    columns = 640_000
    x, out = Walked(0, 4, (4,), (columns * 4,)), Walked(0, 4, (4,), written=True)
    walk = FoldWalk(
        (columns,), (rows,), (1,), (columns,), (1,), (1,), (x,), (out,), in_structures, has_identity
    )
    limits = registry.get("cpu").limits(0)._replace(multiprocessors=132)
    assert BlockLoops().reduction(walk, limits).name.startswith(start)


@pytest.mark.parametrize(
    ("rows", "itemsize", "in_structures", "parts"),
    [
        (10**6, 4, False, 658),
        (10**6, 4, True, 658),
        (2 * 10**6, 2, True, 516),
        (10**7, 4, False, 1318),
        (10**7, 1, False, 1290),
    ],
)
def test_narrow_folds_have_few_parts_where_there_is_less_to_read(
    rows: int, itemsize: int, in_structures: bool, parts: int
) -> None:
    x = Walked(0, itemsize, (itemsize,), (20 * itemsize,))
    walk = FoldWalk(
        (20,), (rows,), (1,), (20,), (1,), (1,), (x,), (Walked(0, 8, (8,), written=True),), in_structures
    )
    limits = registry.get("cpu").limits(0)._replace(multiprocessors=132)
    assert abs(BlockLoops().reduction(walk, limits).parts - parts) <= 5
