"""Complex numbers in kernels: complex<T> by its usual headers, and cuComplex.h."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import gridstride as gs

RANDOM = np.random.default_rng(4)
POINTS = np.concatenate([
    RANDOM.normal(size=200) + 1j * RANDOM.normal(size=200), (RANDOM.normal(size=60) + 1j * RANDOM.normal(size=60)) * 30,
    np.exp(1j * RANDOM.uniform(-3, 3, 40)), [1, -1, 1j, -1j, 2, -2, 0.5, 3 + 1e-9j, -3 + 0.5j],
])  # fmt: skip


def apply(
    xp, expressions: dict[str, str], *inputs: np.ndarray, include: str = "cupy/complex.cuh"
) -> dict[str, np.ndarray]:
    """Evaluate expressions of z and w with the inputs' type T."""
    real = {"complex64": "float", "complex128": "double"}[inputs[0].dtype.name]
    code = f"#include <{include}>\nusing thrust::complex; typedef {real} R; typedef complex<{real}> T;"
    for index, expression in enumerate(expressions.values()):
        code += f"""
        extern "C" __global__ void k{index}(const T* zs, const T* ws, T* out, int n) {{
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= n) return;
            T z = zs[i], w = ws[i];
            out[i] = {expression};
        }}"""
    module = gs.RawModule(code=code)
    results = {}
    arrays = [xp.asarray(array) for array in inputs]
    for index, key in enumerate(expressions):
        out = xp.zeros(inputs[0].size, inputs[0].dtype)
        module.get_function(f"k{index}")(
            ((out.size + 127) // 128,), (128,), (*arrays, out, np.int32(out.size))
        )
        results[key] = gs.asnumpy(out)
    return results


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_functions(xp, dtype):
    z, w = POINTS.astype(dtype), np.roll(POINTS, 13).astype(dtype)
    names = {
        "exp": np.exp, "log": np.log, "log10": np.log10, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan,
        "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
        "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "conj": np.conj, "proj": lambda v: v,
        "abs": np.abs, "arg": np.angle, "real": np.real, "imag": np.imag,
    }  # fmt: skip
    expressions = {name: f"{name}(z)" for name in names} | {
        "norm": "norm(z)", "pow": "pow(z, w)", "cube": "pow(z, 3)", "of two": "pow(2.0f, z)",
        "polar": "thrust::polar(abs(z), arg(z))",
    }  # fmt: skip
    got = apply(xp, expressions, z, w)
    wide_z, wide_w = z.astype(np.clongdouble), w.astype(np.clongdouble)
    epsilon = np.finfo(dtype).eps
    with np.errstate(all="ignore"):
        expected = {name: function(wide_z) for name, function in names.items()}
        expected |= {
            "norm": np.abs(wide_z) ** 2,
            "pow": wide_z**wide_w,
            "cube": wide_z**3,
            "of two": 2**wide_z,
            "polar": wide_z,
        }
        expected = {name: np.asarray(values).astype(dtype) for name, values in expected.items()}
    for name, values in expected.items():
        finite = np.isfinite(values.real) & np.isfinite(values.imag)
        error = np.abs(got[name][finite] - values[finite]) / np.maximum(
            np.abs(values[finite]), np.finfo(dtype).tiny
        )
        # The inverse tangents cancel near their poles, the powers multiply the error of a logarithm.
        allowed = 300 if name in ("pow", "of two", "cube", "atan", "atanh") else 40
        assert error.max() <= allowed * epsilon, (name, z[finite][np.argmax(error)], error.max() / epsilon)


def test_arithmetic_and_mixed_operands(xp):
    z, w = POINTS.astype("complex64"), np.roll(POINTS, 5).astype("complex64")
    symbols = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
    expressions = {f"z {op} w": f"z {op} w" for op in symbols}
    expressions |= {f"z {op} {v}": f"z {op} {v}" for op in symbols for v in ("3", "2u", "2.5f", "2.5")}
    expressions |= {f"2.5 {op} z": f"2.5 {op} z" for op in symbols} | {
        f"assign {op}": f"(z {op}= w, z {op}= 2, z)" for op in symbols
    }
    got = apply(xp, expressions, z, w)
    for op, function in symbols.items():
        for key, expected in {
            f"z {op} w": function(z, w), f"z {op} 3": function(z, 3), f"z {op} 2u": function(z, 2),
            f"z {op} 2.5f": function(z, 2.5), f"z {op} 2.5": function(z, 2.5), f"2.5 {op} z": function(2.5, z),
            f"assign {op}": function(function(z, w), 2),
        }.items():  # fmt: skip
            np.testing.assert_allclose(got[key], expected, rtol=1e-6, err_msg=key)


def test_p09_a_double_scales_single_precision(xp):
    code = """
    #include <cupy/complex.cuh>
    extern "C" __global__ void scale(double a, const complex<float>* x, complex<float>* y) { *y = a * *x; }"""
    x, y = xp.asarray([1 - 2j], "complex64"), xp.zeros(1, "complex64")
    gs.RawKernel(code, "scale")((1,), (1,), (2.4, x, y))
    np.testing.assert_allclose(gs.asnumpy(y), [2.4 - 4.8j], rtol=1e-7)


def test_types_precision_and_comparison(xp):
    code = """
    #include <thrust/complex.h>
    #include <type_traits>
    using thrust::complex;
    static_assert(sizeof(complex<float>) == 8 && alignof(complex<float>) == 8, "");
    static_assert(sizeof(complex<double>) == 16 && alignof(complex<double>) == 16, "");
    static_assert(std::is_same<decltype(complex<float>() * 1.0), complex<double>>::value, "");
    static_assert(std::is_same<decltype(complex<float>() * 1), complex<float>>::value, "");
    static_assert(std::is_same<decltype(complex<float>() + complex<double>()), complex<double>>::value, "");
    extern "C" __global__ void k(int* out) {
        complex<double> z(1, 2), w = complex<float>(1, 2);
        complex<float> real = 3.0;
        out[0] = z == w; out[1] = z != w; out[2] = real == 3; out[3] = 3.0 != real; out[4] = z == 1.0;
        z.imag(0); out[5] = z == 1; out[6] = isnan(complex<float>(0, 0.0f / (real.imag() * 0))); out[7] = (int)w.imag();
    }"""
    out = xp.zeros(8, np.int32)
    gs.RawKernel(code, "k")((1,), (1,), (out,))
    assert gs.asnumpy(out).tolist() == [1, 0, 1, 0, 0, 1, 1, 2]


def test_division_and_roots_do_not_overflow_on_the_way(xp):
    z = np.array([1e38 + 1e38j, 1e-38 + 1e-38j, -1e38 + 0j, complex(-4, -0.0)], "complex64")
    got = apply(xp, {"quotient": "z / z", "root": "sqrt(z)"}, z, z, include="thrust/complex.h")
    np.testing.assert_allclose(got["quotient"], np.ones(4), rtol=1e-6)
    np.testing.assert_allclose(got["root"], np.sqrt(z.astype(complex)), rtol=1e-6)
    assert np.signbit(got["root"][3].imag), "the branch cut keeps the sign of zero"


def test_cucomplex(xp):
    code = """
    #include <cuComplex.h>
    extern "C" __global__ void k(const cuFloatComplex* x, cuFloatComplex* y, cuDoubleComplex* z) {
        y[0] = cuCmulf(x[0], x[1]); y[1] = cuCdivf(x[0], x[1]); y[2] = cuCaddf(x[0], cuConjf(x[1]));
        y[3] = make_cuComplex(cuCabsf(x[0]), cuCrealf(x[1]) + cuCimagf(x[1])); y[4] = cuCfmaf(x[0], x[1], x[0]);
        z[0] = cuCmul(cuComplexFloatToDouble(x[0]), make_cuDoubleComplex(3, -1));
        z[1] = cuCsub(z[0], make_cuDoubleComplex(cuCabs(z[0]), cuCimag(z[0])));
        y[5] = cuComplexDoubleToFloat(cuCdiv(z[0], z[0]));
    }"""
    x, y, z = xp.asarray([1 + 2j, 3 - 1j], "complex64"), xp.zeros(6, "complex64"), xp.zeros(2, "complex128")
    gs.RawKernel(code, "k")((1,), (1,), (x, y, z))
    expected = [5 + 5j, (1 + 2j) / (3 - 1j), 4 + 3j, 5**0.5 + 2j, 6 + 7j, 1]
    np.testing.assert_allclose(gs.asnumpy(y), expected, rtol=3e-7)
    np.testing.assert_allclose(gs.asnumpy(z), [5 + 5j, 5 - 50**0.5], rtol=1e-15)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_assignments(xp, dtype):
    z, w = POINTS.astype(dtype), np.roll(POINTS, 13).astype(dtype)
    symbols = {"+=": operator.add, "-=": operator.sub, "*=": operator.mul, "/=": operator.truediv}
    expressions = {symbol: f"[](T v, T u) {{ v {symbol} u; return v; }}(z, w)" for symbol in symbols}
    expressions |= {
        f"real {symbol}": f"[](T v, T u) {{ v {symbol} u.real() * u.real() + R(1); return v; }}(z, w)"
        for symbol in symbols
    }
    expressions |= {
        "=": "[](T v, T u) { v = u; return v; }(z, w)",
        "real =": "[](T v, T u) { v = u.imag(); return v; }(z, w)",
    }
    expressions |= {"==": "T(z == w, z != z)", "!=": "T(z != w, w == w)"}
    got = apply(xp, expressions, z, w)
    near = 64 * np.finfo(dtype).eps
    for symbol, function in symbols.items():
        np.testing.assert_allclose(got[symbol], function(z, w), rtol=near, atol=near)
        np.testing.assert_allclose(
            got[f"real {symbol}"], function(z, w.real * w.real + 1), rtol=near, atol=near
        )
    np.testing.assert_array_equal(got["="], w)
    np.testing.assert_array_equal(got["real ="], w.imag)
    np.testing.assert_array_equal(got["=="], z == w)
    np.testing.assert_array_equal(got["!="], (z != w) + 1j)


def test_constants_by_the_name_of_cupys_header(xp):
    code = """
    #include <cupy/math_constants.h>
    extern "C" __global__ void k(double* out) { out[0] = CUDART_INF; out[1] = CUDART_NAN; out[2] = CUDART_INF_F; }"""
    out = xp.zeros(3)
    gs.RawKernel(code, "k")((1,), (1,), (out,))
    np.testing.assert_array_equal(gs.asnumpy(out), [np.inf, np.nan, np.inf])
