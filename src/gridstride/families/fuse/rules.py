"""Which dtypes results of fused functions have: by NumPy's rules, or by those of libraries that promote by kinds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from gridstride import _dtypes
from gridstride._arguments.promotion import DType, Weak, promote, rank_of
from gridstride.arrays import Adapter
from gridstride.families.fuse import functions
from gridstride.families.fuse.functions import is_half
from gridstride.families.fuse.numbers import Number, given_of

if TYPE_CHECKING:
    from gridstride.families.fuse.tape import Tape

#: Which take a number beside floats of two bytes as it is; elsewhere it becomes one of them.
_ARITHMETIC = frozenset({np.add, np.subtract, np.multiply, np.divide})
#: By the kind of a dtype, what PyTorch refuses and NumPy's loops would do.
_REFUSED: dict[str, frozenset[np.ufunc]] = {
    "c": frozenset({np.less, np.less_equal, np.greater, np.greater_equal, np.maximum, np.minimum, np.fmax, np.fmin}),
    **dict.fromkeys("iu", frozenset({np.hypot, np.logaddexp, np.logaddexp2, np.nextafter})),
    "b": frozenset({
        np.hypot, np.logaddexp, np.logaddexp2, np.nextafter, np.absolute, np.floor, np.ceil, np.trunc,
        np.fmod, np.remainder, np.floor_divide, np.left_shift, np.right_shift,
    }),
}  # fmt: skip

_BY_INTEGERS: dict[float, Callable[[Any], Any]] = {2: np.square, -1: np.reciprocal}
_BY_FLOATS: dict[float, Callable[[Any], Any]] = {0.5: np.sqrt, -0.5: lambda x: 1 / np.sqrt(x), **_BY_INTEGERS}


class Rules:
    """NumPy's.

    Attributes
    ----------
    key : hashable
        Tells rules apart that may lead to other dtypes.
    floating : dtype
        That of Python's floats alone, and of what integers become in functions of floats.
    ddof : int
        What variances subtract from the count where nothing is said.
    several_axes : tuple of type
        What several axes of a reduction stand in.
    """

    key: Hashable = None
    floating: DType = np.dtype(np.float64)
    ddof = 0
    several_axes: tuple[type, ...] = (tuple,)

    def promote(self, values: Sequence[Any]) -> DType:
        """Return the dtype in which traced values and numbers meet."""
        return promote([given_of(each) for each in values])

    def operands(self, tape: Tape, ufunc: np.ufunc, values: Sequence[Any]) -> list[Any]:
        """Return the operands for which NumPy's loop has the dtype that the result must have."""
        return list(values)

    def quick_powers(self, dtype: DType, kind: type) -> Mapping[float, Callable[[Any], Any]]:
        """Return by which functions the operator ** raises to some powers of a type, where it makes a difference."""
        if kind is int:
            return _BY_INTEGERS if dtype.kind in "fc" else {2: np.square}
        if kind is not float or dtype.kind not in "fc":
            return {}
        return {0.5: np.sqrt} if dtype.kind == "c" else {0.5: np.sqrt, **_BY_INTEGERS}

    def template(self, name: str, loop: Sequence[DType], last: Any) -> str:
        """Return a function's text for the dtypes of its loop, given the last operand.

        A power of floats with one exponent for all is a root where that is .5: the edges of both differ.
        """
        is_one = type(last) is Number or not last.has_axes
        if name == "power" and is_one and loop[0].char in "fd":
            return "gridstride::numpy::power_or_root({0}, {1})"
        return functions.template(name, *loop)

    def plain(self, number: Any) -> Any:
        """Return what a number of a class derived from Python's, such as an `IntEnum`, is taken for."""
        return np.asarray(number)[()]

    def shown(self, dtype: DType) -> Any:
        """Return a dtype as the function sees it."""
        return dtype

    def all_axes(self, name: str, axes: Any) -> Any:
        """Return along which axes a reduction goes that is given some, perhaps none."""
        return axes

    def reduced(self, tape: Tape, name: str, kind: str, own: DType) -> DType:
        """Return the dtype of a reduction's result."""
        if kind == "bool":
            return np.dtype(np.bool_)
        if kind == "count":
            return np.dtype(np.int64)
        if kind in ("mean", "var", "std"):
            if own.kind in "biu":
                return np.dtype(np.float64)
            return np.finfo(own).dtype if own.kind == "c" and kind != "mean" else own
        if kind == "sum" and own.kind in "bi":
            return np.promote_types(own, np.int64)
        if kind == "sum" and own.kind == "u":
            return np.promote_types(own, np.uint64)
        return own


class RulesByKind(Rules):
    """PyTorch's: of bool, integers, floats and complex numbers the highest kind decides.

    Where arrays with axes have it, arrays without axes and numbers do not matter. Of complex numbers of two-byte
    floats there are none here: they are complex64.
    """

    ddof = 1
    several_axes = (tuple, list)

    def __init__(self, floating: DType, library: Adapter) -> None:
        self.floating, self.key, self._library = floating, str(floating), library

    def promote(self, values: Sequence[Any]) -> DType:
        groups: tuple[list[DType], ...] = ([], [], [])
        for each in values:
            if type(each) is Number:
                groups[2].append(self._of_number(each.given))
            else:
                groups[0 if each.has_axes else 1].append(each.numpy_dtype)
        return reduce(_decided, (reduce(_joined, group) for group in groups if group))

    def operands(self, tape: Tape, ufunc: np.ufunc, values: Sequence[Any]) -> list[Any]:
        if ufunc is np.ldexp:
            return list(values)
        dtype = self.promote(values)
        if ufunc is np.subtract and any(is_bool(given_of(each)) for each in values):
            raise tape.refusal("subtract() of booleans, which the library refuses")
        if ufunc in _REFUSED.get(dtype.kind, ()):
            raise tape.refusal(f"{ufunc.__name__}() of {dtype}, which the library refuses")
        if dtype.kind in "biu" and _makes_floats(ufunc, dtype):
            dtype = self.floating
        if is_half(dtype) and ufunc in _ARITHMETIC:
            return [tape.unrounded(each, dtype) for each in values]
        return [each if dtype.kind in "iu" and _is_weak(each) else tape.typed(each, dtype) for each in values]

    def quick_powers(self, dtype: DType, kind: type) -> Mapping[float, Callable[[Any], Any]]:
        if dtype.kind in "fc" or is_half(dtype):
            return _BY_FLOATS if kind in (int, float) else {}
        return {2: np.square} if kind is int and dtype.kind != "b" else {}

    def template(self, name: str, loop: Sequence[DType], last: Any) -> str:
        is_float = loop[0].kind == "f" or is_half(loop[0])
        if name == "power" and type(last) is Number and is_float:
            return "gridstride::numpy::power_or_roots({0}, {1})"
        if name == "remainder" and is_float:
            return "gridstride::numpy::rest_or_any_zero({0}, {1})"
        return functions.template(name, *loop)

    def plain(self, number: Any) -> Any:
        return next(kind(number) for kind in (int, float, complex) if issubclass(type(number), kind))

    def shown(self, dtype: DType) -> Any:
        return self._library.own_dtype(dtype)

    def all_axes(self, name: str, axes: Any) -> Any:
        return None if axes == () and name not in ("any", "all") else axes

    def reduced(self, tape: Tape, name: str, kind: str, own: DType) -> DType:
        if kind in ("mean", "var", "std") and own.kind in "biu":
            raise tape.refusal(f"{name}() of {own}, which the library refuses: convert it to floats")
        if name in ("max", "min") and own.kind == "c":
            raise tape.refusal(f"{name}() of {own}, which the library refuses: complex numbers have no order")
        if kind == "sum" and own.kind == "u":
            return np.dtype(np.int64)
        if kind == "bool" and own == np.uint8:
            return own
        return super().reduced(tape, name, kind, own)

    def _of_number(self, given: DType | Weak) -> DType:
        kind = given.kind if isinstance(given, Weak) else rank_of(given)
        as_complex = np.result_type(self.floating, np.complex64)
        return (np.dtype(np.bool_), np.dtype(np.int64), self.floating, as_complex)[kind]


NUMPY = Rules()


@cache
def rules_by_kind(floating: DType, library: Adapter) -> RulesByKind:
    """Return the rules of a library whose Python floats are of a dtype."""
    return RulesByKind(floating, library)


def _makes_floats(ufunc: np.ufunc, dtype: DType) -> bool:
    resolve: Any = ufunc.resolve_dtypes
    try:
        result = resolve((*[dtype] * ufunc.nin, *[None] * ufunc.nout))[-1]
    except TypeError:
        return False  # which is said later
    return result.kind in "fc"


def is_bool(given: DType | Weak) -> bool:
    """Return whether a dtype, as promotion sees it, is that of booleans."""
    return given.type is bool if isinstance(given, Weak) else given == np.dtype(np.bool_)


def _is_weak(value: Any) -> bool:
    """Return whether a value is a Python number, which has any dtype of integers, and is looked at as an exponent."""
    return type(value) is Number and isinstance(value.given, Weak)


def _joined(first: DType, second: DType) -> DType:
    """Return what two arrays of equal standing have in common."""
    low, high = sorted((first, second), key=rank_of)
    if {_dtypes.name_of_dtype(low), _dtypes.name_of_dtype(high)} == {"float16", "bfloat16"}:
        return np.dtype(np.float32)
    return high if rank_of(low) < 2 and rank_of(low) < rank_of(high) else promote([first, second])


def _decided(first: DType, second: DType) -> DType:
    """Return the first dtype, of what decides, unless that of others is of a higher kind."""
    if rank_of(second) <= rank_of(first):
        return first
    return (
        np.result_type(first, np.complex64)
        if rank_of(first) == 2 and not _dtypes.is_bfloat16(first)
        else second
    )
