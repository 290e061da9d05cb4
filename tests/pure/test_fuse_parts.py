"""Parts of fused functions that need no compiler: steps of numbers, keys of constants, numbers as text."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

from gridstride.families.fuse.arguments import Arguments, exact
from gridstride.families.fuse.literals import literal
from gridstride.families.fuse.numbers import recording
from gridstride.families.fuse.rules import NUMPY
from gridstride.families.fuse.steps import Steps
from gridstride.families.fuse.tape import Tape


def test_steps_are_taken_in_order_until_a_type_differs() -> None:
    steps, calls = Steps(1), []

    def counted(x: Any) -> Any:
        calls.append(x)
        return x * 2

    doubled = steps.add(counted, [0], 4)
    total = steps.add(operator.add, [doubled, steps.constant(10)], 14)
    assert steps.taken([3])[total] == 16  # type: ignore[index]
    assert calls == [3]
    assert steps.taken([3.0]) is None
    assert steps.taken([5])[doubled] == 10  # type: ignore[index]


def test_results_without_axes_are_scalars() -> None:
    steps = Steps(1)
    place = steps.add(np.asarray, [0], np.asarray(2.0))
    assert type(steps.taken([3.0])[place]) is np.float64  # type: ignore[index]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (2, 2.0), (2, True), (0.0, -0.0), ((1,), (1.0,)), ((1,), (np.float64(1),)), (frozenset({2}), frozenset({2.0})),
        (complex(0, 0.0), complex(0, -0.0)), (np.float32(1), np.float64(1)), ("a", b"a"), (1, np.int64(1)),
    ],
)  # fmt: skip
def test_keys_tell_constants_apart(first: Any, second: Any) -> None:
    assert exact(first, "p") != exact(second, "p")
    assert exact(first, "p") == exact(first, "p")


def test_a_nan_has_one_key() -> None:
    assert exact(float("nan"), "p") == exact(float("nan"), "p")
    assert exact((np.float32("nan"),), "p") == exact((np.float32("nan"),), "p")


def test_arguments_are_taken_apart_and_put_together() -> None:
    x = np.ones(3)
    given = Arguments({"p": (x, {"k": [1.0]}), "flag": True})
    assert [(each.name, each.kind) for each in given.all] == [
        ("p[0]", "array"), ("p[1]['k'][0]", "number"), ("flag", "constant"),
    ]  # fmt: skip
    assert given.put_together([1, 2, 3]) == {"p": (1, {"k": [2]}), "flag": 3}
    others = [
        {"p": (x, {"k": (1.0,)})},
        {"p": (x, {"l": [1.0]})},
        {"p": (x, {"k": [1]})},
        {"p": [x, {"k": [1.0]}]},
    ]
    keys = {given.key(set()), *(Arguments({**each, "flag": True}).key(set()) for each in others)}
    assert len(keys) == 5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.bool_(True), "true"), (np.int8(-1), "static_cast<signed char>(18446744073709551615ull)"),
        (np.int64(-(2**63)), "static_cast<long long>(9223372036854775808ull)"),
        (np.float32(-0.0), "__builtin_bit_cast(float, 0x80000000u)"),
        (np.float64(0.1), "__builtin_bit_cast(double, 0x3fb999999999999aull)"),
        (np.float16(1), "float16(__builtin_bit_cast(float, 0x3f800000u))"),
        (np.complex64(1 - 0j),
         "complex<float>(__builtin_bit_cast(float, 0x3f800000u), __builtin_bit_cast(float, 0x0u))"),
    ],
)  # fmt: skip
def test_numbers_as_text(value: Any, text: str) -> None:
    assert literal(value, value.dtype) == text


def test_changes_in_place_do_not_walk_the_whole_tape(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[str] = []
    used_by = Tape.used_by
    monkeypatch.setattr(Tape, "used_by", lambda tape, name: walks.append(name) or used_by(tape, name))
    given = Arguments({"x": np.zeros(3)})
    tape = Tape("sums", NUMPY, given)
    with recording(tape):
        x = tape.array(given.all[0])
        total = x + 1.0
        for _ in range(100):
            total += x
    assert tape.arrays_in(total.code) == {"x0"}
    assert not walks
