"""What stands for an array while a function is traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from gridstride import _dtypes
from gridstride._arguments.promotion import DType
from gridstride.families.fuse import composed, reductions, torch_functions
from gridstride.families.fuse.rules import NUMPY
from gridstride.families.fuse.tape import Tape

#: What CuPy calls functions that NumPy calls otherwise.
_CUPY_NAMES = {"true_divide": "divide", "round_": "round", "around": "round"}
#: By which function the operator ** raises to a power, the same for an integer and a float of that value.
_QUICK_POWERS: dict[float, np.ufunc] = {0.5: np.sqrt, 2: np.square, -1: np.reciprocal}


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of the function: a parameter of the kernel, or a variable.

    Parameters
    ----------
    tape : Tape
    code : str
        Its name in the kernel.
    dtype : dtype
    argument : str
        The argument that it is; "" for a value that the function made.
    has_axes : bool
        Whether it is no array without axes, nor a number.
    """

    __slots__ = ("argument", "code", "dtype", "has_axes", "tape")
    __array_priority__ = 1000

    def __init__(
        self, tape: Tape, code: str, dtype: DType, argument: str = "", has_axes: bool = True
    ) -> None:
        self.tape = tape
        self.code = code
        self.dtype: Any = dtype
        self.argument = argument
        self.has_axes = has_axes

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        name = ufunc.__name__
        if method == "reduce":
            return reductions.reduced_by(self.tape, name, *inputs, **options)
        if method != "__call__":
            raise self.tape.refusal(f"{name}.{method}()")
        (out,) = options.pop("out", (None,))
        dtype = options.pop("dtype", None)
        options.pop("casting", None) if options.get("casting") == "same_kind" else None
        if options:
            raise self.tape.refusal(f"{name}() with {', '.join(options)}")
        if name in composed.FUNCTIONS and out is None and dtype is None:
            return composed.FUNCTIONS[name](self.tape, *inputs)
        result = self.tape.call(
            ufunc, inputs, None if out is None else self._changeable(out, name).dtype, dtype
        )
        return result if out is None else out._become(result)

    def _changeable(self, out: Any, name: str) -> Traced:
        if not isinstance(out, Traced):
            raise self.tape.refusal(f"{name}() into an array that is no value of the function")
        if out.argument:
            raise self.tape.refusal(
                f"a change in place of the argument `{out.argument}`: write {out.argument} = {out.argument} + ..."
            )
        return out

    def _become(self, other: Traced) -> Traced:
        self.code = self.tape.typed(other, self.dtype).code
        return self

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return composed.called(self.tape, function.__name__, args, kwargs)

    def __cupy_override_elementwise_kernel__(self, kernel: Any, *args: Any, **kwargs: Any) -> Any:
        name = kernel.name.removeprefix("cupy_")
        name = _CUPY_NAMES.get(name, name)
        ufunc = getattr(np, name, None)
        if name not in composed.FUNCTIONS and isinstance(ufunc, np.ufunc):
            return self.__array_ufunc__(ufunc, "__call__", *args, **kwargs)
        return composed.called(self.tape, name, args, kwargs)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return torch_functions.recorded(cls, function.__name__, args, kwargs or {})

    def __bool__(self) -> bool:
        raise self.tape.refusal("a decision about the values of an array: write where(condition, x, y)")

    def __float__(self) -> float:
        raise self.tape.refusal("the conversion of an array to a Python number")

    __int__ = __index__ = __complex__ = __float__

    def __len__(self) -> int:
        raise self.tape.refusal("the length of an array")

    def __iter__(self) -> Any:
        raise self.tape.refusal("a loop over an array")

    def __contains__(self, item: Any) -> bool:
        raise self.tape.refusal("a search in an array")

    def __getitem__(self, index: Any) -> Any:
        raise self.tape.refusal(
            f"an index into {self._name}: an elementwise kernel sees one element of each array"
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        raise self.tape.refusal(f"an assignment to elements of {self._name}: write where(condition, x, y)")

    def __matmul__(self, other: Any) -> Any:
        raise self.tape.refusal("a product of matrices")

    __rmatmul__ = __imatmul__ = __matmul__

    def __pow__(self, exponent: Any) -> Any:
        """Record what NumPy takes for some powers of plain numbers: other dtypes of bool, other edges of roots."""
        quick = _QUICK_POWERS.get(exponent) if type(exponent) in (int, float) else None
        if quick is not None and self.dtype.kind in "fc":
            return quick(self)
        is_bool_of_others = self.dtype.kind == "b" and self.tape.rules is not NUMPY
        if quick is np.square and type(exponent) is int and not is_bool_of_others:
            return quick(self)
        return np.power(self, exponent)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.tape.rules is not NUMPY and torch_functions.is_method(name):
            return lambda *args, **kwargs: torch_functions.called(self.tape, name, (self, *args), kwargs)
        if name in composed.METHODS or name in reductions.METHODS:
            return lambda *args, **kwargs: composed.called(self.tape, name, (self, *args), kwargs)
        why = (
            ": one kernel serves all shapes" if name in ("shape", "size", "ndim", "strides", "nbytes") else ""
        )
        raise self.tape.refusal(f"the attribute {name!r} of {self._name}{why}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in Traced.__slots__:
            raise self.tape.refusal(f"a change of the attribute {name!r} of an array")
        object.__setattr__(self, name, value)

    @property
    def real(self) -> Any:
        """The real part."""
        return composed.real(self.tape, self)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return composed.imag(self.tape, self)

    @property
    def _name(self) -> str:
        return f"the argument `{self.argument}`" if self.argument else "an array"

    def astype(self, dtype: Any, **options: Any) -> Traced:
        """Record a conversion."""
        if set(options) - {"copy"}:
            raise self.tape.refusal(f"astype() with {', '.join(options)}")
        wanted = _dtypes.dtype_of(dtype)
        if _dtypes.name_of_dtype(wanted) not in _dtypes.SCALAR_NAMES:
            raise self.tape.refusal(f"a conversion to {wanted}")
        return Traced(self.tape, self.tape.typed(self, wanted).code, wanted, has_axes=self.has_axes)
