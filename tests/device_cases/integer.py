"""Integer functions, against Python's integers."""

from __future__ import annotations

import numpy as np

from device_cases.case import Case, each
from device_cases.inputs import S32, S64, U16, U32, U64

A, B, C = U32
SIGNED_C = C.view(np.int32)


def _low24(value: int) -> int:
    return (value & 0xFFFFFF) - (value & 0x800000) * 2


def _reversed(value: int, bits: int) -> int:
    return int(format(value, f"0{bits}b")[::-1], 2)


def _byte_perm(low: int, high: int, selectors: int) -> int:
    both = high << 32 | low
    return sum((both >> 8 * (selectors >> 4 * place & 7) & 255) << 8 * place for place in range(4))


def _nth_set(mask: int, base: int, offset: int) -> int:
    base, count = base & 31, offset % 9 - 4
    if count == 0:
        return base if mask >> base & 1 else 2**32 - 1
    places = range(base, 32) if count > 0 else range(base, -1, -1)
    found = [place for place in places if mask >> place & 1]
    return found[abs(count) - 1] if len(found) >= abs(count) else 2**32 - 1


def _parts(word: int, bits: int, *, signed: bool) -> list[int]:
    parts = [word >> bits * place & (2**bits - 1) for place in range(32 // bits)]
    return [part - 2**bits * (signed and part >> (bits - 1)) for part in parts]


def _dot(first_bits: int, start: int, *, signed: bool):
    def dot(a: int, b: int, c: int) -> int:
        left, right = _parts(a, first_bits, signed=signed), _parts(b, 8, signed=signed)[start:]
        return c + sum(x * y for x, y in zip(left, right, strict=False))

    return dot


def _unsigned(name: str, arguments: str, function, inputs=U32[:2]) -> Case:
    return Case(name, f"{name}({arguments})", "uint32", inputs, each(function))


def _signed(name: str, arguments: str, function, inputs=S32[:2]) -> Case:
    return Case(name, f"{name}({arguments})", "int32", inputs, each(function))


CASES = [
    Case("__clz", "__clz(a)", "int32", S32[:1], each(lambda a: 32 - (a % 2**32).bit_length())),
    Case("__clzll", "__clzll(a)", "int32", S64[:1], each(lambda a: 64 - (a % 2**64).bit_length())),
    Case("__ffs", "__ffs(a)", "int32", S32[:1], each(lambda a: (a & -a).bit_length())),
    Case("__ffsll", "__ffsll(a)", "int32", S64[:1], each(lambda a: (a & -a).bit_length())),
    Case("__popc", "__popc(a)", "int32", U32[:1], each(int.bit_count)),
    Case("__popcll", "__popcll(a)", "int32", U64[:1], each(int.bit_count)),
    Case("__brev", "__brev(a)", "uint32", U32[:1], each(lambda a: _reversed(a, 32))),
    Case("__brevll", "__brevll(a)", "uint64", U64[:1], each(lambda a: _reversed(a, 64))),
    Case("__nv_bswap16", "__nv_bswap16(a)", "uint16", U16[:1], np.ndarray.byteswap),
    Case("__nv_bswap32", "__nv_bswap32(a)", "uint32", U32[:1], np.ndarray.byteswap),
    Case("__nv_bswap64", "__nv_bswap64(a)", "uint64", U64[:1], np.ndarray.byteswap),
    _unsigned("__umulhi", "a, b", lambda a, b: a * b >> 32),
    _signed("__mulhi", "a, b", lambda a, b: a * b >> 32),
    Case("__umul64hi", "__umul64hi(a, b)", "uint64", U64[:2], each(lambda a, b: a * b >> 64)),
    Case("__mul64hi", "__mul64hi(a, b)", "int64", S64[:2], each(lambda a, b: a * b >> 64)),
    _unsigned("__umul24", "a, b", lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
    _signed("__mul24", "a, b", lambda a, b: _low24(a) * _low24(b)),
    Case("__sad", "__sad(a, b, (unsigned)c)", "uint32", S32, each(lambda a, b, c: abs(a - b) + c)),
    _unsigned("__usad", "a, b, c", lambda a, b, c: abs(a - b) + c, U32),
    _signed("__hadd", "a, b", lambda a, b: (a + b) >> 1),
    _signed("__rhadd", "a, b", lambda a, b: (a + b + 1) >> 1),
    _unsigned("__uhadd", "a, b", lambda a, b: (a + b) >> 1),
    _unsigned("__urhadd", "a, b", lambda a, b: (a + b + 1) >> 1),
    _unsigned("__byte_perm", "a, b, c", _byte_perm, U32),
    Case("__fns", "__fns(a, b & 31, (int)(c % 9) - 4)", "uint32", U32, each(_nth_set)),
    _unsigned("__funnelshift_l", "a, b, c", lambda a, b, c: (b << 32 | a) << (c & 31) >> 32, U32),
    _unsigned("__funnelshift_r", "a, b, c", lambda a, b, c: (b << 32 | a) >> (c & 31), U32),
    _unsigned("__funnelshift_lc", "a, b, c", lambda a, b, c: (b << 32 | a) << min(c, 32) >> 32, U32),
    _unsigned("__funnelshift_rc", "a, b, c", lambda a, b, c: (b << 32 | a) >> min(c, 32), U32),
    _signed("__dp4a", "a, b, c", _dot(8, 0, signed=True), S32),
    _unsigned("__dp4a", "a, b, c", _dot(8, 0, signed=False), U32),
    _signed("__dp2a_lo", "a, b, c", _dot(16, 0, signed=True), S32),
    _unsigned("__dp2a_lo", "a, b, c", _dot(16, 0, signed=False), U32),
    _signed("__dp2a_hi", "a, b, c", _dot(16, 2, signed=True), S32),
    _unsigned("__dp2a_hi", "a, b, c", _dot(16, 2, signed=False), U32),
    _signed("abs", "a", abs, S32[:1]),
    Case("labs", "(long long)labs((long)a)", "int64", S64[:1], each(abs)),
    Case("llabs", "llabs(a)", "int64", S64[:1], each(abs)),
]
for _pick in (min, max):
    _word = _pick.__name__
    CASES += [
        _signed(_word, "a, b", _pick),
        _unsigned(_word, "a, b", _pick),
        Case(_word, f"{_word}(a, b)", "int64", S64[:2], each(_pick)),
        Case(_word, f"{_word}(a, b)", "uint64", U64[:2], each(_pick)),
        _unsigned(f"u{_word}", "a, b", _pick),
        Case(f"ll{_word}", f"ll{_word}(a, b)", "int64", S64[:2], each(_pick)),
        Case(f"ull{_word}", f"ull{_word}(a, b)", "uint64", U64[:2], each(_pick)),
    ]
