"""The arguments of a call: arrays, numbers and constants, also within tuples, lists and dicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gridstride import _dtypes, arrays
from gridstride._arguments.promotion import DType
from gridstride.families.fuse.numbers import BINARY, given_dtype, is_number

#: Of which there are two: each is a constant of a trace, so that functions may ask what it is.
_BOOLS = (bool, np.bool_)
#: Equal ones are the same.
_PLAIN = (str, int, bool, bytes, type(None))
#: What arrays do that functions are recorded by; a class that does it otherwise would be taken for a plain array.
_RECORDED = frozenset(
    {
        "__array_ufunc__",
        "__array_function__",
        "__torch_function__",
        "__eq__",
        "__lt__",
        "__neg__",
        "__abs__",
        "sum",
    }
    | {f"__{prefix}{name}__" for name in BINARY for prefix in ("", "r", "i")}
)


class Arguments:
    """Take the arguments of a call apart.

    Parameters
    ----------
    values : mapping of str to object
        By parameter.

    Attributes
    ----------
    all : list of Given
        Whatever is no container.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.all: list[Given] = []
        self._forms = {name: self._taken_apart(name, value) for name, value in values.items()}

    @property
    def values(self) -> list[Any]:
        """The values, in the order of `all`."""
        return [each.value for each in self.all]

    @property
    def arrays(self) -> list[Given]:
        """Those that are arrays."""
        return [each for each in self.all if each.kind == "array"]

    def key(self, pinned: set[str]) -> tuple[Hashable, ...]:
        """Return what tells calls apart that are traced for themselves, where traces depend on some values."""
        return tuple(self._key_of(form, pinned) for form in self._forms.values())

    def put_together(self, stand_ins: Sequence[Any]) -> dict[str, Any]:
        """Return the arguments by parameter with something in place of each of `all`."""
        return {name: _put_together(form, stand_ins) for name, form in self._forms.items()}

    def _taken_apart(self, name: str, value: Any) -> int | _Container:
        kind = type(value)
        keys = _keys_of(value) if kind in (list, dict) or issubclass(kind, tuple) else None
        if keys is None:
            self.all.append(Given.of(name, value))
            return len(self.all) - 1
        each_of = value.values() if kind is dict else value
        forms = [self._taken_apart(name + key, each) for key, each in zip(keys, each_of, strict=True)]
        if kind is dict:
            return _Container(kind, tuple(value), tuple(exact(key, name) for key in value), forms)
        return _Container(kind, None, None, forms)

    def _key_of(self, form: int | _Container, pinned: set[str]) -> Hashable:
        if isinstance(form, int):
            given = self.all[form]
            return given.key(given.name in pinned)
        return form.kind, form.exact_keys, tuple(self._key_of(each, pinned) for each in form.forms)


class _Container(NamedTuple):
    """A tuple, list or dict; a dict's keys, and what tells them from others; what stands in it."""

    kind: type
    keys: tuple[Any, ...] | None
    exact_keys: Hashable
    forms: list[Any]


class Given(NamedTuple):
    """One argument: an "array", a "number", or a "constant"; of arrays the library, and whether they have axes."""

    name: str
    value: Any
    kind: str
    dtype: Any
    library: str = ""
    has_axes: bool = False

    @classmethod
    def of(cls, name: str, value: Any) -> Given:
        """Return what a value is."""
        if type(value) in _BOOLS:
            return cls(name, value, "constant", None)
        if is_number(value):
            return cls(name, value, "number", given_dtype(value))
        try:
            view = None if issubclass(type(value), np.generic) else arrays.view(value)
        except TypeError as error:
            raise TypeError(f"fuse: the argument `{name}`: {error}") from None
        if view is None:
            return cls(name, value, "constant", None)
        kind: Any = type(value)
        redefined = _redefined_by(kind, view.library)
        if redefined is not None:
            raise TypeError(
                f"fuse: the argument `{name}` is a {kind.__name__}, whose {redefined} is not that of arrays: pass a "
                f"plain array of its values"
            )
        return cls(name, value, "array", view.dtype, view.library, view.shape != ())

    def key(self, is_pinned: bool) -> Hashable:
        """Return what tells it from arguments that are traced for themselves, perhaps by its value."""
        if self.kind == "constant" or (is_pinned and self.kind == "number"):
            return exact(self.value, self.name)
        if self.kind == "number":
            return (type(self.value),)
        return type(self.value), self.dtype, self.has_axes

    def dtype_for(self, function: str) -> DType:
        """Return the dtype; TypeError where no expression takes it."""
        if _dtypes.name_of_dtype(self.dtype) not in _dtypes.SCALAR_NAMES:
            raise TypeError(
                f"fused function `{function}`: the argument `{self.name}` has dtype {self.dtype}; functions are fused "
                f"for booleans, integers, floats and complex numbers"
            )
        found: DType = self.dtype
        return found


def exact(value: Any, name: str) -> Hashable:
    """Return what tells a constant from all others, also from equal ones: 2 from 2.0, 0.0 from -0.0."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if issubclass(kind, np.generic):
        return kind, value.dtype, repr(value) if isinstance(value, np.longdouble) else value.tobytes()
    if issubclass(kind, float):
        return kind, float.hex(value)
    if issubclass(kind, complex):
        return kind, float.hex(value.real), float.hex(value.imag)
    if issubclass(kind, tuple):
        return kind, tuple(exact(each, name) for each in value)
    if kind is frozenset:
        return kind, frozenset(exact(each, name) for each in value)
    fields = _fields_of(kind)
    if fields is not None:
        return kind, tuple(exact(getattr(value, each), f"{name}.{each}") for each in fields)
    try:
        hash(value)
    except TypeError:
        raise _unhashable(value, name) from None
    return kind, value


@cache
def _redefined_by(kind: type, library: str) -> str | None:
    """Return what a class of arrays derived from its library's has of its own that is recorded as the library's."""
    base = {"numpy": "ndarray", "torch": "Tensor"}.get(library)
    for each in kind.__mro__:
        if each.__name__ == base or base is None:
            return None
        for name, own in vars(each).items():
            if name in _RECORDED and getattr(own, "__name__", "") != "_disabled_torch_function_impl":
                return name
    return None


def _put_together(form: int | _Container, stand_ins: Sequence[Any]) -> Any:
    if isinstance(form, int):
        return stand_ins[form]
    found = [_put_together(each, stand_ins) for each in form.forms]
    if form.keys is not None:
        return dict(zip(form.keys, found, strict=True))
    make: Any = getattr(form.kind, "_make", form.kind)  # as tuples with names are made
    return make(found)


def _keys_of(value: Any) -> list[str] | None:
    """Return how the elements of a container are spelled behind its name; None where it is none that is taken apart."""
    kind = type(value)
    if kind is dict:
        return [f"[{key!r}]" for key in value]
    if kind in (tuple, list):
        return [f"[{k}]" for k in range(len(value))]
    names = getattr(kind, "_fields", None)
    is_named = isinstance(names, tuple) and hasattr(kind, "_make") and len(names) == len(value)
    return [f".{each}" for each in names] if is_named and names is not None else None


def _fields_of(kind: type) -> list[str] | None:
    """Return the fields of a class whose objects are equal where these are; None for any other class."""
    is_equal: Any = kind.__eq__
    if is_equal is object.__eq__:
        return None
    if dataclasses.is_dataclass(kind):
        return [each.name for each in dataclasses.fields(kind)]
    made: Any = getattr(kind, "__attrs_attrs__", None)
    return None if made is None else [each.name for each in made]


def _unhashable(value: Any, name: str) -> TypeError:
    kind = type(value).__name__
    try:
        is_array = arrays.view(value) is not None
    except TypeError:
        is_array = True
    if is_array:
        return TypeError(
            f"fuse: the argument `{name}` is an array within an object of another class than tuple, list and dict, "
            f"where fuse() does not look for arrays: pass it as an argument of its own"
        )
    return TypeError(
        f"fuse: the argument `{name}` of type {kind} is neither an array nor a number, nor a tuple, list or dict of "
        f"them, and cannot be told from others: pass something hashable, such as a tuple"
    )
