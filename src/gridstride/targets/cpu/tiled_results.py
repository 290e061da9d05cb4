"""Folds whose results lie in another order than the inputs: the CPU target folds tiles of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from gridstride.targets.walks import FoldWalk, Ints, Walked

#: Results from which on it is worth it, and how far apart in bytes neighbors lie then.
_MANY, _APART = 1 << 14, 64
#: Results of a tile along an axis at most, and at least; at most where others have too short rows for a loop.
_TILE, _LEAST, _LONG_TILE = 64, 8, 256
#: Bytes of the elements of a result for which results far from each other are folded side by side.
_FOLDED_BYTES = 128


def in_tiles(walk: FoldWalk) -> FoldWalk:
    """Return the walk of tiles of results, as long as lines of a cache, along both axes where these lie apart."""
    axis = _axis_of_results(walk)
    if axis is None:
        return walk
    # Where rows are folded those of neighboring results are read, wherever they are; else neighbors are a row.
    first = axis if _folds_rows(walk) else 0
    tile = _tile_of(walk.kept[first])
    if tile < _LEAST:
        if walk.kept[0] >= _LEAST or _folds_many(walk):
            return walk
        first, tile = axis, _tile_or_all(walk.kept[axis])
    others = [k for k in range(len(walk.kept)) if k != first]
    if first == 0:
        others = [axis, *(k for k in others if k != axis)]
    return _reordered(walk, first, tile, others)


def in_long_rows(walk: FoldWalk) -> FoldWalk:
    """Return the walk along its second kept axis, in tiles, where rows along the first one are too short for a loop.

    Not where many of them make a result: these are near each other, and tiles of far ones push them out of the cache.
    """
    if len(walk.kept) == 1 or walk.kept[0] >= _LEAST or walk.kept[1] < 2 * _LEAST:
        return walk
    if _folds_many(walk):
        return walk
    others = [k for k in range(len(walk.kept)) if k != 1]
    return _reordered(walk, 1, _tile_or_all(walk.kept[1]), others)


def _axis_of_results(walk: FoldWalk) -> int | None:
    """Return the axis along which results lie next to each other, if it is not that of the inputs."""
    if not walk.outputs or not walk.inputs or prod(walk.kept) < _MANY:
        return None
    output = walk.outputs[0]
    if abs(output.strides[0]) < _APART:
        return None
    axes = [k for k, step in enumerate(output.strides) if abs(step) == output.itemsize]
    return next((k for k in axes if k > 0 and walk.kept[k] >= _LEAST), None)


def _folds_rows(walk: FoldWalk) -> bool:
    return all(each.fold_strides[0] == each.itemsize for each in walk.inputs)


def _folds_many(walk: FoldWalk) -> bool:
    return prod(walk.fold) * max((each.itemsize for each in walk.inputs), default=1) > _FOLDED_BYTES


def _tile_or_all(length: int) -> int:
    tile = _tile_of(length, _LONG_TILE)
    return tile if tile >= _LEAST else length


def _tile_of(length: int, most: int = _TILE) -> int:
    return next((k for k in range(min(most, length), 0, -1) if length % k == 0), 1)


def _reordered(walk: FoldWalk, first: int, tile: int, others: Sequence[int]) -> FoldWalk:
    """Return the walk along a tile of one axis, then others, then from tile to tile."""
    rest = walk.kept[first] // tile

    def steps(values: Ints) -> Ints:
        last = (values[first] * tile,) if rest > 1 else ()
        return (values[first], *(values[k] for k in others), *last)

    def walked(each: Walked) -> Walked:
        return each._replace(strides=steps(each.strides))

    return walk._replace(
        kept=(tile, *(walk.kept[k] for k in others), *((rest,) if rest > 1 else ())),
        kept_numbers=steps(walk.kept_numbers),
        results=steps(walk.results),
        inputs=tuple(map(walked, walk.inputs)),
        outputs=tuple(map(walked, walk.outputs)),
    )
