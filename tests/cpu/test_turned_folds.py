"""The folds of inputs that lie along different axes, which GPUs have, run on the CPU target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets.walks import FoldLoop
from tests.cpu.test_block_loops import flat_view
from tests.crosses import in_soak

pytestmark = pytest.mark.usefixtures("folds_of_much")


def total_of_products() -> gs.ReductionKernel:
    return gs.ReductionKernel(
        "T x, U y", "float64 z", "double(x) * y", "a + b", "z = a", "0", "total_of_products"
    )


@pytest.mark.parametrize(
    "dtypes", [("float32", "float32"), ("int8", "float16"), *in_soak(("float64", "int16"))]
)
@pytest.mark.parametrize("axis", [(1,), (2,), (1, 2), (0,), (0, 1, 2)])
def test_inputs_that_lie_along_different_axes(
    dtypes: tuple[str, str], axis: tuple[int, ...], block_folds: list[FoldLoop]
) -> None:
    total = total_of_products()
    for rows, columns, start in ((700, 67, 1), (128, 384, 0)):
        x = flat_view((2, columns, rows), dtypes[0], start, 1).transpose(0, 2, 1)
        y = flat_view((2, rows, columns), dtypes[1], 0, 1)
        if len(axis) == 1 or 0 not in axis:
            wanted: Any = (x.astype("f8") * y).sum(axis)
            np.testing.assert_array_equal(total(x, y, axis=axis), wanted)
        else:
            np.testing.assert_array_equal(total(x[0], y[0]), (x[0].astype("f8") * y[0]).sum())
    are_turned = [each.name.startswith("fold_turned<") for each in block_folds]
    assert all(are_turned) if axis != (0,) else not any(are_turned)
