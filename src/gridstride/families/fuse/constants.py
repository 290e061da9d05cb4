"""What tells the constants of a trace from others, so that no call is taken for another."""

from __future__ import annotations

import collections
import dataclasses
import enum
import sys
from collections.abc import Hashable, Iterator
from types import MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

#: Equal ones are the same.
_PLAIN = (str, int, bool, bytes, type(None))
#: Classes of which may be told by `==`; equal objects of others may do something else.
_KNOWN = sys.stdlib_module_names | {"numpy", "torch", "cupy", "jax", "jaxlib", "ml_dtypes"}
#: How many attributes and elements of an object are looked at, and how many bytes of an array in it.
_MOST_LOOKED_AT, _BYTES_LOOKED_AT = 1000, 1024
_SEQUENCES = (tuple, list, collections.deque)


class Same:
    """Tell an object from equal ones, and keep it."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is Same and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


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
        Where a value may change without anybody noticing.
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
        self._name, self._within_object = name, within_object
        self._seen: set[int] = set()

    def at(self, value: Any) -> Hashable:
        """Return what tells a value from others."""
        plain = _plain(value)
        if plain is not None:
            return plain
        if id(value) in self._seen or (self._within_object and len(self._seen) >= _MOST_LOOKED_AT):
            return Same(value)
        self._seen.add(id(value))
        kind = type(value)
        if hasattr(kind, "__array_interface__") or hasattr(kind, "__dlpack__"):
            return kind, self._array(value)
        if kind is MethodType:
            return kind, value.__func__, self.at(value.__self__)
        made_of = self._made_of(value)
        attributes = tuple((key, self._of_object(each)) for key, each in _attributes(value))
        if made_of is not None:
            return kind, made_of, attributes
        if attributes or not _is_known(kind):
            return kind, Same(value), attributes
        return kind, self._known(value)

    def _made_of(self, value: Any) -> Hashable:
        """Return what makes equal ones the same; None where nothing does but being one object."""
        kind = type(value)
        if issubclass(kind, _SEQUENCES):
            return tuple(map(self.at, value))
        if issubclass(kind, dict):
            return tuple((self.at(key), self.at(each)) for key, each in value.items())
        if issubclass(kind, set | frozenset):
            return frozenset(map(self.at, value))
        if dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__"):
            return "fields"
        return None

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
            raise self._refusal(value) from None
        found: Hashable = value
        return found

    @staticmethod
    def _array(value: Any) -> Hashable:
        is_small = isinstance(value, np.ndarray) and value.nbytes <= _BYTES_LOOKED_AT
        return Same(value), contents(value) if is_small and not value.dtype.hasobject else None

    def _refusal(self, value: Any) -> TypeError:
        return TypeError(
            f"fuse: the argument `{self._name}` of type {type(value).__name__} is neither an array nor a number, nor a "
            f"tuple, list or dict of them, and cannot be told from others: pass something hashable, such as a tuple"
        )


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
    if type(value).__dictoffset__:
        yield from tuple(vars(value).items())
    for base in type(value).__mro__:
        for name, slot in vars(base).items() if not _is_known(base) else ():
            if type(slot) is MemberDescriptorType and hasattr(value, name):
                yield name, getattr(value, name)


def _is_known(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _KNOWN
