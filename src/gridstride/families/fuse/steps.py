"""What Python calculates with numbers at every call: a list of steps, each taken once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from gridstride.families.fuse.constants import contents

#: Values that stay what they are, and those of which a function may have one of its own.
_UNCHANGEABLE = (int, float, complex, str, bytes, type(None), np.generic, np.ufunc, FunctionType, type)
_COPIED = (list, tuple, dict, np.ndarray)

#: How NumPy treats errors unless it is told otherwise.
_USUAL_ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


class Step(NamedTuple):
    """One calculation: where its result goes, of which places, and the type that it had in the traced call.

    `errors` is how NumPy was to treat errors where that was not the usual way: the function may have said so.
    """

    place: int
    function: Callable[..., Any]
    operands: tuple[int, ...]
    type: type
    errors: Any


class Steps:
    """Hold the places of a call's numbers: arguments first, then constants and results in the order they were made.

    Parameters
    ----------
    count : int
        Of arguments.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._rest: list[Any] = []
        self._steps: list[Step] = []
        self._changeable: list[tuple[Any, Any]] = []

    def constant(self, value: Any) -> int:
        """Return the place of a value that is the same in all calls, such as a list as it is now."""
        if not isinstance(value, _UNCHANGEABLE):
            self._changeable.append((value, contents(value)))
            value = copy.deepcopy(value) if type(value) in _COPIED else value
        self._rest.append(value)
        return self._count + len(self._rest) - 1

    def may_change(self) -> bool:
        """Return whether there are such values that may become others."""
        return bool(self._changeable)

    def has_changed(self) -> bool:
        """Return whether any of those values is another now, such as a table."""
        return any(contents(value) != before for value, before in self._changeable)

    def add(self, function: Callable[..., Any], operands: Iterable[int], result: Any) -> int:
        """Append a calculation that gave a result; return the result's place."""
        place = self.constant(None)
        errors = np.geterr()
        own = None if errors == _USUAL_ERRORS else errors
        self._steps.append(Step(place, function, tuple(operands), type(without_axes(result)), own))
        return place

    def taken(self, arguments: Sequence[Any]) -> list[Any] | None:
        """Return what is at each place in a call.

        None where a step has a result of another type than in the traced call, or raises: there the function may go on
        in another way.
        """
        found = [*arguments, *self._rest]
        for place, function, operands, kind, errors in self._steps:
            try:
                with nullcontext() if errors is None else np.errstate(**errors):
                    result = without_axes(function(*[found[operand] for operand in operands]))
            except Exception:
                return None
            if type(result) is not kind:
                return None
            found[place] = result
        return found


def without_axes(value: Any) -> Any:
    """Return the NumPy scalar of an array without axes, which means the same; anything else as it is."""
    return value[()] if type(value) is np.ndarray and value.ndim == 0 else value
