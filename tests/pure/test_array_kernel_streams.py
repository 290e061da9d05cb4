"""Array kernels go to the stream that is given, else to the current one, in calls like earlier ones too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets import registry

ADD = gs.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add_in_stream")
TOTAL = gs.ReductionKernel("T x, T y", "T z", "x * y", "a + b", "z = a", "0", "total_in_stream")
FUSED = gs.fuse(lambda x, y: x * 2 + y, kernel_name="fused_in_stream")
FOLDED = gs.fuse(lambda x, y: np.sum(x - y), kernel_name="folded_in_stream")


@pytest.fixture(autouse=True)
def _null() -> Iterator[None]:
    with gs.use_target("null"):
        yield


def streams_of(call: Callable[[], Any]) -> set[int]:
    """Return the streams of the launches that a call makes."""
    calls: Any = registry.get("null").calls  # type: ignore[attr-defined]
    start = len(calls)
    call()
    return {each[-2] for each in calls[start:] if each[0] == "launch"}


@pytest.mark.parametrize("kernel", [ADD, TOTAL])
def test_the_stream_that_is_given(kernel: Any) -> None:
    x, given, current = np.ones((300, 400)), gs.cuda.Stream(), gs.cuda.Stream()
    for _ in range(4):
        assert streams_of(lambda: kernel(x, x, stream=given)) == {given.ptr}
        with current:
            assert streams_of(lambda: kernel(x, x, stream=given)) == {given.ptr}


@pytest.mark.parametrize("kernel", [ADD, TOTAL, FUSED, FOLDED])
def test_case_p42_the_current_stream(kernel: Any) -> None:
    x, stream = np.ones((300, 400)), gs.cuda.Stream()
    for _ in range(4):
        with stream:
            assert streams_of(lambda: kernel(x, x)) == {stream.ptr}
        assert streams_of(lambda: kernel(x, x)) == {0}
