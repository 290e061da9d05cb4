"""The arguments of a call: arrays, numbers and constants, also within tuples, lists and dicts."""

from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gridstride import _dtypes, arrays
from gridstride._arguments.promotion import DType
from gridstride.families.fuse.constants import exact
from gridstride.families.fuse.numbers import BINARY, Number, given_dtype, is_number, stands_for_array

#: Of which there are two: each is a constant of a trace, so that functions may ask what it is.
_BOOLS = (bool, np.bool_)
#: Classes that are taken apart by keys.
DICTS = (dict, OrderedDict, defaultdict)
#: What arrays do that functions are recorded by; a class that does it otherwise would be taken for a plain array.
_RECORDED = frozenset(
    {
        "__array_ufunc__",
        "__array_function__",
        "__torch_function__",
        "__array_wrap__",
        "__eq__",
        "__ne__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__neg__",
        "__pos__",
        "__abs__",
        "__invert__",
        "__divmod__",
        "__rdivmod__",
        "sum",
        "prod",
        "max",
        "min",
        "any",
        "all",
        "mean",
        "var",
        "std",
        "clip",
        "round",
        "conj",
        "conjugate",
        "copy",
        "astype",
        "real",
        "imag",
        "dtype",
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

    def refuse_traced(self, function: str) -> None:
        """Raise TypeError where something stands for an array of a trace that is under way."""
        for each in self.all:
            if stands_for_array(each.value):
                raise each.value.tape.refusal(
                    f"a call of the fused function `{function}` with `{each.name}` and arrays that are no arguments: "
                    f"pass them to the function too"
                )

    def key(self, pinned: set[str]) -> tuple[Hashable, ...]:
        """Return what tells calls apart that are traced for themselves, where traces depend on some values."""
        return tuple(self._key_of(form, pinned) for form in self._forms.values())

    def put_together(self, stand_ins: Sequence[Any]) -> dict[str, Any]:
        """Return the arguments by parameter with something in place of each of `all`."""
        return {name: _put_together(form, stand_ins) for name, form in self._forms.items()}

    def _taken_apart(self, name: str, value: Any, within: tuple[int, ...] = ()) -> int | _Container:
        kind = type(value)
        keys = _keys_of(value) if kind in (list, *DICTS) or issubclass(kind, tuple) else None
        if keys is None:
            self.all.append(Given.of(name, value))
            return len(self.all) - 1
        if id(value) in within:
            raise TypeError(f"fuse: the argument `{name}` is a {kind.__name__} that stands in itself")
        within = (*within, id(value))
        each_of = value.values() if kind in DICTS else value
        forms = [self._taken_apart(name + key, each, within) for key, each in zip(keys, each_of, strict=True)]
        if kind in DICTS:
            told = tuple(exact(key, name) for key in (*value, getattr(value, "default_factory", None)))
            return _Container(kind, copy.copy(value), told, forms)
        return _Container(kind, None, None, forms)

    def _key_of(self, form: int | _Container, pinned: set[str]) -> Hashable:
        if isinstance(form, int):
            given = self.all[form]
            return given.key(given.name in pinned)
        return form.kind, form.exact_keys, tuple(self._key_of(each, pinned) for each in form.forms)


class _Container(NamedTuple):
    """A tuple, list or dict; a copy of a dict, and what tells its keys from others; what stands in it."""

    kind: type
    copy: Any
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
        """Return what a value is; a number of a trace that is under way is what it stands for."""
        value = value.pinned() if type(value) is Number else value
        if type(value) in _BOOLS:
            return cls(name, value, "constant", None)
        if is_number(value):
            return cls(name, value, "number", given_dtype(value))
        view = None if issubclass(type(value), np.generic) else _view(name, value)
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


def _view(name: str, value: Any) -> arrays.ArrayView | None:
    """Return what is known of an array; None for an object that is none, also where it raises what it likes."""
    try:
        return arrays.view(value)
    except TypeError as error:
        raise TypeError(f"fuse: the argument `{name}`: {error}") from None
    except Exception:
        if arrays.may_show_memory(type(value)):
            raise
        return None


@cache
def _redefined_by(kind: type, library: str) -> str | None:
    """Return what a class of arrays derived from its library's has of its own that is recorded as the library's."""
    base = {"numpy": "ndarray", "torch": "Tensor"}.get(library)
    for each in kind.__mro__:
        if each.__name__ == base or base is None:
            return None
        for name, own in vars(each).items():
            if name in _RECORDED and not _does_nothing(each, own):
                return name
    return None


def _does_nothing(kind: type, own: Any) -> bool:
    """Return whether what a class has of its own is done as arrays do it."""
    return kind is np.memmap or getattr(own, "__name__", "") == "_disabled_torch_function_impl"


def _put_together(form: int | _Container, stand_ins: Sequence[Any]) -> Any:
    if isinstance(form, int):
        return stand_ins[form]
    found = [_put_together(each, stand_ins) for each in form.forms]
    if form.copy is not None:
        form.copy.update(zip(form.copy, found, strict=True))
        return form.copy
    make: Any = getattr(form.kind, "_make", form.kind)  # as tuples with names are made
    return make(found)


def _keys_of(value: Any) -> list[str] | None:
    """Return how the elements of a container are spelled behind its name; None where it is none that is taken apart."""
    kind = type(value)
    if kind in DICTS:
        return [f"[{key!r}]" for key in value]
    if kind in (tuple, list):
        return [f"[{k}]" for k in range(len(value))]
    names = getattr(kind, "_fields", None)
    is_named = isinstance(names, tuple) and hasattr(kind, "_make") and len(names) == len(value)
    is_named = is_named and not getattr(value, "__dict__", None)  # which would be lost
    return [f".{each}" for each in names] if is_named and names is not None else None
