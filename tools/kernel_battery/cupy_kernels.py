"""Kernels of CuPy: examples, what its functions are made of, and the inputs of its tests of raw kernels."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import gridstride as gs
from kernel_battery import cupy_raw_tests
from kernel_battery.bench import Bench, numpy
from kernel_battery.row import Results, Row, Source

_CUPY = "cupy/cupy"
_COMMIT = "v14.2.0"


def _matrix_product(bench: Bench) -> Results:
    m, k, n = 128, 52, 128
    random = np.random.default_rng(21)
    a, b = (
        random.integers(-4, 5, (m, k)).astype(np.float32),
        random.integers(-4, 5, (k, n)).astype(np.float32),
    )
    macros = {
        "DIM_X": 16, "DIM_Y": 16, "BLK_M": 64, "BLK_N": 64, "BLK_K": 4, "DIM_XA": 64, "DIM_YA": 4, "DIM_XB": 4,
        "DIM_YB": 64, "THR_M": 4, "THR_N": 4,
    }  # fmt: skip
    (kernel,) = bench.kernels(["sgemm"], options=[f"-D{name}={value}" for name, value in macros.items()])
    columns = [bench.array(np.ascontiguousarray(values.T)) for values in (a, b)]
    out = bench.zeros((n, m))
    kernel((m // 64, n // 64), (16, 16), (m, n, k, *columns, out))
    np.testing.assert_array_equal(numpy(out).T, a @ b)
    return {"product": numpy(out)}


def _struct_by_value(bench: Bench) -> Results:
    strings = bench.strings()
    layout_module = bench.module(text=strings["struct_layout_code"], options=["--std=c++14"])
    layout = bench.noted(layout_module.get_function("get_struct_layout"))
    size, sizes, offsets = (bench.zeros(count, np.uint64) for count in (1, 5, 5))
    layout((1,), (1,), (size, sizes, offsets))
    formats = [
        np.dtype({"names": list("xyzw")[:count], "formats": [base] * count, "itemsize": int(bytes_)})
        for base, count, bytes_ in zip(
            ("i4", "i1", "f8", "i2", "u8"), (4, 1, 2, 1, 3), numpy(sizes).tolist(), strict=True
        )
    ]
    dtype = np.dtype({
        "names": list("abcde"), "formats": formats, "offsets": numpy(offsets).tolist(), "itemsize": int(numpy(size)[0]),
    })  # fmt: skip
    value = np.zeros((), dtype)
    number = 0
    for member in "abcde":
        for part in formats["abcde".index(member)].names:
            value[member][part] = number
            number += 1
    out = bench.zeros(8, np.float64)
    bench.noted(bench.module(text=strings["kernel_code"]).get_function("test_kernel"))(
        (1,), (8,), (value, out)
    )
    np.testing.assert_array_equal(numpy(out), np.arange(8) * 55.0)
    return {"layout": np.r_[numpy(size), numpy(sizes), numpy(offsets)], "sums": numpy(out)}


def _distances(bench: Bench) -> Results:
    from scipy import ndimage

    results = {}
    with _as_cupy(bench):
        driver = _loaded(bench, bench.row.sources[1])
        for shape in ((128, 128), (100, 70)):
            image = np.random.default_rng(22).random(shape) > 0.02
            for sampling in (None, (1.5, 0.5)):
                (found,) = driver._pba_2d(bench.array(image), sampling, float64_distances=True)
                expected = ndimage.distance_transform_edt(image, sampling)
                np.testing.assert_allclose(numpy(found), expected, rtol=1e-6)
                results[f"{shape}, spacing {sampling}"] = numpy(found)
    return results


def _triangles(bench: Bench) -> Results:
    from scipy.spatial import Delaunay

    points = np.random.default_rng(23).random((200, 2))
    # CuPy's arrays import these themselves, which must not happen while another module has CuPy's name.
    for name in ("cupyx.scipy.special", "cupyx.scipy.spatial"):
        with suppress(ImportError):
            import_module(name)
    with _as_cupy(bench):
        kernels = _package(bench)
        triangulation = kernels.GDel2D(bench.array(points))
        triangulation.compute()
        triangles = numpy(triangulation.triangles)
    found = {tuple(sorted(triangle)) for triangle in triangles.tolist()}
    assert found == {tuple(sorted(triangle)) for triangle in Delaunay(points).simplices.tolist()}
    return {"triangles": np.array(sorted(found))}


def _package(bench: Bench) -> ModuleType:
    """Load what the triangulation is made of, in the order in which the parts need each other."""
    *packages, own = ("cupyx", "cupyx.scipy", "cupyx.scipy.spatial", "cupyx.scipy.spatial.delaunay_2d")
    for name in packages:
        sys.modules.setdefault(name, ModuleType(name))
    sys.modules[own] = ModuleType(own)
    *first, last = bench.row.sources
    for source in first:
        name = f"cupyx.scipy.spatial.delaunay_2d.{bench.path(source).stem}"
        sys.modules[name] = _loaded(bench, source)
    return _loaded(bench, last)


def _loaded(bench: Bench, source: Source) -> ModuleType:
    path = bench.path(source)
    spec = importlib.util.spec_from_file_location(f"kernel_battery_drivers.{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def _as_cupy(bench: Bench) -> Iterator[None]:
    """Let what imports CuPy get the target's arrays and gridstride's kernels."""
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] in ("cupy", "cupyx")}
    own = _Namespace(bench)
    utilities = ModuleType("kernel_battery_drivers._util")
    utilities._get_inttype = lambda array: "int" if array.size < 2**31 else "ptrdiff_t"  # type: ignore[attr-defined]
    sys.modules.update({
        "cupy": own, "kernel_battery_drivers": ModuleType("kernel_battery_drivers"),
        "kernel_battery_drivers._util": utilities,
    })  # fmt: skip
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] in ("cupy", "cupyx")]:
            del sys.modules[name]
        sys.modules.update(before)


class _Namespace(ModuleType):
    """CuPy's names for the target's arrays; kernels are those of gridstride, noted by the bench."""

    def __init__(self, bench: Bench) -> None:
        super().__init__("cupy")
        self._bench = bench

    def __getattr__(self, name: str) -> Any:
        return getattr(gs if name in ("ElementwiseKernel", "ReductionKernel") else self._bench.xp, name)

    def RawModule(self, code: str, **options: Any) -> Any:  # noqa: N802
        names = options.pop("name_expressions", ())
        module = self._bench.module(names, text=code, **options)
        return SimpleNamespace(get_function=cache(lambda name: self._launcher(module.get_function(name))))

    def _launcher(self, kernel: gs.RawKernel) -> Callable[..., None]:
        noted = self._bench.noted(kernel)

        def launch(grid: Any, block: Any, arguments: Any) -> None:
            # One array need be no tuple for CuPy, and structs may be given as arrays of what they consist of.
            arguments = arguments if isinstance(arguments, tuple) else (arguments,)
            # What NumPy gives as a scalar is an array without dimensions in CuPy.
            held = [np.asarray(item) if isinstance(item, np.generic) else item for item in arguments]
            noted(grid, block, tuple(map(_address, held)))

        return launch

    @staticmethod
    def memoize(*_: Any, **__: Any) -> Any:
        return lambda function: function


def _address(item: Any) -> Any:
    if isinstance(item, np.ndarray):
        return ctypes.c_void_p(item.ctypes.data)
    return ctypes.c_void_p(item.data.ptr) if hasattr(item, "__cuda_array_interface__") else item


ROWS = (
    Row(
        "K19", "examples/gemm/sgemm",
        (Source(_CUPY, "examples/gemm/sgemm.cu", "6ad9a06d984776947456a7725772d68626407938"),),
        1, "128x52 times 52x128, against NumPy", _matrix_product,
    ),
    Row(
        "K24b", "examples/custom_struct",
        (Source(_CUPY, "examples/custom_struct/complex_struct.py", "34f542be28e621340b9f2b87d91445ab73c7a0f8"),),
        2, "the layout of a struct, and its sum by value", _struct_by_value, cut=False,
    ),
    Row(
        "K25", "tests, test_raw",
        (Source(_CUPY, "tests/cupy_tests/core_tests/test_raw.py", "00f8572fe65269fa6c3e535c9fc71b1f42404de1"),),
        34, "the inputs of its tests, see below", cupy_raw_tests.check, cut=False, tolerance=1e-6,
    ),
    Row(
        "K34", "cupyx, pba_kernels_2d",
        (
            Source(_CUPY, "cupyx/scipy/ndimage/cuda/pba_kernels_2d.h", _COMMIT),
            Source(_CUPY, "cupyx/scipy/ndimage/_pba_2d.py", _COMMIT),
        ),
        12, "distances in images of 128x128 and 100x70, driven by its own Python, against SciPy", _distances, cut=False,
        tolerance=1e-12,
    ),
    Row(
        "K35", "cupyx, delaunay_2d",
        tuple(
            Source(_CUPY, f"cupyx/scipy/spatial/delaunay_2d/{name}.py", _COMMIT)
            for name in ("_schewchuk", "_kernels", "_tri")
        ),
        30, "200 points, driven by its own Python, against SciPy", _triangles, cut=False,
    ),
)  # fmt: skip
