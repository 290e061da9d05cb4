"""cuRAND's Philox generator, against the published algorithm in Python's integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from device_cases.case import Case
from device_cases.inputs import Array

_ROWS = 96
_random = np.random.default_rng(23)
SEEDS = np.concatenate(
    [np.array([0, 1, 2**32, 2**64 - 1, 1234], np.uint64), _random.integers(0, 2**64, _ROWS - 5, np.uint64)]
)
SEQUENCES = np.concatenate(
    [np.array([0, 1, 2**64 - 1, 2**32, 5], np.uint64), _random.integers(0, 2**64, _ROWS - 5, np.uint64)]
)
OFFSETS = np.concatenate(
    [
        np.array([0, 1, 2, 3, 4, 5, 2**34 - 1, 2**40 + 3], np.uint64),
        _random.integers(0, 2**62, _ROWS - 8).astype(np.uint64),
    ]
)
_INPUTS = (SEEDS, SEQUENCES, OFFSETS)

_START = "curandStatePhilox4_32_10_t s; curand_init(seed, sequence, offset, &s);"
PREAMBLE = "#include <curand_kernel.h>\n"


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Return ten rounds of Philox4x32."""
    x, y, z, w = counter
    k0, k1 = key
    for _ in range(10):
        first, second = 0xD2511F53 * x, 0xCD9E8D57 * z
        x, y, z, w = (second >> 32) ^ y ^ k0, second & 0xFFFFFFFF, (first >> 32) ^ w ^ k1, first & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [x, y, z, w]


def stream(seed: int, sequence: int, offset: int) -> Iterator[int]:
    """Yield a subsequence's numbers from an offset on."""
    number = sequence << 64 | offset // 4
    place = offset % 4
    while True:
        counter = [number >> 32 * part & 0xFFFFFFFF for part in range(4)]
        yield from philox(counter, [seed & 0xFFFFFFFF, seed >> 32])[place:]
        number, place = (number + 1) % 2**128, 0


@cache
def _bits(count: int) -> Array:
    """Return the first numbers of each row."""
    rows = zip(*(array.tolist() for array in _INPUTS), strict=True)
    return np.array(
        [[number for number, _ in zip(stream(*row), range(count), strict=False)] for row in rows], np.uint64
    )


def _floats(bits: Array) -> Array:
    return bits.astype(np.float32) * np.float32(2**-32) + np.float32(2**-33)


def _doubles(low: Array, high: Array) -> Array:
    return (low ^ high << np.uint64(21)).astype(float) * 2.0**-53 + 2.0**-54


def _normals(first: Array, second: Array) -> Array:
    turn = np.float32(2**-32) * np.float32(6.2831855)
    radius = np.sqrt(-2 * np.log(_floats(first).astype(float)))
    angle = (second.astype(np.float32) * turn + turn / np.float32(2)).astype(float)
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], 1)


def _normal_doubles(bits: Array) -> Array:
    radius = np.sqrt(-2 * np.log(_doubles(bits[:, 0], bits[:, 1]).astype(np.longdouble)))
    angle = 2 * np.longdouble(np.pi) * _doubles(bits[:, 2], bits[:, 3]).astype(np.longdouble)
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], 1)


def _knuth(mean: float) -> Callable[..., Array]:
    def reference(*_: Array) -> Array:
        counts = []
        for row in zip(*(array.tolist() for array in _INPUTS), strict=True):
            product, count, numbers = np.exp(np.float32(mean)), 0, stream(*row)
            while (product := product * _floats(np.array([next(numbers)]))[0]) > 1:
                count += 1
            counts.append(count)
        return np.array(counts)

    return reference


def _case(
    name: str, body: str, result: str, reference: Callable[..., Any], ulp: float = 0, absolute: float = 0
) -> Case:
    """Make a case of a body that ends in a value; the state is `s`."""
    ctype = {"uint32": "unsigned", "float32": "float", "float64": "double"}[result]
    parameters = ", ".join(f"unsigned long long {word}" for word in ("seed", "sequence", "offset"))
    call = f"[]({parameters}) -> {ctype} {{ {_START} {body} }}(a, b, c)"
    return Case(name, call, result, _INPUTS, reference, ulp, absolute)


_DIGEST = "return r.x ^ r.y * 3u ^ r.z * 5u ^ r.w * 7u;"


def _digest(numbers: Array) -> Array:
    n = numbers.astype(np.uint32)
    return n[:, 0] ^ n[:, 1] * np.uint32(3) ^ n[:, 2] * np.uint32(5) ^ n[:, 3] * np.uint32(7)


CASES = [
    *(_case("curand", "unsigned r = 0; " + f"for (int i = 0; i <= {k}; ++i) r = curand(&s); return r;", "uint32",
            lambda *_, k=k: _bits(k + 1)[:, k]) for k in (0, 1, 3, 4, 9)),
    _case("curand_init", "return curand(&s);", "uint32", lambda *_: _bits(1)[:, 0]),
    *(_case("curand4", f"for (int i = 0; i < {k}; ++i) curand(&s); uint4 r = curand4(&s); {_DIGEST}", "uint32",
            lambda *_, k=k: _digest(_bits(k + 4)[:, k:])) for k in range(4)),
    _case("skipahead", "skipahead(5, &s); return curand(&s);", "uint32", lambda *_: _bits(6)[:, 5]),
    _case("skipahead_sequence", "skipahead_sequence(0, &s); return curand(&s);", "uint32", lambda *_: _bits(1)[:, 0]),
    _case("curand_uniform", "curand_uniform(&s); return curand_uniform(&s);", "float32",
        lambda *_: _floats(_bits(2)[:, 1])),
    _case("curand_uniform4", "return curand_uniform4(&s).z;", "float32", lambda *_: _floats(_bits(3)[:, 2])),
    _case("curand_uniform_double", "return curand_uniform_double(&s);", "float64",
          lambda *_: _bits(1)[:, 0].astype(float) * 2.0**-32 + 2.0**-32),
    _case("curand_uniform2_double", "return curand_uniform2_double(&s).y;", "float64",
        lambda *_: _doubles(*_bits(4).T[2:4])),
    _case("curand_uniform4_double", "return curand_uniform4_double(&s).w;", "float64",
        lambda *_: _doubles(*_bits(8).T[6:8])),
    _case("curand_normal", "return curand_normal(&s);", "float32", lambda *_: _normals(*_bits(2).T)[:, 0], 16, 2e-6),
    _case("curand_normal", "curand_normal(&s); return curand_normal(&s);", "float32",
        lambda *_: _normals(*_bits(2).T)[:, 1], 16, 2e-6),
    _case("curand_normal", "curand_normal(&s); curand_normal(&s); return curand_normal(&s);", "float32",
          lambda *_: _normals(*_bits(4).T[2:])[:, 0], 16, 2e-6),
    _case("curand_normal2", "return curand_normal2(&s).y;", "float32", lambda *_: _normals(*_bits(2).T)[:, 1], 16,
        2e-6),
    _case("curand_normal4", "return curand_normal4(&s).w;", "float32", lambda *_: _normals(*_bits(4).T[2:])[:, 1],
        16, 2e-6),
    _case("curand_normal_double", "return curand_normal_double(&s);", "float64",
        lambda *_: _normal_doubles(_bits(4))[:, 0], 8, 1e-15),
    _case("curand_normal_double", "curand_normal_double(&s); return curand_normal_double(&s);", "float64",
          lambda *_: _normal_doubles(_bits(4))[:, 1], 8, 1e-15),
    _case("curand_normal2_double", "return curand_normal2_double(&s).x;", "float64",
        lambda *_: _normal_doubles(_bits(4))[:, 0], 8, 1e-15),
    _case("curand_normal4_double", "return curand_normal4_double(&s).w;", "float64",
          lambda *_: _normal_doubles(_bits(8)[:, 4:])[:, 1], 8, 1e-15),
    _case("curand_log_normal", "return curand_log_normal(&s, 0.5f, 0.25f);", "float32",
          lambda *_: np.exp(0.5 + 0.25 * _normals(*_bits(2).T)[:, 0]), 16, 2e-6),
    _case("curand_log_normal", "curand_log_normal(&s, 0, 1); return curand_log_normal(&s, 0.5f, 0.25f);", "float32",
          lambda *_: np.exp(_normals(*_bits(2).T)[:, 1]), 16, 3e-6),
    _case("curand_log_normal2", "return curand_log_normal2(&s, 0.5f, 0.25f).y;", "float32",
          lambda *_: np.exp(0.5 + 0.25 * _normals(*_bits(2).T)[:, 1]), 16, 2e-6),
    _case("curand_log_normal4", "return curand_log_normal4(&s, 0.5f, 0.25f).z;", "float32",
          lambda *_: np.exp(0.5 + 0.25 * _normals(*_bits(4).T[2:])[:, 0]), 16, 2e-6),
    _case("curand_log_normal_double", "return curand_log_normal_double(&s, 0.5, 0.25);", "float64",
          lambda *_: np.exp(0.5 + 0.25 * _normal_doubles(_bits(4))[:, 0]), 8, 1e-15),
    _case("curand_log_normal2_double", "return curand_log_normal2_double(&s, 0.5, 0.25).y;", "float64",
          lambda *_: np.exp(0.5 + 0.25 * _normal_doubles(_bits(4))[:, 1]), 8, 1e-15),
    _case("curand_log_normal4_double", "return curand_log_normal4_double(&s, 0.5, 0.25).z;", "float64",
          lambda *_: np.exp(0.5 + 0.25 * _normal_doubles(_bits(8)[:, 4:])[:, 0]), 8, 1e-15),
    *(_case("curand_poisson", f"return curand_poisson(&s, {mean});", "uint32", _knuth(mean)) for mean in (0.5, 9.0)),
    _case("curand_poisson", "return curand_poisson(&s, 5000.0);", "uint32",
          lambda *_: np.floor(np.sqrt(5000) * _normal_doubles(_bits(4))[:, 0] + 5000.5)),
    _case("curand_poisson4", "uint4 r = curand_poisson4(&s, 5000.0); return r.w;", "uint32",
          lambda *_: np.floor(np.sqrt(5000) * _normal_doubles(_bits(8)[:, 4:])[:, 1] + 5000.5)),
    _case("curand_poisson4", "uint4 r = curand_poisson4(&s, 3.0); return r.x;", "uint32", _knuth(3.0)),
]  # fmt: skip
