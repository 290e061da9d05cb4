"""Array kernels on arrays of libraries that are not here, or have no name: JAX, DLPack, interfaces, buffers."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

import gridstride as gs

ADD = gs.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add_foreign")
BOTH = gs.ElementwiseKernel("T x", "T y, T z", "y = x; z = -x", "both_foreign")
TOTAL = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total_foreign")
FUSED = gs.fuse(lambda x, y: x * 2 + y, kernel_name="fused_foreign")
FOLDED = gs.fuse(lambda x, y: np.sum(x * y, axis=0), kernel_name="folded_foreign")


class ArrayImpl:
    """Stands for a JAX array: nobody writes to it, and its library copies what it is made of."""

    def __init__(self, values: Any) -> None:
        self.values = np.array(values)
        self.values.flags.writeable = False

    def devices(self) -> set[Any]:
        return {self}

    platform = "cpu"

    def block_until_ready(self) -> None:
        """Nothing is under way."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values


ArrayImpl.__module__ = "jaxlib._jax"


@pytest.fixture
def like_jax(monkeypatch: pytest.MonkeyPatch) -> Any:
    numpy_of_jax = ModuleType("jax.numpy")
    numpy_of_jax.__dict__["asarray"] = ArrayImpl
    monkeypatch.setitem(sys.modules, "jax.numpy", numpy_of_jax)
    return ArrayImpl


class ByDLPack:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class ByInterface:
    def __init__(self, array: Any) -> None:
        self.array, self.__array_interface__ = array, array.__array_interface__


HOST = np.arange(6, dtype=np.float32).reshape(2, 3)
NAMELESS = pytest.mark.parametrize("kind", [ByDLPack, ByInterface, memoryview])


def test_new_arrays_of_a_library_that_copies(like_jax: Any) -> None:
    for _ in range(4):  # also calls that are known
        x = like_jax(HOST)
        for result, expected in (
            (ADD(x, x), HOST + HOST), (ADD(x, 2), HOST + 2), (ADD(x, HOST), HOST + HOST),
            (ADD(HOST.T, like_jax(HOST.T)), 2 * HOST.T),
            (TOTAL(x), HOST.sum()), (TOTAL(x, axis=0, keepdims=True), HOST.sum(0, keepdims=True)),
            (FUSED(x, x), HOST * 3), (FOLDED(x, x), (HOST * HOST).sum(0)), (ADD(like_jax(HOST[:0]), 1), HOST[:0]),
        ):  # fmt: skip
            np.testing.assert_array_equal(np.asarray(result), expected)
            assert np.asarray(result).dtype == np.float32
        assert type(ADD(x, HOST)) is type(TOTAL(x)) is type(FUSED(x, x)) is ArrayImpl
        assert [type(each) for each in BOTH(x)] == [ArrayImpl] * 2
        np.testing.assert_array_equal(BOTH(x)[1].values, -HOST)


def test_new_arrays_of_a_library_that_copies_are_waited_for(like_jax: Any) -> None:
    x, stream = like_jax(HOST), gs.cuda.Stream()
    with gs.cuda.asynchronous_cpu(1):
        np.testing.assert_array_equal(ADD(x, x, stream=stream).values, HOST * 2)
        np.testing.assert_array_equal(TOTAL(x, axis=1, stream=stream).values, HOST.sum(1))


def test_arrays_that_nobody_writes_to_are_no_outputs(like_jax: Any) -> None:
    x = like_jax(HOST)
    with pytest.raises(TypeError, match=r"parameter `z`.*read-only"):
        ADD(HOST, HOST, x)
    with pytest.raises(TypeError, match=r"parameter `y`.*read-only"):
        TOTAL(HOST, axis=0, out=like_jax(HOST[0]))


@NAMELESS
def test_arrays_without_a_library_bring_their_outputs(kind: Any) -> None:
    x, out = kind(HOST.copy()), HOST.copy()
    for _ in range(4):
        assert ADD(x, x, out) is out
        np.testing.assert_array_equal(out, HOST * 2)
        row = np.zeros(3, np.float32)
        assert TOTAL(x, axis=0, out=row) is row
        np.testing.assert_array_equal(row, HOST.sum(0))
        written = HOST.copy()
        given = kind(written)
        assert ADD(HOST, 1, given) is given
        np.testing.assert_array_equal(written, HOST + 1)
    for call in (lambda: ADD(x, 1), lambda: TOTAL(x), lambda: FUSED(x, x)):
        with pytest.raises(TypeError, match=r"no output of dtype float32 .* Pass the outputs, or an array"):
            call()


@NAMELESS
def test_outputs_are_of_the_first_library_that_has_a_name(kind: Any) -> None:
    for _ in range(4):
        for result in (ADD(kind(HOST.copy()), HOST), FUSED(kind(HOST.copy()), HOST / 2)):
            assert type(result) is np.ndarray
        np.testing.assert_array_equal(ADD(kind(HOST.copy()), HOST), HOST * 2)


def test_addresses_may_be_integers_of_numpy() -> None:
    x = np.arange(3, dtype="f4")

    class Shown:
        __array_interface__: ClassVar[dict[str, Any]] = {
            "shape": (3,), "typestr": "<f4", "data": (np.int64(x.ctypes.data), False), "version": 3
        }  # fmt: skip

    kernel = gs.ElementwiseKernel("T x", "T y", "y = x", "shown")
    np.testing.assert_array_equal(kernel(Shown(), np.zeros(3, "f4")), x)
