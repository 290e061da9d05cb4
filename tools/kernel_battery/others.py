"""Kernels of research codes, tuners, sorters and signal processing."""

from __future__ import annotations

import itertools
import math

import numpy as np

from kernel_battery.bench import Bench, numpy
from kernel_battery.row import Results, Row, Source


def _alignment_scores(bench: Bench) -> Results:
    size, block, penalty = 64, 16, 10
    cols, blocks = size + 1, size // block
    reference = np.zeros((cols, cols), np.int32)
    reference[1:, 1:] = np.random.default_rng(11).integers(-4, 10, (size, size))
    scores = np.zeros((cols, cols), np.int32)
    scores[0] = scores[:, 0] = -penalty * np.arange(cols)
    upper, lower = bench.kernels(["needle_cuda_shared_1", "needle_cuda_shared_2"])
    ours, other = bench.array(scores), bench.array(reference)
    for step in range(1, blocks + 1):
        upper((step,), (block,), (other, ours, cols, penalty, step, blocks))
    for step in range(blocks - 1, 0, -1):
        lower((step,), (block,), (other, ours, cols, penalty, step, blocks))
    for y, x in itertools.product(range(1, cols), repeat=2):
        diagonal = scores[y - 1, x - 1] + reference[y, x]
        scores[y, x] = max(diagonal, scores[y, x - 1] - penalty, scores[y - 1, x] - penalty)
    np.testing.assert_array_equal(numpy(ours), scores)
    return {"scores": numpy(ours)}


def _partial_blocks(bench: Bench) -> Results:
    n, threads = 1000, 256
    values = np.random.default_rng(12).integers(0, 8, n).astype(np.float32)
    # The second pass adds up what the first one left at the begin of each block.
    sums = [bench.array(np.resize(part, 1024)) for part in (values, values**2)]
    (kernel,) = bench.kernels(["reduce"])
    kernel((4,), (threads,), (n, n, 1, *sums))
    kernel((1,), (threads,), (n, 4, threads, *sums))
    found = np.array([numpy(part)[0] for part in sums])
    np.testing.assert_array_equal(found, [values.sum(), (values**2).sum()])
    return {"sums": found}


def _huffman(bench: Bench) -> Results:
    words, threads = 256, 256
    symbols = np.minimum(np.random.default_rng(13).geometric(0.12, words * 4) - 1, 255).astype(np.uint8)
    # "0" and four bits for the first sixteen symbols, "1" and eight bits for the others.
    short = np.arange(256) < 16
    codes = np.where(short, np.arange(256), 256 + np.arange(256)).astype(np.uint32)
    lengths = np.where(short, 5, 9).astype(np.uint32)
    data = symbols.reshape(words, 4)[:, ::-1].copy().view(np.uint32).ravel()
    (kernel,) = bench.kernels(["vlc_encode_kernel_sm64huff"])
    out, bits = bench.zeros(words, np.uint32), bench.zeros(1, np.uint32)
    unused = [bench.zeros(words, np.uint32) for _ in range(3)]
    arguments = (bench.array(data), bench.array(codes), bench.array(lengths), *unused, out, bits)
    kernel((words // threads,), (threads,), arguments, shared_mem=4 * (2 * 256 + threads))
    length = int(numpy(bits)[0])
    stream = "".join(f"{word:032b}" for word in numpy(out).tolist())[:length]
    assert length == lengths[symbols].sum()
    np.testing.assert_array_equal(_decoded(stream), symbols)
    return {"stream": numpy(out)[: length // 32 + 1]}


def _decoded(stream: str) -> list[int]:
    symbols, position = [], 0
    while position < len(stream):
        width = 9 if stream[position] == "1" else 5
        symbols.append(int(stream[position + 1 : position + width], 2))
        position += width
    return symbols


def _tuned_sum(bench: Bench) -> Results:
    values = np.random.default_rng(14).integers(-8, 9, 8192).astype(np.float32)
    results = {}
    for vector, shuffle, unroll in ((1, 0, 1), (2, 0, 0), (4, 0, 2), (1, 1, 1), (2, 1, 4), (4, 1, 0)):
        macros = {
            "block_size_x": 128, "num_blocks": 8, "vector": vector, "use_shuffle": shuffle,
            "loop_unroll_factor_0": unroll,
        }  # fmt: skip
        options = [f"-D{name}={value}" for name, value in macros.items()]
        (kernel,) = bench.kernels(["sum_floats"], options=options)
        out = bench.zeros(8)
        kernel((8,), (128,), (out, bench.array(values), values.size))
        assert numpy(out).sum() == values.sum()
        results[f"vector {vector}, shuffle {shuffle}"] = numpy(out)
    return results


def _points_in_polygon(bench: Bench) -> Results:
    n = 2000
    random = np.random.default_rng(15)
    angles = np.sort(random.uniform(0, 2 * np.pi, 600))
    radii = random.uniform(0.5, 1, 600)
    corners = np.stack([radii * np.cos(angles), radii * np.sin(angles)], 1).astype(np.float32)
    before = np.roll(corners, 1, 0)
    slopes = (before - corners)[:, 0] / (before - corners)[:, 1]
    points = random.uniform(-1, 1, (n, 2)).astype(np.float32)
    inside = _inside(points.astype(float), corners.astype(float))
    results = {}
    for tile, between, precomputed, method in ((1, 0, 0, 0), (2, 1, 1, 1), (4, 3, 0, 1), (1, 2, 1, 0)):
        macros = (("tile_size", tile), ("between_method", between), ("use_precomputed_slopes", precomputed),
                  ("use_method", method))  # fmt: skip
        module = bench.module(options=[f"-D{name}={value}" for name, value in macros])
        bench.fill(module.get_global("d_vertices"), corners)
        bench.fill(module.get_global("d_slopes"), slopes)
        out, naive = bench.zeros(n, np.int32), bench.zeros(n, np.int32)
        tuned, plain = (bench.noted(module.get_function(name)) for name in ("cn_pnpoly", "cn_pnpoly_naive"))
        tuned((math.ceil(n / 256 / tile),), (256,), (out, bench.array(points), n))
        plain((math.ceil(n / 256),), (256,), (naive, bench.array(points), n))
        np.testing.assert_array_equal(numpy(out), numpy(naive))
        assert (numpy(out) == inside).mean() > 0.999  # float against double at the edges
        results[f"between {between}, method {method}"] = numpy(out)
    return results


def _inside(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    x, y = points[:, :1], points[:, 1:]
    a, b = corners, np.roll(corners, 1, 0)
    crosses = (a[:, 1] > y) != (b[:, 1] > y)
    left = x < (b - a)[:, 0] / (b - a)[:, 1] * (y - a[:, 1]) + a[:, 0]
    return (crosses & left).sum(1) % 2


def _softmax(bench: Bench) -> Results:
    rows, columns, block = 8, 1000, 128
    values = np.random.default_rng(16).normal(0, 3, (rows, columns)).astype(np.float32)
    exact = np.exp(values.astype(float) - values.max(1, keepdims=True))
    exact /= exact.sum(1, keepdims=True)
    launches = {
        "kernel1": (1, 32, 0), "kernel2": (rows, block, block * 4), "kernel3": (rows, 32, 128),
        # In larger blocks warps of kernel4 write the first word before others have read it.
        "kernel4": (rows, 32, 4), "online_kernel1": (1, 32, 0), "online_kernel2": (2, block, 0),
        "kernel7": (rows, block, 2 * block // 32 * 4), "online_kernel8": (2, block, 0),
    }  # fmt: skip
    names = [f"softmax_forward_{name}" for name in launches]
    results = {}
    for kernel, (name, (grid, threads, shared)) in zip(bench.kernels(names), launches.items(), strict=True):
        out = bench.zeros((rows, columns))
        kernel((grid,), (threads,), (out, bench.array(values), rows, columns), shared_mem=shared)
        np.testing.assert_allclose(numpy(out), exact, rtol=2e-5)
        results[name] = numpy(out)
    return results


def _one_sweep(bench: Bench) -> Results:
    n = 20_000
    keys = np.random.default_rng(17).integers(0, 2**32, n, dtype=np.uint32)
    pairs = np.arange(n, dtype=np.uint32)
    names = [
        "OneSweep::GlobalHistogram<uint32_t, 256, 128, 2, 8192>", "OneSweep::Scan<256>",
        "OneSweep::DigitBinningPassKeys<256, 8, 16, 15>", "OneSweep::DigitBinningPassPairs<256, 8, 16, 15>",
    ]  # fmt: skip
    count, scan, sort_keys, sort_pairs = bench.kernels(names)
    blocks = math.ceil(n / 7680)
    results = {}
    for with_pairs in (False, True):
        ours, other = bench.array(keys), bench.zeros(n, np.uint32)
        values, other_values = bench.array(pairs), bench.zeros(n, np.uint32)
        total, index = bench.zeros(1024, np.uint32), bench.zeros(4, np.uint32)
        passes = bench.zeros((4, blocks * 256), np.uint32)
        count((math.ceil(n / 8192),), (128,), (ours, total, n))
        scan((4,), (256,), (total, passes, blocks))
        for digit in range(4):
            state = (passes[digit], index, n, digit * 8)
            if with_pairs:
                sort_pairs((blocks,), (512,), (ours, values, other, other_values, *state))
            else:
                sort_keys((blocks,), (512,), (ours, other, *state))
            ours, other, values, other_values = other, ours, other_values, values
        np.testing.assert_array_equal(numpy(ours), np.sort(keys))
        results["keys"] = numpy(ours)
    np.testing.assert_array_equal(numpy(values), np.argsort(keys, kind="stable"))
    return results | {"values": numpy(values)}


def _resampled(bench: Bench) -> Results:
    names = {"float32": 1e-5, "float64": 1e-13, "complex64": 1e-5, "complex128": 1e-13}
    lines = bench.kernels([f"_cupy_upfirdn1D_{name}" for name in names])
    planes = bench.kernels([f"_cupy_upfirdn2D_{name}" for name in names])
    up, down, taps = 3, 2, 10
    results = {}
    for (name, limit), line, plane in zip(names.items(), lines, planes, strict=True):
        random = np.random.default_rng(18)
        signal, filter_ = (random.normal(size=size).astype(name) for size in ((5, 40), taps))
        if signal.dtype.kind == "c":
            signal, filter_ = (part + 1j * part[..., ::-1] for part in (signal, filter_))
        phases = np.resize(filter_, (math.ceil(taps / up), up)).copy()
        phases.ravel()[taps:] = 0
        flipped = np.ascontiguousarray(phases.T[:, ::-1]).ravel()
        per_phase = phases.shape[0]
        padded = 40 + per_phase - 1
        length = math.ceil(((40 - 1) * up + taps) / down)
        stuffed = np.zeros((5, 40 * up), name)
        stuffed[:, ::up] = signal
        expected = np.stack([np.convolve(row, filter_)[::down][:length] for row in stuffed])
        common = (bench.array(flipped), up, down)
        out = bench.zeros(length, name)
        line((1,), (128,), (bench.array(signal[0]), *common, 0, 40, per_phase, padded, out, length))
        np.testing.assert_allclose(numpy(out), expected[0], rtol=limit, atol=limit)
        results[f"line, {name}"] = numpy(out)
        for axis, values, right in ((1, signal, expected), (0, np.ascontiguousarray(signal.T), expected.T)):
            out = bench.zeros(right.shape, name)
            arguments = (
                bench.array(values),
                values.shape[1],
                *common,
                axis,
                40,
                per_phase,
                padded,
                out,
                *right.shape,
            )
            plane((8, 8), (8, 8), arguments)
            np.testing.assert_allclose(numpy(out), right, rtol=limit, atol=limit)
            results[f"plane along {axis}, {name}"] = numpy(out)
    return results


def _murmur(bench: Bench) -> Results:
    lengths = np.random.default_rng(19).integers(0, 200, 300).astype(np.uint32)
    lengths[:33] = np.arange(33)
    keys = np.concatenate([np.arange(length) % 256 for length in lengths]).astype(np.uint8)
    offsets = np.r_[0, np.cumsum(lengths)].astype(np.uint32)
    (kernel,) = bench.kernels(["MurmurHash3_x64_128_kernel"])
    out = bench.zeros((300, 2), np.uint64)
    kernel((2,), (256,), (*map(bench.array, (keys, offsets, lengths)), out, 300))
    expected = [
        _murmur_hash(bytes(i % 256 for i in range(length)), seed) for seed, length in enumerate(lengths)
    ]
    np.testing.assert_array_equal(numpy(out), np.array(expected, np.uint64))
    return {"hashes": numpy(out)}


_WORD = 2**64 - 1


def _turned(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _WORD


def _mixed(value: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & _WORD
    return value ^ value >> 33


def _murmur_hash(key: bytes, seed: int) -> tuple[int, int]:
    """Return the 128-bit hash of Appleby's MurmurHash3 for 64-bit machines."""
    first, second = 0x87C37B91114253D5, 0x4CF5AD432745937F
    h1 = h2 = seed
    whole = len(key) // 16 * 16
    for start in range(0, whole, 16):
        k1, k2 = (int.from_bytes(key[start + part : start + part + 8], "little") for part in (0, 8))
        h1 ^= _turned(k1 * first & _WORD, 31) * second & _WORD
        h1 = ((_turned(h1, 27) + h2) * 5 + 0x52DCE729) & _WORD
        h2 ^= _turned(k2 * second & _WORD, 33) * first & _WORD
        h2 = ((_turned(h2, 31) + h1) * 5 + 0x38495AB5) & _WORD
    k1, k2 = (int.from_bytes(key[whole + part : whole + part + 8], "little") for part in (0, 8))
    h2 ^= _turned(k2 * second & _WORD, 33) * first & _WORD
    h1 ^= _turned(k1 * first & _WORD, 31) * second & _WORD
    h1, h2 = h1 ^ len(key), h2 ^ len(key)
    h1 = (h1 + h2) & _WORD
    h2 = (h2 + h1) & _WORD
    h1, h2 = _mixed(h1), _mixed(h2)
    h1 = (h1 + h2) & _WORD
    return h1, (h2 + h1) & _WORD


_MESH_MACROS = """
typedef signed char int8_t;
typedef long long int64_t;
#define GPUFUN __device__
#define GPUKERN extern "C" __global__
#define GPUGLMEM
#define VECTORIZE_OVER(i, n) { int i = blockDim.x * blockIdx.x + threadIdx.x; if (i < n) {
#define END_VECTORIZE }}
#define ParticlesData void*
#define QELEM 1.0
#define ParticlesData_getp1_x(particles, i) 0
#define ParticlesData_getp1_y(particles, i) 0
#define ParticlesData_getp1_zeta(particles, i) 0
#define ParticlesData_getp1_weight(particles, i) 0
#define ParticlesData_getp1_state(particles, i) 0
#define ParticlesData_get_q0(particles) 1.0
"""


def _deposited(bench: Bench) -> Results:
    n, cells = 3000, np.array([9, 8, 7])
    random = np.random.default_rng(20)
    x, y, z = random.uniform(-0.2, 1.2, (3, n))
    weight, state = random.uniform(0.5, 2, n), random.integers(0, 2, n)
    spacing = 1 / (cells - 1)
    (kernel,) = bench.kernels(["p2m_rectmesh3d"], headers={"xobjects/headers/common.h": ""})
    grid = bench.zeros(cells[::-1], np.float64)
    arrays = map(bench.array, (x, y, z, weight, state))
    kernel(
        (24,), (128,), (n, *arrays, *np.zeros(3), *spacing, *cells.astype(np.int32), grid.view(np.int8), 0)
    )
    expected = np.zeros(cells)
    cell = np.stack([x, y, z], 1) / spacing
    low = np.floor(cell).astype(int)
    counted = (state > 0) & (low >= 0).all(1) & (low < cells - 1).all(1)
    for corner in itertools.product((0, 1), repeat=3):
        share = np.where(corner, cell - low, 1 - (cell - low)).prod(1) * weight / spacing.prod()
        np.add.at(expected, tuple((low + corner)[counted].T), share[counted])
    np.testing.assert_allclose(numpy(grid), expected.T, rtol=1e-12)
    return {"charge": numpy(grid)}


_RODINIA = "yuhc/gpu-rodinia"
_SORTING = "b0nes164/GPUSorting"

ROWS = (
    Row(
        "K14", "nw/needle_kernel",
        (Source(
            "jchen706/gpu-rodinia", "cuda/nw/needle_kernel.cu", "91048ce327fb03e73cf9e14f9cb88f385e23f727"
        ),),
        2, "alignment of 64 with 64 in blocks of 16, against Python", _alignment_scores,
        before="#define BLOCK_SIZE 16\n",
    ),
    Row(
        "K16", "srad_v1/reduce_kernel",
        (Source(_RODINIA, "cuda/srad/srad_v1/reduce_kernel.cu", "31d0ebf5adaf3aaa6c770cc5319a62275d8c1881"),),
        1, "sums of 1000 values and of their squares, exact", _partial_blocks,
        before="#define NUMBER_THREADS 256\n#define fp float\n",
    ),
    Row(
        "K17", "huffman/vlc_kernel_sm64huff",
        tuple(
            Source(_RODINIA, f"cuda/huffman/{name}", "31d0ebf5adaf3aaa6c770cc5319a62275d8c1881")
            for name in ("parameters.h", "pabio_kernels_v2.cu", "vlc_kernel_sm64huff.cu")
        ),
        1, "256 words encoded with a fixed table, decoded in Python", _huffman,
    ),
    Row(
        "K18", "reduction",
        (Source(
            "KernelTuner/kernel_tuner", "examples/cuda/reduction.cu", "03d4264544062c4c15233a7f0d5b768d44a77e6a"
        ),),
        1, "8192 values, six combinations of macros, exact", _tuned_sum,
    ),
    Row(
        "K21", "softmax_forward",
        (
            Source("karpathy/llm.c", "dev/cuda/common.h", "0f112f1b6225b28e3cf827dc658b115a8f6a8012"),
            Source("karpathy/llm.c", "dev/cuda/softmax_forward.cu", "99fe39407629025c85ec19b1a3c8750c076a4a47"),
        ),
        8, "8 rows of 1000, against NumPy", _softmax, tolerance=1e-5,
        without=("deviceProp", "ceil_div", "cublas", "Packed128", "blockReduce", "reduction_func_t", "floatX",
                 "cuda_num_SMs", "cuda_threads_per_SM", "cuda_arch_major"),
    ),
    Row(
        "K23", "OneSweep",
        tuple(
            Source(_SORTING, f"GPUSortingCUDA/{path}", commit)
            for path, commit in (
                ("Utils.cuh", "2071231a10cf020e357d2c3a381354be44814017"),
                ("Sort/SortCommon.cuh", "6367aab68b2e519bea67cbd906f1bbec42214f37"),
                ("Sort/OneSweep.cuh", "6367aab68b2e519bea67cbd906f1bbec42214f37"),
            )
        ),
        4, "20,000 keys, and pairs, in four passes, against `sort`", _one_sweep,
        before="#include <stdint.h>\n", without=("pragma once",),
    ),
    Row(
        "K36", "_upfirdn",
        (Source("rapidsai/cusignal", "cpp/src/filtering/_upfirdn.cu", "51c619bcd9872b98f15c9ef388d84383fcf4645d"),),
        8, "up by 3, ten taps, down by 2, in four types, lines and both axes of planes, against `convolve`",
        _resampled, tolerance=1e-5,
    ),
    Row(
        "K37", "pnpoly",
        (Source("KernelTuner/kernel_tuner", "examples/cuda/pnpoly.cu", "e5d1e0f4d259a287b6a73a9fc8f2933ecacc77ad"),),
        2, "2000 points, four combinations of macros, against each other and NumPy", _points_in_polygon,
    ),
    Row(
        "K39", "murmurhash3",
        (Source(
            "zjin-lcf/HeCBench", "src/murmurhash3-cuda/murmurhash3.cu", "280045f0659705899a18d289c3ed6c4fb0b3459b"
        ),),
        1, "300 keys of 0 to 200 bytes, against Python", _murmur,
    ),
    Row(
        "K42", "charge_deposition",
        (Source(
            "xsuite/xfields", "xfields/fieldmaps/interpolated_src/charge_deposition.h",
            "v0.27.5",
        ),),
        1, "3000 charges on a mesh of 9x8x7, against NumPy", _deposited, before=_MESH_MACROS, cut=False,
        tolerance=1e-12,
    ),
)  # fmt: skip
