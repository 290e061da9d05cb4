"""``cupy.random`` whose `rand`, `randn` and the like also work while the current stream is captured.

CuPy draws with a library that it does not call then. Other generators keep CuPy's error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from gridstride import arrays
from gridstride.namespace import captured

#: How the functions that work in captures draw, and whether they take the shape as their arguments.
_CAPTURED = {
    "rand": ("uniform", True),
    "random": ("uniform", False),
    "random_sample": ("uniform", False),
    "ranf": ("uniform", False),
    "sample": ("uniform", False),
    "randn": ("normal", True),
    "standard_normal": ("normal", False),
}


@cache
def _capturing(name: str) -> Callable[..., Any]:
    kind, takes_lengths = _CAPTURED[name]

    def draw(*args: Any, dtype: Any = float, **keywords: Any) -> Any:
        current = captured.current_capture()
        if current is None:
            return getattr(arrays.library_module("cupy").random, name)(*args, dtype=dtype, **keywords)
        size = args if takes_lengths else keywords.get("size", args[0] if args else None)
        shape = () if size is None else size if isinstance(size, tuple) else (size,)
        return captured.draw(kind, shape, dtype, _captured_array(), current)

    draw.__name__ = draw.__qualname__ = name
    draw.__doc__ = f"Draw as ``cupy.random.{name}``, also while the current stream is captured."
    return draw


@cache
def _captured_array() -> Any:
    """Return the class of arrays that are made in captures: CuPy's, with a product that can be captured."""
    cupy = arrays.library_module("cupy")

    class CapturedArray(cupy.ndarray):  # type: ignore[misc, name-defined]
        def __matmul__(self, other: Any) -> Any:
            current = captured.current_capture()
            if current is None or not isinstance(other, cupy.ndarray):
                return super().__matmul__(other)
            return captured.matmul(self, other, CapturedArray, current.stream)

    return CapturedArray


def __getattr__(name: str) -> Any:
    return _capturing(name) if name in _CAPTURED else getattr(arrays.library_module("cupy").random, name)


def __dir__() -> list[str]:
    return dir(arrays.library_module("cupy").random)
