"""Local arrays that are larger than a thread's stack."""

import numpy as np
import pytest

import gridstride as gs

TEXT = """
extern "C" __global__ void large(float* x, int k) {{
    volatile float local[{count}];
    local[k] = x[threadIdx.x];
    x[threadIdx.x] = 2 * local[k];
}}"""


@pytest.mark.parametrize("count", [100, 30_000])
def test_what_fits_works(count):
    x = np.arange(4, dtype=np.float32)
    gs.RawKernel(TEXT.format(count=count), "large")(1, 4, (x, 5))
    np.testing.assert_array_equal(x, 2 * np.arange(4))


@pytest.mark.parametrize("count", [60_000, 1_000_000, 100_000_000])
def test_what_steps_over_the_guard_is_an_error(count):
    x = np.zeros(4, np.float32)
    with pytest.raises(gs.LaunchError, match="used up its stack"):
        gs.RawKernel(TEXT.format(count=count), "large")(1, 4, (x, 5))
    gs.RawKernel(TEXT.format(count=100), "large")(1, 4, (x, 5))
