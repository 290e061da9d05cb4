"""Whether elements share bytes: of one array, or of two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import gcd

from gridstride._arguments.axes import strides_of
from gridstride.arrays.view import ArrayView

#: How many sums are tried; the question is as hard as packing a knapsack, though hardly ever for arrays.
_MOST_TRIED = 2000

#: A stride and how often it may be taken.
Step = tuple[int, int]


def may_overlap_itself(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Return whether two elements may share a byte; never False where they do."""
    axes = [(abs(stride), length - 1) for stride, length in zip(strides, shape, strict=True) if length > 1]
    axes.sort()
    reached = itemsize
    for stride, most in axes:
        if stride < reached:
            return 0 in shape or _two_meet(axes, itemsize)
        reached += stride * most
    return False


def _two_meet(axes: Sequence[Step], itemsize: int) -> bool:
    """Return whether elements at different indices may share a byte."""
    for k, (stride, most) in enumerate(axes):  # the first along which the indices differ
        others = axes[k + 1 :]
        start = stride - sum(other * count for other, count in others)
        steps = [(stride, most - 1), *((other, 2 * count) for other, count in others)]
        if _may_reach(steps, -itemsize - start, itemsize - start):
            return True
    return False


def may_share(first: ArrayView, second: ArrayView) -> bool:
    """Return whether two arrays may share a byte; never False where they do."""
    if not first.size or not second.size:
        return False
    (low, high), (other_low, other_high) = first.extent, second.extent
    if high <= other_low or other_high <= low:
        return False
    # How far elements of the second lie behind those of the first, from the least on.
    least = other_low - (high - first.dtype.itemsize)
    steps = [
        (abs(stride), length - 1)
        for view in (first, second)
        for stride, length in zip(strides_of(view), view.shape, strict=True)
    ]
    return _may_reach(steps, -second.dtype.itemsize - least, first.dtype.itemsize - least)


def _may_reach(steps: Iterable[Step], low: int, high: int) -> bool:
    """Return whether strides may add up to something between two numbers; never False where they do."""
    counts: Counter[int] = Counter()
    for stride, most in steps:
        counts[stride] += most
    ordered = sorted(((stride, most) for stride, most in counts.items() if stride and most), reverse=True)
    farthest, common = [0], [0]
    for stride, most in reversed(ordered):
        farthest.append(farthest[-1] + stride * most)
        common.append(gcd(common[-1], stride))
    tried = 1
    waiting = [(len(ordered), low, high)]
    while waiting:
        left, low, high = waiting.pop()
        if low < 0 < high:
            return True
        if high <= 0 or low >= farthest[left] or (high - 1) // common[left] * common[left] <= low:
            continue
        stride, most = ordered[-left]
        fewest = max(0, -((farthest[left - 1] - low - 1) // stride))
        last = min(most, (high - 1) // stride)
        tried += last + 1 - fewest
        if tried > _MOST_TRIED:
            return True
        waiting += [
            (left - 1, low - stride * times, high - stride * times) for times in range(fewest, last + 1)
        ]
    return False
