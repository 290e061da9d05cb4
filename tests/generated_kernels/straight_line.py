"""Random expressions without branches, written in CUDA C++ and evaluated by NumPy: both round after each operation."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

#: Elements of each operand.
SIZE = 500
_OPERANDS = "abcd"
_HALF = "half"
_CTYPES = {
    "float16": _HALF, "float32": "float", "float64": "double", "int32": "int", "uint32": "unsigned int",
    "int64": "long long",
}  # fmt: skip

Array = np.ndarray[Any, Any]


class Expression(NamedTuple):
    """An expression of the operands: its text, and what computes it."""

    text: str
    value: Callable[[dict[str, Array]], Array]


class Program(NamedTuple):
    """Kernels, each of one expression: ``kernel_0(out, a, b, c, d, n)`` and so on."""

    dtype: np.dtype[Any]
    text: str
    expressions: tuple[Expression, ...]

    def operands(self, seed: int) -> dict[str, Array]:
        """Return operands with ordinary, extreme and special values."""
        rng = np.random.default_rng(seed)
        return {name: _operand(self.dtype, rng) for name in _OPERANDS}

    def expected(self, operands: dict[str, Array]) -> list[Array]:
        """Return what NumPy makes of the expressions."""
        with np.errstate(all="ignore"):
            return [np.asarray(each.value(operands), self.dtype) for each in self.expressions]


def straight_line(dtype: str, seed: int, count: int) -> Program:
    """Return a program of random expressions that a seed determines."""
    rng = random.Random(f"{dtype} {seed}")
    expressions = tuple(_expression(rng, np.dtype(dtype), rng.randint(2, 4)) for _ in range(count))
    ctype = _CTYPES[dtype]
    operands = ", ".join(f"const {ctype}* {name}_" for name in _OPERANDS)
    loads = " ".join(f"const {ctype} {name} = {name}_[i];" for name in _OPERANDS)
    kernels = [
        f'extern "C" __global__ void kernel_{k}({ctype}* out, {operands}, int n) {{\n'
        f"    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"    if (i >= n) return;\n    {loads}\n    out[i] = {each.text};\n}}\n"
        for k, each in enumerate(expressions)
    ]
    header = "#include <cuda_fp16.h>\n" if ctype == _HALF else ""
    return Program(np.dtype(dtype), header + "".join(kernels), expressions)


def _expression(rng: random.Random, dtype: np.dtype[Any], depth: int) -> Expression:
    if depth == 0 or rng.random() < 0.1:
        name = rng.choice(_OPERANDS)
        return Expression(name, lambda operands: operands[name])
    floating = dtype.kind == "f"
    if rng.random() < 0.15:
        return _unary(rng, dtype, _expression(rng, dtype, depth - 1))
    first, second = _expression(rng, dtype, depth - 1), _expression(rng, dtype, depth - 1)
    symbol = rng.choice("++--**/" if floating else "++--**&|^")
    if not floating and rng.random() < 0.15:
        return _shift(rng, dtype, first, second)
    operation = {
        "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide,
        "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
    }[symbol]  # fmt: skip
    return Expression(
        f"({first.text} {symbol} {second.text})",
        lambda operands: operation(first.value(operands), second.value(operands)),
    )


def _unary(rng: random.Random, dtype: np.dtype[Any], inner: Expression) -> Expression:
    if dtype.kind != "f":
        return Expression(f"(~{inner.text})", lambda operands: ~inner.value(operands))
    if rng.random() < 0.5:
        return Expression(f"(-{inner.text})", lambda operands: -inner.value(operands))
    name = {2: "hsqrt", 4: "sqrtf", 8: "sqrt"}[dtype.itemsize]
    return Expression(f"{name}({inner.text})", lambda operands: np.sqrt(inner.value(operands)))


def _shift(rng: random.Random, dtype: np.dtype[Any], first: Expression, second: Expression) -> Expression:
    """Shift by a number of bits in range; left as unsigned, for then every bit that is lost is defined."""
    width = 8 * dtype.itemsize
    unsigned = np.dtype(f"uint{width}")
    if rng.random() < 0.5:
        return Expression(
            f"({first.text} >> ({second.text} & {width - 1}))",
            lambda operands: first.value(operands) >> (second.value(operands) & dtype.type(width - 1)),
        )
    name = "unsigned" if width == 32 else "unsigned long long"
    return Expression(
        f"({_CTYPES[dtype.name]})(({name}){first.text} << ({second.text} & {width - 1}))",
        lambda operands: (
            first.value(operands).view(unsigned)
            << (second.value(operands) & dtype.type(width - 1)).view(unsigned)
        ).view(dtype),
    )


def _operand(dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        array = rng.integers(limits.min, limits.max, SIZE, dtype, endpoint=True)
        array[: SIZE // 2] = rng.integers(0, 100, SIZE // 2)
        array[rng.integers(0, SIZE, 20)] = rng.choice([limits.min, limits.max, 0, 1], 20)
        return array
    array = (rng.normal(0, 3, SIZE) * np.exp(rng.normal(0, 1, SIZE))).astype(dtype)
    limits_ = np.finfo(dtype)
    special = [0.0, -0.0, np.inf, np.nan, limits_.max, limits_.tiny, limits_.smallest_subnormal, 1.0]
    array[rng.integers(0, SIZE, 20)] = rng.choice(special, 20)
    return array
