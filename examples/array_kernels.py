"""Standardize the columns of a table: a reduction, an elementwise kernel, and a Python function that is fused."""

import numpy as np

import gridstride as gs

# Mean and variance of each column in one pass: what is folded of an element is a structure.
moments = gs.ReductionKernel(
    "T x",
    "T mean, T variance",
    map_expr="sums{double(x), double(x) * double(x)}",
    reduce_expr="sums{a.values + b.values, a.squares + b.squares}",
    post_map_expr="""
        const double m = a.values / _fold_size;
        mean = m;
        variance = a.squares / _fold_size - m * m;
    """,
    identity="sums{0, 0}",
    name="moments",
    reduce_type="sums",
    preamble="struct sums { double values, squares; };",
)

# One element at a time; rows of means and variances are broadcast as in NumPy.
standardize = gs.ElementwiseKernel(
    "T x, T mean, T variance",
    "T z",
    "z = (x - mean) / sqrt(variance)",
    "standardize",
)


# A Python function becomes one kernel, which ends in a reduction here.
@gs.fuse
def share_of_outliers(z, limit):
    return np.mean(np.abs(z) > limit, axis=0)


def main() -> None:
    values = np.random.default_rng(0).normal(3.0, 2.0, (100_000, 5)).astype(np.float32)
    # CuPy arrays where there is a GPU for them, NumPy arrays elsewhere. They decide where the kernels run.
    x = gs.asarray(values)

    mean, variance = moments(x, axis=0)
    z = standardize(x, mean, variance)
    outliers = share_of_outliers(z, 2.0)

    np.testing.assert_allclose(gs.asnumpy(mean), values.mean(axis=0, dtype=np.float64), rtol=1e-5)
    np.testing.assert_allclose(gs.asnumpy(variance), values.var(axis=0, dtype=np.float64), rtol=1e-4)
    expected = (values - values.mean(0)) / values.std(0)
    np.testing.assert_allclose(gs.asnumpy(z), expected, rtol=1e-3, atol=1e-4)

    # Arrays may lie in memory in any way, also those that are written.
    turned = gs.empty((5, 50_000), dtype=np.float32)
    standardize(x[::2], mean, variance, turned.T)
    np.testing.assert_allclose(gs.asnumpy(turned), expected[::2].T, rtol=1e-3, atol=1e-4)
    print(f"share of elements beyond two deviations, by column: {gs.asnumpy(outliers).round(4)}")


if __name__ == "__main__":
    main()
