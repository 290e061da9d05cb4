"""PyTorch tensors on the compiled fast path."""

import itertools
import sys

import numpy as np
import pytest
from native_support import Recorder

import gridstride as gs
from gridstride import _native
from gridstride.targets import registry

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    not (_native.is_compiled() and hasattr(torch.Tensor, "__dlpack_c_exchange_api__")),
    reason="the extension is not built, or this PyTorch has no C interface for exchange",
)

DTYPES = {
    "bool": torch.bool,
    "signed char": torch.int8,
    "unsigned char": torch.uint8,
    "short": torch.int16,
    "unsigned short": torch.uint16,
    "int": torch.int32,
    "unsigned": torch.uint32,
    "long long": torch.int64,
    "unsigned long long": torch.uint64,
    "__half": torch.float16,
    "__nv_bfloat16": torch.bfloat16,
    "float": torch.float32,
    "double": torch.float64,
    "complex<float>": torch.complex64,
    "complex<double>": torch.complex128,
}
_numbers = itertools.count()


@pytest.fixture
def recorder(monkeypatch):
    target = Recorder()
    monkeypatch.setitem(registry._targets, target.name, target)
    monkeypatch.setattr(registry, "_found", {})
    monkeypatch.setenv("GRIDSTRIDE_TARGET", target.name)
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "1")
    return target


def kernel(parameters):
    text = f'extern "C" __global__ void f({parameters}) {{}}  // torch {next(_numbers)}'
    return gs.RawKernel(text, "f")


@pytest.mark.parametrize("ctype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 1, 4)])
def test_tensors_of_every_dtype(recorder, ctype, shape):
    x = torch.zeros(shape, dtype=DTYPES[ctype])
    k = kernel(f"{ctype}* x, const {ctype}* y")
    k(1, 32, (x, x))
    k(1, 32, (x, x))
    assert recorder.who() == ["pipeline", "native"]
    assert recorder.launches[0][1] == recorder.launches[1][1]
    assert recorder.launches[1][1][4] == 2 * x.data_ptr().to_bytes(8, "little")


def test_parts_of_tensors_and_parameters(recorder):
    x = torch.zeros(6, 4)
    k = kernel("float* x")
    k(1, 32, (x,))
    for part in (
        x[2:],
        x[1],
        x[:, :1][:1],
        x.t()[:1, :1],
        torch.nn.Parameter(x, requires_grad=False),
        x.expand(1, 6, 4),
    ):
        k(1, 32, (part,))
        assert recorder.launches[-1][0] == "native"
        assert recorder.launches[-1][1][4] == part.data_ptr().to_bytes(8, "little")


def conjugate():
    return torch.ones(4, dtype=torch.complex64).conj()


REFUSED = {
    "strides": lambda: torch.zeros(8)[::2],
    "transposed": lambda: torch.zeros(3, 4).t(),
    "expanded": lambda: torch.zeros(1).expand(4),
    "dtype": lambda: torch.zeros(4, dtype=torch.float64),
    "gradients": lambda: torch.zeros(4, requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.zeros(4)),
    "sparse": lambda: torch.zeros(4).to_sparse(),
    "meta": lambda: torch.zeros(4, device="meta"),
    "one element negated": lambda: conjugate().imag[:1],
    "no axes, negated": lambda: conjugate().imag[0],
    "many elements negated": lambda: conjugate().imag,
    "eight bits": lambda: torch.zeros(4, dtype=torch.float8_e4m3fn),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("position", [0, 1])
def test_refused_tensors_get_the_pipelines_error(recorder, monkeypatch, refused, position):
    x, y = torch.zeros(4), refused()
    arguments = [x, x]
    arguments[position] = y
    warm, cold = kernel("float* x, float* y"), kernel("float* x, float* y")
    warm(1, 32, (x, x))
    with pytest.raises(TypeError) as got:
        warm(1, 32, tuple(arguments))
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", "0")
    with pytest.raises(TypeError) as expected:
        cold(1, 32, tuple(arguments))
    assert str(got.value) == str(expected.value)
    assert recorder.who() == ["pipeline"]


@pytest.mark.parametrize("lazy", [conjugate, lambda: conjugate().imag[:1]], ids=["conjugated", "negated"])
def test_lazy_tensors_are_resolved_by_the_pipeline(recorder, lazy):
    x = lazy()
    k = kernel("const complex<float>* x" if x.is_complex() else "const float* x")
    plain = torch.zeros(4, dtype=x.dtype)
    k(1, 32, (plain,))
    k(1, 32, (x,))
    assert recorder.who() == ["pipeline"] * 2
    assert recorder.launches[-1][1][4] != x.data_ptr().to_bytes(8, "little")


def test_subclasses_are_left_to_the_pipeline(recorder):
    class Sub(torch.Tensor):
        pass

    x = torch.zeros(4)
    k = kernel("float* x")
    k(1, 32, (x,))
    k(1, 32, (x.as_subclass(Sub),))
    assert recorder.who() == ["pipeline"] * 2


def test_tensors_beside_numpy_arrays_are_left_to_the_pipeline(recorder):
    x, y = torch.zeros(4), np.zeros(4, np.float32)
    k = kernel("float* x, float* y")
    for arguments in ((x, x), (x, y), (y, x), (y, y)):
        k(1, 32, arguments)
    assert recorder.who() == ["pipeline"] * 3 + ["native"]


def test_references_are_balanced(recorder):
    x, refused = torch.zeros(4), torch.zeros(4, requires_grad=True)
    k = kernel("float* x")
    k(1, 32, (x,))
    before = sys.getrefcount(x), sys.getrefcount(refused), sys.getrefcount(False)
    for _ in range(2000):
        k(1, 32, (x,))
        with pytest.raises(TypeError):
            k(1, 32, (refused,))
        recorder.launches.clear()
    after = sys.getrefcount(x), sys.getrefcount(refused), sys.getrefcount(False)
    assert all(abs(a - b) < 1000 for a, b in zip(after, before, strict=True))


def test_the_record_of_automatic_differentiation_is_found() -> None:
    """Else every tensor is asked for its gradient, which is right but slow."""
    launcher = pytest.importorskip("gridstride._native._launcher")
    plain, wanting = [torch.zeros(3), torch.ones(2)], [torch.zeros(3, requires_grad=True)]
    size = torch.Tensor.__basicsize__
    addresses = [[tensor._cdata for tensor in tensors] for tensors in (plain, wanting)]
    assert launcher.learn_autograd(plain[0], size, *addresses)
    assert not launcher.learn_autograd(plain[0], size, addresses[0], addresses[0]), (
        "no place tells them apart"
    )
    assert launcher.learn_autograd(plain[0], size, *addresses)
