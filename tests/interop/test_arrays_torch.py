import warnings

import numpy as np
import pytest

from gridstride import arrays
from gridstride.errors import ArgumentTypeError

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("torch_dtype", "dtype"),
    [
        ("bool", "bool"), ("uint8", "u1"), ("int8", "i1"), ("int16", "i2"), ("uint16", "u2"), ("int32", "i4"),
        ("uint32", "u4"), ("int64", "i8"), ("uint64", "u8"), ("float16", "f2"), ("float32", "f4"),
        ("float64", "f8"), ("complex64", "c8"), ("complex128", "c16"),
    ],
)  # fmt: skip
def test_a_view_says_what_torch_says(torch_dtype, dtype):
    x = torch.zeros((3, 4), dtype=getattr(torch, torch_dtype))
    for y in (x, x.T, x[1:, ::2], x[:0], x[0, 0], x.expand(2, 3, 4)):
        seen = arrays.view(y)
        assert seen.owner is y
        assert (seen.address, seen.dtype, seen.shape) == (y.data_ptr(), np.dtype(dtype), tuple(y.shape))
        assert seen.c_contiguous == y.is_contiguous()
        if not y.is_contiguous():
            assert seen.strides == tuple(step * y.element_size() for step in y.stride())
        assert seen[5:] == (arrays.HOST, 0, False, "torch", False, None)


def test_bfloat16_matches_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert arrays.view(torch.zeros(3, dtype=torch.bfloat16)).dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("x", [torch.ones(3, requires_grad=True), torch.nn.Parameter(torch.ones(3))])
def test_a_tensor_that_requires_gradients_is_refused_in_any_grad_mode(x):
    with pytest.raises(ArgumentTypeError, match=r"detach\(\)"):
        arrays.view(x)
    with torch.no_grad(), pytest.raises(ArgumentTypeError, match=r"detach\(\)"):
        arrays.view(x)
    assert arrays.view(x.detach()).address == x.data_ptr()


@pytest.mark.parametrize("change", [torch.conj, lambda x: x.conj().imag], ids=["conjugate", "negative"])
def test_lazy_views_are_resolved_into_a_copy(change):
    x = change(torch.tensor([1 + 2j, 3 - 4j]))
    seen = arrays.view(x)
    assert seen.lazy
    real = arrays.resolved(seen)
    assert not real.lazy
    stored = np.ndarray(real.shape, real.dtype, buffer=np.asarray(real.owner), strides=real.strides)
    np.testing.assert_array_equal(stored, x.resolve_conj().resolve_neg().numpy())
    plain = arrays.view(torch.ones(2))
    assert arrays.resolved(plain) is plain


def quantized():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)


def nested():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch.eye(3).to_sparse(), "to_dense"),
        (lambda: torch.ones(3, device="meta"), "device meta"),
        (quantized, "quint8"),
        (nested, "no memory of its own"),
        (fake, "PyTorch operator"),
        (lambda: torch.zeros(3, dtype=torch.float8_e4m3fn), "float8_e4m3fn"),
    ],
    ids=["sparse", "meta", "quantized", "nested", "fake", "float8"],
)
def test_tensors_without_plain_memory_are_refused(make, words):
    with pytest.raises(ArgumentTypeError, match=words):
        arrays.view(make())


def test_a_tensor_inside_a_transform_is_refused():
    def function(x):
        with pytest.raises(ArgumentTypeError):
            arrays.view(x)
        return x.sum()

    torch.func.vmap(function)(torch.ones(3, 2))
    torch.func.grad(function)(torch.ones(3))


class Wrapper(torch.Tensor):
    """A tensor that holds others, as distributed tensors do."""

    @classmethod
    def __torch_dispatch__(cls, function, kinds, args=(), kwargs=None):
        raise NotImplementedError(function)


def test_a_wrapper_around_tensors_is_refused():
    wrapper = torch.Tensor._make_wrapper_subclass(Wrapper, (2, 3))
    with pytest.raises(ArgumentTypeError, match="a Wrapper that has no memory of its own"):
        arrays.view(wrapper)
    empty = torch.zeros((0, 3))
    assert arrays.view(empty).nbytes == 0


def test_new_tensors():
    adapter = arrays.adapter_of("torch")
    for dtype in (np.dtype("f4"), arrays.view(torch.zeros(1, dtype=torch.bfloat16)).dtype):
        made = adapter.allocate(torch.ones(1), (2, 3), dtype, 0)
        assert made.shape == (2, 3)
        assert arrays.view(made).dtype == dtype
    memory = np.arange(6, dtype=np.float32)
    over = adapter.wrap(memory, (2, 3), np.dtype("f4"))
    over[0, 0] = 9
    assert memory[0] == 9
    turned = adapter.wrap(memory, (3, 2), np.dtype("f4"), (4, 12))
    np.testing.assert_array_equal(turned, memory.reshape(2, 3).T)


def test_host_tensors_follow_no_stream():
    adapter = arrays.adapter_of("torch")
    assert adapter.retain(torch.ones(1), 0) is False
    if not torch.cuda.is_available():
        assert adapter.current_stream(0) is None
        assert adapter.stream_switch() is None
