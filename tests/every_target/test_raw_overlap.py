"""Raw arrays that share memory with outputs: inputs are what they were before the call."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import gridstride as gs

REVERSED = gs.ElementwiseKernel("raw T x", "T y", "y = x[n - 1 - i]", "reversed")
SCATTERED = gs.ElementwiseKernel("T x", "raw T y", "y[n - 1 - i] = x", "scattered")
BOTH = gs.ElementwiseKernel("raw T x", "raw T y", "y[n - 1 - i] = x[i]", "both")


@pytest.mark.parametrize("kernel", [REVERSED, SCATTERED, BOTH], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("step", [1, 2])
def test_raw_arrays_beside_outputs(xp: ModuleType, kernel: gs.ElementwiseKernel, step: int) -> None:
    given = {"size": 1000} if kernel is BOTH else {}
    for _ in range(4):  # the compiled fast path makes later calls
        apart, shared = xp.zeros(1000), xp.arange(1000.0 * step)[::step]
        kernel(xp.arange(1000.0), apart, **given)
        kernel(shared, shared, **given)
        np.testing.assert_array_equal(gs.asnumpy(apart), np.arange(1000.0)[::-1])
        np.testing.assert_array_equal(gs.asnumpy(shared), np.arange(1000.0 * step)[::step][::-1])


def test_raw_outputs_may_share_memory(xp: ModuleType) -> None:
    out = xp.zeros(6)
    gs.ElementwiseKernel("T x", "raw T y, raw T z", "y[2 * i] = x; z[2 * i + 1] = -x", "zipped")(
        xp.arange(3.0), out, out
    )
    assert gs.asnumpy(out).tolist() == [0, 0, 1, -1, 2, -2]
