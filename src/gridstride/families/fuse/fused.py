"""The decorator, and the kernels that a function became."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Any, NamedTuple

import numpy as np

from gridstride import _dtypes, arrays
from gridstride._arguments.parameters import value_ctype
from gridstride._arguments.promotion import DType
from gridstride.families.elementwise import ElementwiseKernel
from gridstride.families.fuse.errors import foreign_refusal
from gridstride.families.fuse.functions import HEADER
from gridstride.families.fuse.numbers import Number, given_dtype, is_number
from gridstride.families.fuse.reductions import Reduced
from gridstride.families.fuse.rules import NUMPY, Rules, rules_by_kind
from gridstride.families.fuse.tape import Tape, declarations
from gridstride.families.fuse.traced import Traced
from gridstride.families.reduction import ReductionKernel


def fuse(*args: Any, **kwargs: Any) -> Any:
    """Turn a Python function of arrays into one kernel.

    The function is run once for each combination of dtypes, with objects in place of its arguments that
    record what is done to them: operators, elementwise functions of NumPy, CuPy or PyTorch, ``where``, ``clip``,
    ``round``, ``astype``, and last of all one reduction (``sum prod max min any all mean var std``). Results
    have the dtypes that the function alone would give.

    Parameters
    ----------
    function : callable
        Of arrays and numbers; other arguments are constants. ``@fuse`` and ``@fuse()`` are the same.
    kernel_name : str, optional
        By default the function's name.

    Returns
    -------
    callable
        It takes the arguments of the function. Arrays may have any shapes that broadcast, any layout and
        the dtypes of `ElementwiseKernel`; results are new C-contiguous arrays of the first array's library.
        Python and NumPy numbers are calculated with at every call, by Python. Without an array among its
        arguments the function itself is called.

    Raises
    ------
    TypeError
        Where a call does something that is not elementwise: it says what, and in which line.
    OverflowError
        Where a Python integer does not fit into the dtype of the array beside it.

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
        self._signature = _signature_of(function)
        self._traces: dict[tuple[Any, ...], _Trace] = {}
        self._pinned: set[str] = set()
        self.__module__, self.__qualname__ = type(self).__module__, type(self).__qualname__
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"fused function `{self._name}`: {error}") from None
        passed = set(bound.arguments)
        bound.apply_defaults()
        given = {each.name: each for each in _given(self._signature, bound)}
        if not any(each.kind == "array" for each in given.values()):
            return self._function(*args, **kwargs)
        rules = _rules(given)
        trace = self._traces.get(self._key(given, rules))
        if trace is None or not trace.serves(given):
            for name in bound.arguments.keys() - passed:
                if isinstance(self._function, np.ufunc) or (name in given and given[name].kind == "constant"):
                    del bound.arguments[name]  # the function has it; ufuncs do not take all of their defaults
            trace = self._trace(given, rules, bound)
            self._pinned |= trace.tape.pinned
            self._traces[self._key(given, rules)] = trace
        return trace(given)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Return a method; each object that it is of makes a kernel of its own."""
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<fused function {self._name!r}>"

    def __reduce__(self) -> Any:
        """Return where the decorated function is found, as of functions; or the function that is found there."""
        found: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            found = getattr(found, name, None)
        return self.__qualname__ if found is self else (FusedFunction, (self._function, self._name))

    def _key(self, given: Mapping[str, _Given], rules: Rules) -> tuple[Any, ...]:
        keys = tuple(each.key(each.name in self._pinned) for each in given.values())
        if rules is NUMPY:
            return keys
        return (rules.key, tuple(each.has_axes for each in given.values()), *keys)

    def _trace(self, given: Mapping[str, _Given], rules: Rules, bound: inspect.BoundArguments) -> _Trace:
        tape = Tape(self._name, rules)
        arrays_of: dict[str, str] = {}

        def stand_in(each: _Given) -> Any:
            if each.kind == "array":
                traced = tape.array(each.name, each.dtype_for(self._name), each.has_axes)
                arrays_of[traced.code] = each.name
                return traced
            return Number.argument(tape, each.name, each.value) if each.kind == "number" else each.value

        _replace_arguments(self._signature, bound, {name: stand_in(each) for name, each in given.items()})
        try:
            result = self._function(*bound.args, **bound.kwargs)
        except TypeError as error:
            if Traced.__name__ in str(error):
                raise foreign_refusal(self._name, error) from error
            raise
        return _Trace(tape, result, arrays_of)


class _Given(NamedTuple):
    """One argument: an "array", a "number", or a "constant"; of arrays the library, and whether they have axes."""

    name: str
    value: Any
    kind: str
    dtype: Any
    library: str = ""
    has_axes: bool = False

    @classmethod
    def of(cls, name: str, value: Any) -> _Given:
        if is_number(value):
            return cls(name, value, "number", given_dtype(value))
        try:
            view = arrays.view(value)
        except TypeError as error:
            raise TypeError(f"fuse: the argument `{name}`: {error}") from None
        if view is None:
            return cls(name, value, "constant", None)
        return cls(name, value, "array", view.dtype, view.library, view.shape != ())

    def key(self, is_pinned: bool) -> Any:
        if self.kind == "constant" or is_pinned:
            try:
                hash(self.value)
            except TypeError:
                raise TypeError(
                    f"fuse: the argument `{self.name}` of type {type(self.value).__name__} is neither an array nor a "
                    f"number, and cannot be told from others: pass something hashable, such as a tuple"
                ) from None
            return self.kind, type(self.value), self.value
        return self.kind, str(self.dtype)

    def dtype_for(self, function: str) -> DType:
        """Return the dtype; TypeError where no expression takes it."""
        if _dtypes.name_of_dtype(self.dtype) not in _dtypes.SCALAR_NAMES:
            raise TypeError(
                f"fused function `{function}`: the argument `{self.name}` has dtype {self.dtype}; functions are fused "
                f"for booleans, integers, floats and complex numbers"
            )
        found: DType = self.dtype
        return found


def _signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return a function's signature; of compiled ones that tell none, one that takes anything."""
    try:
        return inspect.signature(function)
    except ValueError:
        return inspect.signature(lambda *args, **kwargs: None)


def _rules(given: Mapping[str, _Given]) -> Rules:
    """Return the rules of the library of all arrays, NumPy's where there are several."""
    libraries = {each.library for each in given.values() if each.kind == "array"}
    adapter = arrays.adapter_of(libraries.pop()) if len(libraries) == 1 else None
    floating = None if adapter is None else adapter.floating_dtype()
    return NUMPY if floating is None else rules_by_kind(floating)


def _given(signature: inspect.Signature, bound: inspect.BoundArguments) -> list[_Given]:
    """Return the arguments, those of ``*args`` and ``**kwargs`` apart."""
    found = []
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            found += [_Given.of(f"{name}[{k}]", each) for k, each in enumerate(value)]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            found += [_Given.of(f"{name}[{key!r}]", each) for key, each in value.items()]
        else:
            found.append(_Given.of(name, value))
    return found


def _replace_arguments(
    signature: inspect.Signature, bound: inspect.BoundArguments, stand_ins: Mapping[str, Any]
) -> None:
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            bound.arguments[name] = tuple(stand_ins[f"{name}[{k}]"] for k in range(len(value)))
        elif kind is inspect.Parameter.VAR_KEYWORD:
            bound.arguments[name] = {key: stand_ins[f"{name}[{key!r}]"] for key in value}
        else:
            bound.arguments[name] = stand_ins[name]


class _Trace:
    """What a function was seen to do, and the kernels that do it.

    Parameters
    ----------
    tape : Tape
    result : object
        What the function returned.
    arrays_of : mapping of str to str
        The argument of each parameter that is an array.
    """

    def __init__(self, tape: Tape, result: Any, arrays_of: Mapping[str, str]) -> None:
        self.tape, self._arrays_of = tape, arrays_of
        self._wrap: Callable[[list[Any]], Any] | None = None
        if isinstance(result, tuple | list):
            self._wrap = getattr(result, "_make", type(result))  # as tuples with names are made
        results = list(result) if isinstance(result, tuple | list) else [result]
        if len(results) > 1 and any(isinstance(each, Reduced) for each in results):
            raise tape.refusal("several results of which one is a reduction")
        if not results or (len(results) == 1 and results[0] is None):
            raise tape.refusal("a function that returns nothing (NoneType)")
        self._results = [each if isinstance(each, Reduced) else tape.value(each) for each in results]
        self._uses = [
            set()
            if isinstance(each, Number)
            else tape.used_by((each.value if isinstance(each, Reduced) else each).code)
            for each in self._results
        ]
        self._kernels: dict[tuple[int, ...], tuple[Any, list[str]]] = {}
        self._negative_exponents = [_elementwise(tape, [each]) for each in tape.negative_exponents]

    def serves(self, given: Mapping[str, _Given]) -> bool:
        """Return whether numbers have the dtypes they had; Python's may depend on values."""
        values = {name: each.value for name, each in given.items()}
        return all(
            given_dtype(scalar.number.find(values)) == scalar.number.given
            for scalar in self.tape.scalars.values()
        )

    def __call__(self, given: Mapping[str, _Given]) -> Any:
        values = {name: each.value for name, each in given.items()}
        passed = {parameter: values[name] for parameter, name in self._arrays_of.items()}
        if self._negative_exponents:
            self._check_exponents(passed, values)
        found: dict[int, Any] = {}
        try:
            for group in self._groups(passed):
                kernel, parameters = self._kernel(group)
                arguments = self.tape.passed(parameters, passed, values)
                found |= dict(zip(group, kernel(*arguments), strict=True))
        except ValueError:
            self._check_shapes(passed)
            raise
        for position, each in enumerate(self._results):
            if isinstance(each, Number):
                found[position] = each.find(values)
        ordered = [found[position] for position in range(len(self._results))]
        return ordered[0] if self._wrap is None else self._wrap(ordered)

    def _check_shapes(self, passed: Mapping[str, Any]) -> None:
        """Raise ValueError by the names of arguments where those of a result do not broadcast."""
        for names in self._uses:
            shapes = {self._arrays_of[name]: _shape(passed[name]) for name in sorted(names & passed.keys())}
            try:
                np.broadcast_shapes(*shapes.values())
            except ValueError:
                shown = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
                raise ValueError(
                    f"fused function `{self.tape.name}`: the shapes do not broadcast together: {shown}: each axis must "
                    f"have one length, or 1"
                ) from None

    def _check_exponents(self, passed: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        """Raise NumPy's error for a negative exponent of integers, where NumPy's arrays tell without waiting."""
        if not any(isinstance(array, np.ndarray) for array in passed.values()):
            return
        for kernel, parameters in self._negative_exponents:
            (found,) = kernel(*self.tape.passed(parameters, passed, values))
            if np.any(found):
                raise ValueError(
                    f"fused function `{self.tape.name}`: Integers to negative integer powers are not allowed."
                )

    def _groups(self, passed: Mapping[str, Any]) -> list[tuple[int, ...]]:
        """Return the results that have the same shape: each group is one kernel, nearly always the only one."""
        positions = [k for k, each in enumerate(self._results) if not isinstance(each, Number)]
        uses = [frozenset(self._uses[k] & self._arrays_of.keys()) for k in positions]
        if len(set(uses)) <= 1:
            return [tuple(positions)] if positions else []
        groups: dict[Any, list[int]] = {}
        for position, names in zip(positions, uses, strict=True):
            shapes = [_shape(passed[name]) for name in names]
            groups.setdefault(np.broadcast_shapes(*shapes) if shapes else None, []).append(position)
        return [tuple(group) for group in groups.values()]

    def _kernel(self, group: tuple[int, ...]) -> tuple[Callable[..., tuple[Any, ...]], list[str]]:
        known = self._kernels.get(group)
        if known is None:
            results = [self._results[position] for position in group]
            make: Any = _reduction if isinstance(results[0], Reduced) else _elementwise
            known = self._kernels[group] = make(self.tape, results)
        return known


def _shape(array: Any) -> tuple[int, ...]:
    view = arrays.view(array)
    assert view is not None
    return view.shape


def _elementwise(tape: Tape, results: Sequence[Traced]) -> tuple[Callable[..., Any], list[str]]:
    used = set().union(*(tape.used_by(each.code) for each in results))
    parameters = tape.declared(used)
    outputs = [(f"y{k}", each.dtype) for k, each in enumerate(results)]
    body = [*tape.statements(used), *(f"y{k} = {each.code};" for k, each in enumerate(results))]
    kernel = ElementwiseKernel(
        declarations(parameters), declarations(outputs), "\n".join(body), tape.name,
        preamble=f"#include <{HEADER}>", return_tuple=True,
    )  # fmt: skip
    return kernel, [name for name, _ in parameters]


def _reduction(tape: Tape, results: Sequence[Reduced]) -> tuple[Callable[..., Any], list[str]]:
    (reduced,) = results
    used = tape.used_by(reduced.value.code)
    parameters, texts = tape.declared(used), reduced.kernel_texts()
    names = [name for name, _ in parameters]
    typed = ", ".join(f"{value_ctype(dtype)} {name}" for name, dtype in parameters)
    preamble = [
        f"#include <{HEADER}>",
        texts["preamble"] or "",
        f"__device__ inline {value_ctype(reduced.value.dtype)} gridstride_traced_value({typed}) {{",
        *tape.statements(used),
        f"return {reduced.value.code};",
        "}",
    ]
    kernel = ReductionKernel(
        declarations(parameters),
        f"{_dtypes.name_of_dtype(reduced.dtype)} y",
        str(texts["map_expr"]).format(f"gridstride_traced_value({', '.join(names)})"),
        str(texts["reduce_expr"]),
        texts["post_map_expr"],
        texts["identity"],
        tape.name,
        texts["reduce_type"],
        preamble="\n".join(preamble),
    )
    return lambda *arguments: (kernel(*arguments, axis=reduced.axis, keepdims=reduced.keepdims),), names


def _identifier(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else "fused"
