"""The decorator, and the kernels that a function became."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from types import MethodType
from typing import Any, NamedTuple

import numpy as np

from gridstride import arrays
from gridstride.families.fuse.arguments import Arguments, Given
from gridstride.families.fuse.errors import foreign_refusal
from gridstride.families.fuse.numbers import Number, recording
from gridstride.families.fuse.rules import NUMPY, Rules, rules_by_kind
from gridstride.families.fuse.tape import Numbers, Tape
from gridstride.families.fuse.trace import Trace
from gridstride.families.names import checked_kernel_name

#: Combinations of dtypes and of values that matter of which a function's traces are kept.
_MOST_KEPT = 1024
#: Types of defaults that stay what they are.
_UNCHANGEABLE = (bool, int, float, complex, str, type(None))


def fuse(*args: Any, **kwargs: Any) -> Any:
    """Turn a Python function of arrays into one kernel.

    The function is run once for each combination of dtypes, with objects in place of its arguments that
    record what is done to them: operators, elementwise functions of NumPy, CuPy or PyTorch, ``where``, ``clip``,
    ``round``, ``astype``, and last of all one reduction (``sum prod max min any all mean var std``). Results
    have the dtypes that the function alone would give.

    Parameters
    ----------
    function : callable
        Of arrays and numbers, perhaps in tuples, lists and dicts; other arguments are constants. ``@fuse`` and
        ``@fuse()`` are the same.
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
    ValueError
        Where shapes do not broadcast, or an array that changes in place would have to grow.
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
    if len(args) == 1 and isinstance(args[0], staticmethod | classmethod):
        return type(args[0])(FusedFunction(args[0].__func__, name))
    if len(args) == 1 and callable(args[0]):
        return FusedFunction(args[0], name)
    if args:
        raise TypeError("fuse() takes a function")
    return lambda function: fuse(function, kernel_name=name)


class _Usual(NamedTuple):
    """What a call without keywords comes to: its trace, and the values of parameters that it leaves out.

    Its rules are those of the libraries of its arrays, which may get other ones.
    """

    trace: Trace
    defaults: tuple[Any, ...]
    libraries: Set[str]
    rules: Rules


class FusedFunction:
    """Call a function's kernel for the dtypes of the arguments, making it where there is none yet."""

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        self.__module__, self.__qualname__ = type(self).__module__, type(self).__qualname__
        functools.update_wrapper(
            self, function
        )  # before our own attributes, which those of the function may be named as
        self._function = function
        self._name = _kernel_name_of(function) if name is None else checked_kernel_name(name)
        self._signature = _signature_of(function)
        self._traces: dict[tuple[Any, ...], list[Trace]] = {}
        self._pinned: set[str] = set()
        self._usual: dict[tuple[Any, ...], _Usual] = {}
        self._classes: frozenset[type] = frozenset()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        kinds = None if kwargs else self._kinds_of(args)
        usual = None if kinds is None else self._usual.get(kinds)
        if usual is not None and usual.rules is _rules(usual.libraries):
            passed_values = (*args, *usual.defaults)
            numbers = usual.trace.tape.numbers(passed_values)
            if numbers is not None:
                return usual.trace.called(passed_values, numbers)
        return self._called(args, kwargs)

    def _called(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the kernel of a trace that is looked for by all that tells calls apart, or made."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"fused function `{self._name}`: {error}") from None
        passed = set(bound.arguments)
        bound.apply_defaults()
        given = Arguments(bound.arguments)
        libraries = {each.library for each in given.arrays}
        if not libraries:
            return self._function(*args, **kwargs)
        given.refuse_traced(self._name)
        rules, values = _rules(libraries), given.values
        found = next(self._found(given, rules), None)
        if found is not None:
            self._remember(args, kwargs, given, found[0])
            return found[0].called(values, found[1])
        if isinstance(self._function, np.ufunc):
            for name in bound.arguments.keys() - passed:
                del bound.arguments[name]  # they do not take all of their defaults
        trace = self._kept_trace(given, rules, bound)
        with np.errstate(all="ignore"):  # the function was told already
            numbers = trace.tape.numbers(values)
        assert numbers is not None
        return trace.called(values, numbers)

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

    def _kinds_of(self, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return what tells calls with arrays and numbers alone apart; None where others are among the arguments."""
        kinds: list[Any] = []
        for each in args:
            kind = type(each)
            if kind in self._classes:
                kinds.append((kind, each.dtype, each.ndim == 0))
            elif kind is float or kind is int:
                kinds.append(kind)
            else:
                return None
        return tuple(kinds)

    def _remember(self, args: Sequence[Any], kwargs: Any, given: Arguments, trace: Trace) -> None:
        """Let calls like this one find their trace at once, unless it is not told by the kinds of arguments alone."""
        values, count = given.values, len(args)
        if (
            kwargs
            or len(values) < count
            or any(one is not other for one, other in zip(args, values, strict=False))
        ):
            return
        if trace.tape.steps.may_change() or any(each.name in self._pinned for each in given.all[:count]):
            return
        if not all(type(each) in _UNCHANGEABLE for each in values[count:]):
            return
        self._classes |= {
            type(each.value)
            for each in given.all
            if each.kind != "constant" and hasattr(each.value, "ndim") and hasattr(each.value, "dtype")
        }
        kinds = self._kinds_of(tuple(args))
        if kinds is not None:
            libraries = frozenset(each.library for each in given.arrays)
            self._usual[kinds] = _Usual(trace, tuple(values[count:]), libraries, trace.tape.rules)

    def _found(self, given: Arguments, rules: Rules) -> Iterator[tuple[Trace, Numbers]]:
        """Yield traces that serve a call, with its numbers; those that can serve none any more are forgotten."""
        known = self._traces.get((rules.key, *given.key(self._pinned)), [])
        for trace in tuple(known):
            if trace.tape.steps.has_changed():
                with suppress(ValueError):  # of another thread
                    known.remove(trace)
            elif (numbers := trace.tape.numbers(given.values)) is not None:
                yield trace, numbers

    def _kept_trace(self, given: Arguments, rules: Rules, bound: inspect.BoundArguments) -> Trace:
        """Return a new trace, which is kept unless the function changed what it depends on."""
        before = given.key(set())
        trace = self._trace(given, rules, bound)
        if not trace.tape.pinned <= self._pinned:
            self._pinned |= trace.tape.pinned
            self._usual.clear()
        if given.key(set()) == before and not trace.tape.steps.has_changed():
            self._traces.setdefault((rules.key, *given.key(self._pinned)), []).append(trace)
            for oldest in list(self._traces)[:-_MOST_KEPT]:
                self._traces.pop(oldest, None)
        return trace

    def _trace(self, given: Arguments, rules: Rules, bound: inspect.BoundArguments) -> Trace:
        tape = Tape(self._name, rules, given)
        arrays_of: dict[str, int] = {}

        def stand_in(place: int, each: Given) -> Any:
            if each.kind == "array":
                traced = tape.array(each)
                arrays_of[traced.code] = place
                return traced
            if each.kind == "number":
                return Number(tape, each.value, frozenset([each.name]), place)
            return each.value

        found = given.put_together([stand_in(place, each) for place, each in enumerate(given.all)])
        bound.arguments.update({name: found[name] for name in bound.arguments})
        try:
            with recording(tape):
                result = self._function(*bound.args, **bound.kwargs)
        except (TypeError, RuntimeError) as error:
            refused = foreign_refusal(self._name, error)
            if refused is None:
                raise
            raise refused from error
        tape.raise_what_was_caught()
        return Trace(tape, result, arrays_of, [each.name for each in given.all])


def _signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return a function's own signature; of compiled ones that tell none, one that takes anything."""
    try:
        return inspect.signature(function, follow_wrapped=False)  # wrappers may take more than what they wrap
    except ValueError:
        return inspect.signature(lambda *args, **kwargs: None)


def _rules(libraries: Set[str]) -> Rules:
    """Return the rules of the library of all arrays, NumPy's where there are several."""
    adapter = arrays.adapter_of(next(iter(libraries))) if len(libraries) == 1 else None
    floating = None if adapter is None else adapter.floating_dtype()
    return NUMPY if adapter is None or floating is None else rules_by_kind(floating, adapter)


def _kernel_name_of(function: Callable[..., Any]) -> str:
    """Return a function's name where a kernel can have it."""
    try:
        return checked_kernel_name(getattr(function, "__name__", ""))
    except (TypeError, ValueError):
        return "fused"
