"""Whatever is passed to a kernel, it runs with the right values, or a clear error says why and nothing has changed.

The kernel reads no memory of its arguments: it notes the addresses and numbers that reach it.
"""

from __future__ import annotations

import array
import ctypes
import decimal
import fractions
import gc
import math
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gridstride as gs
from gridstride._compilation import functions
from gridstride.targets.base import Target
from tests.long_runs import in_parts, share

TEXT = """
struct Pair { char tag; double value; };
extern "C" __global__ void note(const float* a, int* b, const float4* c, Pair p, short h, float f, bool t, double d,
                                unsigned long long* out) {
    out[0] = (unsigned long long)a; out[1] = (unsigned long long)b; out[2] = (unsigned long long)c;
    out[3] = (unsigned long long)(long long)p.tag; out[4] = (unsigned long long)__double_as_longlong(p.value);
    out[5] = (unsigned long long)(long long)h; out[6] = __float_as_uint(f); out[7] = t;
    out[8] = (unsigned long long)__double_as_longlong(d);
}
"""
PAIR = np.dtype([("tag", "i1"), ("value", "f8")], align=True)
UNTOUCHED = 0x0123456789ABCDEF
CLEAR = (TypeError, ValueError, OverflowError, NotImplementedError, gs.GridstrideError)
DTYPES = (
    "?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", ">f4", ">i4", "O", "U3",
    "S3", "M8[s]", "m8[s]", "V4", PAIR, [("tag", "i1"), ("value", "f8")], [("x", "f4"), ("y", "f4")],
)  # fmt: skip


class Passed(NamedTuple):
    """Hold an argument and what a kernel may at most make of it.

    Attributes
    ----------
    value : object
    dtype : numpy.dtype or None
        Of memory that a pointer may point to; None for memory without a type.
    address : int or None
        Of the memory; None where no pointer may come of the argument.
    is_fit : bool
        Whether the memory is contiguous, aligned and there.
    is_writable : bool
    number : number or None
        The value as a Python number, where there is one.
    """

    value: object
    dtype: np.dtype[Any] | None = None
    address: int | None = None
    is_fit: bool = True
    is_writable: bool = True
    number: Any = None

    def __repr__(self) -> str:
        try:
            return f"{type(self.value).__name__}: {str(self.value)[:60]}"
        except Exception as error:
            return f"{type(self.value).__name__}, whose text is {error!r}"


def of_array(value: np.ndarray[Any, Any], shown: Any = None) -> Passed:
    """Return an array, or something else that shows its memory, with what it may become."""
    fit = bool(value.flags.c_contiguous and value.flags.aligned)
    number = None
    if value.ndim == 0 and value.dtype.kind in "biufc":
        number = value.item()
    return Passed(
        value if shown is None else shown,
        value.dtype,
        value.ctypes.data,
        fit,
        bool(value.flags.writeable),
        number,
    )


@st.composite
def arrays(draw: st.DrawFn) -> Passed:
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))  # type: ignore[call-overload]
    shape = tuple(draw(st.lists(st.sampled_from([0, 1, 2, 4, 7]), max_size=3)))
    value = np.zeros(shape, dtype)
    layout = draw(
        st.sampled_from(["C", "C", "F", "every other", "backwards", "broadcast", "misaligned", "read-only"])
    )
    if layout == "F":
        value = np.asfortranarray(value)
    elif layout == "every other" and value.ndim:
        value = value[::2]
    elif layout == "backwards" and value.ndim:
        value = value[..., ::-1]
    elif layout == "broadcast":
        value = np.broadcast_to(value, (3, *shape))
    elif layout == "misaligned" and not dtype.hasobject:
        value = np.zeros(value.nbytes + 1, "u1")[1:].view(dtype).reshape(shape) if value.nbytes else value
    elif layout == "read-only":
        value.flags.writeable = False
    kind = draw(st.sampled_from(["array", "array", "array", "subclass", "masked", "memoryview", "interface"]))
    if kind == "subclass":
        value = value.view(type("Mine", (np.ndarray,), {}))
    elif kind == "masked":
        masked = np.ma.masked_array(value, mask=False)
        return of_array(np.asarray(masked), masked)
    elif kind == "memoryview" and dtype.kind in "biuf" and dtype.isnative:
        return of_array(value, memoryview(value))
    elif kind == "interface" and not dtype.hasobject:
        shown = type("Shows", (), {"__array_interface__": value.__array_interface__, "memory": value})()
        return of_array(value, shown)
    return of_array(value)


def _tensor(make: Any) -> Passed:
    import torch

    value = make(torch)
    if value.layout is not torch.strided or value.device.type != "cpu" or value.requires_grad:
        return Passed(value)
    if value.is_conj() or value.is_neg():
        return Passed(value, None, 0, is_fit=False)
    return of_array(value.numpy(), value)


def tensors() -> st.SearchStrategy[Passed]:
    pytest.importorskip("torch")
    makers = [
        lambda torch: torch.zeros(4),
        lambda torch: torch.zeros(4, dtype=torch.int32),
        lambda torch: torch.zeros(2, 4).t(),
        lambda torch: torch.zeros(0),
        lambda torch: torch.zeros((), dtype=torch.int16),
        lambda torch: torch.zeros(4, requires_grad=True),
        lambda torch: torch.zeros(4).to_sparse(),
        lambda torch: torch.zeros(4, device="meta"),
        lambda torch: torch.zeros(4, dtype=torch.complex64).conj(),
        lambda torch: torch.zeros(4, dtype=torch.complex64).conj().imag,
        lambda torch: torch.zeros(1, 4).expand(3, 4),
        lambda torch: torch.nn.Parameter(torch.zeros(4)),
        lambda torch: torch.quantize_per_tensor(torch.zeros(4), 0.1, 0, torch.qint8),
    ]
    return st.sampled_from(makers[:-1]).map(_tensor)


class Raises:
    """Raise at every special method that a kernel could ask for a value or memory."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error

    def _raise(self, *args: object, **kwargs: object) -> Any:
        raise self.error("no")

    __index__ = __int__ = __float__ = __complex__ = __bool__ = __len__ = __iter__ = _raise
    __array__ = __dlpack__ = __dlpack_device__ = _raise


class Claims:
    """Claim an interface that is none."""

    def __init__(self, name: str, content: object) -> None:
        setattr(self, name, content)


@st.composite
def others(draw: st.DrawFn) -> Passed:
    kind = draw(st.sampled_from(sorted(OTHERS)))
    made = OTHERS[kind]()
    return made if isinstance(made, Passed) else Passed(made)


def _used_capsule() -> object:
    capsule = np.zeros(4, "f4").__dlpack__()
    type("Wrapper", (), {"__dlpack__": lambda self, **_: capsule, "__dlpack_device__": lambda self: (1, 0)})
    np.from_dlpack(_Capsule(capsule))
    return _Capsule(capsule)


class _Capsule:
    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: object) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class _Pair(ctypes.Structure):
    _fields_ = (("tag", ctypes.c_byte), ("value", ctypes.c_double))


def _ctypes_array() -> Passed:
    value = (ctypes.c_float * 4)()
    return of_array(np.ctypeslib.as_array(value), value)


def _array_array(code: str) -> Passed:
    value = array.array(code, [0] * 4)
    return of_array(np.frombuffer(value, code), value)


def _memory(freed: bool) -> Passed:
    pointer = gs.cuda.alloc(64)
    passed = Passed(pointer, None, pointer.ptr)
    if freed:
        pointer.mem.free()
        return passed._replace(is_fit=False)
    return passed


OTHERS: dict[str, Any] = {
    "a string": lambda: "text",
    "bytes": lambda: of_array(np.frombuffer(b"12345678", "u1"), b"12345678"),
    "a list": lambda: [1.0, 2.0],
    "an empty tuple": tuple,
    "a dictionary": dict,
    "a class": lambda: int,
    "a decimal": lambda: decimal.Decimal("1.5"),
    "a fraction": lambda: fractions.Fraction(1, 3),
    "an ellipsis": lambda: ...,
    "what raises TypeError": lambda: Raises(TypeError),
    "what raises ValueError": lambda: Raises(ValueError),
    "a host interface of nothing": lambda: Claims("__array_interface__", {}),
    "a host interface that is None": lambda: Claims("__array_interface__", None),
    "a host interface with a wrong shape": lambda: Claims(
        "__array_interface__", {"shape": "4", "typestr": "<f4", "data": (8, False), "version": 3}
    ),
    "a host interface with a wrong type": lambda: Claims(
        "__array_interface__", {"shape": (4,), "typestr": "?", "data": (8, False), "version": 3}
    ),
    "a device interface of nothing": lambda: Claims("__cuda_array_interface__", {}),
    "a device interface without data": lambda: Claims(
        "__cuda_array_interface__", {"shape": (4,), "typestr": "<f4", "version": 3}
    ),
    "a capsule that was used": _used_capsule,
    "an object with a broken capsule": lambda: _Capsule(None),
    "floats of ctypes": _ctypes_array,
    "a structure of ctypes": lambda: _Pair(3, 1.5),
    "a null pointer of ctypes": lambda: Passed(ctypes.c_void_p(), None, 0),
    "an address of ctypes": lambda: Passed(ctypes.c_void_p(4096), None, 4096),
    "floats of an array": lambda: _array_array("f"),
    "integers of an array": lambda: _array_array("i"),
    "memory": lambda: _memory(False),
    "memory that was freed": lambda: _memory(True),
    "a number of ctypes": lambda: Passed(ctypes.c_int(3), number=3),
    "a record": lambda: np.zeros((), PAIR)[()],
}

NUMBERS = st.one_of(
    st.integers(),
    st.sampled_from([0, 1, -1, 2**15 - 1, 2**15, -(2**15) - 1, 2**63, -(2**63) - 1, 2**64, 10**400]),
    st.floats(),
    st.booleans(),
    st.complex_numbers(),
)
SCALARS = st.one_of(
    NUMBERS.map(lambda number: Passed(number, number=number)),
    st.builds(
        lambda dtype, number: Passed(scalar := np.dtype(dtype).type(number), number=scalar.item()),
        st.sampled_from(["?", "i1", "u1", "i2", "i4", "i8", "u8", "f2", "f4", "f8", "c8"]),
        st.sampled_from([0, 1, 2, 100]),
    ),
)
NOTHING = st.just(Passed(None, None, 0))
ANYTHING = st.one_of(arrays(), SCALARS, others(), NOTHING)


def good(dtype: str, size: int) -> st.SearchStrategy[Passed]:
    return st.builds(lambda: of_array(np.zeros(size, dtype)))


#: What each parameter takes; most examples go wrong in one place only.
FITTING: list[st.SearchStrategy[Passed]] = [
    good("f4", 4),
    good("i4", 3),
    good("f4", 8),
    st.builds(lambda tag: Passed(np.array((tag, 1.5), PAIR)[()]), st.integers(-128, 127)),
    st.integers(-(2**15), 2**15 - 1).map(lambda number: Passed(number, number=number)),
    st.floats(width=32).map(lambda number: Passed(number, number=number)),
    st.booleans().map(lambda number: Passed(number, number=number)),
    st.floats().map(lambda number: Passed(number, number=number)),
]  # fmt: skip


@st.composite
def calls(draw: st.DrawFn) -> list[Passed]:
    passed = [draw(fitting) for fitting in FITTING]
    for _ in range(draw(st.integers(0, 2))):
        passed[draw(st.integers(0, len(passed) - 1))] = draw(ANYTHING)
    if draw(st.integers(0, 15)) == 0:
        passed = passed[: draw(st.integers(0, len(passed)))] + draw(st.lists(ANYTHING, max_size=2))
    return passed


SHAPES = st.sampled_from([
    1, (1,), (1, 1, 1), [1, 1], np.int64(1), 0, -1, (0,), (1, 2**40), 2**31, (1, 65536), (1, 1, 1, 1), (), None, 1.0,
    "1", True, (1, None), (1025,), np.array([1, 1]), 2**70,
])  # fmt: skip


def check_noted(passed: list[Passed], noted: list[int]) -> None:
    """Check that what reached the kernel is what was passed."""
    for at, (dtype, writes) in enumerate([("f4", False), ("i4", True), ("f4", False)]):
        argument, address = passed[at], noted[at]
        assert argument.address is not None, f"a pointer came of {argument!r}"
        assert argument.is_fit, argument
        assert argument.is_writable or not writes, argument
        assert argument.dtype in (None, np.dtype(dtype)), argument
        empty = getattr(argument.value, "size", 1) == 0 or getattr(argument.value, "nbytes", 1) == 0
        assert empty or address == argument.address, argument
    pair = passed[3].value
    tag, value = (pair.tag, pair.value) if isinstance(pair, _Pair) else np.asarray(pair).reshape(-1)[0].item()
    assert (signed(noted[3]), noted[4]) == (tag, bits(value, "f8"))
    short, single, truth, double = (argument.number for argument in passed[4:8])
    assert signed(noted[5]) == short
    assert same_float(noted[6], single, "f4")
    assert noted[7] == truth
    assert same_float(noted[8], double, "f8")


def signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def bits(number: Any, dtype: str) -> int:
    with np.errstate(over="ignore"):
        return int.from_bytes(np.array(number, dtype).tobytes(), "little")


def same_float(noted: int, number: Any, dtype: str) -> bool:
    if math.isnan(number):
        return bool(np.isnan(np.frombuffer(noted.to_bytes(8, "little"), dtype)[0]))
    return noted == bits(number, dtype)


class State(NamedTuple):
    """Hold what a failed call must leave alone."""

    device: int
    stream: int
    used: int
    programs: int
    out: bytes


def state(target: Target, out: np.ndarray[Any, Any]) -> State:
    return State(
        gs.cuda.get_device_id(), gs.cuda.get_current_stream().ptr, gs.cuda.MemoryPool().used_bytes(),
        len(functions._objects), out.tobytes(),
    )  # fmt: skip


@pytest.fixture(params=["0", "1", "verify"])
def native(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("GRIDSTRIDE_NATIVE", request.param)
    return str(request.param)


@pytest.fixture
def note(target: Target, xp: ModuleType, native: str) -> gs.RawKernel:
    if xp is not np:
        pytest.skip("the arguments here are host arrays")
    kernel = gs.RawKernel(TEXT, "note")
    right = [np.zeros(4, "f4"), np.zeros(4, "i4"), np.zeros(8, "f4"), np.zeros((), PAIR), 1, 1.0, True, 1.0]
    kernel((1,), (1,), (*right, np.zeros(9, "u8")))  # compiles also what asks for the layout of the struct
    return kernel


def call_with_anything(
    target: Target,
    kernel: gs.RawKernel,
    passed: list[Passed],
    grid: object,
    block: object,
    shared_mem: object,
) -> bool:
    """Call a kernel and check what came of it; return whether it ran."""
    out = np.full(9, UNTOUCHED, np.uint64)
    before = state(target, out)
    arguments = (*(argument.value for argument in passed), out)
    try:
        kernel(grid, block, arguments, shared_mem=shared_mem)  # type: ignore[arg-type]
    except CLEAR as error:
        assert str(error)  # noqa: PT017
        assert state(target, out) == before
        return False
    assert len(passed) == len(FITTING)
    check_noted(passed, out.tolist())
    return True


def examples(count: int) -> Any:
    return settings(
        max_examples=count, deadline=None, database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip


def run_examples(target: Target, kernel: gs.RawKernel, count: int) -> None:
    ran = []
    shared_mem = st.sampled_from([0] * 9 + [64, -1, 2**40, None, 1.5])
    shape = st.one_of(st.just(1), SHAPES)

    @examples(count)
    @given(calls(), shape, shape, shared_mem)
    def run(passed: list[Passed], grid: object, block: object, shared_mem: object) -> None:
        ran.append(call_with_anything(target, kernel, passed, grid, block, shared_mem))

    run()
    assert 0.05 < sum(ran) / len(ran) < 0.95, "most examples shall be wrong in one place, and some right"


def test_any_arguments(target: Target, note: gs.RawKernel) -> None:
    run_examples(target, note, 700)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@in_parts
def test_many_arguments(target: Target, note: gs.RawKernel, part: int) -> None:
    """With and without the compiled extension, and both compared: 51,000 examples."""
    run_examples(target, note, share(17_000))


def test_tensors_of_every_kind(target: Target, note: gs.RawKernel) -> None:
    strategy = tensors()

    @examples(150)
    @given(st.tuples(*FITTING).map(list), st.integers(0, 7), strategy)
    def run(passed: list[Passed], at: int, tensor: Passed) -> None:
        passed[at] = tensor
        call_with_anything(target, note, passed, 1, 1, 0)

    run()


def test_refused_arguments_are_not_kept(target: Target, note: gs.RawKernel) -> None:
    import weakref

    class Mine(np.ndarray):
        pass

    value = np.zeros(4, "f8").view(Mine)
    alive = weakref.ref(value)
    for _ in range(3):
        with pytest.raises(TypeError):
            note((1,), (1,), (value,) * 9)
    del value
    gc.collect()
    assert alive() is None
