"""Modules: templates, variables, several kernels, memoization, on every target."""

import pickle
import threading

import numpy as np
import pytest

import gridstride as gs

TEMPLATE = r"""
#include <cupy/complex.cuh>
template <typename T> __global__ void twice(const T* x, T* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + x[i];
}
namespace inner { template <int N, class T> __global__ void fill(T* y) { y[threadIdx.x] = N; } }
"""


@pytest.mark.parametrize(
    ("expression", "spellings", "dtype"),
    [
        ("twice<int>", ("twice<int>", " twice < int > ", "twice<signed int>", "::twice<int>"), np.int32),
        ("twice<unsigned>", ("twice<unsigned int>", "twice<unsigned>"), np.uint32),
        ("twice<complex<double> >", ("twice<complex<double>>", "twice< complex< double > >"), np.complex128),
        ("twice<float>", ("twice<float>",), np.float32),
    ],
)
def test_p37_all_spellings_of_an_instance(target, xp, expression, spellings, dtype):
    module = gs.RawModule(
        TEMPLATE,
        name_expressions=("twice<int>", "twice<unsigned>", "twice<complex<double> >", "twice<float>"),
    )
    x = xp.arange(5).astype(dtype)
    for spelling in (expression, *spellings):
        y = xp.zeros(5, dtype)
        module.get_function(spelling)((1,), (32,), (x, y, 5))
        np.testing.assert_array_equal(gs.asnumpy(y), 2 * np.arange(5))


def test_template_instances_check_their_own_types(target, xp):
    module = gs.RawModule(TEMPLATE, name_expressions=["twice<float>"])
    with pytest.raises(TypeError, match="float64"):
        module.get_function("twice<float>")((1,), (32,), (xp.zeros(5), xp.zeros(5), 5))


def test_namespaces_and_values_as_template_arguments(target, xp):
    kernel = gs.RawKernel(TEMPLATE, "inner::fill<42, short>")
    y = xp.zeros(8, np.int16)
    kernel((1,), (8,), (y,))
    np.testing.assert_array_equal(gs.asnumpy(y), 42)


def test_unknown_names_list_what_there_is(target):
    module = gs.RawModule(
        r"""__device__ int counter; extern "C" __global__ void first() {} extern "C" __global__ void second() {}"""
    )
    with pytest.raises(gs.SymbolNotFound, match="first, second") as error:
        module.get_function("third")
    assert isinstance(error.value, KeyError)
    assert error.value.available == ("first", "second")
    with pytest.raises(KeyError, match="counter"):
        module.get_global("missing")


def test_p39_standard_headers_and_fixed_width_names(target, xp):
    code = r"""
    #include <cfloat>
    #include <cstdint>
    #include <limits>
    #include <type_traits>
    extern "C" __global__ void k(double* out) {
        out[0] = FLT_MAX;
        out[1] = std::is_same<int64_t, int32_t>::value;
        out[2] = std::numeric_limits<int16_t>::max();
        out[3] = sizeof(std::uint64_t) + sizeof(int8_t);
    }"""
    out = xp.zeros(4)
    gs.RawKernel(code, "k", jitify=True)((1,), (1,), (out,))
    np.testing.assert_array_equal(gs.asnumpy(out), [np.finfo(np.float32).max, 0, 32767, 9])


def test_p83_fixed_width_names_without_includes(target, xp):
    code = r"""extern "C" __global__ void k(int* out) {
        out[0] = sizeof(int8_t); out[1] = sizeof(uint16_t); out[2] = sizeof(int32_t); out[3] = sizeof(uint64_t);
        out[4] = sizeof(size_t); out[5] = sizeof(intptr_t);
    }"""
    out = xp.zeros(6, np.int32)
    gs.RawKernel(code, "k")((1,), (1,), (out,))
    np.testing.assert_array_equal(gs.asnumpy(out), [1, 2, 4, 8, 8, 8])


GLOBALS = r"""
__constant__ float coefficients[4];
__device__ int counter = 5;
static __device__ double hidden[3];
namespace deep { __device__ short inside; }
extern "C" __global__ void use(float* out) {
    out[threadIdx.x] = coefficients[threadIdx.x];
    if (threadIdx.x == 0) { counter += 1; hidden[1] = 2.5; deep::inside = 7; }
}
"""


def test_p40_constants_are_set_from_python(target, xp):
    module = gs.RawModule(GLOBALS)
    kernel = module.get_function("use")
    pointer = module.get_global("coefficients")
    assert pointer.size == 16
    values = gs.ndarray((4,), np.float32, memptr=pointer)
    out = xp.zeros(4, np.float32)
    for factor in (1, 10):
        values[...] = factor * xp.arange(1, 5, dtype=np.float32)
        kernel((1,), (4,), (out,))
        np.testing.assert_array_equal(gs.asnumpy(out), factor * np.arange(1, 5))
    with pytest.raises(ValueError, match="16"):
        pointer.copy_from_host(np.zeros(5, np.float32), 20)


def test_variables_are_shared_by_the_kernels_of_a_module(target, xp):
    module = gs.RawModule(GLOBALS + "// counted")
    counter = gs.ndarray((1,), np.int32, memptr=module.get_global("counter"))
    assert gs.asnumpy(counter)[0] == 5
    out = xp.zeros(4, np.float32)
    for _ in range(3):
        module.get_function("use")((1,), (4,), (out,))
    assert gs.asnumpy(counter)[0] == 8
    assert module.get_global("hidden").size == 24
    assert gs.asnumpy(gs.ndarray((3,), np.float64, memptr=module.get_global("hidden")))[1] == 2.5
    for spelling in ("deep::inside", "&deep::inside", " ::deep::inside"):
        assert gs.asnumpy(gs.ndarray((1,), np.int16, memptr=module.get_global(spelling)))[0] == 7


def test_a_pointer_to_a_variable_can_be_passed(target, xp):
    module = gs.RawModule(
        r"""__device__ float table[8];
        extern "C" __global__ void put(float* x) { x[threadIdx.x] = threadIdx.x; }
        extern "C" __global__ void get(float* out) { out[threadIdx.x] = table[threadIdx.x]; }"""
    )
    module.get_function("put")((1,), (8,), (module.get_global("table"),))
    out = xp.zeros(8, np.float32)
    module.get_function("get")((1,), (8,), (out,))
    np.testing.assert_array_equal(gs.asnumpy(out), np.arange(8))


def test_variables_belong_to_the_text(target, xp):
    def counter(text):
        module = gs.RawModule(text)
        module.get_function("use")((1,), (4,), (xp.zeros(4, np.float32),))
        return int(gs.asnumpy(gs.ndarray((1,), np.int32, memptr=module.get_global("counter")))[0])

    assert counter(GLOBALS + "// one") == 6
    assert counter(GLOBALS + "// two") == 6
    assert counter(GLOBALS + "// one") == 7


def test_module_from_a_file(target, xp, tmp_path):
    path = tmp_path / "kernels.cu"
    path.write_text(TEMPLATE + r"""extern "C" __global__ void one(int* x) { x[0] = 1; }""")
    module = gs.RawModule(path=path, name_expressions=["twice<int>"])
    x = xp.zeros(1, np.int32)
    module.get_function("one")((1,), (1,), (x,))
    module.get_function("twice<int>")((1,), (1,), (x, x, 1))
    assert gs.asnumpy(x)[0] == 2
    path.write_text("nonsense")
    with pytest.raises(gs.CompileError, match=r"kernels\.cu"):
        gs.RawModule(path=path).compile()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_text_as_bytes_is_text(target, xp, tmp_path, encoding):
    text = """// £: a version of .target and .version 8.0
        extern "C" __global__ void fill(int* y) { y[threadIdx.x] = 7; }"""
    code = text.encode(encoding)
    path = tmp_path / "kernel.inc"
    path.write_bytes(code)
    modules = gs.RawModule(code), gs.RawModule(path=path), gs.compile_with_cache(code)
    kernels = [module.get_function("fill") for module in modules]
    for kernel in (*kernels, gs.RawKernel(code, "fill")):
        y = xp.zeros(4, np.int32)
        kernel((1,), (4,), (y,))
        assert (gs.asnumpy(y) == 7).all()


def test_exactly_one_source():
    with pytest.raises(TypeError, match="exactly one"):
        gs.RawModule()
    with pytest.raises(TypeError, match="exactly one"):
        gs.RawModule("", ptx=b"")


def test_pickled_modules_and_their_kernels(target, xp):
    module = gs.RawModule(TEMPLATE, name_expressions=["twice<int>"])
    for kernel in (
        pickle.loads(pickle.dumps(module)).get_function("twice<int>"),
        pickle.loads(pickle.dumps(module.get_function("twice<int>"))),
    ):
        x = xp.ones(1, np.int32)
        kernel((1,), (1,), (x, x, 1))
        assert gs.asnumpy(x)[0] == 2


def test_compile_with_cache(target, xp):
    module = gs.compile_with_cache(r"""extern "C" __global__ void one(int* x) { x[0] = 1; }""")
    x = xp.zeros(1, np.int32)
    module.get_function("one")((1,), (1,), (x,))
    assert gs.asnumpy(x)[0] == 1
    with pytest.raises(gs.CompileError):
        gs.compile_with_cache("nonsense")


def test_memoize_per_device(target):
    calls = []

    @gs.memoize(for_each_device=True)
    def build(name, size=1):
        calls.append((name, size))
        return object()

    assert build("a") is build("a")
    assert build("a", size=2) is not build("a")
    assert len(calls) == 2
    gs.clear_memo()
    build("a")
    assert len(calls) == 3


def test_memoize_runs_once_for_threads():
    calls = []
    gate = threading.Barrier(8)

    @gs.memoize()
    def build():
        calls.append(1)
        return object()

    def work():
        gate.wait()
        build()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


def test_memoize_keeps_no_failures():
    calls = []

    @gs.memoize()
    def build():
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("first")
        return 7

    with pytest.raises(RuntimeError, match="first"):
        build()
    assert build() == 7
