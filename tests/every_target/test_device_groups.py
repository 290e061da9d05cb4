"""Cooperative groups: the block, tiles, coalesced threads, partitions, collectives."""

from __future__ import annotations

import numpy as np
import pytest

import gridstride as gs

HEADERS = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
"""


def run(
    xp,
    body: str,
    threads: int = 64,
    columns: int = 1,
    blocks: int = 1,
    dtype: str = "int32",
    preamble: str = "",
) -> np.ndarray:
    """Run a body that fills `out[0 .. columns - 1]` of each thread, whose number is `t`."""
    ctype = {"int32": "int", "float32": "float", "float64": "double"}[dtype]
    code = f"""{HEADERS}{preamble}
    extern "C" __global__ void k({ctype}* all) {{
        int t = threadIdx.x;
        {ctype}* out = all + (blockIdx.x * blockDim.x + threadIdx.x) * {columns};
        cg::thread_block block = cg::this_thread_block();
        {body}
    }}"""
    out = xp.zeros((blocks * threads, columns), dtype)
    gs.RawKernel(code, "k", options=("--std=c++17",))((blocks,), (threads,), (out,))
    return gs.asnumpy(out)


def test_the_block_and_the_grid(xp):
    body = """
    auto grid = cg::this_grid();
    block.sync();
    out[0] = block.thread_rank(); out[1] = block.size() + block.num_threads(); out[2] = block.group_index().x;
    out[3] = block.thread_index().x + block.dim_threads().x; out[4] = (int)grid.thread_rank();
    out[5] = (int)grid.size();
    out[6] = (int)grid.block_rank(); out[7] = (int)grid.num_blocks() + cg::thread_block::thread_rank();"""
    got = run(xp, body, threads=40, columns=8, blocks=3)
    rank, block = np.tile(np.arange(40), 3), np.repeat(np.arange(3), 40)
    expected = [rank, 80 + 0 * rank, block, rank + 40, block * 40 + rank, 120 + 0 * rank, block, 3 + rank]
    np.testing.assert_array_equal(got, np.stack(expected, 1))


@pytest.mark.parametrize("size", [1, 2, 8, 32])
def test_tiles(xp, size):
    body = f"""
    auto tile = cg::tiled_partition<{size}>(block);
    static_assert(decltype(tile)::size() == {size}, "");
    tile.sync();
    out[0] = tile.thread_rank(); out[1] = tile.size(); out[2] = tile.meta_group_rank(); out[3] = tile.meta_group_size();
    out[4] = tile.shfl(t, 1 % {size}); out[5] = tile.shfl_up(t, 1); out[6] = tile.shfl_down(t, 1);
    out[7] = tile.shfl_xor(t, {size} / 2);
    out[8] = tile.any(t == 5); out[9] = tile.all(t >= {size}); out[10] = tile.ballot(t % 2);
    out[11] = tile.match_any(t / 2);
    int same; unsigned lanes = tile.match_all(t / 4, same); out[12] = lanes; out[13] = same;"""
    got = run(xp, body, columns=14)
    t = np.arange(64)
    rank, first = t % size, t - t % size

    def bits(condition):  # of the tile, as a mask of ranks
        return (condition.reshape(-1, size).astype(np.int64) << np.arange(size)).sum(1).repeat(size)

    matches = np.array(
        [sum(1 << r for r in range(size) if (f + r) // 2 == v // 2) for f, v in zip(first, t, strict=True)]
    )
    uniform = np.array([len({(f + r) // 4 for r in range(size)}) == 1 for f in first])
    expected = [
        rank, size + 0 * t, t // size, 64 // size + 0 * t, first + 1 % size, np.where(rank > 0, t - 1, t),
        np.where(rank < size - 1, t + 1, t), first + (rank ^ size // 2) if size > 1 else t,
        first == 5 - 5 % size, first >= size,
        bits(t % 2 == 1), matches, np.where(uniform, (1 << size) - 1, 0), uniform,
    ]  # fmt: skip
    np.testing.assert_array_equal(got, np.stack(expected, 1).astype(np.uint32).view(np.int32))


def test_tiles_of_tiles_and_of_unknown_size(xp):
    preamble = """
    __device__ int total(cg::thread_block_tile<4> tile, int v) { return cg::reduce(tile, v, cg::plus<int>()); }
    __device__ int describe(const cg::thread_group& g) { g.sync(); return g.size() * 100 + g.thread_rank(); }"""
    body = """
    auto warp = cg::tiled_partition<32>(block);
    auto tile = cg::tiled_partition<4>(warp);
    out[0] = total(tile, t); out[1] = tile.meta_group_rank(); out[2] = tile.meta_group_size();
    cg::thread_group eight = cg::tiled_partition(block, 8);
    cg::thread_group pair = cg::tiled_partition(eight, 2);
    out[3] = describe(eight); out[4] = describe(pair); out[5] = describe(tile); out[6] = describe(block);
    cg::sync(eight); out[7] = cg::thread_rank(eight) + eight.size();"""
    got = run(xp, body, columns=8, preamble=preamble)
    t = np.arange(64)
    expected = [
        (t - t % 4) * 4 + 6,
        t % 32 // 4,
        8 + 0 * t,
        800 + t % 8,
        200 + t % 2,
        400 + t % 4,
        6400 + t,
        t % 8 + 8,
    ]
    np.testing.assert_array_equal(got, np.stack(expected, 1))


def test_reductions_and_scans(xp):
    body = """
    auto tile = cg::tiled_partition<16>(block);
    int v = (t * 7919) % 101;
    out[0] = cg::reduce(tile, v, cg::plus<int>()); out[1] = cg::reduce(tile, v, cg::less<int>());
    out[2] = cg::reduce(tile, v, cg::greater<int>()); out[3] = cg::reduce(tile, v, cg::bit_and<int>());
    out[4] = cg::reduce(tile, v, cg::bit_or<int>()); out[5] = cg::reduce(tile, v, cg::bit_xor<int>());
    out[6] = cg::inclusive_scan(tile, v); out[7] = cg::exclusive_scan(tile, v);
    out[8] = cg::inclusive_scan(tile, v, cg::greater<int>());
    out[9] = cg::reduce(tile, v, [](int a, int b) { return a + b; });"""
    got = run(xp, body, columns=10)
    v = (np.arange(64) * 7919 % 101).reshape(4, 16)
    whole = [
        f.reduce(v, axis=1).repeat(16)
        for f in (np.add, np.minimum, np.maximum, np.bitwise_and, np.bitwise_or, np.bitwise_xor)
    ]
    running = v.cumsum(1)
    expected = [*whole, running.ravel(), (running - v).ravel(), np.maximum.accumulate(v, 1).ravel(), whole[0]]
    np.testing.assert_array_equal(got, np.stack(expected, 1))


def test_float_reductions_add_in_the_order_of_a_butterfly(xp):
    body = "auto tile = cg::tiled_partition<32>(block); out[0] = cg::reduce(tile, 1.0f / (t + 1), cg::plus<float>());"
    got = run(xp, body, threads=32, dtype="float32")
    v = (np.float32(1) / np.arange(1, 33, dtype=np.float32)).copy()
    for distance in (16, 8, 4, 2, 1):
        v = v + v[np.arange(32) ^ distance]
    np.testing.assert_array_equal(got[:, 0], v)


def test_values_of_any_size(xp):
    preamble = "struct wide { double a; int b; double c, d; };"
    body = """
    auto tile = cg::tiled_partition<8>(block);
    wide mine = {t * 1.0, t, t * 2.0, t * 3.0};
    wide other = tile.shfl(mine, 3);
    out[0] = other.a + other.b + other.c + other.d;
    wide sum = cg::reduce(tile, mine, [](wide x, wide y) { return wide{x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d}; });
    out[1] = sum.a + sum.b * 10 + sum.c + sum.d;"""
    got = run(xp, body, columns=2, dtype="float64", preamble=preamble)
    first = np.arange(64) // 8 * 8
    np.testing.assert_array_equal(got[:, 0], (first + 3) * 7.0)
    np.testing.assert_array_equal(got[:, 1], (first * 8 + 28) * 16.0)


def test_coalesced_threads_and_partitions(xp):
    body = """
    auto warp = cg::tiled_partition<32>(block);
    auto halves = cg::binary_partition(warp, t % 3 == 0);
    out[0] = halves.size(); out[1] = halves.thread_rank(); out[2] = cg::reduce(halves, t, cg::plus<int>());
    auto parts = cg::labeled_partition(warp, t % 5);
    out[3] = parts.size(); out[4] = parts.thread_rank(); out[5] = cg::inclusive_scan(parts, t);
    if (t % 4 == 1) {
        auto active = cg::coalesced_threads();
        out[6] = active.size() * 100 + active.thread_rank();
        out[7] = active.shfl(t, 2); out[8] = active.ballot(t > 16); out[9] = active.shfl_down(t, 1);
        active.sync();
        out[10] = cg::tiled_partition(active, 4).size();
    }"""
    got = run(xp, body, threads=32, columns=11)
    t = np.arange(32)
    third, label = t % 3 == 0, t % 5
    expected = np.zeros((32, 11), np.int64)
    for mask, base in [(third, 0), (~third, 0), *((label == v, 3) for v in range(5))]:
        expected[mask, base] = mask.sum()
        expected[mask, base + 1] = np.arange(mask.sum())
        expected[mask, base + 2] = t[mask].sum() if base == 0 else t[mask].cumsum()
    active = t[t % 4 == 1]
    expected[active, 6] = 800 + np.arange(8)
    expected[active, 7] = active[2]
    expected[active, 8] = ((active > 16).astype(int) << np.arange(8)).sum()
    expected[active, 9] = [*active[1:], active[-1]]
    expected[active, 10] = 4
    np.testing.assert_array_equal(got, expected)


def test_tiles_of_a_partial_warp(xp):
    body = "auto tile = cg::tiled_partition<4>(block); out[0] = cg::reduce(tile, t, cg::plus<int>());"
    got = run(xp, body, threads=44)
    t = np.arange(44)
    np.testing.assert_array_equal(got[:, 0], (t - t % 4) * 4 + 6)


@pytest.mark.parametrize("size", [64, 128, 512])
def test_tiles_of_several_warps(xp, size):
    body = f"""
    auto tile = cg::tiled_partition<{size}>(block);
    static_assert(decltype(tile)::size() == {size}, "");
    tile.sync();
    int v = (t * 7919) % 1009;
    out[0] = tile.thread_rank(); out[1] = tile.num_threads(); out[2] = tile.meta_group_rank();
    out[3] = tile.meta_group_size();
    out[4] = tile.shfl(v, 3); out[5] = tile.any(t == {size} + 1); out[6] = tile.all(t >= {size});
    out[7] = cg::reduce(tile, v, cg::plus<int>()); out[8] = cg::reduce(tile, v, cg::greater<int>());
    out[9] = cg::inclusive_scan(tile, v); out[10] = cg::exclusive_scan(tile, v);
    out[11] = cg::reduce(cg::tiled_partition<32>(tile), v, cg::plus<int>());"""
    got = run(xp, body, threads=512, columns=12)
    t = np.arange(512)
    v = (t * 7919) % 1009
    rows = v.reshape(-1, size)
    first = t - t % size
    expected = [
        t % size, size + 0 * t, t // size, 512 // size + 0 * t, v[first + 3], first == size, first >= size,
        rows.sum(1).repeat(size), rows.max(1).repeat(size), rows.cumsum(1).ravel(), (rows.cumsum(1) - rows).ravel(),
        v.reshape(-1, 32).sum(1).repeat(32),
    ]  # fmt: skip
    np.testing.assert_array_equal(got, np.stack(expected, 1))


def test_one_thread_for_its_group(xp):
    body = """
    __shared__ int calls;
    if (t == 0) calls = 0;
    block.sync();
    auto warp = cg::tiled_partition<32>(block);
    cg::invoke_one(warp, [&](int by) { atomicAdd(&calls, by); }, 5);
    int told = cg::invoke_one_broadcast(warp, [&] { return 1000 + (int)threadIdx.x / 32; });
    block.sync();
    out[0] = calls; out[1] = told; out[2] = cg::this_thread().size();"""
    got = run(xp, body, threads=96, columns=3)
    t = np.arange(96)
    np.testing.assert_array_equal(got, np.stack([15 + 0 * t, 1000 + t // 32, 1 + 0 * t], 1))


def test_arriving_before_waiting(xp):
    body = """
    __shared__ int values[64];
    values[t] = t * t;
    auto token = block.barrier_arrive();
    int own = t;
    block.barrier_wait(std::move(token));
    out[0] = values[63 - t] + own;"""
    got = run(xp, body.replace("std::move(token)", "static_cast<cg::thread_block::arrival_token&&>(token)"))
    t = np.arange(64)
    np.testing.assert_array_equal(got[:, 0], (63 - t) ** 2 + t)


def test_copies_of_a_group(xp):
    preamble = "#include <cooperative_groups/memcpy_async.h>\n"
    body = """
    __shared__ int tile[100];
    __shared__ int source[100];
    for (int i = t; i < 100; i += 64) { source[i] = 3 * i; tile[i] = -1; }
    block.sync();
    cg::memcpy_async(block, tile, source, sizeof(int) * 90);
    cg::wait(block);
    out[0] = tile[t] + tile[t + 36];
    block.sync();
    cg::memcpy_async(block, tile, 70, source + 10, 64);
    cg::wait_prior<0>(block);
    out[1] = tile[t];"""
    got = run(xp, body, columns=2, preamble=preamble)
    t = np.arange(64)
    np.testing.assert_array_equal(got[:, 0], 3 * t + np.where(t + 36 < 90, 3 * (t + 36), -1))
    np.testing.assert_array_equal(got[:, 1], 3 * (t + 10))


def test_numbers_of_a_grid_and_a_block_of_three_dimensions(xp):
    code = f"""{HEADERS}
    __device__ int number(dim3 v) {{ return v.x + 10 * v.y + 100 * v.z; }}
    extern "C" __global__ void k(int* all) {{
        cg::grid_group grid = cg::this_grid();
        cg::thread_block block = cg::this_thread_block();
        int* out = all + grid.thread_rank() * 20;
        out[0] = grid.is_valid() || true; out[1] = number(grid.group_dim()); out[2] = number(grid.dim_blocks());
        out[3] = number(grid.dim_threads()); out[4] = number(grid.block_index()); out[5] = number(grid.thread_index());
        out[6] = number(grid.dim_clusters()); out[7] = (int)grid.num_clusters(); out[8] = number(grid.cluster_index());
        out[9] = (int)grid.cluster_rank(); out[10] = (int)grid.num_threads(); out[11] = (int)grid.num_blocks();
        out[12] = number(block.group_dim()); out[13] = number(block.dim_threads());
            out[14] = number(block.group_index());
        out[15] = number(block.thread_index());
            out[16] = number(block.group_index()) + number(block.thread_index());
        out[17] = (int)cg::group_size(block); out[18] = cg::thread_rank(block);
        cg::coalesced_group all_lanes = cg::coalesced_threads();
        out[19] = all_lanes.size() == 6;
        all_lanes.any(1); all_lanes.all(1); all_lanes.shfl_up(1, 1); all_lanes.match_any(1); int same;
            all_lanes.match_all(1, same);
    }}"""
    out = xp.zeros((12 * 6, 20), np.int32)
    gs.RawKernel(code, "k", options=("--std=c++17",))((2, 3, 2), (3, 2, 1), (out,))
    got = gs.asnumpy(out)
    block, thread = np.divmod(np.arange(72), 6)
    where = block % 2 + 10 * (block // 2 % 3) + 100 * (block // 6)
    which = thread % 3 + 10 * (thread // 3)
    within_grid = (block % 2 * 3 + thread % 3) + 10 * (block // 2 % 3 * 2 + thread // 3) + 100 * (block // 6)
    one = np.ones(72, int)
    expected = [
        one, 232 * one, 232 * one, 266 * one, where, within_grid, 232 * one, 12 * one, where, block, 72 * one,
        12 * one,
        123 * one, 123 * one, where, which, where + which, 6 * one, thread, one,
    ]  # fmt: skip
    np.testing.assert_array_equal(got, np.stack(expected, 1))


@pytest.mark.parametrize(
    "wait",
    [
        "grid.sync();",
        "auto token = grid.barrier_arrive(); grid.barrier_wait(static_cast<decltype(token)&&>(token));",
    ],
)
def test_p89_blocks_of_a_cooperative_launch_wait_for_each_other(xp, wait):
    code = f"""{HEADERS}
    extern "C" __global__ void k(int* cells, int* out) {{
        cg::grid_group grid = cg::this_grid();
        int i = (int)grid.thread_rank(), n = (int)grid.size();
        for (int step = 1; step <= 3; ++step) {{
            cells[i] = i * step;
            {{ {wait} }}
            out[i] += cells[(i + 40) % n];
            grid.sync();
        }}
    }}"""
    cells, out = xp.zeros(160, np.int32), xp.zeros(160, np.int32)
    kernel = gs.RawKernel(code, "k", options=("--std=c++17",), enable_cooperative_groups=True)
    kernel((4,), (40,), (cells, out))
    np.testing.assert_array_equal(gs.asnumpy(out), (np.arange(160) + 40) % 160 * 6)
