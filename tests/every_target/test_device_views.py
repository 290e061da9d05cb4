"""Strided views and loops over the grid, from gridstride's own device headers."""

from __future__ import annotations

import numpy as np
import pytest

import gridstride as gs

SCALE = """
#include <gridstride/view.h>
#include <gridstride/index.h>
extern "C" __global__ void scale(gridstride::view<float, 2> out, gridstride::view<const float, 1> weights, int* facts) {
    static_assert(sizeof(out) == 40 && sizeof(weights) == 24 && decltype(out)::ndim == 2, "");
    GRIDSTRIDE_FOR_2D(i, j, out.shape(0), out.shape(1)) out(i, j) = out(i, j) * weights[j] + weights(j);
    if (gridstride::global_index() == 0 && gridstride::global_index_y() == 0) {
        facts[0] = (int)out.size(); facts[1] = (int)out.stride(0);
        facts[2] = (int)out.stride(1); facts[3] = (int)weights.stride(0);
    }
}"""


@pytest.mark.parametrize("grid", [(1, 1), (3, 2)])
def test_views_of_strided_arrays(xp, grid):
    base = np.arange(40, dtype=np.float32).reshape(5, 8)
    weights = np.arange(9, dtype=np.float32)
    array, factors, facts = xp.array(base), xp.asarray(weights), xp.zeros(4, np.int32)
    gs.RawKernel(SCALE, "scale")(grid, (4, 2), (array[1:, ::2], factors[::-2][:4], facts))
    expected = base.copy()
    expected[1:, ::2] = base[1:, ::2] * weights[::-2][:4] + weights[::-2][:4]
    np.testing.assert_array_equal(gs.asnumpy(array), expected)
    assert gs.asnumpy(facts).tolist() == [16, 8, 2, -2]


def test_a_loop_over_the_grid_covers_any_count(xp):
    code = """
    #include <gridstride/index.h>
    extern "C" __global__ void count(int* visits, int n) { GRIDSTRIDE_FOR(i, n) ++visits[i]; }"""
    kernel = gs.RawKernel(code, "count")
    for n in (0, 1, 63, 1000):
        visits = xp.zeros(1001, np.int32)
        kernel((2,), (32,), (visits, np.int32(n)))
        assert gs.asnumpy(visits).tolist() == [1] * n + [0] * (1001 - n)


@pytest.fixture(params=["option", "setting"])
def debugging(request, monkeypatch):
    """The options with which kernels are made whose indices are checked."""
    monkeypatch.setenv("GRIDSTRIDE_DEBUG", "1" if request.param == "setting" else "0")
    return ("-DGRIDSTRIDE_DEBUG",) if request.param == "option" else ()


def test_debug_checks_bounds(target, debugging, capfd):
    if "gpu" in target.features:
        pytest.skip("a trap would end the process's use of the device")
    code = """
    #include <gridstride/view.h>
    extern "C" __global__ void read(gridstride::view<const float, 1> x, int i, float* out) { *out = x[i]; }"""
    x, out = np.arange(5, dtype=np.float32), np.zeros(1, np.float32)
    kernel = gs.RawKernel(code, "read", options=debugging)
    kernel((1,), (1,), (x, np.int32(4), out))
    assert out[0] == 4
    with pytest.raises(
        gs.LaunchError, match=r"kernel `read`: .*index 5 is out of bounds for axis 0 with length 5"
    ):
        kernel((1,), (1,), (x, np.int32(5), out))
    assert "index 5 is out of bounds for axis 0 with length 5" in capfd.readouterr().out


def test_debug_checks_bounds_of_raw_arrays(target, debugging, capfd):
    if "gpu" in target.features:
        pytest.skip("a trap would end the process's use of the device")
    operation = "const T first = x[k]; y = first + x[{k, 1}]"
    kernel = gs.ElementwiseKernel("raw T x, int64 k", "T y", operation, "checked", options=debugging)
    for x in (np.arange(6.0).reshape(3, 2), np.arange(6.0).reshape(2, 3).T):
        assert kernel(x, np.array([2])).tolist() == [x.ravel()[2] + x[2, 1]]
        for k, bound in ((3, "axis 0 with length 3"), (6, "size 6"), (-1, "size 6")):
            message = f"kernel `checked`: parameter `x`: index {k} is out of bounds for {bound}"
            with pytest.raises(gs.LaunchError, match=message):
                kernel(x, np.array([k]))
            assert message in capfd.readouterr().out


def test_debug_checks_bounds_of_raw_arrays_of_reductions(target, debugging, capfd):
    if "gpu" in target.features:
        pytest.skip("a trap would end the process's use of the device")
    kernel = gs.ReductionKernel(
        "T x, raw T weights", "T y", "x * weights[_J]", "a + b", "y = a", "0", "weigh", options=debugging
    )
    message = r"kernel `weigh`: parameter `weights`: index [23] is out of bounds for size 2"
    with pytest.raises(gs.LaunchError, match=message):
        kernel(np.ones(4), np.ones(2))
    assert "parameter `weights`" in capfd.readouterr().out
