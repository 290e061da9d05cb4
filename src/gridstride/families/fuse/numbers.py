"""Numbers while a function is traced: Python calculates with them at every call, as the function alone does."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gridstride._arguments.promotion import DType, Weak, weak_of

if TYPE_CHECKING:
    from gridstride.families.fuse.tape import Tape


class Number:
    """Stand for a number that arguments decide: what it is now, and how it is found in other calls.

    Parameters
    ----------
    tape : Tape
    value : number
        In the call that is traced.
    find : callable
        Returns the number, given the arguments by name.
    names : frozenset of str
        The arguments that it depends on.
    """

    __slots__ = ("find", "names", "tape", "value")
    __array_priority__ = 500

    def __init__(
        self, tape: Tape, value: Any, find: Callable[[Mapping[str, Any]], Any], names: frozenset[str]
    ) -> None:
        self.tape, self.value, self.find, self.names = tape, value, find, names

    @classmethod
    def argument(cls, tape: Tape, name: str, value: Any) -> Number:
        """Return the number of an argument."""
        return cls(tape, value, lambda given: given[name], frozenset([name]))

    @classmethod
    def constant(cls, tape: Tape, value: Any) -> Number:
        """Return a number that is the same in all calls."""
        return cls(tape, value, lambda _: value, frozenset())

    @property
    def given(self) -> DType | Weak:
        """Its dtype, as promotion sees it."""
        return given_dtype(self.value)

    def pinned(self) -> Any:
        """Return the value, of which the trace then depends: other values make other kernels."""
        self.tape.pinned |= self.names
        return self.value

    def applied(self, function: Callable[..., Any], operands: Sequence[Any], **options: Any) -> Any:
        """Return the number, or tuple of them, that a function makes of numbers."""
        if options:
            count, keys = len(operands), list(options)
            return self.applied(
                lambda *all_of_them: function(
                    *all_of_them[:count], **dict(zip(keys, all_of_them[count:], strict=True))
                ),
                (*operands, *options.values()),
            )
        result = function(*_plain(operands, lambda each: each.value))
        if isinstance(result, tuple):
            return tuple(
                self._found(each, lambda *a, k=k: function(*a)[k], operands) for k, each in enumerate(result)
            )
        return self._found(result, function, operands)

    def _found(self, value: Any, function: Callable[..., Any], operands: Sequence[Any]) -> Any:
        numbers: list[Number] = []
        _plain(operands, numbers.append)
        names = frozenset().union(*(each.names for each in numbers))
        value = without_axes(value)
        if not is_number(value):
            self.tape.pinned |= names  # it is the same in calls with the same numbers alone
            return value

        def find(given: Mapping[str, Any]) -> Any:
            return without_axes(function(*_plain(operands, lambda each: each.find(given))))

        return Number(self.tape, value, find, names)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if not all(isinstance(each, Number) or is_number(without_axes(each)) for each in inputs):
            return NotImplemented  # what stands for an array records the function
        if method != "__call__":
            raise self.tape.refusal(f"{ufunc.__name__}.{method}() of numbers")
        return self.applied(ufunc, inputs, **options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(each is not Number and each is not np.ndarray for each in types):
            return NotImplemented
        if function is np.select and _has_other_than_numbers((args, list(kwargs.values()))):
            from gridstride.families.fuse import composed  # NumPy asks no default of its kind

            return composed.called(self.tape, "select", args, kwargs)
        return self.applied(function, args, **kwargs)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented  # what stands for an array records the function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.value if name == "dtype" else self.pinned(), name)

    def __bool__(self) -> bool:
        return bool(self.pinned())

    def __int__(self) -> int:
        return int(self.pinned())

    def __float__(self) -> float:
        return float(self.pinned())

    def __complex__(self) -> complex:
        return complex(self.pinned())

    def __index__(self) -> int:
        return operator.index(self.pinned())

    def __hash__(self) -> int:
        return hash(self.pinned())

    def __round__(self, digits: Any = None) -> Any:
        return self.applied(round, (self,) if digits is None else (self, digits))


def given_dtype(value: Any) -> DType | Weak:
    """Return the dtype of a number, as promotion sees it."""
    weak = weak_of(value)
    return value.dtype if weak is None else weak


def given_of(value: Any) -> DType | Weak:
    """Return the dtype of a traced value or a number, as promotion sees it."""
    return value.given if isinstance(value, Number) else value.dtype


def without_axes(value: Any) -> Any:
    """Return the NumPy scalar of an array without axes, which means the same; anything else as it is."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _plain(operand: Any, of: Callable[[Number], Any]) -> Any:
    """Return an operand, perhaps a sequence, with something in place of each number in it."""
    if isinstance(operand, Number):
        return of(operand)
    return (
        type(operand)([_plain(each, of) for each in operand]) if type(operand) in (list, tuple) else operand
    )


def _has_other_than_numbers(operand: Any) -> bool:
    """Return whether an operand, perhaps a sequence, has what is recorded in it: what stands for an array."""
    if type(operand) in (list, tuple):
        return any(_has_other_than_numbers(each) for each in operand)
    return hasattr(operand, "tape") and not isinstance(operand, Number)


def is_number(value: Any) -> bool:
    """Return whether a value is a number of Python's or NumPy's."""
    return isinstance(value, np.generic) or weak_of(value) is not None


def _binary(function: Callable[..., Any], is_reflected: bool) -> Callable[[Any, Any], Any]:
    def operate(self: Number, other: Any) -> Any:
        if not isinstance(other, Number) and not is_number(other):
            return NotImplemented
        return self.applied(function, (other, self) if is_reflected else (self, other))

    return operate


def _unary(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda self: self.applied(function, (self,))


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
):
    for _reflected in (False, True):
        setattr(
            Number, f"__{'r' * _reflected}{_name.strip('_')}__", _binary(getattr(operator, _name), _reflected)
        )
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Number, f"__{_name}__", _binary(getattr(operator, _name), False))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Number, f"__{_name}__", _unary(getattr(operator, _name)))
for _name, _reflected in (("__divmod__", False), ("__rdivmod__", True)):
    setattr(Number, _name, _binary(divmod, _reflected))
