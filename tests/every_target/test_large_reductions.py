"""Reductions that fold large structures: histograms, which shared memory cannot hold one of for each thread."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import gridstride as gs
from tests.crosses import in_soak


def histogram(bins: int) -> gs.ReductionKernel:
    """Return a kernel that gives the most frequent bin, how often it occurs, and how many elements there are."""
    return gs.ReductionKernel(
        "T x", "int32 bin, int32 often, int64 n", "of(x)", "joined(a, b)",
        "bin = a.largest(); often = a.bins[bin]; n = a.n", "histogram{}", "most_frequent", reduce_type="histogram",
        preamble=f"""
        struct histogram {{
            int bins[{bins}];
            long long n;
            __device__ int largest() const {{
                int best = 0;
                for (int k = 1; k < {bins}; ++k) if (bins[k] > bins[best]) best = k;
                return best;
            }}
        }};
        __device__ histogram of(int x) {{
            histogram h = {{}};
            h.bins[x % {bins}] = 1;
            h.n = 1;
            return h;
        }}
        __device__ histogram joined(const histogram& a, const histogram& b) {{
            histogram h;
            for (int k = 0; k < {bins}; ++k) h.bins[k] = a.bins[k] + b.bins[k];
            h.n = a.n + b.n;
            return h;
        }}""",
    )  # fmt: skip


def check_most_frequent(xp: ModuleType, bins: int) -> None:
    """Compare along all axes with NumPy."""
    kernel = histogram(bins)
    for shape in ((5000,), (70, 33), (3, 40, 50)):
        x = np.random.default_rng(0).integers(0, 2 * bins, shape, np.int32)
        for axis in {None, *range(len(shape)), (0, len(shape) - 1) if len(shape) > 1 else 0}:
            bin_, often, n = (gs.asnumpy(each) for each in kernel(xp.asarray(x), axis=axis))
            counts = np.stack([(x % bins == k).sum(axis) for k in range(bins)])
            np.testing.assert_array_equal(bin_, counts.argmax(0))
            np.testing.assert_array_equal(often, counts.max(0))
            np.testing.assert_array_equal(n, x.size // max(1, np.size(n)))


#: Of int32, besides a count of eight bytes: structures of 64 to 4008 bytes.
@pytest.mark.parametrize("bins", [44, 1000, *in_soak(14, 46, 126)])
@pytest.mark.usefixtures("optimized")
def test_the_most_frequent_bin(xp: ModuleType, bins: int) -> None:
    check_most_frequent(xp, bins)
