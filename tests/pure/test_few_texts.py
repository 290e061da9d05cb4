"""A kernel that is called with many shapes and layouts compiles few texts. Nothing runs, so arrays may be large."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride.targets import registry
from gridstride.targets.base import Program
from tests.array_values import Array
from tests.crosses import cases_in_soak, in_turns
from tests.every_target import test_elementwise as elementwise
from tests.every_target import test_reduction as reduction

#: Arrays that nobody reads.
UNWRITTEN: Any = SimpleNamespace(ones=np.empty)
CACHE = 50 << 20


@pytest.fixture(params=["blocks of threads", "cores"])
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is compiled with the loops of a GPU or of the CPU target."""
    null, cpu = type(registry.get("null")), registry.get("cpu")
    limits = registry.get("null").limits(0)._replace(multiprocessors=132, attributes={"L2CacheSize": CACHE})
    if request.param == "cores":
        monkeypatch.setattr(null, "writers", cpu.writers)
        limits = cpu.limits(0)
    monkeypatch.setattr(null, "limits", lambda self, device: limits)
    texts: list[object] = []
    compile_ = null.compile
    monkeypatch.setattr(
        null, "compile", lambda self, program, arch: texts.append(program) or compile_(self, program, arch)
    )
    return texts


@pytest.mark.parametrize(
    ("what", "of"),
    in_turns(
        ["elements", "sums", "places"],
        [(64, "float32"), (200, "int8"), (64, "complex128"), (200, "float32")],
    ),
)
def test_a_thousand_shapes_in_twelve_layouts(
    compiled: list[object], request: pytest.FixtureRequest, what: str, of: tuple[int, str]
) -> None:
    longest, dtype = of
    name = f"{what}_of_{longest}_by_{request.node.callspec.params['compiled'].replace(' ', '_')}"
    with gs.use_target("null"):
        if what == "elements":
            elementwise.call_in_twelve_layouts(UNWRITTEN, dtype, longest, name)
        else:
            reduction.call_in_twelve_layouts(UNWRITTEN, dtype, longest, name, are_places=what == "places")
    assert 1 <= len(compiled) <= 6


@pytest.mark.parametrize(("longest", "dtype"), [(400, "float32"), (900, "int8")])
def test_a_thousand_large_shapes_in_twelve_layouts(compiled: list[object], longest: int, dtype: str) -> None:
    """Many of which move more than caches hold; none comes again."""
    with gs.use_target("null"):
        elementwise.call_in_twelve_layouts(UNWRITTEN, dtype, longest, f"large_elements_of_{dtype}")
    assert 1 <= len(compiled) <= 6


@pytest.mark.parametrize(
    ("what", "longest", "dtype"),
    [
        ("sums", 400, "float32"), ("sums", 900, "int8"), ("places", 900, "float32"),
        *cases_in_soak(("sums", 900, "float16"), ("sums", 900, "complex128"), ("places", 400, "int8")),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("usual_folds_in_one_text")
def test_a_thousand_large_folds_in_twelve_layouts(
    compiled: list[object], request: pytest.FixtureRequest, what: str, longest: int, dtype: str
) -> None:
    """The usual loops are one text as soon as a kernel has had a few of them."""
    name = f"large_{what}_of_{longest}_by_{request.node.callspec.params['compiled'].replace(' ', '_')}"
    with gs.use_target("null"):
        reduction.call_in_twelve_layouts(UNWRITTEN, dtype, longest, name, are_places=what == "places")
    assert 1 <= len(compiled) <= 6


@pytest.mark.parametrize("compiled", ["blocks of threads"], indirect=True)
@pytest.mark.usefixtures("usual_folds_in_one_text")
def test_large_folds_of_a_few_layouts_and_of_long_texts_have_texts_of_their_own(
    compiled: list[Program],
) -> None:
    x = np.empty((400, 300, 200), "f4")
    with gs.use_target("null"):
        few = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "few_layouts")
        for axis in (None, 0, 2):
            few(x, axis=axis)
        assert [len(program.kernels) for program in compiled] == [2, 2, 1]
        few(x, axis=1)
        few(x, axis=(0, 2))
        assert len(compiled) == 4
        assert len(compiled[-1].kernels) > 10
        compiled.clear()
        long = gs.ReductionKernel(
            "T x", "T y", "x", "a + b", "y = a", "0", "long_text", preamble="// long\n" * 1000
        )
        for axis in (None, 0, 1, 2, (0, 2)):
            long(x, axis=axis)
        assert max(len(program.kernels) for program in compiled) == 2


@pytest.mark.parametrize("compiled", ["blocks of threads"], indirect=True)
def test_a_large_call_that_comes_again_gets_a_loop_of_its_own(compiled: list[object]) -> None:
    """Which it keeps; a capture is no time to compile."""
    kernel = gs.ElementwiseKernel("T x, T y", "T z", "z = x * y", "comes_again")
    x, out = np.empty((1000, 200, 100), "f4"), np.empty((1000, 200, 100), "f4")
    calls = [(x, x), (x, x[:1]), (x, x[..., :1]), (x, x[:, :1]), (x[:, ::-1], x), (x[::-1], x)]
    texts = []
    with gs.use_target("null"):
        for turn in range(4):
            for call in calls:
                if turn == 1:
                    stream = gs.cuda.Stream(non_blocking=True)
                    stream.begin_capture()
                    kernel(*call, out, stream=stream)
                    stream.end_capture()
                else:
                    kernel(*call, out)
            texts.append(len(compiled))
    assert texts[0] == texts[1] < texts[2] == texts[3]


@pytest.mark.parametrize(
    ("what", "dtype"),
    [("sums", "int8"), ("sums", "complex128"), ("places", "int8"), *cases_in_soak(("sums", "float32"))],
)
def test_a_thousand_folds_over_any_axes(compiled: list[object], what: str, dtype: str) -> None:
    """Of up to five axes and a million elements, also repeated ones."""
    random_, name = random.Random(1), f"{what}_over_any_axes_of_{dtype}"
    sums = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", name)
    fold = reduction.place_kernel(name) if what == "places" else sums
    with gs.use_target("null"):
        for count in range(1000):
            x = in_layout(count % 12, drawn_shape(random_), dtype, random_)
            axes = tuple(axis for axis in range(x.ndim) if random_.random() < 0.5)
            fold(x, axis=axes or None)
    assert 1 <= len(compiled) <= 6


@pytest.mark.parametrize(
    ("inputs", "dtype"),
    [(1, "int8"), (2, "float32"), (3, "complex128"), *cases_in_soak((3, "float32"))],
)
def test_a_thousand_calls_of_any_arrays(compiled: list[object], inputs: int, dtype: str) -> None:
    """Of the same shapes, each input in a layout of its own."""
    random_, names = random.Random(2), "xyw"[:inputs]
    declared = ", ".join(f"T {name}" for name in names)
    text = f"z = {' - '.join(names)}; v = x"
    kernel = gs.ElementwiseKernel(declared, "T z, T v", text, f"elements_of_{inputs}_of_{dtype}")
    with gs.use_target("null"):
        for count in range(1000):
            shape = drawn_shape(random_)
            kernel(
                *(
                    in_layout((count + random_.randrange(3) * k) % 12, shape, dtype, random_)
                    for k in range(inputs)
                )
            )
    assert 1 <= len(compiled) <= 6


def drawn_shape(random_: random.Random) -> tuple[int, ...]:
    """Return up to five lengths of up to a million elements in all, small ones as often as large ones."""
    shares = [random_.expovariate(1) for _ in range(random_.randint(1, 5))]
    logarithm = random_.uniform(0, math.log(1e6))
    return tuple(round(math.exp(logarithm * share / sum(shares))) for share in shares)


def in_layout(layout: int, shape: tuple[int, ...], dtype: str, random_: random.Random) -> Array:
    """Return an array of a shape in one of twelve layouts."""
    order = random_.sample(range(len(shape)), len(shape))
    first, last = shape[:1] + (1,) * (len(shape) - 1), (1,) * (len(shape) - 1) + shape[-1:]
    every_second = (slice(None, None, 2),) * len(shape)
    x: Array = (
        lambda: np.empty(shape, dtype),
        lambda: np.empty(shape, dtype, order="F"),
        lambda: np.empty([2 * length for length in shape], dtype)[every_second],
        lambda: np.empty(shape, dtype)[::-1],
        lambda: np.empty(shape, dtype)[..., ::-1],
        lambda: np.empty([shape[axis] for axis in order], dtype).transpose(np.argsort(order)),
        lambda: np.broadcast_to(np.empty(first, dtype), shape),
        lambda: np.broadcast_to(np.empty(last, dtype), shape),
        lambda: np.empty([length + 3 for length in shape], dtype)[tuple(slice(1, -2) for _ in shape)],
        lambda: np.empty((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2],
        lambda: np.empty(shape[::-1], dtype).T,
        lambda: np.empty(math.prod(shape) + 1, dtype)[1:].reshape(shape),
    )[layout]()
    return x


@pytest.mark.usefixtures("usual_folds_in_one_text")
def test_a_compiler_that_refuses_usual_folds_in_one_text_gets_one_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    null, asked = type(registry.get("null")), []
    limits = registry.get("null").limits(0)._replace(multiprocessors=132)
    monkeypatch.setattr(null, "limits", lambda self, device: limits)
    compile_ = null.compile

    def refusing(self: Any, program: Program, arch: str) -> Any:
        asked.append(len(program.kernels))
        if len(program.kernels) > 2:
            raise gs.CompileError("too many")
        return compile_(self, program, arch)

    monkeypatch.setattr(null, "compile", refusing)
    kernel, x = (
        gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "refused_usual"),
        np.empty((400, 300, 200), "f4"),
    )
    with gs.use_target("null"):
        for axis in (None, 0, 1, 2, (0, 2), (1, 2), (0, 1)):
            kernel(x[::2], axis=axis)
            kernel(x, axis=axis)
    assert sum(count > 2 for count in asked) == 1
    assert asked[-1] <= 2
