"""Reading CUDA C++ without compiling it: what a text declares, and when two names mean the same.

The parser is imported when a text is first read: launches that hit a cache need only names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gridstride._syntax.names import base_name, normalize_name

if TYPE_CHECKING:
    from gridstride._syntax.declarations import (
        FunctionDeclaration,
        KernelDeclaration,
        ParameterDeclaration,
        VariableDeclaration,
        functions,
        globals_,
        kernels,
    )

__all__ = [
    "FunctionDeclaration",
    "KernelDeclaration",
    "ParameterDeclaration",
    "VariableDeclaration",
    "base_name",
    "functions",
    "globals_",
    "kernels",
    "normalize_name",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from gridstride._syntax import declarations

        return getattr(declarations, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
