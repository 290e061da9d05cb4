"""Which kernels' threads may meet at the same memory, so that more cores may make them slower."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gridstride import _syntax

#: What has to do with atomics, also in inline PTX and in names of the user's.
_ATOMIC = re.compile(rb"atom|\bred\.", re.IGNORECASE)
_WORD = re.compile(rb"[A-Za-z_]\w*")


def contending_kernels(text: str, kernels: Sequence[str]) -> frozenset[str]:
    """Return the kernels that have atomics, themselves or in functions that they name."""
    source = text.encode()
    if not _ATOMIC.search(source):
        return frozenset()
    bodies = [(item.name.rpartition("::")[2], source[slice(*item.body)]) for item in _syntax.functions(text)]
    outside = source
    for _, body in bodies:
        outside = outside.replace(body, b"")
    if _ATOMIC.search(outside):  # in a macro, perhaps
        return frozenset(kernels)
    found = {name for name, body in bodies if _ATOMIC.search(body)}
    while more := {name for name, body in bodies if found & _words(body)} - found:
        found |= more
    return frozenset(kernel for kernel in kernels if _syntax.base_name(kernel).rpartition("::")[2] in found)


def _words(body: bytes) -> set[str]:
    return {word.decode() for word in _WORD.findall(body)}
