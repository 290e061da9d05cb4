"""What a function was seen to do, and the kernels that do it."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from gridstride import _dtypes, arrays
from gridstride._arguments.parameters import value_ctype
from gridstride.families.elementwise import ElementwiseKernel
from gridstride.families.fuse.arguments import DICTS
from gridstride.families.fuse.functions import HEADER
from gridstride.families.fuse.numbers import Number
from gridstride.families.fuse.parameters import Parameters
from gridstride.families.fuse.reductions import Reduced
from gridstride.families.fuse.tape import Change, Numbers, Tape, declarations
from gridstride.families.fuse.traced import Traced
from gridstride.families.reduction import ReductionKernel

_Make = Callable[[Mapping[int, Any] | Sequence[Any]], Any]

#: What may stand beside results, the same in all calls.
_CONSTANTS = (str, bytes, type(None))


class Trace:
    """Calculate a function's results.

    Parameters
    ----------
    tape : Tape
    result : object
        What the function returned.
    arrays_of : mapping of str to int
        The place among the arguments of each parameter that is an array.
    names : sequence of str
        Of the arguments.
    """

    def __init__(self, tape: Tape, result: Any, arrays_of: Mapping[str, int], names: Sequence[str]) -> None:
        self.tape, self._arrays_of, self._names = tape, arrays_of, names
        results: list[Any] = []
        self._put_together = _taken_apart(tape, result, results)
        if len(results) > 1 and any(type(each) is Reduced for each in results):
            raise tape.refusal("several results of which one is a reduction")
        if not results or (len(results) == 1 and results[0] is None):
            raise tape.refusal("a function that returns nothing (NoneType)")
        self._results = [_known(tape, each) for each in results]
        self._uses = [self._arrays_in(each) for each in self._results]
        self._kernels: dict[tuple[int, ...], tuple[Any, Parameters]] = {}
        self._negative_exponents = [_elementwise(tape, [each]) for each in tape.negative_exponents]
        self._whole = tuple(range(len(self._results)))
        is_one_kernel = len(set(self._uses)) == 1 and not any(type(each) is Number for each in self._results)
        self._is_plain = is_one_kernel and not self._negative_exponents and not tape.changes

    def called(self, values: Sequence[Any], numbers: Numbers) -> Any:
        """Return the results for the arguments of a call, given its numbers."""
        passed = {parameter: values[place] for parameter, place in self._arrays_of.items()}
        if self._is_plain:
            return self._put_together(self._called_kernel(self._whole, passed, numbers))
        if self._negative_exponents:
            self._check_exponents(passed, numbers)
        for change in self.tape.changes:
            self._check_change(change, passed)
        found: dict[int, Any] = {}
        try:
            groups = self._groups(passed)
        except ValueError:
            self._check_shapes(passed)
            raise
        for group in groups:
            found |= dict(zip(group, self._called_kernel(group, passed, numbers), strict=True))
        for position, each in enumerate(self._results):
            if type(each) is Number:
                found[position] = each.found(numbers.taken)
        return self._put_together(found)

    def _called_kernel(
        self, group: tuple[int, ...], passed: Mapping[str, Any], numbers: Numbers
    ) -> tuple[Any, ...]:
        kernel, parameters = self._kernel(group)
        try:
            results: tuple[Any, ...] = kernel(*parameters.passed(passed, numbers))
        except ValueError:
            self._check_shapes(passed)
            raise
        return results

    def _arrays_in(self, result: Any) -> frozenset[str]:
        """Return the parameters that are arrays of which a result is made."""
        if type(result) is Number:
            return frozenset()
        value = result.value if type(result) is Reduced else result
        return self.tape.arrays_in(value.code)

    def _shapes(self, names: Iterable[str], passed: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of parameters by the names of the arguments."""
        return {self._names[self._arrays_of[name]]: _shape(passed[name]) for name in sorted(names)}

    def _check_shapes(self, passed: Mapping[str, Any]) -> None:
        """Raise ValueError by the names of arguments where those of a result do not broadcast."""
        for names in self._uses:
            shapes = self._shapes(names, passed)
            try:
                np.broadcast_shapes(*shapes.values())
            except ValueError:
                raise ValueError(
                    f"fused function `{self.tape.name}`: the shapes do not broadcast together: {_listed(shapes)}: each "
                    f"axis must have one length, or 1"
                ) from None

    def _check_change(self, change: Change, passed: Mapping[str, Any]) -> None:
        """Raise ValueError where a value would have to grow that keeps its shape, as one that changes in place."""
        before = self._shapes(change.before, passed)
        after = self._shapes(change.before | change.by, passed)
        try:
            shape = np.broadcast_shapes(*before.values())
            grown = np.broadcast_shapes(*after.values())
        except ValueError:
            return  # which is said of the result
        if grown != shape:
            raise ValueError(
                f"fused function `{self.tape.name}`: {change.what} of shape {shape} by what has shape {grown}: "
                f"{_listed(after)}{change.hint}"
            )

    def _check_exponents(self, passed: Mapping[str, Any], numbers: Numbers) -> None:
        """Raise NumPy's error for a negative exponent of integers, where NumPy's arrays tell without waiting."""
        if not any(isinstance(array, np.ndarray) for array in passed.values()):
            return
        for kernel, parameters in self._negative_exponents:
            (found,) = kernel(*parameters.passed(passed, numbers))
            if np.any(found):
                raise ValueError(
                    f"fused function `{self.tape.name}`: Integers to negative integer powers are not allowed."
                )

    def _groups(self, passed: Mapping[str, Any]) -> list[tuple[int, ...]]:
        """Return the results that have the same shape: each group is one kernel, nearly always the only one."""
        positions = [k for k, each in enumerate(self._results) if type(each) is not Number]
        uses = [self._uses[k] for k in positions]
        if len(set(uses)) <= 1:
            return [tuple(positions)] if positions else []
        groups: dict[Any, list[int]] = {}
        for position, names in zip(positions, uses, strict=True):
            shapes = [_shape(passed[name]) for name in names]
            groups.setdefault(np.broadcast_shapes(*shapes) if shapes else None, []).append(position)
        return [tuple(group) for group in groups.values()]

    def _kernel(self, group: tuple[int, ...]) -> tuple[Callable[..., tuple[Any, ...]], Parameters]:
        known = self._kernels.get(group)
        if known is None:
            results = [self._results[position] for position in group]
            make: Any = _reduction if type(results[0]) is Reduced else _elementwise
            known = self._kernels[group] = make(self.tape, results)
        return known


def _taken_apart(tape: Tape, result: Any, found: list[Any], within: tuple[int, ...] = ()) -> _Make:
    """Append a result, or what stands in one that is a container; return what makes the same of others."""
    kind = type(result)
    if id(result) in within:
        raise tape.refusal(f"a result that is a {kind.__name__} that stands in itself")
    within = (*within, id(result))
    if issubclass(kind, tuple | list):
        parts = [_taken_apart(tape, each, found, within) for each in result]
        make = getattr(kind, "_make", kind)  # as tuples with names are made
        try:
            make([None] * len(parts))
        except TypeError:
            raise tape.refusal(
                f"a result of class {kind.__name__}, which is not made of its elements: return a tuple, list or dict"
            ) from None
        return lambda values: make([each(values) for each in parts])
    if kind in DICTS:
        by_key = {
            key.pinned() if type(key) is Number else key: _taken_apart(tape, each, found, within)
            for key, each in result.items()
        }
        empty = copy.copy(result)  # which has its default
        empty.clear()
        return partial(_dict_like, empty, by_key)
    if dataclasses.is_dataclass(kind):
        by_name = {
            name: _taken_apart(tape, each, found, within) for name, each in _attributes(result).items()
        }
        return partial(_dataclass_like, result, by_name)
    if len(within) > 1 and kind in _CONSTANTS:
        return lambda values: result
    found.append(result)
    return itemgetter(len(found) - 1)


def _dict_like(empty: Any, by_key: Mapping[Any, _Make], values: Mapping[int, Any] | Sequence[Any]) -> Any:
    """Return a dict that others stand in."""
    made = copy.copy(empty)
    made.update({key: each(values) for key, each in by_key.items()})
    return made


def _dataclass_like(
    result: Any, by_name: Mapping[str, _Make], values: Mapping[int, Any] | Sequence[Any]
) -> Any:
    """Return an object as one that its class made when the function was traced, with other attributes."""
    made = copy.copy(result)
    for name, each in by_name.items():
        object.__setattr__(made, name, each(values))
    return made


def _attributes(result: Any) -> dict[str, Any]:
    """Return the fields of an object of a dataclass, and what else it has."""
    names = [each.name for each in dataclasses.fields(result)]
    fields = {name: getattr(result, name) for name in names if hasattr(result, name)}
    return fields | getattr(result, "__dict__", {})


def _known(tape: Tape, result: Any) -> Any:
    """Return a result as what a kernel makes of it, or a number."""
    if type(result) is not Reduced:
        return tape.value(result)
    tape.own(result.value)
    return result


def _shape(array: Any) -> tuple[int, ...]:
    view = arrays.view(array)
    assert view is not None
    return view.shape


def _listed(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items())


def _elementwise(tape: Tape, results: Sequence[Traced]) -> tuple[Callable[..., Any], Parameters]:
    codes = [each.code for each in results]
    used = set().union(*map(tape.used_by, codes))
    parameters = Parameters(tape, used)
    outputs = [(f"y{k}", each.numpy_dtype) for k, each in enumerate(results)]
    body = [
        *parameters.definitions,
        *tape.statements(used),
        *(f"y{k} = {code};" for k, code in enumerate(codes)),
    ]
    kernel = ElementwiseKernel(
        parameters.declarations, declarations(outputs), "\n".join(body), tape.name,
        preamble=f"#include <{HEADER}>", type_preamble=parameters.struct, return_tuple=True,
    )  # fmt: skip
    return kernel, parameters


def _reduction(tape: Tape, results: Sequence[Reduced]) -> tuple[Callable[..., Any], Parameters]:
    (reduced,) = results
    used = tape.used_by(reduced.value.code)
    parameters = Parameters(tape, used)
    texts = reduced.kernel_texts()
    typed = ", ".join(map(" ".join, zip(parameters.ctypes, parameters.names, strict=True)))
    preamble = [
        f"#include <{HEADER}>",
        texts["preamble"] or "",
        f"__device__ inline {value_ctype(reduced.value.numpy_dtype)} gridstride_traced_value({typed}) {{",
        *parameters.definitions,
        *tape.statements(used),
        f"return {reduced.value.code};",
        "}",
    ]
    kernel = ReductionKernel(
        parameters.declarations,
        f"{_dtypes.name_of_dtype(reduced.numpy_dtype)} y",
        str(texts["map_expr"]).format(f"gridstride_traced_value({', '.join(parameters.names)})"),
        str(texts["reduce_expr"]),
        texts["post_map_expr"],
        texts["identity"],
        tape.name,
        texts["reduce_type"],
        preamble="\n".join(preamble),
        type_preamble=parameters.struct,
    )
    return lambda *arguments: (kernel(*arguments, axis=reduced.axis, keepdims=reduced.keepdims),), parameters
