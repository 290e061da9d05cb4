"""The inputs of CuPy's tests of raw kernels and modules, one part for each test or two."""

from __future__ import annotations

import io
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gridstride as gs
from kernel_battery.bench import Bench, numpy
from kernel_battery.row import Results

Texts = dict[str, str]


def check(bench: Bench) -> Results:
    """Run all parts."""
    texts = bench.strings()
    results: dict[str, np.ndarray] = {}
    for part in (
        _sums, _options, _missing, _complex_numbers, _constant_memory, _templates, _pointer, _logs, _grid_sync,
        _pickles, _standard_headers,
    ):  # fmt: skip
        results |= part(bench, texts)
    return results


def _filled(bench: Bench, kernel: Any, dtype: Any = np.float32) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n = 10
    x1 = np.arange(n**2, dtype=dtype).reshape(n, n)
    x2 = np.ones((n, n), dtype)
    y = bench.zeros((n, n), dtype)
    kernel((n,), (n,), (bench.array(x1), bench.array(x2), y, n**2))
    return x1, x2, numpy(y)


def _sums(bench: Bench, texts: Texts) -> Results:
    kernel = bench.noted(gs.RawKernel(texts["_test_source1"], "test_sum", tier=bench.tier))
    x1, x2, y = _filled(bench, kernel)
    np.testing.assert_array_equal(y, x1 + x2)
    wanted = {
        "binary_version", "cache_mode_ca", "const_size_bytes", "local_size_bytes", "max_dynamic_shared_size_bytes",
        "max_threads_per_block", "num_regs", "preferred_shared_memory_carveout", "ptx_version", "shared_size_bytes",
    }  # fmt: skip
    assert wanted <= set(kernel.attributes)
    assert kernel.max_threads_per_block > 0
    assert kernel.shared_size_bytes == 0
    module = bench.module(text=texts["_test_source2"])
    for name, expected in (("test_sum", x1 + x2), ("test_multiply", x1 * x2)):
        np.testing.assert_array_equal(_filled(bench, bench.noted(module.get_function(name)))[2], expected)
    quotient = bench.module(text=texts["_test_source5"]).get_function("test_div")
    np.testing.assert_allclose(_filled(bench, bench.noted(quotient))[2], x1 / 2, rtol=1e-6)
    return {"sum": y}


def _options(bench: Bench, texts: Texts) -> Results:
    module = bench.module(text=texts["_test_source3"], options=["-DPRECISION=2"])
    x1, x2, y = _filled(bench, module.get_function("test_sum"), np.float64)
    np.testing.assert_array_equal(y, x1 + x2)
    _, _, product = _filled(bench, module.get_function("test_multiply"), np.float64)
    np.testing.assert_array_equal(product, x1 * x2)
    _raises(
        gs.CompileError, "precision not supported",
        lambda: bench.module(text=texts["_test_source3"], options=["-DPRECISION=3"]).get_function("test_sum").compile(),
    )  # fmt: skip
    return {"product": product}


def _missing(bench: Bench, texts: Texts) -> Results:
    _raises(Exception, "does_not_exist", lambda: gs.RawModule(path="/nowhere/this_does_not_exist.cubin"))
    _raises(TypeError, "", gs.RawModule)
    _raises(TypeError, "", lambda: gs.RawModule(code=texts["_test_source1"], path="test.cubin"))
    _raises(
        gs.SymbolNotFound, "no_such_kernel",
        lambda: bench.module(text=texts["_test_source2"]).get_function("no_such_kernel").compile(),
    )  # fmt: skip
    _raises(gs.CompileError, "", lambda: bench.module(text="__global__ void broken() {").compile())
    if bench.target == "cpu":
        _raises(gs.CompileError, "launch", lambda: bench.module(text=texts["_test_source4"]).compile())
    return {}


_OPERATIONS: dict[str, Callable[..., np.ndarray]] = {
    "add": lambda a, b, c: a + b, "sub": lambda a, b, c: a - b, "mul": lambda a, b, c: a * b,
    "div": lambda a, b, c: a / b, "conj": lambda a, b, c: a.conj(), "abs": lambda a, b, c: abs(a),
    "fma": lambda a, b, c: a * b + c,
}  # fmt: skip
_COUNTS = {"conj": 1, "abs": 1, "fma": 3}


def _complex_numbers(bench: Bench, texts: Texts) -> Results:
    module = bench.module(text=texts["_test_cuComplex"], translate_cucomplex=True)
    results = {}
    for suffix, dtype, limit in (("", np.complex128, 1e-14), ("f", np.complex64, 1e-6)):
        random = np.random.default_rng(31)
        numbers = [(random.random(100) + 1j * random.random(100)).astype(dtype) for _ in range(3)]
        arrays = [bench.array(part) for part in numbers]
        for name, operation in _OPERATIONS.items():
            expected = operation(*numbers)
            out = bench.zeros(100, expected.dtype)
            kernel = bench.noted(module.get_function(f"test_{name}{suffix}"))
            kernel((4,), (32,), (*arrays[: _COUNTS.get(name, 2)], out))
            np.testing.assert_allclose(numpy(out), expected, rtol=limit)
            results[name + suffix] = numpy(out)
        out = bench.zeros(100, dtype)
        bench.noted(module.get_function(f"test_make{suffix}"))((4,), (32,), (out,))
        np.testing.assert_allclose(numpy(out), np.full(100, 1.8 - 8.7j), rtol=limit)
        other = np.complex64 if dtype == np.complex128 else np.complex128
        cast = bench.zeros(100, other)
        name = "test_upcast" if suffix else "test_downcast"
        bench.noted(module.get_function(name))((4,), (32,), (arrays[0], cast))
        np.testing.assert_array_equal(numpy(cast), numbers[0].astype(other))
        add = bench.noted(module.get_function(f"test_add{suffix}_scalar"))
        for scalar in (dtype(2 + 3j), 2 + 3j):
            add((4,), (32,), (arrays[0], scalar, out))
            np.testing.assert_array_equal(numpy(out), numbers[0] + dtype(2 + 3j))
    return results


def _constant_memory(bench: Bench, texts: Texts) -> Results:
    module = bench.module(text=texts["test_const_mem"])
    kernel = bench.noted(module.get_function("multiply_by_const"))
    data = np.arange(100, dtype=np.float32)
    constants = gs.ndarray((100,), np.float32, memptr=module.get_global("some_array"))
    constants[...] = bench.array(data)
    out = bench.array(np.ones(100, np.float32))
    kernel((1,), (100,), (out, np.int32(100)))
    np.testing.assert_array_equal(numpy(out), data)
    return {"constants": numpy(out)}


def _templates(bench: Bench, texts: Texts) -> Results:
    text = texts["test_cxx_template"]
    types = {"my_sqrt<int>": np.int32, "my_sqrt<float>": np.float32, "my_sqrt<complex<double>>": np.complex128,
             "my_func": np.float64}  # fmt: skip
    module = bench.module(tuple(types), text=text)
    for name, dtype in types.items():
        values = (np.arange(10) * (1 + 1j if dtype == np.complex128 else 1)).astype(dtype)
        array = bench.array(values)
        bench.noted(module.get_function(name))((1,), (10,), (array, 10))
        np.testing.assert_allclose(numpy(array), values**2)
    # Instances that nobody announced are an error in CuPy; here they are compiled when they are asked for.
    array = bench.array(np.arange(10), np.float64)
    bench.noted(bench.module(["my_sqrt<int>"], text=text).get_function("my_sqrt<double>"))(
        (1,), (10,), (array, 10)
    )
    np.testing.assert_array_equal(numpy(array), np.arange(10.0) ** 2)
    _raises(
        gs.SymbolNotFound, "no_such", lambda: bench.module(text=text).get_function("no_such<int>").compile()
    )
    return {}


def _pointer(bench: Bench, texts: Texts) -> Results:
    kernel = bench.noted(bench.module(text=texts["test_cast"]).get_function("my_func"))
    pointer = gs.cuda.alloc(800)
    bench.fill(pointer, np.ones(100))
    kernel((1,), (100,), (pointer, 100))
    found = np.zeros(100)
    pointer.copy_to_host(found, 800)
    np.testing.assert_array_equal(found, -5.0)
    return {"pointer": found}


def _logs(bench: Bench, texts: Texts) -> Results:
    kernel = gs.RawKernel(texts["_test_compile_src"], "test_op", options=("-DOP=+",), tier=bench.tier)
    log = io.StringIO()
    kernel.compile(log_stream=log)
    x1, x2, y = _filled(bench, bench.noted(kernel))
    np.testing.assert_array_equal(y, x1 + x2)
    return {}


def _grid_sync(bench: Bench, texts: Texts) -> Results:
    results = {}
    for n in (10, 100):
        for block in (64, 256):
            module = bench.module(text=texts["_test_grid_sync"], enable_cooperative_groups=True)
            kernel = bench.noted(module.get_function("test_grid_sync"))
            x1, x2 = np.arange(n**2, dtype=np.float32), np.ones(n**2, np.float32)
            y = bench.zeros(n**2)
            kernel(((n * n + block - 1) // block,), (block,), (bench.array(x1), bench.array(x2), y, n**2))
            np.testing.assert_array_equal(numpy(y), x1 + x2)
            results[f"grid sync {n} {block}"] = numpy(y)
    return results


def _pickles(bench: Bench, texts: Texts) -> Results:
    text = texts["_test_source1"]
    for compiled in (False, True):
        module = bench.module(text=text, enable_cooperative_groups=True)
        kernel = gs.RawKernel(text, "test_sum", enable_cooperative_groups=True, tier=bench.tier)
        for thing in (kernel, module, module.get_function("test_sum")):
            function = thing.get_function("test_sum") if isinstance(thing, gs.RawModule) else thing
            if compiled:
                _filled(bench, function)
            again = pickle.loads(pickle.dumps(thing))
            again = again.get_function("test_sum") if isinstance(again, gs.RawModule) else again
            x1, x2, y = _filled(bench, again)
            np.testing.assert_array_equal(y, x1 + x2)
    return {}


def _standard_headers(bench: Bench, texts: Texts) -> Results:
    kernel = bench.noted(bench.module(["shift<int>"], text=texts["std_code"]).get_function("shift<int>"))
    values = np.arange(256, dtype=np.int32) % 8
    array = bench.array(values)
    kernel((1,), (256,), (array, 256))
    np.testing.assert_array_equal(numpy(array), values + 100)
    _raises(gs.CompileError, "", lambda: bench.module(["shift<float>"], text=texts["std_code"]).compile())
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "I_INCLUDE_SOMETHING.h").write_text("#include <cupy/I_DO_NOT_EXIST_WAH_HA_HA.h>\n")
        code = '#include "I_INCLUDE_SOMETHING.h"\n' + texts["_test_source1"]
        _raises(
            gs.CompileError,
            "I_DO_NOT_EXIST",
            lambda: bench.module(text=code, options=[f"-I{folder}"]).compile(),
        )
    if bench.target == "cpu":
        code = "#include <cub/block/block_reduce.cuh>\n" + texts["_test_source1"]
        _raises(gs.CompileError, "CUB", lambda: bench.module(text=code).compile())
    return {"shift": numpy(array)}


def _raises(kind: type[Exception], words: str, action: Callable[[], Any]) -> None:
    message = None
    try:
        action()
    except kind as error:
        message = str(error)
    assert message is not None, f"no {kind.__name__} with {words!r}"
    assert words in message, message
