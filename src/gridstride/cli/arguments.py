"""Values of a kernel's parameters as ``gridstride run`` takes them: ``a=2 x=random:1000 y=y.npy``."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gridstride import _dtypes
from gridstride._arguments.strided import element_of_view, is_view
from gridstride.cli.expressions import evaluate, whole
from gridstride.cli.kernel_file import UsageError
from gridstride.targets.base import CType, Parameter, Signature

_KINDS = ("random", "normal", "zeros", "ones", "empty", "arange", "full")
#: What an array of these kinds holds is not read by a kernel that makes sense.
_OUTPUT_KINDS = frozenset({"zeros", "empty"})
_NULL = frozenset({"null", "none", "nullptr"})
_SHORT_DTYPE = re.compile(r"(f|i|u|c|bf)(8|16|32|64|128)")
_LONG = {"f": "float", "i": "int", "u": "uint", "c": "complex", "bf": "bfloat"}
_RANGE = re.compile(r"(.+?)\.\.(.+)")
_SPREAD = re.compile(r"(.+?)~(.+)")
_EXTENTS = re.compile(r"\d+(x\d+)+")
#: Random integers without a range of their own.
_INTEGERS = (0, 99)

ARRAY_FORMS = """\
  FILE.npy             the array of a file
  random[:SHAPE]       uniform from 0 to 1; whole numbers from 0 to 99; random:1000:-1..1 sets the range
  normal[:SHAPE]       normally distributed; normal:1000:100~15 sets mean and deviation
  zeros, ones, empty, arange [:SHAPE]
  full:VALUE[:SHAPE]   one value everywhere
  null                 the null pointer"""


class Argument(NamedTuple):
    """Hold a parameter's value: a number, numbers, an array, or None.

    Attributes
    ----------
    parameter : Parameter
    name : str
        The parameter's, ``arg0`` and so on where the source gives none.
    value : object
    is_read, is_written : bool
        Of an array, as far as the signature and the way it was made tell.
    """

    parameter: Parameter
    name: str
    value: Any
    is_read: bool = False
    is_written: bool = False


class Arguments:
    """Evaluate what was written for each parameter; values may refer to each other.

    Parameters
    ----------
    kernel : str
        For messages.
    signature : tuple of Parameter
    texts : mapping
        What was written for each name.
    size : tuple of int
        Of the launch, x first; () where it is not given. Arrays without a shape take it.
    seed : int
    """

    def __init__(
        self, kernel: str, signature: Signature, texts: Mapping[str, str], size: Sequence[int], seed: int
    ) -> None:
        self.kernel = kernel
        self.parameters = {each.name or f"arg{k}": each for k, each in enumerate(signature)}
        self.texts = dict(texts)
        self.size = tuple(size)
        self.seed = seed
        self._values: dict[str, Any] = {}
        self._pending: list[str] = []
        self._check_names()

    def all(self) -> list[Argument]:
        """Return the arguments in the order of the parameters."""
        return [self._argument(name, parameter) for name, parameter in self.parameters.items()]

    def value(self, name: str) -> Any:
        """Return the value for a parameter, or the launch's size for ``size``."""
        if name == "size" and name not in self.parameters and self.size:
            return math.prod(self.size)
        if name not in self.parameters:
            raise ValueError(
                f"{name!r} is no parameter of {self.kernel}, which has {', '.join(self.parameters)}"
            )
        if name not in self._values:
            if name in self._pending:
                raise ValueError(f"{' needs '.join([*self._pending, name])}")
            self._pending.append(name)
            self._values[name] = self._evaluate(name, self.parameters[name].type)
            self._pending.pop()
        return self._values[name]

    def _argument(self, name: str, parameter: Parameter) -> Argument:
        try:
            value = self.value(name)
        except (ValueError, TypeError, OSError, MemoryError) as error:
            raise UsageError(f"{self.kernel}: {name}={self.texts[name]}: {error}") from None
        if not isinstance(value, np.ndarray):
            return Argument(parameter, name, value)
        written = not _element(parameter.type).const
        made_for_output = written and self.texts[name].partition(":")[0] in _OUTPUT_KINDS
        return Argument(parameter, name, value, not made_for_output, written)

    def _check_names(self) -> None:
        unknown = [name for name in self.texts if name not in self.parameters]
        if unknown:
            near = difflib.get_close_matches(unknown[0], self.parameters, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise UsageError(
                f"{self.kernel} has no parameter {unknown[0]!r}; {hint}it has {self._described(self.parameters)}"
            )
        missing = [name for name in self.parameters if name not in self.texts]
        if missing:
            raise UsageError(f"{self.kernel} needs values for {self._described(missing)}")

    def _described(self, names: Sequence[str] | Mapping[str, Parameter]) -> str:
        return ", ".join(f"{name} ({self.parameters[name].type.name})" for name in names)

    def _evaluate(self, name: str, ctype: CType) -> Any:
        text = self.texts[name]
        if is_array(ctype):
            return None if text.lower() in _NULL else self._array(name, text, ctype)
        if ctype.kind == "vector":
            return tuple(self._number(part, ctype.dtype) for part in text.split(","))
        if ctype.kind != "scalar":
            raise ValueError(f"a {ctype.name} by value cannot be written here; call the kernel from Python")
        return self._number(text, ctype.dtype)

    def _number(self, text: str, dtype: np.dtype[Any] | None = None) -> Any:
        number = evaluate(text, self.value)
        return whole(number) if dtype is None or dtype.kind in "iub" else number

    # ---- arrays ----

    def _array(self, name: str, text: str, ctype: CType) -> np.ndarray[Any, Any]:
        if Path(text).suffix == ".npy" or Path(text).is_file():
            return _load(text)
        kind, *fields = text.split(":")
        if kind not in _KINDS:
            near = difflib.get_close_matches(kind, _KINDS, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise ValueError(f"{hint}An array is written as\n{ARRAY_FORMS}")
        value = fields.pop(0) if kind == "full" and fields else ""
        recipe = self._recipe(fields, ctype)
        generator = np.random.default_rng([self.seed, list(self.parameters).index(name)])
        return self._make(kind, value, recipe, generator)

    def _recipe(self, fields: Sequence[str], ctype: CType) -> _Recipe:
        """Read the fields behind a kind; each is known by its form."""
        element = _element(ctype)
        dtype, shape, bounds, spread = element.dtype, self.size[::-1], None, None
        for field in fields:
            found = _dtype(field)
            if found is not None:
                dtype = found
            elif match := _RANGE.fullmatch(field):
                bounds = self._number(match[1]), self._number(match[2])
            elif match := _SPREAD.fullmatch(field):
                spread = self._number(match[1]), self._number(match[2])
            else:
                shape = self._shape(field)
        if dtype is None:
            raise ValueError(f"a {element.name} has no dtype to make numbers of; name one, or a .npy file")
        if not fields and not shape:
            raise ValueError("say how many elements: a shape behind a colon (random:1000), or --size")
        if element.kind == "vector":
            shape = (*shape, element.components)
        return _Recipe(dtype, shape, bounds, spread)

    def _shape(self, field: str) -> tuple[int, ...]:
        parts = field.split("x") if _EXTENTS.fullmatch(field) else field.strip("()").rstrip(",").split(",")
        extents = tuple(self._number(part) for part in parts)
        for extent in extents:
            if not isinstance(extent, int) or extent < 0:
                raise ValueError(f"{field!r} is no shape: 1000, 480x640, or 480,640")
        return extents

    def _make(
        self, kind: str, value: str, recipe: _Recipe, generator: np.random.Generator
    ) -> np.ndarray[Any, Any]:
        dtype, shape = recipe.dtype, recipe.shape
        if kind in ("zeros", "ones", "empty"):
            made: np.ndarray[Any, Any] = getattr(np, kind)(shape, dtype)
            return made
        if kind == "full":
            if not value:
                raise ValueError("write full:VALUE:SHAPE, for example full:2.5:1000")
            return np.full(shape, self._number(value, dtype), dtype)
        if kind == "arange":
            return np.arange(math.prod(shape)).astype(dtype).reshape(shape)
        return (_normal if kind == "normal" else _uniform)(recipe, generator)


class _Recipe(NamedTuple):
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    bounds: tuple[Any, Any] | None
    spread: tuple[Any, Any] | None


def is_array(ctype: CType) -> bool:
    """Return whether a parameter takes an array."""
    return ctype.kind == "pointer" or is_view(ctype)


def _element(ctype: CType) -> CType:
    element = ctype.pointee if ctype.kind == "pointer" else element_of_view(ctype)
    assert element is not None
    return element


def _load(text: str) -> np.ndarray[Any, Any]:
    try:
        loaded = np.load(text, allow_pickle=False)
    except FileNotFoundError:
        raise ValueError("there is no such file; for a result write zeros:SHAPE here and --out") from None
    except (ValueError, EOFError):
        raise ValueError("it holds no array of numbers") from None
    if not isinstance(loaded, np.ndarray):
        raise ValueError("it holds several arrays; save one with numpy.save")
    return loaded


def _dtype(field: str) -> np.dtype[Any] | None:
    match = _SHORT_DTYPE.fullmatch(field)
    name = _LONG[match[1]] + match[2] if match else field
    if not re.fullmatch(r"bool|[a-z]+\d+", name):
        return None
    try:
        return _dtypes.dtype_of_name(name)
    except (TypeError, ValueError):
        return None


def _uniform(recipe: _Recipe, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    dtype, shape = recipe.dtype, recipe.shape
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        low, high = recipe.bounds or _INTEGERS
        return generator.integers(low, high, shape, dtype, endpoint=True)
    low, high = recipe.bounds or (0, 1)
    return _floating(lambda: low + (high - low) * _floats(generator.random, dtype, shape), dtype)


def _normal(recipe: _Recipe, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    dtype, shape = recipe.dtype, recipe.shape
    if dtype.kind in "iub":
        raise ValueError(f"normally distributed numbers are no {dtype.name}; write random:SHAPE:LOW..HIGH")
    mean, deviation = recipe.spread or (0, 1)
    return _floating(lambda: mean + deviation * _floats(generator.standard_normal, dtype, shape), dtype)


def _floats(draw: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    single = dtype.itemsize <= 4 or dtype == np.complex64
    drawn: np.ndarray[Any, Any] = draw(shape, np.float32 if single else np.float64)
    return drawn


def _floating(draw: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    made: np.ndarray[Any, Any] = draw()
    return (made + 1j * draw()).astype(dtype) if dtype.kind == "c" else made.astype(dtype)
