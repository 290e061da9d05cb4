"""Folds that are usual: where a kernel has many loops, those of all of them are one text, not one each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

from gridstride import _forks
from gridstride._arguments import axes
from gridstride._array_pipeline.walking import walk_of
from gridstride._source.reduction import ReductionForm
from gridstride.targets.walks import FoldWalk, Walked

Ints = tuple[int, ...]

#: Usual loops of a kernel that have a text of their own each, before all of them come in one.
_MOST_ALONE = 3
#: Characters of users' texts.
_LONGEST = 4000
#: Shapes of usual folds, all of them large, some with a short axis.
_SHAPES = (
    (400, 300, 200), (401, 301, 203), (3, 3000, 3000), (3000, 3, 3001), (3000, 3001, 3), (12, 1000, 1000),
    (1000, 12, 1001), (1000, 1001, 12), (40, 600, 601), (600, 40, 601), (601, 600, 40), (1, 5000, 4000),
    (4000, 1, 5001), (5000, 4001, 1), (2, 2, 4000001), (274, 376, 92), (898, 574, 17), (18, 601, 831),
    (384, 305, 86), (201, 485, 127), (312, 391, 393), (271, 114, 392), (541, 437, 768), (294, 160, 224),
    (722, 45, 750), (320, 314, 170), (816, 208, 61), (614, 843, 24), (844, 792, 224), (565, 878, 34), (869, 782, 28),
    (798, 535, 20), (539, 781, 64), (51, 733, 777), (899, 686, 16),
)  # fmt: skip
#: Orders of axes in memory, by how much each is apart, and the axes that are folded.
_LAYOUTS = (
    ((0, 1, 2), (1, 1, 1), (0, 1, 2)), ((0, 1, 2), (1, 1, 1), (0,)), ((0, 1, 2), (1, 1, 1), (1,)),
    ((0, 1, 2), (1, 1, 1), (2,)), ((0, 1, 2), (1, 1, 1), (0, 2)), ((2, 1, 0), (1, 1, 1), (0,)),
    ((1, 0, 2), (1, 1, 1), (1,)), ((0, 1, 2), (2, 1, 1), (2,)), ((0, 1, 2), (1, 1, 2), (2,)),
    ((0, 1, 2), (-1, 1, 1), (0,)), ((0, 1, 2), (1, 1, -1), (0, 1, 2)),
)  # fmt: skip

_lock = _forks.Lock()


@dataclass(slots=True)
class _Kernel:
    """What is known of a kernel: the loops that have texts of their own, and the usual ones once it has many."""

    alone: set[ReductionForm] = field(default_factory=set)
    usual: tuple[ReductionForm, ...] = ()
    is_refused: bool = False


def forms_of_text(
    kernel: Hashable, form: ReductionForm, usual: Callable[[], Iterable[ReductionForm]]
) -> tuple[ReductionForm, ...]:
    """Return the forms of the text that a fold is compiled in: its own, or where a kernel has many all usual ones.

    Which text it is makes no difference for results: a loop is the same in both.

    Parameters
    ----------
    kernel : hashable
        All that texts depend on besides the loop.
    form : ReductionForm
    usual : callable
        Returns the forms of usual folds.
    """
    with _lock:
        known = _known(kernel)
        own = next((each for each in known.alone if has_form((each,), form)), None)
        if own is not None:
            return (own,)
        if len(known.alone) >= _MOST_ALONE and not known.usual and not known.is_refused:
            known.usual = tuple(dict.fromkeys(usual()))
        if sum(has_form(known.usual, each) for each in known.alone) >= _MOST_ALONE and has_form(
            known.usual, form
        ):
            return known.usual
        known.alone.add(form)
        return (form,)


def refuse_usual(kernel: Hashable, form: ReductionForm) -> tuple[ReductionForm, ...]:
    """Let all further loops of a kernel have texts of their own, since a compiler refused the usual ones in one."""
    with _lock:
        known = _known(kernel)
        known.usual, known.is_refused = (), True
        known.alone.add(form)
    return (form,)


def is_short(texts: Iterable[str]) -> bool:
    """Return whether users' texts are so short that a compiler takes little time for them in all usual loops."""
    return sum(map(len, texts)) <= _LONGEST


def has_form(forms: Sequence[ReductionForm], form: ReductionForm) -> bool:
    """Return whether a text of forms has the functions of one."""
    if form.joining and form.of_joining() not in {each.of_joining() for each in forms}:
        return False
    return form.without_joining() in {each.without_joining() for each in forms}


def usual_walks(walk: FoldWalk, has_numbers: bool, has_positions: bool) -> Iterator[FoldWalk]:
    """Yield walks of usual folds with as many operands as a walk has, as large ones."""
    for shape, (order, apart, folded) in product(_SHAPES, _LAYOUTS):
        strides = _strides(shape, order, apart)
        kept = [axis for axis in range(len(shape)) if axis not in folded]
        results = axes.c_strides(tuple(shape[axis] for axis in kept), 1)
        yield walk_of(
            shape, folded,
            [Walked(0, each.itemsize, tuple(each.itemsize * stride for stride in strides), ()) for each in walk.inputs],
            [
                Walked(0, each.itemsize, tuple(each.itemsize * stride for stride in results), (), True)
                for each in walk.outputs
            ],
            has_numbers, has_positions,
        )._replace(
            in_structures=walk.in_structures, has_identity=walk.has_identity, keeps_places=walk.keeps_places
        )  # fmt: skip


def _strides(shape: Ints, order: Ints, apart: Ints) -> Ints:
    """Return the strides of axes that lie in an order, outermost first, each of which is so many times apart."""
    strides, stride = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = stride * apart[axis]
        stride *= shape[axis] * abs(apart[axis])
    return tuple(strides)


@lru_cache(maxsize=2048)
def _known(kernel: Hashable) -> _Kernel:
    return _Kernel()
