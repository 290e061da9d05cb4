"""How values are written on a command line."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridstride.cli.arguments import Arguments
from gridstride.cli.expressions import evaluate, whole
from gridstride.cli.kernel_file import UsageError
from gridstride.cli.style import bold
from gridstride.targets.base import CType, Parameter

NAMES = {"n": 10, "x": np.zeros((3, 4))}
FLOAT = CType("scalar", "float", 4, 4, np.dtype("float32"))
INT = CType("scalar", "int", 4, 4, np.dtype("int32"))


def pointer(element: CType) -> CType:
    return CType("pointer", f"{element.name} *", 8, 8, pointee=element)


def made(text: str, element: CType = FLOAT, size: tuple[int, ...] = (), **texts: str) -> np.ndarray:
    """Return the array that a text makes for a parameter x; n is an int."""
    signature = (Parameter("x", pointer(element), 0), Parameter("n", INT, 8))
    value = Arguments("kernel", signature, {"x": text, "n": "10", **texts}, size, 0).all()[0].value
    assert isinstance(value, np.ndarray)
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-2.5", -2.5),
        ("1e6", 1e6),
        ("0x10", 16),
        ("1<<20", 1 << 20),
        ("2**10-1", 1023),
        ("(n+7)//8", 2),
        ("x.size", 12),
        ("x.shape[1]*2", 8),
        ("x.ndim", 2),
        ("true", True),
        ("1+2j", 1 + 2j),
        ("inf", math.inf),
    ],
)
def test_numbers(text: str, value: object) -> None:
    assert evaluate(text, NAMES.__getitem__) == value


@pytest.mark.parametrize(
    "text",
    ["", "one two", "x", "x[0]", "x.T", "n.size", "n.shape[0]", "x.shape[2]", "'1'", "1/0", "9**9**9", "1<<n*1000",
     "__import__('os')", "[1]", "lambda: 1", "1 if n else 2", "n()", "1<<-1", "10.0**1000"],
)  # fmt: skip
def test_what_is_no_number_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        evaluate(text, NAMES.__getitem__)


@given(st.integers(-(2**70), 2**70))
def test_integers_come_back(number: int) -> None:
    assert evaluate(str(number), NAMES.__getitem__) == number


@given(st.floats(allow_nan=False))
def test_floats_come_back_and_whole_ones_are_integers(number: float) -> None:
    assert evaluate(repr(number), NAMES.__getitem__) == number
    assert whole(number) == number


@given(st.text(max_size=12))
def test_any_text_is_a_number_or_a_value_error(text: str) -> None:
    try:
        assert isinstance(evaluate(text, NAMES.__getitem__), int | float | complex)
    except (ValueError, KeyError):
        pass


@pytest.mark.parametrize(
    "text", ["zeros:6", "ones:2x3:f64", "full:-1.5:2,3", "arange:6", "empty:n", "random:n:2..3"]
)
def test_arrays(text: str) -> None:
    array = made(text)
    assert array.size in (6, 10)
    assert array.dtype == (np.float64 if "f64" in text else np.float32)
    if text.startswith("full"):
        assert (array == -1.5).all()
    if text.startswith("random"):
        assert ((array >= 2) & (array <= 3)).all()


def test_shapes() -> None:
    assert made("zeros:480x640").shape == (480, 640)
    assert made("zeros:n,2*n,3").shape == (10, 20, 3)
    assert made("zeros:(4,)").shape == (4,)
    assert made("zeros", size=(640, 480)).shape == (480, 640)
    assert made("zeros:0").shape == (0,)
    float4 = CType("vector", "float4", 16, 16, np.dtype("float32"), components=4)
    assert made("zeros:5", float4).shape == (5, 4)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int64", "uint64", "float16", "float64", "complex64"]
)
def test_random_arrays_of_every_dtype(dtype: str) -> None:
    element = CType("scalar", dtype, 1, 1, np.dtype(dtype))
    array = made("random:1000", element)
    assert array.dtype == dtype
    assert len(np.unique(array)) > (1 if dtype == "bool" else 90)
    if np.dtype(dtype).kind in "fc":
        assert made("normal:1000:5~2", element).real.mean() == pytest.approx(5, abs=0.5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rundom:3", "did you mean random?"),
        ("full:3", "say how many elements"),
        ("full", "say how many elements"),
        ("zeros:-3", "no shape"),
        ("zeros:2.5", "no shape"),
        ("zeros:m", "no parameter"),
        ("random:5:1..x", "is an array|needs"),
        ("zeros:99999999999999", "allocate|large|big"),
    ],
)
def test_what_makes_no_array(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        made(text)


def test_integers_are_not_normally_distributed() -> None:
    with pytest.raises(UsageError, match="int32"):
        made("normal:5", INT)


def test_emphasis_is_for_terminals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert bold("text", io.StringIO()) == "text"
    assert bold("text", Terminal()) == "\x1b[1mtext\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert bold("text", Terminal()) == "text"
