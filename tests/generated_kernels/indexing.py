"""How a kernel finds its element: index idioms, and guards of many shapes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from generated_kernels.writer import Writer

if TYPE_CHECKING:
    from generated_kernels.fragments import Place

#: Block shapes by the number of axes.
AXES = {
    1: ((32,), (64,), (96,), (7,), (256,), (33,), (1,)),
    2: ((32, 2), (16, 4), (5, 3), (8, 8), (32, 8)),
    3: ((8, 2, 2), (4, 4, 4), (3, 2, 5)),
}
_GLOBAL = ("blockIdx.{0} * blockDim.{0} + threadIdx.{0}", "threadIdx.{0} + blockIdx.{0} * blockDim.{0}",
           "threadIdx.{0} + blockDim.{0} * blockIdx.{0}")  # fmt: skip


class Index(NamedTuple):
    """The statement that ends this thread's work on an element."""

    leave: str


@contextmanager
def write_index(writer: Writer, place: Place, axes: int) -> Iterator[Index]:
    """Write what computes ``i`` and the guard around the body, which the caller writes."""
    if axes == 1 and writer.chance(0.28):
        with _grid_stride(writer):
            yield Index("continue")
        return
    _write_axes(writer, place, axes)
    with _guard(writer, place, axes):
        yield Index("return")


@contextmanager
def _grid_stride(writer: Writer) -> Iterator[None]:
    writer.used |= {"grid stride", "one axis", "bounds guard"}
    type_ = writer.pick("int", "int", "unsigned", "long long")
    if type_ != "int":
        writer.used.add("unsigned index" if type_ == "unsigned" else "wide index")
    start = writer.pick(*_GLOBAL).format("x")
    stride = writer.pick("gridDim.x * blockDim.x", "blockDim.x * gridDim.x")
    if type_ == "long long":
        start = "(long long)blockIdx.x * blockDim.x + threadIdx.x"
    if writer.chance(0.4):
        name = writer.name()
        writer.line(f"const {type_} {name} = {stride};")
        stride = name
    bound = writer.pick("n", "n", "3 * n", "high")
    writer.parameter(bound.split()[-1])
    with writer.block(f"for ({type_} i = {start}; i < {bound}; i += {stride})"):
        writer.bring("i", "int")
        yield


def _write_axes(writer: Writer, place: Place, axes: int) -> None:
    """Write the place along each axis and the element they lead to."""
    writer.used.add(("one axis", "two axes", "three axes")[axes - 1])
    type_ = writer.pick("int", "int", "int", "unsigned", "long long")
    if type_ != "int":
        writer.used.add("unsigned index" if type_ == "unsigned" else "wide index")
    names = "xyz"[:axes] if axes > 1 else "i"
    offset = _offset(writer)
    for axis, name in zip("xyz", names):
        form = writer.pick(*_GLOBAL).format(axis)
        if type_ == "long long":
            form = f"(long long)blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}"
        elif writer.chance(0.06):
            macro = f"INDEX_{place.name}_{name}"
            place.define(macro, f"({form})")
            writer.used.add("macro")
            form = macro
        if name == "i":
            form += offset
        writer.line(f"{writer.pick('', 'const ')}{type_} {name} = {form};")
        writer.bring(name, "int")
    if axes > 1:
        writer.parameters["pitch"] = "int pitch"
        plane = writer.pick("y * pitch + x", "x + y * pitch")
        if axes == 3:
            writer.parameters["rows"] = "int rows"
            plane = "(z * rows + y) * pitch + x"
        writer.line(f"const int i = {plane}{offset};")
        writer.bring("i", "int")


def _offset(writer: Writer) -> str:
    if not writer.chance(0.18):
        return ""
    writer.used.add("offset")
    writer.parameter("low")
    return writer.pick(" + low", " + 3", " + 2 * low")


@contextmanager
def _guard(writer: Writer, place: Place, axes: int) -> Iterator[None]:
    """Write a guard that wraps the body, or one that returns, or none."""
    condition = _condition(writer, axes)
    if condition is None:
        writer.used.add("no guard")
        yield
    elif writer.chance(0.15):
        writer.used |= {"guard macro", "guard that returns", "macro"}
        macro = f"LEAVE_{place.name}"
        place.define(f"{macro}(condition)", "if (!(condition)) return")
        writer.line(f"{macro}({condition});")
        yield
    elif writer.chance(0.5):
        writer.used.add("guard that returns")
        writer.line(
            f"if (!({condition})) return;" if writer.chance(0.5) else f"if ({_negated(condition)}) return;"
        )
        yield
    else:
        with writer.block(f"if ({condition})"):
            yield


def _condition(writer: Writer, axes: int) -> str | None:
    draw = writer.rng.random()
    if draw < 0.13:
        return None
    if draw < 0.47:
        writer.used.add("bounds guard")
        return _bounds(writer, axes)
    if draw < 0.64:
        writer.used.add("interval guard")
        for name in ("low", "high", "n"):
            writer.parameter(name)
        return writer.pick(
            "i >= low && i < n", "low <= i && i < high", "i < n && i < high", "i > low && i <= high - 3",
            "(unsigned)(i - low) < (unsigned)(high - low)", "i - low >= 0 && n - i > 0",
        )  # fmt: skip
    if draw < 0.85:
        writer.used.add("scattered guard")
        writer.parameter("n")
        writer.parameter("m")
        return writer.pick(
            "i % 3 != 1", "i != 5", "i != 2", "i != m", "i < n && i != 3", "i == 2 || i > 20", "(i & 4) == 0",
            "i < 9 || i >= n - 4", "(i ^ 1) < n", "!(i == 3)", "i * i % 11 < 6", "i < n && i % 2 == 0",
        )  # fmt: skip
    writer.used.add("guard of data")
    for name in ("in_int", "in_float", "in_byte", "n"):
        writer.parameter(name)
    if writer.chance(0.5):
        name = writer.name(capital=True)
        writer.line(f"const int {name} = in_int[i] {writer.pick('& 31', '% 20 + 10')};")
        return writer.pick(f"i % 32 < {name}", f"i < {name}", f"i >= {name}", f"{name} > 3 && i < n")
    return writer.pick(
        "in_int[i] > 0", "in_float[i] < 0.5f", "i < n && in_int[i] % 2 == 0", "in_byte[i]", "in_int[i] < in_int[i + 1]",
        "in_float[i] > in_float[i / 2]",
    )  # fmt: skip


def _bounds(writer: Writer, axes: int) -> str:
    if axes == 1:
        writer.parameter("n")
        return writer.pick(
            "i < n",
            "i < n",
            "n > i",
            "i <= n - 1",
            "i + 1 <= n",
            "(unsigned)i < (unsigned)n",
            "n - i > 0",
            "i * 2 < n",
        )
    writer.parameters["width"] = "int width"
    writer.parameters["height"] = "int height"
    return writer.pick(
        "x < width && y < height", "y < height && x < width", "x < width", "x >= 1 && x < width - 1 && y < height",
        "x + y < width", "y < height && x <= y + 3",
    )  # fmt: skip


def _negated(condition: str) -> str:
    """Return the opposite of a conjunction of simple comparisons the way people write it."""
    parts = condition.split(" && ")
    opposite = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
    turned = []
    for part in parts:
        words = part.split(" ")
        places = [k for k, word in enumerate(words) if word in opposite]
        if len(places) != 1 or "||" in words or part.startswith("!"):
            return f"!({condition})"
        words[places[0]] = opposite[words[places[0]]]
        turned.append(" ".join(words))
    return " || ".join(turned)
