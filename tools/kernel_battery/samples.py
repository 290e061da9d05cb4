"""Kernels of NVIDIA's CUDA samples."""

from __future__ import annotations

import math

import numpy as np

import gridstride as gs
from kernel_battery.bench import Bench, numpy
from kernel_battery.row import Results, Row, Source

_CUDA_SAMPLES = "NVIDIA/cuda-samples"
_UINT = "typedef unsigned int uint;\n"


def _sample(path: str, commit: str) -> Source:
    return Source(_CUDA_SAMPLES, f"Samples/{path}", commit)


def _matrix_product(bench: Bench) -> Results:
    random = np.random.default_rng(1)
    a, b = random.integers(-4, 5, (64, 64)), random.integers(-4, 5, (64, 96))
    results = {}
    for kernel, tile in zip(
        bench.kernels(["matrixMulCUDA_block16", "matrixMulCUDA_block32"]), (16, 32), strict=True
    ):
        c = bench.zeros((64, 96))
        arguments = (c, bench.array(a, np.float32), bench.array(b, np.float32), 64, 96)
        kernel((96 // tile, 64 // tile), (tile, tile), arguments)
        results[f"tiles of {tile}"] = numpy(c)
        np.testing.assert_array_equal(numpy(c), a @ b)
    return results


def _atomics(bench: Bench) -> Results:
    n = 64 * 256
    start = np.zeros(11, np.int32)
    start[8] = start[10] = 0xFF
    data = bench.array(start)
    (kernel,) = bench.kernels(["testKernel"])
    kernel((64,), (256,), (data,))
    found = numpy(data)
    threads = np.arange(n, dtype=np.int32)
    expected = {
        0: 10 * n, 1: -10 * n, 3: n - 1, 4: 0, 5: n % 18, 6: 137 - (n - 1) % 138,
        8: np.bitwise_and.reduce(2 * threads + 7) & 0xFF, 9: -1, 10: np.bitwise_xor.reduce(threads) ^ 0xFF,
    }  # fmt: skip
    for index, value in expected.items():
        assert found[index] == value, (index, found[index], value)
    assert 0 <= found[2] < n
    assert 0 <= found[7] < n
    return {"nine values": found[list(expected)]}


def _votes(bench: Bench) -> Results:
    any_kernel, all_kernel, info_kernel = bench.kernels(
        ["VoteAnyKernel1", "VoteAllKernel2", "VoteAnyKernel3"]
    )
    values = np.zeros((8, 32), np.uint32)
    values[1, 7] = values[4, 0:31] = values[6] = 1
    results = {}
    for key, kernel, expected in (("any", any_kernel, values.any(1)), ("all", all_kernel, values.all(1))):
        out = bench.zeros(256, np.uint32)
        kernel((1,), (256,), (bench.array(values.ravel()), out, 256))
        results[key] = numpy(out)
        np.testing.assert_array_equal(results[key], np.repeat(expected, 32))
    info = bench.zeros(96 * 3, bool)
    info_kernel((1,), (96,), (info, 32))
    late = np.arange(96) >= 48
    results["three flags"] = numpy(info).reshape(96, 3)
    expected_info = [np.arange(96) >= 32, late, np.arange(96) >= 64]
    np.testing.assert_array_equal(results["three flags"], np.stack(expected_info, 1))
    return results


def _lanes(bench: Bench) -> Results:
    (kernel,) = bench.kernels(["sequence_gpu"])
    out = bench.zeros(1000, np.int32)
    kernel((4,), (256,), (out, 1000))
    np.testing.assert_array_equal(numpy(out), np.arange(1000) % 32)
    return {"lanes": numpy(out)}


_REDUCTIONS = (
    "reduce0<{T}>", "reduce1<{T}>", "reduce2<{T}>", "reduce3<{T}>", "reduce4<{T}, {B}>", "reduce5<{T}, {B}>",
    "reduce6<{T}, {B}, false>", "reduce7<{T}, {B}, false>", "cg_reduce<{T}>", "multi_warp_cg_reduce<{T}, {B}, {B} / 2>",
)  # fmt: skip


def _reductions(bench: Bench) -> Results:
    n = 10_007
    results = {}
    for ctype, dtype in (("int", np.int32), ("float", np.float32), ("double", np.float64)):
        values = np.random.default_rng(2).integers(-50, 50, n).astype(dtype)
        for block in (64, 256):
            names = [name.format(T=ctype, B=block) for name in _REDUCTIONS]
            for index, kernel in enumerate(bench.kernels(names)):
                per_block = block if index < 3 else 2 * block
                grid = math.ceil(n / per_block) if index < 6 else 16
                sums = bench.zeros(grid, dtype)
                kernel((grid,), (block,), (bench.array(values), sums, n), shared_mem=block * values.itemsize)
                results[names[index]] = numpy(sums)
                assert results[names[index]].sum() == values.sum(), names[index]
    return results


def _separable_convolution(bench: Bench) -> Results:
    width, height = 128, 64
    random = np.random.default_rng(3)
    image = random.integers(0, 16, (height, width)).astype(np.float32)
    taps = random.integers(-3, 4, 17).astype(np.float32)
    module = bench.module()
    bench.fill(module.get_global("c_Kernel"), taps)
    rows, columns = (
        bench.noted(module.get_function(f"convolution{name}Kernel")) for name in ("Rows", "Columns")
    )
    source, middle, out = bench.array(image), bench.zeros((height, width)), bench.zeros((height, width))
    rows((width // 128, height // 4), (16, 4), (middle, source, width, height, width))
    columns((width // 16, height // 64), (16, 8), (out, middle, width, height, width))
    along_x = np.apply_along_axis(np.convolve, 1, image, taps, "same")
    np.testing.assert_array_equal(numpy(middle), along_x)
    np.testing.assert_array_equal(numpy(out), np.apply_along_axis(np.convolve, 0, along_x, taps, "same"))
    return {"rows": numpy(middle), "both": numpy(out)}


def _black_scholes(bench: Bench) -> Results:
    n = 1000
    random = np.random.default_rng(4)
    price, strike, years = (
        random.uniform(*limits, n).astype(np.float32) for limits in ((5, 30), (1, 100), (0.25, 10))
    )
    rate, volatility = 0.02, 0.3
    call, put = bench.zeros(n), bench.zeros(n)
    (kernel,) = bench.kernels(["BlackScholesGPU"])
    arrays = (call, put, *map(bench.array, (price, strike, years)))
    kernel((math.ceil(n / 2 / 128),), (128,), (*arrays, np.float32(rate), np.float32(volatility), n))
    s, x, t = (values.astype(float) for values in (price, strike, years))
    d1 = (np.log(s / x) + (rate + volatility**2 / 2) * t) / (volatility * np.sqrt(t))
    below1, below2 = (
        0.5 * (1 + np.vectorize(math.erf)(d / math.sqrt(2))) for d in (d1, d1 - volatility * np.sqrt(t))
    )
    expected = s * below1 - x * np.exp(-rate * t) * below2
    np.testing.assert_allclose(numpy(call), expected, atol=1e-4)
    np.testing.assert_allclose(numpy(put), expected - s + x * np.exp(-rate * t), atol=1e-4)
    return {"call": numpy(call), "put": numpy(put)}


def _histogram(bench: Bench) -> Results:
    data = np.random.default_rng(5).integers(0, 256, 10_000, dtype=np.uint8)
    count, merge = bench.kernels(["histogram256Kernel", "mergeHistogram256Kernel"])
    partial, out = bench.zeros(240 * 256, np.uint32), bench.zeros(256, np.uint32)
    count((240,), (192,), (partial, bench.array(data.view(np.uint32)), data.size // 4))
    merge((256,), (256,), (out, partial, 240))
    np.testing.assert_array_equal(numpy(out), np.bincount(data, minlength=256))
    return {"counts": numpy(out)}


def _bitonic_sort(bench: Bench) -> Results:
    names = ["bitonicSortShared", "bitonicSortShared1", "bitonicMergeGlobal", "bitonicMergeShared"]
    short, first, far, near = bench.kernels(names)
    results = {}
    for n, batch in ((1024, 2), (8192, 1)):
        keys = np.random.default_rng(6).permutation(n * batch).astype(np.uint32).reshape(batch, n)
        values = np.arange(n * batch, dtype=np.uint32)
        source = [bench.array(keys.ravel()), bench.array(values)]
        out = [bench.zeros(n * batch, np.uint32), bench.zeros(n * batch, np.uint32)]
        blocks = n * batch // 1024
        if n == 1024:
            short((blocks,), (512,), (*out, *source, n, 1))
        else:
            first((blocks,), (512,), (*out, *source))
            _merge(far, near, out, n)
        order = np.argsort(keys, axis=1)
        np.testing.assert_array_equal(numpy(out[0]).reshape(batch, n), np.sort(keys, 1))
        np.testing.assert_array_equal(numpy(out[1]).reshape(batch, n), order + n * np.arange(batch)[:, None])
        results |= {f"{n} keys": numpy(out[0]), f"{n} values": numpy(out[1])}
    return results


def _merge(far: object, near: object, out: list[object], n: int) -> None:
    size = 2048
    while size <= n:
        stride = size // 2
        while stride >= 1024:
            far((n // 512,), (256,), (*out, *out, n, size, stride, 1))
            stride //= 2
        near((n // 1024,), (512,), (*out, *out, n, size, 1))
        size *= 2


def _bodies(bench: Bench) -> Results:
    results = {}
    for ctype, dtype, variable, limit in (
        ("float", np.float32, "softeningSquared", 2e-5),
        ("double", np.float64, "softeningSquared_fp64", 1e-12),
    ):
        random = np.random.default_rng(7)
        position, velocity = (random.uniform(-1, 1, (256, 4)).astype(dtype) for _ in range(2))
        name = f"integrateBodies<{ctype}>"
        module = bench.module([name])
        bench.fill(module.get_global(variable), np.array([0.01], dtype))
        kernel = bench.noted(module.get_function(name))
        moved, turned = bench.zeros((256, 4), dtype), bench.array(velocity)
        arguments = (moved, bench.array(position), turned, 0, 256, np.float32(0.25), np.float32(0.5), 4)
        kernel((4,), (64,), arguments, shared_mem=64 * 4 * position.itemsize)
        p, v = position.astype(float), velocity.astype(float)
        away = p[None, :, :3] - p[:, None, :3]
        pull = p[None, :, 3] * ((away**2).sum(-1) + 0.01) ** -1.5
        v[:, :3] = (v[:, :3] + (pull[:, :, None] * away).sum(1) * 0.25) * 0.5
        p[:, :3] += v[:, :3] * 0.25
        for key, found, expected in (("position", moved, p), ("velocity", turned, v)):
            np.testing.assert_allclose(
                numpy(found), expected, rtol=limit, atol=limit * np.abs(expected).max()
            )
            results[f"{key}, {ctype}"] = numpy(found)
    return results


def _half_products(bench: Bench) -> Results:
    blocks = threads = 128
    size, stride = blocks * threads * 2, blocks * threads
    random = np.random.default_rng(8)
    a, b = (
        np.stack([random.integers(0, 4, size), random.integers(0, 2, size)], 1).astype(np.float16)
        for _ in range(2)
    )
    # Block b begins at element b + 128, not at b * 128: this is how the sample counts.
    products = (a.astype(float) * b).sum(1)
    starts = np.arange(blocks)[:, None] + threads + np.arange(threads)
    reached = [
        np.where(starts + k * stride < size, products[(starts + k * stride) % size], 0) for k in range(2)
    ]
    expected = sum(reached).sum(1)
    results = {}
    for name in ("intrinsics", "native"):
        (kernel,) = bench.kernels([f"scalarProductKernel_{name}"])
        out = bench.zeros(blocks)
        kernel((blocks,), (threads,), (bench.array(a), bench.array(b), out, size))
        np.testing.assert_array_equal(numpy(out), expected)
        results[name] = numpy(out)
    return results


def _large_parameter(bench: Bench) -> Results:
    values = (np.arange(8000) & 0xFF).astype(np.int32)
    module = bench.module()
    small, large = (bench.noted(module.get_function(name)) for name in ("kernelDefault", "kernelLargeParam"))
    bench.fill(module.get_global("excess_params"), values[1024:])
    out = bench.zeros(2, np.int32)
    for index, (kernel, count) in enumerate(((small, 1024), (large, 8000))):
        block = np.zeros((), np.dtype([("param", np.int32, (count,))]))
        block["param"] = values[:count]
        kernel((1,), (1,), (block, out[index:]))
    np.testing.assert_array_equal(numpy(out), values.sum())
    return {"sums": numpy(out)}


def _new_and_delete(bench: Bench) -> Results:
    names = [
        "vectorCreate",
        "containerFill",
        "containerConsume",
        "containerDelete",
        "placementNew",
        "complexVector",
    ]
    create, fill, consume, delete, placed, structs = bench.kernels(names)
    container, out = bench.zeros(1, np.uint64), bench.zeros(128 * 128, np.int32)
    create((1,), (1,), (container, 128 * 128))
    fill((128,), (128,), (container,))
    consume((128,), (128,), (container, out))
    delete((1,), (1,), (container,))
    expected = np.r_[np.full(128 * 127, -1), np.arange(128)]
    np.testing.assert_array_equal(np.sort(numpy(out)), expected)
    results = {"on the heap": np.sort(numpy(out))}
    for name, kernel in (("placed", placed), ("structs", structs)):
        out = bench.zeros(1024, np.int32)
        kernel((1,), (1024,), (out,))
        results[name] = np.sort(numpy(out))
        np.testing.assert_array_equal(results[name], np.r_[np.full(512, -1), np.arange(512)])
    return results


def _estimate_of_pi(bench: Bench) -> Results:
    results = {}
    for real in ("float", "double"):
        names = ["initRNG", f"computeValue<{real}>"]
        start, count = bench.kernels(names)
        states, out = gs.cuda.alloc(64 * 1024), bench.zeros(16, np.uint32)
        start((16,), (64,), (states, 1234))
        count((16,), (64,), (out, states, 100_000), shared_mem=64 * 4)
        results[real] = numpy(out)
        assert abs(4 * results[real].sum() / 100_000 - math.pi) < 0.02
    return results


ROWS = (
    Row(
        "K01", "matrixMul_nvrtc",
        (_sample("0_Introduction/matrixMul_nvrtc/matrixMul_kernel.cu", "306af8d2755e712ffcb0b16a585da61bd1956303"),),
        2, "64x64 times 64x96 in blocks of 16 and 32, against NumPy", _matrix_product,
    ),
    Row(
        "K02", "simpleAtomicIntrinsics_nvrtc",
        (_sample(
            "0_Introduction/simpleAtomicIntrinsics_nvrtc/simpleAtomicIntrinsics_kernel.cuh",
            "eddc6fd7e1f18ef436eaf36cefcd67db993fcc24",
        ),),
        1, "eleven atomics of 64 blocks of 256, against exact values", _atomics,
    ),
    Row(
        "K03", "simpleVoteIntrinsics",
        (_sample(
            "0_Introduction/simpleVoteIntrinsics/simpleVote_kernel.cuh", "ca37378cb454b74e3979fa7a14c110045d3c4437"
        ),),
        3, "any and all of eight warps; three flags of three warps", _votes,
    ),
    Row(
        "K03b", "inlinePTX_nvrtc",
        (_sample(
            "2_Concepts_and_Techniques/inlinePTX_nvrtc/inlinePTX_kernel.cu", "2e41896e1b2c7e2699b7b7f6689c107900c233bb"
        ),),
        1, "lanes of 1000 threads", _lanes,
    ),
    Row(
        "K05", "reduction",
        (_sample(
            "2_Concepts_and_Techniques/reduction/reduction_kernel.cu", "2b689228b746248b7bb7d2778d5ea0701669f7d3"
        ),),
        10, "sums of 10,007 ints, floats and doubles in blocks of 64 and 256, exact", _reductions,
    ),
    Row(
        "K07", "convolutionSeparable",
        (_sample(
            "2_Concepts_and_Techniques/convolutionSeparable/convolutionSeparable.cu",
            "ca37378cb454b74e3979fa7a14c110045d3c4437",
        ),),
        2, "17 taps over 128x64, set through `get_global`, against NumPy", _separable_convolution,
        before="#define KERNEL_RADIUS 8\n#define KERNEL_LENGTH (2 * KERNEL_RADIUS + 1)\n",
    ),
    Row(
        "K07b", "BlackScholes_nvrtc",
        (_sample(
            "5_Domain_Specific/BlackScholes_nvrtc/BlackScholes_kernel.cuh", "2e41896e1b2c7e2699b7b7f6689c107900c233bb"
        ),),
        1, "1000 options against the formula with `erf`, within 1e-4", _black_scholes, tolerance=1e-5,
    ),
    Row(
        "K09", "histogram256",
        (
            _sample(
                "2_Concepts_and_Techniques/histogram/histogram_common.h", "35a407d5799a3022e4f7340b28a6856bf87d977d"
            ),
            _sample(
                "2_Concepts_and_Techniques/histogram/histogram256.cu", "2e41896e1b2c7e2699b7b7f6689c107900c233bb"
            ),
        ),
        2, "10,000 bytes, against `bincount`", _histogram, without=("PARTIAL_HISTOGRAM256_COUNT", "static uint *"),
    ),
    Row(
        "K10", "sortingNetworks, bitonicSort",
        (
            _sample(
                "2_Concepts_and_Techniques/sortingNetworks/sortingNetworks_common.cuh",
                "2e41896e1b2c7e2699b7b7f6689c107900c233bb",
            ),
            _sample(
                "2_Concepts_and_Techniques/sortingNetworks/bitonicSort.cu", "2b3dc33376b19d61ffcecea25302bc330148a553"
            ),
        ),
        4, "two sorts of 1024 pairs in a block each, one of 8192 over eight blocks, against `sort`", _bitonic_sort,
        before=_UINT,
    ),
    Row(
        "K11", "nbody",
        (
            _sample("5_Domain_Specific/nbody/bodysystem.h", "ceab6e8bcce41c1a8af0cf872098ae745d9ce5ff"),
            _sample("5_Domain_Specific/nbody/bodysystemcuda.cu", "2e41896e1b2c7e2699b7b7f6689c107900c233bb"),
        ),
        1, "one step of 256 bodies in float and double, against NumPy", _bodies,
        without=("struct DeviceData", "class string", "class BodySystem", "enum NBodyConfig"), tolerance=1e-5,
    ),
    Row(
        "K12", "fp16ScalarProduct",
        (_sample("0_Introduction/fp16ScalarProduct/fp16ScalarProduct.cu", "ca37378cb454b74e3979fa7a14c110045d3c4437"),),
        2, "products of small integers, exact", _half_products,
    ),
    Row(
        "K26", "MC_EstimatePiInlineP",
        (_sample(
            "2_Concepts_and_Techniques/MC_EstimatePiInlineP/src/piestimator.cu",
            "2e41896e1b2c7e2699b7b7f6689c107900c233bb",
        ),),
        2, "100,000 points in float and double, with `curandState` defined as the Philox state", _estimate_of_pi,
        before="#include <curand_kernel.h>\n#define curandState curandStatePhilox4_32_10_t\n",
        without=("using std::",),
    ),
    Row(
        "K29", "newdelete",
        (
            _sample("3_CUDA_Features/newdelete/container.hpp", "306af8d2755e712ffcb0b16a585da61bd1956303"),
            _sample("3_CUDA_Features/newdelete/newdelete.cu", "f5cb14f3aa1aefa07059c287f0e875ada3ecde14"),
        ),
        6, "virtual containers on the heap and placed in shared memory; what was pushed is popped", _new_and_delete,
        before="#include <new>\n", without=("sSDKsample",),
    ),
    Row(
        "K32", "LargeKernelParameter",
        (_sample(
            "6_Performance/LargeKernelParameter/LargeKernelParameter.cu", "8004ad59abda90bfcb3d86f1b93bdc86501ba8f8"
        ),),
        2, "sums of 8000 ints: by value, and by value and constant memory", _large_parameter,
        without=("using namespace std",),
    ),
)  # fmt: skip
