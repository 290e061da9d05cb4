"""Reading CUDA C++ without compiling it: what a text declares, and when two names mean the same."""

from __future__ import annotations

from gridstride._syntax.declarations import (
    FunctionDeclaration,
    KernelDeclaration,
    ParameterDeclaration,
    VariableDeclaration,
    functions,
    globals_,
    kernels,
)
from gridstride._syntax.names import base_name, normalize_name

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
