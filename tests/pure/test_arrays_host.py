"""Views of host arrays: NumPy, buffers, interfaces and DLPack."""

import array
import ctypes
import mmap
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import gridstride as gs
from gridstride import arrays
from gridstride.errors import ArgumentTypeError


def address(x):
    return x.__array_interface__["data"][0]


class Shown:
    """Shows an array by interface alone."""

    def __init__(self, shown, protocol="__array_interface__", **more):
        self.__dict__[protocol] = {**shown, **more}


@pytest.mark.parametrize(
    "x",
    [
        np.arange(12.0).reshape(3, 4),
        np.arange(12.0).reshape(3, 4).T,
        np.arange(24)[::-2],
        np.arange(12.0).reshape(3, 4)[:, 1:3],
        np.array(5, np.int8),
        np.zeros((0, 3), np.float32),
        np.zeros((2, 1, 3))[:, :, ::2],
        np.zeros(3, [("a", "i4"), ("b", "f8")]),
        np.zeros(3, ml_dtypes.bfloat16),
        np.zeros(4, np.complex64).imag,
        np.asfortranarray(np.zeros((3, 1))),
    ],
    ids=lambda x: f"{x.dtype.name}-{x.shape}-{x.strides}",
)
def test_a_numpy_view_says_what_numpy_says(x):
    seen = arrays.view(x)
    assert seen.owner is x
    assert (seen.address, seen.dtype, seen.shape) == (address(x), x.dtype, x.shape)
    assert seen.c_contiguous == x.flags.c_contiguous
    assert seen.strides == (None if x.flags.c_contiguous else x.strides)
    assert (seen.size, seen.nbytes, seen.aligned) == (x.size, x.nbytes, x.flags.aligned)
    assert seen.extent == np.lib.array_utils.byte_bounds(x)
    assert (seen.device_type, seen.device, seen.read_only, seen.library) == (arrays.HOST, 0, False, "numpy")
    assert not seen.lazy


def test_extents_reach_as_far_as_strides():
    x = np.zeros((4, 6), np.int16)
    low, high = arrays.view(x[::-1, ::2]).extent
    assert (low, high) == (address(x), address(x) + 3 * 12 + 4 * 2 + 2)


def test_a_broadcast_view_reaches_one_element():
    seen = arrays.view(np.broadcast_to(np.ones(1, np.int32), (1000, 1000)))
    assert seen.extent == (seen.address, seen.address + 4)
    assert seen.read_only


def test_views_compare_by_content():
    x = np.zeros(3)
    assert arrays.view(x) == arrays.view(x[:])
    assert arrays.view(x) != arrays.view(x.view(np.int64))
    assert arrays.view(x) != arrays.view(x[1:])
    assert len({arrays.view(x), arrays.view(x[:])}) == 1
    assert "float64 (3,), C-contiguous" in repr(arrays.view(x))


def test_misaligned_elements_are_flagged():
    storage = np.zeros(17, np.uint8)
    assert not arrays.view(storage[1:].view(np.float64)).aligned
    packed = np.zeros(3, [("a", "i1"), ("b", "f8")])
    assert not arrays.view(packed["b"]).aligned
    assert arrays.view(np.zeros(5)[::2]).aligned


def test_read_only_and_mapped_arrays(tmp_path):
    x = np.zeros(3)
    x.flags.writeable = False
    assert arrays.view(x).read_only
    np.arange(8.0).tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", np.float64, "r")
    seen = arrays.view(mapped)
    assert (seen.library, seen.read_only, seen.address) == ("numpy", True, address(mapped))


def test_subclasses_without_their_own_meaning_are_arrays():
    assert arrays.view(np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f4")])).size == 1


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.array([object()]), "convert it to numbers"),
        (np.zeros(2, [("a", "O")]), "convert it to numbers"),
        (np.array(["a"]), "encode"),
        (np.array([b"a"]), "uint8"),
        (np.array(["a"], np.dtypes.StringDType()), "encode"),
        (np.array(["2026-01-01"], "M8[D]"), "int64"),
        (np.array([1], "m8[s]"), "int64"),
        (np.zeros(2, np.longdouble), "float64"),
        (np.zeros(2, np.clongdouble), "complex128"),
        (np.zeros(2, ">f4"), "newbyteorder"),
        (np.zeros(2, [("a", ">i4")]), "newbyteorder"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), "filled"),
    ],
    ids=lambda value: getattr(getattr(value, "dtype", value), "str", value),
)
def test_arrays_that_no_kernel_can_take_are_refused_with_a_remedy(x, words):
    for _ in range(2):  # at first sight and again
        with pytest.raises(ArgumentTypeError, match=words) as caught:
            arrays.view(x)
    assert caught.value.got


@pytest.mark.parametrize(
    "value",
    [1, 2.0, 1j, True, None, "text", [1.0], (1,), {}, np.float32(1), np.void(b"12"), np.zeros(1, "i4,f4")[0],
     ctypes.c_int(1), ctypes.c_void_p(1), ctypes.pointer(ctypes.c_int(1)), object(), np.float32],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_other_objects_have_no_view(value):
    assert arrays.view(value) is None
    assert arrays.library_of(value) is None


def test_a_structure_of_ctypes_has_no_view():
    class Pair(ctypes.Structure):
        _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_float))

    assert arrays.view(Pair(1, 2)) is None


@pytest.mark.parametrize(
    ("buffer", "dtype", "shape", "read_only"),
    [
        (b"abc", "u1", (3,), True),
        (bytearray(b"abcd"), "u1", (4,), False),
        (memoryview(bytearray(6)).cast("B", (2, 3)), "u1", (2, 3), False),
        (memoryview(bytearray(8)).toreadonly(), "u1", (8,), True),
        (array.array("f", [1, 2]), "f4", (2,), False),
        ((ctypes.c_double * 3)(), "f8", (3,), False),
        (mmap.mmap(-1, 10), "u1", (10,), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_buffers(buffer, dtype, shape, read_only):
    seen = arrays.view(buffer)
    assert (seen.dtype, seen.shape, seen.read_only, seen.library) == (dtype, shape, read_only, "buffer")
    assert seen.address == address(np.asarray(memoryview(buffer)))


def test_a_buffer_view_keeps_the_buffer():
    storage = bytearray(8)
    seen = arrays.view(storage)
    with pytest.raises(BufferError):
        storage.append(1)
    del seen
    storage.append(1)


def test_array_interface():
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    for y in (x, x.T, x[::-1]):
        seen = arrays.view(Shown(y.__array_interface__))
        assert seen._replace(owner=y, library="numpy") == arrays.view(y)
        assert seen.library == "interface"


def test_array_interface_of_structures_and_of_an_own_buffer():
    x = np.zeros(2, np.dtype([("a", "i4"), ("b", "f8")], align=True))
    assert arrays.view(Shown(x.__array_interface__)).dtype == x.dtype
    assert (
        arrays.view(Shown({"shape": (2,), "typestr": "|V2", "data": (64, False), "version": 3})).dtype == "V2"
    )

    class OwnBuffer(bytearray):
        __array_interface__ = {"shape": (2,), "typestr": "<i2", "version": 3}  # noqa: RUF012

    assert arrays.view(OwnBuffer(4)).nbytes == 4


def test_array_interface_of_another_buffer():
    x = np.arange(6, dtype=np.int16)
    shown = {**x.__array_interface__, "data": x.data, "offset": 2, "shape": (5,)}
    assert arrays.view(Shown(shown)).address == address(x) + 2
    for broken in (
        {"data": None},
        {"data": 5},
        {"data": (1, 2, 3)},
        {"shape": (-1,)},
    ):
        with pytest.raises(ArgumentTypeError, match="an array interface that cannot be read"):
            arrays.view(Shown({**x.__array_interface__, **broken}))


def test_interfaces_with_masks_and_swapped_bytes_are_refused():
    x = np.zeros(2)
    with pytest.raises(ArgumentTypeError, match="mask"):
        arrays.view(Shown(x.__array_interface__, mask=x))
    with pytest.raises(ArgumentTypeError, match="newbyteorder"):
        arrays.view(Shown(x.astype(">f8").__array_interface__))


def test_cuda_array_interface():
    shown = {"shape": (2, 3), "typestr": "<f4", "data": (4096, True), "strides": None, "version": 3}
    seen = arrays.view(Shown(shown, "__cuda_array_interface__"))
    assert seen[1:6] == (4096, np.float32, (2, 3), None, arrays.CUDA)
    assert (seen.device, seen.read_only, seen.producer_stream) == (arrays.UNKNOWN_DEVICE, True, None)
    assert arrays.view(Shown(shown, "__cuda_array_interface__", strides=(12, 4))).c_contiguous
    assert arrays.view(Shown(shown, "__cuda_array_interface__", strides=(4, 8))).strides == (4, 8)
    empty = arrays.view(Shown(shown, "__cuda_array_interface__", shape=(0,), data=(None, False)))
    assert (empty.address, empty.nbytes) == (0, 0)


@pytest.mark.parametrize(("announced", "handle"), [(None, None), (1, 0), (2, 2), (987654, 987654)])
def test_cuda_array_interface_announces_a_stream(announced, handle):
    shown = {"shape": (2,), "typestr": "<f4", "data": (4096, False), "version": 3, "stream": announced}
    assert arrays.view(Shown(shown, "__cuda_array_interface__")).producer_stream == handle


def test_cuda_array_interface_forbids_stream_0():
    shown = {"shape": (2,), "typestr": "<f4", "data": (4096, False), "version": 3, "stream": 0}
    with pytest.raises(ValueError, match="stream 0"):
        arrays.view(Shown(shown, "__cuda_array_interface__"))


def test_cuda_array_interface_with_a_device():
    class OnDeviceOne(Shown):
        def __dlpack_device__(self):
            return (2, 1)

    shown = {"shape": (2,), "typestr": "<f4", "data": (4096, False), "version": 3}
    assert arrays.view(OnDeviceOne(shown, "__cuda_array_interface__")).device == 1


class Exporter:
    """Exports a NumPy array by DLPack, pretending a device and an age."""

    def __init__(self, x, device=(1, 0), old=False):
        self.x, self.device, self.old, self.asked = x, device, old, None

    def __dlpack__(self, **keywords):
        if self.old and "max_version" in keywords:
            raise TypeError("unexpected keyword")
        self.asked = dict(keywords)
        keywords.pop("stream", None)
        return self.x.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("old", [False, True])
def test_dlpack(dtype, old):
    x = np.zeros((3, 4), dtype)
    for y in (x, x.T, x[1:, ::2], x[:0]):
        exporter = Exporter(y, old=old)
        seen = arrays.view(exporter)
        assert seen._replace(owner=y, library="numpy") == arrays.view(y)
        assert (seen.library, seen.producer_stream) == ("dlpack", None)
        assert "stream" not in exporter.asked


def test_dlpack_of_read_only_memory():
    x = np.zeros(3)
    x.flags.writeable = False
    assert arrays.view(Exporter(x)).read_only


def test_dlpack_keeps_the_memory_until_the_view_goes():
    x = np.zeros(3)
    before = sys.getrefcount(x)
    seen = arrays.view(Exporter(x))
    assert sys.getrefcount(x) > before
    del seen
    assert sys.getrefcount(x) == before


def test_dlpack_on_a_gpu_is_ordered_behind_the_default_stream():
    exporter = Exporter(np.zeros(3), device=(2, 1))
    seen = arrays.view(exporter)
    assert exporter.asked["stream"] == 1
    assert (seen.device_type, seen.device, seen.producer_stream) == (arrays.CUDA, 1, 0)


def test_dlpack_elsewhere_is_refused():
    with pytest.raises(ArgumentTypeError, match="DLPack type 8"):
        arrays.view(Exporter(np.zeros(3), device=(8, 0)))


def test_arrays_known_only_by_a_protocol_bring_their_outputs():
    for x in (Shown(np.zeros(3).__array_interface__), Exporter(np.zeros(3)), bytearray(3)):
        adapter = arrays.adapter_of(arrays.library_of(x))
        with pytest.raises(TypeError, match="Pass the outputs, or an array"):
            adapter.allocate(x, (3,), np.dtype("f4"), 0)
        with pytest.raises(TypeError, match="no arrays over memory"):
            adapter.wrap(x, (3,), np.dtype("u1"))


@pytest.mark.parametrize("first", [True, False])
def test_objects_of_one_class_may_show_memory_or_none(first):
    class Sometimes:
        def __init__(self, shows):
            self.shows = shows

        @property
        def __array_interface__(self):
            if not self.shows:
                raise AttributeError
            return np.zeros(3).__array_interface__

    for shows in (first, not first, first):
        assert (arrays.view(Sometimes(shows)) is not None) is shows


def test_one_class_may_show_memory_by_two_protocols():
    class Either(Exporter):
        @property
        def __cuda_array_interface__(self):
            if self.device[0] == 1:
                raise AttributeError
            return {"shape": (2,), "typestr": "<f4", "data": (4096, False), "version": 3}

    on_host, on_gpu = Either(np.zeros(3)), Either(np.zeros(3), device=(2, 1))
    for _ in range(2):
        assert arrays.view(on_gpu).library in ("interface", "dlpack")
        assert arrays.view(on_host).library == "dlpack"


def test_a_released_buffer_is_an_error_and_no_verdict_on_its_class():
    class Buffer(bytearray):
        pass

    released = memoryview(Buffer(3))
    released.release()
    with pytest.raises(ValueError, match="released"):
        arrays.view(released)
    assert arrays.view(memoryview(Buffer(3))).nbytes == 3


def test_an_object_says_its_view_itself():
    wanted = arrays.view(np.zeros(3))._replace(library="memory")

    class Own:
        def __gridstride_view__(self):
            return wanted

    assert arrays.view(Own()) is wanted


def test_a_dask_array_is_refused():
    kind = type("Array", (), {"__module__": "dask.array.core", "__array__": lambda self: np.zeros(3)})
    with pytest.raises(ArgumentTypeError, match="compute"):
        arrays.view(kind())


def test_numpy_adapter_makes_arrays():
    adapter = arrays.adapter_of("numpy")
    made = adapter.allocate(np.zeros(1), (2, 3), np.dtype("f4"), 0)
    assert (made.shape, made.dtype) == ((2, 3), np.float32)
    memory = bytearray(24)
    over = adapter.wrap(memory, (2, 3), np.dtype("f4"))
    over[:] = 1
    assert bytes(memory) == np.ones(6, np.float32).tobytes()
    assert adapter.wrap(memory, (3, 2), np.dtype("f4"), (4, 12)).strides == (4, 12)
    assert (adapter.current_stream(0), adapter.retain(made, 0)) == (None, False)


def test_import_loads_no_array_library():
    program = """
import sys
import gridstride
import gridstride.arrays, gridstride.cuda, gridstride.namespace
gridstride.arrays.view(gridstride.arrays.view)
loaded = {"cupy", "torch", "jax", "jaxlib", "dask", "ml_dtypes", "cuda", "tree_sitter"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_cannot_be_read_is_said_of_the_argument():
    unknown = Shown(np.ones(3).__array_interface__, typestr="<z8")

    class Unexported:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **keywords):
            raise BufferError("in use")

    for given, reason in ((unknown, "typestr '<z8'"), (Unexported(), "cannot be read by DLPack: in use")):
        with pytest.raises(ArgumentTypeError, match=f"`copy`: argument 0, .*{reason}"):
            gs.ElementwiseKernel("T x", "T y", "y = x", "copy")(given, np.ones(3))
