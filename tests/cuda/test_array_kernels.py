"""The texts of elementwise kernels and reductions compile for a GPU; none is needed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gridstride as gs
from gridstride._array_pipeline import launching
from gridstride._source.reduction import FOLDING_SIZE
from gridstride.errors import CompileError
from gridstride.targets import registry
from gridstride.targets.base import Program
from gridstride.targets.block_loops import fold_little, fold_loops
from gridstride.targets.cuda.compiler import Compiler
from gridstride.targets.cuda.nvrtc import Nvrtc
from tests.crosses import in_soak
from tests.every_target import test_array_kernel_hints as hints
from tests.every_target import test_declared_types as declared_types
from tests.every_target import test_elementwise as elementwise
from tests.every_target import test_reduction as reduction
from tests.every_target.test_large_reductions import histogram
from tests.own_loops import own_loop

ARCH = "sm_90"


@pytest.fixture(autouse=True)
def own_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each layout have its own loop, whatever other tests called the same kernels with."""
    monkeypatch.setattr(launching, "chosen_loop", own_loop)


def programs(call: Any, monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """Return the programs that a call compiles on a target without loops of its own."""
    null = registry.get("null")
    seen: list[Program] = []
    compile_ = type(null).compile
    monkeypatch.setattr(
        type(null),
        "compile",
        lambda self, program, arch: seen.append(program) or compile_(self, program, arch),
    )
    with gs.use_target("null"):
        call()
    monkeypatch.undo()
    assert seen
    return seen


def ones(dtype: Any, *shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, dtype)


POINT = np.dtype([("x", "f4"), ("k", "i8")], align=True)
CALLS = {
    "rows of int8": lambda: elementwise.ADD(ones("i1", 7, 9), ones("i1", 9)),
    "rows of many axes": lambda: elementwise.ADD(ones("f4", *(2,) * 9)[..., ::-1], ones("f4", *(2,) * 9).T),
    "tiles of float16": lambda: elementwise.ADD(ones("f2", 40, 50), ones("f2", 50, 40).T),
    "tiles of sides of two axes": lambda: elementwise.ADD(
        ones("f4", 20, 5, 3, 20).transpose(3, 1, 0, 2), ones("f4", 20, 5, 20, 3)
    ),
    "tiles of small elements between words": lambda: elementwise.ADD(
        ones("i1", 41, 53), ones("i1", 53, 41).T
    ),
    "boxes of short axes": lambda: elementwise.ADD(
        ones("i1", 90, 33, 35).transpose(0, 2, 1), ones("i1", 90, 35, 33)
    ),
    "one long row again and again": lambda: elementwise.ADD(ones("u2", 90, 1), ones("u2", 4099)),
    "short rows made of lines": lambda: elementwise.ADD(ones("i1", 3, 4099).T, ones("i1", 4099, 3)),
    "lines made of short rows": lambda: elementwise.ADD(ones("u2", 4099, 20).T, ones("u2", 20, 4099)),
    "macros of words around the texts": lambda: gs.ReductionKernel(
        "T x",
        "T y",
        "x * size",
        "a + b",
        "y = a",
        "0",
        "macros",
        preamble="#define size 2\n#define parts 3",
        options=("-Dfloat=double", "-Dfolded=4"),
    )(ones("f4", 500, 400), axis=0),
    "mixed dtypes": lambda: elementwise.MIXED(ones("i2", 4), ones("f8", 4)),
    "complex numbers": lambda: elementwise.ADD(ones("c8", 4), 2.5),
    "structures": lambda: gs.ElementwiseKernel("P p, P q", "P r", "r = p; r.k = q.k", "points")(
        np.zeros(4, POINT), np.zeros(1, POINT)[0]
    ),
    "structures of a preamble": lambda: declared_types.DECLARED(np.zeros(3, declared_types.WHOLE)),
    "classes in packed structures": lambda: elementwise.TURN_CLASSES(
        np.zeros(4, elementwise.CLASSES["behind a byte"])
    ),
    "classes in aligned structures": lambda: elementwise.TURN_CLASSES(
        np.zeros(4, elementwise.CLASSES["aligned as fields"])
    ),
    "raw and index": lambda: gs.ElementwiseKernel(
        "T x, raw T y",
        "int64 k",
        "const ptrdiff_t* s = y.strides(); const ptrdiff_t* at = _ind.get(); "
        "k = y[_ind.get()] + y[{i, 0}] + y.size() + _ind.size() + s[0] + at[0] + *y.shape()",
        "indexed",
    )(ones("f4", 4, 5), ones("f4", 5, 4).T),
    "raw arrays whose bounds are checked": lambda: gs.ElementwiseKernel(
        "raw T x", "T y", "y = x[i] + x[{i, 0}]", "checked", options=("-DGRIDSTRIDE_DEBUG",)
    )(ones("f4", 4, 5).T, ones("f4", 4)),
    "sum along": lambda: reduction.TOTAL(ones("f4", 3, 400_000), axis=1),
    "sum across": lambda: reduction.TOTAL(ones("f2", 400_000, 3), axis=0),
    "sum of rows with gaps": lambda: reduction.TOTAL(ones("f2", 500, 4000)[:, 1:-1]),
    "sum of a narrow array": lambda: reduction.TOTAL(ones("f8", 5000, 3), axis=0),
    "sums of short rows": lambda: reduction.DOT(ones("f4", 5000, 3), ones("i2", 5000, 3), 2, axis=1),
    "sums of small integers": lambda: reduction.TOTAL(ones("i1", 5000, 300), axis=0),
    "a sum of small integers": lambda: gs.ReductionKernel(
        "T x", "int64 y", "x", "a + b", "y = a", "0", "wide"
    )(ones("u2", 400_000)),
    "the largest of small integers": lambda: reduction.LARGEST(ones("u1", 5000, 600), axis=0),
    "structures of narrow arrays": lambda: reduction.MOMENTS(ones("i1", 5000, 7), axis=0),
    "structure that is folded": lambda: reduction.MOMENTS(ones("f4", 30, 40), axis=(0, 1)),
    "no identity": lambda: reduction.PLACE(ones("i4", 30, 40), axis=0),
    "small integers that are kept as int": lambda: reduction.PLACE(ones("u1", 30, 4000), axis=0),
    "small floats that are kept as float": lambda: reduction.PLACE(ones("f2", 30, 4000)),
    "fused functions": lambda: gs.fuse(
        lambda x, y: (np.logaddexp(x, y), np.spacing(x), np.ldexp(x, 3), np.signbit(x), np.round(y, 2)),
        kernel_name="fused",
    )(ones("f4", 5), ones("f4", 5)),
    "fused functions of complex numbers": lambda: gs.fuse(
        lambda z: (
            np.sin(z),
            np.tan(z),
            np.arccos(z),
            np.arctanh(z),
            np.exp2(z),
            np.expm1(z),
            np.log1p(z),
            z**z / z,
        ),
        kernel_name="fused_complex",
    )(ones("c8", 5)),
    "fused neighbors of two bytes": lambda: gs.fuse(
        lambda x: (np.nextafter(x, x), np.spacing(x)), kernel_name="fused_neighbors"
    )(ones("f2", 5)),
    "fused variance": lambda: gs.fuse(lambda x: np.var(x, axis=0), kernel_name="fused_variance")(
        ones("c8", 5, 4)
    ),
    "fused extremes": lambda: gs.fuse(np.max, kernel_name="fused_largest")(ones("f2", 5, 4)),
    "float16 into complex numbers": lambda: gs.ReductionKernel(
        "float16 x", "complex64 y", "x", "a + b", "y = a", "0", "complex_total"
    )(ones("f2", 4)),
}


@pytest.mark.parametrize("what", CALLS)
def test_texts_compile_without_a_warning(
    what: str, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_little, "_LITTLE", 1 << 18)  # so large folds have loops of their own
    for program in programs(CALLS[what], monkeypatch):
        code = compiler.compile(program, ARCH)
        assert set(code.functions) == set(program.kernels)
        assert not code.log


def test_the_check_of_rules_compiles(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    total = gs.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "checked_total")
    with pytest.MonkeyPatch.context() as debug:
        debug.setenv("GRIDSTRIDE_DEBUG", "1")
        for call in (
            lambda: total(ones("f2", 400, 3), axis=0),
            lambda: total(ones("c8", 2, 3, 4), axis=(0, 2)),
            lambda: histogram(5)(ones("i4", 30)),
        ):
            check, fold = programs(call, monkeypatch)
            assert ["fold_orders" in each.text for each in (check, fold)] == [True, False]
            assert not compiler.compile(check, ARCH).log


@pytest.mark.parametrize("bins", [44, 126, *in_soak(14, 46)])
def test_folds_of_large_structures_keep_to_shared_memory(
    bins: int, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest, size = fold_loops.LARGEST_FOLDING, 8 + 4 * bins
    with pytest.MonkeyPatch.context() as patch:
        # The null target knows no sizes: all values are large, or the usual loop is the only one.
        patch.setattr(fold_loops, "LARGEST_FOLDING", 0 if size > largest else largest)
        texts = [
            *programs(lambda: histogram(bins)(ones("i4", 400_000)), monkeypatch),
            *programs(lambda: histogram(bins)(ones("i4", 60, 150_000), axis=0), monkeypatch),
        ]
    assert ["fold_large" in program.text for program in texts] == (
        [False, True, False] if size > largest else [False] * 2
    )
    for program in texts:
        code = compiler.compile(program, ARCH)
        assert not code.log
        assert code.constants[FOLDING_SIZE] == size


#: NVRTC takes members of a copied structure of 128 bytes or more from the original, as if they were aligned there.
LARGE = np.dtype([("head", "f8"), ("rest", "u1", (201,))])


@pytest.mark.parametrize(
    "call",
    [
        lambda: gs.ElementwiseKernel("P p", "float64 y", "y = p.head", "heads")(ones(LARGE, 30, 4)),
        lambda: gs.ElementwiseKernel("", "P p", "p.head += 1", "raise_heads")(ones(LARGE, 30)),
        lambda: gs.ReductionKernel("P p", "float64 y", "p.head", "a + b", "y = a", "0", "sum_of_heads")(
            ones(LARGE, 30, 4), axis=0
        ),
    ],
)
def test_members_of_large_structures_are_read_as_unaligned_as_they_are(
    call: Any, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    compile_ = Nvrtc.compile

    def to_ptx(self: Nvrtc, *arguments: Any, **named: Any) -> Any:
        code = compile_(self, *arguments, **{**named, "form": "ptx"}).code
        assert code is not None
        texts.append(code.decode())
        return compile_(self, *arguments, **named)

    for program in programs(call, monkeypatch):
        monkeypatch.setattr(Nvrtc, "compile", to_ptx)
        compiler.compile(program, ARCH)
        monkeypatch.undo()
    assert texts
    for text in texts:
        assert re.search(r"\bld\S*\.[bu]8", text)
        assert not re.search(r"\bld(\.global)?\.f64", text)


def test_bfloat16(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for program in programs(lambda: elementwise.ADD(ones(ml_dtypes.bfloat16, 5), 2.5), monkeypatch):
        assert not compiler.compile(program, ARCH).log


@pytest.mark.parametrize(
    ("operation", "place", "caret"),
    [
        ("T t = x;\n  y = tt * 2;", "operation of typo, line 2", "      y = tt * 2;\n          ^"),
        ('y = x;\nprintf("hi\n");', "use a raw string", "printf"),
        ("/* äöü */ y = tt", "operation of typo, line 1", "    /* äöü */ y = tt\n                  ^\n"),
    ],
)
def test_case_p119_and_p122_errors_point_at_the_line(
    operation: str, place: str, caret: str, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = gs.ElementwiseKernel("T x", "T y", operation, "typo")
    null = type(registry.get("null"))
    monkeypatch.setattr(null, "compile", lambda self, program, arch: compiler.compile(program, ARCH))
    with gs.use_target("null"), pytest.raises(CompileError) as caught:
        kernel(ones("f4", 3))
    assert place in str(caught.value)
    assert caret in str(caught.value)
    assert "T = float32" in str(caught.value)


def test_mistakes_get_their_hints(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compilers say the same in other words."""
    null: Any = type(registry.get("null"))
    monkeypatch.setattr(null, "compile", lambda self, program, arch: compiler.compile(program, ARCH))
    with gs.use_target("null"):
        for mistake in hints.OPERATIONS:
            hints.test_mistakes_in_operations(np, mistake)
        for mistake in hints.FOLDS:
            hints.test_mistakes_in_reductions(np, mistake)


def test_the_least_integer_is_one_for_every_compiler(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = gs.ReductionKernel("T x", "T y", "x", "a + b", identity=-(2**63)).identity
    checked = gs.ReductionKernel(
        "T x",
        "T y",
        "x",
        "a + b",
        preamble=f'static_assert(double({identity}) == -9223372036854775808.0, "");',
    )
    for program in programs(lambda: checked(ones("f8", 3)), monkeypatch):
        compiler.compile(program, ARCH)
