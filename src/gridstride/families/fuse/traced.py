"""What stands for an array while a function is traced."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gridstride import arrays
from gridstride._arguments.promotion import DType, Weak
from gridstride.families.fuse import composed, reductions, torch_functions
from gridstride.families.fuse.numbers import BINARY, Number, Recorded, given_of, operator_of
from gridstride.families.fuse.rules import NUMPY, is_bool
from gridstride.families.fuse.tape import Tape

#: What CuPy calls functions that NumPy calls otherwise.
_CUPY_NAMES = {"true_divide": "divide", "round_": "round", "around": "round"}


class Traced(Recorded, np.lib.mixins.NDArrayOperatorsMixin):
    """An array of the function: a parameter of the kernel, or a variable, which may change.

    Parameters
    ----------
    tape : Tape
    code : str
        Its name in the kernel.
    numpy_dtype : dtype
    argument : str
        The argument that it is; "" for a value that the function made.
    has_axes : bool
        Whether it is no array without axes, nor a number.
    shown : type, optional
        What `isinstance` takes an argument for.
    """

    __slots__ = ("argument", "code", "has_axes", "numpy_dtype", "shown", "tape")
    __array_priority__ = 1000
    is_view = False

    def __init__(
        self,
        tape: Tape,
        code: str,
        numpy_dtype: DType,
        argument: str = "",
        has_axes: bool = True,
        shown: type | None = None,
    ) -> None:
        self.tape = tape
        self.code = code
        self.numpy_dtype: Any = numpy_dtype
        self.argument = argument
        self.has_axes = has_axes
        self.shown = shown

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """NumPy's class; others' compiled code takes what has the class of a tensor for one, and falls."""
        if self.shown is not None:
            return self.shown
        if self.tape.library == "numpy":
            return np.ndarray if self.has_axes else self.numpy_dtype.type
        if torch_functions.is_asked_by_is_tensor(sys._getframe(1)):
            return arrays.library_module("torch").Tensor
        return type(self)

    @property
    def dtype(self) -> Any:
        """The dtype, as the library of the arrays has it."""
        return self.tape.rules.shown(self.numpy_dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        name = ufunc.__name__
        if method == "reduce":
            return reductions.reduced_by(self.tape, name, *inputs, **options)
        if method != "__call__":
            raise self.tape.refusal(f"{name}.{method}()")
        outputs = options.pop("out", None) or (None,) * ufunc.nout
        dtype = options.pop("dtype", None)
        where = options.pop("where", True)
        if type(options.get("casting")) is str and options["casting"] == "same_kind":
            del options["casting"]
        if options:
            raise self.tape.refusal(f"{name}() with {', '.join(options)}")
        changed = [None if each is None else self._changeable(each, name) for each in outputs]
        if where is not True:
            self._check_choice(where, changed, name)
        into = None if changed[0] is None else changed[0].numpy_dtype
        result = self._result_of(ufunc, inputs, into, dtype, where)
        results = result if isinstance(result, tuple) else (result,)
        found = tuple(
            each if out is None else self._stored(each, out, name, where)
            for each, out in zip(results, changed, strict=True)
        )
        return found if isinstance(result, tuple) else found[0]

    def _result_of(
        self, ufunc: np.ufunc, inputs: Sequence[Any], into: DType | None, dtype: Any, where: Any
    ) -> Any:
        """Record a function, whose exponents may be anything where a condition does not hold."""
        if ufunc.__name__ in composed.FUNCTIONS and dtype is None:
            return composed.FUNCTIONS[ufunc.__name__](self.tape, *inputs)
        exponents = self.tape.negative_exponents
        count = len(exponents)
        result = self.tape.call(ufunc, inputs, into, dtype)
        if where is not True:
            exponents[count:] = [np.logical_and(where, each) for each in exponents[count:]]
        return result

    def _stored(self, result: Traced, out: Traced, name: str, where: Any = True) -> Traced:
        """Record that an array becomes a result, perhaps where a condition holds alone."""
        if not np.can_cast(result.numpy_dtype, out.numpy_dtype, "same_kind"):
            raise self.tape.refusal(f"{name}() of {result.numpy_dtype} into an array of {out.numpy_dtype}")
        if where is not True:
            result = self.tape.where(where, self.tape.typed(result, out.numpy_dtype), out)
        return out._become(result)

    def _check_choice(self, where: Any, changed: Sequence[Traced | None], name: str) -> None:
        """Raise TypeError for a condition by which a function's results would have undefined elements, or none."""
        if any(each is None for each in changed):
            raise self.tape.refusal(
                f"{name}() with where and without out, whose other elements are undefined: write "
                f"np.where(condition, {name}(...), otherwise)"
            )
        if not is_bool(given_of(self.tape.value(where))):
            raise self.tape.refusal(f"{name}() with where that is no boolean: write where=condition != 0")

    def _changeable(self, out: Any, name: str) -> Traced:
        if not issubclass(type(out), Traced):
            raise self.tape.refusal(f"{name}() into an array that is no value of the function")
        found: Traced = out
        if found.argument:
            raise self.tape.refusal(
                f"a change in place of the argument `{found.argument}`: write {found.argument} = {found.argument} + ..."
            )
        return found

    def _become(self, other: Traced) -> Traced:
        self.code = self.tape.changed(self, other).code
        return self

    def copied(self) -> Traced:
        """Return the value that it has now, which no change of it changes."""
        return Traced(self.tape, self.code, self.numpy_dtype, has_axes=self.has_axes)

    def __copy__(self) -> Traced:
        return self.copied()

    def __deepcopy__(self, memo: Any) -> Traced:
        return self.copied()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise self.tape.refusal(
            f"the conversion of {self._name} to one of NumPy's by array(), asarray() or vectorize(): leave it as it "
            f"is, and write astype() for another dtype"
        )

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
        """Record what libraries take for some powers of plain numbers: other dtypes of bool, other edges of roots."""
        if type(exponent) is Number and isinstance(exponent.given, Weak) and self.numpy_dtype.kind == "b":
            exponent = exponent.pinned()
        if type(exponent) is Number and not exponent.names:
            exponent = exponent.value
        quick = self.tape.rules.quick_powers(self.numpy_dtype, exponent.__class__)
        if type(exponent) is not Number:
            found = quick.get(exponent) if quick else None
            return np.power(self, exponent) if found is None else found(self)
        result = np.power(self, exponent)
        if self.numpy_dtype.kind == "c" or self.numpy_dtype == np.float16:  # others know it in the kernel
            for each, function in quick.items():
                result = np.where(np.equal(exponent, each), function(self), result)
        return result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.tape.rules is not NUMPY:
            if torch_functions.is_method(name):
                return lambda *args, **kwargs: torch_functions.called_method(
                    self.tape, name, (self, *args), kwargs
                )
        elif name in composed.METHODS or name in reductions.METHODS:
            return lambda *args, **kwargs: composed.called(self.tape, name, (self, *args), kwargs)
        why = (
            ": one kernel serves all shapes" if name in ("shape", "size", "ndim", "strides", "nbytes") else ""
        )
        raise self.tape.refusal(f"the attribute {name!r} of {self._name}{why}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("real", "imag"):
            return composed.set_part(self.tape, self, name, value)
        if name not in Traced.__slots__ and name not in View.__slots__:
            raise self.tape.refusal(f"a change of the attribute {name!r} of an array")
        object.__setattr__(self, name, value)

    def become(self, value: Any, name: str) -> None:
        """Record that it has other values, which are assigned to what is called so."""
        self._changeable(self, name)._become(value)

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

    def astype(self, dtype: Any, copy: bool = True, **options: Any) -> Traced:
        """Record a conversion; without `copy` to its own dtype it is itself, as in NumPy."""
        if options:
            raise self.tape.refusal(f"astype() with {', '.join(options)}")
        wanted = self.tape.known_dtype("a conversion to", dtype)
        if not copy and wanted == self.numpy_dtype:
            return self
        return Traced(self.tape, self.tape.typed(self, wanted).code, wanted, has_axes=self.has_axes)

    def view(self, read: str, write: Callable[[Any, Any], Any], dtype: DType) -> Traced:
        """Return a view that reads the array by an expression of {}, and what of the array a value of it makes."""
        return View(self, read, write, dtype)


class View(Traced):
    """A view of a value, such as its real part: it follows changes of the value, and changes it.

    Parameters
    ----------
    base : Traced
    read : str
        What it is of the value.
    write : callable
        Makes the value of what it was and of what the view becomes.
    numpy_dtype : dtype
    """

    __slots__ = ("base", "read", "seen", "write")
    is_view = True

    def __init__(self, base: Traced, read: str, write: Callable[[Any, Any], Any], numpy_dtype: DType) -> None:
        self.tape = base.tape
        self.numpy_dtype = numpy_dtype
        self.argument = base.argument
        self.has_axes = base.has_axes
        self.shown = None
        self.base, self.read, self.write = base, read, write
        self.seen: tuple[str, str] = ("", "")

    @property
    def code(self) -> str:  # type: ignore[override]
        """The name of what it is now."""
        before, name = self.seen
        if before != self.base.code:
            made = self.tape.add(self.read.format(self.base.code), self.numpy_dtype, (self.base,))
            name = made.code
            self.seen = (self.base.code, name)
        return name

    def _become(self, other: Traced) -> Traced:
        new = self.tape.changed(self, other)
        self.base._become(self.write(self.base, new))
        return self


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    """Return an operator that changes an array; what is no array in its library has another value instead."""
    change = getattr(np.lib.mixins.NDArrayOperatorsMixin, f"__i{name}__")
    operate = operator_of(name)

    def changed(self: Traced, other: Any) -> Any:
        if name == "pow":  # whose edges are those of **
            out = self._changeable(self, "power")
            return out._stored(operate(self, other), out, "power")
        is_value = self.tape.library == "jax" or (self.tape.library == "numpy" and not self.has_axes)
        return operate(self, other) if is_value and not self.argument else change(self, other)

    return changed


for _name in BINARY:
    setattr(Traced, f"__i{_name}__", _in_place(_name))
