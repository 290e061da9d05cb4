"""Structures, complex numbers and views as parameters of raw kernels."""

import ctypes

import numpy as np
import pytest

import gridstride as gs


def test_p31_structs_by_value(target, xp):
    code = r"""
    struct Inner { short s; double d[2]; };
    struct S { char a; double b; int c; Inner inner; };
    extern "C" __global__ void read(S s, double* out) {
        out[0] = s.a; out[1] = s.b; out[2] = s.c; out[3] = s.inner.s; out[4] = s.inner.d[0]; out[5] = s.inner.d[1];
    }"""
    inner = np.dtype([("s", "i2"), ("d", "f8", 2)], align=True)
    dtype = np.dtype([("a", "i1"), ("b", "f8"), ("c", "i4"), ("inner", inner)], align=True)
    value = np.zeros((), dtype)
    value["a"], value["b"], value["c"] = 1, 2.5, 3
    value["inner"]["s"], value["inner"]["d"] = 4, (5.5, 6.5)
    out = xp.zeros(6)
    kernel = gs.RawKernel(code, "read")
    for argument in (value[()], value, value.reshape(1)):
        out[...] = 0
        kernel((1,), (1,), (argument, out))
        np.testing.assert_array_equal(gs.asnumpy(out), [1, 2.5, 3, 4, 5.5, 6.5])
    packed = np.zeros((), [("a", "i1"), ("b", "f8"), ("c", "i4"), ("inner", inner)])
    with pytest.raises(TypeError, match="member `b` is at offset 8"):
        kernel((1,), (1,), (packed, out))


def test_arrays_of_structs(target, xp):
    code = r"""
    struct P { float x; int id; };
    extern "C" __global__ void move(P* p, int n) {
        int i = threadIdx.x;
        if (i < n) { p[i].x += p[i].id; p[i].id = -p[i].id; }
    }"""
    if xp is not np:
        pytest.skip("CuPy has no structured arrays")
    points = np.zeros(5, np.dtype([("x", "f4"), ("id", "i4")]))
    points["id"] = np.arange(5)
    gs.RawKernel(code, "move")((1,), (32,), (points, 5))
    np.testing.assert_array_equal(points["x"], np.arange(5))
    np.testing.assert_array_equal(points["id"], -np.arange(5))
    with pytest.raises(TypeError, match=r"`y`|must be the struct's members"):
        gs.RawKernel(code, "move")((1,), (32,), (points.view([("y", "f4"), ("id", "i4")]), 5))


@pytest.mark.parametrize("spelling", ["cuComplex", "complex"])
def test_p33_both_complex_spellings(target, xp, spelling):
    code = {
        "cuComplex": r"""
        #include <cuComplex.h>
        extern "C" __global__ void times(const cuFloatComplex* a, const cuFloatComplex* b, cuFloatComplex* c,
                                         cuDoubleComplex* d) {
            c[0] = cuCmulf(a[0], b[0]);
            d[0] = make_cuDoubleComplex(cuCrealf(c[0]), cuCimagf(c[0]));
        }""",
        "complex": r"""
        #include <cupy/complex.cuh>
        extern "C" __global__ void times(const complex<float>* a, const complex<float>* b, complex<float>* c,
                                         complex<double>* d) {
            c[0] = a[0] * b[0];
            d[0] = complex<double>(c[0].real(), c[0].imag());
        }""",
    }[spelling]
    a, b = xp.asarray([1 + 2j], np.complex64), xp.asarray([3 - 1j], np.complex64)
    c, d = xp.zeros(1, np.complex64), xp.zeros(1, np.complex128)
    gs.RawKernel(code, "times", translate_cucomplex=spelling == "cuComplex")((1,), (1,), (a, b, c, d))
    assert gs.asnumpy(c)[0] == gs.asnumpy(d)[0] == 5 + 5j


@pytest.mark.parametrize("spelling", ["included", "given", "in a header"])
def test_translated_complex_numbers_mix_their_precisions(target, xp, spelling):
    """`cuCadd` of a single and a double number, `cuConj` of a single one: NVIDIA's header has neither."""
    text = r"""
    extern "C" __global__ void mix(const cuComplex* a, cuDoubleComplex b, cuDoubleComplex* out, float* parts) {
        out[0] = cuCadd(a[0], b);
        out[1] = cuCmulf(a[0], cuConj(a[0]));
        out[2] = cuCfma(a[0], b, make_cuDoubleComplex(1, -1));
        out[3] = cuCsub(cuComplexFloatToDouble(a[0]), make_cuComplex(1, 1));
        out[4] = cuCdivf(cuComplexDoubleToFloat(b), a[0]);
        out[5] = a[0] * b + complex<double>(0, 1);
        parts[0] = cuCreal(a[0]), parts[1] = cuCimagf(a[0]), parts[2] = cuCabsf(a[0]);
    }"""
    include = "#include <cuComplex.h>\n"
    headers = {"included": (), "given": ("cuComplex.h",), "in a header": {"numbers.h": include}}[spelling]
    before = {"included": include, "given": "", "in a header": "#include <numbers.h>\n"}[spelling]
    module = gs.RawModule(code=before + text, headers=headers, translate_cucomplex=True)
    a, b = 3 + 4j, 2 - 1j
    out, parts = xp.zeros(6, np.complex128), xp.zeros(3, np.float32)
    module.get_function("mix")((1,), (1,), (xp.asarray([a], np.complex64), b, out, parts))
    expected = [a + b, 25, a * b + 1 - 1j, a - 1 - 1j, b / a, a * b + 1j]
    np.testing.assert_allclose(gs.asnumpy(out), expected, rtol=1e-6)
    np.testing.assert_array_equal(gs.asnumpy(parts), [3, 4, 5])
    with pytest.raises(gs.CompileError):
        gs.RawKernel(before + text, "mix", headers=headers).compile()


def test_structs_as_arrays_of_what_they_consist_of(target, xp):
    code = """
    struct Triangle { int corners[3]; };
    extern "C" __global__ void turn(Triangle* all, int n) {
        for (int i = 0; i < n; ++i) {
            int first = all[i].corners[0];
            all[i].corners[0] = all[i].corners[1], all[i].corners[1] = all[i].corners[2], all[i].corners[2] = first;
        }
    }"""
    turn = gs.RawKernel(code, "turn")
    corners = np.arange(12, dtype=np.int32).reshape(4, 3)
    array = xp.array(corners)
    turn((1,), (1,), (array, 4))
    np.testing.assert_array_equal(gs.asnumpy(array), corners[:, [1, 2, 0]])
    for wrong in (xp.zeros((4, 3), np.float64), xp.zeros(4, np.int32), xp.zeros((4, 12), np.uint8)):
        with pytest.raises(TypeError, match=r"parameter `all` \(`Triangle \*`\)"):
            turn((1,), (1,), (wrong, 4))


def test_p29_views_take_strided_arrays(target, xp):
    code = r"""
    #include <gridstride/view.h>
    extern "C" __global__ void flatten(gridstride::view<const float, 2> x, float* out) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < x.size()) out[i] = x(i / x.shape(1), i % x.shape(1));
    }"""
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    for key in (
        lambda a: a,
        lambda a: a.T,
        lambda a: a[:, ::2],
        lambda a: a[::-1, 1:],
        lambda a: a[1:3, 2:5],
    ):
        view = key(xp.asarray(x))
        out = xp.zeros(view.size, np.float32)
        gs.RawKernel(code, "flatten")((1,), (32,), (view, out))
        np.testing.assert_array_equal(gs.asnumpy(out), key(x).ravel())


def test_views_write_through_strides(target, xp):
    code = r"""
    #include <gridstride/view.h>
    extern "C" __global__ void fill(gridstride::view<int, 1> x) { x[threadIdx.x] = threadIdx.x; }"""
    x = xp.full(10, -1, np.int32)
    gs.RawKernel(code, "fill")((1,), (5,), (x[::-2],))
    np.testing.assert_array_equal(gs.asnumpy(x), [-1, 4, -1, 3, -1, 2, -1, 1, -1, 0])


def test_ctypes_structures_and_pointers(target, xp):
    class Pair(ctypes.Structure):
        _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_float))

    code = r"""struct Pair { int a; float b; };
    extern "C" __global__ void k(Pair p, float* out) { out[0] = p.a + p.b; }"""
    out = xp.zeros(1, np.float32)
    gs.RawKernel(code, "k")((1,), (1,), (Pair(2, 0.5), out))
    assert gs.asnumpy(out)[0] == 2.5
