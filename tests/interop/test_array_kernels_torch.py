"""Elementwise kernels and reductions on PyTorch tensors of the host."""

from __future__ import annotations

import numpy as np
import pytest

import gridstride as gs

torch = pytest.importorskip("torch")

ADD = gs.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
TOTAL = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")


def test_tensors_in_tensors_out() -> None:
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    result = ADD(x, x.T.contiguous().T)
    assert isinstance(result, torch.Tensor)
    assert torch.equal(result, x + x)
    total = TOTAL(x, axis=0)
    assert isinstance(total, torch.Tensor)
    assert torch.equal(total, x.sum(0))
    out = torch.zeros(4, 3).T
    assert ADD(x, 1, out) is out
    assert torch.equal(out, x + 1)


def test_bfloat16() -> None:
    x = torch.randn(50, dtype=torch.bfloat16)
    result = ADD(x, 2)
    assert result.dtype is torch.bfloat16
    assert torch.equal(result, x + 2)
    assert TOTAL(x).dtype is torch.bfloat16


def test_dtypes_of_results() -> None:
    total = TOTAL(torch.ones(3, 4, dtype=torch.int8), axis=0, dtype=torch.int64)
    assert torch.equal(total, torch.full((4,), 3))
    assert TOTAL(torch.ones(3), dtype=torch.bfloat16).dtype is torch.bfloat16


def test_conjugate_views_are_resolved() -> None:
    x = torch.randn(5, dtype=torch.complex64)
    assert torch.equal(ADD(x.conj(), x), x.conj() + x)
    with pytest.raises(TypeError, match="resolve_conj"):
        ADD(x, x, torch.zeros(5, dtype=torch.complex64).conj())


def test_libraries_can_be_mixed() -> None:
    result = ADD(torch.ones(3), np.ones(3, np.float32))
    assert isinstance(result, torch.Tensor)
    assert isinstance(ADD(np.ones(3, np.float32), torch.ones(3)), np.ndarray)


def test_arrays_without_axes_beside_others_do_not_say_of_which_library_results_are() -> None:
    for kernel in (ADD, gs.fuse(lambda x, y: x - y)):
        assert isinstance(kernel(np.array(2.0, np.float32), torch.ones(3)), torch.Tensor)
        assert isinstance(kernel(torch.tensor(2.0), np.ones(3, np.float32)), np.ndarray)
        assert isinstance(kernel(torch.tensor(2.0), np.array(1.0, np.float32)), torch.Tensor)


def test_gradients_are_refused() -> None:
    with pytest.raises(TypeError, match=r"detach\(\)"):
        ADD(torch.ones(3, requires_grad=True), 1)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
def test_negative_exponents_of_integers(dtype: torch.dtype) -> None:
    x = torch.tensor([-3, -1, -1, 0, 1, 2, 5], dtype=dtype)
    y = torch.tensor([-1, -2, -3, -1, -5, -1, 2], dtype=dtype)
    assert gs.fuse(lambda x, y: x**y)(x, y).tolist() == (x**y).tolist() == [0, 1, -1, 0, 1, 0, 25]


def test_fused_functions() -> None:
    result = gs.fuse(lambda x, y: x * y + 1)(torch.ones(3), torch.full((3,), 2.0))
    assert isinstance(result, torch.Tensor)
    assert torch.equal(result, torch.full((3,), 3.0))
