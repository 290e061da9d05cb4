"""Places of static shared variables in a block's arena."""

from __future__ import annotations

from gridstride.targets.cpu.abi import SharedSlot
from gridstride.targets.cpu.shared import SharedLayout


def _slot(where: str, size: int, alignment: int = 4) -> SharedSlot:
    return SharedSlot(where.encode(), size, alignment, 10**6)


def test_kernels_share_what_lies_behind_the_common_part() -> None:
    slots = [_slot("4 b", 100), _slot("3 a", 8, 8), _slot("2 a", 4), _slot("1 ", 12), _slot("5 ", 4, 16)]
    layout = SharedLayout()
    layout.place(slots)
    assert [slot.offset for slot in slots] == [20, 24, 20, 0, 16]
    assert (layout.common, layout.ends, layout.total()) == (20, {"a": 32, "b": 120}, 120)


def test_instances_of_a_kernel_share_places_and_those_of_other_functions_do_not() -> None:
    slots = [_slot("1 k", 16), _slot("1 k", 64, 16), _slot("2 ", 8), _slot("2 ", 8)]
    layout = SharedLayout()
    layout.place(slots)
    assert [slot.offset for slot in slots] == [16, 16, 0, 8]
    assert layout.total() == 80


def test_bytes_of_a_kernel_under_any_name() -> None:
    layout = SharedLayout()
    layout.place([_slot("1 ns::k", 16), _slot("2 j", 64), _slot("3 ", 4)])
    assert [layout.bytes_of(name) for name in ("ns::k<float>", "k<float>", "j", "other", "s::k")] == [
        20,
        20,
        68,
        4,
        4,
    ]


def test_nothing_shared_is_nothing() -> None:
    layout = SharedLayout()
    layout.place([])
    assert (layout.total(), layout.bytes_of("k")) == (0, 0)
