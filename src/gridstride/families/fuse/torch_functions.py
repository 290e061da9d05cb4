"""PyTorch's elementwise functions and reductions, by those of NumPy that do the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from gridstride import _dtypes, arrays
from gridstride.families.fuse import composed, functions, reductions
from gridstride.families.fuse.numbers import Number, stands_for_array

if TYPE_CHECKING:
    from gridstride.families.fuse.tape import Tape

#: NumPy's names of those that have others.
_NAMES = {
    "abs": "absolute", "neg": "negative", "mul": "multiply", "sub": "subtract", "true_divide": "divide",
    "pow": "power", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal", "acos": "arccos", "asin": "arcsin", "atan": "arctan", "atan2": "arctan2",
    "acosh": "arccosh", "asinh": "arcsinh", "atanh": "arctanh", "sgn": "sign", "bitwise_not": "invert",
    "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "clamp": "clip", "fix": "trunc",
}  # fmt: skip
_CONVERSIONS = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "bool": "bool",
    "byte": "uint8", "char": "int8", "short": "int16", "int": "int32", "long": "int64", "cfloat": "complex64",
    "cdouble": "complex128",
}  # fmt: skip
_OPTIONS = {"dim": "axis", "keepdim": "keepdims"}


#: Which PyTorch has for something else than NumPy.
_OTHERS = frozenset({"equal", "select"})


def recorded(kind: type, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Record a call of PyTorch's of which some argument is of a class."""
    return called(reductions.first_of(kind, args, kwargs).tape, name, args, dict(kwargs))


def called_method(tape: Tape, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Record a call of a method of the first argument."""
    if name == "where":  # whose function begins with the condition
        return composed.checked(tape, name, _where_of_method, args, kwargs)
    return called(tape, name, args, kwargs)


def called(tape: Tape, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Record a call of a function."""
    if "input" in kwargs:  # as PyTorch names what functions are of
        args = (kwargs.pop("input"), *args)
    name = name.removeprefix("special_")
    if name in _OTHERS:
        raise tape.refusal(f"{name}(), which is not elementwise")
    name = _NAMES.get(name, name)
    if kwargs.pop("out", None) is not None:
        raise tape.refusal(f"{name}() into an output")
    if name in reductions.NAMES:
        return _reduced(tape, name, *args, **kwargs)
    own = _OWN.get(name)
    if own is not None:
        return composed.checked(tape, name, own, args, kwargs)
    if "dtype" in kwargs:
        kwargs["dtype"] = _dtypes.dtype_of(kwargs["dtype"])
    ufunc = getattr(np, name, None)
    if name in composed.FUNCTIONS or not isinstance(ufunc, np.ufunc) or not functions.is_known(name):
        return composed.called(tape, name, args, kwargs)
    if "other" in kwargs:  # as PyTorch names the second operand
        args = (*args, kwargs.pop("other"))
    if kwargs:
        raise tape.refusal(f"{name}() with {', '.join(kwargs)}")
    return tape.call(ufunc, args)


def is_asked_by_is_tensor(frame: FrameType) -> bool:
    """Return whether a frame is that of ``torch.is_tensor``."""
    return frame.f_code.co_name == "is_tensor" and frame.f_globals.get("__name__") == "torch"


def is_method(name: str) -> bool:
    """Return whether tensors have such a method, which is recorded."""
    if not hasattr(arrays.library_module("torch").Tensor, name):
        return False
    known = _NAMES.get(name, name)
    return (
        known in _OWN or known in reductions.NAMES or known in composed.FUNCTIONS or functions.is_known(known)
    )


#: The parameters of reductions behind the tensor, where they stand by position.
_PLACES = {
    "var": ("dim", "unbiased", "keepdim"),
    "std": ("dim", "unbiased", "keepdim"),
    "count_nonzero": ("dim",),
}


def _reduced(tape: Tape, name: str, x: Any, *args: Any, **kwargs: Any) -> Any:
    if name in ("max", "min") and (args or kwargs):
        return _of_two(tape, name, x, *args, **kwargs)
    places = _PLACES.get(name, ("dim", "keepdim"))
    if "unbiased" in places and args and type(args[0]) is bool:
        places = ("unbiased",)
    given = {**reductions.by_name(tape, name, places, args), **kwargs}
    for each in ("keepdim", "unbiased"):
        if type(given.get(each, False)) is not bool:
            raise tape.refusal(f"{name}() with {each}={given[each]!r}, which the library refuses")
    given = {_OPTIONS.get(key, key): value for key, value in given.items()}
    if given.get("dtype") is not None:
        given["dtype"] = _dtypes.dtype_of(given["dtype"])
    if "unbiased" in given:
        given["correction"] = int(given.pop("unbiased"))
    return reductions.reduced(tape, name, x, **given)


def _of_two(tape: Tape, name: str, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Record max() or min() of two tensors; along an axis they return places too."""
    operands = (*args, *kwargs.values())
    if len(operands) != 1 or not stands_for_array(operands[0]):
        raise tape.refusal(f"{name}() along an axis, which returns places too: write a{name}()")
    return tape.call(np.maximum if name == "max" else np.minimum, (x, *operands))


def _where_of_method(tape: Tape, x: Any, condition: Any, other: Any) -> Any:
    return tape.where(condition, x, other)


def _scaled(ufunc: np.ufunc) -> Callable[..., Any]:
    def recorded_sum(tape: Tape, x: Any, other: Any, *, alpha: Any = 1) -> Any:
        return tape.call(ufunc, (x, other if alpha == 1 else other * alpha))

    return _rounded_once(recorded_sum)


def _rsub(tape: Tape, x: Any, other: Any, *, alpha: Any = 1) -> Any:
    return np.subtract(other, x if alpha == 1 else x * alpha)


def _nan_to_num(tape: Tape, x: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    """Record the numbers in place of infinities and NaNs, the largest of the array's dtype."""
    if functions.is_half(x.numpy_dtype) and x.numpy_dtype.kind != "f":
        largest = functions.LARGEST_BFLOAT16
        posinf, neginf = (largest if posinf is None else posinf), (-largest if neginf is None else neginf)
        wide = composed.nan_to_num(
            tape, x.astype(np.float32), True, 0.0 if nan is None else nan, posinf, neginf
        )
        return wide.astype(x.numpy_dtype)
    return composed.nan_to_num(tape, x, True, 0.0 if nan is None else nan, posinf, neginf)


def _divided(tape: Tape, x: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    if rounding_mode is None:
        return np.divide(x, other)
    if rounding_mode == "floor":
        return np.floor_divide(x, other)
    raise tape.refusal(f"div() with rounding_mode={rounding_mode!r}")


def _converted(dtype: str) -> Callable[..., Any]:
    return lambda tape, x: x.astype(dtype, copy=False)


def _type_as(tape: Tape, x: Any, other: Any) -> Any:
    return x.astype(tape.value(other).numpy_dtype, copy=False)


def _to(tape: Tape, x: Any, dtype: Any) -> Any:
    if stands_for_array(dtype):
        return _type_as(tape, x, dtype)
    return x.astype(dtype, copy=False)


def _rounded_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that goes through float32 where its result is a float of two bytes, as PyTorch's does."""

    @wraps(function)
    def calculated(tape: Tape, x: Any, *args: Any, **kwargs: Any) -> Any:
        wide = [_widened(each) for each in (x, *args)]
        result = function(tape, *wide, **{key: _widened(each) for key, each in kwargs.items()})
        dtype = tape.rules.promote([tape.value(each) for each in (x, *args)])
        return result.astype(dtype, copy=False) if functions.is_half(dtype) else result

    return calculated


def _widened(x: Any) -> Any:
    """Return an operand in float32 if it is a float of two bytes."""
    is_half = type(x) is not Number and functions.is_half(getattr(x, "numpy_dtype", np.dtype(np.bool_)))
    return x.astype(np.float32) if is_half else x


def _sigmoid(tape: Tape, x: Any) -> Any:
    x = composed.floating(tape, x)  # integers wrap when they change sign
    return 1 / (1 + np.exp(-x))


def _positive(tape: Tape, x: Any) -> Any:
    """Return the array itself."""
    if x.numpy_dtype.kind == "b":
        raise tape.refusal("positive() of booleans, which the library refuses")
    return x


def _conj(tape: Tape, x: Any) -> Any:
    """Return a view of complex numbers; others themselves."""
    if x.numpy_dtype.kind != "c":
        return x
    return x.view("conj({})", lambda _, conjugate: np.conjugate(conjugate), x.numpy_dtype)


def _conj_physical(tape: Tape, x: Any) -> Any:
    return np.conjugate(x) if x.numpy_dtype.kind == "c" else x


def _resolved(tape: Tape, x: Any) -> Any:
    """Return the array itself, or what a view is now."""
    return x.copied() if x.is_view and x.numpy_dtype.kind == "c" else x


def _double(x: Any) -> Any:
    """Return an operand in double precision; numbers have it."""
    if not hasattr(x, "astype"):
        return x
    return x.astype(np.complex128 if x.numpy_dtype.kind == "c" else np.float64)


def _sign(tape: Tape, x: Any) -> Any:
    """Record the sign, which of a NaN is zero."""
    if x.numpy_dtype.kind in "biuc":
        return x.copied() if x.numpy_dtype.kind == "b" else np.sign(x)
    return np.where(np.isnan(x), 0, np.sign(x))


def _angle(tape: Tape, x: Any) -> Any:
    """Record the angle, which of a zero is zero."""
    if x.numpy_dtype.kind == "c":
        return composed.called(tape, "angle", (x,), {})
    x = composed.floating(tape, x)
    return np.where(x < 0, np.pi, np.where(np.isnan(x), x, 0))


def _ldexp(tape: Tape, x: Any, other: Any) -> Any:
    """Record a product with a power of two, which is one of the default dtype for an integer."""
    product = x * np.power(2.0, other)
    is_rounded = (
        x.numpy_dtype.kind not in "biu" and getattr(other, "numpy_dtype", np.dtype(np.int64)).kind in "biu"
    )
    return product.astype(x.numpy_dtype) if is_rounded else product


def _heaviside(tape: Tape, x: Any, values: Any) -> Any:
    return np.where(np.equal(x, 0), values, np.greater(x, 0))


def _frexp(tape: Tape, x: Any) -> Any:
    if x.numpy_dtype.kind in "biu":
        raise tape.refusal(f"frexp() of {x.numpy_dtype}, which the library refuses")
    return arrays.library_module("torch").return_types.frexp(composed.called(tape, "frexp", (x,), {}))


def _power(tape: Tape, x: Any, exponent: Any) -> Any:
    return x**exponent if stands_for_array(x) else np.power(x, exponent)


def _relu(tape: Tape, x: Any, inplace: bool = False) -> Any:
    if inplace:
        raise tape.refusal("a change in place of an array by relu()")
    return np.maximum(x, 0)


_OWN: dict[str, Callable[..., Any]] = {
    "add": _scaled(np.add), "subtract": _scaled(np.subtract),
    "rsub": _rounded_once(_rsub), "div": _divided, "divide": _divided,
    "sigmoid": _rounded_once(_sigmoid), "expit": _rounded_once(_sigmoid), "positive": _positive, "conj": _conj,
    "conj_physical": _conj_physical, "resolve_conj": _resolved,
    "ldexp": _ldexp, "sign": _sign, "angle": _angle,
    "round": _rounded_once(composed.rounded), "sinc": _rounded_once(composed.sinc), "nan_to_num": _nan_to_num,
    "float_power": lambda tape, x, exponent: np.float_power(_double(x), _double(exponent)),
    "reciprocal": lambda tape, x: 1 / x, "rsqrt": _rounded_once(lambda tape, x: 1 / np.sqrt(x)),
    "power": _power,
    "relu": _relu, "to": _to, "type_as": _type_as, "frexp": _frexp,
    "heaviside": _heaviside, "square": lambda tape, x: x**2,
    **{name: _converted(dtype) for name, dtype in _CONVERSIONS.items()},
}  # fmt: skip
