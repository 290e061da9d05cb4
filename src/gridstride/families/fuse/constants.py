"""What tells the constants of a trace from others, so that no call is taken for another."""

from __future__ import annotations

import collections
import enum
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from functools import partial
from types import (
    BuiltinFunctionType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import numpy as np

from gridstride import arrays

#: Equal ones are the same.
_PLAIN = (str, int, bool, bytes, type(None))
#: Libraries whose values may be told by `==`; equal objects of others may do something else.
_KNOWN = sys.stdlib_module_names | {"numpy", "torch", "cupy", "jax", "jaxlib", "ml_dtypes"}
#: How many attributes and elements of an object are looked at, and how many bytes of an array in it.
_MOST_LOOKED_AT, _BYTES_LOOKED_AT = 1000, 1024
#: How deep.
_DEEPEST = 50
#: Functions in C and in Python, and the names of other classes whose objects stay what they are.
_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodWrapperType, np.ufunc)
_UNCHANGING = frozenset({
    "dtype", "device", "layout", "memory_format", "ellipsis", "NotImplementedType", "_lru_cache_wrapper", "itemgetter",
    "attrgetter", "methodcaller", "method_descriptor", "wrapper_descriptor", "_ArrayFunctionDispatcher", "vectorize",
    "PjitFunction",
})  # fmt: skip
#: The flag of classes that are made in Python.
_OF_PYTHON = 1 << 9
_SEQUENCES = (tuple, list, collections.deque)


class Same:
    """Tell an object from equal ones; it is not kept where it can be referred to without that."""

    __slots__ = ("_id", "_refer")

    def __init__(self, value: Any) -> None:
        self._id = id(value)
        try:
            self._refer: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self._refer = lambda: value

    def __eq__(self, other: object) -> bool:
        if type(other) is not Same or other._id != self._id:
            return False
        value = self._refer()
        return value is not None and value is other._refer()

    def __hash__(self) -> int:
        return self._id


class _Untold(TypeError):
    """Say that a value cannot be told from others."""


class Never:
    """Tell a value from all others and from itself: it may change without anybody noticing."""

    __slots__ = ()


def exact(value: Any, name: str) -> Hashable:
    """Return what tells a constant from all others, also from equal ones: 2 from 2.0, 0.0 from -0.0.

    Objects are told apart by their attributes too, which may change from call to call.

    Parameters
    ----------
    value : object
    name : str
        For the message of the error.

    Raises
    ------
    TypeError
        Where a value cannot be told from others, such as the keys of a dict.
    """
    plain = _plain(value)
    return _Look(name).at(value) if plain is None else plain


def contents(value: Any) -> Hashable:
    """Return what changes whenever a list, a dict or an array does; anything else is told by what it is."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return type(value), value.dtype, value.shape, value.tobytes()
    if type(value) in (list, tuple):
        return type(value), tuple(map(contents, value))
    if type(value) is dict:
        return dict, tuple((exact(key, ""), contents(each)) for key, each in value.items())
    return _Look("", within_object=True).at(value)


class _Look:
    """Look at a constant.

    Parameters
    ----------
    name : str
        Of the argument.
    within_object : bool
        Whether it is of an object, of which the function may well ask something else.
    """

    def __init__(self, name: str, within_object: bool = False) -> None:
        self._name, self._within_object, self._depth = name, within_object, 0
        self._seen: set[int] = set()

    def at(self, value: Any) -> Hashable:
        """Return what tells a value from others."""
        plain = _plain(value)
        if plain is not None:
            return plain
        if id(value) in self._seen or self._depth >= _DEEPEST:
            return Same(value)
        self._depth += 1
        try:
            return self._looked_into(value)
        except _Untold:
            raise
        except Exception:  # of an attribute that the function need not ask for
            return Never()
        finally:
            self._depth -= 1

    def _is_much(self, value: Any) -> bool:
        is_long = isinstance(value, (*_SEQUENCES, dict, set, frozenset)) and len(value) > _MOST_LOOKED_AT
        return is_long or len(self._seen) >= _MOST_LOOKED_AT

    def _looked_into(self, value: Any) -> Hashable:
        if self._within_object and self._is_much(value):
            return Same(value)
        self._seen.add(id(value))
        kind = type(value)
        if hasattr(kind, "__array_interface__") or hasattr(kind, "__dlpack__"):
            return kind, _array(value)
        if kind is MethodType:
            return kind, Same(value.__func__), self.at(value.__self__)
        made_of = self._made_of(value)
        attributes = tuple((key, self._of_object(each)) for key, each in _attributes(value))
        if made_of is not None:
            return kind, made_of, attributes
        if kind is SimpleNamespace or not _is_known(kind):
            told = Same(value) if self._within_object or not _has_hidden_state(kind) else Never()
            return kind, told, attributes
        return kind, self._known(value)

    def _made_of(self, value: Any) -> Hashable:
        """Return what makes equal ones the same; None where nothing does but being one object."""
        kind = type(value)
        if issubclass(kind, _SEQUENCES):
            return getattr(value, "maxlen", None), tuple(map(self.at, value))
        if issubclass(kind, dict):
            default = self.at(getattr(value, "default_factory", None))
            return default, tuple((self.at(key), self.at(each)) for key, each in value.items())
        if issubclass(kind, set | frozenset):
            return frozenset(Counter(map(self.at, value)).items())
        if kind is slice:
            return tuple(map(self.at, (value.start, value.stop, value.step)))
        if kind is partial:
            return tuple(map(self.at, (value.func, value.args, value.keywords)))
        if kind is weakref.ref:
            return self.at(value())
        return "fields" if _is_equal_by_fields(kind) else None

    def _of_object(self, value: Any) -> Hashable:
        before, self._within_object = self._within_object, True
        found = self.at(value)
        self._within_object = before
        return found

    def _known(self, value: Any) -> Hashable:
        """Return what tells an object of a library from others, which has no attributes of its own."""
        try:
            hash(value)
        except TypeError:
            if self._within_object:
                return Same(value)
            if getattr(value, "__dict__", None):
                return tuple((name, self._of_object(each)) for name, each in vars(value).items())
            raise self._refusal(value) from None
        if isinstance(value, _FUNCTIONS):
            bound = getattr(value, "__self__", None)
            return Same(value) if bound is None else (value.__name__, self.at(bound))
        equal: Any = type(value).__eq__
        is_identity = equal is object.__eq__ and type(value).__name__ not in _UNCHANGING
        if is_identity and not self._within_object:
            return Never()
        return Same(value) if is_identity else (value, repr(value))

    def _refusal(self, value: Any) -> TypeError:
        return _Untold(
            f"fuse: the argument `{self._name}` of type {type(value).__name__} is neither an array nor a number, nor a "
            f"tuple, list or dict of them, and cannot be told from others: pass something hashable, such as a tuple"
        )


def _array(value: Any) -> Hashable:
    """Return what tells an array within an object: what stands in it, where it is small and on the host."""
    try:
        view = arrays.view(value)
    except (TypeError, ValueError):
        view = None
    if view is None or view.nbytes > _BYTES_LOOKED_AT or view.device_type != arrays.HOST:
        return Same(value)
    return Same(value), view.dtype, view.shape, np.asarray(_Shown(view)).tobytes()


class _Shown:
    """Show the bytes of a view to NumPy."""

    def __init__(self, view: arrays.ArrayView) -> None:
        self.__array_interface__ = {
            "version": 3, "shape": view.shape, "typestr": f"|V{view.dtype.itemsize}", "data": (view.address, True),
            "strides": view.strides,
        }  # fmt: skip


def _is_equal_by_fields(kind: type) -> bool:
    """Return whether objects are equal where their fields are, and have nothing else."""
    parameters = getattr(kind, "__dataclass_params__", None)
    is_generated = parameters is not None and parameters.eq and "__dataclass_params__" in vars(kind)
    return (is_generated or hasattr(kind, "__attrs_attrs__")) and not _has_hidden_state(kind)


def _has_hidden_state(kind: type) -> bool:
    """Return whether a class is derived from one in C, whose state is no attribute."""
    return any(not base.__flags__ & _OF_PYTHON for base in kind.__mro__ if base is not object)


def _plain(value: Any) -> Hashable:
    """Return what tells numbers, texts, and what is one object wherever it is; None for anything else."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if kind is float:
        return kind, value.hex()
    if kind is complex:
        return kind, value.real.hex(), value.imag.hex()
    if issubclass(kind, np.generic):
        return kind, value.dtype, repr(value) if isinstance(value, np.longdouble) else value.tobytes()
    if issubclass(kind, enum.Enum | type | ModuleType):
        return Same(value)
    return None


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object has of its own."""
    kind = type(value)
    if kind is not SimpleNamespace and _is_known(kind):
        return
    if kind.__dictoffset__:
        yield from tuple(vars(value).items())
    for base in kind.__mro__:
        for name, slot in vars(base).items() if not _is_known(base) else ():
            if type(slot) is MemberDescriptorType:
                with suppress(AttributeError):
                    yield name, slot.__get__(value)


def _is_known(kind: type) -> bool:
    """Return whether a class is of a library, and not of a user."""
    library = str(kind.__module__).partition(".")[0]
    return not kind.__flags__ & _OF_PYTHON or (library != "builtins" and library in _KNOWN)
