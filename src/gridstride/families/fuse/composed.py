"""NumPy's functions that are no ufuncs of one result, made of those that are as NumPy makes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any

import numpy as np

from gridstride._arguments.promotion import Weak, promote
from gridstride.families.fuse import reductions
from gridstride.families.fuse.conversions import Limit, cast
from gridstride.families.fuse.errors import place_of_user
from gridstride.families.fuse.functions import is_half
from gridstride.families.fuse.numbers import Number, given_of, stands_for_array
from gridstride.families.fuse.rules import is_bool
from gridstride.families.fuse.tape import Change, Tape


def called(tape: Tape, name: str, args: Sequence[Any], kwargs: Any) -> Any:
    """Record a call of a function, or of a method of the first argument."""
    if kwargs.get("out") is not None:
        raise tape.refusal(f"{name}() into an output")
    kwargs = {key: value for key, value in kwargs.items() if key != "out"}
    function = FUNCTIONS.get("conj" if name == "conjugate" else name)
    if function is not None:
        return checked(tape, name, function, args, kwargs)
    if name in reductions.NAMES:
        return reductions.reduced(tape, name, *args, **kwargs)
    raise tape.refusal(f"{name}(), which is not elementwise or not known here")


def checked(
    tape: Tape, name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Call what records a function; arguments that it does not take are refused by the function's own name."""
    try:
        inspect.signature(function).bind(tape, *args, **kwargs)
    except TypeError as error:
        raise tape.refusal(f"{name}() with these arguments ({error})") from None
    return function(tape, *args, **kwargs)


def real(tape: Tape, x: Any) -> Any:
    """The real part, a view."""
    x = tape.value(x)
    if type(x) is Number or x.numpy_dtype.kind != "c":
        return x
    return x.view("{}.real()", lambda z, part: _complex(tape, z, part, imag(tape, z)), _real_dtype(x))


def imag(tape: Tape, x: Any) -> Any:
    """The imaginary part, a view."""
    x = tape.value(x)
    if x.numpy_dtype.kind != "c":
        return _like(tape, x, 0)
    return x.view("{}.imag()", lambda z, part: _complex(tape, z, real(tape, z), part), _real_dtype(x))


def set_part(tape: Tape, x: Any, name: str, value: Any) -> None:
    """Record an assignment to the real or the imaginary part."""
    if name == "imag" and x.numpy_dtype.kind != "c":
        raise TypeError(
            f"fused function `{tape.name}`: an array of {x.numpy_dtype} has no imaginary part to set"
        )
    part = real(tape, x) if name == "real" else imag(tape, x)
    if stands_for_array(value) and _is_part(value, part):
        return  # it has changed in place
    new = tape.value(value)
    new = (
        tape.scalar(new, part.numpy_dtype, cast) if type(new) is Number else tape.typed(new, part.numpy_dtype)
    )
    part.become(new, name)


def _is_part(value: Any, part: Any) -> bool:
    if not (value.is_view and part.is_view):
        return value is part
    return value.base is part.base and value.read == part.read


def rounded(tape: Tape, x: Any, decimals: int = 0) -> Any:
    """Round to decimals, half to even."""
    x, digits = tape.value(x), index(decimals)
    if x.numpy_dtype.kind in "iu" and digits >= 0:
        return x.copied()
    if x.numpy_dtype.kind == "c":
        return _complex(tape, x, *(rounded(tape, part(tape, x), digits) for part in (real, imag)))
    if digits == 0:
        return np.rint(x)
    if x.numpy_dtype.kind == "b":
        raise tape.refusal("round() of booleans to decimals, which NumPy refuses")
    scale = 10.0 ** abs(digits)
    if digits > 0:
        return np.rint(x * scale) / scale
    result = np.rint(x / scale) * scale
    return result.astype(x.numpy_dtype) if x.numpy_dtype.kind in "iu" else result


def _clip(tape: Tape, x: Any, low: Any = None, high: Any = None, **limits: Any) -> Any:
    low = limits.pop("min", limits.pop("a_min", low))
    high = limits.pop("max", limits.pop("a_max", high))
    if limits:
        raise tape.refusal(f"clip() with {', '.join(limits)}")
    x = tape.value(x)
    if type(x) is Number:  # NumPy makes an array of it, which has a dtype of its own
        x = x.applied(np.asarray, (x,))
        if not isinstance(x.value, np.generic):
            raise tape.refusal(f"clip() of {x.value}, which no dtype can hold")
        x = tape.typed(x, x.value.dtype)
    wide = tape.rules.promote([tape.value(each) for each in (x, low, high) if each is not None])
    low, high = (
        each if each is None else _limit(tape, x, tape.value(each), is_lower, wide)
        for each, is_lower in ((low, True), (high, False))
    )
    if low is None and high is None:
        return x.copied()
    if low is None or high is None:
        return np.minimum(x, high) if low is None else np.maximum(x, low)
    return np.minimum(np.maximum(_as(tape, x, wide), low), high)


def _limit(tape: Tape, x: Any, limit: Any, is_lower: bool, dtype: Any) -> Any:
    """Return a limit; of integers a Python integer that none of them is beyond is their own."""
    if type(limit) is Number and type(limit.value) is int and x.numpy_dtype.kind in "iu":
        return tape.scalar(limit, dtype, Limit(x.numpy_dtype, is_lower))
    return limit


def _as(tape: Tape, x: Any, dtype: Any) -> Any:
    return x if x.numpy_dtype == dtype else x.astype(dtype)


def _where(tape: Tape, *args: Any) -> Any:
    if all(each is None for each in args[1:]):
        raise tape.refusal("where() of a condition alone, whose result has no known size")
    return tape.where(*args)


def _select(tape: Tape, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError("select() takes as many choices as conditions, at least one")
    for place, each in enumerate(condlist):
        if not is_bool(given_of(tape.value(each))):
            raise TypeError(
                f"fused function `{tape.name}`: select() takes booleans, condition {place} has other values"
            )
    dtype = tape.rules.promote([tape.value(each) for each in (*choicelist, default)])
    result = tape.choice(tape.value(default), dtype)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = tape.where(condition, tape.choice(tape.value(choice), dtype), result)
    return result


def _angle(tape: Tape, z: Any, deg: bool = False) -> Any:
    angle = np.arctan2(imag(tape, z) if z.numpy_dtype.kind == "c" else 0, real(tape, z))
    return angle * (180 / np.pi) if deg else angle


def _complex(tape: Tape, x: Any, real_part: Any, imag_part: Any) -> Any:
    ctype = "complex<float>" if x.numpy_dtype.itemsize == 8 else "complex<double>"
    return tape.add(f"{ctype}({real_part.code}, {imag_part.code})", x.numpy_dtype, (real_part, imag_part))


def _like(tape: Tape, x: Any, value: Any, dtype: Any = None) -> Any:
    """Record a number for each element of an array."""
    wanted = x.numpy_dtype if dtype is None else tape.known_dtype("an array of dtype", dtype)
    number = tape.value(value)
    if type(number) is not Number:
        before, by = tape.arrays_in(x.code), tape.arrays_in(number.code)
        tape.changes.append(Change(before, by, "full_like() of an array", place_of_user()))
    number = tape.scalar(number, wanted, cast) if type(number) is Number else tape.typed(number, wanted)
    return tape.add(f"((void){x.code}, {number.code})", wanted, (x, number))


def _full_like(tape: Tape, x: Any, fill_value: Any, dtype: Any = None) -> Any:
    return _like(tape, x, fill_value, dtype)


def _divmod(tape: Tape, x: Any, y: Any) -> Any:
    return np.floor_divide(x, y), np.remainder(x, y)


def _modf(tape: Tape, x: Any) -> Any:
    whole = np.trunc(_as(tape, x, np.modf.resolve_dtypes((x.numpy_dtype, None, None))[0]))
    rest = np.where(np.isinf(x), 0.0, np.subtract(x, whole))
    return np.copysign(rest.astype(whole.numpy_dtype), x).astype(whole.numpy_dtype), whole


def _frexp(tape: Tape, x: Any) -> Any:
    dtype, *_ = np.frexp.resolve_dtypes((x.numpy_dtype, None, None))
    x = _as(tape, x, dtype)
    fraction = tape.add(f"gridstride::numpy::fraction_of({_floating(x)})", dtype, (x,))
    return fraction, tape.add(f"gridstride::numpy::exponent_of({_floating(x)})", np.dtype(np.int32), (x,))


def _floating(x: Any) -> str:
    return f"float({x.code})" if is_half(x.numpy_dtype) else str(x.code)


def nan_to_num(
    tape: Tape, x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """Record numbers in place of infinities and NaNs."""
    x = tape.value(x)
    if not copy:
        raise tape.refusal("nan_to_num() with copy=False, which changes its argument")
    if x.numpy_dtype.kind == "c":
        parts = (nan_to_num(tape, part(tape, x), True, nan, posinf, neginf) for part in (real, imag))
        return _complex(tape, x, *parts)
    if x.numpy_dtype.kind != "f":
        return x.copied()
    limits = np.finfo(x.numpy_dtype)
    above, below = (limits.max if posinf is None else posinf), (limits.min if neginf is None else neginf)
    result = np.where(np.isnan(x), tape.typed(tape.value(nan), x.numpy_dtype), x)
    result = np.where(np.isposinf(x), tape.typed(tape.value(above), x.numpy_dtype), result)
    return np.where(np.isneginf(x), tape.typed(tape.value(below), x.numpy_dtype), result)


def _isposinf(tape: Tape, x: Any) -> Any:
    return np.logical_and(np.isinf(x), ~np.signbit(x))


def _isneginf(tape: Tape, x: Any) -> Any:
    return np.logical_and(np.isinf(x), np.signbit(x))


def _isreal(tape: Tape, x: Any) -> Any:
    return imag(tape, x) == 0


def _iscomplex(tape: Tape, x: Any) -> Any:
    return imag(tape, x) != 0 if x.numpy_dtype.kind == "c" else _like(tape, x, False, np.bool_)


def floating(tape: Tape, x: Any) -> Any:
    """Record the conversion of integers to the floats that functions of them give."""
    return x.astype(tape.rules.floating) if x.numpy_dtype.kind in "biu" else x


def sinc(tape: Tape, x: Any) -> Any:
    """The sine of pi x, divided by it."""
    x = floating(tape, x)
    y = np.pi * np.where(x == 0, x.numpy_dtype.type(1.0e-20), x)
    return np.where(x == 0, x.numpy_dtype.type(1), np.sin(y) / y)


def _isclose(
    tape: Tape, a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Any:
    b = tape.value(b)
    given = given_of(b)
    if isinstance(given, Weak):
        b = b.applied(float, (b,)) if given.type in (bool, int) else b
    elif given.kind in "biu":  # as NumPy does: differences of integers wrap
        b = tape.typed(b, promote([given, Weak(float)]))
    close = (np.less_equal(abs(a - b), atol + rtol * abs(b)) & np.isfinite(b)) | (a == b)
    return close | (np.isnan(a) & np.isnan(b)) if equal_nan else close


def _real_dtype(x: Any) -> Any:
    return np.finfo(x.numpy_dtype).dtype


def _result_type(tape: Tape, *operands: Any) -> Any:
    known = [
        tape.value(each) if stands_for_array(each) or type(each) is Number else each for each in operands
    ]
    shown = [each.value if type(each) is Number else getattr(each, "numpy_dtype", each) for each in known]
    return tape.rules.shown(np.result_type(*shown))


def _is_complex(tape: Tape, x: Any) -> bool:
    return bool(x.numpy_dtype.kind == "c")


def _conjugate(tape: Tape, x: Any) -> Any:
    """Return what the method does, which leaves real numbers alone."""
    return np.conjugate(x) if x.numpy_dtype.kind == "c" else x


def _astype(tape: Tape, x: Any, dtype: Any, **options: Any) -> Any:
    return x.astype(dtype, **options)


def _copy(tape: Tape, x: Any, *args: Any, **options: Any) -> Any:
    return x.copied()


def _ufunc(name: str) -> Callable[..., Any]:
    return lambda tape, *operands: getattr(np, name)(*operands)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _where, "clip": _clip, "round": rounded, "around": rounded, "real": real, "imag": imag,
    "angle": _angle, "conj": _conjugate, "select": _select,
    "zeros_like": lambda tape, x, dtype=None: _like(tape, x, 0, dtype),
    "ones_like": lambda tape, x, dtype=None: _like(tape, x, 1, dtype), "full_like": _full_like,
    "divmod": _divmod, "modf": _modf, "frexp": _frexp, "fix": _ufunc("trunc"), "nan_to_num": nan_to_num,
    "isposinf": _isposinf, "isneginf": _isneginf, "isreal": _isreal, "iscomplex": _iscomplex, "sinc": sinc,
    "isclose": _isclose, "empty_like": lambda tape, x, dtype=None: _like(tape, x, 0, dtype),
    "result_type": _result_type, "iscomplexobj": _is_complex, "isrealobj": lambda tape, x: not _is_complex(tape, x),
    "astype": _astype, "copy": _copy,
}  # fmt: skip
#: Of arrays.
METHODS = frozenset({"clip", "round", "conj", "conjugate", "copy"})
