"""Random straight-line expressions give on each target the bits that IEEE arithmetic gives, contraction off."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from generated_kernels.straight_line import SIZE, straight_line

import gridstride as gs
from gridstride.targets.base import Target

#: Expressions of each dtype: 230 in all.
COUNTS = {"float32": 50, "float64": 50, "int32": 35, "uint32": 30, "int64": 35, "float16": 30}


@pytest.mark.parametrize("dtype", COUNTS)
def test_every_operation_is_rounded_as_ieee_says(target: Target, xp: ModuleType, dtype: str) -> None:
    program = straight_line(dtype, 1, COUNTS[dtype])
    operands = program.operands(2)
    module = gs.RawModule(code=program.text, options=("--fmad=false",))
    arguments = [xp.asarray(array) for array in operands.values()]
    wrong = []
    for k, expected in enumerate(program.expected(operands)):
        out = xp.full(SIZE, 7, dtype)
        module.get_function(f"kernel_{k}")((4,), (128,), (out, *arguments, SIZE))
        got = out if xp is np else out.get()
        same = got.view(f"i{got.itemsize}") == expected.view(f"i{got.itemsize}")
        if got.dtype.kind == "f":
            same |= np.isnan(got) & np.isnan(expected)
        if not same.all():
            i = int(np.argmin(same))
            values = {name: array[i] for name, array in operands.items()}
            wrong.append(f"{program.expressions[k].text} of {values}: {got[i]!r}, not {expected[i]!r}")
    assert not wrong, f"{len(wrong)} of {COUNTS[dtype]} expressions\n" + "\n".join(wrong)
