"""PyTorch tensors on the compiled fast path."""

import contextlib
import ctypes
import itertools
import platform
import shutil
import subprocess
import sys
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from native_support import kernel

import gridstride as gs
from gridstride import _native

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


@pytest.fixture
def shortcuts():
    """The module that finds fields; what a test makes of the layout is put right again."""
    from gridstride._native import torch_shortcuts

    yield torch_shortcuts
    torch_shortcuts.learn(torch)


def test_fields_are_where_they_were_found(shortcuts):
    """Without a layout every tensor is asked through PyTorch's functions, which is right but slow."""
    layout = shortcuts.find_layout(torch)
    assert layout is not None
    x = torch.zeros(10)[4:]
    implementation = ctypes.c_void_p.from_address(id(x) + layout.implementation).value
    assert implementation == x._cdata
    storage = ctypes.c_void_p.from_address(implementation + layout.storage).value
    assert storage == x.untyped_storage()._cdata
    assert ctypes.c_void_p.from_address(storage + layout.data).value == x.untyped_storage().data_ptr()
    assert ctypes.c_int64.from_address(implementation + layout.first).value == 4
    assert ctypes.c_int64.from_address(implementation + layout.size).value == 6


def test_fields_in_doubt_are_not_read(shortcuts, monkeypatch):
    monkeypatch.setattr(shortcuts, "_unlike", lambda torch: [torch.zeros(1)])
    assert shortcuts.find_layout(torch) is None, "plain tensors have the keys of those that are not"


def test_fields_that_contradict_pytorch_are_not_trusted_again(recorder, shortcuts):
    x = torch.zeros(10)[4:]
    k = kernel("float* x")
    k(1, 32, (x,))
    layout = shortcuts.find_layout(torch)
    from gridstride._native import _launcher

    _launcher.know_torch_layout(layout._replace(first=layout.size))
    for part in (x, x[1:], torch.zeros(3)[:2]):
        k(1, 32, (part,))
        assert recorder.launches[-1] == ("native", (*recorder.launches[0][1][:4], packed(part), 0))


def packed(*tensors):
    return b"".join(tensor.data_ptr().to_bytes(8, "little") for tensor in tensors)


@pytest.mark.parametrize("knows_layout", [True, False])
def test_tensors_that_change_between_calls(recorder, shortcuts, knows_layout):
    from gridstride._native import _launcher

    _launcher.know_torch_layout(shortcuts.find_layout(torch) if knows_layout else None)
    x = torch.zeros(8)
    k = kernel("float* x")
    k(1, 32, (x,))
    k(1, 32, (x,))
    changes = {
        "data": lambda: setattr(x, "data", torch.ones(5)),
        "storage": lambda: x.set_(torch.ones(9).untyped_storage(), 2, (3,), (1,)),
        "size": lambda: x.resize_(4096),
    }
    for change in changes.values():
        change()
        k(1, 32, (x,))
        assert (recorder.launches[-1][0], recorder.launches[-1][1][4]) == ("native", packed(x))
    x.requires_grad_()
    with pytest.raises(TypeError, match="requires gradients"):
        k(1, 32, (x,))
    x.requires_grad_(False)
    k(1, 32, (x,))
    x.data = torch.ones(7)
    x.untyped_storage().resize_(0)
    with pytest.raises(TypeError, match="no memory"):
        k(1, 32, (x,))
    assert recorder.who() == ["pipeline"] + ["native"] * 5


def test_views_of_tensors_that_want_gradients_are_refused(recorder):
    base = torch.zeros(8, requires_grad=True)
    k = kernel("float* x")
    k(1, 32, (torch.zeros(8)[2:],))
    k(1, 32, (torch.zeros(8)[2:],))
    for refused in (base[2:], base * 2):
        with pytest.raises(TypeError, match="requires gradients"):
            k(1, 32, (refused,))
    with torch.no_grad():
        k(1, 32, (base.detach()[1:],))
    assert recorder.who() == ["pipeline", "native", "native"]


def test_memory_shared_until_it_is_written_to_is_made_the_tensors_own(recorder):
    x = torch.zeros(8)
    k = kernel("float* x")
    for _ in range(2):
        k(1, 32, (torch.zeros(8),))
        copied = torch._lazy_clone(x)
        k(1, 32, (copied,))
        assert recorder.launches[-1][1][4] == packed(copied)
        assert copied.data_ptr() != x.data_ptr()


def test_more_kinds_of_tensors_than_are_remembered(recorder):
    k = kernel("const void* x")
    tensors = [torch.zeros(shape, dtype=dtype) for dtype in DTYPES.values() for shape in ((4,), (1, 2, 3, 4))]
    with torch.inference_mode():
        tensors += [torch.zeros(4, dtype=dtype) for dtype in DTYPES.values()]
    k(1, 32, (tensors[0],))
    for _ in range(2):
        for tensor in tensors:
            k(1, 32, (tensor,))
            assert recorder.launches[-1] == ("native", (*recorder.launches[0][1][:4], packed(tensor), 0))


class Named(NamedTuple):
    cuda_stream: int
    stream_id: int


def test_a_stream_function_that_contradicts_pytorch_is_not_called(shortcuts, monkeypatch):
    """The function for the current stream is tried beside the public one."""
    told = (1, 3, 0)
    streams = [Named(0, 0)]
    monkeypatch.setattr(shortcuts, "_stream_function", lambda: 0x1000)
    monkeypatch.setattr(shortcuts._launcher, "torch_stream_fields", lambda *_: told)
    known = []
    monkeypatch.setattr(shortcuts._launcher, "know_torch_stream", known.append)
    cuda = SimpleNamespace(
        current_stream=lambda device: streams[-1],
        ExternalStream=lambda handle, device: Named(handle, handle),
        stream=lambda stream: _entered(streams, stream),
    )
    assert not shortcuts.learn_stream(SimpleNamespace(cuda=cuda), 3), "it does not follow the public one"
    monkeypatch.setattr(
        shortcuts._launcher, "torch_stream_fields", lambda address, device: (1, device, streams[-1].stream_id)
    )
    assert shortcuts.learn_stream(SimpleNamespace(cuda=cuda), 3)
    assert (known, streams) == ([0x1000], [Named(0, 0)])


@contextlib.contextmanager
def _entered(streams, stream):
    streams.append(stream)
    yield
    streams.pop()


def test_the_trial_of_a_stream_function_survives_another_calling_convention(tmp_path):
    launcher = pytest.importorskip("gridstride._native._launcher")
    compiler = shutil.which("g++")
    if compiler is None or platform.machine() != "x86_64":
        pytest.skip("needs g++ on x86-64")
    (tmp_path / "streams.cpp").write_text(STREAM_FUNCTIONS)
    library = tmp_path / "streams.so"
    subprocess.run([compiler, "-shared", "-fPIC", tmp_path / "streams.cpp", "-o", library], check=True)
    functions = ctypes.CDLL(str(library))

    def tried(function, device):
        return launcher.torch_stream_fields(ctypes.cast(function, ctypes.c_void_p).value, device)

    assert tried(functions.in_registers, 3) == (1, 3, 40)
    assert tried(functions.in_memory, 3) != (1, 3, 40)


STREAM_FUNCTIONS = """
struct Small { signed char type, device; long long id; };
struct Large { Small stream; long long more[4]; };
extern "C" Small in_registers(signed char device) { return {1, device, 40}; }
extern "C" Large in_memory(signed char device) { return {{1, device, 40}, {1, 2, 3, 4}}; }
"""


@pytest.mark.parametrize(
    "shape", [(), (0,), (1,), (7,), (2, 3), (3, 1, 4), (2, 1, 3, 2, 1), (2, 1, 3, 2, 1, 2)]
)
def test_axes_of_tensors(recorder, shape):
    from gridstride._native import _launcher

    x = torch.zeros(shape)
    for _ in range(2):  # asked, then read
        assert _launcher.axes_of(x) == (shape, None)
    y = torch.zeros((*shape, 2))[..., 0]
    expected = None if y.is_contiguous() else tuple(y.stride())
    for _ in range(2):
        assert _launcher.axes_of(y) == (shape, expected)
    if len(shape) > 1:
        z = torch.zeros(shape[::-1]).permute(*reversed(range(len(shape))))
        assert _launcher.axes_of(z) == (shape, None if z.is_contiguous() else tuple(z.stride()))


@pytest.mark.parametrize("dtype", [torch.int8, torch.float16, torch.bfloat16, torch.float64, torch.complex64])
def test_elementwise_calls_and_reductions(recorder, dtype):
    k = gs.ElementwiseKernel("T x, T a", "T y", f"y = x; // {next(_numbers)}", "copy")
    total = gs.ReductionKernel("T x", "T y", "x", "a + b", f"y = a; // {next(_numbers)}", "0", "total")
    x, y = torch.zeros((3, 4), dtype=dtype).T, torch.zeros((4, 3), dtype=dtype)
    for _ in range(3):
        assert k(x, 1, y) is y
        made = k(x, 1)
        assert (type(made), made.dtype, made.shape, made.is_contiguous()) == (
            torch.Tensor,
            dtype,
            (4, 3),
            True,
        )
        assert total(x, axis=0).shape == (3,)
    assert recorder.who() == ["pipeline"] * 6 + ["native"] * 3
    assert recorder.launches[6][1] == recorder.launches[0][1]


def test_tensors_whose_values_are_not_their_bytes(recorder):
    k = gs.ElementwiseKernel("T x", "T y", f"y = x; // {next(_numbers)}", "copy")
    x, y = torch.zeros(4, dtype=torch.complex64), torch.zeros(4, dtype=torch.complex64)
    for _ in range(3):
        k(x, y)
    k(x.conj(), y)
    with pytest.raises(TypeError, match="gradient"):
        k(torch.zeros(4, dtype=torch.complex64, requires_grad=True), y)
    with pytest.raises(TypeError, match="conjugate"):
        k(x, y.conj())
    assert recorder.who()[2:4] == ["native", "pipeline"]
