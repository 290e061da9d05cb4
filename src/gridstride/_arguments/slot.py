"""One parameter of one kernel, and the complete errors about what was passed for it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridstride import arrays
from gridstride.errors import ArgumentRangeError, ArgumentTypeError, with_article
from gridstride.targets.base import Parameter


class Slot(NamedTuple):
    """Name a parameter for messages: kernel, position (from 0), name and C++ type."""

    kernel: str
    position: int
    parameter: Parameter

    def wrong_type(self, value: Any, advice: str, got: str = "") -> ArgumentTypeError:
        """Return the TypeError for a value of the wrong kind, dtype or layout."""
        got = got or describe(value)
        return ArgumentTypeError(
            f"{self}, got {got}. {advice}",
            kernel=self.kernel,
            parameter=self.parameter.name,
            position=self.position,
            expected=self.parameter.type.name,
            got=got,
        )

    def out_of_range(self, value: Any, limits: str) -> ArgumentRangeError:
        """Return the OverflowError for a number that the type cannot hold."""
        return ArgumentRangeError(
            f"{self}, got {value!r}, which it cannot hold: {limits}",
            kernel=self.kernel,
            parameter=self.parameter.name,
            position=self.position,
            expected=self.parameter.type.name,
            got=repr(value),
        )

    def __str__(self) -> str:
        name = f" `{self.parameter.name}`" if self.parameter.name else ""
        return f"`{self.kernel}`: argument {self.position}, parameter{name} (`{self.parameter.type.name}`)"


def describe(value: Any) -> str:
    """Return a few words about a value: dtype and shape of arrays, type and value of numbers."""
    view = None if np.isscalar(value) or value is None else arrays.view(value)
    if view is not None:
        return f"{with_article(str(view.dtype))} array of shape {tuple(view.shape)}"
    if isinstance(value, np.generic):
        return f"the {value.dtype} scalar {value!r}"
    if isinstance(value, bool | int | float | complex):
        return f"the {type(value).__name__} {value!r}"
    if value is None:
        return "None"
    return f"an object of type {type(value).__module__}.{type(value).__qualname__}"
