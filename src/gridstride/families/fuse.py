"""Fusion: a Python function of arrays becomes one kernel."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from gridstride import _dtypes, arrays
from gridstride._arguments.parameters import value_ctype
from gridstride._arguments.promotion import DType, Weak, promote, weak_of
from gridstride.families.elementwise import ElementwiseKernel
from gridstride.families.reduction import ReductionKernel

_TYPES = "gridstride/numpy_functions.h"

#: What NumPy's functions are in C++, of operands {0}, {1} in the dtype of NumPy's loop.
_FUNCTIONS = {
    "add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}", "divide": "{0} / {1}",
    "floor_divide": "gridstride::floor_divide({0}, {1})", "remainder": "gridstride::remainder_of({0}, {1})",
    "power": "pow({0}, {1})", "float_power": "pow({0}, {1})", "negative": "-{0}", "positive": "{0}",
    "absolute": "gridstride::magnitude({0})", "fabs": "gridstride::magnitude({0})", "sign": "gridstride::sign({0})",
    "square": "{0} * {0}", "reciprocal": "1 / {0}", "sqrt": "sqrt({0})", "cbrt": "cbrt({0})", "exp": "exp({0})",
    "exp2": "exp2({0})", "expm1": "expm1({0})", "log": "log({0})", "log2": "log2({0})", "log10": "log10({0})",
    "log1p": "log1p({0})", "sin": "sin({0})", "cos": "cos({0})", "tan": "tan({0})", "arcsin": "asin({0})",
    "arccos": "acos({0})", "arctan": "atan({0})", "arctan2": "atan2({0}, {1})", "sinh": "sinh({0})",
    "cosh": "cosh({0})", "tanh": "tanh({0})", "arcsinh": "asinh({0})", "arccosh": "acosh({0})",
    "arctanh": "atanh({0})", "hypot": "hypot({0}, {1})", "maximum": "gridstride::maximum({0}, {1})",
    "minimum": "gridstride::minimum({0}, {1})", "fmax": "fmax({0}, {1})", "fmin": "fmin({0}, {1})",
    "floor": "floor({0})", "ceil": "ceil({0})", "trunc": "trunc({0})", "rint": "rint({0})",
    "copysign": "copysign({0}, {1})", "equal": "{0} == {1}", "not_equal": "{0} != {1}", "less": "{0} < {1}",
    "less_equal": "{0} <= {1}", "greater": "{0} > {1}", "greater_equal": "{0} >= {1}",
    "logical_and": "bool({0}) && bool({1})", "logical_or": "bool({0}) || bool({1})",
    "logical_xor": "bool({0}) != bool({1})", "logical_not": "!bool({0})", "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}", "invert": "~{0}",
    "left_shift": "gridstride::shifted_left({0}, {1})", "right_shift": "gridstride::shifted_right({0}, {1})",
    "isnan": "isnan({0})", "isinf": "isinf({0})", "isfinite": "isfinite({0})", "conjugate": "conj({0})",
}  # fmt: skip
_OF_COMPLEX = {"absolute": "abs({0})", "square": "{0} * {0}"}
_OF_INTEGERS = {"power": "gridstride::integer_power({0}, {1})", "fmax": "gridstride::maximum({0}, {1})",
                "fmin": "gridstride::minimum({0}, {1})", "floor": "{0}", "ceil": "{0}", "trunc": "{0}"}  # fmt: skip
_OF_BOOLS = {"invert": "!{0}", "add": "{0} || {1}", "multiply": "{0} && {1}", "maximum": "{0} || {1}",
             "minimum": "{0} && {1}", "absolute": "{0}"}  # fmt: skip
_OF_UNSIGNED = {"absolute": "{0}", "negative": "0 - {0}"}


class _Reduction(NamedTuple):
    reduce_expr: str
    identity: str | None
    mean: bool = False


_REDUCTIONS = {
    "sum": _Reduction("a + b", "0"), "prod": _Reduction("a * b", "1"),
    "max": _Reduction("gridstride::maximum(a, b)", None), "min": _Reduction("gridstride::minimum(a, b)", None),
    "any": _Reduction("a || b", "false"), "all": _Reduction("a && b", "true"),
    "mean": _Reduction("a + b", "0", mean=True),
}  # fmt: skip
_SAME = {"amax": "max", "amin": "min"}


def fuse(*args: Any, **kwargs: Any) -> Any:
    """Turn a Python function of arrays into one kernel.

    The function is run once for each combination of dtypes, with objects in place of its arguments that
    record what is done to them: operators, NumPy's or CuPy's elementwise functions, ``where``, ``clip``,
    ``astype``, and last of all one reduction (``sum prod max min any all mean``). Results have the
    dtypes that the function alone would give.

    Parameters
    ----------
    function : callable
        Of arrays and numbers; other arguments are constants. ``@fuse`` and ``@fuse()`` are the same.
    kernel_name : str, optional
        By default the function's name.

    Returns
    -------
    callable

    Raises
    ------
    TypeError
        Where a call does something that is not elementwise: it says what.

    Examples
    --------
    >>> import gridstride as gs
    >>> import numpy as np
    >>> @gs.fuse
    ... def distance(x, y):
    ...     return np.sqrt(x * x + y * y)
    >>> distance(np.array([3.0, 6.0], np.float32), np.float32(4))
    array([5.       , 7.2111025], dtype=float32)
    """
    name = kwargs.pop("kernel_name", None)
    if kwargs:
        raise TypeError(f"fuse() got an unexpected keyword argument {next(iter(kwargs))!r}")
    if len(args) == 1 and callable(args[0]):
        return FusedFunction(args[0], name)
    if args:
        raise TypeError("fuse() takes a function")
    return lambda function: FusedFunction(function, name)


class FusedFunction:
    """Call a function's kernel for the dtypes of the arguments, making it where there is none yet."""

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        self._function = function
        self._name = name or _identifier(getattr(function, "__name__", "fused"))
        self._signature = inspect.signature(function)
        self._kernels: dict[tuple[Any, ...], _Fused] = {}
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = [_Given.of(name, value) for name, value in bound.arguments.items()]
        if not any(each.is_array for each in given):
            return self._function(*args, **kwargs)
        key = tuple(each.key for each in given)
        fused = self._kernels.get(key)
        if fused is None:
            fused = self._kernels[key] = self._trace(given, bound)
        return fused(*(each.value for each in given if each.is_traced))

    def __repr__(self) -> str:
        return f"<fused function {self._name!r}>"

    def _trace(self, given: Sequence[_Given], bound: inspect.BoundArguments) -> _Fused:
        tape = _Tape(self._name)
        for each in given:
            if each.is_traced:
                assert each.dtype is not None
                bound.arguments[each.name] = tape.input(each.dtype)
        return tape.finish(self._function(*bound.args, **bound.kwargs))


class _Given(NamedTuple):
    """One argument: an array or number that is traced, or a constant."""

    name: str
    value: Any
    dtype: DType | Weak | None
    is_array: bool

    @classmethod
    def of(cls, name: str, value: Any) -> _Given:
        weak = weak_of(value)
        if weak is not None:
            return cls(name, value, weak, False)
        if isinstance(value, np.generic):
            return cls(name, value, value.dtype, False)
        view = arrays.view(value)
        if view is None:
            return cls(name, value, None, False)
        return cls(name, value, view.dtype, True)

    @property
    def is_traced(self) -> bool:
        return self.dtype is not None

    @property
    def key(self) -> Any:
        return (
            (str(self.dtype), self.is_array) if self.is_traced else ("constant", type(self.value), self.value)
        )


class _Fused(NamedTuple):
    """A kernel and how it is called; `narrowed` names integers among the numbers that must fit into dtypes."""

    kernel: Any
    options: dict[str, Any]
    is_tuple: bool
    narrowed: tuple[tuple[int, DType], ...]

    def __call__(self, *arguments: Any) -> Any:
        for position, dtype in self.narrowed:
            _check_fits(arguments[position], dtype)
        result = self.kernel(*arguments, **self.options)
        return result if not self.is_tuple or isinstance(result, tuple) else (result,)


class _Tape:
    """Record what happens to traced values, as statements of CUDA C++."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: list[str] = []
        self.lines: list[str] = []
        self.narrowed: dict[tuple[int, DType], None] = {}

    def input(self, dtype: DType | Weak) -> Traced:
        name = f"x{len(self.inputs)}"
        stored = promote([dtype])
        self.inputs.append(f"{_dtypes.name_of_dtype(stored)} {name}")
        return Traced(self, name, dtype)

    def add(self, expression: str, dtype: DType | Weak) -> Traced:
        name = f"t{len(self.lines)}"
        self.lines.append(f"const {value_ctype(promote([dtype]))} {name} = {expression};")
        return Traced(self, name, dtype)

    def finish(self, result: Any) -> _Fused:
        results = result if isinstance(result, tuple) else (result,)
        if any(isinstance(each, _Reduced) for each in results):
            if len(results) > 1:
                self.refuse("several results of which one is a reduction")
            reduced: _Reduced = results[0]
            return reduced.finish()
        outputs = [self.constant(each) for each in results]
        declared = ", ".join(
            f"{_dtypes.name_of_dtype(promote([each.dtype]))} y{k}" for k, each in enumerate(outputs)
        )
        body = [*self.lines, *(f"y{k} = {each.code};" for k, each in enumerate(outputs))]
        kernel = ElementwiseKernel(
            ", ".join(self.inputs), declared, "\n".join(body), self.name, preamble=f"#include <{_TYPES}>"
        )
        return _Fused(kernel, {}, isinstance(result, tuple), tuple(self.narrowed))

    def constant(self, value: Any) -> Traced:
        """Return a traced value for one that may be a number."""
        if isinstance(value, Traced):
            return value
        if isinstance(value, _Reduced):
            self.refuse("something behind a reduction, which must come last")
        weak = weak_of(value)
        if weak is None and not isinstance(value, np.generic):
            self.refuse(f"a value of type {type(value).__name__}, which is neither traced nor a number")
        dtype = weak or value.dtype
        return Traced(self, _literal(value), dtype)

    def refuse(self, what: str) -> NoReturn:
        raise TypeError(f"fused function `{self.name}`: cannot trace {what}")

    def call(self, name: str, operands: Sequence[Any]) -> Traced:
        """Record a function of NumPy's."""
        ufunc = getattr(np, name, None)
        if name == "where":
            return self.where(*operands)
        if not isinstance(ufunc, np.ufunc) or ufunc.__name__ not in _FUNCTIONS:
            self.refuse(f"{name}(), which is no elementwise function that is known here")
        values = [self.constant(each) for each in operands]
        if all(isinstance(each.dtype, Weak) for each in values):
            return self.of_numbers(ufunc, values)
        wanted = [each.dtype.type if isinstance(each.dtype, Weak) else each.dtype for each in values]
        wanted = [int if each is bool else each for each in wanted]
        try:
            *loop, result = ufunc.resolve_dtypes((*wanted, None))
        except TypeError as error:
            raise TypeError(f"fused function `{self.name}`: {error}") from None
        converted = [_converted(each, dtype) for each, dtype in zip(values, loop, strict=True)]
        return self.add(_template(ufunc.__name__, loop[0]).format(*converted), result)

    def of_numbers(self, ufunc: np.ufunc, values: Sequence[Traced]) -> Traced:
        """Record a function of Python numbers, whose result is one, where NumPy's would not be weak."""
        loop_dtypes = ufunc.resolve_dtypes((*(promote([each.dtype]) for each in values), None))
        *loop, result = loop_dtypes
        converted = [_converted(each, dtype) for each, dtype in zip(values, loop, strict=True)]
        kind = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[result.kind]
        return self.add(_template(ufunc.__name__, loop[0]).format(*converted), Weak(kind))

    def where(self, condition: Any = None, x: Any = None, y: Any = None) -> Traced:
        """Record a choice."""
        if x is None or y is None:
            self.refuse("where() of a condition alone, whose result has no known size")
        chosen, first, second = (self.constant(each) for each in (condition, x, y))
        dtype = promote([first.dtype, second.dtype])
        expression = f"bool({chosen.code}) ? {_typed(first, dtype)} : {_typed(second, dtype)}"
        return self.add(expression, dtype)


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """Stand for an array while a function is traced."""

    __slots__ = ("code", "dtype", "tape")
    __array_priority__ = 1000

    def __init__(self, tape: _Tape, code: str, dtype: DType | Weak) -> None:
        self.tape = tape
        self.code = code
        self.dtype: Any = dtype

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__":
            self.tape.refuse(f"{ufunc.__name__}.{method}()")
        if "out" in options:
            self.tape.refuse(f"{ufunc.__name__}() into an output, or an operation in place: write x = x + y")
        if options:
            self.tape.refuse(f"{ufunc.__name__}() with {', '.join(options)}")
        return self.tape.call(ufunc.__name__, inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        if name == "where" and not kwargs:
            return self.tape.where(*args)
        if name == "clip":
            return Traced.clip(*args, **kwargs)
        if name in ("real", "imag", "round", "around"):
            self.tape.refuse(f"{name}()")
        if _SAME.get(name, name) in _REDUCTIONS:
            return self.tape.constant(args[0]).reduced(_SAME.get(name, name), *args[1:], **kwargs)
        self.tape.refuse(f"{name}(), which is not elementwise")

    def __cupy_override_elementwise_kernel__(self, kernel: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            self.tape.refuse(f"{kernel.name}() with {', '.join(kwargs)}")
        name = kernel.name.removeprefix("cupy_")
        return self.tape.call({"true_divide": "divide"}.get(name, name), args)

    def __bool__(self) -> bool:  # noqa: PLE0304 - it never returns
        self.tape.refuse("a decision about the values of an array: write where(condition, x, y)")

    def __float__(self) -> float:
        self.tape.refuse("the conversion of an array to a Python number")

    __int__ = __index__ = __complex__ = __float__

    def __len__(self) -> int:  # noqa: PLE0303 - it never returns
        self.tape.refuse("the length of an array")

    def __iter__(self) -> Any:
        self.tape.refuse("a loop over an array")

    def __getitem__(self, index: Any) -> Any:
        self.tape.refuse("an index into an array")

    def __setitem__(self, index: Any, value: Any) -> None:
        self.tape.refuse("an assignment to elements of an array")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.tape.refuse(f"the attribute {name!r} of an array")

    def astype(self, dtype: Any) -> Traced:
        """Record a conversion."""
        wanted = _dtypes.bfloat16() if dtype == "bfloat16" else np.dtype(dtype)
        return self.tape.add(_typed(self, wanted), wanted)

    def clip(self, low: Any = None, high: Any = None, **limits: Any) -> Traced:
        """Record two limits."""
        low, high = limits.pop("min", limits.pop("a_min", low)), limits.pop("max", limits.pop("a_max", high))
        if limits:
            self.tape.refuse(f"clip() with {', '.join(limits)}")
        value = self if low is None else self.tape.call("maximum", (self, low))
        return value if high is None else self.tape.call("minimum", (value, high))

    def conj(self) -> Traced:
        """Record the conjugate."""
        return self.tape.call("conjugate", (self,))

    def reduced(
        self, name: str, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> _Reduced:
        """Record a reduction, which must come last."""
        if out is not None:
            self.tape.refuse(f"{name}() into an output")
        if isinstance(axis, Traced):
            self.tape.refuse(
                f"{name}() along an axis that is an argument: let the function know it otherwise"
            )
        own = promote([self.dtype])
        return _Reduced(
            self, name, axis, bool(keepdims), _folded_dtype(name, own) if dtype is None else np.dtype(dtype)
        )

    def sum(self, *args: Any, **kwargs: Any) -> _Reduced:
        """Record a sum."""
        return self.reduced("sum", *args, **kwargs)

    def prod(self, *args: Any, **kwargs: Any) -> _Reduced:
        """Record a product."""
        return self.reduced("prod", *args, **kwargs)

    def mean(self, *args: Any, **kwargs: Any) -> _Reduced:
        """Record a mean."""
        return self.reduced("mean", *args, **kwargs)

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> _Reduced:
        """Record the largest."""
        return self.reduced("max", axis, None, out, keepdims)

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> _Reduced:
        """Record the smallest."""
        return self.reduced("min", axis, None, out, keepdims)

    def any(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> _Reduced:
        """Record whether any is true."""
        return self.reduced("any", axis, None, out, keepdims)

    def all(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> _Reduced:
        """Record whether all are true."""
        return self.reduced("all", axis, None, out, keepdims)


class _Reduced:
    """Stand for the result of a reduction; nothing can be done with it but to return it."""

    __slots__ = ("_axis", "_dtype", "_keepdims", "_name", "_value")
    __array_ufunc__ = None

    def __init__(self, value: Traced, name: str, axis: Any, keepdims: bool, dtype: DType) -> None:
        self._value, self._name, self._axis, self._keepdims, self._dtype = value, name, axis, keepdims, dtype

    def finish(self) -> _Fused:
        tape, how = self._value.tape, _REDUCTIONS[self._name]
        value = f"gridstride_value({', '.join(each.split()[-1] for each in tape.inputs)})"
        folded = "double" if how.mean and self._dtype.kind == "f" and self._dtype.itemsize == 8 else None
        preamble = "\n".join(
            [
                f"#include <{_TYPES}>",
                f"__device__ inline {value_ctype(self._dtype)} gridstride_value({_parameters(tape.inputs)}) {{",
                *tape.lines,
                f"return {_typed(self._value, self._dtype)};",
                "}",
            ]
        )
        kernel = ReductionKernel(
            ", ".join(tape.inputs),
            f"{_dtypes.name_of_dtype(self._dtype)} y",
            value,
            how.reduce_expr,
            "y = a / _fold_size" if how.mean else "y = a",
            how.identity,
            tape.name,
            folded,
            preamble=preamble,
        )
        return _Fused(kernel, {"axis": self._axis, "keepdims": self._keepdims}, False, tuple(tape.narrowed))

    def __getattr__(self, name: str) -> Any:
        self._value.tape.refuse(f"{name!r} of the result of {self._name}(), which must come last")

    def _behind(self, *others: Any) -> Any:
        self._value.tape.refuse(f"something behind {self._name}(), which must come last")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = (
        _behind
    )
    __neg__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __float__ = _behind


def _template(name: str, loop: DType) -> str:
    tables: list[dict[str, str]] = []
    if loop.kind == "b":
        tables = [_OF_BOOLS]
    elif loop.kind in "iu":
        tables = [_OF_UNSIGNED, _OF_INTEGERS] if loop.kind == "u" else [_OF_INTEGERS]
    elif loop.kind == "c":
        tables = [_OF_COMPLEX]
    return next((table[name] for table in tables if name in table), _FUNCTIONS[name])


def _converted(value: Traced, dtype: DType) -> str:
    """Return a value in a loop's dtype, in parentheses; of two bytes as a float."""
    typed = _typed(value, dtype)
    return f"float({typed})" if _dtypes.name_of_dtype(dtype) in ("float16", "bfloat16") else typed


def _typed(value: Traced, dtype: DType) -> str:
    ctype = value_ctype(dtype)
    if isinstance(value.dtype, Weak) and value.dtype.type is int and dtype.kind in "iu":
        if value.code.startswith("x"):
            value.tape.narrowed[int(value.code[1:]), dtype] = None
        elif value.code.startswith("("):
            _check_fits(int(value.code.strip("()").removesuffix("ll")), dtype)
    if not isinstance(value.dtype, Weak) and value.dtype == dtype:
        return value.code
    return f"static_cast<{ctype}>({value.code})"


def _check_fits(number: int, dtype: DType) -> None:
    """Raise OverflowError for a Python int that an integer dtype cannot hold, as NumPy does."""
    limits = np.iinfo(dtype)
    if not limits.min <= number <= limits.max:
        raise OverflowError(f"Python integer {number} out of bounds for {dtype}")


def _parameters(inputs: Sequence[str]) -> str:
    declared = []
    for each in inputs:
        dtype, name = each.split()
        declared.append(f"{value_ctype(_dtypes.dtype_of_name(dtype))} {name}")
    return ", ".join(declared)


def _folded_dtype(name: str, dtype: DType) -> DType:
    if name in ("any", "all"):
        return np.dtype(np.bool_)
    if name == "mean":
        return np.dtype(np.float64) if dtype.kind in "biu" else dtype
    if name in ("sum", "prod") and dtype.kind in "bi":
        return np.promote_types(dtype, np.int64)
    if name in ("sum", "prod") and dtype.kind == "u":
        return np.promote_types(dtype, np.uint64)
    return dtype


def _literal(value: Any) -> str:
    """Return a number's text in C++."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, complex | np.complexfloating):
        return f"complex<double>({_literal(float(value.real))}, {_literal(float(value.imag))})"
    if isinstance(value, int | np.integer):
        number = int(value)
        if number == -(2**63):
            return "(-9223372036854775807ll - 1)"
        return f"{number}ull" if number >= 2**63 else f"({number}ll)"
    number_ = float(value)
    if number_ != number_:
        return "(0.0 / 0.0)"
    if number_ in (float("inf"), float("-inf")):
        return "(1.0 / 0.0)" if number_ > 0 else "(-1.0 / 0.0)"
    return f"({number_!r})"


def _identifier(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else "fused"
