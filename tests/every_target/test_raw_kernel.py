"""Raw kernels: arguments, launches and errors, on every target."""

import io
import pickle
import threading

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets import registry

SAXPY = r"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""

SCALARS = {
    "bool": np.bool_,
    "char": np.int8,
    "signed char": np.int8,
    "unsigned char": np.uint8,
    "short": np.int16,
    "unsigned short": np.uint16,
    "int": np.int32,
    "unsigned": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "int8_t": np.int8,
    "uint16_t": np.uint16,
    "int64_t": np.int64,
    "size_t": np.uint64,
    "float": np.float32,
    "double": np.float64,
}


def copy_kernel(ctype, include=""):
    code = f"""{include}
    extern "C" __global__ void copy({ctype} value, const {ctype}* x, {ctype}* y, int n) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = i == 0 ? value : x[i];
    }}"""
    return gs.RawKernel(code, "copy")


def random_array(dtype, size, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "b":
        return rng.integers(0, 2, size).astype(dtype)
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, size, dtype=dtype, endpoint=True)
    if np.dtype(dtype).kind == "c":
        return (rng.normal(size=size) + 1j * rng.normal(size=size)).astype(dtype)
    return rng.normal(size=size).astype(dtype)


def test_unknown_keywords_are_refused_by_the_names_that_there_are(xp):
    kernel = gs.RawKernel('extern "C" __global__ void named(float* x) {}', "named")
    with pytest.raises(
        TypeError, match=r"`named`: a call has no keyword 'shared'; did you mean 'shared_mem'\?.*grid"
    ):
        kernel((1,), (1,), (xp.zeros(1, "f4"),), shared=3)


@pytest.mark.parametrize("n", [1, 31, 32, 33, 1000, 100_003])
def test_saxpy(target, xp, n):
    x, y = random_array(np.float32, n, 1), random_array(np.float32, n, 2)
    kernel = gs.RawKernel(SAXPY, "saxpy", options=("--fmad=false",))
    dx, dy = xp.asarray(x), xp.asarray(y.copy())
    kernel((-(-n // 256),), (256,), (2.5, dx, dy, n))
    np.testing.assert_array_equal(gs.asnumpy(dy), np.float32(2.5) * x + y)
    np.testing.assert_array_equal(gs.asnumpy(dx), x)


@pytest.mark.parametrize("ctype", SCALARS)
def test_every_scalar_type(target, xp, ctype):
    x = random_array(SCALARS[ctype], 100)
    y = xp.asarray(random_array(SCALARS[ctype], 100, 7))
    value = random_array(SCALARS[ctype], 1, 5)[0]
    copy_kernel(ctype)((1,), (128,), (value, xp.asarray(x), y, 100))
    expected = x.copy()
    expected[0] = value
    np.testing.assert_array_equal(gs.asnumpy(y), expected)


@pytest.mark.parametrize(
    ("ctype", "dtype", "include"),
    [
        ("__half", np.float16, "#include <cuda_fp16.h>"),
        ("cuFloatComplex", np.complex64, "#include <cuComplex.h>"),
        ("cuDoubleComplex", np.complex128, "#include <cuComplex.h>"),
        ("complex<float>", np.complex64, "#include <cupy/complex.cuh>"),
        ("complex<double>", np.complex128, "#include <cupy/complex.cuh>"),
    ],
)
def test_half_and_complex(target, xp, ctype, dtype, include):
    x = random_array(dtype, 100)
    y = xp.zeros(100, dtype)
    copy_kernel(ctype, include)((1,), (128,), (x[3], xp.asarray(x), y, 100))
    expected = x.copy()
    expected[0] = x[3]
    np.testing.assert_array_equal(gs.asnumpy(y), expected)


def test_bfloat16(target, xp):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    if xp is not np:
        pytest.skip("CuPy has no bfloat16 arrays")
    x = np.arange(100).astype(ml_dtypes.bfloat16)
    y = np.zeros_like(x)
    copy_kernel("__nv_bfloat16", "#include <cuda_bf16.h>")((1,), (128,), (0.5, x, y, 100))
    assert y[0] == 0.5
    np.testing.assert_array_equal(y[1:].astype(np.float32), x[1:].astype(np.float32))


@pytest.mark.parametrize(
    ("ctype", "dtype"),
    [
        ("float4", np.float32),
        ("int2", np.int32),
        ("double2", np.float64),
        ("uchar4", np.uint8),
        ("uint4", np.uint32),
    ],
)
def test_built_in_vectors(target, xp, ctype, dtype):
    lanes = int(ctype[-1])
    x = random_array(dtype, 64 * lanes)
    y = xp.zeros(64 * lanes, dtype)
    value = tuple(x[:lanes].tolist())[::-1]
    copy_kernel(ctype)((1,), (64,), (value, xp.asarray(x), y, 64))
    np.testing.assert_array_equal(gs.asnumpy(y), np.concatenate([value, x[lanes:]]).astype(dtype))


def test_grid_and_block_of_three_dimensions(target, xp):
    code = r"""
    extern "C" __global__ void where(int* out) {
        int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        int i = block * blockDim.x * blockDim.y * blockDim.z + thread;
        out[6 * i + 0] = blockIdx.x; out[6 * i + 1] = blockIdx.y; out[6 * i + 2] = blockIdx.z;
        out[6 * i + 3] = threadIdx.x; out[6 * i + 4] = threadIdx.y; out[6 * i + 5] = threadIdx.z;
    }"""
    grid, block = (3, 4, 2), (5, 2, 3)
    out = xp.full(6 * 24 * 30, -1, np.int32)
    gs.RawKernel(code, "where")(grid, block, (out,))
    axes = np.meshgrid(*(np.arange(k) for k in (*grid[::-1], *block[::-1])), indexing="ij")
    bz, by, bx, tz, ty, tx = (axis.ravel() for axis in axes)
    np.testing.assert_array_equal(gs.asnumpy(out).reshape(-1, 6), np.stack([bx, by, bz, tx, ty, tz], axis=1))


def test_int_grid_and_block(target, xp):
    x = xp.ones(4, np.float32)
    gs.RawKernel(SAXPY, "saxpy")(1, 4, (1.0, x, x, 4))
    np.testing.assert_array_equal(gs.asnumpy(x), np.full(4, 2, np.float32))


def test_a_kernel_without_arguments(target):
    gs.RawKernel('extern "C" __global__ void nothing() {}', "nothing")((1,), (1,), ())


def test_null_pointers(target, xp):
    code = r"""extern "C" __global__ void is_null(const float* x, int* out) { out[0] = x == nullptr; }"""
    kernel = gs.RawKernel(code, "is_null")
    out = xp.zeros(1, np.int32)
    kernel((1,), (1,), (None, out))
    assert gs.asnumpy(out)[0] == 1
    kernel((1,), (1,), (xp.zeros(1, np.float32), out))
    assert gs.asnumpy(out)[0] == 0


def test_slices_alias_their_base(target, xp):
    x = xp.zeros(10, np.float32)
    gs.RawKernel(SAXPY, "saxpy")((1,), (32,), (1.0, xp.ones(3, np.float32), x[4:7], 3))
    np.testing.assert_array_equal(gs.asnumpy(x), [0, 0, 0, 0, 1, 1, 1, 0, 0, 0])


# ---- errors: nothing is launched ----


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (lambda x, y: (1.0, x, y), TypeError, "takes 4 arguments"),
        (lambda x, y: (1.0, x, y, 4, 4), TypeError, "takes 4 arguments"),
        (lambda x, y: (1.0, x, 4, y), TypeError, "argument 2, parameter `y`"),
        (lambda x, y: (1.0, x.astype(np.float64), y, 4), TypeError, "parameter `x`.*float64"),
        (lambda x, y: (1.0, x, y, 4.0), TypeError, "parameter `n`"),
        (lambda x, y: (1.0, x, y, 2**31), OverflowError, "parameter `n`"),
        (lambda x, y: (1.0, x[::2], y, 4), TypeError, "not C-contiguous"),
        (lambda x, y: (1.0, x, 4096, 4), TypeError, "c_void_p"),
    ],
)
def test_p28_wrong_arguments_launch_nothing(target, xp, arguments, kind, words):
    x, y = xp.ones(4, np.float32), xp.ones(4, np.float32)
    with pytest.raises(kind, match=words):
        gs.RawKernel(SAXPY, "saxpy")((1,), (4,), arguments(x, y))
    np.testing.assert_array_equal(gs.asnumpy(y), np.ones(4, np.float32))


def test_arguments_must_be_a_tuple(target, xp):
    with pytest.raises(TypeError, match="must be a tuple"):
        gs.RawKernel(SAXPY, "saxpy")((1,), (4,), xp.ones(4, np.float32))


def test_p125_swapped_grid_and_block(target, xp):
    x = xp.ones(100_000, np.float32)
    with pytest.raises(ValueError, match="swapped"):
        gs.RawKernel(SAXPY, "saxpy")((256,), (100_000,), (1.0, x, x, 100_000))


@pytest.mark.parametrize("name", ["double", "2x", "a b", "printf", "", "a-b"])
def test_p120_names_that_no_kernel_can_have(name):
    with pytest.raises(ValueError, match="kernel"):
        gs.RawKernel(SAXPY, name)


def test_a_kernel_that_is_not_there_lists_what_is(target):
    with pytest.raises(gs.CompileError, match="saxpy"):
        gs.RawKernel(SAXPY, "sapxy").compile()


def test_compile_errors_point_at_the_line(target):
    code = SAXPY.replace("if (i < n)", "if (i < m)")
    with pytest.raises(gs.CompileError) as error:
        gs.RawKernel(code, "saxpy").compile()
    assert '"m"' in str(error.value) or "'m'" in str(error.value)
    assert "if (i < m) y[i]" in str(error.value)
    assert "4" in str(error.value)
    assert error.value.source == code
    assert error.value.log


def test_unknown_options_name_the_target(target):
    with pytest.raises(ValueError, match=target.name):
        gs.RawKernel(SAXPY, "saxpy", options=("--nonsense",)).compile()


def test_nothing_is_kept_after_a_failed_compilation(target, xp):
    bad = gs.RawKernel(SAXPY.replace("saxpy(", "saxpy(("), "saxpy")
    for _ in range(2):
        with pytest.raises(gs.CompileError):
            bad.compile()
    x = xp.ones(4, np.float32)
    gs.RawKernel(SAXPY, "saxpy")((1,), (4,), (1.0, x, x, 4))


# ---- options, headers, attributes ----


def test_options_reach_the_compiler(target, xp):
    code = r"""extern "C" __global__ void get(int* out) { out[0] = N; }"""
    out = xp.zeros(1, np.int32)
    for options in (("-DN=7",), ("-D", "N=7"), ("-DN=9", "-UN", "-DN=7", "-O3", "-lineinfo", "--std=c++14")):
        out[...] = 0
        gs.RawKernel(code, "get", options)((1,), (1,), (out,))
        assert gs.asnumpy(out)[0] == 7


def test_headers_as_a_mapping_and_as_names(target, xp, tmp_path):
    code = '#include "seven.h"\nextern "C" __global__ void get(int* out) { out[0] = SEVEN; }'
    out = xp.zeros(1, np.int32)
    gs.RawKernel(code, "get", headers={"seven.h": "#define SEVEN 7"})((1,), (1,), (out,))
    assert gs.asnumpy(out)[0] == 7
    (tmp_path / "eight.h").write_text("#define SEVEN 8")
    without = code.replace('#include "seven.h"\n', "")
    gs.RawKernel(without, "get", options=(f"-I{tmp_path}",), headers=("eight.h",))((1,), (1,), (out,))
    assert gs.asnumpy(out)[0] == 8


def test_p118_an_edited_header_recompiles(target, xp, tmp_path):
    (tmp_path / "a.cuh").write_text("#include <b.cuh>\n")
    code = '#include "a.cuh"\nextern "C" __global__ void get(int* out) { out[0] = B; }'
    out = xp.zeros(1, np.int32)
    for value in (3, 4):
        (tmp_path / "b.cuh").write_text(f"#define B {value}\n")
        gs.RawKernel(code, "get", options=(f"-I{tmp_path}",))((1,), (1,), (out,))
        from gridstride._compilation.functions import forget_programs

        forget_programs()
        assert gs.asnumpy(out)[0] == value


def test_attributes(target):
    code = r"""extern "C" __global__ void __launch_bounds__(128) k(float* x) {
        __shared__ float tile[64];
        tile[threadIdx.x % 64] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = tile[63 - threadIdx.x % 64];
    }"""
    kernel = gs.RawKernel(code, "k")
    assert kernel.attributes["shared_size_bytes"] == kernel.shared_size_bytes == 256
    assert kernel.max_threads_per_block == 128
    assert set(kernel.attributes) >= {"num_regs", "local_size_bytes", "const_size_bytes", "binary_version"}
    kernel.max_dynamic_shared_size_bytes = 65536
    assert kernel.max_dynamic_shared_size_bytes == 65536
    with pytest.raises(AttributeError, match="cannot be set"):
        kernel.num_regs = 3
    with pytest.raises(AttributeError):
        _ = kernel.no_such_attribute


def test_a_block_beyond_launch_bounds(target, xp):
    code = r"""extern "C" __global__ void __launch_bounds__(128) k(float* x) { x[threadIdx.x] = 1; }"""
    x = xp.zeros(256, np.float32)
    with pytest.raises(ValueError, match="128"):
        gs.RawKernel(code, "k")((1,), (256,), (x,))
    assert not gs.asnumpy(x).any()


@pytest.mark.parametrize("shared_mem", [49152, 49152 * 2])
def test_p34_dynamic_beside_static_shared_memory(target, xp, shared_mem):
    code = r"""extern "C" __global__ void k(int* out, int last) {
        __shared__ char one[1];
        extern __shared__ char many[];
        if (threadIdx.x == 0) { one[0] = 5; many[last] = 7; many[0] = 1; }
        __syncthreads();
        out[threadIdx.x] = one[0] * 100 + many[last] * 10 + many[0];
    }"""
    kernel = gs.RawKernel(code, "k")
    if shared_mem + 1 > target.limits(target.current_device()).shared_memory_per_block_optin:
        pytest.skip("the device has less shared memory")
    out = xp.zeros(32, np.int32)
    kernel((1,), (32,), (out, shared_mem - 1), shared_mem=shared_mem)
    np.testing.assert_array_equal(gs.asnumpy(out), 571)


def test_p34_over_the_limit_is_an_error_with_the_numbers(target, xp):
    limit = target.limits(target.current_device()).shared_memory_per_block_optin
    x = xp.ones(4, np.float32)
    with pytest.raises(ValueError, match=str(limit)):
        gs.RawKernel(SAXPY, "saxpy")((1,), (4,), (1.0, x, x, 4), shared_mem=limit + 1)


def test_warnings_of_the_compiler_can_be_left_out(target, xp):
    code = 'extern "C" __global__ void k(int* out) { int unused; out[0] = sizeof(int) > 0; }\n#warning look here\n'
    for options, told in (((), True), (("-w",), False), (("--disable-warnings",), False)):
        log = io.StringIO()
        gs.RawKernel(code, "k", options=options).compile(log_stream=log)
        assert ("look here" in log.getvalue()) == told


def test_compile_with_a_log_stream(target):
    log = io.StringIO()
    gs.RawKernel(SAXPY, "saxpy").compile(log_stream=log)
    with pytest.raises(gs.CompileError):
        gs.RawKernel(SAXPY + "garbage", "saxpy").compile(log_stream=log)
    assert "garbage" in log.getvalue()


# ---- one kernel object, many callers ----


def test_pickle(target, xp):
    kernel = pickle.loads(pickle.dumps(gs.RawKernel(SAXPY, "saxpy", options=("-DN=1",))))
    x = xp.ones(4, np.float32)
    kernel((1,), (4,), (1.0, x, x, 4))
    np.testing.assert_array_equal(gs.asnumpy(x), 2)
    assert kernel.code == SAXPY
    assert kernel.name == "saxpy"


def test_p50_threads_compile_kernels_that_share_headers(target, xp, monkeypatch):
    compiled, compile_, failures = [], target.compile, []
    monkeypatch.setattr(target, "compile", lambda *args: compiled.append(args) or compile_(*args))
    headers = {"shared.h": '#include "inner.h"\n__device__ int shared(int v) { return inner(v) + 1; }',
               "inner.h": "__device__ int inner(int v) { return 10 * v; }"}  # fmt: skip
    start = threading.Barrier(10)

    def work(number):
        start.wait()
        try:
            code = f"""#include "shared.h"
            extern "C" __global__ void k(int* x) {{ x[threadIdx.x] = shared({number % 3}); }}"""
            out = xp.zeros(4, np.int32)
            gs.RawKernel(code, "k", headers=headers)(1, 4, (out,))
            assert gs.asnumpy(out).tolist() == [10 * (number % 3) + 1] * 4
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(compiled) == 3


def test_p36_p51_one_compilation_for_many_constructions_and_threads(target, xp, monkeypatch):
    code = SAXPY + f"// {target.name} counted"
    compiled, loaded = [], []
    compile_, load = target.compile, target.load
    monkeypatch.setattr(target, "compile", lambda *args: compiled.append(args) or compile_(*args))
    monkeypatch.setattr(target, "load", lambda *args: loaded.append(args) or load(*args))
    problems = []

    def work():
        try:
            for _ in range(50):
                x = xp.ones(4, np.float32)
                gs.RawKernel(code, "saxpy")((1,), (4,), (1.0, x, x, 4))
                np.testing.assert_array_equal(gs.asnumpy(x), 2)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(10)]
    with registry.use_target(target.name):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not problems
    assert len(compiled) == 1
    assert len(loaded) == 1


@pytest.mark.parametrize("standard", ["c++03", "c++11", "c++14", "c++17", "c++20"])
def test_every_language_standard_compiles_with_the_headers(target, xp, standard):
    code = (
        "#include <cuComplex.h>\n#include <cuda_fp16.h>\n#include <cstdint>\n#include <gridstride/view.h>\n"
        'extern "C" __global__ void k(std::int32_t* x) { x[0] = __cplusplus >= 201402L; }'
    )
    x = xp.zeros(1, dtype="int32")
    gs.RawKernel(code, "k", options=(f"-std={standard}",))(1, 1, (x,))
    assert int(x[0]) == 1
