"""Numbers while a function is traced: Python calculates with them at every call, as the function alone does."""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from gridstride import _dtypes
from gridstride._arguments.promotion import DType, Weak, weak_of
from gridstride.families.fuse.steps import without_axes

if TYPE_CHECKING:
    from gridstride.families.fuse.tape import Tape

#: Operators of two values, as their methods are named; arrays have all of them in place, too.
BINARY = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
)


class Recorded:
    """What stands for an array while a function is traced."""

    __slots__ = ()


class _Recording(threading.local):
    """The tapes that calls of a thread are recorded by, the innermost last."""

    def __init__(self) -> None:
        self.tapes: list[Tape] = []


_recording = _Recording()


@contextmanager
def recording(tape: Tape) -> Iterator[None]:
    """Record by a tape what is done to numbers."""
    _recording.tapes.append(tape)
    try:
        yield
    finally:
        _recording.tapes.pop()


def tape_under_way() -> Tape | None:
    """Return the tape by which is recorded now."""
    return _recording.tapes[-1] if _recording.tapes else None


class Number:
    """Stand for a number that arguments decide: what it is now, and where it is found in other calls.

    `isinstance` takes it for what it stands for: a trace serves calls in which all numbers have the types they had.

    Parameters
    ----------
    tape : Tape
    value : number
        In the call that is traced.
    names : frozenset of str
        The arguments that it depends on; none for one that is the same in all calls.
    place : int, optional
        Among the tape's steps, of one that depends on arguments.
    """

    __slots__ = ("names", "place", "tape", "value")
    __array_priority__ = 500

    def __init__(
        self, tape: Tape, value: Any, names: frozenset[str] = frozenset(), place: int | None = None
    ) -> None:
        self.tape, self.value, self.names, self.place = tape, value, names, place

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.value)

    @property
    def given(self) -> DType | Weak:
        """Its dtype, as promotion sees it."""
        return given_dtype(self.value)

    def pinned(self) -> Any:
        """Return the value, of which the trace then depends: other values make other kernels."""
        self.tape.pinned |= self.names
        return self.value

    def of(self, tape: Tape) -> Number:
        """Return the number for a tape: that of another trace is what it is there in all calls."""
        return self if self.tape is tape else Number(tape, self.pinned())

    def found(self, taken: Sequence[Any]) -> Any:
        """Return the number of a call, given what the tape's steps come to there."""
        return self.value if self.place is None else taken[self.place]

    def applied(self, function: Callable[..., Any], operands: Sequence[Any], **options: Any) -> Any:
        """Return the number, or tuple of them, that a function makes of numbers.

        Numbers of another trace, which a function kept or a fused one found elsewhere, are what they were.
        """
        tape = tape_under_way()
        if tape is None:
            for each in _numbers_in((*operands, *options.values())):
                each.pinned()  # another thread of the traced function's may ask
            return function(*_plain(operands), **{name: _plain(each) for name, each in options.items()})
        if tape is not self.tape:
            return self.of(tape).applied(function, operands, **options)
        operands = [_known_to(tape, each) for each in operands]
        if options:
            count, keys = len(operands), list(options)
            return self.applied(
                lambda *all_of_them: function(
                    *all_of_them[:count], **dict(zip(keys, all_of_them[count:], strict=True))
                ),
                (*operands, *options.values()),
            )
        names = frozenset().union(*(each.names for each in _numbers_in(operands)))
        try:
            result = without_axes(function(*_plain(operands)))
        except Exception:
            self.tape.pinned |= names  # the function may catch it, and go on as with these numbers alone
            raise
        if not names:
            return self._constants(result)
        if not is_number(result) and not isinstance(result, tuple):
            self.tape.pinned |= names  # it is the same in calls with the same numbers alone
            return result
        place = self.tape.steps.add(function, map(self._place, operands), result)
        if isinstance(result, tuple):
            whole = Number(self.tape, result, names, place)
            return tuple(self.applied(operator.itemgetter(k), (whole,)) for k in range(len(result)))
        return Number(self.tape, result, names, place)

    def _constants(self, result: Any) -> Any:
        if isinstance(result, tuple):
            return tuple(self._constants(without_axes(each)) for each in result)
        return Number(self.tape, result) if is_number(result) else result

    def _place(self, operand: Any) -> int:
        """Return where an operand is found in each call, which may be a sequence of numbers."""
        if type(operand) is Number:
            return self.tape.steps.constant(operand.value) if operand.place is None else operand.place
        if type(operand) in (list, tuple) and any(True for _ in _numbers_in(operand)):
            kind = type(operand)
            return self.tape.steps.add(lambda *each: kind(each), map(self._place, operand), _plain(operand))
        return self.tape.steps.constant(operand)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if any(_is_recorded(each) for each in (*inputs, *options.values())):
            return NotImplemented  # what stands for an array records the function
        if not all(type(each) is Number or is_scalar(without_axes(each)) for each in inputs):
            return getattr(ufunc, method)(*_pinned(inputs), **options)  # of arrays that are no arguments
        if method != "__call__":
            raise self.tape.refusal(f"{ufunc.__name__}.{method}() of numbers")
        return self.applied(ufunc, inputs, **options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(each is not Number and each is not np.ndarray for each in types):
            return NotImplemented
        if function is np.select and _is_recorded((args, list(kwargs.values()))):
            from gridstride.families.fuse import composed  # NumPy asks no default of its kind

            return composed.called(self.tape, "select", args, kwargs)
        return self.applied(function, args, **kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.pinned(), dtype)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented  # what stands for an array records the function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("dtype", "numpy_dtype"):
            return self.value.dtype
        return getattr(self.pinned(), name)

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

    def __repr__(self) -> str:
        return repr(self.pinned())

    def __str__(self) -> str:
        return str(self.pinned())

    def __format__(self, how: str) -> str:
        return format(self.pinned(), how)

    def __copy__(self) -> Number:
        return self

    def __deepcopy__(self, memo: Any) -> Number:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.pinned().__reduce_ex__(protocol)

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        operands = (self, other) if modulo is None else (self, other, modulo)
        if not all(type(each) is Number or is_scalar(each) for each in operands):
            return NotImplemented
        return self.applied(pow, operands)

    def __round__(self, digits: Any = None) -> Any:
        return self.applied(round, (self,) if digits is None else (self, digits))


def given_dtype(value: Any) -> DType | Weak:
    """Return the dtype of a number, as promotion sees it."""
    weak = weak_of(value)
    return value.dtype if weak is None else weak


def given_of(value: Any) -> DType | Weak:
    """Return the dtype of a traced value or a number, as promotion sees it."""
    return value.given if type(value) is Number else value.numpy_dtype


def is_number(value: Any) -> bool:
    """Return whether a value is a number of Python's own types, or a NumPy scalar of a dtype that kernels know."""
    if weak_of(value) is not None:
        return True
    return issubclass(type(value), np.generic) and _dtypes.name_of_dtype(value.dtype) in _dtypes.SCALAR_NAMES


def is_scalar(value: Any) -> bool:
    """Return whether a value is a number, also one of a class derived from Python's, such as an `IntEnum`."""
    return is_number(value) or issubclass(type(value), int | float | complex)


def _plain(operand: Any) -> Any:
    """Return an operand, perhaps a sequence, with the value in place of each number in it."""
    if type(operand) is Number:
        return operand.value
    return type(operand)(map(_plain, operand)) if type(operand) in (list, tuple) else operand


def _known_to(tape: Tape, operand: Any) -> Any:
    """Return an operand, perhaps a sequence, with numbers of a tape alone."""
    if type(operand) is Number:
        return operand.of(tape)
    if type(operand) in (list, tuple) and any(True for _ in _numbers_in(operand)):
        return type(operand)(_known_to(tape, each) for each in operand)
    return operand


def _pinned(operands: Sequence[Any]) -> list[Any]:
    return [each.pinned() if type(each) is Number else each for each in operands]


def _numbers_in(operand: Any) -> Iterator[Number]:
    """Yield the numbers in an operand, perhaps a sequence."""
    if type(operand) is Number:
        yield operand
    elif type(operand) in (list, tuple):
        for each in operand:
            yield from _numbers_in(each)


def stands_for_array(value: Any) -> bool:
    """Return whether a value stands for an array while a function is traced."""
    return issubclass(type(value), Recorded)


def _is_recorded(operand: Any) -> bool:
    """Return whether an operand, perhaps a sequence, has what is recorded in it: what stands for an array."""
    if type(operand) in (list, tuple):
        return any(map(_is_recorded, operand))
    return stands_for_array(operand)


def _binary(function: Callable[..., Any], is_reflected: bool) -> Callable[[Any, Any], Any]:
    def operate(self: Number, other: Any) -> Any:
        if type(other) is not Number and not is_scalar(other):
            return NotImplemented
        return self.applied(function, (other, self) if is_reflected else (self, other))

    return operate


def operator_of(name: str) -> Callable[[Any, Any], Any]:
    """Return the function of an operator by the name of its method."""
    found: Callable[[Any, Any], Any] = getattr(operator, f"__{name}__")
    return found


def _unary(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda self: self.applied(function, (self,))


for _name in BINARY:
    for _reflected in (False, True):
        if (_name, _reflected) != ("pow", False):
            setattr(Number, f"__{'r' * _reflected}{_name}__", _binary(operator_of(_name), _reflected))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Number, f"__{_name}__", _binary(getattr(operator, _name), False))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Number, f"__{_name}__", _unary(getattr(operator, _name)))
for _name in ("trunc", "floor", "ceil"):
    setattr(Number, f"__{_name}__", _unary(getattr(math, _name)))
for _name, _reflected in (("__divmod__", False), ("__rdivmod__", True)):
    setattr(Number, _name, _binary(divmod, _reflected))
