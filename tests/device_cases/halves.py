"""Half precision and bfloat16: against NVIDIA's headers on the host, and what they have on devices alone
against fractions rounded once and NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from device_cases.case import Case
from device_cases.inputs import F32, F64, S32, S64, U32, U64, Array
from device_cases.oracle import Oracle, can_compile
from device_cases.rounded import rounded

_INTEGERS = {
    "short": ("int16", S32[0].astype(np.int16)), "ushort": ("uint16", U32[0].astype(np.uint16)), "int": ("int32",
        S32[0]),
    "uint": ("uint32", U32[0]), "ll": ("int64", S64[0]), "ull": ("uint64", U64[0]),
}  # fmt: skip
_WHOLE = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}
_COMPARISONS = [
    f"{word}{unordered}" for word in ("eq", "ne", "le", "ge", "lt", "gt") for unordered in ("", "u")
]
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "rcp": lambda x: 1 / x, "log": np.log, "log2": np.log2,
    "log10": np.log10, "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "cos": np.cos,
        "sin": np.sin,
    "tanh": np.tanh, "tanh_approx": np.tanh,
}  # fmt: skip
_EXACT: dict[str, Callable[[Any], Any]] = {
    "trunc": np.trunc,
    "ceil": np.ceil,
    "floor": np.floor,
    "rint": np.rint,
}


class Form(NamedTuple):
    """One of the two types: its C++ names, the word in function names, its header, its dtype, its fraction's bits."""

    ctype: str
    word: str
    header: str
    dtype: type
    fraction: int

    @property
    def name(self) -> str:
        return "float16" if self.word == "half" else "bfloat16"

    @property
    def preamble(self) -> str:
        w, t = self.word, self.ctype
        return f"""#include <{self.header}>
        __device__ {t} H(unsigned short bits) {{ return __ushort_as_{w}(bits); }}
        __device__ float F({t} h) {{ return __{w}2float(h); }}
        __device__ {t}2 P(unsigned bits) {{ return __halves2{w}2(H(bits & 0xffff), H(bits >> 16)); }}
        """

    def floats(self, bits: Array) -> Array:
        return np.asarray(np.ascontiguousarray(bits).view(self.dtype).astype(np.float32))

    def narrowed(self, values: Any) -> Array:
        """Round to the type, once."""
        with np.errstate(all="ignore"):
            wide = np.asarray(values, np.float64)
            near = wide.astype(np.float32)
            bits = near.view(np.uint32).copy()
            inexact = np.isfinite(wide) & (near.astype(np.float64) != wide)
            bits[inexact] -= (np.abs(near.astype(np.float64)) > np.abs(wide))[inexact]
            bits[inexact] |= 1
            return np.asarray(bits.view(np.float32).astype(self.dtype).astype(np.float32))

    def inputs(self) -> tuple[Array, Array, Array]:
        """Return bits: pairs of edges, draws, and numbers near one."""
        info = ml_dtypes.finfo(self.dtype)
        positive = [
            0,
            1,
            0.5,
            1.5,
            2.5,
            3,
            info.max,
            info.tiny,
            info.smallest_subnormal,
            1 + float(info.eps),
            np.inf,
            100,
        ]
        edges = (
            np.array([*positive, *(-float(v) for v in positive), np.nan]).astype(self.dtype).view(np.uint16)
        )
        random = np.random.default_rng(5)
        grids = (
            np.repeat(edges, edges.size),
            np.tile(edges, edges.size),
            np.roll(np.tile(edges, edges.size), 7),
        )
        parts = [
            np.concatenate([grid, random.integers(0, 2**16, 300, dtype=np.uint16),
                            random.normal(size=300).astype(self.dtype).view(np.uint16)])
            for grid in grids
        ]  # fmt: skip
        return parts[0], parts[1], parts[2]


HALF = Form("__half", "half", "cuda_fp16.h", np.float16, 10)
BFLOAT16 = Form("__nv_bfloat16", "bfloat16", "cuda_bf16.h", ml_dtypes.bfloat16, 7)


class _Cases:
    """Put the cases of one type together."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.bits = form.inputs()
        turned = [np.roll(array, 91) for array in (*self.bits[1:], self.bits[0])]
        self.words = tuple(
            one.astype(np.uint32) | other.astype(np.uint32) << np.uint32(16)
            for one, other in zip(self.bits, turned, strict=True)
        )
        self.on_host: list[Case] = []
        self.on_device: list[Case] = []

    def host(self, name: str, call: str, result: str = "float32", inputs: Any = None) -> None:
        """Add a call whose reference is NVIDIA's header."""
        self.on_host.append(
            Case(name, call, result, self.bits[:1] if inputs is None else inputs, lambda *_: 0)
        )

    def device(self, name: str, call: str, reference: Callable[..., Any], result: str = "float32", inputs: Any = None,
               ulp: float = 0, absolute: float = 0) -> None:  # fmt: skip
        """Add a call with a reference of our own."""
        self.on_device.append(
            Case(name, call, result, self.bits[:1] if inputs is None else inputs, reference, ulp, absolute)
        )

    def all(self) -> list[Case]:
        self._conversions()
        self._arithmetic()
        self._comparisons()
        self._pairs()
        self._functions()
        if can_compile():
            return [*Oracle(self.on_host, self.form.preamble).cases(), *self.on_device]
        return self.on_device

    # ---- conversions ----

    def _conversions(self) -> None:
        w = self.form.word
        for suffix in ("", "_rn", "_rz", "_ru", "_rd"):
            self.host(f"__float2{w}{suffix}", f"F(__float2{w}{suffix}(a))", inputs=(F32,))
        self.host(f"__double2{w}", f"F(__double2{w}(a))", inputs=(F64,))
        self.host(f"__{w}2float", f"__{w}2float(H(a))")
        self.host(f"__{w}_as_short", f"__{w}_as_short(H(a))", "int16")
        self.host(f"__{w}_as_ushort", f"__{w}_as_ushort(H(a))", "uint16")
        self.host(f"__short_as_{w}", f"F(__short_as_{w}((short)a))")
        self.host(f"__ushort_as_{w}", f"F(__ushort_as_{w}(a))")
        for name, (dtype, array) in _INTEGERS.items():
            for direction in _WHOLE:
                stem = f"__{name}2{w}_{direction}"
                self.device(stem, f"F({stem}(a))", self._from_integer(direction), inputs=(array,))
                stem = f"__{w}2{name}_{direction}"
                self.device(stem, f"{stem}(H(a))", self._to_integer(direction, dtype), dtype)
        for name, dtype in (("char", "int8"), ("uchar", "uint8")):
            self.host(
                f"__{w}2{name}_rz",
                f"({'signed char' if name == 'char' else 'unsigned char'})__{w}2{name}_rz(H(a))",
                dtype,
            )

    def _from_integer(self, direction: str) -> Callable[[Array], Array]:
        return lambda x: np.array(
            [rounded(Fraction(v), direction, self.form.name) if v else 0.0 for v in x.tolist()]
        )

    def _to_integer(self, direction: str, dtype: str) -> Callable[[Array], Array]:
        info = np.iinfo(dtype)
        of_nan = {64: info.min or 2**63}.get(info.bits, 0)

        def of(x: float) -> int:
            if not math.isfinite(x):
                return int(of_nan if math.isnan(x) else info.max if x > 0 else info.min)
            return min(max(int(_WHOLE[direction](x)), info.min), info.max)

        return lambda bits: np.array([of(v) for v in self.form.floats(bits).tolist()], dtype)

    # ---- arithmetic ----

    def _arithmetic(self) -> None:
        two = self.bits[:2]
        for name in ("__hadd", "__hsub", "__hmul", "__hdiv", "__hadd_rn", "__hsub_rn", "__hmul_rn", "__hadd_sat",
            "__hsub_sat",
                     "__hmul_sat", "__hmax", "__hmin", "__hmax_nan", "__hmin_nan"):  # fmt: skip
            self.host(name, f"F({name}(H(a), H(b)))", inputs=two)
        for name in ("__hneg", "__habs"):
            self.host(name, f"F({name}(H(a)))")
        for suffix in ("", "_sat", "_relu"):
            reference = self._fused(suffix)
            self.device(
                f"__hfma{suffix}", f"F(__hfma{suffix}(H(a), H(b), H(c)))", reference, inputs=self.bits
            )

    def _fused(self, suffix: str) -> Callable[..., Array]:
        def of(x: float, y: float, z: float) -> float:
            if not all(map(math.isfinite, (x, y, z))):
                return float(np.float64(x) * np.float64(y) + np.float64(z))
            exact = Fraction(x) * Fraction(y) + Fraction(z)
            return rounded(exact, "rn", self.form.name) if exact else x * y + z

        def reference(*bits: Array) -> Array:
            rows = zip(*(self.form.floats(array).tolist() for array in bits), strict=True)
            with np.errstate(all="ignore"):
                plain = np.array([of(*row) for row in rows])
            if suffix == "_sat":
                return np.where(plain > 0, np.minimum(plain, 1), 0.0)
            return np.where(plain > 0, plain, np.where(np.isnan(plain), plain, 0.0)) if suffix else plain

        return reference

    # ---- comparisons ----

    def _comparisons(self) -> None:
        two = self.bits[:2]
        for word in _COMPARISONS:
            self.host(f"__h{word}", f"__h{word}(H(a), H(b))", "bool", two)
            self.host(f"__hb{word}2", f"__hb{word}2(P(a), P(b))", "bool", self.words[:2])
            self.host(f"__h{word}2_mask", f"__h{word}2_mask(P(a), P(b))", "uint32", self.words[:2])
            self._halves(f"__h{word}2", f"__h{word}2(P(a), P(b))", 2)
        self.host("__hisnan", "__hisnan(H(a))", "bool")
        self.host("__hisinf", "__hisinf(H(a))", "int32")
        self._halves("__hisnan2", "__hisnan2(P(a))", 1)

    # ---- pairs ----

    def _halves(self, name: str, call: str, count: int) -> None:
        for part in ("low", "high"):
            self.host(name, f"__{part}2float({call})", inputs=self.words[:count])

    def _pairs(self) -> None:
        w = self.form.word
        for name in ("__hadd2", "__hsub2", "__hmul2", "__h2div", "__hadd2_rn", "__hsub2_rn", "__hmul2_rn",
            "__hadd2_sat",
                     "__hsub2_sat", "__hmul2_sat", "__hmax2", "__hmin2", "__hmax2_nan", "__hmin2_nan",
                         f"__lows2{w}2", f"__highs2{w}2"):  # fmt: skip
            self._halves(name, f"{name}(P(a), P(b))", 2)
        for name in ("__hneg2", "__habs2", "__lowhigh2highlow", f"__low2{w}2", f"__high2{w}2"):
            self._halves(name, f"{name}(P(a))", 1)
        for name in (f"make_{w}2", f"__halves2{w}2"):
            self._halves(name, f"{name}(H(a & 0xffff), H(b & 0xffff))", 2)
        for part in ("low", "high"):
            self.host(f"__{part}2float", f"__{part}2float(P(a))", inputs=self.words[:1])
            self.host(f"__{part}2{w}", f"F(__{part}2{w}(P(a)))", inputs=self.words[:1])
            self.host(f"__{w}2{w}2", f"__{part}2float(__{w}2{w}2(H(a)))")
            self.host(f"__float2{w}2_rn", f"__{part}2float(__float2{w}2_rn(a))", inputs=(F32,))
            self.host(f"__floats2{w}2_rn", f"__{part}2float(__floats2{w}2_rn(a, -a))", inputs=(F32,))
            self.host(
                f"__float22{w}2_rn", f"__{part}2float(__float22{w}2_rn(make_float2(a, 3 * a)))", inputs=(F32,)
            )
        self.host(f"__{w}22float2", f"__{w}22float2(P(a)).x", inputs=self.words[:1])
        self.host(f"__{w}22float2", f"__{w}22float2(P(a)).y", inputs=self.words[:1])
        for suffix in ("", "_sat", "_relu"):
            for part in ("low", "high"):
                self.device(f"__hfma2{suffix}", f"__{part}2float(__hfma2{suffix}(P(a), P(b), P(c)))",
                            self._of_part(part, self._fused(suffix)), inputs=self.words)  # fmt: skip
        for part in ("low", "high"):
            self.device(
                "__hcmadd",
                f"__{part}2float(__hcmadd(P(a), P(b), P(c)))",
                self._complex_product(part),
                inputs=self.words,
            )

    @staticmethod
    def _of_part(part: str, reference: Callable[..., Array]) -> Callable[..., Array]:
        shift = np.uint32(16 if part == "high" else 0)
        return lambda *words: reference(
            *((word >> shift & np.uint32(0xFFFF)).astype(np.uint16) for word in words)
        )

    def _complex_product(self, part: str) -> Callable[..., Array]:
        """Two fused products each, every one rounded, in the order that NVIDIA documents."""
        fused = self._fused("")

        def reference(*words: Array) -> Array:
            (ax, ay), (bx, by), (cx, cy) = (
                ((w & np.uint32(0xFFFF)).astype(np.uint16), (w >> np.uint32(16)).astype(np.uint16))
                for w in words
            )
            first, second, start = (ay ^ np.uint16(0x8000), by, cx) if part == "low" else (ay, bx, cy)
            inner = fused(ax, bx if part == "low" else by, start).astype(self.form.dtype).view(np.uint16)
            return fused(first, second, inner)

        return reference

    # ---- functions ----

    def _functions(self) -> None:
        unit = 2.0 ** (23 - self.form.fraction)
        smallest = float(ml_dtypes.finfo(self.form.dtype).smallest_subnormal)
        for table, ulp in ((_FUNCTIONS, 2 * unit), (_EXACT, 0.0)):
            for word, function in table.items():
                # An approximation of tanh has eleven bits of its own.
                allowed = 8 * unit if word == "tanh_approx" else ulp
                near = (2 * smallest if ulp else 0.0) + (
                    1e-3 if "tanh" in word or word in ("sin", "cos") else 0.0
                )

                def reference(bits: Array, function=function) -> Array:
                    return self.form.narrowed(function(self.form.floats(bits).astype(float)))

                self.device(f"h{word}", f"F(h{word}(H(a)))", reference, ulp=allowed, absolute=near)
                for part in ("low", "high"):
                    self.device(f"h2{word}", f"__{part}2float(h2{word}(P(a)))", self._of_part(part, reference),
                                inputs=self.words[:1], ulp=allowed, absolute=near)  # fmt: skip


HALF_CASES = _Cases(HALF).all()
BFLOAT16_CASES = _Cases(BFLOAT16).all()
