"""SIMD in a word: operations of two or four lanes, against NumPy on the lanes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from device_cases.case import Case
from device_cases.inputs import S32, U32, Array

_LANES = {"s2": np.int16, "u2": np.uint16, "s4": np.int8, "u4": np.uint8}


def _lanes(array: Array, kind: str) -> Array:
    return np.asarray(array.view(_LANES[kind]).astype(np.int64))


def _packed(values: Array, kind: str) -> Array:
    return np.asarray(np.ascontiguousarray(values.astype(_LANES["u" + kind[1]])).view(np.uint32))


def _saturated(values: Array, kind: str) -> Array:
    info = np.iinfo(_LANES[kind])
    return np.clip(values, info.min, info.max)


def _case(stem: str, kind: str, function: Callable[..., Array], arguments: int = 2) -> Case:
    name = f"{stem}{kind[1]}"
    inputs = U32[:arguments]
    return Case(
        name, f"{name}({', '.join('ab'[:arguments])})", "uint32", inputs,
        lambda *words: _packed(function(*(_lanes(word, kind) for word in words)), kind),
    )  # fmt: skip


def _two_operands(count: str) -> list[Case]:
    u, s = f"u{count}", f"s{count}"
    cases = [
        _case("__vadd", u, operator.add), _case("__vsub", u, operator.sub),
        _case("__vaddss", s, lambda x, y: _saturated(x + y, s)), _case("__vaddus", u, lambda x,
            y: _saturated(x + y, u)),
        _case("__vsubss", s, lambda x, y: _saturated(x - y, s)), _case("__vsubus", u, lambda x,
            y: _saturated(x - y, u)),
        _case("__vabsdiffs", s, lambda x, y: abs(x - y)), _case("__vabsdiffu", u, lambda x, y: abs(x - y)),
        _case("__vhaddu", u, lambda x, y: (x + y) >> 1), _case("__vavgu", u, lambda x, y: (x + y + 1) >> 1),
        _case("__vavgs", s, lambda x, y: (x + y + (x + y >= 0)) >> 1),
        _case("__vmaxs", s, np.maximum), _case("__vmaxu", u, np.maximum),
        _case("__vmins", s, np.minimum), _case("__vminu", u, np.minimum),
    ]  # fmt: skip
    for word in ("eq", "ne", "ge", "gt", "le", "lt"):
        compare = getattr(operator, word)
        for suffix, kind in (("", u),) if word in ("eq", "ne") else (("s", s), ("u", u)):
            cases.append(
                _case(f"__vcmp{word}{suffix}", kind, lambda x, y, f=compare: -f(x, y).astype(np.int64))
            )
            cases.append(
                _case(f"__vset{word}{suffix}", kind, lambda x, y, f=compare: f(x, y).astype(np.int64))
            )
    return cases


def _one_operand(count: str) -> list[Case]:
    s = f"s{count}"
    return [
        _case("__vneg", s, operator.neg, 1), _case("__vnegss", s, lambda x: _saturated(-x, s), 1),
        _case("__vabs", s, abs, 1), _case("__vabsss", s, lambda x: _saturated(abs(x), s), 1),
    ]  # fmt: skip


def _sums(count: str) -> list[Case]:
    return [
        Case(
            f"__vsad{sign}{count}", f"__vsad{sign}{count}(a, b)", "uint32", U32[:2],
            lambda a, b, kind=sign + count: abs(_lanes(a, kind) - _lanes(b, kind)).reshape(-1, int(kind[1])).sum(1),
        )
        for sign in "su"
    ]  # fmt: skip


def _chosen(stem: str, kind: str, relu: bool) -> Callable[..., Array]:
    dtype = {"s32": np.int32, "u32": np.uint32, "s16x2": np.int16, "u16x2": np.uint16}[kind]
    pick = np.maximum if "max" in stem else np.minimum

    def reference(*words: Array) -> Array:
        x, *rest = (word.view(dtype) for word in words)
        first: Any = x + rest[0] if "add" in stem else pick(x, rest[0])
        result = pick(first, rest[1]) if len(rest) > 1 else first
        result = np.maximum(result, dtype(0)) if relu else result
        return np.asarray(result.view(np.int32 if kind == "s32" else np.uint32))

    return reference


def _extrema() -> list[Case]:
    cases = []
    for stem in ("vimax", "vimin", "vimax3", "vimin3", "viaddmax", "viaddmin"):
        for kind in ("s32", "u32", "s16x2", "u16x2"):
            for relu in (False, True):
                three = stem not in ("vimax", "vimin")
                if (relu and kind[0] == "u") or not (three or relu):
                    continue
                name = f"__{stem}_{kind}{'_relu' if relu else ''}"
                inputs = (S32 if kind == "s32" else U32)[: 3 if three else 2]
                cases.append(
                    Case(
                        name,
                        f"{name}({', '.join('abc'[: len(inputs)])})",
                        "int32" if kind == "s32" else "uint32",
                        inputs,
                        _chosen(stem, kind, relu),
                    )
                )
    return cases


#: The predicates come out in the sign bits.
_FLAGS = """
#define OF_WORD(name, type) __device__ unsigned name##_flag(type a, type b) { \\
    bool first; type chosen = name(a, b, &first); return (unsigned)chosen ^ (first ? 0x80000000u : 0); }
OF_WORD(__vibmax_s32, int) OF_WORD(__vibmax_u32, unsigned) OF_WORD(__vibmin_s32, int) OF_WORD(__vibmin_u32, unsigned)
#define OF_HALVES(name) __device__ unsigned name##_flag(unsigned a, unsigned b) { \\
    bool high, low; unsigned chosen = name(a, b, &high, &low); \\
    return chosen ^ (high ? 0x80000000u : 0) ^ (low ? 0x8000u : 0); }
OF_HALVES(__vibmax_s16x2) OF_HALVES(__vibmax_u16x2) OF_HALVES(__vibmin_s16x2) OF_HALVES(__vibmin_u16x2)
"""
PREAMBLE = _FLAGS


def _flagged(stem: str, kind: str) -> Callable[[Array, Array], Array]:
    dtype = {"s32": np.int32, "u32": np.uint32, "s16x2": np.int16, "u16x2": np.uint16}[kind]
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")

    def reference(a: Array, b: Array) -> Array:
        x, y = a.view(dtype), b.view(dtype)
        chosen, first = (np.maximum(x, y), x >= y) if "max" in stem else (np.minimum(x, y), x <= y)
        top = bits.type(1 << (8 * bits.itemsize - 1))
        return np.asarray((chosen.view(bits) ^ np.where(first, top, bits.type(0))).view(np.uint32))

    return reference


def _choices() -> list[Case]:
    return [
        Case(f"__{stem}_{kind}", f"__{stem}_{kind}_flag(a, b)", "uint32", (S32 if kind == "s32" else U32)[:2],
             _flagged(stem, kind))
        for stem in ("vibmax", "vibmin")
        for kind in ("s32", "u32", "s16x2", "u16x2")
    ]  # fmt: skip


CASES = [
    *(case for count in "24" for make in (_two_operands, _one_operand, _sums) for case in make(count)),
    *_extrema(),
    *_choices(),
]
